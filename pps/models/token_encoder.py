"""Token states for late interaction: answerai-colbert-small-v1 on onnxruntime.

No torch, no download.

The file that `scripts/setup models` brings ends before the model's own projection to 96 dimensions,
so a token's state has 384. ``colbert_axes.npy`` projects it to its 128 strongest axes, measured on
the texts that the project ships (`scripts/benchmarks/colbert_axes.py`): on dialogues the order is
as with all of them, at a third of the size.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pps.core.errors import ConfigError
from pps.models.bert import let_others_first
from pps.models.embedding import readable
from pps.models.onnx import COLBERT_FILE, Network, locate, wordpiece
from pps.models.protocols import Matrix

States: TypeAlias = NDArray[np.int8]
"""Token states of a text, shape (tokens, ``WIDTH``): unit vectors times 127."""

WIDTH = 128
"""Numbers, of one byte each, that a token's state is kept as."""
TEXT_TOKENS = 256
"""Word pieces of a text that are read, special tokens included."""
QUERY_TOKENS = 128
"""Word pieces of a query that are read, special tokens included."""
_CLS = 101
_SEP = 102
_QUERY = 1
_TEXT = 2
_SPECIAL = 3


class ColbertEncoder:
    """Makes token states; loads at the first use (about 0.4 s), in a thread of low priority.

    Calls block and may come from several threads.

    Raises:
        ConfigError: The model's file is not on this machine (at construction).
    """

    name = "answerai-colbert-small-v1"

    def __init__(self, path: Path | None = None) -> None:
        locate(COLBERT_FILE, path)
        self._path = path
        self._loading = threading.Lock()
        self._loaded: Network | None = None
        self._worker = ThreadPoolExecutor(
            1, thread_name_prefix="colbert", initializer=let_others_first
        )

    @property
    def fingerprint(self) -> str:
        """What the states of this model are; those of another fingerprint do not compare."""
        return f"{self.name}/{WIDTH}"

    def query_states(self, query: str) -> Matrix:
        """Return a query's states, float32, shape (tokens, ``WIDTH``), each of unit length."""
        return _reduced(self._hidden(_pieces(query, _QUERY, QUERY_TOKENS)))

    def text_states(self, texts: Sequence[str]) -> list[States]:
        """Return each text's states in the order given.

        A text without words has those of the special tokens.
        """
        return self._worker.submit(self._text_states, texts).result()

    def close(self) -> None:
        """Give back its thread; what is under way ends first."""
        self._worker.shutdown()

    def full_states(self, text: str) -> Matrix:
        """Return a text's states before they are reduced, float32, shape (tokens, 384)."""
        return self._hidden(_pieces(text, _TEXT, TEXT_TOKENS))

    def _text_states(self, texts: Sequence[str]) -> list[States]:
        # One text at a time: the file rounds activations by what else is in their batch.
        states = (_reduced(self.full_states(text)) for text in texts)
        return [np.rint(rows * 127).astype(np.int8) for rows in states]

    def _hidden(self, ids: Sequence[int]) -> Matrix:
        tokens = np.asarray([ids], dtype=np.int64)
        return self._network().run(tokens, np.ones_like(tokens), np.zeros_like(tokens))[0]

    def _network(self) -> Network:
        if self._loaded is None:
            with self._loading:
                self._loaded = self._loaded or Network(COLBERT_FILE, self._path)
        return self._loaded


def find_colbert(path: Path | None = None) -> ColbertEncoder | None:
    """Return the encoder where the model's file is on this machine, else None.

    Raises:
        ConfigError: ``path`` is set and names no file.
    """
    try:
        return ColbertEncoder(path)
    except ConfigError:
        if path is not None:
            raise
        return None


@dataclass(frozen=True, slots=True, eq=False)
class PackedStates:
    """The token states of several texts in one array.

    Attributes:
        owners: Whose they are, one a text.
        starts: Where each text's states begin, shape (texts,).
        states: Those of all texts, shape (tokens, ``WIDTH``).
    """

    owners: tuple[str, ...]
    starts: NDArray[np.intp]
    states: States

    @classmethod
    def of(cls, blobs: Mapping[str, bytes]) -> PackedStates:
        """Pack owner → the bytes of its states; a text has one state at least."""
        sizes = [len(blob) // WIDTH for blob in blobs.values()]
        starts = np.cumsum([0, *sizes], dtype=np.intp)[:-1]
        states = np.frombuffer(b"".join(blobs.values()), dtype=np.int8).reshape(-1, WIDTH)
        return cls(tuple(blobs), starts, states)

    def max_similarities(self, query: Matrix) -> Matrix:
        """Return how near each text is to a query's states, shape (texts,): see the function."""
        return _max_similarities(query, self.states, self.starts)


def max_similarities(query: Matrix, texts: Sequence[States]) -> Matrix:
    """Return each text's mean, over the query's tokens, of the greatest cosine; shape (texts,).

    Source: MaxSim, Khattab and Zaharia 2020.
    """
    if not texts:
        return np.zeros(0, dtype=np.float32)
    starts = np.cumsum([0, *(len(states) for states in texts[:-1])], dtype=np.intp)
    return _max_similarities(query, np.concatenate(texts), starts)


def _max_similarities(query: Matrix, states: States, starts: NDArray[np.intp]) -> Matrix:
    if not len(starts):
        return np.zeros(0, dtype=np.float32)
    nearest = np.maximum.reduceat(states.astype(np.float32) @ query.T, starts, axis=0)
    return np.asarray(nearest.mean(axis=1) / 127, dtype=np.float32)


def _reduced(hidden: Matrix) -> Matrix:
    """Project states to the strongest axes, each of unit length again."""
    states = hidden @ _axes()
    return states / np.maximum(np.linalg.norm(states, axis=1, keepdims=True), 1e-12)


def _pieces(text: str, marker: int, most: int) -> list[int]:
    ids = wordpiece().encode(readable(text), add_special_tokens=False).ids[: most - _SPECIAL]
    return [_CLS, marker, *ids, _SEP]


@lru_cache(maxsize=1)
def _axes() -> Matrix:
    data = (files("pps.models") / "data" / "colbert_axes.npy").read_bytes()
    return np.load(BytesIO(data)).astype(np.float32)
