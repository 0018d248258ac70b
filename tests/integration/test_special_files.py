"""Pipes, devices and files without end, given where a file is read: refused at once, and nobody waits meanwhile."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pps.app import App
from pps.config import Settings, load, load_prices
from pps.config.packs import pack_files
from pps.config.squad_files import load_squad
from pps.context.startup import identity_of
from pps.core import user_files
from pps.core.errors import ConfigError, InvalidRequest, PPSError, StoreError
from pps.core.time import now
from pps.core.values import JSON
from pps.entities.folder import card_of
from pps.entities.own import own_settings
from pps.entities.routing import owner as owner_router
from pps.features.calendar.calendar import Calendars
from pps.interfaces.cli.output import json_object
from pps.operations.calls import Calls, owner
from pps.recall.profiles import Profiles

_AT_ONCE_S = 60.0
"""Most that a reading takes that does not hang, on a busy machine too."""


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_folder(path: Path) -> None:
    path.mkdir()


def make_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket has at most 108 bytes
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(here)


def make_huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(5_000_000_000)


SPECIAL = (make_pipe, make_zero, make_folder, make_socket, make_huge)
Make = Callable[[Path], None]


@pytest.mark.parametrize("make", SPECIAL)
def test_no_file_of_settings_hangs_its_reader(tmp_path: Path, make: Make) -> None:
    readers: dict[str, Callable[[], object]] = {
        "pps.toml": lambda: load(env={"PPS_HOME": str(tmp_path)}),
        "prices.toml": lambda: load_prices(tmp_path),
        "packs/garden.toml": lambda: pack_files(tmp_path),
        "squads/band.toml": lambda: load_squad(tmp_path, "band"),
        "here.toml": lambda: load_squad(tmp_path, str(tmp_path / "here.toml")),
        "profiles/own.toml": lambda: Profiles.load(Settings(home=tmp_path)).get("own"),
        "entity.toml": lambda: own_settings(tmp_path),
        "card/entity.toml": lambda: card_of(tmp_path / "card"),
        "given.json": lambda: json_object("--given", str(tmp_path / "given.json")),
    }
    for name, read in readers.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        make(path)
        began = time.monotonic()
        with pytest.raises((ConfigError, StoreError, InvalidRequest), match=r"can.?not be read"):
            read()
        assert time.monotonic() - began < _AT_ONCE_S, name
        if name == "pps.toml":
            path.rmdir() if path.is_dir() else path.unlink()


def test_a_file_of_who_an_entity_is_that_is_a_pipe_says_nothing(tmp_path: Path) -> None:
    make_pipe(tmp_path / "identity.md")
    assert identity_of(tmp_path, "ana") == ""


@pytest.mark.parametrize("make", SPECIAL)
async def test_no_file_that_a_caller_names_hangs_the_server(
    app: App, tmp_path: Path, make: Make
) -> None:
    await app.create("ana", packs=["constitution"])
    calls, caller = Calls(app), owner(owner_router(), "ana")
    folder = tmp_path / "given"
    folder.mkdir()
    for name in ("a.toml", "a.csv", "a.tsv", "a.json", "a.jsonl"):
        make(folder / name)
    asked: list[tuple[str, dict[str, JSON]]] = [
        ("pack_check", {"path": str(folder / "a.toml")}),
        ("squad_create", {"name": "team", "file": str(folder / "a.toml")}),
    ]
    for name in ("a.csv", "a.tsv", "a.json", "a.jsonl"):
        paths: list[JSON] = [str(folder / name)]
        asked.append(("import", {"entity": "ana", "paths": paths, "format": "records"}))
    for operation, arguments in asked:
        async with asyncio.timeout(_AT_ONCE_S):
            with pytest.raises(PPSError) as error:
                await calls.answer(caller, operation, arguments)
        assert error.value.code in ("config", "invalid_request", "store"), (operation, error.value)


@pytest.mark.parametrize("make", SPECIAL)
async def test_a_calendar_that_is_no_file_is_a_problem_of_the_agenda(
    tmp_path: Path, make: Make
) -> None:
    make(tmp_path / "work.ics")
    calendars = Calendars.of(Settings(home=tmp_path), {"files": ["work.ics"]}, tmp_path)
    async with asyncio.timeout(_AT_ONCE_S):
        agenda = await calendars.agenda(now(), now())
    assert agenda.events == ()
    assert "work.ics" in agenda.problems[0]


def test_prose_with_many_full_stops_is_no_long_key() -> None:
    prose = "It is so. It was so. " * 200
    assert user_files.parse_toml(f'a.b = "{prose}"') == {"a": {"b": prose}}


def test_toml_that_breaks_its_parser_is_bad_toml() -> None:
    for text in (
        "a = " + "[" * 50_000,
        "a = " + "1" * 50_000,
        "a" + ".a" * 50_000 + " = 1",
        '"a b"' + ' . "a b"' * 50_000 + " = 1",
        "[a" + ".a" * 50_000 + "]",
    ):
        with pytest.raises(ValueError, match=r"."):
            user_files.parse_toml(text)


def test_nothing_of_the_package_reads_a_named_file_in_another_way() -> None:
    """Plain reads are of files of the package, of the data folder's own, and of models."""
    allowed = {
        "pps/server/link.py",
        "pps/server/spool.py",
        "pps/interfaces/http/health.py",
        "pps/interfaces/http/metrics.py",
        "pps/interfaces/http/page/assets.py",
        "pps/interfaces/mcp/bridge.py",
        "pps/interfaces/mcp/offer.py",
        "pps/operations/catalog.py",
        "pps/interfaces/cli/command_table.py",
        "pps/models/onnx.py",
        "pps/models/sentence_transformers.py",
        "pps/models/token_counts.py",
        "pps/entities/last_proof.py",
        "pps/index/text_collection.py",
        "pps/index/text_damage.py",
        "pps/index/text_index.py",
        "pps/core/file_lock.py",
    }
    root = Path(__file__).parents[2]
    reading = {
        str(path.relative_to(root))
        for path in (root / "pps").rglob("*.py")
        for line in path.read_text().splitlines()
        if (".read_text(" in line or ".read_bytes(" in line)
        and "shipped(" not in line
        and "files(" not in line
        and "Path(__file__)" not in line
    }
    shipped = {"pps/recall/floor.py", "pps/config/packs.py"}  # of what ``shipped`` returned
    assert reading - allowed - shipped <= {
        path for path in reading if "shipped(" in (root / path).read_text()
    }
