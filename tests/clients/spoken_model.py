"""A model that calls the tool ``recall`` once and then answers, in the protocols of the clients that are tried.

OpenAI's responses (Codex), Gemini's streamGenerateContent (Gemini CLI) and chat completions (OpenCode, OpenClaw), as
server-sent events. What it was asked is kept.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER = "It turns blue."
QUERY = {"query": "glaze"}
_COUNTS = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


@dataclass
class SpokenModel:
    """A running model.

    Attributes:
        url: Its address.
        asked: The bodies of all requests for an answer, in order.
    """

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@contextlib.contextmanager
def spoken_model() -> Iterator[SpokenModel]:
    """Serve the model on a port of the loopback while the block runs."""
    model = SpokenModel()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._send("application/json", json.dumps({"data": [], "models": []}))

        def do_POST(self) -> None:
            body = json.loads(
                self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}"
            )
            if "/responses" in self.path:
                model.asked.append(body)
                events = _responses(body)
                self._send(
                    "text/event-stream",
                    "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events),
                )
            elif "streamGenerateContent" in self.path:
                model.asked.append(body)
                self._send("text/event-stream", f"data: {json.dumps(_gemini(body))}\n\n")
            elif "/chat/completions" in self.path:
                model.asked.append(body)
                lines = [f"data: {json.dumps(one)}\n\n" for one in _chat(body)]
                self._send("text/event-stream", "".join(lines) + "data: [DONE]\n\n")
            else:
                self._send("application/json", "{}")

        def _send(self, content_type: str, text: str) -> None:
            data = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, name="spoken model")
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _is_recall(name: str) -> bool:
    return name == "recall" or (name.endswith("_recall") and not name.endswith("ambient_recall"))


def _responses(body: dict[str, Any]) -> list[dict[str, Any]]:
    item: dict[str, Any] = {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "content": [{"type": "output_text", "text": ANSWER}],
    }
    has_result = any(one.get("type") == "function_call_output" for one in body.get("input", []))
    call = {"type": "function_call", "call_id": "asked_once", "arguments": json.dumps(QUERY)}
    for tool in () if has_result else body.get("tools", []):
        names = [one["name"] for one in tool.get("tools", []) if _is_recall(one["name"])]
        if tool.get("type") == "namespace" and names:
            item = {**call, "name": names[0], "namespace": tool["name"]}
        elif _is_recall(str(tool.get("name"))):
            item = {**call, "name": tool["name"]}
    return [
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": "resp_1", "usage": _COUNTS}},
    ]


def _gemini(body: dict[str, Any]) -> dict[str, Any]:
    parts = [part for one in body.get("contents", []) for part in one.get("parts", [])]
    has_result = any("functionResponse" in part for part in parts)
    names = [
        declared["name"]
        for tool in body.get("tools", [])
        for declared in tool.get("functionDeclarations", [])
        if _is_recall(declared["name"])
    ]
    part: dict[str, Any] = {"text": ANSWER}
    if names and not has_result:
        part = {"functionCall": {"name": names[0], "args": QUERY}}
    content = {"role": "model", "parts": [part]}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    }


def _chat(body: dict[str, Any]) -> list[dict[str, Any]]:
    has_result = any(one.get("role") == "tool" for one in body.get("messages", []))
    names = [
        tool["function"]["name"]
        for tool in body.get("tools", [])
        if _is_recall(tool["function"]["name"])
    ]
    delta: dict[str, Any] = {"role": "assistant", "content": ANSWER}
    reason = "stop"
    if names and not has_result:
        function = {"name": names[0], "arguments": json.dumps(QUERY)}
        call = {"index": 0, "id": "asked_once", "type": "function", "function": function}
        delta, reason = {"role": "assistant", "tool_calls": [call]}, "tool_calls"
    common = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return [
        {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
    ]
