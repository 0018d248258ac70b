"""The text of an anchor's file: slugs of titles, front matter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.core.errors import InvalidRequest
from pps.ingest.anchor_files import (
    SLUG,
    AnchorText,
    check_slug,
    compose,
    free_slug,
    parse,
    slug_of,
    tidy,
)


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("The kitchen at seven", "the-kitchen-at-seven"),
        ("  Kaffee für Müller!  ", "kaffee-fur-muller"),
        ("C++ & Rust: notes (2026)", "c-rust-notes-2026"),
        ("../../etc/passwd", "etc-passwd"),
        ("ＦＵＬＬ width", "full-width"),
    ],
)
def test_a_latin_title_becomes_a_readable_slug(title: str, slug: str) -> None:
    assert slug_of(title) == slug


def test_titles_that_lose_letters_stay_apart() -> None:
    slugs = {slug_of(title) for title in ("咖啡", "茶", "кофе", "чай", "咖啡 A", "茶 A", "☕")}
    assert len(slugs) == 7
    assert all(SLUG.fullmatch(slug) for slug in slugs)
    assert slug_of("咖啡").startswith("anchor-")
    assert slug_of("咖啡 A").startswith("a-")


@given(st.text(max_size=300))
def test_every_title_has_a_valid_slug_and_always_the_same(title: str) -> None:
    assert SLUG.fullmatch(slug_of(title))
    assert slug_of(title) == slug_of(title)


@pytest.mark.parametrize(
    "slug", ["", "-a", "A", "a b", "a/b", "..", "a.md", "a" * 81, "a\n", "ä", "a\0"]
)
def test_anything_but_a_slug_is_refused(slug: str) -> None:
    with pytest.raises(InvalidRequest):
        check_slug(slug)


def test_a_taken_slug_gets_the_first_free_number() -> None:
    assert free_slug("tea", set()) == "tea"
    assert free_slug("tea", {"tea"}) == "tea-2"
    assert free_slug("tea", {"tea", "tea-2", "tea-3"}) == "tea-4"


def test_a_longest_slug_still_has_room_for_its_number() -> None:
    base = slug_of("word " * 100)
    assert SLUG.fullmatch(
        free_slug(base, {base} | {f"{base}-{number}" for number in range(2, 2000)})
    )


_LINE = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60)


@given(
    title=_LINE.map(lambda text: " ".join(text.split())).filter(bool),
    body=st.text(st.characters(exclude_categories=["Cs"]), max_size=400).map(tidy),
    tags=st.lists(st.from_regex(r"[a-z][a-z0-9_-]{0,10}", fullmatch=True), unique=True, max_size=4),
)
def test_what_is_composed_is_parsed_back(title: str, body: str, tags: list[str]) -> None:
    import unicodedata

    title = unicodedata.normalize("NFC", title)
    anchor = AnchorText(
        " ".join(title.split()), body, tuple(tags), "notes/a b.md", ("date: 2026-01-31",)
    )
    assert parse(compose(anchor), "x") == anchor


def test_a_hand_written_file_has_the_title_of_its_first_heading() -> None:
    assert parse("# Morning coffee #\n\nAt seven.\n", "morning") == AnchorText(
        "Morning coffee", "# Morning coffee #\n\nAt seven."
    )


def test_a_file_without_a_heading_is_titled_by_its_slug() -> None:
    assert parse("At seven.", "morning").title == "morning"


def test_the_front_matter_of_note_programs_is_read_and_the_rest_of_it_kept() -> None:
    text = "---\ntitle: 'Tea: green'\ntags:\n  - Kitchen\n  - \"#tea\"\naliases: [x]\ndate: 2026-01-31\n---\nPour.\n"
    found = parse(text, "tea")
    assert found == AnchorText(
        "Tea: green", "Pour.", ("kitchen", "tea"), "", ("aliases: [x]", "date: 2026-01-31")
    )
    assert parse(compose(found), "tea") == found


@pytest.mark.parametrize("tags", ["[a, b]", '["a", "b"]', "['a','b']", "[a,\tb]"])
def test_tags_are_read_in_every_common_spelling(tags: str) -> None:
    assert parse(f"---\ntags: {tags}\n---\nx", "s").tags == ("a", "b")


def test_a_file_that_begins_with_a_rule_loses_nothing() -> None:
    text = "---\nThis is prose, with a rule above and below it.\n---\nMore."
    assert parse(text, "s").body == text


def test_front_matter_that_never_ends_is_text() -> None:
    assert parse("---\ntitle: x\nmore", "s").body == "---\ntitle: x\nmore"
