"""S2-11 above the graph, on both stores: entities of one application, their tokens, folders and names."""

from __future__ import annotations

import asyncio

import pytest

from pps.app import App
from pps.config import Settings
from pps.core.errors import (
    InvalidRequest,
    IsolationError,
    PPSError,
    StoreConflict,
    StoreError,
    UnknownEntity,
)
from pps.core.ids import EntityId
from pps.core.values import FactDraft
from pps.entities.registry import Registry
from pps.operations.calls import Caller, Calls
from pps.proof.arena import Watch
from tests.conftest import IN_FILES
from tests.erasing import deleted, lose_graph
from tests.isolation.house import NAMES, One, told

pytestmark = pytest.mark.timeout(300)


async def test_a_token_is_one_entitys_and_dies_with_it(app: App) -> None:
    tokens = {name: (await app.create(name)).token for name in ("ana", "ana_2")}
    for name, token in tokens.items():
        assert token is not None
        found = app.registry.entity_of_token(token)
        assert found is not None
        assert found.name == name
    owner = app.registry.get("ana").entity
    assert app.registry.first_token(owner) is None, "it was given out when the entity was made"
    assert app.registry.entity_of_token("") is None
    assert app.registry.entity_of_token(str(tokens["ana"])[:-1]) is None
    second = app.registry.issue_token("ana")
    assert app.registry.revoke_tokens("ana") == 2
    assert app.registry.entity_of_token(second) is None
    assert app.registry.entity_of_token(str(tokens["ana_2"])) is not None
    assert not app.registry.is_operator(str(tokens["ana_2"]))
    operator = app.registry.operator_token()
    assert app.registry.entity_of_token(operator) is None, "an operator reads no memory"
    app.registry.revoke_operator_tokens()
    assert not app.registry.is_operator(operator)


async def test_names_are_one_without_regard_to_case_and_groups_are_opaque(app: App) -> None:
    first, second = await app.create("ana"), await app.create("ana_2")
    with pytest.raises(PPSError):
        await app.create("ANA")
    assert first.entity.group != second.entity.group
    for created in (first, second):
        assert created.entity.name not in created.entity.group
        assert app.registry.by_group(created.entity.group).entity == created.entity
        assert app.registry.get(created.entity.name).entity == created.entity


async def test_a_data_folder_of_another_does_not_mount(app: App) -> None:
    first, second = await app.create("ana"), await app.create("ben")
    await app.close_all()
    assert {first.folder.parent, second.folder.parent} == {app.registry.entities_folder}
    mark = second.folder / "entity.toml"
    mark.write_bytes((first.folder / "entity.toml").read_bytes())
    with pytest.raises(PPSError):
        app.registry.mount("ben")
    with pytest.raises(PPSError):
        async with app.memory("ben"):
            pass
    async with app.memory("ana") as memory:
        assert (await memory.stats()).turns == 0


async def test_warming_up_opens_nobodys_memory(app: App) -> None:
    for name in ("ana", "ben"):
        await app.create(name)
    await app.close_all()
    await app.warm_up()
    assert app.open_names() == []


@pytest.mark.parametrize("settings", IN_FILES, indirect=True)
async def test_the_data_of_another_behind_an_own_name_does_not_open(app: App) -> None:
    first, second = await app.create("ana"), await app.create("ben")
    await app.close_all()
    (second.folder / "data" / "memory.db").write_bytes(
        (first.folder / "data" / "memory.db").read_bytes()
    )
    with pytest.raises(IsolationError):
        async with app.memory("ben"):
            pass


