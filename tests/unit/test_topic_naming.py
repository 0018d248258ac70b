"""Topics have names that a person would give: read by hand on two shipped lives and six invented ones, kept here."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from pps.features.topics.topic_names import Place, TopicName, TopicTurn, name_topics, surface, title

TESTS = Path(__file__).parents[1]
SAMPLE = TESTS.parent / "config" / "sample"
INVENTED: dict[str, dict[str, list[str]]] = json.loads(
    (TESTS / "life" / "topics.json").read_text("utf-8")
)
"""Life → topic → turns; English with German, French, Spanish, Italian, Chinese and Japanese between."""

TELLING = {
    "renovation": {
        "mortgage": "mortgage notary",
        "internet": "internet provider",
        "heating": "heizung",
        "bathroom": "tiles bathroom",
        "croup": "croup paediatrician",
        "tomatoes": "tomato",
    },
    "compiler": {
        "parser": "parser",
        "borrow check": "borrow",
        "CI": "ci",
        "cache": "incremental",
        "release": "installer",
        "docs": "lifetimes",
    },
    "bakery": {
        "oven": "horno",
        "flour": "flour",
        "counter": "counter",
        "inspection": "inspection",
        "cake": "wedding",
        "knee": "knee",
    },
    "thesis": {
        "nitrate": "nitrate",
        "flat": "rue appartement",
        "grandmother": "外婆",
        "handball": "handball",
        "postdoc": "wageningen",
        "script": "script",
    },
    "carer": {
        "pa-memory": "alzheimer",
        "choir": "choir",
        "allotment": "allotment",
        "car": "exhaust garage",
        "job": "bronagh leeds",
        "nonna": "nonna",
    },
    "game": {
        "netcode": "desync",
        "shader": "shader",
        "levels": "lift",
        "loc": "inventory localisation",
        "store": "trailer",
        "audio": "theme",
    },
}
"""Words of which a name needs one to say what the topic is."""
SAMPLES_TELLING = {
    "theo": {
        "monday-standup": "juniper",
        "haven-jan-17": "chapel kitchen",
        "reflux": "rooibos tea",
        "bridge-gone": "bridge",
        "xiaoyu-icons": "icon",
        "first-tuesday": "lmdb stall",
        "haven-jan-24": "thermostat",
        "haven-feb-07": "bread",
        "lumen": "lumen",
        "wren-vet": "walks chicken",
        "new-office": "tannery",
        "arabic-bug": "amman",
        "haven-feb-21": "lemons leaf porridge",
        "lmdb-trouble": "pilots phones",
        "xiaoyu-hindi": "hindi devanagari pune",
        "sqlite-again": "checkpoint",
        "bailey": "knee bridge",
        "lumen-sold": "lumen",
    },
    "mira": {
        "kitchen-jan-10": "moka",
        "xiaoyu": "xiaoyu",
        "kitchen-jan-24": "press",
        "ines-lisbon": "easter",
        "market-walnuts": "walnuts",
        "deadline": "ledger",
        "cast-drawing": "dragon",
        "kitchen-feb-14": "dripper",
        "erhu-lessons": "piano erhu",
        "lumen-roaster": "lumen",
        "studio-moves": "bridge studio",
        "kitchen-mar-07": "dripper peppermint",
        "kestrel-green": "launch",
        "ines-porto": "libraries porto",
        "juniper-vet": "mackerel thermometers",
        "tide-homework": "moon",
        "kitchen-jan-17": "glazes",
        "glossary": "compounds chapters",
    },
}
NOTHING = {
    *[
        "after",
        "again",
        "all",
        "also",
        "because",
        "down",
        "every",
        "from",
        "got",
        "good",
        "it",
        "its",
        "just",
        "less",
        "off",
        "one",
        "ones",
        "out",
        "over",
        "says",
        "yes",
    ],
    *[
        "der",
        "die",
        "das",
        "und",
        "hat",
        "con",
        "por",
        "des",
        "les",
        "une",
        "two",
        "three",
        "four",
        "24",
        "10",
        "minutes",
        "week",
        "today",
        "tomorrow",
    ],
}


def told(life: str) -> dict[str, list[TopicTurn]]:
    return {
        topic: [TopicTurn(f"{topic} {number}", text) for number, text in enumerate(texts)]
        for topic, texts in INVENTED[life].items()
    }


def sample(name: str) -> tuple[dict[str, list[TopicTurn]], dict[str, str]]:
    """Return the turns of a shipped life by session, and its nodes' names with their kinds."""
    topics: dict[str, list[TopicTurn]] = {}
    nodes: dict[str, str] = {}
    lines = (SAMPLE / name / "turns.jsonl").read_text("utf-8").splitlines()
    for number, line in enumerate(lines):
        turn = json.loads(line)
        topics.setdefault(turn["session"], []).append(TopicTurn(str(number), turn["content"]))
        for node in turn.get("nodes", []):
            names = [node["name"], *node.get("aliases", [])]
            nodes.update(dict.fromkeys(names, node.get("kind", "Thing")))
    return {id_: turns for id_, turns in topics.items() if len(turns) > 2}, nodes


def phrases(places: tuple[Place, ...], turns: list[TopicTurn]) -> list[str]:
    texts = {one.turn: one.text for one in turns}
    return [surface(place, texts[place.turn]) for place in places]


