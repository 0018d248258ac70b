"""The fence around recalled text: a random mark that only the server knows, so that data stays data.

A pack stands between ``<memory-MARK>`` and ``</memory-MARK>``. Text inside cannot close it, since it
cannot know the mark, and what looks like a fence inside is escaped. At capture only spans whose mark
the server gave out itself are dropped: a fence that somebody made up is kept as what was said.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_LENGTH = 16
_SPAN = re.compile(rf"<memory-([{_ALPHABET}]{{{_LENGTH}}})>.*?</memory-\1>[ \t]*\n?", re.DOTALL)
# Any opening or closing tag that a reader could take for ours: other case, spaces, full-width signs.
_LOOK_ALIKE = re.compile(r"[<＜﹤]\s*[/／]?\s*memory\b", re.IGNORECASE)


def new_mark() -> str:
    """Return a fresh mark: 16 characters of 32, 80 random bits."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))


def fenced(mark: str, body: str) -> str:
    """Return a body, whose memory text is escaped already, inside the fence of a mark."""
    return f"<memory-{mark}>\n{body}\n</memory-{mark}>"


def escaped(text: str) -> str:
    """Return memory text in which nothing looks like a fence: the sign that opens one becomes ``‹``."""
    return _LOOK_ALIKE.sub(lambda found: "‹" + found[0][1:], text)


def marks_in(text: str) -> list[str]:
    """Return the marks of the whole fences in a text, in order, each once: those worth looking up."""
    return list(dict.fromkeys(found[1] for found in _SPAN.finditer(text)))


def strip_known(text: str, known: Callable[[str], bool]) -> str:
    """Return a text without the fenced spans whose mark is known; everything else stays as it was.

    A span that was cut before its end is kept: nothing tells where it would end.
    """
    return _SPAN.sub(lambda found: "" if known(found[1]) else found[0], text)
