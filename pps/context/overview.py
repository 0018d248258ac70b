"""The overview of a memory: what a person sees first when they come back to it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from pps.context.startup import identity_of
from pps.core.record_values import Record
from pps.core.reports import Duplicate, GivenLine, JobReport
from pps.core.text import one_line
from pps.core.time import CoarseTime, Precision
from pps.core.values import Closing, Fact, Node
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.graph_queries import StatedFact
from pps.journal.journal import Journal
from pps.journal.links import holds
from pps.journal.turns import SessionTurns

NodeGroup: TypeAlias = Literal["people", "places", "projects", "things"]
ChangeOfFact: TypeAlias = Literal["new", "replaced", "ended"]

MAX_NODES_OF_GROUP = 8
MAX_CHANGES = 8
MAX_CONVERSATIONS = 5
MAX_LINES_GIVEN = 6
MAX_WAITING = 5
"""Failed turns and proposed merges that are listed; all are counted."""
MAX_IDENTITY = 4_000
"""Characters of ``identity.md``."""
MAX_NAME = 200
MAX_LINE = 240
"""Characters of a name, and of any other text of a line."""
_FACTS_READ = 600
_HALF_LIFE_DAYS = 30.0
_DAY_S = 86_400.0
_GROUPS: dict[str, NodeGroup] = {
    **dict.fromkeys(
        ("person", "people", "human", "family", "friend", "user", "agent", "animal", "pet"),
        "people",
    ),
    **dict.fromkeys(
        ("place", "location", "city", "town", "village", "country", "region", "address"), "places"
    ),
    **dict.fromkeys(("building", "room", "venue", "restaurant", "cafe"), "places"),
    **dict.fromkeys(
        ("project", "task", "goal", "program", "initiative", "milestone", "epic"), "projects"
    ),
}
"""Kind of a node, in lower case → group; every other kind is a thing."""


@dataclass(frozen=True, slots=True)
class CurrentNode:
    """A node that matters now.

    Attributes:
        line: The latest valid fact with it as subject, else the latest that names it, at most 240
            characters; ``fact`` is its id.
        facts: Valid facts about it among those of the latest 600 statements (a turn and a fact).
        last_at: Event time of the latest turn that states a valid fact about it.
    """

    id: str
    name: str
    kind: str
    group: NodeGroup
    line: str
    fact: str
    facts: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class RecentChange:
    """A fact that a turn stated or ended.

    Attributes:
        change: ``new``, ``replaced`` (``before`` is the fact that it replaced) or ``ended``.
        at: When it was said; for ``ended`` when the fact ended, with the precision of that time.
    """

    change: ChangeOfFact
    at: datetime
    id: str
    text: str
    before: str | None = None
    before_text: str | None = None
    at_precision: Precision | None = None


@dataclass(frozen=True, slots=True)
class GivenToday:
    """What agents were given since midnight.

    Attributes:
        prompts: Prompts that were answered with a pack; ``tokens`` of all packs.
        lines: Up to six items of the latest packs of the latest session, those that are still there.
    """

    sessions: int
    prompts: int
    tokens: int
    lines: tuple[GivenLine, ...] = ()


@dataclass(frozen=True, slots=True)
class FailedTurn:
    """A turn that could not be taken in; ``id`` is the turn's."""

    id: str
    text: str
    error: str


