"""One entity's copies of the messages of rooms: a turn of its memory and a row for each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Literal, TypeAlias

from pps.core.errors import NotFound
from pps.core.feature_parts import FeatureRows, TableRow
from pps.core.time import now
from pps.core.values import JSON, Turn
from pps.features.haven.haven_feature import NAME
from pps.memory import Memory
from pps.models.chat import Used

SOURCE = "haven"
"""The ``source`` of turns that were said in a room; their ``session`` is the room's id."""
CUT_OFF = "cut-off"
"""The tag of an answer that was cut off."""
MOST_MESSAGES = 1_000
"""Most messages of a room that are shown: the newest."""
_PAGE = 200
_TRIES = 3
Mark: TypeAlias = Literal["", "stopped", "cut off"]
Heard: TypeAlias = Literal["there", "handed over"]


@dataclass(frozen=True, slots=True)
class RoomMessage:
    """A message of a room.

    Attributes:
        place: Orders the messages of a room.
        position: Position of the last change, in the room's count.
        author: Name of the entity that says the message; empty for the person.
        speaker: What the author is called in the room; empty for a person without a name.
        mark: How an incomplete answer ended.
        reply_to: The message that an answer answers.
        off_record: The message is in no memory, and is gone with the server's process.
        turns: Name of each entity that has the message → id of its turn; off the record "".
        handed_over: Names of the entities that got the message later, by a hand-over.
        shown: Ids of the items of memory that its author was shown.
        written: Ids of the turns that its author remembered while it answered.
    """

    id: str
    room: str
    place: int
    position: int
    author: str
    speaker: str
    text: str
    at: datetime
    mark: Mark = ""
    reply_to: str = ""
    model: str = ""
    off_record: bool = False
    turns: dict[str, str] = field(default_factory=dict[str, str])
    handed_over: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    written: tuple[str, ...] = ()

    def as_json(self) -> dict[str, JSON]:
        return {
            "id": self.id,
            "place": self.place,
            "position": self.position,
            "author": self.author,
            "speaker": self.speaker,
            "text": self.text,
            "at": self.at.isoformat(),
            "mark": self.mark,
            "reply_to": self.reply_to,
            "model": self.model,
            "off_record": self.off_record,
            "turns": dict[str, JSON](self.turns),
            "handed_over": [*self.handed_over],
            "given": len(self.shown),
            "written": [*self.written],
        }


@dataclass(frozen=True, slots=True)
class UnfinishedAnswer:
    """An answer that was in progress when the server's process ended."""

    row: str
    message: RoomMessage
    audience: tuple[str, ...]


