"""Graphiti's pipeline on every provider's protocol, with good, slow, malformed and failing answers."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from pps.core.errors import (
    ConfigError,
    ModelError,
    ModelOutputInvalid,
    ModelUnavailable,
    NotSet,
    PPSError,
)
from pps.core.ids import EntityId, new_group
from pps.core.values import Episode
from pps.index.indexes import EntityIndexes, IndexDoc
from pps.isolation.binding import Models
from pps.isolation.client import EntityDriver, GraphitiChanges, IsolatedGraphitiClient
from pps.models.hash import HashEmbedder
from pps.models.protocols import ExtractorModel, Provider
from tests.graph_file import open_graph_file
from tests.model_server import Mode, ModelServer, model_server

_WHEN = datetime(2026, 3, 1, 9, tzinfo=UTC)
_TEXT = "Ana lives in Lisbon. Ana works at Blue Heron. Ben knows Ana."
PROVIDERS: tuple[Provider, ...] = ("openai", "anthropic", "gemini", "groq", "ollama", "compatible")
_ROUTES = {
    "openai": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1/models/some-model:generateContent",
    "groq": "/openai/v1/chat/completions",
    "ollama": "/v1/chat/completions",
    "compatible": "/v1/chat/completions",
}


def base_url(server: ModelServer, provider: Provider) -> str:
    """Return the address as each provider's own library wants it."""
    return server.url if provider in ("anthropic", "gemini", "groq") else server.base_url


@dataclass
class Brain:
    """An entity's client on a language model, and indexes that are fed as ingest would."""

    client: IsolatedGraphitiClient
    indexes: EntityIndexes
    embedder: HashEmbedder

    async def read(self, text: str, when: datetime = _WHEN) -> GraphitiChanges:
        episode = Episode(str(uuid4()), "turn", text, when, when)
        await self.client.save_episodes([episode])
        changes = await self.client.extract_episode(episode.uuid)
        facts = [
            ("fact", "facts", fact.uuid, fact.text)
            for fact in await self.client.facts(list(changes.facts))
        ]
        nodes = [
            ("node", "nodes", node.uuid, node.name)
            for node in await self.client.nodes(list(changes.nodes))
        ]
        await self.indexes.apply([self._doc(*item) for item in (*facts, *nodes)])
        return changes

    async def facts(self) -> dict[str, tuple[datetime | None, datetime | None]]:
        return {
            fact.text: (fact.valid_at, fact.invalid_at)
            for fact in await self.client.scan_facts("", 100)
        }

    async def names(self) -> list[str]:
        return sorted(node.name for node in await self.client.scan_nodes("", 100))

    def _doc(self, kind: Any, collection: str, owner: str, text: str) -> IndexDoc:
        vectors = np.asarray(self.embedder.embed_passages([text]))
        return IndexDoc(kind, owner, collection, text, passages=(text,), vectors=vectors)


MakeBrain = Callable[[ExtractorModel | None], Awaitable[Brain]]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture
async def make_brain(tmp_path: Path) -> AsyncIterator[MakeBrain]:
    async with AsyncExitStack() as stack:

        async def make(extractor: ExtractorModel | None) -> Brain:
            entity, embedder = EntityId("ana", new_group()), HashEmbedder(64)
            tables = await open_graph_file(tmp_path / "memory.db", entity.group)
            stack.push_async_callback(tables.close)
            indexes = await EntityIndexes.open(
                tmp_path, group=entity.group, fingerprint=embedder.fingerprint
            )
            stack.push_async_callback(indexes.close)
            opened = EntityDriver(tables, "embedded", tables.close)
            client = await IsolatedGraphitiClient.open(
                entity, opened, indexes, Models(embedder, None, extractor)
            )
            stack.push_async_callback(client.close)
            return Brain(client, indexes, embedder)

        yield make


def extractor(server: ModelServer, provider: Provider, timeout_s: float = 20) -> ExtractorModel:
    return ExtractorModel(
        provider,
        model="some-model",
        base_url=base_url(server, provider),
        api_key="secret-key",
        timeout_s=timeout_s,
    )


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_text_becomes_nodes_and_facts_on_every_provider(
    server: ModelServer, make_brain: MakeBrain, provider: Provider
) -> None:
    brain = await make_brain(extractor(server, provider))
    changes = await brain.read(_TEXT)
    assert await brain.names() == ["Ana", "Ben", "Blue Heron", "Lisbon"]
    assert await brain.facts() == {
        "Ana lives in Lisbon": (_WHEN, None),
        "Ana works at Blue Heron": (_WHEN, None),
        "Ben knows Ana": (_WHEN, None),
    }
    assert (len(changes.nodes), len(changes.facts), len(changes.episodes)) == (4, 3, 1)
    assert set(server.paths()) == {_ROUTES[provider]}
    assert any("secret-key" in value for value in server.asked[0].headers.values())
    (used,) = brain.client.take_tokens_used().values()
    asked = len(server.asked)
    assert (used.requests, used.unmetered, used.tokens_in, used.tokens_out) == (
        asked,
        0,
        10 * asked,
        5 * asked,
    )
    assert brain.client.take_tokens_used() == {}


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_fact_that_a_later_one_replaces_is_closed_and_a_repeated_one_is_not_doubled(
    server: ModelServer, make_brain: MakeBrain, provider: Provider
) -> None:
    brain = await make_brain(extractor(server, provider))
    later = datetime(2026, 5, 1, tzinfo=UTC)
    await brain.read("Ana lives in Lisbon. Ben knows Ana.")
    await brain.read("Ana lives in Porto. Ben knows Ana.", later)
    assert await brain.facts() == {
        "Ana lives in Lisbon": (_WHEN, later),
        "Ana lives in Porto": (later, None),
        "Ben knows Ana": (_WHEN, None),
    }
    assert await brain.names() == ["Ana", "Ben", "Lisbon", "Porto"]


