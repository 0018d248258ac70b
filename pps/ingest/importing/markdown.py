"""A Markdown file as turns: passages with title, headings, tags, date, links and observations.

A passage is identified by its content: when a file changes, the unchanged passages keep their
turns. A note with only properties has one passage of these; a note with ``[[links]]`` is a node
too, with a relation to each target. Observations and named relations are those of basic-memory.
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
from pps.ingest.importing.streams import moment
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
_TITLED = re.compile(r"\ufeff?---\r?\n(?:(?!---).*\n)*?title\s*:")
"""Front matter with a title."""
_HASHTAG = re.compile(r"(?<!\S)#([^\s#]+)")
_DATED_NAME = re.compile(r"(\d{4})([-_. ]?)(\d{2})\2(\d{2})(?!\d)")
"""Names of daily notes: ``2026-03-05``, ``2026_03_05 Standup``, ``20260305``."""
_EMBEDDED = re.compile(r"!\[\[[^\[\]]*\]\]")
_CODE = re.compile(r"^(```|~~~).*?^\1\s*$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
"""Code, in which ``[[ … ]]`` is a test of the shell and no link."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage, and the headings above it, outermost first."""

    text: str
    headings: tuple[str, ...] = ()


def passages(text: str, *, words: int = WORDS, overlap: int = OVERLAP) -> list[Passage]:
    """Return the passages of Markdown or plain text in order; none for a blank text.

    Args:
        text: Markdown or plain text.
        words: Most words of a passage. A longer sentence is cut between words.
        overlap: Most words, in whole sentences, that a passage repeats from the end of the one
            before; less than half of ``words``.
    """
    sentences = _join_at_secrets(list(_sentences(text, words)), spans(text), words)
    headings = _headings(text)
    parts: list[Passage] = []
    first = 0
    while first < len(sentences):
        last = first
        total = 0
        while last < len(sentences) and total + sentences[last].words <= words:
            total += sentences[last].words
            last += 1
        start = sentences[first].start
        passage = text[start : sentences[last - 1].end].strip()
        parts.append(Passage(passage, _headings_above(headings, start)))
        if last == len(sentences):
            break
        first = _step_back(sentences, first, last, overlap)
    return parts


@dataclass(frozen=True, slots=True)
class _Sentence:
    start: int
    end: int
    words: int


def _sentences(text: str, most: int) -> Iterator[_Sentence]:
    start = 0
    for end in [*(match.end() for match in _BREAK.finditer(text)), len(text)]:
        words = list(_WORD.finditer(text, start, end))
        for first in range(0, len(words), most):
            part = words[first : first + most]
            is_last = first + most >= len(words)
            yield _Sentence(part[0].start(), end if is_last else part[-1].end(), len(part))
        start = end


def _join_at_secrets(
    sentences: list[_Sentence], secrets: Sequence[Span], most: int
) -> list[_Sentence]:
    """Join sentences that a secret spans: half of a secret would not be recognised."""
    joined: list[_Sentence] = []
    for sentence in sentences:
        if joined and any(start < sentence.start < end for start, end in secrets):
            last = joined.pop()
            words = min(most, last.words + sentence.words)
            joined.append(_Sentence(last.start, sentence.end, words))
        else:
            joined.append(sentence)
    return joined


def _step_back(sentences: list[_Sentence], first: int, last: int, overlap: int) -> int:
    """Return the first sentence of the next passage, as far before ``last`` as ``overlap`` fits."""
    place = last
    total = 0
    while place - 1 > first and total + sentences[place - 1].words <= overlap:
        place -= 1
        total += sentences[place].words
    return place


@dataclass(frozen=True, slots=True)
class _Heading:
    position: int
    level: int
    words: str


def _headings(text: str) -> list[_Heading]:
    """Return the headings outside of code."""
    headings: list[_Heading] = []
    position = 0
    open_fence = ""
    for line in text.splitlines(keepends=True):
        heading = _HEADING.fullmatch(line.strip("\r\n"))
        fence = _FENCE.match(line)
        if fence and open_fence in ("", fence[1]):  # a block ends with the fence that began it
            open_fence = "" if open_fence else fence[1]
        elif heading and not open_fence:
            headings.append(_Heading(position, len(heading[1]), heading[2]))
        position += len(line)
    return headings


