"""Requests that nobody's client sends: refused in one shape, never a traceback, and bounded before anybody is known."""

from __future__ import annotations

import http.client
import json
import random
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from pps.server.link import OwnerConnection
from pps.server.owner_socket import HOME_HEADER, home_header
from tests.integration.interfaces.serving import Served
from tests.waiting import PATIENCE_S

ROUTES = (
    *(("GET", path) for path in ("/health", "/metrics", "/owner/status", "/mcp", "/nothing")),
    *(("POST", path) for path in ("/mcp", "/owner/hooks", "/v1/task_claim", "/v1/%00", "/v1/%ff")),
    *(
        ("POST", f"/v1/{verb}")
        for verb in ("remember", "recall", "get", "forget", "add_event", "timeline")
    ),
    *(
        ("POST", f"/v1/{action}")
        for action in ("entity_show", "entity_create", "token_issue", "router_create")
    ),
    *(
        ("POST", f"/v1/{action}")
        for action in ("route_add", "route_find", "watch_list", "router_revoke", "x")
    ),
    *(
        ("POST", f"/v1/{task}")
        for task in ("import", "export", "watch_add", "anchors_import", "jobs_list")
    ),
    *(("POST", f"/v1/{task}") for task in ("jobs_drop", "doctor", "reindex", "watch_remove", "x")),
)
FIELDS = (
    "entity",
    "name",
    "path",
    "paths",
    "arguments",
    "ids",
    "roots",
    "id",
    "state",
    "limit",
    "after",
    "at",
    "size",
)
VALUES: tuple[Any, ...] = (
    *(
        "",
        "ana",
        "\ud800",
        "a\0b",
        "/\0",
        "/work/\ud800",
        "/" * 5000,
        "../x",
        "x" * 300,
        "²",
        "1e9",
        "/proc/self/mem",
    ),
    *(
        None,
        True,
        0,
        -1,
        1e300,
        float("nan"),
        float("inf"),
        10**30,
        2**63,
        [],
        {},
        ["\ud800"],
        ["/\0"],
        [[[]]],
    ),
    {"content": "\ud800"},
    {"ids": ["\ud800"]},
    {"query": "a\0b", "limit": 10**30},
)


def asked(
    served: Served, method: str, path: str, headers: dict[str, str], body: bytes = b""
) -> tuple[int, bytes]:
    if HOME_HEADER in headers:
        opened: http.client.HTTPConnection = OwnerConnection(served.run, 30)
    else:
        opened = http.client.HTTPConnection("127.0.0.1", served.run.port, timeout=PATIENCE_S)
    with closing(opened) as connection:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            connection.putheader(name, value.encode("latin-1", "replace"))
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.read()


def hook(**more: Any) -> dict[str, Any]:
    return {"id": "0" * 32, "at": 1.0, "event": "Stop", "session": "s", "entity": "ana", **more}


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "http://a]b", "//", "http://\u2100"])
def test_a_malformed_origin_is_refused_on_every_route(served: Served, origin: str) -> None:
    for path in ("/health", "/mcp", "/owner/status"):
        assert asked(served, "GET", path, {"Origin": origin})[0] == 403


def test_a_port_of_other_digits_is_no_port_of_ours(served: Served) -> None:
    for host, status in (
        ("127.0.0.1:²", 421),
        ("localhost:³¹", 421),
        ("127.0.0.1:", 421),
        ("127.0.0.1:80", 200),
    ):
        assert asked(served, "GET", "/health", {"Host": host})[0] == status, host


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/entity_show", {"name": "\ud800"}),
        ("/v1/reindex", {"entity": "a\ud800"}),
        ("/owner/hooks", hook(at=1e300)),
        ("/owner/hooks", hook(at=float("inf"))),
        ("/owner/hooks", hook(entity="", project="/a\0b")),
        ("/owner/hooks", hook(transcript="/a\0b")),
        ("/owner/hooks", hook(transcript="/etc/hostname", size=10**30)),
        ("/v1/route_find", {"path": "/a\0b"}),
    ],
)
def test_what_no_name_time_or_path_can_be_is_a_wrong_request(
    served: Served, path: str, body: dict[str, Any]
) -> None:
    served.create("ana")
    status, said = asked(served, "POST", path, bearer(served), json.dumps(body).encode())
    assert status in (200, 400, 404), said


def bearer(served: Served) -> dict[str, str]:
    """Return the headers of the owner's requests, which go over the server's socket."""
    return {HOME_HEADER: home_header(str(served.home)), "Content-Type": "application/json"}


def requests(seed: int) -> Iterator[tuple[str, str, dict[str, str], bytes]]:
    chance = random.Random(seed)  # noqa: S311 - requests, no secrets
    for _ in range(250):
        method, path = chance.choice(ROUTES)
        fields = {name: chance.choice(VALUES) for name in chance.sample(FIELDS, 4)}
        if path == "/owner/hooks":
            fields = hook(**fields)
        elif chance.random() < 0.7:
            fields["entity"] = "ana"
        odd = {
            "Origin": "http://[",
            "Mcp-Session-Id": "\ud800".encode("utf-8", "replace").decode(),
            "Accept": "²",
        }
        extra = chance.sample(list(odd.items()), chance.randint(0, 1))
        yield method, path, dict(extra), json.dumps(fields).encode()


def test_no_request_is_answered_with_a_traceback(served: Served) -> None:
    served.create("ana")
    log = served.home / "test-server.log"
    before = log.read_text().count("Traceback")
    for method, path, extra, body in requests(20261124):
        status, said = asked(served, method, path, {**bearer(served), **extra}, body)
        assert status != 500, (method, path, body, said)
        assert b'"internal"' not in said, (method, path, body, said)
    assert log.read_text().count("Traceback") == before
    assert asked(served, "GET", "/health", {})[0] == 200


@pytest.mark.parametrize(
    "part", [b"GET / HTTP/1.1\r\nX: ", b"GET /", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"]
)
def test_an_endless_head_is_cut_off_before_anybody_is_asked_who_they_are(
    served: Served, part: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", served.run.port), timeout=PATIENCE_S) as stranger:
        stranger.sendall(part)
        piece = b"a: b\r\n" * 2_000 if part.endswith(b"\n") else b"a" * 12_000
        assert taken(stranger, piece) < 8_000_000


def taken(stranger: socket.socket, piece: bytes) -> int:
    """Return how many bytes the server took before it hung up, at most 8 MB."""
    sent = 0
    while sent < 8_000_000:
        try:
            stranger.sendall(piece)
        except OSError:  # reset or broken, as the system likes
            break
        sent += len(piece)
    return sent
