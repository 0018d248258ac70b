"""Skills over MCP: the methods of the extension ``io.modelcontextprotocol/skills``.

They are files of the package, the same for every caller. Standard library only: the stdio bridge
answers them itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

EXTENSION = "io.modelcontextprotocol/skills"
LIST = "skills/list"
GET = "skills/get"
FRESH_MS = 300_000
"""How long a client may keep a list or a file."""
_MEDIA_TYPE = "text/markdown"
_FENCE = "---\n"


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill: a folder whose only file is ``SKILL.md``.

    Attributes:
        uri: Of its ``SKILL.md``.
        text: That file.
        frontmatter: The fields between its first two lines of three dashes.
    """

    uri: str
    text: str
    frontmatter: Mapping[str, str]

    @classmethod
    def of_file(cls, file: Path) -> Skill:
        text = file.read_text(encoding="utf-8")
        return cls(f"skill://{file.parent.name}/{file.name}", text, _frontmatter(text))

    def entry(self) -> dict[str, Any]:
        """Return what ``skills/list`` and ``skills/get`` say of it."""
        raw = self.text.encode()
        digest = f"sha256:{hashlib.sha256(raw).hexdigest()}"
        file = {"uri": self.uri, "digest": digest, "size": len(raw)}
        return {"uri": self.uri, "frontmatter": dict(self.frontmatter), "resources": [file]}

    def resource(self) -> dict[str, Any]:
        """Return what ``resources/list`` says of its file."""
        return {
            "uri": self.uri,
            "name": self.frontmatter["name"],
            "description": self.frontmatter["description"],
            "mimeType": _MEDIA_TYPE,
            "size": len(self.text.encode()),
        }

    def contents(self) -> dict[str, Any]:
        """Return what ``resources/read`` says."""
        return {"uri": self.uri, "mimeType": _MEDIA_TYPE, "text": self.text}


@cache
def shipped_skills() -> Mapping[str, Skill]:
    """Return the skills of this installation, by URI."""
    folder = Path(__file__).parents[2] / "_shipped" / "skills"
    if not folder.is_dir():  # in a checkout
        folder = Path(__file__).parents[3] / "skills"
    skills = [Skill.of_file(file) for file in sorted(folder.glob("*/SKILL.md"))]
    return {skill.uri: skill for skill in skills}


def skills_result(method: str, uri: object = None) -> dict[str, Any] | None:
    """Return the result of a method on skills or on their files.

    None for a URI that is none of theirs.

    Args:
        method: ``skills/list``, ``skills/get``, ``resources/list``, ``resources/templates/list`` or
            ``resources/read``.
        uri: Of a ``SKILL.md``; for ``skills/get`` and ``resources/read``.
    """
    skills = shipped_skills()
    if method == LIST:
        return {"skills": [skill.entry() for skill in skills.values()]}
    if method == "resources/list":
        return {"resources": [skill.resource() for skill in skills.values()]}
    if method == "resources/templates/list":
        return {"resourceTemplates": []}
    skill = skills.get(uri) if isinstance(uri, str) else None
    if skill is None:
        return None
    return {"skill": skill.entry()} if method == GET else {"contents": [skill.contents()]}


UNKNOWN_URI = "there is nothing of that uri; skills/list has the uris that there are"
METHODS = frozenset({LIST, GET, "resources/list", "resources/templates/list", "resources/read"})


def _frontmatter(text: str) -> dict[str, str]:
    """Return the fields of a frontmatter whose values are texts of one line."""
    head = text.removeprefix(_FENCE).partition(f"\n{_FENCE}")[0]
    fields = (line.partition(": ") for line in head.splitlines())
    return {name: value for name, _, value in fields}