async def test_other_scripts_come_through_whole(server: ModelServer, make_brain: MakeBrain) -> None:
    brain = await make_brain(extractor(server, "compatible"))
    await brain.read("安娜 drinks 咖啡. Zoë likes Málaga.")
    assert await brain.names() == ["Málaga", "Zoë", "咖啡", "安娜"]


async def test_a_stored_episode_is_read_once_and_again_without_asking(
    server: ModelServer, make_brain: MakeBrain
) -> None:
    brain = await make_brain(extractor(server, "openai"))
    episode = Episode("1b4e28ba-2fa1-5d2b-883f-0016d3cca427", "turn", _TEXT, _WHEN, _WHEN)
    await brain.client.save_episodes([episode])
    first = await brain.client.extract_episode(episode.uuid)
    asked = len(server.asked)
    again = await brain.client.extract_episode(episode.uuid)
    assert asked > 0
    assert len(server.asked) == asked
    assert set(again.nodes) == set(first.nodes)
    assert set(again.facts) == set(first.facts)


_FAILURES: list[tuple[Mode, type[PPSError], bool]] = [
    ("rate_limited", ModelUnavailable, True),
    ("server_error", ModelUnavailable, True),
    ("closed", ModelUnavailable, True),
    ("malformed", ModelOutputInvalid, False),
    ("wrong_schema", ModelOutputInvalid, False),
    ("empty", ModelOutputInvalid, False),
    ("not_json", ModelOutputInvalid, False),
    ("bad_key", ConfigError, False),
    ("unknown_model", ConfigError, False),
    ("bad_request", ModelError, False),
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("mode", "error", "retryable"), _FAILURES, ids=[mode for mode, _, _ in _FAILURES]
)
async def test_a_failing_model_is_an_error_of_ours_and_adds_no_facts(
    server: ModelServer,
    make_brain: MakeBrain,
    provider: Provider,
    mode: Mode,
    error: type[PPSError],
    retryable: bool,
) -> None:
    brain = await make_brain(extractor(server, provider))
    server.mode = mode
    server.retry_after = "0"
    with pytest.raises(error) as raised:
        await brain.read(_TEXT)
    assert type(raised.value) is error
    assert raised.value.retryable == retryable
    for private in ("Ana", "Lisbon", "Heron", "secret-key"):
        assert private not in str(raised.value)
    assert await brain.facts() == {}
    assert await brain.names() == []
    assert len(server.asked) <= 8


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_how_long_a_provider_asks_to_be_left_alone_is_told(
    server: ModelServer, make_brain: MakeBrain, provider: Provider
) -> None:
    brain = await make_brain(extractor(server, provider))
    server.mode, server.retry_after = "rate_limited", "0.125"
    with pytest.raises(ModelUnavailable) as raised:
        await brain.read(_TEXT)
    assert raised.value.retry_after_s == 0.125
    server.mode = "quota_spent"
    with pytest.raises(ModelUnavailable) as raised:
        await brain.read(_TEXT)
    assert raised.value.retry_after_s is None


@pytest.mark.timeout(120)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_slow_model_is_given_up_in_bounded_time(
    server: ModelServer, make_brain: MakeBrain, provider: Provider
) -> None:
    brain = await make_brain(extractor(server, provider, timeout_s=0.4))
    server.mode = "slow"
    server.delay_s = 600
    with pytest.raises(ModelUnavailable):
        await brain.read(_TEXT)
    assert await brain.facts() == {}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("mode", ["malformed", "wrong_schema"])
async def test_one_bad_answer_is_asked_for_again(
    server: ModelServer, make_brain: MakeBrain, provider: Provider, mode: Mode
) -> None:
    brain = await make_brain(extractor(server, provider))
    server.first = [mode]
    await brain.read(_TEXT)
    assert len(await brain.facts()) == 3


class Kept(logging.Handler):
    """Keeps what reaches the root logger, which is what a user's log gets."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler, root = Kept(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("mode", ["malformed", "wrong_schema", "server_error"])
async def test_no_text_of_the_memory_is_logged_above_debug(
    server: ModelServer, make_brain: MakeBrain, provider: Provider, mode: Mode, kept: Kept
) -> None:
    brain = await make_brain(extractor(server, provider))
    server.mode = mode
    with pytest.raises(PPSError):
        await brain.read("Ana works at Xylophone.")
    loud = [record.getMessage() for record in kept.records if record.levelno > logging.DEBUG]
    assert kept.records
    assert not [
        said
        for said in loud
        if "Xylophone" in said or "extracted_ent" in said or "secret-key" in said
    ]


async def test_without_a_language_model_it_says_so(make_brain: MakeBrain) -> None:
    brain = await make_brain(None)
    with pytest.raises(NotSet, match=r"extractor\.mode"):
        await brain.read(_TEXT)
