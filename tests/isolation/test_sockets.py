"""S2-17, the sockets of pages: who may open one, what it may hear of, and that it ends when its session does."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from pps.interfaces.http.page.sockets import MOST_OF_SESSION
from pps.server.runfile import new_secret
from tests.browser_session import PageClient, link_of, page_of
from tests.integration.interfaces.serving import Served, serving
from tests.room_socket import RoomSocket, SocketProblem, connected, haven_of, room_socket
from tests.waiting import PATIENCE_S, wait_until

SECRET = "The vault code is 4711-canary."
MESSAGE = "0b7d5b0e-5a0a-4f6e-9a3b-6f1f0a8f2c11"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("sockets") / "home") as served:
        for name in ("ana", "ben"):
            served.create(name)
        served.link.call("remember", "ben", {"content": SECRET})
        yield served


def refused(page: PageClient, **more: Any) -> int:
    """Return the status of a socket that is refused before it is one."""
    with pytest.raises(InvalidStatus) as caught, connected(page, **more):
        pass
    assert SECRET not in str(caught.value.response.body)
    return caught.value.response.status_code


def problem_of(socket: RoomSocket, do: str, **fields: Any) -> dict[str, Any]:
    with pytest.raises(SocketProblem) as caught:
        socket.ask(do, **fields)
    return {name: caught.value.problem[name] for name in ("status", "code", "detail")}


def test_a_socket_opens_with_both_halves_of_a_session_from_its_origin_alone(
    served: Served,
) -> None:
    port = served.run.port
    for page, other in (
        (page_of(served, "ana"), page_of(served, "ana")),
        (haven_of(served), haven_of(served)),
    ):
        origins = (None, "null", f"http://127.0.0.1:{port + 1}", f"http://localhost:{port}")
        for origin in (*origins, "http://evil.example", f"ftp://127.0.0.1:{port}"):
            assert refused(page, origin=origin) == 403, origin
        for site in ("same-site", "cross-site", "none"):
            cookies = "; ".join(f"{name}={value}" for name, value in page.cookies.items())
            headers = {"Cookie": cookies, "Sec-Fetch-Site": site}
            assert refused(page, additional_headers=headers) == 403, site
        # No ticket: neither half, or one of them, or another session's.
        assert refused(page, additional_headers={}) == 401
        for key in ("x" * 20, other.key, page.key[:-1], page.key + "x"):
            assert refused(page, subprotocols=["pps", f"pps-key.{key}"]) == 401, key
        for offered in (None, ["pps"], [f"pps-key.{page.key}"], ["pps", page.key]):
            assert refused(page, subprotocols=offered) == 403, offered
        with connected(page) as opened:
            assert opened.subprotocol == "pps"  # the key is not said back
    log = (served.home / "test-server.log").read_text()
    assert page.key not in log


def test_a_session_opens_no_other_socket(served: Served) -> None:
    ana, haven = page_of(served, "ana"), haven_of(served)
    for page, name in ((ana, "ben"), (ana, "haven"), (haven, "ana"), (ana, "nobody")):
        foreign = PageClient(page.base, name, page.cookies, page.key)
        assert refused(foreign) == 401, name
    for token in (served.create("ana"), new_secret(), f"{new_secret()}.ana"):
        cookie = {next(iter(ana.cookies)): token[:-20]}
        assert refused(PageClient(ana.base, "ana", cookie, token[-20:])) == 401


def test_the_owners_page_opens_for_its_own_sessions_alone(served: Served) -> None:
    haven, ana = haven_of(served), page_of(served, "ana")
    base = served.run.url

    def asked(page: PageClient, path: str, body: Any = None, **headers: str) -> httpx.Response:
        method = "GET" if body is None else "POST"
        sent = {**page.headers, **headers}
        return httpx.request(
            method, f"{base}{path}", json=body, headers=sent, trust_env=False, timeout=PATIENCE_S
        )

    assert (
        httpx.get(f"{base}/haven", trust_env=False, timeout=PATIENCE_S).headers["location"]
        == "/haven/"
    )
    document = httpx.get(f"{base}/haven/", trust_env=False, timeout=PATIENCE_S)
    assert "frame-ancestors 'none'" in document.headers["content-security-policy"]
    paths: list[tuple[str, Any]] = [
        ("/haven/features", None),
        ("/haven/open", {"name": "ben"}),
        ("/haven/ben/v1/recall", {"query": "vault"}),
        ("/haven/session", {"end": True}),
    ]
    for path, body in paths:
        assert asked(ana, path, body).status_code == 401, path
        assert asked(haven, path, body, Origin="http://evil.example").status_code == 403, path
    for link in (link_of(served, "ana"), "x", new_secret(), served.create("ana")):
        assert asked(PageClient(base, "haven"), "/haven/session", {"link": link}).status_code == 401
    found = asked(haven, "/haven/ben/v1/recall", {"query": "vault"})
    assert "4711" in found.text
    assert found.json()["entity"] == "ben"
    assert "4711" not in asked(haven, "/haven/ana/v1/recall", {"query": "vault"}).text
    for path in ("/haven/nobody/v1/stats", "/haven/ben/v1/entity_list"):
        assert asked(haven, path, {}).status_code == 404, path
    link = asked(haven, "/haven/open", {"name": "ben"}).json()["link"]
    assert PageClient(base, "ana").open(link).status_code == 401
    assert PageClient(base, "ben").open(link).status_code == 200
    # A session of the owner's page is no token of anything else, and no entity's page.
    session = f"{next(iter(haven.cookies.values()))}{haven.key}"
    for path in ("/v1/stats", "/mcp", "/owner/tools"):
        bearer = {"Authorization": f"Bearer {session}"}
        assert (
            httpx.post(
                f"{base}{path}", json={}, headers=bearer, trust_env=False, timeout=PATIENCE_S
            ).status_code
            == 401
        )
    assert PageClient(base, "ben", haven.cookies, haven.key).post("v1/stats", {}).status_code == 401
    assert served.pps("haven", "--print").stdout.startswith(f"{base}/haven/#open=")
    assert asked(haven, "/haven/session", {"end": True}).status_code == 204
    assert asked(haven, "/haven/features").status_code == 401


def test_a_foreign_entity_or_room_reads_as_one_that_there_is_not(served: Served) -> None:
    with room_socket(haven_of(served)) as owner:
        both = owner.ask("create", entities=["ana", "ben"])["room"]
        with room_socket(page_of(served, "ben")) as ben:
            bens = ben.ask("rooms")["rooms"]
        with room_socket(page_of(served, "ana")) as ana:
            own = ana.ask("rooms")
            assert [one["owned_by"] for one in own["rooms"]] == ["ana"]
            assert [one["name"] for one in own["entities"]] == ["ana"]
            absent = problem_of(ana, "subscribe", entities=["nobody"])
            assert absent == problem_of(ana, "subscribe", entities=["ben"])
            assert absent == problem_of(ana, "subscribe", entities=["ana", "ben"])
            mine = own["rooms"][0]["id"]
            for theirs in (both, bens[0]["id"]):
                asked: dict[str, dict[str, Any]] = {
                    "say": {"message": MESSAGE, "text": "hello"},
                    "ask": {"message": MESSAGE},
                    "stop": {},
                    "again": {"message": MESSAGE},
                    "edit": {"message": MESSAGE, "new": MESSAGE, "text": "x"},
                    "forget": {"message": MESSAGE, "entities": ["ben"]},
                    "restore": {"message": MESSAGE, "restorable": {"ben": MESSAGE}},
                    "given": {"message": MESSAGE},
                    "earlier": {"before": 10},
                    "describe": {"person": "Eve"},
                    "presence": {"entity": "ben", "change": "sent_out"},
                }
                for do, fields in asked.items():
                    there = problem_of(ana, do, room=theirs, **fields)
                    nowhere = problem_of(ana, do, room="room-000000000000", **fields)
                    assert there == nowhere, do
                there = problem_of(ana, "subscribe", rooms={mine: 0, theirs: 0})
                assert there == problem_of(ana, "subscribe", rooms={"room-000000000000": 0})
            for do, fields in {
                "create": {"entities": ["ana", "ben"]},
                "delete": {"room": mine},
                "presence": {"room": mine, "entity": "ben", "change": "joined"},
                "hand_over": {"room": mine, "entity": "ben"},
            }.items():
                problem_of(ana, do, **fields)
            assert [one for one in ana.events if one["event"] != "changed"] == []
            owner.say(both, "Ana and Ben, hear this.")
            ana.ask("rooms")
            assert [one for one in ana.events if one["event"] != "changed"] == []


def test_subscriptions_are_carried_out_in_the_order_in_which_they_came(served: Served) -> None:
    served.create("lea")
    with room_socket(page_of(served, "lea")) as lea:
        room = lea.ask("rooms")["rooms"][0]["id"]
        for _ in range(5):
            for _ in range(5):
                lea.send("subscribe", rooms={room: 0}, entities=["lea"])
                lea.send("unsubscribe", rooms=[room], entities=["lea"])
            lea.ask("subscribe", rooms={room: 0}, entities=["lea"])
            heard = len(lea.heard("message", room=room))
            lea.say(room, "Is it heard?")
            lea.wait(lambda heard=heard: len(lea.heard("message", room=room)) > heard)


def test_the_news_of_one_are_no_others(served: Served) -> None:
    with room_socket(page_of(served, "ana")) as ana:
        ana.ask("subscribe", entities=["ana"])
        ana.wait(lambda: bool(ana.heard("changed")))
        served.link.call("remember", "ben", {"content": "Ben has news."})
        served.link.call("remember", "ana", {"content": "Ana has news."})
        before = ana.heard("changed")[0]["position"]
        ana.wait(lambda: ana.heard("changed")[-1]["position"] > before)
        assert {event["entity"] for event in ana.heard("changed")} == {"ana"}
        assert "news" not in json.dumps(ana.events)


@pytest.mark.parametrize(
    "how", ["page_close", "token_revoke", "entity_archive", "entity_delete", "leave"]
)
def test_a_socket_ends_with_its_session(served: Served, how: str) -> None:
    """Also where another process ends it: the server sees by the registry's stamp that something changed."""
    served.create("eve")
    page = page_of(served, "eve")
    with room_socket(page) as eve, room_socket(page_of(served, "ana")) as kept:
        eve.ask("subscribe", entities=["eve"])
        if how == "leave":
            assert page.post("session", {"end": True}).status_code == 204
        else:
            served.link.call(how, "", {"name": "eve"})
        eve.wait(lambda: bool(eve.code))
        assert eve.code == 4401
        assert eve.events[-1]["event"] == "ended"
        assert kept.ask("rooms")["rooms"]
        assert not kept.code
    assert refused(page) == 401
    if how == "entity_archive":
        served.link.call(how, "", {"name": "eve", "undo": True})


