"""S3-01: squads are made from files, again and again the same; who is a member is looked up at each call."""

from __future__ import annotations

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound
from pps.squad import founding
from tests.squads import TRIO, write_squad


async def test_a_squad_is_made_once_and_binds_what_is_there(app: App) -> None:
    write_squad(app.settings.home, "trio")
    await app.create("ana")
    made = await founding.found(app, "team", "trio", {"main": "ana"})
    assert {one.id: one.entity.name for one in made.squad.members.values()} == {
        "kublai": "ana",
        "mongke": "team_mongke",
        "jochi": "team_jochi",
    }
    assert set(made.tokens) == {"mongke", "jochi"}
    again = await founding.found(app, "team", "trio", {"kublai": "ana"})
    assert (again.squad, again.tokens) == (made.squad, {})
    for name in ("ana", "team_jochi"):
        async with app.memory(name) as memory:
            assert "Belief" in memory.kinds
    squads = app.registry.squads
    assert squads.is_member("ana")
    found = squads.of_member("team_mongke")
    assert found is not None
    assert found[1].role == "researcher"
    squads.remove("team", "kublai")
    assert not squads.is_member("ana")
    assert squads.of_member("ana") is None
    with pytest.raises(NotFound):
        squads.remove("team", "kublai")


async def test_the_rules_of_a_squad_follow_its_file(app: App) -> None:
    write_squad(app.settings.home, "trio")
    await founding.found(app, "team", "trio", {})
    write_squad(app.settings.home, "trio", TRIO + '\n[members.ogedei]\nrole = "ops"\n')
    again = await founding.found(app, "team", "trio", {})
    assert list(again.squad.members) == ["kublai", "mongke", "jochi", "ogedei"]
    assert set(again.tokens) == {"ogedei"}


async def test_an_entity_is_of_one_squad_and_an_entity_that_was_used_never_becomes_a_pool(app: App) -> None:
    write_squad(app.settings.home, "trio")
    await app.create("ana")
    await app.create("other_pool")
    squad = (await founding.found(app, "team", "trio", {"kublai": "ana"})).squad
    with pytest.raises(InvalidRequest, match="there is an entity 'other_pool'"):
        await founding.found(app, "other", "trio", {})
    for taken in ("ana", "team_pool"):
        with pytest.raises(InvalidRequest, match="is of a squad already"):
            await founding.found(app, "third", "trio", {"kublai": taken})
    with pytest.raises(InvalidRequest, match="is no member"):
        await founding.join(app, squad, "nobody")


async def test_a_squad_that_is_erased_leaves_its_members(app: App) -> None:
    write_squad(app.settings.home, "trio")
    squad = (await founding.found(app, "team", "trio", {})).squad
    await founding.disband(app, squad)
    assert app.registry.squads.list() == []
    assert [one.entity.name for one in app.registry.list()] == ["team_jochi", "team_kublai", "team_mongke"]
    assert not app.registry.squads.is_member("team_jochi")
