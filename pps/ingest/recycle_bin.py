"""The recycle bin: what is forgotten for a while is taken along whole before it is erased, and put back from there.

Forgetting itself is the same, for a while or for good, so nothing that reads has to leave anything out. A fact needs
its ends, an episode the nodes that it mentions: what something needs is kept beside it, as it was, for that may be
gone by then. What was forgotten by itself since is not shown by restoring something else: it must be restored first.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

import numpy as np
from pydantic import TypeAdapter

from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import is_beginning
from pps.core.reports import Restorable, Restored
from pps.core.text import first_line, fold
from pps.core.time import now
from pps.core.values import Episode, Fact, Node, Vector
from pps.graph.graph_store import GraphChange
from pps.ingest.anchor_files import AnchorFile
from pps.ingest.anchors import Anchors
from pps.ingest.indexer import Indexer
from pps.ingest.lost_names import with_names_back
from pps.ingest.statements import is_undated
from pps.ingest.support import supports_left
from pps.ingest.write_path import Pipeline
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.bin_rows import Binned, Row, put_back, without_given, without_rows
from pps.journal.entries import Change
from pps.journal.feature_tables import FEATURE_SOURCES
from pps.journal.journal import Journal

_SHOWN, _LABEL = 3, 80
_CLOCK_BACK = timedelta(hours=1)
_CLOCK_FAR = timedelta(days=30)
"""How far the clock may be from the latest entry before that is said."""


@dataclass(frozen=True, slots=True)
class ClockReport:
    """What is to be said of the clock; both empty where it is near the latest entry."""

    problem: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Softly:
    """Who forgets for a while, and why."""

    actor: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be forgotten, by ids.

    Attributes:
        weakened: Facts that stay, for other turns support them too.
        stripped: Nodes that stay, for others know them too, and lose what the text that made them records said of them.
        asked: What was named, with its records and sources; the rest goes along because nothing needs it any more.
        told: Turns that stay, and with which something was given that goes.
        reread: Those of them that a command reads again: it found what goes in them together with turns that go.
        rows: Of features' tables: those named, and those that are about what goes.
    """

    turns: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    weakened: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    stripped: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    reread: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()

    @property
    def gone(self) -> tuple[str, ...]:
        """Every id that is gone once the plan is carried out, but for anchors."""
        return (*self.turns, *self.facts, *self.nodes, *self.rows)


@dataclass(frozen=True, slots=True)
class _Content:
    """Everything of one time of forgetting, as it was.

    Attributes:
        nodes, facts: Those that went or lost something; of nodes those too that one of these needs.
        rows: Of the journal.
        given: Turn → what was given with it, of those that stay and lost it.
        anchors: Files, each with its vectors.
        vectors: Passage → vector, of the model ``fingerprint``.
    """

    plan: Plan
    nodes: tuple[Node, ...]
    facts: tuple[Fact, ...]
    episodes: tuple[Episode, ...]
    mentions: tuple[tuple[str, str], ...]
    rows: dict[str, list[Row]]
    given: dict[str, str]
    anchors: tuple[tuple[AnchorFile, tuple[str, ...]], ...]
    vectors: dict[str, str]
    fingerprint: str


_CONTENT = TypeAdapter(_Content)


