"""scripts/postgresql as a person uses it: what it says, what it keeps, what it leaves alone."""

from __future__ import annotations

import json
import os
import pwd
import stat
from pathlib import Path

import psutil
import pytest

from tests.postgresql_server import postgresql_folder, postgresql_script

pytestmark = pytest.mark.postgresql


def test_help_teaches_every_command() -> None:
    answer = postgresql_script("--help")
    assert answer.returncode == 0
    for word in (
        "start",
        "stop",
        "status",
        "--port",
        "--data",
        "apt-get install postgresql",
        "pps_owner",
    ):
        assert word in answer.stdout


def test_status_and_stop_of_a_folder_without_a_server(tmp_path: Path) -> None:
    status = postgresql_script("status", "--data", str(tmp_path))
    assert status.returncode == 3
    assert f"start it: scripts/postgresql start --data {tmp_path}" in status.stdout
    stop = postgresql_script("stop", "--data", str(tmp_path))
    assert (stop.returncode, stop.stdout.strip()) == (
        0,
        f"postgresql: not running (folder {tmp_path})",
    )
    assert not list(tmp_path.iterdir())


def test_a_process_that_is_not_the_server_is_left_alone(tmp_path: Path) -> None:
    """Process ids are used again: a file that names ours must not get us stopped."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "postmaster.pid").write_text(f"{os.getpid()}\n{tmp_path / 'elsewhere'}\n0\n5432\n")
    assert postgresql_script("status", "--data", str(tmp_path)).returncode == 3
    assert postgresql_script("stop", "--data", str(tmp_path)).returncode == 0


def test_missing_binaries_are_named_with_the_remedy(tmp_path: Path) -> None:
    answer = postgresql_script(
        "start", "--data", str(tmp_path / "x"), PPS_POSTGRESQL_BIN=str(tmp_path)
    )
    assert answer.returncode == 1
    assert "needs PostgreSQL 15 or newer, and none was found" in answer.stderr
    assert "apt-get install postgresql" in answer.stderr


def test_a_server_is_started_once_keeps_to_its_folder_and_is_stopped() -> None:
    with postgresql_folder() as folder:
        words = ("--data", str(folder), "--json")
        try:
            started = postgresql_script("start", *words, "--with-pid", str(os.getpid()))
            assert started.returncode == 0, started.stderr
            facts = json.loads(started.stdout)
            assert facts["url"].startswith("postgresql://pps:")
            assert facts["owner_url"].startswith("postgresql://pps_owner:")
            number = int((folder / "data" / "postmaster.pid").read_text().split()[0])
            process = psutil.Process(number)
            assert process.username() != "root"
            assert process.net_connections("inet") == []  # a socket in its folder alone
            for name in ("data", "socket"):
                status = (folder / name).stat()
                assert stat.S_IMODE(status.st_mode) == 0o700
                assert pwd.getpwuid(status.st_uid).pw_name == process.username()
            assert stat.S_IMODE((folder / "passwords.json").stat().st_mode) == 0o600
            again = postgresql_script("start", *words)
            assert json.loads(again.stdout) == facts
            assert postgresql_script("status", *words).returncode == 0
            plain = postgresql_script("status", "--data", str(folder))
            password = facts["url"].split(":")[2].split("@")[0]
            assert password not in plain.stdout + plain.stderr
            settings = folder / "settings.toml"
            assert stat.S_IMODE(settings.stat().st_mode) == 0o600
            assert password in settings.read_text()
        finally:
            stopped = postgresql_script("stop", *words)
        assert stopped.returncode == 0
        assert postgresql_script("status", *words).returncode == 3
        # Its parent is gone: where nothing takes its exit code, it stays in the table as ended.
        assert not psutil.pid_exists(number) or psutil.Process(number).status() == "zombie"
