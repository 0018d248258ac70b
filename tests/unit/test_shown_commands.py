"""Every command of ``pps`` that a page, an error or a help text shows exists, with its options."""

from __future__ import annotations

from pathlib import Path

from tests.shown_commands import mistake_in, shown_commands, strings_of

ROOT = Path(__file__).parents[2]
MADE_BY_READERS = ("deadlines", "shares")
"""Commands of a feature and of an operation that the pages for contributors have the reader write."""


def test_a_name_and_an_option_that_are_not_there_are_found() -> None:
    text = (
        "Run `pps health`, then\n```bash\npps remember ana 'x' --whn 2026\npps serve --stop\n```\n"
    )
    assert [mistake_in(shown) for shown in shown_commands(text)] == [
        "there is no command 'health'",
        "there is no option '--whn'",
        "",
    ]


def test_every_command_that_a_page_shows_can_be_typed() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "skills").rglob("*.md")]
    shown = [
        (page.name, command)
        for page in pages
        if page.name != "CHANGELOG.md"
        for command in shown_commands(page.read_text(encoding="utf-8"))
    ]
    assert len(shown) > 500
    assert [
        (name, command, mistake)
        for name, command in shown
        if (mistake := mistake_in(command)) and command.split()[0] not in MADE_BY_READERS
    ] == []


def test_every_command_that_an_error_or_a_help_text_names_can_be_typed() -> None:
    shown = [
        (str(file.relative_to(ROOT)), command)
        for file in sorted((ROOT / "pps").rglob("*.py"))
        for text in strings_of(file.read_text(encoding="utf-8"))
        for command in shown_commands(text)
    ]
    assert len(shown) > 100
    assert [
        (file, command, mistake) for file, command in shown if (mistake := mistake_in(command))
    ] == []
