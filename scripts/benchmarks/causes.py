"""A coding project's memories in twelve topics over six weeks, with questions of seven kinds: ``causes.toml``.

A topic's lines come in order, some at a time in a session of that topic; which topic is next is drawn, the same each
time. Topics are held in and held out by turns, so that what is tuned on the one half can be told on the other.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.data import Conversation, Question, Said, fact, node

NAME = "causes"
"""What ``--data`` says in place of a path."""
HALVES = ("dev", "held out")
_START, _STEP = datetime(2026, 8, 3, 8, tzinfo=UTC), timedelta(minutes=11)
_SESSIONS_A_DAY, _SESSION = 2, (3, 6)
_LABEL = re.compile(r"@(\w+) (.+)")


@dataclass(frozen=True, slots=True)
class Topic:
    """What the lines of one topic say.

    Attributes:
        memories: By their ids, in order.
        facts: By the id of the memory that they stand on: subject, relation, object.
        nodes: Name, kind, and what each is.
    """

    name: str
    half: str
    memories: Mapping[str, str]
    facts: Mapping[str, Sequence[str]]
    nodes: Sequence[Sequence[str]]
    questions: Sequence[Question]


def topics() -> list[Topic]:
    """Return the topics as they are written."""
    tables = tomllib.loads(Path(__file__).with_name("causes.toml").read_text("utf-8"))["topics"]
    return [_topic(one, HALVES[number % 2]) for number, one in enumerate(tables)]


def _topic(table: Mapping[str, str], half: str) -> Topic:
    name, memories, labels = table["name"], dict[str, str](), dict[str, str]()
    for number, line in enumerate(table["memories"].strip().splitlines()):
        labelled = _LABEL.fullmatch(line)
        memories[one := f"{name} {number:02}"] = labelled[2] if labelled else line
        if labelled:
            labels[labelled[1]] = one
    questions = [
        Question(
            f"{half}: {name} {number:02}",
            text,
            kind,
            frozenset(labels[one] for one in gold.split()),
        )
        for number, (kind, gold, text) in enumerate(_rows(table["questions"]))
    ]
    facts = {labels[label]: said for label, *said in _rows(table["facts"])}
    return Topic(name, half, memories, facts, _rows(table["nodes"]), questions)


def read_causes() -> list[Conversation]:
    """Return the one memory, the same each time; a question's category is its kind, its id begins with its half."""
    conversation = Conversation(NAME)
    every = topics()
    for session, (topic, ids) in enumerate(_sessions(every)):
        start = _START + timedelta(
            days=session // _SESSIONS_A_DAY, hours=4 * (session % _SESSIONS_A_DAY)
        )
        for at, one in enumerate(ids):
            conversation.say(_said(topic, one, f"{topic.name} {session:02}", start + at * _STEP))
    for topic in every:
        for question in topic.questions:
            conversation.ask(question)
    return [conversation]


def _sessions(every: Sequence[Topic]) -> list[tuple[Topic, list[str]]]:
    """Return the topics' lines by sessions, topics mixed."""
    chance = random.Random(27)  # noqa: S311 - the same each time, and no secret
    left = {topic.name: list(topic.memories) for topic in every}
    found: list[tuple[Topic, list[str]]] = []
    while open_ := [topic for topic in every if left[topic.name]]:
        topic = chance.choice(open_)
        size = chance.randint(*_SESSION)
        ids, left[topic.name] = left[topic.name][:size], left[topic.name][size:]
        found.append((topic, ids))
    return found


def _said(topic: Topic, one: str, session: str, at: datetime) -> Said:
    """Return a memory with the nodes that it names and the facts that stand on it."""
    text = topic.memories[one]
    drafts = {name: node(name, kind, what) for name, kind, what in topic.nodes}
    turn = Said(one, text, session=session, at=at)
    turn.nodes.update({name: draft for name, draft in drafts.items() if name in text})
    if said := topic.facts.get(one):
        subject, relation, target = said
        ends = {name: drafts[name] for name in (subject, target)}
        turn.add(fact((ends[subject], ends[target]), relation, text, (at, None)), ends)
    return turn


def _rows(table: str) -> list[list[str]]:
    return [line.split(" | ") for line in table.strip().splitlines()]
