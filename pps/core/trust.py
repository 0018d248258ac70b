"""How far the source of a text is trusted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from pps.core.values import Turn

Trust: TypeAlias = Literal["outside", "agent", "person"]
"""The least first: tool output, documents and the web; an agent's word; a person's."""
HOOK_SOURCES = {
    "claude": "claude-code",
    "codex": "codex",
    "cursor": "cursor",
    "gemini": "gemini-cli",
    "opencode": "opencode",
    "openclaw": "openclaw",
}
"""The ``source`` of the turns that a client's hooks bring, by the client."""
CAPTURED = frozenset(
    ("claude", "cli", "graphiti", "import", "markdown", "mem0", *HOOK_SOURCES.values())
)
"""Sources of what hooks, imports and the owner's commands keep.

A member of a squad may not call its own texts so.
"""
WEB = "web"
"""The tag of what was read outside."""


def trust_of(turn: Turn) -> Trust:
    """Return a turn's trust by its speaker; text of tools and documents is from outside."""
    if turn.role == "tool" or turn.chunk is not None or WEB in turn.tags:
        return "outside"
    return "person" if turn.role == "user" else "agent"


def lowest(levels: Iterable[Trust]) -> Trust:
    """Return the least trust of some; an agent's word when there is none."""
    levels_found = {*levels}
    return (
        "outside"
        if "outside" in levels_found
        else "person"
        if levels_found == {"person"}
        else "agent"
    )
