"""Tokens, and the sessions of pages: minted here, shown once, kept as a digest.

A token is ``pps_<role>_<id>_<secret>``. The id is public and finds the row; the whole token is then
compared by its sha256 in constant time, so neither a lookup nor a comparison tells how much of a
guess was right.

A link opens a session of a page, once and soon; a browser shows it from then on. The page of an
entity has sessions of that entity; the owner's page, Haven, has sessions of no entity.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import sqlite3
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypeAlias

from pps.core import time
from pps.core.ids import EntityId
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

LINK_S = 60
"""Seconds that a link can be used."""
SESSION_S = 7 * 86_400
"""Seconds that a session lasts."""
_LASTS_S: dict[Role, int] = {
    "link": LINK_S,
    "page": SESSION_S,
    "haven_link": LINK_S,
    "haven": SESSION_S,
}


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


@dataclass(frozen=True, slots=True)
class _Presented:
    """A link or session that is good: its public id, and whose page it opens.

    None is the owner's.
    """

    token_id: str
    entity: EntityId | None


class PageSessions:
    """Links and sessions of pages: tokens of roles of their own, each accepted only as its role.

    Methods block for about a millisecond and may raise StoreUnavailable.
    """

    def __init__(self, file: SmallFile) -> None:
        self._file = file

    def link(self, entity: EntityId | None) -> str:
        """Return a link's secret, of an entity's page or (None) the owner's.

        What is older than it lasts is swept out.
        """
        with self._file.writing() as db:
            for role, lasts_s in _LASTS_S.items():
                end = time.iso(time.now() - timedelta(seconds=lasts_s))
                db.execute("DELETE FROM token WHERE role = ? AND created_at < ?", (role, end))
            if entity is None:
                return issue(db, "haven_link").text
            return issue(db, "link", entity.group).text

    def open(self, name: str, link: str) -> str | None:
        """Return a new session's token.

        None for a link that is wrong, used, too old or another entity's.
        """
        presented = self._presented(link, "link")
        if presented is None or presented.entity is None or presented.entity.name != name:
            return None
        return self._used(presented, "page")

    def open_haven(self, link: str) -> str | None:
        """Return a new session's token of the owner's page.

        None for a link that is wrong, used or too old.
        """
        presented = self._presented(link, "haven_link")
        return None if presented is None else self._used(presented, "haven")

    def entity_of(self, session: str) -> EntityId | None:
        """Return whose page a session is.

        None for one that is wrong, ended, revoked, too old or the owner's.
        """
        presented = self._presented(session, "page")
        return presented.entity if presented else None

    def is_haven(self, session: str) -> bool:
        """Tell whether a session is one of the owner's page, and goes on."""
        return self._presented(session, "haven") is not None

    def end(self, session: str) -> None:
        presented = self._presented(session, "page") or self._presented(session, "haven")
        if presented:
            with self._file.writing() as db:
                db.execute("DELETE FROM token WHERE id = ?", (presented.token_id,))

    def revoke(self, entity: EntityId | None) -> int:
        """Refuse every link and session of an entity, or of the owner's page.

        Return how many sessions there were.
        """
        link, session = ("haven_link", "haven") if entity is None else ("link", "page")
        group = None if entity is None else entity.group
        with self._file.writing() as db:
            db.execute("DELETE FROM token WHERE role = ? AND grp IS ?", (link, group))
            return db.execute(
                "DELETE FROM token WHERE role = ? AND grp IS ?", (session, group)
            ).rowcount

    def _used(self, link: _Presented, role: Role) -> str | None:
        """Return a new session's token for a link, which nobody can use again."""
        with self._file.writing() as db:
            if not db.execute("DELETE FROM token WHERE id = ?", (link.token_id,)).rowcount:
                return None  # somebody was faster
            group = link.entity.group if link.entity else None
            return issue(db, role, group).text

    def _presented(self, text: str, role: Role) -> _Presented | None:
        row = presented(self._file, text, role)
        if row is None:
            return None
        of_owner = role in ("haven_link", "haven")
        if not of_owner and row["archived"] != 0:  # null, of no entity, is refused here too
            return None
        age_s = (time.now() - time.parse(row["created_at"])).total_seconds()
        if age_s >= _LASTS_S[role]:
            return None
        return _Presented(row["id"], None if of_owner else EntityId(row["name"], row["grp"]))
