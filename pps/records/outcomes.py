"""Queries over time and outcome: what changed, what comes again, what does not fit together."""

from __future__ import annotations

import asyncio
import difflib
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import Field

from pps.config.relation_files import shipped_relations
from pps.core import time
from pps.core.errors import InvalidRequest
from pps.core.kinds import Kinds
from pps.core.record_values import Record
from pps.core.text import counted, fold
from pps.core.values import JSON, Fact
from pps.ingest.given_input import Input, Moment, described_time
from pps.ingest.record_vectors import embedding_text
from pps.records.named_query import (
    At,
    Ground,
    Limited,
    QueryAnswer,
    QueryMatch,
    QueryStep,
    Web,
    alive,
    answer,
    found,
    number,
    outcome,
    query,
    step,
    text,
)
from pps.records.reasons import leads_up

_LATELY = timedelta(days=90)
_DEADLINES = ("due_date", "deadline", "end_date")
_JUDGES = ("completion_status", "roi")
_NEGATIONS = (
    "not no never none cannot without nicht kein keine nie niemals nunca jamás ne pas jamais não "
    "non mai"
)
_NOT = frozenset(map(fold, _NEGATIONS.split()))
_OPPOSITE = 0.6
_FEATURES = 4


class VersionsInput(Input):
    """A record."""

    id: At = Field(description="What is asked about: id or title.")
    limit: int = Field(default=50, ge=1, le=500, description="Most versions, the latest of them.")


@query("evolution", VersionsInput)
async def evolution(ground: Ground, request: VersionsInput) -> QueryAnswer:
    """How a record changed over its versions: when, by whom, which fields from what to what, oldest first."""
    record = ground.web.find(request.id)
    versions = await ground.reads.versions(record.id)
    rows: list[QueryMatch] = []
    for before, version in zip([None, *versions], versions, strict=False):
        changed = changes(before, version) if before else []
        sentence = "; ".join(changed) if before else f"it was made: “{version.title}”"
        line = (
            f"version {version.version}, {version.updated_at.date()}, by "
            f"{version.actor or 'the person'}: {sentence or 'as it was'}."
        )
        rows.append(
            found(version, line, details={"version": version.version, "changed": [*changed]})
        )
    line = f"“{record.title}” has {len(versions)} versions since {versions[0].updated_at.date()}."
    return QueryAnswer("evolution", line, tuple(rows[-request.limit :]), len(rows))


class Drifts(Limited):
    """Which records, since when, and how much is much."""

    since: Annotated[
        Moment | None, described_time("Compared with what was then; 90 days ago when not given.")
    ] = None
    layers: tuple[str, ...] = Field(
        default=(), max_length=20, description="Of these layers; of any when empty."
    )
    kinds: tuple[str, ...] = Field(
        default=(), max_length=50, description="Of these kinds; of any when empty."
    )
    min_change: float = Field(
        default=0.1, ge=0, le=2, description="Least change of meaning: 1 - cosine."
    )
    limit: int = Field(default=50, ge=1, le=500, description="Most answers.")


@query("drift_alerts", Drifts)
async def drift_alerts(ground: Ground, request: Drifts) -> QueryAnswer:
    """Which records changed their meaning, status or state; the most changed first."""
    since = request.since or time.now() - _LATELY
    kinds = {*request.kinds, *ground.kinds.of_layers(request.layers)}
    if request.layers and not kinds:
        raise InvalidRequest("layers", f"no kind lies in {', '.join(request.layers)}")
    pairs: list[tuple[Record, Record]] = []
    for record in ground.web.of_kinds(*kinds, live=False):
        if record.version > 1 and record.updated_at >= since:
            versions = await ground.reads.versions(record.id)
            earlier = [it for it in versions if it.updated_at <= since]
            pairs.append((earlier[-1] if earlier else versions[0], record))
    rows: list[QueryMatch] = []
    for (before, record), change in zip(pairs, await _changed(ground, pairs), strict=True):
        moved = (before.status, before.state) != (record.status, record.state)
        if change > request.min_change or moved:
            much = f"changed by {change:.2f}" if change >= 0.005 else "means the same but changed"
            sentence = f"“{record.title}” {much} since {before.updated_at.date()}: "
            rows.append(
                found(
                    record,
                    f"{sentence}{'; '.join(changes(before, record)) or 'back to what it was'}.",
                    score=change,
                )
            )
    rows.sort(key=lambda row: (-(row.score or 0), row.id))
    sentence = (
        f"{len(rows)} of {len(pairs)} changed records mean something else, or stand otherwise, "
        f"than on {since.date()}."
    )
    return answer("drift_alerts", sentence, rows, request.limit)