def test_the_owners_sockets_end_when_its_sessions_are_closed(served: Served) -> None:
    with room_socket(haven_of(served)) as owner:
        served.link.call("haven_close", "", {})
        owner.wait(lambda: bool(owner.code))
        assert owner.code == 4401


@pytest.mark.parametrize(
    "frame",
    [
        "no JSON",
        "[]",
        "7",
        '"rooms"',
        "{}",
        '{"id": 1}',
        '{"do": "rooms"}',
        '{"id": "1", "do": "rooms"}',
        '{"id": true, "do": "rooms"}',
        '{"id": 1, "do": ["rooms"]}',
        "[" * 100_000,
        b"\x00\x01binary",
    ],
)
def test_a_broken_frame_ends_the_socket_that_sent_it(served: Served, frame: str | bytes) -> None:
    with connected(page_of(served, "ana")) as ana:
        ana.send(frame)
        with contextlib.suppress(ConnectionClosed):
            while True:
                ana.recv(timeout=PATIENCE_S)
        assert ana.close_code == 1007


def test_a_huge_frame_ends_the_socket_and_the_server_goes_on(served: Served) -> None:
    page = page_of(served, "ana")
    with connected(page) as ana:
        with contextlib.suppress(ConnectionClosed):
            ana.send(json.dumps({"id": 1, "do": "rooms", "more": "x" * 4_000_000}))
            while True:
                ana.recv(timeout=PATIENCE_S)
        assert ana.close_code in (1009, 1006)
    with room_socket(page) as again:
        assert again.ask("rooms")


