"""S2-17, rooms over their socket, with a model's server that answers from what it is given."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser_session import page_of
from tests.chat_server import ChatMode, ChatServer
from tests.held_files import files_below
from tests.integration.interfaces.serving import Served, killed_at_the_end, serving
from tests.room_socket import RoomSocket, SocketProblem, haven_of, let_answer, room_socket
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("talk") / "home") as served:
        yield served


@pytest.fixture
def name() -> str:
    """Return the name of an entity that no other test has."""
    return f"e{uuid.uuid4().hex[:8]}"


def make(served: Served, chat: ChatServer, *names: str, **talk: Any) -> None:
    for name in names:
        served.create(name)
        given = {"server": "openai", "model": name, "base_url": chat.base_url, **talk}
        let_answer(served, name, **given)


def turns_of(served: Served, name: str, room: str) -> list[dict[str, Any]]:
    """Return the turns of a room in one memory, the oldest first."""
    given = {"session": room, "limit": 100}
    found = served.link.call("turns_list", name, given)["data"]["turns"]
    return [one["turn"] for one in reversed(found)]


def texts(turns: list[dict[str, Any]]) -> list[str]:
    return [one["content"] for one in turns]


def test_an_entity_answers_with_its_own_memory(served: Served, chat: ChatServer, name: str) -> None:
    make(served, chat, name)
    served.link.call("remember", name, {"content": "The harbour of Ystad has a red lighthouse."})
    (served.home / "entities" / name / "identity.md").write_text("Keeper of the pier.")
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        answer = socket.talk(room, "What do you know of lighthouse?")[0]
        assert "red lighthouse" in answer["text"]
        words = [event["text"] for event in socket.heard("words", room=room)]
        assert "".join(words) == answer["text"]
        assert len(words) > 3
        given = socket.ask("given", room=room, message=answer["id"])["lines"]
        assert any("lighthouse" in line["text"] for line in given)
    assert "Keeper of the pier." in chat.prompts(name)[0]
    turns = turns_of(served, name, room)
    assert [(one["role"], one.get("actor", "")) for one in turns] == [
        ("user", ""),
        ("assistant", name),
    ]
    assert turns[1]["content"] == answer["text"]


def test_without_a_model_the_room_says_what_to_set_and_messages_are_kept(
    served: Served, name: str
) -> None:
    served.create(name)
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        state = socket.heard("room_state")[0]["state"]
        assert "[talk]" in state["members"][0]["problem"]
        assert "\n" not in state["members"][0]["problem"]
        socket.talk(room, "Is anybody there?")
        assert "[talk]" in socket.heard("ended")[0]["problem"]
    assert texts(turns_of(served, name, room)) == ["Is anybody there?"]


def test_a_message_is_on_disk_before_a_model_is_asked(
    served: Served, chat: ChatServer, name: str
) -> None:
    make(served, chat, name)
    chat.mode = "held"
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        socket.say(room, "My sister sails to Bornholm.")
        socket.wait(lambda: bool(chat.asked))
        with sqlite3.connect(served.home / "entities" / name / "data" / "memory.db") as db:
            kept = [row[0] for row in db.execute("SELECT content FROM turns")]
        assert "My sister sails to Bornholm." in kept
        chat.freed.set()
        socket.wait(lambda: bool(socket.heard("ended")))


def test_the_same_message_sent_again_is_kept_and_answered_once(
    served: Served, chat: ChatServer, name: str
) -> None:
    make(served, chat, name)
    message = str(uuid.uuid4())
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        socket.talk(room, "Count this once.", message=message)
        socket.say(room, "Count this once.", message=message)
        socket.say(room, "Count this once.", message=message)
        assert len(socket.talk(room, "And this.")) == 1
    assert len(turns_of(served, name, room)) == 4


def test_stopping_keeps_what_came_and_trying_again_replaces_it(
    served: Served, chat: ChatServer, name: str
) -> None:
    make(served, chat, name)
    chat.answers[name] = ["One two three four five.", "Six seven eight."]
    chat.mode = "held"
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        socket.say(room, "Count for me.")
        socket.wait(lambda: len(socket.heard("words")) >= 3)
        socket.ask("stop", room=room)
        stopped = socket.answers(room)[0]
        assert (stopped["text"], stopped["mark"]) == ("One two three", "stopped")
        kept = turns_of(served, name, room)[1]
        assert (kept["content"], kept["tags"]) == ("One two three", ["cut-off"])
        chat.mode = "good"
        socket.ask("again", room=room, message=stopped["id"])
        socket.wait(lambda: len(socket.answers(room)) == 2)
        assert socket.heard("message_gone")[0]["id"] == stopped["id"]
    assert texts(turns_of(served, name, room)) == ["Count for me.", "Six seven eight."]


def test_editing_the_last_message_forgets_it_and_what_followed(
    served: Served, chat: ChatServer, name: str
) -> None:
    make(served, chat, name)
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        socket.talk(room, "First.")
        socket.talk(room, "The pin is 4711.")
        last = [one["message"] for one in socket.heard("message") if not one["message"]["author"]]
        with pytest.raises(SocketProblem, match="last message"):
            socket.ask("edit", room=room, message=last[0]["id"], new=str(uuid.uuid4()), text="x")
        new = str(uuid.uuid4())
        socket.ask("edit", room=room, message=last[1]["id"], new=new, text="Never mind.")
        socket.wait(lambda: len(socket.heard("ended")) == 3)
    kept = texts(turns_of(served, name, room))
    assert [text for text in kept if "4711" in text] == []
    assert kept[2] == "Never mind."
    data = (served.home / "entities" / name / "data" / "memory.db").read_bytes()
    assert b"4711" not in data


BAD: dict[ChatMode, str] = {
    "failing": "HTTP 500",
    "busy": "HTTP 429",
    "bad_key": "refuses the key",
    "malformed": "something else than",
    "not_json": "something else than",
    "cut": "midway",
    "error_within": "midway",
    "held": "said nothing for 3 s",
    "empty": "said nothing",
    "silent": "said nothing for 3 s",
}


@pytest.mark.parametrize("mode", BAD)
def test_a_model_that_fails_says_so_in_the_room_and_what_came_is_kept(
    served: Served, chat: ChatServer, name: str, mode: ChatMode
) -> None:
    make(served, chat, name, timeout_s=3.0 if mode in ("silent", "held") else 20.0)
    chat.mode = mode
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        answers = socket.talk(room, "Tell me three words and more.")
        assert BAD[mode] in socket.heard("ended")[0]["problem"]
        came = mode in ("cut", "malformed", "error_within", "held")
        assert [one["mark"] for one in answers] == (["cut off"] if came else [])
        chat.mode = "good"
        make(served, chat, name)
        assert socket.talk(room, "Once more.")[0]["mark"] == ""
    kept = turns_of(served, name, room)
    assert [one["role"] for one in kept].count("user") == 2


def test_an_endless_answer_is_cut_off_at_its_bound_and_kept(
    served: Served, chat: ChatServer, name: str
) -> None:
    make(served, chat, name)
    chat.mode = "endless"
    chat.answers[name] = ["word " * 2_000]
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        answer = socket.talk(room, "Go on.")[0]
        assert answer["mark"] == "cut off"
        assert 50_000 < len(answer["text"]) <= 60_000
        assert "60,000 characters" in socket.heard("ended")[0]["problem"]
    wait_until(lambda: chat.hung_up == 1)


def test_an_answer_at_its_bound_of_tokens_is_marked(
    served: Served, chat: ChatServer, name: str
) -> None:
    make(served, chat, name, max_tokens=16)
    chat.mode = "short"
    with room_socket(page_of(served, name)) as socket:
        answer = socket.talk(socket.own_room(), "Go on.")[0]
        assert answer["mark"] == "cut off"
        assert chat.asked[0]["max_tokens"] == 16


def test_the_tokens_of_a_day_are_bounded(served: Served, chat: ChatServer, name: str) -> None:
    make(served, chat, name, tokens_per_day=100)
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        assert len(socket.talk(room, "First.")) == 1
        assert socket.talk(room, "Second.") == []
        assert "100 tokens" in socket.heard("ended")[1]["problem"]
    assert len(chat.asked) == 1
    assert len(turns_of(served, name, room)) == 3


def test_the_tokens_of_a_day_end_an_answer_that_asks_again_and_again(
    served: Served, chat: ChatServer, name: str
) -> None:
    make(served, chat, name, tokens_per_day=100)
    chat.mode = "calls_forever"
    with room_socket(page_of(served, name)) as socket:
        socket.talk(socket.own_room(), "First.")
        assert "100 tokens" in socket.heard("ended")[0]["problem"]
    assert len(chat.asked) == 1


def test_a_model_recalls_and_remembers_with_its_own_tools_in_bounds(
    served: Served, chat: ChatServer, name: str
) -> None:
    make(served, chat, name)
    served.link.call("remember", name, {"content": "The harbour closes at nine."})
    chat.mode = "calls"
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        answer = socket.talk(room, "Go.")[0]
        assert len(chat.asked) == 3
        tools = [one for one in chat.asked[2]["messages"] if one["role"] == "tool"]
        assert "harbour closes at nine" in tools[0]["content"]
        assert tools[1]["content"] == "kept"
        assert len(answer["written"]) == 1
        assert "The harbour question was answered." in texts(turns_of(served, name, room))
        # Trying again takes along what was written down for the answer.
        chat.mode = "good"
        socket.ask("again", room=room, message=answer["id"])
        socket.wait(lambda: len(socket.answers(room)) == 2)
        # The answer is heard before its end; the next wait must not take this end for its own.
        socket.wait(lambda: len(socket.heard("ended", room=room)) == 2)
        assert "The harbour question was answered." not in texts(turns_of(served, name, room))
        chat.mode = "calls_forever"
        before = len(chat.asked)
        socket.talk(room, "Again.")
        assert len(chat.asked) - before == 4
        assert "tools" not in chat.asked[-1]


def test_a_server_whose_model_takes_no_tools_is_asked_without(
    served: Served, chat: ChatServer, name: str
) -> None:
    make(served, chat, name)
    chat.mode = "no_tools"
    with room_socket(page_of(served, name)) as socket:
        assert socket.talk(socket.own_room(), "Hello.")[0]["mark"] == ""
    assert ["tools" in one for one in chat.asked] == [True, False]


def test_a_key_comes_from_the_environment_or_a_private_file_and_is_shown_nowhere(
    served: Served, chat: ChatServer, name: str
) -> None:
    make(served, chat, name, key_file="talk.key")
    path = served.home / "entities" / name / "talk.key"
    path.write_text("sk-canary-0815-key\n")
    path.chmod(0o644)
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        socket.talk(room, "Hello.")
        assert "chmod 600" in socket.heard("ended")[0]["problem"]
        assert chat.asked == []
        path.chmod(0o600)
        assert socket.talk(room, "Hello again.")[0]["mark"] == ""
        assert chat.keys == ["Bearer sk-canary-0815-key"]
        chat.mode = "bad_key"
        socket.talk(room, "And now?")
        let_answer(
            served, name, server="openai", model=name, base_url=chat.base_url, key_env="NO_SUCH_KEY"
        )
        socket.talk(room, "And now?")
        assert "NO_SUCH_KEY" in socket.heard("ended")[3]["problem"]
        assert "canary" not in json.dumps(socket.events)
    assert "canary" not in (served.home / "test-server.log").read_text()
    card = served.home / "entities" / name / "entity.toml"
    card.write_text(card.read_text() + 'api_key = "sk-1"\n')
    problem = served.pps("recall", name, "anything").stderr
    assert "talk.api_key: unknown key" in problem


@pytest.mark.parametrize("how", ["words", "fails", "slow", "too_much", "no_text"])
def test_a_command_is_a_model(served: Served, tmp_path: Path, name: str, how: str) -> None:
    served.create(name)
    served.link.call("remember", name, {"content": "The kettle is red."})
    program = {
        "words": "import sys\np = sys.stdin.read()\nfor w in ('I ', 'know ', 'red' if 'kettle is red' in p else 'nothing'):\n"
        "    print(w, end='', flush=True)",
        "fails": "print('I began', flush=True)\nraise SystemExit(3)",
        "slow": "import time\nprint('I began', flush=True)\ntime.sleep(600)",
        "too_much": "print('x' * 6_000_000)",
        "no_text": "import sys\nsys.stdout.buffer.write(b'\\xff\\xfe')",
    }[how]
    script = tmp_path / "talker.py"
    script.write_text(program)
    let_answer(
        served,
        name,
        server="command",
        command=[sys.executable, "-S", str(script)],
        timeout_s=5.0 if how == "slow" else 60.0,
    )
    expected = {"fails": "code 3", "slow": "within 5 s", "too_much": "60,000", "no_text": "UTF-8"}
    with room_socket(page_of(served, name)) as socket:
        answers = socket.talk(socket.own_room(), "What do you know of the kettle?")
        ended = socket.heard("ended")[0]
        if how == "words":
            assert (answers[0]["text"], answers[0]["mark"]) == ("I know red", "")
        else:
            assert expected[how] in ended["problem"]
            assert [one["mark"] for one in answers] == ([] if how == "no_text" else ["cut off"])


def test_who_is_addressed_answers_and_others_read_it(served: Served, chat: ChatServer) -> None:
    make(served, chat, "wilma", "xaver")
    chat.answers = {"wilma": ["I am Wilma.", "Yes, I heard."], "xaver": ["I am Xaver."]}
    with room_socket(haven_of(served)) as owner:
        room = owner.ask("create", title="Tea", entities=["wilma", "xaver"], person="Mia")["room"]
        owner.ask("subscribe", rooms={room: 0})
        both = owner.talk(room, "Who are you?", count=2)
        assert [one["author"] for one in both] == ["wilma", "xaver"]
        assert "wilma: I am Wilma." in chat.prompts("xaver")[0]
        one = owner.talk(room, "Wilma, did you hear?")
        assert [answer["author"] for answer in one] == ["wilma"]
        two = owner.talk(room, "And what do you say?", to=["xaver"])
        assert [answer["author"] for answer in two] == ["xaver"]
    for name in ("wilma", "xaver"):
        turns = turns_of(served, name, room)
        assert [one["actor"] for one in turns if one["role"] == "user"] == ["Mia"] * 3
        assert len(turns) == 7


def is_quiet(socket: RoomSocket, room: str) -> bool:
    """Tell whether nobody answers in a room, or is about to."""
    socket.ask("subscribe", rooms={room: 0})
    state = socket.heard("room_state", room=room)[-1]
    return state["answer"] is None and state["waiting"] == []


def test_entities_answer_each_other_a_bounded_number_of_times(
    served: Served, chat: ChatServer
) -> None:
    make(served, chat, "yara", "zeno")
    chat.answers = {
        "yara": [f"@zeno what now ({number})?" for number in range(20)],
        "zeno": [f"@yara what now ({number})?" for number in range(20)],
    }
    with room_socket(haven_of(served)) as owner:
        room = owner.ask("create", entities=["yara", "zeno"])["room"]
        owner.ask("subscribe", rooms={room: 0})
        owner.talk(room, "Discuss.", count=8)  # two for the person, six for each other
        assert is_quiet(owner, room)
        assert len(owner.answers(room)) == 8
        owner.talk(room, "Go on.", to=["yara"], count=7)
        assert is_quiet(owner, room)
        assert len(owner.answers(room)) == 15


def test_who_is_sent_out_while_something_is_said_has_nothing_of_it(
    served: Served, chat: ChatServer
) -> None:
    """Also where it is called in again before the answer ends."""
    make(served, chat, "carl", "dora", timeout_s=300.0)
    chat.mode = "held"
    chat.answers["carl"] = ["One two three heron8812 five."]
    with room_socket(haven_of(served)) as owner:
        room = owner.ask("create", entities=["carl", "dora"])["room"]
        owner.ask("subscribe", rooms={room: 0})
        owner.say(room, "Tell us.", to=["carl"])
        owner.wait(lambda: len(owner.heard("words")) >= 3)
        owner.ask("presence", room=room, entity="dora", change="sent_out")
        owner.ask("presence", room=room, entity="dora", change="called_in")
        chat.freed.set()
        owner.wait(lambda: bool(owner.heard("ended")))
        assert [*owner.answers(room)[0]["turns"]] == ["carl"]
    assert texts(turns_of(served, "dora", room)) == ["Tell us."]
    assert b"heron8812" in bytes_of(served, "carl")
    assert b"heron8812" not in bytes_of(served, "dora")


def test_a_message_for_which_too_many_answers_wait_is_not_kept_and_may_be_sent_again(
    served: Served, chat: ChatServer
) -> None:
    names = [f"n{number}" for number in range(12)]
    make(served, chat, *names)
    chat.mode = "held"
    with room_socket(haven_of(served)) as owner:
        room = owner.ask("create", entities=names)["room"]
        owner.ask("subscribe", rooms={room: 0})
        for number in range(4):
            owner.say(room, f"Message {number}.")
        message = str(uuid.uuid4())
        with pytest.raises(SocketProblem, match="answers wait") as caught:
            owner.say(room, "Once too many.", message=message)
        assert caught.value.problem["status"] == 503  # the page keeps it, and sends it again
        assert "Once too many." not in texts(turns_of(served, "n0", room))
        owner.ask("stop", room=room)
        owner.say(room, "Once too many.", message=message, to=["n0"])
        owner.ask("stop", room=room)
    assert texts(turns_of(served, "n0", room)).count("Once too many.") == 1


@pytest.mark.parametrize("how", ["entity_archive", "entity_delete"])
def test_who_is_archived_or_deleted_while_it_speaks_ends_and_what_came_is_kept(
    served: Served, chat: ChatServer, how: str
) -> None:
    made = [f"{name}{how.removeprefix('entity_')}" for name in ("gone", "left")]
    make(served, chat, *made)
    gone, left = made
    chat.by_model[gone] = "held"
    chat.answers[gone] = ["One two three four five."]
    with room_socket(haven_of(served)) as owner:
        room = owner.ask("create", entities=made)["room"]
        owner.ask("subscribe", rooms={room: 0})
        owner.say(room, "Tell us.")
        owner.wait(lambda: len(owner.heard("words", entity=gone)) >= 3)
        served.link.call(how, "", {"name": gone})
        owner.wait(lambda: len(owner.heard("ended")) == 2)
        kept = texts(turns_of(served, left, room))
        assert kept[:2] == ["Tell us.", "One two three"]
        assert len(kept) == 3
        assert chat.prompts(left)[0].count("One two three") == 1


def bytes_of(served: Served, name: str) -> bytes:
    """Return all that an entity's folder holds."""
    folder = served.home / "entities" / name
    return b"".join(content for _, content in files_below(folder))


