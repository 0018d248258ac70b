"""Conversations as JSON lines: one message a line, with its *given* nodes and facts; what ``pps export`` writes.

A line: ``{"content": …, "role": …, "actor": …, "session": …, "occurred_at": …, "source_ref": …, "tags": [],
"nodes": [{"name", "kind", "summary", "aliases", "tags", "attributes"}], "facts": [{"subject", "relation", "object",
"text", "valid_at", "invalid_at", "invalidates", "kind"}]}``. Only ``content`` is needed; unknown names are errors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pps.core.errors import InvalidRequest
from pps.core.values import Chunk
from pps.ingest.drafts import RememberOptions
from pps.ingest.given_input import FactInput, Moment, NodeInput
from pps.ingest.importing.items import Item, Read, Unreadable
from pps.ingest.importing.sources import Source
from pps.ingest.importing.streams import MAX_LINE


class TurnLine(BaseModel):
    """A message as it stands in JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    content: str
    role: Literal["user", "assistant", "system", "tool"] = "user"
    actor: str = ""
    session: str = ""
    source: str = "import"
    source_ref: str = ""
    occurred_at: Moment | None = None
    kind: str = "turn"
    tags: tuple[str, ...] = ()
    nodes: tuple[NodeInput, ...] = ()
    facts: tuple[FactInput, ...] = ()
    chunk: tuple[str, int, int] | None = None

    def options(self) -> RememberOptions:
        """Return what ``Memory.remember`` is told beside the content."""
        found: RememberOptions = {
            "role": self.role,
            "actor": self.actor,
            "source": self.source,
            "source_ref": self.source_ref,
            "kind": self.kind,
            "tags": self.tags,
            "nodes": [node.draft() for node in self.nodes],
            "facts": [fact.draft() for fact in self.facts],
        }
        if self.session:
            found["session"] = self.session
        if self.occurred_at:
            found["occurred_at"] = self.occurred_at
        if self.chunk:
            found["chunk"] = Chunk(*self.chunk)
        return found


def read(source: Source) -> Iterator[Read]:
    """Yield a file's messages; a line that is none is reported, and the rest goes on.

    A line without ``source_ref`` gets one from the file's name, the line's number and what it says: reading the same
    file twice stores each message once, and neither another file of that name nor a line written anew is taken for it.
    """
    with source.opened() as file:
        number = 0
        while raw := file.readline(MAX_LINE):
            number += 1
            if not raw.strip():
                continue
            where = f"{source.name}:{number}"
            try:
                line = _line(raw, where)
            except InvalidRequest as error:
                yield Unreadable(error.field, error.message.removeprefix(f"{error.field}: "))
                continue
            ref = line.source_ref or f"{source.name.rpartition('/')[2]}:{number}:{_digest(raw)}"
            yield Item(line.content, {**line.options(), "source_ref": ref}, where)


def read_lines(path: Path) -> Iterator[tuple[str, RememberOptions]]:
    """Yield (content, options) for each message of a JSON lines file; blank lines are passed over.

    Raises:
        InvalidRequest: A line is not of the shape above; it names the file, the line and the field.
        StoreError: The file cannot be read.
    """
    for one in read(Source(path.name, path, path.parent, 0)):
        if isinstance(one, Unreadable):
            raise InvalidRequest(one.where, one.why)
        if isinstance(one, Item):
            yield one.content, one.options


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw.strip()).hexdigest()[:12]


def _line(raw: bytes, where: str) -> TurnLine:
    try:
        return TurnLine.model_validate_json(raw.removeprefix(b"\xef\xbb\xbf"))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidRequest(f"{where}: {field}" if field else where, first["msg"]) from None
