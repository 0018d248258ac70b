"""Ids: the entity's opaque group, and uuid5 ids made from an entity and a content."""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from pps.core.errors import InvalidRequest

_NAMESPACE = uuid.UUID("6f2a4f0e-6d0f-5c57-9a4e-0a5b1d6f3c11")
_SHA1_SO_FAR = hashlib.sha1(_NAMESPACE.bytes, usedforsecurity=False)
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
_GROUP = re.compile(r"ent_[a-z0-9]{26}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_ACTOR = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"

MAX_NAME = 40
"""Most characters of an entity's name."""
SHORTEST = 8
"""Least characters of a uuid's beginning that stands for it."""
_SHAPE = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
ID_PATTERN = "^[0-9a-f]{8}[0-9a-f-]{0,28}$"
"""What the id of an item, or its beginning, must match, for schemas."""
UUID_PATTERN = f"^{_UUID.pattern}$"
"""What an id from outside must match, for schemas."""


@dataclass(frozen=True, slots=True)
class EntityId:
    """Who a memory belongs to: a readable name and the opaque group that its data carries.

    Attributes:
        name: ``[a-z][a-z0-9_]{0,39}``, unique in one registry without regard to case.
        group: ``ent_`` and 26 random lower-case letters and digits; never a word of a query.

    Raises:
        InvalidRequest: Either part has another shape, so a blank owner cannot be expressed.
    """

    name: str
    group: str

    def __post_init__(self) -> None:
        check_name(self.name)
        check_group(self.group)


def check_group(group: str) -> str:
    """Return a group unchanged, or raise InvalidRequest."""
    if not is_group(group):
        raise InvalidRequest("group", "must be 'ent_' and 26 lower-case letters or digits")
    return group


def is_group(value: object) -> bool:
    return isinstance(value, str) and _GROUP.fullmatch(value) is not None


def check_name(name: str) -> str:
    """Return an entity's name unchanged, or raise InvalidRequest naming the rule it breaks."""
    is_text = isinstance(name, str)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not is_text or not _NAME.fullmatch(name):
        plain = unicodedata.normalize("NFKD", str(name)).encode("ascii", "ignore").decode().lower()
        near = re.sub(r"[^a-z0-9]+", "_", plain).lstrip("_0123456789")[:MAX_NAME].rstrip("_")
        raise InvalidRequest(
            "name", f"must match [a-z][a-z0-9_]{{0,39}}; {near or 'project_x'!r} would do"
        )
    return name


def check_actor(name: str) -> str:
    """Return an actor's name unchanged, empty for the person.

    InvalidRequest names the rule that it breaks.
    """
    if name and not _ACTOR.fullmatch(name):
        raise InvalidRequest("actor", "must match [a-z][a-z0-9_-]{0,39}, such as 'plan'")
    return name


def new_group() -> str:
    """Return a fresh random group (26 characters of 36, about 134 bits)."""
    return "ent_" + "".join(secrets.choice(_ALPHABET) for _ in range(26))


def stable_id(group: str, *parts: str) -> str:
    """Return the uuid5 of an entity's group and the parts, so that a step can be run again.

    Parts are length-prefixed, so ("ab", "c") and ("a", "bc") differ. Written out (RFC 9562, section
    5.5): a fact has three such ids, and ``uuid.uuid5`` takes nearly twice as long.
    """
    sha1 = _SHA1_SO_FAR.copy()
    sha1.update("".join([f"{len(part)}:{part}" for part in (group, *parts)]).encode())
    text = sha1.hexdigest()
    return f"{text[:8]}-{text[8:12]}-5{text[13:16]}-{_VARIANT[text[16]]}{text[17:20]}-{text[20:32]}"


def check_uuid(value: str, field: str = "id") -> str:
    if not is_uuid(value):
        raise InvalidRequest(
            field, "must be a canonical UUID, such as 1b4e28ba-2fa1-5d2b-883f-0016d3cca427"
        )
    return value


def are_uuids(values: Iterable[object]) -> bool:
    """Tell whether all values are canonical lower-case UUID strings, fast for thousands."""
    try:
        # A value that is no text raises a TypeError.
        return all(map(_UUID.fullmatch, set(values)))  # pyright: ignore[reportArgumentType]
    except TypeError:
        return False


def short_id(value: str) -> str:
    """Return the beginning of a uuid that is enough to name it within an entity.

    Anything else as it is.
    """
    return value[:SHORTEST] if is_uuid(value) else value


def is_beginning(value: str) -> bool:
    """Tell whether a text of ``SHORTEST`` characters or more may begin a canonical UUID."""
    return SHORTEST <= len(value) < len(_SHAPE) and all(
        (sign == "-") == (shape == "-") and sign in "0123456789abcdef-"
        for sign, shape in zip(value, _SHAPE, strict=False)
    )


def is_uuid(value: object) -> bool:
    return isinstance(value, str) and _UUID.fullmatch(value) is not None
