"""Shared by all commands: the server, answers as text or JSON, progress, errors in one line.

People read errors in a command's own words, and answers, which their operations word, with short
ids and colour.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from pps.config.home import home_folder
from pps.core import errors
from pps.core.errors import Changed, InvalidRequest, NotFound, PPSError, Problem
from pps.core.ids import check_actor
from pps.core.text import visible
from pps.core.user_files import read_text
from pps.interfaces.cli.suggestions import harmless_options

if TYPE_CHECKING:
    from pps.core.values import JSON
    from pps.interfaces.cli.command_table import CommandParameter
    from pps.server import Link


_ACTOR = "pps.actor"
EXIT_INVALID = 2
EXIT_NOT_FOUND = 3
EXIT_AGAIN = 4
EXIT_INTERRUPTED = 130

_MAX_JSON_BYTES = 16 * 1024 * 1024
_QUOTED = 80
_HEADING = re.compile(r"^(?:nodes|facts|episodes|anchors|turns)(?: \([^)\n]*\))?:$", re.MULTILINE)
_SUPERSEDED = re.compile(r"\((?:superseded|possibly outdated since) [^\n]*?\)(?= \[)")
_SHORT_ID = re.compile(r"\[[0-9a-f]{8}\]")
_UUID = re.compile(r"(?<![:.\w-])([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_PATH = re.compile(r"([a-z_]+)\D*(\d+)?.*")
"""The first field and the item's number of a path such as ``nodes[0].name`` or ``nodes.0.name``."""
_REMEDIES = {
    "id": "`pps recall`, `pps timeline` and others show ids in brackets",
    "anchor": "`pps anchors list NAME` shows them",
    "job": "`pps jobs list NAME` shows them",
    "project": "`pps route list` shows the folders that have a memory",
    "router": "`pps router list` shows them",
    "squad": "`pps squad list` shows them",
}


def server() -> Link:
    """Return the link to this user's server, for the command line's actor.

    Start it if it is away.
    """
    from pps.server import Link, connect, find

    home = home_folder()
    running = find(home)
    if running is None and sys.stderr.isatty():
        click.echo("(starting the server …)", err=True)
    link = running or connect(home)
    actor = click.get_current_context().find_root().meta.get(_ACTOR, "")
    return Link(link.run, actor) if actor else link


def acting(context: click.Context, _: click.Parameter, actor: str) -> None:
    """Store the actor that a command line names."""
    context.meta[_ACTOR] = check_actor(actor)


def say(text: str, *, err: bool = False) -> None:
    """Print text that holds what somebody told a memory: nothing in it acts on the terminal."""
    click.echo(visible(text), err=err)


def show(text: str) -> None:
    """Print text that we styled; what it quotes must be ``visible``.

    Colour is for terminals that want it.
    """
    click.echo(text, color=False if "NO_COLOR" in os.environ else None)


def show_json(value: JSON) -> None:
    """Print one JSON value on stdout.

    What is not seen and may act on a terminal is written as an escape.
    """
    text = json.dumps(value, ensure_ascii=False, indent=2)
    click.echo(text if visible(text) == text else json.dumps(value, indent=2))


def absolute(path: str) -> str:
    """Return a path from here, as the server (which is elsewhere) must get it.

    It resolves the links.
    """
    return str(Path(path).expanduser().absolute())


def json_text(label: str, text: str) -> JSON:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise errors.InvalidRequest(label, f"is not JSON (column {error.colno})") from None


