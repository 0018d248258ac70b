"""S2-11 above the graph: memories of one application, their verbs, tokens and folders, on both stores."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.config import Settings, shipped
from pps.context.capture import without_packs
from pps.core.errors import InvalidRequest, IsolationError, NotFound, PPSError, UnknownEntity
from pps.core.ids import EntityId
from pps.core.values import FactDraft, NodeDraft, RelationDraft, Turn
from pps.entities import Registry
from pps.isolation.attacks.watch import Watch
from pps.journal.spending import Spent
from pps.journal.values import ItemFilter
from pps.memory import Memory
from pps.verbs.all import verbs_for
from pps.verbs.calls import Calls
from tests.secrets import SECRETS

WHEN = datetime(2026, 3, 7, 8, 30, tzinfo=UTC)
NAMES = ("ana", "ana_2", "coffee")
SAME = (
    "Ana drinks coffee in the kitchen every morning.",
    "Lisbon is where Ana lives.",
    "Tea is for the evening.",
)

pytestmark = pytest.mark.timeout(300)


@dataclass
class One:
    """A memory, and ids and words that only it may ever show."""

    memory: Memory
    mark: str
    turn: str
    fact: str
    node: str
    slug: str


@dataclass
class House:
    """Memories side by side."""

    app: App
    calls: Calls
    all: list[One]
    watch: Watch

    def seen(self, one: One, value: object, *known: str) -> list[str]:
        return self.watch.leaks(one.memory.entity.name, value, frozenset(known))


@pytest.fixture
async def house(app: App) -> AsyncIterator[House]:
    watch, lent = Watch(), []
    async with asyncio.timeout(120):
        for name in NAMES:
            created = await app.create(name)
            assert created.entity.name == name
    ones: list[One] = []
    stack = [app.memory(name) for name in NAMES]
    for opened in stack:
        lent.append(opened)
        ones.append(await told(await opened.__aenter__(), watch))
    yield House(app, Calls(app), ones, watch)
    for opened in reversed(lent):
        await opened.__aexit__(None, None, None)


async def told(memory: Memory, watch: Watch) -> One:
    """Tell a memory what all are told, and a word that is only its own."""
    mark = f"kanarie{uuid.uuid4().hex[:12]}"
    watch.mark(memory.entity.name, mark, memory.entity.group)
    for number, text in enumerate(SAME):
        await memory.remember(
            text,
            source_ref=f"m{number}",
            session="morning",
            occurred_at=WHEN,
            nodes=[NodeDraft("Ana", kind="Person", summary=mark), NodeDraft("Coffee", summary=mark)],
            facts=[FactDraft("Ana", "DRINKS", "Coffee", text="Ana drinks coffee.", valid_at=WHEN)],
        )
    secret = FactDraft("Ana", "KNOWS", mark, text=f"Ana knows {mark}.", valid_at=WHEN)
    receipt = await memory.remember(f"The word is {mark}.", source_ref="secret", session="morning", facts=[secret])
    anchor = await memory.anchor_save(f"Kitchen {mark}", f"# Kitchen\n\nCoffee, tea and {mark}.")
    await memory.anchor_save("Kitchen", f"# Kitchen\n\nCoffee and tea. {mark}", slug="kitchen")
    page = await memory.timeline(limit=100)
    fact = next(fact for fact in page.facts if mark in fact.text)
    watch.own(memory.entity.name, *(one.uuid for one in page.facts), *(one.subject for one in page.facts))
    watch.own(memory.entity.name, receipt.turn_id, fact.object)
    return One(memory, mark, receipt.turn_id, fact.uuid, fact.subject, anchor.slug)


async def everything(one: One) -> object:
    """Return all that a memory shows of itself, in an order that does not change."""
    memory = one.memory
    stats = await memory.stats()
    return (
        replace(stats, index_lag=0),
        await memory.timeline(limit=1000),
        await memory.get([one.turn, one.fact, one.node]),
        await memory.anchor_list(),
        [(hit.id, hit.text) for hit in (await memory.recall("coffee kitchen Ana", limit=50))["facts"]],
        [(hit.id, hit.text) for hit in (await memory.recall(one.mark, limit=50))["episodes"]],
    )


async def outcome(work: Any) -> object:
    try:
        return await work
    except PPSError as error:
        return f"{type(error).__name__}: {error}"


async def test_no_way_to_recall_shows_anything_of_another(house: House) -> None:
    profiles = [path.name.removesuffix(".toml") for path in shipped("config/profiles").iterdir()]
    assert len(profiles) > 5
    for one in house.all:
        for other in house.all:
            queries = (
                other.mark,
                f"The word is {other.mark}.",
                "Ana coffee kitchen Lisbon tea",
                other.memory.entity.group,
            )
            for profile in profiles:
                for query in queries:
                    recalled = await one.memory.recall(query, profile=profile, limit=50)
                    assert [channel.error for channel in recalled.channels.values() if channel.error] == []
                    assert house.seen(one, replace(recalled, query="")) == [], profile
            for mode in ("turn", "startup"):
                pack = await one.memory.ambient_recall("" if mode == "startup" else other.mark, mode=mode)  # type: ignore[arg-type]
                recall = replace(pack.recall, query="") if pack.recall else None
                body = pack.text.replace(other.mark, "") if other is one else pack.text
                assert house.seen(one, replace(pack, text=body, recall=recall)) == []


async def test_a_pack_of_another_is_what_was_said_and_ones_own_is_dropped(house: House) -> None:
    packs = {one.mark: (await one.memory.ambient_recall("Ana")).text for one in house.all}
    for one in house.all:
        journal = one.memory._parts.journal
        for mark, text in packs.items():
            kept = await without_packs(f"Look: {text}", journal)
            assert kept == ("Look: " if mark == one.mark else f"Look: {text}")
    secrets = {await one.memory._parts.journal.secret("fence") for one in house.all}
    assert len(secrets) == len(house.all)


async def test_filters_of_another_find_nothing(house: House) -> None:
    one, other, _ = house.all
    for wanted in (
        ItemFilter(sessions=(other.mark,)),
        ItemFilter(tags=(other.mark,)),
        ItemFilter(kinds=(other.mark,)),
        ItemFilter(statuses=(other.mark,)),
    ):
        recalled = await one.memory.recall("Ana coffee", filters=wanted)
        assert house.seen(one, recalled) == []


async def test_a_status_and_what_joins_a_node_are_ones_own_alone(house: House) -> None:
    goals = {
        one.mark: NodeDraft("Quiet garden", "Goal", f"By {one.mark}.", attributes={"status": one.mark})
        for one in house.all
    }
    for one in house.all:
        joined = FactDraft("Quiet garden", "SERVES", "Ana", f"The garden of {one.mark} serves Ana.")
        await one.memory.remember(f"A goal of {one.mark}.", source_ref="goal", nodes=[goals[one.mark]], facts=[joined])
    for one in house.all:
        for wanted in (ItemFilter(layers=("vision",)), *(ItemFilter(statuses=(mark,)) for mark in goals)):
            recalled = await one.memory.recall("Quiet garden", filters=wanted, include_relationships=True)
            assert house.seen(one, recalled) == []
            names = [hit.text for hit in recalled["nodes"] if hit.relationships]
            is_theirs = wanted.statuses not in ((), (one.mark,))
            assert names == ([] if is_theirs else [f"Quiet garden: By {one.mark}."])


async def test_one_secret_has_another_marker_for_each_and_that_of_another_leads_nowhere(house: House) -> None:
    token, _ = SECRETS["GitHub Token"]
    kept: dict[str, str] = {}
    for one in house.all:
        receipt = await one.memory.remember("The gate is shut.", session=f"chat {token}", source_ref=token)
        (turn,) = await one.memory.get([receipt.turn_id])
        assert isinstance(turn, Turn)
        assert turn.session == f"chat {turn.source_ref}"
        kept[one.mark] = turn.session
    assert len({session.partition("GitHub Token ")[2] for session in kept.values()}) == len(house.all)
    for one, other in itertools.permutations(house.all, 2):
        recalled = await one.memory.recall("gate", filters=ItemFilter(sessions=(kept[other.mark],)))
        assert [hit for channel in recalled.channels.values() for hit in channel.hits] == []
        assert kept[other.mark] not in repr(await everything(one))


async def test_every_id_of_another_is_nobodys(house: House) -> None:
    one, other, _ = house.all
    nobody = str(uuid.uuid4())

    def calls(turn: str, fact: str, node: str, slug: str) -> dict[str, Any]:
        memory = one.memory
        return {
            "get a turn": lambda: memory.get([turn]),
            "get a fact": lambda: memory.get([fact]),
            "get a node": lambda: memory.get([node]),
            "get beside own": lambda: memory.get([one.turn, turn]),
            "forget a turn": lambda: memory.forget([turn]),
            "forget a fact": lambda: memory.forget([fact], dry_run=False),
            "forget a node": lambda: memory.forget([one.turn, node], dry_run=False),
            "forget an anchor": lambda: memory.forget([slug], dry_run=False),
            "timeline about a node": lambda: memory.timeline(about=node),
            "recall from a node": lambda: memory.recall("Ana", profile="nodes", center=node),
            "recall from a fact": lambda: memory.recall("Ana", profile="nodes", center=fact),
            "walk around a node": lambda: memory.graph.around(node, max_hops=8),
            "walk from own to a node": lambda: memory.graph.between(one.node, node, max_hops=8),
            "read an anchor": lambda: memory.anchor_read(slug),
            "delete an anchor": lambda: memory.anchor_delete(slug),
        }

    before = await everything(other)
    around = await one.memory.graph.around(one.node, max_hops=8)
    assert house.seen(one, around) == []
    assert house.seen(one, await one.memory.graph.between(one.node, around.nodes[-1].uuid, max_hops=8)) == []
    theirs = calls(other.turn, other.fact, other.node, other.slug)
    nobodys = calls(nobody, str(uuid.uuid4()), str(uuid.uuid4()), "kitchen-kanarienobody")
    for name, call in theirs.items():
        told_of_theirs = await outcome(call())
        assert told_of_theirs == await outcome(nobodys[name]()), name
        assert house.seen(one, told_of_theirs) == [], name
        assert str(told_of_theirs).startswith(("NotFound", "InvalidRequest")), name
    assert await everything(other) == before


async def test_a_fact_of_another_cannot_be_ended_or_joined(house: House) -> None:
    one, other, _ = house.all
    before = await everything(other)
    await one.memory.remember(
        "Ana moved.",
        facts=[FactDraft("Ana", "MOVED_TO", "Porto", text="Ana moved to Porto.", invalidates=(other.fact,))],
    )
    await one.memory.remember(
        "A look-alike.", nodes=[NodeDraft("Other Ana", aliases=(other.node,), attributes={"uuid_of": other.node})]
    )
    assert await everything(other) == before
    assert house.seen(one, await one.memory.timeline(limit=1000)) == []


async def test_what_one_does_to_all_of_itself_leaves_the_others_as_they_were(house: House) -> None:
    one, *others = house.all
    for work in (one.memory.reindex, one.memory.anchor_resync, one.memory.clear):
        before = [await everything(other) for other in others]
        await work()
        assert [await everything(other) for other in others] == before
    assert (await one.memory.stats()).nodes == 0


async def test_forgetting_in_one_does_not_forget_in_another(house: House) -> None:
    one, other, _ = house.all
    before = await everything(other)
    await one.memory.forget([one.turn, "kitchen"], dry_run=False)
    await one.memory.anchor_delete(one.slug)
    assert await everything(other) == before
    assert (await other.memory.anchor_read("kitchen"))[0].slug == "kitchen"


async def test_anchors_of_the_same_name_are_each_ones_own(house: House, tmp_path: Path) -> None:
    for one in house.all:
        assert {anchor.slug for anchor in await one.memory.anchor_list()} == {"kitchen", one.slug}
        for found in (
            await one.memory.anchor_read("kitchen"),
            await one.memory.anchor_search("coffee tea kitchen", limit=50),
            await one.memory.anchor_list(),
        ):
            assert house.seen(one, found) == []
    one, other, _ = house.all
    before = await everything(other)
    (tmp_path / "note.md").write_text("# Note\n\nBread.")
    await one.memory.anchor_import(tmp_path)
    assert await everything(other) == before


async def test_many_at_once_stay_apart(house: House) -> None:
    async def talk(one: One, number: int) -> object:
        await one.memory.remember(f"Ana drinks coffee, again. {one.mark} {number}", source_ref=f"again{number}")
        return await one.memory.recall(f"coffee {number}", limit=20)

    work = [(one, talk(one, number)) for number in range(8) for one in house.all]
    for (one, _), found in zip(work, await asyncio.gather(*(job for _, job in work)), strict=True):
        assert house.seen(one, found) == []
    await asyncio.gather(*(one.memory.settled() for one in house.all))
    for one in house.all:
        stats = await one.memory.stats()
        assert stats.turns == len(SAME) + 1 + 8
        assert house.seen(one, [stats, await one.memory.health()]) == []


async def test_the_records_of_another_are_nobodys(house: House) -> None:
    one, other, _ = house.all
    nobody = str(uuid.uuid4())
    theirs = await other.memory.records.add_event(f"The vault is {other.mark}.", title="Vault", source_ref="v1")
    await other.memory.records.update(theirs.node_id, content=f"The vault was {other.mark}.")
    waiting = await other.memory.records.add_event("See [[Larder]].", title="Waits")
    house.watch.own(other.memory.entity.name, theirs.node_id, theirs.turn_id, waiting.node_id)
    before = await everything(other), await other.memory.records.history(theirs.node_id)
    records = one.memory.records
    for id in (theirs.node_id, theirs.turn_id, other.turn, other.node, other.fact):
        for call in (
            lambda id: records.update(id, content="Mine."),
            lambda id: records.append(id, "Mine."),
            lambda id: records.history(id),
        ):
            assert await outcome(call(id)) == await outcome(call(nobody))
    mine = await records.add_events(
        [
            ("See [[Vault]].", {"title": "Larder", "parent_node_id": theirs.node_id, "source_ref": "v1"}),
            ("See [[Waits]].", {"title": "Cellar", "parent_node_id": "Vault"}),
        ]
    )
    assert [(one.state, one.edges_created) for one in mine] == [("done", 0), ("done", 0)]
    ends = [(theirs.node_id, "Larder"), ("Vault", "Larder"), ("Larder", waiting.node_id), (nobody, "Larder")]
    related = await records.relate([RelationDraft(source, target, "extends") for source, target in ends])
    assert (related.edges_created, len(related.skipped)) == (0, 4)
    assert house.seen(one, [mine, related, await records.history(mine[0].node_id)], theirs.node_id) == []
    assert (await everything(other), await other.memory.records.history(theirs.node_id)) == before
    facts = await other.memory._parts.client.facts_of_nodes([waiting.node_id], 10)
    assert facts == [], "a title that appeared elsewhere is not the one that is waited for"


async def test_the_merges_of_another_are_nobodys(house: House) -> None:
    one, other, _ = house.all
    coffee = {
        memory: (await memory._parts.journal.resolve(["coffee"]))["coffee"] for memory in (one.memory, other.memory)
    }
    ana = (await one.memory._parts.journal.resolve(["ana"]))["ana"]
    theirs = await other.memory.records.merging.merge(other.node, coffee[other.memory], dry_run=False)
    before, merging = await everything(other), one.memory.records.merging
    nobody = str(uuid.uuid4())
    for dry_run in (True, False):
        for keep, drop in (
            (ana, other.node),
            (other.node, coffee[one.memory]),
            (theirs.drop, theirs.keep),
            (ana, theirs.drop),
        ):
            told = await outcome(merging.merge(keep, drop, dry_run=dry_run))
            assert told == await outcome(merging.merge(ana, nobody, dry_run=dry_run))
    assert await outcome(merging.undo(theirs.id)) == await outcome(merging.undo(nobody))
    assert await merging.merges() == []
    assert house.seen(one, await merging.duplicates()) == []
    mine = await merging.merge(ana, coffee[one.memory], dry_run=False)
    await merging.undo(mine.id)
    assert house.seen(one, mine) == []
    assert await everything(other) == before


async def test_what_models_took_is_each_ones_own(house: House) -> None:
    one, other, _ = house.all
    spent = Spent(datetime.now(UTC).date(), other.mark, 1, 2, 0, 30, 40)
    await other.memory.costs.journal.spending.add([spent])
    assert (await one.memory.costs.report(3_660)).days == ()
    assert (await one.memory.costs.estimate(10, 10)).basis.startswith("the size of the prompts")
    assert [day.model for day in (await other.memory.costs.report()).days] == [other.mark]


async def test_the_jobs_of_another_are_nobodys(house: House) -> None:
    one, other, _ = house.all
    before = await everything(other), await other.memory.jobs.list("done")
    for wanted in (other.turn, "00000000-0000-4000-8000-000000000000", "999999"):
        with pytest.raises(NotFound, match=r"^job not found$"):
            await one.memory.jobs.status(wanted)
    for act in (one.memory.jobs.retry, one.memory.jobs.drop):
        with pytest.raises(NotFound):
            await act([999_999])
    mine = await one.memory.jobs.list("done")
    assert house.seen(one, [mine, [await one.memory.jobs.status(job.id) for job in mine]]) == []
    assert await one.memory.jobs.retry([job.id for job in mine]) == [job.id for job in mine]
    assert await one.memory.settled()
    assert await one.memory.jobs.drop() == []
    ledger = await one.memory.ledger()
    assert (ledger.problems, house.seen(one, ledger)) == ((), [])
    assert (await everything(other), await other.memory.jobs.list("done")) == before


async def test_many_texts_at_once_go_to_their_own_memory(house: House) -> None:
    one, other, _ = house.all
    before = await everything(other)
    await one.memory.remember_many([(f"Line {n}. {one.mark}", {"source_ref": f"line{n}"}) for n in range(5)])
    assert await one.memory.settled()
    assert await everything(other) == before
    assert house.seen(one, await one.memory.recall("Line", limit=50)) == []


ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "ambient_recall": [{"context": "{mark}"}, {"context": "", "mode": "startup"}],
    "recall": [
        {"query": "{mark}"},
        {"query": "Ana coffee", "center": "{node}", "profile": "nodes"},
        {"query": "Ana", "channels": "auto"},
    ],
    "remember": [
        {
            "content": "A look.",
            "facts": [{"subject": "Ana", "relation": "IS", "object": "x", "invalidates": ["{fact}"]}],
        },
    ],
    "timeline": [{"about": "{node}"}, {"about": "Ana"}, {"cursor": ":{fact}"}],
    "get": [{"ids": ["{turn}"]}, {"ids": ["{fact}", "{node}"]}],
    "forget": [{"ids": ["{turn}"]}, {"ids": ["{fact}"], "dry_run": False}, {"ids": ["{slug}"], "dry_run": False}],
    "anchor_save": [{"title": "Kitchen", "text": "Mine.", "slug": "mine"}],
    "anchor_search": [{"query": "{mark}"}, {"query": "coffee"}],
    "anchor_list": [{}],
    "anchor_delete": [{"slug": "{slug}"}],
    "anchor_resync": [{}],
    "stats": [{}],
    "health": [{}],
    "add_event": [
        {"content": "Mine, see [[{node}]] and [[Kitchen]].", "parent_node_id": "{node}", "source_ref": "secret"},
        {"content": "Mine too.", "title": "Coffee", "parent_node_id": "Ana"},
    ],
    "update": [{"id": "{turn}", "content": "Mine."}, {"id": "{node}", "title": "Mine"}, {"id": "{fact}", "tags": []}],
    "append": [{"id": "{turn}", "content": "Mine."}, {"id": "{node}", "content": "Mine."}],
    "history": [{"id": "{turn}", "with_content": True}, {"id": "{node}"}],
    "costs": [{}, {"days": 3660}],
    "find_duplicates": [{}],
    "merge_nodes": [
        {"keep": "{node}", "drop": "{fact}", "dry_run": False},
        {"keep": "{turn}", "drop": "{node}"},
    ],
    "undo_merge": [{"id": "{node}"}],
    "job_status": [{"id": "{turn}"}, {"id": "1"}, {"id": "999999"}],
    "ingestion_stats": [{}],
}


def filled(value: Any, other: One) -> Any:
    if isinstance(value, dict):
        return {key: filled(item, other) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, other) for item in value]
    if isinstance(value, str):
        return value.format(mark=other.mark, turn=other.turn, fact=other.fact, node=other.node, slug=other.slug)
    return value


async def test_every_verb_of_every_surface_is_attacked_here() -> None:
    assert set(ARGUMENTS) == set(verbs_for("entity"))


async def test_a_verb_with_everything_of_another_shows_and_changes_nothing_of_it(house: House) -> None:
    one, other, _ = house.all
    before = await everything(other)
    for verb, attacks in ARGUMENTS.items():
        for arguments in attacks:
            given = filled(arguments, other)
            for owner in (one.memory.entity, one.memory.entity.name):
                answer = await outcome(house.calls.answer(owner, verb, given))
                asked = "query" in arguments or "context" in arguments
                said = str(answer).replace(other.mark, "") if asked else answer
                assert house.seen(one, said, other.turn, other.fact, other.node) == [], (verb, arguments)
        assert await everything(other) == before, verb


async def test_no_verb_takes_an_entity_or_a_group() -> None:
    for verb in verbs_for("entity").values():
        fields = set(verb.input.model_fields)
        assert not fields & {"entity", "group", "group_id", "group_ids", "name", "vault", "project"}, verb.name


async def test_an_unknown_entity_is_nobody(house: House) -> None:
    for name in ("nobody", "ana_", "ana2", "ana_22"):
        with pytest.raises(UnknownEntity):
            await house.calls.answer(name, "stats", {})
    stranger = EntityId("ana", house.all[1].memory.entity.group)
    with pytest.raises(PPSError):
        await house.calls.answer(stranger, "stats", {})


async def test_a_token_is_one_entitys_and_dies_with_it(app: App) -> None:
    tokens = {name: (await app.create(name)).token for name in ("ana", "ana_2")}
    for name, token in tokens.items():
        assert token is not None
        found = app.registry.entity_of_token(token)
        assert found is not None
        assert found.name == name
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


async def test_the_data_of_another_behind_an_own_name_does_not_open(app: App) -> None:
    if app.settings.store != "embedded":
        return  # on a server there is no file of an entity's graph; its journal and indexes are the same
    first, second = await app.create("ana"), await app.create("ben")
    await app.close_all()
    (second.folder / "data" / "graph.lbug").write_bytes((first.folder / "data" / "graph.lbug").read_bytes())
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
                    await memory.remember(text, wait="journal", source_ref=f"left{number}", facts=facts)
    async with App.open(settings) as app:
        assert {entity.name for entity in app.registry.pending()} <= set(NAMES)
        assert set(await app.closed_pending()) == set(app.registry.pending_since())
        assert await app.resume_pending() == {}
        assert await app.closed_pending() == {}
        await app.close_all()
        assert app.registry.pending() == []
        for name in NAMES:
            async with app.memory(name) as memory:
                assert not await memory.pending()
                page = await memory.timeline(limit=1000)
                assert sum("Left over" in fact.text for fact in page.facts) == 5
                assert watch.leaks(name, page) == []
                app.registry.set_pending(name, True)
        assert {entity.name for entity in app.registry.pending()} == set(NAMES)


async def test_archiving_and_deleting_one_leaves_the_others_and_nothing_of_it(app: App) -> None:
    watch, calls = Watch(), Calls(app)
    entities: dict[str, EntityId] = {}
    for name in NAMES:
        entities[name] = (await app.create(name)).entity
        async with app.memory(name) as memory:
            one = await told(memory, watch)
    before = await calls.answer("coffee", "timeline", {"limit": 1000})
    await app.archive("ana")
    with pytest.raises(PPSError):
        await calls.answer("ana", "stats", {})
    await app.delete("ana_2")
    assert not {"ana", "ana_2"} & set(app.open_names())
    with pytest.raises(UnknownEntity):
        await calls.answer("ana_2", "stats", {})
    assert await calls.answer("coffee", "timeline", {"limit": 1000}) == before
    again = await app.create("ana_2")
    assert again.entity.group != entities["ana_2"].group
    answer = await calls.answer("ana_2", "recall", {"query": "Ana coffee kitchen"})
    assert watch.leaks("nobody", answer) == []
    await app.archive("ana", undo=True)
    found = await calls.answer("ana", "recall", {"query": "Ana coffee kitchen"})
    assert watch.leaks("ana", found) == []
    assert one.memory.entity == entities["coffee"]


async def test_a_name_that_was_given_to_a_new_entity_elsewhere_does_not_reach_the_old_one(app: App) -> None:
    """The registry's entry is kept while nothing is written to it: another process writes, and it is read again."""
    first = (await app.create("ana")).entity
    await asyncio.sleep(0.1)
    async with app.memory("ana") as memory:
        await memory.remember("The canary is in the cellar.")
    async with app.memory("ana") as memory:
        assert memory.entity == first
    elsewhere = Registry(app.registry.entities_folder.parent)
    elsewhere.delete("ana")
    elsewhere.create("ana", store=app.settings.store)
    with pytest.raises(IsolationError, match="vectors of another"):  # the old one's are open still
        async with app.memory("ana"):
            pass
    with pytest.raises(InvalidRequest, match="made anew"):
        async with app.memory(first):
            pass
    elsewhere.archive("ana")
    with pytest.raises(UnknownEntity):
        async with app.memory("ana"):
            pass