def test_an_evening_of_forty_messages_with_a_late_guest_and_a_secret(
    served: Served, chat: ChatServer
) -> None:
    """Each knows what it was there for and nothing else: in prompts, events, transcripts and bytes on disk."""
    names = ["olga", "paul", "quinn"]
    make(served, chat, *names)
    for name in names:
        served.link.call("remember", name, {"content": f"The word of my own is own{name}."})
    with room_socket(haven_of(served)) as owner, room_socket(page_of(served, "paul")) as paul:
        paul.ask("subscribe", entities=["paul"])
        room = owner.ask("create", title="Evening", entities=["olga", "paul"])["room"]
        owner.ask("subscribe", rooms={room: 0})
        for number in range(9):
            owner.talk(room, f"Message {number} of the evening.", count=2)
        # Olga alone is told a secret, and asked for it, while Paul is out.
        owner.ask("presence", room=room, entity="paul", change="sent_out")
        owner.talk(room, "Between us: the code is kestrel7731.")
        assert "kestrel7731" in owner.talk(room, "What do you know of code?")[0]["text"]
        owner.ask("presence", room=room, entity="paul", change="called_in")
        assert "nothing" in owner.talk(room, "What do you know of code?", to=["paul"])[0]["text"]
        # Quinn comes late, and has nothing from before.
        owner.ask("presence", room=room, entity="quinn", change="joined")
        assert (
            "nothing" in owner.talk(room, "What do you know of evening?", to=["quinn"])[0]["text"]
        )
        owner.ask("presence", room=room, entity="quinn", change="sent_out")
        known = owner.talk(room, "What do you know of evening?", to=["paul"])[0]["text"]
        assert "Message 8 of the evening." in known
        owner.ask("presence", room=room, entity="quinn", change="called_in")
        for name in names:  # nobody knows what is another's own
            for asked in names:
                if asked != name:
                    question = f"What do you know of own{name}?"
                    answer = owner.talk(room, question, to=[asked])[0]["text"]
                    assert "The word of my own" not in answer
        page = owner.ask("earlier", room=room, before=1_000_000)["messages"]
        assert len(page) >= 40
        ids = {one["id"] for one in page if "paul" in one["turns"]}
        everything = {name: turns_of(served, name, room) for name in names}
        secret = [one for one in page if "kestrel7731" in one["text"]]
        assert [[*one["turns"]] for one in secret] == [["olga"]] * 3
        assert len(everything["paul"]) == len(ids)
        for name in ("paul", "quinn"):
            assert "kestrel7731" not in "".join(texts(everything[name]))
            assert "kestrel7731" not in "".join(chat.prompts(name))
            wait_until(lambda name=name: b"own" + name.encode() in bytes_of(served, name))
            assert b"kestrel7731" not in bytes_of(served, name)
        assert "kestrel7731" not in json.dumps(paul.events)
        assert "kestrel7731" not in (served.home / "test-server.log").read_text()
        assert "kestrel7731" not in (served.home / "registry.db").read_bytes().decode("latin-1")
        # What the person hands over, Quinn has; the rest it has not.
        handed = [one["id"] for one in page if "Message 3" in one["text"] and not one["author"]]
        answer = owner.ask("hand_over", room=room, entity="quinn", messages=handed)
        assert answer == {"handed_over": 1}
        known = owner.talk(room, "What do you know of evening?", to=["quinn"])[0]["text"]
        assert "Message 3" in known
        assert "Message 4" not in known


