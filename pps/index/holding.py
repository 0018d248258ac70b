"""A folder of an index is held by one opener at a time, in this process or in another."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout

from pps.core.errors import StoreConflict, StoreError

_LOCK = "held.lock"


class Holding:
    """The sole right to a folder; the operating system takes it back when the process dies.

    Both libraries keep state in memory that a second opener of the same files would not see: Chroma
    shares one system a path inside a process, tantivy's readers go stale.
    """

    def __init__(self, lock: FileLock) -> None:
        self._lock = lock

    @classmethod
    def take(cls, folder: Path) -> Holding:
        """Make the folder when it is absent and hold it.

        Raises:
            StoreConflict: Somebody holds it already, in this process or another.
            StoreError: The folder cannot be made or written.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / _LOCK, is_singleton=False, thread_local=False)
            lock.acquire(timeout=0)
        except Timeout:
            raise StoreConflict(f"{folder} is open already; close it there first") from None
        except OSError as error:
            raise StoreError(f"{folder} cannot be used: {error.strerror}") from error
        return cls(lock)

    def release(self) -> None:
        """Let the folder go; a second call does nothing."""
        self._lock.release()
