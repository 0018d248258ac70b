"""A linked worktree is of its repository; a repository that is nobody's is told of once."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pps.server import spool
from tests.integration.hooks.acting import Session
from tests.integration.hooks.conftest import registered
from tests.integration.interfaces.serving import Served


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "First")
    return folder


def routed(served: Served, name: str, folder: Path) -> None:
    served.create(name)
    served.link.call("route_add", "", {"path": str(folder), "entity": name})


def test_a_sibling_worktree_is_of_the_routed_repository(
    served: Served, repository: Path, turns: Callable[[Session], list[dict[str, Any]]]
) -> None:
    routed(served, "worktree_shop", repository)
    beside = repository.parent / "beside"
    git(repository, "worktree", "add", "-q", str(beside))
    (beside / "deep").mkdir()
    for folder in (beside, beside / "deep"):
        session = Session(served.home, folder)
        assert session.run("UserPromptSubmit", prompt=f"Bees in {folder.name}.").code == 0
        [turn] = turns(session)
        assert turn["entity"] == "worktree_shop"


def test_a_worktree_with_a_route_of_its_own_is_whose_route_it_is(
    served: Served, repository: Path, turns: Callable[[Session], list[dict[str, Any]]]
) -> None:
    routed(served, "worktree_main", repository)
    beside = repository.parent / "beside"
    git(repository, "worktree", "add", "-q", str(beside))
    routed(served, "worktree_own", beside)
    session = Session(served.home, beside)
    session.run("UserPromptSubmit", prompt="Bees.")
    assert [turn["entity"] for turn in turns(session)] == ["worktree_own"]


@pytest.mark.parametrize("kind", ["forged", "forged back", "no back", "pipe", "submodule"])
def test_a_folder_that_only_says_that_it_is_a_worktree_is_nobodys(
    served: Served,
    repository: Path,
    turns: Callable[[Session], list[dict[str, Any]]],
    kind: str,
) -> None:
    """An archive from anywhere can hold a ``.git`` file that points at a repository of yours."""
    name = f"worktree_{kind.replace(' ', '_')}"
    routed(served, name, repository)
    git(repository, "worktree", "add", "-q", str(repository.parent / "real"))
    own = repository / ".git" / "worktrees" / "real"
    fake = repository.parent / "fake"
    fake.mkdir()
    link = fake / ".git"
    if kind == "forged":
        link.write_text(f"gitdir: {own}\n")
    elif kind == "forged back":  # all of it lies in the forger's folder
        forged = fake / "own"
        forged.mkdir()
        (forged / "commondir").write_text(f"{repository / '.git'}\n")
        (forged / "gitdir").write_text(f"{link}\n")
        link.write_text(f"gitdir: {forged}\n")
    elif kind == "no back":
        link.write_text(f"gitdir: {repository / '.git'}\n")
    elif kind == "pipe":
        subprocess.run(["mkfifo", str(link)], check=True)
    else:
        (repository / ".git" / "modules" / "fake").mkdir(parents=True)
        link.write_text(f"gitdir: {repository / '.git' / 'modules' / 'fake'}\n")
    session = Session(served.home, fake)
    assert session.run("UserPromptSubmit", prompt="Bees.").code == 0
    assert turns(session) == []


def test_a_worktree_is_known_while_the_server_is_away(tmp_path: Path, repository: Path) -> None:
    home = tmp_path / "away"
    registered(home, repository)
    beside = repository.parent / "beside"
    git(repository, "worktree", "add", "-q", str(beside))
    Session(home, beside).run("UserPromptSubmit", prompt="Bees.")
    [event] = spool.waiting(home)
    assert json.loads(event.read_text())["repository"] == str(repository)


def test_a_repository_without_a_route_is_told_of_once_with_the_command(
    served: Served, repository: Path
) -> None:
    beside = repository.parent / "beside"
    git(repository, "worktree", "add", "-q", str(beside))
    first = json.loads(Session(served.home, repository).run("SessionStart").out)
    assert f"pps route add {repository} NAME" in first["systemMessage"]
    assert "hookSpecificOutput" not in first
    for folder in (repository, beside, repository):
        assert Session(served.home, folder).run("SessionStart").is_silent()
    assert Session(served.home, repository).run("UserPromptSubmit", prompt="x").is_silent()


@pytest.mark.parametrize("name", ["v1.2", "two words", 'it\'s "mine" $HOME'])
def test_the_command_for_a_route_names_the_folder_as_a_shell_reads_it(
    served: Served, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    git(folder, "init", "-q")
    said = json.loads(Session(served.home, folder).run("SessionStart").out)["systemMessage"]
    command = said.split("`")[1]
    assert shlex.split(command) == ["pps", "route", "add", str(folder), "NAME"]


def test_a_folder_that_is_no_repository_is_not_told_of(served: Served, tmp_path: Path) -> None:
    assert Session(served.home, tmp_path).run("SessionStart").is_silent()
