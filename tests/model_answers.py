"""A deterministic extractor that answers Graphiti's prompts, so that tests need no paid model.

It reads sentences such as "Ana lives in Lisbon." and knows that a person lives, and works, in one
place at a time. What is asked for is known by the answer's schema, as it is for a real model.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

_NAME = r"[^\W\d_a-z][\w'&-]*(?: [^\W\d_a-z][\w'&-]*)*|[\u4e00-\u9fff]+"
_VERBS = {
    "lives in": "LIVES_IN",
    "moved to": "LIVES_IN",
    "works at": "WORKS_AT",
    "likes": "LIKES",
    "drinks": "DRINKS",
    "knows": "KNOWS",
    "owns": "OWNS",
}
_ONE_AT_A_TIME = {"LIVES_IN", "WORKS_AT"}
_FACT = re.compile(rf"(?P<subject>{_NAME}) (?P<verb>{'|'.join(_VERBS)}) (?P<object>{_NAME})")

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a model finds.

    Attributes:
        facts: The facts in a text: subject, object, relation and fact (the sentence) of each.
        ends: Whether a new sentence ends an old one.
    """

    facts: Callable[[str], Iterable[dict[str, str]]]
    ends: Callable[[str, str], bool]


def answer(properties: Iterable[str], prompt: str, reading: Reading | None = None) -> Answer:
    """Return what a good model would say to a prompt whose answer has these top-level properties.

    Without a reading it reads the sentences that this module knows.
    """
    reading = reading or Reading(_facts, _ends)
    asked = frozenset(properties)
    for wanted, reply in _REPLIES:
        if wanted <= asked:
            return reply(prompt, reading)
    return {}


def _combined(prompt: str, reading: Reading) -> Answer:
    facts = list(reading.facts(_section(prompt, "CURRENT MESSAGES")))
    return {"extracted_entities": _entities(facts), "edges": [_edge(fact) for fact in facts]}


def _extracted_entities(prompt: str, reading: Reading) -> Answer:
    text = (
        _section(prompt, "CURRENT MESSAGE") or _section(prompt, "TEXT") or _section(prompt, "JSON")
    )
    return {"extracted_entities": _entities(list(reading.facts(text)))}


def _edges(prompt: str, reading: Reading) -> Answer:
    text = _section(prompt, "CURRENT_MESSAGE")
    when = (
        _section(prompt, "REFERENCE_TIME")
        .split("#")[0]
        .strip()
        .replace("+00:00", "Z")
        .replace(" ", "T")
    )
    return {
        "edges": [
            {**_edge(fact), "valid_at": when or None, "invalid_at": None}
            for fact in reading.facts(text)
        ]
    }


def _entity_resolutions(prompt: str, reading: Reading) -> Answer:
    existing = {
        item["name"].casefold(): item["candidate_id"]
        for item in _json(_section(prompt, "EXISTING ENTITIES"))
    }
    return {
        "entity_resolutions": [
            {
                "id": entity["id"],
                "name": entity["name"],
                "duplicate_candidate_id": existing.get(entity["name"].casefold(), -1),
            }
            for entity in _json(_section(prompt, "ENTITIES"))
        ]
    }


def _edge_duplicate(prompt: str, reading: Reading) -> Answer:
    old = ast.literal_eval(_section(prompt, "EXISTING FACTS") or "[]")
    candidates = ast.literal_eval(_section(prompt, "FACT INVALIDATION CANDIDATES") or "[]")
    new = _section(prompt, "NEW FACT")
    same = [item["idx"] for item in old if item["fact"].casefold() == new.casefold()]
    ended = [
        item["idx"]
        for item in (*old, *candidates)
        if item["idx"] not in same and reading.ends(new, item["fact"])
    ]
    return {"duplicate_facts": same, "contradicted_facts": ended}


def _timestamps(prompt: str, reading: Reading) -> Answer:
    facts = _json(_section(prompt, "FACTS"))
    return {
        "timestamps": [{"valid_at": fact["reference_time"], "invalid_at": None} for fact in facts]
    }


