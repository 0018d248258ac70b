"""Titled texts read as records: one of another entity is nobody's, and lists hold one's own alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from pps.core.errors import NotFound
from pps.core.record_values import Condition, RecordQuery
from pps.core.values import EventReceipt
from pps.operations.calls import Caller
from tests.isolation.house import House, One, everything, outcome


async def noted(house: House, one: One) -> EventReceipt:
    """Keep a titled text with the entity's mark in each part of its record."""
    receipt = await one.memory.records.add_event(
        f"Soup was served. {one.mark}",
        source="whisper",
        title=f"Soup {one.mark}",
        tags=["menu"],
        metadata={"place": one.mark, "number": 7},
    )
    house.watch.own(one.memory.entity.name, receipt.node_id, receipt.turn_id)
    return receipt


async def asked(house: House, one: One, verb: str, arguments: dict[str, Any]) -> str:
    caller = Caller.of_entity(one.memory.entity)
    return str(await outcome(house.calls.answer(caller, verb, arguments)))


async def test_a_titled_text_of_another_is_an_absent_record(house: House) -> None:
    one, other, _ = house.all
    await noted(house, one)
    theirs = await noted(house, other)
    before = await everything(other)
    nobodys = str(uuid4())
    attacks: dict[str, Callable[[str], dict[str, Any]]] = {
        "record_get": lambda id_: {"ids": [id_]},
        "record_move": lambda id_: {"id": id_, "to": "done"},
        "record_save": lambda id_: {"records": [{"id": id_, "summary": "Mine."}]},
        "record_delete": lambda id_: {"ids": [id_], "dry_run": False},
    }
    for foreign in (theirs.node_id, theirs.turn_id, f"Soup {other.mark}"):
        with pytest.raises(NotFound):
            await one.memory.records.get([foreign], titled=True)
        for verb, arguments in attacks.items():
            answers = [await asked(house, one, verb, arguments(id_)) for id_ in (foreign, nobodys)]
            assert answers[0].replace(foreign, nobodys) == answers[1], (verb, foreign)
            assert "NotFound" in answers[0]
    assert await everything(other) == before
    assert len(await other.memory.records.get([theirs.node_id], titled=True)) == 1


async def test_a_list_of_titled_texts_has_ones_own_alone(house: House) -> None:
    one, other, _ = house.all
    own = await noted(house, one)
    theirs = await noted(house, other)
    for query in (
        RecordQuery(kinds=("voice",)),
        RecordQuery(kinds=("voice", "Goal"), order=("-place", "title")),
        RecordQuery(kinds=("voice",), tags=("menu",)),
        RecordQuery(kinds=("voice",), where=(Condition("number", "=", 7),)),
        RecordQuery(kinds=("voice",), cursor=f"0:{theirs.node_id}"),
    ):
        page = await one.memory.records.list(query)
        assert own.node_id in {record.id for record in page.records}
        assert house.seen(one, page) == []
        assert page.by_kind["voice"] == 1
    for query in (
        RecordQuery(kinds=("voice",), ids=(theirs.node_id,)),
        RecordQuery(kinds=("voice",), where=(Condition("place", "=", other.mark),)),
        RecordQuery(kinds=("voice",), where=(Condition("title", "contains", other.mark),)),
    ):
        assert (await one.memory.records.list(query)).total == 0
    listed = await asked(house, one, "record_list", {"kinds": ["voice"]})
    assert own.node_id in listed
    assert house.seen(one, listed) == []
