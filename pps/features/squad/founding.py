"""Making squads: the pool, the members' memories, and what becomes of them when one goes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from pps.app import App
from pps.config.squad_files import PACK, load_squad
from pps.core.errors import InvalidRequest
from pps.core.ids import check_name
from pps.entities.memberships import Member, Squad
from pps.features.squad.agents import introduce
from pps.features.squad.desk import rules_of


@dataclass(frozen=True, slots=True)
class Founded:
    """A squad as it is now; ``tokens`` has, by member, those of memories that were made for it, shown this once."""

    squad: Squad
    tokens: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


async def found(
    app: App, name: str, file: str, bound: Mapping[str, str], store: str | None = None
) -> Founded:
    """Make a squad from a file, or bring one that is there to what its file says.

    Done again it changes nothing.

    Args:
        app: Where the memories are.
        name: The squad's, as an entity's.
        file: As ``load_squad``.
        bound: Member → an entity that there is; for the others ``<squad>_<member>`` is made.
        store: Of what is made.

    Raises:
        InvalidRequest: A name is taken or none of the file's; an entity is of a squad already.
        ConfigError: The file has mistakes.
        UnknownEntity: A bound one is not there.
    """
    check_name(f"{name}_pool")
    rules = await asyncio.to_thread(load_squad, app.settings.home, file)
    wanted = {rules.member(member): entity for member, entity in bound.items()}
    for entity in wanted.values():
        await asyncio.to_thread(app.registry.get, entity)
    await app.create(f"{name}_pool", store=store, packs=(PACK,), token=False)
    pool = (await asyncio.to_thread(app.registry.get, f"{name}_pool")).entity
    squad = await asyncio.to_thread(app.registry.squads.begin, name, pool, rules.text)
    tokens: dict[str, str] = {}
    for member in rules.members:
        made = await join(app, squad, member, wanted.get(member, ""), store)
        tokens |= {member: made} if made else {}
    await introduce(app, squad)
    return Founded(await asyncio.to_thread(app.registry.squads.get, name), tokens)


async def join(
    app: App, squad: Squad, name: str, entity: str = "", store: str | None = None
) -> str | None:
    """Make an entity a member, with the squad's kinds.

    Return the token of one that was made for it.

    Raises:
        InvalidRequest: No such member in the squad's file, or it or the entity is taken.
        UnknownEntity: No such entity.
    """
    rules = rules_of(squad)
    member = rules.member(name)
    token = None
    existing = squad.members.get(member)
    if existing and entity in ("", existing.entity.name):
        return None
    if not entity:
        entity = f"{squad.name}_{member}"
        token = (await app.create(entity, store=store, packs=(PACK,))).token
    entry = await asyncio.to_thread(app.registry.get, entity)
    grant = Member(member, rules.members[member].role, entry.entity)
    await asyncio.to_thread(app.registry.squads.add, squad.name, grant)
    try:
        async with app.memory(entity) as memory:
            missing = PACK not in {pack.name for pack in memory.kinds.packs}
        if missing:
            await app.enable_pack(entity, PACK)
    except InvalidRequest:
        await asyncio.to_thread(app.registry.squads.remove, squad.name, member)
        raise
    return token


async def disband(app: App, squad: Squad) -> None:
    """Erase a squad with its pool; the members keep their memories."""
    await app.delete(squad.pool.name)
