"""What each other program's file brings: who said what and when, what is left out, and what is a node or a fact."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pps.core.time import precision_of
from pps.ingest.importing.formats import format_of
from pps.ingest.importing.items import Item
from pps.ingest.importing.source_files import Source, find
from tests import importing_files as made
from tests.unit.test_ingest_importing_formats import read, said


def moments(items: list[Item]) -> list[datetime | None]:
    return [item.options.get("occurred_at") for item in items]


def format_name(path: Path) -> str:
    [source] = [one for one in find([path]) if isinstance(one, Source)]
    found = format_of(source)
    return found.name if found else ""


def test_open_webui_follows_the_branch_to_the_current_message(tmp_path: Path) -> None:
    items, passed, unreadable = read(made.MAKE["open-webui"](tmp_path))
    assert said(items) == [
        ("system", "Sourdough"),
        ("user", "How long does my starter Gerald rest?"),
        ("assistant", "Twelve hours."),
        ("tool", "get_time: now"),
        ("user", "Good, at 24 degrees.\n\n[file gerald.jpg]"),
    ]
    assert passed == {"messages of branches that were left": 1, "thoughts of the model": 1}
    assert not unreadable
    assert {item.options.get("session") for item in items} == {"w-1"}
    assert moments(items)[1] == datetime(2026, 1, 2, 10, tzinfo=UTC)


@pytest.mark.parametrize("is_list", [False, True])
def test_librechat_takes_the_branch_with_the_latest_message(tmp_path: Path, is_list: bool) -> None:
    value = [made.LIBRECHAT] if is_list else made.LIBRECHAT
    items, passed, _ = read(made.document(tmp_path / "van.json", value))
    assert said(items) == [
        ("system", "Van"),
        ("user", "How thirsty is the van?"),
        ("assistant", "Eight litres."),
        ("tool", "search: van"),
        ("user", "We bought the blue one."),
    ]
    assert passed == {"messages of branches that were left": 1, "thoughts of the model": 1}


def test_librechat_reads_a_flat_list_of_messages_too(tmp_path: Path) -> None:
    flat: list[dict[str, Any]] = [
        {"messageId": "1", "parentMessageId": "0", "isCreatedByUser": True, "text": "One?"},
        {"messageId": "2", "parentMessageId": "1", "isCreatedByUser": False, "text": "Left."},
        {"messageId": "3", "parentMessageId": "1", "isCreatedByUser": False, "text": "Two."},
    ]
    value = {"conversationId": "c", "messages": flat}
    items, passed, _ = read(made.document(tmp_path / "flat.json", value))
    assert [text for _, text in said(items)] == ["One?", "Two."]
    assert passed == {"messages of branches that were left": 1}


def test_codex_keeps_prompts_answers_and_tools_and_no_prompt_twice(tmp_path: Path) -> None:
    items, passed, unreadable = read(made.MAKE["codex"](tmp_path))
    assert said(items) == [
        ("user", "The till rounds wrongly."),
        ("tool", "shell: rg round"),
        ("assistant", "It rounds half to even; I changed it."),
    ]
    assert passed["what Codex puts before a prompt"] == 1
    assert passed["prompts that are written twice"] == 1
    assert passed["thoughts of the model"] == 1
    assert not unreadable
    assert {item.options.get("session") for item in items} == {"cx-1"}
    assert items[0].options.get("tags") == ["project-tea-shop"]


def test_codex_reads_the_older_lines_without_a_payload(tmp_path: Path) -> None:
    old = [
        {"id": "old-1", "timestamp": "2025-05-01T10:00:00Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]},
    ]  # fmt: skip
    path = made.lines(tmp_path / "rollout-old.jsonl", old)
    assert format_name(path) == "codex"
    items, _, _ = read(path)
    assert said(items) == [("user", "Hello."), ("assistant", "Hi.")]
    assert items[0].options.get("session") == "old-1"


def test_gemini_cli_reads_a_session_with_its_tools(tmp_path: Path) -> None:
    items, passed, _ = read(made.MAKE["gemini-cli"](tmp_path))
    assert said(items) == [
        ("user", "Where are the labels?"),
        ("assistant", "In print/labels."),
        ("tool", "glob: *.svg"),
    ]
    assert passed == {"Gemini CLI's own messages": 1, "thoughts of the model": 1}
    assert items[0].options.get("tags") == ["project-tea-shop"]


def test_gemini_cli_leaves_out_what_a_session_was_rewound_over(tmp_path: Path) -> None:
    path = made.lines(tmp_path / "session-2.jsonl", made.GEMINI_LINES)
    assert format_name(path) == "gemini-cli"
    items, passed, _ = read(path)
    assert said(items) == [
        ("user", "Use blue paper."),
        ("assistant", "Blue paper is ordered."),
        ("system", "Paper was ordered."),
    ]
    assert passed == {"messages of branches that were left": 1}


def test_gemini_cli_reads_its_log_of_prompts(tmp_path: Path) -> None:
    log = [{"sessionId": "s", "messageId": 0, "type": "user", "message": "Hello?",
            "timestamp": "2026-02-02T08:00:00Z"}]  # fmt: skip
    path = made.document(tmp_path / "logs.json", log)
    assert format_name(path) == "gemini-cli"
    assert said(read(path)[0]) == [("user", "Hello?")]


def test_a_list_of_role_and_content_is_a_conversation(tmp_path: Path) -> None:
    items, passed, _ = read(made.MAKE["messages"](tmp_path))
    assert said(items) == [
        ("user", "My sister is called Ines."),
        ("assistant", "Noted."),
        ("tool", "save: Ines"),
    ]
    assert passed == {"messages of the system": 1, "results of tools": 1}
    assert {item.options.get("session") for item in items} == {"talk"}
    assert moments(items)[:2] == [datetime(2026, 2, 4, 8, tzinfo=UTC)] * 2


def test_each_object_with_messages_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    talk = {
        "messages": [{"role": "user", "content": "One."}, {"role": "assistant", "content": "Two."}]
    }
    path = made.lines(tmp_path / "tuned.jsonl", [talk, talk])
    assert format_name(path) == "messages"
    items, _, _ = read(path)
    assert [item.options.get("session") for item in items] == ["tuned:0"] * 2 + ["tuned:1"] * 2


def test_lines_of_role_and_content_alone_stay_pps_own_format(tmp_path: Path) -> None:
    plain = [{"role": "user", "content": "One."}]
    assert format_name(made.lines(tmp_path / "own.jsonl", plain)) == "jsonl"
    timed = [{"role": "user", "content": "One.", "timestamp": 1_770_000_000}]
    assert format_name(made.lines(tmp_path / "timed.jsonl", timed)) == "messages"


def test_whatsapp_names_speakers_and_joins_lines(tmp_path: Path) -> None:
    items, passed, unreadable = read(made.MAKE["whatsapp"](tmp_path))
    assert [(item.options.get("actor"), item.content) for item in items] == [
        ("Ana", "Grandma's party is on the 20th\nbring chairs please"),
        ("Rui Silva", "I'll bring six: two old, four new"),
        ("Rui Silva", "Chairs are in the car"),
    ]
    assert passed == {"WhatsApp's own lines and messages without words": 2}
    assert not unreadable
    # The fourteenth tells that the day stands first. The time is the phone's own, without a zone.
    assert moments(items)[0] == datetime(2026, 2, 3, 21, 4, 30)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("lines", "first"),
    [
        (["3/2/26, 9:04 PM - Ana: a", "3/14/26, 9:04 AM - Ana: b"], (2026, 3, 2, 21, 4)),
        (["3/2/26, 21:04 - Ana: a", "14/3/26, 9:04 - Ana: b"], (2026, 2, 3, 21, 4)),
        (["5/1/26, 21:04 - Ana: a", "6/1/26, 9:04 - Ana: b", "2/2/26, 9:04 - Ana: c"], (2026, 1, 5, 21, 4)),
        (["5/1/26, 9:04 p.m. - Ana: a"], (2026, 5, 1, 21, 4)),
        (["12/1/26, 12:04\u202fAM - Ana: a"], (2026, 12, 1, 0, 4)),
        (["[2026-02-03, 21:04:05] Ana: a"], (2026, 2, 3, 21, 4, 5)),
        (["03.02.26, 21:04 - Ana: a"], (2026, 2, 3, 21, 4)),
    ],
)  # fmt: skip
def test_whatsapp_finds_the_order_of_day_and_month(
    tmp_path: Path, lines: list[str], first: tuple[int, ...]
) -> None:
    path = made.note(tmp_path / "chat.txt", "\n".join(lines))
    assert format_name(path) == "whatsapp"
    assert moments(read(path)[0])[0] == datetime(*first)  # type: ignore[arg-type]  # noqa: DTZ001


def test_a_text_that_is_no_chat_is_left_alone(tmp_path: Path) -> None:
    assert format_name(made.note(tmp_path / "a.txt", "Dear Ana,\n\n03/02/2026 was fine.\n")) == ""
    assert format_name(made.note(tmp_path / "b.txt", "")) == ""


def test_mcp_memory_becomes_turns_nodes_and_facts(tmp_path: Path) -> None:
    items, _, unreadable = read(made.MAKE["mcp-memory"](tmp_path))
    assert [item.content for item in items] == [
        "Marta: Plays the cello",
        "Marta: Allergic to nuts",
        "Orchestra (organization)",
        "Marta plays in Orchestra",
    ]
    [node] = items[0].options.get("nodes", ())
    assert (node.name, node.kind) == ("Marta", "Person")
    assert node.summary == "Plays the cello Allergic to nuts"
    [fact] = items[3].options.get("facts", ())
    assert (fact.subject, fact.relation, fact.object) == ("Marta", "PLAYS_IN", "Orchestra")
    assert not unreadable


@pytest.mark.parametrize("name", ["memory.json", "read_graph.json"])
def test_mcp_memory_is_read_in_both_of_its_shapes(tmp_path: Path, name: str) -> None:
    graph = {"entities": made.MCP_MEMORY[:2], "relations": made.MCP_MEMORY[2:]}
    path = (
        made.lines(tmp_path / name, made.MCP_MEMORY)
        if name == "memory.json"
        else made.document(tmp_path / name, graph)
    )
    assert format_name(path) == "mcp-memory"
    contents = [item.content for item in read(path)[0]]
    assert contents == [item.content for item in read(made.MAKE["mcp-memory"](tmp_path / "x"))[0]]


def test_claude_mem_brings_observations_summaries_and_prompts(tmp_path: Path) -> None:
    items, passed, _ = read(made.MAKE["claude-mem"](tmp_path))
    assert said(items) == [
        (
            "assistant",
            "Till rounds down\n\nHalf cents were lost\n\nThe sum was cut, not rounded.\n\n"
            "- till.py uses decimal now",
        ),
        ("system", "Request: Fix the till\n\nLearned: Banks round half to even."),
        ("user", "Why is the till off by a cent?"),
    ]
    assert items[0].options.get("tags") == ["project-tea-shop", "bugfix", "rounding"]
    assert moments(items)[0] == datetime.fromtimestamp(1_770_000_000, UTC)
    assert passed == {"claude-mem's own lines about sessions": 1}


def test_mcp_memory_service_brings_tags_and_times(tmp_path: Path) -> None:
    items, _, unreadable = read(made.MAKE["mcp-memory-service"](tmp_path))
    assert [item.content for item in items] == ["The staging key rotates on Mondays"]
    assert items[0].options.get("tags") == ("ops", "keys", "note")
    assert len(unreadable) == 1
    backup = made.document(tmp_path / "backup.json", made.MEMORY_SERVICE_BACKUP)
    assert format_name(backup) == "mcp-memory-service"
    [item] = read(backup)[0]
    assert (item.content, item.options.get("tags")) == (
        "Backups run at four",
        ("ops", "backup", "note"),
    )


def test_letta_brings_its_core_memory_and_what_was_said(tmp_path: Path) -> None:
    items, passed, _ = read(made.MAKE["letta"](tmp_path))
    assert said(items) == [
        ("system", "[human]\nLikes the river Elbe."),
        ("user", "I row on Tuesdays."),
        ("assistant", "Which club?"),
    ]
    assert passed == {
        "messages of the system": 1,
        "thoughts of the model": 1,
        "results of tools": 1,
        "Letta's own messages": 1,
    }


def test_chatgpt_brings_custom_instructions_once_and_obeys_do_not_remember(tmp_path: Path) -> None:
    context = {
        "id": "ctx",
        "author": {"role": "user"},
        "content": {
            "content_type": "user_editable_context",
            "user_profile": "I am a vet in Braga.",
            "user_instructions": "Answer in short sentences.",
        },
        "metadata": {"is_visually_hidden_from_conversation": True},
    }
    talk = {
        "title": "Cats",
        "id": "i-1",
        "create_time": 1_770_000_000.0,
        "mapping": {
            "a": made.node("a", None, context, "b"),
            "b": made.node("b", "a", made.said("m", "user", "Do cats like figs?")),
        },
    }
    hidden = {**talk, "id": "i-2", "is_do_not_remember": True, "title": "Secret"}
    path = made.document(tmp_path / "conversations.json", [talk, {**talk, "id": "i-3"}, hidden])
    items, passed, _ = read(path)
    texts = [text for _, text in said(items)]
    instructions = "[about me]\nI am a vet in Braga.\n\n[how to answer]\nAnswer in short sentences."
    assert texts.count(instructions) == 1
    assert "Secret" not in texts
    assert passed["conversations marked not to be remembered"] == 1


def test_a_branch_of_claude_that_was_left_is_not_taken_as_said(tmp_path: Path) -> None:
    root = "00000000-0000-4000-8000-000000000000"
    messages = [
        {"uuid": "a", "sender": "human", "text": "Paris in May?", "parent_message_uuid": root},
        {"uuid": "b", "sender": "assistant", "text": "Yes.", "parent_message_uuid": "a"},
        {"uuid": "c", "sender": "human", "text": "Rome in May?", "parent_message_uuid": root},
        {"uuid": "d", "sender": "assistant", "text": "Warm.", "parent_message_uuid": "c"},
    ]
    talk = {
        "uuid": "k",
        "name": "",
        "chat_messages": messages,
        "created_at": "2026-01-01T00:00:00Z",
    }
    items, passed, _ = read(made.document(tmp_path / "conversations.json", [talk]))
    assert [text for _, text in said(items)] == ["Rome in May?", "Warm."]
    assert passed == {"messages of branches that were left": 2}
    talk["current_leaf_message_uuid"] = "b"
    items, _, _ = read(made.document(tmp_path / "other.json", [talk]))
    assert [text for _, text in said(items)] == ["Paris in May?", "Yes."]


def test_a_note_that_has_only_properties_is_kept(tmp_path: Path) -> None:
    text = "---\nphone: 555-0199\nbirthday: 1988-04-02\ntags: [person]\n---\n"
    [item] = read(made.note(tmp_path / "Rui Silva.md", text))[0]
    assert item.content == "Rui Silva\n\nphone: 555-0199\nbirthday: 1988-04-02"
    assert item.options.get("tags") == ("person",)


def test_a_fence_of_another_kind_does_not_end_a_block_of_code(tmp_path: Path) -> None:
    text = "# Tea\n\n```sh\n~~~\n# no heading\n```\n\n## Water\n\n"
    note = made.note(tmp_path / "Brewing.md", text + "Boil it first. " * 80)
    _, second = read(note)[0]
    assert second.content.startswith("Tea › Water\n\nBoil it first.")


def test_links_of_a_vault_become_relations(tmp_path: Path) -> None:
    text = (
        '---\nauthor: "[[Ines Prado]]"\n---\nSee [[folder/Kettle|the kettle]] and [[Green Tea#Heat]].\n'
        "![[photo.png]]\n\n```sh\nif [[ -f x ]]; then\n```\nand `[[code]]`\n- [x] boiled\n"
    )
    [item] = read(made.note(tmp_path / "Tea Day.md", text))[0]
    [node] = item.options.get("nodes", ())
    assert (node.name, node.kind) == ("Tea Day", "Note")
    facts = item.options.get("facts", ())
    assert [(fact.relation, fact.object) for fact in facts] == [
        ("AUTHOR", "Ines Prado"),
        ("LINKS_TO", "Kettle"),
        ("LINKS_TO", "Green Tea"),
    ]
    assert {fact.kind for fact in facts} == {"relation"}


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("2026-03-05.md", datetime(2026, 3, 5, tzinfo=UTC)),
        ("2026_03_05 Standup.md", datetime(2026, 3, 5, tzinfo=UTC)),
        ("20260305.md", datetime(2026, 3, 5, tzinfo=UTC)),
        ("2026-02-30.md", None),
        ("Order 20260305.md", None),
        ("202603051200.md", None),
    ],
)
def test_a_note_named_by_a_date_is_of_that_day(
    tmp_path: Path, name: str, day: datetime | None
) -> None:
    [item] = read(made.note(tmp_path / name, "Slept well.\n"))[0]
    at = item.options.get("occurred_at")
    assert at is not None
    assert (precision_of(at) == "day") == (day is not None)
    if day:
        assert (at.year, at.month, at.day) == (day.year, day.month, day.day)


def test_a_date_in_a_note_counts_more_than_that_in_its_name(tmp_path: Path) -> None:
    text = "---\ndate: 2026-01-01\n---\nHello.\n"
    [item] = read(made.note(tmp_path / "2026-03-05.md", text))[0]
    at = item.options.get("occurred_at")
    assert at is not None
    assert (at.month, at.day) == (1, 1)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("---\npermalink: a/b\n---\n- [method] Cold water\n", "basic-memory"),
        ("---\npermalink: a/b\ntype: note\n---\n- requires [[Kettle]]\n", "basic-memory"),
        ("---\ntitle: Cup\npermalink: a/b\n---\n- holds [[Kettle]]\n", "basic-memory"),
        ("---\r\ntitle: Cup\r\npermalink: a/b\r\n---\r\n- holds [[Kettle]]\r\n", "basic-memory"),
        ("---\npermalink: /blog/tea\n---\nSee [[Kettle]].\n- [[Kettle]]\n", "markdown"),
        ("---\npermalink: a/b\ntype: post\n---\n- [[Kettle]]\n", "markdown"),
        ("---\ntype: note\n---\n- [method] Cold water\n- requires [[Kettle]]\n", "markdown"),
    ],
)
def test_basic_memory_is_known_by_more_than_one_feature(
    tmp_path: Path, text: str, name: str
) -> None:
    assert format_name(made.note(tmp_path / "a.md", text)) == name
