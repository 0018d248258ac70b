"""The requests of a page about rooms: frames of its socket, checked here, run by ``Talk``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    """What a frame of a page asks for; ``run`` carries it out for the viewer."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        raise NotImplementedError


class RoomsRequest(_PageRequest):
    """List the rooms and entities that the viewer may see."""

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        rooms: list[JSON] = [*await talk.rooms(viewer)]
        entities: list[JSON] = [*await talk.entities(viewer)]
        return {"rooms": rooms, "entities": entities, "is_owner": viewer.entity is None}


class CreateRequest(_PageRequest):
    """Make a room."""

    title: Title = ""
    person: Person | None = None
    entities: Names

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        return await talk.create(viewer, self.title, self.person, self.entities)


class _OfRoomRequest(_PageRequest):
    room: RoomId


class DescribeRequest(_OfRoomRequest):
    """Change a room's title, its person's name, or whether it is off the record."""

    title: Title | None = None
    person: Person | None = None
    off_record: bool | None = None

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        return await talk.describe(
            viewer, self.room, title=self.title, person=self.person, off_record=self.off_record
        )


class PresenceRequest(_OfRoomRequest):
    """Let an entity join or leave, send it out or call it in."""

    entity: EntityName
    change: Literal["joined", "sent_out", "called_in", "left"]

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        return await talk.change(viewer, self.room, self.entity, self.change)


class DeleteRequest(_OfRoomRequest):
    """Delete a room."""

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        await talk.delete(viewer, self.room)
        return {}


class SayRequest(_OfRoomRequest):
    """Say a message; ``message`` is a UUID that the page makes."""

    message: MessageId
    text: Text
    to: Names = []
    off_record: bool = False

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        return await talk.say(
            viewer, self.room, self.message, self.text, to=self.to, off_record=self.off_record
        )


class AskRequest(_OfRoomRequest):
    """Let entities answer an existing message."""

    message: MessageId
    to: Names = []

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        await talk.ask(viewer, self.room, self.message, self.to)
        return {}


class StopRequest(_OfRoomRequest):
    """End the answers of a room."""

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        await talk.stop(viewer, self.room)
        return {}


class _OfMessageRequest(_OfRoomRequest):
    message: MessageId


class AgainRequest(_OfMessageRequest):
    """Let the author of an answer answer once more."""

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        await talk.again(viewer, self.room, self.message)
        return {}


class EditRequest(_OfMessageRequest):
    """Replace the person's last message with a new one."""

    new: MessageId
    text: Text

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        return await talk.edit(viewer, self.room, self.message, self.new, self.text)


class ForgetRequest(_OfMessageRequest):
    """Forget a message in the memories of some entities."""

    entities: Names

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        return await talk.forget(viewer, self.room, self.message, self.entities)


class RestoreRequest(_OfMessageRequest):
    """Restore a forgotten message; ``restorable`` is that of ``forget``'s answer: name → id."""

    restorable: Annotated[dict[EntityName, RestorableId], Field(max_length=MOST_MEMBERS)]

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        await talk.restore(viewer, self.room, self.message, self.restorable)
        return {}


class EarlierRequest(_OfRoomRequest):
    """Read the messages before a place."""

    before: Annotated[int, Field(ge=1)]

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        return await talk.earlier(viewer, self.room, self.before)


class HandOverRequest(_OfRoomRequest):
    """Store messages in an entity that did not hear them; all if ``messages`` is None."""

    entity: EntityName
    messages: Annotated[list[MessageId], Field(max_length=1_000)] | None = None

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        count = await talk.hand_over(viewer, self.room, self.entity, self.messages)
        return {"handed_over": count}


class GivenRequest(_OfMessageRequest):
    """Read the items of memory that the author of an answer was given."""

    async def run(self, talk: Talk, viewer: Viewer) -> JSON:
        lines: list[JSON] = [*await talk.given(viewer, self.room, self.message)]
        return {"lines": lines}


REQUESTS: Mapping[str, type[_PageRequest]] = {
    "rooms": RoomsRequest,
    "create": CreateRequest,
    "describe": DescribeRequest,
    "presence": PresenceRequest,
    "delete": DeleteRequest,
    "say": SayRequest,
    "ask": AskRequest,
    "stop": StopRequest,
    "again": AgainRequest,
    "edit": EditRequest,
    "forget": ForgetRequest,
    "restore": RestoreRequest,
    "earlier": EarlierRequest,
    "hand_over": HandOverRequest,
    "given": GivenRequest,
}
"""Value of a frame's ``do`` → the model of its other fields."""


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
    model = REQUESTS.get(do)
    if model is None:
        raise InvalidRequest("do", f"must be one of {', '.join(sorted(REQUESTS))}")
    try:
        request = model.model_validate(dict(fields))
    except ValidationError as error:
        first = cast("dict[str, Any]", error.errors(include_url=False, include_input=False)[0])
        field = ".".join(str(part) for part in first["loc"]) or "frame"
        raise InvalidRequest(field, str(first["msg"])) from None
    return await request.run(talk, viewer)
