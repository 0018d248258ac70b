"""What kind of text a query is, what it wants one or several of, and what it quotes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pps.core.errors import ConfigError
from pps.recall.profiles import Profiles
from pps.recall.question import (
    AskKind,
    ask_kind,
    asks_for_several,
    kind_asked_for,
    quoted_phrases,
    routes_of,
)
from pps.recall.request import SEVERAL_LIMIT, USUAL_LIMIT, make_request


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Where does Priya work?", "question"),
        ("Which books has Melanie read?", "question"),
        ("parser settings", "question"),
        ("Why did the deploy fail", "question"),
        ("Can you recommend some hotels in Chicago?", "advice"),
        ("What size shoes should I buy?", "advice"),
        ("Suggest a classic Italian dessert.", "advice"),
        ("What are some good resources for mastering calculus?", "advice"),
        ("I came in last at the sports meet. I tried hard. Why am I so slow?", "talk"),
        ("We went to the lake with the children yesterday and it rained all day.", "talk"),
        ("I am so sad. Do you have any ideas? It was my favourite toy.", "talk"),
    ],
)
def test_a_text_asks_wants_advice_or_talks(text: str, kind: AskKind) -> None:
    assert ask_kind(text) == kind


@pytest.mark.parametrize(
    ("question", "several"),
    [
        ("Which books has Melanie read?", True),
        ("What are Kate's hobbies?", True),
        ("List all the pets that we have had.", True),
        ("How many times did we move?", True),
        ("Where does Priya work?", False),
        ("What size shoes should I buy?", False),
        ("Which class does Ana teach?", False),
    ],
)
def test_a_question_about_several_things_shows_more(question: str, several: bool) -> None:
    assert asks_for_several(question) == several
    usual = make_request(question, {})
    assert (usual.limit, usual.is_usual) == (SEVERAL_LIMIT if several else USUAL_LIMIT, True)
    named = make_request(question, {"limit": 7})
    assert (named.limit, named.is_usual) == (7, False)


def test_a_question_wants_one_of_a_kind() -> None:
    assert kind_asked_for("Which ORM do we use?") == "ORM"
    assert kind_asked_for("What kind of database is it?") == "database"
    assert kind_asked_for("What search engine do we have?") == "search engine"
    assert kind_asked_for("Where is it?") == ""


def test_quotations_of_any_script_are_phrases() -> None:
    assert quoted_phrases('Who said "the red door" or “blue gate”?') == [
        "the red door",
        "blue gate",
    ]
    assert quoted_phrases("It's Ana's.") == []
    assert "exact" in routes_of('Who said "the red door"?', [])
    assert "misspelt" in routes_of("Where is the lantrn?", [], ["lantrn"])


def test_a_kind_changes_weights_k_and_damping_and_leaves_the_rest() -> None:
    text = """
description = "x"
[channels.episodes]
k = 5
substance = { floor = 0.4, words = 10 }
perspectives = { bm25 = 1.0, dense = 1.0 }
[channels.episodes.kinds.talk]
perspectives = { bm25 = 0.25 }
k = 20
substance = { floor = 1.0 }
"""
    channel = Profiles({"own": text}).get("own").channels["episodes"]
    talk = channel.of_kind("talk")
    assert dict(talk.perspectives) == {"bm25": 0.25, "dense": 1.0}
    assert talk.k == 20
    assert talk.substance is not None
    assert talk.substance.floor == 1.0
    assert channel.of_kind("advice") == channel
    with pytest.raises(ConfigError, match="no perspective is called wrong"):
        Profiles({"own": text.replace("bm25 = 0.25", "wrong = 1.0")})
    with pytest.raises(ConfigError, match="kinds"):
        Profiles({"own": text.replace("kinds.talk", "kinds.chatter")})


def test_what_brings_no_measured_gain_is_off_unless_asked_for(tmp_path: Path) -> None:
    from pps.config import Settings, shipped

    settings = Settings(home=tmp_path)
    hooks = settings.hooks
    assert (hooks.alerts, hooks.explore) == (False, False)
    names = {path.name.removesuffix(".toml") for path in shipped("config/profiles").iterdir()}
    profiles = Profiles.load(settings)
    for name in names - {"pipeline"}:  # whose very purpose they are
        for channel in profiles.get(name).channels.values():
            said = {
                *channel.perspectives,
                *(one for weights in channel.routing.values() for one in weights),
                *(one for kind in channel.kinds.values() for one in kind.perspectives),
            }
            assert not said & {"expand", "intent", "late"}, name
    assert profiles.get("default").usual_limits == {"nodes": 5}


def test_meaning_counts_more_where_the_token_model_is_not_installed() -> None:
    text = """
[channels.episodes.perspectives]
dense = 0.5
colbert = 1.0
[channels.episodes.without.colbert]
dense = 0.75
"""
    channel = Profiles({"own": text}).get("own").channels["episodes"]
    assert channel.perspectives["dense"] == 0.5
    assert channel.without_colbert().perspectives["dense"] == 0.75
    with pytest.raises(ConfigError, match="without"):
        Profiles({"own": text.replace("without.colbert", "without.nonesuch")}).get("own")
