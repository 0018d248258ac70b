"""S2-11, hook misrouting: a session tells and is told by its project's entity, or by nobody."""

from __future__ import annotations

import json
import threading
import time as clock
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.interfaces.hooks.hook_desk import HookEventDesk
from pps.server import spool
from pps.server.spool import SpoolDrain
from tests.integration.hooks.acting import DEADLINE_S, Session
from tests.integration.hooks.conftest import turns_of
from tests.integration.interfaces.serving import Served, serving
from tests.waiting import wait_until

MARKS = {"shop": "kanarieladen", "attic": "kanariedachboden", "inner": "kanarieinnen"}
pytestmark = pytest.mark.timeout(300)


@dataclass
class Street:
    """A server with three projects: ``inner`` lies inside ``shop``; ``attic`` is the neighbour."""

    served: Served
    root: Path

    def session(self, folder: str, **options: Any) -> Session:
        path = self.root / folder
        path.mkdir(parents=True, exist_ok=True)
        return Session(self.served.home, path, **options)

    def kept(self, session: Session) -> set[str]:
        """The entities that anything of a session was kept for."""
        return {one["entity"] for one in turns_of(self.served.home, session.id)}


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Street]:
    root = tmp_path_factory.mktemp("street")
    with serving(tmp_path_factory.mktemp("misrouted") / "home") as served:
        for name, folder in (("shop", "shop"), ("attic", "attic"), ("inner", "shop/inner")):
            (root / folder).mkdir()
            served.create(name)
            served.link.call("route_add", "", {"path": str(root / folder), "entity": name})
            given = {"content": f"The word is {MARKS[name]}.", "session": "before", "wait": "done"}
            served.link.call("remember", name, given)
        yield Street(served, root)


def everything(session: Session) -> str:
    """Run every event of a session; return all that its agent was given."""
    given = ""
    for event in DEADLINE_S:
        ended = session.run(
            event, **({"prompt": "What is the word?"} if event == "UserPromptSubmit" else {})
        )
        assert (ended.code, ended.err) == (0, b"")
        given += ended.context
    return given


def is_silent_and_kept_nowhere(street: Street, session: Session) -> None:
    assert everything(session) == ""
    assert street.kept(session) == set()


def test_a_session_in_a_project_is_its_entitys(street: Street) -> None:
    for folder, name in (
        ("shop", "shop"),
        ("shop/src/deep", "shop"),
        ("attic", "attic"),
        ("shop/inner/x", "inner"),
    ):
        session = street.session(folder)
        given = everything(session)
        assert [mark for mark in MARKS.values() if mark in given] == [MARKS[name]]
        assert street.kept(session) == {name}


@pytest.mark.parametrize("folder", [".", "shop2", "shopping/inner", "SHOP", "elsewhere/shop"])
def test_a_session_in_no_project_is_nobodys(street: Street, folder: str) -> None:
    is_silent_and_kept_nowhere(street, street.session(folder))


@pytest.mark.parametrize("cwd", ["shop/../attic", "shop//..//attic/", "shop/inner/../../attic"])
def test_a_way_round_leads_to_where_it_really_leads(street: Street, cwd: str) -> None:
    session = Session(street.served.home, Path("/"), project_dir=f"{street.root}/{cwd}")
    assert (
        MARKS["attic"]
        in session.run("UserPromptSubmit", cwd=f"{street.root}/{cwd}", prompt="The word?").context
    )
    assert street.kept(session) == {"attic"}


def test_a_link_leads_to_where_it_really_leads(street: Street) -> None:
    (street.root / "shop" / "shortcut").symlink_to(street.root / "attic")
    (street.root / "outside").mkdir()
    (street.root / "shop" / "exit").symlink_to(street.root / "outside")
    (street.root / "circle").symlink_to(street.root / "circle")
    session = Session(street.served.home, street.root / "shop" / "shortcut")
    assert [mark for mark in MARKS.values() if mark in everything(session)] == [MARKS["attic"]]
    assert street.kept(session) == {"attic"}
    for link in ("shop/exit", "circle"):
        is_silent_and_kept_nowhere(street, Session(street.served.home, street.root / link))


