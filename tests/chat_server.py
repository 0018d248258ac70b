"""A local server that speaks the chat protocols of OpenAI and of Anthropic, streaming, and answers from what it is given.

It says what it was given, so that a test can tell what each entity knew: to ``What do you know of X?`` it answers with
every line of its prompt that holds X. Or it is slow, failing, endless or malformed, as told.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tests.loopback import QuietHandler, http_server

ChatMode = Literal[
    "good",
    "held",  # answers word by word, and waits after the third until `freed` is set
    "silent",  # takes the request and says nothing
    "endless",  # never ends
    "malformed",  # streams something else than the protocol
    "not_json",  # streams lines that are no JSON
    "cut",  # ends the connection in the middle of the answer
    "error_within",  # an error in the middle of the answer
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
        word_pause_s: How long it waits before each word but the first.
        first_words_at: When the first word of each answer was written, in seconds since the epoch.
    """

    url: str = ""
    mode: ChatMode = "good"
    by_model: dict[str, ChatMode] = field(default_factory=dict)
    answers: dict[str, list[str]] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    word_pause_s: float = 0.0
    first_words_at: list[float] = field(default_factory=list)
    freed: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)
    hung_up: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def base_url(self) -> str:
        """The address that OpenAI's clients are given; Anthropic's get ``url``."""
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

    with http_server(Handler, "chat-server") as server.url:
        try:
            yield server
        finally:
            server.closing.set()
            server.freed.set()


class _ChatStream(Protocol):
    """An answer as one protocol streams it."""

    def begin(self) -> None: ...

    def words(self, text: str) -> None: ...

    def call(self, id: str, name: str, arguments: str) -> None: ...

    def malformed(self) -> None:
        """Stream something else than the protocol, after a word."""
        ...

    def error(self) -> None: ...

    def end(self, reason: Literal["stop", "length", "tool_calls"], words: int) -> None: ...


class _OpenAIStream:
    def __init__(self, handler: _Handler) -> None:
        self._handler = handler

    def begin(self) -> None:
        """Nothing comes before the words."""

    def words(self, text: str) -> None:
        self._event({"choices": [{"index": 0, "delta": {"content": text}}]})

    def call(self, id: str, name: str, arguments: str) -> None:
        first = {"index": 0, "id": id, "type": "function"}
        part = {**first, "function": {"name": name, "arguments": arguments[:5]}}
        rest = {"index": 0, "function": {"arguments": arguments[5:]}}
        self._event({"choices": [{"index": 0, "delta": {"tool_calls": [part]}}]})
        self._event({"choices": [{"index": 0, "delta": {"tool_calls": [rest]}}]})

    def malformed(self) -> None:
        self._event({"choices": [{"delta": {"content": "Well, "}, "index": 0}]})
        self._event({"choices": "none", "object": 7})
        self._event({"choices": [{"delta": "words"}]})

    def error(self) -> None:
        self._handler.send_event({"error": {"message": "overloaded", "type": "server_error"}})

    def end(self, reason: Literal["stop", "length", "tool_calls"], words: int) -> None:
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        usage = {"prompt_tokens": 100, "completion_tokens": words, "total_tokens": 100 + words}
        self._event({"choices": [], "usage": usage})
        self._handler.send_text("data: [DONE]\n\n")

    def _event(self, event: dict[str, Any]) -> None:
        head = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        self._handler.send_event(head | event)


_ANTHROPIC_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


class _AnthropicStream:
    def __init__(self, handler: _Handler) -> None:
        self._handler = handler
        self._blocks = 0
        self._is_text = False

    def begin(self) -> None:
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 1},
        }
        self._event("message_start", message=message)
        self._event("ping")

    def words(self, text: str) -> None:
        if not self._is_text:
            self._begin_block({"type": "text", "text": ""})
            self._is_text = True
        self._delta({"type": "text_delta", "text": text})

    def call(self, id: str, name: str, arguments: str) -> None:
        self._begin_block({"type": "tool_use", "id": id, "name": name, "input": {}})
        for part in ("", arguments[:5], arguments[5:]):
            self._delta({"type": "input_json_delta", "partial_json": part})
        self._is_text = False

    def malformed(self) -> None:
        self.words("Well, ")
        self._event("content_block_delta", index=0, delta={"type": "text_delta", "text": 7})
        self._event("content_block_delta", index=5, delta={"type": "input_json_delta"})
        self._event("message_delta", delta="words", usage=7)

    def error(self) -> None:
        self._event("error", error={"type": "overloaded_error", "message": "Overloaded"})

    def end(self, reason: Literal["stop", "length", "tool_calls"], words: int) -> None:
        if self._blocks:
            self._event("content_block_stop", index=self._blocks - 1)
        self._event(
            "message_delta",
            delta={"stop_reason": _ANTHROPIC_REASONS[reason], "stop_sequence": None},
            usage={"output_tokens": words},
        )
        self._event("message_stop")

    def _begin_block(self, block: dict[str, Any]) -> None:
        if self._blocks:
            self._event("content_block_stop", index=self._blocks - 1)
        self._event("content_block_start", index=self._blocks, content_block=block)
        self._blocks += 1

    def _delta(self, delta: dict[str, Any]) -> None:
        self._event("content_block_delta", index=self._blocks - 1, delta=delta)

    def _event(self, kind: str, **fields: Any) -> None:
        self._handler.send_text(f"event: {kind}\n")
        self._handler.send_event({"type": kind, **fields})


