"""What a turn is found by: its own words, those around it, and the facts that it supports.

A question is rarely in the words of its answer: the turn before says what was asked, neighbours say what
it is about, and a fact says it in plain words. A window's vector is made of the vectors of its turns and
facts, so a window costs no call of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pps.core.spoken import spoken
from pps.core.values import Turn
from pps.models.protocols import Vector

WINDOW_TURNS = 2
"""Turns before and after that share a window, within one session."""
FADING = 0.5
"""What a neighbour's vector weighs in a window's, for each step that it is away."""
MAX_FACTS = 16
"""Most facts of one turn that it is found by."""


@dataclass(frozen=True, slots=True)
class Told:
    """A turn and the sentences of the facts that it supports."""

    turn: Turn
    facts: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the words of the turn, with its speaker, and of its facts."""
        return "\n".join((spoken(self.turn), *self.facts))


@dataclass(frozen=True, slots=True)
class Window:
    """A turn among its neighbours, in order; ``at`` is its own place."""

    told: tuple[Told, ...]
    at: int

    @property
    def own(self) -> Told:
        """The turn that the window is of."""
        return self.told[self.at]

    def exchange(self) -> str:
        """Return what the turn before said, and the turn with its facts."""
        before = spoken(self.told[self.at - 1].turn) + "\n" if self.at else ""
        return before + self.own.text()

    def text(self) -> str:
        """Return all that was said in the window, with its facts."""
        return "\n".join(told.text() for told in self.told)

    def vector(self, vectors: Mapping[str, Vector]) -> Vector:
        """Return the window's unit vector, shape (dimension,).

        The sum over turns of ``FADING ** distance`` times the turn's vector plus its facts' vectors over
        the square root of their number.

        Args:
            vectors: The vector of each turn by its uuid, and of each fact by its sentence.
        """
        total = np.zeros_like(vectors[self.own.turn.uuid])
        for place, told in enumerate(self.told):
            facts = [vectors[fact] for fact in told.facts]
            said = vectors[told.turn.uuid] + (np.sum(facts, axis=0) / len(facts) ** 0.5 if facts else 0.0)
            total += FADING ** abs(place - self.at) * said
        length = float(np.linalg.norm(total))
        return (total / length).astype(np.float32) if length else total
