"""Talking: rooms, who is in them, what is said there, and the answers of those who are asked.

What is said is kept, on disk, by every entity that is in the room, before any model is asked, and by nobody else. One
message or answer is kept at a time in a room, under its lock; everybody who listens hears of it in that order.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound, Overloaded, PPSError
from pps.core.ids import EntityId
from pps.core.log_context import unforeseen
from pps.core.time import now
from pps.core.values import JSON
from pps.entities.rooms import Change, TalkRoom
from pps.features.haven.room_answer import RoomAnswer, chat_model_of
from pps.features.haven.room_messages import MOST_MESSAGES, RoomMessage, RoomMessages, merged
from pps.memory import Memory
from pps.operations.calls import Caller, Calls

_log = logging.getLogger(__name__)
MOST_WITHOUT_PERSON = 6
"""Most answers to what entities said, after one message of the person."""
_MOST_WAITING = 50
_SHOWN_OFF_RECORD = 200
_LET_GO_S = 30.0
_PAGE, _PAGE_CHARACTERS = 100, 1_000_000
_INSIDE = "something went wrong inside PPS; its log says what"
Event: TypeAlias = dict[str, JSON]
Listener: TypeAlias = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks: the owner, who may see every room, or the session of one entity, who may see its own room."""

    entity: EntityId | None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """An answer that is wanted."""

    entity: EntityId
    reply_to: str
    off_record: bool


