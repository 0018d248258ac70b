"""Anchors: files that are whole or absent, indexes that follow them, and nothing outside the folder."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pps.core.errors import Changed, InvalidRequest, NotFound, StoreError
from pps.core.ids import new_group
from pps.index.indexes import EntityIndexes
from pps.ingest.anchors import AnchorInfo, Anchors, ResyncReport
from pps.journal.journal import Journal
from pps.models.hash import HashEmbedder
from pps.models.protocols import Matrix
from tests.held_files import files_below


class Counting(HashEmbedder):
    """Counts the passages that are embedded."""

    embedded = 0

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        rows = super().embed_passages(texts)
        self.embedded += len(rows)
        return rows


@dataclass
class Place:
    """One entity's anchors and what they stand on."""

    folder: Path
    journal: Journal
    indexes: EntityIndexes
    embedder: Counting
    anchors: Anchors

    async def found(self, query: str) -> list[str]:
        hits = await self.indexes.text_search("anchors", query, 5)
        return [hit.owner for hit in hits]

    async def near(self, query: str) -> list[str]:
        hits = await self.indexes.vector_search("anchors", self.embedder.embed_query(query), 5)
        return [hit.owner for hit in hits]

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


async def opened(root: Path, group: str) -> Place:
    embedder = Counting()
    journal = await Journal.open(root / "memory.db", group)
    indexes = await EntityIndexes.open(root / "data", group=group, fingerprint=embedder.fingerprint)
    return Place(
        root / "anchors",
        journal,
        indexes,
        embedder,
        Anchors(root / "anchors", indexes, embedder, journal),
    )


async def closed(place: Place) -> None:
    await place.indexes.close()
    await place.journal.close()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    made = await opened(tmp_path, new_group())
    yield made
    await closed(made)


async def test_a_saved_anchor_is_a_markdown_file_and_is_found_by_words_and_by_meaning(
    place: Place,
) -> None:
    info = await place.anchors.save(
        "Morning coffee", "Ana grinds the beans at seven.\n", tags=("Kitchen", "#coffee")
    )
    assert (info.slug, info.title, info.tags) == (
        "morning-coffee",
        "Morning coffee",
        ("kitchen", "coffee"),
    )
    text = (place.folder / "morning-coffee.md").read_text()
    assert text == (
        '---\ntitle: "Morning coffee"\ntags: ["kitchen", "coffee"]\n---\n\nAna grinds the beans at seven.\n'
    )
    assert (place.folder / "morning-coffee.md").stat().st_mode & 0o777 == 0o600
    assert await place.found("beans") == ["morning-coffee"]
    assert await place.found("kitchen") == ["morning-coffee"]
    assert await place.near("coffee beans at seven") == ["morning-coffee"]


async def text_of(place: Place, slug: str) -> str:
    return "\n".join(passage.text for passage in await place.anchors.passages(slug))


async def test_what_is_saved_is_read_back(place: Place) -> None:
    body = "# 咖啡\n\n- 早上七点\n\n```python\nprint('---')\n```\n---\nend"
    info = await place.anchors.save("咖啡", f"\n{body}\n\n")
    assert await text_of(place, info.slug) == body
    assert await place.anchors.list() == [info]


async def test_a_second_anchor_of_the_same_title_gets_a_number(place: Place) -> None:
    slugs = [(await place.anchors.save("Tea", f"text {number}")).slug for number in range(3)]
    assert slugs == ["tea", "tea-2", "tea-3"]


async def test_saving_the_same_again_makes_no_second_file(place: Place) -> None:
    first = await place.anchors.save("Tea", "Green, at four.", tags=("kitchen",))
    again = await place.anchors.save("Tea", "Green, at four.", tags=("kitchen",))
    assert again.slug == first.slug
    assert place.names() == ["tea.md"]


async def test_a_given_slug_replaces_what_it_holds(place: Place) -> None:
    await place.anchors.save("Tea", "Green tea at four.", slug="drink")
    await place.anchors.save("Juice", "Orange juice at noon.", slug="drink")
    assert place.names() == ["drink.md"]
    assert await place.found("green") == []
    assert await place.found("orange") == ["drink"]


