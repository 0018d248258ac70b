"""Small inputs that were answered as if PPS itself had failed, or that said less than there was to say."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.config.pack_reading import MAX_MISTAKES, read_pack
from pps.core.errors import ConfigError, IsolationError, NotFound, PPSError, StoreError
from pps.core.time import now
from pps.entities.routing import owner as owner_router
from pps.interfaces.http.health import HealthProbe
from pps.interfaces.http.requests import Activity
from pps.operations.calls import Calls, owner
from tests.waiting import settle_until

_FORESEEN = ("invalid_request", "not_found", "config", "unknown_entity")


async def noted(read: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool]) -> Any:
    """Return what is noted once it holds: what a session was given is written after the answer."""
    found: Any = None

    async def is_noted() -> bool:
        nonlocal found
        found = await read()
        return holds(found)

    await settle_until(is_noted)
    return found


def calls_of(app: App) -> Any:
    calls, caller = Calls(app), owner(owner_router(), "ana")

    async def call(operation: str, **arguments: Any) -> Any:
        return (await calls.answer(caller, operation, arguments)).data

    return call


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("job_status", {"id": "9" * 20}),
        ("job_status", {"id": "9" * 40}),
        ("job_status", {"id": str(2**63)}),
        ("pack_check", {"path": "/a\0b"}),
        ("pack_check", {"path": "/\ud800"}),
        ("pack_check", {"path": "/" + "x" * 4_000}),
        ("export", {"entity": "ana", "path": "/nowhere/at/all/x.jsonl"}),
        ("export", {"entity": "ana", "path": "/etc/hostname/x.jsonl"}),
        ("export", {"entity": "ana", "path": "/proc"}),
        ("export", {"entity": "ana", "path": "/nowhere/" + "x" * 300}),
        ("import", {"entity": "ana", "paths": ["/a\0b"]}),
        ("jobs_list", {"entity": "ana", "after": 2**70}),
        ("jobs_drop", {"entity": "ana", "jobs": [2**70]}),
        ("jobs_retry", {"entity": "ana", "jobs": [2**70]}),
    ],
)
async def test_what_cannot_be_is_refused_and_no_failure(
    app: App, operation: str, arguments: dict[str, Any]
) -> None:
    await app.create("ana")
    with pytest.raises(PPSError) as error:
        await calls_of(app)(operation, **arguments)
    assert error.value.code in _FORESEEN, error.value


async def test_the_name_of_a_session_is_kept_without_its_secrets(app: App) -> None:
    await app.create("ana")
    call = calls_of(app)
    token = "gh" + "p_" + "a1B2c3D4e" * 4
    session = f"work with {token}"
    await call("remember", content="Ana keeps bees.", session=session)
    for _ in range(2):
        await call("ambient_recall", context="bees", session=session)
    async with app.memory("ana") as memory:
        since = now() - timedelta(days=1)
        [injected] = await noted(
            lambda: memory.parts.journal.given.injected(since),
            lambda found: bool(found) and found[0].prompts == 2,
        )
        [turn] = await memory.parts.journal.scan(0, 10)
        files = b"".join(
            path.read_bytes()
            for path in (app.settings.home / "entities" / "ana" / "data").glob("memory.db*")
        )
    assert token.encode() not in files
    assert injected.session == turn.session
    assert injected.prompts == 2


async def test_the_title_of_an_anchor_that_is_forgotten_for_good_is_nowhere(app: App) -> None:
    await app.create("ana")
    call = calls_of(app)
    await call("anchor_save", title="Zanzibar cloves", text="Where the Zanzibar cloves grow.")
    await call("ambient_recall", context="Where do the Zanzibar cloves grow?", session="s")
    async with app.memory("ana") as memory:
        seen = await noted(
            lambda: memory.parts.journal.given.seen("s"), lambda found: found.prompts == 1
        )
        assert any("zanzibar" in id_ for id_ in seen.ids), seen
        await memory.forget(["zanzibar-cloves"], dry_run=False)
        seen = await memory.parts.journal.given.seen("s")
        assert not any("zanzibar" in id_ for id_ in seen.ids)


async def test_sessions_of_a_page_do_not_come_back_with_the_entity(app: App) -> None:
    created = await app.create("ana")
    pages = app.registry.pages
    session = pages.open("ana", pages.link(created.entity))
    assert session
    link = pages.link(created.entity)
    await app.archive("ana")
    await app.archive("ana", undo=True)
    assert pages.entity_of(session) is None
    assert pages.open("ana", link) is None


@pytest.mark.parametrize(
    "text",
    [
        'name = "p"\nversion = 1\n' + "".join(f"typo{n} = 1\n" for n in range(9_000)),
        'name = "p"\nversion = 1\n[kinds.A]\n' + "".join(f"typo{n} = 1\n" for n in range(9_000)),
        'name = "p"\nversion = 1\n'
        + "".join(f'[kinds.K{n}]\nlayer = "l{n}"\n' for n in range(9_000)),
        'name = "p"\nversion = 1\nreserved = [' + ",".join(f'"N{n}"' for n in range(9_000)) + "]\n",
    ],
)
@pytest.mark.timeout(120)
def test_a_pack_of_many_typos_does_not_hang_its_check(text: str) -> None:
    pack, mistakes = read_pack(text, "p")
    assert pack is None
    assert 1 <= len(mistakes) <= MAX_MISTAKES + 1


def test_a_data_folder_that_everybody_can_write_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o777)

    async def opened() -> None:
        async with App.open(Settings(home=home, embedder=EmbedderSettings(name="hash"))):
            raise AssertionError

    with pytest.raises(ConfigError, match="chmod 700"):
        asyncio.run(opened())
    home.chmod(0o1777)
    with pytest.raises(ConfigError, match="chmod 700"):
        asyncio.run(opened())


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with one entity that has some text, closed."""
    home = tmp_path_factory.mktemp("kept") / "home"

    async def make() -> None:
        async with App.open(Settings(home=home, embedder=EmbedderSettings(name="hash"))) as app:
            await app.create("ana", store="embedded")
            async with app.memory("ana") as memory:
                for number in range(20):
                    await memory.remember(f"Ana keeps {number} bees.")
                assert await memory.settled()

    asyncio.run(make())
    return home


