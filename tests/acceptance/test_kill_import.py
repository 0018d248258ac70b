"""Server or command is killed in the middle of an import; run again, each format is whole and nothing is doubled.

Some formats; in the long form all of them, and longer files.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from pps.core.errors import PPSError
from pps.server.link import Link, connect, stop
from tests import importing_files as made
from tests.acceptance.outage import data, idle, until
from tests.integration.interfaces.serving import Served, serving
from tests.sampling import sample, sized

TURNS = sized(610, 4_000)
"""Messages of each format; a batch has 200, so that several are left when the first is reported."""

_LONGEST_PAUSE_S = sized(0.0, 0.05)
"""Between that report and the kill: none where so little is left."""

_ENTITIES = [f"ana_{number}" for number in range(20)]


def transcript(at: Path) -> Path:
    return made.lines(
        at / "t.jsonl", [made.entry("user", f"u-{n}", f"Prompt {n} of many.") for n in range(TURNS)]
    )


def chatgpt(at: Path) -> Path:
    one = [
        {
            "id": f"c-{n}",
            "mapping": {"a": made.node("a", None, made.said(f"m-{n}", "user", f"Question {n}?"))},
        }
        for n in range(TURNS)
    ]
    return made.packed(at / "chatgpt.zip", {"conversations.json": json.dumps(one)})


def claude(at: Path) -> Path:
    messages = [{"uuid": f"k-{n}", "sender": "human", "text": f"Asked {n}."} for n in range(TURNS)]
    return made.document(at / "conversations.json", [{"uuid": "k", "chat_messages": messages}])


def mem0(at: Path) -> Path:
    memories = [{"id": f"e-{n}", "memory": f"Likes tea number {n}"} for n in range(TURNS)]
    return made.document(at / "mem0.json", {"results": memories})


def graphiti(at: Path) -> Path:
    episodes = [{"uuid": f"p-{n}", "content": f"Episode {n}."} for n in range(TURNS)]
    return made.document(at / "graph.json", {"nodes": [], "edges": [], "episodes": episodes})


def basic_memory(at: Path) -> Path:
    for n in range(TURNS):
        text = f"---\ntitle: Note {n}\npermalink: n/{n}\n---\n# Note {n}\n\n- [fact] Number {n} is kept.\n"
        made.note(at / f"note-{n:05}.md", text)
    return at


def markdown(at: Path) -> Path:
    for n in range(TURNS):
        made.note(at / f"plain-{n:05}.md", f"# Plain {n}\n\nNumber {n} is here.\n")
    return at


def open_webui(at: Path) -> Path:
    messages = {
        f"m-{n}": {
            "parentId": f"m-{n - 1}" if n else None,
            "role": "user",
            "content": f"Asked {n}.",
        }
        for n in range(TURNS)
    }
    history = {"messages": messages, "currentId": f"m-{TURNS - 1}"}
    return made.document(at / "w.json", [{"id": "w", "chat": {"history": history}}])


def librechat(at: Path) -> Path:
    messages = [
        {
            "messageId": f"x-{n}",
            "parentMessageId": f"x-{n - 1}",
            "isCreatedByUser": True,
            "text": f"Asked {n}.",
        }
        for n in range(TURNS)
    ]
    return made.document(at / "l.json", {"conversationId": "l", "messages": messages})


def codex(at: Path) -> Path:
    meta = made.rollout("session_meta", 0, id="cx")
    prompts = [
        made.rollout(
            "response_item",
            1,
            type="message",
            role="user",
            content=[{"type": "input_text", "text": f"Prompt {n} of many."}],
        )
        for n in range(TURNS)
    ]
    return made.lines(at / "rollout.jsonl", [meta, *prompts])


def gemini(at: Path) -> Path:
    messages = [{"id": f"g-{n}", "type": "user", "content": f"Prompt {n}."} for n in range(TURNS)]
    session = {"sessionId": "g", "projectHash": "h", "messages": messages}
    return made.document(at / "session.json", session)


def messages_list(at: Path) -> Path:
    messages = [{"role": "user", "content": f"Message {n}."} for n in range(TURNS)]
    return made.document(at / "talk.json", messages)


def whatsapp(at: Path) -> Path:
    text = "\n".join(f"[03/02/26, 21:{n % 60:02}:05] Ana: Message {n}" for n in range(TURNS))
    return made.note(at / "chat.txt", text)


def mcp_memory(at: Path) -> Path:
    entities = [
        {"type": "entity", "name": f"Tea {n}", "entityType": "tea", "observations": ["Green"]}
        for n in range(TURNS)
    ]
    return made.lines(at / "memory.jsonl", entities)


def claude_mem(at: Path) -> Path:
    observations = [{"id": n, "title": f"Title {n}"} for n in range(TURNS)]
    return made.document(at / "cm.json", {"exportedAt": "2026", "observations": observations})


def memory_service(at: Path) -> Path:
    memories = [{"content": f"Memory {n}", "content_hash": f"h-{n}"} for n in range(TURNS)]
    return made.document(at / "ms.json", {"memories": memories})


def letta(at: Path) -> Path:
    messages = [
        {"id": f"l-{n}", "role": "user", "content": [{"type": "text", "text": f"Said {n}."}]}
        for n in range(TURNS)
    ]
    return made.document(at / "pal.af", {"agents": [{"id": "a", "messages": messages}]})


FILES: dict[str, Callable[[Path], Path]] = {
    "jsonl": lambda at: made.lines(
        at / "j.jsonl", [{"content": f"Line {n} of many."} for n in range(TURNS)]
    ),
    "claude-code": transcript,
    "chatgpt": chatgpt,
    "claude": claude,
    "open-webui": open_webui,
    "librechat": librechat,
    "codex": codex,
    "gemini-cli": gemini,
    "messages": messages_list,
    "whatsapp": whatsapp,
    "mcp-memory": mcp_memory,
    "claude-mem": claude_mem,
    "mcp-memory-service": memory_service,
    "letta": letta,
    "mem0": mem0,
    "graphiti": graphiti,
    "basic-memory": basic_memory,
    "markdown": markdown,
}


def imported(link: Link, entity: str, path: Path) -> dict[str, Any]:
    """Import to the end and return the report."""
    return link.call("import", "", {"entity": entity, "paths": [str(path)]}, timeout_s=600)["data"]


def kill_during_import(link: Link, entity: str, path: Path, chance: random.Random) -> None:
    """Begin an import and kill the server once it has reported a stored batch.

    The import may have ended before the signal arrived; the caller finds that out by importing again.
    """
    reports = link.follow("import", "", {"entity": entity, "paths": [str(path)]})
    for report in reports:
        if cast("int", report["done"]) > 0:
            break
    time.sleep(chance.uniform(0.0, _LONGEST_PAUSE_S))
    os.kill(link.run.pid, signal.SIGKILL)
    with contextlib.suppress(PPSError):
        list(reports)


def resume_killed_imports(
    home: Path, entity: str, paths: dict[str, Path], chance: random.Random
) -> int:
    """Kill the server once in each import, import again, and return how many had been cut short."""
    for path in paths.values():
        kill_during_import(connect(home), entity, path, chance)
    link = connect(home)
    cut_short = 0
    for number, (name, path) in enumerate(paths.items(), 1):
        report = imported(link, entity, path)
        assert report["files"].keys() == {name}
        assert (report["turns"], report["unreadable_count"]) == (TURNS, 0)
        assert report["stored"] + report["duplicates"] == TURNS
        assert report["duplicates"] > 0, (
            "something was acknowledged before the kill, and is not stored twice"
        )
        cut_short += report["stored"] > 0
        stats = cast("dict[str, Any]", link.call("stats", entity, {})["data"])
        assert stats["turns"] >= TURNS * number
    return cut_short


@pytest.mark.timeout(1200)
def test_an_import_that_was_killed_is_resumed_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("PPS_HOME", str(home))
    monkeypatch.setenv("PPS_EMBEDDER__NAME", "hash")
    monkeypatch.setenv("PPS_SERVER__PORT", "0")
    monkeypatch.setenv("PPS_EXTRACTOR__MODE", "given")
    paths = {name: FILES[name](tmp_path / name) for name in sample(FILES, 2, "server")}
    chance = random.Random(7)  # noqa: S311 - a reproducible choice
    try:
        for entity in _ENTITIES:  # a kill that came after the import proves nothing: take a new one
            connect(home).call("entity_create", "", {"name": entity})
            if resume_killed_imports(home, entity, paths, chance) > len(paths) // 2:
                break
        else:
            pytest.fail("the kills came too late to prove anything, again and again")
        link = connect(home)
        again = [imported(link, entity, path) for path in paths.values()]
        assert {(one["stored"], one["duplicates"], one["settled"]) for one in again} == {
            (0, TURNS, True)
        }
        stats = cast("dict[str, Any]", link.call("stats", entity, {})["data"])
        assert (stats["turns"], stats["episodes"], stats["unfinished_jobs"]) == (
            TURNS * len(paths),
        ) * 2 + (0,)
        assert stats["text_indexed"]["episodes"] == TURNS * len(paths)
    finally:
        stop(home)


def kill_import_commands(served: Served, entity: str, paths: list[str]) -> int:
    """Run ``pps import``, kill it once half of the next file is stored, and so on for each but the last.

    Returns how many were killed before they had ended.
    """
    command = [sys.executable, "-m", "pps", "import", entity, *paths]
    kills = 0
    for part in range(1, len(paths)):
        enough = part * TURNS - TURNS // 2
        with subprocess.Popen(
            command, env=served.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            while process.poll() is None and data(served, "stats", entity)["turns"] < enough:
                time.sleep(0.005)
            process.kill()
            process.wait(60)
            assert process.returncode in (0, -signal.SIGKILL), (
                process.stderr and process.stderr.read()
            )
            kills += process.returncode == -signal.SIGKILL
    return kills


@pytest.mark.timeout(600)
def test_an_import_whose_command_was_killed_is_whole_when_it_is_run_again(tmp_path: Path) -> None:
    paths = [str(FILES[name](tmp_path / name)) for name in sample(FILES, 2, "command")]
    whole = TURNS * len(paths)
    with serving(tmp_path / "home", PPS_EXTRACTOR__MODE="given") as served:
        for entity in _ENTITIES:  # a kill that came after the import proves nothing: take a new one
            served.create(entity)
            kills = kill_import_commands(served, entity, paths)
            ended = served.pps("import", entity, *paths, "--json")
            assert ended.returncode == 0, ended.stderr
            report = json.loads(ended.stdout)
            assert (report["turns"], report["stored"] + report["duplicates"]) == (whole, whole)
            assert report["duplicates"] > 0
            if kills == len(paths) - 1 and report["stored"] > 0:
                break
        else:
            pytest.fail("the kills came too late to prove anything, again and again")
        again = json.loads(served.pps("import", entity, *paths, "--json").stdout)
        assert (again["stored"], again["duplicates"]) == (0, whole)
        until(served, lambda: idle(served, entity))
        stats = data(served, "stats", entity)
        assert (stats["turns"], stats["episodes"], stats["text_indexed"]["episodes"]) == (
            whole,
            whole,
            whole,
        )
        said = exported(served, entity, tmp_path / "export.jsonl")
        assert (len(said), len(set(said))) == (whole, whole)
        assert served.pps("doctor", entity).returncode == 0


def exported(served: Served, entity: str, file: Path) -> list[str]:
    """Return the texts that an export has."""
    ended = served.pps("export", entity, str(file))
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line)["content"] for line in file.read_text().splitlines()]
