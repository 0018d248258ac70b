"""Carrying commands out: the server is asked, its answer shown.

And what a few do on this machine beside.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import click

from pps.config.home import home_folder
from pps.core.errors import InvalidRequest, PPSError
from pps.core.ids import is_beginning, is_uuid, short_id
from pps.core.text import visible
from pps.interfaces.cli import output

if TYPE_CHECKING:
    from pps.config import Settings
    from pps.core.values import JSON
    from pps.entities.folder import Entry
    from pps.interfaces.cli.command_table import Command
    from pps.journal.outline import Outline


Arguments: TypeAlias = "dict[str, JSON]"
Data: TypeAlias = dict[str, Any]

_CODES: Mapping[str, Callable[[Data], int]] = {
    "import": lambda data: 1 if data["unreadable_count"] else 0,
    "extract": lambda data: output.EXIT_AGAIN if data.get("waiting") and not data["dry_run"] else 0,
    "pack_check": lambda data: 0 if data["ok"] else 1,
    "status": lambda data: 1 if any(entity["problem"] for entity in data["entities"]) else 0,
    "upgrade": lambda data: (
        1 if any(entity["state"] == "failed" for entity in data["entities"]) else 0
    ),
    "verify_isolation": lambda data: 0 if data["ok"] else 1,
}
_NEXT_PAGES = {"next_cursor": "cursor", "next": "after"}
"""Field of an answer that tells where the next page begins → the argument that takes it."""


def do(command: Command, arguments: Arguments, typed: Mapping[str, Any]) -> None:
    """Ask the server for a command's operation and print the answer.

    Some end with an exit code that tells of it.
    """
    if command.operation == "export" and typed["path"] == "-":
        _exported(command, arguments)
        return
    if command.operation == "import" and not arguments.get("dry_run"):
        _estimated(command, arguments)
    if command.operation == "forget" and arguments.get("dry_run") is False:
        arguments = {**arguments, "ids": _confirmed_ids(command, arguments, typed)}
    answer = _asked(command, arguments, typed)
    data: Data = answer["data"]
    around = _AROUND.get(command.operation)
    if around is not None:
        data, answer["text"] = around(data, answer["text"])
    if typed["as_json"]:
        output.show_json(data)
    else:
        text = output.short(answer["text"], data)
        lines = [text, *_next_steps(command, data, typed)]
        output.show(output.coloured(visible("\n".join(lines))))
    code = _CODES.get(command.operation, lambda _: 0)(data)
    if code:
        raise click.exceptions.Exit(code)


def _asked(command: Command, arguments: Arguments, typed: Mapping[str, Any]) -> Data:
    if command.operation == "status":
        from pps.server import find  # not at the top: help imports nothing heavy

        if find(home_folder()) is None:
            return _state_without_server()
    if command.operation == "upgrade":
        from pps.interfaces.cli.asking import upgraded_here
        from pps.server import find

        if find(home_folder()) is None:
            return output.finished(upgraded_here(arguments), quiet=typed["as_json"])
    link = output.server()
    entity = typed.get("whose", "")
    if command.is_long:
        return output.finished(
            link.follow(command.operation, entity, arguments), quiet=typed["as_json"]
        )
    return link.call(
        command.operation, entity, arguments, timeout_s=600 if command.confirms else 60
    )


def _state_without_server() -> Data:
    """Return what the operation ``status`` answers, for a data folder that no server has open."""
    from pps.config import load  # not at the top: help imports nothing heavy
    from pps.config.zones import zone_of
    from pps.entities.own import unusable
    from pps.entities.registry import Registry
    from pps.operations.installation import InstallationState, state_answer, state_of

    home = home_folder()
    settings = load()
    state = InstallationState(str(home), None, ())
    if (home / "registry.db").exists():
        entries = Registry(home).list(include_archived=True)
        problems = {entry.entity.name: unusable(entry) for entry in entries if not entry.archived}
        outlines = _outlines(settings, entries)
        state = state_of(home, entries, None, problems=problems, outlines=outlines)
    data, text = state_answer(state, zone_of(settings.time_zone))
    return {"data": data, "text": text}


def _outlines(settings: Settings, entries: Collection[Entry]) -> Mapping[str, Outline | str]:
    """Return how the memories stand that lie on PostgreSQL, or what stands in the way."""
    on_server = [entry for entry in entries if entry.store == "postgresql"]
    if not on_server:
        return {}
    from pps.journal.postgresql import database_of
    from pps.operations.installation import outlines_in

    try:
        with closing(database_of(settings.postgresql)) as database:
            return outlines_in(database, on_server)
    except PPSError as error:
        return {entry.entity.name: error.message for entry in on_server}


def _next_steps(command: Command, data: Data, typed: Mapping[str, Any]) -> list[str]:
    """Return what to type for the next page, and to carry out what a dry run showed."""
    options = {parameter.field: parameter.label for parameter in command.parameters}
    lines = [
        f"More: {options[field]} {data[value]}"
        for value, field in _NEXT_PAGES.items()
        if field in options and data.get(value)
    ]
    switch = next((parameter for parameter in command.parameters if parameter.inverts), None)
    if switch is not None and data.get(switch.field) is True:
        if data.get("by_name"):
            path = ["pps", *command.words, typed.get("whose", ""), *map(short_id, data["asked"])]
            lines.append(f"`{' '.join([*path, switch.label])}` does it.")
        else:
            lines.append(f"Add {switch.label} to do it.")
    return lines


def _confirmed_ids(command: Command, arguments: Arguments, typed: Mapping[str, Any]) -> JSON:
    """Return the ids of what is to be forgotten.

    Of names only after it was shown what goes, and somebody agreed.

    Raises:
        InvalidRequest: A name was given, and nobody can be asked: it says which ids to give.
        click.Abort: Somebody did not agree.
    """
    wanted = cast("list[str]", arguments["ids"])
    if all(is_uuid(id_) or is_beginning(id_) for id_ in wanted):
        return arguments["ids"]
    answer = _asked(command, {**arguments, "dry_run": True}, {**typed, "as_json": True})
    data: Data = answer["data"]
    if not data["by_name"]:  # slugs of anchors
        return arguments["ids"]
    *lines, _ = output.short(answer["text"], data).splitlines()
    may_ask = sys.stdin.isatty()
    if may_ask or not typed["as_json"]:
        output.say("\n".join(lines), err=typed["as_json"])
    if not may_ask:
        ids = " ".join(map(short_id, data["asked"]))
        remedy = f"`pps forget {typed['whose']} {ids} --yes` does it"
        raise InvalidRequest("--yes", f"nothing is forgotten by a name unseen; {remedy}")
    output.confirm("Forget this?")
    return data["asked"]


def _exported(command: Command, arguments: Arguments) -> None:
    """Write an export to stdout, through a temporary file that the server writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "export.jsonl"
        _asked(command, {**arguments, "path": str(file)}, {"as_json": True})
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                click.echo(line, nl=False)


