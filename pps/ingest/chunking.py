"""Cutting a document into passages of whole sentences: 200 words each, 50 of them shared with the one before.

A word is a run of letters between spaces; in scripts that write none, a character. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pps.ingest.detectors import Span
from pps.ingest.redact import spans

WORDS = 200
OVERLAP = 50

_WORD = re.compile(r"[぀-ヿ㐀-鿿豈-﫿฀-๿]|[^\s぀-ヿ㐀-鿿豈-﫿฀-๿]+")
_BREAK = re.compile(
    r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n\s*\n\s*|\n(?=\s*(?:[-*+]|\d{1,3}[.)]|#{1,6})\s)"
)
_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*\s*")
_FENCE = re.compile(r"\s*(```|~~~)")


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage, and the headings that it stands under, outermost first."""

    text: str
    headings: tuple[str, ...] = ()


def passages(text: str, *, words: int = WORDS, overlap: int = OVERLAP) -> list[Passage]:
    """Return the passages of Markdown or plain text in order; a document that fits is one, a blank one none.

    A passage has at most ``words``; a longer sentence is cut between words. At most ``overlap`` words, whole sentences,
    are those of the end of the one before: less than half of ``words``.
    """
    sentences = _uncut(list(_sentences(text, words)), spans(text), words)
    heads = _headings(text)
    found: list[Passage] = []
    first = 0
    while first < len(sentences):
        last, total = first, 0
        while last < len(sentences) and total + sentences[last].words <= words:
            total += sentences[last].words
            last += 1
        start, end = sentences[first].start, sentences[last - 1].end
        found.append(Passage(text[start:end].strip(), _above(heads, start)))
        if last == len(sentences):
            break
        first = _stepped_back(sentences, first, last, overlap)
    return found


@dataclass(frozen=True, slots=True)
class _Sentence:
    start: int
    end: int
    words: int


def _sentences(text: str, most: int) -> Iterator[_Sentence]:
    start = 0
    for end in [*(match.end() for match in _BREAK.finditer(text)), len(text)]:
        found = list(_WORD.finditer(text, start, end))
        for at in range(0, len(found), most):
            part = found[at : at + most]
            is_last = at + most >= len(found)
            yield _Sentence(part[0].start(), end if is_last else part[-1].end(), len(part))
        start = end


def _uncut(sentences: list[_Sentence], secrets: Sequence[Span], most: int) -> list[_Sentence]:
    """Return the sentences, those joined that a secret runs through: half of one would not be known as one."""
    joined: list[_Sentence] = []
    for one in sentences:
        if joined and any(start < one.start < end for start, end in secrets):
            last = joined.pop()
            one = _Sentence(last.start, one.end, min(most, last.words + one.words))
        joined.append(one)
    return joined


def _stepped_back(sentences: list[_Sentence], first: int, last: int, overlap: int) -> int:
    """Return the sentence at which the next passage begins: as many before ``last`` as the overlap holds."""
    at, total = last, 0
    while at - 1 > first and total + sentences[at - 1].words <= overlap:
        at -= 1
        total += sentences[at].words
    return at


def _headings(text: str) -> list[tuple[int, int, str]]:
    """Return (position, level, words) of each heading outside of code."""
    found: list[tuple[int, int, str]] = []
    at, in_code = 0, False
    for line in text.splitlines(keepends=True):
        if _FENCE.match(line):
            in_code = not in_code
        elif not in_code and (match := _HEADING.fullmatch(line.strip("\r\n"))):
            found.append((at, len(match[1]), match[2]))
        at += len(line)
    return found


def _above(heads: list[tuple[int, int, str]], start: int) -> tuple[str, ...]:
    """Return the headings in force just before a position."""
    open_: list[tuple[int, str]] = []
    for at, level, words in heads:
        if at >= start:
            break
        open_ = [*(one for one in open_ if one[0] < level), (level, words)]
    return tuple(words for _, words in open_)
