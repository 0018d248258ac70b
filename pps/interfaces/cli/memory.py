"""The commands of one entity's memory."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from pps.core.errors import InvalidRequest
from pps.core.values import JSON
from pps.interfaces.cli.output import AsJson, Name, ask, confirm, show_json, text_or_stdin, work

Ids = Annotated[list[str], typer.Argument(help="Ids, as other commands print them.", metavar="ID…", show_default=False)]


def remember(
    name: Name,
    text: Annotated[str, typer.Argument(help="The text; '-' reads it from stdin.", show_default=False)],
    role: Annotated[str, typer.Option(help="user, assistant, system or tool.")] = "user",
    actor: Annotated[str, typer.Option(help="Who said it.")] = "",
    session: Annotated[str, typer.Option(help="The conversation it belongs to.")] = "",
    at: Annotated[str, typer.Option(help="When it was said (ISO 8601); now if not given.")] = "",
    tag: Annotated[list[str] | None, typer.Option(help="May be given more than once.")] = None,
    given: Annotated[
        Path | None, typer.Option(help='A JSON file {"nodes": […], "facts": […]}: what the text says.')
    ] = None,
    extraction: Annotated[
        str, typer.Option(help="given, rules, command, model or none; the setting's if not given.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Keep a text for good.

    Examples: pps remember ana "The oven runs 20 degrees hot." · cat notes.md | pps remember ana -
    """
    arguments: dict[str, JSON] = {
        "content": text_or_stdin(text),
        "role": role,
        "actor": actor,
        "session": session,
        "source": "cli",
        "occurred_at": at or None,
        "tags": list(tag or ()),
        "extraction": extraction or None,
        **_given(given),
    }
    ask("remember", name, arguments, as_json=as_json)


def recall(
    name: Name,
    query: Annotated[str, typer.Argument(help="A question or key words.", show_default=False)],
    channels: Annotated[str, typer.Option(help="Such as facts,nodes; 'auto' chooses by the question.")] = "",
    profile: Annotated[str, typer.Option(help="How to rank; `pps profiles` lists them.")] = "default",
    limit: Annotated[int, typer.Option(help="Most results in each channel, 1 to 100.")] = 10,
    as_of: Annotated[str, typer.Option(help="What held at that time (ISO 8601) instead of now.")] = "",
    during: Annotated[str, typer.Option(help="Only what happened then, such as 'last spring'.")] = "",
    session: Annotated[str, typer.Option(help="The conversation that asks.")] = "",
    as_json: AsJson = False,
) -> None:
    """Search an entity's memory, channel by channel.

    Examples: pps recall ana "who makes coffee" · pps recall ana Lisbon --channels facts --as-of 2026-01-31
    """
    chosen: JSON = "auto" if channels == "auto" else [one.strip() for one in channels.split(",")] if channels else None
    arguments: dict[str, JSON] = {
        "query": query,
        "channels": chosen,
        "profile": profile,
        "limit": limit,
        "as_of": as_of or None,
        "during": during,
        "session": session or None,
    }
    ask("recall", name, arguments, as_json=as_json)


def why(
    name: Name,
    query: Annotated[str, typer.Argument(help="The question that was asked.", show_default=False)],
    expect: Annotated[str, typer.Option(help="Id of what should have been found.")] = "",
    channels: Annotated[str, typer.Option(help="Such as facts,nodes.")] = "",
    profile: Annotated[str, typer.Option(help="How to rank; `pps profiles` lists them.")] = "default",
    limit: Annotated[int, typer.Option(help="Most results in each channel, 1 to 100.")] = 10,
    as_of: Annotated[str, typer.Option(help="What held at that time (ISO 8601) instead of now.")] = "",
    as_json: AsJson = False,
) -> None:
    """Say why a search answers as it does, and why what was expected is not there.

    Each candidate comes with its rank in every perspective (dense: by meaning, bm25: by words, supports: by the facts
    that it supports, …), what they add up to, and what was then done to it.

    Example: pps why ana "Who keeps bees?" --expect 1b4e28ba-2fa1-5d2b-883f-0016d3cca427
    """
    chosen: JSON = [one.strip() for one in channels.split(",")] if channels else None
    arguments: dict[str, JSON] = {"query": query, "expect": expect, "channels": chosen, "profile": profile}
    ask("why", name, {**arguments, "limit": limit, "as_of": as_of or None}, as_json=as_json)


def ambient(
    name: Name,
    context: Annotated[str, typer.Argument(help="What is being talked about.")] = "",
    startup: Annotated[bool, typer.Option("--startup", help="By recency, as when a conversation begins.")] = False,
    budget: Annotated[int | None, typer.Option(help="Most tokens; the setting's if not given.")] = None,
    session: Annotated[str, typer.Option(help="The conversation that asks.")] = "",
    as_json: AsJson = False,
) -> None:
    """Print the pack that an agent would be given for one turn of a conversation.

    Examples: pps ambient ana "making coffee in the kitchen" · pps ambient ana --startup
    """
    arguments: dict[str, JSON] = {
        "context": context,
        "mode": "startup" if startup else "turn",
        "budget_tokens": budget,
        "session": session or None,
    }
    ask("ambient_recall", name, arguments, as_json=as_json)


