"""The commands of records, of changes, and of what reading took: event, update, append, history, costs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from pps.core.errors import InvalidRequest
from pps.interfaces.cli.output import AsJson, Name, ask, text_or_stdin

if TYPE_CHECKING:
    from pps.core.values import JSON

Id = Annotated[str, typer.Argument(help="Of a record or a turn.", metavar="ID", show_default=False)]
Text = Annotated[str, typer.Argument(help="The text; '-' reads it from stdin.", show_default=False)]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="May be given more than once.")]
Metadata = Annotated[str, typer.Option(help='Fields of your own as JSON, such as \'{"place": "pier 3"}\'.')]
Actor = Annotated[str, typer.Option(help="Who does it.")]


def event(
    name: Name,
    text: Text,
    title: Annotated[str, typer.Option(help="The text's first 80 characters if not given.")] = "",
    source: Annotated[str, typer.Option(help="whisper, screenpipe, mcp, editor, …")] = "editor",
    ref: Annotated[str, typer.Option(help="Its id at the source; the same one again is stored once.")] = "",
    at: Annotated[str, typer.Option(help="When it happened (ISO 8601); now if not given.")] = "",
    kind: Annotated[str, typer.Option(help="What it is; by its source if not given.")] = "",
    parent: Annotated[str, typer.Option(help="Id or title of the record that it is a part of.")] = "",
    tag: Tags = None,
    metadata: Metadata = "",
    as_json: AsJson = False,
) -> None:
    """Keep something that happened as a record with a title, tags and links.

    Example: pps event ana "The light is out, see [[Harbour]]. #maintenance" --source whisper
    """
    arguments: dict[str, JSON] = {
        "content": text_or_stdin(text),
        "title": title,
        "source": source,
        "source_ref": ref,
        "timestamp": at or None,
        "kind": kind,
        "parent_node_id": parent,
        "tags": list(tag or ()),
        "metadata": _fields(metadata),
    }
    ask("add_event", name, arguments, as_json=as_json)


def update(
    name: Name,
    id: Id,
    text: Annotated[str, typer.Option(help="The whole new text; '-' reads it from stdin.")] = "",
    title: Annotated[str, typer.Option(help="Of a record.")] = "",
    kind: Annotated[str, typer.Option(help="Of a record.")] = "",
    tag: Tags = None,
    metadata: Metadata = "",
    actor: Actor = "",
    as_json: AsJson = False,
) -> None:
    """Change a record or a turn; what it was stays as a version.

    Example: pps update ana 1b4e28ba-2fa1-5d2b-883f-0016d3cca427 --text "The light is on again."
    """
    given: dict[str, JSON] = {"content": text_or_stdin(text) if text else "", "title": title, "kind": kind}
    arguments: dict[str, JSON] = {
        "id": id,
        "actor": actor,
        **{field: value for field, value in given.items() if value},
        **({"tags": list(tag)} if tag else {}),
        **({"metadata": _fields(metadata)} if metadata else {}),
    }
    ask("update", name, arguments, as_json=as_json)


def append(name: Name, id: Id, text: Text, actor: Actor = "", as_json: AsJson = False) -> None:
    """Add a paragraph to a record or a turn; what it was stays as a version.

    Example: pps append ana 1b4e28ba-2fa1-5d2b-883f-0016d3cca427 "It was repaired at noon."
    """
    ask("append", name, {"id": id, "content": text_or_stdin(text), "actor": actor}, as_json=as_json)


def history(
    name: Name,
    id: Id,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Most versions.")] = 20,
    whole: Annotated[bool, typer.Option("--whole", help="Each version's whole text too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a record or a turn was before, newest first, with what changed.

    Example: pps history ana 1b4e28ba-2fa1-5d2b-883f-0016d3cca427
    """
    ask("history", name, {"id": id, "limit": limit, "with_content": whole}, as_json=as_json)


def costs(
    name: Name,
    days: Annotated[int, typer.Option(min=1, max=3660, help="How far back, today among them.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Show what reading by a language model took, by day and model, and how today's budget stands.

    Example: pps costs ana --days 7
    """
    ask("costs", name, {"days": days}, as_json=as_json)


def injected(
    name: Name,
    days: Annotated[int, typer.Option(min=1, max=30, help="How far back.")] = 7,
    as_json: AsJson = False,
) -> None:
    """Show how many tokens hooks put before agents unasked, by session, and how many prompts were given nothing.

    Example: pps injected ana --days 30
    """
    ask("injected", name, {"days": days}, as_json=as_json)


def _fields(text: str) -> JSON:
    if not text:
        return {}
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidRequest("--metadata", f"is not JSON (column {error.colno})") from None