def _timestamp(prompt: str, reading: Reading) -> Answer:
    return {"valid_at": _section(prompt, "REFERENCE TIME") or None, "invalid_at": None}


def _summaries(prompt: str, reading: Reading) -> Answer:
    text = _section(prompt, "MESSAGES") or _section(prompt, "EPISODES")
    said = {fact["fact"]: (fact["subject"], fact["object"]) for fact in reading.facts(text)}
    entities = _json(_section(prompt, "ENTITIES"))
    about = {
        item["name"]: [fact for fact, ends in said.items() if item["name"] in ends]
        for item in entities
    }
    return {
        "summaries": [
            {"name": name, "summary": f"{'. '.join(facts)}."}
            for name, facts in about.items()
            if facts
        ]
    }


def _summary(prompt: str, reading: Reading) -> Answer:
    facts = [fact["fact"] for fact in reading.facts(prompt)]
    return {"summary": ". ".join(dict.fromkeys(facts)) or "Nothing."}


def _description(prompt: str, reading: Reading) -> Answer:
    return {"description": "What is known together."}


def _beliefs(prompt: str, reading: Reading) -> Answer:
    """Believe what each case says, in place of the belief that is held; told to, cite what was not shown."""
    records, _ = json.JSONDecoder().raw_decode(prompt, prompt.index('[{"number"'))
    cases = [one for one in records if one["type"] == "Experience"]
    old = next((one["number"] for one in records if one["type"] == "Belief"), None)
    cites = (
        [99]
        if any("number 99" in one["content"] for one in cases)
        else [one["number"] for one in cases]
    )
    said = f"Queues fill, as {len(cases)} cases show."
    belief = {
        "content": said,
        "confidence": 0.9,
        "domain": "technical",
        "cites": cites,
        "supersedes": old,
    }
    return {"beliefs": [belief]}


_REPLIES: tuple[tuple[frozenset[str], Callable[[str, Reading], Answer]], ...] = (
    (frozenset({"extracted_entities", "edges"}), _combined),
    (frozenset({"extracted_entities"}), _extracted_entities),
    (frozenset({"edges"}), _edges),
    (frozenset({"entity_resolutions"}), _entity_resolutions),
    (frozenset({"duplicate_facts"}), _edge_duplicate),
    (frozenset({"timestamps"}), _timestamps),
    (frozenset({"valid_at"}), _timestamp),
    (frozenset({"summaries"}), _summaries),
    (frozenset({"summary"}), _summary),
    (frozenset({"description"}), _description),
    (frozenset({"beliefs"}), _beliefs),
)


def _facts(text: str) -> Iterable[dict[str, str]]:
    for found in _FACT.finditer(text):
        yield {
            "subject": found["subject"],
            "object": found["object"],
            "relation": _VERBS[found["verb"]],
            "fact": found[0],
        }


def _entities(facts: Iterable[dict[str, str]]) -> list[Answer]:
    names = dict.fromkeys(name for fact in facts for name in (fact["subject"], fact["object"]))
    return [{"name": name, "entity_type_id": 0, "episode_indices": [0]} for name in names]


def _edge(fact: dict[str, str]) -> Answer:
    return {
        "source_entity_name": fact["subject"],
        "target_entity_name": fact["object"],
        "relation_type": fact["relation"],
        "fact": fact["fact"],
        "episode_indices": [0],
    }


def _ends(new: str, old: str) -> bool:
    after, before = next(iter(_facts(new)), None), next(iter(_facts(old)), None)
    if after is None or before is None or after["relation"] not in _ONE_AT_A_TIME:
        return False
    return (after["subject"], after["relation"]) == (before["subject"], before["relation"]) and (
        after["object"] != before["object"]
    )


def _section(prompt: str, tag: str) -> str:
    found = re.search(rf"<{re.escape(tag)}>\s*(.*?)\s*</{re.escape(tag)}>", prompt, re.DOTALL)
    return found[1] if found else ""


def _json(text: str) -> list[Any]:
    return json.loads(text) if text else []