def names_of(topics: dict[str, list[TopicTurn]], found: dict[str, TopicName]) -> dict[str, str]:
    return {id_: title(phrases(found[id_].name, turns)) for id_, turns in topics.items()}


def tells(name: str, words: str) -> bool:
    return any(word in name.casefold() for word in words.split())


@pytest.mark.parametrize("life", INVENTED)
def test_every_topic_of_an_invented_life_has_a_telling_name(life: str) -> None:
    topics = told(life)
    found = names_of(topics, name_topics(topics, {}))
    assert {id_: name for id_, name in found.items() if not tells(name, TELLING[life][id_])} == {}


@pytest.mark.parametrize("life", SAMPLES_TELLING)
def test_topics_of_the_shipped_lives_have_telling_names(life: str) -> None:
    topics, nodes = sample(life)
    found = names_of(topics, name_topics(topics, nodes))
    wanted = SAMPLES_TELLING[life]
    assert {id_: found[id_] for id_, words in wanted.items() if not tells(found[id_], words)} == {}


@pytest.mark.parametrize("life", [*INVENTED, *SAMPLES_TELLING])
def test_names_hold_no_word_that_names_nothing(life: str) -> None:
    topics, nodes = (told(life), {}) if life in INVENTED else sample(life)
    found = name_topics(topics, nodes)
    for id_, turns in topics.items():
        words = phrases(found[id_].name, turns) + phrases(found[id_].terms, turns)
        assert not NOTHING & {word.casefold() for word in words}, id_
    names = names_of(topics, found)
    assert len({*names.values()}) == len(names)  # no two topics of a life have one name


def test_names_do_not_depend_on_the_order_of_topics_and_turns() -> None:
    topics = told("renovation")
    shuffled = {id_: random.Random(7).sample(turns, len(turns)) for id_, turns in topics.items()}  # noqa: S311
    again = name_topics(dict(reversed(shuffled.items())), {})
    assert names_of(topics, again) == names_of(topics, name_topics(topics, {}))


def test_a_name_stays_while_the_topic_barely_changes_and_goes_when_it_is_another() -> None:
    topics = told("bakery")
    found = name_topics(topics, {})
    before = names_of(topics, found)
    kept = {id_: name.name for id_, name in found.items()}
    later = {
        "cake": "The lemon in the wedding cake came from my aunt's tree. The lemon was the thing.",
        "knee": "The muscle above the knee is sore, the sessions helped.",
        "flour": "The mill in Antequera sent the wrong sacks, white flour and not rye flour.",
    }
    more = {
        id_: [*turns, TopicTurn(f"{id_} later", later[id_])] if id_ in later else turns
        for id_, turns in topics.items()
    }
    assert names_of(more, name_topics(more, {}, kept)) == before
    fewer = {id_: turns[1:] if len(turns) > 4 else turns for id_, turns in topics.items()}
    assert names_of(fewer, name_topics(fewer, {}, kept)) == before
    another = {**topics, "cake": told("compiler")["parser"]}
    assert "parser" in names_of(another, name_topics(another, {}, kept))["cake"].lower()


def test_nodes_name_topics_but_dates_amounts_and_where_something_is_do_not() -> None:
    turns = [
        TopicTurn("1", "The offsite is in Granada on 12 May, we pay 900 euros each."),
        TopicTurn("2", "Who books the bus to Granada? The offsite has 31 people."),
        TopicTurn("3", "12 May it is, the key is in the blue pot."),
    ]
    nodes = {
        "12 May": "Date",
        "900 euros": "Amount",
        "in the blue pot": "Thing",
        "Granada": "Place",
    }
    found = name_topics({"t": turns}, nodes)["t"]
    assert phrases(found.name, turns) == ["Granada"]
    assert phrases(found.named, turns) == ["Granada"]


def test_a_title_begins_with_a_capital_unless_its_first_word_is_spelt_in_a_way_of_its_own() -> None:
    assert title(["green tiles", "bathroom"]) == "Green tiles, bathroom"
    assert title(["merge.rs", "clock"]) == "merge.rs, clock"
    assert title(["外婆", "手术"]) == "外婆, 手术"
    assert title([]) == ""


def test_a_topic_that_names_nothing_is_called_by_its_central_turns_first_words() -> None:
    turns = [
        TopicTurn("1", "Yes."),
        TopicTurn("2", "???", 0.2),
        TopicTurn("3", "  We did it, and how!", 1.5),
    ]
    found = name_topics({"t": turns}, {})["t"]
    assert phrases(found.name, turns) == ["We did it, and how!"]
    assert name_topics({"t": [TopicTurn("1", "?"), TopicTurn("2", "")]}, {})["t"].name == ()


@pytest.mark.timeout(60)  # one that runs away takes minutes
def test_hostile_texts_are_read_in_linear_time() -> None:
    texts = [
        "```" * 20_000,
        "a-" * 50_000,
        "x" * 100_000,
        "`(" * 50_000,
        "外" * 50_000,
        "\u200b" * 9_999,
    ]
    topics = {
        str(at): [TopicTurn(f"{at} {number}", text) for number in range(3)]
        for at, text in enumerate(texts)
    }
    assert set(name_topics(topics, {"a " * 12: "Thing"})) == set(topics)