class _Handler(QuietHandler):
    chat: ChatServer

    def do_POST(self) -> None:  # noqa: N802 - as http.server names it
        chat = self.chat
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        key = self.headers.get("x-api-key") or self.headers.get("authorization", "")
        chat.note(body, key)
        mode = chat.by_model.get(body["model"], chat.mode)
        refusals = {"failing": 500, "busy": 429, "bad_key": 401}
        if mode in refusals:
            self._refuse(refusals[mode], "refused")
        elif mode == "no_tools" and body.get("tools"):
            self._refuse(400, "this model does not support tools")
        elif mode == "silent":
            chat.closing.wait(30)
        else:
            is_anthropic = self.path.split("?")[0].endswith("/messages")
            stream = _AnthropicStream(self) if is_anthropic else _OpenAIStream(self)
            try:
                self._stream(body, mode, stream)
            except OSError:
                chat.hangs_up()

    def send_event(self, event: dict[str, Any]) -> None:
        self.send_text(f"data: {json.dumps(event)}\n\n")

    def send_text(self, text: str) -> None:
        self.wfile.write(text.encode())
        self.wfile.flush()

    def _refuse(self, code: int, problem: str) -> None:
        data = json.dumps({"error": {"message": problem, "type": problem}}).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, body: dict[str, Any], mode: ChatMode, stream: _ChatStream) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        if mode == "not_json":
            self.send_text("event: message_start\ndata: {this is no JSON\n\n")
            return
        stream.begin()
        if mode == "malformed":
            stream.malformed()
            return
        calls = mode in ("calls", "calls_forever") and _may_call(body)
        if calls and _call_next(body, mode, stream):
            return
        words = [] if mode == "empty" else self._answer(body).split(" ")
        sent = 0
        while True:
            for number, word in enumerate(words):
                if not sent:
                    self.chat.first_words_at.append(time.time())
                elif self.chat.word_pause_s:
                    self.chat.closing.wait(self.chat.word_pause_s)
                stream.words(word if not sent else f" {word}")
                sent += 1
                if mode == "held" and number == 2:
                    self.chat.freed.wait(60)
                if mode == "error_within" and number == 2:
                    stream.error()
                    return
                if mode == "cut" and number == 2:
                    self.connection.close()
                    return
            if mode != "endless":
                break
        stream.end("length" if mode == "short" else "stop", sent)

    def _answer(self, body: dict[str, Any]) -> str:
        planned = self.chat.planned(body["model"])
        return planned if planned is not None else answer_from(_prompt(body))


def _may_call(body: dict[str, Any]) -> bool:
    return bool(body.get("tools")) and body.get("tool_choice") != {"type": "none"}


def _call_next(body: dict[str, Any], mode: ChatMode, stream: _ChatStream) -> bool:
    """Call the next tool; tell whether there was one to call."""
    results = tool_results(body)
    names = [tool.get("name") or tool["function"]["name"] for tool in body["tools"]]
    arguments: dict[str, str]
    if mode == "calls_forever" or not results:
        name, arguments = "recall", {"query": "harbour"}
    elif len(results) == 1 and "remember" in names:
        name, arguments = "remember", {"content": "The harbour question was answered."}
    else:
        return False
    stream.call(f"call_{len(results)}", name, json.dumps(arguments))
    stream.end("tool_calls", 1)
    return True


def tool_results(body: dict[str, Any]) -> list[str]:
    """Return what the tools that were called came to, as a request tells it in either protocol."""
    found: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            found.append(message["content"])
        elif isinstance(message["content"], list):
            blocks = message["content"]
            found += [block["content"] for block in blocks if block["type"] == "tool_result"]
    return found


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
    contents = [body.get("system", ""), *(message.get("content") for message in body["messages"])]
    return "\n".join(_text(content) for content in contents)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(block.get("text") or block.get("content") or "") for block in content)
    return str(content or "")
