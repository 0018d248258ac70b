"""S2-01, S2-11: another entity's id behaves as nobody's, for every verb of the client, on both stores."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pps.core.errors import InvalidRequest, IsolationError, PPSError
from pps.core.ids import EntityId
from pps.isolation.recipes import RECIPES
from pps.proof.arena import Arena, Being, dice
from pps.proof.by_id import READS, SEARCHES, WRITES, IdAttack, Ids, malformed, queries
from pps.proof.honest import Honest

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


async def outcome(attack: IdAttack, being: Being, ids: Ids) -> object:
    """Return what a caller can tell of a call."""
    try:
        return repr(await attack.call(being, ids))
    except PPSError as error:
        return f"{type(error).__name__}: {error}"


async def everyone_is_whole(arena: Arena) -> None:
    for being in arena.beings:
        assert await Honest(arena).differences(being) == []


@pytest.mark.parametrize("table", [READS, SEARCHES, WRITES], ids=["reads", "searches", "writes"])
async def test_a_foreign_id_is_nobodys_id_for_every_verb(
    arena: Arena, table: Sequence[IdAttack]
) -> None:
    chance = dice(1)
    for attack in table:
        for being in arena.beings:
            other = arena.random_of(being, chance)
            ids = Ids.of(other, chance)
            theirs = await outcome(attack, being, ids)
            assert arena.watch.leaks(being.name, theirs, ids.all()) == [], attack.name
            if attack.alike:
                assert theirs == await outcome(attack, being, Ids.of_nobody(chance)), attack.name
    await everyone_is_whole(arena)
    assert arena.counters.total == 0, (
        "the first lock let something by, and the second one caught it"
    )


async def test_what_is_no_id_is_refused_before_anything_is_asked(arena: Arena) -> None:
    chance = dice(3)
    for _ in range(60):
        for name, call in malformed(arena.beings[0], chance):
            with pytest.raises(InvalidRequest):
                await call()
            assert name


async def test_a_blank_group_cannot_be_expressed() -> None:
    good = "ent_" + "a" * 26
    assert EntityId("ana", good).group == good
    for blank in ("", " ", "ent_", good.upper(), good + "\n", good[:-1], None, [], [""], 0):
        with pytest.raises(InvalidRequest):
            EntityId("ana", blank)  # type: ignore[arg-type]


async def test_no_public_method_of_the_client_takes_a_group(arena: Arena) -> None:
    import inspect

    client = arena.beings[0].client
    for name in dir(client):
        if name.startswith("_"):
            continue
        member = getattr(client, name)
        if callable(member):
            for parameter in inspect.signature(member).parameters:
                assert "group" not in parameter, f"{name}({parameter})"


async def test_no_recipe_finds_what_only_another_entity_has(arena: Arena) -> None:
    chance = dice(4)
    for being in arena.beings:
        for recipe in RECIPES:
            other = arena.random_of(being, chance)
            for text in (
                other.mark,
                "Ana drinks coffee in the kitchen",
                queries(being, other, chance),
            ):
                found = await being.client.search(text, recipe=recipe, limit=20)
                assert arena.watch.leaks(being.name, found) == []
    assert arena.counters.total == 0


async def test_same_names_and_facts_in_all_of_them_are_found_by_each_as_its_own(
    arena: Arena,
) -> None:
    for being in arena.beings:
        facts = await being.client.search(
            "Ana drinks coffee in the kitchen.", recipe="EDGE_HYBRID_SEARCH_RRF"
        )
        assert facts.facts[0][0].text == "Ana drinks coffee in the kitchen."
        nodes = await being.client.search("Ana", recipe="NODE_HYBRID_SEARCH_RRF")
        assert nodes.nodes[0][0].name == "Ana"
        found = [fact for fact, _ in facts.facts] + [node for node, _ in nodes.nodes]
        assert {item.uuid for item in found} <= being.facts.keys() | being.nodes.keys()


async def test_a_timeline_in_pages_is_whole_and_ones_own(arena: Arena) -> None:
    for being in arena.beings:
        found, cursor = [], ""
        while page := await being.client.timeline(limit=2, cursor=cursor):
            found += page
            cursor = being.client.timeline_cursor(page[-1])
        assert {fact.uuid for fact in found} == being.facts.keys()
        assert arena.watch.leaks(being.name, found) == []


async def test_lists_are_full_whatever_the_others_hold(arena: Arena) -> None:
    quiet, loud, _ = arena.beings
    honest, chance = Honest(arena), dice(5)
    for _ in range(40):
        await honest.add_fact(loud, chance)
    found = await quiet.client.search(
        "Ana coffee kitchen", recipe="EDGE_HYBRID_SEARCH_RRF", limit=5
    )
    assert len(found.facts) == len(quiet.facts)


async def test_deleting_everything_of_one_leaves_the_others_whole(arena: Arena) -> None:
    first, *others = arena.beings
    await first.client.clear()
    assert (await first.client.counts()).nodes == 0
    for being in others:
        assert await Honest(arena).differences(being) == []


async def test_a_row_that_was_not_asked_for_is_refused_counted_and_not_shown(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    being, other, _ = arena.beings
    stolen = next(iter(other.nodes.values()))

    async def leaking(uuids: object) -> list[object]:
        return [stolen]

    monkeypatch.setattr(being.client.inside.store, "nodes", leaking)
    with caplog.at_level("DEBUG"), pytest.raises(IsolationError) as refused:
        await being.client.nodes([next(iter(being.nodes))])
    assert arena.counters.by_kind() == {"row": 1}
    assert arena.counters.by_entity() == {being.name: 1}
    told = [
        record.getMessage() for record in caplog.records if record.name == "pps.isolation.counters"
    ]
    assert len(told) == 1
    assert being.name in told[0]
    for text in (str(refused.value), told[0]):
        assert stolen.name not in text
        assert stolen.uuid not in text
        assert other.mark not in text
