"""Dated events (who did what to whom on which day): ICEWS14's files, or made up with a seed."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pps.core.errors import InvalidRequest
from pps.core.text import fold

FOLDER = "icews14"
DAY = timedelta(days=1)
"""How long an event holds."""
_FIRST_DAY = datetime(2014, 1, 1, tzinfo=UTC)
_HOURS = 24
_VERBS = (
    "MEET",
    "ACCUSE",
    "PRAISE",
    "VISIT",
    "MAKE_STATEMENT",
    "SIGN_AGREEMENT",
    "THREATEN",
    "THANK",
)
_LONGEST_RELATION = 60


@dataclass(frozen=True, slots=True)
class Event:
    """Something between two parties on one day (its midnight, UTC); ``relation`` is an edge's name."""

    subject: str
    relation: str
    object: str
    day: datetime

    def text(self) -> str:
        """Return it as a sentence of its own."""
        return f"{self.subject}: {self.relation}: {self.object} ({self.day:%Y-%m-%d})"


def read_events(path: Path) -> list[Event]:
    """Return the distinct events of ``train.txt`` (subject, relation, object, hour), names from the two id maps.

    Args:
        path: The folder, or one that has it as ``icews14``.

    Raises:
        InvalidRequest: A file is missing or a line is not what it should be.
    """
    folder = path if (path / "train.txt").is_file() else path / FOLDER
    parties = _names(folder / "entity2id.txt")
    first: dict[str, str] = {}
    # Names that are the same to a memory are one party, under the first of them.
    parties = {number: first.setdefault(fold(name), name) for number, name in parties.items()}
    relations = {
        number: _label(name, number) for number, name in _names(folder / "relation2id.txt").items()
    }
    events: dict[Event, None] = {}
    for number, line in _lines(folder / "train.txt"):
        try:
            subject, relation, object_, hour = (int(part) for part in line.split()[:4])
            event = Event(
                parties[subject],
                relations[relation],
                parties[object_],
                _FIRST_DAY + timedelta(days=hour // _HOURS),
            )
        except (ValueError, KeyError):
            raise InvalidRequest(
                "data", f"{folder / 'train.txt'}:{number} is not four known numbers"
            ) from None
        events[event] = None
    return list(events)


def generated(count: int, seed: int) -> list[Event]:
    """Return so many distinct events, the same for the same seed: some parties take part in many of them."""
    chance = random.Random(seed)  # noqa: S311 - a made-up world
    parties = [
        f"Party {number} ({'ABCDE'[number % 5]}land)" for number in range(max(4, count // 12))
    ]
    days = max(2, count // 20)
    events: dict[Event, None] = {}
    while len(events) < count:
        subject, object_ = (parties[int(len(parties) * chance.random() ** 2)] for _ in range(2))
        day = _FIRST_DAY + timedelta(days=chance.randrange(days))
        events[Event(subject, chance.choice(_VERBS), object_, day)] = None
    return list(events)


def _names(file: Path) -> Mapping[int, str]:
    names: dict[int, str] = {}
    for number, line in _lines(file):
        name, tab, identity = line.rpartition("\t")
        if not tab or not identity.strip().isdigit():
            raise InvalidRequest("data", f"{file}:{number} is not a name, a tab and a number")
        names[int(identity)] = name.strip()
    return names


def _label(name: str, number: int) -> str:
    """Return a relation's name as an edge may have it; two that are cut alike differ by their number."""
    label = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")
    return (
        label if len(label) <= _LONGEST_RELATION else f"{label[: _LONGEST_RELATION - 4]}_{number}"
    )


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    if not file.is_file():
        raise InvalidRequest(
            "data",
            f"{file} is missing; the folder must hold train.txt, entity2id.txt, relation2id.txt",
        )
    with file.open(encoding="utf-8") as lines:
        yield from enumerate((line for line in lines if line.strip()), start=1)
