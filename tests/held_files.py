"""The files below a folder and what they hold, also while a server makes some of them and removes others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def paths_below(folder: Path) -> Iterator[Path]:
    """Yield every folder and file."""
    for place, folders, names in os.walk(folder):  # passes over a folder that is gone meanwhile
        yield from (Path(place, name) for name in (*folders, *names))


def files_below(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield every file with its bytes. One that is gone when it is to be read, as a rollback journal, is passed over."""
    for path in sorted(paths_below(folder)):
        try:
            content = path.read_bytes() if path.is_file() else None
        except FileNotFoundError:
            continue
        if content is not None:
            yield path, content
