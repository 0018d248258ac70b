"""Attacks by the operations of features, between two throw-away entities."""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

from pps.app import App
from pps.app.features import import_target
from pps.config import Settings
from pps.core.errors import InvalidRequest, NotFound, PPSError
from pps.core.ids import EntityId
from pps.core.values import JSON
from pps.memory import Memory
from pps.models.hash import HashEmbedder
from pps.proof.arena import DIMENSION
from pps.proof.verify import Finding, Report

_NAMES = ("ana", "ana_2")
_MOST_IDS = 20
_MOST_FINDINGS = 20
_KIND = "feature"
_REFUSALS = ("", NotFound.__name__, InvalidRequest.__name__)
"""Names of the errors that an attack may end in; empty is an answer."""


class _Call(Protocol):
    @property
    def operation(self) -> str: ...

    @property
    def arguments(self) -> Mapping[str, JSON]: ...


@dataclass(slots=True)
class _Findings:
    calls: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])
    leaks: list[Finding] = field(default_factory=list[Finding])
    told_apart: list[Finding] = field(default_factory=list[Finding])
    broken: list[Finding] = field(default_factory=list[Finding])


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What a call came to: the name of its error, empty for none, and all that it says."""

    error: str
    text: str


@dataclass(frozen=True, slots=True)
class OwnAttempt:
    """An attempt on another entity's item, and on nobody's; the outcomes must be alike."""

    name: str
    of_other: CallOutcome
    of_nobody: CallOutcome


class OwnAttacks(Protocol):
    """A feature's attacks beside its operations, made with an app, the attacker and the other.

    ``Feature.attack_suite`` names the class.
    """

    def __init__(self, app: App, mine: EntityId, theirs: EntityId) -> None: ...

    async def plant(self, marks: Mapping[str, str]) -> None:
        """Give the other something that holds its mark; ``marks`` has those of both, by name."""
        ...

    async def held(self) -> str:
        """Return the feature's data of the other outside its memory; no attempt may change it."""
        ...

    async def attempts(self) -> Sequence[OwnAttempt]:
        """Run all attempts as the attacker, each with the other's items and with nobody's."""
        ...

    async def close(self) -> None:
        """End what it began."""
        ...


async def with_features(report: Report, settings: Settings) -> Report:
    """Return a report with the findings of all features' attacks, also of disabled ones."""
    began = time.perf_counter()
    async with _throw_away_app(settings) as app:
        features = [
            installed_feature.feature
            for installed_feature in app.features.installed()
            if installed_feature.feature is not None
            and (_calls(installed_feature.feature, "attacks") or _suite(installed_feature.feature))
        ]
        if not features:
            return report
        findings = await _attack(app, features)
    return replace(
        report,
        operations={**report.operations, _KIND: findings.calls},
        refused=dict(Counter(report.refused) + findings.refused),
        leaks=(*report.leaks, *findings.leaks),
        told_apart=(*report.told_apart, *findings.told_apart),
        broken=(*report.broken, *findings.broken),
        seconds=report.seconds + time.perf_counter() - began,
    )


@asynccontextmanager
async def _throw_away_app(settings: Settings) -> AsyncGenerator[App]:
    """Open an App with all features in a temporary folder, on the configured store."""
    place = await asyncio.to_thread(
        tempfile.TemporaryDirectory, prefix="verify-", dir=settings.home, ignore_cleanup_errors=True
    )
    try:
        inside = settings.model_copy(update={"home": Path(place.name) / "home"})
        async with App.open(inside, embedder=HashEmbedder(DIMENSION)) as app:
            yield app
    finally:
        await asyncio.to_thread(place.cleanup)


async def _attack(app: App, features: Sequence[Any]) -> _Findings:
    findings = _Findings()
    for name in _NAMES:
        await app.create(name, token=False)
    try:
        async with app.memory(_NAMES[0]) as mine, app.memory(_NAMES[1]) as theirs:
            marks = {memory.entity.name: secrets.token_hex(8) for memory in (mine, theirs)}
            for memory in (mine, theirs):
                mark = marks[memory.entity.name]
                await memory.remember(f"The word is {mark}.")
                await memory.settled()
                own = [turn.uuid for turn in await memory.parts.journal.recent(1)]
                for feature in features:
                    for plant in _calls(feature, "plants"):
                        outcome = await _ask(memory, feature, plant, own[0], mark)
                        if outcome.error:
                            text = f"planting failed: {outcome.error}"
                            findings.broken.append(
                                Finding(_name(feature, plant), memory.entity.name, text)
                            )
            for feature in features:
                await _attack_with(feature, mine, theirs, marks, findings)
                suite = _suite(feature)
                if suite:
                    attacks: OwnAttacks = import_target(suite)(app, mine.entity, theirs.entity)
                    await _attack_by_suite(feature, attacks, mine, theirs, marks, findings)
    finally:
        for name in _NAMES:
            await app.delete(name)
    return findings


