"""Members of squads: founding and joining, their Agent records in the pool, their presence."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from pps.app import App
from pps.config.squad_files import PACK, SquadRules, load_squad
from pps.core import time
from pps.core.errors import InvalidRequest
from pps.core.ids import check_name
from pps.core.record_values import Record, Relation
from pps.core.values import JSON
from pps.entities.memberships import Member, Squad
from pps.features.squad.desk import Desk, rules_of
from pps.ingest.drafts import TYPED_SOURCE
from pps.ingest.linking import record_id, relation_id
from pps.journal.record_rows import RecordRows
from pps.journal.turns import turn_id
from pps.memory import Memory
from pps.records.records import Join
from pps.records.saving import RecordGiven, RelationGiven

STATE = "agent:state"
"""Reference of the single AgentState in a member's own memory."""
_BEAT_INTERVAL = timedelta(minutes=5)
"""An unchanged presence is noted again only after this time."""


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


def agent_id(squad: Squad, member: str) -> str:
    """Return the id of a member's Agent in the pool."""
    return record_id_of(squad.pool.group, f"agent:{member}")


def created(desk: Desk, rows: RecordRows, record: str, contributed: Iterable[str] = ()) -> None:
    """Relate a record of the pool to its creator, this member, and to what contributed to it.

    Args:
        desk: The creator's.
        rows: The transaction that writes the record.
        record: Its id.
        contributed: Ids of records that contributed to it.
    """
    relations = [(agent_id(desk.squad, desk.me.id), "CREATED")]
    relations += [(contribution, "CONTRIBUTED_TO") for contribution in contributed]
    for source, type_ in relations:
        id_ = relation_id(desk.squad.pool.group, source, type_, record)
        rows.relate(Relation(id_, source, type_, record, desk.now(), actor=desk.me.id))


async def introduce(app: App, squad: Squad) -> None:
    """Bring the pool's Agent records and their relations in line with the squad's file.

    Repeating this changes nothing.
    """
    rules = rules_of(squad)
    members = app.registry.squads.get(squad.name).members
    agents: list[RecordGiven] = []
    for id_, member in rules.members.items():
        fields: dict[str, JSON] = {
            "role": member.role,
            "primary_capabilities": member.capabilities,
            "personality": member.personality,
            "output_types": member.output_types,
            "input_types": member.input_types,
            "heartbeat_minute": member.heartbeat_minute,
            "minimum": member.minimum,
        }
        agents.append(
            RecordGiven(
                "Agent",
                member.title or id_,
                member.role,
                ref=f"agent:{id_}",
                fields=fields,
                status="active" if id_ in members else "archived",
            )
        )
    joins = [
        Join(agent_id(squad, source), RelationGiven(type_, agent_id(squad, to), text))
        for source, type_, to, text in _agent_relations(rules)
    ]
    async with app.memory(squad.pool, pool=True) as pool:
        records = pool.records.by("", is_system=True)
        await records.save(agents)
        if joins:
            await records.join(joins)


def _agent_relations(rules: SquadRules) -> Iterator[tuple[str, str, str, dict[str, JSON]]]:
    """Yield the relations between agents: source, type, target and properties.

    A subscription that names an agent overrides one to all agents.
    """
    heard: dict[tuple[str, str], dict[str, JSON]] = {}
    for subscription in sorted(
        rules.subscriptions, key=lambda subscription: bool(subscription.source)
    ):
        for source in [subscription.source] if subscription.source else rules.members:
            heard[subscription.to, source] = {
                "knowledge_types": [*subscription.kinds],
                "domains": [*subscription.domains],
                "min_confidence": subscription.min_confidence,
                "notify_immediately": not subscription.interval,
                "tier": subscription.tier,
            }
    yield from (
        (to, "SUBSCRIBES_TO", source, text) for (to, source), text in heard.items() if to != source
    )
    for tie in rules.ties:
        yield tie.source, tie.type, tie.to, {"domain": tie.domain}


async def saw(desk: Desk, pool: Memory, records: Iterable[str], *, applied: bool = False) -> None:
    """Note that a member saw other members' records or, with ``applied``, used them.

    Only records that were not noted before are written.
    """
    rows = pool.records.pool
    mine = agent_id(desk.squad, desk.me.id)
    shared = await rows.shared([*records])
    uses = await rows.uses([*records])
    fresh: list[str] = []
    for id_, copy in shared.items():
        members: Sequence[str] = ()
        if id_ in uses:
            members = uses[id_].applied if applied else uses[id_].accessed
        if copy.member != desk.me.id and desk.me.id not in members:
            fresh.append(id_)
    if not fresh:
        return
    when: dict[str, JSON] = {"timestamp": time.iso(desk.now())}
    joins = [Join(mine, RelationGiven("ACCESSED", id_, when)) for id_ in fresh]
    if applied:
        teachers = {
            shared[id_].member: id_ for id_ in fresh if shared[id_].member in desk.squad.members
        }
        for teacher, id_ in teachers.items():
            learned: dict[str, JSON] = {"knowledge_id": id_, **when}
            joins.append(
                Join(mine, RelationGiven("LEARNED", agent_id(desk.squad, teacher), learned))
            )
    await pool.records.by(desk.me.id, is_system=True).join(joins)
    await rows.note_use(fresh, desk.me.id, desk.now(), applied=applied)


async def beat(desk: Desk, pool: Memory, *, busy: bool) -> None:
    """Note a member's presence in its own AgentState and in its Agent record of the pool.

    The activity is "active" if ``busy`` (it holds a task), else "idle".
    """
    now = desk.now()
    activity = "active" if busy else "idle"
    fields: dict[str, JSON] = {"activity": activity, "last_active": time.iso(now)}
    before = await _state(desk)
    last = before and before.fields.get("last_active")
    if (
        before
        and last
        and before.fields["activity"] == activity
        and now - time.parse(str(last)) < _BEAT_INTERVAL
    ):
        return
    summary = None if before else desk.my_rules.personality or desk.me.role
    state = RecordGiven(
        "AgentState", desk.my_rules.title or desk.me.id, summary, fields=fields, ref=STATE
    )
    await desk.memory.records.save([state])
    agent = RecordGiven(id=agent_id(desk.squad, desk.me.id), fields=fields)
    await pool.records.by(desk.me.id, is_system=True).save([agent])


async def own_state(desk: Desk, text: str) -> RecordGiven:
    """Return the member's AgentState with a new description of itself and its present activity."""
    state = await _state(desk)
    fields = dict(state.fields) if state else {"activity": "idle"}
    return RecordGiven(
        "AgentState", desk.my_rules.title or desk.me.id, text, fields=fields, ref=STATE
    )


async def _state(desk: Desk) -> Record | None:
    return (await desk.memory.records.graph()).records.get(
        record_id_of(desk.me.entity.group, STATE)
    )


def record_id_of(group: str, ref: str) -> str:
    """Return the id of the record that is stored in a group under this reference."""
    return record_id(group, turn_id(group, TYPED_SOURCE, ref, ref))
