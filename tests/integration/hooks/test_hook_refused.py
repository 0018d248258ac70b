"""A memory that takes no more: the cursor of the transcript stays where it was, and all is kept once later."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pps.server import spool
from tests.integration.hooks.acting import Session
from tests.integration.hooks.conftest import turns_of
from tests.integration.interfaces.serving import Served, serving
from tests.model_server import ModelServer, model_server
from tests.waiting import wait_until

BOUND = 3


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with model_server(retry_after="0") as running:
        yield running


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[Served]:
    """A server whose queues are short, and stand still while the embedding server is away."""
    settings = {
        "PPS_EMBEDDER__NAME": "openai",
        "PPS_EMBEDDER__MODEL": "m",
        "PPS_EMBEDDER__BASE_URL": model.base_url,
        "PPS_EMBEDDER__DIMENSION": str(model.dimension),
        "PPS_JOBS__FIRST_WAIT_S": "0.05",
        "PPS_JOBS__LONGEST_WAIT_S": "1",
        "PPS_JOBS__BREAKER_FAILURES": "1",
        "PPS_JOBS__QUEUE_ENTITY": str(BOUND),
    }
    with serving(tmp_path_factory.mktemp("bounded") / "home", **settings) as served:
        yield served


@pytest.fixture
def session(bounded: Served, model: ModelServer, tmp_path: Path) -> Session:
    """A session of a new entity that knows something, whose transcript is taken in up to ``One.``."""
    model.mode = "good"
    name = f"shop_{len(list((bounded.home / 'entities').iterdir()))}"
    bounded.create(name)
    given = {"content": "The oven in the kitchen is broken.", "session": "before", "wait": "done"}
    bounded.link.call("remember", name, given)
    session = Session(bounded.home, tmp_path, options=("--entity", name))
    session.run("UserPromptSubmit", prompt="First?")
    session.says("One.")
    assert session.run("Stop", last_assistant_message="One.").is_silent()
    wait_until(lambda: said_in(session) == ["First?", "One."] and not unfinished(session))
    return session


def journal(session: Session) -> Path:
    return session.home / "entities" / session.options[1] / "data" / "memory.db"


def said_in(session: Session) -> list[str]:
    return [one["content"] for one in turns_of(session.home, session.id)]


def unfinished(session: Session) -> int:
    with closing(sqlite3.connect(journal(session))) as db:
        return int(db.execute("SELECT count(*) FROM jobs WHERE state <> 'done'").fetchone()[0])


def cursors(session: Session) -> list[str]:
    with closing(sqlite3.connect(journal(session))) as db:
        return [
            value for (value,) in db.execute("SELECT value FROM meta WHERE key LIKE 'transcript:%'")
        ]


def test_answers_that_a_full_queue_refused_stay_behind_the_cursor_and_come_once(
    session: Session, model: ModelServer
) -> None:
    model.mode = "closed"
    session.run("UserPromptSubmit", prompt="Second?", prompt_id="2")
    before = cursors(session)
    assert len(before) == 1
    for text in ("Two.", "Three.", "Four."):
        session.says(text)
    assert session.run("Stop", last_assistant_message="Four.").is_silent()
    assert said_in(session) == ["First?", "One.", "Second?"]
    assert cursors(session) == before
    assert len(spool.waiting(session.home)) == 1

    model.mode = "good"
    session.says("Five.")
    wait_until(lambda: not unfinished(session))
    assert session.run("Stop", last_assistant_message="Five.").is_silent()
    wait_until(lambda: not spool.waiting(session.home))
    assert said_in(session) == ["First?", "One.", "Second?", "Two.", "Three.", "Four.", "Five."]
    assert cursors(session) != before


def test_a_queue_that_fills_in_the_middle_of_answers_leaves_the_cursor_before_them(
    session: Session, model: ModelServer
) -> None:
    pack = session.run("SessionStart").context
    assert "oven" in pack
    model.mode = "closed"
    session.run("UserPromptSubmit", prompt="Second?", prompt_id="2")
    before = cursors(session)
    for text in (
        "Two.",
        pack,
        "Three.",
        "Four.",
    ):  # a pack alone is refused, so that each goes by itself
        session.says(text)
    assert session.run("Stop", last_assistant_message="Four.").is_silent()
    assert said_in(session) == ["First?", "One.", "Second?", "Two.", "Three."]
    assert cursors(session) == before
    assert len(spool.waiting(session.home)) == 1

    model.mode = "good"
    wait_until(lambda: not spool.waiting(session.home))
    assert session.run("Stop", last_assistant_message="Four.").is_silent()
    assert said_in(session) == ["First?", "One.", "Second?", "Two.", "Three.", "Four."]
    assert cursors(session) != before
