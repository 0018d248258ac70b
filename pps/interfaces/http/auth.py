"""Whom the server answers: callers by token or socket, and requests by their Host and Origin.

Entities, routers and operators show a token; the owner comes through a Unix socket or shows the run
file's secret. The outermost layer checks every request's Host and Origin, before any other code
sees it.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pps.core.errors import InvalidRequest, NotFound, UnknownEntity
from pps.core.ids import EntityId, check_actor, check_name
from pps.entities.registry import Registry
from pps.entities.routing import owner as owner_router
from pps.interfaces.http.problems import Forbidden, Outdated, Refused, details
from pps.operations.calls import OPERATOR, Caller, owner
from pps.server.owner_socket import HOME_HEADER, OwnHome
from pps.server.runfile import NONCE, OWNER_PREFIX, proof

ENTITY_HEADER = "PPS-Entity"
ACTOR_HEADER = "PPS-Actor"
BRIDGE_HEADER = "PPS-Bridge"
"""Header with the entity or roots that a bridge was started for, read by ``Trust.bridged``."""
OWNER_STATE = "pps_owner"
"""Set in a request's state if it came through the owner's Unix socket, whose peer was checked."""
BY_SOCKET = (
    "the owner reaches this server through the socket that server.json names; a hook that asks "
    "here is of an older PPS: install it again with `pps hooks install`"
)
_log = logging.getLogger(__name__)
_LOOPBACK_PREFIXES = ("127.", "::1", "::ffff:127.")

_PORT = re.compile("[0-9]{1,5}")  # of digits in other scripts, str.isdigit thinks otherwise
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_ANYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - compared, not bound


class Trust:
    """Determines the caller of a request from its token.

    Secrets are compared in constant time and not stored.

    Attributes:
        has_socket: The owner comes through the Unix socket. The secret is then given to nobody and
            proves nothing.
    """

    def __init__(self, registry: Registry, secret: str) -> None:
        self._registry = registry
        self._secret = secret.encode()
        self.has_socket = False

    async def caller(self, token: str) -> Caller | None:
        """Return the caller with a bearer token at ``/mcp``, or None.

        None stands for a wrong token and for a caller without tools there.

        ``<owner secret>.<name>`` is any entity, ``<owner secret>.<name>:<actor>`` an actor in it,
        ``<owner secret>.<paths>`` (percent-encoded, separated by commas) the router of all projects
        at or below them. The stdio bridge of the same user sends these.
        """
        if token.startswith(OWNER_PREFIX):
            secret, _, caller_name = token.partition(".")
            if not self._is_secret(secret):
                return None
            return await asyncio.to_thread(self._owners, caller_name)
        caller = await asyncio.to_thread(self._of_token, token)
        return None if caller is OPERATOR else caller

    async def caller_of(self, connection: HTTPConnection) -> Caller:
        """Return the caller of a request to ``/v1``.

        The owner names an entity in ``PPS-Entity``, or none, and the writer in ``PPS-Actor``, if it
        is not the person. Any other token determines both.

        Raises:
            InvalidRequest: The owner names an actor that cannot be one.
            Refused: The token is missing or wrong.
            Forbidden: The token is not of the entity or the actor that the headers name.
        """
        named = unquote(connection.headers.get(ENTITY_HEADER, ""))
        actor = connection.headers.get(ACTOR_HEADER, "")
        if self.is_owner(connection):
            return replace(owner(owner_router(), named or None), actor=check_actor(actor))
        caller = await asyncio.to_thread(self._of_token, bearer(connection))
        if caller is None:
            raise Refused("a token is needed; `pps entity token NAME` makes one")
        if named and not (isinstance(caller.entity, EntityId) and caller.entity.name == named):
            raise Forbidden("this token does not speak for that entity")
        if actor and actor != caller.actor:
            raise Forbidden(
                "this token does not speak for that actor; who writes goes by the token alone"
            )
        return caller

    async def bridged(self, connection: HTTPConnection) -> Caller:
        """Return the caller that the owner's bridge was started for, from ``PPS-Bridge``.

        ``<name>`` is an entity, ``<name>:<actor>`` an actor in it, ``<paths>`` (absolute,
        percent-encoded, separated by commas) the router of all projects at or below them.

        Raises:
            Refused: The request is not the owner's.
            UnknownEntity: There is no such entity, or it is archived.
            InvalidRequest: A name or a path cannot be one.
        """
        self.check_owner(connection)
        return await asyncio.to_thread(
            self._caller_named, connection.headers.get(BRIDGE_HEADER, "")
        )

    def check_owner(self, connection: HTTPConnection) -> None:
        """Raise Refused unless a request is the machine owner's; tell old hooks what to do."""
        if not self.is_owner(connection):
            more = f"; {BY_SOCKET}" if self.has_socket and is_local(connection) else ""
            raise Refused(f"only the owner of this server may do that{more}")

    def is_owner(self, connection: HTTPConnection) -> bool:
        """Return whether a request is the machine owner's.

        It came through the owner's socket without a token, or has the run file's secret and comes
        from this machine.
        """
        if is_by_socket(connection):
            return "authorization" not in connection.headers
        return is_local(connection) and self._is_secret(bearer(connection))

    def proof(self, connection: HTTPConnection, nonce: str) -> str:
        """Return what proves to a client of this machine that this server wrote the run file.

        Raises:
            InvalidRequest: The nonce is not 32 hexadecimal digits.
            NotFound: The client is on another machine.
            Outdated: The owner comes through the socket; the client is of an older PPS.
        """
        if not is_local(connection):
            raise NotFound("route")
        if self.has_socket:
            _log.warning("a client asked for the proof of the run file: %s", BY_SOCKET)
            raise Outdated(BY_SOCKET)
        if not re.fullmatch(NONCE, nonce):
            raise InvalidRequest("nonce", "must be 32 hexadecimal digits")
        return proof(self._secret.decode(), nonce, connection.scope["server"][1], os.getpid())

    async def is_operator(self, connection: HTTPConnection) -> bool:
        """Tell whether a request shows an operator's token; the owner is one too."""
        if self.is_owner(connection):
            return True
        return await asyncio.to_thread(self._registry.is_operator, bearer(connection))

    def _is_secret(self, text: str) -> bool:
        return not self.has_socket and hmac.compare_digest(text.encode(), self._secret)

    def _of_token(self, token: str) -> Caller | None:
        # The bounds are read first, so that a token revoked in between opens nothing.
        bounds = self._registry.bounds_of_token(token)
        entity = self._registry.entity_of_token(token)
        if entity:
            return Caller.of_entity(entity, bounds.toolsets, bounds.actor)
        router = self._registry.routers.of_token(token)
        if router:
            return Caller.of_router(router)
        return OPERATOR if self._registry.is_operator(token) else None

    def _owners(self, caller_name: str) -> Caller | None:
        try:
            return self._caller_named(caller_name)
        except (UnknownEntity, InvalidRequest):
            return None

    def _caller_named(self, caller_name: str) -> Caller:
        if caller_name.startswith("/"):
            return Caller.of_router(
                owner_router([unquote(root) for root in caller_name.split(",")])
            )
        name, _, actor = caller_name.partition(":")
        entry = self._registry.get(check_name(name))
        if entry.archived:
            raise UnknownEntity(
                f"entity {name!r} is archived; `pps entity archive {name} --undo` brings it back"
            )
        return Caller.of_entity(entry.entity, actor=check_actor(actor))


