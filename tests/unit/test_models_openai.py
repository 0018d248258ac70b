"""Embeddings over HTTP, against a server that answers well and badly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pps.core.errors import ConfigError, ModelError, ModelOutputInvalid, ModelUnavailable, PPSError
from pps.models.hash import HashEmbedder
from pps.models.openai_compatible import EmbeddingServer, OpenAICompatibleEmbedder
from tests.model_server import Mode, ModelServer, model_server

_TEXTS = [f"Ana drinks tea number {number}" for number in range(10)]


class Client:
    """An embedder on the server, and the waits that it made."""

    def __init__(self, server: ModelServer, **settings: Any) -> None:
        self.waits: list[float] = []
        given = EmbeddingServer(
            base_url=server.base_url, model="m", dimension=16, api_key="key", batch=4
        )
        self.embedder = OpenAICompatibleEmbedder(
            replace(given, **settings), sleep=self.waits.append
        )


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server(dimension=16) as running:
        yield running


@pytest.fixture
def client(server: ModelServer) -> Iterator[Client]:
    made = Client(server)
    yield made
    made.embedder.close()


def test_vectors_come_back_in_the_order_of_the_texts_over_several_batches(
    client: Client, server: ModelServer
) -> None:
    rows = client.embedder.embed_passages(_TEXTS)
    assert np.allclose(rows, HashEmbedder(16).embed_passages(_TEXTS), atol=1e-6)
    assert [len(asked.body["input"]) for asked in server.asked] == [4, 4, 2]
    assert {asked.path for asked in server.asked} == {"/v1/embeddings"}
    assert server.asked[0].headers["authorization"] == "Bearer key"


def test_no_texts_ask_nothing(client: Client, server: ModelServer) -> None:
    assert client.embedder.embed_passages([]).shape == (0, 16)
    assert server.asked == []


def test_a_query_is_one_vector_of_length_one(client: Client) -> None:
    vector = client.embedder.embed_query("tea")
    assert vector.shape == (16,)
    assert np.linalg.norm(vector) == pytest.approx(1)


def test_a_blank_text_is_not_sent_empty(client: Client, server: ModelServer) -> None:
    client.embedder.embed_query(" ")
    assert server.asked[0].body["input"] == ["."]


def test_without_a_key_none_is_sent(server: ModelServer) -> None:
    client = Client(server, api_key="")
    client.embedder.embed_query("tea")
    client.embedder.close()
    assert "authorization" not in server.asked[0].headers


def test_a_shorter_vector_is_asked_for_where_the_model_can(server: ModelServer) -> None:
    client = Client(server, dimension=8, shorten=True)
    assert client.embedder.embed_query("tea").shape == (8,)
    client.embedder.close()
    assert server.asked[0].body["dimensions"] == 8


@pytest.mark.parametrize("mode", ["rate_limited", "server_error", "closed", "cut"])
def test_a_passing_trouble_is_waited_out(client: Client, server: ModelServer, mode: Mode) -> None:
    server.first = [mode, mode]
    server.retry_after = "3"
    assert client.embedder.embed_query("tea").shape == (16,)
    assert client.waits == ([3.0, 3.0] if mode == "rate_limited" else [0.5, 1.0])


@pytest.mark.parametrize("mode", ["rate_limited", "server_error", "closed"])
def test_a_lasting_trouble_is_unavailable_after_four_attempts(
    client: Client, server: ModelServer, mode: Mode
) -> None:
    server.mode = mode
    with pytest.raises(ModelUnavailable, match="4 times") as raised:
        client.embedder.embed_query("tea")
    assert raised.value.retryable
    assert len(server.asked) == 4
    assert len(client.waits) == 3


@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        ("3600", 8.0),
        ("-5", 0.0),
        ("soon", 0.5),
        ("nan", 0.5),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 0.5),
    ],
)
def test_no_server_can_make_it_wait_for_long(
    client: Client, server: ModelServer, asked: str, waited: float
) -> None:
    server.first = ["rate_limited"]
    server.retry_after = asked
    client.embedder.embed_query("tea")
    assert client.waits == [waited]


def test_a_slow_server_is_given_up_after_the_timeout(server: ModelServer) -> None:
    server.mode = "slow"
    client = Client(server, timeout_s=0.1, attempts=2)
    with pytest.raises(ModelUnavailable, match="ReadTimeout"):
        client.embedder.embed_query("tea")
    client.embedder.close()


def test_a_server_that_is_not_there_is_unavailable() -> None:
    embedder = OpenAICompatibleEmbedder(
        EmbeddingServer(base_url="http://127.0.0.1:9/v1", model="m", dimension=8),
        sleep=lambda _: None,
    )
    with pytest.raises(ModelUnavailable, match="ConnectError"):
        embedder.embed_query("tea")
    embedder.close()


@pytest.mark.parametrize(
    ("mode", "error", "said"),
    [
        ("bad_key", ConfigError, "embedder.api_key"),
        ("unknown_model", ConfigError, "embedder.model"),
        ("bad_request", ModelError, "HTTP 400"),
        ("not_json", ModelOutputInvalid, "not JSON"),
        ("wrong_schema", ModelOutputInvalid, "17 numbers where embedder.dimension is 16"),
        ("wrong_index", ModelOutputInvalid, "wrong index"),
        ("empty", ModelOutputInvalid, "0 vectors for 4 texts"),
        ("without_direction", ModelOutputInvalid, "without a direction"),
    ],
)
def test_a_wrong_answer_is_an_error_at_once_that_says_what_is_wrong(
    client: Client, server: ModelServer, mode: Mode, error: type[PPSError], said: str
) -> None:
    server.mode = mode
    with pytest.raises(error, match=said):
        client.embedder.embed_passages(_TEXTS)
    assert client.waits == []
    assert len(server.asked) == 1


def test_an_answer_without_a_list_is_invalid(server: ModelServer) -> None:
    server.mode = "no_list"
    client = Client(server)
    with pytest.raises(ModelOutputInvalid, match="no list of vectors"):
        client.embedder.embed_query("x")
    client.embedder.close()


def test_a_long_text_is_asked_for_in_passages_and_averaged(
    client: Client, server: ModelServer
) -> None:
    text = "Ana drinks tea in the kitchen at seven. " * 100
    vector = client.embedder.embed_query(text)
    sent = [part for asked in server.asked for part in asked.body["input"]]
    assert len(sent) > 2
    assert max(len(part.encode()) for part in sent) <= 1440
    assert np.linalg.norm(vector) == pytest.approx(1)


def test_the_key_is_not_in_what_the_settings_show() -> None:
    assert "sk-1" not in repr(
        EmbeddingServer(base_url="http://x/v1", model="m", dimension=8, api_key="sk-1")
    )


def test_it_works_again_after_close(client: Client) -> None:
    client.embedder.embed_query("tea")
    client.embedder.close()
    assert client.embedder.embed_query("tea").shape == (16,)