class Recurring(Limited):
    """What comes again, and how often it must."""

    what: Literal["goals_failed", "decisions_paid", "strategies_paid"] = Field(
        default="goals_failed",
        description="goals_failed: goals that were abandoned or missed; decisions_paid: decisions "
        "of a roi.total above 'min_roi'; strategies_paid: strategies of whose goals half or more "
        "were reached.",
    )
    min_roi: float = Field(default=0, description="What a decision must pay more than.")
    least: int = Field(default=2, ge=2, le=100, description="Least records that have it in common.")


@query("recurring", Recurring, "Goal", "Decision", "Strategy")
async def recurring(ground: Ground, request: Recurring) -> QueryAnswer:
    """What goals that failed, or decisions and strategies that paid, have in common more than the others do."""
    return await asyncio.to_thread(_recurring, ground.web, ground.kinds, request)


class Unfitting(Limited):
    """How many."""

    limit: int = Field(default=50, ge=1, le=500, description="Most answers.")


@query("contradictions", Unfitting)
async def contradictions(ground: Ground, request: Unfitting) -> QueryAnswer:
    """What does not fit together among open facts and live records: opposite sentences, two values, dates, circles."""
    facts = await ground.facts()
    return await asyncio.to_thread(_contradictions, ground.web, facts, request.limit)


def changes(before: Record, after: Record) -> list[str]:
    """Return a phrase for each difference between two versions of a record."""
    lines: list[str] = []
    for name in ("kind", "title", "status", "state"):
        was = getattr(before, name)
        now = getattr(after, name)
        if was != now:
            lines.append(f"{name} {was or 'none'} → {now or 'none'}")
    share = _reworded(before.summary, after.summary)
    if share:
        lines.append(f"summary changed by {share:.0%} of its words")
    for name in sorted({*before.fields, *after.fields}):
        was = before.fields.get(name)
        now = after.fields.get(name)
        if was != now:
            lines.append(f"{name} {_short(was)} → {_short(now)}")
    if before.tags != after.tags:
        lines.append(f"tags {', '.join(before.tags) or 'none'} → {', '.join(after.tags) or 'none'}")
    return lines


async def _changed(ground: Ground, pairs: Sequence[tuple[Record, Record]]) -> list[float]:
    """Return how much each pair differs in meaning: 1 - cosine, or by words without a model."""
    if not pairs:
        return []
    texts: list[str] = []  # before and after of each pair in turn
    for before, after in pairs:
        texts += [_meaning(ground.kinds, before), _meaning(ground.kinds, after)]
    vectors = await ground.embed(texts)
    starts = range(0, len(texts), 2)
    if vectors is None:
        return [_reworded(texts[start], texts[start + 1]) for start in starts]
    return [max(0.0, 1 - float(np.dot(vectors[start], vectors[start + 1]))) for start in starts]


def _meaning(kinds: Kinds, record: Record) -> str:
    kind = kinds.by_name.get(record.kind)
    if kind is None:
        return f"{record.title}\n{record.summary}"
    return embedding_text(kind, record.title, record.summary, record.fields)


def _reworded(before: str, after: str) -> float:
    return 1 - difflib.SequenceMatcher(None, before.split(), after.split(), autojunk=False).ratio()


def _short(value: JSON) -> str:
    sentence = "none" if value is None else str(value)
    return sentence if len(sentence) <= 80 else f"{sentence[:79]}…"


@dataclass(frozen=True, slots=True)
class _Judged:
    """Records with a known outcome; ``hits`` are those with the outcome that is looked for."""

    web: Web
    hits: frozenset[str]
    all: tuple[Record, ...]


def _recurring(web: Web, kinds: Kinds, recurring: Recurring) -> QueryAnswer:
    judged = _judged(web, recurring)
    records_with: dict[str, set[str]] = defaultdict(set)
    for record in judged.all:
        for feature in _features(web, kinds, record):
            records_with[feature].add(record.id)
    for feature, ids in list(records_with.items()):
        if 2 * len(ids) >= len(judged.all) and feature.startswith(("—", "←")):
            records_with[f"nothing by {feature}"] = {record.id for record in judged.all} - ids
    features_of: dict[frozenset[str], list[str]] = defaultdict(list)
    for feature, ids in records_with.items():
        features_of[frozenset(ids)].append(feature)
    rows: list[QueryMatch] = []
    for ids, features in features_of.items():
        pattern = _pattern(judged, ids, sorted(features), recurring)
        if pattern is not None:
            rows.append(pattern)
    rows.sort(key=lambda row: (-(row.score or 0), row.title))
    patterns = counted(len(rows), "pattern")
    sentence = (
        f"{len(judged.hits)} of {len(judged.all)} are {recurring.what.replace('_', ' that ')}: "
        f"{patterns}."
    )
    return answer("recurring", sentence, rows, recurring.limit)


