"""The sessions of pages: a link opens one, once and soon; a browser shows it from then on.

The page of an entity has sessions of that entity; the owner's page, Haven, has sessions of no
entity.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from pps.core import time
from pps.core.ids import EntityId
from pps.entities import tokens
from pps.entities.small_file import SmallFile

LINK_S = 60
"""Seconds that a link can be used."""
SESSION_S = 7 * 86_400
"""Seconds that a session lasts."""
_LASTS_S: dict[tokens.Role, int] = {
    "link": LINK_S,
    "page": SESSION_S,
    "haven_link": LINK_S,
    "haven": SESSION_S,
}


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
                return tokens.issue(db, "haven_link").text
            return tokens.issue(db, "link", entity.group).text

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

    def _used(self, link: _Presented, role: tokens.Role) -> str | None:
        """Return a new session's token for a link, which nobody can use again."""
        with self._file.writing() as db:
            if not db.execute("DELETE FROM token WHERE id = ?", (link.token_id,)).rowcount:
                return None  # somebody was faster
            group = link.entity.group if link.entity else None
            return tokens.issue(db, role, group).text

    def _presented(self, text: str, role: tokens.Role) -> _Presented | None:
        row = tokens.presented(self._file, text, role)
        if row is None:
            return None
        of_owner = role in ("haven_link", "haven")
        if not of_owner and row["archived"] != 0:  # null, of no entity, is refused here too
            return None
        age_s = (time.now() - time.parse(row["created_at"])).total_seconds()
        if age_s >= _LASTS_S[role]:
            return None
        return _Presented(row["id"], None if of_owner else EntityId(row["name"], row["grp"]))