def bearer(connection: HTTPConnection) -> str:
    """Return a request's bearer token, or an empty text."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def is_by_socket(connection: HTTPConnection) -> bool:
    """Tell whether a request came through the owner's Unix socket."""
    return connection.scope.get("state", {}).get(OWNER_STATE) is True


def is_local(connection: HTTPConnection) -> bool:
    """Tell whether a request comes from this machine."""
    through_a_proxy = any(name in connection.headers for name in ("forwarded", "x-forwarded-for"))
    return (
        connection.client is not None
        and is_loopback(connection.client.host)
        and not through_a_proxy
    )


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    return host == "localhost" or host.startswith(_LOOPBACK_PREFIXES)


class Names:
    """The names of this server in a request's Host, and the origins whose pages may use it.

    A page on another site that had its own name point at this machine sends its own Host; a page
    that asks across sites sends its own Origin. Both are refused.
    """

    def __init__(self, bound: str, hosts: Sequence[str], origins: Sequence[str]) -> None:
        own = () if bound in _ANYWHERE else (f"[{bound}]" if ":" in bound else bound,)
        self.hosts = tuple(
            dict.fromkeys((*(f"{name}:*" for name in (*_LOOPBACK_NAMES, *own)), *hosts))
        )
        local = tuple(f"http://{name}:*" for name in (*_LOOPBACK_NAMES, *own))
        self.origins = tuple(dict.fromkeys((*local, *origins)))
        self.named_origins = tuple(origins)

    def is_host(self, value: str) -> bool:
        """Tell whether a Host header names this server; the port is free where ``:*`` allows it."""
        return _allowed(value.lower(), self.hosts)

    def is_origin(self, value: str) -> bool:
        """Tell whether a page of this origin may ask."""
        try:
            parts = urlsplit(value.lower())
        except ValueError:
            return False
        return bool(parts.scheme and parts.netloc) and _allowed(
            f"{parts.scheme}://{parts.netloc}", self.origins
        )


class HostGuard:
    """ASGI middleware: 421 for an unknown Host or data folder, 403 for a foreign Origin.

    The owner's secret from another machine is refused here too, for all routes.
    """

    def __init__(self, app: ASGIApp, names: Names, home: OwnHome | None = None) -> None:
        """Guard an app; clients of the owner's socket must name the data folder ``home``."""
        self._app = app
        self._names = names
        self._home = home

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if not self._names.is_host(headers.get("host", "")):
            await _refuse(421, "this server does not go by that name", scope, receive, send)
        elif origin is not None and not self._names.is_origin(origin):
            await _refuse(403, "pages of that origin may not ask this server", scope, receive, send)
        elif is_by_socket(HTTPConnection(scope)) and not self._is_own_home(headers):
            await _refuse(421, "this server is of another data folder", scope, receive, send)
        elif _is_strangers_secret(HTTPConnection(scope)):
            await _refuse(401, "the owner's secret is for this machine only", scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_own_home(self, headers: Headers) -> bool:
        return self._home is not None and self._home.is_named(headers.get(HOME_HEADER, ""))


def _is_strangers_secret(connection: HTTPConnection) -> bool:
    return bearer(connection).startswith(OWNER_PREFIX) and not is_local(connection)


async def _refuse(status: int, why: str, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": why})
        return
    answer = JSONResponse(
        details(status, "refused", why), status, media_type="application/problem+json"
    )
    await answer(scope, receive, send)


def _allowed(value: str, patterns: Sequence[str]) -> bool:
    for pattern in patterns:
        name, _, port = pattern.lower().rpartition(":")
        if port != "*" and value == pattern.lower():
            return True
        if port == "*" and (
            value == name
            or (value.startswith(f"{name}:") and _PORT.fullmatch(value, len(name) + 1))
        ):
            return True
    return False
