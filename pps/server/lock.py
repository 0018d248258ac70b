"""A lock on a file that dies with its process, and names who holds it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Generator
from pathlib import Path

from pps.core.errors import StoreConflict, StoreError

_PAUSE_S = 0.05


@contextlib.contextmanager
def file_lock(path: Path, *, what: str, wait_s: float = 0.0) -> Generator[None]:
    """Hold an exclusive lock while the block runs. Blocks; the kernel lets go when the process dies.

    Args:
        path: The lock's own file, made with mode 0600; it stays behind.
        what: How others are told of the holder, such as ``pps serve``.
        wait_s: How long to wait for another holder.

    Raises:
        StoreConflict: Somebody else holds it; the message names them.
        StoreError: The file cannot be made: no permission, a read-only or a full disk.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _not_ours(path, error) from None
    try:
        _acquire(descriptor, path, wait_s)
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "what": what}).encode(), 0)
        except OSError as error:
            raise _not_ours(path, error) from None
        yield
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Tell whether a process holds the lock at this moment; StoreError when the file cannot be opened."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _not_ours(path, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # two who look do not take each other for a holder
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def holder(path: Path) -> str:
    """Return who wrote the lock last, such as ``pps serve (process 123)``."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return f"{said['what']} (process {said['pid']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _not_ours(path: Path, error: OSError) -> StoreError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "free some space" if full else "make it yours, or set PPS_HOME to another folder"
    return StoreError(f"{path}: cannot be written ({error.strerror}); {remedy}")


def _acquire(descriptor: int, path: Path, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StoreConflict(f"{path.parent} is held by {holder(path)}") from None
            time.sleep(_PAUSE_S)
        else:
            return
