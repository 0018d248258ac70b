"""The result of the last proof of isolation on this installation, in a file of the data folder."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

_NAME = "proof.json"


@dataclass(frozen=True, slots=True)
class Proof:
    """What attacks on throw-away entities came to; it holds nothing of any memory.

    Attributes:
        at: When it ended, aware.
        version: Of PPS.
        store: ``embedded``, ``sqlite`` or ``neo4j``.
        operations: How many attacks.
        leaks, told_apart, broken: How many went wrong, and how; ``ok`` when none did.
        seconds: Wall time.
    """

    at: datetime
    version: str
    store: str
    operations: int
    leaks: int
    told_apart: int
    broken: int
    seconds: float
    ok: bool


_FILE = TypeAdapter(Proof)


def read(home: Path) -> Proof | None:
    """Return the last proof; None when none was run, or its file cannot be read."""
    try:
        return _FILE.validate_json((home / _NAME).read_bytes())
    except (OSError, ValidationError):
        return None


def keep(home: Path, proof: Proof) -> None:
    """Write a proof in place of the one before, whole or not at all."""
    draft = home / f".{_NAME}"
    draft.write_bytes(_FILE.dump_json(proof))
    draft.replace(home / _NAME)