async def test_jobs_that_a_restart_finds_go_on_in_their_own_memory(settings: Settings) -> None:
    watch, marks = Watch(), {}
    async with App.open(settings) as app:
        for name in NAMES:
            await app.create(name)
            async with app.memory(name) as memory:
                marks[name] = (await told(memory, watch)).mark
                for number in range(5):
                    text = f"Left over {number}. {marks[name]}"
                    facts = [FactDraft("Ana", "LEFT", f"over {number}", text=text)]
                    await memory.remember(
                        text, wait="journal", source_ref=f"left{number}", facts=facts
                    )
    async with App.open(settings) as app:
        assert set(app.registry.pending_since()) <= set(NAMES)
        assert set(await app.closed_pending()) == set(app.registry.pending_since())
        assert await app.resume_pending() == {}
        assert await app.closed_pending() == {}
        await app.close_all()
        assert app.registry.pending_since() == {}
        for name in NAMES:
            async with app.memory(name) as memory:
                assert not await memory.pending()
                page = await memory.timeline(limit=1000)
                assert sum("Left over" in fact.text for fact in page.facts) == 5
                assert watch.leaks(name, page) == []
                app.registry.set_pending(memory.entity, True)
        assert set(app.registry.pending_since()) == set(NAMES)


async def test_archiving_and_deleting_one_leaves_the_others_and_nothing_of_it(app: App) -> None:
    watch, calls = Watch(), Calls(app)
    entities: dict[str, EntityId] = {}
    ones: list[One] = []
    for name in NAMES:
        entities[name] = (await app.create(name)).entity
        async with app.memory(name) as memory:
            ones.append(await told(memory, watch))
    before = await calls.answer(Caller.of_entity("coffee"), "timeline", {"limit": 1000})
    await app.archive("ana")
    with pytest.raises(PPSError):
        await calls.answer(Caller.of_entity("ana"), "stats", {})
    await app.delete("ana_2")
    assert not {"ana", "ana_2"} & set(app.open_names())
    with pytest.raises(UnknownEntity):
        await calls.answer(Caller.of_entity("ana_2"), "stats", {})
    assert await calls.answer(Caller.of_entity("coffee"), "timeline", {"limit": 1000}) == before
    again = await app.create("ana_2")
    assert again.entity.group != entities["ana_2"].group
    answer = await calls.answer(
        Caller.of_entity("ana_2"), "recall", {"query": "Ana coffee kitchen"}
    )
    assert watch.leaks("nobody", answer) == []
    await app.archive("ana", undo=True)
    found = await calls.answer(Caller.of_entity("ana"), "recall", {"query": "Ana coffee kitchen"})
    assert watch.leaks("ana", found) == []
    assert ones[-1].memory.entity == entities["coffee"]


async def test_who_hears_of_leaving_is_told_of_those_that_leave_and_of_no_other(app: App) -> None:
    leaving: list[str] = []

    async def note(name: str) -> None:
        leaving.append(name)
        async with app.memory("coffee") as memory:  # another's memory stays open meanwhile
            assert memory.entity.name == "coffee"

    for name in NAMES:
        await app.create(name)
    end_hearing = app.hear_of_leaving(note)
    await app.archive("ana")
    await app.delete("ana_2")
    assert leaving == ["ana", "ana_2"]
    for unknown in ("nobody", "../coffee"):
        with pytest.raises(PPSError):
            await app.archive(unknown)
    assert leaving == ["ana", "ana_2"]
    end_hearing()
    await app.archive("coffee")
    assert leaving == ["ana", "ana_2"]


async def test_a_name_that_was_given_to_a_new_entity_elsewhere_does_not_reach_the_old_one(
    app: App,
) -> None:
    """The registry's entry is kept while nothing is written to it: another process writes, and it is read again."""
    first = (await app.create("ana")).entity
    await asyncio.sleep(0.1)
    async with app.memory("ana") as memory:
        await memory.remember("The canary is in the cellar.")
    async with app.memory("ana") as memory:
        assert memory.entity == first
    elsewhere = Registry(app.registry.entities_folder.parent)
    deleted(elsewhere, "ana")
    elsewhere.create("ana", store=app.settings.store)
    anew = {
        file: file.read_bytes()
        for file in sorted(app.registry.get("ana").folder.rglob("*"))
        if file.is_file()
    }
    refused = pytest.raises(
        StoreConflict, match=r"deleted and made anew .* restart"
    )  # the old one's are open still
    with refused:
        async with app.memory("ana"):
            pass
    with refused:
        await app.reindex("ana")
    for file, content in anew.items():
        assert file.read_bytes() == content
    with pytest.raises(InvalidRequest, match="made anew"):
        async with app.memory(first):
            pass
    elsewhere.archive("ana")
    with pytest.raises(UnknownEntity):
        async with app.memory("ana"):
            pass


