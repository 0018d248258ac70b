"""What of a turn is indexed: its own words, and a window of the turns around it."""

from __future__ import annotations

from collections.abc import Sequence

from pps.core.values import Turn

WINDOW_TURNS = 2
"""Turns before and after that share a window, within one session."""


def spoken(turn: Turn) -> str:
    """Return a turn's words with its speaker before them, as an index and a reader see it."""
    speaker = turn.actor or turn.role
    return turn.content if turn.content.startswith(f"{speaker}:") else f"{speaker}: {turn.content}"


def window_text(turns: Sequence[Turn]) -> str:
    """Return the text of a window: its turns in order, a line break between them."""
    return "\n".join(spoken(turn) for turn in turns)
