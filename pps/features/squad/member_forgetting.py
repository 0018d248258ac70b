"""Forgetting by a squad's member: its copies leave the pool too, even while the feature is off."""

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
    """Run an operation that erases for a member, and withdraw its copies from the pool.

    The answer also lists the copies that go, or stay.

    Args:
        app: Opens the member's memory and the pool.
        entity: The member.
        operation: The operation that erases.
        request: The operation's input.
        act: Runs the operation with an input on the member's own memory.
    """
    dry_run = getattr(request, "dry_run", False)
    keep = getattr(request, "keep", False) is True

    async def erase(is_dry_run: bool) -> Answer:
        if is_dry_run == dry_run:
            return await act(request)
        return await act(request.model_copy(update={"dry_run": is_dry_run}))

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
    """Add copies in a squad's pool to the data of mentions, which is None if there were none."""
    data = cast("dict[str, Any]", mentions or as_json(Mentions()))
    items = [*data["items"], *(as_json(copy) for copy in copies[:MOST_SHOWN])]
    return {**data, "copies": len(copies), "items": items}
