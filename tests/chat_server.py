"""A local server that speaks OpenAI's chat protocol, streaming, and answers from what it is given.

It says what it was given, so that a test can tell what each entity knew: to ``What do you know of X?`` it answers with
every line of its prompt that holds X. Or it is slow, failing, endless or malformed, as told.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

ChatMode = Literal[
    "good",
    "held",  # answers word by word, and waits after the third until `freed` is set
    "silent",  # takes the request and says nothing
    "endless",  # never ends
    "malformed",  # streams something else than the protocol
    "not_json",  # streams lines that are no JSON
    "cut",  # ends the connection in the middle of the answer
    "failing",  # 500
    "busy",  # 429
    "bad_key",  # 401
    "no_tools",  # 400 while tools are offered, good otherwise
    "calls",  # calls recall, then remember, then answers
    "calls_forever",  # calls recall whenever it is offered
    "empty",  # an answer without words
    "short",  # ends at its bound of tokens
]


@dataclass
class ChatServer:
    """What the server answers, and what it was asked.

    Attributes:
        mode: How requests are answered; ``by_model`` says it of some models.
        answers: Answers by model, in order, before it answers from what it is given.
    """

    url: str = ""
    mode: ChatMode = "good"
    by_model: dict[str, ChatMode] = field(default_factory=dict)
    answers: dict[str, list[str]] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    freed: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)
    hung_up: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def prompts(self, model: str) -> list[str]:
        """Return all that a model was given, a text a request."""
        with self._lock:
            return [_prompt(body) for body in self.asked if body["model"] == model]

    def note(self, body: dict[str, Any], key: str) -> None:
        with self._lock:
            self.asked.append(body)
            self.keys.append(key)

    def planned(self, model: str) -> str | None:
        with self._lock:
            return self.answers[model].pop(0) if self.answers.get(model) else None

    def hangs_up(self) -> None:
        with self._lock:
            self.hung_up += 1


@contextlib.contextmanager
def chat_server(**settings: Any) -> Iterator[ChatServer]:
    """Run a server on a free port of the loopback, in threads of this process."""
    server = ChatServer(**settings)

    class Handler(_Handler):
        chat = server

    httpd = _Server(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(
        target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, name="chat-server"
    )
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.freed.set()
        httpd.shutdown()
        thread.join()
        httpd.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    chat: ChatServer

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        chat = self.chat
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        chat.note(body, self.headers.get("authorization", ""))
        mode = chat.by_model.get(body["model"], chat.mode)
        refusals = {"failing": 500, "busy": 429, "bad_key": 401}
        if mode in refusals:
            self._refuse(refusals[mode], "refused")
        elif mode == "no_tools" and body.get("tools"):
            self._refuse(400, "this model does not support tools")
        elif mode == "silent":
            chat.closing.wait(30)
        else:
            try:
                self._stream(body, mode)
            except OSError:
                chat.hangs_up()

    def _refuse(self, code: int, problem: str) -> None:
        data = json.dumps({"error": {"message": problem, "type": problem}}).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, body: dict[str, Any], mode: ChatMode) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        if mode == "malformed":
            self._event({"choices": [{"delta": {"content": "Well, "}, "index": 0}]})
            self._event({"choices": "none", "object": 7})
            self._event({"choices": [{"delta": "words"}]})
            return
        if mode == "not_json":
            self.wfile.write(b"data: {this is no JSON\n\n")
            return
        calls = mode in ("calls", "calls_forever") and body.get("tools")
        if calls and self._called(body, mode):
            return
        words = [] if mode == "empty" else self._answer(body).split(" ")
        sent = 0
        while True:
            for number, word in enumerate(words):
                text = word if not sent else f" {word}"
                sent += 1
                self._event({"choices": [{"index": 0, "delta": {"content": text}}]})
                if mode == "held" and number == 2:
                    self.chat.freed.wait(60)
                if mode == "cut" and number == 2:
                    self.connection.close()
                    return
            if mode != "endless":
                break
        reason = "length" if mode == "short" else "stop"
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        usage = {"prompt_tokens": 100, "completion_tokens": sent, "total_tokens": 100 + sent}
        self._event({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")
        self.wfile.flush()

    def _called(self, body: dict[str, Any], mode: ChatMode) -> bool:
        """Call the next tool; tell whether there was one to call."""
        results = [one for one in body["messages"] if one["role"] == "tool"]
        names = [tool["function"]["name"] for tool in body["tools"]]
        if mode == "calls_forever" or not results:
            name, arguments = "recall", {"query": "harbour"}
        elif len(results) == 1 and "remember" in names:
            name, arguments = "remember", {"content": "The harbour question was answered."}
        else:
            return False
        text = json.dumps(arguments)
        first = {"index": 0, "id": f"call_{len(results)}", "type": "function"}
        part = {**first, "function": {"name": name, "arguments": text[:5]}}
        rest = {"index": 0, "function": {"arguments": text[5:]}}
        self._event({"choices": [{"index": 0, "delta": {"tool_calls": [part]}}]})
        self._event({"choices": [{"index": 0, "delta": {"tool_calls": [rest]}}]})
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
        self.wfile.write(b"data: [DONE]\n\n")
        return True

    def _answer(self, body: dict[str, Any]) -> str:
        planned = self.chat.planned(body["model"])
        return planned if planned is not None else answer_from(_prompt(body))

    def _event(self, event: dict[str, Any]) -> None:
        event = {
            "id": "chat-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
        } | event
        self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()


def answer_from(prompt: str) -> str:
    """Answer from a prompt alone: what it says of the last thing that was asked for."""
    lines = [line.strip() for line in prompt.splitlines() if line.strip()]
    question = next((line for line in reversed(lines) if "do you know of" in line), "")
    if not question:
        return f"I heard: {lines[-1] if lines else 'nothing'}"
    word = question.rpartition("do you know of")[2].strip(" ?.")
    known = [line for line in lines if word.casefold() in line.casefold() and line != question]
    return f"Of {word} I know: {' / '.join(known)}" if known else "I know nothing of that."


def _prompt(body: dict[str, Any]) -> str:
    return "\n".join(str(message.get("content") or "") for message in body["messages"])
