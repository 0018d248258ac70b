"""JSON-RPC messages as they arrive: decoded strictly, and answered even where they cannot be.

A message that cannot be decoded raises ``Undecodable``, which names who waits for an answer: the
ids that can be read without a guess. Only the standard library is imported, since ``pps mcp`` must
answer before a client gives up.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from pps.core import json_bounds
from pps.core.errors import InvalidRequest
from pps.interfaces.mcp.readable_ids import IdScanner

RequestId: TypeAlias = "str | int | float"
"""The protocol allows texts and integers.

A fraction is refused, but its sender still waits for an answer to it.
"""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_ERROR = -32000

MAX_DIGITS = 1_000
"""Most digits of an integer; Python itself reads no more than 4,300."""
_MAX_BATCH_IDS = 100
"""Most requests of a batch that are answered one by one."""
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_SPACE = re.compile(r"[ \t\r\n]*")
_BOM = "\ufeff"
_BATCH = "is a batch, which is not supported: send each message on a line of its own"


@dataclass(frozen=True, slots=True)
class Request:
    """A call that waits for an answer with its id."""

    id: RequestId
    method: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that nobody waits for an answer to."""

    method: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Response:
    """An answer to a request of ours. The server sends none, so each is dropped."""


Message: TypeAlias = "Request | Notification | Response"


