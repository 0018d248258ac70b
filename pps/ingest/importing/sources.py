"""The files of an import: plain ones, those below a folder, and those inside a zip file. Links are not followed."""

from __future__ import annotations

import contextlib
import os
import stat
import zipfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pps.core.errors import InvalidRequest, StoreError
from pps.ingest.importing.items import Passed, Unreadable

MAX_FILE = 4 * 1024**3
"""Most bytes that are read of one file; what lies behind them is reported, not read."""

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Bytes(Protocol):
    """A file as the readers see it."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most ``size`` bytes; none at the end."""
        ...

    def readline(self, size: int = -1, /) -> bytes:
        """Return the rest of a line, at most ``size`` bytes of it."""
        ...


@dataclass(slots=True)
class Source:
    """One file to read.

    Attributes:
        name: What the user is told: the path below the one that was given.
        path: The file, or the zip file that holds it.
        root: The folder that was given (the parent of a single file); paths of notes are kept below it.
        size: Bytes, unpacked.
        given: The user named this very file, so that an unknown format is an error and not one of many.
        member: Its name inside the zip file; empty for a plain file.
        position: Bytes read since it was last opened.
    """

    name: str
    path: Path
    root: Path
    size: int
    given: bool = False
    member: str = ""
    position: int = field(default=0)

    @property
    def suffix(self) -> str:
        """The ending of the name in lower case, such as ``.jsonl``."""
        return Path(self.name).suffix.lower()

    @contextlib.contextmanager
    def opened(self) -> Generator[Bytes]:
        """Open the file at its beginning; StoreError when it cannot be."""
        self.position = 0
        try:
            if self.member:
                with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as file:
                    yield _Counted(file, self)
            else:
                with os.fdopen(os.open(self.path, _OPEN), "rb") as file:
                    yield _Counted(file, self)
        except (OSError, zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError) as error:
            raise StoreError(f"{self.name}: cannot be read ({_reason(error)})") from None


def find(paths: Sequence[Path], avoid: Path | None = None) -> Iterator[Source | Passed | Unreadable]:
    """Yield the files at and below the paths, in order of their names; what is no file is said.

    Args:
        paths: Files, folders and zip files.
        avoid: A folder of which nothing is read, by whatever way it is reached.

    Raises:
        InvalidRequest: A path lies in the folder to be avoided.
    """
    kept_out = avoid.resolve() if avoid else None
    for path in paths:
        if kept_out and path.resolve().is_relative_to(kept_out):
            raise InvalidRequest("path", f"{path} belongs to an entity; what one entity has does not feed another")
        if path.is_dir():
            yield from _below(path, kept_out)
        elif zipfile.is_zipfile(path):
            yield from _packed(path, path.name, path.parent)
        else:
            yield _plain(path.resolve(), path.name, path.parent, given=True)


def _below(folder: Path, kept_out: Path | None) -> Iterator[Source | Passed | Unreadable]:
    closed: list[OSError] = []
    for here, folders, files in os.walk(folder, onerror=closed.append, followlinks=False):
        if kept_out and Path(here).resolve() == kept_out:
            folders.clear()
            yield Passed("folders of entities")
            continue
        for name in [one for one in folders if one.startswith(".") or (Path(here) / one).is_symlink()]:
            folders.remove(name)
            yield Passed("hidden or linked folders")
        folders.sort()
        for name in sorted(files):
            path = Path(here) / name
            if name.startswith("."):
                yield Passed("hidden files")
            elif not stat.S_ISREG(path.lstat().st_mode):
                yield Passed("links and special files")
            elif name.lower().endswith(".zip") and zipfile.is_zipfile(path):
                yield from _packed(path, path.relative_to(folder).as_posix(), folder)
            else:
                yield _plain(path, path.relative_to(folder).as_posix(), folder)
    for error in closed:
        yield Unreadable(str(error.filename), f"cannot be opened ({_reason(error)})")


def _plain(path: Path, name: str, root: Path, *, given: bool = False) -> Source | Unreadable:
    try:
        size = path.stat().st_size
    except OSError as error:
        return Unreadable(name, f"cannot be read ({_reason(error)})")
    return Source(name, path, root, size, given)


def _packed(path: Path, name: str, root: Path) -> Iterator[Source | Passed | Unreadable]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted(archive.infolist(), key=lambda one: one.filename)
    except (OSError, zipfile.BadZipFile) as error:
        yield Unreadable(name, f"cannot be read ({_reason(error)})")
        return
    for member in members:
        parts = member.filename.split("/")
        if member.is_dir():
            continue
        if any(part.startswith((".", "__MACOSX")) for part in parts):
            yield Passed("hidden files")
        elif member.flag_bits & 1:
            yield Unreadable(f"{name}!{member.filename}", "is encrypted; unpack the zip file and import the folder")
        else:
            yield Source(f"{name}!{member.filename}", path, root, member.file_size, member=member.filename)


class _Counted:
    """A file that says how far it was read, and is never read beyond the bound."""

    def __init__(self, file: Bytes, source: Source) -> None:
        self._file = file
        self._source = source

    def read(self, size: int = -1, /) -> bytes:
        return self._noted(self._file.read(size))

    def readline(self, size: int = -1, /) -> bytes:
        return self._noted(self._file.readline(size))

    def _noted(self, data: bytes) -> bytes:
        self._source.position += len(data)
        if self._source.position > MAX_FILE:
            raise StoreError(f"{self._source.name}: is over {MAX_FILE // 1024**3} GiB; divide it and import the parts")
        return data


def _reason(error: BaseException) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or type(error).__name__
