"""A followed folder while the server runs: a change, a new file and a deleted one reach the memory by themselves."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from pps.app import App
from pps.interfaces.watching import FolderWatch
from pps.memory import Memory
from pps.server import Link
from tests import importing_files as made
from tests.integration.interfaces.serving import Served, serving
from tests.waiting import settle_until, wait_until


def contents(link: Link, entity: str) -> str:
    found = link.call(
        "recall", entity, {"query": "note kept saffron cardamom vanilla", "channels": ["episodes"]}
    )
    return str(cast("dict[str, Any]", found["data"])["channels"]["episodes"]["hits"])


def until(seen: Callable[[], bool]) -> None:
    wait_until(seen, pause_s=0.2)


@pytest.mark.timeout(300)
def test_what_changes_in_a_followed_folder_reaches_its_entity_and_no_other(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# Note\n\nSaffron is kept here.")
    with serving(home) as served:
        served.create("ana")
        served.create("bob")
        added = served.pps("watch", "add", "ana", str(folder))
        assert "1 file new, 0 changed, 0 unchanged; 1 passage stored" in added.stdout, added.stderr
        assert served.pps("watch", "list").stdout == f"ana  {folder}\n"
        assert served.pps("watch", "add", "bob", str(folder)).returncode == 2
        _follows(served, folder)
        assert served.link.call("stats", "bob", {})["data"]["turns"] == 0
    (folder / "c.md").write_text("# Note\n\nSaffron came while nobody looked.")
    with serving(home) as served:
        until(lambda: "nobody looked" in contents(served.link, "ana"))
        assert served.pps("watch", "remove", "bob", str(folder)).returncode == 3
        removed = served.pps("watch", "remove", "ana", str(folder), "--forget")
        assert "2 passages forgotten" in removed.stdout
        assert served.link.call("stats", "ana", {})["data"]["turns"] == 0


def _follows(served: Served, folder: Path) -> None:
    link = served.link
    time.sleep(
        4
    )  # the watch begins within two seconds; a change before it is seen as well, only later
    (folder / "a.md").write_text("# Note\n\nCardamom is kept here.")
    (folder / "deep").mkdir()
    (folder / "deep" / "b.md").write_text("# Note\n\nVanilla is kept here.")
    until(
        lambda: (
            "Cardamom" in (now := contents(link, "ana"))
            and "Vanilla" in now
            and "Saffron" not in now
        )
    )
    (folder / "deep" / "b.md").unlink()
    until(lambda: "Vanilla" not in contents(link, "ana"))


@pytest.mark.timeout(300)
def test_one_file_is_followed_and_its_neighbours_are_not(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "shop"
    memory = tmp_path / ".claude" / "projects" / "-shop" / "memory"
    memory.mkdir(parents=True)
    (memory / "MEMORY.md").write_text("# Memory\n\nA note: vanilla is kept by Claude.")
    project.mkdir()
    agents = project / "AGENTS.md"
    agents.write_text("# Agents\n\nA note: saffron is kept here.")
    (project / "README.md").write_text("# Readme\n\nA note: cardamom is kept elsewhere.")
    with serving(home) as served:
        served.create("ana")
        served.create("bob")
        for path in (agents, memory):
            added = served.pps("watch", "add", "ana", str(path))
            assert "1 file new" in added.stdout, added.stderr
        for path in (agents, project):
            assert served.pps("watch", "add", "bob", str(path)).returncode == 2
        assert served.pps("watch", "add", "bob", str(tmp_path / "absent.md")).returncode == 2
        now = contents(served.link, "ana")
        assert "saffron" in now
        assert "vanilla" in now
        time.sleep(4)
        new = project / "AGENTS.md.new"
        for said in ("saffron is sold out", "saffron came back"):  # as editors save
            new.write_text(f"# Agents\n\nA note: {said}, none is kept.")
            new.rename(agents)
            until(lambda said=said: said in contents(served.link, "ana"))
        # What is new is stored before what is gone is forgotten.
        until(lambda: "sold out" not in contents(served.link, "ana"))
        now = contents(served.link, "ana")
        assert "is kept here" not in now
        assert "cardamom" not in now
        agents.unlink()
        time.sleep(5)
        assert "came back" in contents(served.link, "ana"), "a file that is away changes nothing"
        assert served.link.call("stats", "bob", {})["data"]["turns"] == 0
        removed = served.pps("watch", "remove", "ana", str(agents), "--forget")
        assert "1 passage forgotten" in removed.stdout, removed.stderr


async def test_a_folder_that_was_replaced_and_one_with_a_dot_in_its_name_are_followed_on(
    app: App, tmp_path: Path
) -> None:
    folder = tmp_path / "notes.d"
    made.note(folder / "a.md", "# A\n\nSaffron.")
    made.note(tmp_path / "v1.2" / "b.md", "# B\n\nCardamom.")
    await app.create("ana")
    app.registry.watched.add(str(folder), "ana")
    following = asyncio.create_task(FolderWatch(app).run())
    try:
        async with app.memory("ana") as memory:
            await holds(memory, 1)
            (tmp_path / "v1.2").rename(folder / "v1.2")
            await holds(memory, 2)
            (folder / "v1.2").rename(tmp_path / "v1.2")
            await holds(memory, 1)
            shutil.rmtree(folder)
            made.note(folder / "c.md", "# C\n\nVanilla.")
            made.note(folder / "d.md", "# D\n\nVanilla.")
            await holds(memory, 2)
            (folder / "d.md").unlink()
            await holds(memory, 1)
    finally:
        following.cancel()


async def holds(memory: Memory, passages: int) -> None:
    """Wait until journal and graph have so many."""

    async def is_so() -> bool:
        stats = await memory.stats()
        return (stats.turns, stats.episodes) == (passages, passages)

    await settle_until(is_so)
