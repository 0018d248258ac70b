"""A Markdown file as turns: its passages, with title, headings, tags and date, its links, and basic-memory's lines.

A passage is known by what it says: when a file changes, the passages that stay the same keep their turns. A note that
has only properties is the passage of these; one with ``[[links]]`` is a node too, with a relation to each target.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from pps.core import bounds
from pps.core.text import fold
from pps.core.time import iso, zoned
from pps.core.values import JSON, Chunk, FactDraft, NodeDraft
from pps.ingest.anchor_files import AnchorText, parse
from pps.ingest.detectors import Span
from pps.ingest.drafts import RememberOptions
from pps.ingest.importing.items import Passed, Read, Unreadable, kind, label, pieces, short, tags
from pps.ingest.importing.source_files import Source
from pps.ingest.lenient_json import moment
from pps.ingest.redact import spans

WORDS = 200
OVERLAP = 50

_WORD = re.compile(r"[぀-ヿ㐀-鿿豈-﫿฀-๿]|[^\s぀-ヿ㐀-鿿豈-﫿฀-๿]+")
_BREAK = re.compile(
    r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n\s*\n\s*|\n(?=\s*(?:[-*+]|\d{1,3}[.)]|#{1,6})\s)"
)
_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*\s*")
_FENCE = re.compile(r"\s*(```|~~~)")
SOURCE = "markdown"
"""The ``source`` of every turn that is a passage of a Markdown file; their ``kind`` is ``note``."""
KIND = "note"
MAX_BYTES = 4_000_000
"""A larger file is no note."""
SUFFIXES = (".md", ".markdown")
_DATES = ("date", "created", "created_at", "published", "updated", "modified")
_FIELD = re.compile(r"([\w-]+)\s*:\s*(.*)")
_OBSERVATION = re.compile(r"\s*[-*+]\s+\[([^\[\]()\s][^\[\]()]*)\]\s+(\S.*)")
_RELATION = re.compile(r"\s*[-*+]\s+([^\[\]]*?)\s*\[\[([^\[\]]+)\]\]\s*(?:\((.*)\))?\s*")
_LINK = re.compile(r"\[\[([^\[\]]+)\]\]")
_BOX = re.compile(r"[xX ~/-]")
_TITLED = re.compile(r"\ufeff?---\n(?:(?!---).*\n)*?title\s*:")
"""Front matter with a title."""
_HASHTAG = re.compile(r"(?<!\S)#([^\s#]+)")
_DATED_NAME = re.compile(r"(\d{4})([-_. ]?)(\d{2})\2(\d{2})(?!\d)")
"""How daily notes are called: ``2026-03-05``, ``2026_03_05 Standup``, ``20260305``."""
_EMBEDDED = re.compile(r"!\[\[[^\[\]]*\]\]")
_CODE = re.compile(r"^(```|~~~).*?^\1\s*$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
"""Code, in which ``[[ … ]]`` is a test of the shell and no link."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage, and the headings that it stands under, outermost first."""

    text: str
    headings: tuple[str, ...] = ()


def passages(text: str, *, words: int = WORDS, overlap: int = OVERLAP) -> list[Passage]:
    """Return the passages of Markdown or plain text in order; a document that fits is one, a blank one none.

    A passage has at most ``words``; a longer sentence is cut between words. At most ``overlap`` words, whole sentences,
    are those of the end of the one before: less than half of ``words``.
    """
    sentences = _uncut(list(_sentences(text, words)), spans(text), words)
    heads = _headings(text)
    found: list[Passage] = []
    first = 0
    while first < len(sentences):
        last, total = first, 0
        while last < len(sentences) and total + sentences[last].words <= words:
            total += sentences[last].words
            last += 1
        start, end = sentences[first].start, sentences[last - 1].end
        found.append(Passage(text[start:end].strip(), _above(heads, start)))
        if last == len(sentences):
            break
        first = _stepped_back(sentences, first, last, overlap)
    return found


@dataclass(frozen=True, slots=True)
class _Sentence:
    start: int
    end: int
    words: int


def _sentences(text: str, most: int) -> Iterator[_Sentence]:
    start = 0
    for end in [*(match.end() for match in _BREAK.finditer(text)), len(text)]:
        found = list(_WORD.finditer(text, start, end))
        for at in range(0, len(found), most):
            part = found[at : at + most]
            is_last = at + most >= len(found)
            yield _Sentence(part[0].start(), end if is_last else part[-1].end(), len(part))
        start = end


def _uncut(sentences: list[_Sentence], secrets: Sequence[Span], most: int) -> list[_Sentence]:
    """Return the sentences, those joined that a secret runs through: half of one would not be known as one."""
    joined: list[_Sentence] = []
    for one in sentences:
        if joined and any(start < one.start < end for start, end in secrets):
            last = joined.pop()
            one = _Sentence(last.start, one.end, min(most, last.words + one.words))
        joined.append(one)
    return joined


