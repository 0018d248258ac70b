"""The reading of a clause: the facts that it states and the facts that it ends."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Triple:
    """A statement of a clause, or an ending of facts.

    Attributes:
        subject, object: Names of nodes; in an ending, an empty name stands for any node.
        relations: The relation of a statement, or the relations that an ending ends.
        object_kind: Kind of the object's node if the clause shows it, else "".
    """

    subject: str
    relations: tuple[str, ...]
    object: str
    object_kind: str = ""


@dataclass(frozen=True, slots=True)
class ClauseReading:
    """The facts that a clause states, and the facts that it ends."""

    states: tuple[Triple, ...] = ()
    ends: tuple[Triple, ...] = ()

    def __add__(self, other: ClauseReading) -> ClauseReading:
        return ClauseReading((*self.states, *other.states), (*self.ends, *other.ends))
