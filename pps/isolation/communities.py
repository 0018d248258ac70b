"""Communities and sagas of one entity. Graphiti's models write them; which nodes and episodes, PPS decides."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from graphiti_core.nodes import SagaNode
from graphiti_core.utils.maintenance.community_operations import build_community

from pps.core.ids import check_uuid
from pps.core.values import Community, Episode
from pps.graph.mapping import episode_of
from pps.isolation.adapters import GraphitiEmbedder
from pps.isolation.pipeline import GraphitiErrors, Pipeline
from pps.isolation.requests import Changes, Saga, check_limit
from pps.models.protocols import Vector

_PAGE = 5_000
_ROUNDS = 50


class Communities(Pipeline):
    """Groups of nodes with a summary, and named runs of episodes."""

    async def build_communities(self, *, min_members: int = 2) -> Changes:
        """Find the communities of the graph anew, let the model name them, and put them in the old ones' place.

        Args:
            min_members: Smaller groups of nodes are left out, 1 to 10,000.

        Raises:
            ModelUnavailable, ModelOutputInvalid, ModelError: The model; the old communities are still there.
        """
        self._need_models()
        check_limit(min_members)
        inside = self._inside
        clusters = [one for one in label_propagation(await self._links()) if len(one) >= min_members]
        made: list[Community] = []
        async with self._one_at_a_time:
            with self._no_breach(), GraphitiErrors():
                for cluster in clusters:
                    nodes = await inside.objects.nodes(cluster)
                    node, _ = await build_community(inside.graphiti.llm_client, nodes, clients=inside.graphiti.clients)
                    self._own_groups([node.group_id])
                    made.append(
                        Community(node.uuid, node.name, node.created_at, node.summary, tuple(n.uuid for n in nodes))
                    )
            vectors = await self._name_vectors(made)
            await inside.objects.delete_communities()
            await self._store.save_communities(made, vectors)
        return Changes(communities=tuple(community.uuid for community in made))

    async def sagas(self) -> list[Saga]:
        """Return all sagas, oldest first."""
        found = await self._inside.objects.sagas()
        self._own_groups(saga.group_id for saga in found)
        return [_saga(saga) for saga in found]

    async def saga_episodes(self, uuid: str, *, limit: int = 100) -> list[Episode]:
        """Return at most ``limit`` (1 to 10,000) episodes of a saga, oldest first.

        Raises:
            NotFound: It is not a saga of this entity.
        """
        await self._owned("Saga", [uuid])
        rows = await self._inside.objects.saga_episodes(uuid, check_limit(limit))
        return [episode_of(row) for row in rows]

    async def summarize_saga(self, uuid: str) -> Saga:
        """Let the model bring a saga's summary up to date with the episodes received since the last time.

        Raises:
            NotFound: It is not a saga of this entity.
        """
        await self._owned("Saga", [uuid])
        self._need_models()
        async with self._one_at_a_time:
            with self._no_breach(), GraphitiErrors():
                saga = await self._inside.graphiti.summarize_saga(uuid)
        self._own_groups([saga.group_id])
        return _saga(saga)

    async def delete_saga(self, uuid: str) -> None:
        """Delete a saga; its episodes stay.

        Raises:
            NotFound: It is not a saga of this entity.
        """
        await self._owned("Saga", [check_uuid(uuid)])
        await self._inside.objects.delete_saga(uuid)

    async def _links(self) -> dict[str, Counter[str]]:
        """Return every node with its neighbours and how many facts join them."""
        links: dict[str, Counter[str]] = {}
        after = ""
        while nodes := await self._store.scan_nodes(after, _PAGE):
            links.update((node.uuid, Counter()) for node in nodes)
            after = nodes[-1].uuid
        after = ""
        while facts := await self._store.scan_facts(after, _PAGE):
            for fact in facts:
                if fact.subject != fact.object and fact.subject in links and fact.object in links:
                    links[fact.subject][fact.object] += 1
                    links[fact.object][fact.subject] += 1
            after = facts[-1].uuid
        return links

    async def _name_vectors(self, communities: Sequence[Community]) -> dict[str, Vector]:
        if not communities:
            return {}
        embedder = GraphitiEmbedder(self._inside.models.embedder)
        rows = await embedder.create_batch([community.name for community in communities])
        return {one.uuid: np.asarray(row, dtype=np.float32) for one, row in zip(communities, rows, strict=True)}


def label_propagation(links: Mapping[str, Counter[str]]) -> list[list[str]]:
    """Return the nodes in groups, largest first, each in uuid order.

    Each node takes the label that most of its links lead to, in uuid order, until nothing changes or 50 rounds
    are done: Graphiti's own updates all nodes at once and may go back and forth for ever.

    Source: label propagation with asynchronous updates, Raghavan et al. 2007.
    """
    label = {node: node for node in links}
    for _ in range(_ROUNDS):
        changed = False
        for node in sorted(links):
            votes: Counter[str] = Counter()
            for neighbour, count in links[node].items():
                votes[label[neighbour]] += count
            best = max(votes, key=lambda one: (votes[one], one == label[node], one), default=label[node])
            changed |= best != label[node]
            label[node] = best
        if not changed:
            break
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for node in sorted(links):
        groups[label[node]].append(node)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0]))


def _saga(node: SagaNode) -> Saga:
    return Saga(
        uuid=node.uuid,
        name=node.name,
        created_at=node.created_at,
        summary=node.summary,
        first=node.first_episode_uuid or "",
        last=node.last_episode_uuid or "",
        summarized_at=node.last_summarized_at,
    )