@dataclass
class _Live:
    """What the process knows of a room that somebody looked at, and no disk does."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    listeners: list[Listener] = field(default_factory=list[Listener])
    wanted: deque[_Wanted] = field(default_factory=deque[_Wanted])
    off_record: list[RoomMessage] = field(default_factory=list[RoomMessage])
    answer: RoomAnswer | None = None
    answering: asyncio.Task[None] | None = None
    problem: dict[str, JSON] | None = None
    without_person: int = 0
    is_recovered: bool = False


class Talk:
    """The rooms of an installation, for whoever may see them.

    Methods that take a viewer raise NotFound("room") for a room that the viewer may not see, as for one that there is
    not; all may raise what the memories raise.
    """

    def __init__(self, app: App, calls: Calls) -> None:
        self._app = app
        self._calls = calls
        self._rooms = app.registry.rooms
        self._live: dict[str, _Live] = {}
        self._house: list[Listener] = []
        self._end_hearing = app.hear_of_leaving(self._let_go)

    # Who may see what

    async def rooms(self, viewer: Viewer) -> list[Event]:
        """Return the rooms that a viewer may see: of an entity's session its own, made when it is first asked for."""
        if viewer.entity is not None:
            room = await asyncio.to_thread(
                self._rooms.own, viewer.entity, self._app.settings.person
            )
            return [await self._room_json(room)]
        rooms = await asyncio.to_thread(self._rooms.list)
        return [await self._room_json(room) for room in rooms]

    async def entities(self, viewer: Viewer) -> list[Event]:
        """Return the entities that a viewer may talk with, each with what stands in the way of its answers."""
        if viewer.entity is not None:
            return [await self._entity_json(viewer.entity)]
        entries = await asyncio.to_thread(self._app.registry.list)
        squads = self._app.registry.squads
        return [
            await self._entity_json(entry.entity)
            for entry in entries
            if not squads.pool_of(entry.entity.name)
        ]

    async def room(self, viewer: Viewer, id: str) -> TalkRoom:
        """Return a room that a viewer may see."""
        room = await asyncio.to_thread(self._rooms.get, id)
        if viewer.entity is not None and room.owned_by != viewer.entity:
            raise NotFound("room")
        return room

    # Listening

    def listen(self, hear: Listener) -> Callable[[], None]:
        """Hear of rooms that come, change or go (for the owner); return what ends it."""
        self._house.append(hear)
        return lambda: self._house.remove(hear)

    async def follow(
        self, viewer: Viewer, id: str, since: int, hear: Listener
    ) -> Callable[[], None]:
        """Hear what happens in a room from now on, after what happened since a position; return what ends it.

        The first event is ``room_state``: the room, the messages that changed after ``since``, the ids of all that
        there are, and the answer that is being given, as far as it has come. Who knows nothing yet (0), or missed
        more than a page, gets the newest page, and ``since`` is 0 there; ``earlier`` has those before.
        """
        await self.room(viewer, id)
        live = self._live_room(id)
        async with self._locked(id):
            room = await self.room(viewer, id)
            messages = await self._messages(room)
            missed = [one for one in messages if one.position > since]
            if since == 0 or len(missed) > _PAGE:
                since, missed = 0, _newest(messages)
            state: Event = {
                "event": "room_state",
                "room": id,
                "position": room.position,
                "since": since,
                "state": await self._room_json(room),
                "messages": [one.as_json() for one in missed],
                "ids": [one.id for one in messages],
            }
            hear({**state, **_doing(live)})
            live.listeners.append(hear)
        return lambda: live.listeners.remove(hear)

    async def earlier(self, viewer: Viewer, id: str, before: int) -> Event:
        """Return a page of the messages before a place, the oldest first, and whether there are more."""
        room = await self.room(viewer, id)
        messages = [one for one in await self._messages(room) if one.place < before]
        page = _newest(messages)
        return {"messages": [one.as_json() for one in page], "more": len(page) < len(messages)}

    # Rooms

    async def create(
        self, viewer: Viewer, title: str, person: str | None, entities: Sequence[str]
    ) -> Event:
        """Make a room of some entities, with a person of the name that is set where None is given; the owner's alone."""
        _check_owner(viewer)
        person = self._app.settings.person if person is None else person
        ids = [await self._entity(name) for name in entities]
        room = await asyncio.to_thread(self._rooms.create, title, person, ids)
        return await self._told(room)

    async def describe(
        self,
        viewer: Viewer,
        id: str,
        *,
        title: str | None = None,
        person: str | None = None,
        off_record: bool | None = None,
    ) -> Event:
        """Give a room another title, its person another name, or let it be off the record or on it again."""
        await self.room(viewer, id)
        async with self._locked(id):
            room = await asyncio.to_thread(
                lambda: self._rooms.describe(id, title=title, person=person, off_record=off_record)
            )
            return await self._told(room)

    async def change(self, viewer: Viewer, id: str, entity: str, change: Change) -> Event:
        """Let an entity join, leave, be sent out or called in again; what it is saying ends where it goes."""
        room = await self.room(viewer, id)
        if change in ("joined", "left"):
            _check_owner(viewer)
        whom = next((member for member in room.members() if member.name == entity), None)
        if whom is None and viewer.entity is not None:
            # Before anything is looked up: whether there is an entity of that name is not for this session to know.
            raise InvalidRequest("entity", "must be of this room")
        if whom is None:
            whom = await self._entity(entity)
        live = self._live_room(id)
        if change in ("left", "sent_out"):
            live.wanted = deque(one for one in live.wanted if one.entity != whom)
            if live.answer is not None and live.answer.message.author == whom.name:
                live.answer.stop()
        async with self._locked(id):
            await asyncio.to_thread(self._rooms.change, id, whom, change)
            if change in ("left", "sent_out") and live.answer is not None:
                live.answer.lose(whom.name)
            return await self._told(await asyncio.to_thread(self._rooms.get, id))

    async def delete(self, viewer: Viewer, id: str) -> None:
        """Take a room away; what its entities heard there stays with them."""
        _check_owner(viewer)
        await self.stop(viewer, id)
        async with self._locked(id):
            await asyncio.to_thread(self._rooms.delete, id)
            event: Event = {"event": "room_gone", "room": id}
            self._tell(id, event)
            for hear in tuple(self._house):
                hear(event)
            self._live.pop(id, None)

    # What is said

    async def say(
        self,
        viewer: Viewer,
        id: str,
        message: str,
        text: str,
        *,
        to: Sequence[str] = (),
        off_record: bool = False,
    ) -> Event:
        """Keep what the person says in every entity that is in the room, then let those answer who are addressed.

        Args:
            viewer: Who speaks.
            id: Of the room.
            message: Its id, a UUID that the caller makes: the same message sent again is kept once.
            text: 1 to 65,536 characters.
            to: Names of those who are to answer; those that the text names when empty, else all in turn.
            off_record: It is in no memory; so is what is answered.

        Raises:
            InvalidRequest: Nobody is in the room, or a bound is broken; nothing was changed.
            Overloaded: Too many answers wait there; nothing was changed, and it may be said again.
        """
        room = await self.room(viewer, id)
        live = self._live_room(id)
        async with self._locked(id):
            room = await self.room(viewer, id)
            present = room.present()
            if not present:
                raise InvalidRequest("room", "nobody is in it; let an entity join or call one in")
            addressed = _addressed(text, to, present)
            messages = await self._messages(room)
            known = next((one for one in messages if one.id == message), None)
            if known is not None and known.author:
                raise InvalidRequest("message", "is the id of another message")
            answered = {one.author for one in messages if one.reply_to == message}
            asked = [entity for entity in addressed if entity.name not in answered]
            _check_waiting(live, len(asked))
            if known is None:
                new = await self._new_message(room, message, text, off_record=off_record)
                said = await self._keep(room, new, present)
            elif known.off_record:
                said = known
            else:  # some may have it and others not yet: the process ended in between
                were_there = room.present_at(known.place)
                said = await self._keep(room, known, [one for one in present if one in were_there])
            live.without_person = 0
            live.problem = None
            for entity in asked:
                self._want(live, _Wanted(entity, said.id, said.off_record))
        self._go_on(id)
        return said.as_json()

    async def ask(self, viewer: Viewer, id: str, message: str, to: Sequence[str]) -> None:
        """Let entities answer a message that they have, such as one that a server's end left unanswered.

        Args:
            viewer: Who asks.
            id: Of the room.
            message: Its id.
            to: Names of those who are to answer; when empty, those whom the person's words address, else all.
        """
        room = await self.room(viewer, id)
        live = self._live_room(id)
        async with self._locked(id):
            found = await self._message(room, message)
            asked = [
                entity
                for entity in _addressed("" if found.author else found.text, to, room.present())
                if entity.name in found.turns and entity.name != found.author
            ]
            _check_waiting(live, len(asked))
            for entity in asked:
                self._want(live, _Wanted(entity, found.id, found.off_record))
            live.problem = None
        self._go_on(id)

    async def stop(self, viewer: Viewer, id: str) -> None:
        """End what is being answered in a room, and what waits to be; what came is kept, and marked."""
        await self.room(viewer, id)
        live = self._live_room(id)
        live.wanted.clear()
        if live.answer is not None:
            live.answer.stop()
        if live.answering is not None:
            await asyncio.wait([live.answering])

    async def again(self, viewer: Viewer, id: str, message: str) -> None:
        """Forget an answer, with what its author wrote down for it, in all who have it, and let it answer anew."""
        room = await self.room(viewer, id)
        live = self._live_room(id)
        async with self._locked(id):
            found = await self._message(room, message)
            last = await self._last_of_person(room)
            author = next((one for one in room.present() if one.name == found.author), None)
            if not found.author or (last and found.place < last.place):
                raise InvalidRequest("message", "must be an answer after the person's last message")
            if author is None:
                raise InvalidRequest("message", f"{found.author} is not in the room")
            _check_waiting(live, 1)
            await self._forget(room, [found], list(found.turns), soft=False)
            live.problem = None
            self._want(live, _Wanted(author, found.reply_to, found.off_record), at_once=True)
        self._go_on(id)

    async def edit(self, viewer: Viewer, id: str, message: str, new: str, text: str) -> Event:
        """Say something else in place of the person's last message: it and what followed are forgotten first.

        Args:
            viewer: Who speaks.
            id: Of the room.
            message: The person's last message.
            new: The id of the one in its place.
            text: Its words; see ``say``.
        """
        room = await self.room(viewer, id)
        await self.stop(viewer, id)
        async with self._locked(id):
            last = await self._last_of_person(room)
            if last is None or last.id != message:
                raise InvalidRequest("message", "must be the person's last message")
            later = [one for one in await self._messages(room) if one.place >= last.place]
            for one in reversed(later):
                await self._forget(room, [one], list(one.turns), soft=False)
        return await self.say(viewer, id, new, text, off_record=last.off_record)

    async def forget(self, viewer: Viewer, id: str, message: str, entities: Sequence[str]) -> Event:
        """Forget a message in some of the entities that have it, so that it can be restored.

        Returns ``left``, the names of those who still have it, and ``restorable``: the name of each entity that forgot
        it → the id by which ``restore`` brings it back there.
        """
        room = await self.room(viewer, id)
        async with self._locked(id):
            found = await self._message(room, message)
            unknown = sorted(set(entities) - found.turns.keys())
            if unknown or not entities:
                raise InvalidRequest("entities", f"must be of those who have it: {[*found.turns]}")
            restorable = await self._forget(room, [found], entities, soft=True)
        left: list[JSON] = [name for name in found.turns if name not in entities]
        return {"message": message, "left": left, "restorable": {**restorable}}

    async def restore(
        self, viewer: Viewer, id: str, message: str, restorable: Mapping[str, str]
    ) -> None:
        """Bring a forgotten message back in the memories that forgot it, as ``forget`` returned them.

        Raises:
            NotFound: Nothing of that id can be restored there any more; the memories before it have it back.
            InvalidRequest: One of the names was never in the room; nothing was changed.
        """
        room = await self.room(viewer, id)
        members = {entity.name: entity for entity in room.ever()}
        if unknown := sorted(restorable.keys() - members.keys()):
            raise InvalidRequest("restorable", f"{unknown[0]!r} was never in the room")
        async with self._locked(id):
            for name, bin_id in restorable.items():
                caller = Caller.of_entity(members[name])
                await self._calls.answer(caller, "restore_forgotten", {"id": bin_id})
            found = await self._message(room, message)
            position = await asyncio.to_thread(self._rooms.advance, id)
            self._tell_message(replace(found, position=position))

    async def hand_over(
        self, viewer: Viewer, id: str, entity: str, messages: Sequence[str] | None
    ) -> int:
        """Give an entity of the room what was said there when it was not; return how many messages it has now more.

        Args:
            viewer: The owner.
            id: Of the room.
            entity: The name of one of its members.
            messages: Their ids; all that are on the record when None.
        """
        _check_owner(viewer)
        room = await self.room(viewer, id)
        async with self._locked(id):
            whom = next((one for one in room.members() if one.name == entity), None)
            if whom is None:
                raise InvalidRequest("entity", "must be of this room")
            found = [one for one in await self._messages(room) if not one.off_record]
            if messages is not None:
                unknown = set(messages) - {one.id for one in found}
                if unknown:
                    raise NotFound("message")
                found = [one for one in found if one.id in messages]
            found = [one for one in found if entity not in one.turns]
            for one in found:
                position = await asyncio.to_thread(self._rooms.advance, id)
                handed = replace(one, position=position)
                async with self._app.memory(whom) as memory:
                    turn = await RoomMessages(memory).keep(handed, heard="handed over")
                handed = replace(
                    handed,
                    turns={**one.turns, entity: turn},
                    handed_over=(*one.handed_over, entity),
                )
                self._tell_message(handed)
        return len(found)

    async def given(self, viewer: Viewer, id: str, message: str) -> list[Event]:
        """Return what the author of an answer was given for it: a line each, of what is still there."""
        room = await self.room(viewer, id)
        found = await self._message(room, message)
        author = next((one for one in room.ever() if one.name == found.author), None)
        if author is None or not found.shown:
            return []
        async with self._app.memory(author) as memory:
            lines = await memory.sessions.lines(found.shown)
        return [{"id": line.id, "kind": line.kind, "text": line.text} for line in lines]

    async def close(self) -> None:
        """End all answers; what came of them is kept as far as it came."""
        self._end_hearing()
        tasks = [live.answering for live in self._live.values() if live.answering]
        for live in self._live.values():
            live.wanted.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # Answering

    async def _let_go(self, name: str) -> None:
        """End what an entity that is about to be archived or deleted is saying; what came is kept before this returns."""
        for live in tuple(self._live.values()):
            live.wanted = deque(one for one in live.wanted if one.entity.name != name)
            answer = live.answer
            if answer is not None and answer.message.author == name:
                answer.stop()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(answer.is_finished.wait(), _LET_GO_S)

    def _want(self, live: _Live, wanted: _Wanted, *, at_once: bool = False) -> None:
        is_there = any(
            (one.entity, one.reply_to) == (wanted.entity, wanted.reply_to) for one in live.wanted
        )
        is_given = (
            live.answer is not None
            and live.answer.message.author == wanted.entity.name
            and live.answer.message.reply_to == wanted.reply_to
        )
        if not is_there and not is_given:
            live.wanted.insert(0, wanted) if at_once else live.wanted.append(wanted)

    def _go_on(self, id: str) -> None:
        """Give the answers that are wanted in a room, one after the other, unless that is being done."""
        live = self._live_room(id)
        if live.wanted and (live.answering is None or live.answering.done()):
            live.answering = asyncio.create_task(self._answer_all(id, live), name=f"talk-{id}")

    async def _answer_all(self, id: str, live: _Live) -> None:
        while live.wanted:
            wanted = live.wanted.popleft()
            try:
                await self._answer(id, live, wanted)
            except PPSError as error:
                self._tell_problem(id, live, wanted.entity.name, error.message)
            except Exception as error:  # noqa: BLE001 - a task's outermost call: the room says it
                unforeseen(_log, "an answer in a room failed", error)
                self._tell_problem(id, live, wanted.entity.name, _INSIDE)

    async def _answer(self, id: str, live: _Live, wanted: _Wanted) -> None:
        name = wanted.entity.name
        async with self._locked(id):
            room = await asyncio.to_thread(self._rooms.get, id)
            if wanted.entity not in room.present():
                return
            place = await asyncio.to_thread(self._rooms.advance, id)
            audience = [one.name for one in room.present()]
            message = RoomMessage(
                id=str(uuid.uuid4()),
                room=id,
                place=place,
                position=place,
                author=name,
                speaker=name,
                text="",
                at=now(),
                reply_to=wanted.reply_to,
                off_record=wanted.off_record,
            )

            def hear(at: int, words: str) -> None:
                self._tell(
                    id,
                    {
                        "event": "words",
                        "room": id,
                        "entity": name,
                        "id": message.id,
                        "at": at,
                        "text": words,
                    },
                )

            answer = live.answer = RoomAnswer(message, audience, hear)
            live.problem = None
            self._tell(id, {"event": "begins", "room": id, "entity": name, **_doing(live)})
        problem = ""
        try:
            async with self._app.memory(wanted.entity) as memory:
                history = await self._heard(memory, live, wanted)
                await answer.give(memory, self._calls, room, history)
        except PPSError as error:
            problem = error.message
        except asyncio.CancelledError:
            await asyncio.shield(self._finish(id, live, answer, "the server ended"))
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the answer ends and the room goes on
            unforeseen(_log, "an answer in a room failed", error)
            problem = _INSIDE
        await self._finish(id, live, answer, problem)
        await self._let_others_answer(id, live, answer, wanted)

    async def _finish(self, id: str, live: _Live, answer: RoomAnswer, problem: str) -> None:
        """Keep what came of an answer in those who were there all the while, and tell how it ended."""
        message = answer.message
        is_whole = not (problem or answer.is_stopped)
        async with self._locked(id):
            live.answer = None
            try:
                room = await asyncio.to_thread(self._rooms.get, id)
                if message.text.strip():
                    mark = "" if is_whole else "stopped" if answer.is_stopped else "cut off"
                    message = replace(message, text=message.text.strip(), mark=mark, at=now())
                    author = next(one for one in room.ever() if one.name == message.author)
                    there = [one for one in room.present() if one.name in answer.audience]
                    await self._keep(room, message, tuple(dict.fromkeys((author, *there))))
                if not message.off_record:
                    async with self._app.memory(message.author) as memory:
                        await answer.drop_note(RoomMessages(memory))
            finally:
                ended: Event = {
                    "event": "ended",
                    "room": id,
                    "entity": message.author,
                    "id": message.id,
                }
                if problem:
                    live.problem = {"entity": message.author, "text": problem}
                    ended["problem"] = problem
                self._tell(id, ended)
                answer.is_finished.set()

    async def _let_others_answer(
        self, id: str, live: _Live, answer: RoomAnswer, wanted: _Wanted
    ) -> None:
        """Let those answer whom an answer addresses by @ and name, a bounded number of times without the person."""
        message = answer.message
        if answer.is_stopped:
            return
        room = await asyncio.to_thread(self._rooms.get, id)
        for entity in room.present():
            is_other = entity.name != message.author and entity.name in answer.audience
            if not is_other or not _names(message.text, entity.name):
                continue
            if any(one.entity == entity for one in live.wanted):
                continue  # it answers anyway, and reads this first
            if live.without_person >= MOST_WITHOUT_PERSON:
                return
            live.without_person += 1
            self._want(live, _Wanted(entity, message.id, wanted.off_record))

    async def _heard(self, memory: Memory, live: _Live, wanted: _Wanted) -> list[RoomMessage]:
        """Return what an entity heard in a room, the message that it answers last of all that is before its answer."""
        if live.answer is None:
            return []
        room = live.answer.message.room
        heard = await RoomMessages(memory).of_room(room)
        if wanted.off_record:
            name = memory.entity.name
            heard += [one for one in live.off_record if name in one.turns]
            heard.sort(key=lambda message: message.place)
        return [one for one in heard if one.place < live.answer.message.place]

    # Keeping

    async def _new_message(
        self, room: TalkRoom, id: str, text: str, *, off_record: bool
    ) -> RoomMessage:
        """Return a message of the person at the next place of a room; nothing is kept yet."""
        place = await asyncio.to_thread(self._rooms.advance, room.id)
        return RoomMessage(
            id=id,
            room=room.id,
            place=place,
            position=place,
            author="",
            speaker=room.person,
            text=text,
            at=now(),
            off_record=off_record or room.off_record,
        )

    async def _keep(
        self, room: TalkRoom, message: RoomMessage, present: Sequence[EntityId]
    ) -> RoomMessage:
        """Keep a message in each entity that hears it, tell of it, and return it with its turns."""
        live = self._live_room(room.id)
        if message.author:
            position = await asyncio.to_thread(self._rooms.advance, room.id)
            message = replace(message, position=position)
        if message.off_record:
            message = replace(message, turns={entity.name: "" for entity in present})
            live.off_record = [*live.off_record, message][-_SHOWN_OFF_RECORD:]
        else:
            turns = dict(message.turns)
            for entity in present:
                async with self._app.memory(entity) as memory:
                    turns[entity.name] = await RoomMessages(memory).keep(message)
            message = await self._as_kept(replace(message, turns=turns))
        self._tell_message(message)
        return message

    async def _as_kept(self, message: RoomMessage) -> RoomMessage:
        """Return a message with the words that were kept: those of a secret are replaced with a marker."""
        name = message.author if message.author in message.turns else next(iter(message.turns))
        async with self._app.memory(name) as memory:
            found = await RoomMessages(memory).of_room(message.room, limit=20)
        kept = next((one for one in found if one.id == message.id), None)
        return replace(message, text=kept.text) if kept else message

    async def _forget(
        self,
        room: TalkRoom,
        messages: Sequence[RoomMessage],
        entities: Sequence[str],
        *,
        soft: bool,
    ) -> dict[str, str]:
        """Forget messages in some entities, and tell who still has them; return what can be restored, by entity."""
        live = self._live_room(room.id)
        restorable: dict[str, str] = {}
        for message in messages:
            left = {name: turn for name, turn in message.turns.items() if name not in entities}
            for name in entities:
                turns = [message.turns[name]] if message.turns[name] else []
                if name == message.author and not soft:
                    turns += message.written
                if turns and (bin_id := await self._forget_turns(room, name, turns, soft=soft)):
                    restorable[name] = bin_id
            if message.off_record:
                live.off_record = [one for one in live.off_record if one.id != message.id]
                left = {}
            position = await asyncio.to_thread(self._rooms.advance, room.id)
            if left:
                self._tell_message(replace(message, position=position, turns=left))
            else:
                self._tell(
                    room.id,
                    {
                        "event": "message_gone",
                        "room": room.id,
                        "position": position,
                        "id": message.id,
                    },
                )
        return restorable

    async def _forget_turns(
        self, room: TalkRoom, name: str, turns: Sequence[str], *, soft: bool
    ) -> str:
        """Forget turns as the entity would by itself, with the copies that it shared.

        Returns what the last of them can be restored by; empty where it cannot.
        """
        entity = next((member for member in room.ever() if member.name == name), None)
        if entity is None:
            raise NotFound("entity")
        restorable = ""
        for turn in turns:
            request: dict[str, JSON] = {"ids": [turn], "dry_run": False, "soft": soft}
            try:
                answer = await self._calls.answer(Caller.of_entity(entity), "forget", request)
            except NotFound:
                continue  # it was forgotten otherwise meanwhile
            restorable = str(answer.data.get("restorable_as") or "")
        return restorable

    async def _message(self, room: TalkRoom, id: str) -> RoomMessage:
        for message in await self._messages(room):
            if message.id == id:
                return message
        raise NotFound("message")

    async def _last_of_person(self, room: TalkRoom) -> RoomMessage | None:
        mine = [one for one in await self._messages(room) if not one.author]
        return mine[-1] if mine else None

    async def _messages(self, room: TalkRoom) -> list[RoomMessage]:
        """Return the newest messages of a room, in order: of everyone who was ever there, and off the record."""
        found: list[RoomMessage] = []
        for entity in room.ever():
            if entity in room.at_rest:
                continue
            async with self._app.memory(entity) as memory:
                found += await RoomMessages(memory).of_room(room.id)
        found += self._live_room(room.id).off_record
        return merged(found)[-MOST_MESSAGES:]

    @asynccontextmanager
    async def _locked(self, id: str) -> AsyncGenerator[None]:
        live = self._live_room(id)
        async with live.lock:
            if not live.is_recovered:
                await self._recover(id)
                live.is_recovered = True
            yield

    async def _recover(self, id: str) -> None:
        """Keep, as far as they came, the answers that were being given when the process before this one ended."""
        room = await asyncio.to_thread(self._rooms.get, id)
        for entity in room.ever():
            if entity in room.at_rest:
                continue
            async with self._app.memory(entity) as memory:
                messages = RoomMessages(memory)
                unfinished = await messages.unfinished(id)
            for answer in unfinished:
                there = [one for one in room.present() if one.name in answer.audience]
                if answer.message.text.strip():
                    await self._keep(room, answer.message, tuple(dict.fromkeys((entity, *there))))
                async with self._app.memory(entity) as memory:
                    await RoomMessages(memory).drop_answer(answer.row)

    # Telling

    def _live_room(self, id: str) -> _Live:
        return self._live.setdefault(id, _Live())

    def _tell(self, id: str, event: Event) -> None:
        for hear in tuple(self._live_room(id).listeners):
            hear(event)

    def _tell_message(self, message: RoomMessage) -> None:
        self._tell(
            message.room,
            {
                "event": "message",
                "room": message.room,
                "entity": message.author,
                "position": message.position,
                "message": message.as_json(),
            },
        )

    def _tell_problem(self, id: str, live: _Live, entity: str, problem: str) -> None:
        live.problem = {"entity": entity, "text": problem}
        self._tell(id, {"event": "problem", "room": id, **_doing(live)})

    async def _told(self, room: TalkRoom) -> Event:
        """Tell everybody of a room that it changed; return it."""
        event: Event = {
            "event": "room",
            "room": room.id,
            "position": room.position,
            "state": await self._room_json(room),
        }
        self._tell(room.id, event)
        for hear in tuple(self._house):
            hear(event)
        return event

    async def _room_json(self, room: TalkRoom) -> Event:
        members: list[JSON] = [
            {
                **await self._entity_json(entity),
                "is_out": change == "sent_out" or entity in room.at_rest,
                "is_at_rest": entity in room.at_rest,
            }
            for entity, change in room.members().items()
        ]
        changes: list[JSON] = [
            {
                "position": one.position,
                "entity": one.entity.name,
                "change": one.change,
                "at": one.at.isoformat(),
            }
            for one in room.changes
        ]
        return {
            "id": room.id,
            "title": room.title,
            "person": room.person,
            "owned_by": room.owned_by.name if room.owned_by else "",
            "off_record": room.off_record,
            "position": room.position,
            "created_at": room.created_at.isoformat(),
            "members": members,
            "changes": changes,
        }

    async def _entity_json(self, entity: EntityId) -> Event:
        """Return an entity as rooms show it: its name, and what stands in the way of its answers."""
        folder = self._app.registry.entities_folder / entity.name
        try:
            model = await asyncio.to_thread(chat_model_of, folder, entity.name)
        except PPSError as error:
            return {"name": entity.name, "model": "", "problem": error.message}
        return {"name": entity.name, "model": model.name, "problem": ""}

    async def _entity(self, name: str) -> EntityId:
        """Return an entity that may be in rooms, by its name.

        Raises:
            UnknownEntity: There is none of that name, or it is archived.
            InvalidRequest: It is the pool of a squad.
        """
        entry = await asyncio.to_thread(self._app.registry.mount, name)
        if self._app.registry.squads.pool_of(name):
            raise InvalidRequest("entity", f"{name!r} is the pool of a squad: nobody talks with it")
        return entry.entity


