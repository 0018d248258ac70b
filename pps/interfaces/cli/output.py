"""What every command shares: the link to the server, answers as text or JSON, errors in one line."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from pps.config.home import home_folder
from pps.core import errors
from pps.core.text import visible
from pps.core.values import JSON
from pps.server import Link, connect
from pps.server.link import find

Answer = dict[str, JSON]
Name = Annotated[str, typer.Argument(help="The entity's name.", metavar="NAME", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

EXIT_INVALID = 2
EXIT_NOT_FOUND = 3
EXIT_AGAIN = 4


def server() -> Link:
    """Return the link to this user's server, started if it is away."""
    home = home_folder()
    found = find(home)
    if found is None and sys.stderr.isatty():
        typer.echo("(starting the server …)", err=True)
    return found or connect(home)


def ask(verb: str, entity: str, arguments: Mapping[str, JSON], *, as_json: bool) -> Answer:
    """Let an entity do a verb and print the answer; returns its data."""
    answer = server().call(verb, entity, {name: value for name, value in arguments.items() if value is not None})
    data = answer["data"]
    if as_json:
        show_json(data)
    else:
        say(str(answer["text"]))
    return data if isinstance(data, dict) else {}


def say(text: str, *, err: bool = False) -> None:
    """Print text that holds what somebody told a memory: nothing in it acts on the terminal."""
    typer.echo(visible(text), err=err)


def show_json(value: JSON) -> None:
    """Print one JSON value on stdout; what is not seen and may act on a terminal is written as an escape."""
    shown = json.dumps(value, ensure_ascii=False, indent=2)
    typer.echo(shown if visible(shown) == shown else json.dumps(value, indent=2))


def absolute(path: str) -> str:
    """Return a path from here, as the server (which is elsewhere) must get it; it resolves the links."""
    return str(Path(path).expanduser().absolute())


def objects(value: JSON) -> list[dict[str, JSON]]:
    """Return the objects of a JSON list."""
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]


def work(
    task: str, arguments: Mapping[str, JSON], *, entity: str = "", as_json: bool, in_bytes: bool = False
) -> Answer:
    """Run long work in the server, with a bar on a terminal; returns the result.

    Args:
        task: What to do; one of the server's tasks.
        arguments: As the task takes them.
        entity: For whom, where it is an entity's.
        as_json: Show no bar.
        in_bytes: What is done is counted in bytes, so the bar shows a share of them.
    """
    reports = server().work(task, arguments, entity)
    if as_json or not sys.stderr.isatty():
        return _drained(reports)
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    done_column = TaskProgressColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), done_column, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task("starting", total=None)
        while True:
            try:
                report = next(reports)
            except StopIteration as ended:
                return ended.value
            done, total = report.get("done"), report.get("total")
            bar.update(
                shown,
                description=visible(str(report.get("what"))),
                completed=done if isinstance(done, int) else 0,
                total=total if isinstance(total, int) and total else None,
            )


def text_or_stdin(given: str) -> str:
    """Return the text itself, or all of stdin for ``-``."""
    return sys.stdin.read() if given == "-" else given


def confirm(question: str) -> None:
    """Ask on the terminal, on stderr, and end the command unless the answer is yes.

    Raises:
        InvalidRequest: Nobody can be asked.
    """
    if not sys.stdin.isatty():
        raise errors.InvalidRequest("--yes", "is needed where nobody can be asked")
    typer.confirm(question, abort=True, err=True)


def told(error: errors.PPSError) -> int:
    """Print an error in one line (and as JSON on stdout where JSON was asked for); return the exit code."""
    _say(error)
    if isinstance(error, errors.InvalidRequest | errors.ConfigError):
        return EXIT_INVALID
    if isinstance(error, errors.UnknownEntity | errors.NotFound):
        return EXIT_NOT_FOUND
    return EXIT_AGAIN if error.retryable else 1


def misused(error: typer.TyperException) -> int:
    """Print in what a command was called wrongly, as ``told`` does; return the exit code."""
    said, context = error.format_message(), getattr(error, "ctx", None)
    if said.startswith("Usage: "):
        typer.echo(said, err=True)  # a group without a command: its help
    else:
        path = context.command_path if context else "pps"
        problem = f"{said[:1].lower()}{said[1:].rstrip('.')}; `{path} --help` says how"
        _say(errors.InvalidRequest(path.removeprefix("pps").strip() or "command", problem))
    return error.exit_code


def unforeseen(error: Exception) -> int:
    """Print an error that nobody foresaw as ``told`` does; all of it when PPS_LOG_LEVEL is debug."""
    if os.environ.get("PPS_LOG_LEVEL", "").lower() == "debug":
        raise error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        said = f"no more can be written ({error.strerror}): free some space, or send the output elsewhere"
    else:
        what = " ".join(str(error).split())[:200]
        said = f"{type(error).__name__}: {what} (PPS_LOG_LEVEL=debug shows where)"
    _say(errors.PPSError(said))
    return 1


def _say(error: errors.PPSError) -> None:
    if "--json" in sys.argv:
        with contextlib.suppress(OSError):  # it may be stdout that failed; stderr is told
            show_json({"error": {"code": error.code, "message": error.message, "retryable": error.retryable}})
    say(f"pps: {' '.join(error.message.split())}", err=True)


def _drained(reports: Generator[Answer, None, Answer]) -> Answer:
    while True:
        try:
            next(reports)
        except StopIteration as ended:
            return ended.value
