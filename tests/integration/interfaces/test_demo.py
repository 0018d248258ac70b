"""`pps demo` is the story that the README shows."""

from __future__ import annotations

import re
from pathlib import Path

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
