"""What both graph stores do alike. Each test has a database with room for several groups."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from graphiti_core.driver.driver import GraphProvider
from graphiti_core.edges import EntityEdge
from graphiti_core.nodes import CommunityNode, EntityNode, EpisodicNode

from pps.core.errors import InvalidRequest, NotFound, StoreError
from pps.core.ids import new_group
from pps.core.values import Community, Episode, Fact, GraphCounts, Node
from pps.graph.mapping import timeline_cursor
from pps.graph.protocol import GraphStore
from tests.graph_backend import Backend, EmbeddedBackend, Neo4jBackend

T0 = datetime(2025, 3, 1, 9, 30, 0, 123456, UTC)
DAY = timedelta(days=1)
TEXT = "\x01\x7fZoë 咖啡 ☕️ مرحبا\nnew line\t'quote' \"double\" \\back $group_id {uuid} `tick` 👩‍👩‍👧"


@pytest.fixture(params=["embedded", pytest.param("neo4j", marks=pytest.mark.neo4j)])
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    if request.param == "embedded":
        opened: Backend = EmbeddedBackend(tmp_path / "graph.lbug")
    else:
        opened = Neo4jBackend(request.getfixturevalue("neo4j_server"))
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def store(backend: Backend) -> GraphStore:
    return backend.store(new_group())


@pytest.fixture
def other(backend: Backend) -> GraphStore:
    """Another group's graph on the same database."""
    return backend.store(new_group())


def new_id() -> str:
    return str(uuid.uuid4())


def a_node(name: str = "Ana", **fields: object) -> Node:
    return replace(Node(new_id(), name, T0), **fields)  # type: ignore[arg-type]


def a_fact(subject: Node | str, other: Node | str, text: str = "Ana knows Ben", **fields: object) -> Fact:
    ends = [end if isinstance(end, str) else end.uuid for end in (subject, other)]
    return replace(Fact(new_id(), ends[0], ends[1], "KNOWS", text, T0), **fields)  # type: ignore[arg-type]


def an_episode(content: str = "I met Ben.", **fields: object) -> Episode:
    return replace(Episode(new_id(), "turn", content, T0, T0), **fields)  # type: ignore[arg-type]


def vector(seed: int, dimension: int = 8) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)
    return values / np.linalg.norm(values)


async def two_nodes(store: GraphStore) -> tuple[Node, Node]:
    ana, ben = a_node("Ana"), a_node("Ben")
    await store.save_nodes([ana, ben], {})
    return ana, ben


# --- saving and getting


async def test_a_node_comes_back_as_it_was_saved(store: GraphStore) -> None:
    node = a_node(
        TEXT,
        kind="Person",
        summary=TEXT,
        aliases=("A.", TEXT),
        tags=("kitchen", "咖啡"),
        attributes={"age": 41, "ratio": 0.5, "none": None, "yes": True, "list": [1, "b"], "deep": {"k": [TEXT]}},
    )
    await store.save_nodes([node], {})
    assert await store.nodes([node.uuid]) == [node]


