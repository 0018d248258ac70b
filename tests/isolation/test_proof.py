"""The proof by attack passes on both stores, each lock is enough alone, and with both away it sees the leaks."""

from __future__ import annotations

import pytest

from pps.config import Settings
from pps.isolation.neo4j import open_neo4j
from pps.proof import verify as proving
from pps.proof.arena import Arena, Being, ExposedClient
from pps.proof.by_id import IdAttack, Ids
from pps.proof.by_statement import GuardAttack, Strike
from pps.proof.verify import KINDS, Report, attack, throw_away, verify
from tests.isolation.unlocked import FirstLockGone, without_guard
from tests.sampling import sized

pytestmark = pytest.mark.timeout(600)

OPERATIONS = sized(300, 600)
THROUGH_THE_CLIENT = tuple(
    kind for kind in KINDS if kind not in ("statement", "stock call", "hook")
)
WITH_IDS = tuple(
    kind for kind in KINDS if kind != "malformed"
)  # which shapes are ids is the first lock's business


async def attacked(
    settings: Settings, client: type[ExposedClient], kinds: tuple[str, ...]
) -> Report:
    async with (
        throw_away(settings) as (folder, open_driver),
        Arena.open(folder, open_driver, client=client) as arena,
    ):
        return await attack(arena, operations=OPERATIONS, seed=21, kinds=kinds)


async def test_no_attack_gets_through(settings: Settings) -> None:
    told: list[tuple[int, int]] = []
    wanted = 900 if settings.store != "neo4j" else sized(300, 900)
    report = await verify(
        settings, operations=wanted, seed=20, progress=lambda done, most: told.append((done, most))
    )
    assert report.leaks == ()
    assert report.told_apart == ()
    assert report.broken == ()
    assert report.ok
    assert report.second_lock == 0
    assert report.total == wanted
    assert set(report.operations) == set(KINDS)
    assert told[-1][1] == wanted
    assert not list(settings.home.iterdir()), "the throw-away entities are gone"


@pytest.mark.parametrize(
    "settings", ["embedded"], indirect=True
)  # what is drawn does not depend on the store
async def test_the_kinds_of_a_run_can_be_repeated(settings: Settings) -> None:
    first = await verify(settings, operations=60, seed=5)
    second = await verify(settings, operations=60, seed=5)
    assert first.operations == second.operations


@pytest.mark.neo4j
async def test_nothing_stays_on_a_shared_server(shared_settings: Settings) -> None:
    at = shared_settings.neo4j
    pool = await open_neo4j(at.uri, at.user, at.password.get_secret_value(), at.database)
    count = "MATCH (n) RETURN count(n) AS number"
    try:
        driver = pool.driver()
        before = (await driver.execute_query(count))[0]
        await verify(shared_settings, operations=30, seed=6)
        assert (await driver.execute_query(count))[0] == before
    finally:
        await pool.close()


@pytest.mark.neo4j
async def test_the_second_lock_alone_lets_nothing_through(shared_settings: Settings) -> None:
    report = await attacked(shared_settings, FirstLockGone, WITH_IDS)
    assert report.leaks == ()
    assert report.second_lock > OPERATIONS / 12, (
        "the first lock is still there: nothing came as far as the second"
    )


@pytest.mark.neo4j
async def test_the_first_lock_alone_lets_nothing_through(
    shared_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_guard(monkeypatch)
    report = await attacked(shared_settings, ExposedClient, THROUGH_THE_CLIENT)
    assert report.leaks == ()
    assert report.told_apart == ()
    assert report.broken == ()
    assert "IsolationError" not in report.refused, "the second lock is still there"


@pytest.mark.neo4j
async def test_with_both_locks_away_the_same_attacks_are_seen_to_leak(
    shared_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_guard(monkeypatch)
    both = tuple(kind for kind in THROUGH_THE_CLIENT if kind in WITH_IDS)
    report = await attacked(shared_settings, FirstLockGone, both)
    kinds = {finding.operation.partition(":")[0] for finding in report.leaks}
    assert not report.ok
    assert {"read", "look"} <= kinds, "what was read and what was changed, both are seen"
    assert any("mark planted in" in finding.what for finding in report.leaks)
    assert any("should hold" in finding.what for finding in report.leaks)


@pytest.mark.neo4j
@pytest.mark.parametrize("deleted", [True, False])
async def test_what_is_made_under_an_id_is_a_leak_unless_its_owner_let_it_go_meanwhile(
    shared_settings: Settings, monkeypatch: pytest.MonkeyPatch, deleted: bool
) -> None:
    """Seen once in 100,000 operations: the owner deletes a node while another is about to make it."""
    async with (
        throw_away(shared_settings) as (folder, open_driver),
        Arena.open(folder, open_driver) as arena,
    ):

        async def late(being: Being, ids: Ids) -> None:
            owner = next(one for one in arena.beings if ids.node in one.nodes)
            node = owner.nodes[ids.node]
            await owner.client.delete_nodes([node.uuid])
            if deleted:
                del owner.nodes[node.uuid]
                touching = [
                    one.uuid
                    for one in owner.facts.values()
                    if node.uuid in (one.subject, one.object)
                ]
                for fact in touching:
                    del owner.facts[fact]
            await being.client.save_nodes([node], {})

        monkeypatch.setattr(proving, "CREATES", [IdAttack("late", late, alike=False)])
        report = await attack(arena, operations=1, seed=7, kinds=("create",))
    assert report.ok is deleted
    assert ("create: late" in {finding.operation for finding in report.leaks}) is not deleted


@pytest.mark.beside_the_graph
async def test_what_a_library_raises_is_counted_by_its_name_and_searched_for_leaks(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def of_its_own(strike: Strike) -> object:
        raise KeyError(strike.own_group)

    async def of_another(strike: Strike) -> object:
        raise ValueError(strike.group)

    monkeypatch.setattr(proving, "STOCK", [GuardAttack("of its own", of_its_own, refused=False)])
    report = await attacked(settings, ExposedClient, ("stock call",))
    assert report.refused == {"KeyError": OPERATIONS}
    assert report.ok
    monkeypatch.setattr(proving, "STOCK", [GuardAttack("of another", of_another, refused=False)])
    report = await attacked(settings, ExposedClient, ("stock call",))
    assert report.refused == {"ValueError": OPERATIONS}
    assert {finding.operation for finding in report.leaks} == {"stock call: of another"}
