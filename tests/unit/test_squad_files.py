"""S3-01, S3-08, S3-09: a squad is a file, and each mistake in it is named with its line."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from pps.config.squad_files import load_squad, read_squad
from pps.core.errors import ConfigError, InvalidRequest

NOBODYS = Path("/nobody")


def test_the_six_agents_and_ten_subscriptions_are_shipped() -> None:
    rules = load_squad(NOBODYS, "openclaw")
    assert list(rules.members) == ["kublai", "mongke", "chagatai", "temujin", "jochi", "ogedei"]
    assert [one.heartbeat_minute for one in rules.members.values()] == [0, 3, 6, 9, 12, 15]
    assert rules.member("main") == "kublai"
    assert len(rules.subscriptions) == 10
    assert rules.subscriptions[0].interval == rules.broadcast.interval == timedelta(minutes=5)
    assert all(one.role and one.capabilities and one.personality for one in rules.members.values())


def test_every_mistake_of_a_file_is_named_with_its_line() -> None:
    text = load_squad(NOBODYS, "openclaw").text
    broken = (
        text.replace('to = "mongke"', 'to = "mongk"', 1)
        .replace('kinds = ["Application"]', 'kinds = ["Applicaton"]')
        .replace('reviewers = ["kublai"]', 'reviewers = ["kubla"]')
    )
    rules, mistakes = read_squad(broken)
    assert rules is None
    lines = broken.splitlines()
    assert len(mistakes) == 3
    for one, word in zip(mistakes, ("kubla", "mongk", "Applicaton"), strict=True):
        assert repr(word) in one.problem
        assert word in lines[one.line - 1]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('tier = "direct"', 'tier = "near"', "tier"),
        ("heartbeat_minute = 3\n", "heartbeat_minute = 60\n", "members.mongke.heartbeat_minute"),
        ('aliases = ["ops"]', 'aliases = ["main"]', "the name 'main' is of two members"),
        ("share_from = 0.7", "share_form = 0.7", "pool.share_form: unknown key"),
        ('reviewers = ["kublai"]', 'reviewers = []\nnothing = "', "not valid TOML"),
    ],
)
def test_a_mistake_says_what_is_wrong(before: str, after: str, said: str) -> None:
    rules, mistakes = read_squad(load_squad(NOBODYS, "openclaw").text.replace(before, after, 1))
    assert rules is None
    assert said in "; ".join(map(str, mistakes))


def test_a_gate_that_needs_a_reviewer_has_one() -> None:
    text = load_squad(NOBODYS, "openclaw").text
    text = text.replace('gate = "confidence"', 'gate = "approve"').replace(
        'reviewers = ["kublai"]', "reviewers = []"
    )
    assert "needs reviewers" in str(read_squad(text)[1][0])


def test_a_squads_own_file_is_found_and_a_missing_one_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="there are openclaw"):
        load_squad(tmp_path, "duo")
    (tmp_path / "squads").mkdir()
    (tmp_path / "squads" / "duo.toml").write_text('name = "duo"')
    with pytest.raises(ConfigError, match="members"):
        load_squad(tmp_path, "duo")
