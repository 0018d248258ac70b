"""The plugin and the hooks in the real Claude Code: a model of ours answers it, and it can reach nothing else."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import connect
from typing import Any

import pytest

from pps.interfaces.cli.client_settings import program
from pps.server import spool
from tests.claude.__main__ import record
from tests.claude.client import Claude, bundled
from tests.claude.model import Step, TalkingModel, says, talking_model, uses
from tests.integration.hooks.acting import RECORDED
from tests.integration.hooks.replaying import of_scene
from tests.integration.interfaces.serving import Served, clean_env, pps, serving, wait_for_run_file
from tests.waiting import PATIENCE_S, wait_until

RECALL = "mcp__plugin_pps_memory__ambient_recall"
ALLOWED = ("--allowedTools=Bash,mcp__plugin_pps_memory", "--permission-mode", "acceptEdits")
pytestmark = [pytest.mark.claude, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("claude") / "home") as served:
        yield served


def said_in(home: Path, entity: str) -> list[tuple[str, str]]:
    """Return all that an entity keeps of Claude Code's sessions, in order."""
    with closing(connect(home / "entities" / entity / "data" / "memory.db")) as db:
        rows = db.execute(
            "SELECT role, content FROM turns WHERE source = 'claude-code' ORDER BY seq"
        )
        return [(str(role), str(content)) for role, content in rows]


def given(asked: list[dict[str, Any]]) -> str:
    """Return all that the model was asked, as text."""
    return "\n".join(json.dumps(one["messages"], ensure_ascii=False) for one in asked)


def with_plugin(model: TalkingModel, folder: Path, served: Served, entity: str) -> Claude:
    """Return Claude Code with the plugin of this repository, configured as a person does when it is enabled."""
    options = {"python": sys.executable, "entity": entity}
    settings = json.dumps({"pluginConfigs": {"pps@inline": {"options": options}}})
    arguments = ("--plugin-dir", str(program().parents[1]), "--settings", settings, *ALLOWED)
    return Claude(
        bundled(), folder / "person", folder / "kitchen", model.url, arguments, ours(served.env)
    )


def ours(env: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith("PPS_")}


def test_with_the_plugin_what_one_session_said_is_given_to_the_next_and_recalled_by_its_tool(
    served: Served, tmp_path: Path
) -> None:
    script: dict[str, list[Step]] = {
        "My oven is red": [
            [says("I look."), uses("Bash", command="ls", description="List the kitchen")],
            [says("It is noted.")],
        ],
        "Which colour": [
            [uses(RECALL, context="the colour of the oven")],
            [says("The oven is red.")],
        ],
    }
    served.create("cook")
    with talking_model(script) as model:
        claude = with_plugin(model, tmp_path, served, "cook")
        assert claude.prints("My oven is red.").strip() == "It is noted."
        first = [
            ("user", "My oven is red."),
            ("tool", "Bash: List the kitchen (ls)"),
            ("assistant", "I look."),
            ("assistant", "It is noted."),
        ]
        wait_until(lambda: said_in(served.home, "cook") == first)
        begun = len(model.asked)
        assert claude.prints("Which colour has my oven?").strip() == "The oven is red."
    asked = model.asked[begun:]
    assert RECALL in json.dumps(asked[0])
    assert "<memory-" in given(asked[:1])
    assert "My oven is red." in given(asked[:1])
    [result] = [block for block in blocks(asked[-1]) if block["type"] == "tool_result"]
    assert "My oven is red." in json.dumps(result["content"])
    assert "is_error" not in result or not result["is_error"]
    then = [*first, ("user", "Which colour has my oven?"), ("assistant", "The oven is red.")]
    wait_until(lambda: said_in(served.home, "cook") == then)


def blocks(asked: dict[str, Any]) -> list[dict[str, Any]]:
    lists = [message["content"] for message in asked["messages"]]
    return [block for content in lists if not isinstance(content, str) for block in content]