@dataclass(frozen=True, slots=True)
class CurrentRecord:
    """A record that was changed lately."""

    id: str
    kind: str
    title: str
    state: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits for the person: of each the first five, and how many there are.

    ``merges`` is at most 50, and counts more as 50.
    """

    failed: int = 0
    failed_turns: tuple[FailedTurn, ...] = ()
    merges: int = 0
    proposed: tuple[Duplicate, ...] = ()


@dataclass(frozen=True, slots=True)
class HealthLine:
    """The health of the memory: ``problem`` is the first of ``problems``, empty when all is well."""

    ok: bool
    problems: int
    problem: str
    in_work: int


@dataclass(frozen=True, slots=True)
class Holdings:
    """How much the memory holds."""

    turns: int
    nodes: int
    facts: int
    anchors: int


@dataclass(frozen=True, slots=True)
class Overview:
    """What a person sees first of an entity.

    Attributes:
        identity: The text of ``identity.md``, at most 4,000 characters; empty while it is the
            template.
        own_node: Id of the entity's own node.
        nodes: What matters now, at most eight of each group, the most important first.
        changes: What was learned or ended lately, at most eight, the newest first.
        conversations: The latest five.
        records: The five that were changed last.
    """

    identity: str
    own_node: str
    holds: Holdings
    nodes: tuple[CurrentNode, ...]
    changes: tuple[RecentChange, ...]
    conversations: tuple[SessionTurns, ...]
    records: tuple[CurrentRecord, ...]
    given: GivenToday
    waiting: Waiting
    health: HealthLine


@dataclass(frozen=True, slots=True)
class LatestStatements:
    """What was stated lately: see ``Overview``."""

    identity: str
    nodes: tuple[CurrentNode, ...]
    changes: tuple[RecentChange, ...]
    conversations: tuple[SessionTurns, ...]


def failed_turn(job: JobReport) -> FailedTurn:
    """Return a job that failed as a line."""
    return FailedTurn(job.turn_id, one_line(job.text, MAX_LINE), one_line(job.error, MAX_LINE))


def current_record(record: Record) -> CurrentRecord:
    """Return a record as a line."""
    title = one_line(record.title, MAX_NAME)
    return CurrentRecord(record.id, record.kind, title, record.state, record.updated_at)


async def read_latest(
    journal: Journal, client: IsolatedGraphitiClient, own_node: str, name: str
) -> LatestStatements:
    """Return the identity, the current nodes, the recent changes and the latest sessions.

    Raises:
        StoreUnavailable: A store does not answer.
        IsolationError: A foreign row came back.
    """
    stated = await journal.latest_stated(_FACTS_READ)
    facts = {fact.uuid: fact for fact in await client.facts([each.fact for each in stated])}
    stated = [each for each in stated if each.fact in facts]
    closings = await journal.closings.by_facts([each.fact for each in stated])
    conversations = await journal.sessions(MAX_CONVERSATIONS)
    folder = journal.path.parents[1]
    identity = await asyncio.to_thread(identity_of, folder, name)
    return LatestStatements(
        identity if len(identity) <= MAX_IDENTITY else f"{identity[: MAX_IDENTITY - 1]}…",
        await _current_nodes(journal, client, stated, facts, own_node),
        await _changes(journal, client, stated, facts, closings),
        tuple(conversations),
    )


def group_of(kind: str) -> NodeGroup:
    """Return where a node of a kind is listed."""
    return _GROUPS.get(kind.lower(), "things")


async def _current_nodes(
    journal: Journal,
    client: IsolatedGraphitiClient,
    stated: Sequence[StatedFact],
    facts: dict[str, Fact],
    own_node: str,
) -> tuple[CurrentNode, ...]:
    """Return the nodes of valid facts; a fact 30 days older than the newest counts half."""
    moment = journal.now()
    scores: defaultdict[str, float] = defaultdict(float)
    about: defaultdict[str, list[StatedFact]] = defaultdict(list)
    for each in stated:
        fact = facts[each.fact]
        if not holds(fact, moment):
            continue
        age_days = (stated[0].said_at - each.said_at).total_seconds() / _DAY_S
        for node in {fact.subject, fact.object} - {own_node}:
            scores[node] += 0.5 ** (age_days / _HALF_LIFE_DAYS)
            about[node].append(each)
    nodes = {node.uuid: node for node in await client.nodes(list(scores))}
    ranked = sorted(nodes, key=lambda node: (-scores[node], nodes[node].name))
    listed: defaultdict[NodeGroup, list[CurrentNode]] = defaultdict(list)
    for node in ranked:
        current = _current_node(nodes[node], about[node], facts)
        if len(listed[current.group]) < MAX_NODES_OF_GROUP:
            listed[current.group].append(current)
    return tuple(node for nodes_of_group in listed.values() for node in nodes_of_group)


def _current_node(node: Node, about: Sequence[StatedFact], facts: dict[str, Fact]) -> CurrentNode:
    # A sentence with the node as its subject says more of it than one that only names it.
    latest = next((each for each in about if facts[each.fact].subject == node.uuid), about[0])
    return CurrentNode(
        node.uuid,
        one_line(node.name, MAX_NAME),
        node.kind,
        group_of(node.kind),
        one_line(facts[latest.fact].text, MAX_LINE),
        latest.fact,
        len(about),
        about[0].said_at,
    )


async def _changes(
    journal: Journal,
    client: IsolatedGraphitiClient,
    stated: Sequence[StatedFact],
    facts: dict[str, Fact],
    closings: Sequence[Closing],
) -> tuple[RecentChange, ...]:
    moment = journal.now()
    closed = {closing.by_fact: closing.fact for closing in closings}
    replaced = {closing.fact for closing in closings}
    changes: list[RecentChange] = []
    for each in stated:
        fact = facts[each.fact]
        if fact.uuid in replaced:
            continue  # shown with the fact that took its place
        if holds(fact, moment):
            changes.append(
                RecentChange(
                    "replaced" if fact.uuid in closed else "new",
                    each.said_at,
                    fact.uuid,
                    one_line(fact.text, MAX_LINE),
                    before=closed.get(fact.uuid),
                )
            )
        elif fact.invalid_at is not None:
            changes.append(
                RecentChange(
                    "ended",
                    fact.invalid_at,
                    fact.uuid,
                    one_line(fact.text, MAX_LINE),
                    at_precision=fact.invalid_at.precision
                    if isinstance(fact.invalid_at, CoarseTime)
                    else None,
                )
            )
        if len(changes) == MAX_CHANGES:
            break
    return await _with_texts_before(client, changes)


async def _with_texts_before(
    client: IsolatedGraphitiClient, changes: Sequence[RecentChange]
) -> tuple[RecentChange, ...]:
    before = [change.before for change in changes if change.before]
    texts = {fact.uuid: fact.text for fact in await client.facts(before)} if before else {}
    return tuple(
        RecentChange(
            change.change if change.before is None or change.before in texts else "new",
            change.at,
            change.id,
            change.text,
            before=change.before if change.before in texts else None,
            before_text=one_line(texts[change.before], MAX_LINE)
            if change.before in texts
            else None,
            at_precision=change.at_precision,
        )
        for change in changes
    )
