"""What nodes, facts and turns are found by: the documents that they put into the collections of the indexes.

A question is rarely in the words of its answer: the turn before asks it, neighbours say what
it is about, and a fact says it in plain words. So a turn has a second entry, its *window*. That one's vector is made
of the vectors of its turns and facts, so a window costs no call of the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo

import numpy as np

from pps.core.kinds import Kinds
from pps.core.text import is_question, sentences_of
from pps.core.time import micros
from pps.core.time_reading import LONGEST, names_time, read_times
from pps.core.values import Fact, ItemKind, Node, Turn, local_time, speaker_of, spoken
from pps.index.indexes import IndexDoc
from pps.ingest.passage_vectors import PassageVectors
from pps.ingest.support import taken_back
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.journal.links import holds
from pps.models.protocols import Matrix, Vector

COLLECTIONS: Mapping[ItemKind, tuple[str, ...]] = {
    "node": ("nodes", "records"),
    "fact": ("facts", "past_facts"),
    "episode": ("episodes", "windows"),
}
WINDOW_TURNS = 2
"""Turns before and after that share a window, within one session."""
FADING = 0.5
"""What a neighbour's vector weighs in a window's, for each step that it is away."""
MAX_FACTS = 16
"""Most facts of one turn that it is found by."""
_LONGEST_QUESTION = 400
"""Characters of a question, from its end, that the turn after it is found by."""
_DAY, _MONTH, _YEAR = "%d %B %Y", "%B %Y", "%Y"
_DAYS = {
    "day": _DAY,
    "week": _DAY,
    "month": _MONTH,
    "season": _MONTH,
    "year": _YEAR,
    "decade": _YEAR,
}
_NONE: Mapping[str, Fact] = {}


async def embedded(
    docs: Sequence[tuple[IndexDoc, str]], vectors: PassageVectors | None
) -> list[IndexDoc]:
    """Return documents with the vectors of the texts that stand beside them; without, where there is no model."""
    if vectors is None:
        return [doc for doc, _ in docs]
    found = await vectors.passages([text for _, text in docs])
    return [
        replace(doc, passages=ps, vectors=rows)
        for (doc, _), (ps, rows) in zip(docs, found, strict=True)
    ]


def node_docs(node: Node, record: str) -> list[tuple[IndexDoc, str]]:
    """Return what a node is found by: names and, of a record, its text; else its summary, which has no vector."""
    at, title = micros(node.created_at), " · ".join((node.name, *node.aliases))
    described = record or "\n".join((node.summary, *_attribute_lines(node)))
    named = IndexDoc("node", node.uuid, "nodes", described.strip(), title, at), node.name
    told = record if record.startswith(node.name) else f"{node.name}\n{record}"
    return [named, (IndexDoc("node", node.uuid, "records", "", at=at), told)] if record else [named]


def _attribute_lines(node: Node) -> list[str]:
    """Return a node's attributes that are plain values, a line each: "type: ORM"."""
    plain = (str, int, float)
    return [
        f"{name}: {value}" for name, value in node.attributes.items() if isinstance(value, plain)
    ]


def fact_docs(facts: Sequence[Fact], moment: datetime) -> list[tuple[IndexDoc, str]]:
    """Return what facts are found by; relations are not found by their words.

    Those that hold at ``moment``, the time now on the person's clock, and past ones are apart.
    """
    found = [
        (one, "facts" if holds(one, moment) else "past_facts")
        for one in facts
        if one.kind == "fact"
    ]
    return [
        (
            IndexDoc(
                "fact", one.uuid, where, one.text, at=micros(one.valid_at) if one.valid_at else None
            ),
            one.text,
        )
        for one, where in found
    ]


@dataclass(frozen=True, slots=True)
class Told:
    """A turn and the sentences of the facts that it supports; its days are those of its offset, else of ``zone``."""

    turn: Turn
    facts: tuple[str, ...] = ()
    zone: tzinfo = UTC

    def text(self) -> str:
        return "\n".join((spoken(self.turn), *self.facts))

    def days(self) -> str:
        """Return the days, months or years that its words name: "yesterday" is a date only on the day it is said."""
        if not names_time(self.turn.content[:LONGEST]):
            return ""
        spans = read_times(self.turn.content, local_time(self.turn, self.zone))
        starts = [
            one.start.astimezone(one.zone).strftime(_DAYS[one.grain])
            for one in spans
            if one.start and one.grain in _DAYS
        ]
        return " ".join(one.lstrip("0") for one in starts)


