"""S2-11 above the graph, on both stores: what is recalled of one memory shows nothing of another."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from pps.config import shipped
from pps.context.fence import without_packs
from pps.core.values import Closing, FactDraft, Turn
from pps.journal.closing_rows import note
from pps.journal.filters import ItemFilter
from pps.records.saving import RecordGiven
from tests.isolation.house import WHEN, House, everything
from tests.sampling import sample
from tests.secrets import SECRETS

pytestmark = pytest.mark.timeout(300)


async def test_no_way_to_recall_shows_anything_of_another(house: House) -> None:
    profiles = sorted(
        path.name.removesuffix(".toml") for path in shipped("config/profiles").iterdir()
    )
    assert len(profiles) > 5
    store = (await house.all[0].memory.stats()).store
    for one in house.all:
        for other in house.all:
            queries = (
                other.mark,
                f"The word is {other.mark}.",
                "Ana coffee kitchen Lisbon tea",
                other.memory.entity.group,
            )
            names = f"{one.memory.entity.name} {other.memory.entity.name} {store}"
            for profile in sample(
                profiles, len(profiles) // 2, names
            ):  # of nine pairs, so each is among them
                for query in queries:
                    recalled = await one.memory.recall(query, profile=profile, limit=50)
                    assert [
                        channel.error for channel in recalled.channels.values() if channel.error
                    ] == []
                    assert house.seen(one, replace(recalled, query="")) == [], profile
            for mode in ("turn", "startup"):
                pack = await one.memory.ambient_recall(
                    "" if mode == "startup" else other.mark, mode=mode
                )  # type: ignore[arg-type]
                recall = replace(pack.recall, query="") if pack.recall else None
                body = pack.text.replace(other.mark, "") if other is one else pack.text
                assert house.seen(one, replace(pack, text=body, recall=recall)) == []


async def test_a_time_or_a_session_that_only_another_has_shows_nothing_of_it(house: House) -> None:
    """A question about a time alone goes by the memory's own turns: others' sessions are not even counted."""
    one, other, _ = house.all
    first = (await one.memory.parts.journal.session_order())[0]
    at = datetime(2019, 6, 3, 9, tzinfo=UTC)
    for number in range(3):
        await other.memory.remember(
            f"{other.mark} said number {number}",
            session=f"{other.mark} {number}",
            occurred_at=at + timedelta(days=number),
        )
    assert await other.memory.settled()
    questions = (
        "What did we talk about in June 2019?",
        "What did we discuss in our second session?",
        "What did we discuss in our last session?",
        "What did we talk about 3 sessions ago?",
    )
    for question in questions:
        recalled = await one.memory.recall(question, limit=50)
        assert house.seen(one, replace(recalled, query="")) == []
        pack = await one.memory.ambient_recall(question, session="new")
        assert house.seen(one, replace(pack, recall=None)) == []
    assert (await one.memory.parts.journal.session_order())[0] == first
    [turn, *_] = [
        hit.item for hit in (await other.memory.recall(questions[0])).channels["episodes"].hits
    ]
    assert isinstance(turn, Turn)
    assert other.mark in turn.content


@pytest.mark.beside_the_graph
async def test_a_pack_of_another_is_what_was_said_and_ones_own_is_dropped(house: House) -> None:
    packs = {one.mark: (await one.memory.ambient_recall("Ana")).text for one in house.all}
    for one in house.all:
        journal = one.memory.parts.journal
        for mark, text in packs.items():
            kept = await without_packs(f"Look: {text}", journal)
            assert kept == ("Look: " if mark == one.mark else f"Look: {text}")
    secrets = {await one.memory.parts.journal.secret("fence") for one in house.all}
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
    own = dict(
        zip((one.mark for one in house.all), ("draft", "archived", "deprecated"), strict=False)
    )
    for one in house.all:
        joined = FactDraft("Quiet garden", "SERVES", "Ana", f"The garden of {one.mark} serves Ana.")
        await one.memory.records.save(
            [
                RecordGiven(
                    "Goal", "Quiet garden", f"By {one.mark}.", status=own[one.mark], ref="garden"
                )
            ]
        )
        await one.memory.remember(f"A goal of {one.mark}.", source_ref="goal", facts=[joined])
    for one in house.all:
        for wanted in (
            ItemFilter(layers=("vision",)),
            *(ItemFilter(statuses=(status,)) for status in own.values()),
        ):
            recalled = await one.memory.recall(
                "Quiet garden", filters=wanted, include_relationships=True
            )
            assert house.seen(one, recalled) == []
            names = [hit.text for hit in recalled["nodes"] if hit.relationships]
            is_theirs = wanted.statuses not in ((), (own[one.mark],))
            assert (f"Quiet garden: By {one.mark}." in names) != is_theirs


@pytest.mark.beside_the_graph
async def test_one_secret_has_another_marker_for_each_and_that_of_another_leads_nowhere(
    house: House,
) -> None:
    token, _ = SECRETS["GitHub Token"]
    kept: dict[str, str] = {}
    for one in house.all:
        receipt = await one.memory.remember(
            "The gate is shut.", session=f"chat {token}", source_ref=token
        )
        (turn,) = await one.memory.get([receipt.turn_id])
        assert isinstance(turn, Turn)
        assert turn.session == f"chat {turn.source_ref}"
        kept[one.mark] = turn.session
    assert len({session.partition("GitHub Token ")[2] for session in kept.values()}) == len(
        house.all
    )
    for one, other in itertools.permutations(house.all, 2):
        recalled = await one.memory.recall("gate", filters=ItemFilter(sessions=(kept[other.mark],)))
        assert [hit for channel in recalled.channels.values() for hit in channel.hits] == []
        assert kept[other.mark] not in repr(await everything(one))


async def test_what_took_the_place_of_a_statement_is_never_another_entitys(house: House) -> None:
    """The others say later that it is otherwise, in marked words; an entity's own statement stands all the same."""
    one, *others = house.all
    receipt = await one.memory.remember(
        "We'll use Postgres for the ledger.", session="ledger", occurred_at=WHEN
    )
    for number, other in enumerate(others):
        at = WHEN + timedelta(days=30)
        text = f"For the ledger database let's go with {other.mark} instead."
        ledger = FactDraft("ledger", "USES", other.mark, text, valid_at=at)
        await other.memory.remember(
            text, facts=[ledger], session=f"ledger {number}", occurred_at=at
        )
    for each in house.all:
        assert await each.memory.settled()

    recalled = await one.memory.recall("Which database does the ledger use?")
    [hit] = [hit for hit in recalled["episodes"] if hit.id == receipt.turn_id]
    assert hit.superseded_by is None
    pack = await one.memory.ambient_recall("Which database does the ledger use?")
    start = await one.memory.sessions.pack("", "beginning", mode="startup")
    said = await one.memory.graph.said()
    page = await one.memory.timeline()
    why = await one.memory.why("Which database does the ledger use?", receipt.turn_id)
    for shown in (recalled, pack, start, said, page, why):
        assert house.seen(one, shown) == []


async def test_a_closing_that_names_what_is_another_entitys_gives_no_successor(
    house: House,
) -> None:
    """A row of one journal that points at the fact and the turn of another (``Memory.superseding``)."""
    one, other, _ = house.all
    at = WHEN + timedelta(days=1)
    ended = FactDraft("Ana", "LIKES", "plums", "Ana likes plums.", valid_at=WHEN, invalid_at=at)
    receipt = await one.memory.remember("Ana likes plums.", occurred_at=WHEN, facts=[ended])
    assert await one.memory.settled()
    [fact] = [fact for fact in (await one.memory.timeline()).facts if "plums" in fact.text]
    closing = Closing(fact.uuid, other.fact, other.turn, "explicit", at, at)
    await one.memory.parts.journal.write(partial(note, endings={}, closings=[closing]))
    page = await one.memory.timeline()
    said = await one.memory.graph.said()

    assert fact.uuid not in page.successors
    assert receipt.turn_id not in said.successors
    assert house.seen(one, page) == []
    assert house.seen(one, said) == []
