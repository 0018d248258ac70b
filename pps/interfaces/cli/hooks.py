"""``pps hooks …``: memory for Claude Code without a plugin."""

from __future__ import annotations

import os
import shlex
import shutil
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pps.config.home import home_folder
from pps.core.errors import InvalidRequest
from pps.interfaces.cli.commands import AS_JSON, EntityName, Taught
from pps.interfaces.cli.output import finished, server, show_json

if TYPE_CHECKING:
    from pps.core.values import JSON

_SCOPES = ("user", "project", "local")
_scope = click.option(
    "--scope",
    type=click.Choice(_SCOPES),
    default="user",
    help="user: all your projects; project: this one, shared; local: this one, yours.",
)
_project = click.option(
    "--project",
    type=Path,
    default=Path(),
    help="The project's folder, for the scopes project and local.",
)


@click.command(
    params=[AS_JSON],
    cls=Taught,
    examples=(
        "pps hooks install --entity ana --extract claude",
        "pps hooks install --scope local --entity shop",
    ),
)
@_scope
@click.option(
    "--entity",
    "-e",
    type=EntityName(),
    default="",
    help="Whose memory; without, `pps route` decides by the project's folder.",
)
@_project
@click.option(
    "--extract",
    default="",
    help="Let a command read what is said for facts: claude, codex, gemini, ollama or a command line; 'none' turns it "
    "off.",
)
def install(scope: str, entity: str, project: Path, extract: str, *, as_json: bool) -> None:
    """Add the hooks to Claude Code's settings, beside what is there. A second time changes nothing.

    With --extract a command of yours, such as Claude Code itself, reads the turns for facts on its own login.
    """
    from pps.interfaces.cli import claude_settings

    if extract:
        _let_read(entity, extract)
    if entity and server().call("entity_show", "", {"name": entity})["data"]["archived"]:
        raise InvalidRequest(
            "--entity",
            f"{entity!r} is archived; `pps entity archive {entity} --undo` brings it back",
        )
    if scope != "user" and not project.is_dir():
        raise InvalidRequest("--project", f"there is no folder at {project}")
    path = claude_settings.settings_file(scope, project.absolute())
    home = str(home_folder()) if os.environ.get("PPS_HOME") else ""
    changed = claude_settings.install(path, entity, home)
    if as_json:
        shown = {
            "settings": str(path),
            "changed": changed,
            "entity": entity,
            "events": list(claude_settings.EVENTS),
        }
        show_json({**shown, "extract": extract, "found": list(_found())})
        return
    click.echo(f"{path} {'has the hooks now' if changed else 'had these hooks already'}.")
    if entity:
        click.echo(f"From the next session on Claude Code remembers as {entity}.")
    else:
        click.echo(
            "Map each project that is to be remembered: pps route add FOLDER NAME. Others are left alone."
        )
    click.echo(_facts(entity, extract))


def _let_read(entity: str, extract: str) -> None:
    if not entity:
        raise InvalidRequest(
            "--extract", "needs --entity: it is set for one; for all: extractor.mode in pps.toml"
        )
    program = shlex.split(extract)[0]
    if extract != "none" and shutil.which(program) is None:
        raise InvalidRequest("--extract", f"no program {program!r} is found on PATH")
    server().call(
        "entity_extract", "", {"name": entity, "command": "" if extract == "none" else extract}
    )


def _facts(entity: str, extract: str) -> str:
    """Return how the memory gets its facts, or how it could: nothing is turned on unasked."""
    if extract:
        return (
            "Facts are found by no command any more."
            if extract == "none"
            else f"Facts are found by {extract!r}."
        )
    if not (found := _found()):
        return "Facts come from the agent that remembers; docs/ingestion.md says how else."
    line = f"pps hooks install --entity {entity or 'NAME'} --extract {found[0]}"
    said = f"{' and '.join(found)} can read what is said for facts, on your own login: `{line}`."
    if not entity:
        return said
    asked: dict[str, JSON] = {"since": _week_ago(), "dry_run": True}
    tokens = finished(server().follow("extract", entity, asked), quiet=True)["data"]["tokens"]
    return (
        f"{said} A day of your last week would take about {tokens // 7:,} tokens."
        if tokens
        else said
    )


def _found() -> tuple[str, ...]:
    """Return the known programs that are on the PATH."""
    from pps.models.command import presets  # not at the top: help imports nothing heavy

    return tuple(name for name, preset in presets().items() if shutil.which(preset.words[0]))


def _week_ago() -> str:
    from pps.core.time import iso, now

    return iso(now() - timedelta(days=7))


@click.command(params=[AS_JSON], cls=Taught, takes_away=True, examples=("pps hooks uninstall",))
@_scope
@_project
def uninstall(scope: str, project: Path, *, as_json: bool) -> None:
    """Take the hooks out of Claude Code's settings; what was remembered stays."""
    from pps.interfaces.cli import claude_settings

    path = claude_settings.settings_file(scope, project.absolute())
    changed = claude_settings.uninstall(path)
    if as_json:
        show_json({"settings": str(path), "changed": changed})
        return
    click.echo(f"{path} {'is as it was without the hooks' if changed else 'has no hooks of ours'}.")


@click.command(params=[AS_JSON], cls=Taught, examples=("pps hooks status",))
@_project
def status(project: Path, *, as_json: bool) -> None:
    """Say where the hooks are installed, whether they can run, and what waits in the spool."""
    from pps.server import find, spool

    scopes = [_installed(scope, project.absolute()) for scope in _SCOPES]
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
        show_json({"scopes": list(scopes), "server": running, "spool": waits})
        return
    for one in scopes:
        click.echo(f"{one['scope']:<8} {one['state']:<14} {one['settings']}")
    click.echo(f"server   {'running' if running else 'away: a session that begins starts it'}")
    click.echo(
        f"spool    {state.waiting} waiting, {state.bad} could not be read, {state.dropped} found no room"
    )


def _installed(scope: str, project: Path) -> dict[str, JSON]:
    from pps.interfaces.cli import claude_settings

    path = claude_settings.settings_file(scope, project)
    try:
        found = claude_settings.look(path)
    except InvalidRequest as error:
        return {
            "scope": scope,
            "settings": str(path),
            "state": "unreadable",
            "problem": error.message,
        }
    complete = set(found.events) == set(claude_settings.EVENTS)
    state = (
        "broken"
        if found.missing
        else "installed"
        if complete
        else "incomplete"
        if found.events
        else "not installed"
    )
    return {
        "scope": scope,
        "settings": str(path),
        "state": state,
        "entity": found.entity,
        "events": list(found.events),
        "missing": list(found.missing),
    }


COMMANDS = (install, uninstall, status)
