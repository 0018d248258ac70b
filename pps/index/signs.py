"""Signs of a text besides meaning and words: its letters, identifiers, and causes with effects."""

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
"""Characters of a text that are read, from its beginning."""
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
    """Return the identifiers in a text, whole and in parts, in lower case; empty without any."""
    names: set[str] = set()
    for match in _CODE.findall(text[:_READ]):
        names.add(match.lower())
        for simple in _SIMPLE.findall(match):
            names.add(simple.replace("_", "").lower())
            names.update(part.lower() for part in _PART.findall(simple) if len(part) > 1)
    return frozenset(names - {""})


def hashed(terms: Iterable[str]) -> bytes:
    """Return terms as sorted hashes of 8 bytes."""
    made = [
        hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=8).digest() for term in terms
    ]
    return np.sort(np.frombuffer(b"".join(made), dtype=np.uint64)).tobytes()


def numbers(blob: bytes) -> NDArray[np.uint64]:
    """Return the blob of ``hashed`` or ``letters`` as an array of 64-bit numbers."""
    return np.frombuffer(blob, dtype=np.uint64)


@lru_cache(maxsize=2_048)
def causal_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Return the (cause, effect) pairs that a text states, at most eight."""
    pairs: list[tuple[str, str]] = []
    before = ""
    for sentence in sentences_of(text[:_READ]):
        pair = _pair(sentence, before)
        if pair is not None and all(pair):
            pairs.append(pair)
        before = sentence
    return tuple(pairs[:_MOST_PAIRS])


@lru_cache(maxsize=256)
def asked(query: str) -> tuple[Direction, str] | None:
    """Return the side of a cause that a query asks for, and its words about the other side.

    None for a query that asks for neither.
    """
    directions: tuple[Direction, ...] = ("cause", "effect")
    for direction in directions:
        cue = _cues(f"asks_{direction}").search(query)
        if cue is not None:
            parts = query[: cue.start()], *filter(None, cue.groups()), query[cue.end() :]
            rest = _trimmed(" ".join(parts))
            if rest:
                return direction, rest
    return None


def _pair(sentence: str, before: str) -> tuple[str, str] | None:
    leading = _cues("leading").match(sentence.lstrip())
    if leading is not None and "," in sentence:
        cause, _, effect = sentence.lstrip()[leading.end() :].partition(",")
        return _trimmed(cause), _trimmed(effect)
    cue = _cues("effect_first").search(sentence)
    if cue is not None:
        return _trimmed(sentence[cue.end() :]), _trimmed(sentence[: cue.start()])
    cue = _cues("cause_first").search(sentence)
    if cue is not None:
        return _trimmed(sentence[: cue.start()]) or _trimmed(before), _trimmed(
            sentence[cue.end() :]
        )
    return None


def _trimmed(text: str) -> str:
    return " ".join(text.strip(" \t\n,.;:!?-–—").split())[:_LONGEST_SPAN]


@lru_cache(maxsize=8)
def _cues(kind: str) -> re.Pattern[str]:
    """Return a pattern of a kind's cues in every language, longest first; gaps are groups."""
    data = tomllib.loads(shipped("config/causes.toml").read_text("utf-8"))
    cues = sorted(
        (cue for language in data.values() for cue in language[kind]), key=len, reverse=True
    )
    each = "|".join(re.escape(cue).replace("…", "(.+)") for cue in cues)
    return re.compile(rf"\b(?:{each})\b", re.IGNORECASE)
