"""What a command answers of turns: who is meant, whose words a fact has, and what is no answer."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from pps.core.values import Node, Skipped, Turn
from pps.ingest.extraction import Findings, Known, prompt_of, understand

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
    assert ends(second) == [("User", "Gdansk", "Jonas lives in Gdansk.")]
    assert second.facts[0].uses == ("turn-0",)  # it says the name


def test_a_role_in_a_sentence_gives_way_to_the_name_that_is_known() -> None:
    for text in ("User lives in Gdansk.", "The user lives in Gdansk."):
        says = fact("User", "LIVES_IN", "Gdansk", text, 2)
        [found] = read(TURNS, [says])[1].facts
        assert (found.subject, found.text) == ("User", "Jonas Weber lives in Gdansk.")
        assert found.uses == ("turn-0",)
    known = Known(
        [Node("node", "User", AT, aliases=("Jonas", "Jonas Weber"))],
        sources={"jona": "naming", "jonas": "naming", "weber": "naming"},
    )
    [later] = read(
        ["I moved to Rome."],
        [fact("User", "LIVES_IN", "Rome", "User lives in Rome.", 1)],
        known=known,
    )
    assert later.facts[0].text == "Jonas Weber lives in Rome."
    assert later.facts[0].uses == ("naming",)
    turn = Turn("turn", 1, "user", "I moved to Rome.", "s", AT, AT)
    assert '"speaker": "Jonas Weber"' in prompt_of([turn], known)


def test_who_speaks_is_one_node_by_the_names_that_an_answer_or_the_graph_has() -> None:
    user = {"name": "User", "kind": "Person", "aliases": ["Jonas"]}
    jonas = {"name": "Jonas", "kind": "Person", "aliases": ["User"]}
    for node in (user, jonas):
        [found] = read(["I live in Gdansk."], [{**LIVES, "turns": [1]}], [node])
        assert ends(found) == [("User", "Gdansk", "Jonas lives in Gdansk.")]
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


def test_a_fact_with_words_of_a_turn_that_is_not_cited_is_tied_to_it() -> None:
    told = ["Ana has diabetes.", "Ana moved to Porto."]
    moved = fact("Ana", "LIVES_IN", "Porto", "Ana, who has diabetes, moved to Porto.", 2)
    first, second = read(told, [moved])
    assert (first.facts, ends(second)) == ([], [("Ana", "Porto", moved["text"])])
    assert (second.facts[0].cites, second.facts[0].uses) == ((), ("turn-0",))


def test_a_fact_of_several_turns_is_held_by_the_latest_together_with_the_others() -> None:
    told = ["Ana has diabetes.", "Ana moved to Porto.", "I like bees."]
    moved = fact("Ana", "LIVES_IN", "Porto", "Ana, who has diabetes, moved to Porto.", 1, 2)
    first, second, third = read(told, [moved])
    assert (first.facts, ends(second), third.facts) == ([], [("Ana", "Porto", moved["text"])], [])
    assert (second.facts[0].cites, second.facts[0].uses) == (("turn-0",), ())
    again = fact("Ana", "LIVES_IN", "Porto", "Ana moved to Porto.", 1, 2)
    found = read(["Ana moved to Porto.", "Ana moved to Porto, you know."], [again])
    assert [len(one.facts) for one in found] == [1, 1]  # each says all of it
    assert not any(one.facts[0].cites for one in found)


def test_a_day_reckoned_from_a_turns_own_is_no_other_turns_word() -> None:
    told = ["My sister's wedding is in March.", "Biscuit died on Wednesday."]
    died = fact("Biscuit", "DIED_ON", "Wednesday", "Biscuit died on Wednesday 4 March 2026.", 2)
    [found] = read(told, [died])[1].facts
    assert (found.text, found.cites, found.uses) == (died["text"], (), ())


def test_a_fact_with_words_of_what_is_known_is_tied_to_the_turn_that_says_them() -> None:
    known = Known(
        [Node("node", "Rex", AT, kind="Animal")], sources={"beagle": "told", "rex": "seen"}
    )
    died = fact("Rex", "DIED", "Oslo", "Rex, a beagle, died in Oslo.", 1)
    [found] = read(["Rex died in Oslo."], [died], known=known)[0].facts
    assert found.uses == ("told",)


def test_a_fact_of_the_same_answer_is_ended_by_its_number() -> None:
    told = ["I live in Oslo.", "I moved to Rome."]
    oslo = fact("User", "LIVES_IN", "Oslo", "User lives in Oslo.", 1)
    rome = fact("User", "LIVES_IN", "Rome", "User lives in Rome.", 2)
    found = read(told, [oslo, {**rome, "invalidates": ["N1", "N9", "F1"]}])
    assert found[1].facts[0].invalidates == ("User lives in Oslo.",)


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
def test_what_is_dropped_is_listed_with_its_reason(
    one: list[dict[str, Any]],
) -> None:
    [found] = read(["Ana moved to Porto."], one)
    assert (found.facts, len(found.dropped)) == ([], 1)
    assert found.dropped[0].what in ("She LIVES_IN Porto", "Ana LIVES_IN Rome")
    assert found.dropped[0].why in (
        "its subject is no name",
        "its turns do not name both of its ends",
    )


def test_what_is_dropped_is_shown_without_the_words_of_other_turns() -> None:
    says = fact("Ana", "HAS", "gold", "Ana with diabetes hides gold in Rome.", 2)
    first, second = read(["Ana has diabetes.", "Ana moved to Porto."], [says])
    assert first.dropped == []
    assert second.dropped == [
        Skipped("Ana with … hides gold in Rome.", "its turns do not name both of its ends")
    ]


def test_the_entity_s_own_node_is_no_namesake_and_a_first_word_of_a_known_name_is_one_too() -> None:
    own = Node("self", "Jonas", AT, kind="Self", aliases=("jonas",))
    user = Node("node", "User", AT, aliases=("Jonas Weber",))
    for known in (Known([own]), Known([own, user])):
        assert ends(read(TURNS, [LIVES], known=known)[1]) == [
            ("User", "Gdansk", "Jonas lives in Gdansk.")
        ]
