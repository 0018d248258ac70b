"""A local HTTP server that speaks the protocols of the paid models, well or badly, as told.

Chat completions and responses (OpenAI, Groq, Ollama and compatible servers), messages with tools
(Anthropic), generateContent (Gemini) and embeddings. It is the only stand-in among the tests.
"""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from pps.app import App
from pps.config import ExtractorSettings, Settings
from pps.memory import Memory
from pps.models.hash import HashEmbedder
from tests.loopback import QuietHandler, http_server
from tests.model_answers import Reading, answer

Mode = Literal[
    "good",
    "slow",  # answers well after `delay_s`
    "held",  # answers well once `freed` is set
    "malformed",  # 200, but the model's text is no JSON
    "wrong_schema",  # JSON of another shape; vectors of another dimension
    "empty",  # an empty text; no vectors
    "not_json",  # the server's own body is no JSON
    "rate_limited",  # 429 with Retry-After
    "quota_spent",  # 429 as OpenAI says it of a quota, without Retry-After
    "server_error",  # 500
    "bad_key",  # 401
    "unknown_model",  # 404
    "bad_request",  # 400
    "closed",  # the connection ends without an answer
    "cut",  # the connection ends within the answer
    "wrong_index",  # embeddings only
    "without_direction",  # embeddings only: zeros
    "no_list",  # embeddings only: JSON without the list
]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came in; ``at`` is the monotonic clock's."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float


@dataclass
class ModelServer:
    """What the server answers, and what it was asked; safe to change while it runs.

    Attributes:
        mode: How the next requests are answered; ``first`` says it of the first ones, in order.
        answered: How each request of ``asked`` was, or is being, answered.
        together: What was in hand when each request came, that one last.
        reading: What chat completions find in texts; None is the sentences of ``model_answers``.
        delay_s: How late ``slow`` is. retry_after: the header of ``rate_limited``.
    """

    url: str = ""
    dimension: int = 16
    mode: Mode = "good"
    first: list[Mode] = field(default_factory=list)
    reading: Reading | None = None
    delay_s: float = 5.0
    retry_after: str = "1"
    asked: list[Asked] = field(default_factory=list)
    answered: list[Mode] = field(default_factory=list)
    together: list[tuple[Asked, ...]] = field(default_factory=list)
    freed: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)
    _in_hand: list[Asked] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def base_url(self) -> str:
        """The address that OpenAI's clients are given."""
        return f"{self.url}/v1"

    def next_mode(self, asked: Asked) -> Mode:
        with self._lock:
            self.asked.append(asked)
            self._in_hand.append(asked)
            self.together.append(tuple(self._in_hand))
            self.answered.append(self.first.pop(0) if self.first else self.mode)
            return self.answered[-1]

    def ended(self, asked: Asked) -> None:
        with self._lock:
            self._in_hand = [one for one in self._in_hand if one is not asked]

    def paths(self) -> list[str]:
        with self._lock:
            return [one.path for one in self.asked]


def reading_by(base_url: str) -> ExtractorSettings:
    """Return the settings of texts that the model at an address reads."""
    return ExtractorSettings(
        mode="model", provider="compatible", model="m", base_url=base_url, timeout_s=20
    )


@contextlib.asynccontextmanager
async def memory_read_by(settings: Settings, server: ModelServer) -> AsyncIterator[Memory]:
    """Open an entity's memory whose texts a model reads."""
    async with App.open(
        settings.model_copy(update={"extractor": reading_by(server.base_url)})
    ) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            yield memory


@contextlib.contextmanager
def model_server(**settings: Any) -> Iterator[ModelServer]:
    """Run a server on a free port of the loopback, in threads of this process."""
    model = ModelServer(**settings)

    class Handler(_Handler):
        server_model = model

    with http_server(Handler, "model-server") as model.url:
        try:
            yield model
        finally:
            model.closing.set()
            model.freed.set()


