"""``pps router``: tokens for agents that work in several projects."""

from __future__ import annotations

from typing import Annotated

import typer

from pps.interfaces.cli import clients
from pps.interfaces.cli.output import AsJson, absolute, objects, server, show_json

app = typer.Typer(no_args_is_help=True, help="Give out tokens for the project tools, each for some folders.")


@app.command()
def create(
    roots: Annotated[
        list[str], typer.Argument(help="Projects at or below these.", metavar="ROOT…", show_default=False)
    ],
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
    create: Annotated[bool, typer.Option("--create/--no-create", help="Make memories of projects without one.")] = True,
    as_json: AsJson = False,
) -> None:
    """Give out a router token, shown this once, and print how to add it to a client.

    It reaches every memory that a folder at or below a root is mapped to. Links in the roots are followed now.

    Example: pps router create ~/work --label laptop
    """
    link = server()
    paths = [absolute(root) for root in roots]
    made = link.admin("router.create", {"roots": paths, "label": label, "may_create": create})
    configs = clients.projects(paths, str(made["url"]), str(made["token"]))
    if as_json:
        show_json({**made, "clients": configs})
        return
    typer.echo(f"Router {made['id']}. Its token, shown this once: {made['token']}")
    typer.echo(clients.shown(configs))


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the routers with their roots.

    Example: pps router list
    """
    found = server().admin("router.list", {})["routers"]
    if as_json:
        show_json(found)
        return
    for one in objects(found):
        roots = one["roots"] if isinstance(one["roots"], list) else []
        rest = "" if one["may_create"] else "  makes none"
        typer.echo(f"{one['id']}  {' '.join(map(str, roots))}{rest}{'  ' + str(one['label']) if one['label'] else ''}")
    if not found:
        typer.echo("None yet: `pps router create ROOT` makes one.")


@app.command()
def revoke(
    router: Annotated[str, typer.Argument(help="Its id, as `pps router list` shows it.", metavar="ID")],
    as_json: AsJson = False,
) -> None:
    """Refuse a router's token from now on.

    Example: pps router revoke 3kq0c5vtw2az
    """
    gone = server().admin("router.revoke", {"id": router})
    if as_json:
        show_json(gone)
    else:
        typer.echo(f"{router} is refused from now on.")
