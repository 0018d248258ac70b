"""Rerankers: scoring pairs of texts within a time, whatever engine does the scoring."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pps.core.errors import ModelError, ModelOutputInvalid
from pps.core.footprint import cores
from pps.models.embedding import readable
from pps.models.onnx import CLS, MS_MARCO_FILE, SEP, Network, locate, wordpiece
from pps.models.protocols import Reranked

Pair: TypeAlias = tuple[str, str]
Score: TypeAlias = Callable[[list[Pair]], NDArray[np.float32]]
"""From pairs of query and passage to a score each, shape (pairs,)."""

_FAILURE_KEPT_S = 60.0
_MAX_THREADS = 4
_QUERY_TOKENS = 64
_PAIR_TOKENS = 256
_SPECIAL_TOKENS = 3
_MOST_CHARS = 2_000
"""Most characters of either text; the model would not read more, and word pieces take time."""


class TimedReranker(ABC):
    """Scores passages against a query jointly; never holds a caller longer than its deadline.

    All work, the loading too, is done by threads of its own, in the order of the calls. A call that
    is past its deadline before its turn comes costs nothing; one that is past it in the middle
    stops at the next batch. So the first call after a start usually answers ``complete=False``
    while the model loads behind it. ``batch`` pairs are scored between two looks at the clock,
    ``threads`` batches side by side.
    """

    def __init__(
        self,
        name: str,
        *,
        batch: int = 16,
        threads: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._batch = batch
        self._threads = threads
        self._clock = clock
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._workers: ThreadPoolExecutor | None = None
        self._model: Score | None = None
        self._failure: tuple[float, ModelError] | None = None

    @abstractmethod
    def _load(self) -> Score:
        """Return the model; ModelError or ConfigError where it cannot be loaded."""

    def rerank(self, query: str, passages: Sequence[str], *, deadline_s: float) -> Reranked:
        """Score each passage, higher is better; give them best first.

        When time runs out only those of the first passages are scored. That a model cannot be
        loaded is said again for a minute, then it is tried again.
        """
        if not passages:
            return Reranked(scores=(), complete=True)
        self._raise_failure()
        pairs = [(readable(query), readable(passage)) for passage in passages]
        job = _Job(pairs, self._batch, self._clock() + deadline_s)
        work = self._submitted(job)
        done, late = wait(work, timeout=max(deadline_s, 0.0))
        for late_job in late:
            late_job.cancel()
        for late_job in done:
            late_job.result()
        scores = job.taken()
        return Reranked(scores=scores, complete=len(scores) == len(passages))

    def close(self) -> None:
        """Let the work that has begun finish, drop the rest, and give the threads back."""
        with self._lock:
            workers = self._workers
            self._workers = None
        if workers is not None:
            workers.shutdown(wait=True, cancel_futures=True)

    def _submitted(self, job: _Job) -> list[Future[None]]:
        with self._lock:
            if self._workers is None:
                self._workers = ThreadPoolExecutor(
                    max_workers=self._threads, thread_name_prefix="pps-rerank"
                )
            return [
                self._workers.submit(self._score, job)
                for _ in range(min(self._threads, job.batches))
            ]

    def _score(self, job: _Job) -> None:
        if self._clock() >= job.ends_at:
            return
        score = self._loaded()
        with suppress(Empty):
            while self._clock() < job.ends_at:
                start = job.waiting.get_nowait()
                pairs = job.pairs[start : start + self._batch]
                job.scores[start] = _checked(score(pairs), len(pairs))

    def _loaded(self) -> Score:
        with self._loading:
            if self._model is None:
                self._raise_failure()
                try:
                    self._model = self._load()
                except ModelError as error:
                    self._failure = (self._clock() + _FAILURE_KEPT_S, error)
                    raise
            return self._model

    def _raise_failure(self) -> None:
        if (failure := self._failure) and self._clock() < failure[0]:
            raise failure[1]


class MiniLMReranker(TimedReranker):
    """The reranker ``minilm``: ms-marco-MiniLM-L-12-v2 at 8 bits on onnxruntime, English.

    No torch, no download.

    Pairs go through the network one at a time, so that a score does not depend on the other pairs:
    the file rounds activations by what else is in their batch. Of a query 64 word pieces are read,
    of a pair 256.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        batch: int = 4,
        threads: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            MS_MARCO_FILE.model,
            batch=batch,
            threads=threads or min(_MAX_THREADS, cores()),
            clock=clock,
        )
        self._path = path
        locate(MS_MARCO_FILE, path)

    def _load(self) -> Score:
        network = Network(MS_MARCO_FILE, self._path)
        return lambda pairs: np.asarray(
            [_logit(network, *pair) for pair in pairs], dtype=np.float32
        )


class _Job:
    """The pairs of one call and their scores so far.

    Workers take batches and add while the caller may look.
    """

    def __init__(self, pairs: list[Pair], batch: int, ends_at: float) -> None:
        self.pairs = pairs
        self.ends_at = ends_at
        self.batches = -(-len(pairs) // batch)
        self.waiting: SimpleQueue[int] = SimpleQueue()
        self.scores: dict[int, Sequence[float]] = {}
        for start in range(0, len(pairs), batch):
            self.waiting.put(start)

    def taken(self) -> tuple[float, ...]:
        """Return the scores of the first pairs, as far as there is no gap."""
        taken: list[float] = []
        while scores := self.scores.get(len(taken)):
            taken += scores
        return tuple(taken)


def _logit(network: Network, query: str, passage: str) -> float:
    tokenizer = wordpiece()
    query_ids = tokenizer.encode(query[:_MOST_CHARS], add_special_tokens=False).ids[:_QUERY_TOKENS]
    room = _PAIR_TOKENS - _SPECIAL_TOKENS - len(query_ids)
    passage_ids = tokenizer.encode(passage[:_MOST_CHARS], add_special_tokens=False).ids[:room]
    tokens = np.asarray([[CLS, *query_ids, SEP, *passage_ids, SEP]], dtype=np.int64)
    kinds = np.zeros_like(tokens)
    kinds[:, len(query_ids) + 2 :] = 1
    return float(network.run(tokens, np.ones_like(tokens), kinds)[0, 0])


def _checked(scores: NDArray[np.float32], count: int) -> list[float]:
    flat = np.asarray(scores, dtype=np.float64)
    if flat.shape != (count,) or not np.isfinite(flat).all():
        raise ModelOutputInvalid(
            "reranker.model: it does not give one finite score for a pair, so it is no reranker"
        )
    return [float(score) for score in flat]
