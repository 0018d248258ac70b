"""The gate of a pool: transitions of a copy between waiting, shared, rejected and withdrawn.

Shares and improvements go through the same transitions, decided by compare-and-set in the
transaction that writes their effect, and noted in the same history (``Records.transitions``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypeAlias

from pps.core.errors import StoreConflict
from pps.core.record_values import Transition
from pps.journal.pool_rows import SharedState, set_state
from pps.journal.record_rows import RecordRows

Action: TypeAlias = Literal[
    "approved", "rejected", "needs_revision", "revised", "withdrawn", "reinstated"
]

TRANSITIONS: Mapping[Action, tuple[SharedState, SharedState]] = {
    "approved": ("waiting", "shared"),
    "rejected": ("waiting", "rejected"),
    "needs_revision": ("waiting", "needs_revision"),
    "revised": ("needs_revision", "waiting"),
    "withdrawn": ("shared", "withdrawn"),
    "reinstated": ("withdrawn", "shared"),
}
"""Action → the state that a copy must be in, and the state that it gets."""

CLOSED: frozenset[SharedState] = frozenset(("rejected", "withdrawn"))
"""States of a copy that its author cannot change by sharing it again."""


def advance(
    rows: RecordRows,
    record: str,
    action: Action,
    actor: str,
    at: datetime,
    why: str,
    *,
    is_noted: bool = False,
) -> None:
    """Move a copy through one transition and note it, in the transaction of ``rows``.

    Args:
        rows: The open transaction.
        record: Id of the copy.
        action: The transition.
        actor: The member who decides.
        at: Time of the decision.
        why: The reason.
        is_noted: The history has the move already, because the record has its own life cycle.

    Raises:
        StoreConflict: The copy is not in the state that the action starts from. Of several
            simultaneous decisions, all but one get this.
    """
    before, after = TRANSITIONS[action]
    if not rows.beside(lambda db: set_state(db, record, before, after)):
        raise StoreConflict(f"is not {before} any more: another decided meanwhile")
    if not is_noted:
        rows.note_move(Transition(record, before, action, actor, at, why))