def timeline(
    name: Name,
    about: Annotated[str, typer.Option(help="Name or id of a node.")] = "",
    relation: Annotated[str, typer.Option(help="Such as LIVES_IN.")] = "",
    as_of: Annotated[str, typer.Option(help="Only what held at that time (ISO 8601).")] = "",
    after: Annotated[str, typer.Option(help="Only facts that began then or later.")] = "",
    before: Annotated[str, typer.Option(help="Only facts that began before.")] = "",
    limit: Annotated[int, typer.Option(help="Most facts a page, 1 to 1000.")] = 50,
    cursor: Annotated[str, typer.Option(help="Where the page before ended.")] = "",
    as_json: AsJson = False,
) -> None:
    """List facts in order of the time since which they hold.

    Example: pps timeline ana --about Lisbon --after 2026-01-01
    """
    arguments: dict[str, JSON] = {
        "about": about or None,
        "relation": relation or None,
        "as_of": as_of or None,
        "after": after or None,
        "before": before or None,
        "limit": limit,
        "cursor": cursor,
    }
    ask("timeline", name, arguments, as_json=as_json)


def get(name: Name, ids: Ids, as_json: AsJson = False) -> None:
    """Print turns, facts, nodes or episodes whole.

    Example: pps get ana 1b4e28ba-2fa1-5d2b-883f-0016d3cca427
    """
    ask("get", name, {"ids": list(ids)}, as_json=as_json)


def forget(
    name: Name,
    ids: Ids,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, only what would go is said.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase turns, facts, nodes or anchors for good, with what only they supported.

    Example: pps forget ana 1b4e28ba-2fa1-5d2b-883f-0016d3cca427 --yes
    """
    ask("forget", name, {"ids": list(ids), "dry_run": not yes}, as_json=as_json)
    if not yes and not as_json:
        typer.echo("(here: the same command with --yes)")


def stats(name: Name, as_json: AsJson = False) -> None:
    """Say how much an entity remembers, and what is still in work.

    Example: pps stats ana
    """
    ask("stats", name, {}, as_json=as_json)


def reindex(name: Name, as_json: AsJson = False) -> None:
    """Rebuild an entity's text and vector index from journal, graph and anchors.

    Example: pps reindex ana
    """
    _indexed(work("reindex", {"entity": name}, as_json=as_json), as_json=as_json)


def reembed(name: Name, as_json: AsJson = False) -> None:
    """Make every vector of an entity anew with the embedder that is set now.

    Example: PPS_EMBEDDER__NAME=e5 is set for the server, then: pps reembed ana
    """
    _indexed(work("reembed", {"entity": name}, as_json=as_json), as_json=as_json)


def rebuild(
    name: Annotated[str, typer.Argument(help="The entity's name.", metavar="[NAME]", show_default=False)] = "",
    registry: Annotated[bool, typer.Option("--registry", help="The list of entities, from their folders.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make an entity's graph anew from its journal, when it is gone or damaged; what is there of it is removed.

    What comes back: turns, records, facts that were given or found by rules, all under the ids they had. What a model
    read only comes back where it can read the texts again. What cannot come back: what texts said before they were
    changed, merges of nodes, relations made by themselves, imported graphs, and when each fact was learned.

    Examples: pps rebuild ana --yes · pps rebuild --registry
    """
    if registry == bool(name):
        raise InvalidRequest("name", "give an entity's name, or --registry")
    if registry:
        _registered(as_json=as_json)
        return
    if not yes:
        confirm(f"Remove what is there of {name}'s graph and make it anew from the journal?")
    result = work("rebuild", {"entity": name}, as_json=as_json)
    _indexed(result, as_json=as_json)
    indexed = result["indexed"]
    waiting = indexed.get("to_read") if isinstance(indexed, dict) else 0
    if not as_json:
        typer.echo(
            f"{waiting or 'No'} turns wait to be read by a model again. Not back: what texts said before they were "
            "changed, merges, relations made by themselves, imported graphs, when each fact was learned."
        )


def _registered(*, as_json: bool) -> None:
    from pps.config.home import home_folder
    from pps.core.file_lock import FileLock
    from pps.entities import Registry
    from pps.server import runfile

    home = home_folder()
    with FileLock(runfile.lock_file(home), what="pps rebuild"):
        names = Registry.restored(home)
    if as_json:
        show_json(list(names))
        return
    typer.echo(f"{len(names)} entities are registered again: {', '.join(names) or 'none'}.")
    typer.echo("Not back: tokens (`pps entity token NAME`), routes, watched folders, and which ones were archived.")


def _indexed(result: dict[str, JSON], *, as_json: bool) -> None:
    if as_json:
        show_json(result)
        return
    indexed = result["indexed"]
    counts = indexed.items() if isinstance(indexed, dict) else ()
    typer.echo("indexed " + (", ".join(f"{count} {kind}" for kind, count in counts) or "nothing: it is empty"))


def _given(file: Path | None) -> dict[str, JSON]:
    if file is None:
        return {}
    try:
        value: JSON = json.loads(sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidRequest("--given", f"{file} cannot be read ({error.strerror})") from None
    except ValueError:
        raise InvalidRequest("--given", f"{file} is not JSON") from None
    if not isinstance(value, dict) or not value.keys() <= {"nodes", "facts"}:
        raise InvalidRequest("--given", 'must be {"nodes": […], "facts": […]}')
    return dict(value)
