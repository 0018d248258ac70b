"""Turns made ready for the indexes: each by itself and within its window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pps.core.spoken import spoken
from pps.core.time import micros
from pps.core.values import Fact, Turn
from pps.index.entity import IndexDoc
from pps.ingest.support import taken_back
from pps.ingest.vectors import PassageVectors
from pps.ingest.windows import MAX_FACTS, WINDOW_TURNS, Told, Window
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.models.protocols import Matrix, Vector

_NONE: Mapping[str, Fact] = {}


class EpisodeDocs:
    """Makes the index entries of turns from journal and graph."""

    def __init__(self, client: IsolatedGraphitiClient, journal: Journal, vectors: PassageVectors | None) -> None:
        self._client = client
        self._journal = journal
        self._vectors = vectors

    async def of(self, turns: Sequence[Turn], known: Mapping[str, Fact] = _NONE) -> list[IndexDoc]:
        """Return two entries a turn: ``episodes`` (its own text and vector) and ``windows``.

        Args:
            turns: Whose entries.
            known: Facts by uuid that need not be read from the graph.
        """
        windows = await self._windows(turns, known)
        if self._vectors is None:
            return [doc for window in windows for doc in _docs(window, None, None)]
        own, parts = await self._embedded(self._vectors, windows)
        return [doc for window in windows for doc in _docs(window, parts[window.own.turn.uuid], window.vector(own))]

    async def _windows(self, turns: Sequence[Turn], known: Mapping[str, Fact]) -> list[Window]:
        around = await self._journal.around_many([turn.uuid for turn in turns], WINDOW_TURNS)
        every = list(dict.fromkeys(turn.uuid for window in around.values() for turn in window))
        facts = await self._facts(every, known)
        windows: list[Window] = []
        for uuid, window in around.items():  # those that were forgotten meanwhile are not in it
            told = tuple(Told(one, facts.get(one.uuid, ())) for one in window)
            windows.append(Window(told, next(place for place, one in enumerate(window) if one.uuid == uuid)))
        return windows

    async def _facts(self, turns: Sequence[str], known: Mapping[str, Fact]) -> dict[str, tuple[str, ...]]:
        """Return turn → the sentences of the facts that it supports, past ones too: it did say them, and still does."""
        supported = await self._journal.facts_supported_by(turns)
        ids = {turn: facts[:MAX_FACTS] for turn, facts in supported.items()}
        wanted = list(dict.fromkeys(fact for facts in ids.values() for fact in facts))
        read = await self._client.facts([fact for fact in wanted if fact not in known])
        both = [*read, *(known[fact] for fact in wanted if fact in known)]
        found = {fact.uuid: fact.text for fact in both if fact.kind == "fact" and not taken_back(fact)}
        return {turn: tuple(found[fact] for fact in facts if fact in found) for turn, facts in ids.items()}

    async def _embedded(
        self, vectors: PassageVectors, windows: Sequence[Window]
    ) -> tuple[dict[str, Vector], dict[str, tuple[tuple[str, ...], Matrix]]]:
        """Return vectors by turn and by fact's sentence, and each turn's passages with theirs."""
        told = {one.turn.uuid: one for window in windows for one in window.told}
        passages = await vectors.passages([spoken(one.turn) for one in told.values()])
        parts = dict(zip(told, passages, strict=True))
        own = {turn: _mean(rows, vectors) for turn, (_, rows) in parts.items()}
        return own | await vectors.of([fact for one in told.values() for fact in one.facts]), parts


def _docs(
    window: Window, parts: tuple[tuple[str, ...], Matrix] | None, vector: Vector | None
) -> tuple[IndexDoc, IndexDoc]:
    turn, at = window.own.turn, micros(window.own.turn.occurred_at)
    passages, vectors = parts or ((), None)
    return (
        IndexDoc("episode", turn.uuid, "episodes", window.own_text(), at=at, passages=passages, vectors=vectors),
        IndexDoc(
            "episode", turn.uuid, "windows", window.text(), at=at, vectors=None if vector is None else vector[None]
        ),
    )


def _mean(rows: Matrix, vectors: PassageVectors) -> Vector:
    """Return the unit vector in the middle of a turn's passages; zeros when it has none."""
    if not len(rows):
        return np.zeros(vectors.embedder.fingerprint.dimension, dtype=np.float32)
    middle = rows.mean(axis=0)
    return (middle / max(float(np.linalg.norm(middle)), 1e-12)).astype(np.float32)
