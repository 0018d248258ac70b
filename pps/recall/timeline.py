"""Facts in order of world time, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence

from pps.core.bounds import check_range
from pps.core.errors import NotFound
from pps.core.reports import TimelinePage
from pps.core.values import Fact
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.recall.options import TimelineOptions, checked_utc


class Timeline:
    """Pages of one entity's facts."""

    def __init__(self, client: IsolatedGraphitiClient, journal: Journal) -> None:
        self._client = client
        self._journal = journal

    async def page(self, options: TimelineOptions) -> TimelinePage:
        """Return the facts that the options let through; undated ones come last.

        Raises:
            InvalidRequest: A bound is broken.
            NotFound: ``about`` names nothing here.
        """
        limit = options.get("limit", 100)
        check_range("limit", limit, 1, 1000)
        about = options.get("about")
        facts = await self._client.timeline(
            node=await self._node_id(about) if about else None,
            relation=options.get("relation"),
            as_of=checked_utc(options.get("as_of"), "as_of"),
            after=checked_utc(options.get("after"), "after"),
            before=checked_utc(options.get("before"), "before"),
            cursor=options.get("cursor", ""),
            limit=limit,
        )
        cursor = self._client.timeline_cursor(facts[-1]) if len(facts) == limit else ""
        return TimelinePage(tuple(facts), await self._names(facts), cursor)

    async def _node_id(self, name: str) -> str:
        """Return the uuid of a node by uuid or name; NotFound when it is not this entity's."""
        resolved = await self._journal.resolve([name])
        [whole] = await self._journal.beginnings.whole([name], strict=False)
        uuid = next(iter(resolved.values()), whole)
        nodes = await self._client.nodes([uuid]) if len(uuid) == 36 else []
        if not nodes:
            raise NotFound("node")
        return nodes[0].uuid

    async def _names(self, facts: Sequence[Fact]) -> dict[str, str]:
        ends = list(dict.fromkeys(end for fact in facts for end in (fact.subject, fact.object)))
        return {node.uuid: node.name for node in await self._client.nodes(ends)}