class RecycleBin:
    """What one entity forgot and can still be restored. Whoever changes it holds the worker."""

    def __init__(
        self,
        client: IsolatedGraphitiClient,
        journal: Journal,
        indexer: Indexer,
        anchors: Anchors,
        pipeline: Pipeline,
    ) -> None:
        self._client = client
        self._journal = journal
        self._indexer = indexer
        self._anchors = anchors
        self._pipeline = pipeline

    async def list(self) -> list[Restorable]:
        """Return what can be restored, the latest first."""
        return [self.describe(row) for row in await self._journal.bin.list(now())]

    def describe(self, row: Binned) -> Restorable:
        return _said(row, self.until(row))

    def names(self, row: Binned) -> list[str]:
        """Return the names of the nodes that were asked to be forgotten, aliases included."""
        content = _load(row)
        asked = [node for node in content.nodes if node.uuid in content.plan.asked]
        return [name for node in asked for name in (node.name, *node.aliases)]

    async def expire(self) -> None:
        """Erase for good what can no longer be restored, see ``Bin.expire``."""
        await self._journal.expire_bin(now())

    async def look_at_clock(self) -> ClockReport:
        """Compare the clock with the latest entry: by a wrong clock, text would be erased too early or never."""
        latest = await self._journal.latest_entry_at()
        if latest is None:
            return ClockReport()
        at = now()
        ahead = at - latest
        if ahead < -_CLOCK_BACK:
            problem = (
                f"the clock says {at:%Y-%m-%d %H:%M} UTC, which lies before the latest entry "
                f"({latest:%Y-%m-%d %H:%M}): set the clock right"
            )
            return ClockReport(problem=problem)
        if ahead <= _CLOCK_FAR:
            return ClockReport()
        said = (
            f"the clock says {at:%Y-%m-%d %H:%M} UTC, {ahead.days:,} days after the latest entry "
            f"({latest:%Y-%m-%d %H:%M})"
        )
        overdue = await self._journal.bin.overdue(at)
        if not overdue:
            return ClockReport(note=said)
        return ClockReport(
            problem=f"{said}: by it {overdue:,} softly forgotten are over their time and are erased for good after "
            "a day of running; if it is wrong, set it right before"
        )

    def until(self, row: Binned) -> datetime:
        """Return the end of the time in which a row can be restored."""
        return row.at + self._journal.bin.keep

    async def get(self, id: str) -> Binned:
        """Return what was forgotten at one time, by its id or the beginning of it; NotFound when there is none."""
        found = await self._journal.bin.get(id, now())
        if len(found) > 1:
            raise InvalidRequest("id", f"{id!r} begins more than one id: give more of it")
        if not found:
            raise NotFound()
        return found[0]

    async def known(self, ids: Iterable[str]) -> dict[str, str]:
        """Return those of some ids that the bin holds anything of, and of the beginning of a row's id that id."""
        wanted = list(ids)
        rows = await self._journal.bin.holding(wanted) if wanted else []
        held = {one for row in rows for one in (row.id, *row.ids)}
        found = {one: one for one in wanted if one in held}
        for one in filter(is_beginning, wanted):
            found.update((one, row.id) for row in await self._journal.bin.get(one, now()))
        return found

    async def turns_of(self, sessions: Collection[str]) -> list[str]:
        """Return the turns of some sessions that the bin holds."""
        rows = [
            row
            for one in await self._journal.bin.list(now())
            for row in _load(one).rows.get("turns", ())
        ]
        return [str(row["uuid"]) for row in rows if row["session"] in sessions]

    async def taken(self, plan: Plan, softly: Softly) -> Binned:
        """Return all that goes by a plan, to be kept; nothing is changed."""
        client, journal = self._client, self._journal
        facts = await self._opened([*plan.facts, *plan.weakened])
        mentions = _pairs(await client.mentioned_nodes(plan.turns))
        mentions += [
            (turn, node) for node, turn in _pairs(await client.episodes_of_nodes(plan.nodes))
        ]
        needed = [
            *(end for one in facts for end in (one.subject, one.object)),
            *(node for _, node in mentions),
        ]
        nodes = await client.nodes(list(dict.fromkeys([*plan.nodes, *plan.stripped, *needed])))
        vectors = await self._indexer.known_vectors(nodes, facts, await journal.turns(plan.turns))
        anchors = [await self._anchors.kept(slug) for slug in plan.anchors]
        content = _Content(
            plan,
            tuple(nodes),
            tuple(facts),
            tuple(await client.episodes(plan.turns)),
            tuple(dict.fromkeys(mentions)),
            await journal.bin.take(plan.turns, plan.nodes, plan.facts, plan.rows, plan.anchors),
            await journal.bin.given(plan.told),
            tuple((file, tuple(map(_packed, parts))) for file, parts in anchors),
            {text: _packed(one) for text, one in vectors.items()},
            await journal.get_meta("fingerprint") or "",
        )
        changed = (*plan.turns, *plan.facts, *plan.nodes, *plan.stripped)
        kinds = await journal.records.read(lambda rows: rows.kinds_written(changed))
        row = Binned(str(uuid.uuid4()), now(), softly.actor, softly.why, tuple(kinds), (), (), "")
        return _kept(row, content)

    async def _opened(self, ids: Sequence[str]) -> list[Fact]:
        """Return facts without what closed them: it may be forgotten itself by the time that they are put back."""
        closings = {one.fact: one for one in reversed(await self._journal.closings.of(ids))}
        return [
            replace(fact, invalid_at=closings[fact.uuid].own_end, expired_at=None)
            if fact.uuid in closings and fact.invalid_at == closings[fact.uuid].at
            else fact
            for fact in await self._client.facts(ids)
        ]

    async def without(self, ids: Iterable[str]) -> list[Binned]:
        """Return the rows that hold anything of some ids, or are named by one, as they are to be once that is erased.

        A row of which nothing is left has no content.
        """
        rows = await self._journal.bin.holding(wanted := set(ids))
        gone = wanted | {asked for row in rows if row.id in wanted for asked in row.asked}
        if gone != wanted:
            rows = await self._journal.bin.holding(gone)
        left = [(row, None if row.id in wanted else _erased(_load(row), gone)) for row in rows]
        return [
            _kept(row, content) if content else replace(row, content="") for row, content in left
        ]

    async def restore(self, row: Binned) -> Restored:
        """Put back what a row holds in one transaction; anchors' files follow, at the next start if need be.

        Raises:
            InvalidRequest: Something that belongs to it was forgotten later; nothing was changed.
        """
        content = _load(row)
        if later := await self._later(row, content):
            more = ", ".join(one.id for one in later)
            raise InvalidRequest(
                "id", f"what belongs to it was forgotten later: restore that first ({more})"
            )
        return await self._put_back(row)

    async def resume(self) -> None:
        """Carry through a restoring that was cut short."""
        if begun := await self._journal.bin.begun():
            await self._put_back(begun)

    async def _later(self, row: Binned, content: _Content) -> list[Binned]:
        """Return the rows that hold, as asked for, what a row needs and what is not there."""
        client, journal, plan = self._client, self._journal, content.plan
        turns = {one for fact in content.facts for one in fact.episodes} | {
            turn for turn, _ in content.mentions
        }
        there = {turn.uuid for turn in await journal.turns([*turns])} | {*plan.turns, *plan.asked}
        nodes = {end for fact in content.facts for end in (fact.subject, fact.object)}
        nodes |= {node for _, node in content.mentions} | {*plan.stripped}
        nodes |= {
            str(one[end])
            for one in content.rows.get("record_relations", ())
            for end in ("source", "target")
        }
        there |= {node.uuid for node in await client.nodes([*nodes])}
        facts = {fact.uuid for fact in content.facts}
        there |= {fact.uuid for fact in await client.facts([*facts])}
        needed = nodes | facts | {turn for turn, _ in content.mentions}
        tied = {
            str(row[end])
            for row in content.rows.get("fact_ties", ())
            for end in ("holder", "needs")
            if row["fact"] in facts
        }
        needed |= tied
        there |= {turn.uuid for turn in await journal.turns([*tied])}
        needed.update(*(fact.episodes for fact in content.facts if there.isdisjoint(fact.episodes)))
        missing = needed - there
        return [
            one
            for one in await journal.bin.holding(missing)
            if one.id != row.id and missing & {*one.asked}
        ]

    async def _put_back(self, row: Binned) -> Restored:
        client, journal, content = self._client, self._journal, _load(row)
        plan = content.plan
        facts = await self._supported(content)
        nodes = await self._lacking(content, facts)
        mentioned = dict.fromkeys(node for _, node in content.mentions)
        changes = [
            *(
                Change("node", node)
                for node in dict.fromkeys([*mentioned, *(one.uuid for one in nodes)])
            ),
            *(Change("fact", one.uuid) for one in facts),
            *(
                Change("episode", one)
                for one in dict.fromkeys([*plan.turns, *(e for f in facts for e in f.episodes)])
            ),
        ]
        rows = await self._rows_to_put_back(content)
        await self._know_vectors(content)
        here = {one.uuid for one in await client.episodes([one.uuid for one in content.episodes])}
        mentioning = [turn for turn, _ in content.mentions]
        turns = {turn.uuid for turn in await journal.turns(mentioning)}
        turns.update(str(row["uuid"]) for row in rows.get("turns", ()))
        change = GraphChange(
            nodes=nodes,
            facts=facts,
            episodes=[one for one in content.episodes if one.uuid not in here],
            mentions=[pair for pair in content.mentions if pair[0] in turns],
        )
        back = [*plan.turns, *(one.uuid for one in nodes), *(one.uuid for one in facts)]

        async def end() -> None:
            given, others = await self._given(row, content)
            await journal.bin.end(row.id, content.rows, back, given, others, plan.turns)

        async with self._indexer.draining, journal.transaction():
            await client.apply(change, partial(put_back, rows=rows, changes=changes))
            settled = await self._pipeline.resettle(plan.turns, [one.uuid for one in facts])
            if content.anchors:  # files: the row stays until they are written
                await journal.bin.begin(row.id)
            else:
                await end()
        journal.records.touch()
        if content.anchors:
            for file, parts in content.anchors:
                await self._anchors.restore(file, [_vector(part) for part in parts])
            await end()
        await self._pipeline.keep_vectors(settled)
        await self._indexer.drain()
        await self._indexer.embed_due()
        await self._pipeline.link({fold(one.name) for one in nodes})
        await self._pipeline.project_relations()
        facts_back = tuple(one.uuid for one in facts if one.uuid in plan.facts)
        nodes_back = tuple(one.uuid for one in nodes if one.uuid in plan.nodes)
        return Restored(row.id, plan.turns, facts_back, nodes_back, plan.anchors)

    async def _rows_to_put_back(self, content: _Content) -> dict[str, list[Row]]:
        """Return rows without the versions of anchors whose slug another anchor has by now."""
        taken = (
            {anchor.slug for anchor in await self._anchors.list()}
            if content.anchors
            else set[str]()
        )
        versions = content.rows.get("anchor_versions", ())
        return content.rows | {"anchor_versions": [v for v in versions if v["slug"] not in taken]}

    async def _supported(self, content: _Content) -> list[Fact]:
        """Return facts with the supports that there are; those that are there get back the ones that they lost."""
        here = {
            fact.uuid: fact
            for fact in await self._client.facts([fact.uuid for fact in content.facts])
        }
        told = {turn for fact in (*content.facts, *here.values()) for turn in fact.episodes}
        order = {turn.uuid: turn.seq for turn in await self._journal.turns([*told])}
        order |= {str(row["uuid"]): int(row["seq"] or 0) for row in content.rows.get("turns", ())}
        found: list[Fact] = []
        for fact in content.facts:
            known = here.get(fact.uuid, fact)
            kept = [
                turn
                for turn in fact.episodes
                if turn in content.plan.turns or turn in known.episodes
            ]
            if more := set(known.episodes) - set(kept):
                kept = sorted(more.union(kept), key=lambda turn: order.get(turn, 0))
            one = replace(known, episodes=tuple(turn for turn in kept if turn in order))
            # The first of its texts gives it a day when it is indexed.
            found.append(
                replace(one, valid_at=None) if is_undated(self._client.entity.group, one) else one
            )
        return found

    async def _lacking(self, content: _Content, facts: Sequence[Fact]) -> list[Node]:
        """Return the nodes that are not there and come back, and those that were made plain."""
        plan = content.plan
        here = {
            node.uuid: node
            for node in await self._client.nodes([node.uuid for node in content.nodes])
        }
        wanted = {*plan.asked, *(end for fact in facts for end in (fact.subject, fact.object))}
        wanted.update(node for _, node in content.mentions)
        plain = {
            one
            for one, node in here.items()
            if one in plan.stripped and (node.kind, node.summary) == ("Thing", "")
        }
        nodes: list[Node] = []
        for node in content.nodes:
            if node.uuid in plain or (node.uuid in wanted and node.uuid not in here):
                nodes.append(node)
            elif node.uuid in here and with_names_back(here[node.uuid], node) != here[node.uuid]:
                nodes.append(with_names_back(here[node.uuid], node))
        return nodes

    async def _know_vectors(self, content: _Content) -> None:
        """Have the vectors at hand that the indexes will ask for: those that were kept, and those of the neighbours."""
        if content.fingerprint != await self._journal.get_meta("fingerprint"):
            return
        self._indexer.know({text: _vector(row) for text, row in content.vectors.items()})
        await self._indexer.know_near(content.plan.turns)

    async def _given(self, row: Binned, content: _Content) -> tuple[dict[str, str], list[Binned]]:
        """Return what was given with turns, but for those that lost something else too: that is with the other row."""
        given, others = dict(content.given), list[Binned]()
        for other in await self._journal.bin.holding(given):
            theirs = _load(other).given
            if other.id != row.id and (both := given.keys() & theirs.keys()):
                more = {turn: max(given.pop(turn), theirs[turn], key=len) for turn in both}
                others.append(_kept(other, replace(_load(other), given=theirs | more)))
        return given, others


