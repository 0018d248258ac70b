"""Markdown files: front matter and body, the folder of an entity's anchors, and other folders.

Every call goes through a handle of the folder itself, with names that cannot hold a slash, and no
link is ever followed: nothing outside the folder can be read or written. A file is written whole or
not at all.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import re
import secrets
import stat
import unicodedata
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pps.core.errors import InvalidRequest, StoreError
from pps.core.text import fold, normalise, shown_name
from pps.core.user_files import open_regular
from pps.ingest.redact import whole

MAX_BYTES = 4_000_000
MARKDOWN = (".md", ".markdown")
SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
_LONGEST_SLUG = 67
"""Leaves room for a number and a digest."""
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_FIELD = re.compile(r"(title|tags|source)\s*:\s*(.*)")
_ITEM = re.compile(r"\s*-\s+(.+)")
_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*\s*")
_FRONT = re.compile(r"\s*$|\s+\S|#|- |[\w-]+\s*:(\s|$)")
_FENCE = "---"
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class AnchorText:
    """The text of an anchor's file, parsed.

    Attributes:
        title: From the front matter, else the first heading, else the slug.
        body: Markdown after the front matter, without blank lines at its ends.
        source: Where it was imported from: a path relative to the imported folder.
        others: Lines of the front matter that PPS does not read; ``compose`` writes them back.
    """

    title: str
    body: str
    tags: tuple[str, ...] = ()
    source: str = ""
    others: tuple[str, ...] = ()


def check_slug(slug: str) -> str:
    """Return a slug unchanged; raise InvalidRequest for anything else, a path above all."""
    if not SLUG.fullmatch(slug):
        raise InvalidRequest("slug", "must be 1 to 80 of a-z, 0-9 and '-', not '-' first")
    return slug


def slug_of(title: str) -> str:
    """Return a slug for a title in any script; the same title always gives the same one.

    Accents are dropped. If the title has letters outside of ASCII, six hexadecimal digits of its
    digest follow.
    """
    folded = unicodedata.normalize("NFKD", fold(title))
    plain = "".join(letter for letter in folded if not unicodedata.combining(letter))
    words = _NOT_SLUG.sub("-", plain).strip("-")[:_LONGEST_SLUG].strip("-")
    if not any(letter.isalnum() and not letter.isascii() for letter in plain) and words:
        return words
    digest = hashlib.sha256(fold(title).encode()).hexdigest()[:6]
    return f"{words or 'anchor'}-{digest}"


def free_slug(wanted: str, taken: set[str]) -> str:
    """Return the slug, or the first of ``slug-2``, ``slug-3``, … that is free."""
    numbered = itertools.chain([wanted], (f"{wanted}-{number}" for number in itertools.count(2)))
    return next(slug for slug in numbered if slug not in taken)


def parse(text: str, slug: str) -> AnchorText:
    """Parse a file's text; no text is an error."""
    lines = normalise(text.removeprefix("\ufeff")).split("\n")
    front, body = _divided(lines)
    fields: dict[str, list[str]] = {}
    others: list[str] = []
    current: list[str] | None = None
    for line in front:
        field = _FIELD.fullmatch(line)
        if field:
            current = fields.setdefault(field[1], [])
            current += _values(field[2])
        elif current is not None and (item := _ITEM.fullmatch(line)):
            current += _values(item[1])
        else:
            current = None
            others.append(line)
    tags = tuple(
        dict.fromkeys(tag.removeprefix("#").lower() for tag in fields.get("tags", []) if tag)
    )
    title = " ".join(", ".join(fields.get("title", [])).split()) or _heading(body) or slug
    return AnchorText(
        title[: whole(title, 200)], body, tags, ", ".join(fields.get("source", [])), tuple(others)
    )


def compose(anchor: AnchorText) -> str:
    """Return the file's text; ``parse`` returns an equal anchor for it."""
    front = [f"title: {_quoted(anchor.title)}"]
    if anchor.tags:
        front.append(f"tags: [{', '.join(_quoted(tag) for tag in anchor.tags)}]")
    if anchor.source:
        front.append(f"source: {_quoted(anchor.source)}")
    return "\n".join([_FENCE, *front, *anchor.others, _FENCE, "", anchor.body, ""])


def tidy(text: str) -> str:
    """Return a body as it is stored: NFC, without blank lines at its ends."""
    return normalise(text).strip("\n").rstrip()


