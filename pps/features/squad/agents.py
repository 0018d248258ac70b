"""The agents of a squad as records of its pool, and what joins them to what they make, see and learn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from pps.app import App
from pps.config.squad_files import SquadRules
from pps.core import time
from pps.core.record_values import Record, Relation
from pps.core.values import JSON
from pps.entities.memberships import Squad
from pps.features.squad.desk import Desk, rules_of
from pps.ingest.drafts import TYPED_SOURCE
from pps.ingest.linking import record_id, relation_id
from pps.journal.record_rows import RecordRows
from pps.journal.turns import turn_id
from pps.memory import Memory
from pps.records.records import Join
from pps.records.saving import RecordGiven, RelationGiven

STATE = "agent:state"
"""What the one AgentState of a member's own memory is found by."""
_BEAT = timedelta(minutes=5)
"""How often at most it is noted that an agent is there."""


def agent_id(squad: Squad, member: str) -> str:
    """Return the id of a member's Agent in the pool."""
    return record_id_of(squad.pool.group, f"agent:{member}")


def created(desk: Desk, rows: RecordRows, record: str, contributed: Iterable[str] = ()) -> None:
    """Keep in the transaction of a record of the pool that this member created it, and what contributed to it."""
    joined = [
        (agent_id(desk.squad, desk.me.id), "CREATED"),
        *((one, "CONTRIBUTED_TO") for one in contributed),
    ]
    for source, type_ in joined:
        id_ = relation_id(desk.squad.pool.group, source, type_, record)
        rows.relate(Relation(id_, source, type_, record, desk.now(), actor=desk.me.id))


async def introduce(app: App, squad: Squad) -> None:
    """Bring the Agents of the pool, and what joins them, to what the squad's file says; again, it changes nothing."""
    rules, there = rules_of(squad), app.registry.squads.get(squad.name).members
    agents = [RecordGiven("Agent", one.title or id_, one.role, ref=f"agent:{id_}", fields={
        "role": one.role,
        "primary_capabilities": one.capabilities,
        "personality": one.personality,
        "output_types": one.output_types,
        "input_types": one.input_types,
        "heartbeat_minute": one.heartbeat_minute,
        "minimum": one.minimum,
    }, status="active" if id_ in there else "archived") for id_, one in rules.members.items()]  # fmt: skip
    joins = [
        Join(agent_id(squad, source), RelationGiven(type_, agent_id(squad, to), said))
        for source, type_, to, said in _ties(rules)
    ]
    async with app.memory(squad.pool, pool=True) as pool:
        records = pool.records.by("", is_system=True)
        await records.save(agents)
        if joins:
            await records.join(joins)


def _ties(rules: SquadRules) -> Iterator[tuple[str, str, str, dict[str, JSON]]]:
    """Yield what joins agents; of two subscriptions to one agent the one that names it counts."""
    heard: dict[tuple[str, str], dict[str, JSON]] = {}
    for one in sorted(rules.subscriptions, key=lambda one: bool(one.source)):
        for source in [one.source] if one.source else rules.members:
            heard[one.to, source] = {
                "knowledge_types": [*one.kinds],
                "domains": [*one.domains],
                "min_confidence": one.min_confidence,
                "notify_immediately": not one.interval,
                "tier": one.tier,
            }
    yield from (
        (to, "SUBSCRIBES_TO", source, said) for (to, source), said in heard.items() if to != source
    )
    for one in rules.ties:
        yield one.source, one.type, one.to, {"domain": one.domain}


async def saw(desk: Desk, pool: Memory, records: Iterable[str], *, applied: bool = False) -> None:
    """Note that a member saw records of others, or built on them; a second time it changes nothing."""
    rows, mine = pool.records.pool, agent_id(desk.squad, desk.me.id)
    shared, uses = await rows.shared([*records]), await rows.uses([*records])
    found = {
        id_: (uses[id_].applied if applied else uses[id_].accessed) if id_ in uses else ()
        for id_ in shared
    }
    fresh = [
        id_
        for id_, one in shared.items()
        if one.member != desk.me.id and desk.me.id not in found[id_]
    ]
    if not fresh:
        return
    when: dict[str, JSON] = {"timestamp": time.iso(desk.now())}
    joins = [Join(mine, RelationGiven("ACCESSED", id_, when)) for id_ in fresh]
    if applied:
        teachers = {
            shared[id_].member: id_ for id_ in fresh if shared[id_].member in desk.squad.members
        }
        joins += [
            Join(
                mine,
                RelationGiven("LEARNED", agent_id(desk.squad, one), {"knowledge_id": id_, **when}),
            )
            for one, id_ in teachers.items()
        ]
    await pool.records.by(desk.me.id, is_system=True).join(joins)
    await rows.note_use(fresh, desk.me.id, desk.now(), applied=applied)


async def beat(desk: Desk, pool: Memory, *, busy: bool) -> None:
    """Note in a member's own AgentState and in its Agent that it is there: active while it holds a task, else idle."""
    now, activity = desk.now(), "active" if busy else "idle"
    fields: dict[str, JSON] = {"activity": activity, "last_active": time.iso(now)}
    there = await _state(desk)
    last = there and there.fields.get("last_active")
    if (
        there
        and last
        and there.fields["activity"] == activity
        and now - time.parse(str(last)) < _BEAT
    ):
        return
    summary = None if there else desk.my_rules.personality or desk.me.role
    state = RecordGiven(
        "AgentState", desk.my_rules.title or desk.me.id, summary, fields=fields, ref=STATE
    )
    await desk.memory.records.save([state])
    agent = RecordGiven(id=agent_id(desk.squad, desk.me.id), fields=fields)
    await pool.records.by(desk.me.id, is_system=True).save([agent])


async def own_state(desk: Desk, said: str) -> RecordGiven:
    """Return the AgentState of a member's own memory with what it says of itself; whether it is at work stays."""
    there = await _state(desk)
    fields = dict(there.fields) if there else {"activity": "idle"}
    return RecordGiven(
        "AgentState", desk.my_rules.title or desk.me.id, said, fields=fields, ref=STATE
    )


async def _state(desk: Desk) -> Record | None:
    return (await desk.memory.records.graph()).records.get(
        record_id_of(desk.me.entity.group, STATE)
    )


def record_id_of(group: str, ref: str) -> str:
    """Return the id of the record that is stored under a reference of its own."""
    return record_id(group, turn_id(group, TYPED_SOURCE, ref, ref))