@pytest.mark.parametrize(
    "slug", ["../x", "/etc/passwd", "a/b", ".hidden", "A", "", "a" * 81, "a.md", "x\n"]
)
async def test_a_path_is_never_a_slug(place: Place, slug: str) -> None:
    for call in (
        place.anchors.save("t", "x", slug=slug),
        place.anchors.delete(slug),
        place.anchors.passages(slug),
    ):
        with pytest.raises(InvalidRequest):
            await call
    assert not place.folder.exists() or place.names() == []


@pytest.mark.parametrize(
    ("title", "text"),
    [("", "x"), ("   ", "x"), ("t" * 201, "x"), ("t", ""), ("t", " \n"), ("t", "x" * 1_000_001)],
)
async def test_bounds_are_checked_before_anything_is_written(
    place: Place, title: str, text: str
) -> None:
    with pytest.raises(InvalidRequest):
        await place.anchors.save(title, text)
    assert not place.folder.exists()


async def test_an_edit_that_saw_another_text_is_refused_and_keeps_what_only_the_file_says(
    place: Place,
) -> None:
    await place.anchors.save("Bread", "Rye.", slug="bread")
    path = place.folder / "bread.md"
    path.write_text(path.read_text().replace("---\n\n", "mood: calm\n---\n\n"))
    seen = await place.anchors.read("bread")
    await place.anchors.save("Bread", "Rye, then wheat.", slug="bread", expected=seen.digest)
    assert "mood: calm" in path.read_text()
    with pytest.raises(Changed):
        await place.anchors.save("Bread", "Oats.", slug="bread", expected=seen.digest)
    assert (await place.anchors.read("bread")).text == "Rye, then wheat."
    with pytest.raises(NotFound):
        await place.anchors.save("Oats", "Oats.", slug="oats", expected=seen.digest)
    with pytest.raises(InvalidRequest):
        await place.anchors.read("../bread")


async def test_a_deleted_anchor_is_gone_from_disk_and_indexes(place: Place) -> None:
    await place.anchors.save("Tea", "Lapsang in the xylophone pot.")
    await place.anchors.delete("tea")
    assert place.names() == []
    assert await place.found("lapsang") == []
    assert await place.near("lapsang pot") == []
    left = [path for path, content in files_below(place.folder.parent) if b"xylophone" in content]
    assert left == []
    with pytest.raises(NotFound):
        await place.anchors.delete("tea")
    await place.anchors.delete("tea", missing_ok=True)


async def test_an_absent_anchor_is_not_found(place: Place) -> None:
    with pytest.raises(NotFound):
        await place.anchors.passages("nothing")


async def test_a_resync_indexes_only_what_changed(place: Place) -> None:
    for name in ("one", "two", "three"):
        await place.anchors.save(name, f"text of {name}")
    place.embedder.embedded = 0
    assert await place.anchors.resync() == ResyncReport(unchanged=3)
    assert place.embedder.embedded == 0

    (place.folder / "two.md").write_text("# Two\n\nA heron by the river.\n")
    (place.folder / "four.md").write_text("# Four\n\nA kestrel on the mast.\n")
    (place.folder / "three.md").unlink()
    os.utime(place.folder / "one.md", (1, 1))  # touched, and the same
    assert await place.anchors.resync() == ResyncReport(added=1, changed=1, removed=1, unchanged=1)
    assert place.embedder.embedded == 2
    assert await place.found("heron") == ["two"]
    assert (await place.near("kestrel on the mast"))[0] == "four"
    assert await place.found("three") == []
    assert await place.anchors.resync() == ResyncReport(unchanged=3)


async def test_a_forced_resync_indexes_everything(place: Place) -> None:
    await place.anchors.save("Tea", "Green.")
    assert await place.anchors.resync(force=True) == ResyncReport(changed=1)


async def test_a_resync_fills_indexes_that_were_lost(place: Place) -> None:
    await place.anchors.save("Tea", "Lapsang at four.")
    await place.indexes.clear()
    assert (await place.anchors.resync()).changed == 1
    assert await place.found("lapsang") == ["tea"]
    assert await place.near("lapsang") == ["tea"]


async def test_a_resync_drops_what_only_the_indexes_know(place: Place) -> None:
    await place.anchors.save("Tea", "Lapsang at four.")
    await place.journal.set_meta("anchors", "{}")  # a crash before the journal was told
    (place.folder / "tea.md").unlink()
    assert (await place.anchors.resync()).removed == 1
    assert await place.found("lapsang") == []


