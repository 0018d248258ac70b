"""A reranker on sentence-transformers' CrossEncoder, any model name or folder; needs the extra ``torch``."""

from __future__ import annotations

import importlib
import logging
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from pps.core.errors import ConfigError, ModelUnavailable
from pps.models.reranker import Pair, Score, TimedReranker

log = logging.getLogger(__name__)


class _Model(Protocol):
    """What is used of ``CrossEncoder``."""

    def predict(self, pairs: list[Pair], /, *, batch_size: int, show_progress_bar: bool) -> NDArray[np.float32]: ...


class CrossEncoderReranker(TimedReranker):
    """The reranker ``cross-encoder``, on one thread of its own: torch takes the cores by itself.

    Args:
        model: A folder, or a name that sentence-transformers resolves (its cache, else the hub).
        batch, clock: As ``TimedReranker``.

    Raises:
        ConfigError: The extra is missing, or no model is named.
    """

    def __init__(self, model: str, *, batch: int = 16, clock: Callable[[], float] = time.monotonic) -> None:
        if find_spec("sentence_transformers") is None:
            raise ConfigError("reranker.name = 'cross-encoder' needs torch: install pps with its extra 'torch'")
        if not model:
            raise ConfigError("reranker.model: name a cross-encoder, or a folder with one")
        super().__init__(model, batch=batch, clock=clock)

    def _load(self) -> Score:
        log.info("loading the reranker %s: seconds, or minutes if it is fetched", self._name)
        try:
            library = importlib.import_module("sentence_transformers")
            model = cast("_Model", library.CrossEncoder(self._name))
        except (ImportError, OSError, ValueError, RuntimeError) as error:
            log.warning("reranker %s cannot be loaded: %s", self._name, type(error).__name__)
            raise ModelUnavailable(
                f"reranker.model: sentence-transformers cannot load {self._name} ({type(error).__name__})"
            ) from error
        log.info("reranker %s loaded", self._name)
        return lambda pairs: self._predict(model, pairs)

    def _predict(self, model: _Model, pairs: list[Pair]) -> NDArray[np.float32]:
        try:
            return model.predict(pairs, batch_size=self._batch, show_progress_bar=False)
        except RuntimeError as error:  # torch: out of memory, a device gone
            raise ModelUnavailable(f"reranker.model: {self._name} failed ({type(error).__name__})") from error
