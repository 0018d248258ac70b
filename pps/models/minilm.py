"""all-MiniLM-L6-v2 on onnxruntime: the default embedder; no torch, no download."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from pps.core.errors import ModelUnavailable
from pps.core.footprint import cores, give_back
from pps.models import minilm_graph
from pps.models.minilm_file import Places, locate, read_model
from pps.models.protocols import Fingerprint, Matrix, Vector
from pps.models.windows import embed_whole, readable, split_to_window
from pps.models.wordpiece import SPECIAL_TOKENS, wordpiece

log = logging.getLogger(__name__)

WINDOW_TOKENS = 256
_CONTENT_TOKENS = WINDOW_TOKENS - SPECIAL_TOKENS
_OVERLAP_TOKENS = 40
_BATCH_TOKENS = 512  # small enough for a CPU's cache: 1.7 times the rate of 4,096, half the memory
_MAX_THREADS = 4
_NICER = 10
"""What a thread that embeds passages adds to its nice value. With 8 clients that send as fast as they are answered, an
acknowledgement's p95 beside it is 11 to 14 ms in place of 20 to 23."""
_FINGERPRINT = Fingerprint(model="all-MiniLM-L6-v2", dimension=384, pooling="mean")

_Ids = NDArray[np.int64]
_Batch: TypeAlias = Sequence[Sequence[int]]
"""The word pieces of some texts."""


class _Input(Protocol):
    @property
    def name(self) -> str: ...


class _Session(Protocol):
    """What is used of onnxruntime's InferenceSession; several threads may call ``run``."""

    def get_inputs(self) -> Sequence[_Input]: ...

    def run(self, output_names: None, input_feed: Mapping[str, _Ids]) -> Sequence[NDArray[np.float32]]: ...


class MiniLMEmbedder:
    """The embedder ``minilm``: 384 dimensions, English, a window of 256 tokens.

    The model loads at the first use (about 0.5 s), and once more, smaller, at the first query; calls may come from
    several threads. A text's vector does not depend on the batch it came in. Passages, whose vectors are kept, are
    embedded in 32-bit arithmetic; queries in 8-bit products where that is faster (see ``minilm_graph``), and the two
    vectors of one text have a cosine of .999.

    Args:
        path: A ``model.onnx``, or a folder that has one; None looks for the package that PPS
            installs, then for Chroma's cached download.
        threads: Threads for the passages of one call; None takes the machine's, at most 4. They let every other
            thread go first (on Linux), so that answers do not wait for an import. A query takes one: it is too
            short to be shared, and the others are searching meanwhile.

    Raises:
        ConfigError: The model is nowhere to be found (its contents are checked when it loads).
    """

    def __init__(self, path: Path | None = None, *, threads: int | None = None) -> None:
        self._places = Places(setting=path)
        self._threads = threads or min(_MAX_THREADS, cores())
        self._lock = threading.Lock()
        self._passages: _Model | None = None
        self._queries: _Model | None = None
        self._workers: ThreadPoolExecutor | None = None
        locate(self._places)

    @property
    def fingerprint(self) -> Fingerprint:
        """The same for every engine and precision of this model."""
        return _FINGERPRINT

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query, shape (384,); a text over the window is averaged, not cut."""
        return embed_whole([readable(text)], self.split, partial(self._embed, self._for_queries))[0]

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text in the order given, shape (len(texts), 384)."""
        if not texts:
            return np.zeros((0, _FINGERPRINT.dimension), dtype=np.float32)
        return embed_whole([readable(text) for text in texts], self.split, partial(self._embed, self._for_passages))

    def split(self, text: str) -> list[str]:
        """Return passages of at most 254 word pieces; sentences of up to 40 pieces overlap."""
        text = readable(text)
        if len(text.encode()) <= _CONTENT_TOKENS:  # a piece has a byte or more: most turns need not be counted
            return [text.strip()] if text.strip() else []
        return split_to_window(text, _count, _CONTENT_TOKENS, overlap=_OVERLAP_TOKENS)

    def close(self) -> None:
        """Give back its threads; a call that comes later starts them again."""
        with self._lock:
            workers, self._workers = self._workers, None
        if workers is not None:
            workers.shutdown()

    def _embed(self, model: Callable[[], _Model], texts: list[str]) -> Matrix:
        tokenizer = wordpiece()
        ids = [tokenizer.encode(text).ids[:WINDOW_TOKENS] for text in texts]
        rows = np.empty((len(texts), _FINGERPRINT.dimension), dtype=np.float32)
        batches = list(_batches([len(each) for each in ids]))
        work = [[ids[at] for at in batch] for batch in batches]
        for batch, made in zip(batches, self._side_by_side(model().forward, work), strict=True):
            rows[batch] = made
        return rows

    def _side_by_side(self, forward: Callable[[_Batch], Matrix], batches: Sequence[_Batch]) -> Iterable[Matrix]:
        """Run batches, one a thread: a tenth faster than threads that share each batch."""
        if len(batches) == 1 or self._threads == 1:
            return map(forward, batches)
        with self._lock:
            if self._workers is None:
                self._workers = ThreadPoolExecutor(
                    self._threads, thread_name_prefix="minilm", initializer=_let_others_first
                )
            return self._workers.map(forward, batches)

    def _for_passages(self) -> _Model:
        if self._passages is None:
            with self._lock:
                self._passages = self._passages or self._load()
        return self._passages

    def _for_queries(self) -> _Model:
        if not minilm_graph.is_faster_here():
            return self._for_passages()
        if self._queries is None:
            with self._lock:
                self._queries = self._queries or self._load(minilm_graph.for_queries)
        return self._queries

    def _load(self, rewrite: Callable[[bytes], bytes] = bytes) -> _Model:
        start = time.perf_counter()
        model = _Model(rewrite(read_model(self._places)))
        give_back()  # reading and rewriting the model took twice what it keeps
        log.info("embedding model %s loaded in %.1f s", _FINGERPRINT.model, time.perf_counter() - start)
        return model


