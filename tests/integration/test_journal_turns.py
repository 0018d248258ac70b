"""Turns in a real file: order, duplicates, windows, forgetting, and many writers at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from pps.core.errors import InvalidRequest, NotFound
from pps.core.values import FactDraft, Node, NodeDraft
from pps.journal import Appended, Change, JobPayload, TurnDraft
from pps.journal.journal import Journal
from tests.graph_file import delete_items, save_nodes
from tests.journal_place import FilePlace, JournalPlace

MOMENT = datetime(2026, 3, 7, 8, 30, tzinfo=UTC)


@pytest.fixture
async def journal(place: JournalPlace) -> AsyncIterator[Journal]:
    async with await place.open() as opened:
        yield opened


def at(seconds: float, content: str = "yes", **fields: str) -> TurnDraft:
    return TurnDraft(content, occurred_at=MOMENT + timedelta(seconds=seconds), **fields)  # pyright: ignore[reportArgumentType]


async def test_a_turn_is_read_back_as_it_was_acknowledged(journal: Journal) -> None:
    draft = TurnDraft(
        "línea uno\r\nدو 三 🐱",
        role="assistant",
        actor="mira",
        session="s1",
        source="hook",
        source_ref="m-1",
        occurred_at=MOMENT,
        kind="note",
        tags=("Kitchen",),
    )
    appended = await journal.append(draft)
    assert not appended.duplicate
    turn = await journal.turn(appended.turn.uuid)
    assert turn == appended.turn
    assert turn.content == "línea uno\nدو 三 🐱"
    assert (turn.role, turn.actor, turn.session, turn.source) == ("assistant", "mira", "s1", "hook")
    assert (turn.source_ref, turn.kind, turn.tags, turn.occurred_at) == (
        "m-1",
        "note",
        ("kitchen",),
        MOMENT,
    )
    assert turn.seq == 1


async def test_a_refused_turn_changes_nothing(journal: Journal) -> None:
    with pytest.raises(InvalidRequest, match="content"):
        await journal.append(TurnDraft(""))
    with pytest.raises(InvalidRequest, match=r"entries\[1\].*role"):
        await journal.append_many(
            [(TurnDraft("a"), JobPayload()), (TurnDraft("b", role="x"), JobPayload())]
        )
    assert (
        await journal.count_turns(),
        await journal.unfinished(),
        await journal.count_entries(0),
    ) == (0, 0, 0)


@pytest.mark.parametrize(
    ("gap_s", "duplicate"), [(0, True), (30, True), (-30, True), (30.001, False), (-31, False)]
)
async def test_equal_words_within_30_s_of_event_time_are_one_turn(
    journal: Journal, gap_s: float, duplicate: bool
) -> None:
    first = await journal.append(at(0))
    second = await journal.append(at(gap_s, "  yes\n"))
    assert second.duplicate is duplicate
    assert (second.turn == first.turn, second.job_id == first.job_id) == (duplicate, duplicate)
    assert await journal.count_turns() == await journal.unfinished() == (1 if duplicate else 2)


async def test_event_time_decides_and_not_the_time_of_receipt(journal: Journal) -> None:
    appended = [await journal.append(at(60 * minute)) for minute in range(5)]
    assert not any(one.duplicate for one in appended)
    assert (await journal.append(at(60 * 2 + 10))).turn == appended[2].turn


@pytest.mark.parametrize(
    "other", [{"source": "hook"}, {"session": "s2"}, {"role": "assistant"}, {"content": "Yes"}]
)
async def test_another_source_session_role_or_text_is_another_turn(
    journal: Journal, other: dict[str, str]
) -> None:
    await journal.append(at(0))
    assert not (await journal.append(at(1, **other))).duplicate


async def test_yes_said_twice_with_ids_of_its_own_is_two_turns(journal: Journal) -> None:
    one = await journal.append(at(0, source_ref="m1"))
    two = await journal.append(at(1, source_ref="m2"))
    assert (one.duplicate, two.duplicate) == (False, False)
    assert one.turn.uuid != two.turn.uuid


async def test_the_same_source_ref_is_a_duplicate_whenever_it_comes(journal: Journal) -> None:
    first = await journal.append(at(0, source_ref="m1"))
    again = await journal.append(at(86_400, "other words", source_ref="m1"))
    assert again.duplicate
    assert again.turn == first.turn
    assert not (await journal.append(at(0, source_ref="m1", session="s2"))).duplicate


async def test_a_duplicate_keeps_the_first_payload(journal: Journal) -> None:
    payload = JobPayload(nodes=(NodeDraft("Priya"),))
    first = await journal.append(at(0), payload)
    again = await journal.append(at(1), JobPayload(facts=(FactDraft("a", "R", "b"),)))
    assert again.job_id == first.job_id
    job = await journal.queue.job(first.job_id)
    assert job is not None
    assert job.payload.nodes[0].name == "Priya"


async def test_a_batch_is_stored_in_order_with_its_duplicates_told(journal: Journal) -> None:
    drafts = [
        at(n, f"line {n % 90}") for n in range(100)
    ]  # the last ten repeat after 90 s, so they are new
    drafts += [at(n, f"line {n}") for n in range(10)]
    appended = await journal.append_many([(draft, JobPayload()) for draft in drafts])
    assert [one.duplicate for one in appended] == [False] * 100 + [True] * 10
    assert [turn.content for turn in await journal.scan(0, 1_000)] == [
        draft.content for draft in drafts[:100]
    ]
    assert await journal.append_many([]) == []


async def test_eight_writers_at_once_lose_and_double_nothing(journal: Journal) -> None:
    async def client(number: int) -> list[Appended]:
        drafts = [TurnDraft(f"{number}/{n}", session=f"s{number}") for n in range(40)]
        return [await journal.append(draft) for draft in drafts]

    appended = [one for many in await asyncio.gather(*map(client, range(8))) for one in many]
    assert len({one.turn.uuid for one in appended}) == await journal.count_turns() == 320
    assert sorted(one.turn.seq for one in appended) == list(range(1, 321))
    for number in range(8):
        said = [
            turn.content for turn in await journal.scan(0, 1_000) if turn.session == f"s{number}"
        ]
        assert said == [f"{number}/{n}" for n in range(40)]


async def test_the_same_turn_sent_by_many_at_once_is_stored_once(journal: Journal) -> None:
    appended = await asyncio.gather(*(journal.append(at(n / 10)) for n in range(50)))
    assert sum(not one.duplicate for one in appended) == 1
    assert len({one.turn.uuid for one in appended}) == await journal.count_turns() == 1


async def test_a_write_that_fails_does_not_take_its_neighbours_with_it(journal: Journal) -> None:
    async def attempt(number: int) -> Appended | None:
        if number % 3:
            return await journal.append(TurnDraft(f"turn {number}"))
        with pytest.raises(NotFound):
            await journal.queue.retry([10_000 + number])
        return None

    done = await asyncio.gather(*map(attempt, range(60)))
    assert await journal.count_turns() == sum(one is not None for one in done) == 40


async def test_a_waiter_that_gives_up_breaks_nothing(journal: Journal) -> None:
    tasks = [asyncio.create_task(journal.append(TurnDraft(f"turn {n}"))) for n in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(one, Appended) for one in done) == 10
    await journal.append(TurnDraft("after"))
    assert await journal.count_turns() >= 11


async def test_reads_give_what_was_asked_in_the_order_asked(journal: Journal) -> None:
    uuids = [(await journal.append(at(60 * n, f"line {n}"))).turn.uuid for n in range(6)]
    asked = [uuids[4], "00000000-0000-5000-8000-000000000000", uuids[1]]
    assert [turn.content for turn in await journal.turns(asked)] == ["line 4", "line 1"]
    assert await journal.turn(asked[1]) is None
    assert [turn.seq for turn in await journal.scan(3, 2)] == [4, 5]


async def test_recent_is_by_event_time_newest_first(journal: Journal) -> None:
    for seconds, session in ((300, "a"), (100, "b"), (200, "a")):
        await journal.append(at(seconds, f"line {seconds}", session=session))
    latest = [turn.content for turn in await journal.recent(2)]
    assert latest == ["line 300", "line 200"]
    assert [turn.content for turn in await journal.recent(9, session="b")] == ["line 100"]


async def test_a_window_stays_inside_its_session(journal: Journal) -> None:
    appended = [await journal.append(at(n, f"line {n}", session="ab"[n % 2])) for n in range(10)]
    ids = [one.turn.uuid for one in appended]
    absent = "00000000-0000-5000-8000-000000000000"
    found = await journal.around_many([ids[4], absent, ids[4]], 1)
    assert [turn.content for turn in found[ids[4]]] == ["line 2", "line 4", "line 6"]
    many = await journal.around_many([*ids, ids[0], absent], 2)
    assert list(many) == ids
    assert [turn.content for turn in many[ids[0]]] == ["line 0", "line 2", "line 4"]


async def test_the_character_nul_is_kept_in_a_file_and_refused_by_postgresql(
    place: JournalPlace, journal: Journal
) -> None:
    if isinstance(place, FilePlace):
        appended = await journal.append(TurnDraft("before\x00after"))
        assert (await journal.turns([appended.turn.uuid]))[0].content == "before\x00after"
        return
    with pytest.raises(InvalidRequest, match=r"U\+0000"):
        await journal.append(TurnDraft("before\x00after"))
    assert await journal.count_turns() == 0


async def test_an_acknowledged_turn_is_in_the_change_log(journal: Journal) -> None:
    uuid = (await journal.append(TurnDraft("x"))).turn.uuid
    assert [entry.change for entry in await journal.log_entries(0, 10)] == [Change("episode", uuid)]


async def test_forgotten_turns_leave_no_row_no_job_and_no_byte(
    place: JournalPlace, journal: Journal
) -> None:
    secret, name = "ZEBRACROSSING", "QUAGGAHEIM"
    payload = JobPayload(
        nodes=(NodeDraft(name),), facts=(FactDraft(name, "R", "b", text=f"{secret} fact"),)
    )
    uuids = [
        (
            await journal.append(
                TurnDraft(f"{secret} {n}" + " filler" * 900, tags=(secret,)), payload
            )
        ).turn.uuid
        for n in range(30)
    ]
    kept = (await journal.append(TurnDraft("KEPTWORD"))).turn.uuid
    await save_nodes(journal, [Node(uuids[0], name, MOMENT)])
    await delete_items(journal, "node", [uuids[0]])
    assert await journal.forget_turns([*uuids, "00000000-0000-5000-8000-000000000000"]) == 30
    assert await journal.forget_turns(uuids) == 0
    assert await journal.turns([*uuids, kept]) == [await journal.turn(kept)]
    assert await journal.unfinished() == 1
    assert {entry.change.id for entry in await journal.log_entries(0, 100)} == {*uuids, kept}
    assert await place.holds("KEPTWORD")
    for gone in (secret, secret.lower(), name, name.lower()):
        assert not await place.holds(gone)


async def test_a_forgotten_seq_is_never_given_again(journal: Journal) -> None:
    last = (await journal.append(TurnDraft("one"))).turn
    await journal.forget_turns([last.uuid])
    assert (await journal.append(TurnDraft("two"))).turn.seq == last.seq + 1


async def test_summaries_and_the_span_of_a_memory_are_found(journal: Journal) -> None:
    assert await journal.span() == (None, None)
    for seconds in (0, 60, 120):
        await journal.append(at(seconds, f"summary {seconds}", kind="summary"))
        await journal.append(at(seconds, f"turn {seconds}"))
    assert [turn.content for turn in await journal.of_kind("summary", 2)] == [
        "summary 120",
        "summary 60",
    ]
    assert await journal.span() == (MOMENT, MOMENT + timedelta(seconds=120))
