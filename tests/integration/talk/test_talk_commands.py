"""The commands that config/talkers.toml knows, each as a script that takes and writes what the program documents."""

from __future__ import annotations

import json
import sqlite3
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pps.config import INSIDE
from tests.browser_session import page_of
from tests.integration.interfaces.serving import Served, serving
from tests.room_socket import let_answer, room_socket

_HEAD = f"""#!{sys.executable} -S
import json, os, sys
prompt = sys.stdin.read()
words = ["The ", "kettle ", "is ", "red." if "The kettle is red." in prompt else "lost."]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "ran.json"), "w") as file:
    ours = [name for name in os.environ if name.startswith(("PPS_", "NEO4J_"))]
    home = os.environ.get("GEMINI_CLI_HOME", "")
    json.dump({{"arguments": sys.argv[1:], "ours": ours, "home": home, "folder": os.getcwd()}}, file)
"""
_USAGE = '{"input_tokens": 50, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 9}'
PROGRAMS = {
    "claude": f"""
def line(**fields):
    print(json.dumps(fields), flush=True)
line(type="system", subtype="init", tools=[], model="m")
line(type="stream_event", event={{"type": "message_start", "message": {{"role": "assistant"}}}})
for word in words:
    delta = {{"type": "text_delta", "text": word}}
    line(type="stream_event", event={{"type": "content_block_delta", "index": 0, "delta": delta}})
line(type="assistant", message={{"content": [{{"type": "text", "text": "".join(words)}}]}})
line(type="result", subtype="success", is_error=False, result="".join(words), usage={_USAGE})
""",
    "codex": """
print("thinking", file=sys.stderr)
print("".join(words))
""",
    "gemini": """
tokens = {"prompt": 40, "candidates": 8, "thoughts": 2, "total": 50}
print(json.dumps({"response": "".join(words), "stats": {"models": {"m": {"tokens": tokens}}}}, indent=2))
""",
    "ollama": """
for word in words:
    print(word, end="", flush=True)
print()
print()
""",
}
ARGUMENTS = {
    "claude": ["--print", "--output-format", "stream-json", "--model", "small"],
    "codex": ["exec", "--ephemeral", "--sandbox", "read-only", "-", "--model", "small"],
    "gemini": ["--output-format", "json", "--model", "small"],
    "ollama": ["run", "small", "--nowordwrap"],
}
SPENT = {"claude": (55, 9), "gemini": (40, 10)}
"""Tokens that a program tells; the others' are estimated."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("commands") / "home"
    with serving(home, PATH=f"{programs}:/usr/bin:/bin") as served:
        yield served


def install(programs: Path, command: str, body: str) -> None:
    path = programs / command
    path.write_text(_HEAD + body)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize("command", PROGRAMS)
def test_a_known_command_answers(served: Served, programs: Path, command: str) -> None:
    install(programs, command, PROGRAMS[command])
    served.create(command)
    served.link.call("remember", command, {"content": "The kettle is red."})
    let_answer(served, command, server="command", command=command, model="small", timeout_s=60)
    with room_socket(page_of(served, command)) as socket:
        room = str(socket.ask("rooms")["rooms"][0]["id"])
        socket.ask("subscribe", rooms={room: 0})
        (answer,) = socket.talk(room, "What of the kettle?")
        assert (answer["text"], answer["mark"]) == ("The kettle is red.", "")
        ran = json.loads((programs / "ran.json").read_text())
        wanted = iter(ran["arguments"])
        assert all(word in wanted for word in ARGUMENTS[command]), ran["arguments"]
        assert ran["ours"] == [INSIDE], "the mark alone, and no setting of ours"
        assert not Path(ran["folder"]).exists(), "its folder was its own, and is gone"
        if command == "gemini":
            assert ran["home"] == ran["folder"]
    with sqlite3.connect(served.home / "entities" / command / "data" / "memory.db") as db:
        (spent,) = db.execute("SELECT tokens_in, tokens_out FROM feature_haven__spent")
    assert spent == SPENT[command] if command in SPENT else min(spent) > 0


BROKEN = {
    "claude": (
        'print(json.dumps({"type": "result", "is_error": True, "result": "log in"}))',
        "could not ask",
    ),
    "codex": ("sys.exit(1)", "code 1"),
    "gemini": ("print('Error: no key')", "something else than its documented output"),
    "ollama": ("sys.exit(1)", "code 1"),
}


@pytest.mark.parametrize("command", BROKEN)
def test_a_known_command_that_fails_is_named_in_the_room(
    served: Served, programs: Path, command: str
) -> None:
    body, problem = BROKEN[command]
    install(programs, command, body + "\n")
    name = f"{command}_2"
    served.create(name)
    let_answer(served, name, server="command", command=command, model="small", timeout_s=60)
    with room_socket(page_of(served, name)) as socket:
        room = str(socket.ask("rooms")["rooms"][0]["id"])
        socket.ask("subscribe", rooms={room: 0})
        assert socket.talk(room, "What of the kettle?") == []
        said = socket.heard("ended")[0]["problem"]
        assert problem in said
        assert command in said


def test_a_command_that_is_not_installed_is_named_in_the_room(served: Served) -> None:
    served.create("nobody_home")
    let_answer(served, "nobody_home", server="command", command=["no-such-program"])
    with room_socket(page_of(served, "nobody_home")) as socket:
        room = str(socket.ask("rooms")["rooms"][0]["id"])
        socket.ask("subscribe", rooms={room: 0})
        assert socket.talk(room, "Hello?") == []
        assert "'no-such-program' cannot be run" in socket.heard("ended")[0]["problem"]
