"""Find the server of a data folder, start one when it is away, and let an older one go."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import cast

from pps import __version__
from pps.core.errors import ConfigError, StoreConflict, StoreError, StoreUnavailable
from pps.server import lock, runfile
from pps.server.link import Link, ServerAway

_START_S = 60.0
_DRAIN_S = 60.0
_PAUSE_S = 0.03
_LOG_BYTES = 5_000_000


def connect(home: Path, *, start: bool = True) -> Link:
    """Return a link to the server of a data folder, starting one when it is away. Blocks.

    A server older than this program is asked to finish and a new one is started. Many callers at
    once start one server.

    Raises:
        StoreUnavailable: There is none and ``start`` is False, or it did not come up in time.
        StoreError: It could not start; the message quotes the end of its log.
    """
    link = find(home)
    if link is not None:
        return link
    if not start:
        raise StoreUnavailable("no server is running; `pps serve` starts one")
    with lock.file_lock(home / "start.lock", what="a starting client", wait_s=_START_S + _DRAIN_S):
        return find(home) or _start(home)


def find(home: Path) -> Link | None:
    """Return a link to the server that is running now, unless it is older than this program."""
    run = _running(home)
    if run is None:
        return None
    link = Link(run)
    try:
        status = link.status()
    except ServerAway:
        return None
    if _version(run.version) < _version(__version__):
        return None
    _check_settings(status.get("settings"))
    return link


def _check_settings(settings: object) -> None:
    """Refuse to work with a server whose settings are not those that this process's environment asks for."""
    for name, value in cast("dict[str, str]", settings).items() if isinstance(settings, dict) else ():
        if os.environ.get(name, value) != value:
            raise ConfigError(
                f"{name} is {os.environ[name]!r} here, and the running server has {value!r}: `pps serve --stop` ends "
                "it and the next command starts one with yours; or unset it"
            )


def stop(home: Path) -> runfile.RunFile | None:
    """Ask the running server to finish, and wait until it has let go of the files. Blocks.

    Returns:
        The run file of the server that was stopped; None when none was running.

    Raises:
        StoreConflict: It is still there after a minute.
    """
    run = _running(home)
    if run is not None:
        try:
            Link(run).stop()
        except ServerAway:
            run = None
    _wait_until_free(home)
    return run


def _running(home: Path) -> runfile.RunFile | None:
    """Return the run file of a server that is alive: one that was killed leaves its own, and its port to strangers."""
    run = runfile.read(home)
    return run if run is not None and lock.is_held(runfile.lock_file(home)) else None


def _start(home: Path) -> Link:
    stop(home)
    child = _Child(home)
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        link = find(home)
        if link is not None:
            return link
        if child.ended.wait(_PAUSE_S):
            raise StoreError(f"the server could not start: {_last_line(child.log)}")
    raise StoreUnavailable(f"the server did not come up within {_START_S:.0f} s; its log is {child.log}")


def _wait_until_free(home: Path) -> None:
    path = runfile.lock_file(home)
    deadline = time.monotonic() + _DRAIN_S
    while lock.is_held(path):
        if time.monotonic() > deadline:
            raise StoreConflict(f"{home} is still held by {lock.holder(path)} after {_DRAIN_S:.0f} s")
        time.sleep(_PAUSE_S)


class _Child:
    """The server process: detached, its output in ``server.log``; ``ended`` is set when it is gone."""

    def __init__(self, home: Path) -> None:
        self.log = home / "server.log"
        self.ended = threading.Event()
        if self.log.exists() and self.log.stat().st_size > _LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        self._pid = self._spawn(home)
        threading.Thread(target=self._reap, daemon=True).start()

    def _spawn(self, home: Path) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            # -P: `-m` must not import a `pps` folder that happens to lie where the caller stands.
            return os.posix_spawn(
                sys.executable,
                [sys.executable, "-P", "-m", "pps", "serve", "--auto"],
                {**os.environ, "PPS_HOME": str(home)},
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, str(self.log), flags, 0o600),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
            )
        except OSError as error:
            raise StoreError(f"the server could not be started ({error.strerror})") from None

    def _reap(self) -> None:
        os.waitpid(self._pid, 0)
        self.ended.set()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"{lines[-1].removeprefix('pps: ')} (more in {log})" if lines else f"it wrote nothing to {log}"


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
