"""Attacks on rows of features' tables by the ids of another entity's: the core's own proof, whatever features there are."""

from __future__ import annotations

from pps.core.errors import InvalidRequest, IsolationError, StoreError
from pps.proof.arena import PLANTED_TABLE, Being, tables_of
from pps.proof.by_id import IdAttack, Ids

_INJECTED = (
    f"planted UNION SELECT id, group_id, text, number FROM feature_arena__{PLANTED_TABLE.name}"  # noqa: S608 - an attack
)


async def rows_differ(being: Being) -> str:
    """Return how an entity's rows differ from those that were planted; empty where they do not."""
    rows = await tables_of(being).select(PLANTED_TABLE.name, limit=1_000)
    if [row["id"] for row in rows] != being.rows or any(
        being.mark not in str(row["text"]) for row in rows
    ):
        return "rows of a feature: not those that were planted"
    return ""


async def _insert_of_another_group(being: Being, ids: Ids) -> object:
    """Write a row with another group past every method: the CHECK must refuse it."""
    statement = f"INSERT INTO feature_arena__{PLANTED_TABLE.name} (id, group_id) VALUES (?, ?)"  # noqa: S608 - literals
    try:
        await being.journal.write(
            lambda db: db.execute(statement, (ids.row, "ent_" + "a" * 26)).rowcount
        )
    except (StoreError, IsolationError):
        raise InvalidRequest("group_id", "was refused") from None
    return "a row with another group was written"


ROWS: tuple[IdAttack, ...] = (
    IdAttack("get", lambda b, i: tables_of(b).get("planted", i.row)),
    IdAttack("get by a turn's id", lambda b, i: tables_of(b).get("planted", i.turn)),
    IdAttack("select by id", lambda b, i: tables_of(b).select("planted", {"id": i.row})),
    IdAttack(
        "select by an injected table", lambda b, i: tables_of(b).select(_INJECTED, {"id": i.row})
    ),
    IdAttack(
        "select by an injected order",
        lambda b, i: tables_of(b).select("planted", order_by="id; DROP TABLE turns"),
    ),
    IdAttack(
        "select by an injected column", lambda b, i: tables_of(b).select("planted", {"1=1 --": 1})
    ),
    IdAttack("update", lambda b, i: tables_of(b).update("planted", i.row, {"text": "changed"})),
    IdAttack("delete", lambda b, i: tables_of(b).delete("planted", i.row)),
    IdAttack(
        "insert about another's turn",
        lambda b, i: tables_of(b).insert("planted", {"text": "about it"}, sources=[i.turn]),
    ),
    IdAttack(
        "insert about another's fact",
        lambda b, i: tables_of(b).insert("planted", {"text": "about it"}, sources=[i.fact]),
    ),
    IdAttack("insert of another group", _insert_of_another_group),
    IdAttack("rows about", lambda b, i: b.journal.features.rows_about([i.row, i.turn])),
    IdAttack("existing rows", lambda b, i: b.journal.features.existing_rows([i.row])),
    IdAttack("erase", lambda b, i: b.journal.features.forget([i.row, i.turn, i.node, i.fact])),
    IdAttack("export", lambda b, i: b.journal.features.exported(("", "", i.row)), alike=False),
)
