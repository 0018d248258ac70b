"""How a turn reads: its words with its speaker before them."""

from __future__ import annotations

from pps.core.values import Turn


def speaker_of(turn: Turn) -> str:
    """Return who said a turn: its actor, else its role."""
    return turn.actor or turn.role


def spoken(turn: Turn) -> str:
    """Return a turn's words after ``speaker:``, unless they begin with it."""
    speaker = speaker_of(turn)
    return turn.content if turn.content.startswith(f"{speaker}:") else f"{speaker}: {turn.content}"
