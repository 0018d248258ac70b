"""The sessions of entities' pages: a link opens one, once and soon; a browser shows it from then on."""

from __future__ import annotations

from datetime import timedelta

from pps.core import time
from pps.core.ids import EntityId
from pps.entities import tokens
from pps.entities.small_file import SmallFile

LINK_S = 60
SESSION_S = 7 * 86_400
"""How long a link and a session last."""
_LASTS_S: dict[tokens.Role, int] = {"link": LINK_S, "page": SESSION_S}


class PageSessions:
    """Links and sessions are tokens of roles of their own: none of them is taken where another is asked for.

    Methods block for about a millisecond and may raise StoreUnavailable.
    """

    def __init__(self, file: SmallFile) -> None:
        self._file = file

    def link(self, entity: EntityId) -> str:
        """Return a link's secret; what is older than it lasts is swept out."""
        with self._file.writing() as db:
            for role, lasts_s in _LASTS_S.items():
                end = time.iso(time.now() - timedelta(seconds=lasts_s))
                db.execute("DELETE FROM token WHERE role = ? AND created_at < ?", (role, end))
            return tokens.issue(db, "link", entity.group).text

    def open(self, name: str, link: str) -> str | None:
        """Return a new session's token; None for a link that is wrong, used, too old or another entity's."""
        presented = self._presented(link, "link")
        if presented is None or presented[1].name != name:
            return None
        with self._file.writing() as db:
            if not db.execute("DELETE FROM token WHERE id = ?", (presented[0],)).rowcount:
                return None  # somebody was faster
            return tokens.issue(db, "page", presented[1].group).text

    def entity_of(self, session: str) -> EntityId | None:
        """Return whose page a session is; None for one that is wrong, ended, revoked or too old."""
        presented = self._presented(session, "page")
        return presented[1] if presented else None

    def end(self, session: str) -> None:
        if presented := self._presented(session, "page"):
            with self._file.writing() as db:
                db.execute("DELETE FROM token WHERE id = ?", (presented[0],))

    def revoke(self, entity: EntityId) -> int:
        """Refuse every link and session of an entity from now on; return how many sessions there were."""
        with self._file.writing() as db:
            db.execute("DELETE FROM token WHERE role = 'link' AND grp = ?", (entity.group,))
            return db.execute(
                "DELETE FROM token WHERE role = 'page' AND grp = ?", (entity.group,)
            ).rowcount

    def _presented(self, text: str, role: tokens.Role) -> tuple[str, EntityId] | None:
        row = tokens.presented(self._file, text, role)
        if row is None or row["archived"] != 0:
            return None
        age_s = (time.now() - time.parse(row["created_at"])).total_seconds()
        return (row["id"], EntityId(row["name"], row["grp"])) if age_s < _LASTS_S[role] else None