@pytest.mark.parametrize("project_dir", [None, ""], ids=["with CLAUDE_PROJECT_DIR", "without"])
def test_a_session_that_goes_into_another_project_is_silent_there(
    street: Street, project_dir: str | None
) -> None:
    session = street.session("shop", project_dir=project_dir)
    session.run("UserPromptSubmit", prompt="At home.", prompt_id="1")
    for folder in ("attic", "shop/inner"):
        session.cwd = street.root / folder
        assert everything(session) == ""
        session.says(f"Said in {folder}.")
    session.cwd = street.root / "elsewhere"
    session.says("Said on the way.")
    session.cwd = None
    session.says("Home again.")
    assert session.run("Stop", last_assistant_message="Home again.").is_silent()
    kept = turns_of(street.served.home, session.id)
    assert {one["entity"] for one in kept} == {"shop"}
    assert [one["content"] for one in kept] == ["At home.", "Said on the way.", "Home again."]


def test_a_session_that_began_nowhere_gets_nothing_of_where_it_goes(street: Street) -> None:
    for project_dir in (None, ""):
        session = street.session("elsewhere", project_dir=project_dir)
        assert everything(session) == ""
        session.cwd = street.root / "shop"
        is_silent_and_kept_nowhere(street, session)


def test_the_pack_of_one_session_is_no_other_sessions(street: Street) -> None:
    mine, other, theirs = street.session("shop"), street.session("shop"), street.session("attic")
    assert MARKS["shop"] in mine.run("UserPromptSubmit", prompt="The word?").context
    theirs.id = mine.id  # the same id in another project
    for session in (other, theirs):
        assert session.run("PreToolUse").is_silent()
        assert session.run("PreToolUse", agent_id="a1").is_silent()


def test_a_named_entity_is_the_only_one_whatever_the_folder(street: Street) -> None:
    session = street.session("shop", options=("--entity", "attic"))
    given = everything(session)
    assert [mark for mark in MARKS.values() if mark in given] == [MARKS["attic"]]
    assert street.kept(session) == {"attic"}
    for name in ("nobody", "ATTIC", "attic.shop", "../attic", "*", ""):
        named = street.session("elsewhere", options=("--entity", name))
        is_silent_and_kept_nowhere(street, named)


def test_another_sessions_lines_in_a_transcript_stay_out(street: Street) -> None:
    shop, attic = street.session("shop"), street.session("attic")
    attic.run("SessionStart")
    shop.run("SessionStart", transcript_path=str(attic.transcript))
    attic.says(f"Only for the attic: {MARKS['attic']}.")
    shop.run("Stop", transcript_path=str(attic.transcript), last_assistant_message="")
    assert street.kept(shop) == set()
    attic.run("Stop", last_assistant_message="")
    assert street.kept(attic) == {"attic"}


def test_two_projects_at_once_stay_apart(street: Street) -> None:
    given: dict[str, list[str]] = {"shop": [], "attic": []}
    sessions = {name: [street.session(name) for _ in range(3)] for name in given}

    def talk(name: str, session: Session) -> None:
        for number in range(3):
            given[name].append(
                session.run(
                    "UserPromptSubmit", prompt=f"The word {number}?", prompt_id=f"{number}"
                ).context
            )
            session.says(f"{name} answers {number}.")
            session.run("Stop", last_assistant_message=f"{name} answers {number}.")

    threads = [
        threading.Thread(target=talk, args=(name, one))
        for name in sessions
        for one in sessions[name]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: not spool.waiting(street.served.home))
    for name, other in (("shop", "attic"), ("attic", "shop")):
        assert not any(MARKS[other] in one for one in given[name])
        for session in sessions[name]:
            kept = turns_of(street.served.home, session.id)
            assert {one["entity"] for one in kept} == {name}
            assert len(kept) == 6