class RoomMessages:
    """One entity's messages in its memory.

    Errors and durability as for ``Memory`` and ``FeatureTables``.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._tables = memory.tables(NAME)
        self._name = memory.entity.name

    async def keep(self, message: RoomMessage, *, heard: Heard = "there") -> str:
        """Store a message as a turn, on disk when this returns; return the turn's id.

        A message that is stored already stays as it is.
        """
        is_own = message.author == self._name
        receipt = await self._memory.remember(
            message.text,
            wait="journal",
            role="assistant" if message.author else "user",
            actor=message.speaker,
            session=message.room,
            source=SOURCE,
            source_ref=message.id,
            occurred_at=message.at,
            tags=[CUT_OFF] if message.mark else [],
        )
        await self._tables.insert(
            "messages",
            {
                "room": message.room,
                "message": message.id,
                "place": message.place,
                "position": message.position,
                "turn": receipt.turn_id,
                "author": message.author,
                "speaker": message.speaker,
                "reply_to": message.reply_to,
                "mark": message.mark,
                "model": message.model,
                "heard": heard,
                "shown": json.dumps(message.shown if is_own else ()),
                "written": json.dumps(message.written if is_own else ()),
            },
            sources=[receipt.turn_id],
            key=f"{message.room}/{message.id}",
        )
        return receipt.turn_id

    async def of_room(self, room: str, limit: int = MOST_MESSAGES) -> list[RoomMessage]:
        """Return the newest messages of a room that this entity has, the oldest first."""
        for _ in range(_TRIES - 1):
            try:
                return await self._read(room, limit)
            except NotFound:
                continue  # a turn was forgotten between the reading of its row and its own
        return await self._read(room, limit)

    async def has(self, room: str, message: str) -> bool:
        """Tell whether this entity has a message."""
        rows = await self._tables.select("messages", {"room": room, "message": message}, limit=1)
        return bool(rows)

    async def note_answer(
        self, message: RoomMessage, audience: Sequence[str], row: str = ""
    ) -> str:
        """Store an answer's text so far; return its row, to be passed in with the next part."""
        values = {
            "room": message.room,
            "message": message.id,
            "place": message.place,
            "text": message.text,
            "audience": json.dumps([*audience]),
            "reply_to": message.reply_to,
            "model": message.model,
            "shown": json.dumps(message.shown),
            "written": json.dumps(message.written),
        }
        if row:
            await self._tables.update("answers", row, values)
            return row
        return await self._tables.insert("answers", values)

    async def drop_answer(self, row: str) -> None:
        """Erase a row of ``note_answer``."""
        await self._tables.delete("answers", row)

    async def unfinished(self, room: str) -> list[UnfinishedAnswer]:
        """Return this entity's answers in a room that a process's end broke off."""
        rows = await self._tables.select("answers", {"room": room}, limit=1_000)
        return [self._unfinished(row) for row in rows]

    async def add_spent(self, model: str, used: Used) -> None:
        """Add the tokens of a request to today's sum."""
        day = _today().isoformat()

        def add(rows: FeatureRows) -> None:
            existing = rows.select("spent", {"day": day, "model": model}, limit=1)
            if not existing:
                rows.insert(
                    "spent",
                    {
                        "day": day,
                        "model": model,
                        "requests": 1,
                        "tokens_in": used.tokens_in,
                        "tokens_out": used.tokens_out,
                    },
                )
                return
            row = existing[0]
            sums = {
                "requests": _number(row, "requests") + 1,
                "tokens_in": _number(row, "tokens_in") + used.tokens_in,
                "tokens_out": _number(row, "tokens_out") + used.tokens_out,
            }
            rows.update("spent", str(row["id"]), sums)

        await self._tables.change(add)

    async def spent_today(self) -> int:
        """Return how many tokens talking used today (UTC), in and out."""
        rows = await self._tables.select("spent", {"day": _today().isoformat()}, limit=1_000)
        return sum(_number(row, "tokens_in") + _number(row, "tokens_out") for row in rows)

    async def _read(self, room: str, limit: int) -> list[RoomMessage]:
        rows = await self._tables.select(
            "messages", {"room": room}, order_by="place", descending=True, limit=limit
        )
        turns: dict[str, Turn] = {}
        ids = [str(row["turn"]) for row in rows]
        for start in range(0, len(ids), _PAGE):
            items = await self._memory.get(ids[start : start + _PAGE])
            turns.update({turn.uuid: turn for turn in items if isinstance(turn, Turn)})
        return [
            self._message(row, turns[str(row["turn"])])
            for row in reversed(rows)
            if str(row["turn"]) in turns
        ]

    def _message(self, row: TableRow, turn: Turn) -> RoomMessage:
        return RoomMessage(
            id=str(row["message"]),
            room=str(row["room"]),
            place=_number(row, "place"),
            position=_number(row, "position"),
            author=str(row["author"]),
            speaker=str(row["speaker"]),
            text=turn.content,
            at=turn.occurred_at,
            mark=_mark(row),
            reply_to=str(row["reply_to"]),
            model=str(row["model"]),
            turns={self._name: turn.uuid},
            handed_over=(self._name,) if row["heard"] == "handed over" else (),
            shown=_ids(row, "shown"),
            written=_ids(row, "written"),
        )

    def _unfinished(self, row: TableRow) -> UnfinishedAnswer:
        place = _number(row, "place")
        message = RoomMessage(
            id=str(row["message"]),
            room=str(row["room"]),
            place=place,
            position=place,
            author=self._name,
            speaker=self._name,
            text=str(row["text"]),
            at=now(),
            mark="cut off",
            reply_to=str(row["reply_to"]),
            model=str(row["model"]),
            shown=_ids(row, "shown"),
            written=_ids(row, "written"),
        )
        return UnfinishedAnswer(str(row["id"]), message, _ids(row, "audience"))


def merged(messages: Sequence[RoomMessage]) -> list[RoomMessage]:
    """Return the messages of a room from the copies of its entities: each once, in order.

    ``turns`` names all entities that have the message. The text is that of the author's own copy,
    if it has one.
    """
    by_id: dict[str, RoomMessage] = {}
    for message in messages:
        known = by_id.get(message.id)
        if known is None:
            by_id[message.id] = message
            continue
        preferred = message if message.author in message.turns else known
        by_id[message.id] = replace(
            preferred,
            position=max(message.position, known.position),
            turns={**known.turns, **message.turns},
            handed_over=(*known.handed_over, *message.handed_over),
        )
    return sorted(by_id.values(), key=lambda message: (message.place, message.id))


def _today() -> date:
    return now().date()


def _number(row: TableRow, column: str) -> int:
    value = row[column]
    return int(value) if isinstance(value, (int, float)) else 0


def _ids(row: TableRow, column: str) -> tuple[str, ...]:
    return tuple(json.loads(str(row[column] or "[]")))


def _mark(row: TableRow) -> Mark:
    return "stopped" if row["mark"] == "stopped" else "cut off" if row["mark"] else ""