class _Handler(QuietHandler):
    server_model: ModelServer

    def do_POST(self) -> None:  # noqa: N802 - as http.server names it
        model = self.server_model
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.path.split("?")[0], headers, json.loads(data or b"{}"), time.monotonic())
        mode = model.next_mode(asked)
        try:
            self._answer(asked, mode)
        finally:
            model.ended(asked)

    def _answer(self, asked: Asked, mode: Mode) -> None:
        model = self.server_model
        if mode == "slow":
            model.closing.wait(model.delay_s)
        elif mode == "held":
            model.freed.wait()
        if mode in ("closed", "cut"):
            self._break(mode)
        elif mode in _REFUSALS:
            code, problem = _REFUSALS[mode]
            self._send(
                code,
                {"error": {"message": problem, "type": problem, "code": code, "status": problem}},
                mode,
            )
        elif mode == "quota_spent":
            said = {"message": "You exceeded your current quota.", "param": None}
            self._send(
                429,
                {"error": {**said, "type": "insufficient_quota", "code": "insufficient_quota"}},
                mode,
            )
        elif mode == "not_json":
            self._send_bytes(200, b"<html>busy</html>", {"content-type": "text/html"})
        else:
            self._send(200, _reply(asked, mode, model), mode)

    def _send(self, code: int, body: dict[str, Any], mode: Mode) -> None:
        extra = {"retry-after": self.server_model.retry_after} if mode == "rate_limited" else {}
        self._send_bytes(
            code, json.dumps(body).encode(), {"content-type": "application/json", **extra}
        )

    def _send_bytes(self, code: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _break(self, mode: Mode) -> None:
        if mode == "cut":
            self.wfile.write(
                b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"a":'
            )
            self.wfile.flush()
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


_REFUSALS: dict[Mode, tuple[int, str]] = {
    "rate_limited": (429, "RESOURCE_EXHAUSTED: rate limit"),
    "server_error": (500, "INTERNAL"),
    "bad_key": (401, "UNAUTHENTICATED"),
    "unknown_model": (404, "NOT_FOUND"),
    "bad_request": (400, "INVALID_ARGUMENT"),
}


def _reply(asked: Asked, mode: Mode, model: ModelServer) -> dict[str, Any]:
    body = asked.body
    if asked.path.endswith("/embeddings"):
        return _embeddings(body, mode, model.dimension)
    if asked.path.endswith("/chat/completions"):
        return _chat(body, mode, model.reading)
    if asked.path.endswith("/responses"):
        return _response(body, mode)
    if asked.path.endswith("/messages"):
        return _message(body, mode)
    if asked.path.endswith(":generateContent"):
        return _generated(body, mode)
    return {"error": {"message": f"no such route: {asked.path}"}}


def _said(
    properties: dict[str, Any], prompt: str, mode: Mode, reading: Reading | None = None
) -> str:
    """Return what the model says, as text."""
    if mode == "malformed":
        return '{"extracted_entities": [{"name": "An'
    if mode == "wrong_schema":
        return '{"extracted_entities": "none", "edges": 7, "summaries": {}, "entity_resolutions": null}'
    if mode == "empty":
        return ""
    return json.dumps(answer(properties, prompt, reading))


def _chat(body: dict[str, Any], mode: Mode, reading: Reading | None = None) -> dict[str, Any]:
    prompt = "\n".join(_text(message["content"]) for message in body["messages"])
    form = body.get("response_format") or {}
    schema = form.get("json_schema", {}).get("schema") or _schema_in(prompt)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {
                    "role": "assistant",
                    "content": _said(schema.get("properties", {}), prompt, mode, reading),
                },
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def _response(body: dict[str, Any], mode: Mode) -> dict[str, Any]:
    prompt = "\n".join(_text(message["content"]) for message in body["input"])
    properties = body["text"]["format"]["schema"].get("properties", {})
    text = {"type": "output_text", "text": _said(properties, prompt, mode), "annotations": []}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "model": body["model"],
        "output": [
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "assistant",
                "content": [text],
            },
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _message(body: dict[str, Any], mode: Mode) -> dict[str, Any]:
    prompt = "\n".join(
        [_text(body.get("system", "")), *(_text(each["content"]) for each in body["messages"])]
    )
    tool = body["tools"][0]
    text = _said(tool["input_schema"].get("properties", {}), prompt, mode)
    used = {"type": "tool_use", "id": "toolu_1", "name": tool["name"], "input": {}}
    if mode in ("malformed", "empty"):
        content = [{"type": "text", "text": text or "I cannot."}]
    else:
        content = [{**used, "input": json.loads(text)}]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def _generated(body: dict[str, Any], mode: Mode) -> dict[str, Any]:
    contents = [body.get("systemInstruction") or {}, *body["contents"]]
    prompt = "\n".join(part.get("text", "") for each in contents for part in each.get("parts", []))
    config = body.get("generationConfig", {})
    schema = config.get("responseSchema") or config.get("responseJsonSchema") or {}
    text = _said(schema.get("properties", {}), prompt, mode)
    return {
        "candidates": [
            {
                "index": 0,
                "finishReason": "STOP",
                "content": {"role": "model", "parts": [{"text": text}]},
            }
        ],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "scripted",
    }


def _embeddings(body: dict[str, Any], mode: Mode, dimension: int) -> dict[str, Any]:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    wide = dimension + (1 if mode == "wrong_schema" else 0)
    rows = HashEmbedder(body.get("dimensions", wide)).embed_passages(texts)
    if mode == "without_direction":
        rows = np.zeros_like(rows)
    form = body.get("encoding_format", "float")
    data = [
        {
            "object": "embedding",
            "index": 0 if mode == "wrong_index" else at,
            "embedding": _coded(row, form),
        }
        for at, row in enumerate(rows)
    ]
    # A server may answer in any order: the index says which is which.
    data = [] if mode == "empty" else data[::-1]
    return {
        "object": "list",
        "model": body["model"],
        "data": "busy" if mode == "no_list" else data,
        "usage": {"prompt_tokens": len(texts), "total_tokens": len(texts)},
    }


def _coded(row: np.ndarray[Any, np.dtype[np.float32]], form: str) -> str | list[float]:
    return (
        base64.b64encode(row.tobytes()).decode()
        if form == "base64"
        else [float(number) for number in row]
    )


def _text(content: str | list[dict[str, Any]]) -> str:
    return (
        content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    )


def _schema_in(prompt: str) -> dict[str, Any]:
    """Return the schema that a prompt spells out, for servers that are only asked for some JSON."""
    at = prompt.rfind("in the following format:")
    start = prompt.find("{", at)
    return json.JSONDecoder().raw_decode(prompt, start)[0] if at >= 0 and start >= 0 else {}
