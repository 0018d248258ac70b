"""S2-17, whole scenes of Talk in a browser: from nothing to a first answer, an evening of three, a killed server, bad models."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import sqlite3
import sys
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pps.server import runfile
from tests.chat_server import ChatMode, ChatServer
from tests.chromium import Chromium, Window
from tests.held_files import files_below
from tests.integration.interfaces.serving import (
    Served,
    clean_env,
    killed_at_the_end,
    pps,
    serving,
)
from tests.ports import lasting_port
from tests.postgresql_server import PostgresqlServer
from tests.room_socket import let_answer
from tests.talk_page import make_talkers, messages_of, say, wait_for_answers
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.chromium,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("chromium"),
]
DOCS = Path(__file__).parents[3] / "docs" / "talk.md"
CANARY = "kestrel7731"


def test_the_commands_of_the_docs_lead_from_nothing_to_a_first_answer(
    browser: Chromium, chat: ChatServer, tmp_path: Path
) -> None:
    text = DOCS.read_text("utf-8")
    (block,) = re.findall(r"```bash\n(pps init.*?)```", text, re.DOTALL)
    commands = [shlex.split(line, comments=True)[1:] for line in block.splitlines()]
    assert [command[0] for command in commands] == ["init", "entity", "open"]
    talk = tomllib.loads(re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[0])["talk"]
    home = tmp_path / "home"
    env = clean_env(home)
    try:
        for command in commands[:-1]:
            ran = pps(env, *command)
            assert ran.returncode == 0, ran.stderr
        link = pps(env, *commands[-1], "--print").stdout.strip()
        run = runfile.read(home)
        assert run is not None
        served = Served(home, env, run)
        with browser.blank() as window:
            window.open(link)
            window.page.click("nav a:has-text('Talk')")
            window.page.wait_for_selector(".composer")
            assert "[talk]" in window.text(".alert")
            say(window, "My boat is called Aurora.")
            window.page.wait_for_selector(".message.mine:not(.sending)")
            window.page.wait_for_selector(".alert:has-text('mira: nobody answers')")
            let_answer(served, "mira", **{**talk, "base_url": chat.base_url})
            say(window, "What do you know of Aurora?")
            assert "My boat is called Aurora." in wait_for_answers(window, 1)
            window.is_well()
    finally:
        pps(env, "serve", "--stop")


@dataclass
class House:
    """A server on some store.

    Attributes:
        find: Returns where a text stands, in the bytes of an entity's folder and the rows of its group.
    """

    served: Served
    find: Callable[[str, str], list[str]]


def _group_of(served: Served, name: str) -> str:
    card = served.home / "entities" / name / "entity.toml"
    return str(tomllib.loads(card.read_text("utf-8"))["group"])


@pytest.fixture(params=["embedded", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """A server on each SQL store."""
    database: PostgresqlServer | None = None
    more: dict[str, str] = {}
    if request.param == "postgresql":
        database = request.getfixturevalue("postgresql_server")
        more = {
            "PPS_STORE": "postgresql",
            "PPS_POSTGRESQL__URL": database.url,
            "PPS_POSTGRESQL__OWNER_URL": database.owner_url,
        }
    with serving(tmp_path / "home", **more) as served:

        def find(name: str, text: str) -> list[str]:
            folder = served.home / "entities" / name
            found = [str(path) for path, content in files_below(folder) if text.encode() in content]
            if database is None:
                return found
            looking = database.rows_with(text, _group_of(served, name))
            with ThreadPoolExecutor(1) as thread:  # the browser's driver has this thread's loop
                return found + thread.submit(asyncio.run, looking).result()

        yield House(served, find)


def _texts_of(served: Served, name: str) -> str:
    """Return all that an entity's conversations hold."""
    given = {"limit": 100}
    turns = served.link.call("turns_list", name, given)["data"]["turns"]
    return "\n".join(str(one["turn"]["content"]) for one in turns)


def _ask(window: Window, question: str, name: str, answers: int) -> str:
    """Ask one entity of the room; return its answer."""
    window.page.select_option("select[name=to]", name)
    say(window, question)
    answer = wait_for_answers(window, answers)
    window.page.select_option("select[name=to]", "")
    return answer


