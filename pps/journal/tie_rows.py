"""Ties of facts that an extraction command derived from several turns together; ids only.

A row says that a turn supports a fact only while another turn exists unchanged. A fact without ties
is supported by each of its episodes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from pps.core.sql import LIST, Connection, listed
from pps.journal.store import Store, looks_up, reads, writes

Ties: TypeAlias = Mapping[str, Mapping[str, frozenset[str]]]
"""Fact → supporting turn → the other turns that it needs."""


def put(db: Connection, ties: Iterable[tuple[str, str, str]]) -> None:
    """Add ties as (fact, supporting turn, needed turn)."""
    db.executemany(
        "INSERT INTO fact_ties (fact, holder, needs) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", ties
    )


def of_facts(db: Connection, facts: Sequence[str]) -> dict[str, dict[str, frozenset[str]]]:
    """Return the ties of the facts; facts without ties are left out."""
    return _grouped(db, f"fact IN {LIST}", facts)


def needing(db: Connection, turns: Sequence[str]) -> dict[str, dict[str, frozenset[str]]]:
    """Return all ties of every fact with a tie that needs any of the turns."""
    needs = f"SELECT fact FROM fact_ties WHERE needs IN {LIST}"  # noqa: S608 - literals
    return _grouped(db, f"fact IN ({needs})", turns)


def forget(db: Connection, facts: Sequence[str], turns: Sequence[str]) -> None:
    """Delete the ties of deleted facts, and those of supports that include any of the turns."""
    gone = listed(turns)
    db.execute(
        f"""DELETE FROM fact_ties WHERE fact IN {LIST} OR holder IN {LIST} OR EXISTS (
            SELECT 1 FROM fact_ties AS broken WHERE broken.fact = fact_ties.fact
            AND broken.holder = fact_ties.holder AND broken.needs IN {LIST})""",  # noqa: S608
        (listed(facts), gone, gone),
    )


def _grouped(
    db: Connection, where: str, ids: Sequence[str]
) -> dict[str, dict[str, frozenset[str]]]:
    rows = db.execute(
        f"SELECT fact, holder, needs FROM fact_ties WHERE {where} "  # noqa: S608 - literals
        "ORDER BY fact, holder, needs",
        (listed(ids),),
    )
    ties: dict[str, dict[str, frozenset[str]]] = {}
    for fact, holder, needs in rows:
        holders = ties.setdefault(fact, {})
        holders[holder] = holders.get(holder, frozenset()) | {needs}
    return ties


class FactTies(Store):
    """The ties of one ``memory.db``."""

    forget = writes(forget, secure=True)
    needing = reads(needing)
    of_facts = looks_up(of_facts)
    put = writes(put)