async def test_a_deletion_that_is_finished_later_takes_nothing_of_another(
    settings: Settings,
) -> None:
    """Begun, and then the process is gone: nobody is let in by the name, and the others stay as they were."""
    watch = Watch()
    async with App.open(settings) as app:
        for name in NAMES:
            await app.create(name)
            async with app.memory(name) as memory:
                await told(memory, watch)
        before = await Calls(app).answer(Caller.of_entity("coffee"), "timeline", {"limit": 1000})
        token = app.registry.issue_token("ana_2")
        await app.close_all()
        gone = app.registry.deletions.begin(app.registry.get("ana_2").entity)
        assert app.registry.entity_of_token(token) is None
        with pytest.raises(UnknownEntity):
            async with app.memory("ana_2"):
                pass
        with pytest.raises(StoreConflict, match="not finished"):
            app.registry.register("ana_2", store=settings.store)
    async with App.open(settings) as app:
        assert app.registry.deletions.pending() == []
        app.registry.set_made(
            gone.entity
        )  # as a process would that opened it just before: nothing comes of it
        assert await app.finish_deletions() == {}
        assert not gone.folder.exists()
        calls = Calls(app)
        assert await calls.answer(Caller.of_entity("coffee"), "timeline", {"limit": 1000}) == before
        assert (await app.create("ana_2")).entity.group != gone.entity.group
        assert (
            watch.leaks(
                "nobody",
                await calls.answer(
                    Caller.of_entity("ana_2"), "recall", {"query": "Ana coffee kitchen"}
                ),
            )
            == []
        )
        assert (
            watch.leaks(
                "ana",
                await calls.answer(
                    Caller.of_entity("ana"), "recall", {"query": "Ana coffee kitchen"}
                ),
            )
            == []
        )


async def test_a_folder_that_holds_anothers_data_is_not_removed_with_the_entity_it_was_put_under(
    app: App,
) -> None:
    first, second = await app.create("ana"), await app.create("ben")
    async with app.memory("ben") as memory:
        await memory.remember("Ben's own.")
    await app.close_all()
    own_card = (second.folder / "entity.toml").read_text()
    (second.folder / "entity.toml").write_bytes((first.folder / "entity.toml").read_bytes())
    with pytest.raises(IsolationError):
        await app.delete("ben")
    assert app.registry.get("ben").entity == second.entity
    assert (second.folder / "data" / "vectors.db").exists()
    (second.folder / "entity.toml").write_text(own_card)
    async with app.memory("ben") as memory:
        assert [turn.turn.content for turn in (await memory.graph.said()).turns] == ["Ben's own."]


async def test_a_changed_file_of_one_opens_nothing_of_another(app: App) -> None:
    first, second = await app.create("ana"), await app.create("ben")
    for name in ("ana", "ben"):
        async with app.memory(name) as memory:
            await memory.remember(f"Only {name} knows.")
    card = second.folder / "entity.toml"
    good = card.read_bytes()
    card.write_bytes((first.folder / "entity.toml").read_bytes())
    assert app.waits_for_its_card(app.registry.get("ben"))
    assert not app.waits_for_its_card(app.registry.get("ana"))
    for _ in range(2):
        with pytest.raises(IsolationError):
            async with app.memory("ben"):
                pass
    async with app.memory("ana") as memory:
        assert [turn.turn.content for turn in (await memory.graph.said()).turns] == [
            "Only ana knows."
        ]
    card.write_bytes(good)
    async with app.memory("ben") as memory:
        assert [turn.turn.content for turn in (await memory.graph.said()).turns] == [
            "Only ben knows."
        ]