async def test_a_fact_comes_back_as_it_was_saved(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    fact = a_fact(
        ana,
        ben,
        TEXT,
        relation="MET_AT",
        kind="relation",
        episodes=(new_id(), new_id()),
        valid_at=T0,
        invalid_at=T0 + DAY,
        expired_at=T0 + 2 * DAY,
        attributes={"weight": 0.25, "who": TEXT},
    )
    await store.save_facts([fact], {})
    assert await store.facts([fact.uuid]) == [fact]


async def test_a_fact_without_any_time_comes_back_without_any(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    fact = a_fact(ana, ben)
    await store.save_facts([fact], {})
    [found] = await store.facts([fact.uuid])
    assert (found.valid_at, found.invalid_at, found.expired_at, found.episodes) == (None, None, None, ())


@pytest.mark.parametrize("source", ["message", "text", "json"])
async def test_an_episode_comes_back_as_it_was_saved(store: GraphStore, source: str) -> None:
    episode = an_episode(TEXT * 400, source=source, description=TEXT, facts=(new_id(),), valid_at=T0 - DAY)
    await store.save_episodes([episode])
    assert await store.episodes([episode.uuid]) == [episode]


async def test_a_community_comes_back_with_its_members(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    community = Community(new_id(), TEXT, T0, TEXT, tuple(sorted((ana.uuid, ben.uuid))))
    await store.save_communities([community], {community.uuid: vector(1)})
    assert await store.communities([community.uuid]) == [community]
    smaller = replace(community, members=(ben.uuid,), summary="")
    await store.save_communities([smaller], {})
    assert await store.communities([community.uuid]) == [smaller]
    assert await store.scan_communities("", 5) == [smaller]


async def test_items_come_in_the_order_asked_once_each_and_absent_ones_are_left_out(store: GraphStore) -> None:
    nodes = [a_node(str(i)) for i in range(20)]
    await store.save_nodes(nodes, {})
    asked = [node.uuid for node in reversed(nodes)]
    assert await store.nodes([new_id(), *asked, asked[0]]) == nodes[::-1]
    facts = [a_fact(nodes[0], node) for node in nodes]
    await store.save_facts(facts, {})
    assert await store.facts([fact.uuid for fact in reversed(facts)]) == facts[::-1]
    assert await store.nodes([]) == []
    assert await store.facts([new_id()]) == []
    assert await store.episodes([new_id()]) == []
    assert await store.communities([new_id()]) == []


async def test_saving_again_updates_and_adds_nothing(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    fact, episode = a_fact(ana, ben), an_episode()
    for _ in range(2):
        await store.save_nodes([ana, ben], {})
        await store.save_facts([fact], {})
        await store.save_episodes([episode])
        await store.save_mentions([(episode.uuid, ana.uuid), (episode.uuid, ana.uuid)])
    assert await store.counts() == GraphCounts(2, 1, 1, 0, 1)
    renamed = replace(ana, name="Ana María", kind="Person", summary="s", tags=("x",), attributes={})
    closed = replace(fact, text="no more", invalid_at=T0 + DAY, expired_at=T0, episodes=(episode.uuid,))
    told = replace(episode, content="other", facts=(fact.uuid,))
    await store.save_nodes([renamed], {})
    await store.save_facts([closed], {})
    await store.save_episodes([told])
    assert await store.nodes([ana.uuid]) == [renamed]
    assert await store.facts([fact.uuid]) == [closed]
    assert await store.episodes([episode.uuid]) == [told]
    reopened = replace(closed, invalid_at=None, expired_at=None, episodes=())
    await store.save_facts([reopened], {})
    assert await store.facts([fact.uuid]) == [reopened]


async def test_of_two_values_with_one_id_in_a_batch_the_last_counts(store: GraphStore) -> None:
    first = a_node("first")
    await store.save_nodes([first, replace(first, name="last")], {})
    assert [node.name for node in await store.nodes([first.uuid])] == ["last"]


async def test_saving_nothing_does_nothing(store: GraphStore) -> None:
    await store.save_nodes([], {})
    await store.save_facts([], {})
    await store.save_episodes([])
    await store.save_mentions([])
    await store.save_communities([], {})
    assert await store.counts() == GraphCounts(0, 0, 0, 0, 0)


async def test_a_fact_whose_ends_change_is_moved(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    eva = a_node("Eva")
    await store.save_nodes([eva], {})
    fact = a_fact(ana, ben)
    await store.save_facts([fact], {fact.uuid: vector(3)})
    moved = replace(fact, subject=ben.uuid, object=eva.uuid)
    await store.save_facts([moved], {})
    assert await store.facts([fact.uuid]) == [moved]
    assert await store.facts_of_nodes([ana.uuid], 5) == []
    assert await store.facts_of_nodes([eva.uuid], 5) == [moved]
    assert (await store.distances(ana.uuid, 3)) == {ana.uuid: 0}
    np.testing.assert_allclose((await store.fact_vectors([fact.uuid]))[fact.uuid], vector(3), rtol=1e-6)
    assert (await store.counts()).facts == 1


async def test_a_fact_may_join_a_node_to_itself(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    fact = a_fact(ana, ana, "Ana trusts herself")
    await store.save_facts([fact], {})
    assert await store.facts_of_nodes([ana.uuid], 5) == [fact]
    assert await store.facts_between([(ana.uuid, ana.uuid)]) == [fact]
    assert await store.distances(ana.uuid, 2) == {ana.uuid: 0}
    assert await store.shortest_path(ana.uuid, ben.uuid, 3) is None


@pytest.mark.parametrize("text", ["half of a pair: \ud800", "\udfff"])
async def test_a_text_that_is_not_unicode_is_refused(store: GraphStore, text: str) -> None:
    with pytest.raises((InvalidRequest, StoreError)):
        await store.save_nodes([a_node("good"), a_node(text)], {})
    with pytest.raises((InvalidRequest, StoreError)):
        await store.save_episodes([an_episode(text)])
    assert await store.counts() == GraphCounts(0, 0, 0, 0, 0)


# --- vectors


async def test_vectors_come_back_and_stay_when_none_is_given(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    fact, bare = a_fact(ana, ben), a_fact(ben, ana)
    await store.save_nodes([ana], {ana.uuid: vector(1, 384)})
    await store.save_facts([fact, bare], {fact.uuid: vector(2, 384), new_id(): vector(9, 384)})
    await store.save_nodes([replace(ana, summary="new")], {})
    await store.save_facts([replace(fact, text="new")], {})
    nodes, facts = await store.node_vectors([ana.uuid, ben.uuid]), await store.fact_vectors([fact.uuid, bare.uuid])
    assert nodes.keys() == {ana.uuid}
    assert facts.keys() == {fact.uuid}
    np.testing.assert_allclose(nodes[ana.uuid], vector(1, 384), rtol=1e-6)
    np.testing.assert_allclose(facts[fact.uuid], vector(2, 384), rtol=1e-6)
    assert facts[fact.uuid].dtype == np.float32
    await store.save_facts([fact], {fact.uuid: vector(4, 384)})
    np.testing.assert_allclose((await store.fact_vectors([fact.uuid]))[fact.uuid], vector(4, 384), rtol=1e-6)


# --- what does not exist, and what is somebody else's


async def test_a_fact_with_an_absent_end_is_refused_and_nothing_of_its_batch_is_saved(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    good = [a_fact(ana, ben, str(i)) for i in range(30)]
    with pytest.raises(NotFound):
        await store.save_facts([*good, a_fact(ana, new_id())], {})
    assert (await store.counts()).facts == 0


async def test_a_mention_with_an_absent_end_is_refused_and_nothing_of_its_batch_is_saved(store: GraphStore) -> None:
    ana, _ = await two_nodes(store)
    episode = an_episode()
    await store.save_episodes([episode])
    for pair in ((new_id(), ana.uuid), (episode.uuid, new_id())):
        with pytest.raises(NotFound):
            await store.save_mentions([(episode.uuid, ana.uuid), pair])
    assert (await store.counts()).mentions == 0


async def test_a_community_with_an_absent_member_is_refused(store: GraphStore) -> None:
    with pytest.raises(NotFound):
        await store.save_communities([Community(new_id(), "c", T0, "", (new_id(),))], {})
    assert (await store.counts()).communities == 0


async def test_what_belongs_to_another_group_reads_as_absent(store: GraphStore, other: GraphStore) -> None:
    ana, ben = await two_nodes(other)
    fact, episode = a_fact(ana, ben, valid_at=T0), an_episode()
    fact = replace(fact, episodes=(episode.uuid,))
    community = Community(new_id(), "c", T0, "", (ana.uuid,))
    await other.save_facts([fact], {fact.uuid: vector(1)})
    await other.save_episodes([episode])
    await other.save_mentions([(episode.uuid, ana.uuid)])
    await other.save_communities([community], {})
    assert await store.nodes([ana.uuid]) == []
    assert await store.facts([fact.uuid]) == []
    assert await store.episodes([episode.uuid]) == []
    assert await store.communities([community.uuid]) == []
    assert await store.fact_vectors([fact.uuid]) == {}
    assert await store.scan_nodes("", 10) == []
    assert await store.scan_facts("", 10) == []
    assert await store.scan_episodes("", 10) == []
    assert await store.scan_communities("", 10) == []
    assert await store.facts_of_nodes([ana.uuid], 10) == []
    assert await store.facts_of_episodes([episode.uuid]) == []
    assert await store.facts_between([(ana.uuid, ben.uuid)]) == []
    assert await store.mentioned_nodes([episode.uuid]) == {}
    assert await store.distances(ana.uuid, 3) == {}
    assert (await store.neighbours(ana.uuid, 3, 10)).nodes == ()
    assert await store.shortest_path(ana.uuid, ben.uuid, 3) is None
    assert (await store.subgraph([ana.uuid, ben.uuid])).nodes == ()
    assert await store.timeline() == []
    assert await store.timeline(node=ana.uuid) == []
    assert await store.delete_nodes([ana.uuid]) == 0
    assert await store.delete_facts([fact.uuid]) == 0
    assert await store.delete_episodes([episode.uuid]) == 0
    await store.clear()
    assert await store.counts() == GraphCounts(0, 0, 0, 0, 0)
    assert await other.counts() == GraphCounts(2, 1, 1, 1, 1)


async def test_an_id_of_another_group_cannot_be_saved_under(store: GraphStore, other: GraphStore) -> None:
    ana, ben = await two_nodes(other)
    mine = (await two_nodes(store))[0]
    fact, episode = a_fact(ana, ben), an_episode()
    community = Community(new_id(), "c", T0, "", (ana.uuid,))
    await other.save_facts([fact], {})
    await other.save_episodes([episode])
    await other.save_communities([community], {})
    with pytest.raises(NotFound):
        await store.save_nodes([a_node("new"), replace(ana, name="stolen")], {ana.uuid: vector(1)})
    with pytest.raises(NotFound):
        await store.save_facts([replace(fact, subject=mine.uuid, object=mine.uuid)], {})
    with pytest.raises(NotFound):
        await store.save_facts([a_fact(mine, ana)], {})
    with pytest.raises(NotFound):
        await store.save_episodes([replace(episode, content="stolen")])
    with pytest.raises(NotFound):
        await store.save_mentions([(episode.uuid, mine.uuid)])
    with pytest.raises(NotFound):
        await store.save_communities([replace(community, members=())], {})
    assert await other.nodes([ana.uuid]) == [ana]
    assert await other.facts([fact.uuid]) == [fact]
    assert await other.episodes([episode.uuid]) == [episode]
    assert await other.communities([community.uuid]) == [community]
    assert await store.counts() == GraphCounts(2, 0, 0, 0, 0)


async def test_equal_contents_of_two_groups_stay_apart(store: GraphStore, other: GraphStore) -> None:
    for one in (store, other):
        ana, ben = await two_nodes(one)
        await one.save_facts([a_fact(ana, ben)], {})
    assert await store.counts() == await other.counts() == GraphCounts(2, 1, 0, 0, 0)
    await other.clear()
    assert await store.counts() == GraphCounts(2, 1, 0, 0, 0)
    assert await store.foreign_edges() == 0


async def test_an_edge_into_another_group_is_counted(backend: Backend, store: GraphStore, other: GraphStore) -> None:
    mine, theirs = (await two_nodes(store))[0], (await two_nodes(other))[0]
    assert await store.foreign_edges() == 0
    middle = "" if backend.driver.provider == GraphProvider.NEO4J else "(:RelatesToNode_ {uuid: $id, group_id: $g})"
    edge = f"-[:RELATES_TO]->{middle}-[:RELATES_TO]->" if middle else "-[:RELATES_TO {uuid: $id, group_id: $g}]->"
    await backend.driver.execute_query(
        f"MATCH (a:Entity {{uuid: $a}}) MATCH (b:Entity {{uuid: $b}}) CREATE (a){edge}(b)",
        a=mine.uuid,
        b=theirs.uuid,
        id=new_id(),
        g=store.group,
    )
    assert await store.foreign_edges() == 1
    assert await other.foreign_edges() == 1


@pytest.mark.parametrize("kind", ["", "Entity", "1st", "a b", "x`y", "Person)", "ü", "a" * 65, "Person\n"])
async def test_a_kind_that_is_no_label_is_refused(store: GraphStore, kind: str) -> None:
    with pytest.raises(InvalidRequest):
        await store.save_nodes([a_node(), a_node(kind=kind)], {})
    assert (await store.counts()).nodes == 0


@pytest.mark.parametrize("name", ["uuid", "group_id", "labels", "_private"])
async def test_attributes_with_the_names_of_columns_are_refused(store: GraphStore, name: str) -> None:
    with pytest.raises(InvalidRequest):
        await store.save_nodes([a_node(attributes={name: "x"})], {})
    assert (await store.counts()).nodes == 0


# --- deleting


async def test_deleting_a_node_deletes_its_facts_on_both_sides_and_its_mentions(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    eva, episode = a_node("Eva"), an_episode()
    await store.save_nodes([eva], {})
    await store.save_episodes([episode])
    await store.save_communities([Community(new_id(), "c", T0, "", (ana.uuid, ben.uuid))], {})
    await store.save_mentions([(episode.uuid, ana.uuid), (episode.uuid, ben.uuid)])
    stays = a_fact(ben, eva)
    await store.save_facts([a_fact(ana, ben), a_fact(ben, ana), a_fact(ana, ana), stays], {})
    assert await store.delete_nodes([ana.uuid, new_id(), ana.uuid]) == 1
    assert await store.counts() == GraphCounts(2, 1, 1, 1, 1)
    assert await store.scan_facts("", 10) == [stays]
    assert await store.mentioned_nodes([episode.uuid]) == {episode.uuid: [ben.uuid]}
    [community] = await store.scan_communities("", 10)
    assert community.members == (ben.uuid,)


async def test_deleting_facts_and_episodes_leaves_the_rest(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    episodes = [an_episode(str(i)) for i in range(3)]
    await store.save_episodes(episodes)
    await store.save_mentions([(episode.uuid, ana.uuid) for episode in episodes])
    facts = [a_fact(ana, ben, str(i), episodes=(episodes[0].uuid,)) for i in range(3)]
    await store.save_facts(facts, {})
    assert await store.delete_facts([fact.uuid for fact in facts[:2]]) == 2
    assert await store.delete_facts([facts[0].uuid]) == 0
    assert await store.delete_episodes([episodes[0].uuid, new_id()]) == 1
    assert await store.counts() == GraphCounts(2, 1, 2, 0, 2)
    assert await store.facts([facts[2].uuid]) == [facts[2]]
    assert await store.facts_of_episodes([episodes[0].uuid]) == [facts[2]]
    await store.save_facts(facts, {})
    assert (await store.counts()).facts == 3


async def test_deleting_hundreds_at_once_deletes_exactly_those(store: GraphStore) -> None:
    nodes = [a_node(str(i)) for i in range(300)]
    await store.save_nodes(nodes, {})
    await store.save_facts([a_fact(nodes[i], nodes[i + 1]) for i in range(299)], {})
    assert await store.delete_nodes([node.uuid for node in nodes[:200]]) == 200
    assert await store.counts() == GraphCounts(100, 99, 0, 0, 0)


async def test_clearing_leaves_nothing(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    episode = an_episode()
    await store.save_facts([a_fact(ana, ben)], {})
    await store.save_episodes([episode])
    await store.save_mentions([(episode.uuid, ana.uuid)])
    await store.save_communities([Community(new_id(), "c", T0, "", (ana.uuid,))], {})
    await store.clear()
    assert await store.counts() == GraphCounts(0, 0, 0, 0, 0)
    await two_nodes(store)
    assert (await store.counts()).nodes == 2


# --- pages and look-ups


async def test_scans_page_through_everything_in_uuid_order(store: GraphStore) -> None:
    nodes = [a_node(str(i)) for i in range(25)]
    episodes = [an_episode(str(i)) for i in range(25)]
    await store.save_nodes(nodes, {})
    await store.save_episodes(episodes)
    facts = [a_fact(nodes[0], node) for node in nodes]
    await store.save_facts(facts, {})
    for scan, items in ((store.scan_nodes, nodes), (store.scan_facts, facts), (store.scan_episodes, episodes)):
        seen: list[str] = []
        while page := await scan(seen[-1] if seen else "", 7):
            assert len(page) <= 7
            seen += [item.uuid for item in page]
        assert seen == sorted(item.uuid for item in items)


async def test_facts_of_nodes_are_the_newest_first_and_no_more_than_asked(store: GraphStore) -> None:
    nodes = [a_node(str(i)) for i in range(12)]
    await store.save_nodes(nodes, {})
    facts = [a_fact(nodes[i], nodes[(i + 1) % 12], str(i), created_at=T0 + i * DAY) for i in range(12)]
    await store.save_facts(facts, {})
    assert await store.facts_of_nodes([nodes[0].uuid], 10) == [facts[11], facts[0]]
    for some in (nodes[:3], nodes):
        ids = {node.uuid for node in some}
        expected = [fact for fact in reversed(facts) if {fact.subject, fact.object} & ids]
        assert await store.facts_of_nodes([node.uuid for node in some], 5) == expected[:5]
    assert await store.facts_of_nodes([], 5) == []
    same = [a_fact(nodes[0], nodes[6], str(i), created_at=T0 + 40 * DAY) for i in range(5)]
    await store.save_facts(same, {})
    assert [fact.uuid for fact in await store.facts_of_nodes([nodes[0].uuid], 5)] == sorted(f.uuid for f in same)


async def test_facts_of_episodes_are_those_that_name_one(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    first, second, third = new_id(), new_id(), new_id()
    facts = [
        a_fact(ana, ben, "a", episodes=(first,)),
        a_fact(ana, ben, "b", episodes=(second, first)),
        a_fact(ana, ben, "c", episodes=(third,)),
        a_fact(ana, ben, "d"),
    ]
    await store.save_facts(facts, {})
    assert await store.facts_of_episodes([first, new_id()]) == sorted(facts[:2], key=lambda fact: fact.uuid)
    assert await store.facts_of_episodes([second, third, third]) == sorted(facts[1:3], key=lambda fact: fact.uuid)
    assert await store.facts_of_episodes([]) == []


async def test_facts_between_two_nodes_go_from_the_first_to_the_second(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    there = [a_fact(ana, ben, str(i)) for i in range(3)]
    back = a_fact(ben, ana)
    await store.save_facts([*there, back], {})
    assert await store.facts_between([(ana.uuid, ben.uuid)]) == sorted(there, key=lambda fact: fact.uuid)
    assert await store.facts_between([(ben.uuid, ana.uuid), (new_id(), ana.uuid)]) == [back]
    assert await store.facts_between([]) == []


@pytest.mark.parametrize("many", [3, 30])
async def test_mentioned_nodes_are_told_by_episode(store: GraphStore, many: int) -> None:
    nodes = [a_node(str(i)) for i in range(3)]
    episodes = [an_episode(str(i)) for i in range(many)]
    await store.save_nodes(nodes, {})
    await store.save_episodes(episodes)
    pairs = [(episode.uuid, node.uuid) for episode in episodes[1:] for node in nodes]
    await store.save_mentions(pairs)
    await store.save_mentions(pairs[:4])
    found = await store.mentioned_nodes([episode.uuid for episode in episodes])
    assert found == {episode.uuid: sorted(node.uuid for node in nodes) for episode in episodes[1:]}
    assert (await store.counts()).mentions == len(pairs)


# --- walks


async def chain(store: GraphStore, length: int) -> tuple[list[Node], list[Fact]]:
    nodes = [a_node(str(i)) for i in range(length)]
    await store.save_nodes(nodes, {})
    ends = [(nodes[i], nodes[i + 1]) if i % 2 else (nodes[i + 1], nodes[i]) for i in range(length - 1)]
    facts = [a_fact(*pair) for pair in ends]
    await store.save_facts(facts, {})
    return nodes, facts


async def test_distances_count_hops_in_both_directions(store: GraphStore) -> None:
    nodes, _ = await chain(store, 6)
    assert await store.distances(nodes[2].uuid, 2) == {
        nodes[2].uuid: 0,
        nodes[1].uuid: 1,
        nodes[3].uuid: 1,
        nodes[0].uuid: 2,
        nodes[4].uuid: 2,
    }
    assert await store.distances(nodes[2].uuid, 0) == {nodes[2].uuid: 0}
    assert await store.distances(new_id(), 2) == {}


async def test_the_shortest_path_walks_facts_in_either_direction(store: GraphStore) -> None:
    nodes, facts = await chain(store, 6)
    path = await store.shortest_path(nodes[0].uuid, nodes[4].uuid, 4)
    assert path is not None
    assert list(path.nodes) == nodes[:5]
    assert list(path.facts) == facts[:4]
    assert await store.shortest_path(nodes[0].uuid, nodes[4].uuid, 3) is None
    shortcut = a_fact(nodes[4], nodes[1])
    await store.save_facts([shortcut], {})
    path = await store.shortest_path(nodes[0].uuid, nodes[4].uuid, 4)
    assert path is not None
    assert [node.name for node in path.nodes] == ["0", "1", "4"]
    here = await store.shortest_path(nodes[0].uuid, nodes[0].uuid, 2)
    assert here is not None
    assert (list(here.nodes), list(here.facts)) == ([nodes[0]], [])
    assert await store.shortest_path(nodes[0].uuid, new_id(), 4) is None


async def test_neighbours_are_the_nearest_with_the_facts_among_them(store: GraphStore) -> None:
    nodes, facts = await chain(store, 6)
    found = await store.neighbours(nodes[0].uuid, 3, 10)
    assert {node.uuid for node in found.nodes} == {node.uuid for node in nodes[:4]}
    assert {fact.uuid for fact in found.facts} == {fact.uuid for fact in facts[:3]}
    assert dict(found.hops) == {node.uuid: hop for hop, node in enumerate(nodes[:4])}
    nearest = await store.neighbours(nodes[0].uuid, 5, 2)
    assert {node.uuid for node in nearest.nodes} == {node.uuid for node in nodes[:3]}
    assert (await store.neighbours(new_id(), 3, 10)).nodes == ()


async def test_a_subgraph_has_the_facts_among_its_nodes_only(store: GraphStore) -> None:
    nodes, facts = await chain(store, 4)
    found = await store.subgraph([nodes[0].uuid, nodes[1].uuid, nodes[3].uuid, new_id()])
    assert {node.uuid for node in found.nodes} == {nodes[0].uuid, nodes[1].uuid, nodes[3].uuid}
    assert list(found.facts) == [facts[0]]
    assert set(found.hops.values()) == {0}


async def test_walks_agree_with_a_search_by_hand_on_a_random_graph(store: GraphStore) -> None:
    dice = random.Random(7)  # noqa: S311 - a graph, not a secret
    nodes = [a_node(str(i)) for i in range(60)]
    await store.save_nodes(nodes, {})
    facts = [a_fact(dice.choice(nodes), dice.choice(nodes)) for _ in range(80)]
    await store.save_facts(facts, {})
    around: dict[str, set[str]] = {node.uuid: set() for node in nodes}
    for fact in facts:
        around[fact.subject].add(fact.object)
        around[fact.object].add(fact.subject)
    hops = {nodes[0].uuid: 0}
    frontier = [nodes[0].uuid]
    for hop in range(1, 7):
        frontier = [far for near in frontier for far in around[near] if far not in hops and not hops.update({far: hop})]
    assert await store.distances(nodes[0].uuid, 6) == hops
    for end in dice.sample(nodes, 15):
        path = await store.shortest_path(nodes[0].uuid, end.uuid, 6)
        assert (None if path is None else len(path.facts)) == hops.get(end.uuid)


@pytest.mark.parametrize("hops", [-1, 9])
async def test_walks_of_no_or_too_many_hops_are_refused(store: GraphStore, hops: int) -> None:
    for walk in (store.distances(new_id(), hops), store.neighbours(new_id(), hops, 5)):
        with pytest.raises(InvalidRequest):
            await walk
    with pytest.raises(InvalidRequest):
        await store.shortest_path(new_id(), new_id(), hops)


# --- time


async def test_times_keep_their_instant_to_the_microsecond_in_any_zone(store: GraphStore) -> None:
    east = timezone(timedelta(hours=5, minutes=45))
    ana, ben = await two_nodes(store)
    moments = [
        datetime(2025, 1, 1, 0, 0, 0, 1, east),
        datetime(1901, 2, 3, 4, 5, 6, 999_999, UTC),
        datetime(2999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-11))),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
    ]
    facts = [a_fact(ana, ben, valid_at=at, created_at=at) for at in moments]
    await store.save_facts(facts, {})
    found = await store.facts([fact.uuid for fact in facts])
    assert [fact.valid_at for fact in found] == moments
    assert [fact.created_at for fact in found] == moments
    assert all(fact.created_at.utcoffset() == timedelta(0) for fact in found)


async def test_a_timeline_is_ordered_by_validity_then_uuid_with_undated_facts_last(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    days = [3, 1, 2, 1, 1]
    facts = [a_fact(ana, ben, valid_at=T0 + day * DAY) for day in days] + [a_fact(ana, ben), a_fact(ben, ana)]
    await store.save_facts(facts, {})
    far = datetime.max.replace(tzinfo=UTC)
    expected = sorted(facts, key=lambda fact: (fact.valid_at or far, fact.uuid))
    assert await store.timeline() == expected
    seen: list[Fact] = []
    while page := await store.timeline(limit=2, cursor=timeline_cursor(seen[-1]) if seen else ""):
        seen += page
    assert seen == expected


async def test_a_timeline_can_be_narrowed_to_a_node_a_relation_and_a_span(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    eva = a_node("Eva")
    await store.save_nodes([eva], {})
    facts = [
        a_fact(ana, ben, valid_at=T0),
        a_fact(ben, eva, valid_at=T0 + DAY, relation="LIKES"),
        a_fact(eva, ana, valid_at=T0 + 2 * DAY),
        a_fact(eva, eva),
    ]
    await store.save_facts(facts, {})
    assert await store.timeline(node=ana.uuid) == [facts[0], facts[2]]
    assert await store.timeline(node=eva.uuid) == facts[1:]
    assert await store.timeline(relation="LIKES") == [facts[1]]
    assert await store.timeline(after=T0 + DAY) == facts[1:3]
    assert await store.timeline(before=T0 + DAY) == [facts[0]]
    assert await store.timeline(after=T0, before=T0 + 2 * DAY, node=eva.uuid) == [facts[1]]
    assert await store.timeline(node=eva.uuid, relation="KNOWS", cursor=timeline_cursor(facts[2])) == [facts[3]]


async def test_as_of_takes_validity_as_half_open(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    old = a_fact(ana, ben, "lives in Rome", valid_at=T0, invalid_at=T0 + DAY, expired_at=T0 + 9 * DAY)
    new = a_fact(ana, ben, "lives in Oslo", valid_at=T0 + DAY)
    undated = a_fact(ana, ben, "likes tea")
    ended = a_fact(ana, ben, "was a child", invalid_at=T0 - DAY)
    dropped = a_fact(ana, ben, "never true", valid_at=T0 - 5 * DAY, expired_at=T0)
    await store.save_facts([old, new, undated, ended, dropped], {})

    async def at(moment: datetime) -> set[str]:
        return {fact.text for fact in await store.timeline(as_of=moment)}

    tick = timedelta(microseconds=1)
    assert await at(T0 - 2 * DAY) == {"likes tea", "was a child"}
    assert await at(T0 - tick) == {"likes tea"}
    assert await at(T0) == {"likes tea", "lives in Rome"}
    assert await at(T0 + DAY - tick) == {"likes tea", "lives in Rome"}
    assert await at(T0 + DAY) == {"likes tea", "lives in Oslo"}
    assert {fact.text for fact in await store.timeline()} == {
        *("lives in Rome", "lives in Oslo", "likes tea", "was a child", "never true")
    }


async def test_a_timeline_refuses_what_it_cannot_mean(store: GraphStore) -> None:
    naive = T0.replace(tzinfo=None)
    for broken in ({"limit": 0}, {"limit": 1_001}, {"cursor": "nonsense"}, {"cursor": "1:x"}, {"as_of": naive}):
        with pytest.raises(InvalidRequest):
            await store.timeline(**broken)  # type: ignore[arg-type]


# --- volume, transactions, concurrency, restart


async def test_ten_thousand_rows_are_one_batch_and_can_be_saved_again(store: GraphStore) -> None:
    nodes = [a_node(f"node {i}") for i in range(10_000)]
    facts = [
        a_fact(nodes[i], nodes[i * 7 % 10_000], f"fact {i}", valid_at=T0 + timedelta(seconds=i)) for i in range(10_000)
    ]
    await store.save_nodes(nodes, {})
    await store.save_facts(facts, {})
    assert await store.counts() == GraphCounts(10_000, 10_000, 0, 0, 0)
    again = [replace(fact, text=f"again {i}", episodes=(new_id(),)) for i, fact in enumerate(facts)]
    await store.save_facts(again, {})
    await store.save_nodes([replace(node, summary="seen") for node in nodes], {})
    assert await store.counts() == GraphCounts(10_000, 10_000, 0, 0, 0)
    some = again[::997]
    assert await store.facts([fact.uuid for fact in some]) == some
    assert [node.summary for node in await store.nodes([nodes[-1].uuid])] == ["seen"]
    assert len(await store.scan_facts("", 10_000)) == 10_000


async def test_a_transaction_that_raises_leaves_nothing(backend: Backend, store: GraphStore) -> None:
    class Enough(Exception):
        pass

    async def create(*, fail: bool) -> None:
        async with backend.driver.transaction() as tx:
            await tx.run("CREATE (:Entity {uuid: $uuid, group_id: $group_id})", uuid=new_id(), group_id=store.group)
            if fail:
                raise Enough

    with pytest.raises(Enough):
        await create(fail=True)
    assert (await store.counts()).nodes == 0
    await create(fail=False)
    assert (await store.counts()).nodes == 1


async def test_a_written_function_of_a_session_is_a_transaction(backend: Backend, store: GraphStore) -> None:
    async def work(tx: object, name: str, *, fail: bool) -> str:
        await tx.run(  # type: ignore[attr-defined]
            "CREATE (:Entity {uuid: $uuid, name: $name, group_id: $group_id})",
            uuid=new_id(),
            name=name,
            group_id=store.group,
        )
        if fail:
            raise ValueError
        return name

    async with backend.driver.session() as session:
        with pytest.raises(ValueError):  # noqa: PT011 - raised by the function above
            await session.execute_write(work, "lost", fail=True)
        assert await session.execute_write(work, "kept", fail=False) == "kept"
    assert (await store.counts()).nodes == 1


async def test_a_statement_that_is_refused_is_an_error_of_the_store(backend: Backend) -> None:
    with pytest.raises(StoreError):
        await backend.driver.execute_query("MATCH (n RETURN n")


async def test_writers_and_readers_at_once_lose_nothing(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)

    async def write(turn: int) -> None:
        fresh = [a_node(f"{turn}.{i}") for i in range(5)]
        await store.save_nodes([*fresh, replace(ana, summary=str(turn))], {node.uuid: vector(turn) for node in fresh})
        await store.save_facts([a_fact(ana, node) for node in fresh] + [a_fact(node, ben) for node in fresh], {})

    async def read() -> None:
        for _ in range(10):
            facts = await store.facts_of_nodes([ana.uuid], 500)
            assert len(facts) % 5 == 0, "half of a batch was seen"
            await asyncio.sleep(0)

    await asyncio.gather(*(write(turn) for turn in range(16)), *(read() for _ in range(4)))
    assert await store.counts() == GraphCounts(82, 160, 0, 0, 0)
    assert await store.foreign_edges() == 0


async def test_everything_is_there_after_a_restart(backend: Backend) -> None:
    group = new_group()
    store = backend.store(group)
    ana, ben = await two_nodes(store)
    fact, episode = a_fact(ana, ben, TEXT, valid_at=T0), an_episode(TEXT)
    await store.save_facts([fact], {fact.uuid: vector(1)})
    await store.save_episodes([episode])
    await store.save_mentions([(episode.uuid, ana.uuid)])
    await backend.reopen()
    store = backend.store(group)
    assert await store.counts() == GraphCounts(2, 1, 1, 0, 1)
    assert await store.facts([fact.uuid]) == [fact]
    assert await store.episodes([episode.uuid]) == [episode]
    assert (await store.neighbours(ana.uuid, 1, 5)).hops == {ana.uuid: 0, ben.uuid: 1}
    assert fact.uuid in await store.fact_vectors([fact.uuid])


# --- stock Graphiti on the same graph


async def test_stock_graphiti_reads_what_the_store_wrote(backend: Backend, store: GraphStore) -> None:
    ana, ben = a_node("Ana", kind="Person", summary="s", aliases=("A",)), a_node("Ben")
    await store.save_nodes([ana, ben], {ana.uuid: vector(1)})
    fact, episode = a_fact(ana, ben, valid_at=T0, episodes=(new_id(),)), an_episode()
    community = Community(new_id(), "friends", T0, "s", (ana.uuid,))
    await store.save_facts([fact], {fact.uuid: vector(2)})
    await store.save_episodes([episode])
    await store.save_mentions([(episode.uuid, ana.uuid)])
    await store.save_communities([community], {community.uuid: vector(3)})
    node = await EntityNode.get_by_uuid(backend.driver, ana.uuid)
    assert (node.name, node.summary, node.group_id, set(node.labels)) == ("Ana", "s", store.group, {"Entity", "Person"})
    assert node.created_at == T0
    await node.load_name_embedding(backend.driver)
    np.testing.assert_allclose(node.name_embedding, vector(1), rtol=1e-6)
    [edge] = await EntityEdge.get_by_uuids(backend.driver, [fact.uuid])
    assert (edge.source_node_uuid, edge.target_node_uuid, edge.fact) == (ana.uuid, ben.uuid, fact.text)
    assert (edge.valid_at, edge.invalid_at, edge.episodes) == (T0, None, list(fact.episodes))
    [told] = await EpisodicNode.get_by_entity_node_uuid(backend.driver, ana.uuid)
    assert (told.uuid, told.content, told.valid_at) == (episode.uuid, episode.content, T0)
    [group] = await CommunityNode.get_by_uuids(backend.driver, [community.uuid])
    assert group.name == "friends"


async def test_the_store_reads_what_stock_graphiti_wrote(backend: Backend, store: GraphStore) -> None:
    group = store.group
    ana = EntityNode(name="Ana", group_id=group, labels=["Person"], summary="s", attributes={"age": 41}, created_at=T0)
    ben = EntityNode(name="Ben", group_id=group, labels=[], created_at=T0)
    for number, node in enumerate((ana, ben)):
        node.name_embedding = vector(number).tolist()
        await node.save(backend.driver)
    edge = EntityEdge(
        source_node_uuid=ana.uuid,
        target_node_uuid=ben.uuid,
        name="KNOWS",
        fact="Ana knows Ben",
        group_id=group,
        created_at=T0,
        valid_at=T0,
        attributes={"since": "school"},
        fact_embedding=vector(5).tolist(),
    )
    await edge.save(backend.driver)
    [first, second] = await store.nodes([ana.uuid, ben.uuid])
    assert (first.kind, first.summary, dict(first.attributes)) == ("Person", "s", {"age": 41})
    assert (second.kind, second.name) == ("Thing", "Ben")
    [fact] = await store.facts_of_nodes([ben.uuid], 5)
    assert (fact.uuid, fact.subject, fact.object, fact.kind) == (edge.uuid, ana.uuid, ben.uuid, "fact")
    assert (fact.valid_at, dict(fact.attributes)) == (T0, {"since": "school"})
    assert await store.foreign_edges() == 0


async def test_attributes_of_graphitis_own_pipeline_are_kept_beside_ours(backend: Backend, store: GraphStore) -> None:
    ana = EntityNode(name="Ana", group_id=store.group, attributes={"age": 41, "town": "Rome"}, created_at=T0)
    ana.name_embedding = vector(1).tolist()
    await ana.save(backend.driver)
    [node] = await store.nodes([ana.uuid])
    await store.save_nodes([replace(node, tags=("x",), attributes={**node.attributes, "mine": 1, "town": "Oslo"})], {})
    stock = await EntityNode.get_by_uuid(backend.driver, ana.uuid)
    assert (stock.attributes["age"], stock.attributes["town"]) == (41, "Rome")
    stock.attributes["age"] = 42
    await stock.load_name_embedding(backend.driver)
    await stock.save(backend.driver)
    [node] = await store.nodes([ana.uuid])
    assert dict(node.attributes) == {"age": 42, "town": "Oslo", "mine": 1}
    assert node.tags == ("x",)


async def test_mentions_are_parted_one_by_one_and_what_is_not_joined_is_passed_over(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    first, second = an_episode(), an_episode()
    await store.save_episodes([first, second])
    await store.save_mentions([(one.uuid, node.uuid) for one in (first, second) for node in (ana, ben)])
    await store.delete_mentions([(first.uuid, ana.uuid), (first.uuid, ana.uuid), (new_id(), ben.uuid)])
    await store.delete_mentions([])
    assert await store.mentioned_nodes([first.uuid, second.uuid]) == {
        first.uuid: [ben.uuid],
        second.uuid: sorted([ana.uuid, ben.uuid]),
    }
