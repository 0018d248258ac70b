"""What finds one kind of secret, and how a generated key is told from a name."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypedDict, Unpack

Span = tuple[int, int]

_TOKEN_TAIL = re.compile(r"[A-Za-z0-9_-]*")
_LEAST_ENTROPY_BITS = 2.8
_LEAST_RUN = 12
_RUN = re.compile(r"[A-Za-z0-9+/]+")


class Pattern(Protocol):
    """What is used of a compiled pattern."""

    def finditer(self, text: str, /) -> Iterable[re.Match[str]]:
        """Return its matches in a text, in order."""
        ...


@dataclass(frozen=True)
class Detector:
    """Finds one kind of secret.

    Attributes:
        kind: What the marker says in its place.
        hints: A text without any of them holds none of this kind; lower-case ones are looked for in any case.
        patterns: What it looks like; ``group`` of a match is the secret.
        tail: What still belongs to it after a match: patterns of fixed length cut longer tokens short.
        accepts: A last look at the secret itself.
    """

    kind: str
    hints: tuple[str, ...]
    patterns: tuple[Pattern, ...]
    group: int = 0
    tail: re.Pattern[str] | None = _TOKEN_TAIL
    accepts: Callable[[str], bool] = bool

    def find(self, text: str) -> Iterator[Span]:
        """Yield where its secrets begin and end."""
        for pattern in self.patterns:
            for match in pattern.finditer(text):
                start, end = match.span(self.group)
                if self.accepts(text[start:end]):
                    rest = self.tail.match(text, end) if self.tail else None
                    yield start, rest.end() if rest else end


class _More(TypedDict, total=False):
    group: int
    tail: re.Pattern[str] | None
    accepts: Callable[[str], bool]


def detector(kind: str, hints: tuple[str, ...], pattern: str, **more: Unpack[_More]) -> Detector:
    """Return a detector of one pattern."""
    return Detector(kind, hints, (re.compile(pattern),), **more)


TOKEN_START = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))"  # noqa: S105 - a pattern
"""Where a token may begin: not inside a word, but behind ``-``, ``_``, ``=``, ``%3D`` or an escaped line break."""


def looks_random(value: str) -> bool:
    """Tell whether a value can be a generated key: letters and digits mixed in one long run, no repetition.

    Words joined by ``-``, ``_`` or ``.`` are names, however long.
    """
    runs = [run for run in _RUN.findall(value) if len(run) >= _LEAST_RUN]
    return any(_mixed(run) and entropy_bits(run) >= _LEAST_ENTROPY_BITS for run in runs)


def entropy_bits(value: str) -> float:
    """Return Shannon's entropy of a text's characters, in bits a character; 0 when it is empty."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())


def _mixed(run: str) -> bool:
    digits = sum(char.isdigit() for char in run)
    return digits >= 2 and digits < len(run) - 1