def _estimated(command: Command, arguments: Arguments) -> None:
    """Print on stderr how many tokens an import would take, if a language model reads it."""
    from pps.config import load  # not at the top: help imports nothing heavy

    if load().extractor.mode == "model":
        counted = _asked(command, {**arguments, "dry_run": True}, {"as_json": False})
        lines = [
            line for line in counted["text"].splitlines() if "language model would take" in line
        ]
        output.say("\n".join(lines), err=True)


def _created(data: Data, text: str) -> tuple[Data, str]:
    """Add the next steps: Claude Code's hooks, other clients, and a first command."""
    name = data["name"]
    configs = _configs(f"pps-{name}", ["--entity", name], data)
    lines = (
        text,
        f"Claude Code: pps hooks install --entity {name}",
        f"Its tools, and other clients over stdio or HTTP: pps entity show {name}",
        f'Next: pps remember {name} "I moved to Lisbon in March."',
    )
    return {**data, "clients": configs}, "\n".join(lines)


def _described(data: Data, text: str) -> tuple[Data, str]:
    """Add how much an entity holds, and how it is added to a client."""
    configs = _configs(f"pps-{data['name']}", ["--entity", data["name"]], data)
    held = None if data["archived"] else output.server().call("stats", data["name"], {})
    back = f"{data['name']} is archived; `pps entity archive {data['name']} --undo` brings it back"
    lines = (held["text"] if held else back, f"folder {data['folder']}", _pasted(configs))
    return {**data, "stats": held["data"] if held else None, "clients": configs}, "\n".join(lines)


