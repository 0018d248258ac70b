"""Every graph store: times, timelines and what held at a moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from pps.core.errors import InvalidRequest
from pps.core.reports import timeline_cursor
from pps.core.values import Fact
from pps.graph.graph_store import GraphStore
from tests.integration.graph_items import DAY, T0, a_fact, a_node, two_nodes


async def test_times_keep_their_instant_to_the_microsecond_in_any_zone(store: GraphStore) -> None:
    east = timezone(timedelta(hours=5, minutes=45))
    ana, ben = await two_nodes(store)
    moments = [
        datetime(2025, 1, 1, 0, 0, 0, 1, east),
        datetime(1901, 2, 3, 4, 5, 6, 999_999, UTC),
        datetime(2999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-11))),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
    ]
    facts = [a_fact(ana, ben, valid_at=at, created_at=at) for at in moments]
    await store.save_facts(facts, {})
    found = await store.facts([fact.uuid for fact in facts])
    assert [fact.valid_at for fact in found] == moments
    assert [fact.created_at for fact in found] == moments
    assert all(fact.created_at.utcoffset() == timedelta(0) for fact in found)


async def test_a_timeline_is_ordered_by_validity_then_uuid_with_undated_facts_last(
    store: GraphStore,
) -> None:
    ana, ben = await two_nodes(store)
    days = [3, 1, 2, 1, 1]
    facts = [a_fact(ana, ben, valid_at=T0 + day * DAY) for day in days] + [
        a_fact(ana, ben),
        a_fact(ben, ana),
    ]
    await store.save_facts(facts, {})
    far = datetime.max.replace(tzinfo=UTC)
    expected = sorted(facts, key=lambda fact: (fact.valid_at or far, fact.uuid))
    assert await store.timeline() == expected
    seen: list[Fact] = []
    while page := await store.timeline(
        limit=2, cursor=timeline_cursor(seen[-1].valid_at, seen[-1].uuid) if seen else ""
    ):
        seen += page
    assert seen == expected


async def test_a_timeline_can_be_narrowed_to_a_node_a_relation_and_a_span(
    store: GraphStore,
) -> None:
    ana, ben = await two_nodes(store)
    eva = a_node("Eva")
    await store.save_nodes([eva], {})
    facts = [
        a_fact(ana, ben, valid_at=T0),
        a_fact(ben, eva, valid_at=T0 + DAY, relation="LIKES"),
        a_fact(eva, ana, valid_at=T0 + 2 * DAY),
        a_fact(eva, eva),
    ]
    await store.save_facts(facts, {})
    assert await store.timeline(node=ana.uuid) == [facts[0], facts[2]]
    assert await store.timeline(node=eva.uuid) == facts[1:]
    assert await store.timeline(relation="LIKES") == [facts[1]]
    assert await store.timeline(after=T0 + DAY) == facts[1:3]
    assert await store.timeline(before=T0 + DAY) == [facts[0]]
    assert await store.timeline(after=T0, before=T0 + 2 * DAY, node=eva.uuid) == [facts[1]]
    assert await store.timeline(
        node=eva.uuid, relation="KNOWS", cursor=timeline_cursor(facts[2].valid_at, facts[2].uuid)
    ) == [facts[3]]


async def test_as_of_takes_validity_as_half_open(store: GraphStore) -> None:
    ana, ben = await two_nodes(store)
    old = a_fact(
        ana, ben, "lives in Rome", valid_at=T0, invalid_at=T0 + DAY, expired_at=T0 + 9 * DAY
    )
    new = a_fact(ana, ben, "lives in Oslo", valid_at=T0 + DAY)
    undated = a_fact(ana, ben, "likes tea")
    ended = a_fact(ana, ben, "was a child", invalid_at=T0 - DAY)
    dropped = a_fact(ana, ben, "never true", valid_at=T0 - 5 * DAY, expired_at=T0)
    await store.save_facts([old, new, undated, ended, dropped], {})

    async def at(moment: datetime) -> set[str]:
        return {fact.text for fact in await store.timeline(as_of=moment)}

    tick = timedelta(microseconds=1)
    assert await at(T0 - 2 * DAY) == {"likes tea", "was a child"}
    assert await at(T0 - tick) == {"likes tea"}
    assert await at(T0) == {"likes tea", "lives in Rome"}
    assert await at(T0 + DAY - tick) == {"likes tea", "lives in Rome"}
    assert await at(T0 + DAY) == {"likes tea", "lives in Oslo"}
    assert {fact.text for fact in await store.timeline()} == {
        *("lives in Rome", "lives in Oslo", "likes tea", "was a child", "never true")
    }


async def test_a_timeline_refuses_what_it_cannot_mean(store: GraphStore) -> None:
    naive = T0.replace(tzinfo=None)
    for broken in (
        {"limit": 0},
        {"limit": 1_001},
        {"cursor": "nonsense"},
        {"cursor": "1:x"},
        {"as_of": naive},
    ):
        with pytest.raises(InvalidRequest):
            await store.timeline(**broken)  # type: ignore[arg-type]
