"""Forgetting by a member of a squad: what it erases is taken out of the pool too, also while the feature is off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from pps.app import App
from pps.core.ids import EntityId
from pps.core.reports import Forgotten, Mentions, ShownItem
from pps.core.values import JSON
from pps.features.squad import sharing
from pps.features.squad.desk import desk_of
from pps.ingest.mentions import MOST_SHOWN
from pps.operations.inputs import Input
from pps.operations.pages import as_json
from pps.operations.table import Answer, AnyOperation


async def forget_as_member(
    app: App,
    entity: EntityId | str,
    operation: AnyOperation,
    request: Input,
    act: Callable[[Input], Awaitable[Answer]],
) -> Answer:
    """Let a member erase, with its copies in the pool; the answer says what goes, or stays, there.

    Args:
        app: Where the member and the pool are.
        entity: The member.
        operation: What was asked for.
        request: Its input.
        act: Carries the operation out on the member's own memory, with such an input.
    """
    dry_run = getattr(request, "dry_run", False)
    keep = getattr(request, "keep", False) is True

    async def erase(dry: bool) -> Answer:
        return await act(request if dry == dry_run else request.model_copy(update={"dry_run": dry}))

    async with desk_of(app, entity) as desk:
        done = await sharing.forgetting(
            desk,
            getattr(request, "ids", ()),
            erase,
            keep=keep,
            dry_run=dry_run,
            take_mentions="copies" in getattr(request, "along", ()),
        )
    data = dict(done.answer.data)
    text = done.answer.text
    if done.copies:
        happens = "stay" if keep else "would be withdrawn" if dry_run else "are withdrawn"
        text += f"\nIts copies in the squad's pool {happens}: {', '.join(done.copies)}"
    if done.copies and operation.output is Forgotten:
        data["copies"] = [*done.copies]
    if done.mentioning:
        text += "\nIn the squad's pool, said of it and left there:"
        text += "".join(f"\n  {item.text} [{item.id}]" for item in done.mentioning[:MOST_SHOWN])
    if done.mentioning and operation.output is Forgotten:
        data["mentions"] = _with_copies(data.get("mentions"), done.mentioning)
    return replace(done.answer, data=data, text=text)


def _with_copies(mentions: JSON, copies: Sequence[ShownItem]) -> JSON:
    """Return the data of mentions, none where nothing else was found, with copies in a squad's pool."""
    data = cast("dict[str, Any]", mentions or as_json(Mentions()))
    items = [*data["items"], *(as_json(copy) for copy in copies[:MOST_SHOWN])]
    return {**data, "copies": len(copies), "items": items}
