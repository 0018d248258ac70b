"""Drafts: their bounds, their ids and what is kept of their text."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.core.bounds import MAX_FACTS, MAX_NODES
from pps.core.errors import InvalidRequest
from pps.core.ids import stable_id
from pps.core.values import FactDraft, NodeDraft
from pps.journal.entries import (
    JobPayload,
    JobResult,
    TurnDraft,
    dump_result,
    load_payload,
    load_result,
    prepare_payload,
)
from pps.journal.turns import MAX_CONTENT, prepare

GROUP = "ent_" + "a" * 26
MOMENT = datetime(2026, 3, 7, 8, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("field", "draft"),
    [
        ("content", TurnDraft("")),
        ("content", TurnDraft(" \n\t ")),
        ("content", TurnDraft("x" * (MAX_CONTENT + 1))),
        ("content", TurnDraft("a lone surrogate \ud800")),
        ("role", TurnDraft("x", role="robot")),
        ("role", TurnDraft("x", role="")),
        ("actor", TurnDraft("x", actor="a" * 201)),
        ("session", TurnDraft("x", session="")),
        ("session", TurnDraft("x", session="s" * 201)),
        ("session", TurnDraft("x", session="\udfff")),
        ("source", TurnDraft("x", source="")),
        ("source", TurnDraft("x", source="s" * 201)),
        ("source_ref", TurnDraft("x", source_ref="r" * 501)),
        ("kind", TurnDraft("x", kind="")),
        ("kind", TurnDraft("x", kind="two words")),
        ("kind", TurnDraft("x", kind="k" * 65)),
        ("tags", TurnDraft("x", tags=("t" * 101,))),
        ("tags", TurnDraft("x", tags=tuple(f"t{n}" for n in range(51)))),
        ("occurred_at", TurnDraft("x", occurred_at=datetime(2026, 3, 7))),  # noqa: DTZ001
    ],
)
def test_a_draft_beyond_a_bound_is_refused_by_the_name_of_its_field(
    field: str, draft: TurnDraft
) -> None:
    with pytest.raises(InvalidRequest, match=f"^{field}: ") as refusal:
        prepare(GROUP, draft)
    assert refusal.value.field == field


def test_a_draft_at_every_bound_is_taken() -> None:
    draft = TurnDraft(
        "é" * MAX_CONTENT,
        role="tool",
        actor="a" * 200,
        session="s" * 200,
        source="s" * 200,
        source_ref="r" * 500,
        kind="k" * 64,
        tags=tuple(f"{n:0100d}" for n in range(50)),
    )
    assert prepare(GROUP, draft).draft.content == draft.content


def test_the_length_that_counts_is_that_of_the_normal_form() -> None:
    assert len(prepare(GROUP, TurnDraft("e\u0301" * MAX_CONTENT)).draft.content) == MAX_CONTENT


@given(st.text(min_size=1, max_size=200).filter(lambda text: text.strip() != ""))
def test_content_keeps_every_character_but_for_nfc_and_line_ends(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        with pytest.raises(InvalidRequest):
            prepare(GROUP, TurnDraft(text))
        return
    kept = prepare(GROUP, TurnDraft(text)).draft.content
    assert kept == unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    assert prepare(GROUP, TurnDraft(kept)).draft.content == kept


def test_a_source_ref_makes_the_id_and_nothing_else_does() -> None:
    draft = TurnDraft("yes", session="s", source="hook", source_ref="m1")
    again = replace(draft, content="no", role="assistant", occurred_at=MOMENT)
    assert prepare(GROUP, draft).uuid == stable_id(GROUP, "turn", "hook", "s", "m1")
    assert prepare(GROUP, again).uuid == prepare(GROUP, draft).uuid
    assert prepare("ent_" + "b" * 26, draft).uuid != prepare(GROUP, draft).uuid


def test_without_a_source_ref_every_draft_gets_an_id_of_its_own() -> None:
    assert prepare(GROUP, TurnDraft("yes")).uuid != prepare(GROUP, TurnDraft("yes")).uuid


def test_the_hash_sees_words_and_not_white_space() -> None:
    one, other = prepare(GROUP, TurnDraft("a  b\n\nc")), prepare(GROUP, TurnDraft(" a b c "))
    assert one.hash == other.hash
    assert one.hash != prepare(GROUP, TurnDraft("a b C")).hash


def test_tags_are_folded_and_said_once() -> None:
    assert prepare(GROUP, TurnDraft("x", tags=("Kitchen", "kitchen ", " ", "茶"))).draft.tags == (
        "kitchen",
        "茶",
    )


def test_an_event_time_is_kept_to_the_microsecond_whatever_its_zone() -> None:
    moment = datetime.fromisoformat("2026-03-07T10:30:00.123456+02:00")
    kept = prepare(GROUP, TurnDraft("x", occurred_at=moment)).draft.occurred_at
    assert kept == moment
    assert kept is not None
    assert kept.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("field", "payload"),
    [
        ("extraction", JobPayload(extraction="magic")),  # pyright: ignore[reportArgumentType]
        ("nodes", JobPayload(nodes=(NodeDraft("n"),) * (MAX_NODES + 1))),
        ("facts", JobPayload(facts=(FactDraft("a", "R", "b"),) * (MAX_FACTS + 1))),
        ("nodes[1].name", JobPayload(nodes=(NodeDraft("ok"), NodeDraft(" ")))),
        ("nodes[0].name", JobPayload(nodes=(NodeDraft("n" * 501),))),
        ("nodes[0].kind", JobPayload(nodes=(NodeDraft("n", kind="a-b"),))),
        ("nodes[0].summary", JobPayload(nodes=(NodeDraft("n", summary="s" * 4001),))),
        ("nodes[0].aliases", JobPayload(nodes=(NodeDraft("n", aliases=("",)),))),
        ("nodes[0].aliases", JobPayload(nodes=(NodeDraft("n", aliases=("a",) * 21),))),
        (
            "nodes[0].attributes.group_id",
            JobPayload(nodes=(NodeDraft("n", attributes={"group_id": "x"}),)),
        ),
        ("nodes[0].attributes._x", JobPayload(nodes=(NodeDraft("n", attributes={"_x": 1}),))),
        (
            "nodes[0].attributes",
            JobPayload(nodes=(NodeDraft("n", attributes={"x": float("nan")}),)),
        ),
        ("nodes[0].attributes", JobPayload(nodes=(NodeDraft("n", attributes={"x": "\ud800"}),))),
        ("facts[0].subject", JobPayload(facts=(FactDraft("", "R", "b"),))),
        ("facts[0].object", JobPayload(facts=(FactDraft("a", "R", "\udc00"),))),
        ("facts[0].relation", JobPayload(facts=(FactDraft("a", "R" * 65, "b"),))),
        ("facts[0].text", JobPayload(facts=(FactDraft("a", "R", "b", text="t" * 4001),))),
        (
            "facts[0].invalidates",
            JobPayload(facts=(FactDraft("a", "R", "b", invalidates=("x",) * 51),)),
        ),
        ("facts[0].kind", JobPayload(facts=(FactDraft("a", "R", "b", kind="x"),))),  # pyright: ignore[reportArgumentType]
        (
            "facts[0].valid_at",
            JobPayload(facts=(FactDraft("a", "R", "b", valid_at=datetime(2026, 1, 1)),)),  # noqa: DTZ001
        ),
        (
            "facts[0].invalid_at",
            JobPayload(
                facts=(
                    FactDraft(
                        "a", "R", "b", valid_at=MOMENT, invalid_at=MOMENT - timedelta(days=1)
                    ),
                )
            ),
        ),
    ],
)
def test_a_payload_beyond_a_bound_is_refused_before_anything_is_acknowledged(
    field: str, payload: JobPayload
) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        prepare_payload(payload)
    assert refusal.value.field == field


def test_a_payload_comes_back_as_it_was_given() -> None:
    payload = JobPayload(
        nodes=(
            NodeDraft(
                "Café Lumen",
                "Place",
                "corner 角",
                ("Lumen",),
                ("coffee",),
                {"seats": 12, "open": [1, None]},
            ),
        ),
        facts=(
            FactDraft(
                "Priya", "RUNS", "Café Lumen", "Priya runs it.", MOMENT, None, ("Omar runs it.",)
            ),
            FactDraft("a", "child_of", "b", invalid_at=MOMENT, kind="relation"),
        ),
        extraction="rules",
    )
    text = prepare_payload(payload)
    back = load_payload(text)
    assert back.facts == payload.facts
    assert back.extraction == "rules"
    assert (back.nodes[0].name, back.nodes[0].aliases) == ("Café Lumen", ("Lumen",))
    assert dict(back.nodes[0].attributes) == {"seats": 12, "open": [1, None]}
    assert prepare_payload(back) == text


def test_a_result_comes_back_as_it_was_given() -> None:
    result = JobResult(1, 2, 3, ("a", "b"))
    assert load_result(dump_result(result)) == result
