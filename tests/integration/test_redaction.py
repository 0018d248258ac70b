"""Nothing of a secret is ever on disk, by whichever way it came in: every byte of every file is looked at."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import logging
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import LiteralString
from uuid import uuid4

import pytest
from neo4j import AsyncGraphDatabase

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import InvalidRequest
from pps.core.values import Chunk, FactDraft, NodeDraft, RelationDraft, Turn
from pps.ingest.drafts import RememberOptions
from pps.ingest.hook_events import read_event
from pps.ingest.importing.markdown import session_of
from pps.ingest.importing.run import Wanted
from pps.ingest.redact import redact
from pps.journal.filters import ItemFilter
from pps.memory import Memory
from tests.importing_files import without_rights
from tests.secrets import PARTS, PRIVATE_KEY, SECRETS, holding

ALL = " then ".join(text for text, _ in SECRETS.values())


async def pasted_everywhere(memory: Memory, folder: Path) -> None:
    """Bring the secrets in by every way there is."""
    text, _ = SECRETS["GitHub Token"]
    receipt = await memory.remember(
        f"Keep this: {ALL}",
        tags=["tea"],
        nodes=[
            NodeDraft(
                f"Vault {text}",
                summary=ALL,
                aliases=(f"Safe {text}",),
                attributes={"deep": [{"at": ALL}]},
            )
        ],
        facts=[FactDraft("Ana", "HAS", "Vault", text=f"Ana has {text}")],
    )
    assert receipt.redacted >= 3 * len(SECRETS)
    many = await memory.remember_many(
        [(f"Line {at}: {text}", {"source_ref": str(at)}) for at in range(3)]
    )
    assert [one.redacted for one in many] == [1, 1, 1]
    saved = await memory.anchor_save(f"Keys {text}", f"# Keys\n\n{ALL}")
    assert saved.redacted == len(SECRETS) + 1
    (folder / "note.md").write_text(f"# Note\n\n{ALL}\n")
    imported = await memory.anchor_import(folder)
    assert imported.saved[0].redacted == len(SECRETS)
    await memory.settled()


async def test_no_byte_of_a_secret_is_in_any_file_of_the_data_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home, notes = tmp_path / "home", tmp_path / "notes"
    notes.mkdir()
    caplog.set_level(logging.DEBUG, logger="pps")
    async with App.open(Settings(home=home, embedder=EmbedderSettings(name="hash"))) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await pasted_everywhere(memory, notes)
            assert holding(home) == {}, "while it is open, logs and write-ahead files too"
            recalled = await memory.recall("keep this")
            assert "[redacted: GitHub Token]" in recalled["episodes"][0].text
    assert holding(home) == {}
    assert not any(part in caplog.text for part in PARTS)


async def test_a_private_key_is_out_of_a_text_before_it_is_cut_wherever_long_texts_come_in(
    tmp_path: Path,
) -> None:
    home, files = tmp_path / "home", tmp_path / "files"
    files.mkdir()
    long = "word " * 11_990 + PRIVATE_KEY + " word" * 20
    command = "x" * 230 + f" && cat > key <<EOF {PRIVATE_KEY} EOF"
    said = {
        "type": "user",
        "sessionId": "s1",
        "uuid": str(uuid4()),
        "message": {"role": "user", "content": long},
    }
    used = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": command}}
    done = {
        "type": "assistant",
        "sessionId": "s1",
        "uuid": str(uuid4()),
        "message": {"id": "m", "content": [used]},
    }
    (files / "s1.jsonl").write_text("\n".join(map(json.dumps, (said, done))))
    (files / "note.md").write_text(
        f"# Note\n\n{'word ' * 190}\n\n{PRIVATE_KEY}\n\nMore. {'word ' * 90}"
    )
    event = {
        "id": uuid4().hex,
        "at": 1.7e9,
        "session": "s2",
        "event": "UserPromptSubmit",
        "text": long,
    }
    tool = {
        **event,
        "id": uuid4().hex,
        "event": "PostToolUse",
        "tool": "Bash",
        "input": {"command": command},
    }
    async with App.open(Settings(home=home, embedder=EmbedderSettings(name="none"))) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            for one in (event, tool):
                await memory.sessions.capture(read_event(one), lambda _: True)
            assert (await memory.documents.import_files(Wanted([files]))).stored >= 5
            assert await memory.settled()
            assert holding(home) == {}
    assert holding(home) == {}


async def test_what_the_registry_keeps_as_it_is_may_hold_no_secret(tmp_path: Path) -> None:
    token, _ = SECRETS["GitHub Token"]
    folder = tmp_path / f"shop-{token}"
    folder.mkdir()
    async with App.open(
        Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="none"))
    ) as app:
        await app.create("ana")
        for field, add in (
            ("path", lambda: app.registry.routes.add(str(folder), "ana")),
            ("folder", lambda: app.registry.watched.add(str(folder), "ana")),
            ("project", lambda: app.registry.create_for(str(folder))),
            ("roots", lambda: app.registry.routers.create([str(folder)])),
            ("label", lambda: app.registry.routers.create(["/work"], label=f"with {token}")),
        ):
            with pytest.raises(InvalidRequest, match=f"^{field}: holds what looks like a secret"):
                await asyncio.to_thread(add)
        assert [entry.entity.name for entry in app.registry.list()] == ["ana"]
    assert holding(tmp_path / "home") == {}


_EVERY_ROW: tuple[LiteralString, ...] = (
    "MATCH (n) WHERE n.group_id = $group RETURN properties(n)",
    "MATCH ()-[n]->() WHERE n.group_id = $group RETURN properties(n)",
)
TOKEN = SECRETS["GitHub Token"][0]


async def _records(memory: Memory) -> None:
    """Bring the secrets in by every text field of a record and of a change; each receipt counts its own."""
    kept = await memory.records.add_event(
        f"Keep this: {ALL}",
        title=f"Vault {TOKEN}",
        actor=f"Ana {TOKEN}",
        tags=["tea"],
        metadata={"deep": [{"at": TOKEN}], f"key {TOKEN}": 1},
        project_path=f"/srv/{TOKEN}",
        parent_node_id=f"Safe {TOKEN}",
    )
    assert (kept.redacted, kept.title) == (len(SECRETS) + 6, "Vault [redacted: GitHub Token]")
    linked = await memory.records.add_event(
        f"See [[Box {TOKEN}]].", source="whisper", source_ref="w1"
    )
    assert (linked.redacted, linked.title) == (1, "See [[Box [redacted: GitHub Token]]].")
    changed = await memory.records.update(
        kept.node_id,
        content=ALL,
        title=f"Other {TOKEN}",
        tags=["rye"],
        metadata={"more": TOKEN},
        actor=f"Ben {TOKEN}",
    )
    assert changed.redacted == len(SECRETS) + 3
    for call in (
        memory.records.add_event("A label.", kind=TOKEN),
        memory.remember("A label.", kind=TOKEN),
        memory.records.update(kept.node_id, kind=TOKEN),
    ):
        with pytest.raises(InvalidRequest, match=r"kind.*holds what looks like a secret"):
            await call
    added = await memory.records.append(kept.node_id, f"And {ALL}", actor=f"Cara {TOKEN}")
    assert (added.redacted, added.version) == (len(SECRETS) + 1, 3)
    turn = await memory.remember("Plain.", actor=f"Dora {TOKEN}")
    assert (await memory.records.append(turn.turn_id, TOKEN)).redacted == 1
    assert turn.redacted == 1


async def _session(memory: Memory, transcripts: Path) -> None:
    """Bring the secrets in as a coding agent's hooks do: a prompt, a tool, an answer in the event and in the file."""
    file = transcripts / "s.jsonl"
    said = {"role": "assistant", "content": [{"type": "text", "text": f"In the file: {ALL}"}]}
    line = {
        "type": "assistant",
        "uuid": str(uuid4()),
        "sessionId": "s",
        "cwd": "/",
        "message": said,
    }
    file.write_text(json.dumps({**line, "timestamp": "2026-03-07T08:30:00.000Z"}) + "\n")
    common = {"session": "s", "transcript": str(file), "size": file.stat().st_size, "cwd": "/"}
    for number, fields in enumerate(
        (
            {"event": "UserPromptSubmit", "text": f"Typed: {ALL}"},
            {
                "event": "PostToolUse",
                "tool": "Bash",
                "input": {"command": f"deploy {TOKEN}", "description": ALL},
            },
            {"event": "Stop", "text": f"Said: {ALL}"},
        )
    ):
        event = read_event(
            {**common, "id": f"{number:032x}", "at": 1_772_000_000.0 + number, **fields}
        )
        await memory.sessions.capture(event, lambda _: True)


