"""Facts that end because another takes their place: named by id, by their words, or by subject and relation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pps.core.ids import is_uuid
from pps.core.text import first_line, fold
from pps.core.values import Fact, Skipped, Turn
from pps.ingest.batch import Batch, TurnOutcome
from pps.ingest.support import taken_back

_NEAREST = 3
_PAIR = re.compile(r"^(.{1,500}\S)\s+([A-Z][A-Z0-9_]*)$")
_WORD = re.compile(r"[^\W_]+")


def pair_of(name: str) -> tuple[str, str] | None:
    """Return subject and relation of a name such as ``Ana LIVES_IN``; None for an id or a sentence."""
    match = _PAIR.match(name.strip())
    return (match[1], match[2]) if match else None


def close_replaced(batch: Batch, fact: Fact, replaced: Sequence[str], turn: Turn, outcome: TurnOutcome) -> None:
    """Close each fact that is named, at the moment the new one begins.

    What is named by subject and relation is what held then: where it began later than the new fact, the new one ends
    there. Nothing that is named is reported with what is nearest to it.
    """
    since = fact.valid_at or turn.occurred_at
    for name in replaced:
        olds = _named_by_pair(batch, name, fact)
        pair = bool(olds)
        olds = olds or _named(batch, name, fact)
        if not olds:
            outcome.skipped.append(Skipped("invalidates", _nothing(batch, fact, name)))
        for old in olds:
            if pair and old.valid_at is not None and old.valid_at > since:
                _end(batch, batch.fact(fact.uuid) or fact, old.valid_at)
            elif not (pair and old.episodes == (turn.uuid,)):  # what a changed text says no more is taken back
                _end(batch, old, max(since, old.valid_at) if old.valid_at else since)


def _end(batch: Batch, fact: Fact, end: datetime) -> None:
    if fact.invalid_at is None or fact.invalid_at > end:
        expired_at = batch.at if end <= batch.at else fact.expired_at
        batch.put_fact(replace(fact, invalid_at=end, expired_at=expired_at))


def _named_by_pair(batch: Batch, name: str, new: Fact) -> list[Fact]:
    """Return the facts that subject and relation stand for; a sentence may end in capitals too, and stands for none."""
    pair = pair_of(name)
    subject = batch.node_named(pair[0]) if pair else None
    mine = [one for one in _others(batch, new) if pair and (one.subject, one.relation) == (subject, pair[1])]
    return [one for one in mine if one.kind == "fact" and not taken_back(one) and one.object != new.object]


def _named(batch: Batch, name: str, new: Fact) -> list[Fact]:
    if is_uuid(name):
        return [fact for fact in _others(batch, new) if fact.uuid == name]
    wanted = _plain(name)
    return [fact for fact in _others(batch, new) if wanted in (_plain(fact.text), _plain(_joined(batch, fact)))]


def _others(batch: Batch, new: Fact) -> list[Fact]:
    return [fact for fact in {**batch.stored, **batch.facts}.values() if fact.uuid != new.uuid]


def _nothing(batch: Batch, fact: Fact, name: str) -> str:
    """Return that nothing is named so, and the open facts of the subject that come nearest."""
    wanted = set(_plain(name).split())
    latest = {**batch.stored, **batch.facts}.values()
    open_ = [one for one in latest if one.subject == fact.subject and one.kind == "fact" and one.uuid != fact.uuid]
    open_ = [one for one in open_ if one.invalid_at is None and one.expired_at is None]
    near = sorted(open_, key=lambda one: (-len(wanted & set(_plain(one.text).split())), one.uuid))[:_NEAREST]
    said = "no fact of this entity has that id, text, or subject and relation"
    if not near:
        return said
    return f"{said}; nearest: " + "; ".join(f"{first_line(one.text)!r} [{one.uuid}]" for one in near)


def _joined(batch: Batch, fact: Fact) -> str:
    ends = (batch.known.get(fact.subject), batch.known.get(fact.object))
    return " ".join((ends[0].name, fact.relation, ends[1].name)) if ends[0] and ends[1] else ""


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(fold(text)))
