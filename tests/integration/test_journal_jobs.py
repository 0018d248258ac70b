"""Jobs, the change log, what was shown, settings and secrets, in a real file and after reopening it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest

from pps.core.errors import InvalidRequest, NotFound
from pps.core.time import now
from pps.core.values import JSON, FactDraft, NodeDraft, Skipped
from pps.journal import Change, JobPayload, JobResult, TurnDraft, usage
from pps.journal.bin_rows import drop_given
from pps.journal.entries import Charge, Stage
from pps.journal.job_queue import end
from pps.journal.journal import Journal
from tests.journal_place import JournalPlace

MOMENT = datetime(2026, 3, 7, 8, 30, tzinfo=UTC)


@pytest.fixture
async def journal(place: JournalPlace) -> AsyncIterator[Journal]:
    async with await place.open() as opened:
        yield opened


async def append(journal: Journal, count: int) -> list[int]:
    return [(await journal.append(TurnDraft(f"turn {n}"))).job_id for n in range(count)]


def later(seconds: float) -> datetime:
    return now() + timedelta(seconds=seconds)


async def taken(journal: Journal, limit: int = 10, stage: Stage = "save") -> list[int]:
    return [job.id for job in await journal.queue.take(stage, limit, now())]


async def test_jobs_come_in_the_order_of_their_turns(journal: Journal) -> None:
    assert await taken(journal) == []
    numbers = await append(journal, 3)
    done: list[int] = []
    while jobs := await journal.queue.take("save", 1, now()):
        (job,) = jobs
        assert (job.state, job.turn.content) == ("running", f"turn {len(done)}")
        assert await journal.queue.finish([(job.id, JobResult(nodes=1))]) == 1
        done.append(job.id)
    assert done == numbers
    assert await journal.unfinished() == 0


async def test_the_jobs_that_come_next_are_told_and_stay_as_they_are(journal: Journal) -> None:
    numbers = await append(journal, 5)
    (first,) = await taken(journal, 1)
    coming = await journal.queue.after("save", first, 3, 100)
    assert [job.id for job in coming] == numbers[1:4]
    assert {(job.state, job.attempts) for job in coming} == {("queued", 0)}
    await journal.queue.finish([(numbers[1], JobResult())])
    assert [job.id for job in await journal.queue.after("save", first, 10, 100)] == numbers[2:]
    assert await journal.queue.after("read", first, 10, 100) == []
    assert await journal.queue.after("save", numbers[-1], 10, 100) == []


async def test_the_job_that_makes_the_facts_full_is_the_last_that_is_told(journal: Journal) -> None:
    facts = tuple(FactDraft("a", "R", f"b{number}") for number in range(4))
    numbers = [
        (await journal.append(TurnDraft(str(number)), JobPayload((), facts))).job_id
        for number in range(4)
    ]
    told = [
        len(await journal.queue.after("save", numbers[0], 10, most)) for most in (1, 4, 5, 8, 100)
    ]
    assert told == [1, 1, 2, 2, 3]


async def test_a_job_carries_what_was_given_and_keeps_its_result(journal: Journal) -> None:
    payload = JobPayload(
        (NodeDraft("Priya", attributes={"age": 34}),), (FactDraft("a", "R", "b"),), "rules"
    )
    number = (await journal.append(TurnDraft("x"), payload)).job_id
    (job,) = await journal.queue.take("save", 1, now())
    assert job.payload == payload
    result = JobResult(2, 3, 4, ("a",), (Skipped("fact 1", "no object"),))
    await journal.queue.finish([(number, result)])
    ended = await journal.queue.job(number)
    assert ended is not None
    assert (ended.state, ended.result) == ("done", result)
    assert await journal.queue.job(99) is None


async def test_what_was_given_comes_back_however_deep_or_long_ago(journal: Journal) -> None:
    deep: JSON = []
    for _ in range(62):
        deep = [deep]
    long_ago = datetime(
        1880, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")
    )  # 53 minutes and 28 seconds east
    given = JobPayload(
        nodes=(NodeDraft("a", attributes={"x": deep}),),
        facts=(FactDraft("a", "IS", "b", valid_at=long_ago),),
    )
    await journal.append(TurnDraft("x", source_ref="x"), given)
    (job,) = await journal.queue.take("save", 1, now())
    assert job.payload == given
    assert job.payload.facts[0].valid_at == long_ago


async def test_while_a_failed_job_waits_no_later_one_is_taken(journal: Journal) -> None:
    first, second = await append(journal, 2)
    assert await taken(journal, 1) == [first]
    moment = later(60)
    assert await journal.queue.fail(first, "store_unavailable", "away", moment)
    assert await taken(journal) == []
    assert await journal.queue.due_at("save") == moment
    again = await journal.queue.take("save", 10, moment)
    assert [job.id for job in again] == [first, second]
    assert (again[0].attempts, again[0].failures, again[0].code, again[0].error) == (
        2,
        1,
        "store_unavailable",
        "away",
    )
    assert again[0].first_failed_at is not None


async def test_a_waiting_job_waits_on_after_a_restart(
    place: JournalPlace, journal: Journal
) -> None:
    (first,) = await append(journal, 1)
    moment = later(60)
    await taken(journal)
    await journal.queue.fail(first, "store_unavailable", "away", moment)
    await journal.close()
    async with await place.open() as reopened:
        assert await taken(reopened) == []
        assert await reopened.queue.due_at("save") == moment


async def test_a_parked_job_blocks_nobody_and_is_listed_retried_and_dropped(
    journal: Journal,
) -> None:
    first, second, third = await append(journal, 3)
    await taken(journal, 1)
    await journal.queue.fail(first, "model", "refused", None)
    assert await taken(journal, 1) == [second]
    assert [job.id for job in await journal.queue.list("failed")] == [first]
    assert [job.id for job in await journal.queue.list()] == [first, second, third]
    assert await journal.unfinished() == 2
    with pytest.raises(NotFound):
        await journal.queue.retry([first, second])
    assert await journal.queue.retry([first]) == [first]
    assert await taken(journal, 1) == [first]
    await journal.queue.fail(first, "model", "refused", None)
    with pytest.raises(NotFound):
        await journal.queue.drop([second])
    assert await journal.queue.drop() == [first]
    state = await journal.queue.state(MOMENT)
    assert state.counts == {"queued": 1, "running": 1, "done": 0, "failed": 0, "dropped": 1}
    assert await journal.queue.retry() == []
    assert await journal.queue.retry([first]) == [first]


async def test_every_attempt_is_kept_with_its_error_and_its_cost(journal: Journal) -> None:
    (number,) = await append(journal, 1)
    await taken(journal)
    await journal.queue.charge(number, Charge(100, 20, 5))
    await journal.queue.charge(number, Charge(1, 2, 3))
    await journal.queue.fail(number, "model_unavailable", "busy", now())
    await taken(journal)
    await journal.queue.charge(number, Charge(10, 0, 0))
    await journal.queue.finish([(number, JobResult())])
    first, second = await journal.queue.attempts(number)
    assert (first.outcome, first.code, first.error) == ("again", "model_unavailable", "busy")
    assert (first.tokens_in, first.tokens_out, first.cost_usd) == (101, 22, 0.000008)
    assert (second.outcome, second.tokens_in, second.tokens_out, second.cost_usd) == (
        "done",
        10,
        0,
        0,
    )
    assert first.began_at <= first.ended_at <= second.began_at
    state = await journal.queue.state(MOMENT)
    assert (state.attempts, state.failed, state.charge) == (2, 1, Charge(111, 22, 8))
    assert (state.tried, state.failing) == (1, 0)
    assert (state.oldest_at, state.moved_at) == (None, second.ended_at)
    assert (await journal.queue.state(later(60))).attempts == 0


async def test_a_saved_job_goes_on_to_be_read_and_later_ones_are_saved_meanwhile(
    journal: Journal,
) -> None:
    first, second = await append(journal, 2)
    assert await taken(journal, 1) == [first]
    await journal.write(partial(end, saved=[(first, JobResult(nodes=2))], done=[]))
    assert await taken(journal, stage="read") == [first]
    await journal.queue.fail(first, "model_unavailable", "away", later(60))
    assert await taken(journal, stage="read") == []
    assert await taken(journal) == [second]
    job = await journal.queue.job(first)
    assert job is not None
    assert (job.stage, job.result) == ("read", JobResult(nodes=2))


async def test_what_is_put_off_on_purpose_and_what_waits_behind_it_does_not_count_as_waiting(
    journal: Journal,
) -> None:
    first, second, third = await append(journal, 3)
    assert await taken(journal) == [first, second, third]
    saved = [(first, JobResult()), (second, JobResult())]
    await journal.write(partial(end, saved=saved, done=[(third, JobResult())]))
    assert await taken(journal, 1, "read") == [first]
    await journal.queue.fail(first, "model_unavailable", "busy", now())
    assert (await journal.queue.state(MOMENT)).oldest_at is not None
    assert await taken(journal, 1, "read") == [first]
    await journal.queue.put_back([first], later(60))
    state = await journal.queue.state(MOMENT)
    assert (state.counts["queued"], state.oldest_at) == (2, None)
    job = await journal.queue.job(first)
    assert job is not None
    assert (job.failures, job.first_failed_at) == (0, None)

    fourth = (await journal.append(TurnDraft("turn 4"))).job_id
    one_more = await journal.queue.job(fourth)
    assert one_more is not None
    assert (await journal.queue.state(MOMENT)).oldest_at == one_more.queued_at


async def test_a_job_that_a_crash_left_running_comes_first_again(
    place: JournalPlace, journal: Journal
) -> None:
    first, _ = await append(journal, 2)
    await taken(journal, 1)
    await journal.close()
    async with await place.open() as reopened:
        (job,) = await reopened.queue.take("save", 1, now())
        assert (job.id, job.attempts) == (first, 2)


async def test_a_batch_that_crashes_cut_short_is_halved_each_time_and_whole_again_once_it_moved(
    journal: Journal,
) -> None:
    numbers = await append(journal, 64)
    sizes = [len(await taken(journal, 32)) for _ in range(7)]
    assert sizes == [32, 16, 8, 4, 2, 2, 2]
    await journal.queue.finish([(number, JobResult()) for number in numbers[:32]])
    assert await taken(journal, 32) == numbers[32:]


async def test_a_batch_leaves_out_those_that_ended_between_and_what_is_put_back_comes_again(
    journal: Journal,
) -> None:
    numbers = await append(journal, 4)
    await journal.queue.fail(numbers[1], "model", "broken", None)
    await journal.queue.finish([(numbers[2], JobResult())])
    assert await taken(journal) == [numbers[0], numbers[3]]
    await journal.queue.put_back([numbers[0], numbers[3]])
    assert await taken(journal, 1) == [numbers[0]]


async def test_a_job_whose_turn_was_forgotten_ends_without_an_error(journal: Journal) -> None:
    (number,) = await append(journal, 1)
    (job,) = await journal.queue.take("save", 1, now())
    await journal.forget_turns([job.turn.uuid])
    assert await journal.queue.finish([(number, JobResult())]) == 0
    assert not await journal.queue.fail(number, "x", "x", None)
    assert await journal.unfinished() == 0
    assert await journal.queue.attempts(number) == []


async def test_a_payload_is_overwritten_only_when_its_job_has_ended(
    place: JournalPlace, journal: Journal
) -> None:
    payload = JobPayload(nodes=(NodeDraft("QUAGGAHEIM"),))
    appended = await journal.append(TurnDraft("x"), payload)
    dropped = partial(drop_given, turn=appended.turn.uuid)
    with pytest.raises(InvalidRequest, match="not ended"):
        await journal.bin.write(dropped)
    await journal.queue.finish([(appended.job_id, JobResult())])
    assert await journal.bin.write(dropped)
    assert not await journal.bin.write(
        partial(drop_given, turn="00000000-0000-5000-8000-000000000000")
    )
    job = await journal.queue.job(appended.job_id)
    assert job is not None
    assert job.payload == JobPayload(extraction="none")
    assert not await place.holds("QUAGGAHEIM")


async def test_the_log_holds_a_thing_once_and_a_later_change_survives_dropping_the_earlier(
    journal: Journal,
) -> None:
    fact, node = Change("fact", "f1"), Change("node", "n1")
    await journal.log_changes([fact, node, fact])
    entries = await journal.log_entries(0, 10)
    assert [entry.change for entry in entries] == [node, fact]
    await journal.log_changes([node])
    await journal.drop_entries(entries[-1].position)
    (later,) = await journal.log_entries(0, 10)
    assert (later.change, later.position > entries[-1].position) == (node, True)
    assert await journal.count_entries(entries[-1].position) == 1
    assert await journal.count_entries(later.position) == 0
    span = await journal.log_span()
    assert (span.dropped, span.last) == (entries[-1].position, later.position)
    await journal.drop_entries(1)  # never backwards
    assert (await journal.log_span()).dropped == entries[-1].position


async def shown(journal: Journal, session: str, ids: list[str], at: datetime) -> None:
    await journal.write(lambda db: usage.record_shown(db, session, ids, at))


async def test_what_a_session_was_shown_is_counted_since_a_moment(journal: Journal) -> None:
    await shown(journal, "s", ["a", "b"], MOMENT)
    await shown(journal, "s", ["a"], MOMENT + timedelta(minutes=5))
    await shown(journal, "other", ["a"], MOMENT)
    assert await journal.given.times_shown("s", MOMENT) == {"a": 2, "b": 1}
    assert await journal.given.times_shown("s", MOMENT + timedelta(minutes=1)) == {"a": 1}
    assert await journal.given.times_shown("nobody", MOMENT) == {}


async def test_what_was_shown_long_ago_is_forgotten(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shown(journal, "s", ["old"], MOMENT)
    later = MOMENT + timedelta(days=usage.KEPT_D, seconds=1)
    await shown(journal, "s", ["new"], later)
    assert await journal.given.times_shown("s", MOMENT) == {"new": 1}
    monkeypatch.setattr(usage, "KEPT_ROWS", 10)
    await shown(journal, "s", [f"id {n}" for n in range(50)], later)
    assert sorted(await journal.given.times_shown("s", MOMENT)) == sorted(
        f"id {n}" for n in range(40, 50)
    )


async def test_a_secret_is_made_once_and_lasts(place: JournalPlace, journal: Journal) -> None:
    first, again = await asyncio.gather(journal.secret("fence"), journal.secret("fence"))
    assert first == again == await journal.secret("fence")
    assert len(first) == 32
    assert await journal.secret("other") != first
    await journal.close()
    async with await place.open() as reopened:
        assert await reopened.secret("fence") == first


async def test_settings_last_and_the_owner_cannot_be_changed(
    place: JournalPlace, journal: Journal
) -> None:
    assert await journal.get_meta("fingerprint") is None
    await journal.set_meta("fingerprint", "{}")
    await journal.set_meta("fingerprint", '{"model":"m"}')
    with pytest.raises(InvalidRequest):
        await journal.set_meta("group", "ent_other")
    await journal.close()
    async with await place.open() as reopened:
        assert await reopened.get_meta("fingerprint") == '{"model":"m"}'
