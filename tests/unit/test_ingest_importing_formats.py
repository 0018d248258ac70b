"""Each format is known by its content and read for what it holds; what it does not hold is counted or named."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pps.core.errors import InvalidRequest
from pps.ingest.hook_events import SOURCE
from pps.ingest.importing.formats import FORMATS, format_of
from pps.ingest.importing.items import LONGEST, Item, Passed, Read, Unreadable
from pps.ingest.importing.source_files import Source, find
from pps.ingest.transcripts import digest
from tests import importing_files as made


def read(
    path: Path, wanted: str | None = None
) -> tuple[list[Item], dict[str, int], list[Unreadable]]:
    """Return what an import would store, what it would pass over, and what it could not read."""
    found: list[Read] = []
    for source in find([path]):
        if not isinstance(source, Source):
            found.append(source)
        elif chosen := (FORMATS[wanted] if wanted else format_of(source)):
            found += chosen.read(source)
        else:
            found.append(Passed("unknown"))
    items = [one for one in found if isinstance(one, Item)]
    passed = Counter(one.why for one in found if isinstance(one, Passed))
    return items, dict(passed), [one for one in found if isinstance(one, Unreadable)]


def said(items: list[Item]) -> list[tuple[str, str]]:
    return [(str(one.options.get("role", "user")), one.content) for one in items]


def refs(items: list[Item]) -> list[str]:
    return [one.options.get("source_ref", "") for one in items]


@pytest.mark.parametrize("name", list(FORMATS))
def test_a_format_is_known_by_its_content_and_every_message_has_a_reference_of_its_own(
    tmp_path: Path, name: str
) -> None:
    made.MAKE[name](tmp_path)
    known = [format_of(one) for one in find([tmp_path]) if isinstance(one, Source)]
    assert name in [one.name for one in known if one]
    items, _, _ = read(tmp_path)
    assert items
    assert all(refs(items))
    keys = [
        (one.options.get("source"), one.options.get("session"), one.options.get("source_ref"))
        for one in items
    ]
    assert len(set(keys)) == len(keys)
    assert read(tmp_path) == read(tmp_path)


def test_a_transcript_keeps_what_was_said_and_done_under_the_references_of_the_hooks(
    tmp_path: Path,
) -> None:
    items, passed, unreadable = read(made.MAKE["claude-code"](tmp_path))
    assert said(items) == [
        ("user", "Please add a price list."),
        ("assistant", "I will write it."),
        ("tool", "Bash: List files (ls)"),
        ("assistant", "It is there."),
        ("user", "Look at teas."),
        ("system", "A shop for tea"),
    ]
    assert refs(items)[1:4] == ["u-5", "tool:t-1", "u-8"]
    assert {one.options.get("source") for one in items} == {SOURCE}
    assert {one.options.get("session") for one in items} == {
        made.SESSION,
        f"{made.SESSION}/agent-a1",
    }
    assert "project-tea-shop" in items[0].options.get("tags", ())
    assert items[-1].options.get("kind") == "summary"
    assert [one.where for one in unreadable] == [f"{made.SESSION}.jsonl:10"]
    assert passed["results of tools"] == 1
    assert passed["thoughts of the model"] == 1
    assert (
        sum(count for why, count in passed.items() if why.startswith("Claude Code's own lines"))
        == 5
    )
    prompt = made.entry("user", "u-1", "Say it.", promptId="p-7")
    items, _, _ = read(made.lines(tmp_path / "one.jsonl", [prompt]))
    assert refs(items) == [f"prompt:p-7:{digest('Say it.')}"]


def test_of_a_claude_code_prompt_only_what_a_person_typed_is_read(tmp_path: Path) -> None:
    reminder = "<system-reminder>\nYou work in a worktree.\n</system-reminder>"
    written = [
        f"{reminder}\n\nSay it.",
        reminder,
        '<agent-message from="reviewer">Three findings.</agent-message>',
    ]
    prompts = [
        made.entry("user", f"u-{number}", text, promptId="p-7")
        for number, text in enumerate(written)
    ]
    items, passed, _ = read(made.lines(tmp_path / "one.jsonl", prompts))
    assert said(items) == [("user", "Say it.")]
    assert refs(items) == [f"prompt:p-7:{digest('Say it.')}"]
    assert passed["Claude Code's own lines (commands and notices)"] == 2


def test_of_a_chatgpt_tree_the_branch_that_was_seen_last_is_kept(tmp_path: Path) -> None:
    items, passed, unreadable = read(made.MAKE["chatgpt"](tmp_path))
    assert said(items) == [
        ("system", "Tea at home"),
        ("user", "How long must green tea stand?"),
        ("tool", "browser: search(tea)"),
        ("assistant", "Two minutes.\n\n[image]"),
        ("user", "Only this."),
    ]
    assert passed["messages of branches that were left"] == 1
    assert passed["results of tools"] == 1
    assert passed["unknown"] == 1
    assert unreadable == []


def test_a_claude_export_keeps_attached_texts_and_names_an_unknown_sender(tmp_path: Path) -> None:
    items, _, unreadable = read(made.MAKE["claude"](tmp_path))
    assert said(items) == [
        ("system", "Bread"),
        ("system", "How bread is baked."),
        (
            "user",
            "How hot must the oven be?\n\n[attached oven.txt]\nOven: 250 degrees.\n\n[file oven.png]",
        ),
        ("assistant", "As hot as it gets."),
        ("tool", "web_search: oven heat"),
    ]
    assert [one.where for one in unreadable] == ["conversations.json[0] message 2"]


def test_memories_of_mem0_become_turns_and_its_relations_facts(tmp_path: Path) -> None:
    items, _, unreadable = read(made.MAKE["mem0"](tmp_path))
    assert [one.content for one in items] == ["Likes green tea", "ana lives in Lisbon"]
    assert items[0].options.get("tags") == ("food-drink",)
    (fact,) = items[1].options.get("facts", ())
    assert (fact.subject, fact.relation, fact.object) == ("ana", "LIVES_IN", "Lisbon")
    assert len(unreadable) == 1
    backup = {"memories.json": json.dumps(made.OPENMEMORY), "memories.jsonl.gz": "x"}
    items, passed, _ = read(made.packed(tmp_path / "backup.zip", backup))
    assert [(one.content, one.options.get("tags")) for one in items] == [
        ("Has been to Porto", ("travel",))
    ]
    assert passed == {"memories that were deleted in mem0": 1, "unknown": 1}


def test_a_graphiti_graph_comes_with_its_episodes_and_none_of_its_ids_or_groups(
    tmp_path: Path,
) -> None:
    items, _, unreadable = read(made.MAKE["graphiti"](tmp_path))
    assert [one.content for one in items] == [
        "Ana: I live in Lisbon.",
        "Ana was born in Lisbon.",
        "Alone: No edge.",
    ]
    nodes = {one.name: one for item in items for one in item.options.get("nodes", ())}
    assert (nodes["Ana"].kind, nodes["Ana"].summary, dict(nodes["Ana"].attributes)) == (
        "Person",
        "A baker.",
        {"age": 40},
    )
    facts = [one for item in items for one in item.options.get("facts", ())]
    assert [one.relation for one in facts] == ["LIVES_IN", "was_born_in"]
    assert facts[1].invalid_at is not None
    assert [one.why for one in unreadable] == ["joins a node that is not in the file"]
    assert "theirs" not in repr(items)


def test_a_note_of_basic_memory_brings_its_node_observations_and_relations(tmp_path: Path) -> None:
    items, _, _ = read(made.MAKE["basic-memory"](tmp_path))
    (item,) = items
    (node,) = item.options.get("nodes", ())
    assert (node.name, node.kind, node.tags) == ("Green Tea", "Recipe", ("tea", "kitchen", "heat"))
    assert node.aliases == ("kitchen/green-tea",)
    observations: Any = node.attributes["observations"]
    assert [one["category"] for one in observations] == ["method"]
    facts = [(one.relation, one.object, one.kind) for one in item.options.get("facts", ())]
    assert facts == [
        ("LINKS_TO", "Kettle", "relation"),
        ("REQUIRES", "Kettle", "relation"),
        ("CONTRASTS_WITH", "Black Tea", "relation"),
    ]
    assert str(item.options.get("occurred_at")) == "2026-01-05 00:00:00+00:00"
    assert item.options.get("tags") == ("tea", "kitchen")
    assert "- [ ] buy more" in item.content


def test_an_unreadable_line_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    items, _, unreadable = read(made.MAKE["jsonl"](tmp_path))
    assert [one.content for one in items] == ["Hello.", "Ana lives here."]
    assert [one.where for one in unreadable] == ["talk.jsonl:2: mood"]
    path = tmp_path / "torn.jsonl"
    path.write_bytes(b'{"content": "a"}\n{"content": "\xff"}\n{"content": "b"}\n{"content": "c')
    items, _, unreadable = read(path)
    assert [one.content for one in items] == ["a", "b"]
    assert [one.where for one in unreadable] == ["torn.jsonl:2", "torn.jsonl:4"]


def test_of_a_list_that_ends_in_the_middle_what_came_before_is_read(tmp_path: Path) -> None:
    whole = json.dumps([{**made.CHATGPT[1], "id": f"c-{number}"} for number in range(50)])
    path = tmp_path / "conversations.json"
    path.write_text(whole[:-200])
    items, _, unreadable = read(path)
    assert len(items) == 49
    assert [one.where for one in unreadable] == ["conversations.json[49]"]


def test_a_list_far_larger_than_its_elements_is_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    one = {
        "title": "é" * 300,
        "mapping": {"a": made.node("a", None, made.said("n", "user", "語" * 2_000))},
    }
    path.write_text(
        json.dumps([{**one, "id": f"c-{number}"} for number in range(600)], ensure_ascii=False)
    )
    items, _, unreadable = read(path)
    assert (len(items), unreadable) == (1_200, [])


def test_a_message_longer_than_a_turn_becomes_several_and_nothing_of_it_is_lost(
    tmp_path: Path,
) -> None:
    words = " ".join(f"word{number}" for number in range(20_000))
    items, _, _ = read(made.lines(tmp_path / "x.jsonl", [made.entry("user", "u-1", words)]))
    assert len(items) == 4
    assert all(len(one.content) <= LONGEST for one in items)
    assert " ".join(one.content for one in items).split() == words.split()
    assert len(set(refs(items))) == 4


@pytest.mark.parametrize("kind", ["binary", "huge", "latin"])
def test_a_file_that_is_no_note_is_named(tmp_path: Path, kind: str) -> None:
    data = {"binary": b"# A\0B", "huge": b"a " * 2_000_001, "latin": "Grün".encode("latin-1")}[kind]
    (tmp_path / "a.md").write_bytes(data)
    items, _, unreadable = read(tmp_path)
    assert items == []
    assert [one.where for one in unreadable] == ["a.md"]


def test_hidden_files_and_encrypted_members_are_not_read(tmp_path: Path) -> None:
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / ".obsidian" / "a.md").write_text("# Hidden")
    (tmp_path / ".b.md").write_text("# Hidden")
    made.packed(tmp_path / "notes.zip", {"__MACOSX/x.md": "x", "in/side.md": "# Inside\n\nYes."})
    items, passed, unreadable = read(tmp_path)
    assert [one.content for one in items] == ["# Inside\n\nYes."]
    assert (passed, unreadable) == ({"hidden or linked folders": 1, "hidden files": 2}, [])


def test_a_zip_file_that_is_damaged_is_named(tmp_path: Path) -> None:
    path = made.packed(tmp_path / "x.zip", {"a.md": "# A\n\n" + "Tea. " * 400})
    data = bytearray(path.read_bytes())
    data[60:90] = b"\0" * 30
    path.write_bytes(bytes(data))
    with pytest.raises(Exception, match=r"x\.zip!a\.md: cannot be read"):
        read(path)


def test_what_belongs_to_an_entity_is_not_given(tmp_path: Path) -> None:
    (tmp_path / "entities" / "bob").mkdir(parents=True)
    with pytest.raises(InvalidRequest, match="another"):
        list(find([tmp_path / "entities" / "bob"], tmp_path / "entities"))


def test_an_export_of_records_alone_is_known_and_says_how_they_come_in(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text('{"record":{"id":"1ff11695","kind":"Goal","title":"Run"},"versions":[]}\n')
    items, passed, unreadable = read(file)
    assert (items, unreadable) == ([], [])
    [why] = passed
    assert "--format records" in why
