"""The sockets of pages: one WebSocket each, for changes of memories and for the events of rooms.

A page subscribes to entities and rooms that its session may see (``subscribe``). It receives their
events in order, each with its entity or room and a position; a page that comes back names the
positions that it knows, and receives the events that it missed. One watch serves all sockets: it
looks at each entity once for all listeners, ends the sockets of sessions that have ended, and sends
the beats by which a page knows that the server runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time as clock
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, cast

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound, Overloaded, PPSError
from pps.core.ids import EntityId
from pps.core.json_bounds import check_raw
from pps.core.log_context import new_request_id, serving, unforeseen
from pps.core.values import JSON
from pps.interfaces.http.page.browsers import SUBPROTOCOL, Browsers
from pps.interfaces.http.problems import problem, refusal

_log = logging.getLogger(__name__)
Event = dict[str, JSON]

MOST_SOCKETS = 600
"""Most open sockets of a server."""
MOST_OF_SESSION = 24
"""Most open sockets of one session of a page."""
MOST_ENTITIES = 24
"""Most entities that one socket may subscribe to."""
MOST_ROOMS = 24
"""Most rooms that one socket may subscribe to."""
MOST_QUEUED = 2_000
"""Most events that wait for a page to read.

The socket of a slower page is closed; the page catches up when it comes back.
"""
MOST_QUEUED_CHARACTERS = 4 * 1024 * 1024
"""Most characters of the events that wait."""
MOST_FRAMES = 120
"""Most frames that a page may send at once."""
FRAMES_A_SECOND = 30.0
"""Most frames a second that a page may send in the long run."""
MOST_REQUESTS = 24
"""Requests of one socket that may be worked on at a time."""
LOOK_S = 0.25
"""Interval of looks at the entities."""
BEAT_S = 0.4
"""Interval of beats; a page that receives none for 0.9 s shows that the server is away."""
LAST_WORD_S = 0.5
"""Longest wait for a page to take the last message before its socket is closed."""
RECHECK_S = 30.0
"""Interval of looking up a session although the registry did not change: it may have expired."""
ENDED = 4401
"""Close code: the session has ended."""
BUSY = 1013
"""Close code: the page did not read its events."""
TOO_FAST = 1008
"""Close code: the page sent too many frames."""
BROKEN = 1007
"""Close code: the page sent something that is no frame."""


class RoomsOfViewer(Protocol):
    """The rooms that one viewer may see, as the feature ``haven`` provides them."""

    async def carry_out(self, do: str, fields: Mapping[str, JSON]) -> JSON:
        """Carry out a request."""
        ...

    async def check(self, room: str) -> None:
        """Raise NotFound for a room that the viewer may not see, or that does not exist."""
        ...

    async def follow(
        self, room: str, since: int, hear: Callable[[Event], None]
    ) -> Callable[[], None]:
        """Call ``hear`` with each event of a room; return a function that ends it."""
        ...

    def listen(self, hear: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``hear`` when a room is made, changed or deleted; return a function that ends it."""
        ...


@dataclass(eq=False)
class _Socket:
    """One open socket.

    Attributes:
        entity: The entity of the page; None for the owner's page.
        closing: The code to close it with; 0 while it is open.
    """

    websocket: WebSocket
    session: str = field(repr=False)
    entity: EntityId | None
    rooms: RoomsOfViewer | None
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    queue: deque[str] = field(default_factory=deque[str])
    queued: int = 0
    closing: int = 0
    subscribing: asyncio.Lock = field(default_factory=asyncio.Lock)
    entities: set[str] = field(default_factory=set[str])
    followed: dict[str, Callable[[], None]] = field(default_factory=dict[str, Callable[[], None]])
    requests: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    frames: float = MOST_FRAMES
    counted_at: float = field(default_factory=clock.monotonic)

    def tell(self, event: Mapping[str, JSON]) -> None:
        self.tell_text(json.dumps(event, ensure_ascii=False, separators=(",", ":")))

    def tell_text(self, text: str) -> None:
        if self.closing:
            return
        self.queue.append(text)
        self.queued += len(text)
        if len(self.queue) > MOST_QUEUED or self.queued > MOST_QUEUED_CHARACTERS:
            self.close(BUSY)
        self.wake.set()

    def close(self, code: int) -> None:
        if not self.closing:
            self.closing = code
            self.queue.clear()
            self.wake.set()
            self.ending.set()

    def may_send(self) -> bool:
        """Count a frame; tell whether the page keeps within its rate."""
        now = clock.monotonic()
        self.frames = min(
            float(MOST_FRAMES), self.frames + (now - self.counted_at) * FRAMES_A_SECOND
        )
        self.counted_at = now
        self.frames -= 1.0
        return self.frames >= 0.0


