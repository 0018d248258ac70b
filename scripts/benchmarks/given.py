"""An embedder that looks vectors up: what a caller has already, so that writing is measured and not a model."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence

import numpy as np

from pps.models.protocols import Embedder, Fingerprint, Matrix, Vector


class GivenVectors:
    """Vectors worked out before the clock starts; a text that was not prepared is embedded by the model behind it."""

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self._known: dict[str, Vector] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed texts ahead of time."""
        distinct = list(dict.fromkeys(texts))
        self._known.update(zip(distinct, self._model.embed_passages(distinct), strict=True))

    @property
    def fingerprint(self) -> Fingerprint:
        """That of the model behind it."""
        return self._model.fingerprint

    def embed_query(self, text: str) -> Vector:
        """Return the model's own vector."""
        return self._model.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text, shape (len(texts), dimension)."""
        missing = [text for text in texts if text not in self._known]
        if missing:
            self.prepare(missing)
        return (
            np.stack([self._known[text] for text in texts])
            if texts
            else self._model.embed_passages(())
        )

    def split(self, text: str) -> list[str]:
        """Return the text whole."""
        return [text] if text.strip() else []

    def close(self) -> None:
        """Close the model behind it."""
        self._model.close()


class Recording:
    """A model that notes which texts it was given and how long it took, so that it can be asked once more, alone."""

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self.texts: dict[str, None] = {}
        self.given = 0
        self.busy_s = 0.0

    @property
    def fingerprint(self) -> Fingerprint:
        """That of the model behind it."""
        return self._model.fingerprint

    def embed_query(self, text: str) -> Vector:
        """Return the model's own vector."""
        return self._model.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return the model's own rows."""
        started = clock.perf_counter()
        rows = self._model.embed_passages(texts)
        self.busy_s += clock.perf_counter() - started
        self.given += len(texts)
        self.texts.update(dict.fromkeys(texts))
        return rows

    def split(self, text: str) -> list[str]:
        """Return the model's own cut."""
        return self._model.split(text)

    def close(self) -> None:
        """Close the model behind it."""
        self._model.close()

    def alone_s(self) -> float:
        """Return how long the model needs for the same texts in one call, with nothing else to do."""
        started = clock.perf_counter()
        self._model.embed_passages(list(self.texts))
        return clock.perf_counter() - started
