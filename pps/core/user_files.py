"""Opening a file that a user names or edits: a pack, records, a calendar, settings.

A pipe, a device or a file without end must neither hang its reader nor fill the memory: only
regular files are read, and never more than a bound. Callers on the event loop read in a thread.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any, BinaryIO

MAX_SETTINGS_BYTES = 1024 * 1024
"""Of a TOML file that a person writes by hand."""
_MAX_KEY_PARTS = 64
_KEY_PART = r"""(?:"[^"\n]*+"|'[^'\n]*+'|[^\s.=#\[\]"']++)[ \t]*+\."""
_LONG_KEY = re.compile(rf"""(?<![^\s.=#\[\]"'])(?:{_KEY_PART}[ \t]*+){{{_MAX_KEY_PARTS - 1}}}""")
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NestedTooDeeply(tomllib.TOMLDecodeError):
    """TOML has more lists or tables within each other than can be read."""


def open_regular(path: Path | str, *, flags: int = 0, dir_fd: int | None = None) -> BinaryIO:
    """Open a regular file to read its bytes.

    Args:
        path: The file; links are followed unless ``flags`` has ``os.O_NOFOLLOW``.
        flags: More flags of ``os.open``.
        dir_fd: The folder that a relative path begins at.

    Raises:
        OSError: It cannot be opened, or is a folder, a pipe, a socket or a device (``EINVAL``).
    """
    try:
        descriptor = os.open(path, _FLAGS | flags, dir_fd=dir_fd)
    except ValueError as error:  # NUL, or a lone surrogate
        raise OSError(errno.EINVAL, "is no path") from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"is {_kind(mode)}, no plain file")
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path | str, max_bytes: int) -> bytes:
    """Return a regular file's bytes.

    Raises:
        OSError: As ``open_regular``, or it has more than ``max_bytes`` (``EFBIG``).
    """
    with open_regular(path) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(errno.EFBIG, f"has more than {max_bytes:,} bytes")
    return data


def read_text(
    path: Path | str, max_bytes: int = MAX_SETTINGS_BYTES, encoding: str = "utf-8"
) -> str:
    """Return a regular file's text, each line break a line feed.

    Raises OSError and UnicodeDecodeError.
    """
    text = read_regular(path, max_bytes).decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_toml(text: str) -> dict[str, Any]:
    """Return what TOML says.

    TOMLDecodeError also where it is nested too deeply or a number is too long.

    A key of very many parts is refused before it is parsed: the parser takes time by their number
    squared.
    """
    if _LONG_KEY.search(text):
        raise tomllib.TOMLDecodeError(f"a key has {_MAX_KEY_PARTS} parts or more")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise NestedTooDeeply("has too many lists or tables within each other") from None
    except ValueError as error:
        raise tomllib.TOMLDecodeError(str(error)) from None


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "something else")
