"""Functions over a connection as methods of a store: each runs where its kind of work belongs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from sqlite3 import Connection
from typing import Any, Concatenate, ParamSpec, TypeVar

from pps.journal.reader import Readers
from pps.journal.writer import Writer

P = ParamSpec("P")
S = TypeVar("S", bound="Store")
T = TypeVar("T")


class Store:
    """A part of one ``memory.db``. Its methods are functions of this package over a connection, made so below.

    Every method raises StoreConflict when another process keeps the file locked, StoreUnavailable
    when it is closed or the disk is full, and StoreError when the file is damaged; writes that raise
    have changed nothing. Whatever a method has returned from is on disk, and reads see every write
    that was acknowledged before they began.
    """

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run ``work``, which writes nothing, on one snapshot."""
        return await self._readers.read(work)

    async def select(self, statement: str, *values: str | int | float) -> list[Any]:
        """Return the rows of one statement."""
        return await self.read(lambda db: db.execute(statement, values).fetchall())

    async def look_up(self, work: Callable[[Connection], T], asked: int) -> T:
        """Do what ``read`` does, at once where few rows are asked for by key."""
        return await self._readers.look_up(work, asked)

    async def write(self, work: Callable[[Connection], T], *, secure: bool = False) -> T:
        """Run ``work`` in one transaction; what it raises undoes it. ``secure`` as ``Writer.write``."""
        return await self._writer.write(work, secure=secure)


def reads(work: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate[Store, P], Coroutine[Any, Any, T]]:
    """Return a function that reads as a store's method."""

    @wraps(work)
    async def method(store: Store, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store.read(lambda db: work(db, *args, **kwargs))

    return method


def looks_up(
    work: Callable[[Connection, Sequence[str]], T],
) -> Callable[[Store, Sequence[str]], Coroutine[Any, Any, T]]:
    """Return a function that reads rows by their keys as a store's method."""

    @wraps(work)
    async def method(store: Store, keys: Sequence[str]) -> T:
        return await store.look_up(lambda db: work(db, keys), len(keys))

    return method


def writes(
    work: Callable[Concatenate[Connection, P], T], *, secure: bool = False
) -> Callable[Concatenate[Store, P], Coroutine[Any, Any, T]]:
    """Return a function that writes as a store's method, one transaction a call."""

    @wraps(work)
    async def method(store: Store, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store.write(lambda db: work(db, *args, **kwargs), secure=secure)

    return method
