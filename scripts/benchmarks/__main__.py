"""The command line of ``scripts/bench``: one JSON on stdout, progress on stderr."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pps.core.errors import ConfigError, InvalidRequest, PPSError

if TYPE_CHECKING:
    from rich.progress import TaskID

    from benchmarks.quality import Progress
    from benchmarks.times_report import Times

_HELP = """Measure PPS in throw-away entities beside your memories: recall on data of your own, speed on generated ones.

The data of `quality` are a folder of JSON lines (episodes, queries, and where there are any nodes, edges and
mentions), as locomo_to_graph.py writes them, or MuSiQue's file. None are shipped: give --data or set PPS_BENCH_DATA."""

app = typer.Typer(no_args_is_help=True, help=_HELP, rich_markup_mode=None)

Data = Annotated[
    str,
    typer.Option(
        "--data",
        help="JSON lines' folder, MuSiQue's file, notes or causes.",
        envvar="PPS_BENCH_DATA",
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", help="Folder for the report as JSON, Markdown and PNG.")
]

Name = Annotated[str, typer.Option("--name", help="Stem of the report's files.")]
Table = Annotated[bool, typer.Option("--table", help="Print a table for people instead of JSON.")]


@app.command()
def quality(
    data: Data = "",
    profile: Annotated[
        list[str] | None, typer.Option("--profile", help="Profile to ask; may be repeated.")
    ] = None,
    against: Annotated[
        str, typer.Option(help="Also ask: graphiti,bm25,dense,four-lists (some of them), or all.")
    ] = "",
    ablation: Annotated[
        bool, typer.Option("--ablation", "--ablate", help="Leave out each part in turn.")
    ] = False,
    packs: Annotated[
        bool,
        typer.Option("--packs", help="Also: what the pack of each question's prompt holds."),
    ] = False,
    store: Annotated[str, typer.Option(help="embedded or neo4j; the setting's if not given.")] = "",
    answers: Annotated[
        Path | None, typer.Option(help="Write each question's result here, as JSON lines.")
    ] = None,
    out: Out = None,
    name: Name = "quality",
    table: Table = False,
) -> None:
    """Tell how well recall finds the turns that answer a question: the episodes channel's ten best.

    Recall at 5, 10 and 20, reciprocal rank and nDCG at 10, over all questions, by category and by conversation.
    --packs tells how many prompts' packs hold a right turn, how many are empty, their tokens, and how many are silent
    for questions of another conversation of the same data. --against and --out need the extra bench.

    Examples: scripts/bench quality --data DIR · scripts/bench quality --data notes --against all --ablation --out DIR
    """
    from benchmarks import commands
    from benchmarks.against import systems
    from benchmarks.measuring import Plan
    from benchmarks.report import text
    from pps.recall.request import DEFAULT_PROFILE

    plan = Plan(tuple(profile or [DEFAULT_PROFILE]), systems(against), ablation, packs)
    wanted = commands.Wanted(data, plan, store, answers, out, name)
    with _progress() as progress:
        found = asyncio.run(commands.quality(wanted, os.environ, progress))
    _show(found, text, table=table)


@app.command()
def tune(
    data: Annotated[
        list[str] | None, typer.Option(help="As for quality; several weigh the same each.")
    ] = None,
    profile: Annotated[
        str, typer.Option(help="Whose episodes channel; the default profile if not given.")
    ] = "",
    write: Annotated[
        Path | None, typer.Option(help="The profile's file, changed if that is worth it.")
    ] = None,
    out: Out = None,
    table: Table = False,
) -> None:
    """Choose k and the weights of the episodes channel by cross-validation over data of several kinds.

    Each --data is held out in turn (of a single one, each conversation): what was chosen on the others is compared on
    it with the profile as it is. Says what it would change; a file is changed only with --write, when most gain.

    Examples: scripts/bench tune --data notes --data musique.json · scripts/bench tune --data DIR --write FILE
    """
    from benchmarks import tune as tuning
    from pps.recall.request import DEFAULT_PROFILE

    wanted = tuning.TuneWanted(tuple(data or ()), profile or DEFAULT_PROFILE, write, out)
    with _progress() as progress:
        found = asyncio.run(tuning.tune(wanted, os.environ, progress))
    _show(found, tuning.text, table=table)


@app.command()
def scale(
    sizes: Annotated[
        str, typer.Option(help="Facts at which recall is measured, rising.")
    ] = "2500,25000,100000",
    middle: Annotated[
        int, typer.Option(help="Facts at which filters and the edge channel are measured.")
    ] = 50_000,
    only: Annotated[
        str, typer.Option(help="Some of: recall,filters,edges,nearest,structured,import,http.")
    ] = "",
    calls: Annotated[int, typer.Option(help="Calls behind each row of percentiles.")] = 150,
    facts: Annotated[int, typer.Option(help="Structured facts to write.")] = 20_000,
    turns: Annotated[int, typer.Option(help="Turns to import.")] = 2_400,
    seed: Annotated[int, typer.Option(help="Of the generated memory.")] = 7,
    store: Annotated[str, typer.Option(help="embedded or neo4j; the setting's if not given.")] = "",
    out: Out = None,
    name: Name = "scale",
    table: Table = False,
) -> None:
    """Measure latency, memory, disk and writing on a generated memory, beside stock Graphiti.

    Takes about fifteen minutes and 4 GB of disk at the sizes above. --out needs the extra bench.

    Examples: scripts/bench scale --only http,import · scripts/bench scale --sizes 2500 --middle 2500 --out DIR
    """
    from benchmarks import scale as scaling
    from benchmarks import scale_report

    plan = scaling.Plan(_numbers(sizes), middle, _words(only), calls, facts, turns, seed)
    with _progress() as progress:
        found = asyncio.run(scaling.scale(plan, store, os.environ, progress))
    if out:
        scale_report.save(found, out, name)
    _show(found, scale_report.text, table=table)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted(int(word) for word in text.split(",")))
    except ValueError:
        raise InvalidRequest(
            "sizes", "must be numbers with commas between them, such as 2500,25000"
        ) from None


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _show(
    found: Mapping[str, Any], text: Callable[[Mapping[str, Any]], str], *, table: bool
) -> None:
    typer.echo(text(found) if table else json.dumps(found, indent=2))


