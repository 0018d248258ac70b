"""What embedders share: cutting text to a model's window, so that nothing is truncated in silence.

Kept queries.
"""

from __future__ import annotations

import re
import threading
import time
import unicodedata
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from pps.models.protocols import Embedder, Fingerprint, Matrix, TokenEmbedder, Vector

Count: TypeAlias = Callable[[str], int]
_Span: TypeAlias = tuple[int, int]

_SENTENCE = re.compile(r"(?<=[.!?。！？…])\s+|(?<=[。！？])|\n+")
_WORD = re.compile(r"\s+")


class WindowedEmbedder(ABC):
    """An embedder of a model with a window of tokens, which embeds a longer text by passages."""

    def __init__(self, fingerprint: Fingerprint, window: int, overlap: int = 0) -> None:
        self._fingerprint = fingerprint
        self._window = window
        self._overlap = overlap

    @property
    def fingerprint(self) -> Fingerprint:
        return self._fingerprint

    def embed_query(self, text: str) -> Vector:
        return embed_whole([readable(text)], self.split, self._queries)[0]

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.zeros((0, self.fingerprint.dimension), dtype=np.float32)
        return embed_whole([readable(text) for text in texts], self.split, self._passages)

    def split(self, text: str) -> list[str]:
        return split_to_window(readable(text), self._count, self._window, overlap=self._overlap)

    def close(self) -> None:  # noqa: B027 - most hold nothing beside memory
        """Give back what it holds."""

    def _queries(self, texts: list[str]) -> Matrix:
        return self._passages(texts)

    @abstractmethod
    def _passages(self, texts: list[str]) -> Matrix:
        """Return a row a text; each fits the window."""

    @abstractmethod
    def _count(self, text: str) -> int:
        """Return the tokens of a text, without the model's special ones."""


class CachedEmbedder:
    """An embedder whose query vectors are kept for a while, least recently used out first.

    Safe in threads.

    An agent asks about one text through several channels and turns. The key is the model's
    fingerprint and the text, so one model's vector never answers for another's. Vectors are
    read-only; 1,024 of 384 dimensions take 1.6 MB.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        size: int = 1024,
        ttl_s: float = 900.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._embedder = embedder
        self._size = size
        self._ttl_s = ttl_s
        self._clock = clock
        self._kept: OrderedDict[tuple[Fingerprint, str], tuple[float, Vector]] = OrderedDict()
        self._lock = threading.Lock()
        self.embed_passages = embedder.embed_passages
        self.split = embedder.split
        self.close = embedder.close
        if isinstance(embedder, TokenEmbedder):
            self.embed_tokens = embedder.embed_tokens
            self.like_words = embedder.like_words

    @property
    def fingerprint(self) -> Fingerprint:
        return self._embedder.fingerprint

    def embed_query(self, text: str) -> Vector:
        key = (self._embedder.fingerprint, text)
        with self._lock:
            until, vector = self._kept.pop(key, (0.0, None))
            if vector is not None and self._clock() < until:
                self._kept[key] = until, vector
                return vector
        vector = self._embedder.embed_query(text)
        vector.setflags(write=False)
        with self._lock:
            self._kept[key] = (self._clock() + self._ttl_s, vector)
            self._kept.move_to_end(key)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return vector


def readable(text: str) -> str:
    """Return the text without what tokenizers in C and Rust choke on: NUL and lone surrogates."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def split_to_window(text: str, count: Count, limit: int, *, overlap: int = 0) -> list[str]:
    """Return passages of at most ``limit`` tokens (8 or more) that hold a text's words in order.

    Cuts between sentences; a sentence that is too long is cut between words, a word that is too
    long between characters. The last sentences of a passage open the next one too, as far as they
    take no more than ``overlap`` tokens: a thought across a cut is whole somewhere. Blank text has
    no passages.
    """
    text = text.strip()
    if not text:
        return []
    if count(text) <= limit:
        return [text]
    pieces = [(span, count(text[slice(*span)])) for span in _spans(text, (0, len(text)), _SENTENCE)]
    small = [piece for big in pieces for piece in _refined(text, big, count, limit)]
    passages: list[str] = []
    for share in (1.0, 0.9, 0.75):  # a tokenizer may need more for a whole than for its pieces
        room = int(limit * share)
        passages = [text[start:end] for start, end in _packed(small, room, overlap)]
        if all(count(passage) <= limit for passage in passages):
            break
    return passages


def _spans(text: str, within: _Span, boundary: re.Pattern[str]) -> Iterator[_Span]:
    """Yield the parts between boundaries, without the white space at their ends."""
    start, end = within
    for match in boundary.finditer(text, start, end):
        if text[start : match.start()].strip():
            yield start, match.start()
        start = match.end()
    if text[start:end].strip():
        yield start, end


def _refined(
    text: str, piece: tuple[_Span, int], count: Count, limit: int
) -> Iterator[tuple[_Span, int]]:
    span, tokens = piece
    if tokens <= limit:
        yield piece
        return
    words = list(_spans(text, span, _WORD))
    parts = words if len(words) > 1 else _halves(text, span)
    for part in parts:
        yield from _refined(text, (part, count(text[slice(*part)])), count, limit)


def _halves(text: str, span: _Span) -> list[_Span]:
    start, end = span
    middle = (start + end) // 2
    while middle < end - 1 and unicodedata.combining(text[middle]):
        middle += 1  # an accent stays with its letter
    return [(start, middle), (middle, end)] if start < middle < end else []


def _packed(pieces: Sequence[tuple[_Span, int]], limit: int, overlap: int) -> Iterator[_Span]:
    """Yield spans of neighbouring pieces, each as long as fits."""
    held: list[tuple[_Span, int]] = []
    used = 0
    for piece in pieces:
        if held and used + piece[1] > limit:
            yield held[0][0][0], held[-1][0][1]
            held = _tail(held, min(overlap, limit - piece[1]))
            used = sum(tokens for _, tokens in held)
        held.append(piece)
        used += piece[1]
    if held:
        yield held[0][0][0], held[-1][0][1]


def _tail(held: Sequence[tuple[_Span, int]], overlap: int) -> list[tuple[_Span, int]]:
    spans: list[tuple[_Span, int]] = []
    for piece in reversed(held[1:]):
        overlap -= piece[1]
        if overlap < 0:
            break
        spans.insert(0, piece)
    return spans


def unit(rows: Matrix) -> Matrix:
    """Return the rows scaled to length 1, as float32; a row of zeros stays as it is."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths == 0, 1.0, lengths), dtype=np.float32)


def embed_whole(
    texts: Sequence[str], split: Callable[[str], list[str]], embed: Callable[[list[str]], Matrix]
) -> Matrix:
    """Return one unit vector a text, whatever its length.

    A text longer than the window is embedded passage by passage; its vector is the passages' mean,
    weighted by their lengths in characters, so that its end counts as much as its start.
    """
    parts = [split(text) or [""] for text in texts]
    rows = embed([part for passages in parts for part in passages])
    if len(rows) == len(texts):
        return unit(rows)
    whole = np.empty((len(texts), rows.shape[1]), dtype=np.float32)
    start = 0
    for at, passages in enumerate(parts):
        weights = [len(part) or 1 for part in passages]
        whole[at] = np.average(rows[start : start + len(passages)], axis=0, weights=weights).astype(
            np.float32
        )
        start += len(passages)
    return unit(whole)