class Undecodable(Exception):
    """A message that is not valid JSON-RPC.

    Attributes:
        code: The JSON-RPC error code.
        message: What is wrong with it, without any of its text.
        ids: Who waits for an answer; ``(None,)`` where no id can be read, and empty for a
            notification or a response.
    """

    def __init__(self, code: int, message: str, ids: tuple[RequestId | None, ...]) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.ids = ids

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The error responses to send, each for one who waits."""
        return [error_response(request_id, self.code, self.message) for request_id in self.ids]


def error_response(
    request_id: RequestId | None, code: int, message: str, data: object = None
) -> dict[str, Any]:
    """Return a JSON-RPC error; ``data`` is left out when it is None."""
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def decode(raw: bytes) -> Message:
    """Return the message in bytes: one JSON object in UTF-8 within ``core.json_bounds``.

    Raises:
        Undecodable: The bytes are no message: no UTF-8, no JSON by RFC 8259, several values, a name
            twice in one object, a text with half a surrogate pair, a number out of bounds, or an
            object that is not JSON-RPC 2.0.
    """
    try:
        json_bounds.check_raw(raw, "message")
    except InvalidRequest as error:
        raise Undecodable(INVALID_REQUEST, error.message, _scanned_ids(raw)) from None
    try:
        value = _parse(raw)
    except _NotJson as error:
        raise Undecodable(PARSE_ERROR, f"message: {error}", _readable_ids(raw)) from None
    if isinstance(value, list):
        items = cast("list[Any]", value)
        raise Undecodable(INVALID_REQUEST, f"message: {_BATCH}", _waiting(items))
    if not isinstance(value, dict):
        raise Undecodable(INVALID_REQUEST, "message: must be a JSON object", (None,))
    return _message(cast("dict[str, Any]", value))


def too_large(scanner: IdScanner) -> Undecodable:
    """Return the refusal of a too large message, whose ids were scanned."""
    problem = json_bounds.TooLarge("message").message
    return Undecodable(INVALID_REQUEST, problem, (_id_or_none(scanner.result()),))


class _NotJson(ValueError):
    """Bytes are not JSON; the text names the problem and quotes nothing."""


def _parse(raw: bytes) -> object:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _NotJson(f"is not UTF-8 at byte {error.start}") from None
    if text.startswith(_BOM):
        raise _NotJson("begins with a byte order mark; send UTF-8 without one")
    try:
        value = _STRICT.decode(text)
    except json.JSONDecodeError as error:
        raise _NotJson(_syntax_problem(text, error)) from None
    except RecursionError:
        raise _NotJson("is nested too deeply") from None
    if _SURROGATE_ESCAPE.search(raw) and not _is_encodable(value):
        raise _NotJson("has half of a surrogate pair, which is no character")
    return value


def _syntax_problem(text: str, error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data" and text[error.pos] in "{[":
        return f"holds a second message from character {error.pos}: send one a line"
    problem = error.msg.removesuffix(" at")
    return f"is not JSON: {problem[0].lower()}{problem[1:]} at character {error.pos}"


def _is_encodable(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise _NotJson("has a name twice in one object")
    return values


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise _NotJson(f"has an integer of more than {MAX_DIGITS:,} digits")
    return int(digits)


def _fraction(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _NotJson("has a number that is too large")
    return value


def _constant(name: str) -> object:
    raise _NotJson(f"is not JSON: {name} is no number")


_STRICT = json.JSONDecoder(
    object_pairs_hook=_distinct,
    parse_int=_integer,
    parse_float=_fraction,
    parse_constant=_constant,
)


def _message(value: dict[str, Any]) -> Message:
    """Return an object as the message that it is; raise Undecodable where it is none."""
    if "method" not in value and ("result" in value or "error" in value):
        return Response()
    ids = _waiting([value])
    problem = _envelope_problem(value)
    if problem:
        raise Undecodable(INVALID_REQUEST, problem, ids)
    params = value.get("params")
    if params is not None and not isinstance(params, dict):
        raise Undecodable(INVALID_PARAMS, "params: must be an object", ids)
    named = cast("dict[str, Any]", params or {})
    if "id" in value:
        return Request(value["id"], value["method"], named)
    return Notification(value["method"], named)


def _envelope_problem(value: dict[str, Any]) -> str:
    if value.get("jsonrpc") != "2.0":
        return "jsonrpc: must be '2.0'"
    if "id" in value and (isinstance(value["id"], bool) or not isinstance(value["id"], str | int)):
        return "id: must be a string or an integer"
    if not isinstance(value.get("method"), str):
        return "method: must be a string"
    return ""


def _id_or_none(value: object) -> RequestId | None:
    """Return what an answer can carry as its id: a text that can be encoded, or a finite number.

    Else None.
    """
    if isinstance(value, str):
        return value if _is_encodable(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) else None


def _waiting(messages: Iterable[object]) -> tuple[RequestId | None, ...]:
    """Return the ids of the requests among messages.

    ``(None,)`` where none of them says what it is.

    Notifications and responses wait for nothing. Of very many, only one answer says what is wrong
    with them all.
    """
    ids: list[RequestId | None] = []
    silent = 0
    for message in messages:
        if not isinstance(message, dict):
            continue
        members = cast("dict[str, Any]", message)
        if "id" in members and ("method" in members or not members.keys() & {"result", "error"}):
            ids.append(_id_or_none(members["id"]))
        elif "method" in members or "result" in members or "error" in members:
            silent += 1
    readable = tuple(request_id for request_id in ids if request_id is not None)
    if 0 < len(readable) <= _MAX_BATCH_IDS:
        return readable
    return () if silent and not ids else (None,)


@dataclass(slots=True)
class _LenientObject:
    """An object of a broken message, with every name as often as it stands there."""

    pairs: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])

    def as_members(self) -> dict[str, Any]:
        """Return the values by name; the id is None where there are several."""
        members = dict(self.pairs)
        if sum(name == "id" for name, _ in self.pairs) > 1:
            members["id"] = None
        return members


def _lenient_integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= MAX_DIGITS else None


_LENIENT = json.JSONDecoder(
    object_pairs_hook=_LenientObject,
    parse_int=_lenient_integer,  # pyright: ignore[reportArgumentType] - None for an invalid id
    strict=False,
)


def _readable_ids(raw: bytes) -> tuple[RequestId | None, ...]:
    """Return the ids of requests in bytes that are not JSON, or break its stricter rules."""
    text = raw.decode("utf-8", "surrogateescape").lstrip(_BOM + " \t\r\n")
    values: list[object] = []
    position = 0
    try:
        while position < len(text) and len(values) <= _MAX_BATCH_IDS:
            value, end = _LENIENT.raw_decode(text, position)
            values.append(value)
            position = _end_of_space(text, end)
    except (ValueError, RecursionError):
        if not values:
            return _scanned_ids(raw)
    if len(values) == 1 and isinstance(values[0], list):
        values = cast("list[object]", values[0])
    return _waiting(
        value.as_members() if isinstance(value, _LenientObject) else value for value in values
    )


def _end_of_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _scanned_ids(raw: bytes) -> tuple[RequestId | None, ...]:
    scanner = IdScanner()
    scanner.feed(raw + b"\n")
    return (_id_or_none(scanner.result()),)
