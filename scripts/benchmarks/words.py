"""An embedder for data by the hundred thousand: passages from vectors of word pieces, queries from the model itself."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from pps.models.onnx import wordpiece
from pps.models.protocols import Embedder, Fingerprint, Matrix, Vector

_NOISE = 0.25


class WordVectors:
    """Stands in for a model whose vectors were given: a passage is the mean of its word pieces' vectors and some noise.

    The model embeds each piece once, so 100,000 passages cost a few thousand short texts; they lie in clusters in
    the model's own space. A query is embedded by the model, each time: its cost is in every latency.
    """

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self._pieces: dict[str, Vector] = {}
        self._fingerprint = Fingerprint("bench-pieces", model.fingerprint.dimension, "mean")

    @property
    def fingerprint(self) -> Fingerprint:
        """A model of its own, since its vectors are not those of the model behind it."""
        return self._fingerprint

    def embed_query(self, text: str) -> Vector:
        """Return the model's own vector, shape (dimension,)."""
        return self._model.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text, shape (len(texts), dimension)."""
        split = [
            encoded.tokens
            for encoded in wordpiece().encode_batch(list(texts), add_special_tokens=False)
        ]
        self._learn({piece for pieces in split for piece in pieces if piece not in self._pieces})
        rows = np.zeros((len(texts), self._fingerprint.dimension), dtype=np.float32)
        for row, pieces, text in zip(rows, split, texts, strict=True):
            if pieces:
                row += np.mean([self._pieces[piece] for piece in pieces], axis=0)
            noise = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(
                len(row), dtype=np.float32
            )
            row += noise * (_NOISE * max(float(np.linalg.norm(row)), 0.1) / len(row) ** 0.5)
            row /= np.linalg.norm(row)
        return rows

    def split(self, text: str) -> list[str]:
        """Return the text whole."""
        return [text] if text.strip() else []

    def close(self) -> None:
        """Close the model behind it."""
        self._model.close()

    def _learn(self, pieces: set[str]) -> None:
        if pieces:
            ordered = sorted(pieces)
            vectors = self._model.embed_passages([piece.removeprefix("##") for piece in ordered])
            self._pieces.update(zip(ordered, vectors, strict=True))
