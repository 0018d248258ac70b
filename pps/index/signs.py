"""Features of a text besides its embedding: trigrams, identifiers, and causes with effects."""

from __future__ import annotations

import hashlib
import re
import tomllib
import zlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pps.config.packaged import shipped
from pps.core.text import sentences_of

BITS = 1_024
Direction: TypeAlias = Literal["cause", "effect"]
_READ = 20_000
"""Number of characters, from the beginning of a text, that are read."""
_MOST_PAIRS = 8
_LONGEST_SPAN = 300
_WORD = re.compile(r"[^\W_]{3,}")
_CODE = re.compile(
    r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+"  # dotted: app.config.load
    r"|(?:[\w.-]*/)+[\w.-]*\w"  # a path
    r"|[A-Za-z]\w*_\w+|_\w+"  # snake_case
    r"|[A-Za-z]+[a-z0-9][A-Z]\w*"  # camelCase
    r"|[A-Za-z_]\w*(?=\()"  # a call or signature
    r"|(?<=import )[A-Za-z_]\w*|(?<=from )[a-z_]\w*(?= import)"
)
_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@lru_cache(maxsize=2_048)
def letters(text: str) -> bytes:
    """Return the trigrams of a text's words as 1,024 bits, each set by a trigram's hash."""
    bits = np.zeros(BITS, dtype=np.uint8)
    for word in set(_WORD.findall(text[:_READ].lower())):
        padded = f" {word} "
        for at in range(len(padded) - 2):
            bits[zlib.crc32(padded[at : at + 3].encode("utf-8", "replace")) % BITS] = 1
    return np.packbits(bits).tobytes()


@lru_cache(maxsize=2_048)
def identifiers(text: str) -> frozenset[str]:
    """Return the identifiers of source code in a text, and their parts, in lower case."""
    names: set[str] = set()
    for match in _CODE.findall(text[:_READ]):
        names.add(match.lower())
        for simple in _SIMPLE.findall(match):
            names.add(simple.replace("_", "").lower())
            names.update(part.lower() for part in _PART.findall(simple) if len(part) > 1)
    return frozenset(names - {""})


def hashed(terms: Iterable[str]) -> bytes:
    """Return the sorted hashes of terms, 8 bytes each."""
    digests = [
        hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=8).digest() for term in terms
    ]
    return np.sort(np.frombuffer(b"".join(digests), dtype=np.uint64)).tobytes()


def numbers(blob: bytes) -> NDArray[np.uint64]:
    """Return the blob of ``hashed`` or ``letters`` as an array of 64-bit numbers."""
    return np.frombuffer(blob, dtype=np.uint64)


@lru_cache(maxsize=2_048)
def causal_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Return the first eight (cause, effect) pairs that a text states."""
    pairs: list[tuple[str, str]] = []
    before = ""
    for sentence in sentences_of(text[:_READ]):
        pair = _pair(sentence, before)
        if pair is not None and all(pair):
            pairs.append(pair)
        before = sentence
    return tuple(pairs[:_MOST_PAIRS])


@lru_cache(maxsize=256)
def causal_question(query: str) -> tuple[Direction, str] | None:
    """Return whether a query asks for a cause or an effect, and its words about the other one.

    "Why did the cellar flood?" gives ("cause", "did the cellar flood"). None for other queries.
    """
    directions: tuple[Direction, ...] = ("cause", "effect")
    for direction in directions:
        cue = _cues(f"asks_{direction}").search(query)
        if cue is not None:
            parts = (query[: cue.start()], *filter(None, cue.groups()), query[cue.end() :])
            rest = _trimmed(" ".join(parts))
            if rest:
                return direction, rest
    return None


def _pair(sentence: str, before: str) -> tuple[str, str] | None:
    """Return the (cause, effect) of a sentence; ``before`` is the previous sentence."""
    leading = _cues("leading").match(sentence.lstrip())
    if leading is not None and "," in sentence:
        cause, _, effect = sentence.lstrip()[leading.end() :].partition(",")
        return _trimmed(cause), _trimmed(effect)
    cue = _cues("effect_first").search(sentence)
    if cue is not None:
        return _trimmed(sentence[cue.end() :]), _trimmed(sentence[: cue.start()])
    cue = _cues("cause_first").search(sentence)
    if cue is not None:
        cause = _trimmed(sentence[: cue.start()]) or _trimmed(before)
        return cause, _trimmed(sentence[cue.end() :])
    return None


def _trimmed(text: str) -> str:
    return " ".join(text.strip(" \t\n,.;:!?-–—").split())[:_LONGEST_SPAN]


@lru_cache(maxsize=8)
def _cues(kind: str) -> re.Pattern[str]:
    """Return a pattern of the cues of a kind in all languages, longest first; "…" is a group."""
    data = tomllib.loads(shipped("config/causes.toml").read_text("utf-8"))
    cues = sorted(
        (cue for language in data.values() for cue in language[kind]), key=len, reverse=True
    )
    alternatives = "|".join(re.escape(cue).replace("…", "(.+)") for cue in cues)
    return re.compile(rf"\b(?:{alternatives})\b", re.IGNORECASE)
