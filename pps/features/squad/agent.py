"""A member's memory for programs: ``pps.open_member("team", "kublai")``."""

from __future__ import annotations

from pps.core.record_values import Record
from pps.features.squad import knowing
from pps.features.squad.desk import Desk
from pps.features.squad.reflecting import reflect
from pps.features.squad.sharing import SharedCopy, share
from pps.records.saving import RecordGiven


class AgentMemory:
    """What a member keeps, believes and shares.

    Attributes:
        desk: Its own memory (``desk.memory``) and its squad's pool; membership was looked up when
            it was opened.
    """

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def add_experience(self, content: str, type: str = "", *, domain: str = "") -> Record:
        """Keep what happened: 1 to 2,000 characters, in the member's own memory alone."""
        fields = {name: value for name, value in (("type", type), ("domain", domain)) if value}
        title = " ".join(content.split())[:120]
        draft = RecordGiven("Experience", title, content, fields=fields, another=True)
        return (await self.desk.memory.records.save([draft])).records[0].record

    async def get_beliefs(
        self, domain: str = "", *, min_confidence: float = 0.0, include_shared: bool = True
    ) -> list[Record]:
        """Return the beliefs that are held, the surest first: its own, then those of others in the pool."""
        lines = await knowing.beliefs(self.desk, domain, min_confidence)
        return lines[0] + (lines[1] if include_shared else [])

    async def store(self, given: knowing.Knowledge) -> knowing.StoredKnowledge:
        """Keep something as ``memory_store`` does: sure enough and not private, it is shared at once."""
        return await knowing.store(self.desk, given)

    async def share(self, id: str) -> SharedCopy:
        """Copy a record of its own into the pool."""
        return await share(self.desk, id)

    async def reflect(self) -> knowing.Worksheet:
        """Return what there is to reflect on, with what a language model drew.

        Without one ``store`` keeps it.
        """
        return await reflect(self.desk)