def _show_times(
    found: Mapping[str, Any], times: Times, out: Path | None, name: str, *, table: bool
) -> None:
    """Keep a report of times where one is wanted, and print it."""
    if out:
        times.save(found, out, name)
    _show(found, times.text, table=table)


@app.command("hooks")
def hooks_(
    facts: Annotated[
        int, typer.Option(min=4, help="Facts in the memory that answers; generated.")
    ] = 50_000,
    prompts: Annotated[
        int, typer.Option(min=2, help="Prompts timed, after some to warm up.")
    ] = 200,
    home: Annotated[
        Path | None, typer.Option(help="Data folder to keep and use again; else a throw-away one.")
    ] = None,
    out: Out = None,
    name: Name = "hooks",
    table: Table = False,
) -> None:
    """Time the prompt hook: its start, the round trip to a warm server, and the whole process, in milliseconds.

    Example: scripts/bench hooks --facts 5000 --prompts 100
    """
    from benchmarks.hooks import HooksWanted, hooks
    from benchmarks.times_report import HOOKS

    with _progress() as progress:
        found = asyncio.run(hooks(HooksWanted(facts, prompts, home), os.environ, progress))
    _show_times(found, HOOKS, out, name, table=table)


@app.command()
def rerank(
    facts: Annotated[
        int, typer.Option(min=4, help="Facts in the memory that answers; generated.")
    ] = 5_000,
    calls: Annotated[int, typer.Option(min=2, help="Questions asked each way.")] = 100,
    model: Annotated[
        str, typer.Option(help="A cross-encoder's folder or name; else the setting's, or random.")
    ] = "",
    out: Out = None,
    name: Name = "rerank",
    table: Table = False,
) -> None:
    """Time the facts channel with a cross-encoder and by ranks alone, in turn, in milliseconds.

    Without a model one of the usual size is made, with random weights: its times are those of a trained one, and its
    order means nothing. Needs the extra torch.

    Example: scripts/bench rerank --facts 2000 --model cross-encoder/ms-marco-MiniLM-L6-v2
    """
    from benchmarks.reranking import RerankWanted, reranking
    from benchmarks.times_report import RERANK

    with _progress() as progress:
        found = asyncio.run(reranking(RerankWanted(facts, calls, model), os.environ, progress))
    _show_times(found, RERANK, out, name, table=table)


