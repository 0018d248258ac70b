"""The words that a model takes to be alike: its own table of word pieces, whole words alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pps.core.errors import ModelUnavailable
from pps.models.onnx import wordpiece

_LEAST = 0.45
"""The least cosine of two words that are alike."""
_EACH = 4
"""Alike words that are returned for one word."""
_SHORTEST = 3
_STEM = 4
_AT_ONCE = 2_048


class WordTable:
    """Some 21,000 words of a BERT, a byte a dimension: 8 MB, a look-up 10 ms for all words of a query together."""

    def __init__(self, model: bytes, dimension: int) -> None:
        """Read the table from the bytes of an ONNX file."""
        pieces = wordpiece().get_vocab()
        table = _table(model, (len(pieces), dimension))
        known = {
            word: at
            for word, at in pieces.items()
            if len(word) >= _SHORTEST and word.isascii() and word.isalpha()
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
            near = np.flatnonzero(cosines >= _LEAST)
            other = [row for row in near if not self._words[row].startswith(word[:_STEM])]
            best = sorted(other, key=lambda row, cosines=cosines: -cosines[row])[:_EACH]
            alike.update(
                (self._words[row], max(float(cosines[row]), alike.get(self._words[row], 0.0)))
                for row in best
            )
        return sorted(alike, key=lambda word: (-alike[word], word))

    def _cosines(self, places: Sequence[int]) -> NDArray[np.float32]:
        """Return the cosines of all words with some, shape (words, places), a part at a time: the table stays small."""
        queries = self._rows[places].astype(np.float32).T / self._lengths[places]
        parts = range(0, len(self._words), _AT_ONCE)
        products = np.concatenate(
            [self._rows[at : at + _AT_ONCE].astype(np.float32) @ queries for at in parts]
        )
        return products / self._lengths[:, np.newaxis]


def _table(model: bytes, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Return the one tensor of that shape in an ONNX file, of 8-bit numbers (their scale is a row's) or 32-bit ones.

    A tensor's ``raw_data`` is field 9 of its message: the byte 0x4a, how many bytes follow as a varint, and those.
    """
    for kind in (np.int8, np.float32):
        left = shape[0] * shape[1] * np.dtype(kind).itemsize
        size = bytearray(b"\x4a")
        while left:
            size.append(left & 0x7F | (0x80 if left > 0x7F else 0))
            left >>= 7
        if (at := model.find(bytes(size))) >= 0:
            return (
                np.frombuffer(model, kind, shape[0] * shape[1], at + len(size))
                .reshape(shape)
                .astype(np.float32)
            )
    raise ModelUnavailable("the model's file has no table of words")
