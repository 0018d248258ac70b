"""Which facts a command found in several turns together: ids alone.

A row says that a turn holds a fact only as long as another turn is there and says what it said.
Facts without rows are supported by each of their episodes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from pps.core.sql import LIST, Connection, listed
from pps.journal.store import Store, looks_up, reads, writes

Ties: TypeAlias = Mapping[str, Mapping[str, frozenset[str]]]
"""Fact → turn that holds it → the other turns that it needs for that."""


def put(db: Connection, ties: Iterable[tuple[str, str, str]]) -> None:
    """Add ties, each a fact, the turn that holds it, and a turn that it needs."""
    db.executemany(
        "INSERT INTO fact_ties (fact, holder, needs) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", ties
    )


def of_facts(db: Connection, facts: Sequence[str]) -> dict[str, dict[str, frozenset[str]]]:
    """Return the ties of some facts; a fact without any is left out."""
    return _grouped(db, f"fact IN {LIST}", facts)


def needing(db: Connection, turns: Sequence[str]) -> dict[str, dict[str, frozenset[str]]]:
    """Return all ties of the facts for which a turn needs one of some turns."""
    needs = f"SELECT fact FROM fact_ties WHERE needs IN {LIST}"  # noqa: S608 - literals
    return _grouped(db, f"fact IN ({needs})", turns)


def forget(db: Connection, facts: Sequence[str], turns: Sequence[str]) -> None:
    """Erase the ties of facts that are gone, and those by which a turn held a fact with one of some turns."""
    gone = listed(turns)
    db.execute(
        f"""DELETE FROM fact_ties WHERE fact IN {LIST} OR holder IN {LIST} OR EXISTS (
            SELECT 1 FROM fact_ties AS broken WHERE broken.fact = fact_ties.fact
            AND broken.holder = fact_ties.holder AND broken.needs IN {LIST})""",  # noqa: S608 - literals
        (listed(facts), gone, gone),
    )


def _grouped(
    db: Connection, where: str, ids: Sequence[str]
) -> dict[str, dict[str, frozenset[str]]]:
    rows = db.execute(
        f"SELECT fact, holder, needs FROM fact_ties WHERE {where} ORDER BY fact, holder, needs",  # noqa: S608 - literals
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