async def _attack_with(
    feature: Any, mine: Memory, theirs: Memory, marks: Mapping[str, str], findings: _Findings
) -> None:
    before = await _held(theirs)
    own_mark = marks[mine.entity.name]
    their_mark = marks[theirs.entity.name]
    for attack in _calls(feature, "attacks"):
        name = _name(feature, attack)
        nobodys = await _ask(mine, feature, attack, str(uuid.uuid4()), own_mark)
        for id_ in before.ids:
            outcome = await _ask(mine, feature, attack, id_, own_mark)
            findings.calls += 1
            findings.refused[outcome.error or "answered"] += 1
            if their_mark in outcome.text:
                _note(findings.leaks, name, mine, "a mark planted in another entity")
            if outcome.error not in _REFUSALS:
                _note(findings.broken, name, mine, outcome.error)
            elif outcome.error != nobodys.error:
                text = "another's id had another outcome than an id of nobody"
                _note(findings.told_apart, name, mine, text)
        if await _held(theirs) != before:
            _note(findings.leaks, name, mine, "something of another entity was changed")


async def _attack_by_suite(
    feature: Any,
    attacks: OwnAttacks,
    mine: Memory,
    theirs: Memory,
    marks: Mapping[str, str],
    findings: _Findings,
) -> None:
    their_mark = marks[theirs.entity.name]
    try:
        await attacks.plant(marks)
        await theirs.settled()
        before = (await _held(theirs), await attacks.held())
        for attempt in await attacks.attempts():
            name = f"{_KIND}: {feature.name}: {attempt.name}"
            findings.calls += 1
            findings.refused[attempt.of_other.error or "answered"] += 1
            if their_mark in attempt.of_other.text:
                _note(findings.leaks, name, mine, "a mark planted in another entity")
            if attempt.of_other.error not in _REFUSALS:
                _note(findings.broken, name, mine, attempt.of_other.error)
            elif attempt.of_other != attempt.of_nobody:
                text = "what is another's had another outcome than what is nobody's"
                _note(findings.told_apart, name, mine, text)
        if (await _held(theirs), await attacks.held()) != before:
            text = "something of another entity was changed"
            _note(findings.leaks, f"{_KIND}: {feature.name}", mine, text)
    finally:
        await attacks.close()


@dataclass(frozen=True, slots=True)
class _Held:
    """What an entity holds: its ids, and every row of features' tables."""

    ids: tuple[str, ...]
    rows: tuple[str, ...]


async def _held(memory: Memory) -> _Held:
    rows = await memory.parts.journal.features.exported(("", "", ""))
    turns = [turn.uuid for turn in await memory.parts.journal.recent(3)]
    nodes = [node.uuid for node in await memory.parts.client.scan_nodes("", 3)]
    ids = [*(row.id for row in rows), *turns, *nodes][:_MOST_IDS]
    return _Held(tuple(ids), tuple(repr(row) for row in rows))


async def _ask(memory: Memory, feature: Any, call: _Call, id_: str, mark: str) -> CallOutcome:
    """Carry out a call of a feature for an entity; return its error's name and all that it says."""
    operation: Any = next(
        (operation for operation in feature.operations() if operation.name == call.operation), None
    )
    if operation is None:
        return CallOutcome("there is no such operation", "")
    filled = json.dumps(call.arguments).replace("{id}", id_).replace("{mark}", mark)
    try:
        request = operation.parse(cast("dict[str, JSON]", json.loads(filled)), memory.zone)
        answer = await operation.answer(memory, request)
    except PPSError as error:
        return CallOutcome(type(error).__name__, error.message)
    # Every other error is a finding, and the run goes on.
    except Exception as error:  # noqa: BLE001
        return CallOutcome(type(error).__name__, str(error))
    return CallOutcome("", f"{answer.data} {answer.text}")


def _calls(feature: Any, text: str) -> Sequence[_Call]:
    return getattr(feature, text, ())


def _suite(feature: Any) -> str:
    return getattr(feature, "attack_suite", "")


def _name(feature: Any, call: _Call) -> str:
    return f"{_KIND}: {feature.name}.{call.operation}"


def _note(findings: list[Finding], name: str, memory: Memory, text: str) -> None:
    if len(findings) < _MOST_FINDINGS:
        findings.append(Finding(name, memory.entity.name, text))
