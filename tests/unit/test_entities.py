from __future__ import annotations

import shutil
import sqlite3
import stat
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from pps.core.errors import InvalidRequest, IsolationError, StoreError, UnknownEntity
from pps.core.ids import EntityId
from pps.entities.registry import Registry
from pps.entities.tokens import Bounds, mint, parse
from tests.erasing import deleted


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "home")


def test_create_makes_a_folder_a_row_and_a_token(registry: Registry) -> None:
    made = registry.create("ana")
    assert made.is_new
    assert made.token is not None
    card = tomllib.loads((made.folder / "entity.toml").read_text())
    assert (card["name"], card["group"], card["store"]) == ("ana", made.entity.group, "embedded")
    assert "# ana" in (made.folder / "identity.md").read_text()
    assert (made.folder / "anchors").is_dir()
    assert (made.folder / "data").is_dir()
    assert not (made.folder / "anchors" / ".gitkeep").exists()
    assert registry.mount("ana").entity == made.entity


def test_create_again_changes_nothing(registry: Registry) -> None:
    first = registry.create("ana")
    (first.folder / "identity.md").write_text("mine")
    second = registry.create("ana")
    assert (second.entity, second.is_new, second.token) == (first.entity, False, None)
    assert (first.folder / "identity.md").read_text() == "mine"


def test_create_finishes_a_folder_that_was_cut_off(registry: Registry) -> None:
    first = registry.create("ana")
    shutil.rmtree(first.folder)
    with pytest.raises(StoreError):
        registry.mount("ana")
    assert registry.create("ana").entity == first.entity
    assert registry.mount("ana").entity == first.entity


@pytest.mark.parametrize(
    "name",
    [
        "",
        "ANA",
        "Ana",
        "1a",
        "_a",
        "a-b",
        "a b",
        "a/b",
        "..",
        "a" * 41,
        "ána",
        "a\n",
        ".trash",
        "_template",
    ],
)
def test_a_bad_name_is_refused_and_makes_nothing(registry: Registry, name: str) -> None:
    with pytest.raises(InvalidRequest):
        registry.create(name)
    assert registry.list() == []
    assert list(registry.entities_folder.iterdir()) == []


def test_a_taken_name_is_refused(registry: Registry) -> None:
    (registry.entities_folder / "bob").mkdir()
    with pytest.raises(InvalidRequest, match="taken"):
        registry.create("bob")
    registry.create("ana")
    with pytest.raises(InvalidRequest, match="store 'embedded'"):
        registry.create("ana", store="neo4j")
    registry.archive("ana")
    with pytest.raises(InvalidRequest, match="archived"):
        registry.create("ana")


def test_similar_names_are_different_entities(registry: Registry) -> None:
    groups = {registry.create(name).entity.group for name in ("ana", "ana_2", "anaa")}
    assert len(groups) == 3
    for name in ("ANA", "Ana", "ana_", "an", "%", "ana%"):
        with pytest.raises(UnknownEntity):
            registry.get(name)


def test_a_folder_of_another_entity_is_not_mounted(registry: Registry) -> None:
    ana, bob = registry.create("ana"), registry.create("bob")
    shutil.rmtree(bob.folder)
    shutil.copytree(ana.folder, bob.folder)
    with pytest.raises(IsolationError):
        registry.mount("bob")
    with pytest.raises(IsolationError):
        registry.create("bob")


def test_a_card_that_says_nothing_is_a_store_error(registry: Registry) -> None:
    made = registry.create("ana")
    (made.folder / "entity.toml").write_text("name = 'ana'\n")
    with pytest.raises(StoreError, match="card"):
        registry.mount("ana")


def test_a_token_speaks_for_its_entity_only(registry: Registry) -> None:
    ana, bob = registry.create("ana"), registry.create("bob")
    assert ana.token is not None
    assert bob.token is not None
    assert registry.entity_of_token(ana.token) == ana.entity
    assert registry.entity_of_token(bob.token) == bob.entity
    assert not registry.is_operator(ana.token)
    operator = registry.operator_token()
    assert registry.is_operator(operator)
    assert registry.entity_of_token(operator) is None


def test_wrong_tokens_speak_for_nobody(registry: Registry) -> None:
    token = registry.create("ana").token
    assert token is not None
    last = "a" if token[-1] != "a" else "b"
    for wrong in (
        "",
        "x",
        token[:-1],
        token[:-1] + last,
        token + "a",
        token.upper(),
        mint("entity").text,
        " " + token,
    ):
        assert registry.entity_of_token(wrong) is None


def test_revoked_and_archived_tokens_are_refused_at_once(registry: Registry) -> None:
    token = registry.create("ana").token
    second = registry.issue_token("ana")
    assert token is not None
    registry.archive("ana")
    assert registry.entity_of_token(token) is None
    with pytest.raises(UnknownEntity, match="archived"):
        registry.mount("ana")
    registry.archive("ana", undo=True)
    assert registry.entity_of_token(token) is not None
    assert registry.revoke_tokens("ana") == 2
    assert registry.entity_of_token(token) is None
    assert registry.entity_of_token(second) is None


