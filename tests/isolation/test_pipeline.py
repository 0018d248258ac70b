"""Graphiti's pipeline through the boundary, on a real HTTP server that speaks a model's protocol, on both stores."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from pps.config import Settings
from pps.core.errors import NotFound
from pps.isolation.client import GraphitiChanges
from pps.models.protocols import ExtractorModel
from pps.proof.arena import Arena, Being, dice
from pps.proof.by_id import Ids
from pps.proof.honest import Honest
from pps.proof.verify import throw_away
from tests.isolation.standing import renewed
from tests.model_server import ModelServer, model_server

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

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
async def standing_minds(
    module_settings: Settings, standing_server: ModelServer
) -> AsyncIterator[Arena]:
    model = ExtractorModel("compatible", model="m", base_url=standing_server.base_url, timeout_s=20)
    async with (
        throw_away(module_settings) as (folder, open_driver),
        Arena.open(folder, open_driver, extractor=model) as opened,
    ):
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def thinking(standing_minds: Arena, server: ModelServer) -> AsyncIterator[Arena]:
    """Three entities with a language model on the store of the test, each as it was planted."""
    async with renewed(standing_minds) as lent:
        yield lent


def prompts(server: ModelServer) -> str:
    return json.dumps([asked.body for asked in server.asked], ensure_ascii=False)


async def read(arena: Arena, being: Being, text: str) -> GraphitiChanges:
    """Save a text as ingest does and let Graphiti read it."""
    episode = arena.episode(being, text)
    await being.client.save_episodes([episode])
    return await being.client.extract_episode(episode.uuid)


async def test_the_same_text_told_to_two_becomes_the_knowledge_of_each(
    thinking: Arena, server: ModelServer
) -> None:
    first, second, third = thinking.beings
    for being in (first, second):
        server.asked.clear()
        changes = await read(thinking, being, TEXT)
        asked = prompts(server)
        assert being.mark in asked, "its own earlier episodes are the context"
        for other in thinking.beings:
            assert (other.mark in asked) == (other is being)
            assert other is being or other.entity.group not in asked
        names = {node.name for node in await being.client.nodes(list(changes.nodes), strict=True)}
        assert names == {"Ana", "Lisbon", "Coffee", "Ben"}
        facts = await being.client.facts(list(changes.facts), strict=True)
        assert {fact.text for fact in facts} >= {"Ben knows Ana"}
        resolved = {
            node.uuid for node in await being.client.nodes(list(changes.nodes))
        } & being.nodes.keys()
        assert resolved, "names that it knew resolve to its own nodes"
        assert thinking.watch.leaks(being.name, [changes, facts]) == []
    assert await Honest(thinking).differences(third) == []
    assert thinking.counters.total == 0


async def test_what_a_model_took_is_counted_for_the_entity_that_asked(
    thinking: Arena, server: ModelServer
) -> None:
    first, second, _ = thinking.beings
    for being in thinking.beings:
        being.client.take_tokens_used()
    await read(thinking, first, TEXT)
    assert second.client.take_tokens_used() == {}
    assert sum(one.requests for one in first.client.take_tokens_used().values()) == len(
        server.asked
    )


async def test_what_pps_keeps_on_a_node_survives_graphitis_own_saves(thinking: Arena) -> None:
    being = thinking.beings[0]
    await read(thinking, being, TEXT)
    ana = next(node for node in being.nodes.values() if node.name == "Ana")
    after = (await being.client.nodes([ana.uuid], strict=True))[0]
    assert (after.tags, after.attributes["planted"]) == (ana.tags, being.mark)


async def test_the_id_of_a_call_is_checked_before_it_starts(
    thinking: Arena, server: ModelServer
) -> None:
    being, other, _ = thinking.beings
    theirs = Ids.of(other, dice(1))
    before = await being.client.counts()
    for id_ in (theirs.episode, theirs.node, theirs.saga, next(iter(being.nodes))):
        with pytest.raises(NotFound):
            await being.client.extract_episode(id_)
    assert server.asked == [], "the model was not asked"
    assert await being.client.counts() == before
    for one in thinking.beings:
        assert await Honest(thinking).differences(one) == []
    assert thinking.counters.total == 0


async def test_a_stored_episode_is_not_its_own_context(
    thinking: Arena, server: ModelServer
) -> None:
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
