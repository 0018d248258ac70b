"""``pps anchors``: Markdown files of an entity that stay findable as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pps.core.errors import InvalidRequest
from pps.interfaces.cli.output import AsJson, Name, ask, say, show_json, text_or_stdin, work

app = typer.Typer(no_args_is_help=True, help="List, search, save, delete and import an entity's anchors.")


@app.command("list")
def list_(name: Name, as_json: AsJson = False) -> None:
    """List the anchors.

    Example: pps anchors list ana
    """
    ask("anchor_list", name, {}, as_json=as_json)


@app.command()
def search(
    name: Name,
    query: Annotated[str, typer.Argument(help="A question or key words.", show_default=False)],
    limit: Annotated[int, typer.Option(help="Most anchors, 1 to 100.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Find the anchors that best answer a question.

    Example: pps anchors search ana "how the bread is made"
    """
    ask("anchor_search", name, {"query": query, "limit": limit}, as_json=as_json)


@app.command()
def save(
    name: Name,
    title: Annotated[str, typer.Argument(help="What it is found by.", show_default=False)],
    text: Annotated[str, typer.Argument(help="Markdown; '-' reads it from stdin.")] = "-",
    slug: Annotated[str, typer.Option(help="Its file's name; one that exists is replaced.")] = "",
    tag: Annotated[list[str] | None, typer.Option(help="May be given more than once.")] = None,
    as_json: AsJson = False,
) -> None:
    """Save an anchor.

    Example: pps anchors save ana "Sourdough" - < bread.md
    """
    given = {"title": title, "text": text_or_stdin(text), "slug": slug or None, "tags": list(tag or ())}
    ask("anchor_save", name, given, as_json=as_json)


@app.command()
def delete(
    name: Name,
    slug: Annotated[str, typer.Argument(help="As `pps anchors list` shows it.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Delete an anchor.

    Example: pps anchors delete ana sourdough
    """
    ask("anchor_delete", name, {"slug": slug}, as_json=as_json)


@app.command()
def resync(name: Name, as_json: AsJson = False) -> None:
    """Index what was changed in the anchors' folder by hand.

    Example: pps anchors resync ana
    """
    ask("anchor_resync", name, {}, as_json=as_json)


@app.command("import")
def import_(
    name: Name,
    folder: Annotated[Path, typer.Argument(help="A folder of Markdown files.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Copy a folder of Markdown files into the anchors; a second time updates them.

    Example: pps anchors import ana ~/notes
    """
    if not folder.is_dir():
        raise InvalidRequest("folder", f"there is none at {folder}")
    result = work("anchors.import", {"entity": name, "path": str(folder.absolute())}, as_json=as_json)
    if as_json:
        show_json(result)
        return
    saved, skipped = result["saved"], result["skipped"]
    typer.echo(f"{len(saved) if isinstance(saved, list) else 0} saved, {result['unchanged']} unchanged")
    for one in skipped if isinstance(skipped, list) else ():
        if isinstance(one, dict):
            say(f"left out: {one['what']}: {one['why']}")
