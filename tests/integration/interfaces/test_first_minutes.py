"""A stranger's first minutes: `pps init` asks two things, a new entity knows the person, an empty answer says what to do."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pps.interfaces.cli.main import build
from pps.operations.catalog import operations_for
from pps.operations.pages import EMPTY
from tests.integration.interfaces.serving import Served, clean_env, pps, serving

ARGUMENTS = {
    "recall": {"query": "tea"},
    "anchor_search": {"query": "tea"},
    "context_usage": {"session": "none"},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("first") / "home"
    assert pps(clean_env(home), "init", "--person", "Nadia Silva").returncode == 0
    with serving(home) as served:
        yield served


def on_a_terminal(env: dict[str, str], keys: str, *arguments: str) -> tuple[int, str]:
    """Run a command on a terminal on which ``keys`` are typed; return its exit code and all that was shown."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pps", *arguments]
    process = subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, keys.encode())
    shown = bytearray()
    with closing(os.fdopen(ours, "rb", buffering=0)) as terminal:
        while True:
            try:
                piece = terminal.read(65_536)
            except OSError:  # how a terminal without a program on the other side ends
                break
            if not piece:
                break
            shown += piece
    return process.wait(timeout=60), shown.decode()


def test_init_asks_for_the_name_and_the_zone_and_ends_with_the_next_command(tmp_path: Path) -> None:
    home = tmp_path / "home"
    env = clean_env(home, TZ="America/Chicago")
    code, shown = on_a_terminal(env, "Nadia Silva\nEurope/Lisbin\nEurope/Lisbon\n", "init")
    assert code == 0, shown
    assert shown.count("Your name") == 1
    assert "Your time zone [America/Chicago]" in shown
    assert "did you mean 'Europe/Lisbon'?" in shown
    assert "Next: pps entity create ana" in shown.splitlines()[-1]
    settings = (home / "pps.toml").read_text()
    assert '\nperson = "Nadia Silva"\n' in settings
    assert '\ntime_zone = "Europe/Lisbon"\n' in settings
    assert (home / "pps.toml").stat().st_mode & 0o777 == 0o600


def test_enter_twice_takes_no_name_and_the_zone_of_the_machine(tmp_path: Path) -> None:
    home = tmp_path / "home"
    code, shown = on_a_terminal(clean_env(home, TZ="America/Chicago"), "\n\n", "init")
    assert code == 0, shown
    settings = (home / "pps.toml").read_text()
    assert '\n# person = ""\n' in settings
    assert '\ntime_zone = "America/Chicago"\n' in settings


def test_giving_up_at_a_question_makes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    code, shown = on_a_terminal(clean_env(home), "Nadia\n\x04", "init")
    assert code != 0, shown
    assert not home.exists()


def test_a_folder_that_is_there_is_asked_nothing_and_kept(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert pps(clean_env(home), "init", "--person", "Nadia").returncode == 0
    before = (home / "pps.toml").read_bytes()
    code, shown = on_a_terminal(clean_env(home), "", "init")
    assert (code, "Your name" in shown) == (0, False)
    assert "New entities know you as Nadia." in shown
    assert (home / "pps.toml").read_bytes() == before
    refused = pps(clean_env(home), "init", "--person", "Omar")
    assert refused.returncode == 2
    assert "--person: is for a new data folder; change it in" in refused.stderr
    assert (home / "pps.toml").read_bytes() == before


@pytest.mark.parametrize("arguments", [(), ("--yes",), ("--json",)])
def test_without_a_terminal_or_with_yes_nothing_is_asked(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    ended = pps(clean_env(tmp_path / "plain"), "init", *arguments)
    assert (ended.returncode, "Your" in ended.stdout) == (0, False), ended.stderr
    if arguments:
        code, shown = on_a_terminal(clean_env(tmp_path / "asked"), "", "init", *arguments)
        assert (code, "Your" in shown) == (0, False)


@pytest.mark.parametrize(
    ("name", "why"),
    [("N" * 101, "must have at most 100 characters, has 101"), ("Na\ndia", "must be one line")],
)
def test_a_name_past_its_bounds_is_refused_and_nothing_is_made(
    tmp_path: Path, name: str, why: str
) -> None:
    home = tmp_path / "home"
    ended = pps(clean_env(home), "init", "--person", name)
    assert (ended.returncode, home.exists()) == (2, False)
    assert "--person: " in ended.stderr
    assert why in ended.stderr


def test_a_name_with_quotes_is_read_back_as_it_was_given(tmp_path: Path) -> None:
    env = clean_env(tmp_path / "home")
    name = 'Nadia "Nad" O\'Neil \\ 陈'
    assert pps(env, "init", "--person", name).returncode == 0
    assert json.loads(pps(env, "init", "--json").stdout)["person"] == name


def test_a_new_entity_is_made_in_five_lines_and_knows_the_person(served: Served) -> None:
    made = served.pps("entity", "create", "ana")
    assert made.returncode == 0, made.stderr
    assert len(made.stdout.splitlines()) == 5
    assert made.stdout.splitlines()[-1].startswith("Next: pps remember ana ")
    assert "My name is Nadia Silva." in served.pps("timeline", "ana").stdout
    assert served.pps("remember", "ana", "Nadia", "likes", "green", "tea.").returncode == 0
    assert served.pps("remember", "ana", "I moved to Porto.").returncode == 0
    around = served.pps("around", "ana", "Nadia").stdout
    assert "green tea" in around
    assert "Porto" in around, "what the person says of themselves is of the same node"
    again = served.pps("entity", "create", "ana")
    assert again.returncode == 0, again.stderr
    assert served.link.call("stats", "ana", {})["data"]["turns"] == 3, "told once"


def test_an_entity_made_without_a_person_is_told_nothing(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as served:
        served.create("bo")
        assert served.link.call("stats", "bo", {})["data"]["turns"] == 0


def test_each_empty_answer_says_what_to_do(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as served:
        served.create("bo")
        for name, text in EMPTY.items():
            answer = served.link.call(name, "bo", ARGUMENTS.get(name, {}))["text"]
            assert text in answer, name


def test_what_an_empty_answer_names_is_there() -> None:
    tools = operations_for("entity")
    commands = build().commands
    for name, text in EMPTY.items():
        assert name in tools
        quoted = re.findall(r"`([^`]+)`", text)
        assert any(one.startswith("pps ") for one in quoted), name
        for one in quoted:
            words = one.split()
            if words[0] != "pps":
                assert one in tools, one
                continue
            command = commands[words[1]]
            below = getattr(command, "commands", None)
            assert below is None or words[2] in below, one


def test_a_mistake_in_a_file_of_records_is_named_by_its_place(
    served: Served, tmp_path: Path
) -> None:
    served.create("cy")
    file = tmp_path / "records.json"
    file.write_text('{"records": [{"kind": "Event", "title": "One", "contents": "x"}]}')
    ended = served.pps("records", "save", "cy", "--file", str(file))
    assert ended.returncode == 2
    assert "--file records.0.contents: unknown argument" in ended.stderr
