"""The commands of the installation: set-up, server, bridge, looking after it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from pps.config.home import INSIDE, home_folder
from pps.core.errors import InvalidRequest, StoreConflict
from pps.interfaces.cli.output import AsJson, absolute, show_json, work

if TYPE_CHECKING:
    from pathlib import Path

    from pps.config import Settings
    from pps.core.values import JSON


@dataclass(frozen=True, slots=True)
class Runners:
    """What the command line starts but does not know: other surfaces, handed in by ``__main__``.

    Attributes:
        serve: Serves until it is ended; takes the settings and whether it was started by need.
        bridge: Serves an entity on stdio; takes the data folder, the name and the toolsets.
        projects: Serves the project tools on stdio; takes the data folder and the roots.
    """

    serve: Callable[[Settings, bool], None]
    bridge: Callable[[Path, str, str], None]
    projects: Callable[[Path, list[str]], None]


def init(as_json: AsJson = False) -> None:
    """Make the data folder with a commented pps.toml. What is there stays.

    The folder is $PPS_HOME, else this platform's usual one.
    """
    from pps.config import load, shipped
    from pps.entities import Registry

    home = home_folder()
    Registry(home)
    file = home / "pps.toml"
    is_new = not file.exists()
    if is_new:
        file.touch(mode=0o600)
        file.write_text(shipped("config/pps.toml").read_text(encoding="utf-8"), encoding="utf-8")
    load()
    if as_json:
        show_json({"home": str(home), "settings": str(file), "is_new": is_new})
        return
    typer.echo(f"{home} is {'made' if is_new else 'there already'}; settings: {file}")
    typer.echo("Next: pps entity create NAME")


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="The setting's if not given (127.0.0.1).")] = "",
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="The setting's if not given; 0 takes any.")] = None,
    stop: Annotated[bool, typer.Option("--stop", help="End the running server instead.")] = False,
    auto: Annotated[bool, typer.Option("--auto", hidden=True)] = False,
) -> None:
    """Run the server that owns the memories, until Ctrl-C; or end the one that runs.

    Other commands start one when they need it, and that one ends when idle. Run it yourself for clients over
    HTTP, or to have it always there.

    Examples: pps serve · pps serve --port 9000 · pps serve --stop
    """
    home = home_folder()
    if stop:
        _stopped(home)
        return
    from pps.config import load
    from pps.interfaces import logs
    from pps.server import find
    from pps.server import stop as end

    settings = load()
    given = {name: value for name, value in (("host", host), ("port", port)) if value not in ("", None)}
    settings = settings.model_copy(update={"server": settings.server.model_copy(update=given)})
    logs.set_up(settings.log_level)
    running = None if auto else find(home)
    if running is not None and running.run.auto:
        end(home)
    elif running is not None:
        raise StoreConflict(
            f"process {running.run.pid} serves already, at {running.run.url}; `pps serve --stop` ends it"
        )
    runners: Runners = context.obj
    runners.serve(settings, auto)


def mcp(
    context: typer.Context,
    entity: Annotated[str, typer.Option("--entity", "-e", help="Whose memory; nothing else can be reached.")] = "",
    router: Annotated[bool, typer.Option("--router", help="The project tools instead, for any project.")] = False,
    root: Annotated[
        list[str] | None, typer.Option(help="With --router: only projects at or below this folder.")
    ] = None,
    toolset: Annotated[
        str,
        typer.Option(help="With --entity: core, anchors, records, upkeep (commas between) or all; core if not given."),
    ] = "",
) -> None:
    """Serve one entity's tools, or those of projects, on stdin and stdout, for an MCP client to start.

    Starts the server when it is away. `pps entity show NAME` prints the client's configuration.

    Examples: claude mcp add pps-ana -- pps mcp --entity ana · claude mcp add pps-projects -- pps mcp --router
    """
    from pps.interfaces import logs

    if router == bool(entity) or (root and not router):
        raise InvalidRequest("--entity", "give an entity's name, or --router (and --root with it, if you want)")
    if INSIDE in os.environ:  # a command that reads turns has no use for the memory, and must not feed it
        return
    logs.set_up("warning")
    runners: Runners = context.obj
    if router:
        runners.projects(home_folder(), [absolute(one) for one in root or ["/"]])
    else:
        runners.bridge(home_folder(), entity, toolset)


def doctor(
    name: Annotated[str, typer.Argument(help="Only this entity; every one if not given.", metavar="[NAME]")] = "",
    offline: Annotated[bool, typer.Option("--offline", help="Open the files here; the server must not run.")] = False,
    as_json: AsJson = False,
) -> None:
    """Look at settings, folder, server and every entity, and say what to do. Exit code 1 on a problem.

    Of each entity it compares journal, graph, text and vector index by their ids.

    Examples: pps doctor · pps doctor ana · pps doctor --offline
    """
    from pps.interfaces.cli.doctor import Finding, findings

    found: list[Finding] = []
    for finding in findings(home_folder(), name, offline=offline):
        found.append(finding)
        if not as_json:
            typer.echo(f"{'ok  ' if finding.ok else 'BAD '} {finding.check}: {finding.detail}")
    if as_json:
        show_json([finding.data() for finding in found])
    if not all(finding.ok for finding in found):
        raise typer.Exit(1)


def verify_isolation(
    operations: Annotated[int, typer.Option(min=1, help="How many adversarial operations to try.")] = 2000,
    as_json: AsJson = False,
) -> None:
    """Attack the boundary between throw-away entities of this installation. Exit code 1 on any leak.

    Example: pps verify-isolation --operations 10000
    """
    report = work("verify_isolation", {"operations": operations}, as_json=as_json)
    if as_json:
        show_json(report)
    else:
        _verified(report)
    if not report["ok"]:
        raise typer.Exit(1)


def _verified(report: dict[str, JSON]) -> None:
    operations, refused = _counts(report["operations"]), _counts(report["refused"])
    typer.echo(
        f"{sum(operations.values()):,} operations by {report['entities']} entities on the store {report['store']}"
    )
    typer.echo("tried:   " + ", ".join(f"{kind} {number:,}" for kind, number in operations.items()))
    typer.echo("ended:   " + ", ".join(f"{how} {number:,}" for how, number in refused.items()))
    for what, words in (("leaks", "leaks"), ("told_apart", "told apart from nobody's ids"), ("broken", "broken calls")):
        found = report[what]
        listed = found if isinstance(found, list) else []
        typer.echo(f"{words}: {len(listed)}")
        for one in listed:
            if isinstance(one, dict):
                typer.echo(f"  {one['operation']} by {one['entity']}: {one['what']}")
    typer.echo(f"{'Nothing crossed the boundary' if report['ok'] else 'THE BOUNDARY FAILED'} ({report['seconds']} s)")


def _counts(value: JSON) -> dict[str, int]:
    pairs = value.items() if isinstance(value, dict) else ()
    return {name: number for name, number in pairs if isinstance(number, int)}


def demo() -> None:
    """Remember the shipped sample as two entities and ask both the same question; needs no server and no key.

    Example: PPS_HOME=/tmp/pps-demo pps demo
    """
    import asyncio

    from rich.console import Console

    from pps.config import load
    from pps.interfaces.cli.demo import demonstrate, show

    console = Console()
    show(console, asyncio.run(demonstrate(load(), console)))


def _stopped(home: Path) -> None:
    from pps.server import stop

    run = stop(home)
    typer.echo(f"The server (process {run.pid}) has ended." if run else "No server is running.")
