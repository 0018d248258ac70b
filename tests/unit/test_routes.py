from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.core.errors import InvalidRequest, NotFound, UnknownEntity
from pps.core.ids import check_name
from pps.entities.paths import ancestors, is_inside, name_of, numbered, real_path
from pps.entities.registry import Registry
from tests.erasing import deleted


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "home")


@pytest.mark.parametrize(
    ("path", "root", "inside"),
    [
        ("/a/proj", "/a/proj", True),
        ("/a/proj/sub", "/a/proj", True),
        ("/a/project2", "/a/proj", False),
        ("/a/proj-x", "/a/proj", False),
        ("/a", "/a/proj", False),
        ("/A/proj", "/a", False),
        ("/a/proj", "/", True),
        ("/", "/", True),
    ],
)
def test_a_path_is_inside_a_root_by_whole_parts(path: str, root: str, inside: bool) -> None:
    assert is_inside(path, root) is inside


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/work/shop", "shop"),
        ("/work/My Shop-2.0", "my_shop_2_0"),
        ("/work/2048", "p_2048"),
        ("/work/Über-Café", "uber_cafe"),
        ("/work/咖啡", "project"),
        ("/", "project"),
        ("/work/...", "project"),
        ("/work/" + "x" * 60, "x" * 40),
    ],
)
def test_a_folders_name_becomes_a_legal_one(path: str, name: str) -> None:
    assert check_name(name_of(path)) == name


@given(
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"])),
    st.integers(2, 10**6),
)
def test_any_folder_has_a_legal_name_with_or_without_a_number(base: str, number: int) -> None:
    name = check_name(name_of(f"/work/{base}"))
    assert check_name(numbered(name, number)).endswith(f"_{number}")


def test_ancestors_are_nearest_first() -> None:
    assert ancestors("/a/b/c") == ["/a/b/c", "/a/b", "/a", "/"]
    assert ancestors("/") == ["/"]


@pytest.mark.parametrize(
    "path", ["", "work/shop", "./shop", "~/shop", "C:\\shop", "/a\0b", "/" + "x" * 4096, "/\ud800"]
)
def test_what_is_no_absolute_path_is_refused(registry: Registry, path: str) -> None:
    for ask in (
        registry.route,
        registry.create_for,
        registry.routes.exactly,
        registry.routes.remove,
    ):
        with pytest.raises(InvalidRequest):
            ask(path)
    assert registry.list() == []


def test_dots_slashes_and_links_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    real = str(tmp_path / "real")
    for path in (
        "/real/",
        "//real",
        "/real/.",
        "/real/sub/..",
        "/link",
        "/link/sub/..",
        "/real/absent/..",
    ):
        assert real_path(f"{tmp_path}{path}") == real
    assert real_path(f"/{tmp_path}/real") == real
    assert real_path("///") == "/"


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "out").symlink_to("/")
    with pytest.raises(InvalidRequest, match="circle"):
        real_path(f"{tmp_path}/a/../out")
    with pytest.raises(InvalidRequest, match="circle"):
        real_path(f"{tmp_path}/a")


def test_a_projects_folder_gets_one_entity_named_after_it(registry: Registry) -> None:
    first = registry.create_for("/work/Shop")
    again = registry.create_for("/work/x/../Shop/")
    assert (first.is_new, again.is_new, again.entity) == (True, False, first.entity)
    assert first.token is None
    assert first.entity.name == "shop"
    assert registry.mount("shop").entity == first.entity
    assert registry.create_for("/other/shop").entity.name == "shop_2"
    assert registry.create_for("/work/shop").entity.name == "shop_3"


def test_a_name_that_is_taken_is_never_taken_over(registry: Registry) -> None:
    registry.create("shop")
    registry.create("shop_2")
    registry.archive("shop_2")
    (registry.entities_folder / "shop_3").mkdir()
    assert registry.create_for("/work/shop").entity.name == "shop_4"


def test_the_longest_mapped_folder_wins(registry: Registry) -> None:
    outer, inner = registry.create("outer").entity, registry.create("inner").entity
    registry.routes.add("/work", "outer")
    registry.routes.add("/work/a/b", "inner")
    assert registry.route("/work") == outer
    assert registry.route("/work/a/bc") == outer
    assert registry.route("/work/a/b/c/d") == inner
    assert registry.route("/works") is None
    assert registry.route("/") is None
    assert registry.routes.exactly("/work/a") is None
    registry.archive("inner")
    assert registry.route("/work/a/b/c") is None, (
        "what is at rest does not pass its folder on to another"
    )
    deleted(registry, "inner")
    assert registry.route("/work/a/b/c") == outer


def test_looking_for_a_route_makes_nothing(registry: Registry) -> None:
    assert registry.route("/work/shop") is None
    assert (registry.list(), registry.routes.list()) == ([], [])


def test_routes_are_kept_listed_and_removed(registry: Registry) -> None:
    registry.create("ana")
    made = registry.routes.add("/work/one", "ana")
    assert registry.routes.add("/work/one/", "ana") == made
    registry.routes.add("/work/two", "ana")
    again = Registry(registry.entities_folder.parent)
    assert [one.path for one in again.routes.list()] == ["/work/one", "/work/two"]
    assert [one.path for one in again.routes.list(["/work/two", "/wor"])] == ["/work/two"]
    again.routes.remove("/work/one")
    assert registry.route("/work/one") is None
    with pytest.raises(NotFound):
        registry.routes.remove("/work/one")


def test_a_folder_of_one_is_not_mapped_to_another(registry: Registry) -> None:
    registry.create("ana")
    registry.create("bob")
    registry.routes.add("/work", "ana")
    with pytest.raises(InvalidRequest, match="belongs to 'ana'"):
        registry.routes.add("/work", "bob")
    with pytest.raises(UnknownEntity):
        registry.routes.add("/other", "nobody")
    assert registry.route("/other") is None


def test_a_folder_of_an_archived_entity_gets_no_second_one(registry: Registry) -> None:
    registry.create_for("/work/shop")
    registry.archive("shop")
    with pytest.raises(UnknownEntity):
        registry.create_for("/work/shop")
    assert len(registry.list(include_archived=True)) == 1


def test_twenty_agents_at_once_make_one_entity(registry: Registry) -> None:
    with ThreadPoolExecutor(20) as pool:
        made = list(pool.map(lambda _: registry.create_for("/work/shop"), range(20)))
    assert len({one.entity.group for one in made}) == 1
    assert sum(one.is_new for one in made) == 1
    with ThreadPoolExecutor(20) as pool:
        names = {
            one.entity.name
            for one in pool.map(lambda n: registry.create_for(f"/w{n}/shop"), range(20))
        }
    assert names == {f"shop_{number}" for number in range(2, 22)}
