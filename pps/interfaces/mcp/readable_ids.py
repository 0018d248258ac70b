"""Finds the id of a JSON-RPC request in bytes that need not be JSON, however long they are.

The bytes are read as tokens of JSON. An id counts when it is a whole value of the outermost object,
and is the only one. Behind the first token that breaks the grammar it counts only where all
brackets are closed by the end: a quote too few or too many makes text look like structure, but
hardly structure that ends in step.
"""

from __future__ import annotations

import json
import re

_TOKEN = re.compile(
    rb'(?P<string>"(?:[^"\\]++|\\.)*+(?P<end>"?))|(?P<mark>[\[\]{}:,])|(?P<word>[^\s"\[\]{}:,]++)',
    re.DOTALL,
)
_REST_OF_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+(?P<end>"?)', re.DOTALL)
_WORD = re.compile(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_PAIR = {b"}": b"{", b"]": b"["}
_BOM = b"\xef\xbb\xbf"

_MAX_TOKENS = 500_000
"""About half a second of scanning; what comes later is not looked at."""
_MAX_TOKEN = 64 * 1024
"""Most bytes of a token that are kept: a longer text is no id."""


class IdScanner:
    """Takes the bytes of one message in pieces of any size; ``result`` is asked at their end.

    Memory is bounded by the depth that ``_MAX_TOKENS`` allows and ``_MAX_TOKEN``; each byte is read
    once.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._is_in_long_string = False
        self._is_over = False
        self._tokens = 0
        self._open: list[bytes] = []
        self._expected = "value"
        self._key: bytes | None = None
        self._value: bytes | None = None
        self._is_broken = False
        self._ids: list[tuple[bytes | None, bool]] = []
        """Ids of the outermost object (None: no scalar), and whether each follows a fault."""

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        if self._is_over:
            return
        data = self._rest + data
        start = 0
        self._rest = b""
        if not self._tokens and data.startswith(_BOM):
            start = len(_BOM)
        if self._is_in_long_string:
            start = self._skip_string(data)
        for match in _TOKEN.finditer(data, start):
            if _is_unfinished(match):
                self._keep(data[match.start() :])
                return
            self._take(match.group("mark") or match.group(), match)
            if self._is_over:
                return

    def result(self) -> object:
        """Return the id: a text, a number, or None where there is none that is beyond doubt."""
        is_balanced = not self._is_over and not self._open and not self._rest
        ids = [value for value, is_behind_fault in self._ids if is_balanced or not is_behind_fault]
        if len(ids) != 1 or ids[0] is None:
            return None
        try:
            value: object = json.loads(ids[0])
        except ValueError:
            return None
        return value

    def _keep(self, token: bytes) -> None:
        """Keep an unfinished token for the next piece; of a long text only that it goes on."""
        if not token.startswith(b'"') or len(token) <= _MAX_TOKEN:
            self._rest = token
            self._is_over = len(token) > _MAX_TOKEN
            return
        self._is_in_long_string = True
        self._rest = b"\\" if _ends_in_escape(token) else b""

    def _skip_string(self, data: bytes) -> int:
        match = _REST_OF_STRING.match(data)
        end = match.end() if match else 0
        if not match or not match.group("end"):
            self._rest = data[end:]  # a lone backslash
            return len(data)
        self._is_in_long_string = False
        self._take_value(None, is_string=True)
        return end

    def _take(self, token: bytes, match: re.Match[bytes]) -> None:
        self._tokens += 1
        if self._tokens > _MAX_TOKENS:
            self._is_over = True
        elif match.group("mark") is None:
            is_sound = match.group("string") is not None or bool(_WORD.fullmatch(token))
            self._is_broken |= not is_sound
            self._take_value(token if is_sound else None, is_string=token.startswith(b'"'))
        elif token in (b"{", b"["):
            self._expect("value")
            self._open.append(token)
            self._expected = "key" if token == b"{" else "value"
        elif token in _PAIR:
            self._close(token)
        else:
            self._separate(token)

    def _expect(self, state: str) -> None:
        self._is_broken |= self._expected != state

    def _take_value(self, token: bytes | None, *, is_string: bool) -> None:
        is_outermost = len(self._open) == 1
        if self._expected == "key" and is_string:
            self._expected = "colon"
            self._key = token if is_outermost else self._key
            return
        self._expect("value")
        self._expected = "end"
        self._value = token if is_outermost else self._value

    def _separate(self, token: bytes) -> None:
        if token == b":":
            self._expect("colon")
            self._expected = "value"
            return
        self._expect("end")
        self._end_member()
        self._expected = "key" if self._open and self._open[-1] == b"{" else "value"

    def _close(self, token: bytes) -> None:
        if not self._open or self._open[-1] != _PAIR[token]:
            self._is_broken = self._is_over = True
            return
        self._is_broken |= self._expected in ("colon", "value") and token == b"}"
        self._end_member()
        self._open.pop()
        self._expected = "end"
        self._value = None

    def _end_member(self) -> None:
        """Note the member of the outermost object that ends here, if it is its id."""
        if len(self._open) != 1 or self._open[0] != b"{":
            return
        if self._key is not None and _is_id(self._key):
            self._ids.append((self._value, self._is_broken))
        self._key = self._value = None


def _is_unfinished(match: re.Match[bytes]) -> bool:
    if match.group("string") is not None:
        return not match.group("end")
    return match.group("word") is not None and match.end() == len(match.string)


def _is_id(key: bytes) -> bool:
    try:
        return json.loads(key) == "id"
    except ValueError:
        return False


def _ends_in_escape(token: bytes) -> bool:
    return (len(token) - len(token.rstrip(b"\\"))) % 2 == 1
