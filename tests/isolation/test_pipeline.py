"""Graphiti's pipeline through the boundary, on a real HTTP server that speaks a model's protocol, on both stores."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from pps.config import Settings
from pps.core.errors import InvalidRequest, NotFound
from pps.core.values import FactDraft, NodeDraft
from pps.isolation.requests import EpisodeInput
from pps.models.protocols import ExtractorModel
from pps.proof.arena import Arena, Being, dice
from pps.proof.by_id import Ids
from pps.proof.honest import Honest
from pps.proof.verify import throw_away
from tests.isolation.standing import renewed
from tests.model_server import ModelServer, model_server

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

WHEN = datetime(2026, 4, 1, 9, tzinfo=UTC)
TEXT = "Ana lives in Lisbon. Ana drinks Coffee. Ben knows Ana."


@pytest.fixture(scope="module")
def standing_server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture
def server(standing_server: ModelServer) -> ModelServer:
    standing_server.mode = "good"
    standing_server.asked.clear()
    return standing_server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing_minds(module_settings: Settings, standing_server: ModelServer) -> AsyncIterator[Arena]:
    model = ExtractorModel("compatible", model="m", base_url=standing_server.base_url, timeout_s=20)
    async with (
        throw_away(module_settings) as (folder, open_driver),
        Arena.open(folder, open_driver, extractor=model) as opened,
    ):
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def thinking(standing_minds: Arena, server: ModelServer) -> Arena:
    """Three entities with a language model on the store of the test, each as it was planted."""
    return await renewed(standing_minds)


def prompts(server: ModelServer) -> str:
    return json.dumps([asked.body for asked in server.asked], ensure_ascii=False)


async def others_are_whole(arena: Arena, being: Being) -> None:
    for other in arena.beings:
        if other is not being:
            assert await Honest(arena).differences(other) == []
    assert arena.counters.total == 0, "nothing may even come as far as the second lock"


async def test_the_same_text_told_to_two_becomes_the_knowledge_of_each(thinking: Arena, server: ModelServer) -> None:
    first, second, third = thinking.beings
    for being in (first, second):
        server.asked.clear()
        changes = await being.client.add_episode(EpisodeInput(TEXT, WHEN, "turn"))
        asked = prompts(server)
        assert being.mark in asked, "its own earlier episodes are the context"
        for other in thinking.beings:
            assert (other.mark in asked) == (other is being)
            assert other is being or other.entity.group not in asked
        names = {node.name for node in await being.client.nodes(list(changes.nodes), strict=True)}
        assert names == {"Ana", "Lisbon", "Coffee", "Ben"}
        facts = await being.client.facts(list(changes.facts), strict=True)
        assert {fact.text for fact in facts} >= {"Ben knows Ana"}
        resolved = {node.uuid for node in await being.client.nodes(list(changes.nodes))} & being.nodes.keys()
        assert resolved, "names that it knew resolve to its own nodes"
        assert thinking.watch.leaks(being.name, [changes, facts]) == []
    assert await Honest(thinking).differences(third) == []
    assert thinking.counters.total == 0


async def test_what_a_model_took_is_counted_for_the_entity_that_asked(thinking: Arena, server: ModelServer) -> None:
    first, second, _ = thinking.beings
    for being in thinking.beings:
        being.client.take_tokens_used()
    await first.client.add_episode(EpisodeInput(TEXT, WHEN, "turn"))
    assert second.client.take_tokens_used() == {}
    assert sum(one.requests for one in first.client.take_tokens_used().values()) == len(server.asked)


async def test_what_pps_keeps_on_a_node_survives_graphitis_own_saves(thinking: Arena) -> None:
    being = thinking.beings[0]
    await being.client.add_episode(EpisodeInput(TEXT, WHEN, "turn"))
    ana = next(node for node in being.nodes.values() if node.name == "Ana")
    after = (await being.client.nodes([ana.uuid], strict=True))[0]
    assert (after.tags, after.attributes["planted"]) == (ana.tags, being.mark)


async def test_every_id_of_a_call_is_checked_before_it_starts(thinking: Arena, server: ModelServer) -> None:
    being, other, _ = thinking.beings
    theirs = Ids.of(other, dice(1))
    own = next(iter(being.episodes))
    text = EpisodeInput(TEXT, WHEN)
    client = being.client
    calls = [
        lambda: client.add_episode(EpisodeInput(TEXT, WHEN, uuid=theirs.episode)),
        lambda: client.add_episode(text, previous=[own, theirs.episode]),
        lambda: client.add_episode(text, saga="Mornings", after=theirs.episode),
        lambda: client.extract_episode(theirs.episode),
        lambda: client.extract_episode(own, previous=[theirs.episode]),
        lambda: client.add_episodes_bulk([text, EpisodeInput(TEXT, WHEN, uuid=theirs.episode)]),
        lambda: client.add_triplet(theirs.node, FactDraft("", "KNOWS", ""), NodeDraft("Tea")),
        lambda: client.add_triplet(NodeDraft("Tea"), FactDraft("", "KNOWS", ""), theirs.node),
        lambda: client.summarize_saga(theirs.saga),
        lambda: client.remove_episode(theirs.episode),
        lambda: client.delete_saga(theirs.saga),
        lambda: client.saga_episodes(theirs.saga),
    ]
    before = await client.counts()
    for call in calls:
        with pytest.raises(NotFound):
            await call()
    assert server.asked == [], "the model was not asked"
    assert await client.counts() == before
    for one in thinking.beings:
        assert await Honest(thinking).differences(one) == []
    assert thinking.counters.total == 0


async def test_a_stored_episode_is_not_its_own_context(thinking: Arena, server: ModelServer) -> None:
    being = thinking.beings[0]
    episode = thinking.episode(being, f"Ana works at Zanzibar. {being.mark}")
    await being.client.save_episodes([episode])
    await being.client.extract_episode(episode.uuid)
    first = json.dumps(server.asked[0].body)
    assert first.count("Zanzibar") == 1, "it is told once, as the current message"


async def test_an_extraction_that_is_run_again_asks_nothing_and_tells_the_same(
    thinking: Arena, server: ModelServer
) -> None:
    being = thinking.beings[0]
    episode = thinking.episode(being, TEXT)
    await being.client.save_episodes([episode])
    changes = await being.client.extract_episode(episode.uuid)
    server.asked.clear()
    again = await being.client.extract_episode(episode.uuid)
    assert server.asked == []
    assert set(again.nodes) == set(changes.nodes)
    assert set(again.facts) <= set(changes.facts)
    assert again.episodes == (episode.uuid,)


async def test_several_episodes_at_once_stay_inside(thinking: Arena, server: ModelServer) -> None:
    being = thinking.beings[0]
    texts = [EpisodeInput(TEXT, WHEN, "one"), EpisodeInput("Ben works at Blue Heron.", WHEN, "two")]
    changes = await being.client.add_episodes_bulk(texts, saga="Mornings")
    assert len(changes.episodes) == 2
    names = {node.name for node in await being.client.nodes(list(changes.nodes), strict=True)}
    assert names >= {"Ana", "Ben", "Blue Heron"}
    for other in thinking.beings[1:]:
        assert other.mark not in prompts(server)
    await others_are_whole(thinking, being)
    with pytest.raises(InvalidRequest):
        await being.client.add_episodes_bulk(texts, previous=[next(iter(being.episodes))])


async def test_a_triplet_between_an_own_node_and_a_new_one(thinking: Arena, server: ModelServer) -> None:
    being = thinking.beings[0]
    ana = next(node for node in being.nodes.values() if node.name == "Ana")
    draft = NodeDraft("Zanzibar", kind="Place", aliases=("Unguja",), tags=("island",), attributes={"warm": True})
    changes = await being.client.add_triplet(ana.uuid, FactDraft("", "VISITED", "", "Ana visited Zanzibar."), draft)
    made = [n for n in await being.client.nodes(list(changes.nodes), strict=True) if n.name == "Zanzibar"]
    assert [(n.kind, n.aliases, n.tags, n.attributes) for n in made] == [
        ("Place", ("Unguja",), ("island",), {"warm": True})
    ]
    (fact,) = [f for f in await being.client.facts(list(changes.facts), strict=True) if f.relation == "VISITED"]
    assert (fact.subject, fact.object) == (ana.uuid, made[0].uuid)
    await others_are_whole(thinking, being)


async def test_removing_an_episode_takes_what_only_it_supports(thinking: Arena) -> None:
    being = thinking.beings[0]
    before = await being.client.counts()
    added = await being.client.add_episode(EpisodeInput("Xaver knows Yvonne. Xaver likes Zanzibar.", WHEN))
    assert (await being.client.counts()).nodes == before.nodes + 3
    removed = await being.client.remove_episode(added.episodes[0])
    assert set(removed.nodes) == set(added.nodes)
    assert set(removed.facts) == set(added.facts)
    assert await being.client.counts() == before
    await others_are_whole(thinking, being)


async def test_communities_are_built_of_own_nodes_and_replaced_whole(thinking: Arena, server: ModelServer) -> None:
    being = thinking.beings[0]
    changes = await being.client.build_communities()
    built = await being.client.communities(list(changes.communities), strict=True)
    assert built
    members = {member for community in built for member in community.members}
    assert members <= being.nodes.keys()
    assert {one.uuid for one in await being.client.scan_communities("", 100)} == set(changes.communities)
    for other in thinking.beings[1:]:
        assert other.mark not in prompts(server)
    await others_are_whole(thinking, being)


async def test_a_failing_model_leaves_the_old_communities(thinking: Arena, server: ModelServer) -> None:
    being = thinking.beings[0]
    server.mode = "server_error"
    with pytest.raises(Exception, match="HTTP 500"):
        await being.client.build_communities()
    assert await Honest(thinking).differences(being) == []


async def test_communities_follow_an_episode_when_asked(thinking: Arena) -> None:
    being = thinking.beings[0]
    changes = await being.client.add_episode(EpisodeInput(TEXT, WHEN), update_communities=True)
    assert set(changes.communities) <= {one.uuid for one in await being.client.scan_communities("", 100)}
    assert changes.communities
    await others_are_whole(thinking, being)


async def test_a_saga_of_the_same_name_is_each_entitys_own(thinking: Arena, server: ModelServer) -> None:
    first, second, _ = thinking.beings
    changes = await first.client.add_episode(EpisodeInput(TEXT, WHEN), saga="Mornings")
    assert [saga.uuid for saga in await first.client.sagas()] == [first.saga]
    episodes = await first.client.saga_episodes(first.saga)
    assert [episode.uuid for episode in episodes] == [*first.episodes, *changes.episodes]
    server.asked.clear()
    saga = await first.client.summarize_saga(first.saga)
    assert first.mark in prompts(server)
    assert second.mark not in prompts(server)
    assert saga.summarized_at is not None
    assert (await first.client.sagas())[0] == saga
    await others_are_whole(thinking, first)
    await first.client.delete_saga(first.saga)
    assert await first.client.sagas() == []
    assert await first.client.episodes(list(first.episodes), strict=True)
    await others_are_whole(thinking, first)
