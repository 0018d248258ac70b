"""Rows of tokens in the registry: given out, found again by what is presented."""

from __future__ import annotations

import sqlite3

from pps.core import time
from pps.entities import tokens
from pps.entities.file import SmallFile


def issue(db: sqlite3.Connection, role: tokens.Role, group: str | None = None) -> tokens.Token:
    """Mint a token and keep its digest, inside the caller's transaction; its text is nowhere kept."""
    token = tokens.mint(role)
    db.execute(
        "INSERT INTO token (id, digest, role, grp, created_at) VALUES (?, ?, ?, ?, ?)",
        (token.token_id, token.digest, role, group, time.iso(time.now())),
    )
    return token


def presented(file: SmallFile, text: str, role: tokens.Role) -> sqlite3.Row | None:
    """Return the row of a presented token (id, and its entity's name, grp, archived), None for a wrong one."""
    token = tokens.parse(text)
    if token is None or token.role != role:
        return None
    with file.reading() as db:
        row: sqlite3.Row | None = db.execute(
            "SELECT token.id, token.digest, entity.name, entity.grp, entity.archived FROM token "
            "LEFT JOIN entity ON entity.grp = token.grp WHERE token.id = ? AND token.role = ?",
            (token.token_id, role),
        ).fetchone()
    return row if tokens.matches(token, row["digest"] if row else None) else None
