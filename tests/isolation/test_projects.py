"""Project routes and routers: no path, link, name or id leads from one project into another's memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from pps.core.errors import InvalidRequest, NotFound
from pps.entities import Registry


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "home")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Two projects beside each other, one with the other's name as its beginning, and links between them."""
    work = tmp_path / "work"
    for name in ("proj", "project2", "outside"):
        (work / name / "src").mkdir(parents=True)
    (work / "proj" / "out").symlink_to(work / "project2")
    (work / "proj" / "up").symlink_to("..")
    (work / "alias").symlink_to("proj")
    return work


SAME = ["", "/", "//", "/.", "/src/..", "/src/../", "/up/proj", "/../alias", "/../alias/src/.."]
OTHERS = ["2", "/../project2", "/out", "/out/src/..", "/up/project2", "/src/../../project2", "/../outside"]


@pytest.mark.parametrize("tail", SAME)
def test_every_spelling_of_a_folder_is_the_same_project(registry: Registry, work: Path, tail: str) -> None:
    made = registry.create_for(f"{work}/proj")
    assert registry.create_for(f"{work}/proj{tail}").entity == made.entity
    assert registry.routes.exactly(f"{work}/proj{tail}") == made.entity
    assert registry.route(f"{work}/proj{tail}") == made.entity


@pytest.mark.parametrize("tail", OTHERS)
def test_no_spelling_leads_into_the_project_next_door(registry: Registry, work: Path, tail: str) -> None:
    made = registry.create_for(f"{work}/proj")
    assert registry.routes.nearest(f"{work}/proj{tail}") is None
    assert registry.routes.exactly(f"{work}/proj{tail}") is None
    with pytest.raises(NotFound):
        registry.routes.remove(f"{work}/proj{tail}")
    assert registry.create_for(f"{work}/proj{tail}").entity != made.entity


def test_letters_of_another_case_are_another_folder(registry: Registry) -> None:
    assert registry.create_for("/w/proj").entity != registry.create_for("/w/PROJ").entity


def test_a_link_that_is_turned_elsewhere_takes_no_memory_with_it(registry: Registry, work: Path) -> None:
    here = registry.create_for(f"{work}/alias").entity
    (work / "alias").unlink()
    (work / "alias").symlink_to("project2")
    assert registry.route(f"{work}/alias") is None
    assert registry.route(f"{work}/proj") == here


def test_a_folder_that_becomes_a_link_loses_its_memory_rather_than_share_it(registry: Registry, work: Path) -> None:
    theirs = registry.create_for(f"{work}/project2").entity
    (work / "fresh").mkdir()
    registry.create_for(f"{work}/fresh")
    (work / "fresh").rmdir()
    (work / "fresh").symlink_to("project2")
    assert registry.route(f"{work}/fresh") == theirs, "the link is the folder it leads to, as for every program"


def test_a_mapped_folder_is_nobody_elses_and_is_never_taken_over(registry: Registry, work: Path) -> None:
    registry.create("ana")
    registry.create("ana_2")
    registry.routes.add(f"{work}/proj", "ana")
    with pytest.raises(InvalidRequest):
        registry.routes.add(f"{work}/alias", "ana_2")
    assert [one.entity.name for one in registry.routes.list([f"{work}/proj"])] == ["ana"]
    assert registry.routes.list([f"{work}/pro", f"{work}/project", str(work).upper()]) == []
    (work / "ana").mkdir()
    assert registry.create_for(f"{work}/ana").entity.name == "ana_3"


def test_deleting_an_entity_takes_its_routes_and_only_its(registry: Registry, work: Path) -> None:
    one, two = registry.create_for(f"{work}/proj").entity, registry.create_for(f"{work}/project2").entity
    registry.delete(one.name)
    assert registry.route(f"{work}/proj") is None
    assert registry.route(f"{work}/project2") == two
    assert registry.create_for(f"{work}/proj").entity.group != one.group
