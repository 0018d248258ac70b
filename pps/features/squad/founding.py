"""Creating squads, adding members, and erasing squads."""

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
    """A squad after it was created or brought up to date.

    Attributes:
        tokens: Member → token of the memory that was made for it; they are shown only here.
    """

    squad: Squad
    tokens: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


async def found(
    app: App, name: str, file: str, bound: Mapping[str, str], store: str | None = None
) -> Founded:
    """Create a squad from a file, or bring an existing squad in line with its file.

    Repeating this changes nothing.

    Args:
        app: Opens the memories.
        name: The squad's name; the rules of entities' names apply.
        file: Name or path of the file, as for ``load_squad``.
        bound: Member → existing entity; for all other members ``<squad>_<member>`` is created.
        store: The store of new memories; the default store if None.

    Raises:
        InvalidRequest: A name is taken or not in the file, or an entity is in a squad already.
        ConfigError: The file has mistakes.
        UnknownEntity: An entity of ``bound`` does not exist.
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
    """Make an entity a member and enable the squad's kinds for it.

    Without ``entity`` a new one is created.

    Returns:
        The token of an entity that was created, else None.

    Raises:
        InvalidRequest: The squad's file has no such member, or the member or entity is taken.
        UnknownEntity: The entity does not exist.
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
