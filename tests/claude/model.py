"""A model that says what a test wrote for it, over the Messages protocol that Claude Code speaks.

A script names the prompts it expects and, for each, the model's steps: what it says, and the tools it uses. A step
that uses a tool is followed by the next one when the tool's result comes back.
"""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Block = dict[str, Any]
Step = Sequence[Block]
UNSCRIPTED = "Well."
"""What is said to a prompt that no script knows, such as the client's own request for a summary."""


def says(text: str) -> Block:
    """Return a text of the model's."""
    return {"type": "text", "text": text}


def uses(tool: str, **given: Any) -> Block:
    """Return the use of a tool."""
    return {"type": "tool_use", "name": tool, "input": given}


_REMINDER = "<system-reminder>"


@dataclass
class TalkingModel:
    """A running model: its address, its script, and what it was asked.

    Attributes:
        script: Steps by a part of the prompt; the part that comes last in the request counts.
        tokens: What the model says that it read, by prompt; a client that believes it compacts its conversation.
        held: Prompts that are answered once their event is set.
        asked: The bodies of all requests for an answer, in order.
    """

    script: Mapping[str, Sequence[Step]]
    url: str = ""
    tokens: Mapping[str, int] = field(default_factory=dict[str, int])
    held: Mapping[str, threading.Event] = field(default_factory=dict[str, threading.Event])
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _next: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the whole message that answers a request."""
        with self._lock:
            self.asked.append(body)
            prompt, number = self._place(body)
        if prompt in self.held:
            self.held[prompt].wait(60)
        steps = self.script.get(prompt, [])
        content = (
            [dict(block) for block in steps[number]] if number < len(steps) else [says(UNSCRIPTED)]
        )
        with self._lock:
            for block in content:
                if block["type"] == "tool_use":
                    block["id"] = f"toolu_{uuid.uuid4().hex[:24]}"
                    self._next[block["id"]] = (prompt, number + 1)
        return {
            "id": f"msg_{uuid.uuid4().hex[:24]}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "tool_use"
            if any(block["type"] == "tool_use" for block in content)
            else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": self.tokens.get(prompt, 10), "output_tokens": 20},
        }

    def _place(self, body: dict[str, Any]) -> tuple[str, int]:
        """Return the prompt that a request goes on with, and the number of its step."""
        known = ""
        for message in reversed(body["messages"]):
            if message["role"] == "assistant":
                break
            if message["role"] != "user":
                continue
            for block in reversed(_blocks(message["content"])):
                if (
                    block.get("type") == "tool_result"
                    and block["tool_use_id"] in self._next
                    and not known
                ):
                    return self._next[block["tool_use_id"]]
                if block.get("type") == "text" and not block["text"].lstrip().startswith(_REMINDER):
                    known = known or self._known(block["text"])
        return known, 0

    def _known(self, text: str) -> str:
        return (
            max(self.script, key=lambda prompt: text.rfind(prompt))
            if any(one in text for one in self.script)
            else ""
        )


def _blocks(content: Any) -> list[Block]:
    return [says(content)] if isinstance(content, str) else list(content)


@contextlib.contextmanager
def talking_model(script: Mapping[str, Sequence[Step]], **more: Any) -> Iterator[TalkingModel]:
    """Run a model on a free port of the loopback, in threads of this process."""
    model = TalkingModel(script, **more)

    class Handler(_Handler):
        talking = model

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    model.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(
        target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, name="talking-model"
    )
    thread.start()
    try:
        yield model
    finally:
        for event in model.held.values():
            event.set()
        httpd.shutdown()
        thread.join()
        httpd.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    talking: TalkingModel

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._send(404, b"{}")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        path = self.path.split("?")[0]
        if path == "/v1/messages":
            message = self.talking.answer(body)
            if body.get("stream"):
                self._send(200, b"".join(_stream(message)), "text/event-stream")
            else:
                self._send(200, json.dumps(message).encode())
        else:
            self._send(200, b'{"input_tokens": 10}')

    def _send(self, code: int, body: bytes, kind: str = "application/json") -> None:
        with contextlib.suppress(OSError):  # a client that went away
            self.send_response(code)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)


def _stream(message: dict[str, Any]) -> Iterator[bytes]:
    """Yield a message as the events of a stream."""
    yield _event("message_start", message={**message, "content": [], "stop_reason": None})
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, delta = says(""), {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield _event("content_block_start", index=index, content_block=empty)
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage=message["usage"])
    yield _event("message_stop")


def _event(name: str, **data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()
