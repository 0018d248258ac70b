"""``pps hooks`` as a person runs it: beside other people's hooks, and out again to the last byte."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pps.interfaces.cli.client_settings import hook_clients
from tests.integration.interfaces.serving import clean_env, pps

EVENTS = hook_clients()["claude"].events

OTHERS = b"""{
   "$schema": "https://json.schemastore.org/claude-code-settings.json",
   "model": "opus",
   "aKeyOfTomorrow": {"deep": [1, null, "\xc3\xa9"]},
   "permissions": {"allow": ["Bash(ls)"]},
   "hooks": {
      "Stop": [{"hooks": [{"type": "command", "command": "say done", "timeout": 9}]}],
      "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard.sh", "async": true}]}],
      "EventOfTomorrow": [{"hooks": [{"type": "http", "url": "http://localhost:1/x"}]}]
   }
}
"""
PRESETS = ("claude", "codex", "gemini", "ollama")
SCOPES = ("user", "project", "local")


@dataclass(frozen=True)
class Person:
    """Somebody with a home folder and a project, at a command line without a server."""

    home: Path
    project: Path
    env: dict[str, str]

    def hooks(self, *arguments: str) -> str:
        ended = pps(self.env, "hooks", *arguments, "--project", str(self.project))
        assert (ended.returncode, ended.stderr) == (0, "")
        return ended.stdout

    def settings(self, scope: str) -> Path:
        folder = self.home if scope == "user" else self.project
        return folder / ".claude" / ("settings.local.json" if scope == "local" else "settings.json")

    def states(self) -> dict[str, dict[str, Any]]:
        told = json.loads(self.hooks("status", "--json"))
        return {one["scope"]: one for one in told["scopes"]}


@pytest.fixture
def person(tmp_path: Path) -> Person:
    home, project = tmp_path / "someone", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    env = {
        name: value
        for name, value in clean_env(tmp_path / "pps").items()
        if name != "CLAUDE_CONFIG_DIR"
    }
    return Person(home, project, {**env, "HOME": str(home)})


@pytest.mark.parametrize("scope", ["user", "project"])
def test_hooks_go_in_beside_those_of_others_and_out_again_to_the_last_byte(
    person: Person, scope: str
) -> None:
    path = person.settings(scope)
    path.parent.mkdir()
    path.write_bytes(OTHERS)
    before = json.loads(OTHERS)
    assert person.hooks("install", "--scope", scope).startswith(f"{path} has the hooks now.\n")
    assert json.loads(person.hooks("install", "--scope", scope, "--json")) == {
        "settings": str(path),
        "changed": False,
        "entity": "",
        "events": list(EVENTS),
        "extract": "",
        "found": [name for name in PRESETS if shutil.which(name, path=person.env["PATH"])],
    }
    now = json.loads(path.read_bytes())
    assert {**now, "hooks": None} == {**before, "hooks": None}
    for event, groups in before["hooks"].items():
        assert now["hooks"][event][: len(groups)] == groups
    for event, client_event in EVENTS.items():
        ours = now["hooks"][event][-1]
        [command] = ours["hooks"]
        assert ours.get("matcher", "") == client_event.matcher
        assert (command["type"], command["timeout"]) == ("command", client_event.timeout_s)
        assert "pps_hook.py" in command["command"]
    assert set(now["hooks"]) == set(EVENTS) | set(before["hooks"])
    assert json.loads(person.hooks("uninstall", "--scope", scope, "--json")) == {
        "settings": str(path),
        "changed": True,
    }
    assert path.read_bytes() == OTHERS
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert person.hooks("uninstall", "--scope", scope) == f"{path} has no hooks of ours.\n"


def test_what_others_changed_meanwhile_stays_key_for_key(person: Person) -> None:
    path = person.settings("project")
    path.parent.mkdir()
    path.write_bytes(OTHERS)
    person.hooks("install", "--scope", "project")
    now = json.loads(path.read_bytes())
    now["model"] = "haiku"
    now["hooks"]["SessionEnd"].insert(0, {"hooks": [{"type": "command", "command": "say bye"}]})
    path.write_text(json.dumps(now))
    person.hooks("uninstall", "--scope", "project")
    wanted = json.loads(OTHERS)
    wanted["model"] = "haiku"
    wanted["hooks"]["SessionEnd"] = [{"hooks": [{"type": "command", "command": "say bye"}]}]
    assert json.loads(path.read_bytes()) == wanted


def test_the_status_tells_of_every_scope_before_between_and_after(person: Person) -> None:
    nothing = person.states()
    assert {scope: one["state"] for scope, one in nothing.items()} == dict.fromkeys(
        SCOPES, "not installed"
    )
    assert [one["settings"] for one in nothing.values()] == [
        str(person.settings(scope)) for scope in SCOPES
    ]
    person.hooks("install")
    person.settings("local").parent.mkdir()
    person.settings("local").write_text("{,}")
    between = person.states()
    assert [one["state"] for one in between.values()] == [
        "installed",
        "not installed",
        "unreadable",
    ]
    assert (between["user"]["entity"], between["user"]["missing"]) == ("", [])
    assert set(between["user"]["events"]) == set(EVENTS)
    lines = [line.split() for line in person.hooks("status").splitlines()]
    assert lines[:3] == [
        ["user", "installed", str(person.settings("user"))],
        ["project", "not", "installed", str(person.settings("project"))],
        ["local", "unreadable", str(person.settings("local"))],
    ]
    assert [line[0] for line in lines[3:]] == ["server", "spool"]
    moved = person.settings("user").read_text().replace("pps_hook.py", "gone/pps_hook.py")
    person.settings("user").write_text(moved)
    broken = person.states()["user"]
    assert broken["state"] == "broken"
    assert [Path(one).parts[-2:] for one in broken["missing"]] == [("gone", "pps_hook.py")]
    person.hooks("uninstall")
    assert not person.settings("user").exists()
    assert person.states()["user"]["state"] == "not installed"
