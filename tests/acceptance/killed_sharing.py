"""What ``test_killed_sharing`` runs in processes of its own, to be killed while members share, revoke and propose."""

from __future__ import annotations

import asyncio

from pps.app import App
from pps.config import Settings
from pps.entities.memberships import Squads
from pps.ingest import worker, write_path
from pps.ingest.forget import Forgetter
from pps.journal import turns as turn_rows
from pps.journal.closing_rows import Closings
from pps.journal.job_queue import JobQueue
from pps.journal.pool_rows import PoolRows
from pps.journal.record_rows import RecordStore
from tests.acceptance.killed_steps import Step, arm, deadly
from tests.squads import Team

RESEARCH = {"type": "Research", "fields": {"topic": "queues", "findings": "They fill."}}
PROPOSAL = {
    "type": "WorkflowImprovement",
    "fields": {"target_process": "handoff", "proposed_state": "In writing."},
}

SHARE: tuple[Step, ...] = (
    (RecordStore, "write"),
    (JobQueue, "take"),
    (write_path, "log_changes"),
    (worker, "end_jobs"),
)
REVOKE: tuple[Step, ...] = (
    (PoolRows, "write"),
    (PoolRows, "mark_gone"),
    (turn_rows, "forget"),
    (Closings, "forget"),
    (Forgetter, "forget"),
)
FORGET: tuple[Step, ...] = (
    (PoolRows, "write"),
    (PoolRows, "mark_gone"),
    (turn_rows, "forget"),
)
PROPOSE: tuple[Step, ...] = (
    (RecordStore, "write"),
    (JobQueue, "take"),
    (worker, "end_jobs"),
)
"""The methods that make each step durable; a process is killed right after one."""


def share_killed_at(found: Settings, ids: list[str], number: int) -> None:
    deadly(*SHARE[number])
    asyncio.run(_asked(found, "mongke", "memory_share", {"id": ids[number]}))


def revoke_killed_at(found: Settings, ids: list[str], number: int) -> None:
    deadly(*REVOKE[number])
    asyncio.run(_asked(found, "mongke", "memory_revoke", {"ids": [ids[number]], "dry_run": False}))


def forget_killed_at(found: Settings, ids: list[str], number: int) -> None:
    deadly(*FORGET[number])
    asyncio.run(_asked(found, "mongke", "record_delete", {"ids": [ids[number]], "dry_run": False}))


def propose_killed_at(found: Settings, ids: list[str], number: int) -> None:
    deadly(*PROPOSE[number])
    asyncio.run(_asked(found, "mongke", "proposal_submit", {"id": ids[number]}))


def review_killed_at(found: Settings, ids: list[str], number: int) -> None:
    deadly(*PROPOSE[number])
    asyncio.run(
        _asked(found, "kublai", "proposal_review", {"id": ids[number], "decision": "approved"})
    )


async def _asked(found: Settings, member: str, name: str, given: dict[str, object]) -> None:
    async with App.open(found) as app:
        team = Team(app, await asyncio.to_thread(_squads(app).get, "team"))
        await team.ask(member, "heartbeat")  # memory and pool are open, and settled
        arm()
        await team.ask(member, name, **given)


def _squads(app: App) -> Squads:
    return app.registry.squads
