"""Imports and followed folders on a real memory: once each, resumed, and the files are the truth of their passages."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest, Overloaded, StoreError
from pps.core.values import Chunk, FactDraft, NodeDraft, Receipt, Turn
from pps.ingest import documents
from pps.ingest.drafts import RememberOptions
from pps.ingest.importing.formats import FORMATS
from pps.ingest.importing.run import Into, Wanted, import_files
from pps.memory import Memory
from tests import importing_files as made
from tests.waiting import PATIENCE_S

TEA = " ".join(f"Sentence {number} tells of tea and of cups." for number in range(80))


async def found(memory: Memory, query: str) -> list[Turn]:
    """Return the turns that a recall finds, once everything is taken in."""
    assert await memory.settled(60)
    hits = (await memory.recall(query, channels=("episodes",), limit=50))["episodes"]
    return (
        [one for one in await memory.get([hit.id for hit in hits]) if isinstance(one, Turn)]
        if hits
        else []
    )


async def turns(memory: Memory) -> int:
    return (await memory.stats()).turns


async def test_every_format_is_imported_once_and_a_dry_run_stores_nothing(
    memory: Memory, tmp_path: Path
) -> None:
    folder = tmp_path / "all"
    for name, make in made.MAKE.items():
        make(folder / name)
    dry = await memory.documents.import_files(Wanted((folder,), dry_run=True))
    assert await turns(memory) == 0
    told: list[tuple[str, int, int]] = []
    done = await memory.documents.import_files(Wanted((folder,)), lambda *told_: told.append(told_))
    assert set(done.files) == set(FORMATS)
    assert (dry.turns, dry.stored, dry.duplicates) == (done.turns, done.turns, 0)
    assert (done.stored, done.duplicates, done.settled) == (done.turns, 0, True)
    stats = await memory.stats()
    assert (stats.turns, stats.episodes, stats.text_indexed["episodes"]) == (done.turns,) * 3
    assert (await memory.ledger()).problems == ()
    assert done.sessions > 8
    assert (str(done.first_at)[:4], str(done.last_at)[:4]) == ("2023", "2026")
    assert done.unreadable_count == len(done.unreadable) == 6
    assert {one.what.rpartition("/")[2] for one in done.unreadable} >= {
        "talk.jsonl:2: mood",
        f"{made.SESSION}.jsonl:10",
    }
    assert any(at == total for _, at, total in told)
    again = await memory.documents.import_files(Wanted((folder,)))
    assert (again.stored, again.duplicates) == (0, done.turns)
    assert await turns(memory) == done.turns
    known = await memory.documents.import_files(Wanted((folder,), dry_run=True))
    assert (known.stored, known.duplicates) == (0, done.turns)
    facts = (await memory.recall("Where does Ana live?"))["facts"]
    assert "Ana lives in Lisbon." in [hit.text for hit in facts]


async def test_a_message_that_is_refused_is_named_and_its_neighbours_are_stored(
    memory: Memory, tmp_path: Path
) -> None:
    values = [
        {"content": "first"},
        {"content": "x", "tags": ["two words"]},
        {"content": "y" * 70_000},
        {"content": "last"},
    ]
    path = made.lines(tmp_path / "talk.jsonl", values)
    done = await memory.documents.import_files(Wanted((path,)))
    assert (done.turns, done.stored, done.unreadable_count) == (2, 2, 2)
    assert [one.what for one in done.unreadable] == ["talk.jsonl:2", "talk.jsonl:3"]
    assert done.unreadable[0].why.startswith("tags:")


async def test_lines_of_two_files_of_one_name_and_a_line_written_anew_are_all_stored(
    memory: Memory, tmp_path: Path
) -> None:
    folder = tmp_path / "chats"
    for year in ("2025", "2026"):
        made.lines(
            folder / year / "talk.jsonl",
            [{"content": f"First of {year}."}, {"content": f"Last of {year}."}],
        )
    done = await memory.documents.import_files(Wanted((folder / "2025", folder / "2026")))
    assert (done.stored, done.duplicates) == (4, 0)
    made.lines(
        folder / "2026" / "talk.jsonl",
        [{"content": "First, put right."}, {"content": "Last of 2026."}],
    )
    again = await memory.documents.import_files(Wanted((folder,)))
    assert (again.stored, again.duplicates) == (1, 3)


async def test_what_cannot_be_imported_is_said_before_anything_is_stored(
    memory: Memory, tmp_path: Path
) -> None:
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidRequest, match="holds nothing that can be imported"):
        await memory.documents.import_files(Wanted((tmp_path / "empty",)))
    with pytest.raises(InvalidRequest, match="nothing at"):
        await memory.documents.import_files(Wanted((tmp_path / "absent",)))
    with pytest.raises(InvalidRequest, match="'auto' or one of jsonl"):
        await memory.documents.import_files(Wanted((tmp_path,), format="docx"))
    done = await memory.documents.import_files(Wanted((tmp_path / "photo.png",)))
    assert (done.turns, done.unreadable_count) == (0, 1)
    assert await turns(memory) == 0


async def test_an_import_waits_politely_while_too_much_is_in_work(tmp_path: Path) -> None:
    refusals = iter([True, True, False])
    told: list[str] = []

    async def keep(given: Sequence[tuple[str, RememberOptions]]) -> list[Receipt]:
        if next(refusals):
            raise Overloaded("too much waits", retry_after_s=0.01)
        return [Receipt("x", 1, "accepted") for _ in given]

    async def known(given: Sequence[tuple[str, RememberOptions]]) -> int:
        return len(given)

    path = made.lines(tmp_path / "talk.jsonl", [{"content": "one"}, {"content": "two"}])
    done = await import_files(
        Wanted((path,)), Into(keep, known), lambda what, *_: told.append(what)
    )
    assert done.stored == 2
    assert sum("waiting" in one for one in told) == 2


async def test_the_passages_of_a_folder_are_what_its_files_say(
    memory: Memory, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    tea = made.note(folder / "deep" / "tea.md", f"# Tea\n\n{TEA}\n\nRosebud is kept in the shed.")
    made.note(folder / "bread.md", "# Bread\n\nFlour and water.")
    made.note(folder / "list.txt", "no Markdown")
    first = await memory.documents.follow(folder)
    assert (first.added, first.unchanged) == (2, 0)
    assert first.stored == await turns(memory)
    assert (await memory.documents.follow(folder)).unchanged == 2
    (turn,) = [one for one in await found(memory, "Rosebud shed") if "Rosebud" in one.content]
    assert turn.chunk is not None
    assert (turn.chunk.path, turn.source, turn.kind) == ("deep/tea.md", "markdown", "note")
    assert turn.chunk.part == turn.chunk.parts - 1 == first.stored - 2

    tea.write_text(tea.read_text().replace("in the shed", "in the cellar"))
    changed = await memory.documents.follow(folder)
    assert (changed.changed, changed.stored, changed.forgotten) == (1, 1, 1)
    assert await turns(memory) == first.stored
    assert not [one for one in await found(memory, "Rosebud shed") if "shed" in one.content]

    tea.write_text(tea.read_text() + "\n\n" + TEA.replace("tea", "coffee"))
    grown = await memory.documents.follow(folder)
    assert grown.stored > 1
    told = await found(memory, "Sentence 1 tells of tea")
    (early,) = [
        one.chunk
        for one in told
        if one.chunk and one.chunk == Chunk("deep/tea.md", 0, one.chunk.parts)
    ]
    assert early.parts == first.stored - 1 + grown.stored - grown.forgotten

    tea.rename(folder / "green.md")
    renamed = await memory.documents.follow(folder)
    assert (renamed.added, renamed.removed, renamed.stored) == (1, 1, renamed.forgotten)
    (folder / "green.md").unlink()
    (folder / "bread.md").write_text("no words: \0")
    emptied = await memory.documents.follow(folder)
    assert (emptied.removed, [one.why for one in emptied.skipped]) == (1, ["binary"])
    assert await turns(memory) == 0


async def test_what_only_a_deleted_note_supported_goes_with_it(
    memory: Memory, tmp_path: Path
) -> None:
    made.note(tmp_path / "notes" / "green-tea.md", made.NOTE)
    made.note(tmp_path / "notes" / "other.md", "# Other\n\nNothing.")
    await memory.documents.follow(tmp_path / "notes")
    assert await memory.settled(PATIENCE_S)
    assert [hit.text.split(":")[0] for hit in (await memory.recall("Black Tea"))["nodes"]][:1] == [
        "Black Tea"
    ]
    (tmp_path / "notes" / "green-tea.md").unlink()
    await memory.documents.follow(tmp_path / "notes")
    assert "Black Tea" not in [hit.text for hit in (await memory.recall("Black Tea"))["nodes"]]


async def test_a_link_by_permalink_names_the_note_that_has_it(
    memory: Memory, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    made.note(folder / "a.md", made.NOTE)
    made.note(
        folder / "b.md",
        "---\ntitle: Cup\npermalink: cup\n---\n# Cup\n\n- holds [[kitchen/green-tea]]\n",
    )
    await memory.documents.import_files(Wanted((folder,)))
    nodes = {
        hit.text.split(":")[0]: hit.id
        for hit in (await memory.recall("green tea cup", limit=50))["nodes"]
    }
    assert "kitchen/green-tea" not in nodes
    (held,) = [fact for fact in (await memory.timeline()).facts if fact.relation == "HOLDS"]
    assert (held.subject, held.object) == (nodes["Cup"], nodes["Green Tea"])


async def test_a_folder_that_is_away_changes_nothing(memory: Memory, tmp_path: Path) -> None:
    made.note(tmp_path / "notes" / "a.md", "# A\n\nHere.")
    await memory.documents.follow(tmp_path / "notes")
    (tmp_path / "notes").rename(tmp_path / "away")
    with pytest.raises(StoreError):
        await memory.documents.follow(tmp_path / "notes")
    assert await turns(memory) == 1
    (tmp_path / "away").rename(tmp_path / "notes")
    assert (await memory.documents.follow(tmp_path / "notes")).unchanged == 1


async def test_notes_that_cannot_be_looked_at_now_are_not_forgotten(
    memory: Memory, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    for name in ("a", "b", "closed/c", "closed/deep/d", "gone/e"):
        made.note(folder / f"{name}.md", f"# {name}\n\nHere.")
    assert (await memory.documents.follow(folder)).added == 5
    shutil.rmtree(folder / "gone")
    (folder / "b.md").write_text("# b\n\nWritten anew.")
    (folder / "b.md").chmod(0)
    (folder / "closed").chmod(0)
    asyncio.get_running_loop().set_default_executor(
        ThreadPoolExecutor(1, initializer=made.without_rights)
    )
    done = await memory.documents.follow(folder)
    assert (done.away, done.removed, done.forgotten, done.unchanged) == (2, 1, 1, 1)
    assert {one.what: one.why for one in done.skipped} == {
        "b.md": "cannot be read (Permission denied)",
        "closed": "cannot be opened (Permission denied)",
    }
    assert await turns(memory) == 4
    (folder / "b.md").chmod(0o600)
    (folder / "closed").chmod(0o700)
    again = await memory.documents.follow(folder)
    assert (again.away, again.changed, again.unchanged, again.added, again.removed) == (
        0,
        1,
        3,
        0,
        0,
    )


async def test_notes_beyond_the_most_that_are_looked_at_are_not_forgotten(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "notes"
    for name in ("b", "c"):
        made.note(folder / f"{name}.md", f"# {name}\n\nHere.")
    monkeypatch.setattr(documents, "MAX_FILES", 2)
    assert (await memory.documents.follow(folder)).added == 2
    made.note(folder / "a.md", "# a\n\nHere.")
    done = await memory.documents.follow(folder)
    assert (done.added, done.unchanged, done.removed) == (1, 1, 0)
    assert [one.why for one in done.skipped] == ["holds over 2 files; the rest is left out"]
    (folder / "a.md").unlink()
    again = await memory.documents.follow(folder)
    assert (again.unchanged, again.removed, await turns(memory)) == (2, 1, 2)


async def test_what_changed_while_nobody_looked_is_seen_after_a_restart(
    app: App, tmp_path: Path
) -> None:
    await app.create("ana")
    path = made.note(tmp_path / "notes" / "a.md", "# A\n\nBefore.")
    async with app.memory("ana") as memory:
        await memory.documents.follow(tmp_path / "notes")
    await app.close_all()
    stamp = path.stat()
    path.write_text("# A\n\nAfter..")
    made.note(tmp_path / "notes" / "b.md", "# B\n\nNew.")
    async with app.memory("ana") as memory:
        done = await memory.documents.follow(tmp_path / "notes")
        assert (done.added, done.changed) == (1, 1)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 5))
        done = await memory.documents.follow(tmp_path / "notes")
        assert (done.unchanged, done.stored) == (2, 0)
        assert await memory.documents.drop(tmp_path / "notes") == 2
        assert await turns(memory) == 0


async def test_a_secret_in_a_file_is_taken_out_and_counted(memory: Memory, tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    path = made.lines(tmp_path / "talk.jsonl", [{"content": f"The token is {token}."}])
    done = await memory.documents.import_files(Wanted((path,)))
    assert done.redacted == 1
    (turn,) = await found(memory, "token")
    assert token not in turn.content


async def test_an_export_read_by_another_entity_is_the_same_memory(
    app: App, tmp_path: Path
) -> None:
    await app.create("ana")
    await app.create("bea")
    since, until = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    async with app.memory("ana") as ana, app.memory("bea") as bea:
        mira = NodeDraft(
            "Mira",
            "Person",
            "A friend 角.",
            ("M.",),
            ("friend",),
            {"age": 41, "likes": ["tea", None]},
        )
        lived = FactDraft("Mira", "LIVES_IN", "Tarn", "Mira lives in Tarn.", since, until)
        knows = FactDraft("Mira", "child_of", "Ona", kind="relation")
        await ana.remember(
            "Mira lives in Tarn.", session="s", actor="Ona", nodes=[mira], facts=[lived, knows]
        )
        await ana.remember(
            "Yes, in Tarn.",
            session="s",
            role="assistant",
            facts=[lived],
            tags=["places"],
            source_ref="r2",
        )
        made.note(tmp_path / "notes" / "a.md", f"# A\n\n{TEA}")
        await ana.documents.follow(tmp_path / "notes")
        count = await ana.documents.export(tmp_path / "ana.jsonl")
        done = await bea.documents.import_files(Wanted((tmp_path / "ana.jsonl",)))
        assert (done.turns, done.stored, done.unreadable_count) == (count, count, 0)
        await bea.documents.export(tmp_path / "bea.jsonl")
        one, other = (
            (tmp_path / f"{name}.jsonl").read_text().splitlines() for name in ("ana", "bea")
        )
        assert [json.loads(line) for line in one] == [json.loads(line) for line in other]
        assert (tmp_path / "ana.jsonl").stat().st_mode & 0o077 == 0
        facts = {fact.text: fact for fact in (await bea.timeline()).facts}
        lives = facts["Mira lives in Tarn."]
        assert (lives.valid_at, lives.invalid_at, len(lives.episodes)) == (since, until, 2)
        again = await ana.documents.import_files(Wanted((tmp_path / "ana.jsonl",)))
        assert (again.stored, again.duplicates) == (0, count)


async def test_a_folder_given_up_while_a_look_at_it_waited_is_not_taken_in_again(
    memory: Memory, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    made.note(folder / "tea.md", f"# Tea\n\n{TEA}")
    stored = (await memory.documents.follow(folder, wanted=lambda: True)).stored
    dropped = asyncio.create_task(memory.documents.drop(folder))
    await asyncio.sleep(0)  # it has its turn, and what follows waits for it
    late = await memory.documents.follow(folder, wanted=lambda: False)
    assert (await dropped, late.added, await turns(memory)) == (stored, 0, 0)
