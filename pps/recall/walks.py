"""Looking at a graph by its joints: what is next to a node, and how two are joined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import check_uuid
from pps.core.time import now
from pps.core.values import Fact, Path, Subgraph
from pps.graph import traverse
from pps.graph.graph_store import MAX_HOPS
from pps.graph.traverse import Link
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.beginnings import Beginnings
from pps.recall.fetch import holds

MAX_NODES = 1_000
"""Most nodes of one look."""

_MOST_JOINTS = 100_000


class Walks:
    """Walks over one entity's facts and relations that have not ended, in both directions.

    Methods raise InvalidRequest for an id that is no canonical UUID or a bound that is broken, NotFound for a node
    that is not this entity's, and StoreUnavailable.
    """

    def __init__(self, client: IsolatedGraphitiClient, beginnings: Beginnings, self_node: str) -> None:
        self._client = client
        self._beginnings = beginnings
        self._self_node = self_node

    @property
    def own(self) -> str:
        """Return the uuid of the entity's own node, which is there from the beginning."""
        return self._self_node

    async def around(self, node: str, *, max_hops: int = 1, limit: int = 200) -> Subgraph:
        """Return a node, the nearest ``limit`` (1 to 1,000) within ``max_hops`` (1 to 8), and the joints among them."""
        _check("max_hops", max_hops, MAX_HOPS)
        _check("limit", limit, MAX_NODES)
        [node] = await self._there(node)
        joints = _Joints(self._client)
        hops = await traverse.distances(joints.of, node, max_hops, limit)
        await joints.of([one for one in hops if one not in joints.asked])
        nodes = await self._client.nodes(list(hops))
        there = {one.uuid for one in nodes}
        facts = [one for one in joints.facts.values() if {one.subject, one.object} <= there]
        return Subgraph(tuple(nodes), tuple(facts), {uuid: hop for uuid, hop in hops.items() if uuid in there})

    async def between(self, start: str, end: str, *, max_hops: int = 2) -> Path | None:
        """Return a shortest walk from one node to another, or None within ``max_hops`` (1 to 8)."""
        _check("max_hops", max_hops, MAX_HOPS)
        start, end = await self._there(start, end)
        joints = _Joints(self._client)
        walk = await traverse.shortest_path(joints.of, start, end, max_hops)
        if walk is None:
            return None
        return Path(tuple(await self._client.nodes(walk[0])), tuple(joints.facts[one] for one in walk[1]))

    async def _there(self, *nodes: str) -> list[str]:
        """Return whole ids of nodes that are this entity's."""
        wanted = [check_uuid(one, "node_id") for one in await self._beginnings.whole(nodes)]
        if len(await self._client.nodes(list(dict.fromkeys(wanted)))) != len(set(wanted)):
            raise NotFound()
        return wanted


class _Joints:
    """The joints of nodes, asked for ring by ring and kept."""

    def __init__(self, client: IsolatedGraphitiClient) -> None:
        self._client = client
        self.asked: set[str] = set()
        self.facts: dict[str, Fact] = {}

    async def of(self, nodes: Sequence[str]) -> Iterable[Link]:
        self.asked.update(nodes)
        moment = now()
        found = await self._client.facts_of_nodes(nodes, _MOST_JOINTS) if nodes else []
        held = [one for one in found if holds(one, moment)]
        self.facts.update((one.uuid, one) for one in held)
        return [Link(one.uuid, one.subject, one.object) for one in held]


def _check(field: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InvalidRequest(field, f"must be 1 to {most:,}")