def json_object(label: str, file: str) -> dict[str, JSON]:
    """Return the JSON object that a file holds; ``-`` is stdin."""
    try:
        value: JSON = json.loads(
            sys.stdin.read() if file == "-" else read_text(file, _MAX_JSON_BYTES)
        )
    except OSError as error:
        raise errors.InvalidRequest(label, f"{file} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise errors.InvalidRequest(label, f"{file} is not JSON") from None
    if not isinstance(value, dict):
        raise errors.InvalidRequest(label, f"{file} must hold a JSON object")
    return value


def finished(
    reports: Generator[dict[str, JSON], None, dict[str, Any]], *, quiet: bool
) -> dict[str, Any]:
    """Return what long work comes to, with a bar on a terminal until then."""
    if quiet or not sys.stderr.isatty():
        while True:
            try:
                next(reports)
            except StopIteration as ended:
                return ended.value
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        while True:
            try:
                report = next(reports)
            except StopIteration as ended:
                return ended.value
            done = report.get("done")
            total = report.get("total")
            bar.update(
                task,
                description=visible(str(report.get("what"))),
                completed=done if isinstance(done, int) else 0,
                total=total if isinstance(total, int) and total else None,
            )


def confirm(question: str) -> None:
    """Ask on the terminal, on stderr, and end the command unless the answer is yes."""
    if not sys.stdin.isatty():
        raise errors.InvalidRequest("--yes", "is needed where nobody can be asked")
    click.confirm(visible(question), abort=True, err=True)


def told(error: errors.PPSError) -> int:
    """Print an error in one line (and as JSON on stdout where JSON was asked for).

    Return the exit code.
    """
    if "--json" in sys.argv:
        with contextlib.suppress(OSError):  # it may be stdout that failed; stderr is told
            show_json(
                {
                    "error": {
                        "code": error.code,
                        "message": error.message,
                        "retryable": error.retryable,
                    }
                }
            )
    say(f"pps: {' '.join(error.message.split())}", err=True)
    if isinstance(error, errors.InvalidRequest | errors.ConfigError):
        return EXIT_INVALID
    if isinstance(error, errors.UnknownEntity | errors.NotFound):
        return EXIT_NOT_FOUND
    return EXIT_AGAIN if error.retryable else 1


def misused(error: click.ClickException) -> int:
    """Print in what a command was called wrongly, as ``told`` does; return the exit code."""
    context: click.Context | None = getattr(error, "ctx", None)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return error.exit_code
    path = context.command_path if context else "pps"
    text = (
        _unknown_option(error) if isinstance(error, click.NoSuchOption) else error.format_message()
    )
    remedy = "" if text.endswith("?") else f"; `{path} --help` says how"
    problem = f"{text[:1].lower()}{text[1:].rstrip('.')}{remedy}"
    told(errors.InvalidRequest(path.removeprefix("pps").strip() or "command", problem))
    return error.exit_code


def _unknown_option(error: click.NoSuchOption) -> str:
    meant = harmless_options(error)
    suggested = f"; did you mean {meant[0]}?" if meant else ""
    takes_text = error.ctx is not None and getattr(error.ctx.command, "takes_text", False)
    quoted = " (quote a text that has such a word in it)" if takes_text else ""
    return f"no such option {error.option_name!r}{quoted}{suggested}"


def unforeseen(error: Exception) -> int:
    """Print an error that nobody foresaw as ``told`` does.

    All of it when PPS_LOG_LEVEL is debug.
    """
    if os.environ.get("PPS_LOG_LEVEL", "").lower() == "debug":
        raise error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        text = (
            f"no more can be written ({error.strerror}): free some space, or send the output "
            "elsewhere"
        )
    else:
        text = (
            f"{type(error).__name__}: {' '.join(str(error).split())[:200]} (PPS_LOG_LEVEL=debug "
            "shows where)"
        )
    return told(errors.PPSError(text))


def render_error(
    error: PPSError, parameters: Iterable[CommandParameter], arguments: Mapping[str, JSON]
) -> str:
    """Return an error's text with the typed option in place of the field.

    For example ``--at 'soon'`` for ``occurred_at``.
    """
    by_field = {parameter.field: parameter for parameter in parameters}
    if isinstance(error, NotFound):
        missing = " or ".join(_missing(error, by_field, arguments)) or error.noun
        remedy = f"; {_REMEDIES[error.noun]}" if error.noun in _REMEDIES else ""
        return f"{missing}: not found{remedy}"
    if isinstance(error, Changed):
        return _render_problem(Problem(error.path, error.problem), by_field, arguments)
    if isinstance(error, InvalidRequest):
        return "; ".join(_render_problem(item, by_field, arguments) for item in error.problems)
    return error.message


def _render_problem(
    item: Problem, by_field: Mapping[str, CommandParameter], arguments: Mapping[str, JSON]
) -> str:
    """Return a problem's text with the option or argument, and its value, in place of the path."""
    match = _PATH.fullmatch(item.path)
    parameter = by_field.get(match[1]) if match else None
    if match is None or parameter is None:
        return item.text
    field = match[1]
    number = match[2]
    value = arguments.get(field)
    if isinstance(value, list):
        value = value[int(number)] if number and int(number) < len(value) else None
        if isinstance(value, dict):  # of JSON the path says more than the option
            return replace(item, path=f"{parameter.label} {item.path}").text
    return replace(item, path=_quoted(parameter.label, value)).text


def _missing(
    error: NotFound, by_field: Mapping[str, CommandParameter], arguments: Mapping[str, JSON]
) -> list[str]:
    """Return the typed values that were not found.

    They are known by field, by a name in JSON, or by the error's values.
    """
    noun = error.noun
    if noun in by_field and arguments.get(noun):
        return [_quoted(by_field[noun].label, arguments[noun])]
    for parameter in by_field.values():
        within = arguments.get(parameter.field)
        if isinstance(within, Mapping) and within.get(noun):
            return [_quoted(f"{parameter.label} {noun}", within[noun])]
    candidates = [parameter for parameter in by_field.values() if parameter.label != "NAME"]
    named: list[str] = []
    for parameter in candidates:
        value = arguments.get(parameter.field)
        typed = value if isinstance(value, list) else [value]
        named += [_quoted(parameter.label, item) for item in typed if item in error.values]
    if named:
        return named
    if not candidates and arguments.get("name"):  # of a squad
        return [f"{noun} {arguments['name']!r}"]
    return [
        _quoted(parameter.label, arguments[parameter.field])
        for parameter in candidates
        if parameter.kind == "argument" and not parameter.stdin and arguments.get(parameter.field)
    ]


def _quoted(label: str, value: object) -> str:
    if isinstance(value, list):
        items = cast("list[object]", value)
        return " or ".join(_quoted(label, item) for item in items[:3])
    is_short = (
        isinstance(value, (str, int)) and not isinstance(value, bool) and len(str(value)) <= _QUOTED
    )
    return f"{label} {value!r}" if is_short else label


def short(text: str, data: JSON) -> str:
    """Return a text in which ids of its data are as short as every command takes them."""
    ids = set(_ids(data))
    return _UUID.sub(lambda match: match[1] if match[0] in ids else match[0], text)


def _ids(data: JSON) -> Iterator[str]:
    if isinstance(data, Mapping):
        for value in data.values():
            yield from _ids(value)
    elif isinstance(data, list):
        for value in data:
            yield from _ids(value)
    elif isinstance(data, str) and _UUID.fullmatch(data):
        yield data


def coloured(text: str) -> str:
    """Return a text with colours for a terminal: bold headings, coloured ids and superseded marks.

    No character changes.
    """
    text = _HEADING.sub(lambda line: click.style(line[0], bold=True), text)
    text = _SUPERSEDED.sub(lambda mark: click.style(mark[0], fg="yellow"), text)
    return _SHORT_ID.sub(lambda id_: click.style(id_[0], fg="cyan"), text)
