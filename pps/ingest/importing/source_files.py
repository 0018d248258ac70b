"""The files of an import: plain, below folders, and in zip files. No link is followed."""

from __future__ import annotations

import contextlib
import lzma
import os
import stat
import time
import zipfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from pps.core.errors import InvalidRequest, StoreError
from pps.core.text import shown_name
from pps.core.user_files import open_regular
from pps.ingest.importing.items import Passed, Unreadable

MAX_FILE = 4 * 1024**3
"""Most bytes that are read of one file; further bytes are reported and not read."""

MAX_MEMBERS = 20_000
"""Most files of one zip file."""
MAX_GROWTH = 100
"""Most times its own size a zip file may unpack to, beyond 64 MiB: text grows 5 to 20 times."""
_FREE_GROWTH = 64 * 1024**2


class SourceError(StoreError):
    """A file of an import cannot be read, for the reason ``why``."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")
        self.why = why


class Bytes(Protocol):
    """A file as the readers see it."""

    def read(self, size: int = -1, /) -> bytes: ...

    def readline(self, size: int = -1, /) -> bytes: ...


class Archives:
    """Keeps the last zip file open, since opening one reads the names of all its members.

    Attributes:
        stopped: The import was given up; its next read ends it.
    """

    def __init__(self) -> None:
        self.stopped = False
        self._path: Path | None = None
        self._opened: zipfile.ZipFile | None = None

    def of(self, path: Path) -> zipfile.ZipFile:
        if self._opened is None or self._path != path:
            if self._opened is not None:
                self._opened.close()
            open_regular(path).close()
            self._opened = zipfile.ZipFile(path)
            self._path = path
        return self._opened


@dataclass(slots=True)
class Source:
    """One file to read.

    Attributes:
        name: The path below the requested one, for messages.
        path: The file, or the zip file that holds it as ``member``.
        root: The requested folder (the parent of a single file); paths of notes are relative to it.
        size: Bytes, unpacked.
        given: The user named this very file, so an unknown format is an error and is not passed
            over.
        packed_at: When it was last changed, according to its zip file.
        position: Bytes read since it was last opened.
    """

    name: str
    path: Path
    root: Path
    size: int
    given: bool = False
    member: str = ""
    packed_at: datetime | None = None
    archives: Archives = field(default_factory=Archives, repr=False, compare=False)
    position: int = field(default=0)

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix.lower()

    def modified_at(self) -> datetime:
        try:
            return self.packed_at or datetime.fromtimestamp(self.path.stat().st_mtime, UTC)
        except OSError as error:
            raise SourceError(self.name, f"cannot be read ({_reason(error)})") from None

    @contextlib.contextmanager
    def opened(self) -> Generator[Bytes]:
        self.position = 0
        try:
            if self.member:
                with self.archives.of(self.path).open(self.member) as file:
                    yield _Counted(file, self)
            else:
                with open_regular(self.path, flags=os.O_NOFOLLOW) as file:
                    yield _Counted(file, self)
        except (
            OSError,
            zipfile.BadZipFile,
            zlib.error,
            lzma.LZMAError,
            NotImplementedError,
            EOFError,
        ) as error:
            raise SourceError(self.name, f"cannot be read ({_reason(error)})") from None


def find(
    paths: Sequence[Path], avoid: Path | None = None
) -> Iterator[Source | Passed | Unreadable]:
    """Yield the files at and below the paths, in order of their names; other things are reported.

    No file of the folder ``avoid`` is read, by any path to it.

    Raises:
        InvalidRequest: A path lies in ``avoid``.
    """
    kept_out = avoid.resolve() if avoid else None
    archives = Archives()
    for path in paths:
        if kept_out and path.resolve().is_relative_to(kept_out):
            raise InvalidRequest(
                "path", f"{path} belongs to an entity; what one entity has does not feed another"
            )
        if path.is_dir():
            yield from _below(path, kept_out, archives)
        elif _is_zip(path):
            yield from _packed(path, path.name, path.parent, archives)
        else:
            yield _plain(path.resolve(), path.name, path.parent, archives, given=True)


def _below(
    folder: Path, kept_out: Path | None, archives: Archives
) -> Iterator[Source | Passed | Unreadable]:
    closed: list[OSError] = []
    for here, folders, files in os.walk(folder, onerror=closed.append, followlinks=False):
        if kept_out and Path(here).resolve() == kept_out:
            folders.clear()
            yield Passed("folders of entities")
            continue
        for name in list(folders):
            if name.startswith(".") or (Path(here) / name).is_symlink():
                folders.remove(name)
                yield Passed("hidden or linked folders")
        folders.sort()
        for path in (Path(here) / name for name in sorted(files)):
            name = shown_name(path.relative_to(folder).as_posix())
            if path.name.startswith("."):
                yield Passed("hidden files")
                continue
            try:
                is_plain = stat.S_ISREG(path.lstat().st_mode)
            except OSError as error:
                yield Unreadable(name, f"cannot be read ({_reason(error)})")
                continue
            if not is_plain:
                yield Passed("links and special files")
            elif path.name.lower().endswith(".zip"):
                yield from _packed(path, name, folder, archives)
            else:
                yield _plain(path, name, folder, archives)
    for error in closed:
        yield Unreadable(shown_name(str(error.filename)), f"cannot be opened ({_reason(error)})")


def _is_zip(path: Path) -> bool:
    if path.name.lower().endswith(".zip"):
        return True
    with contextlib.suppress(OSError), open_regular(path) as file:
        return zipfile.is_zipfile(file)
    return False


def _plain(
    path: Path, name: str, root: Path, archives: Archives, *, given: bool = False
) -> Source | Unreadable:
    try:
        status = path.stat()
    except OSError as error:
        return Unreadable(name, f"cannot be read ({_reason(error)})")
    if not stat.S_ISREG(status.st_mode):
        return Unreadable(
            name, "is no plain file but a pipe, a device or a socket; copy what it gives to a file"
        )
    return Source(name, path, root, status.st_size, given, archives=archives)


def _packed(
    path: Path, name: str, root: Path, archives: Archives
) -> Iterator[Source | Passed | Unreadable]:
    try:
        members = sorted(archives.of(path).infolist(), key=lambda member: member.filename)
    except (zipfile.BadZipFile, OSError) as error:
        broken = "is no zip file, or the end of it is missing: download or copy it again"
        yield Unreadable(
            name, f"cannot be read ({_reason(error)})" if isinstance(error, OSError) else broken
        )
        return
    if len(members) > MAX_MEMBERS:
        yield Unreadable(name, f"holds over {MAX_MEMBERS:,} files; unpack it and import the folder")
        return
    unpacked = sum(member.file_size for member in members)
    if unpacked > max(_FREE_GROWTH, MAX_GROWTH * path.stat().st_size):
        yield Unreadable(
            name,
            f"unpacks to {unpacked:,} bytes, over {MAX_GROWTH} times its size, as no text does; "
            "unpack it "
            "and import the folder if it is what you want",
        )
        return
    for member in members:
        here = f"{name}!{member.filename}"
        if member.is_dir():
            continue
        if any(part.startswith((".", "__MACOSX")) for part in member.filename.split("/")):
            yield Passed("hidden files")
        elif member.flag_bits & 1:
            yield Unreadable(here, "is encrypted; unpack the zip file and import the folder")
        else:
            yield Source(
                here,
                path,
                root,
                member.file_size,
                member=member.filename,
                packed_at=_changed_at(member),
                archives=archives,
            )


def _changed_at(member: zipfile.ZipInfo) -> datetime | None:
    """Return when a member was changed, by the local time of its packing; None if unknown."""
    if member.date_time <= (1980, 1, 1, 23, 59, 59):  # the format's zero
        return None
    try:
        return datetime.fromtimestamp(time.mktime((*member.date_time, 0, 0, -1)), UTC)
    except (ValueError, OverflowError, OSError):
        return None


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
        if self._source.archives.stopped:
            raise SourceError(self._source.name, "the import was ended")
        if self._source.position > MAX_FILE:
            raise SourceError(
                self._source.name,
                f"is over {MAX_FILE // 1024**3} GiB; divide it and import the parts",
            )
        return data


def _reason(error: BaseException) -> str:
    return (
        error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    ) or type(error).__name__
