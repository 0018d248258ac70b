"""The command line and its server, as a person uses them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pps import __version__
from pps.server import runfile, stop
from tests.integration.interfaces.serving import Served, clean_env, pps, serving, wait_for_run_file
from tests.waiting import PATIENCE_S, wait_until

ROOT = Path(__file__).parents[3]


def _json(ended: subprocess.CompletedProcess[str]) -> object:
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_an_entity_is_made_listed_shown_archived_and_deleted(served: Served) -> None:
    made = _json(served.pps("entity", "create", "cara", "--json"))
    assert made["is_new"] is True
    assert made["token"].startswith("pps_e_")
    assert made["clients"]["json"]["mcpServers"]["pps-cara"]["args"][-3:] == [
        "mcp",
        "--entity",
        "cara",
    ]
    again = _json(served.pps("entity", "create", "cara", "--json"))
    assert (again["is_new"], "token" in again) == (False, False)
    assert "cara" in served.pps("entity", "list").stdout
    assert "claude mcp add pps-cara" in served.pps("entity", "show", "cara").stdout
    token = served.pps("entity", "token", "cara").stdout.strip()
    assert token.startswith("pps_e_")
    assert served.pps("entity", "token", "cara", "--revoke").stdout == "2 revoked.\n"
    assert served.pps("entity", "token", "--operator").stdout.startswith("pps_o_")
    assert served.pps("entity", "archive", "cara").returncode == 0
    assert "cara" not in served.pps("entity", "list").stdout
    assert "cara" in served.pps("entity", "list", "--archived").stdout
    assert served.pps("entity", "archive", "cara", "--undo").returncode == 0
    refused = served.pps("entity", "delete", "cara")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert served.pps("entity", "delete", "cara", "--yes").returncode == 0
    assert "cara" not in served.pps("entity", "list").stdout


def test_the_printed_configuration_works_as_it_stands(served: Served) -> None:
    made = _json(served.pps("entity", "create", "pasted", "--json"))
    server = made["clients"]["json"]["mcpServers"]["pps-pasted"]
    request = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    command = [server["command"], *server["args"]]
    ended = subprocess.run(
        command,
        env={**served.env, **server["env"]},
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def test_a_profile_of_ones_own_answers_beside_a_running_server_and_a_mistake_is_told_in_one_line(
    served: Served,
) -> None:
    served.create("profiled")
    likes = {"subject": "Dora", "relation": "LIKES"}
    facts = [{**likes, "object": one, "text": f"Dora likes {one}."} for one in ("rye", "oats")]
    served.link.call("remember", "profiled", {"content": "Bread.", "facts": facts})
    folder = served.home / "profiles"
    folder.mkdir()
    own = (
        'description = "Words"\n[channels.facts]\nperspectives = { bm25 = 1.0 }\n[limits]\nfacts = '
    )
    (folder / "mine.toml").write_text(f"{own}1\n")

    found = _json(
        served.pps("recall", "profiled", "Dora likes oats", "--profile", "mine", "--json")
    )

    assert (found["profile"], list(found["channels"])) == ("mine", ["facts"])
    [hit] = found["channels"]["facts"]["hits"]
    assert (hit["text"], hit["ranks"]) == ("Dora likes oats.", {"bm25": 1})
    (folder / "wrong.toml").write_text(f"{own}500\n")
    wrong = served.pps("recall", "profiled", "oats", "--profile", "wrong")
    (folder / "wrong.toml").unlink()
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1), wrong.stderr
    assert f"{folder / 'wrong.toml'}: limits.facts: " in wrong.stderr
    unknown = served.pps("recall", "profiled", "oats", "--profile", "gone")
    assert (unknown.returncode, unknown.stderr.count("\n")) == (2, 1)
    assert "--profile 'gone': must be one of" in unknown.stderr
    assert "mine" in unknown.stderr


def test_a_text_is_remembered_and_recalled(served: Served, tmp_path: Path) -> None:
    served.create("dora")
    given = tmp_path / "given.json"
    facts = [
        {"subject": "Dora", "relation": "LIKES", "object": "rye", "text": "Dora likes rye bread."}
    ]
    given.write_text(json.dumps({"nodes": [{"name": "Dora", "kind": "Person"}], "facts": facts}))
    kept = served.pps(
        "remember", "dora", "-", "--given", str(given), "--tag", "food", given="Rye bread it is."
    )
    assert kept.returncode == 0, kept.stderr
    assert kept.stdout.startswith("Remembered.")
    found = _json(
        served.pps("recall", "dora", "bread", "--channels", "facts,nodes", "--limit", "2", "--json")
    )
    assert found["channels"]["facts"]["hits"][0]["text"] == "Dora likes rye bread."
    assert "Dora likes rye bread." in served.pps("recall", "dora", "bread").stdout
    assert "rye" in served.pps("ambient", "dora", "bread for breakfast").stdout
    assert served.pps("ambient", "dora", "--startup").stdout
    assert "Dora likes rye bread." in served.pps("timeline", "dora", "--about", "Dora").stdout
    assert "turns 1" in served.pps("stats", "dora").stdout
    uuid = found["channels"]["facts"]["hits"][0]["id"]
    assert "LIKES" in served.pps("get", "dora", uuid, "--json").stdout
    assert "Would erase" in served.pps("forget", "dora", uuid).stdout
    assert "Erased" in served.pps("forget", "dora", uuid, "--yes").stdout
    gone = served.pps("get", "dora", uuid)
    assert gone.returncode == 3
    assert gone.stderr.startswith(f"pps: ID {uuid!r}: not found; `pps recall`")


def test_anchors_are_saved_found_and_imported(served: Served, tmp_path: Path) -> None:
    served.create("edda")
    saved = served.pps(
        "anchors", "save", "edda", "Sourdough", "-", given="# Bread\n\nFlour, water, salt."
    )
    assert saved.returncode == 0, saved.stderr
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "tea.md").write_text("# Tea\n\nGreen, eighty degrees.")
    assert "1 saved" in served.pps("anchors", "import", "edda", str(tmp_path / "notes")).stdout
    assert (
        "0 saved, 1 unchanged"
        in served.pps("anchors", "import", "edda", str(tmp_path / "notes")).stdout
    )
    assert served.pps("anchors", "list", "edda").stdout.count("\n") == 2
    assert "sourdough" in served.pps("anchors", "search", "edda", "flour").stdout
    (served.home / "entities" / "edda" / "anchors" / "by-hand.md").write_text(
        "# Hand\n\nWritten by hand."
    )
    assert "1 indexed" in served.pps("anchors", "resync", "edda").stdout
    assert served.pps("anchors", "delete", "edda", "sourdough").returncode == 0
    assert served.pps("anchors", "delete", "edda", "sourdough").returncode == 3
    assert served.pps("anchors", "import", "edda", str(tmp_path / "absent")).returncode == 2


def test_a_conversation_is_imported_once(served: Served, tmp_path: Path) -> None:
    served.create("finn")
    file = tmp_path / "talk.jsonl"
    file.write_text(
        "\n".join(json.dumps({"content": f"Line {n}", "session": "s"}) for n in range(30))
    )
    dry = served.pps("import", "finn", str(file), "--dry-run")
    assert "would store 30, 0 known already" in dry.stdout
    assert "30 stored, 0 known already" in served.pps("import", "finn", str(file)).stdout
    assert "0 stored, 30 known already" in served.pps("import", "finn", str(file)).stdout
    file.write_text('{"content": "x", "surprise": 1}\n')
    refused = served.pps("import", "finn", str(file))
    assert refused.returncode == 1
    assert "talk.jsonl:1" in refused.stdout
    assert served.pps("import", "finn", str(tmp_path / "absent")).returncode == 2
    assert "indexed" in served.pps("reindex", "finn").stdout
    assert "indexed" in served.pps("reembed", "finn").stdout


def test_errors_are_one_line_with_what_to_do_next(served: Served) -> None:
    for arguments, code, words in (
        (("stats", "nobody"), 3, "pps entity create"),
        (("recall", "nobody", "x"), 3, "pps entity list"),
        (("entity", "create", "Not-A Name"), 2, "NAME 'Not-A Name': must match [a-z]"),
        (("entity", "create", "Not-A Name"), 2, "'not_a_name' would do"),
        (("remember", "nobody", ""), 2, "TEXT '': "),
        (("ambient", "nobody"), 3, "pps entity list"),
        (("watch", "list", "nobody"), 3, "pps entity list"),
    ):
        ended = served.pps(*arguments)
        assert ended.returncode == code, ended.stderr
        assert ended.stdout == ""
        assert ended.stderr.count("\n") == 1
        assert words in ended.stderr
        said = json.loads(served.pps(*arguments, "--json").stdout)
        assert set(said["error"]) == {"code", "message", "retryable"}


def test_a_text_that_is_not_utf_8_is_refused_by_name(served: Served) -> None:
    served.create("lea")
    for given, text in ((b"", b"caf\xe9"), (b"caf\xe9", b"-")):
        command = [sys.executable, "-m", "pps", "remember", "lea", text]
        env = {**served.env, "PYTHONUTF8": "1"}
        ended = subprocess.run(
            command, env=env, input=given, capture_output=True, timeout=100, check=False
        )
        assert ended.returncode == 2
        assert ended.stderr == b"pps: text: is not UTF-8; convert it first, such as with iconv\n"


def test_files_whose_names_are_not_utf_8_are_named_and_stand_in_no_others_way(
    served: Served, tmp_path: Path
) -> None:
    served.create("ines")
    notes = tmp_path / "notes"
    folders = (
        notes,
        Path(os.fsdecode(bytes(notes) + b"/\xfcber")),
        served.home / "entities" / "ines" / "anchors",
    )
    for folder in folders:
        folder.mkdir(exist_ok=True)
        Path(os.fsdecode(bytes(folder) + b"/gr\xfcn.md")).write_text("# Green\n\nTea.")
    (notes / "black.md").write_text("# Black\n\nTea.")
    followed = _json(served.pps("watch", "add", "ines", str(notes), "--json"))
    assert followed["added"] == 1
    assert {one["what"]: one["why"] for one in followed["skipped"]} == {
        "gr\ufffdn.md": "its name is not UTF-8",
        "\ufffdber/gr\ufffdn.md": "its name is not UTF-8",
    }
    resynced = _json(served.pps("anchors", "resync", "ines", "--json"))
    assert [one["what"] for one in resynced["skipped"]] == ["gr\ufffdn.md"]


def test_a_pack_for_a_turn_needs_to_know_what_is_talked_about(served: Served) -> None:
    served.create("lea")
    ended = served.pps("ambient", "lea")
    assert ended.returncode == 2
    assert ended.stderr.startswith("pps: CONTEXT '': ")
    assert served.pps("ambient", "lea", "--startup").returncode == 0


def test_every_file_that_the_server_makes_is_private_to_its_user(served: Served) -> None:
    served.create("lea")
    assert served.pps("remember", "lea", "The oven runs hot.").returncode == 0
    made = list((served.home / "entities" / "lea").rglob("*"))
    assert len(made) > 10
    assert [str(path) for path in made if path.stat().st_mode & 0o077] == []


def test_doctor_looks_at_everything(served: Served) -> None:
    served.create("gina")
    ended = served.pps("doctor")
    assert ended.returncode == 0, ended.stdout
    for check in ("python", "settings", "data folder", "server", "entity gina"):
        assert f"ok   {check}" in ended.stdout
    held = served.pps("doctor", "--offline")
    assert held.returncode == 1
    assert f"process {served.run.pid}" in held.stdout
    assert "pps serve --stop" in held.stdout


def test_doctor_offline_opens_the_files_itself(alone: dict[str, str]) -> None:
    assert pps(alone, "entity", "create", "ana").returncode == 0
    assert pps(alone, "serve", "--stop").returncode == 0
    ended = pps(alone, "doctor", "--offline")
    assert ended.returncode == 0, ended.stdout
    assert "ok   entity ana" in ended.stdout
    assert runfile.read(Path(alone["PPS_HOME"])) is None


def test_the_readmes_program_runs_when_its_commands_have_run(alone: dict[str, str]) -> None:
    program = (
        (ROOT / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    )
    assert pps(alone, "entity", "create", "ana").returncode == 0
    assert pps(alone, "serve", "--stop").returncode == 0
    command = [sys.executable, "-c", program]
    ended = subprocess.run(
        command, env=alone, capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "Priya moved to Lisbon in March." in ended.stdout


def test_the_script_is_the_same_command(served: Served) -> None:
    script = [sys.executable, str(ROOT / "scripts" / "create_entity.py"), "hans"]
    made = subprocess.run(
        script, env=served.env, capture_output=True, text=True, timeout=60, check=False
    )
    assert made.returncode == 0, made.stderr
    assert "pps hooks install --entity hans" in made.stdout
    assert "hans" in served.pps("entity", "list").stdout
    bad = subprocess.run(
        [*script[:2], "Hans"],
        env=served.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert bad.returncode == 2


def test_a_second_server_by_hand_is_refused_and_names_the_first(served: Served) -> None:
    ended = served.pps("serve")
    assert ended.returncode == 4
    assert f"process {served.run.pid}" in ended.stderr


def test_a_server_by_hand_takes_over_from_one_started_by_need(alone: dict[str, str]) -> None:
    home = Path(alone["PPS_HOME"])
    assert pps(alone, "entity", "create", "ana").returncode == 0
    first = wait_for_run_file(home)
    assert first.auto
    with serving(home) as served:
        assert served.run.pid != first.pid
        assert not served.run.auto
        assert "ana" in served.pps("entity", "list").stdout


def test_a_newer_client_drains_an_older_server(alone: dict[str, str]) -> None:
    home = Path(alone["PPS_HOME"])
    assert pps(alone, "entity", "create", "ana").returncode == 0
    old = wait_for_run_file(home)
    values = json.loads(runfile.run_file(home).read_text())
    runfile.run_file(home).write_text(json.dumps({**values, "version": "0.0.9"}))
    assert pps(alone, "entity", "list").returncode == 0
    new = wait_for_run_file(home)
    assert new.pid != old.pid
    assert new.version == __version__


def test_a_killed_server_is_replaced_and_nothing_acknowledged_is_lost(
    alone: dict[str, str],
) -> None:
    home = Path(alone["PPS_HOME"])
    assert pps(alone, "entity", "create", "ana").returncode == 0
    for number in range(3):
        assert pps(alone, "remember", "ana", f"Acknowledged {number}.").returncode == 0
        os.kill(wait_for_run_file(home).pid, signal.SIGKILL)
    stats = pps(alone, "stats", "ana", "--json")
    assert (stats.returncode, stats.stderr) == (0, "")
    assert json.loads(stats.stdout)["turns"] == 3
    found = json.loads(pps(alone, "recall", "ana", "acknowledged", "--json").stdout)
    assert len(found["channels"]["episodes"]["hits"]) == 3


def test_a_server_started_by_need_ends_when_idle(tmp_path: Path) -> None:
    home = tmp_path / "home"
    env = clean_env(home, PPS_SERVER__IDLE_STOP_S="5")
    try:
        assert pps(env, "entity", "create", "ana").returncode == 0
        assert wait_for_run_file(home).auto
        wait_until(lambda: runfile.read(home) is None)
    finally:
        stop(home)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_in_order(tmp_path: Path, number: int) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    command = [sys.executable, "-m", "pps", "serve"]
    with subprocess.Popen(
        command, env=clean_env(home), stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for_run_file(home)
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    assert runfile.read(home) is None


def test_what_a_memory_holds_does_not_act_on_the_terminal(served: Served) -> None:
    served.pps("entity", "create", "loud")
    hostile = "The\x1b[2J oven\x1b]0;owned\x07 runs\u202e hot\x9b1m \u200btoday."
    kept = _json(served.pps("remember", "loud", "-", "--json", given=hostile))

    for command in (
        ("recall", "loud", "oven"),
        ("ambient", "loud", "the oven"),
        ("get", "loud", kept["turn_id"]),
    ):
        shown = served.pps(*command)
        assert "The oven runs hot today." in shown.stdout, shown.stderr
        assert not {"\x1b", "\x9b", "\x07", "\u202e", "\u200b"} & set(shown.stdout)
    whole = served.pps("get", "loud", kept["turn_id"], "--json")
    assert not {"\x1b", "\x9b", "\x07", "\u202e", "\u200b"} & set(whole.stdout)
    assert _json(whole)["items"][0]["content"] == hostile


def test_installing_hooks_offers_a_program_that_is_there_with_its_command_and_what_it_would_take(
    served: Served, tmp_path: Path
) -> None:
    served.create("offered")
    (tmp_path / "codex").write_text("#!/bin/sh\n")
    (tmp_path / "codex").chmod(0o755)
    env = {**served.env, "PATH": str(tmp_path)}
    install = (
        "hooks",
        "install",
        "--scope",
        "project",
        "--project",
        str(tmp_path),
        "--entity",
        "offered",
    )
    offer = "codex can read what is said for facts, on your own login: `pps hooks install --entity offered --extract"
    before = pps(env, *install).stdout
    assert f"{offer} codex`." in before
    assert "would take" not in before
    served.link.call("remember", "offered", {"content": "I keep bees.", "extraction": "given"})
    assert "A day of your last week would take about" in pps(env, *install).stdout
    without = pps({**env, "PATH": str(tmp_path / "none")}, *install).stdout
    assert "can read what is said" not in without
    assert "on your PATH a model finds more" in without
