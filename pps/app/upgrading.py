"""The upgrade of an entity whose graph an earlier PPS left in a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from pps.app.threads import Progress, in_thread
from pps.core import time
from pps.core.text import counted
from pps.entities.registry import Entry
from pps.journal import old_graph
from pps.store import graph_upgrade
from pps.store.graph_upgrade import Upgraded

State: TypeAlias = Literal["upgraded", "would_upgrade", "nothing_to_do", "copy_erased", "failed"]


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """The result of upgrading one entity.

    Attributes:
        state: ``would_upgrade`` in a dry run; ``nothing_to_do`` if the graph is in ``memory.db``
            already.
        rows: Table → number of rows that were, or would be, moved.
        left_out: Number of facts left out because they name a missing node; the copy holds them.
        copy: Folder of the copy from before the upgrade, or empty.
        copy_bytes: Size of that copy.
        seconds: How long it took.
        problem: Why it failed.
    """

    entity: str
    state: State
    rows: dict[str, int] = field(default_factory=dict[str, int])
    left_out: int = 0
    copy: str = ""
    copy_bytes: int = 0
    seconds: float = 0.0
    problem: str = ""


async def upgrade(entry: Entry, progress: Progress | None = None) -> Upgraded | None:
    """Upgrade an entity whose files the caller holds, if that is needed.

    If it is cancelled, it returns when its thread has ended, and nothing is changed. Raises as
    ``graph_upgrade.upgrade``.
    """
    if entry.store != "embedded":
        return None
    return await _work_on(graph_upgrade.upgrade, entry, progress)


async def plan(entry: Entry, progress: Progress | None = None) -> Upgraded | None:
    """Return what ``upgrade`` would do, without changing anything."""
    if entry.store != "embedded":
        return None
    return await _work_on(graph_upgrade.plan, entry, progress)


def report_of(entry: Entry, done: Upgraded | None, *, dry_run: bool) -> UpgradeReport:
    """Return the report of an upgrade or a plan.

    If there was nothing to do, it names the entity's latest copy.
    """
    name = entry.entity.name
    if done is None:
        copy = next(iter(reversed(old_graph.copies(data_of(entry)))), None)
        if copy is None:
            return UpgradeReport(name, "nothing_to_do")
        return UpgradeReport(name, "nothing_to_do", copy=str(copy.path), copy_bytes=copy.size_bytes)
    return UpgradeReport(
        name,
        "would_upgrade" if dry_run else "upgraded",
        done.rows,
        done.left_out,
        str(done.copy or ""),
        done.copy_bytes,
        round(done.seconds, 2),
    )


def erase_copies(entry: Entry) -> bool:
    """Erase the copies of an entity that nobody upgrades meanwhile.

    Returns:
        Whether there was a copy.

    Raises:
        StoreError: A copy cannot be erased.
    """
    data = data_of(entry)
    copies = old_graph.copies(data)
    if old_graph.is_upgraded(data / "memory.db"):
        old_graph.drop_all_of_old(data)
    else:
        old_graph.drop_copies(data)
    return bool(copies)


def erase_overdue_copies(entry: Entry) -> None:
    """Erase the copies of an entity that are past their time.

    Raises:
        StoreError: A copy cannot be erased.
    """
    old_graph.drop_copies(data_of(entry), made_before=time.now() - old_graph.COPY_KEPT)


def remove_old_graph(entry: Entry) -> None:
    """Remove an earlier PPS's graph file of an entity whose graph is rebuilt.

    Raises:
        StoreError: The file cannot be removed.
    """
    if entry.store == "embedded":
        old_graph.remove_old_files(data_of(entry))


def copy_notes(entry: Entry) -> list[str]:
    """Return a notice about an entity's copies, and about a graph file that is not used."""
    data = data_of(entry)
    name = entry.entity.name
    notes = [
        f"{copy.path} ({counted(max(1, copy.size_bytes >> 20), 'MiB')}) is the copy from before "
        f"its upgrade: it is erased on {copy.kept_until:%Y-%m-%d}, by the first forgetting for "
        f"good, or by `pps upgrade {name} --drop-copy`"
        for copy in old_graph.copies(data)
    ]
    files = old_graph.old_files(data) if entry.store == "embedded" else []
    if files:
        notes.append(
            f"{files[0]} is not read: the graph is in memory.db; it goes with the first forgetting "
            "for good, or move it away"
        )
    return notes


def data_of(entry: Entry) -> Path:
    return entry.folder / "data"


async def _work_on(
    work: Callable[[Path, str, str, Progress], Upgraded | None],
    entry: Entry,
    progress: Progress | None,
) -> Upgraded | None:
    entity = entry.entity
    return await in_thread(
        lambda tell: work(data_of(entry), entity.group, entity.name, tell), progress
    )
