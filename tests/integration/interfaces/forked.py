"""``pps`` in a process of its own that need not import it: forked from one that has, with all else as in a fresh one.

Arguments, environment, streams, signals and exit code are those of ``python -m pps``; most of the time of a start is
its imports. What is said of a start itself (how long it takes, what it imports, what it writes) is tested on real ones.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd
from typing import IO, Any

_SET_BY_IMPORTS = ("GRAPHITI_TELEMETRY_ENABLED", "OPENBLAS_NUM_THREADS")
_PATIENCE_S = 250
"""How long a command may take on a machine that does much else."""


def start(
    arguments: Sequence[str], env: dict[str, str], stdin: IO[Any], stdout: IO[Any], stderr: IO[Any]
) -> BaseProcess:
    """Start ``pps`` with these arguments; it ends with this process at the latest."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.integration.interfaces.preloaded"])
    child = context.Process(
        target=_run, args=(list(arguments), env, _Streams(stdin, stdout, stderr)), daemon=True
    )
    child.start()
    return child


def run(
    arguments: Sequence[str], env: dict[str, str], given: str
) -> subprocess.CompletedProcess[str]:
    """Run ``pps`` to its end, and return its exit code and what it wrote."""
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        stdin.write(given.encode())
        stdin.seek(0)
        child = start(arguments, env, stdin, stdout, stderr)
        child.join(_PATIENCE_S)
        if child.exitcode is None:
            child.kill()
            raise subprocess.TimeoutExpired(["pps", *arguments], _PATIENCE_S)
        written: list[str] = []
        for stream in (stdout, stderr):
            stream.seek(0)
            written.append(stream.read().decode())
        return subprocess.CompletedProcess(["pps", *arguments], child.exitcode, *written)


class _Streams:
    """Three open files, for a child to have as its own; what is handed over when it is started."""

    def __init__(self, *files: IO[Any]) -> None:
        self._files = files

    def __reduce__(self) -> tuple[Any, ...]:
        return _Received, tuple(DupFd(file.fileno()) for file in self._files)


class _Received:
    def __init__(self, *duplicates: Any) -> None:
        self._duplicates = duplicates

    def take(self) -> None:
        """Make them this process's stdin, stdout and stderr."""
        for at, duplicate in enumerate(self._duplicates):
            found = duplicate.detach()
            os.dup2(found, at)
            os.close(found)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - a descriptor, for all of its life
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as above
        sys.stderr = open(  # noqa: SIM115
            2, "w", encoding="utf-8", closefd=False, errors="backslashreplace", buffering=1
        )


def _run(arguments: list[str], env: dict[str, str], streams: _Received) -> None:
    streams.take()
    kept = {name: os.environ[name] for name in _SET_BY_IMPORTS if name in os.environ}
    os.environ.clear()
    os.environ.update(kept | env)
    tempfile.tempdir = None  # known from the parent's environment
    sys.argv = ["pps", *arguments]
    from pps.__main__ import main

    main()
