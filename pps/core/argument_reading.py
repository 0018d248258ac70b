"""Converts arguments to the types of a tool's schema, before validation.

Models and their clients write a value in more ways than one: a list as JSON text, ``"5"`` for 5,
one text for a list of texts, ``nodeType`` for ``node_type``. Each is read as the value that it can
only mean; whatever else does not fit the schema is left as it is, for the validation to refuse. A
text stays a text wherever the schema takes any text, whatever it looks like.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pps.core.errors import InvalidRequest
from pps.core.json_bounds import MAX_VALUES, check_raw, check_values
from pps.core.model_text import ModelText, as_written

if TYPE_CHECKING:
    from pps.core.json_shapes import Shape
    from pps.core.values import JSON

_MAX_SHOWN = 100
_EXACT_FLOAT = 2**53
"""Whole floats up to this stand for one integer only."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}(?:\.0{1,19})?")
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?"
)
_BOOLEANS = {"true": True, "false": False}


def read_arguments(arguments: Mapping[str, JSON], shape: Shape, field: str = "") -> dict[str, JSON]:
    """Return an object converted to its schema; names that the schema does not know are kept.

    Args:
        arguments: Of bounded size; see ``json_bounds.check_values``.
        shape: Of the object.
        field: Its dotted path, for errors; empty for the arguments of a call.

    Raises:
        InvalidRequest: An argument is given twice, under two spellings; or what texts hold as JSON
            breaks a bound of ``json_bounds``, all of them together.
    """
    return _Reading().read_object(arguments, shape, field)


@dataclass(slots=True)
class _Reading:
    """The reading of one call's arguments.

    Counts the values in its texts, of which there may be many.
    """

    parsed_values: int = 0

    def read(self, value: JSON, shape: Shape, path: str) -> JSON:
        if not shape.types:
            return value
        if isinstance(value, str):
            return self._read_text(value, shape, path)
        if isinstance(value, Mapping) and "object" in shape.types:
            return self.read_object(cast("Mapping[str, JSON]", value), shape, path)
        if isinstance(value, list):
            return self._read_list(value, shape, path)
        if value is None or isinstance(value, bool):
            return self._in_list(value, shape, path)
        if isinstance(value, float) and "integer" in shape.types and "number" not in shape.types:
            return int(value) if _is_whole(value) else value
        return self._in_list(value, shape, path)

    def read_object(self, value: Mapping[str, JSON], shape: Shape, path: str) -> dict[str, JSON]:
        members: dict[str, JSON] = {}
        for written, inner in value.items():
            name = shape.property_name(written)
            own = shape.any_name if name is None else shape.properties[name]
            name = written if name is None else name
            place = _joined(path, name)
            if name in members:
                raise InvalidRequest(place, "is given twice")
            members[name] = self.read(inner, own, place)
        return members

    def _read_list(self, value: list[JSON], shape: Shape, path: str) -> JSON:
        if "array" not in shape.types:
            return value
        return [
            self.read(item, shape.item, _joined(path, str(number)))
            for number, item in enumerate(value)
        ]

    def _in_list(self, value: JSON, shape: Shape, path: str) -> JSON:
        """Return a single value as a list, if only a list is accepted and the value fits."""
        if value is None or "array" not in shape.types or _fits(value, shape):
            return value
        item = self.read(value, shape.item, path)
        return [item] if _fits(item, shape.item) else value

    def _read_text(self, text: str, shape: Shape, path: str) -> JSON:
        if "string" in shape.types:
            choice = shape.choice(text)
            if choice is not None:
                return choice
        parsed = self._read_json(text, shape, path)
        if parsed is not None:
            return self.read(parsed, shape, path)
        if "array" in shape.types:
            return _choices_in(text, shape.item) or self._in_list(text, shape, path)
        if "object" in shape.types:
            is_name = shape.short and text.lstrip()[:1] not in ("{", "[")
            return {shape.short: text} if is_name else text
        return read_scalar(text, shape.types)

    def _read_json(self, text: str, shape: Shape, path: str) -> Any:
        """Return the list or object that a text holds as JSON, where the schema takes one there.

        Else None.
        """
        opening = text.lstrip()[:1]
        takes_object = "object" in shape.types or "object" in shape.item.types
        is_expected = (opening == "{" and takes_object) or (
            opening == "[" and "array" in shape.types
        )
        if not is_expected:
            return None
        field = path[:_MAX_SHOWN]
        check_raw(text.encode("utf-8", "surrogatepass"), field)
        try:
            parsed = json.loads(text, parse_constant=_refuse_constant)
            if isinstance(text, ModelText):
                parsed = as_written(parsed)
        except (ValueError, RecursionError):
            return None
        self.parsed_values += check_values(parsed, field)
        if self.parsed_values > MAX_VALUES:
            raise InvalidRequest(field, f"must hold at most {MAX_VALUES:,} values, with all others")
        return parsed


def _choices_in(text: str, item: Shape) -> list[JSON]:
    """Return the choices that a text lists with commas; empty unless each of its parts is one."""
    if not item.choices or "," not in text:
        return []
    choices = [item.choice(part.strip()) for part in text.split(",")]
    return [choice for choice in choices if choice is not None] if None not in choices else []


def read_scalar(text: str, types: frozenset[str]) -> JSON:
    """Return the number, true or false that a text can only mean, of some JSON types.

    Else the text itself.
    """
    stripped = text.strip()
    if "integer" in types and _INTEGER.fullmatch(stripped):
        return int(stripped.partition(".")[0])
    if "number" in types and _NUMBER.fullmatch(stripped):
        number = float(stripped)
        return number if math.isfinite(number) else text
    if "boolean" in types:
        return _BOOLEANS.get(stripped.lower(), text)
    return text


def _fits(value: JSON, shape: Shape) -> bool:
    """Tell whether a value is of a type that the shape takes, and one of its choices."""
    types = shape.types
    if not types:
        return True
    match value:
        case None:
            return "null" in types
        case bool():
            return "boolean" in types
        case str():
            return "string" in types and (shape.choices is None or value in shape.choices)
        case int():
            return bool(types & {"integer", "number"})
        case float():
            return "number" in types
        case list():
            return "array" in types
        case _:
            return "object" in types


def _is_whole(value: float) -> bool:
    return value.is_integer() and abs(value) <= _EXACT_FLOAT


def _refuse_constant(name: str) -> JSON:
    raise ValueError(name)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name[:_MAX_SHOWN]}" if path else name[:_MAX_SHOWN]