async def test_what_is_known_outlives_a_restart(tmp_path: Path) -> None:
    group = new_group()
    place = await opened(tmp_path, group)
    await place.anchors.save("Tea", "Green.")
    await closed(place)
    again = await opened(tmp_path, group)
    assert await again.anchors.resync() == ResyncReport(unchanged=1)
    assert await again.found("green") == ["tea"]
    await closed(again)


async def test_what_is_no_anchor_is_reported_and_left_alone(place: Place, tmp_path: Path) -> None:
    await place.anchors.save("Tea", "Green.")
    secret = tmp_path / "secret.md"
    secret.write_text("# Secret\n\nThe passphrase is heliotrope.")
    (place.folder / "link.md").symlink_to(secret)
    (place.folder / "My Notes.md").write_text("x")
    (place.folder / "notes.txt").write_text("x")
    (place.folder / "latin.md").write_bytes(b"\xff\xfe\x00")
    (place.folder / "huge.md").write_bytes(b"x" * 4_000_001)
    (place.folder / ".obsidian").mkdir()
    (place.folder / "sub.md").mkdir()
    os.mkfifo(place.folder / "pipe.md")
    report = await place.anchors.resync()
    assert report.unchanged == 1
    assert {one.what: one.why for one in report.skipped} == {
        "My Notes.md": "an anchor's name is 1 to 80 of a-z, 0-9 and '-', then .md",
        "notes.txt": "an anchor's name is 1 to 80 of a-z, 0-9 and '-', then .md",
        "link.md": "a link, and links are not followed",
        "latin.md": "not UTF-8",
        "huge.md": "over 4 MB",
        "pipe.md": "not a plain file",
    }
    assert await place.found("heliotrope") == []
    assert [info.slug for info in await place.anchors.list()] == ["tea"]


