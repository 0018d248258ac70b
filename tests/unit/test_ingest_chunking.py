"""S4-08: passages of 200 words with 50 of overlap at the ends of sentences; nothing is lost, in any script."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pps.ingest.importing.markdown import OVERLAP, WORDS, Note, note_turns, passages, session_of

SENTENCES = " ".join(f"Sentence {number} tells of tea and of cups." for number in range(150))
ANY_TEXT = st.text(st.sampled_from("ab é語ไ.!?。\n #-\t`*1"), max_size=3_000) | st.text(
    max_size=500
)


def words(text: str) -> list[str]:
    return text.split()


def test_a_passage_has_at_most_200_words_and_repeats_whole_sentences_of_at_most_50() -> None:
    found = [one.text for one in passages(SENTENCES)]
    assert len(found) > 5
    for before, after in itertools.pairwise(found):
        assert WORDS - 8 <= len(words(before)) <= WORDS
        assert before.endswith(".")
        assert after.startswith("Sentence ")
        shared = next(
            size
            for size in range(len(words(after)), -1, -1)
            if words(before)[-size:] == words(after)[:size]
        )
        assert OVERLAP - 8 < shared <= OVERLAP


def test_a_sentence_longer_than_a_passage_is_cut_between_words() -> None:
    found = [one.text for one in passages("word " * 450)]
    assert [len(words(one)) for one in found] == [200, 200, 50]


def test_a_script_without_spaces_is_cut_after_its_sentences() -> None:
    found = [one.text for one in passages("私は毎朝お茶を飲みます。" * 60)]
    assert len(found) > 3
    assert all(one.endswith("。") for one in found)


def test_headings_in_force_go_with_a_passage_and_code_has_none() -> None:
    text = (
        "# Tea\n\n## Green\n\n```\n# no heading\n```\n" + SENTENCES + "\n\n## Black\n\n" + SENTENCES
    )
    found = passages(text)
    assert found[0].headings == ()
    assert found[1].headings == ("Tea", "Green")
    assert found[-1].headings == ("Tea", "Black")


@settings(max_examples=150, deadline=None)
@given(ANY_TEXT)
def test_no_word_of_a_text_is_lost_and_none_is_added(text: str) -> None:
    found = passages(text)
    at = 0
    for one in found:
        begin = text.find(one.text)
        assert begin >= 0, "a passage is a stretch of the text"
        assert not text[at : text.find(one.text, max(0, at - len(one.text)))].strip()
        at = max(at, text.find(one.text, max(0, at - len(one.text))) + len(one.text))
    assert not text[at:].strip()
    assert bool(found) == bool(text.strip())


def note(text: str) -> Note:
    return Note(Path("/notes"), "a/tea.md", text, datetime(2026, 1, 1, tzinfo=UTC))


def test_a_passage_says_which_part_of_which_file_it_is_and_keeps_title_tags_and_date() -> None:
    text = f"---\ntitle: All of tea\ntags: [Green, black]\ndate: 2025-05-05\n---\n## How\n\n{SENTENCES}"
    turns = list(note_turns(note(text)))
    assert len(turns) > 5
    for part, (content, options) in enumerate(turns):
        chunk = options.get("chunk")
        assert chunk is not None
        assert (chunk.path, chunk.part, chunk.parts) == ("a/tea.md", part, len(turns))
        assert (options.get("tags"), str(options.get("occurred_at"))[:10]) == (
            ("green", "black"),
            "2025-05-05",
        )
        assert content.startswith("All of tea › How\n\n" if part else "All of tea\n\n")
        assert options.get("session") == session_of(Path("/notes"), "a/tea.md")


def test_only_passages_that_changed_have_another_reference() -> None:
    before = [options.get("source_ref") for _, options in note_turns(note(SENTENCES))]
    changed = SENTENCES.replace("Sentence 149 tells", "Sentence 149 sings")
    after = [options.get("source_ref") for _, options in note_turns(note(changed))]
    assert before[:-1] == after[:-1]
    assert before[-1] != after[-1]
    twice = [options.get("source_ref") for _, options in note_turns(note("Tea. " * 900))]
    assert len(set(twice)) == len(twice)
    assert re.fullmatch(r"[0-9a-f]{32}-2", str(twice[1]))
