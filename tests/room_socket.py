"""A page's socket as a browser has it, without one: what is asked over it, and what is heard."""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.browser_session import PageClient
from tests.integration.interfaces.serving import Served
from tests.waiting import PATIENCE_S, wait_until

Event = dict[str, Any]


class SocketProblem(Exception):
    """An answer that is no result."""

    def __init__(self, problem: Event) -> None:
        super().__init__(problem["detail"])
        self.problem = problem


class RoomSocket:
    """An open socket; everything that is heard is kept.

    Attributes:
        events: What was heard, in order, without beats and answers.
        code: Why it was closed; 0 while it is open.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.events: list[Event] = []
        self.beats = 0
        self.code = 0
        self._answers: dict[int, Event] = {}
        self._asked = 0
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def own_room(self) -> str:
        """Follow the first room of the session, and return its id."""
        room = str(self.ask("rooms")["rooms"][0]["id"])
        self.ask("subscribe", rooms={room: 0})
        return room

    def _read(self) -> None:
        try:
            for text in self.connection:
                event = json.loads(text)
                if "re" in event:
                    self._answers[event["re"]] = event
                elif event["event"] == "beat":
                    self.beats += 1
                else:
                    self.events.append(event)
        except ConnectionClosed:
            pass
        self.code = self.connection.close_code or 1006

    def send(self, do: str, **fields: Any) -> int:
        """Send a frame and wait for nothing; return its id."""
        self._asked += 1
        self.connection.send(json.dumps({"id": self._asked, "do": do, **fields}))
        return self._asked

    def ask(self, do: str, **fields: Any) -> Any:
        """Send a frame; return its result or raise its problem."""
        id_ = self.send(do, **fields)
        wait_until(lambda: id_ in self._answers or bool(self.code), state=lambda: self.events[-3:])
        assert id_ in self._answers, f"closed with {self.code}"
        answer = self._answers[id_]
        if "problem" in answer:
            raise SocketProblem(answer["problem"])
        return answer["result"]

    def say(self, room: str, text: str, **more: Any) -> str:
        """Say something; return the message's id."""
        message = more.pop("message", None) or str(uuid.uuid4())
        self.ask("say", room=room, message=message, text=text, **more)
        return message

    def heard(self, kind: str, **fields: Any) -> list[Event]:
        """Return the events of a kind with some fields."""
        return [
            event
            for event in list(self.events)
            if event["event"] == kind
            and all(event.get(name) == value for name, value in fields.items())
        ]

    def wait(self, holds: Callable[[], bool], timeout_s: float = 120.0) -> None:
        wait_until(holds, timeout_s=timeout_s, pause_s=0.01, state=lambda: self.events[-4:])

    def answers(self, room: str) -> list[Event]:
        """Return the answers that were heard whole, in order."""
        found = [event["message"] for event in self.heard("message", room=room)]
        return [message for message in found if message["author"]]

    def talk(self, room: str, text: str, count: int = 1, **more: Any) -> list[Event]:
        """Say something and wait until so many answers have ended; return them."""
        before, ended = len(self.answers(room)), len(self.heard("ended", room=room))
        self.say(room, text, **more)
        self.wait(lambda: len(self.heard("ended", room=room)) >= ended + count)
        return self.answers(room)[before:]

    def close(self) -> None:
        self.connection.close()
        self._reading.join(20)


def haven_of(served: Served) -> PageClient:
    """Return a browser with a session of the owner's page."""
    link = urlsplit(str(served.link.call("haven_open", "", {})["data"]["url"]))
    page = PageClient(served.run.url, "haven")
    answer = httpx.post(
        f"{served.run.url}/haven/session",
        json={"link": link.fragment.removeprefix("open=")},
        headers=page.headers,
        trust_env=False,
        timeout=PATIENCE_S,
    )
    assert answer.status_code == httpx.codes.OK, answer.text
    page.set_cookie, page.key = answer.headers["set-cookie"], answer.text
    page.cookies = dict(answer.cookies)
    return page


def socket_url(page: PageClient) -> str:
    path = "haven/socket" if page.name == "haven" else f"page/{page.name}/socket"
    return f"{page.base.replace('http', 'ws', 1)}/{path}"


def connected(page: PageClient, **more: Any) -> contextlib.AbstractContextManager[ClientConnection]:
    """Open a page's socket as its browser does, while the block runs."""
    cookies = "; ".join(f"{name}={value}" for name, value in page.cookies.items())
    given: dict[str, Any] = {
        "origin": page.base,
        "subprotocols": ["pps", f"pps-key.{page.key}"],
        "additional_headers": {"Cookie": cookies},
        "proxy": None,
        "max_size": None,
        "compression": None,
        "ping_interval": None,
        "open_timeout": PATIENCE_S,
    }
    return connect(socket_url(page), **{**given, **more})


@contextlib.contextmanager
def room_socket(page: PageClient) -> Iterator[RoomSocket]:
    """Open a page's socket while the block runs."""
    with connected(page) as connection:
        socket = RoomSocket(connection)
        try:
            yield socket
        finally:
            socket.close()


def let_answer(served: Served, name: str, **talk: Any) -> None:
    """Set who answers for an entity, in its ``entity.toml``."""
    path = Path(served.home) / "entities" / name / "entity.toml"
    head = path.read_text().partition("\n[talk]")[0]
    lines = [f"{key} = {json.dumps(value)}" for key, value in talk.items()]
    path.write_text(f"{head}\n[talk]\n" + "\n".join(lines) + "\n")