def test_a_message_is_forgotten_in_everyone_who_has_it(served: Served, chat: ChatServer) -> None:
    make(served, chat, "rosa", "sven", "tilo")
    chat.answers = {"rosa": ["Good to know."], "sven": ["Noted."]}
    with room_socket(haven_of(served)) as owner:
        room = owner.ask("create", entities=["rosa", "sven"])["room"]
        owner.ask("subscribe", rooms={room: 0})
        owner.talk(room, "The spare key hangs in the barn.", count=2)
        owner.ask("presence", room=room, entity="tilo", change="joined")
        owner.ask("hand_over", room=room, entity="tilo")
        owner.ask("presence", room=room, entity="rosa", change="left")
        message = next(
            one
            for one in owner.ask("earlier", room=room, before=10_000)["messages"]
            if "barn" in one["text"] and not one["author"]
        )
        assert sorted(message["turns"]) == ["rosa", "sven", "tilo"]  # who left has it too
        assert message["handed_over"] == ["tilo"]
        with pytest.raises(SocketProblem, match="entities"):
            owner.ask("forget", room=room, message=message["id"], entities=["rosa", "nobody"])
        left = owner.ask("forget", room=room, message=message["id"], entities=["rosa", "sven"])
        assert left["left"] == ["tilo"]
        assert "The spare key" not in "".join(texts(turns_of(served, "rosa", room)))
        owner.ask("forget", room=room, message=message["id"], entities=["tilo"])
        assert owner.heard("message_gone")[-1]["id"] == message["id"]
    for name in ("rosa", "sven", "tilo"):
        kept = [one["content"] for one in turns_of(served, name, room) if one["role"] == "user"]
        assert kept == []
        assert len(served.link.call("forgotten", name, {})["data"]["forgotten"]) == 1


