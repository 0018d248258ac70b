"""The fence around recalled text: a random mark that only the server can make, so that data stays data.

A pack stands between ``<memory-MARK>`` and ``</memory-MARK>``. Text inside cannot close it, since it
cannot know the mark, and what looks like a fence inside is escaped. At capture only spans whose mark
the server gave out itself are dropped: a fence that somebody made up is kept as what was said.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_RANDOM = _PROOF = 12
_LENGTH = _RANDOM + _PROOF
_SPAN = re.compile(rf"<memory-([{_ALPHABET}]{{{_LENGTH}}})>.*?</memory-\1>[ \t]*\n?", re.DOTALL)
# Any opening or closing tag that a reader could take for ours: other case, spaces, full-width signs.
_LOOK_ALIKE = re.compile(r"[<＜﹤]\s*[/／]?\s*memory\b", re.IGNORECASE)


class Marks:
    """Makes the marks of one entity's packs and knows them again, without a note of any.

    A mark is 24 characters of 32: half are random, half are the beginning of their HMAC-SHA256 (RFC 2104), 60 bits
    each. A mark that was shown tells nothing of another.

    Args:
        key: The entity's own, 32 random bytes that nobody else has.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def new(self) -> str:
        """Return a fresh mark."""
        random = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
        return random + self._proof(random)

    def known(self, mark: str) -> bool:
        """Tell whether a mark was made with this key."""
        return hmac.compare_digest(mark[_RANDOM:].encode(), self._proof(mark[:_RANDOM]).encode())

    def _proof(self, random: str) -> str:
        digest = hmac.digest(self._key, random.encode(), hashlib.sha256)
        return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_PROOF])


def fenced(mark: str, body: str) -> str:
    """Return a body, whose memory text is escaped already, inside the fence of a mark."""
    return f"<memory-{mark}>\n{body}\n</memory-{mark}>"


def escaped(text: str) -> str:
    """Return memory text in which nothing looks like a fence: the sign that opens one becomes ``‹``."""
    return _LOOK_ALIKE.sub(lambda found: "‹" + found[0][1:], text)


def marks_in(text: str) -> list[str]:
    """Return the marks of the whole fences in a text, in order, each once: those worth checking."""
    return list(dict.fromkeys(found[1] for found in _SPAN.finditer(text)))


def strip_known(text: str, known: Callable[[str], bool]) -> str:
    """Return a text without the fenced spans whose mark is known; everything else stays as it was.

    A span that was cut before its end is kept: nothing tells where it would end.
    """
    return _SPAN.sub(lambda found: "" if known(found[1]) else found[0], text)