def _stepped_back(sentences: list[_Sentence], first: int, last: int, overlap: int) -> int:
    """Return the sentence at which the next passage begins: as many before ``last`` as the overlap holds."""
    at, total = last, 0
    while at - 1 > first and total + sentences[at - 1].words <= overlap:
        at -= 1
        total += sentences[at].words
    return at


def _headings(text: str) -> list[tuple[int, int, str]]:
    """Return (position, level, words) of each heading outside of code."""
    found: list[tuple[int, int, str]] = []
    at, in_code = 0, False
    for line in text.splitlines(keepends=True):
        if _FENCE.match(line):
            in_code = not in_code
        elif not in_code and (match := _HEADING.fullmatch(line.strip("\r\n"))):
            found.append((at, len(match[1]), match[2]))
        at += len(line)
    return found


def _above(heads: list[tuple[int, int, str]], start: int) -> tuple[str, ...]:
    """Return the headings in force just before a position."""
    open_: list[tuple[int, str]] = []
    for at, level, words in heads:
        if at >= start:
            break
        open_ = [*(one for one in open_ if one[0] < level), (level, words)]
    return tuple(words for _, words in open_)


@dataclass(frozen=True, slots=True)
class Note:
    """A Markdown file as it was read: the folder that is watched or imported, and its path below, with ``/``."""

    folder: Path
    path: str
    text: str
    modified_at: datetime


def read(source: Source) -> Iterator[Read]:
    """Yield the passages of a file; the node and the relations of a note go with the first."""
    text = text_of(source)
    if isinstance(text, Unreadable):
        yield text
        return
    note = Note(source.root, source.name, text, source.modified_at())
    count = 0
    for count, (content, options) in enumerate(note_turns(note), 1):
        yield from pieces(content, options, f"{source.name} part {count}")
    if not count:
        yield Passed("Markdown files without words")


def text_of(source: Source) -> str | Unreadable:
    with source.opened() as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        return Unreadable(source.name, f"is over {MAX_BYTES // 1_000_000} MB, which is no note")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Unreadable(source.name, "is not UTF-8: save it in that encoding")
    return Unreadable(source.name, "is binary") if "\0" in text else text


def session_of(folder: Path, path: str) -> str:
    """Return the session of a file's passages: of its folder and path, so that no two files share one."""
    digest = hashlib.sha256(str(folder.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[
        :12
    ]
    return short(f"note:{digest}:{path}")


def is_basic_memory(text: str) -> bool:
    """Tell whether a file is a note of basic-memory: by a permalink and another of its features at least.

    Other programs write permalinks, titles, types and links too. Observations are its own; a named relation counts
    together with a title or a type.
    """
    parsed = parse(text, "note")
    fields = _fields(parsed)
    if not fields.get("permalink"):
        return False
    lines = parsed.body.splitlines()
    has_observation = any(_observed(line) for line in lines)
    has_relation = any(
        found[1].strip()
        for line in lines
        if (found := _RELATION.fullmatch(line)) and not _observed(line)
    )
    is_titled = _TITLED.match(text) is not None or bool(fields.get("type"))
    return has_observation or (has_relation and is_titled)


def note_turns(note: Note) -> Iterator[tuple[str, RememberOptions]]:
    """Yield (content, options) for each passage of a file, in order; a file without words has none.

    A note of basic-memory, and one with links, is a node with relations; they go with the first passage.
    """
    stem = PurePosixPath(note.path).stem
    parsed = parse(note.text, stem)
    found = passages(parsed.body) or passages(_properties(parsed))
    written = _written(parsed) or _dated_by_name(stem)
    known = tags(parsed.tags)
    session = session_of(note.folder, note.path)
    drawn = _drawn(parsed, is_basic_memory=is_basic_memory(note.text)) if found else None
    met: dict[str, int] = {}
    for part, passage in enumerate(found):
        content = _titled(parsed.title, passage)
        given: RememberOptions = (
            {"nodes": [drawn.node], "facts": drawn.relations} if drawn and part == 0 else {}
        )
        ref = _reference(
            [
                content,
                *known,
                iso(zoned(written, UTC)) if written else "",  # the same in every zone: an id
                *(_said(drawn) if given and drawn else ()),
            ]
        )
        met[ref] = met.get(ref, 0) + 1
        ref = f"{ref}-{met[ref]}" if met[ref] > 1 else ref
        chunk = Chunk(short(note.path, 1_000), part, len(found))
        given = given | RememberOptions(
            source=SOURCE, source_ref=ref, session=session, kind=KIND, chunk=chunk
        )
        yield content, {**given, "tags": known, "occurred_at": written or note.modified_at}


def _properties(parsed: AnchorText) -> str:
    """Return the front matter's lines as text, for a note that has nothing else."""
    return "\n".join(line for line in parsed.others if line.strip())


def _dated_by_name(stem: str) -> datetime | None:
    """Return the day with which a file's name begins."""
    found = _DATED_NAME.match(stem)
    return moment(f"{found[1]}-{found[3]}-{found[4]}", None) if found else None


def _reference(parts: list[str]) -> str:
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "replace")).hexdigest()[:32]


