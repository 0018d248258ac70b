"""A record's moves through the life cycle of its kind: which are allowed, decided and noted in one transaction."""

from __future__ import annotations

from dataclasses import replace

from pps.core.errors import Changed, InvalidRequest, NotFound
from pps.core.kinds import KindSpec
from pps.core.record_values import Record, Transition
from pps.core.time import now
from pps.ingest.linking import draft_of
from pps.journal.record_rows import RecordRows
from pps.journal.versions import Text
from pps.records.saving import Saved, Writing


def moved(
    rows: RecordRows, by: Writing, id_: str, to: str, expected: str | None, why: str
) -> Saved:
    """Let a record go on to another state; raises as ``Records.move``."""
    [whole] = rows.whole([id_], "id")
    if not (records := rows.find([whole])):
        raise NotFound()
    before = records[whole]
    kind = by.kinds.kind(before.kind)
    by.kinds.check_write(by.actor, kind.name)
    to = by.kinds.state_name(to)
    if expected is not None:
        expected = by.kinds.state_name(expected)
    if expected not in (None, before.state):
        is_now = before.state or "without a state"
        raise Changed(f"the record is {is_now}, not {expected}: read it again", path="expected")
    _check(kind, before, to, by.actor)
    at = now()
    record = replace(before, state=to, actor=by.actor, updated_at=at)

    def rework(text: Text) -> Text:
        return replace(text, payload=replace(text.payload, record=draft_of(record)))

    after, job = rows.change(record, "modified", rework)
    rows.note_move(Transition(before.id, before.state, to, by.actor, at, why))
    return Saved(after, "changed", job=job)


def _check(kind: KindSpec, record: Record, to: str, actor: str) -> None:
    """Raise InvalidRequest unless a record may move so; the states that may follow are named."""
    cycle = kind.lifecycle
    if cycle is None:
        raise InvalidRequest(
            "id", f"{kind.name} has no life cycle; record_save changes its status and fields"
        )
    # A state that a changed pack no longer has, or none, goes back to the start.
    after = cycle.moves.get(record.state, ()) if record.state in cycle.states else (cycle.start,)
    if to not in after:
        may = f"{', '.join(after)} may follow" if after else "nothing follows"
        raise InvalidRequest("to", f"{kind.name} is {record.state}: {may}, not {to[:100]!r}")
    if (record.state, to) in cycle.others and actor == record.author:
        alone = (
            ""
            if actor
            else ": what the person made is reviewed under the name of an actor, which a token has"
        )
        raise InvalidRequest(
            "to", f"only another than the one who made the {kind.name} moves it to {to}{alone}"
        )
