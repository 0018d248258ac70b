"""Embeddings over HTTP, from any server that speaks OpenAI's ``/embeddings``."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
import numpy as np
from pydantic import BaseModel, StrictInt, ValidationError

from pps.core.errors import ConfigError, ModelError, ModelOutputInvalid, ModelUnavailable
from pps.models.embedding import WindowedEmbedder
from pps.models.protocols import Fingerprint, Matrix

log = logging.getLogger(__name__)

_WINDOW_TOKENS = 480
_OVERLAP_TOKENS = 40
_BYTES_A_TOKEN = 3
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 8.0
_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


@dataclass(frozen=True, slots=True)
class EmbeddingServer:
    """Where to ask and for what.

    Attributes:
        base_url: Up to and without ``/embeddings``, such as ``https://api.openai.com/v1``.
        model: The model's name there.
        dimension: Length of its vectors; each answer is checked against it.
        shorten: Ask the server for ``dimension``, where the model can give less than it has.
        api_key: Sent as a bearer token when not empty.
        timeout_s: Seconds for one request. batch: texts in one request.
        attempts: Requests for one batch, the first included.
    """

    base_url: str
    model: str
    dimension: int
    shorten: bool = False
    api_key: str = field(default="", repr=False)
    timeout_s: float = 30.0
    batch: int = 64
    attempts: int = 4


class OpenAICompatibleEmbedder(WindowedEmbedder):
    """The embedder ``openai``: batches, keeps the order, checks what comes back, retries in bounds.

    The server's tokenizer is not known, so a token is taken to be three bytes, which is on the safe
    side, and passages are kept under 480 of them, which fits the window of the usual models.
    """

    def __init__(
        self, server: EmbeddingServer, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._server = server
        self._sleep = sleep
        pinned = Fingerprint(model=server.model, dimension=server.dimension, pooling="server")
        super().__init__(pinned, _WINDOW_TOKENS, _OVERLAP_TOKENS)
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _passages(self, texts: list[str]) -> Matrix:
        size = self._server.batch
        return np.concatenate(
            [self._batch(texts[at : at + size]) for at in range(0, len(texts), size)]
        )

    def _batch(self, texts: list[str]) -> Matrix:
        # An empty input is refused by some servers; a blank text gets the vector of a full stop.
        body: dict[str, object] = {
            "model": self._server.model,
            "input": [text if text.strip() else "." for text in texts],
            "encoding_format": "float",
        }
        if self._server.shorten:
            body["dimensions"] = self._server.dimension
        return _vectors(self._answer(body), len(texts), self._server.dimension)

    def _answer(self, body: dict[str, object]) -> httpx.Response:
        problem: str = ""
        asked_s: float | None = None
        for attempt in range(self._server.attempts):
            wait_s = min(_FIRST_WAIT_S * 2**attempt, _LONGEST_WAIT_S)
            try:
                response = self._opened().post("embeddings", json=body)
            except httpx.TransportError as error:
                problem = type(error).__name__
            else:
                if response.status_code not in _TRANSIENT:
                    return _accepted(response)
                problem = f"HTTP {response.status_code}"
                asked_s = _asked_wait_s(response)
                wait_s = wait_s if asked_s is None else min(asked_s, _LONGEST_WAIT_S)
            if attempt + 1 < self._server.attempts:
                log.info("embedding server: %s, again in %.1f s", problem, wait_s)
                self._sleep(wait_s)
        raise ModelUnavailable(
            f"embedding server {self._server.base_url} failed {self._server.attempts} times "
            f"({problem})",
            provider="embedder",
            retry_after_s=asked_s,
        )

    def _count(self, text: str) -> int:
        return math.ceil(len(text.encode()) / _BYTES_A_TOKEN)

    def _opened(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                key = self._server.api_key
                self._client = httpx.Client(
                    base_url=self._server.base_url.rstrip("/") + "/",
                    headers={"Authorization": f"Bearer {key}"} if key else {},
                    timeout=self._server.timeout_s,
                )
            return self._client


def _asked_wait_s(response: httpx.Response) -> float | None:
    """Return what ``Retry-After`` asks for in seconds, 0 or more; None without it.

    A date there is not read.
    """
    try:
        wait_s = float(response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(wait_s, 0.0) if math.isfinite(wait_s) else None


def _accepted(response: httpx.Response) -> httpx.Response:
    code = response.status_code
    if code in (401, 403):
        raise ConfigError(f"embedder.api_key: the embedding server refused it (HTTP {code})")
    if code == 404:
        raise ConfigError(
            "embedder.base_url, embedder.model: the embedding server knows no such thing (HTTP 404)"
        )
    if code != 200:
        raise ModelError(
            f"the embedding server refused the request (HTTP {code})", provider="embedder"
        )
    return response


def _invalid(problem: str) -> ModelOutputInvalid:
    return ModelOutputInvalid(problem, provider="embedder")


class _Item(BaseModel):
    index: StrictInt = -1
    embedding: list[float] = []


class _EmbeddingAnswer(BaseModel):
    data: list[_Item]


_WRONG = {"index": "has a wrong index", "embedding": "has a vector that is not numbers"}


def _vectors(response: httpx.Response, count: int, dimension: int) -> Matrix:
    try:
        items = _EmbeddingAnswer.model_validate_json(response.content).data
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        problem = next(
            (_WRONG[at] for at in first["loc"] if at in _WRONG),
            "has no list of vectors under 'data'",
        )
        problem = "is not JSON" if first["type"] == "json_invalid" else problem
        raise _invalid(f"the embedding server's answer {problem}") from None
    rows = {item.index: np.asarray(item.embedding, dtype=np.float32) for item in items}
    if not rows.keys() <= set(range(count)) or len(rows) != len(items):
        raise _invalid("the embedding server's answer has a wrong index")
    if len(rows) != count:
        raise _invalid(f"the embedding server gave {len(rows)} vectors for {count} texts")
    for row in rows.values():
        if len(row) != dimension:
            raise _invalid(
                f"the embedding server gave a vector of {len(row)} numbers where "
                f"embedder.dimension is {dimension}"
            )
        if not np.isfinite(row).all() or not row.any():
            raise _invalid("the embedding server gave a vector without a direction")
    return np.stack([rows[at] for at in range(count)])
