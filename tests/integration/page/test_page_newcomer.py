"""A newcomer's way by the commands of docs/page.md: from an empty folder to their own transcript on the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.chromium import Chromium
from tests.integration.interfaces.serving import clean_env, pps
from tests.pictures import talk

pytestmark = pytest.mark.chromium
_PAGE = Path(__file__).parents[3] / "docs" / "page.md"


def test_the_commands_of_the_docs_lead_from_nothing_to_ones_own_transcript(
    browser: Chromium, tmp_path: Path
) -> None:
    (block,) = re.findall(r"```bash\n(scripts/setup.*?)```", _PAGE.read_text("utf-8"), re.DOTALL)
    commands = [shlex.split(line, comments=True) for line in block.splitlines()[1:]]
    assert [one[1] for one in commands] == ["init", "entity", "import", "open"]
    env = clean_env(tmp_path / "home")
    file = str(talk(tmp_path / "talk.jsonl"))
    try:
        for command in commands[:-1]:
            ran = pps(env, *(file if part == "talk.jsonl" else part for part in command[1:]))
            assert ran.returncode == 0, ran.stderr
        link = pps(env, *commands[-1][1:], "--print").stdout.strip()
        page = browser.browser.new_page()
        page.goto(link)
        page.click("nav a:has-text('Conversations')")
        page.wait_for_selector(".turn:has-text('I moved to Lisbon in March')")
        page.click("nav a:has-text('Ask')")
        page.fill("main input[type=search], main textarea", "Where does my sister live?")
        page.keyboard.press("Enter")
        page.wait_for_selector("main :text('Porto')")
    finally:
        pps(env, "serve", "--stop")
