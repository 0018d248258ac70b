from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pps.core.errors import NotFound, Overloaded
from pps.entities import tasks as module
from pps.entities.tasks import TaskDraft, Tasks

AT = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


@pytest.fixture
def tasks(tmp_path: Path) -> Tasks:
    (tmp_path / "data").mkdir()
    return Tasks(tmp_path)


def test_a_task_is_queued_claimed_and_done(tasks: Tasks) -> None:
    made = tasks.add(TaskDraft("Read the log.", "Log"), at=AT)
    assert (made.state, made.attempts, made.lease) == ("queued", 0, "")
    claimed = tasks.claim("r1", 60, at=after(1))
    assert claimed is not None
    assert (claimed.id, claimed.state, claimed.runner, claimed.attempts) == (
        made.id,
        "claimed",
        "r1",
        1,
    )
    assert claimed.lease_until == after(61)
    assert tasks.claim("r2", 60, at=after(2)) is None
    assert tasks.extend(made.id, claimed.lease, 60, "half", at=after(30)).lease_until == after(90)
    done = tasks.complete(made.id, claimed.lease, "All quiet.", at=after(80))
    assert (done.state, done.result, done.note, done.lease_until) == (
        "done",
        "All quiet.",
        "half",
        None,
    )
    assert tasks.claim("r2", 60, at=after(1000)) is None


def test_a_lease_that_runs_out_gives_the_task_back_and_is_lost(tasks: Tasks) -> None:
    made = tasks.add(TaskDraft("x"), at=AT)
    first = tasks.claim("r1", 10, at=AT)
    assert first is not None
    assert tasks.get([made.id], at=after(9))[0].state == "claimed"
    assert tasks.get([made.id], at=after(10))[0].state == "queued"
    with pytest.raises(NotFound, match="lease"):
        tasks.complete(made.id, first.lease, "too late", at=after(10))
    second = tasks.claim("r2", 10, at=after(11))
    assert second is not None
    assert (second.id, second.attempts) == (made.id, 2)
    for ended in (
        lambda: tasks.complete(made.id, first.lease, "x", at=after(12)),
        lambda: tasks.extend(made.id, first.lease, 60, at=after(12)),
        lambda: tasks.fail(made.id, first.lease, "x", again=True, at=after(12)),
    ):
        with pytest.raises(NotFound, match="lease"):
            ended()
    assert tasks.complete(made.id, second.lease, "mine", at=after(12)).result == "mine"


def test_a_task_that_no_runner_finishes_has_failed_and_says_so(tasks: Tasks) -> None:
    made = tasks.add(TaskDraft("x", max_attempts=2), at=AT)
    for number in range(2):
        assert tasks.claim("r", 10, at=after(number * 20)) is not None
    assert tasks.get([made.id], at=after(29))[0].state == "claimed"
    for _ in range(2):
        found = tasks.get([made.id], at=after(31))[0]
        assert (found.state, found.error) == ("failed", "no runner finished it in 2 leases")
        assert tasks.claim("r", 10, at=after(31)) is None


def test_a_failure_goes_back_to_the_queue_while_attempts_are_left(tasks: Tasks) -> None:
    made = tasks.add(TaskDraft("x", max_attempts=2), at=AT)
    for state in ("queued", "failed"):
        claimed = tasks.claim("r", 60, at=AT)
        assert claimed is not None
        assert tasks.fail(made.id, claimed.lease, "broken", again=True, at=AT).state == state
    assert tasks.get([made.id], at=AT)[0].error == "broken"
    other = tasks.add(TaskDraft("y"), at=AT)
    claimed = tasks.claim("r", 60, at=AT)
    assert claimed is not None
    assert tasks.fail(other.id, claimed.lease, "hopeless", again=False, at=AT).state == "failed"


def test_the_oldest_is_claimed_first_and_a_runner_may_take_one_kind_only(tasks: Tasks) -> None:
    first = tasks.add(TaskDraft("1", agent="coder"), at=AT)
    second = tasks.add(TaskDraft("2", agent="reader"), at=after(1))
    third = tasks.add(TaskDraft("3"), at=after(2))
    assert tasks.waits_since(at=after(3)) == AT
    assert tasks.waits_since("reader", at=after(3)) == after(1)
    taken = [
        tasks.claim("r", 60, agent, at=after(3)) for agent in ("reader", "reader", "reader", "")
    ]
    assert [one.id if one else None for one in taken] == [second.id, third.id, None, first.id]
    assert tasks.waits_since(at=after(3)) is None


def test_only_the_holder_sees_the_lease(tasks: Tasks) -> None:
    made = tasks.add(TaskDraft("x"))
    claimed = tasks.claim("r", 60)
    assert claimed is not None
    assert len(claimed.lease) == 32
    assert claimed.lease not in repr(claimed)
    assert [one.lease for one in (*tasks.list(), *tasks.get([made.id]))] == ["", ""]
    with pytest.raises(NotFound):
        tasks.complete(made.id, "", "guessed")


def test_an_entity_without_tasks_has_no_file(tmp_path: Path) -> None:
    tasks = Tasks(tmp_path)
    assert (tasks.list(), tasks.claim("r", 60), tasks.waits_since()) == ([], None, None)
    for unknown in (lambda: tasks.get(["x"]), lambda: tasks.complete("x", "y", "z")):
        with pytest.raises(NotFound):
            unknown()
    assert list(tmp_path.iterdir()) == []


def test_too_many_that_wait_are_refused(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN", 2)
    tasks.add(TaskDraft("1", max_attempts=1), at=AT)
    tasks.add(TaskDraft("2"), at=AT)
    with pytest.raises(Overloaded, match="wait already"):
        tasks.add(TaskDraft("3"), at=AT)
    assert tasks.claim("r", 10, at=AT) is not None
    assert tasks.add(TaskDraft("3"), at=after(11)).state == "queued", (
        "one of the two has failed by then"
    )


def test_eight_runners_at_once_share_forty_tasks_without_one_twice(tasks: Tasks) -> None:
    made = [tasks.add(TaskDraft(str(number))).id for number in range(40)]

    def run(name: str) -> list[str]:
        ended = []
        while (task := tasks.claim(name, 60)) is not None:
            ended.append(tasks.complete(task.id, task.lease, name).id)
        return ended

    with ThreadPoolExecutor(8) as pool:
        ended = [one for ids in pool.map(run, "abcdefgh") for one in ids]
    assert sorted(ended) == sorted(made)
    assert {one.attempts for one in tasks.list()} == {1}