def test_what_waited_in_the_spool_goes_where_it_would_have_gone(street: Street) -> None:
    folder = spool.spool_folder(street.served.home)
    folder.mkdir(mode=0o700, exist_ok=True)
    sessions = {name: street.session(name) for name in ("shop", "attic", "elsewhere")}
    for number, session in enumerate(sessions.values()):
        cwd = str(session.project)
        event = {
            "event": "UserPromptSubmit",
            "session": session.id,
            "cwd": cwd,
            "project": cwd,
            "text": "Waited.",
        }
        message = {**event, "id": f"{number:032x}", "at": clock.time()}
        (folder / f"{number:020d}-{number:032x}.json").write_text(json.dumps(message))
    wait_until(lambda: not spool.waiting(street.served.home))
    assert {name: street.kept(session) for name, session in sessions.items()} == {
        "shop": {"shop"},
        "attic": {"attic"},
        "elsewhere": set(),
    }


async def test_what_hooks_left_for_a_deleted_entity_is_erased_and_never_of_the_next_with_its_name_or_folder(
    tmp_path: Path,
) -> None:
    """``inner`` lies in ``outer``'s folder: what was told there is not the outer one's once the inner one is gone."""
    home = tmp_path / "home"
    async with App.open(Settings(home=home, embedder=EmbedderSettings(name="hash"))) as app:
        drain = SpoolDrain(home, HookEventDesk(app).handle)

        async def made() -> None:
            await app.create("inner")
            app.registry.routes.add("/work/outer/inner", "inner")

        await app.create("outer")
        app.registry.routes.add("/work/outer", "outer")
        for archived in (False, True):
            await made()
            outer, inner = (app.registry.get(name).entity for name in ("outer", "inner"))
            whose = [
                (one.name, app.registry.is_told(one, "", "/work/outer/inner/src"))
                for one in (outer, inner)
            ]
            assert whose == [("outer", False), ("inner", True)]
            kept = left(home, 1, cwd="/work/outer")
            left(home, 2, entity="inner")
            left(home, 3, cwd="/work/outer/inner/src")
            left(home, 4, entity="inner").rename(spool.spool_folder(home) / "4.bad")
            if archived:
                await app.archive("inner")
            await app.delete("inner")
            assert list(spool.spool_folder(home).iterdir()) == [kept]
        left(home, 5, entity="inner")  # by a hook that could not tell it meanwhile
        left(home, 6, cwd="/work/outer/inner")
        await made()
        assert await drain.once() == 3
        async with app.memory("inner") as anew, app.memory("outer") as other:
            assert (await anew.stats()).turns == 0
            assert (await other.stats()).turns == 1


def left(home: Path, number: int, **whose: str) -> Path:
    """Leave an event in the spool, as a hook does that finds no server."""
    said = {
        "id": f"{number:032x}",
        "at": clock.time(),
        "event": "UserPromptSubmit",
        "session": "s",
        "text": "Mine.",
    }
    path = spool.spool_folder(home) / f"{number:020d}-{number:032x}.json"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(json.dumps({**said, **whose}))
    return path


def test_the_hooks_commands_see_and_change_no_memory(street: Street, tmp_path: Path) -> None:
    said = ""
    for command in (
        ("install", "--scope", "project", "--project", str(tmp_path), "--entity", "shop"),
        ("status", "--project", str(tmp_path), "--json"),
        ("uninstall", "--scope", "project", "--project", str(tmp_path)),
    ):
        ended = street.served.pps("hooks", *command)
        assert ended.returncode == 0, ended.stderr
        said += ended.stdout + ended.stderr
    assert not any(mark in said for mark in MARKS.values())
    refused = street.served.pps(
        "hooks", "install", "--scope", "project", "--project", str(tmp_path), "-e", "nobody"
    )
    assert refused.returncode == 3
    assert not (tmp_path / ".claude" / "settings.json").exists()


def test_sessions_of_a_memory_are_its_own(street: Street) -> None:
    """The same session id in two projects is two sessions: each entity keeps and is given its own."""
    shop, attic = street.session("shop"), street.session("attic")
    attic.id = shop.id
    shop.run("UserPromptSubmit", prompt="Mine?")
    given = attic.run("UserPromptSubmit", prompt="The word?").context
    assert MARKS["attic"] in given
    assert "Mine?" not in given
    kept = turns_of(street.served.home, shop.id)
    assert [(one["entity"], one["content"]) for one in kept] == [
        ("attic", "The word?"),
        ("shop", "Mine?"),
    ]
