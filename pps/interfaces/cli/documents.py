"""``pps import`` and ``pps watch``: other programs' files, and folders of notes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from pps.core.errors import InvalidRequest
from pps.core.values import JSON
from pps.interfaces.cli.output import Answer, AsJson, Name, absolute, objects, say, server, show_json, work

app = typer.Typer(no_args_is_help=True, help="Folders of Markdown that an entity follows while the server runs.")
_SHOWN = 20
_WAITS = "; some still wait to be taken in, `pps jobs list` says which"
_Folder = Annotated[Path, typer.Argument(help="A folder of Markdown files.", show_default=False)]


def import_(
    name: Name,
    paths: Annotated[list[Path], typer.Argument(help="Files, folders or zip files.", metavar="PATH…")],
    format: Annotated[
        str,
        typer.Option(
            help="auto, jsonl, claude-code, chatgpt, claude, mem0, graphiti, basic-memory or markdown; "
            "'auto' finds it by the content of each file."
        ),
    ] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only read and count; nothing is stored.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remember what other programs kept: conversations, notes, memories, graphs; a second time adds nothing.

    Where a language model reads, all is counted first, and on stderr is said what the model would take.

    It may be cut short and run again: it goes on from there. Exit code 1 when something could not be read; it is
    said what and where, and the rest is stored.

    Examples: pps import ana talk.jsonl · pps import ana ~/.claude/projects · pps import ana export.zip --dry-run
    """
    from pps.config import load  # not at the top: help imports nothing heavy

    for path in paths:
        if not path.exists():
            raise InvalidRequest("path", f"there is nothing at {path}")
    listed: list[JSON] = [absolute(str(path)) for path in paths]
    arguments: dict[str, JSON] = {"entity": name, "paths": listed, "format": format, "dry_run": dry_run}
    if not dry_run and load().extractor.mode == "model":
        counted = work("import", {**arguments, "dry_run": True}, as_json=as_json, in_bytes=True)
        if isinstance(estimate := counted.get("estimate"), dict):
            typer.echo(_estimated(estimate), err=True)
    result = work("import", arguments, as_json=as_json, in_bytes=True)
    if as_json:
        show_json(result)
    else:
        _told(name, result)
    if result["unreadable_count"]:
        raise typer.Exit(1)


def export(
    name: Name,
    file: Annotated[Path, typer.Argument(help="A new file; nothing is overwritten.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Write an entity's turns, nodes and facts as JSON lines, which `pps import` reads again.

    The file holds everything in plain text and may be read by you alone. Anchors are files already.

    Example: pps export ana ana.jsonl
    """
    result = work("export", {"entity": name, "path": absolute(str(file))}, as_json=as_json)
    if as_json:
        show_json(result)
    else:
        typer.echo(f"{result['lines']} lines written to {result['path']}")


@app.command()
def add(name: Name, folder: _Folder, as_json: AsJson = False) -> None:
    """Take in a folder's Markdown files, and follow what changes in it while the server runs.

    A file that changes is read again, one that is deleted is forgotten; what changed while no server ran is
    seen at its next start. A folder feeds one entity.

    Example: pps watch add ana ~/notes
    """
    if not folder.is_dir():
        raise InvalidRequest("folder", f"there is none at {folder}")
    result = work("watch.add", {"entity": name, "path": absolute(str(folder))}, as_json=as_json)
    if as_json:
        show_json(result)
        return
    files = f"{result['added']} files new, {result['changed']} changed, {result['unchanged']} unchanged"
    waits = "" if result["settled"] else _WAITS
    typer.echo(f"{name} follows {result['path']}: {files}; {result['stored']} passages stored{waits}")
    for one in objects(result["skipped"]):
        say(f"left out: {one['what']}: {one['why']}", err=True)


@app.command("list")
def list_(
    name: Annotated[str, typer.Argument(help="Only this entity's.", metavar="[NAME]", show_default=False)] = "",
    as_json: AsJson = False,
) -> None:
    """List the folders that are followed.

    Example: pps watch list
    """
    found = server().admin("watch.list", {"name": name})["folders"]
    if as_json:
        show_json(found)
    elif not found:
        typer.echo("None: `pps watch add NAME FOLDER` adds one.")
    else:
        for one in objects(found):
            typer.echo(f"{one['entity']}  {one['path']}")


@app.command()
def remove(
    name: Name,
    folder: _Folder,
    forget: Annotated[bool, typer.Option("--forget", help="Forget what it brought, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Follow a folder no longer; what it brought stays, unless --forget is given.

    Example: pps watch remove ana ~/notes --forget
    """
    arguments: dict[str, JSON] = {"entity": name, "path": absolute(str(folder)), "forget": forget}
    result = work("watch.remove", arguments, as_json=as_json)
    if as_json:
        show_json(result)
    else:
        typer.echo(f"{name} follows {result['path']} no longer; {result['forgotten']} passages forgotten")


def _estimated(estimate: Mapping[str, JSON]) -> str:
    cost = f", ${estimate['cost_usd']:.2f}" if isinstance(estimate.get("cost_usd"), float) else ""
    days = f", the budget of {estimate['days']} days" if estimate.get("days") is not None else ""
    return (
        f"the language model would take some {estimate['tokens_in']:,} tokens in and {estimate['tokens_out']:,} out"
        f"{cost}{days} (by {estimate['basis']})"
    )


def _told(name: str, result: Answer) -> None:
    """Print what an import did, and on stderr what it could not read."""
    files = result["files"]
    formats = ", ".join(f"{count} × {one}" for one, count in files.items()) if isinstance(files, dict) else ""
    span = f", {str(result['first_at'])[:10]} to {str(result['last_at'])[:10]}" if result.get("first_at") else ""
    typer.echo(
        f"read {formats or 'nothing'}: {result['turns']} turns in {result['sessions']} conversations{span}, "
        f"{result['nodes']} nodes and {result['facts']} facts, about {result['tokens']} tokens"
    )
    if result["dry_run"]:
        typer.echo(
            f"would store {result['stored']}, {result['duplicates']} known already (dry run: nothing was stored)"
        )
        if isinstance(estimate := result.get("estimate"), dict):
            typer.echo(_estimated(estimate))
    else:
        redacted = f"; {result['redacted']} secrets were taken out" if result["redacted"] else ""
        waits = "" if result["settled"] else _WAITS
        typer.echo(f"{result['stored']} stored, {result['duplicates']} known already, in {name}{redacted}{waits}")
    passed = result["passed"]
    for why, count in passed.items() if isinstance(passed, dict) else ():
        typer.echo(f"passed over: {count} {why}")
    unreadable, count = objects(result["unreadable"]), result["unreadable_count"]
    for one in unreadable[:_SHOWN]:
        say(f"could not be read: {one['what']}: {one['why']}", err=True)
    if isinstance(count, int) and count:
        rest = f", the first {_SHOWN} are above; --json lists them" if count > _SHOWN else ""
        typer.echo(f"{count} could not be read{rest}; everything else was", err=True)