def test_an_evening_of_forty_messages_with_a_late_guest_and_a_secret(
    house: House, browser: Chromium, chat: ChatServer
) -> None:
    """Each knows what it heard and nothing else: in packs, events, transcripts and bytes."""
    served = house.served
    make_talkers(served, chat, "olga", "paul", "quinn")
    with browser.window(served, "") as window, browser.window(served, "paul") as of_paul:
        of_paul.go("#/talk", until=".composer")
        window.go("#/new", until="form")
        window.page.fill("input[name=title]", "Evening")
        for name in ("olga", "paul"):
            window.page.check(f"input[value={name}]")
        window.page.click("text=Open the room")
        window.page.wait_for_selector(".composer")
        window.page.click(".about > summary")
        for number in range(11):
            say(window, f"Message {number} of the evening.")
            wait_for_answers(window, 2 * (number + 1))
        # Olga alone is told a secret, and asked for it, while Paul is out.
        window.page.click("text=Send paul out")
        window.page.wait_for_selector("text=Call paul in")
        say(window, f"Between us: the code is {CANARY}.")
        wait_for_answers(window, 23)
        say(window, "What do you know of code?")
        assert CANARY in wait_for_answers(window, 24)
        window.page.click("text=Call paul in")
        window.page.wait_for_selector("text=Send paul out")
        assert _ask(window, "What do you know of code?", "paul", 25) == "I know nothing of that."
        # Quinn comes late, and has nothing from before.
        window.page.select_option("select[name=entity]", "quinn")
        window.page.click("text=Let join")
        window.page.wait_for_selector("text=Send quinn out")
        answer = _ask(window, "What do you know of evening?", "quinn", 26)
        assert answer == "I know nothing of that."
        answer = _ask(window, "What do you know of Message 10?", "paul", 27)
        assert "Message 10 of the evening." in answer
        answer = _ask(window, "What do you know of Between us?", "paul", 28)
        assert answer == "I know nothing of that."
        shown = messages_of(window)
        assert len(shown) == 45
        assert next(words for _, words, _ in shown if CANARY in words).startswith("Between us")
        of_paul.go("#/turns", until=".turn")
        assert "Message 10 of the evening." in _texts_of(served, "paul")
        assert CANARY not in of_paul.text()
        assert any('"changed"' in frame for frame in of_paul.heard)
        assert CANARY not in "".join(of_paul.heard)
        window.is_well()
        of_paul.is_well()
    for name in ("paul", "quinn"):
        assert CANARY not in "".join(chat.prompts(name)), "a pack or what it heard"
        assert CANARY not in _texts_of(served, name), "its transcript"
    assert CANARY in "".join(chat.prompts("olga"))
    assert CANARY in _texts_of(served, "olga")
    for name in ("paul", "quinn"):
        wait_until(lambda name=name: bool(house.find(name, "Between us?")))
        assert house.find(name, CANARY) == [], "its bytes"
    wait_until(lambda: bool(house.find("olga", CANARY)))
    for path, content in files_below(served.home):
        if path.name == "test-server.log" or path.name.startswith("registry.db"):
            assert CANARY.encode() not in content


def _link_to(served: Served, name: str) -> str:
    return str(served.link.call("page_open", "", {"name": name})["data"]["url"])