def _erased(content: _Content, gone: set[str]) -> _Content | None:
    """Return a content without what is forgotten for good and what it alone supported; None when nothing is left."""
    plan = content.plan
    for record in content.rows.get("records", ()):  # a record and its source are one thing
        pair = {str(record["turn"]), str(record["node"])}
        gone = gone | pair if pair & gone else gone
    lost = [
        fact for fact in content.facts if gone.intersection((fact.uuid, fact.subject, fact.object))
    ]
    told = {turn for fact in lost for turn in fact.episodes} | {
        turn for turn, node in content.mentions if node in gone
    }
    ties = _ties(content)
    facts: list[Fact] = []
    for fact in content.facts:
        if fact in lost:
            continue
        episodes = supports_left(fact, ties.get(fact.uuid, {}), gone)
        if episodes or not fact.episodes:
            facts.append(replace(fact, episodes=episodes))
        else:
            told.update(fact.episodes)
    rows = without_rows(content.rows, gone)
    for row in rows.get("jobs", ()):
        if row["turn"] in told:
            row["payload"] = without_given(str(row["payload"]), str(row["state"]))
    mentions = tuple(pair for pair in content.mentions if not gone.intersection(pair))
    needed = {*plan.asked, *plan.stripped, *(node for _, node in mentions)}
    needed.update(end for fact in facts for end in (fact.subject, fact.object))
    nodes = tuple(one for one in content.nodes if one.uuid in needed - gone)
    gone = (
        gone
        | {*plan.facts} - {one.uuid for one in facts}
        | {*plan.nodes} - {one.uuid for one in nodes}
    )
    ids = (
        plan.turns,
        plan.facts,
        plan.weakened,
        plan.nodes,
        plan.anchors,
        plan.stripped,
        plan.asked,
        plan.told,
        plan.reread,
        plan.rows,
    )
    left = Plan(*(tuple(one for one in some if one not in gone) for some in ids))
    if not left.asked:
        return None
    said = [f"{row['actor'] or row['role']}: {row['content']}" for row in rows.get("turns", ())]
    words = "\n".join([*said, *(one.name for one in nodes), *(one.text for one in facts)])
    return replace(
        content,
        plan=left,
        nodes=nodes,
        facts=tuple(facts),
        episodes=tuple(one for one in content.episodes if one.uuid not in gone),
        mentions=mentions,
        rows=rows,
        given={turn: text for turn, text in content.given.items() if turn not in told | gone},
        anchors=tuple(one for one in content.anchors if one[0].slug not in gone),
        vectors={text: vector for text, vector in content.vectors.items() if text in words},
    )


