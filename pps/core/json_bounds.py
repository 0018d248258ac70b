"""Bounds of JSON from outside, checked before a parser or a model builds values from it.

A parsed value takes 50 times its length in JSON, and a model that validates it makes an error for
each wrong part. So the number of values and the depth are bounded first, in one pass over the bytes
that stops at the bound.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from pps.core.errors import InvalidRequest

if TYPE_CHECKING:
    from pps.core.values import JSON

MAX_BYTES = 16 * 1024 * 1024
MAX_VALUES = 100_000
"""Most values in one request: items of lists, and names of objects.

The largest valid input has some 50,000.
"""
MAX_DEPTH = 100
MAX_ITEMS = 10_000
"""Most items of a list that has no bound of its own."""
MAX_NAMES = 5_000
"""Most names of an object that takes any name."""
LARGE_BYTES = 64 * 1024
"""From this length on, a body is checked and parsed in a thread."""
LARGE_VALUES = 500
"""From this number of values on, arguments are validated in a thread."""

_MAX_TOKENS = 8 * MAX_VALUES
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)


class TooLarge(InvalidRequest):
    """A request has more bytes than ``MAX_BYTES``."""

    def __init__(self, field: str = "body") -> None:
        super().__init__(field, f"must have at most {MAX_BYTES // 2**20} MiB")


def check_raw(raw: bytes | bytearray, field: str = "body") -> None:
    """Raise InvalidRequest where JSON (UTF-8) has too many values or too many levels.

    Whether it is JSON at all is left to the parser. Takes at most about 0.3 s, whatever the bytes
    are.
    """
    if sum(map(raw.count, (b"[", b"{", b","))) < MAX_DEPTH:
        return
    depth = values = 0
    for number, match in enumerate(_TOKEN.finditer(raw)):
        first = raw[match.start()]
        if first in b"[{":
            depth += 1
            values += 1
        elif first in b"]}":
            depth -= 1
        elif first == ord(","):
            values += 1
        _check_totals(field, values if number < _MAX_TOKENS else MAX_VALUES + 1, depth)


def check_values(value: JSON | Mapping[str, JSON], field: str = "arguments") -> int:
    """Return how many values a parsed JSON value holds.

    Raise InvalidRequest as ``check_raw`` does.
    """
    values = 0
    pending: list[tuple[Any, int]] = [(value, 1)]
    while pending:
        container, depth = pending.pop()
        children: Any = ()
        if isinstance(container, Mapping):
            children = cast("Mapping[str, Any]", container).values()
        elif isinstance(container, list | tuple):
            children = cast("list[Any]", container)
        else:
            continue
        values += len(children)
        _check_totals(field, values, depth)
        pending.extend((child, depth + 1) for child in children if _is_container(child))
    return values


def _is_container(value: object) -> bool:
    return isinstance(value, Mapping | list | tuple)


def _check_totals(field: str, values: int, depth: int) -> None:
    if values > MAX_VALUES:
        raise InvalidRequest(field, f"must hold at most {MAX_VALUES:,} values")
    if depth > MAX_DEPTH:
        raise InvalidRequest(
            field, f"is nested too deeply: at most {MAX_DEPTH} lists and objects within each other"
        )


def is_large(arguments: Mapping[str, JSON]) -> bool:
    """Tell whether arguments are so large that validating them would delay other requests."""
    values = length = 0
    pending: list[Any] = [arguments]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            length += len(value)
        elif isinstance(value, Mapping):
            children = cast("Mapping[str, Any]", value)
            values += len(children)
            pending.extend(children.values() if values <= LARGE_VALUES else ())
        elif isinstance(value, list | tuple):
            items = cast("list[Any]", value)
            values += len(items)
            pending.extend(items if values <= LARGE_VALUES else ())
        if values > LARGE_VALUES or length > LARGE_BYTES:
            return True
    return False


def read_object(raw: bytes | bytearray, field: str = "body") -> dict[str, JSON]:
    """Return the JSON object that bytes hold, of bounded size; no bytes are an empty one.

    Raises:
        InvalidRequest: They are not UTF-8, not JSON, not an object, or break a bound.
    """
    check_raw(raw, field)
    try:
        value = json.loads(raw.decode("utf-8-sig") or "{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidRequest(field, "must be a JSON object")
    return cast("dict[str, JSON]", value)


async def read_object_aside(raw: bytes | bytearray, field: str = "body") -> dict[str, JSON]:
    """Return ``read_object``'s; a large one is read in a thread."""
    if len(raw) < LARGE_BYTES:
        return read_object(raw, field)
    import asyncio  # not at the top: the bridge starts without it

    return await asyncio.to_thread(read_object, raw, field)
