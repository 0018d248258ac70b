"""`pps demo` is the story that the README shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pps.core.errors import InvalidRequest
from pps.interfaces.cli.demo import OWN_FOLDER, choose_folder
from pps.server import find
from tests.integration.interfaces.serving import clean_env, pps

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def without_measures(text: str) -> list[str]:
    """Return lines without what differs from run to run: times, sizes of packs, and what an ellipsis cuts."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [re.sub(r"\([\d.]+ m?s\)|\d+ tokens|\[[0-9a-f]*…?$", "", line).strip() for line in lines]


def test_the_demo_tells_what_the_readme_shows(tmp_path: Path) -> None:
    env = clean_env(tmp_path / "home", PPS_EMBEDDER__NAME="minilm")
    ended = pps(env, "demo")
    assert ended.returncode == 0, ended.stderr
    shown = README.split("```console\n")[1].split("```")[0]
    told = without_measures(ended.stdout)
    for line in without_measures(shown):
        assert line in told, line
    assert "LEAK" not in ended.stdout
    assert [line[:2] for line in ended.stdout.splitlines() if re.match(r"\d\. ", line)] == [
        f"{number}." for number in range(1, 6)
    ]


def test_the_readme_is_read_in_a_minute_and_begins_with_the_two_commands() -> None:
    lines = README.splitlines()
    assert len(lines) <= 110
    first = README.split("```bash\n")[1].split("```")[0]
    assert [line.split()[0] for line in first.splitlines()] == ["scripts/demo", "scripts/test"]


def test_the_demo_leaves_the_users_memories_alone_and_can_be_told_twice(tmp_path: Path) -> None:
    """The tutorials make a `mira` of the reader's own: the sample's must never be read into her."""
    env = {**clean_env(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    del env["PPS_HOME"]
    assert pps(env, "entity", "create", "mira").returncode == 0
    assert pps(env, "remember", "mira", "Ana moved to Lisbon.").returncode == 0
    try:
        for _ in range(2):
            ended = pps(env, "demo")
            assert ended.returncode == 0, ended.stderr
            folder = tmp_path / OWN_FOLDER
            assert f"PPS_HOME={folder} " in ended.stdout
            asked = pps(
                {**env, "PPS_HOME": str(folder)}, "recall", "mira", "What is Wren allergic to?"
            )
            assert "walnuts" in asked.stdout, "this starts a server there, which the next run ends"
        assert "walnuts" not in pps(env, "recall", "mira", "What is Wren allergic to?").stdout
        assert "\nturns 1" in pps(env, "stats", "mira").stdout.replace("  ", " ")
    finally:
        pps(env, "stop")
        pps({**env, "PPS_HOME": str(tmp_path / OWN_FOLDER)}, "stop")


def test_entities_of_the_samples_names_are_refused_where_pps_home_is_set(tmp_path: Path) -> None:
    env = clean_env(tmp_path / "home")
    assert pps(env, "entity", "create", "theo").returncode == 0
    try:
        refused = pps(env, "demo")
        assert refused.returncode == 2
        assert "an entity 'theo' already" in refused.stderr
        assert pps(env, "entity", "list").stdout.count("\n") == 1
    finally:
        pps(env, "stop")


def test_a_folder_that_no_demo_made_is_not_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PPS_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    kept = tmp_path / OWN_FOLDER / "kept"
    kept.parent.mkdir()
    kept.write_text("mine", encoding="utf-8")
    with pytest.raises(InvalidRequest, match="was not made by `pps demo`"):
        choose_folder()
    assert kept.read_text(encoding="utf-8") == "mine"
    assert find(kept.parent) is None
