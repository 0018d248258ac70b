"""What the command line does without a server."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from pps import __version__
from pps.interfaces.cli.main import build
from tests.integration.interfaces.serving import clean_env, pps

COMMANDS = [
    "init",
    "entity create",
    "entity list",
    "entity show",
    "entity archive",
    "entity delete",
    "entity token",
    "route add",
    "route list",
    "route remove",
    "router create",
    "router list",
    "router revoke",
    "task claim",
    "task extend",
    "task complete",
    "task fail",
    "task list",
    "remember",
    "recall",
    "ambient",
    "import",
    "export",
    "watch add",
    "watch list",
    "watch remove",
    "anchors list",
    "anchors get",
    "anchors search",
    "anchors save",
    "anchors delete",
    "anchors resync",
    "anchors import",
    "anchors history",
    "anchors revert",
    "correct",
    "edits",
    "undo",
    "nodes",
    *(f"feature {name}" for name in ("disable", "enable", "list")),
    "timeline",
    "turns",
    "get",
    "forget",
    "forgotten",
    "restore",
    "jobs list",
    "jobs show",
    "jobs retry",
    "jobs drop",
    "stats",
    "overview",
    "rebuild",
    "move",
    "publish",
    "upgrade",
    "why",
    "reindex",
    "reembed",
    "serve",
    "stop",
    "histogram",
    "status",
    "config",
    "haven",
    "help",
    "open",
    "around",
    "changes",
    "topics",
    "perspectives",
    "calibrate",
    "detect",
    "mcp",
    "doctor",
    "demo",
    "verify-isolation",
    "profiles",
    "event",
    "update",
    "append",
    "history",
    "costs",
    "injected",
    "rank",
    "ask",
    "graph-all",
    "session context",
    "session usage",
    "workload",
    "drift",
    "indexes",
    "records search",
    "schema",
    *(f"pack {name}" for name in ("check", "enable", "list", "show")),
    *(
        f"records {name}"
        for name in ("delete", "get", "list", "move", "relate", "save", "unrelate")
    ),
    *(
        f"squad {name}"
        for name in ("add", "create", "delete", "import", "list", "remove", "show", "token")
    ),
    "extract",
    "hooks install",
    "hooks uninstall",
    "hooks status",
    "merges list",
    "merges apply",
    "merges undo",
]
WITHOUT_JSON = {"serve", "mcp"}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return clean_env(tmp_path / "home")


def _helps(group: click.Group, prefix: str = "") -> dict[str, str]:
    found = {}
    for name, below in group.commands.items():
        if isinstance(below, click.Group):
            found |= _helps(below, f"{prefix}{name} ")
        else:
            found[prefix + name] = below.get_help(
                below.make_context(name, [], resilient_parsing=True)
            )
    return found


def test_every_command_is_there_and_teaches_with_an_example() -> None:
    helps = _helps(build())
    assert sorted(helps) == sorted(COMMANDS), "COMMANDS in this file lists every command"
    for name, text in helps.items():
        assert "Example" in text or name == "init", name
        assert ("--json" in text) != (name in WITHOUT_JSON), name


def test_help_imports_nothing_heavy(env: dict[str, str]) -> None:
    code = (
        "import sys; from pps.interfaces.cli.main import build; build()\n"
        "heavy = {'pydantic', 'mcp', 'starlette', 'uvicorn', 'chromadb', 'graphiti_core', 'numpy', 'rich.progress'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert ast.literal_eval(found.stdout) == []


def test_the_version_is_told(env: dict[str, str]) -> None:
    assert pps(env, "--version").stdout == f"pps {__version__}\n"


def test_init_writes_the_settings_once(env: dict[str, str]) -> None:
    home = Path(env["PPS_HOME"])
    first = pps(env, "init")
    assert first.returncode == 0, first.stderr
    assert (home / "pps.toml").stat().st_mode & 0o777 == 0o600
    (home / "pps.toml").write_text("store = 'embedded'\n")
    assert pps(env, "init").returncode == 0
    assert (home / "pps.toml").read_text() == "store = 'embedded'\n"


def test_a_wrong_setting_is_one_line_and_exit_code_2(env: dict[str, str]) -> None:
    ended = pps({**env, "PPS_EMBEDER__NAME": "e5"}, "init")
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "embeder" in ended.stderr


def test_stop_without_a_server_says_so(env: dict[str, str]) -> None:
    ended = pps(env, "serve", "--stop")
    assert (ended.returncode, ended.stdout) == (0, "No server is running.\n")


def test_profiles_are_listed_with_a_description(env: dict[str, str]) -> None:
    ended = pps(env, "profiles")
    assert ended.returncode == 0, ended.stderr
    assert any(
        line.startswith("default ") and len(line.split()) > 3 for line in ended.stdout.splitlines()
    )


def test_a_profile_of_ones_own_is_listed_and_a_mistake_in_it_is_one_line_that_names_file_and_field(
    env: dict[str, str],
) -> None:
    file = Path(env["PPS_HOME"]) / "profiles" / "mine.toml"
    file.parent.mkdir(parents=True, mode=0o700)
    own = 'description = "Words alone"\n[channels.facts]\nperspectives = { bm25 = 1.0 }\n'
    file.write_text(own)
    listed = pps(env, "profiles", "--json")
    assert listed.returncode == 0, listed.stderr
    [mine] = [one for one in json.loads(listed.stdout) if one["name"] == "mine"]
    assert (mine["origin"], mine["description"]) == ("yours", "Words alone")
    assert mine["channels"] == {"facts": {"fusion": "rrf", "perspectives": {"bm25": 1.0}}}
    assert mine["filters"] == {}
    file.write_text(f'{own}[filters]\ntags = ["work"]\nsince = 2026-01-01\n')
    [mine] = [
        one for one in json.loads(pps(env, "profiles", "--json").stdout) if one["name"] == "mine"
    ]
    assert mine["filters"] == {"tags": ["work"], "since": "2026-01-01T00:00:00.000000Z"}
    [line] = [one for one in pps(env, "profiles").stdout.splitlines() if one.startswith("mine ")]
    assert line.endswith("Words alone (yours; only tags work; since 2026-01-01T00:00:00.000000Z)")
    for wrong, field in (
        ("weigth", "channels.facts"),
        ("depth", "channels.facts"),
        ("[filters]\nroles", "filters"),
    ):
        file.write_text(f"{own}{wrong} = 0\n")
        ended = pps(env, "profiles")
        assert (ended.returncode, ended.stderr) == (0, "")
        [line] = [line for line in ended.stdout.splitlines() if line.startswith("mine ")]
        assert f"refused: {file}: {field}.{wrong.split()[-1]}: " in line


def test_a_server_that_cannot_start_is_said_with_the_reason(env: dict[str, str]) -> None:
    home = Path(env["PPS_HOME"])
    home.mkdir(mode=0o700)
    (home / "registry.db").write_bytes(b"no database" * 500)
    ended = pps(env, "entity", "list")
    assert ended.returncode == 1
    assert "could not start" in ended.stderr
    assert "registry.db" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("recall", "ana"), "missing argument 'QUERY'"),
        (("entity", "token"), "NAME: give it, or --operator"),
        (("recall", "ana", "x", "--limit", "ten"), "--limit"),
        (("nonesuch",), "no such command 'nonesuch'"),
        (("entity", "token", "ana", "--operator"), "NAME: is not taken with --operator"),
        (
            ("recall", "ana", "x", "--as-of", "soon"),
            "--as-of 'soon': is not a time; give such as 2026-03-07",
        ),
        (("remember", "ana", "x", "--given", "absent.json"), "--given: absent.json cannot be read"),
        (("hooks", "install", "--scope", "project", "--project", "absent"), "no folder at absent"),
    ],
)
def test_wrong_usage_is_one_line_and_json_for_programs(
    env: dict[str, str], arguments: tuple[str, ...], words: str
) -> None:
    ended = pps(env, *arguments)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert ended.stderr.startswith("pps: ")
    assert words in ended.stderr
    said = json.loads(pps(env, *arguments, "--json").stdout)
    assert said["error"]["code"] == "invalid_request"
    assert words in said["error"]["message"]


@pytest.mark.parametrize("arguments", [("jobs", "drop", "ana", "17"), ("entity", "delete", "ana")])
def test_what_is_given_up_for_good_is_not_given_up_where_nobody_can_be_asked(
    env: dict[str, str], arguments: tuple[str, ...]
) -> None:
    ended = pps(env, *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "pps: --yes: is needed where nobody can be asked\n"
    said = json.loads(pps(env, *arguments, "--json").stdout)
    assert said["error"] == {
        "code": "invalid_request",
        "message": "--yes: is needed where nobody can be asked",
        "retryable": False,
    }


def test_a_group_without_a_command_prints_its_help(env: dict[str, str]) -> None:
    ended = pps(env, "entity")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Commands:" in ended.stderr


def test_a_data_folder_that_cannot_be_made_is_said_in_one_line(
    env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    below = {**env, "PPS_HOME": str(tmp_path / "file" / "home")}
    for arguments in (
        ("init",),
        ("doctor", "--json"),
        ("verify-isolation", "--json"),
        ("serve", "--stop"),
    ):
        ended = pps(below, *arguments)
        assert ended.returncode != 0
        assert str(tmp_path / "file") in ended.stdout + ended.stderr
        assert ended.stderr.count("\n") <= 1
        assert "Error:" not in ended.stderr
        assert "--json" not in arguments or json.loads(ended.stdout)


def test_doctor_names_a_data_folder_that_cannot_be_made(
    env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    ended = pps({**env, "PPS_HOME": str(tmp_path / "file")}, "doctor")
    assert ended.returncode == 1
    assert f"BAD  data folder: {tmp_path / 'file'} cannot be made" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("profiles",), 1), (("profiles", "--json"), 1), (("--help",), 1), (("recall", "--json"), 2)],
)
def test_an_output_that_cannot_be_written_is_one_line(
    env: dict[str, str], arguments: tuple[str, ...], code: int
) -> None:
    command = [sys.executable, "-m", "pps", *arguments]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command,
            env=env,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (ended.returncode, ended.stderr.count("\n")) == (code, 1), ended.stderr
    assert ended.stderr.startswith("pps: ")
    assert code == 2 or "No space left on device" in ended.stderr


@pytest.mark.parametrize("arguments", [("profiles", "--json"), ("--help",)])
def test_nothing_is_said_when_the_reader_of_a_pipe_has_enough(
    env: dict[str, str], arguments: tuple[str, ...]
) -> None:
    command = [sys.executable, "-m", "pps", *arguments]
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_without_a_stdout_a_command_does_its_work(env: dict[str, str]) -> None:
    command = ["sh", "-c", '"$0" -m pps init >&-', sys.executable]
    ended = subprocess.run(
        command, env=env, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (Path(env["PPS_HOME"]) / "pps.toml").exists()


def without_rights(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that may do what its user may, and no more, also where that is root."""
    held = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    command = [*held, sys.executable, "-m", "pps", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("command", ["install", "uninstall", "status"])
def test_settings_that_may_not_be_looked_at_are_one_line_with_what_to_do(
    env: dict[str, str], tmp_path: Path, command: str
) -> None:
    file = tmp_path / "claude" / "settings.json"
    file.parent.mkdir(mode=0)
    ended = without_rights({**env, "CLAUDE_CONFIG_DIR": str(file.parent)}, "hooks", command)
    file.parent.chmod(0o700)
    assert (ended.returncode, ended.stdout) == (1, "")
    said = f"pps: {file} cannot be read (Permission denied): check its permissions and those of its folder\n"
    assert ended.stderr == said


def test_profiles_that_may_not_be_looked_at_are_not_taken_for_none(env: dict[str, str]) -> None:
    folder = Path(env["PPS_HOME"]) / "profiles"
    folder.mkdir(parents=True, mode=0)
    ended = without_rights(env, "profiles")
    folder.chmod(0o700)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert (
        ended.stderr
        == f"pps: {folder}: cannot be read (Permission denied): check its permissions\n"
    )
