"""Questions about points and spans of time whose answers the events themselves tell."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from benchmarks.events import DAY, Event

_LIMITS = (1, 3, 10, 50, 200, 1000)
_SHAPES = (
    ("about", "as_of"),
    ("about", "relation", "as_of"),
    ("relation", "as_of"),
    ("as_of",),
    ("about", "span"),
    ("about", "relation", "span"),
    ("relation", "span"),
    ("span",),
    ("about", "span", "as_of"),
    ("about",),
)


@dataclass(frozen=True, slots=True)
class Question:
    """What a timeline is asked, and in pages of which size."""

    about: str | None = None
    relation: str | None = None
    as_of: datetime | None = None
    after: datetime | None = None
    before: datetime | None = None
    limit: int = 100

    def holds(self, event: Event) -> bool:
        """Tell whether an event is part of the answer."""
        return (
            (self.about is None or self.about in (event.subject, event.object))
            and (self.relation is None or event.relation == self.relation)
            and (self.as_of is None or event.day <= self.as_of < event.day + DAY)
            and (self.after is None or event.day >= self.after)
            and (self.before is None or event.day < self.before)
        )


def questions(events: Sequence[Event], count: int, seed: int) -> list[Question]:
    """Return questions about the events, the same for the same seed; one in eight about a time or pair at random."""
    chance = random.Random(seed)  # noqa: S311 - questions, not secrets
    first, last = min(event.day for event in events), max(event.day for event in events)
    return [
        _question(chance, events, _SHAPES[number % len(_SHAPES)], (first, last))
        for number in range(count)
    ]


def _question(
    chance: random.Random,
    events: Sequence[Event],
    shape: Sequence[str],
    ends: tuple[datetime, datetime],
) -> Question:
    event = chance.choice(events)
    stray = chance.random() < 1 / 8
    day = ends[0] + chance.randrange((ends[1] - ends[0]).days + 2) * DAY if stray else event.day
    moment = day + chance.choice(
        (timedelta(), timedelta(hours=12), DAY - timedelta(microseconds=1))
    )
    days_before, days_after = chance.choice(((0, 1), (1, 2), (3, 7), (15, 16), (40, 60)))
    span = "span" in shape
    return Question(
        about=chance.choice((event.subject, event.object)) if "about" in shape else None,
        relation=event.relation if "relation" in shape else None,
        as_of=moment if "as_of" in shape else None,
        after=day - days_before * DAY if span else None,
        before=day + days_after * DAY if span else None,
        limit=chance.choice(_LIMITS),
    )