async def test_a_graph_that_is_gone_is_not_made_anew_and_rebuilding_one_leaves_the_others(
    app: App,
) -> None:
    watch, calls = Watch(), Calls(app)
    for name in NAMES:
        await app.create(name)
        async with app.memory(name) as memory:
            await told(memory, watch)
    others = [
        await calls.answer(Caller.of_entity(name), "timeline", {"limit": 1000})
        for name in NAMES[1:]
    ]
    await app.close_all()
    await lose_graph(app, "ana")
    with pytest.raises(StoreError, match=r"graph is gone or empty.*pps rebuild ana"):
        async with app.memory("ana"):
            pass
    assert list(await app.unopenable()) == ["ana"]
    assert [
        await calls.answer(Caller.of_entity(name), "timeline", {"limit": 1000})
        for name in NAMES[1:]
    ] == others
    await app.rebuild("ana")
    assert await app.unopenable() == {}
    async with app.memory("ana") as memory:
        assert (await memory.stats()).facts > 0
        assert watch.leaks("ana", await memory.timeline(limit=1000)) == []
    assert (
        watch.leaks(
            "ana",
            await calls.answer(Caller.of_entity("ana"), "recall", {"query": "Ana coffee kitchen"}),
        )
        == []
    )
    assert [
        await calls.answer(Caller.of_entity(name), "timeline", {"limit": 1000})
        for name in NAMES[1:]
    ] == others


async def test_a_registry_made_anew_gives_no_folder_to_another(settings: Settings) -> None:
    async with App.open(settings) as app:
        first, second = await app.create("ana"), await app.create("ben")
        token = str(first.token)
    (settings.home / "registry.db").unlink()
    renamed = second.folder.rename(second.folder.with_name("coffee"))
    with pytest.raises(StoreError, match="names another entity"):
        Registry.restored(settings.home)
    assert not (settings.home / "registry.db").exists()
    renamed.rename(second.folder)
    assert Registry.restored(settings.home) == ["ana", "ben"]
    async with App.open(settings) as app:
        assert app.registry.entity_of_token(token) is None
        assert app.registry.damage() == []
        for made in (first, second):
            assert app.registry.get(made.entity.name).entity == made.entity
            async with app.memory(made.entity) as memory:
                assert memory.entity == made.entity


async def test_the_zone_of_one_is_not_that_of_another(app: App) -> None:
    """``App.zone_of`` and ``Memory.zone``: each entity's own, open or closed; ``new_zone`` changes none that is there."""
    await app.create("tokyo", time_zone="Asia/Tokyo")
    await app.create("lima", time_zone="America/Lima")
    async with app.memory("tokyo") as tokyo, app.memory("lima") as lima:
        assert (str(tokyo.zone), str(lima.zone)) == ("Asia/Tokyo", "America/Lima")
    assert str(await app.zone_of("tokyo")) == "Asia/Tokyo"
    await app.delete("tokyo")
    assert str(await app.zone_of("lima")) == "America/Lima"
    with pytest.raises(UnknownEntity):
        await app.zone_of("tokyo")
    assert app.new_zone in ("", app.settings.time_zone)


async def test_erasing_what_is_overdue_takes_nothing_that_others_can_restore(app: App) -> None:
    """``App.erase_overdue`` goes through all entities; what is young stays restorable in each."""
    kept: dict[str, tuple[str, str]] = {}
    for name in ("ana", "ben"):
        await app.create(name)
        async with app.memory(name) as memory:
            receipt = await memory.remember(f"{name} keeps a lamp.")
            gone = await memory.forgetting.forget([receipt.turn_id], dry_run=False, soft=True)
            kept[name] = receipt.turn_id, gone.restorable_as
    await app.erase_overdue()
    for name, (turn, restorable) in kept.items():
        async with app.memory(name) as memory:
            await memory.forgetting.restore(restorable)
            [item] = await memory.get([turn])
            assert item.content == f"{name} keeps a lamp."  # type: ignore[union-attr]