def test_fields_are_checked_and_nothing_is_changed(served: Served) -> None:
    with room_socket(page_of(served, "ana")) as ana:
        room = ana.ask("rooms")["rooms"][0]["id"]
        for do, fields, field in (
            ("nonsense", {}, "do"),
            ("say", {"message": MESSAGE, "text": ""}, "text"),
            ("say", {"message": MESSAGE, "text": "x" * 65_537}, "text"),
            ("say", {"message": "1", "text": "x"}, "message"),
            ("say", {"message": MESSAGE, "text": "x", "to": ["ben"]}, "to"),
            ("say", {"message": MESSAGE, "text": "x", "as": "ben"}, "as"),
            ("say", {"message": MESSAGE, "text": "x", "author": "ben"}, "author"),
            ("describe", {"person": "x" * 101}, "person"),
            ("describe", {"person": "two\nlines"}, "person"),
            ("subscribe", {"rooms": {room: -1}}, "rooms"),
            ("subscribe", {"rooms": {room: "0"}}, "rooms"),
            ("subscribe", {"entities": "ana"}, "entities"),
            ("subscribe", {"entities": ["ana"] * 30, "more": 1}, "more"),
        ):
            fields = fields if do == "subscribe" else {**fields, "room": room}
            with pytest.raises(SocketProblem) as caught:
                ana.ask(do, **fields)
            assert caught.value.problem["status"] == 400, do
            assert caught.value.problem["field"] == field
        turns = served.link.call("turns_list", "ana", {"session": room})["data"]["turns"]
        assert turns == []