def test_a_forgotten_message_is_brought_back_in_everyone_who_forgot_it(
    served: Served, chat: ChatServer
) -> None:
    make(served, chat, "ulla", "vito")
    with room_socket(haven_of(served)) as owner:
        room = owner.ask("create", entities=["ulla", "vito"])["room"]
        owner.ask("subscribe", rooms={room: 0})
        owner.talk(room, "The ladder stands behind the shed.", count=2)
        before = owner.ask("earlier", room=room, before=10_000)["messages"]
        message = before[0]["id"]
        forgotten = owner.ask("forget", room=room, message=message, entities=["ulla", "vito"])
        restorable = forgotten["restorable"]
        assert sorted(restorable) == ["ulla", "vito"]
        with pytest.raises(SocketProblem, match="never in the room"):
            owner.ask("restore", room=room, message=message, restorable={"nobody": "x"})
        with pytest.raises(SocketProblem):
            owner.ask("restore", room=room, message=message, restorable={"ulla": message})
        owner.ask("restore", room=room, message=message, restorable=restorable)
        back = owner.heard("message")[-1]["message"]
        assert back["text"] == "The ladder stands behind the shed."
        assert sorted(back["turns"]) == ["ulla", "vito"]
        after = owner.ask("earlier", room=room, before=10_000)["messages"]
        assert [one["id"] for one in after] == [one["id"] for one in before]


