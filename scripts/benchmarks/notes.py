"""Short notes among chat: one-line notes of our own, each with its plain question, and turns of talk around them.

Memories of each size in ``SIZES`` hold all notes between them: at least a dozen in one, a fifth of its turns where
that is more. In every second memory the notes lie in the chat's own session, in the others in one of theirs.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.data import Conversation, Question, Said

NAME, CASUAL = "notes", "casual"
"""What ``--data`` says in place of a path: plain questions, and questions in other words than the notes."""
SIZES = (0, 24, 100, 500)
"""Turns of chat in a memory."""
_LEAST, _SHARE = 12, 5
_START, _STEP = datetime(2026, 3, 2, 8, tzinfo=UTC), timedelta(minutes=7)


@dataclass(frozen=True, slots=True)
class _Note:
    texts: tuple[str, ...]
    question: str
    kind: str


def read_notes() -> list[Conversation]:
    """Return the shipped notes as conversations, the same each time; of several statements the last one answers."""
    tables = _tables(NAME)
    kinds = ("notes", "standing", "updated")
    notes = [
        _Note(tuple(texts), asked, kind) for kind in kinds for *texts, asked in _rows(tables[kind])
    ]
    random.Random(0).shuffle(notes)  # noqa: S311 - the same each time, and no secret
    return [
        _memory(
            f"{turns:03} turns, {at // each:02}",
            notes[at : at + each],
            _talk(tables, turns, at),
            at // each % 2,
        )
        for turns in SIZES
        for each in (max(_LEAST, turns // _SHARE),)
        for at in range(0, len(notes), each)
    ]


def read_casual() -> list[Conversation]:
    """Return the shipped notes that are asked for in other words, one kind a memory, the same each time."""
    tables = _tables("notes")
    return [
        _memory(
            f"{turns:03} turns, {kind}",
            [_Note((text,), question, kind) for text, question in _rows(_tables(CASUAL)[kind])],
            _talk(tables, turns, at),
            apart=0,
        )
        for turns in SIZES
        for at, kind in enumerate(("jotted", "reworded"))
    ]


def _tables(name: str) -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))


def _memory(
    name: str, notes: Sequence[_Note], talk: Iterator[tuple[str, str]], apart: int
) -> Conversation:
    """Put the notes at random places of the talk; the newer statement of a thing comes after the older."""
    order = random.Random(name)  # noqa: S311 - as above
    said = [(role, text, "chat") for role, text in talk]
    for note in notes:
        places = sorted(order.randint(0, len(said)) for _ in note.texts)
        for later, (place, text) in enumerate(zip(places, note.texts, strict=True)):
            said.insert(place + later, ("user", text, "notes" if apart else "chat"))
    conversation = Conversation(name)
    ids: dict[str, str] = {}
    for at, (role, text, session) in enumerate(said):
        ids[text] = f"{name} {at}"
        conversation.say(Said(ids[text], text, role=role, session=session, at=_START + at * _STEP))
    size = name.partition(" ")[0]
    for note in notes:
        gold = frozenset((ids[note.texts[-1]],))
        conversation.ask(Question(note.question, note.question, f"{note.kind}, {size} turns", gold))
    return conversation


def _talk(tables: dict[str, str], turns: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield (role, text) of so many turns, a person's and an agent's by turns."""
    chance = random.Random(f"{turns} {seed}")  # noqa: S311 - as above
    lines = _rows(tables["chat"])
    for at in range(turns // 2):
        if at % len(lines) == 0:
            chance.shuffle(lines)
        words = {
            slot: chance.choice(tables[slot].split(", "))
            for slot in ("thing", "place", "name", "topic")
        }
        for role, text in zip(("user", "assistant"), lines[at % len(lines)], strict=True):
            yield role, text.format(**words)


def _rows(table: str) -> list[list[str]]:
    return [line.split(" | ") for line in table.strip().splitlines()]
