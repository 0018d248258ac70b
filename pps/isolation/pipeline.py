"""Graphiti's own pipeline on an entity's episodes: every id checked first, every result checked after."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Unpack

from graphiti_core.edges import EntityEdge
from graphiti_core.errors import EdgeNotFoundError, GraphitiError, NodeNotFoundError
from graphiti_core.nodes import EntityNode, EpisodeType
from graphiti_core.search.search_utils import RELEVANT_SCHEMA_LIMIT
from graphiti_core.utils.bulk_utils import RawEpisode
from graphiti_core.utils.maintenance.community_operations import update_community

from pps.core.errors import InvalidRequest, ModelUnavailable, NotFound, NotSet
from pps.core.time import now, utc
from pps.core.values import RESERVED_KINDS, Fact, FactDraft, Node, NodeDraft
from pps.graph.mapping import ATTRIBUTE, fact_pps, node_labels
from pps.isolation.adapters import NO_EMBEDDER, NO_EXTRACTOR
from pps.isolation.bound import Bound, Inside, check_text
from pps.isolation.requests import Changes, EpisodeInput, PipelineOptions

_MOST_CONTENT = 1_000_000
_MOST_EPISODES = 1_000
_MOST_FACTS = 100_000


class GraphitiErrors:
    """A block in which Graphiti's errors become ours."""

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        """Raise our error for Graphiti's."""
        if isinstance(error, (NodeNotFoundError, EdgeNotFoundError)):
            raise NotFound() from None
        if isinstance(error, GraphitiError):
            raise InvalidRequest("graphiti", f"refused the request ({type(error).__name__})") from error


