"""Commands are made from operations: a new one is there with its help, and sends what was typed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click
import pytest
from click.testing import CliRunner, Result
from pydantic import Field

from pps.core.errors import InvalidRequest, NotFound, PPSError
from pps.core.phrases import NOTHING_NEAR
from pps.ingest.given_input import Input
from pps.interfaces.cli import commands, described, output, wording
from pps.interfaces.cli.main import build
from pps.memory import Memory
from pps.operations.catalog import OPERATIONS
from pps.operations.command_line import argument, json_file, option, unoffered
from pps.operations.table import CORE, ERASES, Answer


class Tea(Input):
    """Which tea."""

    leaf: str = Field(description="Which leaf.", json_schema_extra=argument(stdin=True))
    cups: int = Field(default=2, ge=1, le=9, description="How many.")
    at: datetime | None = Field(
        default=None, description="When. ISO 8601; a date alone is 00:00 UTC."
    )
    tags: tuple[str, ...] = Field(default=(), json_schema_extra=option("--tag"))
    dry_run: bool = Field(default=True, json_schema_extra=option("--yes", inverts=True))
    facts: tuple[str, ...] = Field(default=(), json_schema_extra=json_file("--given"))
    source: str = Field(default="mcp", json_schema_extra=unoffered(default="cli"))


@dataclass(frozen=True)
class Cup:
    """What was brewed."""

    said: str


@CORE.operation(
    "Brew tea",
    lambda cup: cup.said,
    ERASES,
    command="kitchen brew",
    examples=("pps kitchen brew ana oolong",),
)
async def brew(memory: Memory, given: Tea) -> Cup:
    """Use it when somebody is thirsty; 'cups' says how many. A dry run unless dry_run=false."""
    raise NotImplementedError


class Asked:
    """A server that keeps what it was asked, and answers or raises what it is told to."""

    answer: Answer | PPSError = Answer(
        {"said": "Would brew."}, "Would brew; call again with dry_run=false to do it."
    )

    def call(
        self, operation: str, entity: str, arguments: Mapping[str, Any], **_: object
    ) -> dict[str, Any]:
        self.asked = (operation, dict(arguments), entity)
        if isinstance(self.answer, PPSError):
            raise self.answer
        return {"data": self.answer.data, "text": self.answer.text}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked = Asked()
    monkeypatch.setattr(output, "server", lambda: asked)
    return asked


def ran(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(build(described.described((*OPERATIONS, brew))), arguments, given)


def test_the_kept_table_is_what_the_operations_say() -> None:
    assert described.FILE.read_text(encoding="utf-8") == described.written(
        described.described(OPERATIONS)
    ), "run scripts/docs"
    assert commands.known() == described.described(OPERATIONS)


def test_a_new_operation_is_a_command_with_help_examples_and_json(server: Asked) -> None:
    said = ran("kitchen", "brew", "--help").output
    for words in (
        "Usage: pps kitchen brew [OPTIONS] NAME LEAF",
        "Brew tea.",
        "--cups says how many",
        "--json",
    ):
        assert words in " ".join(said.split()), said
    assert "  pps kitchen brew ana oolong" in said
    assert "kitchen" in ran("--help").output
    shown = ran("kitchen", "brew", "ana", "oolong", "--json")
    assert json.loads(shown.output) == {"said": "Would brew."}


def test_what_is_typed_is_sent_and_what_is_left_out_is_not(server: Asked, tmp_path: Path) -> None:
    ended = ran("kitchen", "brew", "ana", "oolong")
    assert ended.output == "Would brew; add --yes to do it.\n", ended.exception
    assert server.asked == ("brew", {"leaf": "oolong", "source": "cli"}, "ana")
    given = tmp_path / "given.json"
    given.write_text('{"facts": ["hot"]}')
    more = (
        "--cups",
        "3",
        "--at",
        "2026-03-07T08:30",
        "--tag",
        "a",
        "--tag",
        "b",
        "--yes",
        "--given",
        str(given),
    )
    assert ran("kitchen", "brew", "ana", "-", *more, given="sencha").exit_code == 0
    sent = server.asked[1]
    assert sent.pop("at") == "2026-03-07T08:30", "the server knows whose clock that is"
    assert sent == {
        "leaf": "sencha", "cups": 3, "tags": ["a", "b"], "dry_run": False, "facts": ["hot"], "source": "cli"
    }  # fmt: skip
    assert ran("kitchen", "brew", "ana", "x", "--at", "2026-03-07").exit_code == 0
    assert server.asked[1]["at"] == "2026-03-07"
    assert ran("kitchen", "brew", "ana", "x", "--cups", "10").exit_code == 2


def test_an_error_names_what_was_typed_and_what_to_do(server: Asked) -> None:
    for error, words in (
        (InvalidRequest("leaf", "must not be empty"), "LEAF 'oolong': must not be empty"),
        (
            InvalidRequest("tags.1", "is too long; cups: is too many"),
            "--tag 'b': is too long; --cups 3: is too many",
        ),
        (InvalidRequest("other", "is odd"), "other: is odd"),
    ):
        server.answer = error
        ended = ran("kitchen", "brew", "ana", "oolong", "--tag", "a", "--tag", "b", "--cups", "3")
        assert isinstance(ended.exception, InvalidRequest)
        assert ended.exception.message == words
    server.answer = NotFound("id")
    ended = ran("get", "ana", "1b4e28ba")
    assert isinstance(ended.exception, NotFound)
    assert ended.exception.message.startswith("ID '1b4e28ba': not found; `pps recall`")


def test_what_erases_for_good_asks_first_and_what_shows_first_does_not(server: Asked) -> None:
    asks = [one.path for one in commands.known() if one.confirms]
    assert asks == ["entity delete", "squad delete", "rebuild", "jobs drop"]
    for path in asks:
        command = build()
        for word in path.split():
            assert isinstance(command, click.Group)
            command = command.commands[word]
        assert "--yes" in {flag for one in command.params for flag in one.opts}


def hit(**more: Any) -> dict[str, Any]:
    return {"id": "1b4e28ba-2fa1-5d2b-883f-0016d3cca427", "score": 1.0, "ranks": {}, **more}


def test_a_recall_shows_five_a_channel_each_text_once_with_speaker_source_and_local_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = [
        hit(
            text=f"Line {n}.",
            role="user",
            actor="Ana",
            source="cli",
            occurred_at="2026-03-07T08:30:00Z",
        )
        for n in range(7)
    ]
    facts = [
        hit(
            text="Ana likes rye.",
            relation="LIKES",
            valid_at="2026-03-01T00:00:00Z",
            valid_at_precision="day",
        )
    ]
    found = {
        "channels": {
            "facts": {"hits": facts},
            "episodes": {"hits": turns},
            "turns": {"hits": turns[:3]},
        }
    }
    zone = ZoneInfo("Asia/Kathmandu")
    shown = click.unstyle(wording.recall(found, None, zone))
    assert "  1. Ana likes rye. (since 2026-03-01) [1b4e28ba]" in shown
    assert "  1. Line 0. (Ana, cli, 2026-03-07 14:15) [1b4e28ba]" in shown
    assert "… 2 more: --limit 7" in shown
    assert "turns" not in shown.splitlines(), "what they say stands above"
    assert "Line 6." in wording.recall(found, 10)


def test_what_lost_its_place_is_marked_in_recall_timeline_and_get() -> None:
    by = {"id": "x", "text": "Ana lives in Faro.", "at": "2026-04-02T20:00:00Z", "sure": True}
    fact = hit(type="fact", relation="LIVES_IN", text="Ana lives in Porto.", superseded_by=by)
    turn = hit(
        type="turn",
        actor="Ana",
        source="cli",
        content="I live in Porto.",
        occurred_at="2026-03-07T08:30:00Z",
        superseded_by={**by, "sure": False},
    )
    zone = ZoneInfo("Asia/Kathmandu")
    sure = "Ana lives in Porto. (superseded 2026-04-03: Ana lives in Faro.) [1b4e28ba]"
    maybe = "(possibly outdated since 2026-04-03: Ana lives in Faro.) [1b4e28ba]"
    found = {"channels": {"facts": {"hits": [fact]}, "turns": {"hits": [{**turn, "text": "x"}]}}}
    recalled = click.unstyle(wording.recall(found, None, zone))
    assert sure in recalled
    assert maybe in recalled
    assert click.unstyle(wording.timeline({"facts": [fact]}, zone)) == sure
    got = click.unstyle(wording.items({"items": [fact, turn]}, zone))
    assert sure in got
    assert maybe in got


def test_a_recall_of_what_is_near_nothing_says_so_first_and_shows_two_a_channel() -> None:
    facts = [hit(text=f"Line {n}.") for n in range(6)]
    notes = ["another note", NOTHING_NEAR]
    shown = click.unstyle(
        wording.recall({"channels": {"facts": {"hits": facts}}, "notes": notes}, None)
    )
    lines = shown.splitlines()
    assert lines[0] == f"note: {NOTHING_NEAR}"
    assert lines[-2:] == ["  … 4 more, farther away: --limit 6", "note: another note"]
    assert "Line 2." not in shown
    assert wording.recall({"channels": {}, "notes": notes}, None) == "Nothing found."


def test_ids_are_short_only_where_they_are_ids() -> None:
    id, other = "1b4e28ba-2fa1-5d2b-883f-0016d3cca427", "6fa459ea-ee8a-5ca4-894e-db77e160355e"
    assert wording.short(f"{other} [{id}]", {"items": [{"id": id}]}) == f"{other} [1b4e28ba]"


@pytest.mark.parametrize(
    ("fields", "zone", "shown"),
    [
        ({"at": "2026-03-07T23:30:00Z"}, "Asia/Kathmandu", "2026-03-08 05:15"),
        ({"at": "2026-03-07T00:00:00Z"}, "America/Los_Angeles", "2026-03-06 16:00"),
        (
            {"at": "2026-03-07T00:00:00Z", "at_precision": "day"},
            "America/Los_Angeles",
            "2026-03-07",
        ),
        ({"at": "2026-03-01T00:00:00Z", "at_precision": "month"}, "Pacific/Kiritimati", "2026-03"),
        ({"at": "2026-03-29T01:30:00Z"}, "Europe/Berlin", "2026-03-29 03:30"),
        ({"at": "2026-11-01T06:30:00Z"}, "America/New_York", "2026-11-01 01:30"),
        ({}, "UTC", ""),
    ],
)
def test_times_are_shown_on_the_clock_of_the_entity(
    fields: Mapping[str, str], zone: str, shown: str
) -> None:
    assert wording.local(fields, "at", ZoneInfo(zone)) == shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_the_names_of_entities(
    shell: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PPS_HOME", str(tmp_path))
    for name in ("ana", "anton", "ben"):
        (tmp_path / "entities" / name).mkdir(parents=True)
        (tmp_path / "entities" / name / "entity.toml").touch()
    kind = click.shell_completion.get_completion_class(shell)
    assert kind is not None
    complete = kind(build(), {}, "pps", "_PPS_COMPLETE")
    assert "recall" in [one.value for one in complete.get_completions([], "rec")]
    for before in (["recall"], ["jobs", "list"], ["mcp", "--entity"]):
        assert [one.value for one in complete.get_completions(before, "an")] == ["ana", "anton"]
