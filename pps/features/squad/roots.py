"""Roots of a record: keyed digests of its sources, with their trust.

Without the squad's key a digest reveals nothing about the source. The digest of a source that a
member stored itself is followed by the member's own digest (``source:member``); see
``pool_rows.ends_of``.
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
from pps.journal.pool_rows import PoolCite
from pps.memory import Memory

PRIVATE = "private"
"""Tag of a record that is never shared."""
_MAX_RECORDS = 5_000
"""Most records that the walk along citations reads.

A record with more behind it gets the lowest trust.
"""
_RESTS_ON = frozenset(("BASED_ON", "SYNTHESIZES"))
"""Relations that count as a citation of the target by the source."""
_LEADS_TO = frozenset(("CONTRIBUTED_TO", "DISCOVERED", "FORMED", "PRODUCED"))
"""Relations that count as a citation of the source by the target."""
_SOURCES_WITH_OWN_IDS = frozenset(("record", "hook"))
"""Sources whose references are generated here, so that one text can have several.

Such a reference is not used as a root.
"""


@dataclass(frozen=True, slots=True)
class Grounds:
    """The sources of a record in a member's memory.

    Attributes:
        digests: Digest of a source → its trust.
        pool: Ids of the pool's records that it cites and that were not withdrawn.
        trust: The lowest trust on any path of citations: of sources, and of tags of records on the
            way; ``outside`` if a source was forgotten or withdrawn, since it can no longer be
            checked.
    """

    digests: Mapping[str, Trust]
    pool: tuple[str, ...]
    trust: Trust


async def grounds(memory: Memory, record: Record, member: str, key: bytes) -> Grounds:
    """Return the sources of a member's record, at any depth of citations.

    The relations of ``_RESTS_ON`` and ``_LEADS_TO`` count as citations. A record without any has
    its author as its only source.

    Args:
        memory: The member's own.
        record: One of the member's records.
        member: Id of the member.
        key: The squad's key.
    """
    digests: dict[str, Trust] = {}
    pool: dict[str, None] = {}
    trusts: list[Trust] = []
    visited: set[str] = set()
    level = [record]
    while level:
        visited |= {record.id for record in level}
        if len(visited) > _MAX_RECORDS:
            trusts.append("outside")
            break
        ids = [record.id for record in level]
        cites = await memory.records.cites(ids)
        related = await _related(memory, ids)
        pool_cites: dict[str, list[PoolCite]] = {}
        for id_, cited in (await memory.records.pool.cites(ids)).items():
            pool_cites[id_] = [
                cite for cite in cited if not cite.relation or cite.relation in _RESTS_ON
            ]
        for source in level:
            tagged: Trust = "outside" if WEB in source.tags else "person"
            trusts.append(tagged)
            grounded = cites.get(source.id) or related.get(source.id) or pool_cites.get(source.id)
            if not grounded:
                digests.setdefault(word_of(key, member), lowest([tagged, "agent"]))
        for cite in (cite for cited in pool_cites.values() for cite in cited):
            if cite.gone:
                trusts.append("outside")
            else:
                pool[cite.id] = None
        below = [cite for cited in cites.values() for cite in cited]
        if any(cite.gone for cite in below):
            trusts.append("outside")
        held = [cite for cite in below if not cite.gone and cite.id not in visited]
        sources, has_all = await _source_turns(
            memory, [cite.id for cite in held if cite.kind != "record"]
        )
        if not has_all:
            trusts.append("outside")
        for turn in sources:
            digest, trust = _root_of_turn(key, turn, member)
            digests[digest] = lowest([trust, digests.get(digest, trust)])
        next_ids = dict.fromkeys(cite.id for cite in held if cite.kind == "record")
        next_ids |= dict.fromkeys(
            id_ for below_ids in related.values() for id_ in below_ids if id_ not in visited
        )
        records = await memory.records.find(next_ids)
        if any(id_ not in records for id_ in next_ids):
            trusts.append("outside")
        level = [*{record.id: record for record in records.values()}.values()]
    return Grounds(digests, tuple(pool), lowest([*trusts, *digests.values()]))


async def _related(memory: Memory, ids: Sequence[str]) -> dict[str, list[str]]:
    """Return record → the member's own records that it cites by a relation."""
    related: dict[str, list[str]] = {}
    wanted = set(ids)
    for relation in await memory.records.relations(ids):
        if relation.type in _RESTS_ON and relation.source in wanted:
            related.setdefault(relation.source, []).append(relation.target)
        if relation.type in _LEADS_TO and relation.target in wanted:
            related.setdefault(relation.target, []).append(relation.source)
    return related


async def rests_on_private(memory: Memory, record: Record) -> bool:
    """Return whether a record, or a record of the member that it cites at any depth, is private."""
    seen = {record.id}
    level = [record]
    while level:
        if any(PRIVATE in each.tags for each in level):
            return True
        ids = [each.id for each in level]
        cites = await memory.records.cites(ids)
        below = {
            cite.id
            for cited in cites.values()
            for cite in cited
            if cite.kind == "record" and not cite.gone
        }
        for related_ids in (await _related(memory, ids)).values():
            below.update(related_ids)
        below -= seen
        seen |= below
        level = list((await memory.records.find(below)).values())
    return False


def word_of(key: bytes, member: str) -> str:
    """Return the root that stands for a member's own statements."""
    return _digest(key, f"member:{member}")


def confidence_of(record: Record) -> float:
    """Return a record's own confidence, 0.5 if it has none."""
    value = record.fields.get("confidence")
    return float(value) if isinstance(value, int | float) else 0.5


async def _source_turns(memory: Memory, ids: Sequence[str]) -> tuple[list[Turn], bool]:
    """Return the turns among these ids and the turns of facts, and whether all still exist."""
    turns: list[Turn] = []
    is_whole = True
    for id_ in ids:
        try:
            [item] = await memory.get([id_])
        except NotFound:
            is_whole = False
            continue
        if isinstance(item, Fact):
            sources, has_all = await _source_turns(memory, item.episodes)
            turns += sources
            is_whole = is_whole and has_all and bool(sources)
        elif isinstance(item, Turn):
            turns.append(item)
    return turns, is_whole


def _root_of_turn(key: bytes, turn: Turn, member: str) -> tuple[str, Trust]:
    """Return a turn's root and trust; an agent's own turn has the member as its root."""
    trust = trust_of(turn)
    if turn.role == "assistant" and trust == "agent":
        return word_of(key, member), trust
    ref = (
        turn.chunk.path
        if turn.chunk
        else ""
        if turn.source in _SOURCES_WITH_OWN_IDS
        else turn.source_ref
    )
    digest = _digest(key, f"ref:{ref}" if ref else f"text:{fold(turn.content)}")
    if turn.chunk or turn.source in CAPTURED:
        return digest, trust
    return f"{digest}:{word_of(key, member)}", lowest([trust, "agent"])


def _digest(key: bytes, value: str) -> str:
    return hmac.new(key, value.encode(), hashlib.sha256).hexdigest()[:32]
