"""What a person changes in an entity's ``entity.toml``: noticed by a running server, mistakes named with their line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx2
import pytest

from pps.app import App
from pps.core.errors import ConfigError, IsolationError, StoreError
from pps.core.values import JSON
from pps.entities.own import own_settings
from pps.server import spool
from tests.integration.interfaces.serving import Served, serving

_CARD = 'name = "ana"\ngroup = "g"\nstore = "embedded"\ncreated_at = "2026-01-01"\n'


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('time_zone = "Oslo"\n', r"time_zone: must be a time zone .* \(line 5\)"),
        ("pakcs = []\n", r"pakcs: unknown key, did you mean 'packs'\? \(line 5\)"),
        (
            "\n[automatic]\ntags = true\nrelationz = false\n",
            r"automatic\.relationz: unknown key, did you mean .*relations.* \(line 8\)",
        ),
        ('[extractor]\n# Off.\nmode = "rule"\n', r"extractor\.mode: .* \(line 7\)"),
        ("[extractor]\ncommand = 7\n", r"extractor\.command: .* \(line 6\)"),
        ("[calendar]\nhours = 25\n", r"calendar\.hours: must be a number of 0 to 24.* \(line 6\)"),
        ("packs = [\n", r"not valid TOML: .*line 5"),
        ("[automatic]\ntags = yes\n", r"not valid TOML: .*line 6"),
        ('name = "ben"\n', r"not valid TOML: .*line 5"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, more: str, words: str) -> None:
    (tmp_path / "entity.toml").write_text(_CARD + more, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"entity\.toml: " + words):
        own_settings(tmp_path)


async def test_an_open_memory_is_opened_anew_with_what_was_changed(app: App) -> None:
    card = (await app.create("ana", time_zone="Asia/Tokyo")).folder / "entity.toml"
    async with app.memory("ana") as memory:
        turn = (await memory.remember("Ana drinks tea.")).turn_id
        card.write_text(card.read_text().replace("Asia/Tokyo", "Europe/Lisbon"))
        async with app.memory("ana") as same:
            assert str(same.zone) == "Asia/Tokyo", "it is not closed while somebody uses it"
        assert app.waits_for_its_card(app.registry.get("ana"))
    assert str(await app.zone_of("ana")) == "Europe/Lisbon"
    async with app.memory("ana") as memory:
        assert str(memory.zone) == "Europe/Lisbon"
        assert [one.uuid for one in await memory.get([turn])] == [turn]
        again = memory
    assert not app.waits_for_its_card(app.registry.get("ana"))
    async with app.memory("ana") as memory:
        assert memory.parts is again.parts, "nothing was changed since"


async def test_a_mistake_in_a_changed_file_is_told_at_once_and_mended_without_a_restart(
    app: App,
) -> None:
    card = (await app.create("ana")).folder / "entity.toml"
    async with app.memory("ana") as memory:
        await memory.remember("Ana drinks tea.")
    good = card.read_text()
    card.write_text(good + "\ntime_zon = 1\n")
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"time_zon.*\(line \d+\)"):
            async with app.memory("ana"):
                pass
    assert "time_zon" in (await app.unopenable())["ana"]
    card.write_text("x = [")
    with pytest.raises(StoreError, match="line 1"):
        async with app.memory("ana"):
            pass
    card.write_text(good)
    async with app.memory("ana") as memory:
        assert (await memory.stats()).turns == 1


async def test_the_file_of_another_put_in_its_place_opens_nothing(app: App) -> None:
    mine = (await app.create("ana")).folder / "entity.toml"
    theirs = (await app.create("ben")).folder / "entity.toml"
    async with app.memory("ana"), app.memory("ben"):
        pass
    good = mine.read_bytes()
    shutil.copyfile(theirs, mine)
    with pytest.raises(IsolationError):
        async with app.memory("ana"):
            pass
    async with app.memory("ben") as memory:
        assert memory.entity.name == "ben"
    mine.write_bytes(good)
    async with app.memory("ana") as memory:
        assert memory.entity.name == "ana"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("cards") / "home") as served:
        yield served


def test_a_running_server_uses_the_new_zone_and_names_the_line_of_a_mistake(served: Served) -> None:
    assert served.pps("entity", "create", "ana", "--time-zone", "Asia/Tokyo").returncode == 0
    assert served.pps("remember", "ana", "Tea.", "--at", "2026-03-07T23:30Z").returncode == 0
    assert "2026-03-08 08:30" in served.pps("recall", "ana", "tea").stdout
    card = served.home / "entities" / "ana" / "entity.toml"
    good = card.read_text().replace("Asia/Tokyo", "Europe/Lisbon")
    card.write_text(good)
    assert "2026-03-07 23:30" in served.pps("recall", "ana", "tea").stdout
    card.write_text(good + "\n[automatik]\n")
    ended = served.pps("recall", "ana", "tea")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert f"{card}: automatik: unknown key" in ended.stderr
    line = card.read_text().splitlines().index("[automatik]") + 1
    assert f"(line {line})" in ended.stderr
    event = {
        "entity": "ana",
        "session": "s",
        "cwd": "/work",
        "project": "/work",
        "at": 1_780_000_000,
    }
    prompt: dict[str, JSON] = {
        **event,
        "event": "UserPromptSubmit",
        "text": "I like rye.",
        "id": f"{7:032x}",
    }
    reply: dict[str, JSON] = {**event, "event": "Stop", "text": "Noted.", "id": f"{8:032x}"}

    def sent(message: dict[str, JSON]) -> httpx2.Response:
        with served.owner() as owner:
            return owner.post("/owner/hooks", json=message)

    assert sent(prompt).json()["kept"] is False, "the hook keeps it"
    assert sent(reply).status_code == 503, "the hook keeps it"
    card.write_text(good)
    assert served.pps("recall", "ana", "tea").returncode == 0
    assert sent(prompt).json()["kept"] is True
    assert "I like rye." in served.pps("turns", "ana").stdout


async def test_an_event_of_the_spool_waits_until_the_mistake_is_mended(tmp_path: Path) -> None:
    folder = spool.spool_folder(tmp_path)
    folder.mkdir()
    for number, entity in enumerate(("ana", "ben", "ana")):
        (folder / f"{number}.json").write_text(json.dumps({"entity": entity}))
    wrong = {"ana"}
    taken: list[JSON] = []

    async def handle(message: Mapping[str, JSON], *, late: bool = False) -> dict[str, JSON]:
        assert late
        if message["entity"] in wrong:
            raise ConfigError("entity.toml: time_zone: must be a time zone (line 5)")
        taken.append(message["entity"])
        return {}

    drain = spool.SpoolDrain(tmp_path, handle)
    await drain.once()
    assert (taken, spool.look(tmp_path).waiting, spool.look(tmp_path).bad) == (["ben"], 2, 0)
    wrong.clear()
    await drain.once()
    assert (taken, spool.look(tmp_path).waiting) == (["ben", "ana", "ana"], 0)
