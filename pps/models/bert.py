"""The embedders that are BERTs on onnxruntime, MiniLM (the default) and bge-small.

No torch, no download.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pps.core.errors import ModelUnavailable
from pps.core.footprint import cores
from pps.models.embedding import WindowedEmbedder, readable
from pps.models.onnx import (
    BGE_SMALL_FILE,
    MINILM_FILE,
    SPECIAL_TOKENS,
    Network,
    Weights,
    locate,
    read_model,
    wordpiece,
)
from pps.models.protocols import Fingerprint, Matrix, Vector

_LEAST_COSINE_OF_ALIKE = 0.45
"""The least cosine of two words that are alike."""
_ALIKE_OF_A_WORD = 4
"""Alike words that are returned for one word."""
_SHORTEST_WORD = 3
_STEM_LETTERS = 4
_WORDS_AT_ONCE = 2_048
WINDOW_TOKENS = 256
_CONTENT_TOKENS = WINDOW_TOKENS - SPECIAL_TOKENS
_OVERLAP_TOKENS = 40
_TOKENS_APART = 128
_MAX_THREADS = 4
_NICER = 10
"""What a thread that embeds passages adds to its nice value.

With 8 clients that send as fast as they are answered, an acknowledgement's p95 beside it is 11 to
14 ms in place of 20 to 23.
"""
_Batch: TypeAlias = Sequence[Sequence[int]]
"""The word pieces of some texts."""


class WordTable:
    """Some 21,000 words of a BERT, a byte a dimension: 8 MB; a query's look-up takes 10 ms."""

    def __init__(self, model: bytes, dimension: int) -> None:
        """Read the table from the bytes of an ONNX file."""
        pieces = wordpiece().get_vocab()
        table = _read_word_rows(model, (len(pieces), dimension))
        known = {
            word: at
            for word, at in pieces.items()
            if len(word) >= _SHORTEST_WORD and word.isascii() and word.isalpha()
        }
        self._words = list(known)
        self._places = {word: at for at, word in enumerate(self._words)}
        rows = table[list(known.values())]
        self._rows: NDArray[np.int8] = np.rint(
            127 * rows / np.abs(rows).max(axis=1, keepdims=True)
        ).astype(np.int8)
        self._lengths = np.linalg.norm(self._rows.astype(np.float32), axis=1)

    def like(self, words: Sequence[str]) -> list[str]:
        """Return the words nearest to any of some, the nearest of all first.

        Unknown words have none.

        Other forms of a word ("faster") are left out: full text finds those anyway.
        """
        places = {self._places[word]: word for word in words if word in self._places}
        if not places:
            return []
        alike: dict[str, float] = {}
        for word, cosines in zip(places.values(), self._cosines(list(places)).T, strict=True):
            near = np.flatnonzero(cosines >= _LEAST_COSINE_OF_ALIKE)
            other = [row for row in near if not self._words[row].startswith(word[:_STEM_LETTERS])]
            best = sorted(other, key=lambda row, cosines=cosines: -cosines[row])
            for row in best[:_ALIKE_OF_A_WORD]:
                name = self._words[row]
                alike[name] = max(float(cosines[row]), alike.get(name, 0.0))
        return sorted(alike, key=lambda word: (-alike[word], word))

    def _cosines(self, places: Sequence[int]) -> NDArray[np.float32]:
        """Return the cosines of all words with some, shape (words, places), in parts."""
        queries = self._rows[places].astype(np.float32).T / self._lengths[places]
        parts = range(0, len(self._words), _WORDS_AT_ONCE)
        products = np.concatenate(
            [self._rows[at : at + _WORDS_AT_ONCE].astype(np.float32) @ queries for at in parts]
        )
        return products / self._lengths[:, np.newaxis]


