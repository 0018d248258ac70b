"""Plays the cases of ``cases.toml`` in a memory: what is said in any order, by any source, and what holds then.

A case is about one subject. Its keys:

* ``sources``: who finds its facts: ``agent`` (given with the text), ``rules``, ``command``, ``model``.
* ``steps``: what is said, in the order of its own times. ``i`` are the person's words, ``they`` the same of a third
  person; ``fact`` is "RELATION object", several with ";"; ``since`` and ``until`` its times, ``invalidates`` what it
  names. In place of a fact: ``ending`` or ``correction``, the fields of an ``EndingDraft`` or ``CorrectionDraft``.
* ``orders``: ``told`` where they are taken in as told only; any order otherwise.
* ``now``: the objects of the facts that hold; ``later`` those that will; ``ends``: object → first and last moment that
  its end may be; ``spans``: "object since until" of every fact.
* ``then``: what is done after, in order, and what holds then.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pps.core.text import fold
from pps.core.time import now
from pps.core.values import CorrectionDraft, EndingDraft, Fact, FactDraft, NodeDraft
from pps.ingest.support import taken_back
from pps.memory import Memory

Source = Literal["agent", "rules", "command", "model"]
Step = Mapping[str, Any]
_MOST_ORDERS = 6


@dataclass(frozen=True)
class Play:
    """One case in one order.

    Attributes:
        name: Of the subject, which no other play has.
        order: The numbers of the steps as they are taken in.
    """

    case: Mapping[str, Any]
    name: str
    order: tuple[int, ...]


def load_cases() -> list[Mapping[str, Any]]:
    text = (Path(__file__).parent / "cases.toml").read_text("utf-8")
    return tomllib.loads(text)["case"]


def plays(source: Source, most_orders: int = _MOST_ORDERS) -> list[Play]:
    """Return the cases of a source, each in all orders of its steps, at most so many."""
    found: list[Play] = []
    for case in load_cases():
        if source not in case["sources"]:
            continue
        told = tuple(range(len(case["steps"])))
        orders = [told] if case.get("orders") == "told" else itertools.permutations(told)
        for order in itertools.islice(orders, most_orders):
            found.append(Play(case, _name(len(found)), order))
    return found


async def take_in(
    memory: Memory, source: Source, played: Sequence[Play], *, together: bool
) -> dict[tuple[str, int], str]:
    """Say all that the plays say; return (subject, step) → the turn.

    Args:
        together: All in one batch, the plays one after the other; else a batch for what is said first, then next.
    """
    turns: dict[tuple[str, int], str] = {}
    rounds = [
        [(play, play.order[at]) for play in played if at < len(play.order)]
        for at in range(max(len(play.order) for play in played))
    ]
    if together:
        rounds = [[(play, step) for play in played for step in play.order]]
    for some in rounds:
        entries = [await _entry(memory, source, play, step) for play, step in some]
        appended = await memory.parts.intake.append_many(entries)
        for (play, step), one in zip(some, appended, strict=True):
            turns[play.name, step] = one.turn.uuid
        assert await memory.settled(300)
    return turns


def script(played: Sequence[Play]) -> list[dict[str, Any]]:
    """Return what a stand-in command answers to what the plays say."""
    return [
        {
            "subject": play.name,
            "relation": draft.relation,
            "object": draft.object,
            "text": draft.text,
            "said": draft.text,
            **({"valid_at": draft.valid_at.isoformat()} if draft.valid_at else {}),
        }
        for play in played
        for step in play.case["steps"]
        for draft in _facts(play, step)
    ]


async def act(
    memory: Memory, play: Play, turns: Mapping[tuple[str, int], str], what: Mapping[str, Any]
) -> None:
    """Do what a case does after all is said."""
    turn = turns.get((play.name, what.get("step", 0)), "")
    if what["do"] == "change":
        await memory.records.update(turn, content=what["text"])
    elif what["do"] == "restore":
        restorable = await memory.forgetting.list()
        await memory.forgetting.restore(restorable[0].id)
    elif what["do"] == "forget softly":
        await memory.forget([turn], dry_run=False, soft=True)
    else:
        await memory.forget([turn], dry_run=False)


async def mistakes(memory: Memory, play: Play, wanted: Mapping[str, Any]) -> list[str]:
    """Return what holds of a subject and should not, and the other way round; a line each."""
    facts = await _facts_of(memory, play.name)
    names = {
        node.uuid: node.name.replace(" ", "_")
        for node in await memory.parts.client.nodes(list({fact.object for fact in facts}))
    }
    moment = now()
    told = f"{play.case['name']} {play.order}"
    found: list[str] = []
    states = {fact.uuid: _state(fact, moment) for fact in facts}
    for state, objects in (("now", wanted["now"]), ("later", wanted.get("later", []))):
        held = sorted({names[fact.object] for fact in facts if states[fact.uuid] == state})
        if sorted(map(fold, held)) != sorted(map(fold, objects)):
            found.append(f"{told}: {state} {held}, not {sorted(objects)}")
    for name, (first, last) in wanted.get("ends", {}).items():
        ends = [fact.invalid_at for fact in facts if names[fact.object] == name]
        low, high = datetime.fromisoformat(first), datetime.fromisoformat(last)
        if not ends or not all(end and low <= end <= high for end in ends):
            found.append(f"{told}: {name} ends at {ends}, not in {first} to {last}")
    if spans := wanted.get("spans"):
        held = sorted(f"{names[fact.object]} {_span(fact)}".strip() for fact in facts)
        if held != sorted(spans):
            found.append(f"{told}: {held}, not {sorted(spans)}")
    return found


async def closing_mistakes(memory: Memory, play: Play) -> list[str]:
    """Return the facts whose end nothing explains: neither their own statement nor a closing."""
    facts = await _facts_of(memory, play.name)
    closings = await memory.parts.journal.closings.of([fact.uuid for fact in facts])
    explained = {(one.fact, one.at) for one in closings}
    own = {step.get("until") for step in play.case["steps"]} - {None}
    return [
        f"{play.case['name']} {play.order}: nothing closes {fact.text!r}"
        for fact in facts
        if fact.invalid_at
        and not own
        and (fact.uuid, fact.invalid_at) not in explained
        and "lived" not in fact.text
        and "used to" not in fact.text
    ]


async def _facts_of(memory: Memory, name: str) -> list[Fact]:
    node = (await memory.parts.journal.resolve([name])).get(name.lower())
    if node is None:
        return []
    facts = await memory.parts.client.facts_of_nodes([node], 100)
    return [
        fact
        for fact in facts
        if fact.subject == node and fact.kind == "fact" and not taken_back(fact)
    ]


def _state(fact: Fact, moment: datetime) -> str:
    if fact.invalid_at is not None and fact.expired_at is not None:
        return "past"
    if fact.invalid_at is not None and fact.invalid_at <= moment:
        return "past"
    return "later" if fact.valid_at and fact.valid_at > moment else "now"


def _span(fact: Fact) -> str:
    ends = (fact.valid_at, fact.invalid_at)
    return " ".join(end.date().isoformat() for end in ends if end is not None)


async def _entry(memory: Memory, source: Source, play: Play, number: int) -> Any:
    step = play.case["steps"][number]
    is_agent = source == "agent"
    options: dict[str, Any] = {
        "occurred_at": _moment(step["at"]),
        "session": play.name,
        "source_ref": f"{play.name} {number}",
    }
    content = step["i"]
    if source == "rules":
        options["actor"] = play.name
    elif source in ("command", "model"):
        content = f"{play.name} {step['they']}."
    if is_agent:
        options["extraction"] = "given"
        options["facts"] = list(_facts(play, step))
        options["nodes"] = list(_nodes(play, step))
    draft, payload, _ = await memory._draft(content, options)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    if ending := step.get("ending"):
        made = EndingDraft(
            subject=play.name,
            relations=tuple(ending["relations"]),
            object=ending.get("object", ""),
            text=step["i"],
            ended_at=_moment(ending.get("ended_at")),
            ended_before=_moment(ending.get("ended_before")),
        )
        payload = replace(payload, endings=(made,))
    if correction := step.get("correction"):
        payload = replace(payload, corrections=(CorrectionDraft(text=step["i"], **correction),))
    return draft, payload


def _facts(play: Play, step: Step) -> Iterator[FactDraft]:
    for fact in filter(None, step.get("fact", "").split(";")):
        relation, object_ = fact.split()
        text = "" if play.case.get("own_texts") else f"{play.name} {step['they']}."
        invalidates = step.get("invalidates", "").replace("{name}", play.name)
        yield FactDraft(
            play.name,
            relation,
            object_.replace("_", " "),
            text,
            _moment(step.get("since")),
            _moment(step.get("until")),
            (invalidates,) if invalidates else (),
        )


def _nodes(play: Play, step: Step) -> Iterator[NodeDraft]:
    for name, kind in play.case.get("kinds", {}).items():
        if name == "subject":
            yield NodeDraft(play.name, kind=kind)
        elif name in step.get("fact", ""):
            yield NodeDraft(name, kind=kind)


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None


def _name(number: int) -> str:
    """Return a name in letters: Naaa, Naab, ..."""
    letters = [chr(ord("a") + number // 26**place % 26) for place in (2, 1, 0)]
    return "N" + "".join(letters)