async def test_no_secret_of_a_record_a_change_or_a_session_is_on_disk_in_the_graph_or_in_an_export(
    app: App, settings: Settings, tmp_path: Path
) -> None:
    """On both stores; on Neo4j each row of the entity is looked at, in place of the graph's files."""
    transcripts = tmp_path / "transcripts"
    transcripts.mkdir()
    await app.create("ana")
    async with app.memory("ana") as memory:
        await _records(memory)
        await _session(memory, transcripts)
        assert await memory.settled(60)
        assert holding(settings.home) == {}
        rows = await _graph(memory, settings)
        assert not any(part in rows for part in PARTS)
        assert "[redacted: GitHub Token]" in rows
        found = "".join(
            hit.text for hit in (await memory.recall("Typed Said deploy", limit=20))["episodes"]
        )
        assert {"Typed", "Bash"} <= set(found.replace(":", " ").split())
        await memory.documents.export(tmp_path / "ana.jsonl")
    exported = (tmp_path / "ana.jsonl").read_text()
    assert not any(part in exported for part in PARTS)
    assert exported.count("[redacted: GitHub Token]") > 10
    assert holding(settings.home) == {}


async def _graph(memory: Memory, settings: Settings) -> str:
    """Return all that the graph holds of an entity, as text: what the client reads, and on Neo4j every property."""
    client = memory.parts.client
    nodes, facts = await client.scan_nodes("", 500), await client.scan_facts("", 500)
    read = [repr((nodes, facts, await client.scan_episodes("", 500)))]
    if settings.store == "neo4j":
        found = settings.neo4j
        group = {"group": client.entity.group}
        async with AsyncGraphDatabase.driver(
            found.uri, auth=(found.user, found.password.get_secret_value())
        ) as driver:
            for asked in _EVERY_ROW:
                rows = (await driver.execute_query(asked, group, database_=found.database)).records
                assert rows
                read += [repr(row.data()) for row in rows]
    return "\n".join(read)


