"""Haven's operations: who may open the owner's page."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from pps.app import App
from pps.entities.tokens import LINK_S
from pps.operations.administration import Revoked, address
from pps.operations.inputs import Nothing
from pps.operations.table import ADDS, OWNERS_REGISTRY, SETS
from pps.server import runfile


@dataclass(frozen=True, slots=True)
class HavenLink:
    """A link to the owner's page.

    It works once, within ``lasts_s`` seconds; its secret is behind the ``#``.
    """

    url: str = field(repr=False)
    lasts_s: int


@OWNERS_REGISTRY.operation("Open the owner's page", lambda link: link.url, ADDS)
async def haven_open(app: App, _: Nothing) -> HavenLink:
    """Returns a link that opens the owner's page in a browser: all entities, and rooms to talk in.

    It works once, within a minute. The browser then has a session of a week, for every entity;
    {haven_close} ends it.
    """
    run = await asyncio.to_thread(runfile.read, app.settings.home)
    secret = await asyncio.to_thread(app.registry.pages.link, None)
    return HavenLink(f"{run.url if run else address(app)}/haven/#open={secret}", LINK_S)


@OWNERS_REGISTRY.operation(
    "End the sessions of the owner's page", lambda revoked: f"{revoked.revoked} ended.", SETS
)
async def haven_close(app: App, _: Nothing) -> Revoked:
    """Ends every session of the owner's page, and its links.

    Returns how many sessions there were.
    """
    return Revoked(await asyncio.to_thread(app.registry.pages.revoke, None))
