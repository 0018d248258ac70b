"""A reranker on sentence-transformers' CrossEncoder, any model name or folder; needs the extra ``torch``."""

from __future__ import annotations

import importlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from importlib.util import find_spec
from typing import Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from pps.core.errors import ConfigError, ModelError, ModelOutputInvalid, ModelUnavailable
from pps.models.protocols import Reranked
from pps.models.windows import readable

log = logging.getLogger(__name__)

_FAILURE_KEPT_S = 60.0
_Pair: TypeAlias = tuple[str, str]


class _Model(Protocol):
    """What is used of ``CrossEncoder``."""

    def predict(self, pairs: list[_Pair], /, *, batch_size: int, show_progress_bar: bool) -> NDArray[np.float32]: ...


class CrossEncoderReranker:
    """Scores passages against a query jointly; never holds a caller longer than its deadline.

    All work, the loading too, is done by one thread of its own, in the order of the calls. A call
    that is past its deadline before its turn comes costs nothing; one that is past it in the middle
    stops at the next batch. So the first call after a start usually answers ``complete=False`` while
    the model loads behind it; ``preload`` starts that early.

    Args:
        model: A folder, or a name that sentence-transformers resolves (its cache, else the hub).
        batch: Pairs scored between two looks at the clock, 1 or more.
        clock: Monotonic seconds.

    Raises:
        ConfigError: The extra is missing, or no model is named.
    """

    def __init__(self, model: str, *, batch: int = 16, clock: Callable[[], float] = time.monotonic) -> None:
        if find_spec("sentence_transformers") is None:
            raise ConfigError("reranker.name = 'cross-encoder' needs torch: install pps with its extra 'torch'")
        if not model:
            raise ConfigError("reranker.model: name a cross-encoder, or a folder with one")
        self._source = model
        self._batch = batch
        self._clock = clock
        self._lock = threading.Lock()
        self._worker: ThreadPoolExecutor | None = None
        self._model: _Model | None = None
        self._failure: tuple[float, ModelError] | None = None

    @property
    def name(self) -> str:
        """The model's name or folder, as set."""
        return self._source

    def rerank(self, query: str, passages: Sequence[str], *, deadline_s: float) -> Reranked:
        """Score each passage, higher is better.

        Args:
            query: Any text; the model cuts a pair that is over its window.
            passages: Best first: when time runs out, the first ones have been scored.
            deadline_s: Seconds from now.

        Returns:
            A score a passage, in the order given; when ``complete`` is False, only those of the first
            passages that were scored in time, perhaps none.

        Raises:
            ModelUnavailable: The model cannot be loaded; said again for a minute, then tried again.
            ModelOutputInvalid: The model gives several scores, or none, for a pair.
        """
        if not passages:
            return Reranked(scores=(), complete=True)
        self._raise_failure()
        job = _Job(
            pairs=[(readable(query), readable(passage)) for passage in passages],
            ends_at=self._clock() + deadline_s,
        )
        future = self._submit(lambda: self._score(job))
        try:
            future.result(timeout=max(deadline_s, 0.0))
        except FutureTimeout:
            future.cancel()
        scores = job.taken()
        return Reranked(scores=scores, complete=len(scores) == len(passages))

    def preload(self) -> None:
        """Start loading the model, and return at once."""
        self._submit(self._loaded)

    def close(self) -> None:
        """Let the work that has begun finish, drop the rest, and give the thread back."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.shutdown(wait=True, cancel_futures=True)

    def _submit(self, work: Callable[[], object]) -> Future[object]:
        with self._lock:
            if self._worker is None:
                self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pps-rerank")
            return self._worker.submit(work)

    def _score(self, job: _Job) -> None:
        if self._clock() >= job.ends_at:
            return
        model = self._loaded()
        for start in range(0, len(job.pairs), self._batch):
            if self._clock() >= job.ends_at:
                return
            pairs = job.pairs[start : start + self._batch]
            job.add(_checked(self._predict(model, pairs), len(pairs)))

    def _predict(self, model: _Model, pairs: list[_Pair]) -> NDArray[np.float32]:
        try:
            return model.predict(pairs, batch_size=self._batch, show_progress_bar=False)
        except RuntimeError as error:  # torch: out of memory, a device gone
            raise ModelUnavailable(f"reranker.model: {self._source} failed ({type(error).__name__})") from error

    def _loaded(self) -> _Model:
        if self._model is None:
            self._raise_failure()
            try:
                self._model = self._load()
            except ModelError as error:
                self._failure = (self._clock() + _FAILURE_KEPT_S, error)
                raise
        return self._model

    def _load(self) -> _Model:
        log.info("loading the reranker %s: seconds, or minutes if it is fetched", self._source)
        try:
            library = importlib.import_module("sentence_transformers")
            model = cast("_Model", library.CrossEncoder(self._source))
        except (ImportError, OSError, ValueError, RuntimeError) as error:
            log.warning("reranker %s cannot be loaded: %s", self._source, type(error).__name__)
            raise ModelUnavailable(
                f"reranker.model: sentence-transformers cannot load {self._source} ({type(error).__name__})"
            ) from error
        log.info("reranker %s loaded", self._source)
        return model

    def _raise_failure(self) -> None:
        failure = self._failure
        if failure is None:
            return
        if self._clock() < failure[0]:
            raise failure[1]
        self._failure = None


class _Job:
    """The pairs of one call and their scores so far; the worker adds while the caller may take."""

    def __init__(self, *, pairs: list[_Pair], ends_at: float) -> None:
        self.pairs = pairs
        self.ends_at = ends_at
        self._scores: list[float] = []
        self._lock = threading.Lock()

    def add(self, scores: Sequence[float]) -> None:
        with self._lock:
            self._scores.extend(scores)

    def taken(self) -> tuple[float, ...]:
        with self._lock:
            return tuple(self._scores)


def _checked(scores: NDArray[np.float32], count: int) -> list[float]:
    flat = np.asarray(scores, dtype=np.float64)
    if flat.shape != (count,) or not np.isfinite(flat).all():
        raise ModelOutputInvalid("reranker.model: it does not give one finite score for a pair, so it is no reranker")
    return [float(score) for score in flat]
