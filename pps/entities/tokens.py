"""Tokens: minted here, shown once, kept as a digest.

A token is ``pps_<role>_<id>_<secret>``. The id is public and finds the row; the whole token is then
compared by its sha256 in constant time, so neither a lookup nor a comparison tells how much of a
guess was right.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["entity", "operator", "router"]

_LETTER: dict[Role, str] = {"entity": "e", "operator": "o", "router": "r"}
_ROLES: dict[str, Role] = {letter: role for role, letter in _LETTER.items()}
_SHAPE = re.compile(r"pps_([eor])_([a-z0-9]{12})_([a-z0-9]{40})")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_NOTHING = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is minted or presented.

    Attributes:
        token_id: The public part, 12 characters.
        text: The whole token (40 random characters of 36: about 206 bits); never stored or printed twice.
        digest: sha256 of ``text``, hexadecimal.
    """

    role: Role
    token_id: str
    text: str = field(repr=False)
    digest: str


def mint(role: Role) -> Token:
    """Return a fresh random token."""
    token_id, secret = _random(12), _random(40)
    return _token(role, token_id, f"pps_{_LETTER[role]}_{token_id}_{secret}")


def parse(text: str) -> Token | None:
    """Return a presented token's parts, or None when it has not the shape of one."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        return None
    return _token(_ROLES[match[1]], match[2], text)


def matches(token: Token, stored_digest: str | None) -> bool:
    """Compare in constant time; an unknown token (None) takes the same path and never matches."""
    same = hmac.compare_digest(token.digest, stored_digest or _NOTHING)
    return same and stored_digest is not None


def _token(role: Role, token_id: str, text: str) -> Token:
    return Token(role, token_id, text, hashlib.sha256(text.encode()).hexdigest())


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))
