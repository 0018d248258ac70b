"""``pps route``: which entity a project's folder belongs to."""

from __future__ import annotations

from typing import Annotated

import typer

from pps.interfaces.cli.output import AsJson, absolute, objects, server, show_json

app = typer.Typer(no_args_is_help=True, help="Say which entity a project's folder belongs to.")

Folder = Annotated[str, typer.Argument(help="The project's folder.", metavar="PATH", show_default=False)]


@app.command()
def add(
    path: Folder,
    entity: Annotated[str, typer.Argument(help="The entity's name.", metavar="ENTITY", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Map a folder to an entity that there is. Hooks in it, or below it, use that memory.

    Example: pps route add ~/work/shop shop
    """
    made = server().admin("route.add", {"path": absolute(path), "entity": entity})
    if as_json:
        show_json(made)
    else:
        typer.echo(f"{made['path']} belongs to {made['entity']}.")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the mapped folders with their entities.

    Example: pps route list
    """
    found = server().admin("route.list", {})["routes"]
    if as_json:
        show_json(found)
        return
    for one in objects(found):
        typer.echo(f"{one['path']}  {one['entity']}{'  archived' if one['archived'] else ''}")
    if not found:
        typer.echo("None yet: `pps route add PATH ENTITY` maps one.")


@app.command()
def remove(path: Folder, as_json: AsJson = False) -> None:
    """Take a folder's mapping away; the entity keeps what it knows.

    Example: pps route remove ~/work/shop
    """
    gone = server().admin("route.remove", {"path": absolute(path)})
    if as_json:
        show_json(gone)
    else:
        typer.echo(f"{gone['path']} belongs to nobody now.")
