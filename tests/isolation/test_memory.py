"""S2-11 above the graph, on both stores: ids, changes, records and jobs of another memory."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pps.core.errors import InvalidRequest, NotFound
from pps.core.time import now
from pps.core.values import Fact, FactDraft, NodeDraft, RelationDraft
from pps.journal.usage import Spent
from pps.operations.calls import Caller
from tests.isolation.house import House, One, everything, outcome

pytestmark = pytest.mark.timeout(300)


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
            "get by the beginning of an id": lambda: memory.get([one.turn[:8], turn[:8]]),
            "get by all but its end": lambda: memory.get([fact[:-1]]),
            "forget by the beginning of an id": lambda: memory.forget([node[:8]], dry_run=False),
            "forget a turn": lambda: memory.forget([turn]),
            "forget a fact": lambda: memory.forget([fact], dry_run=False),
            "forget a node": lambda: memory.forget([one.turn, node], dry_run=False),
            "forget an anchor": lambda: memory.forget([slug], dry_run=False),
            "timeline about a node": lambda: memory.timeline(id=node),
            "recall from a node": lambda: memory.recall("Ana", profile="nodes", center=node),
            "recall from a fact": lambda: memory.recall("Ana", profile="nodes", center=fact),
            "walk around a node": lambda: memory.graph.around(node, max_hops=8),
            "walk further around a node": lambda: memory.graph.around(node, offset=1),
            "what was said near a turn": lambda: memory.graph.said(near=turn),
            "what was said near the beginning of an id": lambda: memory.graph.said(near=turn[:8]),
            "what was said near a node": lambda: memory.graph.said(near=node),
            "what was said about a node": lambda: memory.graph.said(about=node),
            "what was said about the beginning of an id": lambda: memory.graph.said(about=node[:8]),
            "walk from own to a node": lambda: memory.graph.between(one.node, node, max_hops=8),
            "recall from the beginning of an id": lambda: memory.recall(
                "Ana", profile="nodes", center=node[:8]
            ),
            "changes about": lambda: memory.graph.changes(
                datetime(1900, 1, 1, tzinfo=UTC), now(), id=node
            ),
            "walk around the beginning of an id": lambda: memory.graph.around(node[:8], max_hops=8),
            "timeline about the beginning of an id": lambda: memory.timeline(id=node[:8]),
            "merge by the beginning of an id": lambda: memory.records.merging.merge(
                one.node, node[:8], dry_run=False
            ),
            "append by the beginning of an id": lambda: memory.records.append(turn[:8], "More."),
            "history by the beginning of an id": lambda: memory.records.history(turn[:8]),
            "read an anchor": lambda: memory.anchor_read(slug),
            "delete an anchor": lambda: memory.anchor_delete(slug),
        }

    before = await everything(other)
    around = await one.memory.graph.around(one.node, max_hops=8)
    assert house.seen(one, around) == []
    assert (
        house.seen(
            one, await one.memory.graph.changes(datetime(1900, 1, 1, tzinfo=UTC), now(), limit=1000)
        )
        == []
    )
    assert (
        house.seen(one, await one.memory.graph.between(one.node, around.nodes[-1].uuid, max_hops=8))
        == []
    )
    theirs = calls(other.turn, other.fact, other.node, other.slug)
    nobodys = calls(nobody, str(uuid.uuid4()), str(uuid.uuid4()), "kitchen-kanarienobody")
    for name, call in theirs.items():
        told_of_theirs = await outcome(call())
        assert told_of_theirs == await outcome(nobodys[name]()), name
        assert house.seen(one, told_of_theirs) == [], name
        assert str(told_of_theirs).startswith(("NotFound", "InvalidRequest")), name
    assert await everything(other) == before


async def test_a_name_of_another_is_nobodys_name(house: House) -> None:
    one, other, _ = house.all
    before = await everything(other)
    for name in (other.mark, other.mark.upper(), f" {other.mark} ", other.slug):
        absent = name.swapcase().replace("kanarie", "nobody").replace("KANARIE", "NOBODY")
        for call in (
            lambda wanted: one.memory.forget([wanted]),
            lambda wanted: one.memory.forget([wanted], dry_run=False),
            lambda wanted: one.memory.forget([one.fact, wanted], dry_run=False),
            lambda wanted: one.memory.forget([wanted], dry_run=False, soft=True),
            one.memory.graph.find,
        ):
            theirs, nobodys = await outcome(call(name)), await outcome(call(absent))
            assert theirs == nobodys, name
            assert str(theirs).startswith("NotFound"), name
    shared = await one.memory.forget(["Coffee"])
    assert shared.nodes[0] == await one.memory.graph.find("coffee")
    assert house.seen(one, shared) == []
    assert await everything(other) == before


async def test_nothing_goes_by_a_name_that_was_not_shown_first(house: House) -> None:
    one = house.all[0]
    before = await everything(one)
    for soft in (False, True):
        with pytest.raises(InvalidRequest, match="is a name: a dry run shows what goes"):
            await one.memory.forget([one.mark], dry_run=False, soft=soft)
    shown = await one.memory.forget([one.mark.upper()])
    assert (shown.by_name, shown.dry_run, len(shown.asked)) == (True, True, 1)
    assert any(one.mark in line for line in shown.shown)
    assert await everything(one) == before
    gone = await one.memory.forget(shown.asked, dry_run=False)
    assert set(gone.nodes) == set(shown.nodes)
    with pytest.raises(NotFound):
        await one.memory.forget([one.mark])


async def test_a_fact_of_another_cannot_be_ended_or_joined(house: House) -> None:
    one, other, _ = house.all
    before = await everything(other)
    await one.memory.remember(
        "Ana moved.",
        facts=[
            FactDraft(
                "Ana", "MOVED_TO", "Porto", text="Ana moved to Porto.", invalidates=(other.fact,)
            )
        ],
    )
    await one.memory.remember(
        "A look-alike.",
        nodes=[NodeDraft("Other Ana", aliases=(other.node,), attributes={"uuid_of": other.node})],
    )
    assert await everything(other) == before
    assert house.seen(one, await one.memory.timeline(limit=1000)) == []


async def test_what_is_said_again_closed_or_dated_stays_with_whoever_says_it(house: House) -> None:
    one, other, _ = house.all
    early = datetime(2001, 1, 1, tzinfo=UTC)
    before = await everything(other)
    fact = (await other.memory.get([other.fact]))[0]
    assert isinstance(fact, Fact)
    names = {node.uuid: node.name for node in await other.memory.parts.client.scan_nodes("", 100)}
    same = FactDraft(names[fact.subject], fact.relation, names[fact.object], text="So it is.")
    pair = f"{same.subject} {same.relation}"
    closing = replace(
        same, object="Porto", text="", invalidates=(pair, f"{pair} {same.object}", "so it is")
    )
    receipts = [
        await one.memory.remember("Early.", facts=[said], occurred_at=early)
        for said in (same, closing)
    ]
    receipts += [
        await one.memory.remember("I live in Porto. Ana lives in Porto.", occurred_at=early)
    ]
    missing = replace(same, object="Faro", invalidates=("nothing at all",))
    receipts += [await one.memory.remember("Later.", facts=[missing])]
    assert "nearest" in str(receipts[-1].skipped)
    assert house.seen(one, receipts) == []
    assert await everything(other) == before


async def test_what_one_does_to_all_of_itself_leaves_the_others_as_they_were(house: House) -> None:
    one, *others = house.all
    for work in (one.memory.reindex, one.memory.anchor_resync):
        before = [await everything(other) for other in others]
        await work()
        assert [await everything(other) for other in others] == before


async def test_forgetting_in_one_does_not_forget_in_another(house: House) -> None:
    one, other, _ = house.all
    before = await everything(other)
    await one.memory.forget([one.turn, "kitchen"], dry_run=False)
    await one.memory.anchor_delete(one.slug)
    assert await everything(other) == before
    assert (await other.memory.anchor_read("kitchen")).slug == "kitchen"


@pytest.mark.beside_the_graph
async def test_anchors_of_the_same_name_are_each_ones_own(house: House, tmp_path: Path) -> None:
    for one in house.all:
        assert {anchor.slug for anchor in await one.memory.anchor_list()} == {
            "kitchen",
            one.slug,
            one.edited,
        }
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
        await one.memory.remember(
            f"Ana drinks coffee, again. {one.mark} {number}", source_ref=f"again{number}"
        )
        return await one.memory.recall(f"coffee {number}", limit=20)

    before = {one.mark: (await one.memory.stats()).turns for one in house.all}
    work = [(one, talk(one, number)) for number in range(8) for one in house.all]
    for (one, _), found in zip(work, await asyncio.gather(*(job for _, job in work)), strict=True):
        assert house.seen(one, found) == []
    await asyncio.gather(*(one.memory.settled() for one in house.all))
    for one in house.all:
        stats = await one.memory.stats()
        assert stats.turns == before[one.mark] + 8
        assert house.seen(one, [stats, await one.memory.health()]) == []


async def test_the_overview_of_one_has_nothing_of_another(house: House) -> None:
    for one in house.all:
        await one.memory.remember(
            f"The vault of {one.mark} opens at noon.",
            session=f"vault {one.mark}",
            nodes=[NodeDraft(f"Vault {one.mark}", "Place", aliases=("the vault",))],
            facts=[FactDraft("Ana", "OPENS", f"Vault {one.mark}", text=f"Ana opens {one.mark}.")],
        )
        assert await one.memory.settled()
        await one.memory.ambient_recall("Who opens the vault?", session=f"vault {one.mark}")
        folder = one.memory.parts.journal.path.parents[1]
        (folder / "identity.md").write_text(f"I keep {one.mark}.", encoding="utf-8")
    for one in house.all:
        overview = await one.memory.overview()
        assert house.seen(one, overview) == []
        text = repr(overview)
        for shown in (
            f"Vault {one.mark}",
            f"Ana opens {one.mark}.",
            f"I keep {one.mark}.",
            f"vault {one.mark}",
        ):
            assert shown in text, shown
    one, other, _ = house.all
    folder = one.memory.parts.journal.path.parents[1]
    theirs = other.memory.parts.journal.path.parents[1] / "identity.md"
    for link in (
        folder.joinpath("identity.md").symlink_to,
        folder.joinpath("identity.md").hardlink_to,
    ):
        (folder / "identity.md").unlink()
        link(theirs)
        assert (await one.memory.overview()).identity == ""


async def test_the_records_of_another_are_nobodys(house: House) -> None:
    one, other, _ = house.all
    nobody = str(uuid.uuid4())
    theirs = await other.memory.records.add_event(
        f"The vault is {other.mark}.", title="Vault", source_ref="v1"
    )
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
            (
                "See [[Vault]].",
                {"title": "Larder", "parent_node_id": theirs.node_id, "source_ref": "v1"},
            ),
            ("See [[Waits]].", {"title": "Cellar", "parent_node_id": "Vault"}),
        ]
    )
    assert [(one.state, one.edges_created) for one in mine] == [("done", 0), ("done", 0)]
    ends = [
        (theirs.node_id, "Larder"),
        ("Vault", "Larder"),
        ("Larder", waiting.node_id),
        (nobody, "Larder"),
    ]
    related = await records.relate(
        [RelationDraft(source, target, "extends") for source, target in ends]
    )
    assert (related.edges_created, len(related.skipped)) == (0, 4)
    assert (
        house.seen(one, [mine, related, await records.history(mine[0].node_id)], theirs.node_id)
        == []
    )
    for profile in ("default", "blended", "semantic"):
        told = await one.memory.recall("What was the vault?", profile=profile, min_similarity=-1.0)
        assert house.seen(one, [told], theirs.node_id) == [], (
            "what a record says is its own entity's"
        )
    assert (await everything(other), await other.memory.records.history(theirs.node_id)) == before
    facts = await other.memory.parts.client.facts_of_nodes([waiting.node_id], 10)
    assert facts == [], "a title that appeared elsewhere is not the one that is waited for"


async def test_of_what_is_anothers_no_reason_is_told_but_that_it_is_not_there(house: House) -> None:
    one, other, _ = house.all
    for query in ("coffee", other.mark):
        nobody = await one.memory.why(query, str(uuid.uuid4()))
        for id in (other.turn, other.node, other.fact, other.slug):
            why = await one.memory.why(query, id)
            assert why.expected == nobody.expected, "as of an id that is nobody's"
            assert why == nobody
            assert house.seen(one, str(why).replace(other.mark, ""), id) == []


async def test_the_merges_of_another_are_nobodys(house: House) -> None:
    one, other, _ = house.all
    coffee = {
        memory: (await memory.parts.journal.resolve(["coffee"]))["coffee"]
        for memory in (one.memory, other.memory)
    }
    ana = (await one.memory.parts.journal.resolve(["ana"]))["ana"]
    theirs = await other.memory.records.merging.merge(
        other.node, coffee[other.memory], dry_run=False
    )
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


@pytest.mark.beside_the_graph
async def test_what_models_took_is_each_ones_own(house: House) -> None:
    one, other, _ = house.all
    spent = Spent(datetime.now(UTC).date(), other.mark, 1, 2, 0, 30, 40)
    await other.memory.costs.journal.spending.add([spent])
    assert (await one.memory.costs.report(3_660)).days == ()
    assert (await one.memory.costs.estimate(10, 10)).basis.startswith("the size of the prompts")
    assert [day.model for day in (await other.memory.costs.report()).days] == [other.mark]


@pytest.mark.beside_the_graph
async def test_how_facts_are_spread_is_told_of_ones_own(house: House) -> None:
    one, other, _ = house.all
    before = await one.memory.graph.histogram()
    day = datetime(1999, 5, 1, tzinfo=UTC)
    fact = FactDraft(other.mark, "HAS", "cloves", text=f"{other.mark} has cloves.", valid_at=day)
    await other.memory.remember(f"{other.mark} has cloves.", facts=[fact], occurred_at=day)
    assert await other.memory.settled()
    assert await one.memory.graph.histogram() == before
    assert house.seen(one, before) == []


@pytest.mark.beside_the_graph
async def test_what_was_given_to_sessions_of_one_is_its_own(house: House) -> None:
    """The same session id in two memories is two sessions: what the one was shown is new to the other."""
    one, other, _ = house.all
    for each in (other, one):
        pack = await each.memory.ambient_recall(f"What about {each.mark}?", session="the same")
        assert each.mark in pack.text
        assert house.seen(each, pack) == []
        assert await each.memory.settled()
    await other.memory.ambient_recall("And again?", session=other.mark)
    report = await one.memory.sessions.injected(30)
    assert [(given.session, given.prompts) for given in report.latest] == [("the same", 1)]
    assert house.seen(one, report) == []
    packs = (await one.memory.sessions.injected(30, "the same")).packs
    assert [len(pack.lines) > 0 for pack in packs] == [True]
    assert house.seen(one, packs) == []
    assert (await one.memory.sessions.injected(30, other.mark)).packs == ()


@pytest.mark.beside_the_graph
async def test_who_another_is_is_in_no_pack_of_ones_own(house: House) -> None:
    one, other, _ = house.all
    mine, theirs = (
        each.memory.parts.journal.path.parents[1] / "identity.md" for each in (one, other)
    )
    theirs.write_text(f"I am {other.mark}.")
    assert other.mark in (await other.memory.ambient_recall("", mode="startup")).text
    for lead in (mine.symlink_to, mine.hardlink_to):
        mine.unlink(missing_ok=True)
        lead(theirs)
        assert house.seen(one, await one.memory.ambient_recall("", mode="startup")) == []


@pytest.mark.beside_the_graph
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


@pytest.mark.beside_the_graph
async def test_the_list_of_names_has_ones_own_alone(house: House) -> None:
    """Both have nodes of the same kinds; a page that begins after the other's node is refused like after none."""
    one, other, _ = house.all
    before = await everything(other)
    for given in ({}, {"kind": "Person"}, {"kind": "person", "limit": 1}, {"query": "a"}):
        page = await one.memory.graph.nodes(**given)
        assert house.seen(one, page) == []
    whole = await one.memory.graph.nodes(limit=1_000)
    assert sum(whole.kinds.values()) == len(whole.nodes)
    assert (await one.memory.graph.nodes(query=other.mark)).nodes == ()
    refusals: list[str] = []
    for cursor in (other.node, other.record, "00000000-0000-4000-8000-000000000000"):
        with pytest.raises(InvalidRequest) as refusal:
            await one.memory.graph.nodes(cursor=cursor)
        refusals.append(str(refusal.value))
    assert len(set(refusals)) == 1
    assert await everything(other) == before