def _headings_above(headings: list[_Heading], position: int) -> tuple[str, ...]:
    """Return the headings in force just before a position, outermost first."""
    in_force: list[_Heading] = []
    for heading in headings:
        if heading.position >= position:
            break
        in_force = [outer for outer in in_force if outer.level < heading.level]
        in_force.append(heading)
    return tuple(heading.words for heading in in_force)


@dataclass(frozen=True, slots=True)
class Note:
    """A Markdown file that was read.

    Attributes:
        folder: The followed or imported folder.
        path: Relative to the folder, with ``/``.
    """

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
    """Return the session of a file's passages, unique for its folder and path."""
    place = str(folder.resolve()).encode("utf-8", "surrogateescape")
    return short(f"note:{hashlib.sha256(place).hexdigest()[:12]}:{path}")


def is_basic_memory(text: str) -> bool:
    """Tell whether a file is a note of basic-memory.

    It has a permalink, and observations or a named relation with a title or a type. Other programs
    write permalinks, titles, types and links too.
    """
    parsed = parse(text, "note")
    fields = _fields(parsed)
    if not fields.get("permalink"):
        return False
    has_observation = False
    has_relation = False
    for line in parsed.body.splitlines():
        relation = _RELATION.fullmatch(line)
        if _read_observation(line):
            has_observation = True
        elif relation and relation[1].strip():
            has_relation = True
    is_titled = _TITLED.match(text) is not None or bool(fields.get("type"))
    return has_observation or (has_relation and is_titled)


def note_turns(note: Note) -> Iterator[tuple[str, RememberOptions]]:
    """Yield (content, options) for each passage of a file in order; none for a file without words.

    A note of basic-memory or with links is a node with relations, which go with the first passage.
    """
    stem = PurePosixPath(note.path).stem
    parsed = parse(note.text, stem)
    # The front matter's lines are the text of a note that has nothing else.
    properties = "\n".join(line for line in parsed.others if line.strip())
    parts = passages(parsed.body) or passages(properties)
    written_at = _written_at(parsed, stem)
    note_tags = tags(parsed.tags)
    graph = _graph_of(parsed, is_basic_memory=is_basic_memory(note.text)) if parts else None
    # Part of an id, so it must be the same in every zone.
    written_text = iso(zoned(written_at, UTC)) if written_at else ""
    counts: dict[str, int] = {}
    for number, passage in enumerate(parts):
        content = _with_headings(parsed.title, passage)
        stated = [content, *note_tags, written_text]
        options = RememberOptions()
        if graph and number == 0:
            stated += _statements_of(graph)
            options = RememberOptions(nodes=[graph.node], facts=graph.relations)
        stated_bytes = json.dumps(stated).encode("utf-8", "replace")
        reference = hashlib.sha256(stated_bytes).hexdigest()[:32]
        counts[reference] = counts.get(reference, 0) + 1
        if counts[reference] > 1:
            reference = f"{reference}-{counts[reference]}"
        yield (
            content,
            options
            | RememberOptions(
                source=SOURCE,
                source_ref=reference,
                session=session_of(note.folder, note.path),
                kind=KIND,
                chunk=Chunk(short(note.path, 1_000), number, len(parts)),
                tags=note_tags,
                occurred_at=written_at or note.modified_at,
            ),
        )


def _statements_of(graph: _NoteGraph) -> list[str]:
    """Return the values of a note's node and relations, so that a change of them changes the id."""
    node = graph.node
    attributes = json.dumps(dict(node.attributes), sort_keys=True)
    return [node.kind, *node.tags, attributes, *(relation.text for relation in graph.relations)]


def _with_headings(title: str, passage: Passage) -> str:
    """Return a passage under its title and headings, which name its subject."""
    path = [title, *(heading for heading in passage.headings if heading != title)]
    first = passage.text.partition("\n")[0].strip("# \t")
    if first == title and len(path) == 1:
        return passage.text
    return f"{' › '.join(path)}\n\n{passage.text}"