def test_what_is_forgotten_elsewhere_is_gone_from_the_room(
    served: Served, chat: ChatServer, name: str
) -> None:
    make(served, chat, name)
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        socket.talk(room, "Forget me by the command line.")
        turn = turns_of(served, name, room)[0]["id"]
        served.link.call("forget", name, {"ids": [turn], "dry_run": False})
        socket.ask("subscribe", rooms={room: 1_000})
        assert len(socket.heard("room_state")[-1]["ids"]) == 1


def test_off_the_record_nothing_is_kept_or_logged(
    served: Served, chat: ChatServer, name: str
) -> None:
    make(served, chat, name)
    with room_socket(page_of(served, name)) as socket:
        room = socket.own_room()
        socket.talk(room, "This is kept.")
        answer = socket.talk(room, "The surprise is a zeppelin93.", off_record=True)[0]
        assert "zeppelin93" in answer["text"]
        assert answer["off_record"] is True
        assert "remember" not in json.dumps(chat.asked[-1].get("tools", []))
        # Within the room it is known as long as one stays off the record; on it, it is not.
        assert (
            "zeppelin93"
            in socket.talk(room, "What do you know of surprise?", off_record=True)[0]["text"]
        )
        socket.talk(room, "What do you know of surprise?")
        assert "zeppelin93" not in chat.prompts(name)[-1]
        socket.ask("describe", room=room, off_record=True)
        socket.talk(room, "And a tandem94.")
        socket.ask("describe", room=room, off_record=False)
    assert len(turns_of(served, name, room)) == 4
    for word in (b"zeppelin93", b"tandem94"):
        assert word not in bytes_of(served, name)
        assert word not in (served.home / "test-server.log").read_bytes()
        assert word not in (served.home / "registry.db").read_bytes()


