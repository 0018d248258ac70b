"""Where a benchmark's data come from: JSON lines, MuSiQue's file, or notes and causes, which are shipped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks import causes, notes
from benchmarks.data import Conversation
from benchmarks.jsonl import read_folder
from benchmarks.musique import read_musique
from pps.core.errors import ConfigError, InvalidRequest

VARIABLE = "PPS_BENCH_DATA"
SHIPPED = {
    notes.NAME: notes.read_notes,
    notes.CASUAL: notes.read_casual,
    causes.NAME: causes.read_causes,
}
_NAMES = ", ".join(SHIPPED)


def data_path(given: str | None, env: Mapping[str, str]) -> Path:
    """Return the path that was given, or the environment's.

    Raises:
        ConfigError: Neither says where the data are.
    """
    found = given or env.get(VARIABLE)
    if not found:
        raise ConfigError(f"no data: give --data DIR or set {VARIABLE}; shipped are only {_NAMES}")
    return Path(found).expanduser()


def read(path: Path) -> list[Conversation]:
    """Return what lies at a path.

    Raises:
        InvalidRequest: Nothing is there, or it is not what a benchmark reads.
    """
    if shipped := SHIPPED.get(str(path)):
        return shipped()
    if path.is_dir():
        return read_folder(path)
    if path.is_file():
        return read_musique(path)
    raise InvalidRequest(
        "data",
        f"{path} is missing; it must be a folder of JSON lines, MuSiQue's file, or one of {_NAMES}",
    )