async def test_a_link_is_neither_read_nor_deleted_nor_written_through(
    place: Place, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("The passphrase is heliotrope.")
    await place.anchors.save("Tea", "Green.")
    (place.folder / "link.md").symlink_to(secret)
    with pytest.raises(NotFound):
        await place.anchors.passages("link")
    with pytest.raises(NotFound):
        await place.anchors.delete("link")
    await place.anchors.save("Link", "Mine.", slug="link")
    assert secret.read_text() == "The passphrase is heliotrope."
    assert not (place.folder / "link.md").is_symlink()
    assert await text_of(place, "link") == "Mine."


async def test_a_title_never_takes_the_place_of_something_that_is_no_anchor(
    place: Place, tmp_path: Path
) -> None:
    place.folder.mkdir()
    (place.folder / "link.md").symlink_to(tmp_path / "absent")
    assert (await place.anchors.save("Link", "x")).slug == "link-2"


async def test_a_folder_that_is_a_link_is_refused(place: Place, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tea.md").write_text("x")
    place.folder.symlink_to(elsewhere)
    for call in (place.anchors.list(), place.anchors.resync(), place.anchors.save("t", "x")):
        with pytest.raises(StoreError):
            await call
    assert sorted(path.name for path in elsewhere.iterdir()) == ["tea.md"]


async def test_a_file_that_cannot_be_written_is_an_error_and_leaves_nothing(place: Place) -> None:
    await place.anchors.save("Tea", "Green.")
    (place.folder / "drink.md").mkdir()
    with pytest.raises(StoreError):
        await place.anchors.save("Drink", "x", slug="drink")
    assert place.names() == ["drink.md", "tea.md"]


async def test_passages_are_those_of_the_vectors(place: Place) -> None:
    text = " ".join(f"Sentence {number} is about boats and harbours." for number in range(100))
    await place.anchors.save("Boats", text)
    passages = await place.anchors.passages("boats")
    assert len(passages) > 2
    assert [passage.part for passage in passages] == list(range(len(passages)))
    assert {passage.title for passage in passages} == {"Boats"}
    hits = await place.indexes.vector_search(
        "anchors", place.embedder.embed_query(f"Boats\n{passages[2].text}"), 1
    )
    assert (hits[0].owner, hits[0].part) == ("boats", 2)


async def test_without_a_model_the_text_is_found(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "memory.db", group := new_group())
    indexes = await EntityIndexes.open(tmp_path / "data", group=group, fingerprint=None)
    anchors = Anchors(tmp_path / "anchors", indexes, None, journal)
    await anchors.save("Tea", "Lapsang at four.")
    assert [hit.owner for hit in await indexes.text_search("anchors", "lapsang", 5)] == ["tea"]
    assert await anchors.resync() == ResyncReport(unchanged=1)
    assert [passage.text for passage in await anchors.passages("tea")] == ["Lapsang at four."]
    await indexes.close()
    await journal.close()


async def test_a_folder_is_imported_with_the_folders_below_it(place: Place, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "kitchen").mkdir(parents=True)
    (notes / ".git").mkdir()
    (notes / ".git" / "x.md").write_text("no")
    (notes / "My Tea.md").write_text(
        "---\ntitle: Tea\ntags: [drink]\ndate: 2026-01-31\n---\n\nLapsang.\n"
    )
    (notes / "kitchen" / "咖啡.md").write_text("# Coffee\n\nBeans.")
    (notes / "kitchen" / "My Tea.MD").write_text("Another one.")
    (notes / "empty.md").write_text("\n")
    (notes / "picture.png").write_bytes(b"x")
    (notes / "linked.md").symlink_to(tmp_path / "memory.db")
    (notes / "loop").symlink_to(notes)
    report = await place.anchors.import_folder(notes)
    slugs = {info.slug for info in report.saved}
    assert len(slugs) == 3
    assert {"my-tea", "kitchen-my-tea"} < slugs
    assert {one.what for one in report.skipped} == {"empty.md", "linked.md"}
    (tea,) = (info for info in await place.anchors.list() if info.slug == "my-tea")
    assert (tea.title, tea.tags, await text_of(place, "my-tea")) == ("Tea", ("drink",), "Lapsang.")
    assert "date: 2026-01-31" in (place.folder / "my-tea.md").read_text()
    assert await place.found("lapsang") == ["my-tea"]


async def test_an_import_again_updates_what_it_brought_and_nothing_else(
    place: Place, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "tea.md").write_text("Green.")
    (notes / "coffee.md").write_text("Black.")
    mine = await place.anchors.save("Tea", "Mine, not theirs.")
    first = await place.anchors.import_folder(notes)
    assert [info.slug for info in first.saved] == ["coffee", "tea-2"]
    (notes / "tea.md").write_text("Green, at four.")
    second = await place.anchors.import_folder(notes)
    assert [info.slug for info in second.saved] == ["tea-2"]
    assert second.unchanged == 1
    assert await text_of(place, "tea-2") == "Green, at four."
    assert await text_of(place, mine.slug) == "Mine, not theirs."


async def test_only_a_folder_can_be_imported(place: Place, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest):
        await place.anchors.import_folder(tmp_path / "absent")


async def test_callers_at_once_never_lose_an_anchor(place: Place) -> None:
    infos: list[AnchorInfo] = await asyncio.gather(
        *(place.anchors.save("Same title", f"text {number}") for number in range(12))
    )
    assert len({info.slug for info in infos}) == 12
    texts = {await text_of(place, info.slug) for info in infos}
    assert texts == {f"text {number}" for number in range(12)}
    assert await place.anchors.resync() == ResyncReport(unchanged=12)


_WRITER = """
import sys
from pathlib import Path
from pps.ingest.anchor_files import AnchorFolder
folder, number = AnchorFolder(Path(sys.argv[1])), 0
while True:
    number += 1
    folder.write("one", f"{number}\\n" * 20_000)
    print(number, flush=True)
"""


def test_a_killed_writer_leaves_the_old_text_or_the_new_one_whole(tmp_path: Path) -> None:
    random.seed(5)
    for _ in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(random.random() / 20)  # noqa: S311 (when to kill, not a secret)
            writer.send_signal(signal.SIGKILL)
            acknowledged = [int(line) for line in writer.stdout]
        lines = (tmp_path / "one.md").read_text().splitlines()
        assert len(lines) == 20_000
        assert len(set(lines)) == 1
        assert int(lines[0]) >= max(acknowledged, default=1)


async def test_what_a_killed_writer_left_is_swept_at_the_next_resync(place: Place) -> None:
    await place.anchors.save("Tea", "Green.")
    (place.folder / ".tea.0123456789ab.tmp").write_text("half")
    (place.folder / ".keep").write_text("mine")
    await place.anchors.resync()
    assert place.names() == [".keep", "tea.md"]
