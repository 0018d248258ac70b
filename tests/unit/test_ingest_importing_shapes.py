"""Shapes that real exports have beside the plain one: nothing that a person said in them is lost or doubled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pps.ingest.hook_events import read_event, said_in
from pps.ingest.importing.claude_code import read as read_transcript
from pps.ingest.importing.formats import format_of
from pps.ingest.importing.items import Item, Passed
from pps.ingest.importing.source_files import Source
from pps.ingest.transcripts import digest
from tests import importing_files as made
from tests.integration.hooks.acting import RECORDED

PASTED_NOTICE = (
    '\n\n<pasted_content id="a">\n<bash-stdout>ok</bash-stdout>\n</pasted_content id="a">\n'
)


def items(path: Path) -> list[Item]:
    source = Source(path.name, path, path.parent, path.stat().st_size)
    chosen = format_of(source)
    assert chosen is not None
    return [one for one in chosen.read(source) if isinstance(one, Item)]


def said(path: Path) -> list[tuple[str, str]]:
    return [(str(one.options.get("role")), one.content) for one in items(path)]


def chatgpt(path: Path, **more: Any) -> Path:
    return made.document(path / "conversations.json", [{"id": "c", **more}])


@pytest.mark.parametrize("with_times", [True, False])
def test_a_tree_that_names_no_current_node_is_read_to_its_end(
    tmp_path: Path, with_times: bool
) -> None:
    timed = [
        made.said(f"m{number}", "user", f"Word {number}.", create_time=1_700_000_000 + number)
        for number in (1, 2)
    ]
    untimed = [{**one, "create_time": None} for one in timed]
    first, second = timed if with_times else untimed
    answer = made.said("m3", "assistant", "An answer.", create_time=None)
    nodes = {
        "r": made.node("r", None, None, "a"),
        "a": made.node("a", "r", first, "b"),
        "b": made.node("b", "a", second, "c"),
        "c": made.node("c", "b", answer),
    }
    path = chatgpt(tmp_path, mapping=nodes)
    assert said(path) == [("user", "Word 1."), ("user", "Word 2."), ("assistant", "An answer.")]


def test_of_chatgpt_files_are_named_canvases_kept_and_marks_of_pages_left_out(
    tmp_path: Path,
) -> None:
    files = {"attachments": [{"id": "f", "name": "rent.pdf"}, {"name": None}]}
    written = json.dumps({"name": "letter", "type": "document", "content": "Dear landlord"})
    answer = "It is due\ue200cite\ue202turn0search1\ue201 in May【4:1†source】."
    messages = [
        made.said("m1", "user", "Write a letter.", metadata=files),
        made.said("m2", "assistant", written, recipient="canmore.create_textdoc"),
        made.said("m3", "assistant", "{cut", recipient="canmore.create_textdoc"),
        made.said("m4", "assistant", answer),
        made.said("m5", "user", "", metadata=files),
    ]
    names = ["", *(one["id"] for one in messages)]
    nodes = {
        name: made.node(name, parent or None, message)
        for parent, name, message in zip(names, names[1:], messages, strict=False)
    }
    path = chatgpt(tmp_path, mapping=nodes, current_node="m5")
    assert said(path) == [
        ("user", "Write a letter.\n\n[file rent.pdf]"),
        ("assistant", "[letter]\nDear landlord"),
        ("tool", "canmore.create_textdoc: {cut"),
        ("assistant", "It is due in May."),
        ("user", "[file rent.pdf]"),
    ]


def test_of_claude_artifacts_projects_and_memories_are_kept(tmp_path: Path) -> None:
    written = {"command": "create", "id": "x", "title": "Letter", "content": "Dear landlord"}
    changed = {"command": "update", "id": "x", "old_str": "Dear", "new_str": "Good"}
    blocks = [
        {"type": "tool_use", "name": "artifacts", "input": given} for given in (written, changed)
    ]
    messages = [
        {
            "uuid": "1",
            "sender": "human",
            "text": "",
            "attachments": [{"file_name": "", "extracted_content": "Pasted."}],
        },
        {
            "uuid": "2",
            "sender": "assistant",
            "text": "",
            "content": [*blocks, {"type": "text", "text": "Here."}],
        },
    ]
    talk = made.document(
        tmp_path / "conversations.json", [{"uuid": "k", "chat_messages": messages}]
    )
    assert said(talk) == [
        ("user", "[attached]\nPasted."),
        ("assistant", "Here."),
        ("assistant", "[Letter]\nDear landlord"),
        ("tool", "artifacts: update"),
    ]
    document = {"uuid": "d", "filename": "rules.md", "content": "No smoking."}
    project = {
        "uuid": "p",
        "name": "Flat",
        "description": "",
        "prompt_template": "Be brief.",
        "docs": [document],
    }
    rules = [("system", "Flat\n\nBe brief."), ("system", "[rules.md]\nNo smoking.")]
    assert said(made.document(tmp_path / "projects.json", [project])) == rules
    assert said(made.document(tmp_path / "p.json", project)) == rules
    memory = {
        "conversations_memory": "Rents a flat.",
        "project_memories": {"p": "In Lisbon."},
        "account_uuid": "a",
    }
    found = items(made.document(tmp_path / "memories.json", [memory]))
    assert [
        (one.content, one.options.get("session"), one.options.get("kind")) for one in found
    ] == [
        ("Rents a flat.", "memories", "memory"),
        ("In Lisbon.", "p", "memory"),
    ]


def prompts(tmp_path: Path, *entries: Any) -> list[tuple[str, str]]:
    return said(made.lines(tmp_path / "t.jsonl", list(entries)))


def test_of_a_prompt_the_words_are_kept_and_not_what_the_client_laid_beside_them(
    tmp_path: Path,
) -> None:
    opened = "<ide_opened_file>The user opened a.py.</ide_opened_file>"
    reminder = "<system-reminder>\nBe good.\n</system-reminder>"
    command = "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>{}</command-args>"
    given: list[tuple[Any, str]] = [
        (f"{opened}Mend it.", "Mend it."),
        ([{"type": "text", "text": opened}, {"type": "text", "text": "Mend it."}], "Mend it."),
        (f"Mend it.\n{reminder}", "Mend it."),
        (f"{opened}\n{reminder}", ""),
        ("What is <ide_selection> for?", "What is <ide_selection> for?"),
        (
            '\n\n<pasted_content id="26e8">\nMend it.\n\nNow.\n</pasted_content id="26e8">\n',
            "Mend it.\n\nNow.",
        ),
        ('Do <pasted_content id="a">\n1\n</pasted_content id="a"> not 2.', "Do 1 not 2."),
        (
            'Why <pasted_content id="a">\n</pasted_content id="b">?',
            'Why <pasted_content id="a">\n</pasted_content id="b">?',
        ),
        (PASTED_NOTICE, "<bash-stdout>ok</bash-stdout>"),
        (command.format("the door"), "/fix the door"),
        (command.format(""), ""),
        ("Explain <command-name>x</command-name> <command-args>y</command-args>.",) * 2,
        ([{"type": "text", "text": "[Request interrupted by user for tool use]"}], ""),
    ]
    entries = [
        made.entry("user", f"u-{number}", content) for number, (content, _) in enumerate(given)
    ]
    assert prompts(tmp_path, *entries) == [("user", words) for _, words in given if words]


def test_a_prompt_is_known_as_the_hook_knew_it_whatever_lay_beside_it(tmp_path: Path) -> None:
    told = {
        "id": "0" * 32,
        "at": 1.0,
        "event": "UserPromptSubmit",
        "session": made.SESSION,
        "text": "Mend it.",
    }
    ((_, hooked),) = said_in(read_event({**told, "prompt": "p-1"}))
    content = [
        {"type": "text", "text": "<ide_selection>x</ide_selection>"},
        {"type": "text", "text": "Mend it."},
    ]
    (found,) = items(
        made.lines(tmp_path / "t.jsonl", [made.entry("user", "u", content, promptId="p-1")])
    )
    assert (
        found.options.get("source_ref")
        == hooked.get("source_ref")
        == f"prompt:p-1:{digest('Mend it.')}"
    )
    assert found.options.get("session") == hooked.get("session")


def test_a_long_prompt_is_known_as_the_hook_knew_it_piece_by_piece(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(12_000))
    told = {
        "id": "0" * 32,
        "at": 1.0,
        "event": "UserPromptSubmit",
        "session": made.SESSION,
        "prompt": "p-1",
    }
    hooked = [
        (content, options.get("source_ref"))
        for content, options in said_in(read_event({**told, "text": text}))
    ]
    found = items(made.lines(tmp_path / "t.jsonl", [made.entry("user", "u", text, promptId="p-1")]))
    assert len(hooked) == 3
    assert [one.options.get("source_ref") for one in found] == [ref for _, ref in hooked]
    assert (
        "".join(content for content, _ in hooked).strip()
        == "".join(one.content for one in found).strip()
    )


def test_what_was_typed_while_the_model_worked_is_kept_and_notices_are_not(tmp_path: Path) -> None:
    def queued(uuid: str, prompt: Any, **more: Any) -> dict[str, Any]:
        about = {"type": "queued_command", "prompt": prompt, **more}
        line = made.entry("attachment", uuid, "")
        del line["message"]
        return {**line, "attachment": about}

    assert prompts(
        tmp_path,
        made.entry("user", "u-1", "Build it."),
        queued("u-2", "And test it.", commandMode="prompt", origin={"kind": "human"}),
        queued("u-3", [{"type": "image"}, {"type": "text", "text": "Like this."}]),
        queued(
            "u-4", "<task-notification>done</task-notification>", commandMode="task-notification"
        ),
        queued("u-5", "A peer says so.", origin={"kind": "peer"}),
        {**queued("u-6", ""), "attachment": {"type": "file", "content": "x"}},
    ) == [("user", "Build it."), ("user", "And test it."), ("user", "Like this.")]


def test_a_notice_that_a_person_pasted_is_what_they_said_and_one_of_the_client_is_not() -> None:
    told = {"id": "0" * 32, "at": 1.0, "event": "UserPromptSubmit", "session": made.SESSION}
    ((pasted, _),) = said_in(read_event({**told, "text": PASTED_NOTICE}))
    assert pasted == "<bash-stdout>ok</bash-stdout>"
    assert said_in(read_event({**told, "text": pasted})) == []


@pytest.mark.parametrize("scene", ["printed/26", "typed/04", "typed/07", "typed/10"])
def test_a_recorded_prompt_is_known_by_what_the_hook_kept_of_it(tmp_path: Path, scene: str) -> None:
    """Several lines, a paste, a command, and one that was typed while the model worked."""
    payload = json.loads((RECORDED / f"{scene}-UserPromptSubmit.json").read_bytes())
    told = {
        "id": "0" * 32,
        "at": 1.0,
        "event": "UserPromptSubmit",
        "session": payload["session_id"],
    }
    ((content, hooked),) = said_in(
        read_event({**told, "text": payload["prompt"], "prompt": payload["prompt_id"]})
    )
    lines = [path.read_text() for path in sorted((RECORDED / scene).parent.glob("*.jsonl"))]
    (tmp_path / "t.jsonl").write_text("".join(lines))
    found = {item.options.get("source_ref"): item.content for item in items(tmp_path / "t.jsonl")}
    assert found[hooked.get("source_ref")] == content


def test_what_was_copied_into_a_fork_is_of_the_session_that_it_was_said_in(tmp_path: Path) -> None:
    first = [
        made.entry("user", "u-1", "Build it.", promptId="p-1"),
        made.entry("assistant", "u-2", [{"type": "text", "text": "Done."}]),
    ]
    copied = [
        {
            **one,
            "sessionId": "fork",
            "forkedFrom": {"sessionId": made.SESSION, "messageUuid": one["uuid"]},
        }
        for one in first
    ]
    new = {**made.entry("user", "u-3", "Try another way."), "sessionId": "fork"}

    def keys(path: Path) -> list[tuple[Any, Any]]:
        return [(one.options.get("session"), one.options.get("source_ref")) for one in items(path)]

    origin = keys(made.lines(tmp_path / "a.jsonl", first))
    assert keys(made.lines(tmp_path / "b.jsonl", [*copied, new])) == [*origin, ("fork", "u-3")]


@pytest.mark.timeout(60)  # a reader that runs away takes minutes
def test_a_prompt_of_openings_that_never_close_is_read_in_linear_time(tmp_path: Path) -> None:
    path = made.lines(tmp_path / "t.jsonl", [made.entry("user", "u", "<ide_selection>" * 200_000)])
    source = Source(path.name, path, path.parent, path.stat().st_size)
    assert not [one for one in read_transcript(source) if isinstance(one, Passed)]