def _read_word_rows(model: bytes, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Return the only tensor of a shape in an ONNX file: 8-bit (scaled by row) or 32-bit.

    A tensor's ``raw_data`` is field 9 of its message: the byte 0x4a, how many bytes follow as a
    varint, and those.
    """
    for kind in (np.int8, np.float32):
        left = shape[0] * shape[1] * np.dtype(kind).itemsize
        size = bytearray(b"\x4a")
        while left:
            size.append(left & 0x7F | (0x80 if left > 0x7F else 0))
            left >>= 7
        start = model.find(bytes(size))
        if start >= 0:
            numbers = np.frombuffer(model, kind, shape[0] * shape[1], start + len(size))
            return numbers.reshape(shape).astype(np.float32)
    raise ModelUnavailable("the model's file has no table of words")


@dataclass(frozen=True, slots=True)
class Bert:
    """One of these models.

    Attributes:
        batch_tokens: Most word pieces of a batch. 512 is small enough for a processor's cache: 1.7
            times the rate of 4,096, half the memory. 0 is one text a batch, where a file rounds
            activations to 8 bits by what else is in their batch.
        instruction: What stands before a query.
    """

    weights: Weights
    fingerprint: Fingerprint
    batch_tokens: int = 0
    instruction: str = ""


MINILM = Bert(
    MINILM_FILE, Fingerprint(model="all-MiniLM-L6-v2", dimension=384, pooling="mean"), 512
)
BGE_SMALL = Bert(
    BGE_SMALL_FILE,
    Fingerprint(model="bge-small-en-v1.5", dimension=384, pooling="cls"),
    instruction="Represent this sentence for searching relevant passages: ",
)


class BertEmbedder(WindowedEmbedder):
    """The embedders ``minilm`` and ``bge-small``: 384 dimensions, English, a window of 256 tokens.

    The model loads at the first use (about 0.5 s); calls may come from several threads. A text's
    vector does not depend on the batch it came in. Passages take ``threads`` (None: the machine's,
    at most 4) that let every other thread go first (on Linux), so that answers do not wait for an
    import. A query takes one: it is too short to be shared, and the others are searching meanwhile.
    """

    def __init__(
        self, bert: Bert = MINILM, path: Path | None = None, *, threads: int | None = None
    ) -> None:
        super().__init__(bert.fingerprint, _CONTENT_TOKENS, _OVERLAP_TOKENS)
        self._bert = bert
        self._path = path
        self._threads = threads or min(_MAX_THREADS, cores())
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._loaded: Network | None = None
        self._workers: ThreadPoolExecutor | None = None
        self._words: WordTable | None = None
        locate(bert.weights, path)

    def embed_query(self, text: str) -> Vector:
        return super().embed_query(self._bert.instruction + text)

    def embed_tokens(self, texts: Sequence[str]) -> list[Matrix]:
        """Return unit vectors of each text's first 128 tokens, without special tokens."""
        tokenizer = wordpiece()
        ids = [tokenizer.encode(readable(text)).ids[:_TOKENS_APART] for text in texts]
        matrixes: list[Matrix] = [
            np.zeros((0, self.fingerprint.dimension), dtype=np.float32)
        ] * len(ids)
        for batch in _batches([len(each) for each in ids], self._bert.batch_tokens):
            hidden, _ = self._hidden([ids[at] for at in batch])
            for at, rows in zip(batch, hidden, strict=True):
                states = rows[1 : len(ids[at]) - 1]
                matrixes[at] = states / np.maximum(
                    np.linalg.norm(states, axis=1, keepdims=True), 1e-12
                )
        return matrixes

    def like_words(self, words: Sequence[str]) -> list[str]:
        """Return the words nearest to each given word in the model's table, nearest first."""
        with self._loading:
            self._words = self._words or WordTable(
                read_model(self._bert.weights, self._path), self.fingerprint.dimension
            )
        return self._words.like(words)

    def split(self, text: str) -> list[str]:
        text = readable(text)
        if (
            len(text.encode()) <= _CONTENT_TOKENS
        ):  # a piece has a byte or more: most turns need not be counted
            return [text.strip()] if text.strip() else []
        return super().split(text)

    def close(self) -> None:
        """Give back its threads; a call that comes later starts them again."""
        with self._lock:
            workers = self._workers
            self._workers = None
        if workers is not None:
            workers.shutdown()

    def _count(self, text: str) -> int:
        return len(wordpiece().encode(text, add_special_tokens=False).ids)

    def _passages(self, texts: list[str]) -> Matrix:
        tokenizer = wordpiece()
        ids = [tokenizer.encode(text).ids[:WINDOW_TOKENS] for text in texts]
        rows = np.empty((len(texts), self.fingerprint.dimension), dtype=np.float32)
        batches = list(_batches([len(tokens) for tokens in ids], self._bert.batch_tokens))
        work = [[ids[at] for at in batch] for batch in batches]
        for batch, made in zip(batches, self._side_by_side(work), strict=True):
            rows[batch] = made
        return rows

    def _forward(self, ids: _Batch) -> Matrix:
        """Return a row for each text by the model's pooling: the first token, or the masked mean.

        Source of the mean: Reimers and Gurevych 2019.
        """
        hidden, mask = self._hidden(ids)
        if self.fingerprint.pooling == "cls":
            return hidden[:, 0]
        weights = mask[:, :, np.newaxis].astype(np.float32)
        return np.asarray((hidden * weights).sum(axis=1) / weights.sum(axis=1), dtype=np.float32)

    def _hidden(self, ids: _Batch) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return each token's vector, shape (texts, width, dimension), and the tokens' mask."""
        width = max(len(each) for each in ids)
        tokens = np.zeros((len(ids), width), dtype=np.int64)
        mask = np.zeros((len(ids), width), dtype=np.int64)
        for row, each in enumerate(ids):
            tokens[row, : len(each)] = each
            mask[row, : len(each)] = 1
        return self._network().run(tokens, mask, np.zeros_like(tokens)), mask

    def _side_by_side(self, batches: Sequence[_Batch]) -> Iterable[Matrix]:
        """Run batches, one a thread: a tenth faster than threads that share each batch."""
        if len(batches) == 1 or self._threads == 1:
            return map(self._forward, batches)
        with self._lock:
            if self._workers is None:
                self._workers = ThreadPoolExecutor(
                    self._threads,
                    thread_name_prefix=self._bert.weights.name,
                    initializer=let_others_first,
                )
            return self._workers.map(self._forward, batches)

    def _network(self) -> Network:
        if self._loaded is None:
            with self._loading:
                self._loaded = self._loaded or Network(self._bert.weights, self._path)
        return self._loaded


def let_others_first() -> None:
    """Lower the priority of this thread alone, which only Linux has."""
    if sys.platform == "linux":
        niceness = os.getpriority(os.PRIO_PROCESS, 0) + _NICER
        with suppress(OSError):  # a sandbox may forbid it: then it is as before
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)


def _batches(lengths: Sequence[int], most_tokens: int) -> Iterator[list[int]]:
    """Yield positions, longest texts first, so that a batch pads little and has a bounded size."""
    batch: list[int] = []
    width = 0
    for at in sorted(range(len(lengths)), key=lambda at: -lengths[at]):
        width = width or lengths[at]
        if batch and (len(batch) + 1) * width > most_tokens:
            yield batch
            batch = []
            width = lengths[at]
        batch.append(at)
    if batch:
        yield batch
