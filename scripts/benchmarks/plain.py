"""Plain rankings to stand beside: BM25 alone, exact dense alone, and four such lists joined. No index, no graph."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.data import Conversation
from pps.core.errors import ConfigError
from pps.models.protocols import Embedder, Matrix, Vector

_DEPTH = 50
_K = 5
"""Of reciprocal rank fusion of the four lists: what the floors of the bench data were measured with."""
_AROUND = 1
"""Turns before and after that a turn is indexed with in the four lists, within its session."""
_BATCH = 64


class Bm25:
    """BM25 over texts, by bm25s with its defaults and its longer list of English stop words."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Index the texts.

        Raises:
            ConfigError: bm25s is not installed.
        """
        self._library: Any = library("bm25s")
        self._size = len(texts)
        tokens = self._tokens(texts)
        self._index = self._library.BM25() if any(tokens) else None
        if self._index is not None:
            self._index.index(tokens, show_progress=False)

    def rank(self, query: str, most: int) -> list[tuple[int, float]]:
        """Return (number of the text, score) of those that share a word with the query, best first."""
        words = self._tokens([query])
        if self._index is None or not words[0]:
            return []
        found, scores = self._index.retrieve(words, k=min(most, self._size), show_progress=False)
        return [
            (int(one), float(score))
            for one, score in zip(found[0], scores[0], strict=True)
            if score > 0
        ]

    def _tokens(self, texts: Sequence[str]) -> list[list[str]]:
        return self._library.tokenize(
            list(texts), stopwords="en_plus", return_ids=False, show_progress=False
        )


class Dense:
    """Exact cosine over texts that were embedded one by one."""

    def __init__(self, texts: Sequence[str], embedder: Embedder) -> None:
        order = sorted(range(len(texts)), key=lambda one: len(texts[one]))
        self._vectors: Matrix = np.zeros(
            (len(texts), embedder.fingerprint.dimension), dtype=np.float32
        )
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            self._vectors[batch] = embedder.embed_passages([texts[one] for one in batch])

    def rank(self, query: Vector, most: int) -> list[int]:
        """Return the numbers of the nearest texts, best first."""
        return np.argsort(-(self._vectors @ query), kind="stable")[:most].tolist()


@dataclass(frozen=True, slots=True)
class Ranked:
    """Turns, each once, best first, and the wall time that ranking them took."""

    turns: tuple[str, ...]
    took_ms: float


class PlainRankings:
    """The plain rankings of one conversation's turns; ``rank`` gives each by its name."""

    NAMES = ("bm25", "dense", "four-lists")

    def __init__(self, conversation: Conversation, embedder: Embedder) -> None:
        self._embedder = embedder
        turns = list(conversation.turns.values())
        self._ids = [turn.id for turn in turns]
        windows = _windows(conversation)
        self._facts = _facts(conversation)
        texts = [turn.content for turn in turns]
        self._turns = (Bm25(texts), Dense(texts, embedder))
        self._windows = (Bm25(windows), Dense(windows, embedder))
        self._of_facts = (Bm25(list(self._facts)), Dense(list(self._facts), embedder))

    def rank(self, query: str, most: int) -> dict[str, Ranked]:
        """Return each ranking's best turns, each asked by itself: one that needs the query's vector embeds it."""
        asked: Mapping[str, Callable[[str], Sequence[str]]] = {
            "bm25": lambda text: [self._ids[one] for one, _ in self._turns[0].rank(text, most)],
            "dense": lambda text: [
                self._ids[one] for one in self._turns[1].rank(self._vector(text), most)
            ],
            "four-lists": lambda text: self._joined(text)[:most],
        }
        return {name: _timed(ask, query) for name, ask in asked.items()}

    def _vector(self, query: str) -> Vector:
        return self._embedder.embed_query(query)

    def _joined(self, query: str) -> list[str]:
        vector = self._vector(query)
        return _fused([*self._both(self._windows, query, vector), *self._of(query, vector)])

    def _both(self, rankers: tuple[Bm25, Dense], query: str, vector: Vector) -> list[list[str]]:
        words, nearest = rankers[0].rank(query, _DEPTH), rankers[1].rank(vector, _DEPTH)
        return [[self._ids[one] for one, _ in words], [self._ids[one] for one in nearest]]

    def _of(self, query: str, vector: Vector) -> list[list[str]]:
        """Return what the facts' two lists say of turns: those that support each fact, in the facts' order."""
        supports = list(self._facts.values())
        words, nearest = (
            self._of_facts[0].rank(query, _DEPTH),
            self._of_facts[1].rank(vector, _DEPTH),
        )
        lists = ([one for one, _ in words], nearest)
        return [
            list(dict.fromkeys(turn for one in each for turn in supports[one])) for each in lists
        ]


def _timed(ask: Callable[[str], Sequence[str]], query: str) -> Ranked:
    started = time.perf_counter()
    turns = tuple(ask(query))
    return Ranked(turns, (time.perf_counter() - started) * 1000)


def library(name: str) -> ModuleType:
    """Return a library of the extra ``bench``.

    Raises:
        ConfigError: It is not installed; the message names the extra.
    """
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise ConfigError(
            f"{name} is not installed; it comes with the extra 'bench': pip install 'pps[bench]'"
        ) from None


def _windows(conversation: Conversation) -> list[str]:
    sessions: dict[str, list[str]] = {}
    for turn in conversation.turns.values():
        sessions.setdefault(turn.session, []).append(turn.content)
    seen: dict[str, int] = {}
    windows: list[str] = []
    for turn in conversation.turns.values():
        at = seen[turn.session] = seen.get(turn.session, -1) + 1
        windows.append("\n".join(sessions[turn.session][max(0, at - _AROUND) : at + _AROUND + 1]))
    return windows


def _facts(conversation: Conversation) -> Mapping[str, list[str]]:
    """Return the turns that support each statement."""
    facts: dict[str, list[str]] = {}
    for turn in conversation.turns.values():
        for fact in turn.facts:
            facts.setdefault(fact.text, []).append(turn.id)
    return facts


def _fused(lists: Sequence[Sequence[str]]) -> list[str]:
    scores: dict[str, float] = {}
    for entries in lists:
        for rank, one in enumerate(entries, start=1):
            scores[one] = scores.get(one, 0.0) + 1 / (_K + rank)
    return sorted(scores, key=lambda one: -scores[one])