def _said(drawn: _Drawn) -> list[str]:
    """Return all that a note's node and relations say, so that a change of them is a change of the passage."""
    attributes = json.dumps(dict(drawn.node.attributes), sort_keys=True)
    return [drawn.node.kind, *drawn.node.tags, attributes, *(one.text for one in drawn.relations)]


def _titled(title: str, passage: Passage) -> str:
    """Return a passage under its title and headings: alone it would not say what it is about."""
    path = [title, *(heading for heading in passage.headings if heading != title)]
    first = passage.text.partition("\n")[0].strip("# \t")
    if first == title and len(path) == 1:
        return passage.text
    return f"{' › '.join(path)}\n\n{passage.text}"


def _fields(parsed: AnchorText) -> dict[str, str]:
    """Return the fields of the front matter that anchors do not read."""
    found = filter(None, map(_FIELD.fullmatch, parsed.others))
    return {one[1].lower(): one[2].strip().strip("\"'") for one in found}


def _written(parsed: AnchorText) -> datetime | None:
    fields = _fields(parsed)
    return next((at for name in _DATES if (at := moment(fields.get(name, ""), None))), None)


@dataclass(frozen=True, slots=True)
class _Drawn:
    node: NodeDraft
    relations: list[FactDraft]


def _drawn(parsed: AnchorText, *, is_basic_memory: bool) -> _Drawn | None:
    """Return the node that a note is, with its relations to other notes; None of a plain note without links.

    Of basic-memory also the observations. Its links name a note by its title or by its permalink; those of a vault by
    the path of the file.
    """
    fields = _fields(parsed)
    title = short(parsed.title, bounds.MAX_NAME)
    observations: list[JSON] = []
    marks: list[str] = []
    relations: dict[tuple[str, str], FactDraft] = {}
    for line in _linking_lines(parsed, is_basic_memory=is_basic_memory):
        if is_basic_memory and (observed := _observed(line)):
            observations.append({"category": observed[0], "content": observed[1]})
            marks += _HASHTAG.findall(observed[1])
        for name, link, context in _related(line):
            target = link if is_basic_memory else PurePosixPath(link).name.removesuffix(".md")
            if not target or fold(target) == fold(title):
                continue
            text = f"{title} {name or 'links to'} {target}" + (f" ({context})" if context else "")
            relation = label(name or "links_to", "RELATES_TO").upper()
            draft = FactDraft(
                title,
                relation,
                short(target, bounds.MAX_NAME),
                text=short(text, 4_000),
                kind="relation",
            )
            relations.setdefault((relation, target), draft)
    if not is_basic_memory and not relations:
        return None
    attributes: dict[str, JSON] = {}
    aliases: tuple[str, ...] = ()
    if is_basic_memory:
        permalink = fields.get("permalink", "")
        attributes = {"permalink": permalink, "observations": _fitting(observations)}
        aliases = (short(permalink, bounds.MAX_NAME),) if permalink else ()
    written_kind = label(fields.get("type", ""), "Note")
    node_kind = kind(written_kind[:1].upper() + written_kind[1:], "Note")
    node = NodeDraft(title, node_kind, "", aliases, tags([*parsed.tags, *marks]), attributes)
    return _Drawn(node, list(relations.values())[: bounds.MAX_NODES - 1])


def _linking_lines(parsed: AnchorText, *, is_basic_memory: bool) -> Iterator[str]:
    """Yield the lines that may link: of a vault's note without code and embedded files, its properties first.

    A property that links is written as the item of a list, so that its name is that of the relation.
    """
    if is_basic_memory:
        yield from parsed.body.splitlines()
        return
    name = ""
    for line in parsed.others:
        if found := _FIELD.fullmatch(line):
            name = found[1]
        for link in _LINK.findall(line):
            yield f"- {name} [[{link}]]"
    body = _EMBEDDED.sub("", _CODE.sub("", parsed.body))
    yield from (line for line in body.splitlines() if "[[" in line)


def _observed(line: str) -> tuple[str, str] | None:
    """Return category and content of an observation; a box to tick and a link are none."""
    found = _OBSERVATION.fullmatch(line)
    if found is None or _BOX.fullmatch(found[1]) or found[2].startswith("("):
        return None
    return found[1].strip(), found[2].strip()


def _related(line: str) -> Iterator[tuple[str, str, str]]:
    """Yield (relation, target, context): of a list's item as it is named, of prose without a name."""
    if (found := _RELATION.fullmatch(line)) and not _observed(line):
        yield found[1].strip(), _target(found[2]), (found[3] or "").strip()
        return
    for link in _LINK.findall(line):
        yield "", _target(link), ""


def _target(link: str) -> str:
    return link.partition("|")[0].partition("#")[0].strip() or link.strip()


def _fitting(observations: list[JSON]) -> list[JSON]:
    """Return as many observations as a node's attributes may hold; all of them are in the passages' words."""
    kept: list[JSON] = []
    size = 500
    for one in observations:
        size += len(json.dumps(one)) + 2
        if size > bounds.MAX_ATTRIBUTES_BYTES:
            break
        kept.append(one)
    return kept
