"""The feature ``haven``: rooms where a person talks with entities, and the owner's page.

An entity's tables of rooms say which turn is which message, and how an answer was made. The text of
a message is a turn of the memory, and nowhere else. Every row is about its turn, so forgetting the
turn erases the row.
"""

from __future__ import annotations

from pps.core.feature_parts import Column, Table
from pps.operations.feature import Feature

NAME = "haven"
MESSAGES = Table(
    "messages",
    (
        Column("room"),
        Column("message"),
        Column("place", "integer"),
        Column("position", "integer"),
        Column("turn"),
        Column("author"),
        Column("speaker"),
        Column("reply_to"),
        Column("mark"),
        Column("model"),
        Column("heard"),
        Column("shown"),
        Column("written"),
    ),
)
"""``place`` orders the messages of a room, ``position`` is that of the last change.

``author`` is an entity's name, empty for the person. ``heard`` is how the entity has it: ``there``,
or ``handed over`` later. ``shown`` and ``written`` are JSON lists of ids: what an answer's author
was given, and the turns that it wrote down while it answered.
"""
ANSWERS = Table(
    "answers",
    (
        Column("room"),
        Column("message"),
        Column("place", "integer"),
        Column("text"),
        Column("audience"),
        Column("reply_to"),
        Column("model"),
        Column("shown"),
        Column("written"),
    ),
)
"""An answer in progress, with its text so far; ``audience`` is a JSON list of names."""
SPENT = Table(
    "spent",
    (
        Column("day"),
        Column("model"),
        Column("requests", "integer"),
        Column("tokens_in", "integer"),
        Column("tokens_out", "integer"),
    ),
)
"""The tokens that talking used, a row for each day and model."""
TABLES = (MESSAGES, ANSWERS, SPENT)


FEATURE = Feature(
    name="haven",
    summary="Rooms in which a person talks with one or several entities, "
    "each answering with its own memory.",
    tables=TABLES,
    modules=("pps.features.haven.haven_tools",),
    provides={"talk": "pps.features.haven.room_requests:House"},
    attack_suite="pps.features.haven.room_attacks:RoomAttacks",
)
