"""A message that cannot be decoded is answered, over stdio and over HTTP, and the server goes on serving."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pps.interfaces.mcp import messages
from pps.interfaces.mcp.messages import Request, Undecodable
from tests.integration.interfaces.serving import Served
from tests.integration.interfaces.test_hostile_requests import asked
from tests.unit.test_mcp_messages import UNDECODABLE
from tests.waiting import PATIENCE_S

_PATIENCE_S = 60.0


class StdioClient:
    """A client of ``pps mcp`` that writes any bytes and reads lines."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin
        self.process = process
        self._stdin = process.stdin
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._pings = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def write(self, data: bytes) -> None:
        self._stdin.write(data)
        self._stdin.flush()

    def read(self) -> dict[str, Any] | None:
        """Return the next message; None when the stream has ended."""
        line = self._lines.get(timeout=_PATIENCE_S)
        return cast("dict[str, Any]", json.loads(line)) if line else None

    def answers_to(self, line: bytes) -> list[dict[str, Any]]:
        """Return what comes for a line before the answer to a ping that follows it."""
        self._pings += 1
        ping = f"ping-{self._pings}"
        self.write(
            line + json.dumps({"jsonrpc": "2.0", "id": ping, "method": "ping"}).encode() + b"\n"
        )
        answers: list[dict[str, Any]] = []
        while (answer := self.read()) is not None and answer.get("id") != ping:
            answers.append(answer)
        assert answer == {"jsonrpc": "2.0", "id": ping, "result": {}}
        return answers

    def close(self) -> list[dict[str, Any]]:
        """End the input; return what is still answered."""
        self._stdin.close()
        answers: list[dict[str, Any]] = []
        while (answer := self.read()) is not None:
            answers.append(answer)
        assert self.process.wait(PATIENCE_S) == 0
        return answers


@contextlib.contextmanager
def stdio_client(served: Served, entity: str = "ana") -> Iterator[StdioClient]:
    served.create(entity)
    with subprocess.Popen(
        [sys.executable, "-m", "pps", "mcp", "--entity", entity],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=served.env,
    ) as process:
        try:
            yield StdioClient(process)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[StdioClient]:
    with stdio_client(served) as client:
        yield client


@pytest.mark.parametrize(("raw", "code", "ids"), UNDECODABLE, ids=lambda value: str(value)[:40])
def test_a_line_that_cannot_be_decoded_is_answered_and_the_next_one_served(
    client: StdioClient, raw: bytes, code: int, ids: tuple[Any, ...]
) -> None:
    answers = client.answers_to(raw + b"\n")
    expected = ids if raw.strip() else ()  # a blank line is passed over
    assert [answer["id"] for answer in answers] == list(expected)
    assert all(answer["error"]["code"] == code for answer in answers)


@pytest.mark.parametrize("id_is_first", [True, False])
def test_a_line_of_any_length_is_answered_with_its_id(
    client: StdioClient, id_is_first: bool
) -> None:
    text = b'"params":{"name":"remember","arguments":{"content":"' + b"x" * 40_000_000 + b'"}}'
    parts = [b'"id":"big"', b'"jsonrpc":"2.0"', b'"method":"tools/call"', text]
    line = b"{" + b",".join(parts if id_is_first else parts[::-1]) + b"}\n"
    [answer] = client.answers_to(line)
    assert answer["id"] == "big"
    assert "16 MiB" in answer["error"]["message"]


def test_blank_lines_and_responses_are_passed_over(client: StdioClient) -> None:
    for line in (b"\n", b"\r\n", b"  \t \n", b'{"jsonrpc":"2.0","id":1,"result":{}}\n'):
        assert client.answers_to(line) == []


def test_notifications_of_any_kind_are_never_answered(client: StdioClient) -> None:
    for params in ({}, {"requestId": None}, {"requestId": [1]}, {"requestId": "none"}):
        notification = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        assert client.answers_to(json.dumps(notification).encode() + b"\n") == []
    assert client.answers_to(b'{"jsonrpc":"2.0","method":"no/such","params":{"x":1}}\n') == []


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("initialize", {}),
        ("initialize", {"protocolVersion": 5, "capabilities": {}, "clientInfo": {}}),
        ("initialize", {"protocolVersion": "2025-06-18", "capabilities": [], "clientInfo": {}}),
        ("tools/call", {}),
        ("tools/call", {"name": 5}),
        ("tools/call", {"name": "recall", "arguments": [1]}),
        ("tools/call", {"name": "recall", "_meta": 5}),
        ("tools/call", {"name": "\n\x00é", "arguments": {}}),
        ("tools/call", {"name": "recall", "_meta": {"progressToken": [1]}}),
        ("tools/list", {"cursor": 5}),
        ("no/such", {}),
        ("", {}),
        ("ping\n", {}),
    ],
)
def test_a_request_that_no_method_takes_is_answered_with_an_error(
    client: StdioClient, method: str, params: dict[str, Any]
) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    client.write(json.dumps(request).encode() + b"\n")
    answer = client.read()
    assert answer is not None
    assert answer["id"] == 1
    assert answer["error"]["code"] in (-32601, -32602)
    assert client.answers_to(b"") == []


