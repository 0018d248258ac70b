"""Names that are spelled otherwise: Muhammad and Mohammed, Katherine and Catherine, Akim and Akib. Pure functions.

Two names are one when they have the same consonants by sound, or differ in a single letter. That is loose, so it is for
names that a memory does not know as they are written.
"""

from __future__ import annotations

import re

from pps.core.text import fold
from pps.journal.names import units

LEAST_LETTERS = 4
"""Letters of a name that may be spelled otherwise: of shorter ones half the dictionary is one letter away."""
_LEAST_CONSONANTS = 3
_SOUNDS = (
    ("ph", "f"),
    ("th", "t"),
    ("dt", "t"),
    ("ck", "k"),
    ("sch", "s"),
    ("sh", "s"),
    ("ch", "k"),
    ("gh", "g"),
    ("kh", "k"),
    ("x", "ks"),
)
_SAME = str.maketrans("cqzwyj", "kksvii")
_VOWELS = re.compile(r"(?<!^)[aeiou]+")
_DOUBLED = re.compile(r"(.)\1+")
_SAME_INITIALS = ("ckqx", "fpv", "gjy", "iyje", "szcx", "vwf", "aeiou", "th", "kc")
_STEMMED = ("", "d", "s", "r", "n", "ng", "l", "i")
"""Consonants that a stemmer may have taken off the end: Mohammed is kept as "moham"."""


def skeleton(word: str) -> str:
    """Return the consonants of a word by sound, its first letter whatever it is: Mohammed → ``mhmd``."""
    letters = "".join(units(fold(word)))
    for written, sound in _SOUNDS:
        letters = letters.replace(written, sound)
    letters = _DOUBLED.sub(r"\1", letters.translate(_SAME))
    return _DOUBLED.sub(r"\1", _VOWELS.sub("", letters))


def spelled_alike(one: str, other: str) -> bool:
    """Tell whether two words may be one name: the same consonants by sound, at least three, or one letter apart."""
    first, second = fold(one), fold(other)
    if min(len(first), len(second)) < LEAST_LETTERS or first == second:
        return False
    consonants = skeleton(first)
    if len(consonants) >= _LEAST_CONSONANTS and consonants == skeleton(second):
        return abs(len(first) - len(second)) <= 2
    return first[0] == second[0] and _one_apart(first, second)


def may_be_stem_of(term: str, word: str) -> bool:
    """Tell whether a term of a text index, which may be cut to its stem, can come from a word spelled as a name."""
    consonants, kept = skeleton(word), skeleton(term)
    return any(kept + ending == consonants for ending in _STEMMED) or _one_apart(
        fold(term), fold(word)
    )


def initials(word: str) -> str:
    """Return the letters that a name spelled otherwise may begin with."""
    first = fold(word)[:1]
    return "".join(dict.fromkeys(first + "".join(one for one in _SAME_INITIALS if first in one)))


def _one_apart(one: str, other: str) -> bool:
    """Tell whether one letter is changed, added, left out, or two are swapped."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    left, right = one[start:], other[start:]
    swapped = left[:2] == right[:2][::-1] and left[2:] == right[2:] and len(left) > 1
    return left[1:] == right[1:] or left[1:] == right or left == right[1:] or swapped
