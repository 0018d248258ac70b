"""The index documents of nodes, facts and turns: what each is found by, and in which collections.

A question is rarely in the words of its answer: the turn before asks it, neighbours say what
it is about, and a fact says it in plain words. So a turn has a second document, its *window*.
The window's vector is made of the vectors of its turns and facts, so it costs no call of the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from itertools import chain
from typing import TypeAlias

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
"""Factor on the weight of a neighbour's vector in a window, for each turn of distance."""
MAX_FACTS = 16
"""Most facts of a turn that its documents hold."""
_MAX_QUESTION_CHARS = 400
"""Most characters of a question, from its end, in the document of the turn after it."""
_DAY_FORMAT = "%d %B %Y"
_MONTH_FORMAT = "%B %Y"
_YEAR_FORMAT = "%Y"
_FORMAT_OF_GRAIN = {
    "day": _DAY_FORMAT,
    "week": _DAY_FORMAT,
    "month": _MONTH_FORMAT,
    "season": _MONTH_FORMAT,
    "year": _YEAR_FORMAT,
    "decade": _YEAR_FORMAT,
}
_NO_FACTS: Mapping[str, Fact] = {}
_Passages: TypeAlias = tuple[tuple[str, ...], Matrix]


async def embedded(
    docs: Sequence[tuple[IndexDoc, str]], vectors: PassageVectors | None
) -> list[IndexDoc]:
    """Return documents with the vectors of their texts; without vectors if there is no model."""
    if vectors is None:
        return [doc for doc, _ in docs]
    passages_of_each = await vectors.passages([text for _, text in docs])
    return [
        replace(doc, passages=passages, vectors=rows)
        for (doc, _), (passages, rows) in zip(docs, passages_of_each, strict=True)
    ]


def node_docs(node: Node, record_text: str) -> list[tuple[IndexDoc, str]]:
    """Return the documents of a node, each with the text to embed.

    A node is found by its names and, if it is a record, by its text; else by its summary, which has
    no vector.
    """
    at = micros(node.created_at)
    title = " · ".join((node.name, *node.aliases))
    attributes = [
        f"{name}: {value}"
        for name, value in node.attributes.items()
        if isinstance(value, (str, int, float))
    ]
    described = record_text or "\n".join((node.summary, *attributes))
    named = IndexDoc("node", node.uuid, "nodes", described.strip(), title, at)
    if not record_text:
        return [(named, node.name)]
    text = record_text if record_text.startswith(node.name) else f"{node.name}\n{record_text}"
    return [(named, node.name), (IndexDoc("node", node.uuid, "records", "", at=at), text)]


def fact_docs(facts: Sequence[Fact], moment: datetime) -> list[tuple[IndexDoc, str]]:
    """Return the documents of facts, each with the text to embed; a relation has none.

    Facts that hold at ``moment``, the time now on the person's clock, and past ones lie in two
    collections.
    """
    docs: list[tuple[IndexDoc, str]] = []
    for fact in facts:
        if fact.kind == "fact":
            collection = "facts" if holds(fact, moment) else "past_facts"
            at = micros(fact.valid_at) if fact.valid_at else None
            docs.append((IndexDoc("fact", fact.uuid, collection, fact.text, at=at), fact.text))
    return docs


@dataclass(frozen=True, slots=True)
class TurnText:
    """A turn with the sentences of the facts that it supports.

    Its days are those of its own offset, else of ``zone``.
    """

    turn: Turn
    facts: tuple[str, ...] = ()
    zone: tzinfo = UTC

    def text(self) -> str:
        return "\n".join((spoken(self.turn), *self.facts))

    def named_days(self) -> str:
        """Return the days, months or years that its words name.

        "Yesterday" is a date only on the day it is said.
        """
        if not names_time(self.turn.content[:LONGEST]):
            return ""
        days: list[str] = []
        for span in read_times(self.turn.content, local_time(self.turn, self.zone)):
            if span.start and span.grain in _FORMAT_OF_GRAIN:
                start = span.start.astimezone(span.zone)
                days.append(start.strftime(_FORMAT_OF_GRAIN[span.grain]).lstrip("0"))
        return " ".join(days)


