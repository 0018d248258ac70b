"""The timeline's benchmark: events read or made up, questions whose answers the events tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.events import DAY, Event, generated, read_events
from benchmarks.time_questions import Question, questions
from pps.core.errors import InvalidRequest

FIRST = datetime(2014, 1, 1, tzinfo=UTC)


def write(folder: Path, train: str = "0\t0\t1\t0\t-1\n1\t1\t0\t48\t-1\n0\t0\t1\t0\t-1\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "entity2id.txt").write_text("Ana (Peru)\t0\nBo\t1\n")
    (folder / "relation2id.txt").write_text("Make statement\t0\nHost a visit\t1\n")
    (folder / "train.txt").write_text(train)
    return folder


def test_events_are_read_once_each_with_their_day(tmp_path: Path) -> None:
    expected = [
        Event("Ana (Peru)", "MAKE_STATEMENT", "Bo", FIRST),
        Event("Bo", "HOST_A_VISIT", "Ana (Peru)", FIRST + 2 * DAY),
    ]

    assert read_events(write(tmp_path / "icews14")) == read_events(tmp_path) == expected


@pytest.mark.parametrize("train", ["0\t0\t9\t0\n", "0 0\n", "a b c d\n"])
def test_a_line_that_is_no_event_is_told_with_its_place(tmp_path: Path, train: str) -> None:
    with pytest.raises(InvalidRequest, match=r"train\.txt:1"):
        read_events(write(tmp_path / "data", train))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="entity2id"):
        read_events(tmp_path)


def test_made_up_events_and_questions_depend_on_the_seed_alone() -> None:
    events = generated(200, 7)

    assert len(set(events)) == 200
    assert generated(200, 7) == events != generated(200, 8)
    assert questions(events, 50, 3) == questions(events, 50, 3) != questions(events, 50, 4)


def test_an_event_holds_for_its_day() -> None:
    event = Event("Ana", "MEET", "Bo", FIRST)

    for moment, held in (
        (FIRST, True),
        (FIRST + DAY - timedelta.resolution, True),
        (FIRST + DAY, False),
    ):
        assert Question(as_of=moment).holds(event) is held
    assert Question(after=FIRST, before=FIRST + DAY, about="Bo", relation="MEET").holds(event)
    assert not Question(before=FIRST).holds(event)
    assert not Question(about="Cy").holds(event)