def _divided(lines: Sequence[str]) -> tuple[Sequence[str], str]:
    if lines and lines[0].rstrip() == _FENCE:
        end = next((at for at in range(1, len(lines)) if lines[at].rstrip() == _FENCE), 0)
        is_front_matter = end > 0 and all(_FRONT.match(line) for line in lines[1:end])
        if is_front_matter:  # else the first line is a thematic break
            return lines[1:end], tidy("\n".join(lines[end + 1 :]))
    return (), tidy("\n".join(lines))


def _heading(body: str) -> str:
    first = next((line for line in body.split("\n") if line.strip()), "")
    heading = _HEADING.fullmatch(first)
    return heading[1] if heading else ""


def _values(text: str) -> Iterator[str]:
    """Yield the values of a field in the YAML of note programs: ``a``, ``"a"``, ``[a, "b"]``."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        for part in re.findall(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|[^,\[\]]+', text[1:-1]):
            if part.strip():
                yield _unquoted(part.strip())
    elif text:
        yield _unquoted(text)


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            return text[1:-1]
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class AnchorFile:
    """A file as it was read: its text, the SHA-256 of its bytes, and when it was modified."""

    slug: str
    text: str
    digest: str
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class Unread:
    """A name that is no anchor, and why.

    Attributes:
        is_away: Whether it could not be opened now; then its content is unknown.
    """

    name: str
    why: str
    is_away: bool = False


class AnchorFolder:
    """Reads and writes the files; all calls block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def scan(self) -> tuple[list[AnchorFile], list[Unread]]:
        """Return the anchors in the order of their names, and the other files there.

        Hidden names and folders are left alone.
        """
        with self._opened() as folder:
            files = [_read(folder, name) for name in _names(folder) if not name.startswith(".")]
        anchors = [file for file in files if isinstance(file, AnchorFile)]
        unread = [file for file in files if isinstance(file, Unread)]
        return anchors, unread

    def slugs(self) -> set[str]:
        """Return every slug whose file name is taken, be it by a file, a folder or a link."""
        with self._opened() as folder:
            return {name.removesuffix(".md") for name in _names(folder) if name.endswith(".md")}

    def read(self, slug: str) -> AnchorFile | None:
        with self._opened() as folder:
            file = _read(folder, f"{check_slug(slug)}.md")
        return file if isinstance(file, AnchorFile) else None

    def write(self, slug: str, text: str, modified_at: datetime | None = None) -> AnchorFile:
        """Write an anchor; when this returns, the whole file is on disk under its name.

        ``modified_at`` becomes the file's time of modification; None for now.
        """
        name = f"{check_slug(slug)}.md"
        with self._opened() as folder, _mapped(name):
            temporary = f".{slug}.{secrets.token_hex(6)}.tmp"
            try:
                with os.fdopen(os.open(temporary, _WRITE, 0o600, dir_fd=folder), "wb") as file:
                    file.write(text.encode("utf-8"))
                    file.flush()
                    if modified_at is not None:
                        os.utime(file.fileno(), (modified_at.timestamp(), modified_at.timestamp()))
                    os.fsync(file.fileno())
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)
                raise
            os.fsync(folder)
            written = _read(folder, name)
        if not isinstance(written, AnchorFile):
            raise StoreError(f"anchor {name} was replaced while it was written")
        return written

    def remove(self, slug: str) -> bool:
        name = f"{check_slug(slug)}.md"
        with self._opened() as folder, _mapped(name):
            if not isinstance(_read(folder, name), AnchorFile):
                return False
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)
        return True

    def sweep(self) -> None:
        """Remove temporary files that a crash left; only for the process that holds the entity."""
        with self._opened() as folder:
            for name in _names(folder):
                if name.startswith(".") and name.endswith(".tmp") and SLUG.match(name[1:]):
                    os.unlink(name, dir_fd=folder)

    @contextlib.contextmanager
    def _opened(self) -> Generator[int]:
        with _mapped("anchors folder"):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = os.open(
                self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            )
        try:
            yield folder
        finally:
            os.close(folder)


Stamp = tuple[int, int]
"""Size in bytes and time of the last change in nanoseconds; equal for an unchanged file."""


