"""An entity's tables of rooms: which turn is which message, and how an answer was made.

The text of a message is a turn of the memory, and nowhere else. Every row is about its turn, so
forgetting the turn erases the row.
"""

from __future__ import annotations

from pps.core.feature_parts import Column, Table

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