DAMAGE = {
    "a card": ("entity.toml", b"x = ["),
    "a journal": ("data/memory.db", b"garbage" * 3_000),
    "vectors": ("data/vectors.db", b"garbage" * 3_000),
    "a text index's list": ("data/text/episodes/meta.json", b"garbage"),
    "a text index's terms": ("data/text/episodes/*.term", b"garbage" * 40),
    "a text index's store": ("data/text/nodes/*.store", b"garbage" * 40),
    "an empty segment": ("data/text/nodes/*.idx", b""),
}


@pytest.mark.parametrize("what", DAMAGE)
async def test_health_tells_of_an_entity_that_cannot_be_opened_before_anybody_tries(
    kept: Path, tmp_path: Path, what: str
) -> None:
    home = tmp_path / "home"
    shutil.copytree(kept, home)
    home.chmod(0o700)
    pattern, garbage = DAMAGE[what]
    for file in (home / "entities" / "ana").glob(pattern):
        file.write_bytes(garbage)
    async with App.open(Settings(home=home, embedder=EmbedderSettings(name="hash"))) as app:
        condition = HealthProbe(app, Calls(app), Activity())
        [problem] = await condition.problems()
        assert problem.outage  # it is the only entity
        assert problem.entity == "ana"


async def test_health_tells_of_a_text_index_that_is_damaged_while_it_is_open(
    kept: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(kept, home)
    async with App.open(Settings(home=home, embedder=EmbedderSettings(name="hash"))) as app:
        condition = HealthProbe(app, Calls(app), Activity())
        async with app.memory("ana") as memory:
            await memory.recall("bees")
            assert await condition.problems() == []
            for file in (home / "entities" / "ana" / "data" / "text").rglob("*.term"):
                file.write_bytes(b"x" * file.stat().st_size)
            [problem] = await condition.problems()
            assert "pps reindex ana" in problem.text


@pytest.mark.parametrize("seed", range(12))
async def test_garbage_in_a_journal_is_damage_and_says_what_mends_it(
    kept: Path, tmp_path: Path, seed: int
) -> None:
    home = tmp_path / "home"
    shutil.copytree(kept, home)
    draw = random.Random(seed)  # noqa: S311 - the same each time
    graph = home / "entities" / "ana" / "data" / "memory.db"
    size = graph.stat().st_size
    with graph.open("r+b") as file:
        for _ in range(draw.choice((1, 3, 20))):
            file.seek(draw.randrange(4_096, size - 2_000))
            file.write(draw.choice((os.urandom(1_500), b"\0" * 1_500, b"x" * 64)))
    async with App.open(Settings(home=home, embedder=EmbedderSettings(name="hash"))) as app:
        try:
            async with app.memory("ana") as memory:
                await memory.recall("bees")
                await memory.ledger()
        except IsolationError as error:
            pytest.fail(f"reported as a breach: {error}")
        except NotFound:
            pass
        except StoreError as error:
            said = error.message
            remedies = ("backup", "pps rebuild ana", "pps reindex ana")
            if not any(remedy in said for remedy in remedies):
                pytest.fail(f"names no remedy: {said}")


async def test_a_journal_whose_owner_is_garbage_is_damaged_and_no_breach(
    kept: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(kept, home)
    graph = home / "entities" / "ana" / "data" / "memory.db"
    async with App.open(Settings(home=home, embedder=EmbedderSettings(name="hash"))) as app:
        group = app.registry.get("ana").entity.group.encode()
        graph.write_bytes(graph.read_bytes().replace(group, b"x" * len(group)))
        with pytest.raises(StoreError, match="restore a backup"):
            async with app.memory("ana"):
                raise AssertionError