def _judged(web: Web, request: Recurring) -> _Judged:
    now = time.now()
    known: dict[str, bool] = {}
    if request.what == "decisions_paid":
        for record in web.of_kinds("Decision", live=False):
            paid = number(record, "roi", "total")
            if paid is not None:
                known[record.id] = paid > request.min_roi
    elif request.what == "goals_failed":
        for record in web.of_kinds("Goal", live=False):
            if text(record, "completion_status") or outcome(record, now):
                known[record.id] = outcome(record, now) == "bad"
    else:
        for record in web.of_kinds("Strategy", live=False):
            outcomes = [
                outcome(web.records[relation.target], now)
                for relation in web.out(record.id, "SERVES", "ALIGNS_WITH")
            ]
            judged = [end for end in outcomes if end]
            if judged:
                known[record.id] = 2 * judged.count("good") >= len(judged)
    return _Judged(
        web,
        frozenset(id_ for id_, hit in known.items() if hit),
        tuple(web.records[id_] for id_ in known),
    )


def _features(web: Web, kinds: Kinds, record: Record) -> Iterator[str]:
    """Yield features that records can share: values of enums, tags, relations and their targets."""
    kind = kinds.by_name.get(record.kind)
    for name, spec in kind.fields.items() if kind else ():
        if name in record.fields and spec.type in ("enum", "bool") and name not in _JUDGES:
            yield f"{name} = {record.fields[name]}"
    yield from (f"tag {tag}" for tag in record.tags)
    for relation, other, forward in web.steps(record.id):
        arrow = f"—{relation.type}→" if forward else f"←{relation.type}—"
        yield f"{arrow} {other.kind}"
        yield f"{arrow} “{other.title}”"


def _pattern(
    judged: _Judged, them: frozenset[str], features: list[str], request: Recurring
) -> QueryMatch | None:
    """Return what some have in common when more of them than of all are hits.

    The score is the leverage of Piatetsky-Shapiro (1991): the share of records with the feature
    that are hits, beyond what their numbers alone let one expect.
    """
    hits = them & judged.hits
    base = len(judged.hits) / max(1, len(judged.all))
    if len(hits) < request.least or len(hits) / len(them) <= base:
        return None
    rate = len(hits) / len(them)
    title = " and ".join(features[:_FEATURES])
    named = ", ".join(f"“{judged.web.records[hit].title}”" for hit in sorted(hits)[:5])
    verb = "failed" if request.what == "goals_failed" else "paid"
    sentence = (
        f"Of {len(them)} with {title}, {len(hits)} {verb} ({rate:.0%}; of all {base:.0%}): {named}."
    )
    details: dict[str, JSON] = {
        "records": [*sorted(hits)],
        "rate": round(rate, 4),
        "base": round(base, 4),
    }
    details["features"] = [*features]
    return QueryMatch(
        "",
        "pattern",
        title,
        sentence,
        (),
        round((rate - base) * len(them) / len(judged.all), 4),
        details,
    )


def _contradictions(web: Web, facts: Sequence[Fact], limit: int) -> QueryAnswer:
    rows = [
        *_two_values(facts),
        *_opposites(web, facts),
        *_same_name(web),
        *_along(web),
        *_circles(web),
    ]
    among = f"{counted(len(facts), 'open fact')} and {counted(len(web.records), 'record')}"
    sentence = f"{counted(len(rows), 'contradiction')} among {among}."
    return answer("contradictions", sentence, rows, limit)


def _two_values(facts: Sequence[Fact]) -> Iterator[QueryMatch]:
    """Yield open facts that give a thing two values in a relation of which it has one at a time."""
    held: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        if shipped_relations().is_single(fact.relation):
            held[fact.subject, fact.relation].append(fact)
    for (_, relation), them in held.items():
        for a, b in itertools.pairwise(them):
            if a.object != b.object:
                sentence = (
                    f"Both hold, though {relation} has one at a time: “{a.text}” and “{b.text}”"
                )
                yield _pair("two values", a.uuid, "fact", a.text, b.uuid, sentence)


