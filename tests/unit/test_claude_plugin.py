"""The hook program and the plugin that carries it: alone, quick to start, and the same as the settings."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pps import __version__
from pps.config import home_folder
from pps.core.errors import InvalidRequest
from pps.ingest.hook_events import SessionEvent, read_event
from pps.interfaces.cli.client_settings import hook_clients, program
from pps.server.runfile import RunFile
from tests.integration.hooks.acting import DEADLINE_S
from tests.waiting import PATIENCE_S

EVENTS = hook_clients()["claude"].events

PLUGIN = program().parent.parent


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pps_hook", program())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_program_imports_the_standard_library_only_and_little_of_it() -> None:
    tree = ast.parse(program().read_text())
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    modules = {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names == {"fcntl", "json", "os", "signal", "socket", "stat", "sys", "time", "sqlite3"}
    assert modules == {
        "__future__",
        "_blake2",
        "hashlib",
        "typing",
    }  # the second where the first is not there
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", program(), "Stop"],
        input=b"",
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    ).stderr.decode()
    assert not re.search(
        r"\| +(typing|pathlib|sqlite3|urllib|http|email|argparse|subprocess|site)\b", loaded
    )


def test_the_program_finds_the_data_folder_where_pps_puts_it(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert hook.home_folder("") == str(home_folder())
    monkeypatch.delenv("PPS_HOME")
    assert hook.home_folder("") == str(home_folder())
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert hook.home_folder("") == str(home_folder())
    assert hook.home_folder("~/x") == str(Path("~/x").expanduser())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "127.0.0.1", "::1"])  # noqa: S104 - compared
def test_the_program_reads_the_run_file_as_pps_does(hook: ModuleType, host: str) -> None:
    assert hook.LOOPBACK.get(host, host) == RunFile(1, host, 1, "", False, "").address


def test_each_event_has_the_deadline_that_the_settings_give_it(hook: ModuleType) -> None:
    assert set(hook.DEADLINES_S) == set(EVENTS)
    for event, client_event in EVENTS.items():
        assert hook.DEADLINES_S[event] <= client_event.timeout_s
        assert client_event.timeout_s - hook.DEADLINES_S[event] < 1


def test_each_event_has_the_seconds_that_were_promised(hook: ModuleType) -> None:
    assert hook.DEADLINES_S == {
        **DEADLINE_S,
        "SessionEnd": 30.0,
    }  # its detached part, that sends what is left


def test_the_program_refuses_by_itself_what_the_server_would_refuse_and_nothing_else(
    hook: ModuleType,
) -> None:
    least = {"id": "0" * 32, "at": 0.0, "event": "Stop", "session": "s"}
    bounded = {name for name, one in SessionEvent.model_fields.items() if one.annotation is str} - {
        "id",
        "text",
    }
    assert set(hook.MOST) == bounded
    for name, most in hook.MOST.items():
        for told, read in ((hook.check, ValueError), (read_event, InvalidRequest)):
            told({**least, name: "x" * most})
            with pytest.raises(read, match=name):
                told({**least, name: "x" * (most + 1)})
    for told, read in ((hook.check, ValueError), (read_event, InvalidRequest)):
        with pytest.raises(read, match="session"):
            told({**least, "session": ""})


def test_the_plugin_has_the_same_hooks_as_the_settings() -> None:
    hooks = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"]
    assert list(hooks) == list(EVENTS)
    for event, client_event in EVENTS.items():
        [group] = hooks[event]
        [command] = group["hooks"]
        assert group.get("matcher", "") == client_event.matcher
        assert command["timeout"] == client_event.timeout_s
        assert command["args"][:4] == ["-I", "-S", "${CLAUDE_PLUGIN_ROOT}/hooks/pps_hook.py", event]


def test_the_plugins_parts_name_each_other() -> None:
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    catalog = json.loads((PLUGIN / ".claude-plugin" / "marketplace.json").read_text())
    assert manifest["version"] == __version__
    assert [(one["name"], one["source"]) for one in catalog["plugins"]] == [
        (manifest["name"], "./")
    ]
    used = set(
        re.findall(r"\$\{user_config\.(\w+)\}", (PLUGIN / "hooks" / "hooks.json").read_text())
    )
    used |= set(re.findall(r"\$\{user_config\.(\w+)\}", (PLUGIN / ".mcp.json").read_text()))
    assert used == set(manifest["userConfig"])


def test_matchers_name_tools_that_do_something() -> None:
    before, after = (
        re.compile(EVENTS["PreToolUse"].matcher),
        re.compile(EVENTS["PostToolUse"].matcher),
    )
    for tool in ("Bash", "Edit", "Write", "NotebookEdit", "Agent"):
        assert before.search(tool)
        assert after.search(tool)
    for tool in ("Read", "Glob", "Grep", "TodoWrite", "BashOutput"):
        assert not after.search(tool)
    assert after.search("mcp__github__create_issue")