KNOWN = {kind: text for kind, (text, _) in SECRETS.items() if len(text) < 80}
"""Secrets that have room in what a text is known by."""


async def _remembered(memory: Memory) -> None:
    """Give secrets as what texts are known by: each is counted, kept as a marker, and known again."""
    for kind, text in KNOWN.items():
        names: RememberOptions = {
            "session": f"chat {text}",
            "source": f"app {text}",
            "source_ref": f"one?{text}",
        }
        first = await memory.remember(
            "The light is green.", **names, chunk=Chunk(f"at {text}", 0, 1)
        )
        again = await memory.remember("Said again.", **names)
        assert (first.redacted, again.redacted, again.state, again.turn_id) == (
            4,
            3,
            "duplicate",
            first.turn_id,
        )
        happened = await memory.records.add_event(
            "The gate is shut.", **{**names, "source_ref": f"two?{text}"}
        )
        assert (happened.redacted, happened.state) == (3, "done")
        repeated = await memory.records.add_event(
            "Said again.", **{**names, "source_ref": f"two?{text}"}
        )
        assert (repeated.state, repeated.turn_id) == ("duplicate", happened.turn_id)
        (turn,) = await memory.get([first.turn_id])
        assert isinstance(turn, Turn)
        assert turn.chunk
        kept = (turn.session, turn.source, turn.source_ref, turn.chunk.path)
        assert all(f"[redacted: {kind} " in name for name in kept)
        for session, source in ((names["session"], names["source"]), (turn.session, turn.source)):
            wanted = ItemFilter(sessions=(session,), sources=(source,))
            found = await memory.recall("green light", session=session, filters=wanted)
            assert [hit.item.uuid for hit in found["episodes"] if hit.item == turn] == [turn.uuid]
        pack = await memory.ambient_recall("What is green?", session=names["session"])
        assert "The gate is shut." in pack.text, "among the latest of that session alone"
    others = await memory.remember_many(
        [("Not one of them.", {"session": "chat", "source_ref": "one"})]
    )
    assert (others[0].redacted, others[0].state) == (0, "accepted")