def _noted_answer(home: Path, name: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(home / "entities" / name / "data" / "memory.db") as db:
        return db.execute("SELECT text FROM feature_haven__answers").fetchall()


def test_a_server_killed_in_an_answer_loses_nothing_and_says_nothing_twice(
    browser: Chromium, chat: ChatServer, tmp_path: Path
) -> None:
    home, port = tmp_path / "home", {"PPS_SERVER__PORT": str(lasting_port())}
    chat.answers["vera"] = ["One two three four five.", "That was all.", "And so it ends."]
    chat.mode = "held"
    with browser.blank() as window:
        with killed_at_the_end(home, **port) as served:
            make_talkers(served, chat, "vera")
            window.open(_link_to(served, "vera"))
            window.go("#/talk", until=".composer")
            say(window, "Tell me.")
            window.page.wait_for_selector(".coming :text('One two three')")
            wait_until(lambda: _noted_answer(home, "vera") == [("One two three",)])
            os.kill(served.run.pid, signal.SIGKILL)
            window.page.wait_for_selector(".state.away")
            say(window, "Said while nobody listened.")
            window.page.wait_for_selector(".message.sending")
        chat.mode = "good"
        with serving(home, **port) as served:
            assert wait_for_answers(window, 2) == "That was all."
            expected = [
                ("You", "Tell me.", ""),
                ("vera", "One two three", "Cut off"),
                ("You", "Said while nobody listened.", ""),
                ("vera", "That was all.", ""),
            ]
            assert messages_of(window) == expected
            window.page.reload()
            wait_for_answers(window, 2)
            assert messages_of(window) == expected
            turns = served.link.call("turns_list", "vera", {"limit": 100})["data"]["turns"]
            said = [one["turn"]["content"] for one in reversed(turns)]
            assert said == [words for _, words, _ in expected]
        with killed_at_the_end(home, **port) as served:
            window.page.wait_for_selector(".state.live")
            # Killed as it is sent: the page cannot know whether it was kept, and sends it again.
            say(window, "Is this one there?")
            os.kill(served.run.pid, signal.SIGKILL)
            window.page.wait_for_selector(".state.away")
        with serving(home, **port) as served:
            window.page.wait_for_selector(".state.live")
            window.page.wait_for_selector(".message.mine:not(.sending) :text('Is this one there?')")
            window.page.wait_for_selector(".message.sending", state="detached")
            turns = served.link.call("turns_list", "vera", {"limit": 100})["data"]["turns"]
            said = [one["turn"]["content"] for one in turns]
            assert said.count("Is this one there?") == 1
            mine = [words for who, words, _ in messages_of(window) if who != "vera"]
            assert mine.count("Is this one there?") == 1


def test_a_slow_failing_endless_or_malformed_model_is_said_in_the_room_and_goes_on(
    served: Served, browser: Chromium, chat: ChatServer
) -> None:
    make_talkers(served, chat, "xenia")
    problems: dict[ChatMode, str] = {
        "failing": "HTTP 500",
        "malformed": "something else than",
        "not_json": "something else than",
        "cut": "midway",
        "endless": "60,000 characters",
    }
    with browser.window(served, "xenia") as window:
        window.go("#/talk", until=".composer")
        chat.mode = "held"  # slow: its words stand there as they come, and one types meanwhile
        chat.answers["xenia"] = ["One two three four."]
        say(window, "Slowly.")
        window.page.wait_for_selector(".coming :text('One two three')")
        window.page.fill("textarea[name=text]", "typed meanwhile")
        chat.freed.set()
        assert wait_for_answers(window, 1) == "One two three four."
        assert window.page.input_value("textarea[name=text]") == "typed meanwhile"
        answers = 1
        for mode, problem in problems.items():
            chat.mode = mode
            if mode == "endless":
                chat.answers["xenia"] = ["word " * 2_000]
            say(window, f"It is {mode}.")
            window.page.wait_for_selector(f".alert:has-text('{problem}')")
            if mode in ("malformed", "cut", "endless"):
                answers += 1
                wait_for_answers(window, answers)
                assert messages_of(window)[-1][2] == "Cut off"
            chat.mode = "good"
            chat.answers["xenia"] = [f"Well again after {mode}."]
            if mode in ("malformed", "cut", "endless"):
                window.page.click("text=Try again")
            else:
                answers += 1
                window.page.click("text=Ask for an answer")
            window.page.wait_for_selector(f".message.theirs :text('Well again after {mode}.')")
            assert wait_for_answers(window, answers) == f"Well again after {mode}."
            assert window.page.locator(".room > .alert").count() == 0
        said = [words for who, words, _ in messages_of(window) if who != "xenia"]
        assert said == ["Slowly.", *(f"It is {mode}." for mode in problems)]


def test_a_command_is_a_model(served: Served, browser: Chromium, tmp_path: Path) -> None:
    served.create("yara")
    script = tmp_path / "talker.py"
    script.write_text(
        "import sys, time\n"
        "prompt = sys.stdin.read()\n"
        "for word in ('The ', 'kettle ', 'is ', 'red.' if 'kettle is red' in prompt else 'lost.'):\n"
        "    print(word, end='', flush=True)\n"
    )
    let_answer(
        served, "yara", server="command", command=[sys.executable, "-S", str(script)], timeout_s=60
    )
    served.link.call("remember", "yara", {"content": "The kettle is red."})
    with browser.window(served, "yara") as window:
        window.go("#/talk", until=".composer")
        say(window, "Which colour has the kettle?")
        assert wait_for_answers(window, 1) == "The kettle is red."
        script.write_text("print('I began', flush=True)\nraise SystemExit(3)\n")
        say(window, "And now?")
        window.page.wait_for_selector(".alert:has-text('code 3')")
        assert messages_of(window)[-1][1:] == ("I began", "Cut off")
        window.is_well()
