"""The one lock on files: held by one opener, in this process or another.

It names its holder and dies with it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pps.core.errors import StoreConflict, StoreUnavailable

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_PAUSE_S = 0.05


class FileLock:
    """An exclusive lock on a file of its own, made with mode 0600, which stays behind.

    Taking it blocks.

    Two locks of one path exclude each other also within a process. Any thread may release it.
    """

    def __init__(
        self,
        path: Path,
        *,
        what: str = "",
        whose: str = "",
        wait_s: float = 0.0,
        in_new_folder: bool = False,
    ) -> None:
        """Name what is to be locked; nothing is held yet.

        Args:
            path: The lock's file; its folder must be there, unless ``in_new_folder`` makes it.
            what: How others are told of the holder, such as ``pps serve``; its process is named in
                any case.
            whose: What the lock is about, for the refusal; the file's folder when empty.
            wait_s: How long to wait for another holder.
            in_new_folder: Make the folder; it is made for a program that says ``what`` it is in any
                case.
        """
        from filelock import (
            FileLock as Lock,  # not at the top: 80 ms, and only looking needs none of it
        )

        self.path = path
        self._what = what
        self._whose = whose or str(path.parent)
        self._wait_s = wait_s
        self._in_new_folder = in_new_folder or bool(what)
        self._lock = Lock(path, mode=0o600, thread_local=False, is_singleton=False)

    def acquire(self) -> Self:
        """Take the lock.

        Raises:
            StoreConflict: Somebody else holds it; the message names them.
            StoreUnavailable: The file cannot be made: no permission, a read-only or a full disk.
        """
        from filelock import Timeout

        try:
            if self._in_new_folder:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.parent.stat()  # filelock would make it
            self._lock.acquire(timeout=self._wait_s, poll_interval=_PAUSE_S)
        except Timeout:
            raise StoreConflict(f"{self._whose} is held by {holder(self.path)}") from None
        except OSError as error:
            raise _unwritable(self.path, error) from None
        try:
            self._write_holder()
        except OSError as error:
            if self._what:  # a server's lock must name its holder; others go on with a full disk
                self.release()
                raise _unwritable(self.path, error) from None
        return self

    def _write_holder(self) -> None:
        """Write the lock's holder over the last one, which works on a full disk too."""
        text = json.dumps({"pid": os.getpid(), "what": self._what}).encode()
        with self.path.open("r+b") as file:
            file.write(text)
            file.truncate()

    def release(self) -> None:
        """Let go; a second call does nothing."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def is_held(path: Path) -> bool:
    """Tell whether a process holds the lock at this moment.

    StoreUnavailable when the file cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        fcntl.flock(
            descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB
        )  # two who look do not take each other for a holder
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def holder(path: Path) -> str:
    """Return who wrote the lock last, such as ``pps serve (process 123)``."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        process = f"process {content['pid']}"
        return f"{content['what']} ({process})" if content["what"] else process
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _unwritable(path: Path, error: OSError) -> StoreUnavailable:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "free some space" if full else "make it yours, or set PPS_HOME to another folder"
    return StoreUnavailable(f"{path}: cannot be written ({error.strerror}); {remedy}")
