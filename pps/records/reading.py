"""How capabilities read records: the port that the journal's records are behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pps.core.record_values import Cite, Record, RecordGraph, RecordPage, RecordQuery, Transition


class RecordReads(Protocol):
    """The records of one entity, as they are now."""

    async def list(self, query: RecordQuery) -> RecordPage:
        """Return a page of records; InvalidRequest for an unknown kind, field or operator."""
        ...

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        """Return records in the order asked; NotFound when one of them is not this entity's."""
        ...

    async def graph(self) -> RecordGraph:
        """Return every record and the relations among them; the same object until something is written."""
        ...

    async def cites(self, ids: Sequence[str]) -> dict[str, tuple[Cite, ...]]:
        """Return record → what it cites; those that cite nothing are left out."""
        ...

    async def transitions(self, record: str) -> Sequence[Transition]:
        """Return a record's moves, oldest first."""
        ...

    async def versions(self, record: str) -> Sequence[Record]:
        """Return what a record was at each of its versions, oldest first; the last is what it is now."""
        ...
