"""How a turn reads: its words with its speaker before them."""

from __future__ import annotations

from pps.core.values import Turn


def spoken(turn: Turn) -> str:
    """Return a turn's words after ``speaker:``, unless they begin with it; the speaker is the actor, else the role."""
    speaker = turn.actor or turn.role
    return turn.content if turn.content.startswith(f"{speaker}:") else f"{speaker}: {turn.content}"
