"""The command line put together, and its outermost call: every error is one line and an exit code."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from pps import __version__
from pps.core.errors import PPSError
from pps.interfaces.cli import (
    anchors,
    documents,
    entity,
    hooks,
    jobs,
    memory,
    merges,
    records,
    route,
    router,
    system,
    task,
)
from pps.interfaces.cli.output import misused, told, unforeseen
from pps.interfaces.cli.profiles import profiles
from pps.interfaces.cli.system import Runners

_HELP = """A private, lasting memory for AI agents.

Begin with: pps init, pps entity create ana, pps remember ana "…", pps recall ana "…".
Exit codes: 0 done, 1 failed, 2 asked wrongly, 3 not there, 4 try again later."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pps {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def build() -> typer.Typer:
    """Return the command line; nothing of a memory is imported for it."""
    app = typer.Typer(no_args_is_help=True, help=_HELP, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(_root)
    app.command()(system.init)
    app.add_typer(entity.app, name="entity")
    app.add_typer(route.app, name="route")
    app.add_typer(router.app, name="router")
    app.add_typer(task.app, name="task")
    for command in (memory.remember, memory.recall, memory.why, memory.ambient):
        app.command()(command)
    for command in (records.event, records.update, records.append, records.history, records.costs, records.injected):
        app.command()(command)
    app.command("import")(documents.import_)
    app.command()(documents.export)
    app.add_typer(documents.app, name="watch")
    app.add_typer(anchors.app, name="anchors")
    app.add_typer(hooks.app, name="hooks")
    app.add_typer(jobs.app, name="jobs")
    app.command()(jobs.extract)
    app.add_typer(merges.app, name="merges")
    for command in (
        memory.timeline,
        memory.get,
        memory.forget,
        memory.stats,
        memory.reindex,
        memory.reembed,
        memory.rebuild,
    ):
        app.command()(command)
    for command in (system.serve, system.mcp, system.doctor, system.demo):
        app.command()(command)
    app.command("verify-isolation")(system.verify_isolation)
    app.command()(profiles)
    return app


def run(runners: Runners) -> None:
    """Run the command line on this process's arguments, and exit."""
    code = _code(runners)
    _drop_unwritten()
    sys.exit(code)


def _code(runners: Runners) -> int:
    try:
        code = build()(obj=runners, prog_name="pps", standalone_mode=False) or 0
        _flush()
    except typer.Abort:
        typer.echo("pps: nothing was done", err=True)
        return 1
    except typer.TyperException as error:
        return misused(error)
    except PPSError as error:
        return told(error)
    except BrokenPipeError:  # who reads the output has enough of it
        return 1
    except Exception as error:  # noqa: BLE001 - the surface's outermost call
        return unforeseen(error)
    return code


def _drop_unwritten() -> None:
    """Forget output that cannot be written: at its end Python would try again, and say so in lines of its own."""
    try:
        _flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flush() -> None:
    if sys.stdout:  # there is none when it was closed from the start
        sys.stdout.flush()
