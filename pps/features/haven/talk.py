"""Rooms: their members, their messages, and the answers of the entities that are addressed.

Before any model is called, a message is on disk in the memory of every entity that is in the room,
and in no other. A room's lock is held while a message or an answer is stored; all listeners receive
the events in that order.
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
"""Most answers to messages of entities, after one message of the person."""
_MOST_WAITING = 50
_SHOWN_OFF_RECORD = 200
_LET_GO_S = 30.0
_PAGE = 100
_PAGE_CHARACTERS = 1_000_000
_INSIDE = "something went wrong inside PPS; its log says what"
Event: TypeAlias = dict[str, JSON]
Listener: TypeAlias = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at rooms: the owner (None) sees all, the session of an entity its own room."""

    entity: EntityId | None


@dataclass(frozen=True, slots=True)
class _QueuedAnswer:
    """An answer that an entity is to give to a message."""

    entity: EntityId
    reply_to: str
    off_record: bool


@dataclass
class _Live:
    """The state of a room that is in this process only, for a room that somebody opened."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    listeners: list[Listener] = field(default_factory=list[Listener])
    queue: deque[_QueuedAnswer] = field(default_factory=deque[_QueuedAnswer])
    off_record: list[RoomMessage] = field(default_factory=list[RoomMessage])
    answer: RoomAnswer | None = None
    answering: asyncio.Task[None] | None = None
    problem: dict[str, JSON] | None = None
    without_person: int = 0
    is_recovered: bool = False


class Talk:
    """The rooms of an installation, each for the viewers that may see it.

    Methods that take a viewer raise NotFound("room") for a room that the viewer may not see, the
    same as for a room that does not exist. All may raise the errors of the memories.
    """

    def __init__(self, app: App, calls: Calls) -> None:
        self._app = app
        self._calls = calls
        self._rooms = app.registry.rooms
        self._live: dict[str, _Live] = {}
        self._house_listeners: list[Listener] = []
        self._end_hearing = app.hear_of_leaving(self._end_answers_of)

    # Views

    async def rooms(self, viewer: Viewer) -> list[Event]:
        """Return the rooms that a viewer may see.

        The session of an entity sees the entity's own room, which the first call makes.
        """
        if viewer.entity is not None:
            room = await asyncio.to_thread(
                self._rooms.own, viewer.entity, self._app.settings.person
            )
            return [await self._room_json(room)]
        rooms = await asyncio.to_thread(self._rooms.list)
        return [await self._room_json(room) for room in rooms]

    async def entities(self, viewer: Viewer) -> list[Event]:
        """Return the entities that a viewer may talk with: name, model, reason for no answer."""
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
        """Call ``hear`` when a room is made, changed or deleted (for the owner); return a stop."""
        self._house_listeners.append(hear)
        return lambda: self._house_listeners.remove(hear)

    async def follow(
        self, viewer: Viewer, id: str, since: int, hear: Listener
    ) -> Callable[[], None]:
        """Call ``hear`` with each event of a room from now on; return a function that ends it.

        The first event is ``room_state``: the room, the messages that changed after ``since``, the
        ids of all its messages, and the text so far of the answer in progress. A caller that has no
        messages yet (``since`` is 0) or that missed more than a page gets the newest page and
        ``since`` 0; ``earlier`` returns the messages before it.
        """
        await self.room(viewer, id)
        live = self._live_room(id)
        async with self._locked(id):
            room = await self.room(viewer, id)
            messages = await self._messages(room)
            missed = [message for message in messages if message.position > since]
            if since == 0 or len(missed) > _PAGE:
                since = 0
                missed = _newest_page(messages)
            state: Event = {
                "event": "room_state",
                "room": id,
                "position": room.position,
                "since": since,
                "state": await self._room_json(room),
                "messages": [message.as_json() for message in missed],
                "ids": [message.id for message in messages],
            }
            hear({**state, **_live_json(live)})
            live.listeners.append(hear)
        return lambda: live.listeners.remove(hear)

    async def earlier(self, viewer: Viewer, id: str, before: int) -> Event:
        """Return a page of the messages before a place, oldest first, and whether more exist."""
        room = await self.room(viewer, id)
        messages = [message for message in await self._messages(room) if message.place < before]
        page = _newest_page(messages)
        return {
            "messages": [message.as_json() for message in page],
            "more": len(page) < len(messages),
        }

    # Rooms

    async def create(
        self, viewer: Viewer, title: str, person: str | None, entities: Sequence[str]
    ) -> Event:
        """Make a room of some entities (for the owner).

        The person has the name of the setting ``person`` if ``person`` is None.
        """
        _check_owner(viewer)
        person = self._app.settings.person if person is None else person
        ids = [await self._entity(name) for name in entities]
        room = await asyncio.to_thread(self._rooms.create, title, person, ids)
        return await self._announce(room)

    async def describe(
        self,
        viewer: Viewer,
        id: str,
        *,
        title: str | None = None,
        person: str | None = None,
        off_record: bool | None = None,
    ) -> Event:
        """Change a room's title, the name of its person, or whether it is off the record."""
        await self.room(viewer, id)
        async with self._locked(id):
            room = await asyncio.to_thread(
                lambda: self._rooms.describe(id, title=title, person=person, off_record=off_record)
            )
            return await self._announce(room)

    async def change(self, viewer: Viewer, id: str, entity: str, change: Change) -> Event:
        """Let an entity join or leave, send it out or call it in; its answer ends if it goes."""
        room = await self.room(viewer, id)
        if change in ("joined", "left"):
            _check_owner(viewer)
        member = next((member for member in room.members() if member.name == entity), None)
        if member is None and viewer.entity is not None:
            # Before any look-up: this session must not learn whether an entity of that name exists.
            raise InvalidRequest("entity", "must be of this room")
        if member is None:
            member = await self._entity(entity)
        live = self._live_room(id)
        if change in ("left", "sent_out"):
            live.queue = deque(queued for queued in live.queue if queued.entity != member)
            if live.answer is not None and live.answer.message.author == member.name:
                live.answer.stop()
        async with self._locked(id):
            await asyncio.to_thread(self._rooms.change, id, member, change)
            if change in ("left", "sent_out") and live.answer is not None:
                live.answer.lose(member.name)
            return await self._announce(await asyncio.to_thread(self._rooms.get, id))

    async def delete(self, viewer: Viewer, id: str) -> None:
        """Delete a room (for the owner); its messages stay in the memories of its entities."""
        _check_owner(viewer)
        await self.stop(viewer, id)
        async with self._locked(id):
            await asyncio.to_thread(self._rooms.delete, id)
            event: Event = {"event": "room_gone", "room": id}
            self._tell(id, event)
            for hear in tuple(self._house_listeners):
                hear(event)
            self._live.pop(id, None)

    # Messages

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
        """Store a message of the person in every entity that is in the room, then queue answers.

        Args:
            viewer: The viewer that speaks.
            id: Id of the room.
            message: Id of the message, a UUID that the caller makes. A message sent again is stored
                once.
            text: 1 to 65,536 characters.
            to: Names of the entities that are to answer; if empty, those that the text names, or
                else all in turn.
            off_record: Neither the message nor the answers to it go into a memory.

        Raises:
            InvalidRequest: Nobody is in the room, or a bound is broken; nothing was changed.
            Overloaded: Too many answers wait in the room; nothing was changed, and the caller may
                try again.
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
            stored = next((existing for existing in messages if existing.id == message), None)
            if stored is not None and stored.author:
                raise InvalidRequest("message", "is the id of another message")
            answered = {answer.author for answer in messages if answer.reply_to == message}
            responders = [entity for entity in addressed if entity.name not in answered]
            _check_queue(live, len(responders))
            if stored is None:
                new = await self._new_message(room, message, text, off_record=off_record)
                stored = await self._keep(room, new, present)
            elif not stored.off_record:
                # An earlier process may have ended between two memories: store it in the others.
                first_audience = room.present_at(stored.place)
                listeners = [entity for entity in present if entity in first_audience]
                stored = await self._keep(room, stored, listeners)
            live.without_person = 0
            live.problem = None
            for entity in responders:
                self._queue_answer(live, _QueuedAnswer(entity, stored.id, stored.off_record))
        self._start_answering(id)
        return stored.as_json()

    async def ask(self, viewer: Viewer, id: str, message: str, to: Sequence[str]) -> None:
        """Let entities answer a message that they have, such as one that a restart left unanswered.

        Args:
            viewer: The viewer that asks.
            id: Id of the room.
            message: Id of the message.
            to: Names of the entities that are to answer; if empty, those that the person's message
                names, or else all.
        """
        room = await self.room(viewer, id)
        live = self._live_room(id)
        async with self._locked(id):
            question = await self._message(room, message)
            person_text = "" if question.author else question.text
            responders = [
                entity
                for entity in _addressed(person_text, to, room.present())
                if entity.name in question.turns and entity.name != question.author
            ]
            _check_queue(live, len(responders))
            for entity in responders:
                self._queue_answer(live, _QueuedAnswer(entity, question.id, question.off_record))
            live.problem = None
        self._start_answering(id)

    async def stop(self, viewer: Viewer, id: str) -> None:
        """End the answer in progress and drop the queue; the text so far is stored and marked."""
        await self.room(viewer, id)
        live = self._live_room(id)
        live.queue.clear()
        if live.answer is not None:
            live.answer.stop()
        if live.answering is not None:
            await asyncio.wait([live.answering])

    async def again(self, viewer: Viewer, id: str, message: str) -> None:
        """Forget an answer and its author's notes in all memories, and queue a new answer."""
        room = await self.room(viewer, id)
        live = self._live_room(id)
        async with self._locked(id):
            answer = await self._message(room, message)
            last = await self._last_of_person(room)
            author = next((who for who in room.present() if who.name == answer.author), None)
            if not answer.author or (last and answer.place < last.place):
                raise InvalidRequest("message", "must be an answer after the person's last message")
            if author is None:
                raise InvalidRequest("message", f"{answer.author} is not in the room")
            _check_queue(live, 1)
            await self._forget(room, [answer], list(answer.turns), soft=False)
            live.problem = None
            queued = _QueuedAnswer(author, answer.reply_to, answer.off_record)
            self._queue_answer(live, queued, first=True)
        self._start_answering(id)

    async def edit(self, viewer: Viewer, id: str, message: str, new: str, text: str) -> Event:
        """Replace the person's last message: forget it and all after it, then say the new one.

        Args:
            viewer: The viewer that speaks.
            id: Id of the room.
            message: Id of the person's last message.
            new: Id of the new message.
            text: Text of the new message; see ``say``.
        """
        room = await self.room(viewer, id)
        await self.stop(viewer, id)
        async with self._locked(id):
            last = await self._last_of_person(room)
            if last is None or last.id != message:
                raise InvalidRequest("message", "must be the person's last message")
            outdated = [old for old in await self._messages(room) if old.place >= last.place]
            for old in reversed(outdated):
                await self._forget(room, [old], list(old.turns), soft=False)
        return await self.say(viewer, id, new, text, off_record=last.off_record)

    async def forget(self, viewer: Viewer, id: str, message: str, entities: Sequence[str]) -> Event:
        """Forget a message in some of the entities that have it, so that it can be restored.

        Returns ``left``, the names of the entities that still have it, and ``restorable``: name of
        an entity that forgot it → the id by which ``restore`` brings it back in that memory.
        """
        room = await self.room(viewer, id)
        async with self._locked(id):
            stored = await self._message(room, message)
            unknown = sorted(set(entities) - stored.turns.keys())
            if unknown or not entities:
                raise InvalidRequest("entities", f"must be of those who have it: {[*stored.turns]}")
            restorable = await self._forget(room, [stored], entities, soft=True)
        left: list[JSON] = [name for name in stored.turns if name not in entities]
        return {"message": message, "left": left, "restorable": {**restorable}}

    async def restore(
        self, viewer: Viewer, id: str, message: str, restorable: Mapping[str, str]
    ) -> None:
        """Restore a forgotten message in the memories that forgot it.

        Args:
            viewer: The viewer that restores.
            id: Id of the room.
            message: Id of the message.
            restorable: Name of an entity → id to restore by, as ``forget`` returned it.

        Raises:
            NotFound: An id can no longer be restored; the memories before it in ``restorable`` have
                the message again.
            InvalidRequest: One of the entities was never in the room; nothing was changed.
        """
        room = await self.room(viewer, id)
        members = {entity.name: entity for entity in room.ever()}
        unknown = sorted(restorable.keys() - members.keys())
        if unknown:
            raise InvalidRequest("restorable", f"{unknown[0]!r} was never in the room")
        async with self._locked(id):
            for name, bin_id in restorable.items():
                caller = Caller.of_entity(members[name])
                await self._calls.answer(caller, "restore_forgotten", {"id": bin_id})
            restored = await self._message(room, message)
            position = await asyncio.to_thread(self._rooms.advance, id)
            self._tell_message(replace(restored, position=position))

    async def hand_over(
        self, viewer: Viewer, id: str, entity: str, messages: Sequence[str] | None
    ) -> int:
        """Store messages in a member that was not in the room when they were said; return how many.

        Args:
            viewer: The owner.
            id: Id of the room.
            entity: Name of a member of the room.
            messages: Ids of messages; all that are on the record if None.
        """
        _check_owner(viewer)
        room = await self.room(viewer, id)
        async with self._locked(id):
            recipient = next((who for who in room.members() if who.name == entity), None)
            if recipient is None:
                raise InvalidRequest("entity", "must be of this room")
            on_record = [
                message for message in await self._messages(room) if not message.off_record
            ]
            if messages is not None:
                if set(messages) - {message.id for message in on_record}:
                    raise NotFound("message")
                on_record = [message for message in on_record if message.id in messages]
            missing = [message for message in on_record if entity not in message.turns]
            for message in missing:
                position = await asyncio.to_thread(self._rooms.advance, id)
                handed = replace(message, position=position)
                async with self._app.memory(recipient) as memory:
                    turn = await RoomMessages(memory).keep(handed, heard="handed over")
                handed = replace(
                    handed,
                    turns={**message.turns, entity: turn},
                    handed_over=(*message.handed_over, entity),
                )
                self._tell_message(handed)
        return len(missing)

    async def given(self, viewer: Viewer, id: str, message: str) -> list[Event]:
        """Return the items of memory that an answer's author was shown, if they still exist."""
        room = await self.room(viewer, id)
        answer = await self._message(room, message)
        author = next((entity for entity in room.ever() if entity.name == answer.author), None)
        if author is None or not answer.shown:
            return []
        async with self._app.memory(author) as memory:
            lines = await memory.sessions.lines(answer.shown)
        return [{"id": line.id, "kind": line.kind, "text": line.text} for line in lines]

    async def close(self) -> None:
        """End all answers; their text so far is stored."""
        self._end_hearing()
        tasks = [live.answering for live in self._live.values() if live.answering]
        for live in self._live.values():
            live.queue.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # Answering

    async def _end_answers_of(self, name: str) -> None:
        """End the answers of an entity that is about to be archived or deleted.

        Their text so far is stored before this returns.
        """
        for live in tuple(self._live.values()):
            live.queue = deque(queued for queued in live.queue if queued.entity.name != name)
            answer = live.answer
            if answer is not None and answer.message.author == name:
                answer.stop()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(answer.is_finished.wait(), _LET_GO_S)

    def _queue_answer(self, live: _Live, answer: _QueuedAnswer, *, first: bool = False) -> None:
        """Queue an answer, unless the same one is queued or in progress."""
        is_queued = any(
            (queued.entity, queued.reply_to) == (answer.entity, answer.reply_to)
            for queued in live.queue
        )
        is_in_progress = (
            live.answer is not None
            and live.answer.message.author == answer.entity.name
            and live.answer.message.reply_to == answer.reply_to
        )
        if is_queued or is_in_progress:
            return
        if first:
            live.queue.appendleft(answer)
        else:
            live.queue.append(answer)

    def _start_answering(self, id: str) -> None:
        """Start the task that gives the queued answers of a room in turn, unless it is running."""
        live = self._live_room(id)
        if live.queue and (live.answering is None or live.answering.done()):
            live.answering = asyncio.create_task(self._answer_all(id, live), name=f"talk-{id}")

    async def _answer_all(self, id: str, live: _Live) -> None:
        while live.queue:
            queued = live.queue.popleft()
            try:
                await self._answer(id, live, queued)
            except PPSError as error:
                self._tell_problem(id, live, queued.entity.name, error.message)
            except Exception as error:  # noqa: BLE001 - a task's outermost call: the room says it
                unforeseen(_log, "an answer in a room failed", error)
                self._tell_problem(id, live, queued.entity.name, _INSIDE)

    async def _answer(self, id: str, live: _Live, queued: _QueuedAnswer) -> None:
        name = queued.entity.name
        async with self._locked(id):
            room = await asyncio.to_thread(self._rooms.get, id)
            if queued.entity not in room.present():
                return
            place = await asyncio.to_thread(self._rooms.advance, id)
            audience = [entity.name for entity in room.present()]
            message = RoomMessage(
                id=str(uuid.uuid4()),
                room=id,
                place=place,
                position=place,
                author=name,
                speaker=name,
                text="",
                at=now(),
                reply_to=queued.reply_to,
                off_record=queued.off_record,
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
            self._tell(id, {"event": "begins", "room": id, "entity": name, **_live_json(live)})
        problem = ""
        try:
            async with self._app.memory(queued.entity) as memory:
                history = await self._history(memory, live, queued)
                await answer.give(memory, self._calls, room, history)
        except PPSError as error:
            problem = error.message
        except asyncio.CancelledError:
            await asyncio.shield(self._finish(id, live, answer, "the server ended"))
            raise
        except Exception as error:  # noqa: BLE001 - the answer ends and the room goes on
            unforeseen(_log, "an answer in a room failed", error)
            problem = _INSIDE
        await self._finish(id, live, answer, problem)
        await self._let_others_answer(id, live, answer, queued)

    async def _finish(self, id: str, live: _Live, answer: RoomAnswer, problem: str) -> None:
        """Store an answer in its author and in all who were in the room all along; tell its end."""
        message = answer.message
        is_whole = not (problem or answer.is_stopped)
        async with self._locked(id):
            live.answer = None
            try:
                room = await asyncio.to_thread(self._rooms.get, id)
                if message.text.strip():
                    mark = "" if is_whole else "stopped" if answer.is_stopped else "cut off"
                    message = replace(message, text=message.text.strip(), mark=mark, at=now())
                    author = next(who for who in room.ever() if who.name == message.author)
                    await self._keep(room, message, _listeners(room, author, answer.audience))
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
        self, id: str, live: _Live, answer: RoomAnswer, queued: _QueuedAnswer
    ) -> None:
        """Queue answers of the entities that an answer addresses by @ and name.

        At most ``MOST_WITHOUT_PERSON`` of them are given without a message of the person in
        between.
        """
        message = answer.message
        if answer.is_stopped:
            return
        room = await asyncio.to_thread(self._rooms.get, id)
        for entity in room.present():
            is_other = entity.name != message.author and entity.name in answer.audience
            if not is_other or not _mentions(message.text, entity.name):
                continue
            if any(waiting.entity == entity for waiting in live.queue):
                continue  # it answers anyway, and reads this first
            if live.without_person >= MOST_WITHOUT_PERSON:
                return
            live.without_person += 1
            self._queue_answer(live, _QueuedAnswer(entity, message.id, queued.off_record))

    async def _history(
        self, memory: Memory, live: _Live, queued: _QueuedAnswer
    ) -> list[RoomMessage]:
        """Return the messages that an entity heard before its answer, in order."""
        if live.answer is None:
            return []
        heard = await RoomMessages(memory).of_room(live.answer.message.room)
        if queued.off_record:
            name = memory.entity.name
            heard += [message for message in live.off_record if name in message.turns]
            heard.sort(key=lambda message: message.place)
        return [message for message in heard if message.place < live.answer.message.place]

    # Keeping

    async def _new_message(
        self, room: TalkRoom, id: str, text: str, *, off_record: bool
    ) -> RoomMessage:
        """Return a message of the person at the next place of a room; nothing is stored yet."""
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
        """Store a message in each entity that hears it, tell listeners, return it with turns."""
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
            message = await self._with_stored_text(replace(message, turns=turns))
        self._tell_message(message)
        return message

    async def _with_stored_text(self, message: RoomMessage) -> RoomMessage:
        """Return a message with its text as stored: secrets are replaced with a marker."""
        name = message.author if message.author in message.turns else next(iter(message.turns))
        async with self._app.memory(name) as memory:
            newest = await RoomMessages(memory).of_room(message.room, limit=20)
        stored = next((candidate for candidate in newest if candidate.id == message.id), None)
        return replace(message, text=stored.text) if stored else message

    async def _forget(
        self,
        room: TalkRoom,
        messages: Sequence[RoomMessage],
        entities: Sequence[str],
        *,
        soft: bool,
    ) -> dict[str, str]:
        """Forget messages in some entities, and tell the listeners who still has them.

        Returns the name of an entity → the id by which it can restore its last forgotten turn.
        """
        live = self._live_room(room.id)
        restorable: dict[str, str] = {}
        for message in messages:
            left = {name: turn for name, turn in message.turns.items() if name not in entities}
            for name in entities:
                turns = [message.turns[name]] if message.turns[name] else []
                if name == message.author and not soft:
                    turns += message.written
                bin_id = await self._forget_turns(room, name, turns, soft=soft) if turns else ""
                if bin_id:
                    restorable[name] = bin_id
            if message.off_record:
                live.off_record = [other for other in live.off_record if other.id != message.id]
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
        """Forget turns as the entity itself would, with the copies that it shared.

        Returns the id by which the last of them can be restored; empty if it cannot.
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
        of_person = [message for message in await self._messages(room) if not message.author]
        return of_person[-1] if of_person else None

    async def _messages(self, room: TalkRoom) -> list[RoomMessage]:
        """Return the newest messages of a room, in order.

        They are read from the memory of every entity that was ever in the room, and from those off
        the record.
        """
        copies: list[RoomMessage] = []
        for entity in room.ever():
            if entity in room.at_rest:
                continue
            async with self._app.memory(entity) as memory:
                copies += await RoomMessages(memory).of_room(room.id)
        copies += self._live_room(room.id).off_record
        return merged(copies)[-MOST_MESSAGES:]

    @asynccontextmanager
    async def _locked(self, id: str) -> AsyncGenerator[None]:
        live = self._live_room(id)
        async with live.lock:
            if not live.is_recovered:
                await self._recover(id)
                live.is_recovered = True
            yield

    async def _recover(self, id: str) -> None:
        """Store the unfinished answers of the previous process, as far as they came."""
        room = await asyncio.to_thread(self._rooms.get, id)
        for entity in room.ever():
            if entity in room.at_rest:
                continue
            async with self._app.memory(entity) as memory:
                messages = RoomMessages(memory)
                unfinished = await messages.unfinished(id)
            for answer in unfinished:
                if answer.message.text.strip():
                    audience = _listeners(room, entity, answer.audience)
                    await self._keep(room, answer.message, audience)
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
        self._tell(id, {"event": "problem", "room": id, **_live_json(live)})

    async def _announce(self, room: TalkRoom) -> Event:
        """Tell the listeners of a room and of the house that it changed; return the event."""
        event: Event = {
            "event": "room",
            "room": room.id,
            "position": room.position,
            "state": await self._room_json(room),
        }
        self._tell(room.id, event)
        for hear in tuple(self._house_listeners):
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
                "position": change.position,
                "entity": change.entity.name,
                "change": change.change,
                "at": change.at.isoformat(),
            }
            for change in room.changes
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
        """Return an entity as rooms show it: its name, its model, and why it cannot answer."""
        folder = self._app.registry.entities_folder / entity.name
        try:
            model = await asyncio.to_thread(chat_model_of, folder, entity.name)
        except PPSError as error:
            return {"name": entity.name, "model": "", "problem": error.message}
        return {"name": entity.name, "model": model.name, "problem": ""}

    async def _entity(self, name: str) -> EntityId:
        """Return an entity that may be in rooms, by its name.

        Raises:
            UnknownEntity: No entity has that name, or it is archived.
            InvalidRequest: It is the pool of a squad.
        """
        entry = await asyncio.to_thread(self._app.registry.mount, name)
        if self._app.registry.squads.pool_of(name):
            raise InvalidRequest("entity", f"{name!r} is the pool of a squad: nobody talks with it")
        return entry.entity


def _check_owner(viewer: Viewer) -> None:
    if viewer.entity is not None:
        raise InvalidRequest("do", "is for the owner's page (`pps haven`)")


def _check_queue(live: _Live, more: int) -> None:
    """Raise Overloaded if a room's queue has no place for ``more`` answers."""
    waiting = len(live.queue)
    if waiting + more > _MOST_WAITING:
        raise Overloaded(
            f"{waiting} answers wait in this room (at most {_MOST_WAITING}); stop them or wait"
        )