def test_too_many_frames_end_the_socket(served: Served) -> None:
    with room_socket(page_of(served, "ana")) as ana:
        with contextlib.suppress(ConnectionClosed):
            for _ in range(2_000):
                ana.send("rooms")
        ana.wait(lambda: bool(ana.code))
        assert ana.code == 1008


class DeafPage:
    """A page that asks and reads nothing: its socket by hand."""

    def __init__(self, page: PageClient, port: int) -> None:
        self.link = socket.socket()
        self.link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        self.link.connect(("127.0.0.1", port))
        cookies = "; ".join(f"{name}={value}" for name, value in page.cookies.items())
        self.link.sendall(
            f"GET /page/{page.name}/socket HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Origin: {page.base}\r\nCookie: {cookies}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            f"Sec-WebSocket-Protocol: pps, pps-key.{page.key}\r\n\r\n".encode()
        )
        assert self.link.recv(12) == b"HTTP/1.1 101"

    def send(self, do: str, **fields: Any) -> None:
        data = json.dumps({"id": 1, "do": do, **fields}).encode()
        assert len(data) < 126
        self.link.sendall(bytes((0x81, 0x80 | len(data), 0, 0, 0, 0)) + data)


def test_a_page_that_does_not_read_is_closed_and_catches_up_later(served: Served) -> None:
    served.create("kim")
    page = page_of(served, "kim")
    with room_socket(page) as kim:
        room = kim.ask("rooms")["rooms"][0]["id"]
        for number in range(8):
            kim.say(room, f"{number} " + "word " * 12_000)
    deaf = DeafPage(page, served.run.port)

    def is_given_up() -> bool:
        """Ask for more, 0.5 MB each time; a connection that the server has ended takes nothing more."""
        try:
            deaf.send("subscribe", rooms={room: 0})
        except (ConnectionResetError, BrokenPipeError):
            return True
        return False

    wait_until(is_given_up, pause_s=0.1)
    deaf.link.close()
    with room_socket(page) as kim:
        assert kim.ask("rooms")["rooms"]
        kim.ask("subscribe", rooms={room: 0})
        assert len(kim.heard("room_state")[0]["ids"]) == 8


def test_a_thousand_connections_leave_the_server_answering(served: Served) -> None:
    page = page_of(served, "ana")
    opened: list[Any] = []
    statuses: list[int] = []
    lock = threading.Lock()

    def open_some() -> None:
        for _ in range(50):
            with contextlib.ExitStack() as stack:
                try:
                    socket = stack.enter_context(connected(page, open_timeout=60))
                except InvalidStatus as error:
                    with lock:
                        statuses.append(error.response.status_code)
                    continue
                with lock:
                    opened.append(socket)
                    stack.pop_all()

    threads = [threading.Thread(target=open_some) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) + len(statuses) == 1_000
    assert len(opened) <= MOST_OF_SESSION
    assert set(statuses) == {503}
    with room_socket(page_of(served, "ana")) as other:
        assert other.ask("rooms")["rooms"]
    for one in opened:
        one.close()

    def opens_again() -> bool:
        try:
            with connected(page):
                return True
        except InvalidStatus:
            return False

    wait_until(opens_again)


def test_half_a_handshake_holds_nothing_up(served: Served) -> None:
    raw = [socket.create_connection(("127.0.0.1", served.run.port)) for _ in range(20)]
    for one in raw:
        one.sendall(b"GET /page/ana/socket HTTP/1.1\r\nUpgrade: websocket\r\n")
    begun = time.monotonic()
    with room_socket(page_of(served, "ana")) as ana:
        assert ana.ask("rooms")["rooms"]
    assert time.monotonic() - begun < 60
    for one in raw:
        one.close()
