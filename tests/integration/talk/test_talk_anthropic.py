"""S2-17, an entity answered for by a model of Anthropic: its own library against a local server of its protocol."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser_session import page_of
from tests.chat_server import ChatMode, ChatServer, tool_results
from tests.integration.interfaces.serving import Served, serving
from tests.room_socket import let_answer, room_socket

KEY = "sk-ant-canary-0815-key"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("anthropic") / "home") as served:
        yield served


@pytest.fixture
def name(served: Served, chat: ChatServer) -> str:
    """Return the name of an entity that no other test has."""
    name = f"a{uuid.uuid4().hex[:8]}"
    make(served, chat, name)
    return name


def make(served: Served, chat: ChatServer, name: str, **more: Any) -> None:
    served.create(name)
    key = served.home / "entities" / name / "talk.key"
    key.write_text(KEY)
    key.chmod(0o600)
    given = {"server": "anthropic", "model": name, "base_url": chat.url, "key_file": "talk.key"}
    let_answer(served, name, **{**given, **more})


def test_words_stream_from_what_the_entity_remembers(
    served: Served, chat: ChatServer, name: str
) -> None:
    served.link.call("remember", name, {"content": "The harbour of Ystad has a red lighthouse."})
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        answer = socket.talk(room, "What do you know of lighthouse?")[0]
        assert "red lighthouse" in answer["text"]
        assert answer["mark"] == ""
        assert len(socket.heard("words", room=room)) > 3
        socket.talk(room, "And what did I ask?")
    first, second = chat.asked
    assert "red lighthouse" in first["system"]
    assert [message["role"] for message in first["messages"]] == ["user"]
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
    assert [tool["name"] for tool in first["tools"]] == ["recall", "remember"]
    assert [key.removeprefix("Bearer ") for key in chat.keys] == [KEY, KEY]
    assert KEY not in (served.home / "test-server.log").read_text()


def test_its_tools_are_called_in_bounds(served: Served, chat: ChatServer, name: str) -> None:
    served.link.call("remember", name, {"content": "The harbour closes at nine."})
    chat.mode = "calls"
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        answer = socket.talk(room, "Go.")[0]
        assert len(answer["written"]) == 1
        recalled, remembered = tool_results(chat.asked[2])
        assert "harbour closes at nine" in recalled
        assert remembered == "kept"
        chat.mode = "calls_forever"
        before = len(chat.asked)
        socket.talk(room, "Again.")
        assert len(chat.asked) - before == 4
        # Its protocol wants the tools to be there while a message has a call of one.
        assert chat.asked[-1]["tool_choice"] == {"type": "none"}
        assert [tool["name"] for tool in chat.asked[-1]["tools"]] == ["recall"]


BAD: dict[ChatMode, str] = {
    "failing": "HTTP 500",
    "busy": "HTTP 429",
    "bad_key": "refuses the key",
    "malformed": "something else than",
    "not_json": "something else than",
    "cut": "midway",
    "error_within": "midway",
    "empty": "said nothing",
    "silent": "said nothing for 3 s",
    "held": "said nothing for 3 s",
    "short": "talk.max_tokens",
}


@pytest.mark.parametrize("mode", BAD)
def test_one_that_fails_says_so_in_the_room_and_what_came_is_kept(
    served: Served, chat: ChatServer, mode: ChatMode
) -> None:
    name = f"a{uuid.uuid4().hex[:8]}"
    make(served, chat, name, timeout_s=3.0 if mode in ("silent", "held") else 20.0)
    chat.mode = mode
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        answers = socket.talk(room, "Tell me three words and more.")
        problem = socket.heard("ended")[0]["problem"]
        assert BAD[mode] in problem
        assert KEY not in problem
        came = mode in ("cut", "malformed", "error_within", "held", "short")
        assert [answer["mark"] for answer in answers] == (["cut off"] if came else [])
        chat.mode = "good"
        make(served, chat, name)
        assert socket.talk(room, "Once more.")[0]["mark"] == ""


def test_stopping_ends_the_request(served: Served, chat: ChatServer, name: str) -> None:
    chat.answers[name] = ["One two three four five."]
    chat.mode = "held"
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        socket.say(room, "Count for me.")
        socket.wait(lambda: len(socket.heard("words")) >= 3)
        socket.ask("stop", room=room)
        assert socket.answers(room)[0]["mark"] == "stopped"


def test_the_tokens_of_a_day_are_bounded_by_what_it_says_it_took(
    served: Served, chat: ChatServer
) -> None:
    name = f"a{uuid.uuid4().hex[:8]}"
    make(served, chat, name, tokens_per_day=100)
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        assert len(socket.talk(room, "First.")) == 1
        assert socket.talk(room, "Second.") == []
        assert "100 tokens" in socket.heard("ended")[1]["problem"]
    assert len(chat.asked) == 1