class Sockets:
    """All sockets of a server.

    Args:
        rooms: Returns the rooms of a viewer (an entity, or None for the owner); None while the
            feature ``haven`` is off.
    """

    def __init__(
        self, app: App, browsers: Browsers, rooms: Callable[[EntityId | None], RoomsOfViewer | None]
    ) -> None:
        self._app = app
        self._browsers = browsers
        self._rooms = rooms
        self._open: set[_Socket] = set()
        self._watching: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._marks: dict[str, tuple[int, bool]] = {}
        self._carried: set[asyncio.Task[None]] = set()

    async def of_entity(self, websocket: WebSocket) -> None:
        """Serve the socket of an entity's page."""
        await self._serve(websocket, self._browsers.entity_of)

    async def of_owner(self, websocket: WebSocket) -> None:
        """Serve the socket of the owner's page."""
        await self._serve(websocket, self._browsers.check_haven)

    async def _serve(
        self,
        websocket: WebSocket,
        admit: Callable[[HTTPConnection], object],
    ) -> None:
        """Accept a socket if its session is valid, and serve it until either side ends it."""
        try:
            entity = cast("EntityId | None", await cast("asyncio.Future[object]", admit(websocket)))
            session = self._browsers.session(websocket)
            of_session = sum(1 for socket in self._open if socket.session == session)
            if len(self._open) >= MOST_SOCKETS or of_session >= MOST_OF_SESSION:
                raise Overloaded("too many sockets are open; close other tabs of this page")
        except Exception as error:  # noqa: BLE001 - the surface's outermost call
            await _refuse(websocket, refusal(error, "a page's socket"))
            return
        socket = _Socket(websocket, session, entity, self._rooms(entity))
        self._open.add(socket)
        try:
            await websocket.accept(SUBPROTOCOL)
            await self._run(socket)
        finally:
            self._open.discard(socket)
            for end in socket.followed.values():
                end()

    async def _run(self, socket: _Socket) -> None:
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(), name="page-sockets")
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._beat(), name="page-socket-beats")
        if socket.rooms is not None and socket.entity is None:
            socket.followed[""] = socket.rooms.listen(socket.tell)
        sending = asyncio.create_task(self._send(socket))
        receiving = asyncio.create_task(self._receive(socket))
        ending = asyncio.create_task(socket.ending.wait())  # a send may hang
        tasks = (sending, receiving, ending)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not receiving.done() or socket.closing:
                code = socket.closing or BUSY
                sending.cancel()
                await asyncio.wait([sending])
                if code == ENDED:
                    await _in_time(socket.websocket.send_text('{"event":"ended"}'))
                await _in_time(socket.websocket.close(code))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _send(self, socket: _Socket) -> None:
        """Send the queued events, in order, until the socket is to be closed."""
        while True:
            socket.wake.clear()
            while socket.queue and not socket.closing:
                text = socket.queue.popleft()
                socket.queued -= len(text)
                try:
                    await socket.websocket.send_text(text)
                except (WebSocketDisconnect, RuntimeError, OSError):
                    return
            if socket.closing:
                return
            await socket.wake.wait()

    async def _receive(self, socket: _Socket) -> None:
        while True:
            try:
                message = await socket.websocket.receive()
            except (WebSocketDisconnect, RuntimeError):
                return
            if message["type"] == "websocket.disconnect":
                return
            if not socket.may_send() or len(socket.requests) >= MOST_REQUESTS:
                socket.close(TOO_FAST)
                return
            text = message.get("text")
            frame = _frame(text) if isinstance(text, str) else None
            if frame is None:
                socket.close(BROKEN)
                return
            task = asyncio.create_task(self._answer(socket, *frame))
            # It runs to its end if the page goes away: a message that was sent is stored.
            for tasks in (socket.requests, self._carried):
                tasks.add(task)
                task.add_done_callback(tasks.discard)

    async def _answer(self, socket: _Socket, id: int, do: str, fields: Event) -> None:
        with serving(new_request_id()):
            try:
                result = await self._carry_out(socket, do, fields)
            except Exception as error:  # noqa: BLE001 - the surface's outermost call
                socket.tell({"re": id, "problem": problem(error, "a page's request")})
            else:
                socket.tell({"re": id, "result": result})

    async def _carry_out(self, socket: _Socket, do: str, fields: Event) -> JSON:
        if do in ("subscribe", "unsubscribe"):
            # In the order of arrival: a page that leaves a room and comes back must get its events.
            async with socket.subscribing:
                await self._check_session(socket)
                if do == "subscribe":
                    return await self._subscribe(socket, fields)
                return _unsubscribe(socket, fields)
        await self._check_session(socket)
        if socket.rooms is None:
            raise InvalidRequest("do", "needs the feature haven: `pps feature enable haven`")
        return await socket.rooms.carry_out(do, fields)

    async def _check_session(self, socket: _Socket) -> None:
        """Close a socket whose session has ended, and raise NotFound."""
        session = partial(self._browsers.is_still, socket.session, socket.entity)
        if not await asyncio.to_thread(session):
            socket.close(ENDED)
            raise NotFound("session")

    async def _subscribe(self, socket: _Socket, fields: Event) -> JSON:
        """Subscribe a socket to entities and rooms: to all that are named, or to none."""
        unknown = fields.keys() - {"entities", "rooms"}
        if unknown:
            raise InvalidRequest(min(unknown), "is no part of a subscription")
        entities = _texts(fields, "entities")
        rooms = _positions(fields)
        if len(socket.entities.union(entities)) > MOST_ENTITIES:
            raise InvalidRequest("entities", f"must be at most {MOST_ENTITIES}")
        if len(socket.followed.keys() | rooms.keys()) > MOST_ROOMS:
            raise InvalidRequest("rooms", f"must be at most {MOST_ROOMS}")
        for name in entities:
            await self._check_visible(socket, name)
        if rooms and socket.rooms is None:
            raise NotFound("room")
        await self._follow(socket, rooms)
        for name in entities:
            socket.entities.add(name)
            mark = await self._look_at(name)
            if mark is not None:
                socket.tell(_changed(name, mark))
        return {}

    async def _follow(self, socket: _Socket, rooms: Mapping[str, int]) -> None:
        """Subscribe a socket to rooms, each from a position on: to all of them, or to none."""
        started: dict[str, Callable[[], None]] = {}
        for room in rooms:
            if socket.rooms is not None:
                await socket.rooms.check(room)
        try:
            for room, since in rooms.items():
                if socket.rooms is not None:
                    started[room] = await socket.rooms.follow(room, since, socket.tell)
        except BaseException:
            for end in started.values():
                end()
            raise
        if socket not in self._open:  # it went away meanwhile
            for end in started.values():
                end()
            return
        for room, end in started.items():
            end_previous = socket.followed.pop(room, None)
            if end_previous:
                end_previous()
            socket.followed[room] = end

    async def _check_visible(self, socket: _Socket, name: str) -> None:
        """Raise NotFound unless a socket may hear of an entity; the same if it does not exist."""
        if socket.entity is not None and socket.entity.name != name:
            raise NotFound("entity")
        try:
            await asyncio.to_thread(self._app.registry.mount, name)
        except PPSError:
            raise NotFound("entity") from None
        if self._app.registry.squads.pool_of(name):
            raise NotFound("entity")

    async def _watch(self) -> None:
        """Look at all entities that sockets are subscribed to, while any socket is open."""
        registry = self._app.registry
        stamp: object = None
        checked_at = 0.0
        while self._open:
            now = clock.monotonic()
            try:
                current = await asyncio.to_thread(registry.stamp)
                if current is None or current != stamp or now - checked_at > RECHECK_S:
                    await self._end_sessions()
                    stamp = current
                    checked_at = now
                for name in set[str]().union(*(socket.entities for socket in self._open)):
                    before = self._marks.get(name)
                    mark = await self._look_at(name)
                    if mark is not None and mark != before:
                        for socket in self._open:
                            if name in socket.entities:
                                socket.tell(_changed(name, mark))
            except PPSError as error:
                # The registry is away for now: no session is known to have ended.
                _log.warning("the sockets of pages cannot be looked after: %s", error.message)
            except Exception as error:  # noqa: BLE001 - a task's outermost call, and it goes on
                unforeseen(_log, "looking after the sockets of pages failed", error)
            await asyncio.sleep(LOOK_S)
        self._marks.clear()

    async def _beat(self) -> None:
        """Send a beat to every page at an interval, however long a look takes."""
        while self._open:
            for socket in self._open:
                if not socket.queue:
                    socket.tell_text('{"event":"beat"}')
            await asyncio.sleep(BEAT_S)

    async def _end_sessions(self) -> None:
        """Close the sockets whose session has ended."""
        sessions = {(socket.session, socket.entity) for socket in self._open}

        def find_ended() -> set[tuple[str, EntityId | None]]:
            return {
                (session, entity)
                for session, entity in sessions
                if not self._browsers.is_still(session, entity)
            }

        ended = await asyncio.to_thread(find_ended)
        for socket in tuple(self._open):
            if (socket.session, socket.entity) in ended:
                socket.close(ENDED)

    async def _look_at(self, name: str) -> tuple[int, bool] | None:
        """Return the state of an entity's memory; None if the memory cannot be opened."""
        try:
            async with self._app.memory(name) as memory:
                self._marks[name] = await memory.jobs.mark()
        except PPSError:
            self._marks.pop(name, None)
            for socket in self._open:
                socket.entities.discard(name)
            return None
        return self._marks[name]

    async def settled(self, timeout_s: float = 30.0) -> None:
        """Wait until every request in hand has ended."""
        if self._carried:
            await asyncio.wait(set(self._carried), timeout=timeout_s)


