"""The files of an import: what cannot be read is named with what to do, and the rest is found."""

from __future__ import annotations

import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from time import mktime

import pytest

from pps.core.errors import StoreError
from pps.ingest.importing.formats import format_of
from pps.ingest.importing.items import Item, Passed, Unreadable
from pps.ingest.importing.source_files import MAX_MEMBERS, Archives, Source, find
from tests import importing_files as made


def sources(path: Path) -> list[Source]:
    return [one for one in find([path]) if isinstance(one, Source)]


def items(path: Path) -> list[Item]:
    chosen = [(one, format_of(one)) for one in sources(path)]
    return [read for one, how in chosen if how for read in how.read(one) if isinstance(read, Item)]


@pytest.mark.parametrize("where", ["given", "below"])
def test_a_zip_file_whose_end_is_missing_is_named_with_what_to_do(
    tmp_path: Path, where: str
) -> None:
    path = made.packed(tmp_path / "export.zip", {"conversations.json": "[]"})
    path.write_bytes(path.read_bytes()[:-8])
    (found,) = find([path if where == "given" else tmp_path])
    assert isinstance(found, Unreadable)
    assert found.where == "export.zip"
    assert "download or copy it again" in found.why


def test_a_zip_file_is_opened_once_for_all_that_it_holds(tmp_path: Path) -> None:
    path = made.packed(
        tmp_path / "notes.zip",
        {f"{number}.md": f"# Note\n\nNumber {number}." for number in range(9)},
    )
    other = made.packed(tmp_path / "other.zip", {"a.md": "# Other\n\nNote."})
    found = sources(path)
    archives = found[0].archives
    assert all(one.archives is archives for one in found)
    assert archives.of(path) is archives.of(path)
    assert archives.of(other).namelist() == ["a.md"]
    assert [one.content for one in items(tmp_path)][-1] == "# Other\n\nNote."
    assert len(items(path)) == 9


def test_a_packed_note_is_as_old_as_its_zip_file_says(tmp_path: Path) -> None:
    path = tmp_path / "notes.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.md", (2021, 5, 4, 3, 2, 0)), "# A\n\nOld.")
        archive.writestr(zipfile.ZipInfo("b.md"), "# B\n\nOf no date.")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    packed_at = datetime.fromtimestamp(mktime((2021, 5, 4, 3, 2, 0, 0, 0, -1)), UTC)
    assert [one.options.get("occurred_at") for one in items(path)] == [
        packed_at,
        datetime.fromtimestamp(1_700_000_000, UTC),
    ]


def test_a_name_that_is_not_utf_8_can_be_shown_and_kept(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/gr\xfcn.md", "wb") as file:  # noqa: PTH123 - a path of bytes
        file.write(b"# Green\n\nTea.")
    (found,) = items(tmp_path)
    assert found.where == "gr\ufffdn.md part 1"
    assert str(found.options.get("chunk")).encode()


def test_a_loop_of_links_and_a_pipe_are_passed_over(tmp_path: Path) -> None:
    made.note(tmp_path / "a" / "note.md", "# A\n\nHere.")
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    (tmp_path / "a" / "link.md").symlink_to("note.md")
    os.mkfifo(tmp_path / "pipe.md")
    found = list(find([tmp_path]))
    assert [one.name for one in found if isinstance(one, Source)] == ["a/note.md"]
    assert [one.why for one in found if isinstance(one, Passed)] == [
        "links and special files",
        "hidden or linked folders",
        "links and special files",
    ]


def test_files_that_may_be_listed_and_not_read_are_named_and_the_rest_is_found(
    tmp_path: Path,
) -> None:
    made.note(tmp_path / "a.md", "# A\n\nHere.")
    made.note(tmp_path / "listed" / "b.md", "# B\n\nThere.")
    made.packed(tmp_path / "c.zip", {"c.md": "# C"}).chmod(0)
    (tmp_path / "listed").chmod(0o400)
    with ThreadPoolExecutor(1, initializer=made.without_rights) as pool:
        found = pool.submit(lambda: list(find([tmp_path]))).result()
    (tmp_path / "listed").chmod(0o700)
    assert [one.name for one in found if isinstance(one, Source)] == ["a.md"]
    assert {one.where: one.why for one in found if isinstance(one, Unreadable)} == {
        "c.zip": "cannot be read (Permission denied)",
        "listed/b.md": "cannot be read (Permission denied)",
    }


def test_a_json_file_that_was_named_and_is_broken_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text('[{"mapping": {"a": ')
    (found,) = find([path])
    assert isinstance(found, Source)
    with pytest.raises(StoreError, match=r"conversations\.json: is not JSON"):
        format_of(found)
    assert [format_of(one) for one in sources(tmp_path)] == [None]


def test_a_note_that_went_away_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"a\.md: cannot be read \(No such file or directory\)"):
        Source("a.md", tmp_path / "a.md", tmp_path, 1).modified_at()
    assert Source(
        "a.md", tmp_path / "x.zip", tmp_path, 1, packed_at=datetime(2026, 1, 1, tzinfo=UTC)
    ).modified_at()
    with pytest.raises(FileNotFoundError):
        Archives().of(tmp_path / "absent.zip")


def test_a_pipe_or_a_device_is_named_and_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    os.mkfifo(tmp_path / "pipe.zip")
    for path in (tmp_path / "pipe.jsonl", tmp_path / "pipe.zip", Path("/dev/zero")):
        (found,) = find([path])
        assert isinstance(found, Unreadable)
        assert "plain file" in found.why
    swapped = Source("talk.jsonl", tmp_path / "pipe.jsonl", tmp_path, 1)
    with pytest.raises(StoreError, match="plain file"), swapped.opened():
        pass


def test_a_zip_file_that_grows_as_no_text_does_is_refused_unread(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + b" " * 80_000_000)
    (found,) = find([tmp_path / "bomb.zip"])
    assert isinstance(found, Unreadable)
    assert "over 100 times its size" in found.why
    made.packed(tmp_path / "many.zip", {f"{number}.md": "" for number in range(MAX_MEMBERS + 1)})
    (found,) = find([tmp_path / "many.zip"])
    assert isinstance(found, Unreadable)
    assert "unpack it and import the folder" in found.why


def test_an_import_that_is_ended_is_ended_at_its_next_read(tmp_path: Path) -> None:
    (source,) = sources(made.packed(tmp_path / "a.zip", {"a.jsonl": '{"content": "a"}\n' * 1000}))
    with source.opened() as file:
        assert file.readline()
        source.archives.stopped = True
        with pytest.raises(StoreError, match="the import was ended"):
            file.readline()
