"""``pps hooks …``: memory in a client's sessions, by hooks in its settings or a plugin of ours."""

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
    from pps.interfaces.cli.client_settings import HookClient

_SCOPES = ("user", "project", "local")
_CLIENTS = ("claude", "codex", "cursor", "gemini", "opencode", "openclaw")
_client = click.option(
    "--client",
    type=click.Choice(_CLIENTS),
    default="claude",
    help="Whose sessions: Claude Code's if not given.",
)
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
        "pps hooks install --client codex --entity ana",
    ),
)
@_client
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
    help="Let a command read what is said for facts: claude, codex, gemini, ollama or a command "
    "line; 'none' turns it "
    "off.",
)
def install(
    client: str, scope: str, entity: str, project: Path, extract: str, *, as_json: bool
) -> None:
    """Add the hooks to a client's settings, beside what is there. A second time changes nothing.

    With --extract a command of yours, such as Claude Code itself, reads the turns for facts on its
    own login.
    """
    from pps.interfaces.cli import client_settings

    chosen = _chosen(client, scope)
    if extract:
        _let_read(entity, extract)
    if entity and server().call("entity_show", "", {"name": entity})["data"]["archived"]:
        raise InvalidRequest(
            "--entity",
            f"{entity!r} is archived; `pps entity archive {entity} --undo` brings it back",
        )
    if scope != "user" and not project.is_dir():
        raise InvalidRequest("--project", f"there is no folder at {project}")
    path = chosen.settings_file(scope, project.absolute())
    home = str(home_folder()) if os.environ.get("PPS_HOME") else ""
    if chosen.form == "plugin":
        changed = client_settings.install_plugin(client, path, entity, home)
    else:
        changed = client_settings.install(path, entity, home, chosen)
    if as_json:
        result = {
            "settings": str(path),
            "changed": changed,
            "entity": entity,
            "events": list(chosen.events),
        }
        show_json({**result, "extract": extract, "found": list(_found())})
        return
    click.echo(f"{path} {'has the hooks now' if changed else 'had these hooks already'}.")
    if entity:
        click.echo(f"From the next session on {chosen.title} remembers as {entity}.")
    else:
        click.echo(
            "Map each project that is to be remembered: pps route add FOLDER NAME. Others are left "
            "alone."
        )
    if chosen.then:
        click.echo(chosen.then)
    click.echo(_facts(entity, extract))


def _chosen(client: str, scope: str) -> HookClient:
    from pps.interfaces.cli.client_settings import hook_clients

    chosen = hook_clients()[client]
    if scope not in chosen.scopes:
        raise InvalidRequest("--scope", f"of {client} there is {' and '.join(chosen.scopes)}")
    return chosen


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
    settings = _found()
    if not settings:
        return (
            "By default rules read facts from plain sentences. With `claude`, `codex`, `gemini` or "
            "`ollama` on your PATH a model finds more: install again with --extract NAME."
        )
    line = f"pps hooks install --entity {entity or 'NAME'} --extract {settings[0]}"
    text = f"{' and '.join(settings)} can read what is said for facts, on your own login: `{line}`."
    if not entity:
        return text
    from pps.core.time import iso, now  # not at the top: help imports nothing heavy

    arguments: dict[str, JSON] = {"since": iso(now() - timedelta(days=7)), "dry_run": True}
    tokens = finished(server().follow("extract", entity, arguments), quiet=True)["data"]["tokens"]
    return (
        f"{text} A day of your last week would take about {tokens // 7:,} tokens."
        if tokens
        else text
    )


def _found() -> tuple[str, ...]:
    """Return the known programs that are on the PATH."""
    from pps.models.program import presets  # not at the top: help imports nothing heavy

    return tuple(name for name, preset in presets().items() if shutil.which(preset.words[0]))


@click.command(
    params=[AS_JSON],
    cls=Taught,
    takes_away=True,
    examples=("pps hooks uninstall", "pps hooks uninstall --client codex"),
)
@_client
@_scope
@_project
def uninstall(client: str, scope: str, project: Path, *, as_json: bool) -> None:
    """Take the hooks out of a client's settings; what was remembered stays."""
    from pps.interfaces.cli import client_settings

    chosen = _chosen(client, scope)
    path = chosen.settings_file(scope, project.absolute())
    if chosen.form == "plugin":
        changed = client_settings.uninstall_plugin(client, path)
    else:
        changed = client_settings.uninstall(path)
    if as_json:
        show_json({"settings": str(path), "changed": changed})
        return
    click.echo(f"{path} {'is as it was without the hooks' if changed else 'has no hooks of ours'}.")


@click.command(
    params=[AS_JSON],
    cls=Taught,
    examples=("pps hooks status", "pps hooks status --client codex"),
)
@_client
@_project
def status(client: str, project: Path, *, as_json: bool) -> None:
    """Say where the hooks are installed, whether they can run, and what waits in the spool."""
    from pps.interfaces.cli.client_settings import hook_clients
    from pps.server import find, spool

    chosen = hook_clients()[client]
    scopes = [_installed(chosen, scope, project.absolute()) for scope in chosen.scopes]
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
    for installed in scopes:
        click.echo(f"{installed['scope']:<8} {installed['state']:<14} {installed['settings']}")
    click.echo(f"server   {'running' if running else 'away: a session that begins starts it'}")
    click.echo(
        f"spool    {state.waiting} waiting, {state.bad} could not be read, {state.dropped} found "
        "no room"
    )


def _installed(client: HookClient, scope: str, project: Path) -> dict[str, JSON]:
    from pps.interfaces.cli import client_settings

    path = client.settings_file(scope, project)
    try:
        if client.form == "plugin":
            named = client_settings.plugin_entity(client.name, path)
            place: dict[str, JSON] = {"scope": scope, "settings": str(path)}
            return {
                **place,
                "state": "not installed" if named is None else "installed",
                "entity": named or "",
                "events": [],
                "missing": [],
            }
        hooks = client_settings.look(path)
    except InvalidRequest as error:
        return {
            "scope": scope,
            "settings": str(path),
            "state": "unreadable",
            "problem": error.message,
        }
    complete = set(hooks.events) == set(client.events)
    state = (
        "broken"
        if hooks.missing
        else "installed"
        if complete
        else "incomplete"
        if hooks.events
        else "not installed"
    )
    return {
        "scope": scope,
        "settings": str(path),
        "state": state,
        "entity": hooks.entity,
        "events": list(hooks.events),
        "missing": list(hooks.missing),
    }


COMMANDS = (install, uninstall, status)
