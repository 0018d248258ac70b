"""Example flows of a squad as data: members' calls of tools, played against any implementation."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from pps.config import shipped

Asking: TypeAlias = Callable[[str, str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Member, tool and arguments → the tool's structured answer."""


@dataclass(frozen=True, slots=True)
class FlowStep:
    """One step of a flow, as ``config/sample/squad/flows.toml`` describes it."""

    who: str
    does: str
    tool: str
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    name: str = ""
    sees: tuple[str, ...] = ()
    state: str = ""


@dataclass(frozen=True, slots=True)
class Played:
    """A step that was played.

    Attributes:
        answer: The tool's structured answer.
        missing: Expected ids that are not in the answer, and the expected state if it is another.
    """

    step: FlowStep
    answer: Mapping[str, Any]
    missing: tuple[str, ...]


def flow(name: str) -> list[FlowStep]:
    """Return the steps of a shipped flow, ``first`` or ``second``."""
    text = shipped("config/sample/squad/flows.toml").read_text("utf-8")
    renamed = {"with": "given", "as": "name"}
    steps: list[FlowStep] = []
    for row in cast("Sequence[Mapping[str, Any]]", tomllib.loads(text)[name]):
        fields = {renamed.get(key, key): value for key, value in row.items()}
        steps.append(FlowStep(**fields))
    return steps


async def play(
    steps: Sequence[FlowStep], ask: Asking, known: dict[str, Mapping[str, Any]]
) -> AsyncIterator[Played]:
    """Play steps in order, and acknowledge each inbox that is read.

    Args:
        steps: As ``flow`` returns them.
        ask: Calls a tool.
        known: Name → answer; the answers of named steps are added.
    """
    for step in steps:
        answer = await ask(step.who, step.tool, _filled(step.given, known))
        if step.name:
            known[step.name] = answer
        if step.tool == "squad_inbox" and answer["deliveries"]:
            await ask(
                step.who,
                "squad_ack",
                {"seqs": [delivery["seq"] for delivery in answer["deliveries"]]},
            )
        ids = _ids(answer)
        missing = [see for see in step.sees if _filled(see, known) not in ids]
        missing += [step.state] if step.state and answer["state"] != step.state else []
        yield Played(step, answer, tuple(missing))


def _filled(value: Any, known: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return arguments with each ``$name.path`` replaced by that part of an earlier answer."""
    if isinstance(value, Mapping):
        return {key: _filled(item, known) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_filled(item, known) for item in cast("Sequence[Any]", value)]
    if isinstance(value, str) and value.startswith("$"):
        part: Any = known
        for key in value[1:].split("."):
            part = part[int(key)] if key.isdigit() else part[key]
        return part
    return value


def _ids(answer: Any) -> set[str]:
    if isinstance(answer, Mapping):
        own = {str(id_) for key, id_ in cast("Mapping[str, Any]", answer).items() if key == "id"}
        return own.union(*map(_ids, cast("Mapping[str, Any]", answer).values()))
    if isinstance(answer, Sequence) and not isinstance(answer, str):
        return set[str]().union(*map(_ids, cast("Sequence[Any]", answer)))
    return set()
