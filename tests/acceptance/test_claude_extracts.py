"""The real Claude Code finds the facts in its own sessions: what one session told is known to the next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pps.ingest.extraction import MARK
from tests.acceptance.test_claude_code import given, ours, said_in
from tests.claude.client import Claude, bundled
from tests.claude.model import Step, says, talking_model
from tests.integration.hooks.conftest import eventually
from tests.integration.interfaces.serving import serving

pytestmark = [pytest.mark.claude, pytest.mark.timeout(300)]
FACT = {
    "subject": "Mara",
    "relation": "LIVES_IN",
    "object": "Oslo",
    "text": "Mara lives in Oslo.",
    "turns": [1],
}


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
            eventually(lambda: "Mara lives in Oslo." in served.pps("timeline", "cook").stdout, 60)
            asked = [one for one in model.asked if MARK in json.dumps(one["messages"])]
            assert asked  # twice, where the answer came while the prompt was being read
            assert not any(one.get("tools") for one in asked)
            begun = len(model.asked)
            claude.prints("Which city is it?")
            pack = given(model.asked[begun:])
            assert "<memory-" in pack
            assert "Mara lives in Oslo" in pack
            eventually(lambda: ("assistant", "Oslo.") in said_in(home, "cook"))
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
