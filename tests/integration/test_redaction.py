"""Nothing of a secret is ever on disk, by whichever way it came in: every byte of every file is looked at."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.values import FactDraft, NodeDraft
from pps.ingest.redact import redact
from pps.memory import Memory
from tests.secrets import SECRETS

ALL = " then ".join(text for text, _ in SECRETS.values())
PARTS = [secret.split("\n")[1 if "\n" in secret else 0] for _, secret in SECRETS.values()]


def holding(folder: Path) -> dict[str, str]:
    """Return file → a secret that it holds, in any encoding that a store might use."""
    found: dict[str, str] = {}
    for file in (one for one in folder.rglob("*") if one.is_file()):
        data = file.read_bytes()
        for part in PARTS:
            if any(part.encode(code) in data for code in ("utf-8", "utf-16-le", "utf-32-le")):
                found[str(file.relative_to(folder))] = part
    return found


async def pasted_everywhere(memory: Memory, folder: Path) -> None:
    """Bring the secrets in by every way there is."""
    text, _ = SECRETS["GitHub Token"]
    receipt = await memory.remember(
        f"Keep this: {ALL}",
        tags=["tea"],
        nodes=[NodeDraft(f"Vault {text}", summary=ALL, aliases=(f"Safe {text}",), attributes={"deep": [{"at": ALL}]})],
        facts=[FactDraft("Ana", "HAS", "Vault", text=f"Ana has {text}")],
    )
    assert receipt.redacted >= 3 * len(SECRETS)
    many = await memory.remember_many([(f"Line {at}: {text}", {"source_ref": str(at)}) for at in range(3)])
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


async def test_a_file_that_a_person_wrote_by_hand_is_indexed_and_shown_without_its_secrets(tmp_path: Path) -> None:
    async with App.open(Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))) as app:
        created = await app.create("ana")
        (created.folder / "anchors" / "mine.md").write_text(f"# Harbour\n\nlighthouse {ALL}\n")
        async with app.memory("ana") as memory:
            await memory.anchor_resync()
            hit = (await memory.anchor_search("lighthouse"))[0]
            shown = hit.text + "".join(part.text for part in await memory.anchor_read("mine"))
            assert not any(part in shown for part in PARTS)
    assert set(holding(tmp_path)) == {"entities/ana/anchors/mine.md"}, "the file itself is the person's"


async def test_with_redaction_off_everything_is_kept_as_it_came(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"), redaction="off")
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            receipt = await memory.remember(ALL)
            assert receipt.redacted == 0
            assert (await memory.get([receipt.turn_id]))[0].content == ALL
    assert redact(ALL).count == len(SECRETS)