class Pipeline(Bound):
    """``add_episode`` and what belongs to it. One at a time: Graphiti resolves against what is stored."""

    def __init__(self, inside: Inside) -> None:
        super().__init__(inside)
        self._one_at_a_time = asyncio.Lock()

    async def extract_episode(self, uuid: str, **options: Unpack[PipelineOptions]) -> Changes:
        """Let Graphiti read an episode that is stored, as it is stored.

        Run again, it returns what it made the first time: the mentions that Graphiti saves last are the mark.

        Raises:
            NotFound: The episode, or one that an option names, is not this entity's.
            ModelUnavailable, ModelOutputInvalid, ModelError: The language model.
        """
        await self._owned("Episodic", [uuid])
        if found := await self._inside.objects.read_by_graphiti(uuid):
            facts = await self._store.facts_of_episodes([uuid])
            return Changes(tuple(found), tuple(fact.uuid for fact in facts), (uuid,))
        episode = (await self._store.episodes([uuid]))[0]
        text = EpisodeInput(episode.content, episode.valid_at, episode.name, episode.source, uuid=uuid)
        return await self.add_episode(text, **options)

    async def add_episode(self, episode: EpisodeInput, **options: Unpack[PipelineOptions]) -> Changes:
        """Save an episode, extract nodes and facts from it, resolve them and save them.

        Args:
            episode: The text; with a uuid, an episode that is stored, and only its id is looked at.
            **options: See ``PipelineOptions``.

        Returns:
            Every id that was made or changed.

        Raises:
            NotFound: An id is not this entity's; nothing was started.
            InvalidRequest: A bound is broken.
            ModelUnavailable, ModelOutputInvalid, ModelError: The language model.
        """
        _check_episode(episode)
        known = _known(options)
        previous = await self._check_episode_ids(episode, options)
        self._need_models()
        async with self._one_at_a_time:
            with self._no_breach(), GraphitiErrors():
                result = await self._inside.graphiti.add_episode(
                    episode.name or "episode",
                    episode.content,
                    episode.description,
                    utc(episode.reference_time, "reference_time"),
                    source=EpisodeType(episode.source),
                    group_id=self.entity.group,
                    uuid=episode.uuid or None,
                    previous_episode_uuids=previous,
                    saga=options.get("saga") or None,
                    saga_previous_episode_uuid=options.get("after") or None,
                    **known,
                )
                communities = await self._update_communities(result.nodes, options)
        return self._changes(result.nodes, result.edges, [result.episode], communities)

    async def add_episodes_bulk(self, episodes: Sequence[EpisodeInput], **options: Unpack[PipelineOptions]) -> Changes:
        """Work on 1 to 1,000 episodes together; as ``add_episode``, without ``previous`` and ``after``."""
        if not 1 <= len(episodes) <= _MOST_EPISODES:
            raise InvalidRequest("episodes", f"must be 1 to {_MOST_EPISODES}")
        for episode in episodes:
            _check_episode(episode)
        if options.get("previous") or options.get("after"):
            raise InvalidRequest("previous", "is not taken for several episodes: they are each other's context")
        await self._owned("Episodic", [episode.uuid for episode in episodes if episode.uuid])
        self._need_models()
        async with self._one_at_a_time:
            with self._no_breach(), GraphitiErrors():
                result = await self._inside.graphiti.add_episode_bulk(
                    [_raw(episode) for episode in episodes],
                    group_id=self.entity.group,
                    saga=options.get("saga") or None,
                    **_known(options),
                )
                communities = await self._update_communities(result.nodes, options)
        return self._changes(result.nodes, result.edges, result.episodes, communities)

    async def add_triplet(self, source: NodeDraft | str, fact: FactDraft, target: NodeDraft | str) -> Changes:
        """Add a fact between two nodes by Graphiti's resolution; which facts it ends is for the model to say.

        Args:
            source: The uuid of a node that the entity owns, or a draft, which may resolve to one.
            target: As ``source``.
            fact: Its relation, text and times; its own names of the ends and ``invalidates`` are not looked at.

        Raises:
            NotFound: A uuid is not a node of this entity.
        """
        check_text(fact.text or fact.relation, "text", 4_000)
        await self._owned("Entity", [end for end in (source, target) if isinstance(end, str)])
        self._need_models()
        start, end = await self._end(source), await self._end(target)
        edge = self._edge(fact, start, end)
        async with self._one_at_a_time:
            with self._no_breach(), GraphitiErrors():
                result = await self._inside.graphiti.add_triplet(start, edge, end)
        changes = self._changes(result.nodes, result.edges, [])
        await self._complete([(source, start.uuid), (target, end.uuid)], set(changes.nodes))
        return changes

    async def remove_episode(self, uuid: str) -> Changes:
        """Delete an episode with what only it supports: its facts, and nodes that nothing else mentions or joins.

        A fact that other episodes support too stays and loses this one.

        Raises:
            NotFound: It is not an episode of this entity.
        """
        await self._owned("Episodic", [uuid])
        facts = await self._store.facts_of_episodes([uuid])
        gone = [fact.uuid for fact in facts if set(fact.episodes) <= {uuid}]
        kept = [_without(fact, uuid) for fact in facts if fact.uuid not in gone]
        mentioned = (await self._store.mentioned_nodes([uuid])).get(uuid, [])
        await self._store.save_facts(kept, {})
        await self._store.delete_facts(gone)
        orphans = await self._orphans(mentioned, uuid)
        await self._store.delete_nodes(orphans)
        await self._store.delete_episodes([uuid])
        return Changes(tuple(orphans), tuple(fact.uuid for fact in facts), (uuid,))

    async def _orphans(self, nodes: Sequence[str], episode: str) -> list[str]:
        if not nodes:
            return []
        mentions = await self._inside.objects.episodes_of_nodes(nodes)
        joined = {
            end for fact in await self._store.facts_of_nodes(nodes, _MOST_FACTS) for end in (fact.subject, fact.object)
        }
        return [node for node in nodes if set(mentions.get(node, ())) <= {episode} and node not in joined]

    def _need_models(self) -> None:
        if self._inside.models.extractor is None:
            raise NotSet(NO_EXTRACTOR)
        if self._inside.models.embedder is None:
            raise ModelUnavailable(NO_EMBEDDER)

    async def _check_episode_ids(self, episode: EpisodeInput, options: PipelineOptions) -> list[str]:
        """Check every id of the call before it starts; return the episodes to read as context."""
        after, previous = options.get("after"), options.get("previous")
        if after and not options.get("saga"):
            raise InvalidRequest("after", "needs a saga")
        await self._owned("Episodic", [uuid for uuid in (episode.uuid, after) if uuid])
        if previous is not None:
            return await self._owned("Episodic", previous)
        # Graphiti's own choice would read a stored episode as its own context.
        latest = await self._inside.objects.latest_episodes(
            utc(episode.reference_time, "reference_time"), RELEVANT_SCHEMA_LIMIT + 1
        )
        return [one.uuid for one in latest if one.uuid != episode.uuid][-RELEVANT_SCHEMA_LIMIT:]

    async def _update_communities(self, nodes: Iterable[EntityNode], options: PipelineOptions) -> list[str]:
        """Update communities node by node: Graphiti's own option for it fails."""
        if not options.get("update_communities"):
            return []
        inside, changed = self._inside, dict[str, None]()
        clients = inside.graphiti.clients
        for node in nodes:
            communities, _ = await update_community(
                inside.guard, clients.llm_client, clients.embedder, node, clients=clients
            )
            self._own_groups(community.group_id for community in communities)
            changed.update(dict.fromkeys(community.uuid for community in communities))
        return list(changed)

    async def _end(self, end: NodeDraft | str) -> EntityNode:
        if isinstance(end, str):
            return (await self._inside.objects.nodes([end]))[0]
        check_text(end.name, "name", 500)
        labels = node_labels(Node("", end.name, now(), kind=end.kind))
        return EntityNode(name=end.name, group_id=self.entity.group, labels=labels, summary=end.summary)

    def _edge(self, draft: FactDraft, start: EntityNode, end: EntityNode) -> EntityEdge:
        text = draft.text or f"{start.name} {draft.relation} {end.name}"
        fact = Fact("", start.uuid, end.uuid, draft.relation, text, now(), kind=draft.kind)
        return EntityEdge(
            group_id=self.entity.group,
            source_node_uuid=start.uuid,
            target_node_uuid=end.uuid,
            created_at=fact.created_at,
            name=fact.relation,
            fact=text,
            valid_at=draft.valid_at and utc(draft.valid_at, "valid_at"),
            invalid_at=draft.invalid_at and utc(draft.invalid_at, "invalid_at"),
            attributes={ATTRIBUTE: fact_pps(fact)},
        )

    async def _complete(self, ends: Sequence[tuple[NodeDraft | str, str]], made: set[str]) -> None:
        """Give nodes that came out new what Graphiti has no place for; a draft that resolved changes nothing more."""
        for draft, uuid in ends:
            if isinstance(draft, NodeDraft) and uuid in made:
                stored = (await self._store.nodes([uuid]))[0]
                node = Node(
                    uuid,
                    stored.name,
                    stored.created_at,
                    kind=draft.kind,
                    summary=stored.summary,
                    aliases=draft.aliases,
                    tags=draft.tags,
                    attributes=draft.attributes,
                )
                await self._store.save_nodes([node], {})

    def _changes(
        self,
        nodes: Sequence[EntityNode],
        edges: Sequence[EntityEdge],
        episodes: Sequence[Any],
        more: Sequence[str] = (),
    ) -> Changes:
        self._own_groups(item.group_id for item in (*nodes, *edges, *episodes))
        return Changes(
            tuple(dict.fromkeys(node.uuid for node in nodes)),
            tuple(dict.fromkeys(edge.uuid for edge in edges)),
            tuple(dict.fromkeys(episode.uuid for episode in episodes)),
            tuple(more),
        )


