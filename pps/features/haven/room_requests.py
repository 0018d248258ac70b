"""What a page may ask of rooms over its socket: one frame each, checked here, carried out by ``Talk``."""

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
    """Which rooms and entities there are."""


class CreateRequest(_PageRequest):
    """A room to make."""

    title: Title = ""
    person: Person | None = None
    entities: Names


class DescribeRequest(_OfRoomRequest):
    """What a room is to be called, its person, and whether it is off the record."""

    title: Title | None = None
    person: Person | None = None
    off_record: bool | None = None


class PresenceRequest(_OfRoomRequest):
    """An entity to join, leave, be sent out or called in."""

    entity: EntityName
    change: Literal["joined", "sent_out", "called_in", "left"]


class SayRequest(_OfRoomRequest):
    """What the person says; ``message`` is a UUID that the page makes."""

    message: MessageId
    text: Text
    to: Names = []
    off_record: bool = False


class AskRequest(_OfRoomRequest):
    """Who is to answer a message that is there."""

    message: MessageId
    to: Names = []


class OfMessageRequest(_OfRoomRequest):
    """A message of a room."""

    message: MessageId


class EditRequest(OfMessageRequest):
    """What the person says in place of their last message."""

    new: MessageId
    text: Text


class ForgetRequest(OfMessageRequest):
    """In whom a message is to be forgotten."""

    entities: Names


class RestoreRequest(OfMessageRequest):
    """A forgotten message to bring back; ``restorable`` is what ``forget`` returned: name → id."""

    restorable: Annotated[dict[EntityName, RestorableId], Field(max_length=MOST_MEMBERS)]


class EarlierRequest(_OfRoomRequest):
    """The messages before a place."""

    before: Annotated[int, Field(ge=1)]


class HandOverRequest(_OfRoomRequest):
    """To whom messages are handed over; all where none are named."""

    entity: EntityName
    messages: Annotated[list[MessageId], Field(max_length=1_000)] | None = None


Answered = Callable[[Talk, Viewer, Any], Awaitable[JSON]]


async def _rooms(talk: Talk, viewer: Viewer, _: RoomsRequest) -> JSON:
    rooms: list[JSON] = [*await talk.rooms(viewer)]
    entities: list[JSON] = [*await talk.entities(viewer)]
    return {"rooms": rooms, "entities": entities, "is_owner": viewer.entity is None}


async def _create(talk: Talk, viewer: Viewer, asked: CreateRequest) -> JSON:
    return await talk.create(viewer, asked.title, asked.person, asked.entities)


async def _describe(talk: Talk, viewer: Viewer, asked: DescribeRequest) -> JSON:
    return await talk.describe(
        viewer, asked.room, title=asked.title, person=asked.person, off_record=asked.off_record
    )


async def _presence(talk: Talk, viewer: Viewer, asked: PresenceRequest) -> JSON:
    return await talk.change(viewer, asked.room, asked.entity, asked.change)


async def _delete(talk: Talk, viewer: Viewer, asked: _OfRoomRequest) -> JSON:
    await talk.delete(viewer, asked.room)
    return {}


async def _say(talk: Talk, viewer: Viewer, asked: SayRequest) -> JSON:
    return await talk.say(
        viewer, asked.room, asked.message, asked.text, to=asked.to, off_record=asked.off_record
    )


async def _ask(talk: Talk, viewer: Viewer, asked: AskRequest) -> JSON:
    await talk.ask(viewer, asked.room, asked.message, asked.to)
    return {}


async def _stop(talk: Talk, viewer: Viewer, asked: _OfRoomRequest) -> JSON:
    await talk.stop(viewer, asked.room)
    return {}


async def _again(talk: Talk, viewer: Viewer, asked: OfMessageRequest) -> JSON:
    await talk.again(viewer, asked.room, asked.message)
    return {}


async def _edit(talk: Talk, viewer: Viewer, asked: EditRequest) -> JSON:
    return await talk.edit(viewer, asked.room, asked.message, asked.new, asked.text)


async def _forget(talk: Talk, viewer: Viewer, asked: ForgetRequest) -> JSON:
    return await talk.forget(viewer, asked.room, asked.message, asked.entities)


async def _restore(talk: Talk, viewer: Viewer, asked: RestoreRequest) -> JSON:
    await talk.restore(viewer, asked.room, asked.message, asked.restorable)
    return {}


async def _hand_over(talk: Talk, viewer: Viewer, asked: HandOverRequest) -> JSON:
    handed = await talk.hand_over(viewer, asked.room, asked.entity, asked.messages)
    return {"handed_over": handed}


async def _given(talk: Talk, viewer: Viewer, asked: OfMessageRequest) -> JSON:
    lines: list[JSON] = [*await talk.given(viewer, asked.room, asked.message)]
    return {"lines": lines}


async def _earlier(talk: Talk, viewer: Viewer, asked: EarlierRequest) -> JSON:
    return await talk.earlier(viewer, asked.room, asked.before)


REQUESTS: Mapping[str, tuple[type[_PageRequest], Answered]] = {
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
"""What ``do`` of a frame may be → the frame's other fields, and what carries it out."""


class ViewedRooms:
    """The rooms that one viewer may see."""

    def __init__(self, talk: Talk, viewer: Viewer) -> None:
        self._talk = talk
        self._viewer = viewer

    async def carry_out(self, do: str, fields: Mapping[str, JSON]) -> JSON:
        """Carry out a request of the viewer; see ``carry_out``."""
        return await carry_out(self._talk, self._viewer, do, fields)

    async def check(self, room: str) -> None:
        """Raise NotFound for a room that the viewer may not see, as for one that there is not."""
        await self._talk.room(self._viewer, room)

    async def follow(self, room: str, since: int, hear: Listener) -> Callable[[], None]:
        """Hear what happens in a room; see ``Talk.follow``."""
        return await self._talk.follow(self._viewer, room, since, hear)

    def listen(self, hear: Listener) -> Callable[[], None]:
        """Hear of rooms that come, change or go; the owner's alone."""
        if self._viewer.entity is not None:
            raise NotFound("room")
        return self._talk.listen(hear)


class House:
    """What the feature provides to a server: the rooms, for each viewer."""

    def __init__(self, app: App, calls: Calls) -> None:
        self._talk = Talk(app, calls)

    def for_viewer(self, entity: EntityId | None) -> ViewedRooms:
        """Return the rooms that an entity's page, or (None) the owner's, may see."""
        return ViewedRooms(self._talk, Viewer(entity))

    async def close(self) -> None:
        """End all answers; what came of them is kept."""
        await self._talk.close()


async def carry_out(talk: Talk, viewer: Viewer, do: str, fields: Mapping[str, JSON]) -> JSON:
    """Carry out a frame.

    Raises:
        InvalidRequest: There is no such thing to do, or a field is missing, unknown or out of bounds.
        PPSError: What ``Talk`` raises.
    """
    known = REQUESTS.get(do)
    if known is None:
        raise InvalidRequest("do", f"must be one of {', '.join(sorted(REQUESTS))}")
    model, act = known
    try:
        asked = model.model_validate(dict(fields))
    except ValidationError as error:
        first = cast("dict[str, Any]", error.errors(include_url=False, include_input=False)[0])
        field = ".".join(str(part) for part in first["loc"]) or "frame"
        raise InvalidRequest(field, str(first["msg"])) from None
    return await act(talk, viewer, asked)