def test_what_is_off_the_record_and_keys_are_in_no_log_of_any_level(
    tmp_path: Path, chat: ChatServer
) -> None:
    """Nor are the two halves of a page's session: libraries log frames, headers and requests at debug."""
    key = "sk-canary-4242-key"
    home = tmp_path / "home"
    with serving(home, PPS_LOG_LEVEL="debug", TALK_KEY=key) as served:
        for name, server, url in (
            ("ines", "openai", chat.base_url),
            ("jana", "anthropic", chat.url),
        ):
            served.create(name)
            let_answer(served, name, server=server, model=name, base_url=url, key_env="TALK_KEY")
        owner = haven_of(served)
        with room_socket(owner) as socket:
            room = socket.ask("create", entities=["ines", "jana"])["room"]
            socket.ask("subscribe", rooms={room: 0})
            chat.mode = "calls"
            given = {"off_record": True, "count": 2}
            assert len(socket.talk(room, "The surprise is a zeppelin93.", **given)) == 2
            chat.mode = "good"
            answers = socket.talk(room, "What do you know of surprise?", **given)
            assert all("zeppelin93" in answer["text"] for answer in answers)
            chat.mode = "bad_key"
            socket.talk(room, "And the zeppelin93?", **given)
        assert len(chat.keys) > 0
        halves = [owner.key, *owner.cookies.values()]
    everything = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    for word in ("zeppelin93", key, *halves):
        assert [path for path, data in everything.items() if word.encode() in data] == []
    assert b" DEBUG " in (home / "test-server.log").read_bytes()


