"""PPS's embedder, reranker and language model as Graphiti's clients, with errors of PPS.

Graphiti always gets all three. No message quotes an answer.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar, cast

import httpx
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.embedder.client import EmbedderClient
from graphiti_core.errors import EdgeNotFoundError, GraphitiError, NodeNotFoundError
from graphiti_core.llm_client.client import LLMClient
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.errors import EmptyResponseError, RateLimitError, RefusalError
from graphiti_core.prompts.models import Message
from pydantic import BaseModel, ValidationError

from pps.core.errors import (
    ConfigError,
    InvalidRequest,
    ModelError,
    ModelOutputInvalid,
    ModelUnavailable,
    NotFound,
    NotSet,
    PPSError,
)
from pps.isolation.providers import ProviderConnection, connect
from pps.models.protocols import Embedder, ExtractorModel, Reranker

Shape = TypeVar("Shape", bound=BaseModel)
_ATTEMPTS = 2
_REFUSED_KEY = frozenset((401, 403))
_LATER = frozenset((408, 409, 425, 429))
_NETWORK = (TimeoutError, ConnectionError, httpx.TransportError)
_BAD_ANSWER = (
    json.JSONDecodeError,
    ValidationError,
    EmptyResponseError,
    RefusalError,
    ValueError,
    KeyError,
    TypeError,
)

NO_EMBEDDER = "no embedder is set (embedder.name is 'none'), and this call needs one"
NO_RERANKER = "no reranker is set (reranker.name is 'none'), and this call needs one"
NO_EXTRACTOR = (
    "nothing that reads texts is set, and this needs it: set extractor.mode to 'command' or "
    "'model' (PPS_EXTRACTOR__MODE) with what that needs, then start the server anew"
)


class GraphitiErrors:
    """A block in which Graphiti's errors become ours."""

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        if isinstance(error, (NodeNotFoundError, EdgeNotFoundError)):
            raise NotFound() from None
        if isinstance(error, GraphitiError):
            raise InvalidRequest(
                "graphiti", f"refused the request ({type(error).__name__})"
            ) from error


class GraphitiEmbedder(EmbedderClient):
    """Embeds names and facts as passages, to compare them with each other.

    ``IsolatedGraphitiClient`` embeds queries.
    """

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder

    async def create(
        self, input_data: str | list[str] | Iterable[int] | Iterable[Iterable[int]]
    ) -> list[float]:
        texts = [input_data] if isinstance(input_data, str) else cast("list[str]", input_data)
        return (await self.create_batch(texts[:1]))[0]

    async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
        if self._embedder is None:
            raise ModelUnavailable(NO_EMBEDDER)
        rows = await asyncio.to_thread(self._embedder.embed_passages, input_data_list)
        return cast("list[list[float]]", rows.tolist())


class GraphitiReranker(CrossEncoderClient):
    """Scores passages with PPS's reranker; recipes rerank by id after Graphiti instead."""

    def __init__(self, reranker: Reranker | None, deadline_s: float) -> None:
        self._reranker = reranker
        self._deadline_s = deadline_s

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        scores = await rerank_scores(self._reranker, query, passages, self._deadline_s)
        if scores is None:
            raise ModelUnavailable("the reranker did not finish in time")
        return sorted(zip(passages, scores, strict=True), key=lambda scored: -scored[1])


async def rerank_scores(
    reranker: Reranker | None, query: str, passages: Sequence[str], deadline_s: float
) -> list[float] | None:
    """Return one score a passage, higher is better, or None when the deadline passed first.

    Raises:
        ModelUnavailable: There is no reranker.
    """
    if reranker is None:
        raise ModelUnavailable(NO_RERANKER)
    if not passages:
        return []
    result = await asyncio.to_thread(reranker.rerank, query, passages, deadline_s=deadline_s)
    return list(result.scores) if result.complete else None


class NoExtractor(LLMClient):
    """Stands where Graphiti wants a language model and there is none; refuses every call."""

    def __init__(self) -> None:
        super().__init__(LLMConfig())

    async def _generate_response(self, *_: Any, **__: Any) -> dict[str, Any]:
        raise NotSet(NO_EXTRACTOR)

    async def generate_response(self, *_: Any, **__: Any) -> dict[str, Any]:
        raise NotSet(NO_EXTRACTOR)


