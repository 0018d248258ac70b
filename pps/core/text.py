"""Pure functions on text: folding, hashing, cutting, chunking. Any script is safe."""

from __future__ import annotations

import difflib
import hashlib
import math
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator

MAX_TITLE = 80
"""Most characters of a title that is taken from a text."""
MAX_SUMMARY = 200
"""Most characters of a summary that is taken from a text, without ``…``."""
_MAX_COMPARED = 100
_CHARACTERS_A_TOKEN = 3.5
_SPACE = re.compile(r"\s+")
# Commands to a terminal (ECMA-48): control sequences, operating system commands and the like, other
# escapes.
_COMMAND = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
# What has no glyph: controls but tab and line feed, marks that turn the direction of writing, what
# has no width (joiners only beside ASCII: elsewhere scripts and emoji need them), fillers, tags,
# supplementary variation selectors.
UNSEEN_CHARACTERS = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b\u200e\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff"
)
"""Members of a character class of regular expressions."""
# Possessive, and from the start of a run alone: the time is linear, whatever the text.
UNSEEN_JOINERS = (
    r"(?<![^\x00-\x7f])[\u200c\u200d]++|(?<![\u200c\u200d])[\u200c\u200d]++(?![^\x00-\x7f])"
)
_UNSEEN = re.compile(rf"[{UNSEEN_CHARACTERS}]|{UNSEEN_JOINERS}")
_CLAUSE = re.compile(r"[^.!?…。！？\n]+[.!?…。！？]*")
_QUESTION_MARKS = ("?", "？", "؟", "՞", ";")
_SENTENCE = re.compile(r"(?<=[.!?。！？…])\s+|(?<=[。！？])|\n{2,}")
# In scripts with spaces a full stop ends a sentence before white space; in those without, at once.
_END = re.compile(r"[.!?…؟।۔։]+[\"'”’»)\]]*(?=\s|$)|[。！？]+[」』”’）]*|\n\s*\n")
_ABBREVIATED = re.compile(
    r"(?:^|\W)(?:[^\W\d_]|mr|mrs|ms|dr|prof|st|vs|no|etc|e\.g|i\.e|z\.B|ca|bzw|p|pp|fig)\.$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"^[ \t]*\d{1,3}\.$", re.MULTILINE)
_AFTER_ORDINAL = (
    "Jan",
    "Feb",
    "Mär",
    "Apr",
    "Mai",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Okt",
    "Nov",
    "Dez",
)


def normalise(text: str) -> str:
    """Return Unicode NFC with every line break a line feed; nothing else is changed."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))


def visible(text: str) -> str:
    """Return a text without what is not seen and may still act.

    Commands to a terminal, controls, marks of direction and characters without width go. Tabs and
    line feeds stay; another line break becomes a line feed.
    """
    plain = re.sub("\r\n?|[\x0b\x0c\x85\u2028\u2029]", "\n", text)
    return _UNSEEN.sub("", _COMMAND.sub("", plain))


def fold(text: str) -> str:
    """Return a name's form for comparisons: NFKC, case folded, one space between words."""
    plain = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return " ".join(plain.split())


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, each with its marks; a line's end ends one too."""
    return _CLAUSE.findall(text)


def is_question(sentence: str) -> bool:
    """Tell whether a sentence ends with a question mark, in any script."""
    return sentence.rstrip(" \t\n\"'”’)»」』").endswith(_QUESTION_MARKS)


def content_hash(text: str) -> str:
    """Return the sha256 hex digest of a text with its white space folded."""
    return hashlib.sha256(_SPACE.sub(" ", normalise(text)).strip().encode()).hexdigest()


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Return the known name that an unknown one probably means.

    Empty where none is near or the name is too long.
    """
    if len(name) > _MAX_COMPARED:
        return ""
    return next(iter(difflib.get_close_matches(name, list(known), 1)), "")


def first_line(text: str, limit: int = 80) -> str:
    """Return the first ``limit`` characters of the first line that is not blank, any script."""
    line = next((part.strip() for part in text.splitlines() if part.strip()), "")
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def one_line(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of a text, with white space as single spaces."""
    return first_line(" ".join(text.split()), limit)


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


def snake(name: str) -> str:
    """Return a field's name for a name that may be in camelCase, such as ``dueDate``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def counted(number: int, word: str) -> str:
    """Return a number with its noun: ``1 node``, ``2 entries``."""
    plural = word[:-1] + "ies" if re.search("[^aeiou]y$", word) else word + "s"
    return f"{number:,} {word if number == 1 else plural}"


def summary_of(content: str) -> str:
    """Return the first sentence if it has at most 200 characters, else the first 200 and ``…``."""
    text = content.strip()
    sentence = _SPACE.sub(" ", text[: _sentence_end(text)]).strip()
    if len(sentence) <= MAX_SUMMARY:
        return sentence
    return _first_characters(sentence, MAX_SUMMARY).rstrip() + "…"


def title_of(content: str) -> str:
    """Return the title for a record without one: its first 80 characters, white space folded."""
    text = _SPACE.sub(" ", content[: MAX_TITLE * 8].strip())
    return _first_characters(text, MAX_TITLE).strip() if len(text) > MAX_TITLE else text


def _sentence_end(text: str) -> int:
    for match in _END.finditer(text):
        before = (text, max(0, match.start() - 8), match.start() + 1)
        if not (
            _ABBREVIATED.search(*before)
            or _NUMBERED.search(*before)
            or _is_ordinal(text, match.start())
        ):
            return match.end()
    return len(text)


def _is_ordinal(text: str, stop: int) -> bool:
    """Tell whether a full stop makes the number before it an ordinal, as in "am 3. Mai"."""
    rest = text[stop + 1 : stop + 8].lstrip(" ")
    return text[stop - 1 : stop].isdigit() and (
        rest[:1].islower() or rest.startswith(_AFTER_ORDINAL)
    )


def _first_characters(text: str, size: int) -> str:
    """Return at most ``size`` characters; combining marks and joined emoji stay whole."""
    end = min(size, len(text))
    while 1 < end < len(text) and (
        unicodedata.category(text[end])[0] == "M" or text[end - 1] == "\u200d" == text[end]
    ):
        end -= 1
    return text[:end]
