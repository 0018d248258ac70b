"""The rules of gitleaks as detectors: its file is data (``data/gitleaks.toml``), read whole and unchanged.

Its patterns are written for RE2, and RE2 runs them: no text can make one slow. A rule is compiled when a text first
holds one of its keywords.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, cast

from pps.core.errors import ConfigError
from pps.ingest.detectors import Detector, entropy_bits

SHA256 = "e163e53b9e7e8a8511e77271e2b323ed057759542a6d988258afe3a1fa329caf"

_LEFT_OUT = frozenset(
    {
        "generic-api-key",  # finds identifiers in code; `given_secrets` looks for the same with care
        "jwt",  # the library's check of its form finds more and is never wrong
        "private-key",  # takes what lies between two keys along
        "vault-service-token",  # its old form, `s.` and 24 letters, is a method's name
        "sourcegraph-access-token",  # any 40 hexadecimal digits beside the word: a commit
        "facebook-page-access-token",  # keywords that base64 is full of
        "square-access-token",
    }
)
_END = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
_ANY_END = r"(?:[^\w+/=-]|\\[nr]|$)"
"""What ends a key in prose too: a full stop, a bracket, a comma."""


@dataclass(frozen=True, slots=True)
class _Allowed:
    """What a rule's find is not: placeholders, examples, paths."""

    words: tuple[str, ...]
    patterns: tuple[str, ...]

    def __contains__(self, secret: object) -> bool:
        text = str(secret)
        return any(word in text.lower() for word in self.words) or any(_re2(one).search(text) for one in self.patterns)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One rule as ``Detector`` uses a pattern: its matches, each of the secret alone."""

    regex: str
    least_entropy_bits: float
    allowed: tuple[_Allowed, ...]

    def finditer(self, text: str, /) -> Iterable[re.Match[str]]:
        for match in _re2(self.regex).finditer(text):
            secret = match[_group(match)]
            enough = entropy_bits(secret) > self.least_entropy_bits
            if enough and not any(secret in one for one in self.allowed):
                yield match


class _Rule(Detector):
    """A detector whose secret is the first group that took part, or else the whole match."""

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        for pattern in self.patterns:
            for match in pattern.finditer(text):
                yield match.span(_group(match))


def gitleaks() -> tuple[Detector, ...]:
    """Return a detector for each rule that looks at a text alone, and not at the name of a file."""
    raw = (files("pps.ingest") / "data" / "gitleaks.toml").read_bytes()
    if hashlib.sha256(raw).hexdigest() != SHA256:
        raise ConfigError("gitleaks.toml: is not the file that PPS came with; install PPS again")
    told = tomllib.loads(raw.decode())
    everywhere = _allowed(told["allowlist"])
    return tuple(
        _Rule(
            kind=rule["id"].replace("-", " ").title(),
            hints=tuple(rule["keywords"]),
            patterns=(
                _Pattern(
                    rule["regex"].replace(_END, _ANY_END),
                    rule.get("entropy", 0.0),
                    (everywhere, *map(_allowed, rule.get("allowlists", ()))),
                ),
            ),
        )
        for rule in told["rules"]
        if rule["id"] not in _LEFT_OUT and "path" not in rule
    )


def _allowed(told: dict[str, Any]) -> _Allowed:
    words = tuple(word.lower() for word in told.get("stopwords", ()))
    return _Allowed(words, tuple(told.get("regexes", ())))


def _group(match: re.Match[str]) -> int:
    return next((at for at, one in enumerate(match.groups(), 1) if one), 0)


@cache
def _re2(regex: str) -> re.Pattern[str]:
    """Return a compiled pattern; RE2's have the methods of ``re``'s that are used here."""
    return cast("re.Pattern[str]", cast("Any", importlib.import_module("re2")).compile(regex))