async def _captured(memory: Memory, folder: Path) -> None:
    """Tell events with secrets in their session, ids and transcript's path, twice over."""
    session = f"s-{TOKEN}"
    file = folder / f"{session}.jsonl"
    said = {"role": "assistant", "content": [{"type": "text", "text": "The oven is warm."}]}
    line = {
        "type": "assistant",
        "uuid": f"u-{TOKEN}",
        "sessionId": session,
        "cwd": "/",
        "message": said,
    }
    common = {"session": session, "transcript": str(file), "cwd": "/"}
    events = (
        {"event": "UserPromptSubmit", "text": "Is it warm?", "prompt": f"p-{TOKEN}"},
        {"event": "PostToolUse", "tool": "Look", "ref": f"t-{TOKEN}", "agent_type": TOKEN},
        {"event": "Stop", "text": "The oven is warm."},
        {"event": "Stop", "text": "It went out.", "transcript": ""},
    )
    file.touch()
    for number, fields in (*enumerate(events), *enumerate(events)):
        if number == len(events) - 2 and not file.stat().st_size:
            file.write_text(json.dumps({**line, "timestamp": "2026-03-07T16:13:21.000Z"}) + "\n")
        told = {
            **common,
            "id": f"{number:032x}",
            "at": 1_772_900_000.0 + number,
            "size": file.stat().st_size,
        }
        event = read_event({**told, **fields})
        await memory.sessions.pack("Is it warm?", session)
        await memory.sessions.capture(event, lambda _: True)
    named = hashlib.sha256(f"{session}\0{file}".encode()).hexdigest()[:32]
    assert await memory.parts.journal.get_meta(f"transcript:{named}") is None, (
        "nobody can try what it was"
    )
    found = await memory.recall("warm", limit=50, filters=ItemFilter(sessions=(session,)))
    assert len(found["episodes"]) == len(events)


async def _imported(memory: Memory, folder: Path) -> None:
    """Import lines and notes, and follow a folder, with secrets in ids and in the names of files."""
    notes = folder / "notes" / f"of {TOKEN}"
    notes.mkdir(parents=True)
    (notes / "password=hunter2x9.md").write_text("# Bread\n\nRye takes a day.\n\n## Oven\n\nHot.\n")
    (notes / "plain.md").write_text("# Plain\n\nNo secret here.\n")
    lines = [
        {"content": f"Line {n}.", "session": f"l {TOKEN}", "source_ref": f"{TOKEN}-{n}"}
        for n in range(3)
    ]
    talk = folder / f"{TOKEN}.jsonl"
    talk.write_text(
        "\n".join(json.dumps(line) for line in (*lines, {"content": "Known by its file and line."}))
    )
    for wanted in (Wanted((talk,)), Wanted((folder / "notes",))):
        first = await memory.documents.import_files(wanted)
        assert (first.stored, first.duplicates, first.redacted > first.stored) == (
            first.turns,
            0,
            True,
        )
        for again in (replace(wanted, dry_run=True), wanted):
            assert (await memory.documents.import_files(again)).stored == 0
    followed = folder / "followed"
    shutil.copytree(notes, followed / notes.name)
    file = followed / notes.name / "password=hunter2x9.md"
    assert (await memory.documents.follow(followed)).added == 2
    assert (await memory.documents.follow(followed)).unchanged == 2
    file.write_text("# Bread\n\nBefore all of it.\n\nRye takes a day.\n\n## Oven\n\nCold.\n")
    changed = await memory.documents.follow(followed)
    assert (changed.changed, changed.unchanged, changed.forgotten > 0) == (1, 1, True)
    file.unlink()
    assert (await memory.documents.follow(followed)).removed == 1
    assert await memory.documents.drop(followed) == 1


