"""Drift: compare records' vectors with new ones of the model, on request or on a schedule."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta

from pps.core.errors import ModelError
from pps.core.kinds import Priority
from pps.core.time import iso, now, parse
from pps.core.values import Node
from pps.ingest.record_vectors import Drifted, RecordVectors
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal

PRIORITIES: tuple[Priority, ...] = ("P0", "P1", "P2", "P3", "P4")
WEEKLY: tuple[Priority, ...] = ("P0", "P1")
EVERY = ((WEEKLY, timedelta(days=7)), (PRIORITIES[2:], timedelta(days=30)))
"""(priorities, interval) of the comparisons under the setting ``drift = "scheduled"``."""
PAUSE_S = 1.0
"""Pause between two pages of a scheduled comparison, so that writes need not wait."""
_PAGE = 100
_MOST_REPORTED = 200
_LAST_LOOK_KEY = "drift_at:{}"
_RESULT_KEY = "drift_found:{}"


@dataclass(frozen=True, slots=True)
class DriftReport:
    """The number of compared records, and up to 200 that drifted, the most drifted first."""

    compared: int
    drifted: tuple[Drifted, ...]
    total: int


@dataclass(slots=True)
class _Look:
    """A look under way: which priorities, the last node that was read, and what drifted so far."""

    priorities: tuple[Priority, ...]
    after: str = ""
    compared: int = 0
    drifted: list[Drifted] = field(default_factory=list[Drifted])

    def report(self) -> DriftReport:
        most = sorted(self.drifted, key=lambda record: (-record.change, record.id))
        return DriftReport(self.compared, tuple(most[:_MOST_REPORTED]), len(most))


class Drift:
    """Looks for drift among one entity's records; changes nothing.

    Args:
        client, journal: Where records are read.
        records: Where their vectors are compared.
        scheduled: Whether ``step`` looks by the clock.
    """

    def __init__(
        self,
        client: IsolatedGraphitiClient,
        journal: Journal,
        records: RecordVectors,
        *,
        scheduled: bool,
    ) -> None:
        self._client = client
        self._journal = journal
        self.records = records
        self._scheduled = scheduled and bool(records.kinds.by_name)
        self._look: _Look | None = None

    async def report(self, priorities: Collection[Priority] = ()) -> DriftReport:
        """Embed the records of some priorities (none given: of all) anew and compare.

        Raises:
            ModelError: The model fails.
        """
        look = _Look(tuple(priorities) or PRIORITIES)
        while await self._page(look):
            pass
        return look.report()

    async def step(self) -> float | None:
        """Compare some records if the schedule says so; return the seconds until the next, or None.

        If the model is unavailable, the next idle time of the worker tries again.
        """
        if self._look is None:
            self._look = await self._due() if self._scheduled else None
        look = self._look
        if look is None:
            return None
        try:
            if await self._page(look):
                return PAUSE_S
        except ModelError:
            return None
        self._look = None
        first = look.priorities[0]
        titles = [record.title for record in look.report().drifted[:3]]
        result = json.dumps([len(look.drifted), titles])
        await self._journal.set_meta(_LAST_LOOK_KEY.format(first), iso(now()))
        await self._journal.set_meta(_RESULT_KEY.format(first), result)
        return PAUSE_S

    async def notes(self, name: str) -> list[str]:
        """Return the findings of the last scheduled comparisons; empty if nothing drifted."""
        notes: list[str] = []
        for priorities, _ in EVERY if self._scheduled else ():
            result = await self._journal.get_meta(_RESULT_KEY.format(priorities[0]))
            total: int
            titles: list[str]
            total, titles = json.loads(result) if result else (0, [])
            if total:
                notes.append(
                    f"the vectors of {total:,} records have drifted (such as "
                    f"{', '.join(titles)}): `pps drift {name}` lists them, "
                    f"`pps reindex {name} --index vectors` makes them anew"
                )
        return notes

    async def _due(self) -> _Look | None:
        for priorities, every in EVERY:
            last_look = await self._journal.get_meta(_LAST_LOOK_KEY.format(priorities[0]))
            if not last_look or now() - parse(last_look) >= every:
                return _Look(priorities)
        return None

    async def _page(self, look: _Look) -> bool:
        """Compare the records of the next page of nodes; False when there are no more."""
        nodes = await self._client.scan_nodes(look.after, _PAGE)
        if not nodes:
            return False
        look.after = nodes[-1].uuid
        wanted = [node for node in nodes if self._priority_of(node) in look.priorities]
        turns = await self._journal.records.texts([node.uuid for node in wanted])
        texts = {node: turn.content for node, turn in turns.items()}
        records = [(node, texts.get(node.uuid, "")) for node in wanted]
        compared, drifted = await self.records.drifted(records)
        look.compared += compared
        look.drifted += drifted
        return True

    def _priority_of(self, node: Node) -> Priority:
        kinds = self.records.kinds
        return kinds.by_name[node.kind].priority if node.kind in kinds else "none"