@pytest.mark.beside_the_graph
async def test_what_was_said_in_one_and_its_jobs_are_listed_in_no_other(house: House) -> None:
    """Both have a session `morning` and jobs of the same numbers; what a page shows of them is its own alone."""
    one, other, _ = house.all
    before = await everything(other), await other.memory.jobs.list("done")
    ask = partial(house.calls.answer, Caller.of_entity(one.memory.entity))
    for given in ({}, {"session": "morning"}, {"limit": 1}):
        page = await one.memory.graph.said(**given)
        assert page.turns
        assert house.seen(one, page) == []
        assert house.seen(one, await ask("turns_list", given)) == []
        assert (
            house.seen(
                one, await ask("jobs_list", {"state": "done", **({"limit": 1} if given else {})})
            )
            == []
        )
    assert [one.turn for one in (await other.memory.graph.said(query=other.mark)).turns]
    assert (await one.memory.graph.said(query=other.mark)).turns == ()
    near = await one.memory.graph.said(near=one.turn, limit=200)
    assert one.turn in [said.turn.uuid for said in near.turns]
    assert house.seen(one, near) == []
    theirs = await other.memory.graph.said(limit=1)
    assert house.seen(one, await one.memory.graph.said(cursor=theirs.next_cursor)) == []
    mine = [job.id for job in await one.memory.jobs.list("done")]
    more = [job.id for job in await other.memory.jobs.list("done") if job.id not in mine] or [
        999_999
    ]
    with pytest.raises(NotFound):
        await ask("jobs_retry", {"ids": more})
    assert [
        *(await ask("jobs_retry", {"ids": mine})).data["retried"]
    ] == mine  # the numbers that both have
    assert await one.memory.settled()
    with pytest.raises(InvalidRequest, match="entity"):
        await ask("jobs_list", {"entity": other.memory.entity.name})
    assert (await everything(other), await other.memory.jobs.list("done")) == before


async def test_many_texts_at_once_go_to_their_own_memory(house: House) -> None:
    one, other, _ = house.all
    before = await everything(other)
    await one.memory.remember_many(
        [(f"Line {n}. {one.mark}", {"source_ref": f"line{n}"}) for n in range(5)]
    )
    assert await one.memory.settled()
    assert await everything(other) == before
    assert house.seen(one, await one.memory.recall("Line", limit=50)) == []