@dataclass(frozen=True, slots=True)
class Window:
    """A turn among its neighbours, in order; ``at`` is its own place."""

    told: tuple[Told, ...]
    at: int

    @property
    def own(self) -> Told:
        return self.told[self.at]

    def asked(self) -> str:
        """Return the last question of the turn before, when somebody else said that: what this one may answer."""
        before = self.told[self.at - 1].turn if self.at else self.own.turn
        if speaker_of(before) == speaker_of(self.own.turn):
            return ""
        said = sentences_of(before.content.removeprefix(f"{speaker_of(before)}:"))
        return next(
            (one.strip()[-_LONGEST_QUESTION:] for one in reversed(said) if is_question(one)), ""
        )

    def vector(self, vectors: Mapping[str, Vector]) -> Vector:
        """Return the window's unit vector, shape (dimension,).

        The sum over turns of ``FADING ** distance`` times the turn's vector plus its facts' vectors over the square
        root of their number; ``vectors`` has that of each turn by its uuid, and of each fact by its sentence.
        """
        total = np.zeros_like(vectors[self.own.turn.uuid])
        for place, told in enumerate(self.told):
            facts = [vectors[fact] for fact in told.facts]
            said = vectors[told.turn.uuid] + (
                np.sum(facts, axis=0) / len(facts) ** 0.5 if facts else 0.0
            )
            total += FADING ** abs(place - self.at) * said
        length = float(np.linalg.norm(total))
        return (total / length).astype(np.float32) if length else total

    def docs(self) -> tuple[IndexDoc, IndexDoc]:
        """Return the turn's own entry (what it was asked, its words and facts, the days that it names) and this."""
        turn, at = self.own.turn, micros(self.own.turn.occurred_at)
        own = "\n".join(filter(None, (self.asked(), self.own.text(), self.own.days())))
        every = "\n".join(told.text() for told in self.told)
        return (
            IndexDoc("episode", turn.uuid, "episodes", own, at=at),
            IndexDoc("episode", turn.uuid, "windows", every, at=at),
        )


class EpisodeDocs:
    """Makes the index entries of turns from journal and graph."""

    def __init__(
        self,
        client: IsolatedGraphitiClient,
        journal: Journal,
        vectors: PassageVectors | None,
        kinds: Kinds,
    ) -> None:
        self._kinds = kinds
        self._client = client
        self._journal = journal
        self._vectors = vectors

    async def of(self, turns: Sequence[Turn], known: Mapping[str, Fact] = _NONE) -> list[IndexDoc]:
        """Return two entries a turn, ``episodes`` and ``windows``; ``known`` facts need not be read from the graph.

        The source of a record of a pack's kind has no vector: the record has its own.
        """
        windows = await self._windows(turns, known)
        bare = (
            windows
            if self._vectors is None
            else [one for one in windows if one.own.turn.kind in self._kinds]
        )
        docs = [doc for window in bare for doc in window.docs()]
        if self._vectors is None or len(bare) == len(windows):
            return docs
        windows = [one for one in windows if one.own.turn.kind not in self._kinds]
        own, parts = await self._embedded(self._vectors, windows)
        for window in windows:
            (passages, vectors), (turn, around) = parts[window.own.turn.uuid], window.docs()
            docs.append(replace(turn, passages=passages, vectors=vectors))
            docs.append(replace(around, vectors=window.vector(own)[None]))
        return docs

    async def _windows(self, turns: Sequence[Turn], known: Mapping[str, Fact]) -> list[Window]:
        around = await self._journal.around_many([turn.uuid for turn in turns], WINDOW_TURNS)
        every = list(dict.fromkeys(turn.uuid for window in around.values() for turn in window))
        facts = await self._facts(every, known)
        windows: list[Window] = []
        for uuid, window in around.items():  # those that were forgotten meanwhile are not in it
            told = tuple(Told(one, facts.get(one.uuid, ()), self._journal.zone) for one in window)
            windows.append(
                Window(told, next(place for place, one in enumerate(window) if one.uuid == uuid))
            )
        return windows

    async def _facts(
        self, turns: Sequence[str], known: Mapping[str, Fact]
    ) -> dict[str, tuple[str, ...]]:
        """Return turn → the sentences of the facts that it supports, past ones too: it did say them, and still does."""
        supported = await self._journal.facts_supported_by(turns)
        ids = {turn: facts[:MAX_FACTS] for turn, facts in supported.items()}
        wanted = list(dict.fromkeys(fact for facts in ids.values() for fact in facts))
        read = await self._client.facts([fact for fact in wanted if fact not in known])
        both = [*read, *(known[fact] for fact in wanted if fact in known)]
        found = {
            fact.uuid: fact.text for fact in both if fact.kind == "fact" and not taken_back(fact)
        }
        return {
            turn: tuple(found[fact] for fact in facts if fact in found)
            for turn, facts in ids.items()
        }

    async def _embedded(
        self, vectors: PassageVectors, windows: Sequence[Window]
    ) -> tuple[dict[str, Vector], dict[str, tuple[tuple[str, ...], Matrix]]]:
        """Return vectors by turn and by fact's sentence, and each turn's passages with theirs."""
        told = {one.turn.uuid: one for window in windows for one in window.told}
        passages = await vectors.passages([spoken(one.turn) for one in told.values()])
        parts = dict(zip(told, passages, strict=True))
        own = {turn: _mean(rows) for turn, (_, rows) in parts.items()}
        return own | await vectors.of([fact for one in told.values() for fact in one.facts]), parts


def _mean(rows: Matrix) -> Vector:
    """Return the unit vector in the middle of a turn's passages; zeros when it has none."""
    if not len(rows):
        return np.zeros(int(rows.shape[1]), dtype=np.float32)
    middle = rows.mean(axis=0)
    return (middle / max(float(np.linalg.norm(middle)), 1e-12)).astype(np.float32)
