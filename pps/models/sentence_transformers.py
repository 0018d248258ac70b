"""Any sentence-transformers model, by name or folder; needs the extra ``torch``."""

from __future__ import annotations

import importlib
import json
import logging
import threading
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from pps.core.errors import ConfigError, ModelUnavailable
from pps.models.protocols import Fingerprint, Matrix, Vector
from pps.models.windows import embed_whole, readable, split_to_window

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


class _Tokenizer(Protocol):
    def __call__(
        self, text: str, *, add_special_tokens: bool, truncation: bool, verbose: bool
    ) -> Mapping[str, list[int]]: ...


class _Encode(Protocol):
    def __call__(self, texts: list[str], /, *, batch_size: int, show_progress_bar: bool) -> Matrix: ...


class _Model(Protocol):
    """What is used of ``SentenceTransformer``."""

    prompts: Mapping[str, str]

    @property
    def tokenizer(self) -> _Tokenizer: ...

    @property
    def max_seq_length(self) -> int | None: ...

    @property
    def encode_query(self) -> _Encode: ...

    @property
    def encode_document(self) -> _Encode: ...


class SentenceTransformerEmbedder:
    """The embedder ``sentence-transformers``: loads at the first use, one call at a time.

    A model's own query and document prompts are used. Its dimension must be known before it loads: it
    is read from the model's folder, known for a few common names, else the setting says it.

    Args:
        model: A folder, or a name that sentence-transformers resolves (its cache, else the hub).
        dimension: Length of its vectors, where the folder does not say.

    Raises:
        ConfigError: The extra is missing, no model is named, or its dimension is not known.
    """

    def __init__(self, model: str, *, dimension: int | None = None) -> None:
        if find_spec("sentence_transformers") is None:
            raise ConfigError("embedder.name = 'sentence-transformers' needs torch: install pps with its extra 'torch'")
        if not model:
            raise ConfigError("embedder.model: name a sentence-transformers model, or a folder with one")
        self._source = model
        self._fingerprint = _fingerprint(model, dimension)
        self._load_lock = threading.Lock()
        self._run_lock = threading.Lock()
        self._model: _Model | None = None

    @property
    def fingerprint(self) -> Fingerprint:
        """The model's name without its maker's, its dimension and its pooling."""
        return self._fingerprint

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query, shape (dimension,)."""
        return embed_whole([readable(text)], self.split, self._queries)[0]

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text in the order given, shape (len(texts), dimension)."""
        if not texts:
            return np.zeros((0, self._fingerprint.dimension), dtype=np.float32)
        return embed_whole([readable(text) for text in texts], self.split, self._documents)

    def split(self, text: str) -> list[str]:
        """Return passages that fit the model's window, of at most 512 tokens; loads the model."""
        model = self._loaded()
        prompt = max((len(each) for each in model.prompts.values()), default=0)
        limit = min(model.max_seq_length or _LONGEST_PASSAGE, _LONGEST_PASSAGE) - _MARGIN_TOKENS - prompt // 3
        return split_to_window(readable(text), self._count, max(limit, 8), overlap=_OVERLAP_TOKENS)

    def close(self) -> None:
        """Give back what it holds: nothing beside memory."""

    def _queries(self, texts: list[str]) -> Matrix:
        return self._checked(self._run(self._loaded().encode_query, texts))

    def _documents(self, texts: list[str]) -> Matrix:
        return self._checked(self._run(self._loaded().encode_document, texts))

    def _run(self, encode: _Encode, texts: list[str]) -> Matrix:
        try:
            with self._run_lock:
                return encode(texts, batch_size=_BATCH_TEXTS, show_progress_bar=False)
        except RuntimeError as error:  # torch: out of memory, a device gone
            raise ModelUnavailable(f"embedder.model: {self._source} failed ({type(error).__name__})") from error

    def _checked(self, rows: Matrix) -> Matrix:
        if rows.shape[1] != self._fingerprint.dimension:
            raise ConfigError(
                f"embedder.dimension is {self._fingerprint.dimension}, but {self._source} gives {rows.shape[1]}"
            )
        return np.asarray(rows, dtype=np.float32)

    def _count(self, text: str) -> int:
        tokenizer = self._loaded().tokenizer
        with self._run_lock:  # a fast tokenizer may not be used by two threads at once
            tokens = tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)
        return len(tokens["input_ids"])

    def _loaded(self) -> _Model:
        with self._load_lock:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> _Model:
        log.info("loading the embedding model %s: seconds, or minutes if it is fetched", self._source)
        try:
            library = importlib.import_module("sentence_transformers")
            model = cast("_Model", library.SentenceTransformer(self._source))
        except (ImportError, OSError, ValueError, RuntimeError) as error:
            raise ModelUnavailable(
                f"embedder.model: sentence-transformers cannot load {self._source} ({type(error).__name__})"
            ) from error
        log.info("embedding model %s loaded", self._source)
        return model


def _fingerprint(model: str, dimension: int | None) -> Fingerprint:
    folder = Path(model).expanduser()
    name = folder.resolve().name if folder.is_dir() else model.removeprefix("sentence-transformers/")
    known_dimension, pooling = _described(folder) if folder.is_dir() else _KNOWN.get(name, (None, "model"))
    found = dimension or known_dimension
    if found is None:
        raise ConfigError(
            f"embedder.dimension: say how long the vectors of {model} are, for example 768 (its card says it)"
        )
    return Fingerprint(model=name, dimension=found, pooling=pooling)


def _described(folder: Path) -> tuple[int | None, str]:
    """Return the dimension and pooling that a model's folder states."""
    pooling, dimension = "model", None
    for module in sorted(folder.glob("[0-9]_*")):
        stated = _json(module / "config.json")
        modes = [key for key, on in stated.items() if key.startswith("pooling_mode_") and on is True]
        if len(modes) == 1:
            pooling = modes[0].removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        elif isinstance(stated.get("pooling_mode"), str):
            pooling = str(stated["pooling_mode"])
        width = stated.get("out_features", stated.get("word_embedding_dimension", stated.get("embedding_dimension")))
        dimension = width if isinstance(width, int) else dimension
    if dimension is None:
        hidden = _json(folder / "config.json").get("hidden_size")
        dimension = hidden if isinstance(hidden, int) else None
    return dimension, pooling


def _json(file: Path) -> Mapping[str, object]:
    try:
        found: object = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # the folder does not say; the caller asks for the setting
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else {}
