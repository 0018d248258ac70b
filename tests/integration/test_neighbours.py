"""A turn is found by its neighbours' words: they are indexed anew whenever one is said, changed or forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pps.core.values import FactDraft
from pps.memory import Memory
from pps.models.protocols import Vector
from tests.integration.recall_scene import ask, sources

SAID = ("walnut", "lantern", "saffron", "granite", "velvet", "mercury", "juniper")
"""One word a turn, in the order in which they are said."""
ELSEWHERE = "tundra"
"""Said in the midst of it, in another session."""


@dataclass(frozen=True, slots=True)
class Windows:
    """What the windows' index holds: turns' words by each word that finds them, and a vector a turn."""

    found: Mapping[str, set[str]]
    vectors: Mapping[str, Vector]


async def say(memory: Memory, word: str, session: str = "s") -> str:
    return (await memory.remember(f"{word}!", session=session, source_ref=word)).turn_id


async def talk(memory: Memory) -> dict[str, str]:
    """Say every word, a turn each, one after the other is indexed; return word → turn."""
    turns: dict[str, str] = {}
    for word in SAID:
        turns[word] = await say(memory, word)
        if word == "saffron":
            turns[ELSEWHERE] = await say(memory, ELSEWHERE, "other")
    return turns


async def windows(memory: Memory, turns: Mapping[str, str], *others: str) -> Windows:
    """Return the state of the windows, by the words of turns and by other words that may find one."""
    indexes, word_of = sources(memory).indexes, {turn: word for word, turn in turns.items()}
    found: dict[str, set[str]] = {}
    for word in (*turns, *others):
        found[word] = {word_of[hit.owner] for hit in await indexes.text_search("windows", word, 20)}
        near = await ask(memory, word).vector_matches("windows", 20)
        assert {one.id for one in near} == set(turns.values()), (
            word
        )  # of meaning every turn has some
    vectors = await indexes.vectors("windows", turns.values())
    return Windows(found, {word_of[turn]: vector for turn, vector in vectors.items()})


def around(word: str, among: tuple[str, ...] = SAID) -> set[str]:
    """Return the words that are at most two turns away from one, itself included."""
    at = among.index(word)
    return set(among[max(0, at - 2) : at + 3])


async def assert_as_after_reindex(memory: Memory, turns: Mapping[str, str], *others: str) -> None:
    kept = await windows(memory, turns, *others)
    await memory.reindex()
    anew = await windows(memory, turns, *others)
    assert kept.found == anew.found
    assert kept.vectors.keys() == anew.vectors.keys() == set(turns)
    for word, vector in anew.vectors.items():
        np.testing.assert_allclose(kept.vectors[word], vector, atol=1e-5, err_msg=word)


async def test_a_turn_that_is_said_is_in_its_neighbours_windows(memory: Memory) -> None:
    turns: dict[str, str] = {}
    for place, word in enumerate(SAID):
        before = (await windows(memory, turns)).vectors
        turns[word] = await say(memory, word)

        now = await windows(memory, turns)

        neighbours = set(SAID[max(0, place - 2) : place])
        assert now.found[word] == {word, *neighbours}
        changed = {
            one
            for one, vector in before.items()
            if not np.allclose(vector, now.vectors[one], atol=1e-5)
        }
        assert changed == neighbours
    await assert_as_after_reindex(memory, turns)


async def test_another_session_is_no_neighbour(memory: Memory) -> None:
    turns = await talk(memory)
    found = (await windows(memory, turns)).found
    assert found == {**{word: around(word) for word in SAID}, ELSEWHERE: {ELSEWHERE}}
    await assert_as_after_reindex(memory, turns)


async def test_a_forgotten_turn_leaves_its_neighbours_windows_and_those_beyond_come_nearer(
    memory: Memory,
) -> None:
    turns = await talk(memory)
    before = await windows(memory, turns)
    gone = turns.pop("granite")

    await memory.forget([gone], dry_run=False)

    left = tuple(word for word in SAID if word != "granite")
    now = await windows(memory, turns, "granite")
    assert now.found == {
        **{word: around(word, left) for word in left},
        ELSEWHERE: {ELSEWHERE},
        "granite": set(),
    }
    changed = {
        one for one in turns if not np.allclose(before.vectors[one], now.vectors[one], atol=1e-5)
    }
    assert changed == around("granite") - {"granite"}
    await assert_as_after_reindex(memory, turns, "granite")
    recalled = await memory.recall("granite")
    assert not [
        hit
        for channel in recalled.channels.values()
        for hit in channel.hits
        if "granite" in hit.text
    ]


async def test_a_forgotten_fact_leaves_the_windows_of_its_turn_and_of_the_neighbours(
    memory: Memory,
) -> None:
    turns = {word: await say(memory, word) for word in ("walnut", "lantern")}
    fact = FactDraft("Priya", "KEEPS", "bees", "Priya keeps bees.")
    turns["saffron"] = (await memory.remember("saffron!", session="s", facts=[fact])).turn_id
    turns |= {word: await say(memory, word) for word in ("granite", "velvet", "mercury")}
    assert (await windows(memory, turns, "bees")).found["bees"] == around("saffron")

    [known] = (await memory.timeline()).facts
    await memory.forget([known.uuid], dry_run=False)

    assert (await windows(memory, turns, "bees")).found["bees"] == set()
    await assert_as_after_reindex(memory, turns, "bees")


async def test_words_that_are_appended_to_or_taken_from_a_turn_change_its_neighbours_windows(
    memory: Memory,
) -> None:
    turns = await talk(memory)

    await memory.records.append(turns["granite"], "Also amber.")

    found = (await windows(memory, turns, "amber")).found
    assert found["amber"] == found["granite"] == around("granite")
    await assert_as_after_reindex(memory, turns, "amber")

    await memory.records.update(turns["granite"], content="Only amber.")

    found = (await windows(memory, turns, "amber")).found
    assert (found["amber"], found["granite"]) == (around("granite"), set())
    await assert_as_after_reindex(memory, turns, "amber", "granite")
