"""Counting tokens for budgets: exactly with tiktoken's encoding, else by a stated estimate."""

from __future__ import annotations

import hashlib
import importlib
import os
import tempfile
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from pps.core.text import estimate_tokens

_ENCODINGS = {
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}
"""Encodings of tiktoken → the file's name in tiktoken's cache, and its sha256."""


def count_tokens(text: str) -> int:
    encoding = _encoding()
    return estimate_tokens(text) if encoding is None else len(encoding.encode_ordinary(text))


def counter_name() -> Literal["tiktoken", "estimate"]:
    """Return how ``count_tokens`` counts in this process."""
    return "estimate" if _encoding() is None else "tiktoken"


@lru_cache(maxsize=1)
def _encoding() -> Any:
    """Load an encoding that lies in tiktoken's own cache, whole: tiktoken fetches any other."""
    folder = _cache_folder()
    if folder is None or find_spec("tiktoken") is None:
        return None
    name = next(
        (name for name, (file, sha256) in _ENCODINGS.items() if _is_whole(folder / file, sha256)),
        None,
    )
    return importlib.import_module("tiktoken").get_encoding(name) if name else None


def _is_whole(file: Path, sha256: str) -> bool:
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == sha256


def _cache_folder() -> Path | None:
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return Path(os.environ[variable]) if os.environ[variable] else None
    return Path(tempfile.gettempdir()) / "data-gym-cache"
