"""A server whose data folder is a disk of a few MiB, and how to fill that disk.

The disk is a tmpfs. Mounting one takes rights: those of root, or a user namespace of one's own, in which the server
then runs; its files are seen through ``/proc/PID/root``.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from pps.server import Link, runfile
from tests.integration.interfaces.serving import clean_env

SIZE_MB = 160
_IMPATIENT = {
    "PPS_JOBS__FIRST_WAIT_S": "0.1",
    "PPS_JOBS__LONGEST_WAIT_S": "1",
    "PPS_JOBS__BREAKER_FAILURES": "1",
}
_ASK = "import json, sqlite3, sys; print(json.dumps(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchall()))"
_MOUNT = 'mount -t tmpfs -o mode=0700,size="$1"m tmpfs "$2" && exec "$3" -m pps serve'


@contextlib.contextmanager
def served_on_a_small_disk(home: Path, **more: str) -> Iterator[tuple[Link, Path]]:
    """Run a server whose data folder is a small disk of its own; yield a link to it and its view of the folder."""
    home.mkdir(mode=0o700)
    env = clean_env(home, **_IMPATIENT, **more)
    space = (
        ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    )
    command = [*space, "sh", "-c", _MOUNT, "sh", str(SIZE_MB), str(home), sys.executable]
    with (home.parent / "server.log").open("ab") as log:
        process = subprocess.Popen(
            command, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
        inside = Path(f"/proc/{process.pid}/root{home}")
        try:
            deadline = time.monotonic() + 60
            while (run := runfile.read(inside)) is None:
                assert process.poll() is None, (home.parent / "server.log").read_text()[-2000:]
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield Link(run), inside
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait()


def rows(server: int, file: Path, query: str) -> list[list[Any]]:
    """Return what a query finds in a database on the small disk of a server, by its process id.

    SQLite follows ``/proc/PID/root`` to where it leads, so it is asked by a program that sees the disk itself.
    """
    space = ["--mount"] if os.geteuid() == 0 else ["--user", "--preserve-credentials", "--mount"]
    command = [
        "nsenter",
        "--target",
        str(server),
        *space,
        sys.executable,
        "-c",
        _ASK,
        str(file),
        query,
    ]
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
