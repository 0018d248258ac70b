"""What a command answers of turns: who is meant, whose words a fact has, and what is no answer."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from pps.core.values import FactDraft, Node, Turn
from pps.ingest.extraction import Findings, Known, understand

AT = datetime(2026, 3, 4, 9, tzinfo=UTC)


def read(
    texts: list[str], facts: list[dict[str, Any]], nodes: Any = (), known: Known | None = None
) -> list[Findings]:
    turns = [Turn(f"turn-{at}", at, "user", text, "s", AT, AT) for at, text in enumerate(texts)]
    return understand(json.dumps({"nodes": list(nodes), "facts": facts}), turns, known or Known())


def fact(
    subject: str, relation: str, object_: str, text: str | None, *turns: int
) -> dict[str, Any]:
    return {
        "subject": subject,
        "relation": relation,
        "object": object_,
        "text": text,
        "turns": list(turns),
    }


def ends(found: Findings) -> list[tuple[str, str, str]]:
    return [(one.subject, one.object, one.text) for one in found.facts]


LIVES = fact("Jonas", "LIVES_IN", "Gdansk", "Jonas lives in Gdansk.", 2)
TURNS = ["Hi, I'm Jonas Weber.", "I live in Gdansk."]


def test_who_speaks_is_one_node_by_the_name_that_a_turn_of_the_group_gives() -> None:
    first, second = read(TURNS, [LIVES])
    assert [(node.name, node.aliases) for node in first.nodes] == [
        ("User", ("Jonas Weber", "Jonas"))
    ]
    assert ends(second) == [("User", "Gdansk", "User lives in Gdansk.")]


def test_who_speaks_is_one_node_by_the_names_that_an_answer_or_the_graph_has() -> None:
    user = {"name": "User", "kind": "Person", "aliases": ["Jonas"]}
    jonas = {"name": "Jonas", "kind": "Person", "aliases": ["User"]}
    for node in (user, jonas):
        [found] = read(["I live in Gdansk."], [{**LIVES, "turns": [1]}], [node])
        assert ends(found) == [("User", "Gdansk", "User lives in Gdansk.")]
        assert [(one.name, one.aliases) for one in found.nodes] == [
            ("User", ())
        ]  # the turn does not say the name
    known = Known([Node("node", "User", AT, aliases=("Jonas",))])
    assert (
        ends(read(["I live in Gdansk."], [{**LIVES, "turns": [1]}], known=known)[0])[0][0] == "User"
    )


def test_a_namesake_of_who_speaks_stays_somebody_else() -> None:
    other = {"name": "Jonas", "kind": "Person"}
    says = fact("Jonas", "SAILS", "Vela", "Jonas sails the Vela.", 2)
    first, second = read(
        ["Hi, I'm Jonas Weber.", "My uncle Jonas sails the Vela."], [says], [other]
    )
    assert [node.aliases for node in first.nodes if node.name == "User"] == [("Jonas Weber",)]
    assert ends(second) == [("Jonas", "Vela", "Jonas sails the Vela.")]


def test_a_text_with_words_of_a_turn_that_is_not_cited_is_left_out() -> None:
    told = ["Ana has diabetes.", "Ana moved to Porto."]
    moved = fact("Ana", "LIVES_IN", "Porto", "Ana, who has diabetes, moved to Porto.", 2)
    assert read(told, [moved])[1].facts == [FactDraft("Ana", "LIVES_IN", "Porto")]
    assert ends(read(told, [{**moved, "turns": [1, 2]}])[1]) == [("Ana", "Porto", moved["text"])]


def test_null_is_as_good_as_nothing() -> None:
    [found] = read(
        ["Ana moved to Porto."],
        [fact("Ana", "LIVES_IN", "Porto", None, 1)],
        [{"name": "Ana", "kind": None, "summary": None, "aliases": None}],
    )
    assert [node.name for node in found.nodes] == ["Ana"]
    assert len(found.facts) == 1


@pytest.mark.parametrize(
    "one", [[fact("She", "LIVES_IN", "Porto", "", 1)], [fact("Ana", "LIVES_IN", "Rome", "", 1)]]
)
def test_what_is_dropped_is_counted_with_its_reason_and_none_of_its_words(
    one: list[dict[str, Any]],
) -> None:
    [found] = read(["Ana moved to Porto."], one)
    assert (found.facts, len(found.dropped)) == ([], 1)
    assert not {"Ana", "Porto", "Rome"} & set(found.dropped[0].split())


def test_the_entity_s_own_node_is_no_namesake_and_a_first_word_of_a_known_name_is_one_too() -> None:
    own = Node("self", "Jonas", AT, kind="Self", aliases=("jonas",))
    user = Node("node", "User", AT, aliases=("Jonas Weber",))
    for known in (Known([own]), Known([own, user])):
        assert ends(read(TURNS, [LIVES], known=known)[1]) == [
            ("User", "Gdansk", "User lives in Gdansk.")
        ]
