"""``pps entity``: who has a memory here."""

from __future__ import annotations

from typing import Annotated

import typer

from pps.core.errors import InvalidRequest
from pps.interfaces.cli import clients
from pps.interfaces.cli.output import AsJson, Name, confirm, objects, server, show_json

app = typer.Typer(no_args_is_help=True, help="Make, list, archive and delete entities, and give out their tokens.")


@app.command()
def create(
    name: Name,
    store: Annotated[str, typer.Option(help="'embedded' or 'neo4j'; the setting's if not given.")] = "",
    as_json: AsJson = False,
) -> None:
    """Make an entity: its folder, memory, own node and token; prints how to add it to a client.

    Run it again after a failure: it completes what is missing and prints the token then. Done before, it changes
    nothing and prints none: `pps entity token NAME` makes another.

    Example: pps entity create ana
    """
    link = server()
    made = link.admin("entity.create", {"name": name, "store": store})
    token = made.get("token")
    configs = clients.config(name, str(made["url"]), token if isinstance(token, str) else None)
    if as_json:
        show_json({**made, "clients": configs})
        return
    typer.echo(f"{name} {'is made' if made['is_new'] else 'is there already'}: {made['folder']} ({made['store']})")
    if token:
        typer.echo(f"Its token, shown this once: {token}")
    typer.echo(clients.shown(configs))
    typer.echo(f'Next: pps remember {name} "Ana drinks her coffee black."')


@app.command("list")
def list_(
    archived: Annotated[bool, typer.Option("--archived", help="Those at rest too.")] = False, as_json: AsJson = False
) -> None:
    """List the entities.

    Example: pps entity list --archived
    """
    answer = server().admin("entity.list", {"archived": archived})
    found = answer["entities"]
    if as_json:
        show_json(found)
    elif not found:
        typer.echo("None yet: `pps entity create NAME` makes one.")
    else:
        for one in objects(found):
            rest = "  archived" if one["archived"] else ""
            typer.echo(f"{one['name']}  {one['store']}  since {str(one['created_at'])[:10]}{rest}")


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show an entity, how much it holds, and how to add it to a client.

    Example: pps entity show ana
    """
    link = server()
    found = link.admin("entity.show", {"name": name})
    held = None if found["archived"] else link.call("stats", name, {})
    configs = clients.config(name, str(found["url"]), None)
    if as_json:
        show_json({**found, "stats": held["data"] if held else None, "clients": configs})
        return
    typer.echo(held["text"] if held else f"{name} is archived; `pps entity archive {name} --undo` brings it back")
    typer.echo(f"folder {found['folder']}")
    typer.echo(clients.shown(configs))


@app.command()
def archive(
    name: Name,
    undo: Annotated[bool, typer.Option("--undo", help="Bring it back.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put an entity to rest: nothing is lost, its tokens are refused.

    Example: pps entity archive ana
    """
    found = server().admin("entity.archive", {"name": name, "undo": undo})
    if as_json:
        show_json(found)
    else:
        typer.echo(f"{name} is {'back' if undo else 'archived'}.")


@app.command()
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase an entity with all that it remembers. It cannot be undone.

    Begun once, it is finished: by the next start of the server when a kill or an absent Neo4j cut it short.

    Example: pps entity delete ana --yes
    """
    if not yes:
        confirm(f"Erase {name} and everything it remembers, for good?")
    gone = server().admin("entity.delete", {"name": name}, timeout_s=600)
    if as_json:
        show_json(gone)
    else:
        typer.echo(" ".join(filter(None, (f"{name} is gone.", str(gone["left"])))))


@app.command()
def token(
    name: Annotated[str, typer.Argument(help="The entity's name.", metavar="[NAME]", show_default=False)] = "",
    revoke: Annotated[bool, typer.Option("--revoke", help="Refuse all given out so far instead.")] = False,
    operator: Annotated[bool, typer.Option("--operator", help="For /metrics, instead of an entity's.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give out a token, shown this once; or revoke all of an entity's, at once.

    Examples: pps entity token ana · pps entity token ana --revoke · pps entity token --operator
    """
    if operator == bool(name):
        raise InvalidRequest("name", "give an entity's name, or --operator")
    action = f"{'operator' if operator else 'token'}.{'revoke' if revoke else 'issue'}"
    answer = server().admin(action, {"name": name} if name else {})
    if as_json:
        show_json(answer)
    elif revoke:
        typer.echo(f"{answer['revoked']} revoked.")
    else:
        typer.echo(answer["token"])
