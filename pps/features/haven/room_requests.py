"""The requests of a page about rooms: frames of its socket, checked here, run by ``Talk``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from pps.app import App
from pps.core.bounds import MAX_CONTENT
from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import EntityId
from pps.core.values import JSON
from pps.entities.rooms import MAX_PERSON, MAX_TITLE, MOST_MEMBERS
from pps.features.haven.talk import Listener, Talk, Viewer
from pps.operations.calls import Calls

RoomId = Annotated[str, StringConstraints(pattern=r"^room-[0-9a-f]{12}$")]
MessageId = Annotated[
    str, StringConstraints(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
]
RestorableId = Annotated[str, StringConstraints(min_length=1, max_length=64)]
EntityName = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Names = Annotated[list[EntityName], Field(max_length=MOST_MEMBERS)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_CONTENT)]
Title = Annotated[str, StringConstraints(max_length=MAX_TITLE)]
Person = Annotated[str, StringConstraints(max_length=MAX_PERSON)]


class _PageRequest(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _OfRoomRequest(_PageRequest):
    room: RoomId


class RoomsRequest(_PageRequest):
    """List the rooms and entities that the viewer may see."""


class CreateRequest(_PageRequest):
    """Make a room."""

    title: Title = ""
    person: Person | None = None
    entities: Names


class DescribeRequest(_OfRoomRequest):
    """Change a room's title, its person's name, or whether it is off the record."""

    title: Title | None = None
    person: Person | None = None
    off_record: bool | None = None


class PresenceRequest(_OfRoomRequest):
    """Let an entity join or leave, send it out or call it in."""

    entity: EntityName
    change: Literal["joined", "sent_out", "called_in", "left"]


class SayRequest(_OfRoomRequest):
    """Say a message; ``message`` is a UUID that the page makes."""

    message: MessageId
    text: Text
    to: Names = []
    off_record: bool = False


class AskRequest(_OfRoomRequest):
    """Let entities answer an existing message."""

    message: MessageId
    to: Names = []


class OfMessageRequest(_OfRoomRequest):
    """A request about a message of a room."""

    message: MessageId


class EditRequest(OfMessageRequest):
    """Replace the person's last message with a new one."""

    new: MessageId
    text: Text


class ForgetRequest(OfMessageRequest):
    """Forget a message in the memories of some entities."""

    entities: Names


class RestoreRequest(OfMessageRequest):
    """Restore a forgotten message; ``restorable`` is that of ``forget``'s answer: name → id."""

    restorable: Annotated[dict[EntityName, RestorableId], Field(max_length=MOST_MEMBERS)]


class EarlierRequest(_OfRoomRequest):
    """Read the messages before a place."""

    before: Annotated[int, Field(ge=1)]


class HandOverRequest(_OfRoomRequest):
    """Store messages in an entity that did not hear them; all if ``messages`` is None."""

    entity: EntityName
    messages: Annotated[list[MessageId], Field(max_length=1_000)] | None = None


Handler = Callable[[Talk, Viewer, Any], Awaitable[JSON]]


async def _rooms(talk: Talk, viewer: Viewer, _: RoomsRequest) -> JSON:
    rooms: list[JSON] = [*await talk.rooms(viewer)]
    entities: list[JSON] = [*await talk.entities(viewer)]
    return {"rooms": rooms, "entities": entities, "is_owner": viewer.entity is None}


async def _create(talk: Talk, viewer: Viewer, request: CreateRequest) -> JSON:
    return await talk.create(viewer, request.title, request.person, request.entities)


async def _describe(talk: Talk, viewer: Viewer, request: DescribeRequest) -> JSON:
    return await talk.describe(
        viewer,
        request.room,
        title=request.title,
        person=request.person,
        off_record=request.off_record,
    )


async def _presence(talk: Talk, viewer: Viewer, request: PresenceRequest) -> JSON:
    return await talk.change(viewer, request.room, request.entity, request.change)


async def _delete(talk: Talk, viewer: Viewer, request: _OfRoomRequest) -> JSON:
    await talk.delete(viewer, request.room)
    return {}


async def _say(talk: Talk, viewer: Viewer, request: SayRequest) -> JSON:
    return await talk.say(
        viewer,
        request.room,
        request.message,
        request.text,
        to=request.to,
        off_record=request.off_record,
    )


async def _ask(talk: Talk, viewer: Viewer, request: AskRequest) -> JSON:
    await talk.ask(viewer, request.room, request.message, request.to)
    return {}


async def _stop(talk: Talk, viewer: Viewer, request: _OfRoomRequest) -> JSON:
    await talk.stop(viewer, request.room)
    return {}