def test_who_comes_back_gets_what_it_missed_once_and_in_order(
    served: Served, chat: ChatServer, name: str
) -> None:
    make(served, chat, name)
    page = page_of(served, name)
    with room_socket(page) as first:
        room = first.own_room()
        first.talk(room, "One.")
        position = first.heard("message")[-1]["position"]
    with room_socket(page) as other:
        other.own_room()
        other.talk(room, "Two.")
        other.talk(room, "Three.")
        with room_socket(page) as back:
            back.ask("subscribe", rooms={room: position})
            missed = back.heard("room_state")[0]
            assert [one["text"] for one in missed["messages"] if not one["author"]] == [
                "Two.",
                "Three.",
            ]
            assert len(missed["ids"]) == 6
            back.talk(room, "Four.")
            positions = [event["position"] for event in back.heard("message")]
            assert positions == sorted(set(positions))
            assert positions[0] > missed["position"] - 1


def test_a_server_killed_in_an_answer_loses_nothing_and_says_nothing_twice(
    tmp_path: Path, chat: ChatServer
) -> None:
    home = tmp_path / "home"
    message = str(uuid.uuid4())
    with killed_at_the_end(home) as served:
        make(served, chat, "vera")
        chat.mode = "held"
        chat.answers["vera"] = ["One two three four five.", "It is whole."]
        with room_socket(page_of(served, "vera")) as socket:
            room = socket.own_room()
            position = socket.heard("room_state")[0]["position"]
            socket.say(room, "Tell me.", message=message)
            socket.wait(lambda: len(socket.heard("words")) >= 3)
            path = served.home / "entities" / "vera" / "data" / "memory.db"

            def noted() -> bool:
                with sqlite3.connect(path) as db:
                    rows = db.execute("SELECT text FROM feature_haven__answers").fetchall()
                return rows == [("One two three",)]

            wait_until(noted)
            os.kill(served.run.pid, signal.SIGKILL)
            socket.wait(lambda: bool(socket.code), timeout_s=20)
    chat.mode = "good"
    with serving(home) as served, room_socket(page_of(served, "vera")) as socket:
        socket.ask("subscribe", rooms={room: position})
        missed = socket.heard("room_state")[0]["messages"]
        assert [(one["text"], one["mark"]) for one in missed] == [
            ("Tell me.", ""),
            ("One two three", "cut off"),
        ]
        socket.say(room, "Tell me.", message=message)  # the page sends it again: it was not told
        socket.ask("again", room=room, message=missed[1]["id"])
        socket.wait(lambda: bool(socket.heard("ended")))
        kept = texts(turns_of(served, "vera", room))
        assert kept == ["Tell me.", "It is whole."]