def _check_episode(episode: EpisodeInput) -> None:
    check_text(episode.content, "content", _MOST_CONTENT)
    utc(episode.reference_time, "reference_time")


def _known(options: PipelineOptions) -> dict[str, Any]:
    """Return the options that Graphiti knows, by its names; InvalidRequest for a saga's name out of bounds."""
    if saga := options.get("saga"):
        check_text(saga, "saga", 200)
    if RESERVED_KINDS & (options.get("entity_types") or {}).keys():
        raise InvalidRequest("entity_types", f"must not be {', '.join(sorted(RESERVED_KINDS))}: Graphiti's own labels")
    edge_type_map = options.get("edge_type_map")
    return {
        "entity_types": dict(options.get("entity_types") or {}) or None,
        "edge_types": dict(options.get("edge_types") or {}) or None,
        "edge_type_map": {ends: list(kinds) for ends, kinds in edge_type_map.items()} if edge_type_map else None,
        "custom_extraction_instructions": options.get("instructions") or None,
    }


def _raw(episode: EpisodeInput) -> RawEpisode:
    return RawEpisode(
        name=episode.name or "episode",
        uuid=episode.uuid or None,
        content=episode.content,
        source_description=episode.description,
        source=EpisodeType(episode.source),
        reference_time=utc(episode.reference_time, "reference_time"),
    )


def _without(fact: Fact, episode: str) -> Fact:
    return replace(fact, episodes=tuple(uuid for uuid in fact.episodes if uuid != episode))
