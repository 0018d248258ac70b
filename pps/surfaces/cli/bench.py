"""``pps bench``: measuring on data of one's own, in throw-away entities; nothing of yours is read or written."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pps.surfaces.cli.talk import AsJson, show_json

if TYPE_CHECKING:
    from rich.progress import TaskID

    from pps.bench.quality import Progress

_HELP = """Measure recall on data of your own, in throw-away entities beside your memories.

The data are a folder of JSON lines (episodes, queries, and where there are any nodes and edges), as
locomo_to_graph.py writes them, or MuSiQue's file. None are shipped: give --data or set PPS_BENCH_DATA."""

app = typer.Typer(no_args_is_help=True, help=_HELP, rich_markup_mode=None)

Data = Annotated[str, typer.Option("--data", help="Folder of JSON lines, or MuSiQue's file.", envvar="PPS_BENCH_DATA")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for the report as JSON, Markdown and PNG.")]


Name = Annotated[str, typer.Option("--name", help="Stem of the report's files.")]


@app.command()
def quality(
    data: Data = "",
    profile: Annotated[list[str] | None, typer.Option("--profile", help="Profile to ask; may be repeated.")] = None,
    against: Annotated[str, typer.Option(help="Also ask: graphiti,bm25,dense,four-lists (some of them), or all.")] = "",
    ablation: Annotated[bool, typer.Option("--ablation", "--ablate", help="Leave out each part in turn.")] = False,
    store: Annotated[str, typer.Option(help="embedded or neo4j; the setting's if not given.")] = "",
    answers: Annotated[Path | None, typer.Option(help="Write each question's result here, as JSON lines.")] = None,
    out: Out = None,
    name: Name = "quality",
    as_json: AsJson = False,
) -> None:
    """Tell how well recall finds the turns that answer a question: the episodes channel's ten best.

    Recall at 5, 10 and 20, reciprocal rank and nDCG at 10, over all questions, by category and by conversation.
    --against and --out need the extra bench.

    Examples: pps bench quality --data DIR · pps bench quality --data DIR --against all --ablation --out docs/benchmarks
    """
    from pps.bench import commands
    from pps.bench.against import systems
    from pps.bench.measuring import Plan
    from pps.bench.report import text
    from pps.recall.request import DEFAULT_PROFILE

    plan = Plan(tuple(profile or [DEFAULT_PROFILE]), systems(against), ablation)
    wanted = commands.Wanted(data, plan, store, answers, out, name)
    with _progress() as progress:
        found = asyncio.run(commands.quality(wanted, os.environ, progress))
    if as_json:
        show_json(found)
    else:
        typer.echo(text(found))


@app.command()
def tune(
    data: Data = "",
    watch: Annotated[str, typer.Option(help="Data that nothing is chosen on and that must not lose.")] = "",
    profile: Annotated[str, typer.Option(help="Whose episodes channel; the default profile if not given.")] = "",
    write: Annotated[Path | None, typer.Option(help="The profile's file, changed if that is worth it.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder to keep tune.json and tune.md in.")] = None,
    as_json: AsJson = False,
) -> None:
    """Choose k and the weights of the episodes channel by cross-validation over conversations.

    Each conversation is held out in turn: what was chosen on the others is compared on it with the profile as it
    is. Says what it would change; a file is changed only with --write, and only when most conversations gain.

    Examples: pps bench tune --data DIR · pps bench tune --data DIR --watch musique.json --write FILE
    """
    from pps.bench import tune as tuning
    from pps.recall.request import DEFAULT_PROFILE

    wanted = tuning.TuneWanted(data, watch, profile or DEFAULT_PROFILE, write, out)
    with _progress() as progress:
        found = asyncio.run(tuning.tune(wanted, os.environ, progress))
    if as_json:
        show_json(found)
    else:
        typer.echo(tuning.text(found))


@contextlib.contextmanager
def _progress() -> Generator[Progress]:
    """Lend what shows progress on stderr: a bar on a terminal, else a line for each step that is done."""
    if not sys.stderr.isatty():
        yield _lines
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True)) as bar:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield show


def _lines(what: str, done: int, total: int) -> None:
    if done >= total:
        typer.echo(f"{what}: {total}", err=True)
