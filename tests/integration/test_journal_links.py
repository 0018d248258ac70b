"""What a ranking reads of the graph: outlines, and hops between nodes against a plain walk."""

from __future__ import annotations

import random
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pps.core.values import Fact, Node
from pps.journal import links
from pps.journal.entries import TurnDraft
from pps.journal.journal import Journal
from pps.journal.links import FactOutline, NodeOutline
from tests.graph_file import save_facts, save_nodes
from tests.journal_place import JournalPlace

AT = datetime(2026, 1, 1, tzinfo=UTC)


def uid(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


def node(name: str) -> Node:
    return Node(uid(name), name, AT)


def fact(name: str, subject: str, object_: str, *episodes: str, kind: str = "fact") -> Fact:
    supports = tuple(uid(one) for one in episodes)
    return Fact(uid(name), uid(subject), uid(object_), "R", name, AT, kind=kind, episodes=supports)


@pytest.fixture
async def journal(place: JournalPlace) -> AsyncIterator[Journal]:
    async with await place.open() as opened:
        yield opened


async def test_an_outline_of_a_fact_has_its_ends_and_times_in_the_order_asked(
    journal: Journal,
) -> None:
    ended = replace(
        fact("f1", "a", "b", "e1", "e2"), valid_at=AT, invalid_at=AT + timedelta(days=3)
    )
    await save_nodes(journal, [node("a"), node("b"), node("c")])
    await save_facts(journal, [ended, fact("f2", "b", "c")])

    outlines = await journal.fact_outlines([uid("f2"), uid("gone"), uid("f1")])

    assert list(outlines) == [uid("f2"), uid("f1")]
    assert outlines[uid("f2")] == FactOutline(uid("b"), uid("c"))
    assert outlines[uid("f1")] == FactOutline.of(ended)


async def test_supports_are_those_of_known_facts(journal: Journal) -> None:
    await save_facts(journal, [fact("f1", "a", "b", "e1", "e2"), fact("f2", "b", "c")])

    supports = await journal.fact_supports([uid("f2"), uid("gone"), uid("f1")])

    assert supports.keys() == {uid("f1")}
    assert set(supports[uid("f1")].episodes) == {uid("e1"), uid("e2")}


async def test_supports_say_when_a_fact_was_last_told_of(journal: Journal) -> None:
    drafts = [TurnDraft(str(days), occurred_at=AT + timedelta(days=days)) for days in (2, 0)]
    told = tuple([(await journal.append(draft)).turn.uuid for draft in drafts])
    elsewhere = replace(fact("f2", "a", "b"), episodes=(*told, uid("only in the graph")))
    await save_facts(journal, [replace(fact("f1", "a", "b"), episodes=told), elsewhere])

    supports = await journal.fact_supports([uid("f1"), uid("f2")])

    assert supports[uid("f1")].said_at == AT + timedelta(days=2)
    assert supports[uid("f2")].said_at is None  # the journal does not know the time of all


async def test_an_outline_of_a_node_has_its_age_and_tags(journal: Journal) -> None:
    tagged = replace(node("a"), tags=("Garden", "food"))
    await save_nodes(journal, [tagged, node("b")])

    outlines = await journal.node_outlines([uid("b"), uid("gone"), uid("a")])

    assert list(outlines) == [uid("b"), uid("a")]
    assert outlines[uid("b")] == NodeOutline.of(node("b"))
    known = outlines[uid("a")]
    assert (
        (known.created_at, set(known.tags))
        == (AT, {"garden", "food"})
        == (AT, set(NodeOutline.of(tagged).tags))
    )


async def test_hops_count_facts_and_relations_in_both_directions(journal: Journal) -> None:
    await save_nodes(journal, [node(one) for one in "abcde"])
    await save_facts(
        journal, [fact("f1", "a", "b"), fact("f2", "c", "b", kind="relation"), fact("f3", "c", "d")]
    )

    found = await journal.hops([uid("a")], [uid(one) for one in "abcde"], 2, AT)

    assert found == {uid("a"): 0, uid("b"): 1, uid("c"): 2}


async def test_hops_are_those_of_the_nearest_start(journal: Journal) -> None:
    await save_nodes(journal, [node(one) for one in "abcd"])
    await save_facts(journal, [fact("f1", "a", "b"), fact("f2", "b", "c"), fact("f3", "c", "d")])

    assert await journal.hops([uid("a"), uid("d")], [uid("c"), uid("b")], 4, AT) == {
        uid("c"): 1,
        uid("b"): 1,
    }
    assert await journal.hops([uid("gone")], [uid("a")], 4, AT) == {}


@pytest.mark.parametrize("pairs_looked_up", [0, links.MOST_PAIRS])
async def test_hops_agree_with_a_plain_walk(
    journal: Journal, pairs_looked_up: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "MOST_PAIRS", pairs_looked_up)  # the last step has two ways
    chance = random.Random(7)  # noqa: S311 - a fixed graph
    names = [f"n{number}" for number in range(60)]
    pairs = [tuple(chance.sample(names, 2)) for _ in range(70)]
    await save_nodes(journal, [node(name) for name in names])
    await save_facts(journal, [fact(f"f{at}", *pair) for at, pair in enumerate(pairs)])
    near: dict[str, set[str]] = {name: set() for name in names}
    for one, other in pairs:
        near[one].add(other)
        near[other].add(one)

    for start in names[:12]:
        far, ring = {start: 0}, {start}
        for hop in range(1, 5):
            ring = {other for one in ring for other in near[one]} - far.keys()
            far.update(dict.fromkeys(ring, hop))
        found = await journal.hops([uid(start)], [uid(name) for name in names], 4, AT)
        assert found == {uid(name): hop for name, hop in far.items()}
        reached = await journal.reach(uid(start), 4, AT)
        assert {one: step.hops for one, step in reached.items()} == {
            one: hop for one, hop in found.items() if hop
        }
        ends = {uid(f"f{at}"): {uid(one), uid(other)} for at, (one, other) in enumerate(pairs)}
        for one, step in reached.items():
            assert ends[step.fact] == {one, step.before}
            assert (0 if step.before == uid(start) else reached[step.before].hops) == step.hops - 1


async def test_what_has_ended_joins_nothing_any_more(journal: Journal) -> None:
    day = timedelta(days=1)
    await save_nodes(journal, [node(one) for one in "abc"])
    await save_facts(journal, [replace(fact("f1", "a", "b"), invalid_at=AT), fact("f2", "b", "c")])

    for at, there in ((AT - day, {uid("b"): 1, uid("c"): 2}), (AT, {})):
        for most in (2, 4):  # two hops away: the last step of a walk, and one before the last
            assert await journal.hops([uid("a")], [uid("b"), uid("c")], most, at) == there
        assert {
            one: step.hops for one, step in (await journal.reach(uid("a"), 4, at)).items()
        } == there
