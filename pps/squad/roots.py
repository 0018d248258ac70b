"""What a record rests on: digests of its sources, which tell nothing without the squad's key, and their trust.

What a member stored by itself is followed by the member's own digest (``source:member``): see ``counted``.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pps.core.errors import NotFound
from pps.core.record_values import Record
from pps.core.text import fold
from pps.core.trust import CAPTURED, WEB, Trust, lowest, trust_of
from pps.core.values import Fact, Turn
from pps.memory import Memory

_DEEPEST = 5
_MINTED = frozenset(("record", "hook"))
"""Sources whose ids are made here, so that one text has many; what a caller calls a source makes no root."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a record rests on in a member's memory: digest → trust; and which records of the pool, those that hold."""

    digests: Mapping[str, Trust]
    pool: tuple[str, ...]


async def grounds(memory: Memory, record: Record, member: str, key: bytes) -> Grounds:
    """Return what a member's record rests on, five steps deep; what cites nothing rests on its author alone."""
    digests: dict[str, Trust] = {}
    pool: dict[str, None] = {}
    seen, level = {record.id}, [record.id]
    for _ in range(_DEEPEST):
        cites, pooled = await memory.records.cites(level), await memory.records.pool.cites(level)
        of_pool = {id_: [one for one in found if not one.relation] for id_, found in pooled.items()}
        for one in level:
            if not cites.get(one) and not of_pool.get(one):
                digests.setdefault(
                    word_of(key, member), "outside" if WEB in record.tags else "agent"
                )
        pool |= dict.fromkeys(one.id for found in of_pool.values() for one in found if not one.gone)
        below = [
            cite
            for one in level
            for cite in cites.get(one, ())
            if not cite.gone and cite.id not in seen
        ]
        seen |= {cite.id for cite in below}
        for turn in await _turns(memory, [cite.id for cite in below if cite.kind != "record"]):
            digest, trust = _source(key, turn, member)
            digests[digest] = lowest([trust, digests.get(digest, trust)])
        level = [cite.id for cite in below if cite.kind == "record"]
        if not level:
            break
    return Grounds(digests, tuple(pool))


def word_of(key: bytes, member: str) -> str:
    """Return the root that a member's own word is."""
    return _digest(key, f"member:{member}")


def confidence_of(record: Record) -> float:
    """Return what a record says of its own confidence; half where it says nothing."""
    value = record.fields.get("confidence")
    return float(value) if isinstance(value, int | float) else 0.5


async def _turns(memory: Memory, ids: Sequence[str]) -> list[Turn]:
    """Return turns, and those that facts were read in."""
    turns: list[Turn] = []
    for one in ids:
        try:
            [item] = await memory.get([one])
        except NotFound:
            continue
        if isinstance(item, Fact):
            turns += await _turns(memory, item.episodes)
        elif isinstance(item, Turn):
            turns.append(item)
    return turns


def _source(key: bytes, turn: Turn, member: str) -> tuple[str, Trust]:
    """Return a turn's root and trust: what an agent said itself is its own word."""
    trust = trust_of(turn)
    if turn.role == "assistant" and trust == "agent":
        return word_of(key, member), trust
    ref = turn.chunk.path if turn.chunk else "" if turn.source in _MINTED else turn.source_ref
    digest = _digest(key, f"ref:{ref}" if ref else f"text:{fold(turn.content)}")
    if turn.chunk or turn.source in CAPTURED:
        return digest, trust
    return f"{digest}:{word_of(key, member)}", lowest([trust, "agent"])


def _digest(key: bytes, what: str) -> str:
    return hmac.new(key, what.encode(), hashlib.sha256).hexdigest()[:32]
