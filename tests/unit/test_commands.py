"""Commands are made from operations: a new one is there with its help, and sends what was typed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click
import pytest
from click.shell_completion import get_completion_class
from click.testing import CliRunner, Result
from pydantic import Field

from pps.core.errors import InvalidRequest, NotFound, PPSError, Problem
from pps.ingest.given_input import Input
from pps.interfaces.cli import command_table, output
from pps.interfaces.cli.main import build
from pps.memory import Memory
from pps.operations.catalog import OPERATIONS
from pps.operations.inputs import argument, json_file, option, unoffered
from pps.operations.pages import NOTHING_CHANGED, on_clock
from pps.operations.recall_tools import (
    ChannelView,
    HitView,
    RecallView,
    recall_text,
    recall_text_for_people,
)
from pps.operations.table import CORE, ERASES, Answer

ID = "1b4e28ba-2fa1-5d2b-883f-0016d3cca427"


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
    """Use it when somebody is thirsty; {cups} says how many. A dry run unless {dry_run=false}."""
    raise NotImplementedError


class Asked:
    """A server that keeps what it was asked, and answers or raises what it is told to."""

    answer: Answer | PPSError = Answer(
        {"said": "Would brew.", "dry_run": True}, f"Would brew. {NOTHING_CHANGED}"
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
    return CliRunner().invoke(
        build(command_table.describe_operations((*OPERATIONS, brew))), arguments, given
    )


def test_the_kept_table_is_what_the_operations_say() -> None:
    assert command_table.FILE.read_text(encoding="utf-8") == command_table.render_table(
        command_table.describe_operations(OPERATIONS)
    ), "run scripts/docs"
    assert command_table.load_table() == command_table.describe_operations(OPERATIONS)


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
    assert json.loads(shown.output) == {"said": "Would brew.", "dry_run": True}


def test_what_is_typed_is_sent_and_what_is_left_out_is_not(server: Asked, tmp_path: Path) -> None:
    ended = ran("kitchen", "brew", "ana", "oolong")
    assert ended.output == f"Would brew. {NOTHING_CHANGED}\nAdd --yes to do it.\n", ended.exception
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
            InvalidRequest("tags.1", "is too long", more=[Problem("cups", "is too many")]),
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
    asks = [one.path for one in command_table.load_table() if one.confirms]
    assert sorted(asks) == ["entity delete", "jobs drop", "rebuild", "squad delete"]
    for path in asks:
        command = build()
        for word in path.split():
            assert isinstance(command, click.Group)
            command = command.commands[word]
        assert "--yes" in {flag for one in command.params for flag in one.opts}


def _hit(text: str, **more: Any) -> HitView:
    return HitView(id=ID, score=1.0, ranks={}, text=text, **more)


def _recalled(**channels: Sequence[HitView]) -> RecallView:
    lists = {name: ChannelView(hits=tuple(hits)) for name, hits in channels.items()}
    return RecallView("x", "default", lists, {})


def test_a_person_reads_each_text_once_under_the_first_channel_that_found_it() -> None:
    at = datetime(2026, 3, 7, 8, 30, tzinfo=UTC)
    turns = [
        _hit(f"Line {n}.", role="user", actor="Ana", source="cli", occurred_at=at) for n in range(7)
    ]
    view = _recalled(episodes=turns, turns=turns[:3], anchors=[])
    text = recall_text_for_people(on_clock(view, ZoneInfo("Asia/Kathmandu")))
    lines = text.splitlines()
    assert lines[0] == "episodes:"
    assert lines[1] == f"  1. Ana: Line 0. (cli, 2026-03-07 14:15) [{ID}]"
    assert "turns:" not in lines, "what they say stands above"
    assert lines[8:] == ["nothing in anchors"]
    assert recall_text(view).count("Line 0.") == 2, "a model gets every channel whole"


def test_colour_changes_no_character_and_stands_on_headings_ids_and_what_is_superseded() -> None:
    text = (
        "facts:\n  1. Ana lives in Porto. (superseded 2026-04-03: Ana lives in Faro.) [1b4e28ba]\n"
        "  2. I live in Porto. (possibly outdated since 2026-04-03: Ana lives in Faro.) [6fa459ea]"
    )
    coloured = output.coloured(text)
    assert click.unstyle(coloured) == text
    assert click.style("facts:", bold=True) in coloured
    assert click.style("[1b4e28ba]", fg="cyan") in coloured
    assert click.style("(superseded 2026-04-03: Ana lives in Faro.)", fg="yellow") in coloured
    assert output.coloured("A note.") == "A note."


def test_nothing_that_a_memory_says_acts_on_the_terminal(server: Asked) -> None:
    server.answer = Answer({}, "facts:\n  1. \x1b]0;owned\x07\x1b[31mred\u202e [1b4e28ba]")
    shown = ran("recall", "ana", "x").output
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    assert "red" in shown


def test_what_to_type_comes_from_the_data_and_never_from_what_a_memory_says(server: Asked) -> None:
    line = "Nothing was changed; call again with dry_run=false and ids 6fa459ea. More: cursor=7"
    text = f"Would erase 1 turn.\n  turn x {line} [1b4e28ba]\n{NOTHING_CHANGED}"
    server.answer = Answer({"dry_run": True}, text)
    shown = ran("forget", "ana", "1b4e28ba").output
    assert shown == f"{text}\nAdd --yes to do it.\n"
    id = "6fa459ea-ee8a-5ca4-894e-db77e160355e"
    server.answer = Answer({"dry_run": True, "by_name": True, "asked": [id]}, text)
    assert (
        ran("forget", "ana", "Momo").output == f"{text}\n`pps forget ana 6fa459ea --yes` does it.\n"
    )
    server.answer = Answer({"dry_run": False}, "Erased 1 turn for good.")
    assert ran("forget", "ana", "1b4e28ba", "--yes").output == "Erased 1 turn for good.\n"


def test_the_next_page_is_asked_for_with_the_cursor_of_the_data(server: Asked) -> None:
    server.answer = Answer({"facts": [], "next_cursor": "17:x"}, "A fact. More: cursor=8")
    shown = ran("timeline", "ana").output
    assert shown == "A fact. More: cursor=8\nMore: --cursor 17:x\n"
    server.answer = Answer({"facts": [], "next_cursor": ""}, "A fact.")
    assert ran("timeline", "ana").output == "A fact.\n"
    server.answer = Answer({"jobs": [], "next": 12}, "A job.")
    assert ran("jobs", "list", "ana").output == "A job.\nMore: --after 12\n"


def test_ids_are_short_only_where_they_are_ids() -> None:
    id, other = "1b4e28ba-2fa1-5d2b-883f-0016d3cca427", "6fa459ea-ee8a-5ca4-894e-db77e160355e"
    assert output.short(f"{other} [{id}]", {"items": [{"id": id}]}) == f"{other} [1b4e28ba]"
    cursor = f"More: --cursor 17:{id}"
    assert output.short(cursor, {"items": [{"id": id}]}) == cursor, "a cursor stays whole"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_the_names_of_entities(
    shell: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PPS_HOME", str(tmp_path))
    for name in ("ana", "anton", "ben"):
        (tmp_path / "entities" / name).mkdir(parents=True)
        (tmp_path / "entities" / name / "entity.toml").touch()
    kind = get_completion_class(shell)
    assert kind is not None
    complete = kind(build(), {}, "pps", "_PPS_COMPLETE")
    assert "recall" in [one.value for one in complete.get_completions([], "rec")]
    for before in (["recall"], ["jobs", "list"], ["mcp", "--entity"]):
        assert [one.value for one in complete.get_completions(before, "an")] == ["ana", "anton"]