@dataclass(frozen=True, slots=True)
class Outside:
    """A Markdown file below a folder other than the entity's.

    Attributes:
        path: Relative to the folder, with ``/``.
        read: The file, or why it was not read; None if its stamp is known.
    """

    path: str
    stamp: Stamp
    read: AnchorFile | Unread | None


def read_below(folder: Path, known: Mapping[str, Stamp] | None = None) -> Generator[Outside]:
    """Yield the Markdown files of a folder and of the folders below it, by name. Blocks.

    Hidden names are left alone and no link is followed, so nothing outside the folder is read. A
    folder below that cannot be opened is yielded as ``Unread``. A file whose stamp is ``known`` is
    not read.

    Raises:
        StoreError: The folder itself cannot be read.
    """
    closed: list[OSError] = []
    due = {""}
    with _mapped(str(folder)):
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        for here, folders, names, handle in os.fwalk(
            folder, onerror=closed.append, follow_symlinks=False
        ):
            below = Path(here).relative_to(folder)
            due.discard("" if below == Path() else below.as_posix())
            folders[:] = sorted(
                name for name in folders if not name.startswith(".") and not _is_link(handle, name)
            )
            due.update((below / name).as_posix() for name in folders)
            for name in sorted(names):
                if not name.startswith(".") and name.lower().endswith(MARKDOWN):
                    yield _outside(handle, name, (below / name).as_posix(), known or {})
    why = closed[0].strerror if closed else "it went away"
    if "" in due:
        raise StoreError(f"{folder}: {why}")
    for path in sorted(map(shown_name, due)):
        yield Outside(path, (0, 0), Unread(path, f"cannot be opened ({why})", is_away=True))


def read_one(file: Path, known: Mapping[str, Stamp] | None = None) -> Generator[Outside]:
    """Yield one Markdown file as ``read_below`` does; StoreError if it does not exist. Blocks."""
    with _mapped(str(file)):
        handle = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.stat(file.name, dir_fd=handle, follow_symlinks=False)
            yield _outside(handle, file.name, file.name, known or {})
        finally:
            os.close(handle)


def is_markdown(path: Path) -> bool:
    """Tell by its name whether a path is a Markdown file and no folder."""
    return path.name.lower().endswith(MARKDOWN) and not path.is_dir()


def _outside(folder: int, name: str, path: str, known: Mapping[str, Stamp]) -> Outside:
    printable = shown_name(path)
    if printable != path:
        return Outside(printable, (0, 0), Unread(printable, "its name is not UTF-8"))
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        stamp = (status.st_size, status.st_mtime_ns)
        if known.get(path) == stamp:
            return Outside(path, stamp, None)
        read = _content(folder, name, "")
    except OSError as error:
        return Outside(
            path, (0, 0), Unread(path, f"cannot be read ({error.strerror})", is_away=True)
        )
    if isinstance(read, AnchorFile) and "\0" in read.text:
        read = Unread(path, "binary")
    return Outside(path, stamp, read)


def _read(folder: int, name: str) -> AnchorFile | Unread | None:
    """Return an anchor, or why the name is none; None for a folder or a file that is gone."""
    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return None
        slug = name.removesuffix(".md")
        if slug == name or not SLUG.fullmatch(slug):
            return Unread(
                shown_name(name), "an anchor's name is 1 to 80 of a-z, 0-9 and '-', then .md"
            )
        return _content(folder, name, slug)
    except FileNotFoundError:
        return None


def _names(folder: int) -> list[str]:
    return sorted(os.listdir(folder))


def _is_link(folder: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:  # opening it then fails with the reason
        return False


def _content(folder: int, name: str, slug: str) -> AnchorFile | Unread:
    if _is_link(folder, name):
        return Unread(name, "a link, and links are not followed")
    try:
        opened = open_regular(name, flags=os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return Unread(name, "not a plain file")
        raise
    with opened as file:
        status = os.fstat(file.fileno())
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        return Unread(name, f"over {MAX_BYTES // 1_000_000} MB")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return Unread(name, "not UTF-8")
    modified_at = datetime.fromtimestamp(status.st_mtime, UTC)
    return AnchorFile(slug, text, hashlib.sha256(data).hexdigest(), modified_at)


@contextlib.contextmanager
def _mapped(name: str) -> Generator[None]:
    """Raise an OSError of the block as a StoreError that names the file or folder."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{name}: {error.strerror or type(error).__name__}") from error
