"""Rows of titled texts in ``records``: kind, title, summary and fields as their turns have them.

A text's turn, the payload of its job and its latest version are true; the row is made of them, so
that a titled text is read and listed like any other record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pps.core.errors import StoreError
from pps.core.kinds import STATUSES
from pps.core.record_values import TITLED_PACK, TITLED_PACK_VERSION
from pps.core.sql import LIST, Connection, insert, listed
from pps.core.text import fold, summary_of, title_of
from pps.core.values import RecordDraft
from pps.journal.entries import load_payload

_COLUMNS = (
    "turn",
    "node",
    "kind",
    "title",
    "folded",
    "summary",
    "fields",
    "status",
    "version",
    "pack",
    "pack_version",
    "updated_at",
    "actor",
    "author",
)
_INSERT = f"INSERT INTO records ({', '.join(_COLUMNS)})"
_REPLACE = f"""ON CONFLICT (turn) DO UPDATE SET
    {", ".join(f"{column} = excluded.{column}" for column in _COLUMNS[1:])}"""
_SOURCES = f"""SELECT t.uuid, t.content, t.kind, t.actor, j.payload,
    coalesce(v.number, 1), coalesce(v.actor, t.actor), coalesce(v.at, t.recorded_at)
    FROM turns AS t JOIN jobs AS j ON j.turn = t.uuid
    LEFT JOIN versions AS v ON v.turn = t.uuid
        AND v.number = (SELECT max(number) FROM versions WHERE turn = t.uuid)
    WHERE t.uuid IN {LIST}"""  # noqa: S608 - literals


def put(db: Connection, nodes: Mapping[str, str]) -> None:
    """Write the rows of titled texts anew.

    Args:
        db: The connection of the transaction.
        nodes: Turn → its node. Turns that are gone, and those of typed records, are skipped.
    """
    rows: list[tuple[Any, ...]] = []
    for turn, content, kind, author, payload, version, actor, at in db.execute(
        _SOURCES, (listed(nodes),)
    ).fetchall():
        draft = _draft(payload, kind)
        if draft.pack:
            continue
        title = draft.title or _name(db, nodes[turn]) or title_of(content)
        status = draft.attributes.get("status")
        rows.append(
            (
                turn,
                nodes[turn],
                draft.kind,
                title,
                fold(title),
                summary_of(content),
                json.dumps(draft.attributes, ensure_ascii=False),
                status if status in STATUSES else "active",
                version,
                TITLED_PACK,
                TITLED_PACK_VERSION,
                at,
                actor,
                author,
            )
        )
    insert(db, _INSERT, rows, _REPLACE)


def put_again(db: Connection, turns: Iterable[str]) -> None:
    """Write the rows of those of these turns that have a row, after their texts have changed."""
    statement = f"SELECT turn, node FROM records WHERE turn IN {LIST}"  # noqa: S608 - literals
    put(db, dict(db.execute(statement, (listed(turns),)).fetchall()))


def incomplete(db: Connection, after: str, limit: int) -> list[str]:
    """Return the turns after one, in order, whose rows have turn and node alone.

    An earlier PPS wrote such rows of titled texts; ``put_again`` completes them.
    """
    statement = "SELECT turn FROM records WHERE pack = '' AND turn > ? ORDER BY turn LIMIT ?"
    return [turn for (turn,) in db.execute(statement, (after, limit)).fetchall()]


def _draft(payload: str, kind: str) -> RecordDraft:
    """Return what was given with a text; its kind alone where the payload has lost it."""
    try:
        return load_payload(payload).record or RecordDraft(kind=kind)
    except StoreError:
        return RecordDraft(kind=kind)


def _name(db: Connection, node: str) -> str:
    row = db.execute("SELECT name FROM node WHERE uuid = ?", (node,)).fetchone()
    return row[0] if row else ""
