"""A server whose data folder is a disk of a few MiB, and how to fill that disk.

The disk is a tmpfs. Mounting one takes rights: those of root, or a user namespace of one's own, in which the server
then runs; its files are seen through ``/proc/PID/root``. A server may end and another begin on the same disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pps.server import Link, RunFile, runfile
from tests.integration.interfaces.serving import clean_env
from tests.waiting import PATIENCE_S

SIZE_MB = 160
_IMPATIENT = {
    "PPS_JOBS__FIRST_WAIT_S": "0.1",
    "PPS_JOBS__LONGEST_WAIT_S": "1",
    "PPS_JOBS__BREAKER_FAILURES": "1",
}
_ASK = "import json, sqlite3, sys; print(json.dumps(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchall()))"
_MOUNT = 'mount -t tmpfs -o mode=0700,size="$1"m tmpfs "$2" && echo mounted && exec sleep infinity'


@dataclass
class SmallDisk:
    """A small disk that is a data folder, for as long as the process that mounted it lives.

    Attributes:
        home: The data folder, as a server on the disk sees it.
        inside: The same, as this process sees it.
        holder: The process that mounted it.
    """

    home: Path
    inside: Path
    holder: int

    @contextlib.contextmanager
    def served(self, *, end: signal.Signals = signal.SIGTERM, **more: str) -> Iterator[Link]:
        """Run a server on the disk while the block runs, and end it by a signal; yield a link to it."""
        env = clean_env(self.home, **_IMPATIENT, **more)
        command = [*_enter(self.holder), sys.executable, "-m", "pps", "serve"]
        log_file = self.home.parent / "server.log"
        with log_file.open("ab") as log:
            process = subprocess.Popen(
                command, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
            try:
                yield Link(self._run_file_of(process, log_file))
                process.send_signal(end)
                assert process.wait(PATIENCE_S) == (0 if end == signal.SIGTERM else -end)
            finally:
                process.kill()
                process.wait()

    def _run_file_of(self, process: subprocess.Popen[bytes], log_file: Path) -> RunFile:
        deadline = time.monotonic() + 60
        while (run := runfile.read(self.inside)) is None or run.pid != process.pid:
            assert process.poll() is None, log_file.read_text()[-2000:]
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return run


@contextlib.contextmanager
def small_disk(home: Path) -> Iterator[SmallDisk]:
    """Mount a small disk on a data folder while the block runs."""
    home.mkdir(mode=0o700)
    space = (
        ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    )
    command = [*space, "sh", "-c", _MOUNT, "sh", str(SIZE_MB), str(home)]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert holder.stdout
        with holder.stdout as stdout:
            assert stdout.readline() == b"mounted\n"
        yield SmallDisk(home, Path(f"/proc/{holder.pid}/root{home}"), holder.pid)
    finally:
        holder.kill()
        holder.wait()


@contextlib.contextmanager
def served_on_a_small_disk(home: Path, **more: str) -> Iterator[tuple[Link, Path]]:
    """Run a server whose data folder is a small disk of its own; yield a link to it and its view of the folder."""
    with small_disk(home) as disk, disk.served(**more) as link:
        yield link, disk.inside


def _enter(process: int) -> list[str]:
    """Return the command that runs another where a process sees its disks."""
    space = ["--mount"] if os.geteuid() == 0 else ["--user", "--preserve-credentials", "--mount"]
    return ["nsenter", "--target", str(process), *space]


def rows(server: int, file: Path, query: str) -> list[list[Any]]:
    """Return what a query finds in a database on the small disk of a server, by its process id.

    SQLite follows ``/proc/PID/root`` to where it leads, so it is asked by a program that sees the disk itself.
    """
    command = [*_enter(server), sys.executable, "-c", _ASK, str(file), query]
    return cast(
        "list[list[Any]]",
        json.loads(subprocess.run(command, capture_output=True, check=True).stdout),
    )


def fill(inside: Path, *, leave: int = 0) -> Path:
    """Leave so many bytes on the disk, none unless told; about as fast as a real disk is filled: 200 MiB/s."""
    file = inside / "filler"
    with file.open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    filler.write(b"\0" * size)
                    time.sleep(0.005 if size == 1 << 20 else 0)
    os.truncate(file, file.stat().st_size - leave)
    return file
