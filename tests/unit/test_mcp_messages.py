"""A JSON-RPC message is decoded strictly, and who waits for an answer to one that cannot be is read without a guess."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import mcp_types.version as protocol_versions
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pps.core import json_bounds
from pps.interfaces.mcp import messages, offer
from pps.interfaces.mcp.messages import Notification, Request, Response, Undecodable
from pps.interfaces.mcp.readable_ids import IdScanner

PARSE, INVALID, PARAMS = messages.PARSE_ERROR, messages.INVALID_REQUEST, messages.INVALID_PARAMS
_CALL = b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":'

UNDECODABLE: list[tuple[bytes, int, tuple[Any, ...]]] = [
    (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"c":"\\ud83d"}}', PARSE, (1,)),
    (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"\\udfff":1}}', PARSE, (1,)),
    (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', PARSE, (1,)),
    (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"c":"a\tb"}}', PARSE, (1,)),
    (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"c":"a\0b"}}', PARSE, (1,)),
    (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', PARSE, (1,)),
    (b'{"jsonrpc":"2.0","id":"\xff","method":"x"}', PARSE, (None,)),
    (b'{"jsonrpc":"2.0","id":"\\ud83d","method":"x"}', PARSE, (None,)),
    (_CALL + b"oops}}", PARSE, (5,)),
    (_CALL + b'"na', PARSE, (5,)),
    (_CALL, PARSE, (5,)),
    (b'{"jsonrpc":"2.0","id":5', PARSE, (None,)),
    (b'{"jsonrpc":"2.0","id":"5', PARSE, (None,)),
    (b'{"method":"tools/call","params":{"name": oops},"jsonrpc":"2.0","id":5}', PARSE, (5,)),
    (b'{"params":{"c":"he said "hi", "id":7}"},"method":"x","id":5}', PARSE, (5,)),
    (b'{"params":{"c":"he said "hi", "id":7}"', PARSE, (None,)),
    (b'{"jsonrpc":"2.0","id":5,"method":"ping",}', PARSE, (5,)),
    (b"{'id': 5, 'method': 'ping'}", PARSE, (None,)),
    (b'noise {"jsonrpc":"2.0","id":5,"method":"ping"}', PARSE, (5,)),
    (b'5}{"jsonrpc":"2.0","id":5,"method":"ping"}', PARSE, (None,)),
    (b'second half of a line"}}', PARSE, (None,)),
    (b'{"\\u0069d":5,"jsonrpc":"2.0","method":oops}', PARSE, (5,)),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', PARSE, (None,)),
    (b'{"id":1,"id":2,"method":oops}', PARSE, (None,)),
    (b'{"id":{"id":3},"method":oops}', PARSE, (None,)),
    (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"a":2}}', PARSE, (1,)),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}', PARSE, (1, 2)),
    (b'{"jsonrpc":"2.0","id":9,"method":"ping"} and more', PARSE, (9,)),
    (b'{"jsonrpc":"2.0","id":4,"method":"x","params":{"n":NaN}}', PARSE, (4,)),
    (b'{"jsonrpc":"2.0","id":4,"method":"x","params":{"n":-Infinity}}', PARSE, (4,)),
    (b'{"jsonrpc":"2.0","id":4,"method":"x","params":{"n":1e999}}', PARSE, (4,)),
    (b'{"jsonrpc":"2.0","id":4,"method":"x","params":{"n":' + b"1" * 10_000 + b"}}", PARSE, (4,)),
    (b'{"jsonrpc":"2.0","id":' + b"1" * 10_000 + b',"method":"x"}', PARSE, (None,)),
    (b'{"jsonrpc":"2.0","id":Infinity,"method":"x"}', PARSE, (None,)),
    (b"\0\0\0", PARSE, (None,)),
    (b"", PARSE, (None,)),
    (b'{"jsonrpc":"2.0","id":3,"method":"x","params":' + b"[" * 1_000_000, INVALID, (3,)),
    (b'{"method":"x","params":' + b"[" * 999 + b"]" * 999 + b',"id":"3"}', INVALID, ("3",)),
    (b'{"id":3,"params":[' + b"1," * 200_000 + b'1],"method":"x"}', INVALID, (3,)),
    (b"[]", INVALID, (None,)),
    (b"[1,2]", INVALID, (None,)),
    (b'[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":"2","method":"b"}]', INVALID, (1, "2")),
    (b'[{"jsonrpc":"2.0","method":"a"}]', INVALID, ()),
    (b'[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"},{"id":3,"result":{}}]', INVALID, (1,)),
    (b"[" + b",".join(b'{"id":%d,"method":"a"}' % n for n in range(2_000)) + b"]", INVALID, (None,)),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID, (1.5,)),
    (b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}', PARSE, (None,)),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID, (None,)),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID, (None,)),
    (b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', INVALID, (None,)),
    (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', INVALID, (None,)),
    (b'{"jsonrpc":"2.0","id":4}', INVALID, (4,)),
    (b'{"jsonrpc":"2.0","id":4,"method":7}', INVALID, (4,)),
    (b'{"jsonrpc":"1.0","id":4,"method":"ping"}', INVALID, (4,)),
    (b'{"id":4,"method":"ping"}', INVALID, (4,)),
    (b'{"jsonrpc":"2.0","id":4,"method":"x","params":"s"}', PARAMS, (4,)),
    (b'{"jsonrpc":"2.0","id":4,"method":"x","params":[1]}', PARAMS, (4,)),
    (b'{"jsonrpc":"2.0","method":"notifications/progress","params":"s"}', PARAMS, ()),
    (b'{"jsonrpc":"2.0","method":7}', INVALID, ()),
    (b'{"jsonrpc":"2.0","method":"x","params":{"c":"\\ud83d"}}', PARSE, ()),
    (b'{"jsonrpc":"2.0","id":4,"result":{"c":"\\ud83d"}}', PARSE, ()),
    (b"{}", INVALID, (None,)),
    (b"5", INVALID, (None,)),
    (b"null", INVALID, (None,)),
    (b'"text"', INVALID, (None,)),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "code", "ids"), UNDECODABLE, ids=lambda value: str(value)[:40])
def test_what_cannot_be_decoded_says_why_and_who_waits(
    raw: bytes, code: int, ids: tuple[Any, ...]
) -> None:
    for line in (raw, raw + b"\n", raw + b"\r\n"):
        with pytest.raises(Undecodable) as caught:
            messages.decode(line)
        assert (caught.value.code, caught.value.ids) == (code, ids)
        assert len(caught.value.message) < 200
        assert [answer["id"] for answer in caught.value.answers] == list(ids)
        json.dumps(caught.value.answers, allow_nan=False).encode()


def test_what_is_valid_is_decoded() -> None:
    request = {"jsonrpc": "2.0", "id": "x" * 100_000, "method": "a\0b", "params": {"c": "😀\ud7ff"}}
    for text in (json.dumps(request), json.dumps(request, ensure_ascii=False)):
        assert messages.decode(text.encode()) == Request("x" * 100_000, "a\0b", {"c": "😀\ud7ff"})
    assert messages.decode(b' {"jsonrpc":"2.0","id":-1,"method":"m","params":null}\r\n') == Request(
        -1, "m", {}
    )
    assert messages.decode(b'{"jsonrpc":"2.0","method":"m"}') == Notification("m", {})
    assert messages.decode(b'{"jsonrpc":"2.0","id":1,"result":5}') == Response()
    assert messages.decode(b'{"jsonrpc":"2.0","id":null,"error":{}}') == Response()


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "a", '"id":3,']), inner, max_size=3)
    ),
    max_leaves=8,
)
IDS = st.integers(-(2**60), 2**60) | st.text(max_size=12).filter(lambda text: text.isprintable())


@st.composite
def requests(draw: st.DrawFn) -> tuple[Any, bytes, range]:
    """Draw a request with its members in any order and any text in its parameters; and where its id stands."""
    members: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": draw(IDS),
        "method": "tools/call",
        "params": {"name": "remember", "arguments": draw(JSON_VALUES)},
    }
    is_ascii = draw(st.booleans())
    parts = [
        f'"{name}": {json.dumps(members[name], ensure_ascii=is_ascii)}'
        for name in draw(st.permutations(sorted(members)))
    ]
    raw = "{" + ", ".join(parts) + "}"
    number = next(n for n, part in enumerate(parts) if part.startswith('"id"'))
    before = ("{" + "".join(f"{part}, " for part in parts[:number])).encode()
    span = range(len(before), len(before) + len(parts[number].encode()) + 1)
    return members["id"], raw.encode(), span


@settings(max_examples=400, deadline=None)
@given(requests(), st.data())
def test_a_request_that_is_cut_or_changed_is_never_answered_under_another_id(
    request: tuple[Any, bytes, range], data: st.DataObject
) -> None:
    request_id, raw, span = request
    start = data.draw(st.integers(0, len(raw)))
    end = data.draw(st.integers(start, min(len(raw), start + 3)))
    noise = data.draw(st.sampled_from([b"", b'"', b"{", b"}", b"]", b",", b"\t", b"\xff", b"oops"]))
    is_cut = data.draw(st.booleans())
    is_id_whole = is_cut or end <= span.start or start >= span.stop
    ids = readable_ids(raw[:start] if is_cut else raw[:start] + noise + raw[end:])
    assert not is_id_whole or ids in ([], [request_id])


def readable_ids(raw: bytes) -> list[Any]:
    """Return the ids that an undecodable message is answered with, but null; none for one that can be decoded."""
    try:
        messages.decode(raw)
    except Undecodable as error:
        return [request_id for request_id in error.ids if request_id is not None]
    return []


@settings(max_examples=100, deadline=None)
@given(requests(), st.integers(1, 64))
def test_the_id_is_found_in_pieces_of_any_size(
    request: tuple[Any, bytes, range], size: int
) -> None:
    request_id, raw, _ = request
    scanner = IdScanner()
    for start in range(0, len(raw), size):
        scanner.feed(raw[start : start + size])
    assert scanner.result() == request_id


@pytest.mark.parametrize("escapes", [b"", b"\\\\", b'\\"', b"\\"])
def test_the_id_behind_a_text_of_any_length_is_found(escapes: bytes) -> None:
    """The TypeScript SDK writes the id last. Pieces end within the text, behind a backslash too."""
    text = b"x" * 65_535 + escapes * 70_001 + b"n" + b"y" * 300_000
    for size in (65_536, 65_537, 131_072):
        scanner = IdScanner()
        raw = b'{"params":{"c":"' + text + b'"},"method":"x","id":"last"}\n'
        for start in range(0, len(raw), size):
            scanner.feed(raw[start : start + size])
        assert scanner.result() == "last"


@pytest.mark.parametrize(
    "piece", [b"[", b'"', b'"a",', b"{", b"1 ", b"}", b'{"id":1},', b'\\"', b"\xff"]
)
@pytest.mark.timeout(120)
def test_a_hostile_message_is_scanned_in_bounded_time_and_memory(piece: bytes) -> None:
    raw = b'{"id":7,"x":' + piece * (json_bounds.MAX_BYTES // len(piece))
    scanner = IdScanner()
    scanner.feed(raw)
    assert scanner.result() in (7, None)


def test_the_versions_of_the_protocol_are_those_of_its_library() -> None:
    assert offer.HANDSHAKE_VERSIONS == protocol_versions.HANDSHAKE_PROTOCOL_VERSIONS
    assert (offer.MODERN_VERSION,) == protocol_versions.MODERN_PROTOCOL_VERSIONS


def test_the_bridge_loads_nothing_but_the_standard_library_and_little_of_it() -> None:
    """A client gives up after seconds; on a busy machine the protocol's library alone takes longer to load."""
    look = (
        "import sys; before = set(sys.modules); import pps.interfaces.mcp.bridge; "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    ended = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    loaded = set(ended.stdout.split())
    assert loaded - sys.stdlib_module_names == {"pps"}
    assert not loaded & {"asyncio", "sqlite3", "concurrent"}
