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
import sqlite3
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pps.core import time
from pps.entities.small_file import SmallFile

Role: TypeAlias = Literal["entity", "operator", "router", "link", "page", "haven_link", "haven"]
"""Roles of tokens; ``haven_link`` and ``haven`` are the owner's link and page, of no entity."""

_LETTER: dict[Role, str] = {
    "entity": "e",
    "operator": "o",
    "router": "r",
    "link": "l",
    "page": "p",
    "haven_link": "k",
    "haven": "h",
}
_ROLES: dict[str, Role] = {letter: role for role, letter in _LETTER.items()}
_SHAPE = re.compile(r"pps_([eorlpkh])_([a-z0-9]{12})_([a-z0-9]{40})")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_NOTHING = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is minted or presented.

    Attributes:
        token_id: The public part, 12 characters.
        text: The whole token (40 random characters of 36: about 206 bits); never stored or printed
            twice.
    """

    role: Role
    token_id: str
    text: str = field(repr=False)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a token may do at most; nothing that comes with a call widens or changes it.

    Attributes:
        toolsets: The only ones whose operations it opens; None for all.
        actor: Who writes with it; empty is the person.
    """

    toolsets: frozenset[str] | None = None
    actor: str = ""


def bounds(row: sqlite3.Row | None) -> Bounds:
    """Return the bounds of a token's row; without one there is nothing that may be done."""
    if row is None:
        return Bounds(frozenset())
    return Bounds(frozenset(row["toolsets"].split(",")) if row["toolsets"] else None, row["actor"])


def mint(role: Role) -> Token:
    token_id = "".join(secrets.choice(_ALPHABET) for _ in range(12))
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(40))
    return Token(role, token_id, f"pps_{_LETTER[role]}_{token_id}_{secret}")


def parse(text: str) -> Token | None:
    """Return a presented token's parts, or None when it has not the shape of one."""
    match = _SHAPE.fullmatch(text)
    return Token(_ROLES[match[1]], match[2], text) if match else None


def issue(db: sqlite3.Connection, role: Role, group: str | None = None, actor: str = "") -> Token:
    """Mint a token and keep its digest, inside the caller's transaction.

    Its text is nowhere kept.
    """
    token = mint(role)
    db.execute(
        "INSERT INTO token (id, digest, role, grp, created_at, actor) VALUES (?, ?, ?, ?, ?, ?)",
        (token.token_id, token.digest, role, group, time.iso(time.now()), actor),
    )
    return token


def presented(file: SmallFile, text: str, role: Role) -> sqlite3.Row | None:
    """Return a presented token's row, with its entity's name, grp and archived, and toolsets.

    None for a wrong one.
    """
    token = parse(text)
    if token is None or token.role != role:
        return None
    row = file.row(
        "SELECT token.id, token.digest, token.created_at, token.actor, entity.name, entity.grp, "
        "entity.archived, "
        "token_toolsets.names AS toolsets FROM token LEFT JOIN token_toolsets ON "
        "token_toolsets.token = token.id "
        "LEFT JOIN entity ON entity.grp = token.grp WHERE token.id = ? AND token.role = ?",
        (token.token_id, role),
    )
    same = hmac.compare_digest(
        token.digest, row["digest"] if row else _NOTHING
    )  # an unknown one takes as long
    return row if same else None
