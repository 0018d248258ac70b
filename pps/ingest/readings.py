"""What a clause gives: the facts that it states and the facts that it ends."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Triple:
    """What a clause states or ends; an empty end of an ending is any node.

    Attributes:
        relations: One of a statement, those that end of an ending.
        object_kind: Kind of the object's node where the words tell it.
    """

    subject: str
    relations: tuple[str, ...]
    object: str
    object_kind: str = ""


@dataclass(frozen=True, slots=True)
class ClauseReading:
    """What a clause gives: the facts that it states, the facts that it ends."""

    states: tuple[Triple, ...] = ()
    ends: tuple[Triple, ...] = ()

    def __add__(self, other: ClauseReading) -> ClauseReading:
        return ClauseReading((*self.states, *other.states), (*self.ends, *other.ends))