async def test_no_secret_that_a_text_is_known_by_is_on_disk_in_the_graph_or_in_an_export_and_two_stay_two(
    app: App, settings: Settings, tmp_path: Path
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    await app.create("ana")
    async with app.memory("ana") as memory:
        await _remembered(memory)
        await _captured(memory, given)
        await _imported(memory, given)
        assert await memory.settled(60)
        assert holding(settings.home) == {}
        rows = await _graph(memory, settings)
        assert not any(part in rows for part in (*PARTS, "hunter2x9"))
        await memory.documents.export(tmp_path / "ana.jsonl")
    exported = (tmp_path / "ana.jsonl").read_text()
    assert not any(part in exported for part in (*PARTS, "hunter2x9"))
    assert holding(settings.home) == {}
    async with app.memory("ana") as memory:
        again = await memory.documents.import_files(Wanted((tmp_path / "ana.jsonl",)))
        assert (again.stored, again.redacted) == (0, 0), "a marker is no secret, and stays"


async def test_a_folder_named_by_a_secret_that_cannot_be_opened_keeps_its_passages(
    app: App, tmp_path: Path
) -> None:
    await app.create("ana")
    closed = tmp_path / "notes" / SECRETS["API Key"][0].replace('"', "")
    closed.mkdir(parents=True)
    (closed / "diary.md").write_text("# Diary\n\nRain.\n")
    async with app.memory("ana") as memory:
        assert (await memory.documents.follow(tmp_path / "notes")).added == 1
        closed.chmod(0)
        asyncio.get_running_loop().set_default_executor(
            ThreadPoolExecutor(1, initializer=without_rights)
        )
        looked = await memory.documents.follow(tmp_path / "notes")
        assert (looked.away, looked.removed, looked.forgotten) == (1, 0, 0)
        closed.chmod(0o700)
        assert (await memory.documents.follow(tmp_path / "notes")).unchanged == 1


async def test_a_file_that_looks_like_a_secret_below_its_folders_digest_is_followed_to_its_end(
    app: App, tmp_path: Path
) -> None:
    names = (f"notes {number}" for number in itertools.count())
    folder = next(
        tmp_path / name for name in names if session_of(tmp_path / name, "")[8:17].isdecimal()
    )
    folder.mkdir()
    file = folder / f"{'a1B2c3D4e5F6g7H8i9J0' * 2}.md"
    file.write_text("# Diary\n\nRain.\n")
    assert redact(session_of(folder, file.name)).count == 1
    await app.create("ana")
    async with app.memory("ana") as memory:
        assert (await memory.documents.follow(folder)).added == 1
        file.unlink()
        followed = await memory.documents.follow(folder)
        assert (followed.removed, followed.forgotten) == (1, 1)


async def test_a_kind_or_a_relation_that_holds_a_secret_is_refused_and_nothing_is_kept(
    app: App,
) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await memory.remember("Ana has tea.", nodes=[NodeDraft("Ana"), NodeDraft("Tea")])
        fact = FactDraft("Ana", TOKEN, "Tea")
        for call in (
            memory.remember("A label.", nodes=[NodeDraft("Ben", kind=TOKEN)]),
            memory.remember("A label.", facts=[fact]),
            memory.remember_many([("A label.", {}), ("A label.", {"facts": [fact]})]),
            memory.records.relate([RelationDraft("Ana", "Tea", TOKEN)]),
        ):
            with pytest.raises(
                InvalidRequest, match=r"(kind|relation|type): holds what looks like"
            ) as refused:
                await call
            assert TOKEN not in str(refused.value)
        assert (await memory.stats()).turns == 1
        await memory.records.relate(
            [RelationDraft("Ana", "Tea", "likes")], created_by=f"Ana {TOKEN}"
        )
        (fact,) = (await memory.timeline(relation="likes")).facts
        assert fact.attributes["created_by"] == "Ana [redacted: GitHub Token]"


async def test_a_file_that_a_person_wrote_by_hand_is_indexed_and_shown_without_its_secrets(
    tmp_path: Path,
) -> None:
    async with App.open(Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))) as app:
        created = await app.create("ana")
        (created.folder / "anchors" / "mine.md").write_text(f"# Harbour\n\nlighthouse {ALL}\n")
        async with app.memory("ana") as memory:
            await memory.anchor_resync()
            hit = (await memory.anchor_search("lighthouse"))[0]
            shown = hit.text + (await memory.anchor_read("mine")).text
            assert not any(part in shown for part in PARTS)
    assert set(holding(tmp_path)) == {"entities/ana/anchors/mine.md"}, (
        "the file itself is the person's"
    )


async def test_with_redaction_off_everything_is_kept_as_it_came(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"), redaction="off")
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            receipt = await memory.remember(ALL)
            assert receipt.redacted == 0
            assert (await memory.get([receipt.turn_id]))[0].content == ALL
    assert redact(ALL).count == len(SECRETS)
