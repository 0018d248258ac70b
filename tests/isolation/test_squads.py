"""Nothing reaches a pool but its squad's operations, and nothing of a member reaches another.

The commands (squad create, show, list, add, remove, delete) are asked with all others in ``attacks.owners``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest
from pps.entities.routing import owner as owner_router
from pps.operations.calls import Caller, Calls, owner
from pps.operations.catalog import operations_for
from pps.squad import founding
from tests.isolation.attacks import owners
from tests.isolation.test_verbs import ARGUMENTS
from tests.squads import write_squad

POOL = "team_pool"
WRITES_OR_GIVES_AWAY = {
    "token_issue", "route_add", "watch_add", "import", "anchors_import", "entity_delete", "entity_archive",
}  # fmt: skip


@pytest.fixture
async def squad(app: App) -> App:
    write_squad(app.settings.home, "trio")
    await founding.found(app, "team", "trio", {})
    return app


async def test_a_pool_takes_no_token_route_hook_watch_or_import(squad: App, tmp_path: Path) -> None:
    calls = Calls(squad)
    everyone = owner(owner_router())
    for name in WRITES_OR_GIVES_AWAY:
        for arguments in owners(tmp_path, POOL)[name]:
            with pytest.raises(InvalidRequest, match="is the pool of the squad 'team'"):
                await calls.answer(everyone, name, arguments)
    assert squad.registry.squads.pool_of(POOL) == "team"


async def test_no_operation_of_an_entity_reaches_a_pool_whoever_asks(squad: App) -> None:
    calls = Calls(squad)
    pool = squad.registry.get(POOL).entity
    for caller in (Caller.of_entity(pool), Caller.of_entity(POOL), owner(owner_router(), POOL)):
        for name in operations_for("entity"):
            with pytest.raises(InvalidRequest):
                await calls.answer(caller, name, ARGUMENTS[name][0])
    with pytest.raises(InvalidRequest, match="is the pool of the squad 'team'"):
        await calls.answer(Caller.of_entity(pool), "stats", {})