def _routed(data: Data, text: str) -> tuple[Data, str]:
    limits = [word for root in data["roots"] for word in ("--root", root)]
    configs = _configs("pps-projects", ["--router", *limits], data)
    return {**data, "clients": configs}, f"{text}\n{_pasted(configs)}"


_AROUND: Mapping[str, Callable[[Data, str], tuple[Data, str]]] = {
    "entity_create": _created,
    "entity_show": _described,
    "router_create": _routed,
}


def _configs(label: str, owner: list[str], made: Data) -> dict[str, JSON]:
    """Return what adds a memory to a client, over stdio (which needs no token) and over HTTP.

    The address is the one that is set; where any free port is taken, and where no token is known, a
    place is left.
    """
    command, *rest = _program()
    stdio: dict[str, Any] = {"command": command, "args": [*rest, "mcp", *owner]}
    home = os.environ.get("PPS_HOME")
    if home:
        stdio["env"] = {"PPS_HOME": output.absolute(home)}
    url = f"{made.get('url') or 'http://127.0.0.1:<port>'}/mcp"
    bearer = f"Bearer {made.get('token') or '<token>'}"
    http: JSON = {"type": "http", "url": url, "headers": {"Authorization": bearer}}
    env = [
        word for name, value in stdio.get("env", {}).items() for word in ("-e", f"{name}={value}")
    ]
    add = ["claude", "mcp", "add"]
    return {
        "claude_code": shlex.join([*add, label, *env, "--", command, *stdio["args"]]),
        "claude_code_http": shlex.join(
            [*add, "--transport", "http", label, url, "--header", f"Authorization: {bearer}"]
        ),
        "json": {"mcpServers": {label: stdio}},
        "json_http": {"mcpServers": {label: http}},
    }


def _program() -> list[str]:
    beside = Path(sys.executable).with_name("pps")
    program = str(beside) if beside.exists() else shutil.which("pps")
    return [program] if program else [sys.executable, "-m", "pps"]


def _pasted(configs: Mapping[str, JSON]) -> str:
    def indented(value: JSON) -> str:
        return "\n".join(
            f"  {line}" for line in json.dumps(value, indent=2, ensure_ascii=False).splitlines()
        )

    return "\n".join(
        (
            "Claude Code (stdio; starts the server when it is away):",
            f"  {configs['claude_code']}",
            "Any MCP client (stdio):",
            indented(configs["json"]),
            (
                "Over HTTP, while `pps serve` runs (on the port of the setting server.port, or of "
                "its --port):"
            ),
            f"  {configs['claude_code_http']}",
            indented(configs["json_http"]),
        )
    )


def upgraded_here(
    arguments: Mapping[str, JSON],
) -> Generator[dict[str, JSON], None, dict[str, Any]]:
    """Yield the progress of an upgrade and return its answer, as ``Link.follow`` does.

    Raises:
        StoreConflict: A server was started meanwhile.
        PPSError: An error of the operation.
    """
    import asyncio  # not at the top: help imports nothing heavy
    import queue
    import threading

    reports: queue.SimpleQueue[dict[str, JSON] | None] = queue.SimpleQueue()
    answers: list[dict[str, Any]] = []
    errors: list[BaseException] = []

    def tell(stage: str, done: int, total: int) -> None:
        reports.put({"what": stage, "done": done, "total": total})

    async def answered() -> dict[str, Any]:
        from pps.app import App
        from pps.config import load
        from pps.core.file_lock import FileLock
        from pps.operations.maintenance import upgrade
        from pps.server import runfile

        settings = load()
        with FileLock(runfile.lock_file(settings.home), what="pps upgrade"):
            async with App.open(settings) as app:
                answer = await upgrade.answer(app, upgrade.parse(arguments), tell)
        return {"data": answer.named, "text": answer.text}

    def work() -> None:
        try:
            answers.append(asyncio.run(answered()))
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            errors.append(error)
        finally:
            reports.put(None)

    thread = threading.Thread(target=work, name="pps-upgrade")
    thread.start()
    while (report := reports.get()) is not None:
        yield report
    thread.join()
    if errors:
        raise errors[0]
    return answers[0]
