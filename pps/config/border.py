"""Validation errors in plain words that name the field and never quote the value."""

from __future__ import annotations

import re

from pydantic import BaseModel, ValidationError

from pps.core.errors import Problem
from pps.core.ids import ID_PATTERN, UUID_PATTERN
from pps.core.text import nearest_name

_BRANCH = re.compile(r"(tuple|list|set|dict|literal|union)\[")
_ITEMS = re.compile(
    r"(?:tuple|list) should have (at (?:least|most) \d+) items? after validation.*", re.IGNORECASE
)
MAX_PROBLEMS = 100
_MAX_NAME = 100
_WHOLE = re.compile(r"give at least \d+")


def problems(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Return the problems of a validation error, each once and without values.

    Values may be secrets or memory. Only the first ``MAX_PROBLEMS`` are returned: nobody reads
    more, and a hostile file has thousands.
    """
    problems: list[Problem] = []
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    for item in errors[:MAX_PROBLEMS]:
        path = [_shortened(str(part)) for part in item["loc"] if not _BRANCH.match(str(part))]
        unknown = item["type"] == "extra_forbidden"
        near = _suggested_name(path, model) if unknown else ""
        problems.append(
            Problem(".".join(path), _plain_message(item["msg"]), unknown=unknown, near=near)
        )
    return [
        problem for problem in dict.fromkeys(problems) if not _is_consequence(problem, problems)
    ]


def _shortened(part: str) -> str:
    return part if len(part) <= _MAX_NAME else f"{part[:_MAX_NAME]}…"


def _plain_message(message: str) -> str:
    """Return a message of Pydantic in PPS's words, with an example instead of an id's pattern."""
    if UUID_PATTERN in message or ID_PATTERN in message:
        return "must be an id as answers give it, such as 1b4e28ba-2fa1-5d2b-883f-0016d3cca427"
    text = _ITEMS.sub(r"give \1", message.removeprefix("Value error, "))
    return text[:1].lower() + text[1:]


def _is_consequence(problem: Problem, problems: list[Problem]) -> bool:
    """Return whether a list is too short only because of invalid items, reported themselves."""
    within = f"{problem.path}."
    return _WHOLE.match(problem.problem) is not None and any(
        problem.path.startswith(within) for problem in problems
    )


def _suggested_name(path: list[str], model: type[BaseModel]) -> str:
    """Return the field that an unknown one at the top or in a section probably means, or empty."""
    for part in path[:-1]:
        inner = model.model_fields[part].annotation if part in model.model_fields else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return ""
        model = inner
    near = nearest_name(path[-1], model.model_fields)
    return ".".join([*path[:-1], near]) if near else ""
