"""Pure functions on text: folding, hashing, cutting, chunking. Any script is safe."""

from __future__ import annotations

import hashlib
import math
import os
import re
import unicodedata
from collections.abc import Iterator

_CHARACTERS_A_TOKEN = 3.5
_SPACE = re.compile(r"\s+")
_SENTENCE = re.compile(r"(?<=[.!?。！？…])\s+|(?<=[。！？])|\n{2,}")


def normalise(text: str) -> str:
    """Return Unicode NFC with every line break a line feed; nothing else is changed."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))


def fold(text: str) -> str:
    """Return the form in which two names are the same: NFKC, case folded, one space between words."""
    plain = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return " ".join(plain.split())


def content_hash(text: str) -> str:
    """Return the sha256 hex digest of a text with its white space folded."""
    return hashlib.sha256(_SPACE.sub(" ", normalise(text)).strip().encode()).hexdigest()


def first_line(text: str, limit: int = 80) -> str:
    """Return the first ``limit`` characters of the first line that is not blank, any script."""
    line = next((part.strip() for part in text.splitlines() if part.strip()), "")
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def shown_name(name: str) -> str:
    """Return a file's name as it can be shown and kept, whatever bytes the file system holds."""
    return os.fsencode(name).decode("utf-8", "replace")


def estimate_tokens(text: str) -> int:
    """Return ``ceil(characters / 3.5)``, the estimate that stands in for a tokenizer."""
    return math.ceil(len(text) / _CHARACTERS_A_TOKEN)


def chunks(text: str, *, size: int = 900, overlap: int = 150) -> Iterator[str]:
    """Yield passages of at most ``size`` characters that overlap by about ``overlap``.

    Cuts at a sentence's end where one lies in the second half of a passage, else at a space, else
    hard; a text that fits is yielded whole. Nothing but white space at a cut is lost.
    """
    text = text.strip()
    start = 0
    while start < len(text):
        end = min(len(text), start + size)
        if end < len(text):
            end = start + _cut(text[start:end])
        piece = text[start:end].strip()
        if piece:
            yield piece
        if end >= len(text):
            return
        start = max(start + 1, _word_start(text, end - overlap, end))


def _cut(window: str) -> int:
    half = len(window) // 2
    ends = [match.end() for match in _SENTENCE.finditer(window) if match.end() > half]
    if ends:
        return ends[-1]
    space = window.rfind(" ", half)
    return space if space > 0 else len(window)


def _word_start(text: str, at: int, end: int) -> int:
    space = text.find(" ", max(at, 0), end)
    return space + 1 if space >= 0 else max(at, 0)
