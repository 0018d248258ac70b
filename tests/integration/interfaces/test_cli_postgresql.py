"""A memory on PostgreSQL by the command line, from the first command to the last row."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from pps.server import connect, runfile
from tests.integration.interfaces.serving import Served, clean_env
from tests.postgresql_server import (
    PostgresqlServer,
    running_postgresql,
    start_postgresql,
    stop_postgresql,
)
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.postgresql

WORD = "zanzibarine"


class Shell:
    """Commands in a data folder."""

    def __init__(self, home: Path, **environment: str) -> None:
        self._env = clean_env(home, **environment)

    def run(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "pps", *words],
            capture_output=True,
            text=True,
            env=self._env,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


def rows_of(server: PostgresqlServer, group: str) -> list[str]:
    return asyncio.run(server.rows_with(group))


def test_a_memory_is_made_used_forgotten_in_and_deleted(
    tmp_path: Path, postgresql_server: PostgresqlServer
) -> None:
    home = tmp_path / "home"
    shell = Shell(
        home,
        PPS_STORE="postgresql",
        PPS_POSTGRESQL__URL=postgresql_server.url,
        PPS_POSTGRESQL__OWNER_URL=postgresql_server.owner_url,
    )
    try:
        assert "(postgresql)" in shell.run("entity", "create", "ana")
        shell.run("remember", "ana", "I live in Rome since 2020.")
        shell.run("remember", "ana", f"My sister Klara is the {WORD} of Oslo.")
        assert not (home / "entities" / "ana" / "data" / "memory.db").exists()
        card = (home / "entities" / "ana" / "entity.toml").read_text()
        group = re.search(r"ent_[a-z0-9]{26}", card)
        assert group is not None
        shown = shell.run("recall", "ana", "where do I live")
        assert "Rome" in shown
        assert "ana" in shell.run("status")
        shell.run("stop")
        found = json.loads(shell.run("recall", "ana", WORD, "--json"))
        turn = found["channels"]["episodes"]["hits"][0]["id"]
        assert asyncio.run(postgresql_server.rows_with(WORD, group[0]))
        shell.run("forget", "ana", turn, "--yes")
        assert asyncio.run(postgresql_server.rows_with(WORD, group[0])) == []
        assert "Rome" in shell.run("recall", "ana", "where do I live")
        doctor = shell.run("doctor", "ana", code=0)
        assert "the same ids" in doctor
        assert rows_of(postgresql_server, group[0])
        shell.run("entity", "delete", "ana", "--yes")
        assert rows_of(postgresql_server, group[0]) == []
        assert not (home / "entities" / "ana").exists()
    finally:
        shell.run("stop")


def test_a_running_server_serves_a_moved_memory_and_is_ready_while_postgresql_answers(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    with running_postgresql() as server:
        shell = Shell(
            home, PPS_POSTGRESQL__URL=server.url, PPS_POSTGRESQL__OWNER_URL=server.owner_url
        )
        try:
            shell.run("entity", "create", "ana")
            shell.run("remember", "ana", f"My sister Klara is the {WORD} of Oslo.")
            link = connect(home, start=False)
            pid = link.status()["pid"]
            moved = json.loads(shell.run("move", "ana", "--to", "postgresql", "--json"))
            assert (moved["state"], moved["store"]) == ("moved", "postgresql")
            assert moved["kept"].endswith("memory.db")
            assert WORD in shell.run("recall", "ana", WORD)
            assert "keeps this memory as it was before its move" in shell.run("doctor", "ana")
            shell.run("remember", "ana", "Klara moved to Rome.")
            assert link.status()["pid"] == pid
            assert "is erased" in shell.run("move", "ana", "--drop-source")
            assert not (home / "entities" / "ana" / "data" / "memory.db").exists()
            assert "nothing to do" in shell.run("move", "ana", "--to", "postgresql")
            assert "say where to, or drop_source" in shell.run("move", "ana", code=2)
            run = runfile.read(home)
            assert run is not None
            ready = f"{run.url}/ready"
            assert httpx.get(ready, trust_env=False, timeout=PATIENCE_S).status_code == 200
            stop_postgresql(server.folder)
            wait_until(
                lambda: httpx.get(ready, trust_env=False, timeout=PATIENCE_S).status_code == 503
            )
            with Served(home, {}, run).owner() as owner:
                assert "postgresql" in owner.get("/ready").json()["failing"]
            start_postgresql(server.folder)
            wait_until(
                lambda: httpx.get(ready, trust_env=False, timeout=PATIENCE_S).status_code == 200
            )
            assert "Rome" in shell.run("recall", "ana", "where is Klara")
        finally:
            shell.run("stop")


def test_what_is_missing_or_wrong_is_said_with_its_setting(
    tmp_path: Path, postgresql_server: PostgresqlServer
) -> None:
    url = postgresql_server.url
    wrong = {
        "postgresql.url: is empty": {},
        "row-level security would not bind it": {
            "PPS_POSTGRESQL__URL": postgresql_server.superuser_url
        },
        "cannot be used": {"PPS_POSTGRESQL__URL": url.replace("/pps?", "/nowhere?")},
        "must be postgresql://": {"PPS_POSTGRESQL__URL": "postgresql://x@[::1/pps"},
    }
    for number, (said, environment) in enumerate(wrong.items()):
        home = tmp_path / str(number)
        shell = Shell(home, PPS_STORE="postgresql", **environment)
        try:
            answer = shell.run("entity", "create", "ana", code=4 if said == "cannot be used" else 2)
            assert said in answer
            assert postgresql_server.superuser_url.split(":")[2].split("@")[0] not in answer
        finally:
            shell.run("stop")
