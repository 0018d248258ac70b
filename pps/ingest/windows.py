"""What a turn is found by: its own words, those around it, and the facts that it supports.

A question is rarely in the words of its answer: the turn before asks it, neighbours say what
it is about, and a fact says it in plain words. A window's vector is made of the vectors of its turns and
facts, so a window costs no call of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pps.core.spoken import speaker_of, spoken
from pps.core.text import is_question, sentences_of
from pps.core.time_reading import read_times
from pps.core.time_words import LONGEST, names_time
from pps.core.values import Turn
from pps.models.protocols import Vector

WINDOW_TURNS = 2
"""Turns before and after that share a window, within one session."""
FADING = 0.5
"""What a neighbour's vector weighs in a window's, for each step that it is away."""
MAX_FACTS = 16
"""Most facts of one turn that it is found by."""
_LONGEST_QUESTION = 400
"""Characters of a question, from its end, that the turn after it is found by."""
_DAY, _MONTH, _YEAR = "%d %B %Y", "%B %Y", "%Y"
_DAYS = {"day": _DAY, "week": _DAY, "month": _MONTH, "season": _MONTH, "year": _YEAR, "decade": _YEAR}


@dataclass(frozen=True, slots=True)
class Told:
    """A turn and the sentences of the facts that it supports."""

    turn: Turn
    facts: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the words of the turn, with its speaker, and of its facts."""
        return "\n".join((spoken(self.turn), *self.facts))

    def days(self) -> str:
        """Return the days, months or years that its words name: "yesterday" is a date only on the day it is said."""
        if not names_time(self.turn.content[:LONGEST]):
            return ""
        spans = read_times(self.turn.content, self.turn.occurred_at)
        starts = [one.start.strftime(_DAYS[one.grain]) for one in spans if one.start and one.grain in _DAYS]
        return " ".join(one.lstrip("0") for one in starts)


@dataclass(frozen=True, slots=True)
class Window:
    """A turn among its neighbours, in order; ``at`` is its own place."""

    told: tuple[Told, ...]
    at: int

    @property
    def own(self) -> Told:
        """The turn that the window is of."""
        return self.told[self.at]

    def asked(self) -> str:
        """Return the last question of the turn before, when somebody else said that: what this one may answer."""
        before = self.told[self.at - 1].turn if self.at else self.own.turn
        if speaker_of(before) == speaker_of(self.own.turn):
            return ""
        said = sentences_of(before.content.removeprefix(f"{speaker_of(before)}:"))
        return next((one.strip()[-_LONGEST_QUESTION:] for one in reversed(said) if is_question(one)), "")

    def own_text(self) -> str:
        """Return what the turn itself is found by: what it was asked, its words and facts, the days that it names."""
        return "\n".join(filter(None, (self.asked(), self.own.text(), self.own.days())))

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
