"""Haven's attacks for ``pps verify-isolation``: one entity's session tries another's rooms.

The other entity has a room of its own and one that the owner made. A third room has both entities,
but only the other heard the secret word in it. Each request of a page's socket is tried with the
other's rooms, messages and names, and compared with the same request for ones that do not exist.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Mapping
from typing import cast

from pps.app import App
from pps.core.errors import PPSError
from pps.core.ids import EntityId
from pps.core.values import JSON
from pps.features.haven.room_messages import RoomMessages
from pps.features.haven.room_requests import REQUESTS, House, ViewedRooms
from pps.operations.calls import Calls
from pps.proof.by_feature import CallOutcome, OwnAttempt

_NO_ROOM = "room-000000000000"
_NOBODY = "nobody"


class RoomAttacks:
    """The attacks of ``mine`` on the rooms of ``theirs``.

    See ``pps.proof.by_feature.OwnAttacks``.
    """

    def __init__(self, app: App, mine: EntityId, theirs: EntityId) -> None:
        self._app = app
        self._mine = mine
        self._theirs = theirs
        self._house = House(app, Calls(app))
        self._own_room = ""
        self._their_rooms: list[str] = []
        self._shared_room = ""
        self._their_message = str(uuid.uuid4())

    async def plant(self, marks: Mapping[str, str]) -> None:
        """Say the other's word in its own room, in one of the owner's, and in the shared one."""
        owner = self._house.for_viewer(None)
        self._own_room = await self._room_of(self._mine)
        their_room = await self._room_of(self._theirs)
        alone = await owner.carry_out("create", {"entities": [self._theirs.name]})
        both = await owner.carry_out("create", {"entities": [self._mine.name, self._theirs.name]})
        self._shared_room = _room(both)
        self._their_rooms = [their_room, _room(alone), self._shared_room]
        await owner.carry_out(
            "presence",
            {"room": self._shared_room, "entity": self._mine.name, "change": "sent_out"},
        )
        for number, room in enumerate(self._their_rooms):
            message = self._their_message if not number else str(uuid.uuid4())
            text = f"The word is {marks[self._theirs.name]}."
            await owner.carry_out("say", {"room": room, "message": message, "text": text})
            await owner.carry_out("stop", {"room": room})

    async def held(self) -> str:
        """Return the state of the other's rooms, for a comparison before and after."""
        rooms = [
            await asyncio.to_thread(self._app.registry.rooms.get, room)
            for room in self._their_rooms
        ]
        return repr(rooms)

    async def attempts(self) -> list[OwnAttempt]:
        """Try everything; return each attempt's two outcomes."""
        rooms = self._house.for_viewer(self._mine)
        tried = [
            OwnAttempt(
                f"{do} in a room of theirs",
                await _outcome(rooms, do, {**fields, "room": room}),
                await _outcome(rooms, do, {**fields, "room": _NO_ROOM}),
            )
            for room in self._their_rooms
            for do, fields in self._requests().items()
        ]
        tried += [
            OwnAttempt(
                f"{do} of their message in the own room",
                await _outcome(rooms, do, self._in_own_room(fields, self._their_message)),
                await _outcome(rooms, do, self._in_own_room(fields, str(uuid.uuid4()))),
            )
            for do, fields in self._requests().items()
            if "message" in fields and do != "say"
        ]
        tried += [
            OwnAttempt(
                f"{do} with their name",
                self._unnamed(await _outcome(rooms, do, self._naming(fields, self._theirs.name))),
                await _outcome(rooms, do, self._naming(fields, _NOBODY)),
            )
            for do, fields in self._naming_requests()
        ]
        tried += [await self._following(rooms, room) for room in self._their_rooms]
        tried.append(await self._listed(rooms))
        tried.append(await self._heard_in_the_shared_room())
        return tried

    async def close(self) -> None:
        await self._house.close()

    def _requests(self) -> dict[str, dict[str, JSON]]:
        """Return the name of each request about a room → its fields."""
        message = {"message": self._their_message}
        fields: dict[str, dict[str, JSON]] = {
            "say": {"message": str(uuid.uuid4()), "text": "Hello."},
            "ask": {**message},
            "stop": {},
            "again": {**message},
            "edit": {**message, "new": str(uuid.uuid4()), "text": "Something else."},
            "forget": {**message, "entities": [self._theirs.name]},
            "restore": {**message, "restorable": {self._theirs.name: self._their_message}},
            "given": {**message},
            "earlier": {"before": 1_000_000},
            "describe": {"title": "Mine", "off_record": True},
            "presence": {"entity": self._theirs.name, "change": "sent_out"},
            "hand_over": {"entity": self._mine.name},
            "delete": {},
        }
        missing = REQUESTS.keys() - fields.keys() - {"rooms", "create"}
        if missing:
            raise AssertionError(f"requests that nobody attacks: {sorted(missing)}")
        return fields

    def _naming_requests(self) -> list[tuple[str, dict[str, JSON]]]:
        say: dict[str, JSON] = {"message": str(uuid.uuid4()), "text": "Hello.", "to": ["{name}"]}
        changes = ("joined", "left", "sent_out", "called_in")
        presence: list[tuple[str, dict[str, JSON]]] = [
            ("presence", {"entity": "{name}", "change": change}) for change in changes
        ]
        hand_over: dict[str, JSON] = {"entity": "{name}"}
        message = {"message": str(uuid.uuid4())}
        restore: dict[str, JSON] = {**message, "restorable": {"{name}": self._their_message}}
        return [("say", say), *presence, ("hand_over", hand_over), ("restore", restore)]

    def _naming(self, fields: Mapping[str, JSON], name: str) -> dict[str, JSON]:
        filled = json.loads(json.dumps(fields).replace("{name}", name))
        return {**filled, "room": self._own_room}

    def _unnamed(self, outcome: CallOutcome) -> CallOutcome:
        """Return an outcome that names nobody where it names the other, as the caller did."""
        return CallOutcome(outcome.error, outcome.text.replace(self._theirs.name, _NOBODY))

    def _in_own_room(self, fields: Mapping[str, JSON], message: str) -> dict[str, JSON]:
        return {**fields, "room": self._own_room, "message": message}

    async def _room_of(self, entity: EntityId) -> str:
        """Return an entity's own room."""
        answer = cast(
            "dict[str, JSON]", await self._house.for_viewer(entity).carry_out("rooms", {})
        )
        rooms = cast("list[dict[str, JSON]]", answer["rooms"])
        return str(rooms[0]["id"])

    async def _following(self, rooms: ViewedRooms, room: str) -> OwnAttempt:
        async def follow(wanted: str) -> CallOutcome:
            heard: list[object] = []
            try:
                await rooms.follow(wanted, 0, heard.append)
            except PPSError as error:
                return CallOutcome(type(error).__name__, f"{error.message} {heard}")
            return CallOutcome("", repr(heard))

        return OwnAttempt("follow a room of theirs", await follow(room), await follow(_NO_ROOM))

    async def _listed(self, rooms: ViewedRooms) -> OwnAttempt:
        """Check that the list of rooms names neither the other nor its rooms."""
        outcome = await _outcome(rooms, "rooms", {})
        named = [
            room for room in (*self._their_rooms, self._theirs.name) if f"'{room}'" in outcome.text
        ]
        return OwnAttempt(
            "the list of rooms", CallOutcome(outcome.error, repr(named)), CallOutcome("", "[]")
        )

    async def _heard_in_the_shared_room(self) -> OwnAttempt:
        """Check that the own memory has nothing of the room in which only the other listened."""
        async with self._app.memory(self._mine) as memory:
            messages = await RoomMessages(memory).of_room(self._shared_room)
            turns = await memory.parts.journal.recent(10, session=self._shared_room)
        return OwnAttempt(
            "what was said while it was sent out",
            CallOutcome("", f"{messages} {turns}"),
            CallOutcome("", "[] []"),
        )


def _room(event: JSON) -> str:
    return str(cast("dict[str, JSON]", event)["room"])


async def _outcome(rooms: ViewedRooms, do: str, fields: Mapping[str, JSON]) -> CallOutcome:
    try:
        answer = await rooms.carry_out(do, fields)
    except PPSError as error:
        return CallOutcome(type(error).__name__, error.message)
    except Exception as error:  # noqa: BLE001 - any other error is a finding; the run goes on
        return CallOutcome(type(error).__name__, str(error))
    return CallOutcome("", repr(answer))