async def _again(talk: Talk, viewer: Viewer, request: OfMessageRequest) -> JSON:
    await talk.again(viewer, request.room, request.message)
    return {}


async def _edit(talk: Talk, viewer: Viewer, request: EditRequest) -> JSON:
    return await talk.edit(viewer, request.room, request.message, request.new, request.text)


async def _forget(talk: Talk, viewer: Viewer, request: ForgetRequest) -> JSON:
    return await talk.forget(viewer, request.room, request.message, request.entities)


async def _restore(talk: Talk, viewer: Viewer, request: RestoreRequest) -> JSON:
    await talk.restore(viewer, request.room, request.message, request.restorable)
    return {}


async def _hand_over(talk: Talk, viewer: Viewer, request: HandOverRequest) -> JSON:
    count = await talk.hand_over(viewer, request.room, request.entity, request.messages)
    return {"handed_over": count}


async def _given(talk: Talk, viewer: Viewer, request: OfMessageRequest) -> JSON:
    lines: list[JSON] = [*await talk.given(viewer, request.room, request.message)]
    return {"lines": lines}


async def _earlier(talk: Talk, viewer: Viewer, request: EarlierRequest) -> JSON:
    return await talk.earlier(viewer, request.room, request.before)


REQUESTS: Mapping[str, tuple[type[_PageRequest], Handler]] = {
    "rooms": (RoomsRequest, _rooms),
    "create": (CreateRequest, _create),
    "describe": (DescribeRequest, _describe),
    "presence": (PresenceRequest, _presence),
    "delete": (_OfRoomRequest, _delete),
    "say": (SayRequest, _say),
    "ask": (AskRequest, _ask),
    "stop": (_OfRoomRequest, _stop),
    "again": (OfMessageRequest, _again),
    "edit": (EditRequest, _edit),
    "forget": (ForgetRequest, _forget),
    "restore": (RestoreRequest, _restore),
    "earlier": (EarlierRequest, _earlier),
    "hand_over": (HandOverRequest, _hand_over),
    "given": (OfMessageRequest, _given),
}
"""Value of a frame's ``do`` → model of its other fields, and the function that carries it out."""


class ViewedRooms:
    """The rooms that one viewer may see."""

    def __init__(self, talk: Talk, viewer: Viewer) -> None:
        self._talk = talk
        self._viewer = viewer

    async def carry_out(self, do: str, fields: Mapping[str, JSON]) -> JSON:
        """Carry out a request of the viewer; see ``carry_out``."""
        return await carry_out(self._talk, self._viewer, do, fields)

    async def check(self, room: str) -> None:
        """Raise NotFound for a room that the viewer may not see, or that does not exist."""
        await self._talk.room(self._viewer, room)

    async def follow(self, room: str, since: int, hear: Listener) -> Callable[[], None]:
        """Call ``hear`` with each event of a room; see ``Talk.follow``."""
        return await self._talk.follow(self._viewer, room, since, hear)

    def listen(self, hear: Listener) -> Callable[[], None]:
        """Call ``hear`` when a room is made, changed or deleted (for the owner)."""
        if self._viewer.entity is not None:
            raise NotFound("room")
        return self._talk.listen(hear)


class House:
    """The rooms of an installation for a server: one view of them for each viewer."""

    def __init__(self, app: App, calls: Calls) -> None:
        self._talk = Talk(app, calls)

    def for_viewer(self, entity: EntityId | None) -> ViewedRooms:
        """Return the rooms that an entity's page may see; with None, the owner's page."""
        return ViewedRooms(self._talk, Viewer(entity))

    async def close(self) -> None:
        """End all answers; their text so far is stored."""
        await self._talk.close()


async def carry_out(talk: Talk, viewer: Viewer, do: str, fields: Mapping[str, JSON]) -> JSON:
    """Carry out a frame of a page.

    Raises:
        InvalidRequest: ``do`` is unknown, or a field is missing, unknown or out of
            bounds.
        PPSError: An error of ``Talk``.
    """
    entry = REQUESTS.get(do)
    if entry is None:
        raise InvalidRequest("do", f"must be one of {', '.join(sorted(REQUESTS))}")
    model, handle = entry
    try:
        request = model.model_validate(dict(fields))
    except ValidationError as error:
        first = cast("dict[str, Any]", error.errors(include_url=False, include_input=False)[0])
        field = ".".join(str(part) for part in first["loc"]) or "frame"
        raise InvalidRequest(field, str(first["msg"])) from None
    return await handle(talk, viewer, request)
