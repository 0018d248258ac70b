"""The disk fills while a transcript's answers are stored: the cursor stays before them, and each is kept once later."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.outage import embedding
from tests.acceptance.small_disk import fill, rows, served_on_a_small_disk
from tests.integration.hooks.acting import Session
from tests.model_server import model_server
from tests.waiting import wait_until

ANSWERS = [f"Answer {number}. {'on and on and ' * 1_000}".strip() for number in range(100)]
ROOM = 700_000
"""Bytes on the disk: for some of the answers, about 1.4 MB, but not for all."""


@dataclass(frozen=True)
class Journal:
    """What is in the journal of the entity ana, on the small disk of a server."""

    server: int
    home: Path

    def answers(self) -> list[str]:
        return self._column("SELECT content FROM turns WHERE role = 'assistant' ORDER BY seq")

    def cursors(self) -> list[str]:
        return self._column("SELECT value FROM meta WHERE key LIKE 'transcript:%'")

    def _column(self, query: str) -> list[str]:
        file = self.home / "entities" / "ana" / "data" / "memory.db"
        return [str(value) for (value,) in rows(self.server, file, query)]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.timeout(300)
def test_answers_that_a_full_disk_refused_stay_behind_the_cursor_and_come_once(
    tmp_path: Path, *, at_once: bool
) -> None:
    with (
        model_server(retry_after="0") as model,
        served_on_a_small_disk(tmp_path / "home", **embedding(model)) as (link, inside),
    ):
        link.call("entity_create", "", {"name": "ana"})
        link.call(
            "remember", "ana", {"content": "The oven in the kitchen is broken.", "wait": "done"}
        )
        session = Session(inside, tmp_path, options=("--entity", "ana"))
        pack = session.run("SessionStart").context
        assert "oven" in pack
        session.run("UserPromptSubmit", prompt="First?")
        journal = Journal(link.run.pid, tmp_path / "home")
        before = journal.cursors()
        assert len(before) == 1

        model.mode = "closed"
        for text in [
            *([] if at_once else [pack]),
            *ANSWERS,
        ]:  # a pack alone is refused, so that each goes by itself
            session.says(text)
        filler = fill(inside, leave=ROOM)
        assert session.run("Stop", last_assistant_message=ANSWERS[-1]).is_silent()
        kept = journal.answers()
        assert kept == ANSWERS[: len(kept)]
        assert len(kept) < len(ANSWERS)
        assert at_once == (not kept)
        assert journal.cursors() == before

        filler.unlink()
        model.mode = "good"
        session.says("The last.")
        assert session.run("Stop", last_assistant_message="The last.").is_silent()
        wait_until(lambda: journal.answers() == [*ANSWERS, "The last."])
        wait_until(lambda: journal.cursors() != before)
