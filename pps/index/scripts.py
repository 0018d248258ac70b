"""Text cut by script: words where words have spaces between them, characters and their pairs elsewhere."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003347f"
_KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001b000-\U0001b16f"
_BOPOMOFO = "\u3105-\u312f\u31a0-\u31bf"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff"
"""Written with spaces, but a particle is joined to its word: pairs find the word without it."""
_SOUTH_EAST = (
    "\u0e01-\u0e3a\u0e40-\u0e5b"  # Thai
    "\u0e81-\u0edf"  # Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17ff\u19e0-\u19ff"  # Khmer
    "\u1950-\u19df\u1a20-\u1aad"  # Tai Le, New Tai Lue, Tai Tham
    "\u1b00-\u1b7c\ua980-\ua9df\uaa80-\uaadf"  # Balinese, Javanese, Tai Viet
)
_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"

_RUN = re.compile(f"[{_HAN}{_KANA}{_BOPOMOFO}{_HANGUL}{_SOUTH_EAST}]+|[{_EMOJI}]")
_ONE_HAN = re.compile(f"[{_HAN}]")

_SPACE = ord(" ")
_REMEMBERED = 10_000
"""Characters whose kind is kept: more than most texts have, and no text can make it fill the memory."""


@dataclass(frozen=True, slots=True)
class Split:
    """One text, cut.

    Attributes:
        words: The words of what is written with spaces, with nothing but spaces between them.
        runs: Unbroken runs of characters of scripts without spaces, and single emoji.
    """

    words: str
    runs: tuple[str, ...]

    def pairs(self) -> Iterator[str]:
        """Yield every two neighbouring characters of a run."""
        for run in self.runs:
            yield from map("".join, pairwise(run))

    def characters(self) -> Iterator[str]:
        """Yield every character of every run, so that one character alone can be searched."""
        for run in self.runs:
            yield from run

    def lone(self) -> Iterator[str]:
        """Yield the runs of one character."""
        yield from (run for run in self.runs if len(run) == 1)

    def han(self) -> Iterator[str]:
        """Yield the Han characters of longer runs: unlike letters, each means something by itself."""
        for run in self.runs:
            if len(run) > 1:
                yield from _ONE_HAN.findall(run)


def split(text: str) -> Split:
    """Cut a text by script after NFKC, so that full-width and half-width forms are the usual ones.

    Half a surrogate pair, which no file can hold, becomes a question mark.
    """
    if text.isascii():
        return Split(text.translate(_SPACED), ())
    text = unicodedata.normalize("NFKC", text.encode("utf-8", "replace").decode())
    runs: list[str] = _RUN.findall(text)
    rest = _RUN.sub(" ", text) if runs else text
    return Split(rest.translate(_SPACED), tuple(runs))


class _Spaced(dict[int, int]):
    """For ``str.translate``: what belongs to a word stays (letters, marks, numbers), all else becomes a space.

    What this Python's Unicode does not know yet is taken for a letter of a new script.
    """

    def __missing__(self, point: int) -> int:
        category = unicodedata.category(chr(point))
        found = point if category[0] in "LMN" or category == "Cn" else _SPACE
        if len(self) < _REMEMBERED:
            self[point] = found
        return found


_SPACED = _Spaced()
