"""Jobs, the outbox, what was shown, settings and marks, in a real file and after reopening it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import new_group
from pps.core.values import FactDraft, NodeDraft, Skipped
from pps.journal import Change, JobPayload, JobResult, Journal, TurnDraft
from pps.journal import shown as shown_rows

MOMENT = datetime(2026, 3, 7, 8, 30, tzinfo=UTC)
GROUP = new_group()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
async def journal(path: Path) -> AsyncIterator[Journal]:
    async with await Journal.open(path, GROUP) as opened:
        yield opened


async def append(journal: Journal, count: int) -> list[int]:
    return [(await journal.append(TurnDraft(f"turn {n}"))).job_id for n in range(count)]


async def test_jobs_come_in_the_order_of_their_turns(journal: Journal) -> None:
    assert await journal.next_job() is None
    numbers = await append(journal, 3)
    done: list[int] = []
    while (job := await journal.next_job()) is not None:
        assert job.state == "running"
        assert job.turn.content == f"turn {len(done)}"
        assert await journal.finish_job(job.id, JobResult(nodes=1))
        done.append(job.id)
    assert done == numbers
    assert await journal.unfinished() == 0


async def test_a_job_carries_what_was_given(journal: Journal) -> None:
    payload = JobPayload((NodeDraft("Priya", attributes={"age": 34}),), (FactDraft("a", "R", "b"),), "rules")
    await journal.append(TurnDraft("x"), payload)
    job = await journal.next_job()
    assert job is not None
    assert job.payload == payload


async def test_a_job_keeps_its_result(journal: Journal) -> None:
    (number,) = await append(journal, 1)
    result = JobResult(2, 3, 4, ("a",), (Skipped("fact 1", "no object"),))
    await journal.finish_job(number, result)
    job = await journal.job(number)
    assert job is not None
    assert (job.state, job.result) == ("done", result)
    assert await journal.job(99) is None


async def test_a_failed_job_is_queued_again_and_a_parked_one_blocks_nobody(journal: Journal) -> None:
    first, second = await append(journal, 2)
    await journal.next_job()
    assert await journal.fail_job(first, "the model is busy", retryable=True)
    again = await journal.next_job()
    assert again is not None
    assert (again.id, again.attempts, again.error) == (first, 2, "the model is busy")
    await journal.fail_job(first, "the model refused", retryable=False)
    following = await journal.next_job()
    assert following is not None
    assert following.id == second
    assert await journal.job_counts() == {"queued": 0, "running": 1, "done": 0, "failed": 1}
    assert [job.id for job in await journal.jobs("failed")] == [first]
    assert await journal.unfinished() == 1
    await journal.retry_job(first)
    assert await journal.unfinished() == 2
    with pytest.raises(NotFound):
        await journal.retry_job(first)


async def test_a_job_that_a_crash_left_running_comes_first_again(path: Path, journal: Journal) -> None:
    first, _ = await append(journal, 2)
    await journal.next_job()
    await journal.close()
    async with await Journal.open(path, GROUP) as reopened:
        job = await reopened.next_job()
        assert job is not None
        assert (job.id, job.attempts) == (first, 2)


async def test_jobs_are_taken_and_finished_in_batches(journal: Journal) -> None:
    numbers = await append(journal, 5)
    batch = await journal.next_jobs(3)
    assert [job.id for job in batch] == numbers[:3]
    await journal.finish_jobs([(job.id, JobResult()) for job in batch])
    assert [job.id for job in await journal.next_jobs(10)] == numbers[3:]


async def test_a_batch_of_jobs_leaves_out_those_that_are_parked_between(journal: Journal) -> None:
    numbers = await append(journal, 4)
    await journal.fail_job(numbers[1], "broken", retryable=False)
    await journal.finish_job(numbers[2], JobResult())
    assert [job.id for job in await journal.next_jobs(10)] == [numbers[0], numbers[3]]


async def test_a_job_whose_turn_was_forgotten_ends_without_an_error(journal: Journal) -> None:
    (number,) = await append(journal, 1)
    job = await journal.next_job()
    assert job is not None
    await journal.forget_turns([job.turn.uuid])
    assert not await journal.finish_job(number, JobResult())
    assert not await journal.fail_job(number, "x", retryable=True)
    assert await journal.unfinished() == 0


async def test_a_payload_is_overwritten_only_when_its_job_has_ended(path: Path, journal: Journal) -> None:
    payload = JobPayload(nodes=(NodeDraft("QUAGGAHEIM"),))
    appended = await journal.append(TurnDraft("x"), payload)
    with pytest.raises(InvalidRequest, match="not ended"):
        await journal.drop_payload(appended.turn.uuid)
    await journal.finish_job(appended.job_id, JobResult())
    assert await journal.drop_payload(appended.turn.uuid)
    assert not await journal.drop_payload("00000000-0000-5000-8000-000000000000")
    job = await journal.job(appended.job_id)
    assert job is not None
    assert job.payload == JobPayload(extraction="none")
    held = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"QUAGGAHEIM" not in held


async def test_the_outbox_holds_an_id_once_and_a_later_change_survives_an_earlier_clearing(
    journal: Journal,
) -> None:
    one, other = Change("fact", "f1"), Change("node", "n1")
    await journal.mark_dirty([one, other, one])
    taken = await journal.dirty(10)
    assert [dirty.change for dirty in taken] == [other, one]
    await journal.mark_dirty([other])
    await journal.clear_dirty([dirty.seq for dirty in taken])
    assert [dirty.change for dirty in await journal.dirty(10)] == [other]
    assert await journal.dirty_count() == 1


async def test_what_a_session_was_shown_is_counted_since_a_moment(journal: Journal) -> None:
    await journal.record_shown("s", ["a", "b"], MOMENT)
    await journal.record_shown("s", ["a"], MOMENT + timedelta(minutes=5))
    await journal.record_shown("other", ["a"], MOMENT)
    assert await journal.shown("s", MOMENT) == {"a": 2, "b": 1}
    assert await journal.shown("s", MOMENT + timedelta(minutes=1)) == {"a": 1}
    assert await journal.shown("nobody", MOMENT) == {}


async def test_what_was_shown_long_ago_is_forgotten(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    await journal.record_shown("s", ["old"], MOMENT)
    later = MOMENT + timedelta(days=shown_rows.KEPT_D, seconds=1)
    await journal.record_shown("s", ["new"], later)
    assert await journal.shown("s", MOMENT) == {"new": 1}
    monkeypatch.setattr(shown_rows, "KEPT_ROWS", 10)
    await journal.record_shown("s", [f"id {n}" for n in range(50)], later)
    assert sorted(await journal.shown("s", MOMENT)) == sorted(f"id {n}" for n in range(40, 50))


async def test_marks_are_known_and_the_oldest_forgotten(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_rows, "KEPT_MARKS", 3)
    for number in range(5):
        await journal.add_mark(f"mark-{number}")
    await journal.add_mark("mark-4")
    assert [await journal.known_mark(f"mark-{number}") for number in range(6)] == [
        False,
        False,
        True,
        True,
        True,
        False,
    ]
    with pytest.raises(InvalidRequest):
        await journal.add_mark("")


async def test_settings_last_and_the_owner_cannot_be_changed(path: Path, journal: Journal) -> None:
    assert await journal.get_meta("fingerprint") is None
    await journal.set_meta("fingerprint", "{}")
    await journal.set_meta("fingerprint", '{"model":"m"}')
    with pytest.raises(InvalidRequest):
        await journal.set_meta("group", "ent_other")
    await journal.close()
    async with await Journal.open(path, GROUP) as reopened:
        assert await reopened.get_meta("fingerprint") == '{"model":"m"}'