@app.command()
def timeline(
    data: Data = "",
    generated: Annotated[
        int, typer.Option(help="So many made-up events instead of data.", min=0)
    ] = 0,
    questions: Annotated[int, typer.Option(help="Questions to ask.", min=1)] = 2000,
    seed: Annotated[int, typer.Option(help="Of the questions, and of made-up events.")] = 14,
    store: Annotated[str, typer.Option(help="embedded or neo4j; the setting's if not given.")] = "",
    out: Out = None,
    table: Table = False,
) -> None:
    """Ask the timeline about dated events (ICEWS14's files) at points and spans of time, page by page.

    The data are a folder with train.txt, entity2id.txt and relation2id.txt. An event holds for its day; each answer
    is compared with what the events alone say. Ends with 1 unless all of them are exact.

    Examples: scripts/bench timeline --data DIR · scripts/bench timeline --generated 500 --questions 100
    """
    from benchmarks import timeline as timelines
    from benchmarks.times_report import TIMELINE

    wanted = timelines.TimelineWanted(data, generated, questions, seed, store, out)
    with _progress() as progress:
        found = asyncio.run(timelines.timeline(wanted, os.environ, progress))
    _show(found, TIMELINE.text, table=table)
    if found["exact"] != found["questions"]:
        raise typer.Exit(1)


@app.command("records")
def records_(
    sizes: Annotated[
        str, typer.Option(help="Records at which times are measured; 50000 takes an hour.")
    ] = "",
    calls: Annotated[int, typer.Option(min=2, help="Calls behind each row of percentiles.")] = 30,
    store: Annotated[str, typer.Option(help="embedded or neo4j; the setting's if not given.")] = "",
    out: Out = None,
    name: Name = "records",
    table: Table = False,
) -> None:
    """Measure how well records are found on labelled ones, and how long lists, searches and a session's start take.

    Example: scripts/bench records --sizes 45,500 --table
    """
    from benchmarks import records

    wanted = records.RecordsWanted(
        _numbers(sizes) if sizes else records.SIZES, calls, store, out, name
    )
    with _progress() as progress:
        found = asyncio.run(records.records(wanted, os.environ, progress))
    _show(found, records.text, table=table)


@app.command("squad")
def squad_(out: Out = None, table: Table = False) -> None:
    """Measure a squad's memory beside the same texts in files: ten tasks, steps, tokens, found or not.

    Example: scripts/bench squad --table
    """
    from benchmarks import squad

    with _progress() as progress:
        found = asyncio.run(squad.squad(os.environ, out, progress))
    _show(found, squad.text, table=table)


@app.command("perspectives")
def perspectives_(
    data: Annotated[
        list[str] | None, typer.Option(help="As for quality; several are told beside each other.")
    ] = None,
    profile: Annotated[
        str, typer.Option(help="That each is added to or left out of; else the default one.")
    ] = "",
    conversations: Annotated[
        int, typer.Option(min=0, help="At most so many of data not shipped; 0 is all.")
    ] = 0,
    questions: Annotated[
        int, typer.Option(min=0, help="At most so many of data not shipped; 0 is all.")
    ] = 0,
    sessions: Annotated[
        int, typer.Option(min=0, help="Also topics, and divergence on so many sessions.")
    ] = 0,
    out: Out = None,
    table: Table = False,
) -> None:
    """Tell what each perspective brings and costs: added to the vectors alone, and to a profile or left out of it.

    Examples: scripts/bench perspectives --data causes --table · scripts/bench perspectives --data DIR --questions 60
    """
    from benchmarks import perspectives
    from pps.recall.request import DEFAULT_PROFILE

    given = (tuple(data or ()), profile or DEFAULT_PROFILE, conversations, questions, sessions, out)
    with _progress() as progress:
        found = asyncio.run(
            perspectives.perspectives(perspectives.PerspectivesWanted(*given), os.environ, progress)
        )
    _show(found, perspectives.text, table=table)


@app.command("lookups")
def lookups_(
    turns: Annotated[
        int, typer.Option(min=100, max=1_000_000, help="Turns of the generated memory.")
    ] = 50_000,
    out: Out = None,
    table: Table = False,
) -> None:
    """Measure what a lookup by each perspective takes in a large memory, and what its features cost.

    Example: scripts/bench lookups --turns 5000 --table
    """
    from benchmarks import lookups

    with _progress() as progress:
        found = asyncio.run(lookups.large(turns, os.environ, out, progress))
    _show(found, lookups.text, table=table)


@contextlib.contextmanager
def _progress() -> Generator[Progress]:
    """Lend what shows progress on stderr: a bar on a terminal, else a line for each step that is done."""
    if not sys.stderr.isatty():
        yield _lines
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
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


def main() -> int:
    """Run the command line on this process's arguments; return the exit code: 1 failed, 2 asked wrongly."""
    try:
        return app(prog_name="scripts/bench", standalone_mode=False) or 0
    except typer.TyperException as error:
        typer.echo(f"scripts/bench: {error.format_message()}", err=True)
        return error.exit_code
    except PPSError as error:
        typer.echo(f"scripts/bench: {' '.join(error.message.split())}", err=True)
        return 2 if isinstance(error, InvalidRequest | ConfigError) else 1


if __name__ == "__main__":
    sys.exit(main())
