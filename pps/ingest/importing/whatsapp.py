"""A chat exported by WhatsApp: a text file with a message a line, further lines of it below.

iOS writes ``[12/03/2024, 21:04:05] Ana: …``, Android ``12/03/2024, 21:04 - Ana: …``, each in the
phone's own order of day and month, with twelve or twenty-four hours, in the phone's time zone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePath

from pps.core.text import content_hash
from pps.ingest.drafts import RememberOptions
from pps.ingest.importing.items import Passed, Read, Unreadable, pieces, short
from pps.ingest.importing.source_files import Source

SUFFIXES = (".txt",)
MAX_BYTES = 256 * 1024**2
_LOOK_LINES = 20
_MARKS = dict.fromkeys(map(ord, "\u200e\u200f\u202a\u202c\u2068\u2069"))
_OWN_MARK = "\u200e"
"""First character of the program's own messages in exports of iOS."""
_EDITED = re.compile(r"\s*\u200e?<[^<>\n]{1,60}>\Z")
"""The mark at the end of an edited message."""
_HEAD = re.compile(
    r"\u200e?\[?(?P<first>\d{1,4})[./-](?P<second>\d{1,2})[./-](?P<third>\d{2,4}),?[ \u202f\u00a0]+"
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second_of_minute>\d{2}))?"
    r"(?:[ \u202f\u00a0]?(?P<half>[AaPp]\.?[ \u202f\u00a0]?[Mm]\.?))?(?:\]|[ ]-)[ ]"
)
_SPEAKER = re.compile(r"([^:\n]{1,100}?): ?")
_NO_WORDS = re.compile(
    r"<[^<>\n]{1,40}>|(?:image|video|audio|sticker|GIF|document|Contact card) omitted"
    r"|(?:This message was deleted|You deleted this message)\.?|Missed (?:voice|video) call",
    re.IGNORECASE,
)
"""A message without words: a file that was left out, or a message that was deleted."""


@dataclass(slots=True)
class _Message:
    head: re.Match[str]
    number: int
    lines: list[str] = field(default_factory=list[str])


def is_whatsapp(source: Source) -> bool:
    """Tell whether the first lines of a text file are those of an exported chat."""
    lines = _lines(source, _LOOK_LINES)
    if isinstance(lines, Unreadable):
        return False
    first = next((line for line in lines if line.strip()), "")
    return _HEAD.match(first) is not None


def read(source: Source) -> Iterator[Read]:
    """Yield each message with its speaker as actor; times are the phone's, without a zone."""
    lines = _lines(source, None)
    if isinstance(lines, Unreadable):
        yield lines
        return
    messages: list[_Message] = []
    for number, line in enumerate(lines, 1):
        if head := _HEAD.match(line):
            messages.append(_Message(head, number, [line[head.end() :]]))
        elif messages:
            messages[-1].lines.append(line)
        elif line.strip():
            yield Unreadable(f"{source.name}:{number}", "stands before the first message")
    order = _order([message.head for message in messages])
    session = short(PurePath(source.name.rpartition("!")[0] or source.name).stem)
    if session == "_chat":
        session = short(PurePath(source.path).parent.name or session)
    met: dict[str, int] = {}
    for message in messages:
        where = f"{source.name}:{message.number}"
        at = _moment(message.head, order)
        if at is None:
            yield Unreadable(where, "has a date that does not exist")
            continue
        text = "\n".join(message.lines).strip()
        speaker = _SPEAKER.match(text)
        if speaker is None:
            yield Passed("WhatsApp's own lines and messages without words")
            continue
        written = text[speaker.end() :].strip()
        words = _EDITED.sub("", written).translate(_MARKS).strip() or written.translate(_MARKS)
        if written.startswith(_OWN_MARK) or _NO_WORDS.fullmatch(words):
            yield Passed("WhatsApp's own lines and messages without words")
            continue
        key = f"{at.isoformat()}:{content_hash(f'{speaker[1]}: {words}')[:16]}"
        met[key] = met.get(key, 0) + 1
        options = RememberOptions(
            source="whatsapp",
            session=session,
            actor=short(speaker[1].translate(_MARKS).strip(), 100),
            source_ref=key if met[key] == 1 else f"{key}-{met[key]}",
            occurred_at=at,
        )
        yield from pieces(words, options, where)


def _lines(source: Source, most: int | None) -> list[str] | Unreadable:
    with source.opened() as file:
        data = file.read(MAX_BYTES + 1 if most is None else 64 * 1024)
    if len(data) > MAX_BYTES:
        return Unreadable(source.name, f"is over {MAX_BYTES // 1024**2} MiB; divide it")
    try:
        text = data.decode("utf-8-sig", "strict" if most is None else "ignore")
    except UnicodeDecodeError:
        return Unreadable(source.name, "is not UTF-8")
    lines = (line.rstrip("\r") for line in text.split("\n"))
    return list(itertools.islice(lines, most))


def _order(heads: Sequence[re.Match[str]]) -> str:
    """Return ``dmy``, ``mdy`` or ``ymd``: the order that gives dates that exist and do not go back.

    Where both orders do, a clock of twelve hours tells of the American one.
    """
    if any(len(head["first"]) == 4 for head in heads):
        return "ymd"
    if any(int(head["first"]) > 12 for head in heads):
        return "dmy"
    if any(int(head["second"]) > 12 for head in heads):
        return "mdy"
    steps_back: dict[str, int] = {}
    for order in ("dmy", "mdy"):
        moments = [moment for head in heads if (moment := _moment(head, order))]
        steps_back[order] = sum(later < earlier for earlier, later in itertools.pairwise(moments))
    if steps_back["dmy"] != steps_back["mdy"]:
        return min(steps_back, key=lambda order: steps_back[order])
    return "mdy" if any(head["half"] for head in heads) else "dmy"


def _moment(head: re.Match[str], order: str) -> datetime | None:
    parts = dict(zip(order, (head["first"], head["second"], head["third"]), strict=True))
    year = int(parts["y"])
    hour = int(head["hour"])
    if head["half"]:
        hour = hour % 12 + (12 if head["half"][0] in "Pp" else 0)
    try:
        return datetime(  # noqa: DTZ001 - the phone's wall clock; `remember` adds the entity's zone
            year + 2000 if year < 100 else year,
            int(parts["m"]),
            int(parts["d"]),
            hour,
            int(head["minute"]),
            int(head["second_of_minute"] or 0),
        )
    except ValueError:
        return None
