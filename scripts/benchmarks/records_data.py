"""Records of the constitution pack and questions about them: hand-written topics, each told in two kinds of records.

The topics are ``records.toml``. A record is told once as what it is (a goal, a task, …) under its title, and once as
what was noted about it, in a sentence of another's making. For the part "by name" each says its area, too. What
measures times has foundations among them and three relations a record.
"""

from __future__ import annotations

import itertools
import random
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
    "Principle": {"rationale": "It has served well so far."},
    "Guardrail": {"trigger": "It is about to be given up.", "severity": "medium"},
    "Partnership": {"partner": "A friend", "criticality": "low"},
    "Relationship": {"counterpart": "A friend"},
}
_JOINS = {
    "Task": "SERVES",
    "Decision": "SERVES",
    "Insight": "APPLIED_TO",
    "Observation": "OBSERVES",
}
"""Relation of a record to its topic's goal."""
_TEXT_IN = {
    "Note": "content",
    "Pattern": "pattern",
    "Principle": "statement",
    "Policy": "statement",
    "Guardrail": "response",
    "Context": "scope",
    "Core": "pillar",
}
"""Required field of a kind that holds its text."""
FOUNDATION = (
    "Value",
    "Principle",
    "Guardrail",
    "Partnership",
    "Policy",
    "Context",
    "Core",
    "Relationship",
)
_TO_GOALS = {**_JOINS, "Goal": "ALIGNS_WITH", "Value": "ALIGNS_WITH", "Principle": "ALIGNS_WITH"}
_WEIGHED = ("Goal", "Value", "Principle")
RELATIONS_EACH = 3
"""Relations of what is timed, for each record."""
_SEED = 25
_WORD = re.compile(r"[a-z]{4,}")
_STEM = 5


@dataclass(frozen=True, slots=True)
class Topic:
    """What a person is busy with: two names of the area, records, questions, and which records answer each."""

    name: str
    questions: tuple[str, ...]
    answers: tuple[frozenset[int], ...]
    area: tuple[str, str]
    records: tuple[tuple[str, str], ...]

    def copied(self, *, named: bool = False) -> int:
        """Return how many words of its questions, by their first letters, the records that answer have too."""
        found = 0
        for question, numbers in zip(self.questions, self.answers, strict=True):
            said = [word for at in numbers for word in self.records[at]] + list(
                self.area if named else ()
            )
            words = {_stem(word) for word in _WORD.findall(" ".join(said).lower())}
            found += sum(_stem(word) in words for word in _asked(question))
        return found


def topics() -> tuple[Topic, ...]:
    found = tomllib.loads(Path(__file__).with_name("records.toml").read_text("utf-8"))["topics"]
    return tuple(
        Topic(
            one["name"],
            tuple(one["questions"]),
            tuple(frozenset(int(number) - 1 for number in said) for said in one["answers"]),
            tuple(one["area"]),
            tuple(_cut(line) for line in one["records"]),
        )
        for one in found
    )


def told(
    topic: Topic, number: int, after: Topic | None = None, *, named: bool = False
) -> list[RecordGiven]:
    """Return a topic's records, its goal first; related to the goal are five of them, and one of ``after``.

    Args:
        topic: What.
        number: Of the telling: it makes titles and texts that are the same in no other.
        after: The topic whose task leads astray, told under the same number.
        named: Each record says its area.
    """
    mark = f" ({number})" if number else ""
    goal = f"{topic.records[0][0]}{mark}"
    found: list[RecordGiven] = []
    for at, ((title, text), kind, noted) in enumerate(
        zip(topic.records, AS_IT_IS, AS_NOTED, strict=True)
    ):
        about = f" This is about {topic.area[at % 2]}." if named else ""
        found.append(_record(kind, f"{title}{mark}", f"{text}{about}", goal))
        frame, sentence = _TOLD[(at + len(topic.name)) % len(_TOLD)]
        name = frame.format(title=f"{title[:1].lower()}{title[1:]}{mark}")
        area = f"{topic.area[1 - at % 2].capitalize()}: " if named else ""
        found.append(_record(noted, name, f"{area}{sentence.format(text=text)}", goal))
    if after is not None:
        astray = RelationGiven("SERVES", goal)
        found.append(
            RecordGiven(
                "Task", f"{after.records[1][0]}{mark}", after.records[1][1], relations=(astray,)
            )
        )
    return found


