"""``pps hooks …``: memory for Claude Code without a plugin."""

from __future__ import annotations

import os
import shlex
import shutil
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pps.config.home import home_folder
from pps.core.errors import InvalidRequest
from pps.core.time import iso, now
from pps.core.values import JSON
from pps.interfaces.cli import claude_settings
from pps.interfaces.cli.output import AsJson, server, show_json, work
from pps.server import spool
from pps.server.link import find

app = typer.Typer(no_args_is_help=True, help="Hooks that give Claude Code this memory, in its settings file.")


class Scope(StrEnum):
    """Which settings file of Claude Code is meant."""

    user = "user"
    project = "project"
    local = "local"


_Scope = Annotated[
    Scope, typer.Option(help="user: all your projects; project: this one, shared; local: this one, yours.")
]
_Project = Annotated[Path, typer.Option(help="The project's folder, for the scopes project and local.")]


@app.command()
def install(
    scope: _Scope = Scope.user,
    entity: Annotated[
        str, typer.Option("--entity", "-e", help="Whose memory; without, `pps route` decides by the project's folder.")
    ] = "",
    project: _Project = Path(),
    extract: Annotated[
        str,
        typer.Option(
            help="Let a command read what is said for facts: claude, codex, gemini, ollama or a command line; "
            "'none' turns it off."
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Add the hooks to Claude Code's settings, beside what is there. A second time changes nothing.

    With --extract a command of yours, such as Claude Code itself, reads the turns for facts on its own login.

    Examples: pps hooks install --entity ana --extract claude · pps hooks install --scope local --entity shop
    """
    if extract:
        _let_read(entity, extract)
    if entity and server().admin("entity.show", {"name": entity})["archived"]:
        raise InvalidRequest("--entity", f"{entity!r} is archived; `pps entity archive {entity} --undo` brings it back")
    if scope is not Scope.user and not project.is_dir():
        raise InvalidRequest("--project", f"there is no folder at {project}")
    path = claude_settings.settings_file(scope.value, project.absolute())
    home = str(home_folder()) if os.environ.get("PPS_HOME") else ""
    changed = claude_settings.install(path, entity, home)
    if as_json:
        shown = {"settings": str(path), "changed": changed, "entity": entity, "events": list(claude_settings.EVENTS)}
        show_json({**shown, "extract": extract, "found": list(_found())})
        return
    typer.echo(f"{path} {'has the hooks now' if changed else 'had these hooks already'}.")
    if entity:
        typer.echo(f"From the next session on Claude Code remembers as {entity}.")
    else:
        typer.echo("Map each project that is to be remembered: pps route add FOLDER NAME. Others are left alone.")
    typer.echo(_facts(entity, extract))


def _let_read(entity: str, extract: str) -> None:
    if not entity:
        raise InvalidRequest("--extract", "needs --entity: it is set for one; for all: extractor.mode in pps.toml")
    program = shlex.split(extract)[0]
    if extract != "none" and shutil.which(program) is None:
        raise InvalidRequest("--extract", f"no program {program!r} is found on PATH")
    server().admin("entity.extract", {"name": entity, "command": "" if extract == "none" else extract})


def _facts(entity: str, extract: str) -> str:
    """Return how the memory gets its facts, or how it could: nothing is turned on unasked."""
    if extract:
        return "Facts are found by no command any more." if extract == "none" else f"Facts are found by {extract!r}."
    if not (found := _found()):
        return "Facts come from the agent that remembers; docs/ingestion.md says how else."
    line = f"pps hooks install --entity {entity or 'NAME'} --extract {found[0]}"
    said = f"{' and '.join(found)} can read what is said for facts, on your own login: `{line}`."
    if not entity:
        return said
    week = work("extract", {"entity": entity, "since": _week_ago(), "dry_run": True}, as_json=True)
    tokens = week["tokens"] if isinstance(week["tokens"], int) else 0
    return f"{said} A day of your last week would take about {tokens // 7:,} tokens." if tokens else said


def _found() -> tuple[str, ...]:
    """Return the known programs that are on the PATH."""
    from pps.models.command import presets  # not at the top: help imports nothing heavy

    return tuple(name for name, preset in presets().items() if shutil.which(preset.words[0]))


def _week_ago() -> str:
    return iso(now() - timedelta(days=7))


@app.command()
def uninstall(scope: _Scope = Scope.user, project: _Project = Path(), as_json: AsJson = False) -> None:
    """Take the hooks out of Claude Code's settings; what was remembered stays.

    Example: pps hooks uninstall
    """
    path = claude_settings.settings_file(scope.value, project.absolute())
    changed = claude_settings.uninstall(path)
    if as_json:
        show_json({"settings": str(path), "changed": changed})
        return
    typer.echo(f"{path} {'is as it was without the hooks' if changed else 'has no hooks of ours'}.")


@app.command()
def status(project: _Project = Path(), as_json: AsJson = False) -> None:
    """Say where the hooks are installed, whether they can run, and what waits in the spool.

    Example: pps hooks status
    """
    scopes: list[JSON] = [_scope(scope, project.absolute()) for scope in Scope]
    home = home_folder()
    state = spool.look(home)
    waits: dict[str, JSON] = {
        "folder": str(spool.spool_folder(home)),
        "waiting": state.waiting,
        "bytes": state.size,
        "bad": state.bad,
        "dropped": state.dropped,
    }
    running = find(home) is not None
    if as_json:
        show_json({"scopes": scopes, "server": running, "spool": waits})
        return
    for one in scopes:
        if isinstance(one, dict):
            typer.echo(f"{one['scope']:<8} {one['state']:<14} {one['settings']}")
    typer.echo(f"server   {'running' if running else 'away: a session that begins starts it'}")
    typer.echo(f"spool    {state.waiting} events wait, {state.bad} could not be read, {state.dropped} found no room")


def _scope(scope: Scope, project: Path) -> dict[str, JSON]:
    path = claude_settings.settings_file(scope.value, project)
    try:
        found = claude_settings.look(path)
    except InvalidRequest as error:
        return {"scope": scope.value, "settings": str(path), "state": "unreadable", "problem": error.message}
    complete = set(found.events) == set(claude_settings.EVENTS)
    state = (
        "broken" if found.missing else "installed" if complete else "incomplete" if found.events else "not installed"
    )
    return {
        "scope": scope.value,
        "settings": str(path),
        "state": state,
        "entity": found.entity,
        "events": list(found.events),
        "missing": list(found.missing),
    }
