"""Where a benchmark's data come from: a folder of JSON lines, MuSiQue's file, or the short notes that are shipped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.data import Conversation
from benchmarks.jsonl import read_folder
from benchmarks.musique import read_musique
from benchmarks.notes import NAME, read_notes
from pps.core.errors import ConfigError, InvalidRequest

VARIABLE = "PPS_BENCH_DATA"


def data_path(given: str | None, env: Mapping[str, str]) -> Path:
    """Return the path that was given, or the environment's.

    Raises:
        ConfigError: Neither says where the data are.
    """
    found = given or env.get(VARIABLE)
    if not found:
        raise ConfigError(f"no data: give --data DIR or set {VARIABLE}; {NAME!r} is the only data that are shipped")
    return Path(found).expanduser()


def read(path: Path) -> list[Conversation]:
    """Return what lies at a path.

    Raises:
        InvalidRequest: Nothing is there, or it is not what a benchmark reads.
    """
    if path == Path(NAME):
        return read_notes()
    if path.is_dir():
        return read_folder(path)
    if path.is_file():
        return read_musique(path)
    raise InvalidRequest("data", f"{path} is missing; it must be a folder of JSON lines, MuSiQue's file or {NAME!r}")