@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28", "", "x" * 100_000])
def test_an_unknown_version_is_offered_the_latest(client: StdioClient, version: str) -> None:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": 5}}
    request = {"jsonrpc": "2.0", "id": "v", "method": "initialize", "params": params}
    [answer] = client.answers_to(json.dumps(request).encode() + b"\n")
    assert answer["result"]["protocolVersion"] == "2025-11-25"


def test_a_request_of_an_unknown_present_version_names_the_ones_that_are_served(
    client: StdioClient,
) -> None:
    for version, code in (("2030-01-01", -32022), (5, -32602), ("2026-07-28", -32602)):
        meta = {"io.modelcontextprotocol/protocolVersion": version}
        if version == "2030-01-01":
            meta["io.modelcontextprotocol/clientCapabilities"] = {}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        [answer] = client.answers_to(json.dumps(request).encode() + b"\n")
        assert answer["error"]["code"] == code


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":8,"method":"ping"}', {"result": {}}),
        (b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"na', {"error": -32700}),
    ],
)
def test_the_input_may_end_within_a_line(
    served: Served, tail: bytes, expected: dict[str, Any]
) -> None:
    with stdio_client(served) as client:
        client.write(tail)
        [answer] = client.close()
    assert answer["id"] == 8
    assert answer.get("result") == expected.get("result")
    assert answer.get("error", {}).get("code") == expected.get("error")


def test_calls_in_hand_are_answered_after_the_end_of_the_input(served: Served) -> None:
    with stdio_client(served) as client:
        for number in range(5):
            call = {"name": "remember", "arguments": {"content": f"Line {number}."}}
            request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
            client.write(json.dumps(request).encode() + b"\n")
        answers = client.close()
    assert sorted(answer["id"] for answer in answers) == list(range(5))
    assert not any(answer["result"].get("isError") for answer in answers)


def test_two_requests_under_one_id_are_both_answered(client: StdioClient) -> None:
    call = {"name": "recall", "arguments": {"query": "bees"}}
    request = {"jsonrpc": "2.0", "id": "twice", "method": "tools/call", "params": call}
    client.write((json.dumps(request) + "\n").encode() * 2)
    for _ in range(2):
        answer = client.read()
        assert answer is not None
        assert answer["id"] == "twice"
        assert "result" in answer
    assert client.answers_to(b"") == []


GOOD = {
    "jsonrpc": "2.0",
    "id": "fuzz",
    "method": "ping",
    "params": {"text": 'a "quoted" \\ text', "list": [1, 2.5, None, True], "object": {"id": 3}},
}
PIECES = st.sampled_from(
    [b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b"\t", b"\0", b"\r", b"\xef\xbb\xbf", b"\xff",
     b"\\ud83d", b'"id":', b"NaN", b"1e999", b"9" * 5_000, b"null", b'{"id":7}', b" "]
)  # fmt: skip


@st.composite
def broken_lines(draw: st.DrawFn) -> bytes:
    """Draw a request that was changed at up to three places, or any bytes."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=60)).replace(b"\n", b" ")
    members = {name: GOOD[name] for name in draw(st.permutations(sorted(GOOD)))}
    line = json.dumps(members).encode()
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(line)))
        end = draw(st.integers(start, min(len(line), start + 4)))
        line = line[:start] + draw(PIECES) + line[end:]
    return line


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(line=broken_lines())
def test_each_line_with_a_readable_id_is_answered_exactly_once(
    client: StdioClient, line: bytes
) -> None:
    answers = client.answers_to(line + b"\n")
    code, ids = expected_answers(line + b"\n")
    assert [answer["id"] for answer in answers] == ids
    assert [answer.get("error", {}).get("code") for answer in answers] == [code] * len(ids)


def expected_answers(line: bytes) -> tuple[int | None, list[Any]]:
    """Return the code and the ids of the errors that answer a line; no code for a request that is served."""
    if not line.strip():
        return None, []
    try:
        message = messages.decode(line)
    except Undecodable as error:
        return error.code, list(error.ids)
    if not isinstance(message, Request):
        return None, []
    return None if message.method == "ping" else messages.METHOD_NOT_FOUND, [message.id]


ERAS = {
    "legacy": {"MCP-Protocol-Version": "2025-11-25"},
    "present": {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "ping"},
}


@pytest.mark.parametrize("era", ERAS)
def test_a_body_that_cannot_be_decoded_is_refused_with_its_id(served: Served, era: str) -> None:
    headers = {
        "Authorization": f"Bearer {served.create('ana')}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **ERAS[era],
    }
    for raw, code, ids in UNDECODABLE:
        status, body = asked(served, "POST", "/mcp", headers, raw)
        answer = json.loads(body)
        assert status == 400, raw[:80]
        assert answer["error"]["code"] == code, raw[:80]
        assert answer["id"] == (ids[0] if len(ids) == 1 else None), raw[:80]
    status, body = asked(served, "POST", "/mcp", headers, b'"' + b"x" * 17_000_000)
    assert status == 413
    assert json.loads(body)["error"]["code"] == -32600


def test_a_body_for_no_token_is_not_decoded(served: Served) -> None:
    for token in ("", "Bearer nonsense"):
        headers = {"Authorization": token, "Content-Type": "application/json"}
        assert asked(served, "POST", "/mcp", headers, b"{oops")[0] == 401
