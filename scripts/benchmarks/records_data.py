"""Records of the constitution pack and questions about them: hand-written topics, each told in two kinds of records.

The topics are ``records.toml``. A record is told once as what it is (a goal, a task, …) under its title, and once as
what was noted about it, in a sentence of another's making.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pps.core.values import JSON
from pps.recall.question import content_words
from pps.records.saving import RecordGiven, RelationGiven

AS_IT_IS = ("Goal", "Task", "Decision", "Task", "Insight", "Project")
AS_NOTED = ("Note", "Observation", "Event", "Evidence", "Pattern", "Signal")
_TOLD = (
    ("Noted: {title}", "Jotted down between two errands: {text}"),
    ("{title}, again", "{text} That is what I saw, no more."),
    ("What came up: {title}", "It was mentioned again, and it still holds. {text}"),
    ("{title} (slip of paper)", "{text} Somebody ought to look at it before the month is over."),
    ("Observed: {title}", "Not for the first time: {text}"),
    ("From the log: {title}", "{text} Filed without comment."),
)
_FIELDS: dict[str, dict[str, JSON]] = {
    "Insight": {"confidence": 0.7},
    "Observation": {"observed_at": "2026-05-01T08:00:00Z"},
    "Event": {"occurred_at": "2026-05-01T08:00:00Z"},
    "Task": {"effort_hours": 1.5, "due_date": "2026-12-01"},
}
_JOINS = {"Task": "SERVES", "Decision": "SERVES", "Insight": "APPLIED_TO", "Observation": "OBSERVES"}
"""Relation of a record to its topic's goal."""
_WORD = re.compile(r"[a-z]{4,}")
_STEM = 5


@dataclass(frozen=True, slots=True)
class Topic:
    """What a person is busy with: two names of the area, questions, and the records that answer every one of them."""

    name: str
    questions: tuple[str, ...]
    area: tuple[str, str]
    records: tuple[tuple[str, str], ...]

    def copied(self) -> list[str]:
        """Return the words of its questions, by their first letters, that its records have too."""
        said = " ".join((*self.area, *(word for record in self.records for word in record)))
        words = {_stem(word) for word in _WORD.findall(said.lower())}
        asked = {_stem(word) for one in self.questions for word in _WORD.findall(content_words(one).lower())}
        return sorted(asked & words)


def topics() -> tuple[Topic, ...]:
    found = tomllib.loads(Path(__file__).with_name("records.toml").read_text("utf-8"))["topics"]
    return tuple(
        Topic(
            one["name"],
            tuple(one["questions"]),
            tuple(one["area"]),
            tuple(_cut(line) for line in one["records"]),
        )
        for one in found
    )


def told(topic: Topic, number: int, after: Topic | None = None) -> list[RecordGiven]:
    """Return a topic's records, its goal first; related to the goal are five of them, and one of ``after``.

    Args:
        topic: What.
        number: Of the telling: it makes titles and texts that are the same in no other.
        after: The topic whose task leads astray, told under the same number.
    """
    mark = f" ({number})" if number else ""
    goal = f"{topic.records[0][0]}{mark}"
    found: list[RecordGiven] = []
    for at, ((title, text), kind, noted) in enumerate(zip(topic.records, AS_IT_IS, AS_NOTED, strict=True)):
        found.append(_record(kind, f"{title}{mark}", f"{text} This is about {topic.area[at % 2]}.", goal))
        frame, sentence = _TOLD[(at + len(topic.name)) % len(_TOLD)]
        name = frame.format(title=f"{title[:1].lower()}{title[1:]}{mark}")
        noting = f"{topic.area[1 - at % 2].capitalize()}: {sentence.format(text=text)}"
        found.append(_record(noted, name, noting, goal))
    if after is not None:
        astray = RelationGiven("SERVES", goal)
        found.append(RecordGiven("Task", f"{after.records[1][0]}{mark}", after.records[1][1], relations=(astray,)))
    return found


def many(size: int) -> Iterator[list[RecordGiven]]:
    """Yield ``size`` records, by calls: the topics again and again, each time under another number."""
    left = size
    for number in itertools.count():
        for one in topics():
            some = told(one, number)[:left]
            yield some
            left -= len(some)
            if not left:
                return


def duplicates() -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Return pairs of title and text that say one thing, saved twice: case, marks and a word beside it differ."""
    return [
        ((title, text), (title.lower(), f"Again: {text[:1].lower()}{text[1:-1]}!"))
        for one in topics()
        for title, text in one.records
    ]


def copied_share(every: Sequence[Topic]) -> float:
    """Return which share of the questions' words their own records have."""
    asked = [
        word for one in every for said in one.questions for word in set(_WORD.findall(content_words(said).lower()))
    ]
    return sum(len(one.copied()) for one in every) / max(1, len(asked))


def _record(kind: str, title: str, text: str, goal: str) -> RecordGiven:
    fields = dict(_FIELDS.get(kind, {}))
    if kind == "Note":
        fields["content"] = text
    if kind == "Pattern":
        fields["pattern"] = text
    joins = (RelationGiven(_JOINS[kind], goal),) if kind in _JOINS else ()
    return RecordGiven(kind, title, text, fields=fields, relations=joins)


def _cut(line: str) -> tuple[str, str]:
    title, _, text = line.partition(" | ")
    return title, text


def _stem(word: str) -> str:
    return word[:_STEM]
