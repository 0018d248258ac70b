"""What Chroma's files hold beyond their rows is made zero: it is memory of this process that nobody meant to save.

hnswlib saves the lengths of all rows that it has room for, and never clears that room: the bytes behind the last row
may be of any text that this process has held, a secret or another entity's words.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

_HEADER = struct.Struct("<IQQQQ")
"""Version, an offset, rows that there is room for, rows, and bytes a row in ``data_level0.bin``."""
_VERSION = 1
_LENGTH_BYTES = 4


class Blanking:
    """Watches the graphs of one Chroma folder; call it while nothing is written there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[Path, int] = {}

    def blank(self) -> None:
        """Overwrite the room behind the last row of each graph that was saved since the last call.

        Raises:
            OSError: The disk refused.
        """
        for header in self._folder.glob("*/header.bin"):
            saved = header.stat().st_mtime_ns
            if self._seen.get(header) != saved:
                for file, start in _rooms(header):
                    _overwrite(file, start)
                self._seen[header] = saved


def _rooms(header: Path) -> Iterator[tuple[Path, int]]:
    """Yield the files of a graph that have room, and where it begins; none when the header is of another format."""
    with header.open("rb") as file:
        found = file.read(_HEADER.size)
    if len(found) < _HEADER.size:
        return
    version, _, room, rows, width = _HEADER.unpack(found)
    if version == _VERSION and rows < room:
        yield header.with_name("length.bin"), rows * _LENGTH_BYTES
        yield header.with_name("data_level0.bin"), rows * width


def _overwrite(path: Path, start: int) -> None:
    """Make a file's bytes from ``start`` on zero, where they are not; its size stays."""
    with path.open("r+b") as file:
        file.seek(start)
        rest = file.read()
        if rest.strip(b"\0"):
            file.seek(start)
            file.write(bytes(len(rest)))