def _fields(parsed: AnchorText) -> dict[str, str]:
    """Return the fields of the front matter that anchors do not read."""
    matches = filter(None, map(_FIELD.fullmatch, parsed.others))
    return {match[1].lower(): match[2].strip().strip("\"'") for match in matches}


def _written_at(parsed: AnchorText, stem: str) -> datetime | None:
    """Return the time in a file's front matter, else the day with which its name begins."""
    fields = _fields(parsed)
    for name in _DATES:
        time = moment(fields.get(name, ""), None)
        if time:
            return time
    match = _DATED_NAME.match(stem)
    return moment(f"{match[1]}-{match[3]}-{match[4]}", None) if match else None


@dataclass(frozen=True, slots=True)
class _NoteGraph:
    """The node of a note, and its relations to other notes."""

    node: NodeDraft
    relations: list[FactDraft]


def _graph_of(parsed: AnchorText, *, is_basic_memory: bool) -> _NoteGraph | None:
    """Return the node of a note with its relations to others; None for a plain note without links.

    A note of basic-memory has observations too. Its links name a note by title or permalink; those
    of a vault by the path of the file.
    """
    fields = _fields(parsed)
    title = short(parsed.title, bounds.MAX_NAME)
    observations: list[JSON] = []
    marks: list[str] = []
    relations: dict[tuple[str, str], FactDraft] = {}
    for line in _linking_lines(parsed, is_basic_memory=is_basic_memory):
        observation = _read_observation(line) if is_basic_memory else None
        if observation:
            category, content = observation
            observations.append({"category": category, "content": content})
            marks += _HASHTAG.findall(content)
        for name, link, context in _relations_in(line):
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
        attributes = {"permalink": permalink, "observations": _fitting_observations(observations)}
        aliases = (short(permalink, bounds.MAX_NAME),) if permalink else ()
    written_kind = label(fields.get("type", ""), "Note")
    node_kind = kind(written_kind[:1].upper() + written_kind[1:], "Note")
    node = NodeDraft(title, node_kind, "", aliases, tags([*parsed.tags, *marks]), attributes)
    return _NoteGraph(node, list(relations.values())[: bounds.MAX_NODES - 1])


def _linking_lines(parsed: AnchorText, *, is_basic_memory: bool) -> Iterator[str]:
    """Yield the lines that may have links; of a vault's note without code and embedded files.

    The properties come first. One with a link is written as an item of a list, so that its name
    becomes the name of the relation.
    """
    if is_basic_memory:
        yield from parsed.body.splitlines()
        return
    name = ""
    for line in parsed.others:
        field = _FIELD.fullmatch(line)
        if field:
            name = field[1]
        for link in _LINK.findall(line):
            yield f"- {name} [[{link}]]"
    body = _EMBEDDED.sub("", _CODE.sub("", parsed.body))
    yield from (line for line in body.splitlines() if "[[" in line)


def _read_observation(line: str) -> tuple[str, str] | None:
    """Return category and content of an observation; a check box and a link are none."""
    match = _OBSERVATION.fullmatch(line)
    if match is None or _BOX.fullmatch(match[1]) or match[2].startswith("("):
        return None
    return match[1].strip(), match[2].strip()


def _relations_in(line: str) -> Iterator[tuple[str, str, str]]:
    """Yield (relation, target, context) of a line; a link in prose has no relation name."""
    match = _RELATION.fullmatch(line)
    if match and not _read_observation(line):
        yield match[1].strip(), _target_of(match[2]), (match[3] or "").strip()
        return
    for link in _LINK.findall(line):
        yield "", _target_of(link), ""


def _target_of(link: str) -> str:
    return link.partition("|")[0].partition("#")[0].strip() or link.strip()


def _fitting_observations(observations: list[JSON]) -> list[JSON]:
    """Return as many observations as fit a node's attributes; the passages have all of them."""
    fitting: list[JSON] = []
    size = 500
    for observation in observations:
        size += len(json.dumps(observation)) + 2
        if size > bounds.MAX_ATTRIBUTES_BYTES:
            break
        fitting.append(observation)
    return fitting
