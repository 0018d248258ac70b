"""A member's memory for programs: ``pps.open_member("team", "kublai")``."""

from __future__ import annotations

from pps.core.record_values import Record
from pps.features.squad import knowing
from pps.features.squad.desk import Desk
from pps.features.squad.reflecting import reflect
from pps.features.squad.sharing import SharedCopy, share
from pps.records.saving import RecordGiven


class AgentMemory:
    """The memory of a squad's member.

    Attributes:
        desk: The member's own memory (``desk.memory``) and the squad's pool. Membership was checked
            when the desk was opened.
    """

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def add_experience(self, content: str, type: str = "", *, domain: str = "") -> Record:
        """Store an experience of 1 to 2,000 characters in the member's own memory, never shared."""
        fields = {name: value for name, value in (("type", type), ("domain", domain)) if value}
        title = " ".join(content.split())[:120]
        draft = RecordGiven("Experience", title, content, fields=fields, another=True)
        return (await self.desk.memory.records.save([draft])).records[0].record

    async def get_beliefs(
        self, domain: str = "", *, min_confidence: float = 0.0, include_shared: bool = True
    ) -> list[Record]:
        """Return the member's active beliefs, then those that others share, each surest first."""
        lines = await knowing.beliefs(self.desk, domain, min_confidence)
        return lines[0] + (lines[1] if include_shared else [])

    async def store(self, given: knowing.Knowledge) -> knowing.StoredKnowledge:
        """Store a record as ``memory_store`` does; a sure, public one is shared at once."""
        return await knowing.store(self.desk, given)

    async def share(self, id: str) -> SharedCopy:
        """Copy one of the member's own records into the pool."""
        return await share(self.desk, id)

    async def reflect(self) -> knowing.Worksheet:
        """Return records to reflect on, with the beliefs that a language model derived from them.

        Without a language model, derive beliefs yourself and pass them to ``store``.
        """
        return await reflect(self.desk)
