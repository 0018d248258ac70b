"""How a name is looked for in a text: units, spellings, and names too plain to be found by chance.

A unit is a word in a script that puts spaces between words, and one character in a script that does
not (Chinese, Japanese, Thai, …) or that glues endings to names (Korean). A name occurs in a text
when its units follow each other there: whole words in the one case, a substring in the other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache

from pps.core.text import fold

MAX_UNITS = 12
"""A name is found by its first twelve units; longer ones are not told apart here."""

# First and last code points of scripts without spaces (and Hangul), by block.
_DENSE = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x0FFF),  # Tibetan
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul Jamo
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3100, 0x31FF),  # Bopomofo, Hangul compatibility, Katakana extensions
    (0x3400, 0x4DBF),  # Han extension A
    (0x4E00, 0x9FFF),  # Han
    (0xA960, 0xA97F),  # Hangul Jamo extended A
    (0xAC00, 0xD7FF),  # Hangul
    (0xF900, 0xFAFF),  # Han compatibility
    (0x20000, 0x3FFFF),  # Han extensions
)
_LEAST_WITH_S = 4
_ASCII_UNIT = re.compile(r"[a-z0-9]+|[+#]")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n。！？…])[\s\"'“‘(*_>-]*$")
_PLAIN_WORDS = """
a about after all also am an and any are as at be been before being but by can could did do does
down each few for from further had has have he her here hers him his how i if in into is it its just
may me might more most must my no nor not now of off on once only or other our out over own same she
should so some such than that the their them then there these they this those through to too under
until up us very was we were what when where which while who whom why will with would you your yours
al as au da das de del dem den der des die do du e ein eine el en es et in il la las le les los o
och og om os sur te til tu un una und une van von y zu
"""
_PLAIN = frozenset(_PLAIN_WORDS.split())


def units(text: str) -> list[str]:
    """Return the units of a text: folded, Latin letters without accents, no punctuation."""
    folded = fold(text).translate(_unaccented())
    if folded.isascii():  # most texts, by one regular expression
        return _ASCII_UNIT.findall(folded)
    units: list[str] = []
    before = "gap"
    for kind, char in _classified(folded):
        if kind == "single" or (kind == "word" and before != "word"):
            units.append(char)
            before = kind
        elif kind == "word" or (kind == "mark" and before != "gap"):
            units[-1] += char  # a mark belongs to the letter before it
        else:
            before = "gap"
    return units


def without_s(unit: str) -> str:
    """Return a word of four or more letters without a final s, any other word as it is."""
    return unit[:-1] if len(unit) >= _LEAST_WITH_S and unit[-1] == "s" and unit[-2] != "s" else unit


def spelling(name_units: list[str]) -> str:
    """Return the form under which a name is stored and looked up."""
    return " ".join(name_units[:MAX_UNITS])


def is_plain(name_units: list[str]) -> bool:
    """Tell whether a name occurs everywhere: a single character, or words such as ``the``."""
    if len(name_units) == 1 and len(name_units[0]) == 1:
        return name_units[0].isalnum() or name_units[0].isascii()
    return all(unit in _PLAIN for unit in name_units)


def is_meant(name: str, text: str) -> bool:
    """Tell whether a text that contains a plain name means it.

    It does when the text is nothing but the name, or when the name has a capital (``Will``, ``US``)
    and stands in the text in just that writing where a sentence does not begin.
    """
    if units(name) == units(text):
        return True
    if len(name) < 2 or name == name.lower():
        return False
    occurrences = re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text)
    return any(
        name == name.upper() or not _SENTENCE_START.search(text[: hit.start()])
        for hit in occurrences
    )


def _classified(text: str) -> Iterator[tuple[str, str]]:
    latin = False
    for char in text:
        if latin and "\u0300" <= char <= "\u036f":
            continue  # an accent that no single character carries
        latin = char.isalpha() and (char.isascii() or _is_accented_latin(ord(char)))
        kind = _class(char)
        if kind != "nothing":
            yield kind, char


@cache
def _unaccented() -> Mapping[int, str]:
    """Return Latin letters without their accents, and typographic punctuation as a gap."""
    letters = [
        code for code in range(0x00C0, 0x1F00) if _is_accented_latin(code) and chr(code).isalpha()
    ]
    table = {code: unicodedata.normalize("NFD", chr(code))[0] for code in letters}
    return table | dict.fromkeys(map(ord, "‘’“”–—…•«»¿¡"), " ")


def _is_accented_latin(code: int) -> bool:
    return 0x00C0 <= code <= 0x024F or 0x1E00 <= code <= 0x1EFF


@lru_cache(maxsize=8192)
def _class(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Cf" or char in "\ufe0e\ufe0f":
        return "nothing"  # joiners and variation selectors stand inside words
    if category[0] == "M":
        return "mark"
    if category[0] in "LN":
        dense = any(first <= ord(char) <= last for first, last in _DENSE)
        return "single" if dense else "word"
    return "single" if category == "So" or char in "+#" else "gap"
