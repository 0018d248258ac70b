"""The real Claude Code finds the facts in its own sessions: what one session told is known to the next."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pps.ingest.extraction import MARK
from tests.acceptance.test_claude_code import given, ours, said_in
from tests.claude.client import Claude, bundled
from tests.claude.model import Step, TalkingModel, says, talking_model
from tests.integration.interfaces.serving import Served, serving
from tests.waiting import wait_until

pytestmark = [pytest.mark.claude, pytest.mark.timeout(300)]
FACT = {
    "subject": "Mara",
    "relation": "LIVES_IN",
    "object": "Oslo",
    "text": "Mara lives in Oslo.",
    "turns": [1],
}
CORRECTED = {**FACT, "object": "Bergen", "text": "Mara lives in Bergen.", "invalidates": ["F1"]}


@contextmanager
def extracting(
    tmp_path: Path, script: dict[str, list[Step]], program: Path | None
) -> Iterator[tuple[Served, Claude, TalkingModel]]:
    """Run a server whose entity ``cook`` has its turns read by ``claude``, and Claude Code with the hooks.

    ``program`` is what the server finds as ``claude``; None where it is not there when the turns are read.
    """
    home, person, programs = tmp_path / "home", tmp_path / "person", tmp_path / "programs"
    programs.mkdir()
    (programs / "claude").symlink_to(bundled())
    with talking_model(script) as model:
        claude = Claude(bundled(), person, tmp_path / "kitchen", model.url)
        theirs = {
            **claude.env_of_its_own(),
            "PATH": f"{programs}:/usr/bin:/bin",
            "PPS_LOG_LEVEL": "info",
        }
        with serving(home, **theirs) as served:
            served.create("cook")
            claude = Claude(
                bundled(), person, tmp_path / "kitchen", model.url, env=ours(served.env)
            )
            told = served.pps("hooks", "install", "--entity", "cook", "--extract", "claude")
            assert (told.returncode, told.stderr) == (0, "")
            if program is None:
                (programs / "claude").unlink()
            yield served, claude, model


def facts_in(pack: str) -> list[str]:
    """Return the lines of a pack, as Claude Code was given it, below its facts."""
    lines = pack.replace("\\n", "\n").splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith("## Facts"))
    rest = lines[begin + 1 :]
    end = next((at for at, line in enumerate(rest) if not line.startswith("- ")), len(rest))
    return rest[:end]


def test_a_fact_corrected_in_one_session_is_right_in_the_next(tmp_path: Path) -> None:
    script: dict[str, list[Step]] = {
        "My sister Mara": [[says("It is noted.")]],
        "No, Mara lives": [[says("It is put right.")]],
        "Where does Mara": [[says("In Bergen.")]],
        'lives in Oslo."}': [[says(json.dumps({"nodes": [], "facts": [FACT]}))]],
        'not in Oslo."}': [[says(json.dumps({"nodes": [], "facts": [CORRECTED]}))]],
    }
    with extracting(tmp_path, script, bundled()) as (served, claude, model):

        def timeline() -> str:
            return served.pps("timeline", "cook").stdout

        claude.prints("My sister Mara lives in Oslo.")
        wait_until(lambda: "Mara lives in Oslo." in timeline())
        claude.prints("No, Mara lives in Bergen, not in Oslo.")
        wait_until(lambda: "Mara lives in Bergen." in timeline())
        begun = len(model.asked)
        claude.prints("Where does Mara live now?")
        pack = given(model.asked[begun:])
        found = facts_in(pack)
        assert "Mara lives in Bergen." in found[0]
        for line in found:
            if "Mara lives in Oslo." in line:  # only with what it says of itself
                assert "superseded" in line or " to 20" in line
        current = next(
            line for line in served.pps("timeline", "cook").stdout.splitlines() if "Oslo." in line
        )
        assert "superseded" in current or " to 20" in current


def test_without_the_program_rules_read_and_the_next_session_is_told_why(tmp_path: Path) -> None:
    script: dict[str, list[Step]] = {
        "I live in Oslo": [[says("It is noted.")]],
        "Which city": [[says("Oslo.")]],
    }
    with extracting(tmp_path, script, None) as (served, claude, model):
        claude.prints("I live in Oslo.")
        wait_until(lambda: "I live in Oslo." in served.pps("timeline", "cook").stdout)
        begun = len(model.asked)
        claude.prints("Which city do I live in?")
        pack = given(model.asked[begun:])
        assert "I live in Oslo." in pack
        assert "'claude', which is set to read the turns, cannot be asked" in pack
        assert "hooks install" not in pack
        assert "rules read the turns meanwhile" in served.pps("doctor", "cook").stdout
        asked = [one for one in model.asked if MARK in json.dumps(one["messages"])]
        assert asked == []


def test_a_fact_of_one_session_is_in_the_pack_of_the_next_and_nothing_of_ours_ran_inside_the_extractor(
    tmp_path: Path,
) -> None:
    script: dict[str, list[Step]] = {
        "My sister Mara": [[says("It is noted.")]],
        "Which city": [[says("Oslo.")]],
        'lives in Oslo."}': [
            [says(json.dumps({"nodes": [], "facts": [FACT]}))]
        ],  # the last word of its prompt
    }
    home, person = tmp_path / "home", tmp_path / "person"
    with talking_model(script) as model:
        claude = Claude(bundled(), person, tmp_path / "kitchen", model.url)
        programs = tmp_path / "programs"
        programs.mkdir()
        (programs / "claude").symlink_to(bundled())
        theirs = {
            **claude.env_of_its_own(),
            "PATH": f"{programs}:/usr/bin:/bin",
            "PPS_LOG_LEVEL": "info",
        }
        with serving(home, **theirs) as served:
            served.create("cook")
            claude = Claude(
                bundled(), person, tmp_path / "kitchen", model.url, env=ours(served.env)
            )
            told = served.pps("hooks", "install", "--entity", "cook", "--extract", "claude")
            assert (told.returncode, told.stderr) == (0, "")
            assert "Facts are found by 'claude'." in told.stdout
            claude.prints("My sister Mara lives in Oslo.")
            wait_until(lambda: "Mara lives in Oslo." in served.pps("timeline", "cook").stdout)
            asked = [one for one in model.asked if MARK in json.dumps(one["messages"])]
            assert asked  # twice, where the answer came while the prompt was being read
            assert not any(one.get("tools") for one in asked)
            begun = len(model.asked)
            claude.prints("Which city is it?")
            pack = given(model.asked[begun:])
            assert "<memory-" in pack
            assert "Mara lives in Oslo" in pack
            wait_until(lambda: ("assistant", "Oslo.") in said_in(home, "cook"))
            assert served.pps("costs", "cook").stdout.count("claude: ") >= 1
        log = (home / "test-server.log").read_text()
        assert log.count("hook=SessionStart") == 2
        assert not [text for _, text in said_in(home, "cook") if MARK in text]
    for root in (person, home):
        left = [
            path
            for path in root.rglob("*")
            if path.is_file() and MARK.encode() in path.read_bytes()
        ]
        assert left == []
