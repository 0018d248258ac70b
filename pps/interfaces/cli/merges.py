"""``pps merges``: nodes that may be one thing."""

from __future__ import annotations

from typing import Annotated

import typer

from pps.interfaces.cli.output import AsJson, Name, ask

app = typer.Typer(no_args_is_help=True, help="Find nodes that are one thing, merge them, undo a merge.")

Limit = Annotated[int, typer.Option(min=1, max=1000, help="Most pairs, and most merges.")]


@app.command("list")
def list_(name: Name, limit: Limit = 50, as_json: AsJson = False) -> None:
    """Show pairs of nodes with one name, by name first, then by alias; and the merges done so far.

    Example: pps merges list ana
    """
    ask("find_duplicates", name, {"limit": limit}, as_json=as_json)


@app.command()
def apply(
    name: Name,
    keep: Annotated[str, typer.Argument(help="Id of the node that stays.", metavar="KEEP", show_default=False)],
    drop: Annotated[str, typer.Argument(help="Id of the node that goes.", metavar="DROP", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, only what would come of it is said.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let two nodes be one: names, facts and mentions of the one go over to the other.

    Example: pps merges apply ana 1b4e28ba-2fa1-5d2b-883f-0016d3cca427 6fa459ea-ee8a-5ca4-894e-db77e160355e --yes
    """
    ask("merge_nodes", name, {"keep": keep, "drop": drop, "dry_run": not yes}, as_json=as_json)
    if not yes and not as_json:
        typer.echo("(here: the same command with --yes)")


@app.command()
def undo(
    name: Name,
    merge: Annotated[str, typer.Argument(help="Id of the merge.", metavar="ID", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Make two nodes of one again, exactly as they were.

    Example: pps merges undo ana 1b4e28ba-2fa1-5d2b-883f-0016d3cca427
    """
    ask("undo_merge", name, {"id": merge}, as_json=as_json)
