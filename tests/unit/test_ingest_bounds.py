"""What may be remembered: a broken bound names its field; good drafts of any script pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from pps.core.errors import InvalidRequest
from pps.core.values import JSON, FactDraft, NodeDraft
from pps.ingest.drafts import Automatic, RememberOptions, make_draft
from pps.ingest.redact import KeyedRedactor

WHEN = datetime(2026, 1, 2, tzinfo=UTC)


def nested(levels: int) -> JSON:
    made: JSON = []
    for _ in range(levels - 1):
        made = [made]
    return made


@pytest.mark.parametrize(
    ("field", "content", "options"),
    [
        ("content", "", {}),
        ("content", " \n ", {}),
        ("content", "x" * 65_537, {}),
        ("content", "\ud800", {}),
        ("content", "a\0b", {}),
        ("role", "x", {"role": "robot"}),
        ("extraction", "x", {"extraction": "magic"}),
        ("session", "x", {"session": "s" * 201}),
        (
            "occurred_at",
            "x",
            {"occurred_at": datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))},
        ),
        ("tags", "x", {"tags": ["two words"]}),
        ("nodes[0].name", "x", {"nodes": [NodeDraft(" ")]}),
        ("nodes[1].kind", "x", {"nodes": [NodeDraft("a"), NodeDraft("b", kind="Bad kind")]}),
        (
            "nodes[0].attributes.group_id",
            "x",
            {"nodes": [NodeDraft("a", attributes={"group_id": "other"})]},
        ),
        ("nodes[0].attributes._x", "x", {"nodes": [NodeDraft("a", attributes={"_x": 1})]}),
        ("nodes[0].attributes", "x", {"nodes": [NodeDraft("a", attributes={"x": float("nan")})]}),
        ("nodes[0].attributes", "x", {"nodes": [NodeDraft("a", attributes={"x": nested(64)})]}),
        ("nodes[0].attributes", "x", {"nodes": [NodeDraft("a", attributes={"x": nested(5_000)})]}),
        ("facts[0].relation", "x", {"facts": [FactDraft("a", "a b", "c")]}),
        (
            "facts[0].invalid_at",
            "x",
            {
                "facts": [
                    FactDraft("a", "IS", "c", valid_at=WHEN, invalid_at=WHEN.replace(year=2025))
                ]
            },
        ),
        ("facts", "x", {"facts": [FactDraft("a", "IS", "c")] * 501}),
    ],
)
def test_a_broken_bound_names_its_field(field: str, content: str, options: RememberOptions) -> None:
    with pytest.raises(InvalidRequest) as caught:
        make_draft(content, options, "given", KeyedRedactor(b"key", on=True), Automatic())
    assert caught.value.field == field


def test_a_good_draft_is_normalised_and_its_hashtags_join_the_given_ones() -> None:
    draft, payload = make_draft(
        "cafe\u0301\r\n#Tea",
        {"tags": ["Kitchen"], "nodes": [NodeDraft("茶")]},
        "rules",
        KeyedRedactor(b"key", on=True),
        Automatic(),
    )
    assert draft.content == "café\n#Tea"
    assert draft.tags == ("kitchen", "tea")
    assert payload.extraction == "rules"
    assert payload.nodes == (NodeDraft("茶"),)
