"""Who may do what on the server: entities by token, operators by token, the owner by the run file's secret."""

from __future__ import annotations

import asyncio
import hmac

from starlette.requests import HTTPConnection

from pps.core.errors import InvalidRequest, UnknownEntity
from pps.core.ids import EntityId, check_name
from pps.entities import Registry
from pps.link.runfile import OWNER_PREFIX

_LOOPBACK = ("127.", "::1", "::ffff:127.")


class Trust:
    """Answers for a presented token. Secrets are compared in constant time; nothing is remembered of them."""

    def __init__(self, registry: Registry, secret: str) -> None:
        self._registry = registry
        self._secret = secret.encode()

    async def entity(self, token: str) -> EntityId | None:
        """Return whose memory a bearer token opens at ``/mcp``; None for a wrong one.

        ``<owner secret>.<name>`` opens any entity: the stdio bridge of the same user shows it.
        """
        if token.startswith(OWNER_PREFIX):
            secret, _, name = token.partition(".")
            return await asyncio.to_thread(self._named, name) if self._is_secret(secret) else None
        return await asyncio.to_thread(self._registry.entity_of_token, token)

    def is_owner(self, connection: HTTPConnection) -> bool:
        """Tell whether a request shows the owner's secret; only from this machine."""
        return is_local(connection) and self._is_secret(bearer(connection))

    async def is_operator(self, connection: HTTPConnection) -> bool:
        """Tell whether a request shows an operator's token; the owner is one too."""
        if self.is_owner(connection):
            return True
        return await asyncio.to_thread(self._registry.is_operator, bearer(connection))

    def _is_secret(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._secret)

    def _named(self, name: str) -> EntityId | None:
        try:
            entry = self._registry.get(check_name(name))
        except (UnknownEntity, InvalidRequest):
            return None
        return None if entry.archived else entry.entity


def bearer(connection: HTTPConnection) -> str:
    """Return a request's bearer token, or an empty text."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def is_local(connection: HTTPConnection) -> bool:
    """Tell whether a request comes from this machine."""
    return connection.client is not None and connection.client.host.startswith(_LOOPBACK)
