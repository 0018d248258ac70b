"""What a wrong command or option is answered with: never with one that takes something away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pps.interfaces.cli import suggestions
from pps.interfaces.cli.commands import Ordered, Taught
from pps.interfaces.cli.main import build
from pps.interfaces.cli.output import misused

_SUGGESTED = re.compile(r"did you mean `pps ([^`]*)`")
_HARMFUL = ("forget", "delete", "drop", "clear", "archive", "remove", "revoke", "uninstall")


@pytest.fixture(autouse=True)
def two_entities(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PPS_HOME", str(tmp_path))
    for name in ("ana", "ben"):
        (tmp_path / "entities" / name).mkdir(parents=True)
        (tmp_path / "entities" / name / "entity.toml").touch()


def refusal(*arguments: str) -> str:
    """Return the one line with which a command line is refused as wrong."""
    with pytest.raises(click.ClickException) as caught:
        build().main(list(arguments), prog_name="pps", standalone_mode=False)
    with CliRunner().isolation() as (_, stderr, _):
        assert misused(caught.value) == 2
        [line] = stderr.getvalue().decode().splitlines()
    return line


def _commands(group: Ordered, path: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, Ordered):
            yield from _commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def _misspelled(word: str) -> Iterator[str]:
    yield from (word[:at] + word[at + 1 :] for at in range(len(word)))
    yield from (word[:at] + word[at] + word[at:] for at in range(len(word)))
    yield from (word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1))


def test_no_misspelling_of_any_command_is_answered_with_one_that_takes_away() -> None:
    root = build()
    dangerous = {
        path
        for path, command in _commands(root)
        if isinstance(command, Taught) and command.takes_away
    }
    assert {"forget", "entity delete", "entity archive", "jobs drop", "anchors delete"} < dangerous
    answered = 0
    for path, _ in _commands(root):
        *groups, word = path.split()
        group = root
        for name in groups:
            below = group.commands[name]
            assert isinstance(below, Ordered)
            group = below
        for wrong in {*_misspelled(word), word[:3], word + "s"}:
            if wrong and wrong not in group.commands and wrong not in group.aliases:
                text = suggestions.unknown_command(group, " ".join(["pps", *groups]), [wrong])
                for meant in _SUGGESTED.findall(text):
                    answered += 1
                    assert meant.removesuffix(" …") not in dangerous, (wrong, text)
                    assert not set(meant.split()) & set(_HARMFUL), (wrong, text)
    assert answered > 300


def test_words_that_people_type_lead_to_commands_that_there_are() -> None:
    root = build()
    paths = dict(_commands(root))
    for meanings in suggestions.SYNONYMS.values():
        for meant in meanings:
            words = [word for word in meant.split() if word.islower() and word.isascii()]
            assert words
            takes_away = getattr(paths.get(" ".join(words)), "takes_away", False)
            assert not takes_away, meant


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ls",), "did you mean `pps entity list`?"),
        (("shutdown",), "did you mean `pps stop`?"),
        (("recal", "ana", "x"), "did you mean `pps recall`?"),
        (("serch",), "did you mean `pps search`?"),
        (("entity", "new", "x"), "did you mean `pps entity create`?"),
        (("what", "does", "Ana", "drink"), "`pps recall NAME what does Ana drink`"),
        (("ana", "what"), "as in `pps recall ana …`"),
        (("recall", "what does Ana drink"), "`pps recall NAME 'what does Ana drink'`"),
        (("recall", "ana", "x", "--limt", "2"), "did you mean --limit?"),
        (("remember", "ana", "the", "--flag"), "quote a text that has such a word in it"),
        (("help", "entity", "creat"), "did you mean `pps entity create`?"),
    ],
)
def test_a_wrong_word_is_answered_with_what_to_type(arguments: tuple[str, ...], words: str) -> None:
    assert words in refusal(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("delete",),
        ("rm", "ana"),
        ("froget", "ana", "x"),
        ("entity", "archvie", "ana"),
        ("forget", "ana", "x", "--ye"),
        ("entity", "token", "ana", "--revok"),
    ],
)
def test_nothing_that_takes_away_is_suggested(arguments: tuple[str, ...]) -> None:
    text = refusal(*arguments)
    assert "did you mean" not in text
    typed = " ".join(arguments)
    assert not any(word in text for word in _HARMFUL if word not in typed)


def test_of_one_entity_a_question_is_shown_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "entities" / "ben" / "entity.toml").unlink()
    assert "`pps recall ana what does Ana drink`" in refusal("what", "does", "Ana", "drink")
    text = suggestions.unknown_entity("what", "recall", ["does", "Ana", "drink"], reads=True)
    assert "`pps recall ana what does Ana drink`" in text
    text = suggestions.unknown_entity("Priya", "remember", ["moved"], reads=False)
    assert "pps remember" not in text, "what was meant for one is not written into another"
    assert "did you mean 'ana'" in suggestions.unknown_entity("anna", "recall", ["x"], reads=True)
    assert "ana" not in suggestions.unknown_entity("anna", "", (), reads=False)