def test_no_token_is_kept_as_text(registry: Registry) -> None:
    token = registry.create("ana").token
    operator = registry.operator_token()
    assert token is not None
    raw = b"".join(
        path.read_bytes() for path in registry.entities_folder.parent.glob("registry.db*")
    )
    for secret in (token, operator):
        assert secret.encode() not in raw
        assert secret[-40:].encode() not in raw
    assert secret not in repr(parse(secret))


def test_delete_takes_folder_row_and_tokens(registry: Registry) -> None:
    made = registry.create("ana")
    (made.folder / "data" / "memory.db").write_bytes(b"x")
    deleted(registry, "ana")
    assert made.token is not None
    assert registry.entity_of_token(made.token) is None
    assert list(registry.entities_folder.iterdir()) == []
    with pytest.raises(UnknownEntity):
        deleted(registry, "ana")
    again = registry.create("ana")
    assert again.entity.group != made.entity.group


def test_pending_entities_are_kept_until_done(registry: Registry) -> None:
    made = registry.create("ana")
    registry.create("bob")
    registry.set_pending(made.entity, True)
    assert list(Registry(registry.entities_folder.parent).pending_since()) == ["ana"]
    registry.set_pending(made.entity, False)
    assert registry.pending_since() == {}
    with pytest.raises(UnknownEntity):
        registry.set_pending(
            EntityId("ana", "ent_" + "a" * 26), True
        )  # one that had the name before
    assert registry.pending_since() == {}


def test_archived_entities_are_listed_when_asked(registry: Registry) -> None:
    registry.create("bob")
    registry.create("ana")
    registry.archive("bob")
    assert [entry.entity.name for entry in registry.list()] == ["ana"]
    assert [entry.archived for entry in registry.list(include_archived=True)] == [False, True]


def test_groups_find_their_entity(registry: Registry) -> None:
    made = registry.create("ana")
    assert registry.by_group(made.entity.group).entity == made.entity
    with pytest.raises(UnknownEntity):
        registry.by_group("ent_" + "0" * 26)


def test_twenty_creators_at_once_make_one_entity(registry: Registry) -> None:
    with ThreadPoolExecutor(20) as pool:
        made = list(pool.map(lambda _: registry.create("ana"), range(20)))
    assert len({one.entity.group for one in made}) == 1
    assert sum(one.is_new for one in made) == 1
    assert sum(one.token is not None for one in made) == 1


def test_files_are_private(registry: Registry) -> None:
    made = registry.create("ana")
    home = registry.entities_folder.parent
    modes = {
        path: stat.S_IMODE(path.stat().st_mode)
        for path in (home, made.folder, made.folder / "data")
    }
    assert set(modes.values()) == {0o700}
    for path in (home / "registry.db", made.folder / "entity.toml", made.folder / "identity.md"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_broken_registry_is_said_and_not_replaced(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "registry.db").write_bytes(
        b"not a database at all, but long enough to be read as one" * 20
    )
    with pytest.raises(StoreError, match=r"registry\.db"):
        Registry(home)


def test_what_was_read_is_known_until_anything_is_written(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = registry.create("ana")
    with monkeypatch.context() as patch:
        patch.setattr("pps.entities.small_file._TICK_NS", 3_600 * 10**9)
        registry.get("ana")
        # A change in the same tick of the file's time would not show.
        assert registry.seen("ana") is None
    time.sleep(0.1)
    assert registry.get("ana") == registry.seen("ana")
    other = Registry(registry.entities_folder.parent)  # as another process would
    time.sleep(0.1)
    registry.get("ana")
    other.archive("ana")
    assert registry.seen("ana") is None
    other.archive("ana", undo=True)
    deleted(other, "ana")
    assert other.create("ana").entity != made.entity
    assert registry.seen("ana") is None
    assert registry.seen("bob") is None


def test_an_older_registry_is_brought_up_to_now_once_and_a_newer_one_is_refused(
    registry: Registry,
) -> None:
    token, file = registry.create("ana").token, registry.entities_folder.parent / "registry.db"
    assert token is not None
    with closing(sqlite3.connect(file)) as db:
        (now,) = db.execute("PRAGMA user_version").fetchone()
        db.execute("ALTER TABLE token DROP COLUMN actor")
        db.execute("PRAGMA user_version = 0")
    with ThreadPoolExecutor(4) as opening:
        opened = list(opening.map(lambda _: Registry(file.parent), range(8)))
    assert opened[0].bounds_of_token(token) == Bounds(None, "")
    assert opened[1].bounds_of_token(opened[2].issue_token("ana", (), "plan")).actor == "plan"
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (now,)
        db.execute(f"PRAGMA user_version = {now + 1}")
    with pytest.raises(StoreError, match="later version"):
        Registry(file.parent)


def test_a_token_is_bound_to_an_actor_whose_name_can_be_one(registry: Registry) -> None:
    registry.create("ana")
    assert registry.bounds_of_token(registry.issue_token("ana", ["core"], "plan-b")) == Bounds(
        frozenset(["core"]), "plan-b"
    )
    assert registry.bounds_of_token("nonsense") == Bounds(frozenset())
    for name in ("Plan", "1", "-a", "a b", "a" * 41):
        with pytest.raises(InvalidRequest, match="actor"):
            registry.issue_token("ana", (), name)
