"""Any embedder or reranker of sentence-transformers, by name or folder.

Needs the extra ``torch``.
"""

from __future__ import annotations

import importlib
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pps.core.errors import ConfigError, ModelUnavailable
from pps.models.embedding import WindowedEmbedder, readable, split_to_window
from pps.models.protocols import Fingerprint, Matrix
from pps.models.reranker import Pair, Score, TimedReranker

log = logging.getLogger(__name__)

_LONGEST_PASSAGE = 512
_MARGIN_TOKENS = 16
_OVERLAP_TOKENS = 40
_BATCH_TEXTS = 32
_KNOWN = {
    "all-MiniLM-L6-v2": (384, "mean"),
    "all-MiniLM-L12-v2": (384, "mean"),
    "all-mpnet-base-v2": (768, "mean"),
    "paraphrase-multilingual-MiniLM-L12-v2": (384, "mean"),
}
"""Dimension and pooling of models that are often named without a folder."""


class SentenceTransformerEmbedder(WindowedEmbedder):
    """The embedder ``sentence-transformers``: loads at the first use, one call at a time.

    A model's own query and document prompts are used. ``model`` is a folder, or a name that the
    library resolves (its cache, else the hub). Its dimension must be known before it loads: it is
    read from the folder, known for a few common names, else the setting says it.
    """

    def __init__(self, model: str, *, dimension: int | None = None) -> None:
        if find_spec("sentence_transformers") is None:
            raise ConfigError(
                "embedder.name = 'sentence-transformers' needs torch: install pps with its extra "
                "'torch'"
            )
        if not model:
            raise ConfigError(
                "embedder.model: name a sentence-transformers model, or a folder with one"
            )
        super().__init__(_fingerprint(model, dimension), _LONGEST_PASSAGE, _OVERLAP_TOKENS)
        self._source = model
        self._load_lock = threading.Lock()
        self._run_lock = threading.Lock()
        self._model: Any = None

    def split(self, text: str) -> list[str]:
        model = self._loaded()
        prompt = max((len(each) for each in model.prompts.values()), default=0)
        limit = (
            min(model.max_seq_length or self._window, self._window) - _MARGIN_TOKENS - prompt // 3
        )
        return split_to_window(readable(text), self._count, max(limit, 8), overlap=self._overlap)

    def _queries(self, texts: list[str]) -> Matrix:
        return self._run(self._loaded().encode_query, texts)

    def _passages(self, texts: list[str]) -> Matrix:
        return self._run(self._loaded().encode_document, texts)

    def _run(self, encode: Callable[..., Matrix], texts: list[str]) -> Matrix:
        try:
            with self._run_lock:
                rows = encode(texts, batch_size=_BATCH_TEXTS, show_progress_bar=False)
        except RuntimeError as error:  # torch: out of memory, a device gone
            raise ModelUnavailable(
                f"embedder.model: {self._source} failed ({type(error).__name__})"
            ) from error
        if rows.shape[1] != self._fingerprint.dimension:
            raise ConfigError(
                f"embedder.dimension is {self._fingerprint.dimension}, but {self._source} gives "
                f"{rows.shape[1]}"
            )
        return np.asarray(rows, dtype=np.float32)

    def _count(self, text: str) -> int:
        tokenizer = self._loaded().tokenizer
        with self._run_lock:  # a fast tokenizer may not be used by two threads at once
            tokens = tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)
        return len(tokens["input_ids"])

    def _loaded(self) -> Any:
        with self._load_lock:
            self._model = self._model or _load(
                "SentenceTransformer", self._source, "embedder.model"
            )
            return self._model


class CrossEncoderReranker(TimedReranker):
    """The reranker ``cross-encoder``, on one thread of its own: torch takes the cores by itself."""

    def __init__(
        self, model: str, *, batch: int = 16, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if find_spec("sentence_transformers") is None:
            raise ConfigError(
                "reranker.name = 'cross-encoder' needs torch: install pps with its extra 'torch'"
            )
        if not model:
            raise ConfigError("reranker.model: name a cross-encoder, or a folder with one")
        super().__init__(model, batch=batch, clock=clock)

    def _load(self) -> Score:
        model = _load("CrossEncoder", self.name, "reranker.model")

        def score(pairs: list[Pair]) -> NDArray[np.float32]:
            try:
                return model.predict(pairs, batch_size=self._batch, show_progress_bar=False)
            except RuntimeError as error:  # torch: out of memory, a device gone
                raise ModelUnavailable(
                    f"reranker.model: {self.name} failed ({type(error).__name__})"
                ) from error

        return score


def _load(kind: str, source: str, setting: str) -> Any:
    log.info("loading %s: seconds, or minutes if it is fetched", source)
    try:
        model = getattr(importlib.import_module("sentence_transformers"), kind)(source)
    except (ImportError, OSError, ValueError, RuntimeError) as error:
        raise ModelUnavailable(
            f"{setting}: sentence-transformers cannot load {source} ({type(error).__name__})"
        ) from error
    log.info("%s loaded", source)
    return model


def _fingerprint(model: str, dimension: int | None) -> Fingerprint:
    folder = Path(model).expanduser()
    name = (
        folder.resolve().name if folder.is_dir() else model.removeprefix("sentence-transformers/")
    )
    known_dimension, pooling = (
        _described(folder) if folder.is_dir() else _KNOWN.get(name, (None, "model"))
    )
    dimensions = dimension or known_dimension
    if dimensions is None:
        raise ConfigError(
            f"embedder.dimension: say how long the vectors of {model} are, for example 768 (its "
            "card says it)"
        )
    return Fingerprint(model=name, dimension=dimensions, pooling=pooling)


def _described(folder: Path) -> tuple[int | None, str]:
    """Return the dimension and pooling that a model's folder states."""
    pooling = "model"
    dimension = None
    for module in sorted(folder.glob("[0-9]_*")):
        stated = _json(module / "config.json")
        modes = [
            key for key, on in stated.items() if key.startswith("pooling_mode_") and on is True
        ]
        if len(modes) == 1:
            pooling = (
                modes[0]
                .removeprefix("pooling_mode_")
                .removesuffix("_tokens")
                .removesuffix("_token")
            )
        elif isinstance(stated.get("pooling_mode"), str):
            pooling = str(stated["pooling_mode"])
        width = stated.get(
            "out_features",
            stated.get("word_embedding_dimension", stated.get("embedding_dimension")),
        )
        dimension = width if isinstance(width, int) else dimension
    if dimension is None:
        hidden = _json(folder / "config.json").get("hidden_size")
        dimension = hidden if isinstance(hidden, int) else None
    return dimension, pooling


def _json(file: Path) -> Mapping[str, object]:
    try:
        content: object = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # the folder does not say; the caller asks for the setting
    return cast("Mapping[str, object]", content) if isinstance(content, dict) else {}
