"""``pps hooks …``: memory for Claude Code without a plugin."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pps.config.home import home_folder
from pps.core.errors import InvalidRequest
from pps.core.values import JSON
from pps.link import spool
from pps.link.start import find
from pps.surfaces.cli import claude_settings
from pps.surfaces.cli.talk import AsJson, server, show_json

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
    as_json: AsJson = False,
) -> None:
    """Add the hooks to Claude Code's settings, beside what is there. A second time changes nothing.

    Examples: pps hooks install --entity ana · pps hooks install --scope local --entity shop
    """
    if entity and server().admin("entity.show", {"name": entity})["archived"]:
        raise InvalidRequest("--entity", f"{entity!r} is archived; `pps entity archive {entity} --undo` brings it back")
    if scope is not Scope.user and not project.is_dir():
        raise InvalidRequest("--project", f"there is no folder at {project}")
    path = claude_settings.settings_file(scope.value, project.absolute())
    home = str(home_folder()) if os.environ.get("PPS_HOME") else ""
    changed = claude_settings.install(path, entity, home)
    if as_json:
        show_json({"settings": str(path), "changed": changed, "entity": entity, "events": list(claude_settings.EVENTS)})
        return
    typer.echo(f"{path} {'has the hooks now' if changed else 'had these hooks already'}.")
    if entity:
        typer.echo(f"From the next session on Claude Code remembers as {entity}.")
    else:
        typer.echo("Map each project that is to be remembered: pps route add FOLDER NAME. Others are left alone.")


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