@dataclass(frozen=True, slots=True)
class Window:
    """A turn among its neighbours, in order; ``place`` is its own."""

    texts: tuple[TurnText, ...]
    place: int

    @property
    def own(self) -> TurnText:
        return self.texts[self.place]

    def question_before(self) -> str:
        """Return the last question of the previous turn, if another speaker asked it."""
        if not self.place:
            return ""
        before = self.texts[self.place - 1].turn
        speaker = speaker_of(before)
        if speaker == speaker_of(self.own.turn):
            return ""
        for sentence in reversed(sentences_of(before.content.removeprefix(f"{speaker}:"))):
            if is_question(sentence):
                return sentence.strip()[-_MAX_QUESTION_CHARS:]
        return ""

    def vector(self, vectors: Mapping[str, Vector]) -> Vector:
        """Return the window's unit vector, shape (dimension,).

        The sum over turns of ``FADING ** distance`` times (the turn's vector plus the sum of its
        facts' vectors over the square root of their number).

        Args:
            vectors: That of each turn by its uuid, and of each fact by its sentence.
        """
        total = np.zeros_like(vectors[self.own.turn.uuid])
        for place, text in enumerate(self.texts):
            weighted = vectors[text.turn.uuid]
            if text.facts:
                of_facts = np.sum([vectors[fact] for fact in text.facts], axis=0)
                weighted = weighted + of_facts / len(text.facts) ** 0.5
            total += FADING ** abs(place - self.place) * weighted
        length = float(np.linalg.norm(total))
        return (total / length).astype(np.float32) if length else total

    def docs(self) -> tuple[IndexDoc, IndexDoc]:
        """Return the turn's own document and the window's.

        The own one has the question before it, its words and facts, and the days that it names.
        """
        turn = self.own.turn
        at = micros(turn.occurred_at)
        parts = (self.question_before(), self.own.text(), self.own.named_days())
        own_text = "\n".join(filter(None, parts))
        window_text = "\n".join(text.text() for text in self.texts)
        return (
            IndexDoc("episode", turn.uuid, "episodes", own_text, at=at),
            IndexDoc("episode", turn.uuid, "windows", window_text, at=at),
        )


class EpisodeDocs:
    """Makes the index documents of turns from journal and graph."""

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

    async def of(
        self, turns: Sequence[Turn], known: Mapping[str, Fact] = _NO_FACTS
    ) -> list[IndexDoc]:
        """Return two documents a turn, ``episodes`` and ``windows``.

        The source of a record of a pack's kind has no vector: the record has its own.

        Args:
            turns: Those that were forgotten meanwhile are left out.
            known: Facts that need not be read from the graph.
        """
        windows = await self._windows(turns, known)
        if self._vectors is None:
            return [doc for window in windows for doc in window.docs()]
        sources = [window for window in windows if window.own.turn.kind in self._kinds]
        docs = [doc for window in sources for doc in window.docs()]
        spoken_windows = [window for window in windows if window.own.turn.kind not in self._kinds]
        if not spoken_windows:
            return docs
        own_vectors, parts = await self._embed(self._vectors, spoken_windows)
        for window in spoken_windows:
            own_doc, window_doc = window.docs()
            passages, vectors = parts[window.own.turn.uuid]
            docs.append(replace(own_doc, passages=passages, vectors=vectors))
            docs.append(replace(window_doc, vectors=window.vector(own_vectors)[None]))
        return docs

    async def _windows(self, turns: Sequence[Turn], known: Mapping[str, Fact]) -> list[Window]:
        around = await self._journal.around_many([turn.uuid for turn in turns], WINDOW_TURNS)
        ids = list(
            dict.fromkeys(turn.uuid for neighbours in around.values() for turn in neighbours)
        )
        facts = await self._fact_sentences(ids, known)
        zone = self._journal.zone
        windows: list[Window] = []
        for uuid, neighbours in around.items():
            texts = tuple(TurnText(turn, facts.get(turn.uuid, ()), zone) for turn in neighbours)
            windows.append(Window(texts, [turn.uuid for turn in neighbours].index(uuid)))
        return windows

    async def _fact_sentences(
        self, turns: Sequence[str], known: Mapping[str, Fact]
    ) -> dict[str, tuple[str, ...]]:
        """Return turn → the sentences of the facts that it supports, past facts too."""
        supported = await self._journal.facts_supported_by(turns)
        ids = {turn: facts[:MAX_FACTS] for turn, facts in supported.items()}
        wanted = list(dict.fromkeys(chain.from_iterable(ids.values())))
        unknown = await self._client.facts([fact for fact in wanted if fact not in known])
        facts = [*unknown, *(known[fact] for fact in wanted if fact in known)]
        sentences = {
            fact.uuid: fact.text for fact in facts if fact.kind == "fact" and not taken_back(fact)
        }
        sentences_of_turns: dict[str, tuple[str, ...]] = {}
        for turn, facts_of_turn in ids.items():
            stated = [sentences[fact] for fact in facts_of_turn if fact in sentences]
            sentences_of_turns[turn] = tuple(stated)
        return sentences_of_turns

    async def _embed(
        self, vectors: PassageVectors, windows: Sequence[Window]
    ) -> tuple[dict[str, Vector], dict[str, _Passages]]:
        """Return vectors by turn and by fact's sentence, and each turn's passages with theirs."""
        texts = {text.turn.uuid: text for window in windows for text in window.texts}
        passages = await vectors.passages([spoken(text.turn) for text in texts.values()])
        parts = dict(zip(texts, passages, strict=True))
        of_turns = {turn: _mean(rows) for turn, (_, rows) in parts.items()}
        of_facts = await vectors.of([fact for text in texts.values() for fact in text.facts])
        return of_turns | of_facts, parts


def _mean(rows: Matrix) -> Vector:
    """Return the unit vector in the middle of a turn's passages; zeros when it has none."""
    if not len(rows):
        return np.zeros(int(rows.shape[1]), dtype=np.float32)
    middle = rows.mean(axis=0)
    return (middle / max(float(np.linalg.norm(middle)), 1e-12)).astype(np.float32)