async def _in_time(sending: Awaitable[None]) -> None:
    """Await a send to a page that may be gone, or does not read, for at most ``LAST_WORD_S``."""
    with contextlib.suppress(TimeoutError, WebSocketDisconnect, RuntimeError, OSError):
        async with asyncio.timeout(LAST_WORD_S):
            await sending


def _changed(name: str, mark: tuple[int, bool]) -> Event:
    return {"event": "changed", "entity": name, "position": mark[0], "pending": mark[1]}


def _unsubscribe(socket: _Socket, fields: Event) -> JSON:
    """End a socket's subscriptions to some entities and rooms."""
    rooms = _texts(fields, "rooms")
    entities = _texts(fields, "entities")
    for room in rooms:
        end = socket.followed.pop(room, None)
        if end:
            end()
    socket.entities.difference_update(entities)
    return {}


def _frame(text: str) -> tuple[int, str, Event] | None:
    """Return a frame's ``id``, its ``do``, and its other fields; None if the text is no frame."""
    try:
        check_raw(text.encode(), "frame")
        value: object = json.loads(text)
    except (PPSError, ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    fields = cast("Event", value)
    id_ = fields.pop("id", None)
    do = fields.pop("do", None)
    if not isinstance(id_, int) or isinstance(id_, bool) or not isinstance(do, str):
        return None
    return id_, do, fields


def _texts(fields: Event, name: str) -> list[str]:
    value = fields.get(name, [])
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InvalidRequest(name, "must be a list of texts")
    return cast("list[str]", value)


def _positions(fields: Event) -> dict[str, int]:
    value = fields.get("rooms", {})
    if not isinstance(value, dict):
        raise InvalidRequest("rooms", "must be an object of rooms and positions")
    for position in value.values():
        if not isinstance(position, int) or isinstance(position, bool) or position < 0:
            raise InvalidRequest("rooms", "must be an object of rooms and positions")
    return cast("dict[str, int]", value)


async def _refuse(websocket: WebSocket, answer: Response) -> None:
    """Refuse a socket before it is accepted."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        await websocket.send_denial_response(answer)
