"""Reading conversations from JSON lines: one message a line, with its *given* nodes and facts.

A line: ``{"content": …, "role": …, "actor": …, "session": …, "occurred_at": …, "source_ref": …, "tags": [],
"nodes": [{"name", "kind", "summary", "aliases", "tags", "attributes"}], "facts": [{"subject", "relation", "object",
"text", "valid_at", "invalid_at", "invalidates", "kind"}]}``. Only ``content`` is needed; unknown names are errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pps.core.errors import InvalidRequest
from pps.core.time import parse
from pps.core.values import FactDraft, NodeDraft
from pps.ingest.drafts import RememberOptions


def _time(value: object) -> object:
    return parse(value) if isinstance(value, str) else value


When = Annotated[AwareDatetime, BeforeValidator(_time)]
"""ISO 8601 text or an aware datetime; a date alone is its midnight in UTC."""


class _Border(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NodeLine(_Border):
    """A node as it stands in JSON."""

    name: str
    kind: str = "Thing"
    summary: str = ""
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = Field(default_factory=dict[str, Any])

    def draft(self) -> NodeDraft:
        """Return the value that the write path takes."""
        return NodeDraft(self.name, self.kind, self.summary, self.aliases, self.tags, self.attributes)


class FactLine(_Border):
    """A fact as it stands in JSON."""

    subject: str
    relation: str
    object: str
    text: str = ""
    valid_at: When | None = None
    invalid_at: When | None = None
    invalidates: tuple[str, ...] = ()
    kind: Literal["fact", "relation"] = "fact"

    def draft(self) -> FactDraft:
        """Return the value that the write path takes."""
        return FactDraft(
            subject=self.subject,
            relation=self.relation,
            object=self.object,
            text=self.text,
            valid_at=self.valid_at,
            invalid_at=self.invalid_at,
            invalidates=self.invalidates,
            kind=self.kind,
        )


class TurnLine(_Border):
    """A message as it stands in JSON."""

    content: str
    role: str = "user"
    actor: str = ""
    session: str = ""
    source: str = "import"
    source_ref: str = ""
    occurred_at: When | None = None
    kind: str = "turn"
    tags: tuple[str, ...] = ()
    nodes: tuple[NodeLine, ...] = ()
    facts: tuple[FactLine, ...] = ()

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
        return found


def read_lines(path: Path) -> Iterator[tuple[str, RememberOptions]]:
    """Yield (content, options) for each message of a JSON lines file; blank lines are passed over.

    A line without ``source_ref`` gets one from the file's name and the line's number, so that reading the
    same file twice stores each message once.

    Raises:
        InvalidRequest: A line is not of the shape above; it names the file, the line and the field.
    """
    with path.open(encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            if text.strip():
                line = _line(text, f"{path.name}:{number}")
                ref = line.source_ref or f"{path.name}:{number}"
                yield line.content, {**line.options(), "source_ref": ref}


def _line(text: str, where: str) -> TurnLine:
    try:
        return TurnLine.model_validate(json.loads(text))
    except json.JSONDecodeError as error:
        raise InvalidRequest(where, f"is not JSON (column {error.colno})") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidRequest(f"{where}: {field}", first["msg"]) from None
    except InvalidRequest as error:
        raise InvalidRequest(where, error.message) from None