def _ties(content: _Content) -> dict[str, dict[str, frozenset[str]]]:
    """Return the ties of the facts of a content, as ``journal.tie_rows`` has them."""
    ties: dict[str, dict[str, frozenset[str]]] = {}
    for row in content.rows.get("fact_ties", ()):
        holders = ties.setdefault(str(row["fact"]), {})
        holder = str(row["holder"])
        holders[holder] = holders.get(holder, frozenset()) | {str(row["needs"])}
    return ties


def _kept(row: Binned, content: _Content) -> Binned:
    plan = content.plan
    pairs = (*content.mentions, *((fact.subject, fact.object) for fact in content.facts))
    ids = [
        *plan.asked,
        *plan.turns,
        *plan.rows,
        *(one.uuid for one in (*content.nodes, *content.facts)),
        *content.given,
    ]
    ids += [
        str(tie[end]) for tie in content.rows.get("fact_ties", ()) for end in ("holder", "needs")
    ]
    ids += [
        str(row[name]) for row in content.rows.get(FEATURE_SOURCES, ()) for name in ("row", "item")
    ]
    ids += [one for pair in pairs for one in pair] + [
        turn for fact in content.facts for turn in fact.episodes
    ]
    text = _CONTENT.dump_json(content).decode()
    return replace(row, asked=plan.asked, ids=tuple(dict.fromkeys(ids)), content=text)


def _load(row: Binned) -> _Content:
    return _CONTENT.validate_json(row.content)


def _said(row: Binned, until: datetime) -> Restorable:
    content = _load(row)
    plan = content.plan
    names = {node.uuid: node.name for node in content.nodes} | {
        fact.uuid: fact.text for fact in content.facts
    }
    names |= {str(turn["uuid"]): str(turn["content"]) for turn in content.rows.get("turns", ())}
    shown = tuple(first_line(names.get(one, one), _LABEL) for one in plan.asked[:_SHOWN])
    counts = len(plan.turns), len(plan.facts), len(plan.nodes), len(plan.anchors)
    return Restorable(row.id, shown, row.at, until, row.actor, row.why, *counts)


def _pairs(found: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    return [(one, other) for one, others in found.items() for other in others]


def _packed(vector: Vector) -> str:
    return base64.b64encode(np.asarray(vector, dtype=np.float32).tobytes()).decode()


def _vector(packed: str) -> Vector:
    return np.frombuffer(base64.b64decode(packed), dtype=np.float32)