class Extractor(LLMClient):
    """One of Graphiti's clients for a provider; maps errors and checks answers by their schema.

    An answer that breaks its schema is asked for once more. Waiting and trying again later is left
    to the worker, whose queue knows about it; Graphiti's own waits of up to minutes are left out.
    """

    def __init__(self, connection: ProviderConnection, timeout_s: float) -> None:
        provider = connection.client
        super().__init__(LLMConfig(model=provider.model, small_model=provider.small_model))
        self._provider = provider
        self._connection = connection
        self._timeout_s = timeout_s
        self.token_tracker = provider.token_tracker
        self.meter = connection.meter

    async def _generate_response(self, *_: Any, **__: Any) -> dict[str, Any]:
        raise ModelUnavailable("this client answers through generate_response alone")

    async def generate_response(
        self,
        messages: list[Message],
        response_model: type[BaseModel] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return the model's answer as a mapping that fits ``response_model``.

        Raises:
            ModelUnavailable: The provider cannot be reached, is overloaded or does not answer in
                time.
            ModelOutputInvalid: It answered twice with something that is not what was asked for.
            ModelError: It refused the request; trying again does not help.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            # A copy for each attempt: providers change the messages that they get.
            copies = [message.model_copy() for message in messages]
            try:
                return await self._answer(copies, response_model, *args, **kwargs)
            except ModelOutputInvalid:
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError  # the loop returns or raises

    async def ask(self, task: str, text: str, shape: type[Shape]) -> Shape:
        """Return the model's answer to a task on a text; errors as ``generate_response``."""
        messages = [Message(role="system", content=task), Message(role="user", content=text)]
        return shape.model_validate(await self.generate_response(messages, shape))

    async def close(self) -> None:
        await self._connection.close()

    async def _answer(
        self,
        messages: list[Message],
        response_model: type[BaseModel] | None,
        *args: Any,
        **kwargs: Any,
    ) -> dict[str, Any]:
        try:
            async with asyncio.timeout(self._timeout_s * 2):
                answer = await self._provider.generate_response(
                    messages, response_model, *args, **kwargs
                )
        except Exception as error:
            # Graphiti's clients raise bare Exception in places, so there is no narrower net.
            raise model_error(error) from error
        return _checked(answer, response_model)


def _checked(answer: object, response_model: type[BaseModel] | None) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise ModelOutputInvalid(
            "the language model answered with something that is not a JSON object"
        )
    mapping = cast("dict[str, Any]", answer)
    if response_model is not None:
        try:
            response_model.model_validate(mapping)
        except ValidationError as error:
            fields = {".".join(map(str, problem["loc"])) for problem in error.errors()}
            raise ModelOutputInvalid(
                f"the language model's answer does not fit its schema: {', '.join(sorted(fields))}"
            ) from None
    return mapping


def make_llm(extractor: ExtractorModel | None) -> Extractor | NoExtractor:
    """Return the client of an extractor's provider, or one that refuses when there is none.

    Raises:
        ConfigError: The provider's package is not installed.
    """
    return Extractor(connect(extractor), extractor.timeout_s) if extractor else NoExtractor()


def model_error(error: BaseException) -> PPSError:
    """Return the error of ours that says the same; one of ours is returned as it is."""
    for cause in _causes(error):
        mapped = _mapped(cause)
        if mapped is not None:
            return mapped
    return ModelOutputInvalid(
        f"the language model's answer could not be used ({type(error).__name__})"
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what caused it: some clients wrap everything in a bare Exception."""
    present: BaseException | None = error
    while present is not None:
        yield present
        present = present.__cause__


def _mapped(error: BaseException) -> PPSError | None:
    name = type(error).__name__
    if isinstance(error, PPSError):
        return error
    if isinstance(error, RateLimitError):
        return ModelUnavailable(
            "the language model's provider limits the rate of requests",
            provider="extractor",
            retry_after_s=_retry_after_s(error),
        )
    if isinstance(error, _NETWORK) or name in ("APIConnectionError", "APITimeoutError"):
        return ModelUnavailable(
            f"the language model cannot be reached ({name})", provider="extractor"
        )
    status = _status(error)
    if status is not None:
        return _of_status(status, _retry_after_s(error))
    if isinstance(error, _BAD_ANSWER):
        return ModelOutputInvalid(f"the language model's answer could not be used ({name})")
    return None


def _status(error: BaseException) -> int | None:
    """Return the HTTP status: ``status_code`` in most libraries' errors, ``code`` in Google's."""
    for name in ("status_code", "code"):
        value = getattr(error, name, None)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return None


def _retry_after_s(error: BaseException) -> float | None:
    """Return how long the answer asks to be left alone, in seconds; a date there is not read.

    Graphiti's error of a limited rate has no answer, what caused it has.
    """
    for cause in _causes(error):
        headers = getattr(getattr(cause, "response", None), "headers", None)
        if isinstance(headers, Mapping):
            return _seconds(str(cast("Mapping[str, object]", headers).get("retry-after", "")))
    return None


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _of_status(status: int, retry_after_s: float | None) -> PPSError:
    if status >= 500 or status in _LATER:
        return ModelUnavailable(
            f"the language model's provider answered with HTTP {status}",
            provider="extractor",
            retry_after_s=retry_after_s,
        )
    if status in _REFUSED_KEY:
        return ConfigError(
            f"extractor.api_key: the language model's provider refused it (HTTP {status})"
        )
    if status == 404:
        return ConfigError(
            "extractor.base_url, extractor.model: "
            "the language model's provider knows no such thing (HTTP 404)"
        )
    return ModelError(
        f"the language model's provider refused the request (HTTP {status})", provider="extractor"
    )
