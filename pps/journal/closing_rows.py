"""Closings (a fact ended by another fact or a turn) and endings (statements that a fact ended).

The tables hold ids and times, no text. A closing is written before the fact is ended in the graph
and deleted after the fact is reopened there. So for every fact that a closing ended, the closing
is on record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pps.core.sql import LIST, Connection, listed
from pps.core.time import from_micros, micros, precision_of, with_precision
from pps.core.values import Closing, Turn
from pps.journal.graph_queries import facts_supported_by
from pps.journal.links import fact_outlines
from pps.journal.store import Store, looks_up, reads, writes
from pps.journal.turns import TURN_COLUMNS, get_many, read_turn

_COLUMNS = "fact, by_fact, by_turn, cause, at, closed_at, own_end, at_precision, own_end_precision"


@dataclass(frozen=True, slots=True)
class Ending:
    """An ``EndingDraft`` of a turn with its names resolved to node uuids.

    Attributes:
        turn: Uuid of the turn that states it.
        number: Position among the turn's endings, from 0.
        subject, object: Uuids of the nodes of the facts that end; empty for any node.
        relations: Keys of their relations (``relation_key``); empty for any relation.
        ended_at, ended_before: As in ``EndingDraft``.
    """

    turn: str
    number: int
    subject: str
    object: str
    relations: tuple[str, ...] = ()
    ended_at: datetime | None = None
    ended_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class ClosingsAround:
    """The closings that bear on some statements, read from one snapshot.

    Attributes:
        stated: Turn → the facts that it states, oldest first.
        closings: Those that ended a fact, the earliest end of each fact first.
        turns: Id → turn that caused any of the closings.
    """

    stated: Mapping[str, Sequence[str]]
    closings: Sequence[Closing]
    turns: Mapping[str, Turn]


def closings_around(
    db: Connection,
    turns: Sequence[str],
    facts: Sequence[str],
    subjects: Sequence[str],
    moment: datetime,
) -> ClosingsAround:
    """Return the closings up to a moment of facts, of facts that turns state, and of subjects.

    A closing counts only if the fact's end is the one that it gave the fact.
    """
    stated = facts_supported_by(db, turns)
    of_facts = sorted(set(facts).union(*stated.values()))
    noted = closings_of(db, of_facts)
    if subjects:
        known = {closing.fact for closing in noted}
        of_subjects = closings_of_subjects(db, subjects)
        noted += [closing for closing in of_subjects if closing.fact not in known]
    noted = [closing for closing in noted if closing.at <= moment]
    outlines = fact_outlines(db, list({closing.fact for closing in noted})) if noted else {}
    ends = {fact: outline.invalid_at for fact, outline in outlines.items()}
    closings = [closing for closing in noted if ends.get(closing.fact) == closing.at]
    causes = sorted({closing.by_turn for closing in closings if closing.by_turn})
    by_turn = {turn.uuid: turn for turn in get_many(db, causes)} if causes else {}
    return ClosingsAround(stated, closings, by_turn)


def closings_of(db: Connection, facts: Sequence[str]) -> list[Closing]:
    """Return the closings of the given facts, the earliest end of each fact first."""
    return _closings(db, f"fact IN {LIST}", facts)


def closings_of_subjects(db: Connection, nodes: Sequence[str]) -> list[Closing]:
    """Return the closings of all facts with these subjects, the earliest end of each first."""
    return _closings(
        db,
        f"fact IN (SELECT uuid FROM fact WHERE subject IN {LIST})",  # noqa: S608 - literals
        nodes,
    )


def closed_by_facts(db: Connection, facts: Sequence[str]) -> list[Closing]:
    """Return the closings caused by the given facts."""
    return _closings(db, f"by_fact <> '' AND by_fact IN {LIST}", facts)


def closed_by_turns(db: Connection, turns: Sequence[str]) -> list[Closing]:
    """Return the closings caused by the given turns."""
    return _closings(db, f"by_turn IN {LIST}", turns)


def _closings(db: Connection, where: str, ids: Sequence[str]) -> list[Closing]:
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM closings WHERE {where} ORDER BY fact, at, closed_at",  # noqa: S608
        (listed(ids),),
    )
    return [
        Closing(
            fact,
            by_fact,
            by_turn,
            cause,
            with_precision(from_micros(at), at_precision),
            from_micros(closed_at),
            None if own_end is None else with_precision(from_micros(own_end), own_end_precision),
        )
        for (
            fact,
            by_fact,
            by_turn,
            cause,
            at,
            closed_at,
            own_end,
            at_precision,
            own_end_precision,
        ) in rows
    ]


def endings_about(db: Connection, nodes: Sequence[str]) -> list[Ending]:
    """Return the endings whose subject or object is one of the nodes, or was merged into one.

    Merged nodes are replaced by the node they were merged into.
    """
    current_nodes = {node: node for node in nodes}
    current_nodes |= _merged_into(db, nodes)
    wanted = listed(current_nodes)
    return _endings(db, f"subject IN {LIST} OR object IN {LIST}", (wanted, wanted), current_nodes)


def endings_of(db: Connection, turns: Sequence[str]) -> list[Ending]:
    """Return the endings of the given turns, with node uuids as they were written."""
    return _endings(db, f"turn IN {LIST}", (listed(turns),), {})


def _endings(
    db: Connection, where: str, values: tuple[str, ...], current_nodes: Mapping[str, str]
) -> list[Ending]:
    """Read endings; ``current_nodes`` maps merged nodes to the nodes that replaced them."""
    rows = db.execute(
        f"""SELECT turn, number, subject, object, relations, ended_at, ended_before, ended_precision
            FROM endings
            WHERE {where} ORDER BY turn, number""",  # noqa: S608 - literals
        values,
    )
    return [
        Ending(
            turn,
            number,
            current_nodes.get(subject, subject),
            current_nodes.get(object_, object_),
            tuple(json.loads(relations)),
            None if ended_at is None else with_precision(from_micros(ended_at), precision),
            None if ended_before is None else from_micros(ended_before),
        )
        for turn, number, subject, object_, relations, ended_at, ended_before, precision in rows
    ]


def _merged_into(db: Connection, nodes: Sequence[str]) -> dict[str, str]:
    """Return merged node → the node it was merged into, for chains of merges into ``nodes``."""
    rows = db.execute(
        f"""WITH RECURSIVE merged (gone, kept) AS (
            SELECT gone, kept FROM merges WHERE kept IN {LIST} AND state IN ('applying', 'applied')
            UNION SELECT m.gone, merged.kept FROM merges AS m JOIN merged ON m.kept = merged.gone
                WHERE m.state IN ('applying', 'applied'))
            SELECT gone, kept FROM merged""",  # noqa: S608 - literals
        (listed(nodes),),
    )
    return dict(rows.fetchall())


def said_at(db: Connection, turns: Sequence[str]) -> dict[str, tuple[datetime, int]]:
    """Return turn → (its event time, its ``seq`` in the journal); unknown turns are left out."""
    rows = db.execute(
        "SELECT uuid, occurred_at, occurred_precision, seq FROM turns "  # noqa: S608 - literals
        f"WHERE uuid IN {LIST}",
        (listed(turns),),
    )
    return {
        uuid: (with_precision(from_micros(at), precision), seq) for uuid, at, precision, seq in rows
    }


def said_before(db: Connection, turn: Turn, limit: int) -> list[Turn]:
    """Return up to ``limit`` turns before a turn in its session, newest first."""
    rows = db.execute(
        f"""SELECT {TURN_COLUMNS} FROM turns WHERE session = ? AND (occurred_at, seq) < (?, ?)
            ORDER BY occurred_at DESC, seq DESC LIMIT ?""",  # noqa: S608 - literals
        (turn.session, micros(turn.occurred_at), turn.seq, limit),
    )
    return list(map(read_turn, rows))


def wait_for_fact(db: Connection, turns: Mapping[str, bool], saved: Sequence[str]) -> None:
    """Update the list of corrections that wait for the fact they correct to be saved.

    ``turns`` maps each turn with a correction to whether its fact was found. A correction without
    its fact waits, unless its turn was forgotten meanwhile. ``saved`` are turns that were just
    saved: waiting corrections that come after one of them in the same session become due.
    """
    db.executemany("DELETE FROM corrections_waiting WHERE turn = ?", [(turn,) for turn in turns])
    db.executemany(
        "INSERT INTO corrections_waiting (turn) SELECT uuid FROM turns WHERE uuid = ?",
        [(turn,) for turn, was_found in turns.items() if not was_found],
    )
    db.execute(
        f"""UPDATE corrections_waiting SET due = 1 WHERE turn IN (
            SELECT c.turn FROM corrections_waiting AS c JOIN turns AS t ON t.uuid = c.turn
            JOIN turns AS s ON s.session = t.session
            WHERE s.uuid IN {LIST}
            AND (s.occurred_at, s.seq) < (t.occurred_at, t.seq))""",  # noqa: S608 - literals
        (listed(saved),),
    )


def corrections_due(db: Connection) -> list[str]:
    """Return the turns whose waiting corrections are due for another try, oldest first."""
    rows = db.execute(
        """SELECT c.turn FROM corrections_waiting AS c JOIN turns AS t ON t.uuid = c.turn
            WHERE c.due = 1 ORDER BY t.occurred_at, t.seq"""
    )
    return [turn for (turn,) in rows]


def any_correction_waits(db: Connection) -> bool:
    return db.execute("SELECT 1 FROM corrections_waiting LIMIT 1").fetchone() is not None


def note(
    db: Connection, endings: Mapping[str, Sequence[Ending]], closings: Sequence[Closing]
) -> None:
    """Replace the endings of turns and add closings, or update those that exist.

    Endings of turns that were forgotten meanwhile are left out.
    """
    db.execute(f"DELETE FROM endings WHERE turn IN {LIST}", (listed(endings),))  # noqa: S608
    db.executemany(
        """INSERT INTO endings
                (turn, number, subject, object, relations, ended_at, ended_before, ended_precision)
            SELECT uuid, ?, ?, ?, ?, ?, ?, ? FROM turns WHERE uuid = ?""",
        [
            (
                ending.number,
                ending.subject,
                ending.object,
                json.dumps(ending.relations),
                None if ending.ended_at is None else micros(ending.ended_at),
                None if ending.ended_before is None else micros(ending.ended_before),
                _precision(ending.ended_at),
                turn,
            )
            for turn, turn_endings in endings.items()
            for ending in turn_endings
        ],
    )
    db.executemany(
        f"""INSERT INTO closings ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (fact, by_turn, by_fact, cause, at) DO UPDATE SET
            closed_at = excluded.closed_at,
            own_end = excluded.own_end, at_precision = excluded.at_precision,
            own_end_precision = excluded.own_end_precision""",  # noqa: S608 - literals
        [_row(closing) for closing in closings],
    )


def keep_only(db: Connection, facts: Sequence[str], closings: Sequence[Closing]) -> None:
    """Delete the closings of some facts except the given ones.

    Called after the graph was changed so that only ``closings`` still end these facts.
    """
    remaining_keys = {_row(closing)[:5] for closing in closings}
    rows = db.execute(
        "SELECT fact, by_fact, by_turn, cause, at FROM closings "  # noqa: S608 - literals
        f"WHERE fact IN {LIST}",
        (listed(facts),),
    ).fetchall()
    db.executemany(
        "DELETE FROM closings "
        "WHERE fact = ? AND by_fact = ? AND by_turn = ? AND cause = ? AND at = ?",
        [row for row in rows if row not in remaining_keys],
    )


class Closings(Store):
    """The closings and endings of one memory."""

    any_correction_waits = reads(any_correction_waits)
    corrections_due = reads(corrections_due)
    wait_for_fact = writes(wait_for_fact)

    about = looks_up(endings_about)
    endings_of = looks_up(endings_of)
    by_facts = looks_up(closed_by_facts)
    by_turns = looks_up(closed_by_turns)
    of = looks_up(closings_of)
    of_subjects = looks_up(closings_of_subjects)
    said_at = looks_up(said_at)
    said_before = reads(said_before)

    async def around(
        self,
        turns: Sequence[str],
        facts: Sequence[str],
        subjects: Sequence[str],
        moment: datetime,
    ) -> ClosingsAround:
        """Call ``closings_around``."""
        return await self.look_up(
            lambda db: closings_around(db, turns, facts, subjects, moment),
            len(turns) + len(facts) + len(subjects),
        )

    async def forget(
        self, turns: Sequence[str], facts: Sequence[str], *, restorable: bool = False
    ) -> None:
        """Delete every closing of, or caused by, the given turns and facts.

        With ``restorable``, closings that a statement asserts (causes ``explicit`` and
        ``corrected``) stay: they apply again once the facts are restored, see ``ingest.slots``.
        """
        kept_causes = " AND cause NOT IN ('explicit', 'corrected')" if restorable else ""
        of_them = f"(by_turn IN {LIST} OR fact IN {LIST} OR by_fact IN {LIST})"
        statement = f"DELETE FROM closings WHERE {of_them}{kept_causes}"  # noqa: S608 - literals
        wanted = listed(turns), listed(facts), listed(facts)
        await self.write(lambda db: db.execute(statement, wanted), secure=True)


def _row(closing: Closing) -> tuple[str, str, str, str, int, int, int | None, str, str]:
    return (
        closing.fact,
        closing.by_fact,
        closing.by_turn,
        closing.cause,
        micros(closing.at),
        micros(closing.closed_at),
        None if closing.own_end is None else micros(closing.own_end),
        _precision(closing.at),
        _precision(closing.own_end),
    )


def _precision(moment: datetime | None) -> str:
    return "instant" if moment is None else precision_of(moment)
