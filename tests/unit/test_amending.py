"""Which statement a later one amends: the pairs of ``amendments.toml``, by the embedding model and without one."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypedDict

import pytest

from pps.config import EmbedderSettings, shipped
from pps.models.factory import make_embedder
from pps.recall.amending import (
    AmendingStatement,
    Amendment,
    Phrases,
    Rules,
    SentenceReader,
    rules_for,
)

MODEL = "all-MiniLM-L6-v2"
MARCH = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class Pair(TypedDict):
    earlier: str
    later: str
    amends: bool


PAIRS: dict[str, list[Pair]] = tomllib.loads(
    (Path(__file__).parents[1] / "fixtures" / "amendments.toml").read_text("utf-8")
)


def statement(text: str, days: int = 0, speaker: str = "user") -> AmendingStatement:
    return AmendingStatement(text, text, MARCH + timedelta(days=days), speaker)


def amended(*statements: AmendingStatement) -> dict[str, Amendment]:
    """Return what is amended among statements, by the rules without vectors."""
    return rules_for("").amendments(statements, statements)


def counted(rules: Rules, pairs: list[Pair], *, with_vectors: bool) -> tuple[int, int]:
    """Return how many amendments are found among the pairs, and how many of those are none."""
    embedder = make_embedder(EmbedderSettings(name="minilm")) if with_vectors else None
    found = {True: 0, False: 0}
    for pair in pairs:
        old, new = statement(pair["earlier"]), statement(pair["later"], days=1)
        if embedder:
            [old_vector, new_vector] = embedder.embed_passages([old.text, new.text])
            old, new = replace(old, vector=old_vector), replace(new, vector=new_vector)
        found[pair["amends"]] += any(one.sure for one in rules.amendments([old], [new]).values())
    return found[True], found[False]


def test_half_of_the_pairs_of_every_set_amend_and_half_are_near_and_both_hold() -> None:
    for pairs in PAIRS.values():
        assert sum(pair["amends"] for pair in pairs) * 2 == len(pairs)
    assert sum(map(len, PAIRS.values())) >= 100


@pytest.mark.parametrize(
    ("name", "caught", "wrong"), [("dev", 20, 0), ("held", 19, 1), ("fresh", 11, 0)]
)
def test_amendments_are_found_by_words_and_meaning(name: str, caught: int, wrong: int) -> None:
    right, false = counted(rules_for(MODEL), PAIRS[name], with_vectors=True)

    assert right >= caught
    assert false <= wrong


def test_without_a_model_words_alone_find_most_and_are_as_seldom_wrong() -> None:
    pairs = [pair for some in PAIRS.values() for pair in some]
    right, false = counted(rules_for(""), pairs, with_vectors=False)

    assert right >= 42
    assert false <= 1


def test_the_later_one_counts_whatever_order_they_come_in() -> None:
    old = statement("The launch is planned for 12 May.")
    new = statement("The launch has been pushed to 26 May.", days=3)
    newest = statement("The launch has been pushed to 9 June.", days=9)

    for order in ((old, new, newest), (newest, new, old), (new, newest, old)):
        found = amended(*order)
        assert found[old.id].later == newest.id
        assert found[new.id].later == newest.id
        assert newest.id not in found


def test_statements_of_one_instant_amend_nothing() -> None:
    assert not amended(
        statement("The launch is planned for 12 May."),
        statement("The launch has been pushed to 26 May."),
    )


def test_what_two_people_say_of_themselves_is_never_compared() -> None:
    mine = statement("I live in Rome.", speaker="Ana")
    yours = statement("I moved to Milan in March.", days=1, speaker="Ben")
    ours = statement("The launch is planned for 12 May.", speaker="Ana")
    moved = statement("The launch has been pushed to 26 May.", days=1, speaker="Ben")

    assert not amended(mine, yours)
    assert amended(mine, replace(yours, speaker="Ana"))
    assert amended(ours, moved), "what is nobody's own may be changed by anybody"


def test_a_fact_is_about_whom_it_names_whoever_speaks() -> None:
    fact = replace(statement("The kitchen budget is 12,000 euros."), speaker="")

    assert amended(fact, statement("We raised the kitchen budget to 15,500 euros.", days=2))


def test_what_an_assistant_writes_amends_nothing() -> None:
    old = statement("We'll use Postgres for the ledger.")
    new = statement("For the ledger let's go with CockroachDB instead.", days=1)

    assert amended(old, new)
    assert not amended(old, replace(new, amends=False))


@pytest.mark.parametrize(
    "text",
    [
        "Should we go with CockroachDB for the ledger instead?",
        "Maybe for the ledger CockroachDB instead of Postgres.",
        "We used to have CockroachDB for the ledger instead of Postgres.",
        "```sql\nALTER ledger; -- CockroachDB instead of Postgres\n```",
    ],
)
def test_questions_thoughts_the_past_and_code_amend_nothing(text: str) -> None:
    assert not amended(statement("We'll use Postgres for the ledger."), statement(text, days=1))


def test_the_amended_sentence_of_a_long_text_is_told() -> None:
    old = statement("We met for lunch. The standup is at 9:30 every day. It rained.")
    new = statement("From Monday on the standup is at 10:15.", days=1)

    assert amended(old, new)[old.id].sentence == "The standup is at 9:30 every day."


def test_a_change_may_stand_in_two_short_sentences() -> None:
    old = statement("We'll use Postgres for the ledger.")
    new = statement("Change of plans for the ledger. It is CockroachDB.", days=1)

    assert amended(old, new)


def test_hostile_texts_are_read_in_bounded_time() -> None:
    texts = ["not " * 5_000, "a" * 50_000, "now. " * 9_000, "’" * 3_000, "1" * 20_000, "\n" * 9_000]
    statements = [statement(text, days) for days, text in enumerate(texts)]

    amended(*statements)


def test_phrases_have_ends_gaps_and_beginnings_of_words() -> None:
    phrases = Phrases({"moved": ["mov* … to"], "adds": ["too $"], "plain": ["no longer"]})

    def found(text: str) -> list[str]:
        return [one.group for one in phrases.find(text.split())]

    assert found("we moved the whole team to milan") == ["moved"]
    assert found("we moved one two three four five to milan") == []
    assert found("i play the piano too") == ["adds"]
    assert found("it was too small") == []
    assert found("no longer here, no long story") == ["plain"]
    assert found("to") == []


def test_typed_values_are_dates_times_sums_and_counts() -> None:
    reader = SentenceReader({}, (), (), ())
    [sentence] = reader.read("On 12 May at 14:00 the €900 ticket for 3 hours costs 20 euros.")

    assert sentence.values == {
        "date": {"12 may"},
        "time": {"14:00"},
        "money": {"900", "20"},
        "number hour": {"3"},
    }


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Note 1234 of the year.", "Note 1395 of the year."),
        ("PR #12 adds the index.", "PR #13 adds the index now."),
        ("The chapter 3 draft is 12 pages.", "The chapter 4 draft is 15 pages."),
        ("Ticket 77 is assigned to Ana.", "Ticket 78 is assigned to Ben."),
    ],
)
def test_items_of_a_series_amend_nothing(earlier: str, later: str) -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    statements = [
        AmendingStatement("a", earlier, at),
        AmendingStatement("b", later, at + timedelta(days=1)),
    ]
    assert rules_for("other").amendments(statements, statements) == {}


def test_what_is_never_scored_could_not_reach_a_threshold() -> None:
    """A pair without a word of change, a common type of value and a matter is not scored at all."""
    data = tomllib.loads(shipped("config/amending.toml").read_text("utf-8"))
    weights = data["weights"]
    against = weights["bias"] + weights["cueless"] + weights["valueless"]
    most = weights["coverage"] + 1.5 * weights["nearness"] + weights["decides"]
    assert against + most < min(data["thresholds"].values())