def hooks(served: Served, person: Path, *arguments: str) -> None:
    ended = pps({**served.env, "HOME": str(person)}, "hooks", *arguments)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_two_projects_with_installed_hooks_are_two_memories_until_the_hooks_are_taken_out(
    served: Served, tmp_path: Path
) -> None:
    marks = {"shop": "kanarieladen", "attic": "kanariedachboden"}
    script: dict[str, list[Step]] = {
        f"The word is {mark}": [[says(f"I know {mark}.")]] for mark in marks.values()
    }
    script["What is the word?"] = [[says("You know it.")]]
    for name in marks:
        (tmp_path / name).mkdir()
        served.create(name)
        served.link.call("route_add", "", {"path": str(tmp_path / name), "entity": name})
    person = tmp_path / "person"
    person.mkdir()
    hooks(served, person, "install", "--scope", "user")
    with talking_model(script) as one, talking_model(script) as other:
        models = dict(zip(marks, (one, other), strict=True))
        claudes = {
            name: Claude(bundled(), person, tmp_path / name, models[name].url, env=ours(served.env))
            for name in marks
        }

        def talk(name: str) -> None:
            claudes[name].prints(f"The word is {marks[name]}.")
            claudes[name].prints("What is the word?")

        with ThreadPoolExecutor(2) as threads:
            list(threads.map(talk, marks))
        said = {
            name: [
                ("user", f"The word is {mark}."),
                ("assistant", f"I know {mark}."),
                ("user", "What is the word?"),
                ("assistant", "You know it."),
            ]
            for name, mark in marks.items()
        }
        wait_until(lambda: {name: said_in(served.home, name) for name in marks} == said)
        for name, foreign in (("shop", marks["attic"]), ("attic", marks["shop"])):
            assert marks[name] in given(models[name].asked[1:])
            assert "<memory-" in given(models[name].asked[1:])
            assert foreign not in given(models[name].asked)

        hooks(served, person, "uninstall", "--scope", "user")
        begun = len(one.asked)
        claudes["shop"].prints("What is the word?")
        assert len(one.asked) > begun
        assert "<memory-" not in given(one.asked[begun:])
        assert {name: said_in(served.home, name) for name in marks} == said


@contextmanager
def killable(home: Path) -> Generator[subprocess.Popen[bytes]]:
    """Run a server that a test kills."""
    home.mkdir(mode=0o700)
    with (home / "killed-server.log").open("ab") as log:
        command = [sys.executable, "-m", "pps", "serve"]
        process = subprocess.Popen(
            command, env=clean_env(home), stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
        try:
            wait_for_run_file(home, process)
            yield process
        finally:
            process.kill()
            process.wait()


def test_a_server_that_is_killed_between_two_prompts_disturbs_nothing_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    home, kitchen = tmp_path / "home", tmp_path / "kitchen"
    kitchen.mkdir()
    script: dict[str, list[Step]] = {"First.": [[says("One.")]], "Second.": [[says("Two.")]]}
    with talking_model(script) as model, killable(home) as server:
        served = Served(home, clean_env(home), wait_for_run_file(home, server))
        served.create("cook")
        served.link.call("route_add", "", {"path": str(kitchen), "entity": "cook"})
        claude = Claude(bundled(), tmp_path / "person", kitchen, model.url, env=ours(served.env))
        hooks(served, claude.home, "install", "--scope", "user")
        with claude.in_terminal() as terminal:
            terminal.settle()
            terminal.enters("First.")
            wait_until(lambda: said_in(home, "cook") == [("user", "First."), ("assistant", "One.")])
            os.kill(server.pid, signal.SIGKILL)
            server.wait()
            terminal.enters("Second.")
            # The server may be killed after it kept "One." and before it said so: then that is in the spool, too.
            wait_until(
                lambda: [one["event"] for one in spooled(home)][-2:] == ["UserPromptSubmit", "Stop"]
            )
            terminal.enters("/exit")
            assert terminal.process.wait(PATIENCE_S) == 0
    [transcript] = (claude.home / ".claude" / "projects").glob("*/*.jsonl")
    kinds = [
        json.loads(line).get("attachment", {}).get("type", "")
        for line in transcript.read_text().splitlines()
    ]
    assert not [kind for kind in kinds if "error" in kind]
    assert said_in(home, "cook") == [("user", "First."), ("assistant", "One.")]
    with serving(home):
        wait_until(lambda: not spool.waiting(home))
        said = [
            ("user", "First."),
            ("assistant", "One."),
            ("user", "Second."),
            ("assistant", "Two."),
        ]
        assert said_in(home, "cook") == said


def spooled(home: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in spool.waiting(home)]


@pytest.mark.parametrize("scene", ["printed", "filled"])
def test_the_client_still_sends_what_was_recorded(tmp_path: Path, scene: str) -> None:
    """When this fails, record anew (``python -m tests.claude``) and see what the hooks make of it."""
    record(scene, bundled(), tmp_path / "ana", tmp_path / "recorded")
    now = {one.shape for one in of_scene(tmp_path / "recorded" / scene)}
    assert now == {one.shape for one in of_scene(RECORDED / scene)}


@pytest.mark.parametrize("folder", ["", "config/claude"])
def test_claude_code_finds_nothing_to_warn_of_in_the_plugin(folder: str, tmp_path: Path) -> None:
    root = program().parents[3]
    claude = Claude(bundled(), tmp_path / "person", tmp_path / "project", "http://127.0.0.1:9")
    ended = subprocess.run(
        [claude.program, "plugin", "validate", root / folder],
        env=claude.env_of_its_own(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    # What its catalog of plugins would like besides is told as "plugin directory warning".
    assert not re.search(r"Found \d+ warning", ended.stdout), ended.stdout
    assert "Validation passed" in ended.stdout
