"""Forgetting by a squad's member: its copies leave the pool too, even while the feature is off."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from pps.app import App
from pps.core.ids import EntityId
from pps.core.reports import Forgotten, Mentions, ShownItem
from pps.core.text import one_line
from pps.features.squad.desk import Desk, desk_of
from pps.features.squad.sharing import take_out, withdraw_orphans
from pps.ingest.mentions import MOST_SHOWN, SHOWN_CHARACTERS, NamePattern
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

    Copies are withdrawn first, so that a crash leaves none behind. If ``act`` refuses, nothing is
    changed. The answer also lists the copies that go, or stay, and those copies that the member may
    read, its own or others', and that still contain a forgotten name.

    Args:
        app: Opens the member's memory and the pool.
        entity: The member.
        operation: The operation that erases.
        request: The operation's input. With its ``keep`` the copies stay in the pool; with
            ``copies`` in its ``along`` the member's other copies that contain a forgotten name are
            withdrawn, too.
        act: Runs the operation with an input on the member's own memory.
    """
    dry_run = getattr(request, "dry_run", False)
    keep = getattr(request, "keep", False) is True
    ids: Sequence[str] = getattr(request, "ids", ())
    async with desk_of(app, entity) as desk:
        copies = await _copies_of(desk, ids)
        mentioning = await _copies_naming(desk, await desk.memory.forgetting.names(ids))
        mentioning = {id_: item for id_, item in mentioning.items() if id_ not in copies}
        if "copies" in getattr(request, "along", ()) and not keep:
            async with desk.pool() as pool:
                mine = await pool.records.pool.shared([*mentioning], member=desk.me.id)
            copies = (*copies, *mine)
        if copies and not dry_run:
            await act(request.model_copy(update={"dry_run": True}))
            async with desk.pool() as pool:
                await (pool.records.pool.detach(copies) if keep else take_out(desk, pool, copies))
        answer = await act(request)
        gone = (*copies, *(() if dry_run else await withdraw_orphans(desk)))
    left = [item for id_, item in mentioning.items() if id_ not in gone]
    return _with_copies(answer, operation, gone, left, keep=keep, dry_run=dry_run)


def _with_copies(
    answer: Answer,
    operation: AnyOperation,
    copies: Sequence[str],
    mentioning: Sequence[ShownItem],
    *,
    keep: bool,
    dry_run: bool,
) -> Answer:
    """Return an answer with the copies that go, or stay, and those that contain a name."""
    data = dict(answer.data)
    text = answer.text
    lists_copies = operation.output is Forgotten
    if copies:
        happens = "stay" if keep else "would be withdrawn" if dry_run else "are withdrawn"
        text += f"\nIts copies in the squad's pool {happens}: {', '.join(copies)}"
    if copies and lists_copies:
        data["copies"] = [*copies]
    if mentioning:
        text += "\nIn the squad's pool, said of it and left there:"
        text += "".join(f"\n  {item.text} [{item.id}]" for item in mentioning[:MOST_SHOWN])
    if mentioning and lists_copies:
        # There is nothing under this name where the memory itself has no mentions.
        mentions = cast("dict[str, Any]", data.get("mentions") or as_json(Mentions()))
        items = [*mentions["items"], *(as_json(copy) for copy in mentioning[:MOST_SHOWN])]
        data["mentions"] = {**mentions, "copies": len(mentioning), "items": items}
    return replace(answer, data=data, text=text)


async def _copies_naming(desk: Desk, names: Sequence[str]) -> dict[str, ShownItem]:
    """Return id → copy for the readable copies in the pool that contain one of the names."""
    if not names:
        return {}
    pattern = NamePattern(names)
    async with desk.pool() as pool:
        shared = await pool.records.pool.shared()
        visible = [
            id_
            for id_, copy in shared.items()
            if copy.state == "shared" or copy.member == desk.me.id
        ]
        records = await pool.records.find(visible)
        return {
            id_: ShownItem(
                "copy", id_, one_line(f"{shared[id_].member}: {record.title}", SHOWN_CHARACTERS)
            )
            for id_, record in records.items()
            if id_ in shared
            and pattern.is_in(
                record.title, record.summary, json.dumps(record.fields, ensure_ascii=False)
            )
        }


async def _copies_of(desk: Desk, ids: Sequence[str]) -> tuple[str, ...]:
    """Return ids of the member's copies of these records, named by id, turn or first characters."""
    if not ids:
        return ()
    records = {record.id for record in (await desk.memory.records.find(ids)).values()}
    async with desk.pool() as pool:
        return tuple((await pool.records.pool.copies(desk.me.id, records)).values())