class _Model:
    """The network in memory; several threads may call ``forward``."""

    def __init__(self, model: bytes) -> None:
        self._session = _open(model)
        self._inputs = frozenset(each.name for each in self._session.get_inputs())

    def forward(self, ids: _Batch) -> Matrix:
        """Mean of the token vectors under the mask (Reimers and Gurevych 2019), shape (len(ids), 384)."""
        width = max(len(each) for each in ids)
        tokens = np.zeros((len(ids), width), dtype=np.int64)
        mask = np.zeros((len(ids), width), dtype=np.int64)
        for row, each in enumerate(ids):
            tokens[row, : len(each)] = each
            mask[row, : len(each)] = 1
        feed = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        with _mapped_errors():
            hidden = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        weights = mask[:, :, np.newaxis].astype(np.float32)
        return np.asarray((hidden * weights).sum(axis=1) / weights.sum(axis=1), dtype=np.float32)


def _let_others_first() -> None:
    """Lower the priority of this thread alone, which only Linux has."""
    if sys.platform == "linux":
        niceness = os.getpriority(os.PRIO_PROCESS, 0) + _NICER
        with suppress(OSError):  # a sandbox may forbid it: then it is as before
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)


def _count(text: str) -> int:
    return len(wordpiece().encode(text, add_special_tokens=False).ids)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield positions, longest texts first, so that a batch pads little and has a bounded size."""
    batch: list[int] = []
    width = 0
    for at in sorted(range(len(lengths)), key=lambda at: -lengths[at]):
        width = width or lengths[at]
        if batch and (len(batch) + 1) * width > _BATCH_TOKENS:
            yield batch
            batch, width = [], lengths[at]
        batch.append(at)
    if batch:
        yield batch


def _open(model: bytes) -> _Session:
    runtime = importlib.import_module("onnxruntime")  # untyped in parts: the seam is _Session
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = False  # 0.27 GB instead of 0.6, at the same speed
    with _mapped_errors():
        return cast("_Session", runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"]))


@contextmanager
def _mapped_errors() -> Generator[None]:
    """Map onnxruntime's errors, which have no base of their own."""
    state = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    kinds = (state.Fail, state.RuntimeException, state.InvalidGraph, state.InvalidProtobuf, state.NotImplemented)
    try:
        yield
    except kinds as error:
        raise ModelUnavailable(f"embedder 'minilm': onnxruntime failed ({type(error).__name__})") from error
