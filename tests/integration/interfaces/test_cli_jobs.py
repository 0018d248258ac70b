"""The commands for jobs and imports where a language model reads: what they say, and that a wrong call changes nothing.

A real server, real commands, and a local HTTP server that speaks the models' protocol.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.outage import data, reading, until
from tests.integration.interfaces.serving import Served, serving
from tests.model_server import ModelServer, model_server
from tests.waiting import PATIENCE_S

PPS = Path(sys.executable).with_name("pps")
TOKENS_PER_DAY = 100_000


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("served") / "home"
    home.mkdir(mode=0o700)
    (home / "prices.toml").write_text(
        '["m"]\ninput_usd_per_million = 100.0\noutput_usd_per_million = 400.0\n'
    )
    settings = {
        **reading(model),
        "PPS_EXTRACTOR__TOKENS_PER_DAY": str(TOKENS_PER_DAY),
        "PPS_JOBS__ATTEMPTS": "1",
        "PPS_JOBS__BREAKER_FAILURES": "100",
    }
    with serving(home, **settings) as running:
        yield running


def states(served: Served, entity: str, ids: list[int]) -> list[str]:
    return [data(served, "job_status", entity, id=str(one))["state"] for one in ids]


def until_counted(served: Served, **counts: int) -> None:
    """Wait until that many turns of ana are in each of these states."""
    until(served, lambda: counts.items() <= data(served, "ingestion_stats").items())


def in_terminal(served: Served, *arguments: str) -> tuple[str, str]:
    """Run the installed command with its errors on a terminal; return what it wrote to stdout and to the terminal."""
    here, there = pty.openpty()
    env = {**served.env, "TERM": "xterm-256color", "COLUMNS": "100"}
    with subprocess.Popen(
        [PPS, *arguments], env=env, stdout=subprocess.PIPE, stderr=there, text=True
    ) as process:
        os.close(there)
        shown = b""
        while part := _read(here):
            shown += part
        said = process.communicate(timeout=PATIENCE_S)[0]
    os.close(here)
    assert process.returncode == 0, shown
    return said, shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # Linux says so when the other side is closed
        return b""


def test_failed_jobs_are_shown_dropped_and_retried_by_number_and_a_wrong_number_changes_nothing(
    served: Served, model: ModelServer
) -> None:
    served.create("ana")
    model.mode = "malformed"
    ids = [
        int(
            data(served, "remember", "ana", content=f"Ana likes Tea{number}.", wait="journal")[
                "job_id"
            ]
        )
        for number in range(4)
    ]
    until_counted(served, failed=4)
    one, two = str(ids[0]), str(ids[1])
    for arguments, code in (
        (("show", "ana", "99"), 3),
        (("retry", "ana", one, "99"), 3),
        (("drop", "ana", one, "99", "--yes"), 3),
        (("retry", "ana"), 2),
        (("drop", "ana", one, "--all", "--yes"), 2),
    ):
        refused = served.pps("jobs", *arguments)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (code, "", 1), (
            refused.stderr
        )
        assert refused.stderr.startswith("pps: ")
    refused = served.pps("jobs", "drop", "ana", one, "99", "--yes", "--json")
    assert (refused.returncode, json.loads(refused.stdout)["error"]["code"]) == (3, "not_found")
    assert served.pps("jobs", "drop", "ana", one, given="n\n").returncode == 2
    assert states(served, "ana", ids) == ["failed"] * 4

    assert f"Job {one} could not be taken in" in served.pps("jobs", "show", "ana", one).stdout
    (tried,) = [
        t
        for t in json.loads(served.pps("jobs", "show", "ana", one, "--json").stdout)["tried"]
        if t["error"]
    ]
    assert (tried["stage"], tried["outcome"], tried["tokens_in"] > 0) == ("read", "failed", True)
    assert served.pps("jobs", "drop", "ana", one, "--yes").stdout == "1 dropped.\n"
    model.mode = "good"
    assert json.loads(served.pps("jobs", "retry", "ana", two, "--json").stdout) == {
        "retried": [ids[1]],
        "entity": "ana",
    }
    until_counted(served, done=1)
    assert json.loads(served.pps("jobs", "drop", "ana", "--all", "--yes", "--json").stdout) == {
        "dropped": ids[2:],
        "entity": "ana",
    }
    assert states(served, "ana", ids) == ["dropped", "done", "dropped", "dropped"]
    assert served.pps("jobs", "retry", "ana", one).stdout == "1 retried.\n"
    until_counted(served, done=2, dropped=2)
    assert data(served, "stats", "ana")["turns"] == 4


def test_a_dry_run_counts_and_estimates_tokens_and_cost_and_changes_nothing(
    served: Served, model: ModelServer, tmp_path: Path
) -> None:
    served.create("ben")
    file = tmp_path / "talk.jsonl"
    file.write_text(
        "\n".join(json.dumps({"content": f"Ben owns Boat{n}.", "session": "s"}) for n in range(30))
    )
    asked, before = len(model.asked), data(served, "stats", "ben")
    counted = json.loads(served.pps("import", "ben", str(file), "--dry-run", "--json").stdout)
    estimate = counted["estimate"]
    assert (counted["stored"], counted["duplicates"], estimate["texts"]) == (30, 0, 30)
    assert estimate["tokens_in"] > 30 * 4_200
    assert estimate["tokens_out"] > 0
    assert estimate["cost_usd"] == pytest.approx(
        estimate["tokens_in"] * 1e-4 + estimate["tokens_out"] * 4e-4
    )
    assert estimate["days"] == -(
        -(estimate["tokens_in"] + estimate["tokens_out"]) // TOKENS_PER_DAY
    )
    dry = served.pps("import", "ben", str(file), "--dry-run")
    assert (dry.returncode, dry.stderr) == (0, "")
    assert "would store 30, 0 known already (dry run: nothing was stored)" in dry.stdout
    cost = f"${estimate['cost_usd']:.2f}, the budget of {estimate['days']} days"
    assert (
        f"{estimate['tokens_in']:,} tokens in and {estimate['tokens_out']:,} out, {cost}"
        in dry.stdout
    )
    assert len(model.asked) == asked
    assert data(served, "stats", "ben") == before


def test_an_import_that_a_model_reads_says_first_what_that_takes(
    served: Served, model: ModelServer, tmp_path: Path
) -> None:
    served.create("bea")
    file = tmp_path / "talk.jsonl"
    file.write_text(
        "\n".join(json.dumps({"content": f"Bea owns Boat{n}.", "session": "s"}) for n in range(3))
    )
    ended = served.pps("import", "bea", str(file), "--json")
    assert ended.returncode == 0
    estimate = (
        r"the language model would take some [\d,]+ tokens in and [\d,]+ out, \$.* days? .*\n"
    )
    assert re.fullmatch(estimate, ended.stderr)
    assert json.loads(ended.stdout)["stored"] == 3
    again = served.pps("import", "bea", str(file))
    assert again.stderr.startswith("the language model would take some 0 tokens in")


def test_an_import_shows_a_bar_on_a_terminal_and_none_in_a_pipe_or_beside_json(
    served: Served, tmp_path: Path
) -> None:
    served.create("cara")
    file = tmp_path / "talk.jsonl"
    file.write_text(
        "\n".join(
            json.dumps({"content": f"Cara owns Boat{n}.", "session": "s"}) for n in range(2_000)
        )
    )
    said, shown = in_terminal(served, "import", "cara", str(file), "--dry-run")
    assert "would store 2000" in said
    assert "━" in shown
    assert "%" in shown
    said, shown = in_terminal(served, "import", "cara", str(file), "--dry-run", "--json")
    assert (json.loads(said)["stored"], shown) == (2_000, "")
    piped = served.pps("import", "cara", str(file), "--dry-run")
    assert (piped.returncode, piped.stderr) == (0, "")
    assert "━" not in piped.stdout