def _check_owner(viewer: Viewer) -> None:
    if viewer.entity is not None:
        raise InvalidRequest("do", "is for the owner's page (`pps haven`)")


def _check_waiting(live: _Live, more: int) -> None:
    """Raise Overloaded where a room has no place for so many more answers that wait."""
    if len(live.wanted) + more > _MOST_WAITING:
        raise Overloaded(
            f"{len(live.wanted)} answers wait in this room (at most {_MOST_WAITING}); stop them or wait"
        )


def _addressed(text: str, to: Sequence[str], present: Sequence[EntityId]) -> Sequence[EntityId]:
    """Return who is to answer: those that are named, else those that the text addresses, else all."""
    names = {entity.name for entity in present}
    unknown = [name for name in to if name not in names]
    if unknown:
        raise InvalidRequest("to", f"{unknown[0]!r} is not in the room")
    if to:
        return [entity for entity in present if entity.name in to]
    named = [entity for entity in present if _names(text, entity.name) or _calls(text, entity.name)]
    return named or present


def _names(text: str, name: str) -> bool:
    """Tell whether a text addresses somebody by @ and name."""
    return re.search(rf"(?<![\w@])@{re.escape(name)}(?![\w-])", text, re.IGNORECASE) is not None


def _calls(text: str, name: str) -> bool:
    """Tell whether a text begins with a name and a comma or colon."""
    return re.match(rf"\s*{re.escape(name)}\s*[,:]", text, re.IGNORECASE) is not None


def _newest(messages: Sequence[RoomMessage]) -> list[RoomMessage]:
    """Return a page of the newest messages, the oldest first; bounded in number and characters."""
    page: list[RoomMessage] = []
    characters = 0
    for message in reversed(messages[-_PAGE:]):
        characters += len(message.text)
        if page and characters > _PAGE_CHARACTERS:
            break
        page.append(message)
    return page[::-1]


def _doing(live: _Live) -> Event:
    """Return what goes on in a room that no disk has: the answer as far as it came, who answers next, what failed."""
    answer = live.answer
    return {
        "answer": None
        if answer is None
        else {
            "id": answer.message.id,
            "author": answer.message.author,
            "reply_to": answer.message.reply_to,
            "place": answer.message.place,
            "off_record": answer.message.off_record,
            "text": answer.message.text,
        },
        "waiting": [wanted.entity.name for wanted in live.wanted],
        "problem": live.problem,
    }
