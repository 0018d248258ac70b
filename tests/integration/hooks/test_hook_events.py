"""Every event against a live server: what the agent is given, and what is kept."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.hooks.acting import DEADLINE_S, Session
from tests.integration.interfaces.serving import Served, serving
from tests.waiting import PATIENCE_S, wait_until

Turns = Callable[[Session], list[dict[str, Any]]]


def knows(served: Served, entity: str, text: str) -> None:
    served.link.call("remember", entity, {"content": text, "session": "before", "wait": "done"})


def test_a_session_begins_with_what_was_said_lately(served: Served, at_home: Session) -> None:
    knows(served, at_home.project.name, "The oven in the kitchen is broken.")
    ended = at_home.run("SessionStart")
    assert (ended.code, ended.err) == (0, b"")
    assert set(json.loads(ended.out)) == {"hookSpecificOutput"}
    assert json.loads(ended.out)["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert "The oven in the kitchen is broken." in ended.context
    for source in ("clear", "compact", "fork"):
        assert "oven" in at_home.run("SessionStart", source=source).context
    # What a resumed session was shown is before its agent still.
    assert "oven" not in at_home.run("SessionStart", source="resume").context


def test_a_prompt_is_kept_and_answered_with_what_is_known(
    served: Served, at_home: Session, turns: Turns
) -> None:
    knows(served, at_home.project.name, "The oven in the kitchen is broken.")
    ended = at_home.run("UserPromptSubmit", prompt="What about the kitchen?")
    assert "The oven in the kitchen is broken." in ended.context
    assert "What about the kitchen?" not in ended.context
    assert len(ended.context) <= 8_000
    kept = turns(at_home)[-1]
    assert (kept["role"], kept["content"]) == ("user", "What about the kitchen?")
    assert (kept["source"], kept["session"]) == ("claude-code", at_home.id)


def test_a_prompt_is_answered_with_facts_and_without_nodes(served: Served, tmp_path: Path) -> None:
    fact = {
        "subject": "Mira",
        "relation": "MENDED",
        "object": "oven",
        "text": "Mira mended the oven.",
    }

    def sections(server: Served) -> list[str]:
        server.create("mender")
        arguments = {
            "content": "It works again.",
            "session": "before",
            "wait": "done",
            "facts": [fact],
        }
        server.link.call("remember", "mender", arguments)
        session = Session(server.home, tmp_path, options=("--entity", "mender"))
        context = session.run("UserPromptSubmit", prompt="the oven").context
        assert "- Mira mended the oven." in context
        return [line for line in context.splitlines() if line.startswith("## ")]

    own = tmp_path / "home" / "profiles" / "ambient.toml"
    own.parent.mkdir(parents=True, mode=0o700)
    own.write_text('description = "Facts"\n[channels.facts]\nperspectives = { bm25 = 1.0 }\n')
    assert "## Nodes" not in sections(served)
    with serving(tmp_path / "home") as only_facts:
        assert set(sections(only_facts)) <= {"## Facts"}


def test_a_full_memory_gives_at_most_eight_thousand_characters(
    served: Served, tmp_path: Path
) -> None:
    served.create("full")
    session = Session(served.home, tmp_path, options=("--entity", "full"))
    for number in range(12):
        emoji = "\U0001fad6" * 500
        knows(served, "full", f"Kitchen number {number} has {'a long shelf and ' * 30} {emoji}")
    context = session.run("UserPromptSubmit").context
    assert 2_000 < len(context.encode("utf-16-le")) // 2 <= 8_000


def test_a_memory_that_knows_nothing_says_nothing(served: Served, tmp_path: Path) -> None:
    served.create("newborn")
    session = Session(served.home, tmp_path, options=("--entity", "newborn"))
    for event in DEADLINE_S:
        assert session.run(event).is_silent()


def test_the_same_event_told_twice_is_kept_once(at_home: Session, turns: Turns) -> None:
    for _ in range(2):
        at_home.run("UserPromptSubmit", prompt="Once.")
        at_home.run("PostToolUse")
        at_home.run("Stop", last_assistant_message="Said once.")
    assert [one["content"] for one in turns(at_home)] == [
        "Once.",
        "Write: /work/notes.txt",
        "Said once.",
    ]


def test_a_long_prompt_is_kept_whole(at_home: Session, turns: Turns) -> None:
    text = "".join(f"line {number}\n" for number in range(12_000))
    at_home.run("UserPromptSubmit", prompt=text)
    kept = turns(at_home)
    assert len(kept) == 3
    assert "".join(one["content"] for one in kept) == text


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "  \n",
        "<task-notification>\n<task-id>a</task-id>",
        "<command-name>/clear</command-name>",
        "<system-reminder>\nYou work in a worktree.\n</system-reminder>\n",
        '<agent-message from="reviewer">Three findings.</agent-message>',
        '<teammate-message teammate_id="tester">Done.</teammate-message>',
        '<cross-session-message from="s-1">Done.</cross-session-message>',
        '<\\cross-session-message from="s-1" from-name="docs">\nDone.',
        "Another Claude session sent a message:\n<cross-session-message>\nDone.\n</cross-session-message>",
    ],
)
def test_what_no_person_said_is_not_kept_as_a_prompt(
    at_home: Session, turns: Turns, prompt: str
) -> None:
    assert at_home.run("UserPromptSubmit", prompt=prompt).is_silent()
    assert turns(at_home) == []


def test_what_a_person_typed_behind_a_reminder_of_the_client_is_kept(
    at_home: Session, turns: Turns
) -> None:
    reminder = "<system-reminder>\nYou work in a worktree.\n</system-reminder>\n\n"
    at_home.run("UserPromptSubmit", prompt=f"{reminder}{reminder}Mend the oven.")
    at_home.run("UserPromptSubmit", prompt=f"What does {reminder.strip()} mean?")
    said = ["Mend the oven.", f"What does {reminder.strip()} mean?"]
    assert [one["content"] for one in turns(at_home)] == said


def test_a_tool_is_kept_in_one_line_without_what_it_wrote_or_read(
    at_home: Session, turns: Turns
) -> None:
    secret = "the whole file " * 100
    at_home.run(
        "PostToolUse", tool_input={"file_path": "/a/b.py", "content": secret}, tool_use_id="1"
    )
    at_home.run(
        "PostToolUse",
        tool_name="Bash",
        tool_input={"command": "npm  test\n", "description": "Run the tests"},
        tool_response={"stdout": secret, "stderr": ""},
        tool_use_id="2",
        agent_id="a1",
        agent_type="Explore",
    )
    at_home.run(
        "PostToolUse", tool_name="mcp__pps-shop__recall", tool_input={"query": "x"}, tool_use_id="3"
    )
    at_home.run(
        "PostToolUse",
        tool_name="mcp__plugin_pps_memory__recall",
        tool_input={"query": "x"},
        tool_use_id="4",
    )
    at_home.run("PostToolUse", tool_name="Odd", tool_input=["no", "object"], tool_use_id="5")
    kept = turns(at_home)
    said = ["Write: /a/b.py", "Bash: Run the tests (npm test)", "Odd"]
    assert [(one["role"], one["content"]) for one in kept] == [("tool", text) for text in said]
    assert kept[1]["actor"] == "Explore"


def test_a_pack_is_given_once_to_each_agent_of_a_session(served: Served, at_home: Session) -> None:
    knows(served, at_home.project.name, "The oven in the kitchen is broken.")
    assert at_home.run("PreToolUse").is_silent()
    given = at_home.run("UserPromptSubmit").context
    assert at_home.run("PreToolUse").is_silent()
    subagent = at_home.run("PreToolUse", agent_id="a1", agent_type="Explore")
    assert subagent.context == given
    assert json.loads(subagent.out)["hookSpecificOutput"] == {
        "hookEventName": "PreToolUse",
        "additionalContext": given,
    }
    assert at_home.run("PreToolUse", agent_id="a1").is_silent()


def test_a_pack_that_was_too_late_comes_with_the_next_tool(
    served: Served, at_home: Session
) -> None:
    knows(served, at_home.project.name, "The oven in the kitchen is broken.")
    folder = str(at_home.project)
    event = {
        "event": "UserPromptSubmit",
        "session": at_home.id,
        "cwd": folder,
        "project": folder,
        "text": "Kitchen?",
    }
    message = {**event, "id": f"{7:032x}", "at": 1_780_000_000, "within_s": 0.0}
    with served.owner() as owner:
        answer = owner.post("/owner/hooks", json=message)
    assert answer.json() == {"context": "", "kept": True}
    given: list[str] = []
    wait_until(lambda: bool(given.append(at_home.run("PreToolUse").context) or given[-1]))
    assert "The oven in the kitchen is broken." in given[-1]
    assert at_home.run("PreToolUse").is_silent()


def test_what_a_pack_said_is_never_kept_again(
    served: Served, at_home: Session, turns: Turns
) -> None:
    knows(served, at_home.project.name, "The oven in the kitchen is broken.")
    pack = at_home.run("UserPromptSubmit", prompt="The kitchen first.").context
    assert pack
    at_home.run("UserPromptSubmit", prompt=f"{pack}\nSecond.")
    at_home.says(f"I was told:\n{pack}\nThird.")
    at_home.run("Stop", last_assistant_message=f"I was told:\n{pack}\nThird.")
    at_home.says(pack)
    at_home.run("Stop", last_assistant_message=pack)
    said = [one["content"] for one in turns(at_home)]
    assert said == ["The kitchen first.", "Second.", "I was told:\nThird."]


def test_answers_come_from_the_transcript_each_once(at_home: Session, turns: Turns) -> None:
    at_home.says("Said before the hooks were there.")
    at_home.run("SessionStart", source="resume")
    at_home.run("UserPromptSubmit", prompt="Mend it.")
    at_home.write({"type": "user", "message": {"role": "user", "content": "Mend it."}})
    at_home.says("I look first.")
    at_home.write(
        {
            "type": "assistant",
            "isSidechain": True,
            "message": {"role": "assistant", "content": "a subagent"},
        }
    )
    at_home.write(
        {"type": "assistant", "isApiErrorMessage": True, "message": {"content": "API Error"}}
    )
    at_home.write(
        {
            "type": "user",
            "isCompactSummary": True,
            "message": {"role": "user", "content": "a summary"},
        }
    )
    tool = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    thought = {"type": "thinking", "thinking": "hm"}
    at_home.write(
        {"type": "assistant", "message": {"role": "assistant", "content": [thought, tool]}}
    )
    at_home.says("Mended.")
    at_home.run("Stop", last_assistant_message="Mended.")
    at_home.run("Stop", last_assistant_message="Mended.")
    at_home.says("One thing more.")
    at_home.run("PreCompact")
    said = [(one["role"], one["content"]) for one in turns(at_home)]
    assert said == [
        ("user", "Mend it."),
        ("assistant", "I look first."),
        ("assistant", "Mended."),
        ("assistant", "One thing more."),
    ]


def test_a_transcript_that_lags_gives_the_answer_once_all_the_same(
    at_home: Session, turns: Turns
) -> None:
    at_home.run("UserPromptSubmit", prompt="Mend it.")
    at_home.run("Stop", last_assistant_message="Mended.")
    at_home.says("Mended.")
    at_home.says("And cleaned.")
    at_home.run("Stop", last_assistant_message="And cleaned.")
    said = [one["content"] for one in turns(at_home)]
    assert said == ["Mend it.", "Mended.", "And cleaned."]


def test_an_answer_in_several_parts_is_kept_once_though_the_event_carries_its_last_part(
    at_home: Session, turns: Turns
) -> None:
    at_home.run("SessionStart")
    parts = [
        {"type": "thinking", "thinking": "hm"},
        *({"type": "text", "text": text} for text in ("One.", "Two.")),
    ]
    for part in parts:
        at_home.write(
            {
                "type": "assistant",
                "message": {"id": "msg_1", "role": "assistant", "content": [part]},
            }
        )
    at_home.run("Stop", last_assistant_message="Two.")
    assert [one["content"] for one in turns(at_home)] == ["One.\n\nTwo."]


def test_a_transcript_written_anew_or_cut_short_gives_nothing_twice(
    at_home: Session, turns: Turns
) -> None:
    at_home.run("SessionStart")
    at_home.says("One.")
    at_home.says("Two.")
    at_home.run("Stop", last_assistant_message="Two.")
    lines = at_home.transcript.read_text().splitlines(keepends=True)
    at_home.transcript.write_text('{"type":"summary","summary":"Counting"}\n' + "".join(lines))
    at_home.says("Three.")
    at_home.run("Stop", last_assistant_message="Three.")
    at_home.transcript.write_text(lines[1])
    at_home.says("Four.")
    at_home.run("Stop", last_assistant_message="Four.")
    assert [one["content"] for one in turns(at_home)] == ["One.", "Two.", "Three.", "Four."]


def test_half_a_line_waits_for_its_end(at_home: Session, turns: Turns) -> None:
    at_home.run("SessionStart")
    at_home.says("One.")
    at_home.says("Two.")
    whole = at_home.transcript.read_bytes()
    at_home.transcript.write_bytes(whole[:-30])
    at_home.run("Stop", last_assistant_message="One.")
    assert [one["content"] for one in turns(at_home)] == ["One."]
    at_home.transcript.write_bytes(whole)
    at_home.run("Stop", last_assistant_message="Two.")
    assert [one["content"] for one in turns(at_home)] == ["One.", "Two."]


def test_a_session_that_ends_is_kept_though_nobody_waits(at_home: Session, turns: Turns) -> None:
    at_home.run("SessionStart")
    at_home.says("A last word.")
    assert at_home.run("SessionEnd").is_silent()
    wait_until(lambda: [one["content"] for one in turns(at_home)] == ["A last word."])


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "relative.jsonl", "/nowhere/x.jsonl", "\0.jsonl", ""]
)
def test_a_transcript_that_is_none_costs_nothing_but_its_lines(
    at_home: Session, turns: Turns, path: str
) -> None:
    assert at_home.run(
        "Stop", transcript_path=path, last_assistant_message="Still kept."
    ).is_silent()
    at_home.run("Stop", transcript_path=path, last_assistant_message="Still kept.")
    assert [one["content"] for one in turns(at_home)] == ["Still kept."]


BROKEN: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "empty": lambda _: b"",
    "truncated": lambda payload: json.dumps(payload).encode()[:-20],
    "garbage": lambda _: bytes(range(256)) * 50,
    "a list": lambda _: b"[1, 2]",
    "nested": lambda _: b"[" * 100_000,
    "wrong types": lambda payload: json.dumps(dict.fromkeys(payload, 7)).encode(),
    "nulls": lambda payload: json.dumps(dict.fromkeys(payload)).encode(),
    "no fields": lambda _: b"{}",
    "no session": lambda payload: json.dumps({**payload, "session_id": ""}).encode(),
    "no folder": lambda payload: json.dumps({**payload, "cwd": "not/absolute"}).encode(),
    "half characters": lambda payload: json.dumps(
        {**payload, "session_id": "\ud800", "agent_id": "\udfff"}
    ).encode(),
}


@pytest.mark.parametrize("event", DEADLINE_S)
def test_what_is_no_event_changes_nothing_and_says_nothing(
    at_home: Session, turns: Turns, event: str
) -> None:
    at_home.project_dir = ""
    for kind, spoil in BROKEN.items():
        ended = at_home.raw(event, spoil(at_home.payload(event)))
        assert (kind, ended.code, ended.err) == (kind, 0, b"")
        if kind != "half characters":
            assert ended.is_silent(), kind
    assert turns(at_home) == []


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolUse", "Stop"])
def test_a_huge_event_is_no_trouble(at_home: Session, turns: Turns, event: str) -> None:
    field = {
        "UserPromptSubmit": "prompt",
        "PostToolUse": "tool_response",
        "Stop": "last_assistant_message",
    }[event]
    ended = at_home.run(event, **{field: "so much " * 250_000})
    assert (ended.code, ended.err) == (0, b"")
    wait_until(lambda: bool(turns(at_home)))
    assert at_home.raw(event, b'{"session_id": "' + b"x" * (17 * 1024 * 1024) + b'"}').is_silent()


def test_debug_says_on_stderr_what_is_wrong_and_exits_with_zero(at_home: Session) -> None:
    at_home.options = ("--debug",)
    ended = at_home.raw("Stop", b"{")
    assert (ended.code, ended.out) == (0, b"")
    assert ended.err.startswith(b"pps hook: ")


def test_an_unknown_event_or_option_is_nothing(at_home: Session) -> None:
    for event, options in (("Nonsense", ()), ("Stop", ("--entity",)), ("", ("--home",))):
        at_home.options = options
        assert at_home.raw(event, b"{}").is_silent()


def test_a_hook_whose_output_nobody_reads_ends_quietly(at_home: Session) -> None:
    process: subprocess.Popen[bytes] = at_home.start("SessionStart")
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stdin.write(json.dumps(at_home.payload("SessionStart")).encode())
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_an_entity_may_be_named_instead_of_a_project(
    served: Served, tmp_path: Path, turns: Turns
) -> None:
    served.create("persona")
    session = Session(served.home, tmp_path, options=("--entity", "persona"))
    session.run("UserPromptSubmit", prompt="I like tea.")
    assert [one["content"] for one in turns(session)] == ["I like tea."]
    served.link.call("entity_archive", "", {"name": "persona"})
    assert session.run("UserPromptSubmit", prompt="And coffee.").is_silent()
    served.link.call("entity_archive", "", {"name": "persona", "undo": True})
    assert [one["content"] for one in turns(session)] == ["I like tea."]
