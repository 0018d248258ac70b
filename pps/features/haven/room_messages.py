"""The messages of rooms as one entity has them: turns of its memory, with a row each that says which message it is."""

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
from pps.features.haven.room_tables import NAME
from pps.memory import Memory
from pps.models.chat import Used

SOURCE = "haven"
"""The ``source`` of turns that were said in a room; their ``session`` is the room's id."""
CUT_OFF = "cut-off"
"""The tag of an answer that ended before its end."""
MOST_MESSAGES = 1_000
"""The newest messages of a room that are shown."""
_PAGE = 200
_TRIES = 3
Mark: TypeAlias = Literal["", "stopped", "cut off"]
Heard: TypeAlias = Literal["there", "handed over"]


@dataclass(frozen=True, slots=True)
class RoomMessage:
    """A message of a room.

    Attributes:
        place: Orders the messages of a room.
        position: Of its last change, in the room's count.
        author: The name of the entity that says it; empty for the person.
        speaker: What the author is called in the room; empty for a person without a name.
        mark: How an answer ended that was not given whole.
        reply_to: The message that an answer answers.
        off_record: It is in no memory, and is gone with the server's process.
        turns: The name of each entity that has it → its turn there; off the record an empty text.
        handed_over: Those of them that were not there when it was said.
        shown: Ids of what its author was given for it.
        written: Turns that its author wrote down while it answered.
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
    """An answer that was being given when the server's process ended."""

    row: str
    message: RoomMessage
    audience: tuple[str, ...]


class RoomMessages:
    """One entity's messages, over its memory. Errors and durability as for ``Memory`` and ``FeatureTables``."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._tables = memory.tables(NAME)
        self._name = memory.entity.name

    async def keep(self, message: RoomMessage, *, heard: Heard = "there") -> str:
        """Keep a message as a turn, on disk when this returns; return the turn's id. Kept before, it stays as it is."""
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
            except (
                NotFound
            ):  # one was forgotten between the reading of its row and that of its turn
                continue
        return await self._read(room, limit)

    async def has(self, room: str, message: str) -> bool:
        """Tell whether this entity has a message."""
        found = await self._tables.select("messages", {"room": room, "message": message}, limit=1)
        return bool(found)

    async def note_answer(
        self, message: RoomMessage, audience: Sequence[str], row: str = ""
    ) -> str:
        """Keep an answer as far as it has come; return its row, to be given with the next part of it."""
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
        """Erase what ``note_answer`` kept."""
        await self._tables.delete("answers", row)

    async def unfinished(self, room: str) -> list[UnfinishedAnswer]:
        """Return the answers of a room that this entity was giving when its process ended."""
        rows = await self._tables.select("answers", {"room": room}, limit=1_000)
        return [self._unfinished(row) for row in rows]

    async def add_spent(self, model: str, used: Used) -> None:
        """Add what a request took to today's sum."""
        day = _today().isoformat()

        def add(rows: FeatureRows) -> None:
            found = rows.select("spent", {"day": day, "model": model}, limit=1)
            if not found:
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
            row = found[0]
            sums = {
                "requests": _number(row, "requests") + 1,
                "tokens_in": _number(row, "tokens_in") + used.tokens_in,
                "tokens_out": _number(row, "tokens_out") + used.tokens_out,
            }
            rows.update("spent", str(row["id"]), sums)

        await self._tables.change(add)

    async def spent_today(self) -> int:
        """Return how many tokens talking took today (UTC), in and out."""
        rows = await self._tables.select("spent", {"day": _today().isoformat()}, limit=1_000)
        return sum(_number(row, "tokens_in") + _number(row, "tokens_out") for row in rows)

    async def _read(self, room: str, limit: int) -> list[RoomMessage]:
        rows = await self._tables.select(
            "messages", {"room": room}, order_by="place", descending=True, limit=limit
        )
        turns: dict[str, Turn] = {}
        ids = [str(row["turn"]) for row in rows]
        for start in range(0, len(ids), _PAGE):
            found = await self._memory.get(ids[start : start + _PAGE])
            turns.update({turn.uuid: turn for turn in found if isinstance(turn, Turn)})
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
    """Return messages of several entities as those of their room: each once, with everyone who has it, in order.

    The words are those of the author's own memory where it has them.
    """
    found: dict[str, RoomMessage] = {}
    for message in messages:
        known = found.get(message.id)
        if known is None:
            found[message.id] = message
            continue
        is_authors = message.author in message.turns
        kept, other = (message, known) if is_authors else (known, message)
        found[message.id] = replace(
            kept,
            position=max(kept.position, other.position),
            turns={**known.turns, **message.turns},
            handed_over=(*known.handed_over, *message.handed_over),
        )
    return sorted(found.values(), key=lambda message: (message.place, message.id))


def _today() -> date:
    return now().date()


def _number(row: TableRow, column: str) -> int:
    value = row[column]
    return int(value) if isinstance(value, (int, float)) else 0


def _ids(row: TableRow, column: str) -> tuple[str, ...]:
    return tuple(json.loads(str(row[column] or "[]")))


def _mark(row: TableRow) -> Mark:
    return "stopped" if row["mark"] == "stopped" else "cut off" if row["mark"] else ""