def test_a_server_that_stops_keeps_what_came(tmp_path: Path, chat: ChatServer) -> None:
    home = tmp_path / "home"
    with serving(home) as served:
        make(served, chat, "walt")
        chat.mode = "held"
        with room_socket(page_of(served, "walt")) as socket:
            room = socket.own_room()
            socket.say(room, "Tell me many words.")
            socket.wait(lambda: len(socket.heard("words")) >= 3)
    with serving(home) as served:
        turns = turns_of(served, "walt", room)
        assert [one["role"] for one in turns] == ["user", "assistant"]
        assert turns[1]["tags"] == ["cut-off"]


def test_a_deleted_entity_is_in_no_room_and_an_archived_one_rests(
    served: Served, chat: ChatServer
) -> None:
    make(served, chat, "abel", "bela")
    with room_socket(haven_of(served)) as owner:
        room = owner.ask("create", entities=["abel", "bela"])["room"]
        owner.ask("subscribe", rooms={room: 0})
        owner.talk(room, "Hello, both.", count=2)
        served.link.call("entity_archive", "", {"name": "abel"})
        assert [one["author"] for one in owner.talk(room, "Who is there?")] == ["bela"]
        served.link.call("entity_archive", "", {"name": "abel", "undo": True})
        assert len(turns_of(served, "abel", room)) == 3
        served.link.call("entity_delete", "", {"name": "abel"})
        found = next(one for one in owner.ask("rooms")["rooms"] if one["id"] == room)
        assert [one["name"] for one in found["members"]] == ["bela"]
        assert [one["author"] for one in owner.talk(room, "And now?")] == ["bela"]
        served.create("abel")  # who is made anew is somebody else
        found = next(one for one in owner.ask("rooms")["rooms"] if one["id"] == room)
        assert [one["name"] for one in found["members"]] == ["bela"]