def _listeners(room: TalkRoom, author: EntityId, audience: Sequence[str]) -> tuple[EntityId, ...]:
    """Return the author of an answer, and those of its audience that are still in the room."""
    present = [entity for entity in room.present() if entity.name in audience]
    return tuple(dict.fromkeys((author, *present)))


def _addressed(text: str, to: Sequence[str], present: Sequence[EntityId]) -> Sequence[EntityId]:
    """Return the entities that are to answer: those of ``to``, else those named, else all."""
    names = {entity.name for entity in present}
    unknown = [name for name in to if name not in names]
    if unknown:
        raise InvalidRequest("to", f"{unknown[0]!r} is not in the room")
    if to:
        return [entity for entity in present if entity.name in to]
    named = [
        entity
        for entity in present
        if _mentions(text, entity.name) or _begins_with_name(text, entity.name)
    ]
    return named or present


def _mentions(text: str, name: str) -> bool:
    """Tell whether a text addresses an entity by @ and name."""
    return re.search(rf"(?<![\w@])@{re.escape(name)}(?![\w-])", text, re.IGNORECASE) is not None


def _begins_with_name(text: str, name: str) -> bool:
    """Tell whether a text begins with a name and a comma or colon."""
    return re.match(rf"\s*{re.escape(name)}\s*[,:]", text, re.IGNORECASE) is not None


def _newest_page(messages: Sequence[RoomMessage]) -> list[RoomMessage]:
    """Return a page of the newest messages, the oldest first; bounded in number and characters."""
    page: list[RoomMessage] = []
    characters = 0
    for message in reversed(messages[-_PAGE:]):
        characters += len(message.text)
        if page and characters > _PAGE_CHARACTERS:
            break
        page.append(message)
    return page[::-1]


def _live_json(live: _Live) -> Event:
    """Return a room's state in this process: the answer so far, the queue, the last problem."""
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
        "waiting": [queued.entity.name for queued in live.queue],
        "problem": live.problem,
    }