def _opposites(web: Web, facts: Sequence[Fact]) -> Iterator[QueryMatch]:
    """Yield pairs of sentences with the same words except for a negation."""
    sentences = [(fact.uuid, "fact", fact.text, fact.text) for fact in facts]
    for record in web.of_kinds():
        texts = dict.fromkeys((record.title, record.summary, text(record, "statement")))
        sentences += [(record.id, record.kind, record.title, part) for part in texts if part]
    words = [
        frozenset(re.findall(r"[\w']+", fold(sentence[3]).replace("n't", " not")))
        for sentence in sentences
    ]
    sentences_with: dict[str, list[int]] = defaultdict(list)
    for index, own in enumerate(words):
        for word in own - _NOT:
            sentences_with[word].append(index)
    reported: set[frozenset[str]] = set()
    for index, own in enumerate(words):
        plain = own - _NOT
        if plain == own or len(plain) < 2:
            continue
        id_, kind, title, negated = sentences[index]
        candidates = {candidate for word in plain for candidate in sentences_with[word]}
        for other in sorted(candidates):
            likeness = len(plain & words[other]) / len(plain | words[other])
            other_id, _, _, stated = sentences[other]
            pair = frozenset((id_, other_id))
            if not words[other] & _NOT and likeness >= _OPPOSITE and pair not in reported:
                reported.add(pair)
                reason = f"One denies what the other says: “{negated}” and “{stated}”"
                yield _pair("opposite", id_, kind, title, other_id, reason)


def _same_name(web: Web) -> Iterator[QueryMatch]:
    """Yield live records of one kind and title that do not agree in a field."""
    named: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in web.of_kinds():
        named[record.kind, fold(record.title)].append(record)
    for them in named.values():
        for a, b in itertools.pairwise(them):
            differ = [
                field
                for field in a.fields
                if field in b.fields and a.fields[field] != b.fields[field]
            ]
            if differ:
                values = ", ".join(
                    f"{name} {_short(a.fields[name])} and {_short(b.fields[name])}"
                    for name in differ
                )
                yield _pair(
                    "same name",
                    a.id,
                    a.kind,
                    a.title,
                    b.id,
                    f"Two called “{a.title}” do not agree: {values}.",
                )


def _along(web: Web) -> Iterator[QueryMatch]:
    """Yield what does not fit to what it is for: due later, for the sake of what is over."""
    for record in web.of_kinds():
        for relation, other, forward in web.steps(record.id):
            if not leads_up(relation, record, other, forward):
                continue
            path = (step(relation, other, forward=forward),)
            own = _deadline(record)
            whole = _deadline(other)
            if own and whole and own > whole and alive(other):
                sentence = (
                    f"“{record.title}” is due {own[:10]}, after “{other.title}” that it is for "
                    f"({whole[:10]})."
                )
                yield _pair("dates", record.id, record.kind, record.title, other.id, sentence, path)
            over = other.status if not alive(other) else text(other, "completion_status")
            if over and record.state in ("", "todo", "in_progress") and outcome(record) is None:
                sentence = (
                    f"“{record.title}” is open, but what it is for, “{other.title}”, is "
                    f"{over.replace('_', ' ')}."
                )
                yield _pair("over", record.id, record.kind, record.title, other.id, sentence, path)


def _circles(web: Web) -> Iterator[QueryMatch]:
    """Yield records that wait for themselves."""
    networkx: Any = import_module(
        "networkx"
    )  # three hundred modules, which no start of a server needs
    graph = networkx.DiGraph()
    graph.add_edges_from(
        (relation.source, relation.target)
        for relation in web.graph.relations
        if relation.type == "DEPENDS_ON"
    )
    for part in cast("Iterable[set[str]]", networkx.strongly_connected_components(graph)):
        them = [web.records[id_] for id_ in sorted(part) if id_ in web.records]
        if len(them) > 1:
            sentence = (
                "They depend on each other in a circle: "
                f"{', '.join(f'“{record.title}”' for record in them)}."
            )
            yield _pair("circle", them[0].id, them[0].kind, them[0].title, them[1].id, sentence)


def _deadline(record: Record) -> str:
    return next((text(record, name) for name in _DEADLINES if text(record, name)), "")


def _pair(
    how: str,
    first: str,
    kind: str,
    title: str,
    other: str,
    sentence: str,
    path: tuple[QueryStep, ...] = (),
) -> QueryMatch:
    return QueryMatch(first, kind, title, sentence, path, None, {"how": how, "other": other})


OUTCOMES = (evolution, drift_alerts, recurring, contradictions)
