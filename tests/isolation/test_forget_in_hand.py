"""What is forgotten while it is being taken in does not come back, and neither does a node that was merged away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import StoreConflict
from pps.core.values import FactDraft, Turn
from pps.ingest.batch import Batch
from pps.ingest.work_rules import Door
from pps.ingest.worker import Worker
from pps.ingest.write_path import Pipeline
from pps.memory import Memory


class Gate:
    """Stops a batch that is planned right before it is written."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.reached, self.opened, self.shut = asyncio.Event(), asyncio.Event(), False
        commit = Pipeline._commit  # noqa: SLF001

        async def held(
            pipeline: Pipeline, batch: Batch, turns: Sequence[Turn] = (), *others: Any
        ) -> None:
            if turns and self.shut:
                self.reached.set()
                await self.opened.wait()
            await commit(pipeline, batch, turns, *others)

        patch.setattr(Pipeline, "_commit", held)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for the door of a memory that is opened from now on, and not without end, waits a tenth of a second."""
    held = Door.held
    monkeypatch.setattr(Door, "held", lambda door, timeout_s=120.0: held(door, timeout_s and 0.1))


@pytest.fixture
async def ana(tmp_path: Path) -> AsyncIterator[Memory]:
    async with App.open(Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            yield memory


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


async def test_a_turn_that_is_forgotten_while_it_is_written_is_gone_everywhere(
    ana: Memory, gate: Gate
) -> None:
    before = await ana.remember("Ana plays chess.", facts=[FactDraft("Ana", "PLAYS", "Chess")])
    gate.shut = True
    receipt = await ana.remember(
        "Ana plays chess and hides gold.",
        facts=[FactDraft("Ana", "PLAYS", "Chess"), FactDraft("Ana", "HIDES", "Gold")],
        wait="journal",
    )
    await gate.reached.wait()
    forgetting = asyncio.create_task(ana.forget([receipt.turn_id], dry_run=False))
    done, _ = await asyncio.wait(
        [forgetting], timeout=6
    )  # longer than it waits for what is merely acknowledged
    assert not done
    gate.opened.set()
    gone = await forgetting
    assert await ana.settled()
    assert (gone.turns, len(gone.facts), len(gone.facts_kept)) == ((receipt.turn_id,), 1, 1)
    assert (await ana.ledger()).problems == ()
    found = await ana.recall("gold hides Ana chess", profile="facts")
    assert [hit.text for hit in found["facts"]] == ["Ana plays Chess"]
    (kept,) = (await ana.timeline()).facts
    assert kept.episodes == (before.turn_id,)
    assert not any(
        "gold" in hit.text.lower()
        for one in (await ana.recall("gold")).channels.values()
        for hit in one.hits
    )


async def test_a_turn_that_waits_behind_the_one_in_hand_is_gone_too(
    ana: Memory, gate: Gate
) -> None:
    gate.shut = True
    await ana.remember("Ana waters the fern.", wait="journal")
    await gate.reached.wait()
    receipt = await ana.remember(
        "Ana hides gold.", facts=[FactDraft("Ana", "HIDES", "Gold")], wait="journal"
    )
    forgetting = asyncio.create_task(ana.forget([receipt.turn_id], dry_run=False))
    await asyncio.sleep(0.1)
    gate.opened.set()
    await forgetting
    assert await ana.settled()
    assert (await ana.ledger()).problems == ()
    assert (await ana.recall("gold", profile="facts"))["facts"] == ()
    assert (await ana.stats()).turns == 1


async def test_nothing_is_written_between_a_merges_look_and_its_change(
    ana: Memory, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ana.remember("Ana met Tom.", facts=[FactDraft("Ana", "MET", "Tom")])
    await ana.remember("Ana met Thomas.", facts=[FactDraft("Ana", "MET", "Thomas")])
    nodes = {fact.text: fact.object for fact in (await ana.timeline()).facts}
    seen = asyncio.Event()
    settled = Worker.settled

    async def told_meanwhile(worker: Worker, timeout_s: float) -> bool:
        quiet = await settled(worker, timeout_s)
        if not seen.is_set():
            seen.set()
            gate.shut = True
            await ana.remember(
                "Tom sails.", facts=[FactDraft("Tom", "SAILS", "Sea")], wait="journal"
            )
            await gate.reached.wait()
            asyncio.get_running_loop().call_later(0.2, gate.opened.set)
        return quiet

    monkeypatch.setattr(Worker, "settled", told_meanwhile)
    await ana.records.merging.merge(nodes["Ana met Thomas"], nodes["Ana met Tom"], dry_run=False)
    assert await ana.settled()
    assert (await ana.ledger()).problems == ()
    (sails,) = (fact for fact in (await ana.timeline()).facts if fact.relation == "SAILS")
    assert sails.subject == nodes["Ana met Thomas"]


@pytest.mark.usefixtures("impatient")
async def test_a_forget_says_so_when_what_is_in_hand_does_not_end(ana: Memory, gate: Gate) -> None:
    gate.shut = True
    receipt = await ana.remember("Ana hides gold.", wait="journal")
    await gate.reached.wait()
    with pytest.raises(StoreConflict, match="try again"):
        await ana.forget([receipt.turn_id], dry_run=False)
    gate.opened.set()
    assert await ana.settled()
    await ana.forget([receipt.turn_id], dry_run=False)
    assert (await ana.stats()).turns == 0