def many(size: int) -> Iterator[list[RecordGiven]]:
    """Yield ``size`` records, by calls: foundations and the topics again and again, each time under another number.

    Each is related to its topic's goal and to goals that were told before, until there are three relations a record.
    """
    left, owed, goals, chance = size, 0, list[str](), random.Random(_SEED)  # noqa: S311 - drawn alike each time
    for number in itertools.count():
        for at, one in enumerate(topics()):
            some = [*told(one, number), *_founded(one, number, at)][:left]
            goals.append(some[0].title or "")
            owed += RELATIONS_EACH * len(some)
            yield (joined := _joined(some, goals, owed, chance))
            owed -= sum(len(each.relations) for each in joined)
            left -= len(some)
            if not left:
                return


def _founded(topic: Topic, number: int, at: int) -> list[RecordGiven]:
    """Return two foundations in a topic's words."""
    mark = f" ({number})" if number else ""
    kinds = (FOUNDATION[2 * at % len(FOUNDATION)], FOUNDATION[(2 * at + 1) % len(FOUNDATION)])
    said = ((topic.area[0], topic.records[0][1]), (topic.area[1], topic.records[-1][1]))
    return [
        _record(kind, f"{area.capitalize()}{mark}", text, "")
        for kind, (area, text) in zip(kinds, said, strict=True)
    ]


def _joined(
    some: list[RecordGiven], goals: list[str], owed: int, chance: random.Random
) -> list[RecordGiven]:
    """Return the records with relations to goals beside their own, as many as are owed and as there are goals for."""
    can = [one for one in some if one.kind in _TO_GOALS]
    owed -= sum(len(one.relations) for one in some)
    found: list[RecordGiven] = []
    for one in some:
        more: list[RelationGiven] = []
        if one.kind in _TO_GOALS:
            apart = {one.title, *(relation.target for relation in one.relations)}
            choice = [goal for goal in goals if goal not in apart]
            for goal in chance.sample(choice, max(0, min(len(choice), -(-owed // len(can))))):
                weight: dict[str, JSON] = (
                    {"weight": round(chance.random(), 2)} if one.kind in _WEIGHED else {}
                )
                more.append(RelationGiven(_TO_GOALS[one.kind], goal, weight))
            owed -= len(more)
            can.pop()
        found.append(replace(one, relations=(*one.relations, *more)))
    return found


def duplicates() -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Return pairs of title and text that say one thing, saved twice: case, marks and a word beside it differ."""
    return [
        ((title, text), (title.lower(), f"Again: {text[:1].lower()}{text[1:-1]}!"))
        for one in topics()
        for title, text in one.records
    ]


def copied_share(every: Sequence[Topic], *, named: bool = False) -> float:
    """Return which share of the questions' words the records that answer them have."""
    asked = sum(len(_asked(said)) for one in every for said in one.questions)
    return sum(one.copied(named=named) for one in every) / max(1, asked)


def _asked(question: str) -> set[str]:
    """Return what a question asks in: words of four letters and more that are no mere function words."""
    return set(_WORD.findall(content_words(question).lower()))


def _record(kind: str, title: str, text: str, goal: str) -> RecordGiven:
    fields = dict(_FIELDS.get(kind, {}))
    if kind in _TEXT_IN:
        fields[_TEXT_IN[kind]] = text
    joins = (RelationGiven(_JOINS[kind], goal),) if kind in _JOINS else ()
    return RecordGiven(kind, title, text, fields=fields, relations=joins)


def _cut(line: str) -> tuple[str, str]:
    title, _, text = line.partition(" | ")
    return title, text


def _stem(word: str) -> str:
    return word[:_STEM]
