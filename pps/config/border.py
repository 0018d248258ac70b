"""What is wrong with data at a border, in words that name the field and never quote the value."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule: ``path`` is dotted, such as ``nodes.0.name``; ``near`` is a known name like it."""

    path: str
    text: str
    unknown: bool = False
    near: str = ""


def problems(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Return what a validation found, without the values (which may be secrets or memory)."""
    found: list[Problem] = []
    for item in error.errors(include_url=False, include_input=False, include_context=False):
        path = [str(part) for part in item["loc"]]
        unknown = item["type"] == "extra_forbidden"
        near = _near(path, model) if unknown else ""
        text = item["msg"].removeprefix("Value error, ")
        found.append(Problem(".".join(path), text[:1].lower() + text[1:], unknown, near))
    return found


def _near(path: list[str], model: type[BaseModel]) -> str:
    """Return the known name that an unknown one at the top or in a section probably means."""
    for part in path[:-1]:
        inner = model.model_fields[part].annotation if part in model.model_fields else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return ""
        model = inner
    near = difflib.get_close_matches(path[-1], model.model_fields, n=1)
    return ".".join([*path[:-1], near[0]]) if near else ""
