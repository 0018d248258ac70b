"""The recycle bin: softly forgotten items, from which they can be restored for a while.

Soft and final forgetting remove the same data, so no reader has to filter out forgotten items. A
row of the bin also holds copies of what its items need and what may be gone when they are restored:
the nodes that a fact joins and the nodes that an episode mentions. Restoring a row never brings
back an item that another row was asked to forget: that row must be restored first.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
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
from pps.ingest.statements import is_undated
from pps.ingest.support import supports_left, with_names_back
from pps.ingest.write_path import Pipeline
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.bin_rows import Binned, Row, put_back, without_given, without_rows
from pps.journal.entries import Change
from pps.journal.feature_tables import FEATURE_SOURCES
from pps.journal.journal import Journal

_NAMES_SHOWN = 3
_NAME_LENGTH = 80
_CLOCK_BACK = timedelta(hours=1)
_CLOCK_FAR = timedelta(days=30)
"""How far the clock may lie before and after the latest entry before it is reported."""


@dataclass(frozen=True, slots=True)
class ClockReport:
    """A problem or a note about the clock; both are empty when it is near the latest entry."""

    problem: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Softly:
    """Who forgets softly, and why."""

    actor: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The ids that one call of forget removes or changes; stored as JSON under these names.

    Attributes:
        weakened: Facts that stay, because turns that stay support them too.
        stripped: Nodes of records whose turn goes; they stay as plain nodes, because other turns
            mention them.
        asked: The ids that were requested, with their records and sources. All other ids go because
            nothing needs them any more.
        told: Turns that stay and lose the nodes and facts stored in their jobs.
        reread: Those of ``told`` that a command reads again: it had read them together with turns
            that go.
        rows: Rows of features' tables that were requested, and those about something that goes.
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
        """Every id that no longer exists once the plan is carried out, except anchors."""
        return (*self.turns, *self.facts, *self.nodes, *self.rows)


@dataclass(frozen=True, slots=True)
class _Content:
    """Everything that one call of forget removed, as it was; stored as JSON under these names.

    Attributes:
        nodes, facts: Those that were removed or lost something; nodes also those that a fact or a
            mention here needs.
        mentions: Pairs of turn and node.
        rows: Table of the journal → its rows.
        given: Turn → payload of its job, for the turns that stay and lost it (``Plan.told``).
        anchors: Files, each with the vectors of its parts.
        vectors: Passage → vector, by the model ``fingerprint``.
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
    """The softly forgotten items of one entity. Callers of methods that write hold the worker."""

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
        """Return the counts of a row and the first names or texts of what was requested."""
        content = _load(row)
        plan = content.plan
        labels = {node.uuid: node.name for node in content.nodes}
        labels |= {fact.uuid: fact.text for fact in content.facts}
        labels |= {
            str(turn["uuid"]): str(turn["content"]) for turn in content.rows.get("turns", ())
        }
        first = plan.asked[:_NAMES_SHOWN]
        return Restorable(
            id=row.id,
            what=tuple(first_line(labels.get(id_, id_), _NAME_LENGTH) for id_ in first),
            at=row.at,
            until=self.until(row),
            by=row.actor,
            why=row.why,
            turns=len(plan.turns),
            facts=len(plan.facts),
            nodes=len(plan.nodes),
            anchors=len(plan.anchors),
        )

    def names(self, row: Binned) -> list[str]:
        """Return the names of the nodes that were requested to be forgotten, aliases included."""
        content = _load(row)
        requested = [node for node in content.nodes if node.uuid in content.plan.asked]
        return [name for node in requested for name in (node.name, *node.aliases)]

    async def expire(self) -> None:
        """Erase for good what can no longer be restored, see ``Bin.expire``."""
        await self._journal.expire_bin(now())

    async def look_at_clock(self) -> ClockReport:
        """Compare the clock with the latest entry: a wrong clock erases text too early or never."""
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
        note = (
            f"the clock says {at:%Y-%m-%d %H:%M} UTC, {ahead.days:,} days after the latest entry "
            f"({latest:%Y-%m-%d %H:%M})"
        )
        overdue = await self._journal.bin.overdue(at)
        if not overdue:
            return ClockReport(note=note)
        return ClockReport(
            problem=f"{note}: by it {overdue:,} softly forgotten are over their time and are "
            "erased for good after a day of running; if it is wrong, set it right before"
        )

    def until(self, row: Binned) -> datetime:
        """Return the end of the time in which a row can be restored."""
        return row.at + self._journal.bin.keep

    async def get(self, id: str) -> Binned:
        """Return the row with an id, or whose id begins so.

        Raises:
            InvalidRequest: Several ids begin so.
            NotFound: No row that can be restored has it.
        """
        rows = await self._journal.bin.get(id, now())
        if len(rows) > 1:
            raise InvalidRequest("id", f"{id!r} begins more than one id: give more of it")
        if not rows:
            raise NotFound()
        return rows[0]

    async def known(self, ids: Iterable[str]) -> dict[str, str]:
        """Return which of some ids the bin holds, as they are or as the beginning of a row's id.

        Returns:
            Id of a row or of an item in it → itself; beginning → the whole id of the row.
        """
        wanted = list(ids)
        rows = await self._journal.bin.holding(wanted) if wanted else []
        held = {id_ for row in rows for id_ in (row.id, *row.ids)}
        known = {id_: id_ for id_ in wanted if id_ in held}
        for beginning in filter(is_beginning, wanted):
            for row in await self._journal.bin.get(beginning, now()):
                known[beginning] = row.id
        return known

    async def turns_of(self, sessions: Collection[str]) -> list[str]:
        """Return the uuids of the turns of some sessions that the bin holds."""
        uuids: list[str] = []
        for row in await self._journal.bin.list(now()):
            turns = _load(row).rows.get("turns", ())
            uuids += [str(turn["uuid"]) for turn in turns if turn["session"] in sessions]
        return uuids

    async def taken(self, plan: Plan, softly: Softly) -> Binned:
        """Return a row with everything that a plan removes; nothing is changed."""
        client = self._client
        journal = self._journal
        facts = await self._without_closings([*plan.facts, *plan.weakened])
        mentioned = await client.mentioned_nodes(plan.turns)
        mentioning = await client.episodes_of_nodes(plan.nodes)
        mentions = [(turn, node) for turn, nodes in mentioned.items() for node in nodes]
        mentions += [(turn, node) for node, turns in mentioning.items() for turn in turns]
        needed = [*plan.nodes, *plan.stripped]
        needed += [end for fact in facts for end in (fact.subject, fact.object)]
        needed += [node for _, node in mentions]
        nodes = await client.nodes(list(dict.fromkeys(needed)))
        vectors = await self._indexer.known_vectors(nodes, facts, await journal.turns(plan.turns))
        anchors = [await self._anchors.kept(slug) for slug in plan.anchors]
        rows = await journal.bin.take(plan.turns, plan.nodes, plan.facts, plan.rows, plan.anchors)
        content = _Content(
            plan=plan,
            nodes=tuple(nodes),
            facts=tuple(facts),
            episodes=tuple(await client.episodes(plan.turns)),
            mentions=tuple(dict.fromkeys(mentions)),
            rows=rows,
            given=await journal.bin.given(plan.told),
            anchors=tuple((file, tuple(map(_encode_vector, parts))) for file, parts in anchors),
            vectors={passage: _encode_vector(vector) for passage, vector in vectors.items()},
            fingerprint=await journal.get_meta("fingerprint") or "",
        )
        changed = (*plan.turns, *plan.facts, *plan.nodes, *plan.stripped)
        kinds = await journal.records.read(lambda records: records.kinds_written(changed))
        row = Binned(
            id=str(uuid.uuid4()),
            at=now(),
            actor=softly.actor,
            why=softly.why,
            kinds=tuple(kinds),
            asked=(),
            ids=(),
            content="",
        )
        return _with_content(row, content)

    async def _without_closings(self, ids: Sequence[str]) -> list[Fact]:
        """Return facts as they are without their closings, which may be forgotten meanwhile."""
        # Of several closings of a fact the first in the list counts.
        known = await self._journal.closings.of(ids)
        closings = {closing.fact: closing for closing in reversed(known)}
        facts: list[Fact] = []
        for fact in await self._client.facts(ids):
            closing = closings.get(fact.uuid)
            if closing is not None and fact.invalid_at == closing.at:
                facts.append(replace(fact, invalid_at=closing.own_end, expired_at=None))
            else:
                facts.append(fact)
        return facts

    async def without(self, ids: Iterable[str]) -> list[Binned]:
        """Return the rows that change when ids are erased for good, in their new state.

        The id of a row stands for all that it was asked to forget. A row of which nothing is left
        has no content.
        """
        wanted = set(ids)
        rows = await self._journal.bin.holding(wanted)
        erased = set(wanted)
        for row in rows:
            if row.id in wanted:
                erased.update(row.asked)
        if erased != wanted:
            rows = await self._journal.bin.holding(erased)
        changed: list[Binned] = []
        for row in rows:
            content = None if row.id in wanted else _erase(_load(row), erased)
            changed.append(
                replace(row, content="") if content is None else _with_content(row, content)
            )
        return changed

    async def restore(self, row: Binned) -> Restored:
        """Put back what a row holds in one transaction; files of anchors are written after it.

        After a crash between the two, ``resume`` writes the files.

        Raises:
            InvalidRequest: Something that it needs was forgotten later; nothing was changed.
        """
        content = _load(row)
        later = await self._needed_rows(row, content)
        if later:
            more = ", ".join(needed.id for needed in later)
            raise InvalidRequest(
                "id", f"what belongs to it was forgotten later: restore that first ({more})"
            )
        return await self._put_back(row, content)

    async def resume(self) -> None:
        """Finish a restore that a crash interrupted."""
        row = await self._journal.bin.begun()
        if row is not None:
            await self._put_back(row, _load(row))

    async def _needed_rows(self, row: Binned, content: _Content) -> list[Binned]:
        """Return the rows to restore first: they were asked to forget something that this needs."""
        plan = content.plan
        facts = {fact.uuid for fact in content.facts}
        mentioning = {turn for turn, _ in content.mentions}
        nodes = {*plan.stripped, *(node for _, node in content.mentions)}
        stating: set[str] = set()
        for fact in content.facts:
            nodes.update((fact.subject, fact.object))
            stating.update(fact.episodes)
        for relation in content.rows.get("record_relations", ()):
            nodes.update((str(relation["source"]), str(relation["target"])))
        tied: set[str] = set()
        for tie in content.rows.get("fact_ties", ()):
            if tie["fact"] in facts:
                tied.update((str(tie["holder"]), str(tie["needs"])))

        present = {*plan.turns, *plan.asked}
        turns = await self._journal.turns([*(stating | mentioning | tied)])
        present.update(turn.uuid for turn in turns)
        present.update(node.uuid for node in await self._client.nodes([*nodes]))
        present.update(fact.uuid for fact in await self._client.facts([*facts]))

        needed = nodes | facts | mentioning | tied
        for fact in content.facts:
            if present.isdisjoint(fact.episodes):  # one of the turns that state a fact is enough
                needed.update(fact.episodes)
        missing = needed - present
        return [
            other
            for other in await self._journal.bin.holding(missing)
            if other.id != row.id and not missing.isdisjoint(other.asked)
        ]

    async def _put_back(self, row: Binned, content: _Content) -> Restored:
        journal = self._journal
        plan = content.plan
        facts = await self._facts_to_put_back(content)
        nodes = await self._nodes_to_put_back(content, facts)
        rows = await self._rows_to_put_back(content)
        fact_ids = [fact.uuid for fact in facts]
        node_ids = [node.uuid for node in nodes]
        change = await self._graph_change(content, nodes, facts, rows)
        changed_nodes = [*(node for _, node in content.mentions), *node_ids]
        changed_episodes = [*plan.turns, *(turn for fact in facts for turn in fact.episodes)]
        changes = [
            *(Change("node", node) for node in dict.fromkeys(changed_nodes)),
            *(Change("fact", fact) for fact in fact_ids),
            *(Change("episode", turn) for turn in dict.fromkeys(changed_episodes)),
        ]
        await self._preload_vectors(content)

        async def end() -> None:
            payloads, others = await self._payloads_to_put_back(row, content)
            back = [*plan.turns, *node_ids, *fact_ids]
            await journal.bin.end(row.id, content.rows, back, payloads, others, plan.turns)

        async with self._indexer.draining, journal.transaction():
            await self._client.apply(change, partial(put_back, rows=rows, changes=changes))
            settled = await self._pipeline.resettle(plan.turns, fact_ids)
            if content.anchors:  # files: the row stays until they are written
                await journal.bin.begin(row.id)
            else:
                await end()
        journal.records.touch()
        if content.anchors:
            for file, parts in content.anchors:
                await self._anchors.restore(file, [_decode_vector(part) for part in parts])
            await end()
        await self._pipeline.keep_vectors(settled)
        await self._indexer.drain()
        await self._indexer.embed_due()
        await self._pipeline.link({fold(node.name) for node in nodes})
        await self._pipeline.project_relations()
        return Restored(
            id=row.id,
            turns=plan.turns,
            facts=tuple(fact for fact in fact_ids if fact in plan.facts),
            nodes=tuple(node for node in node_ids if node in plan.nodes),
            anchors=plan.anchors,
        )

    async def _graph_change(
        self,
        content: _Content,
        nodes: Sequence[Node],
        facts: Sequence[Fact],
        rows: Mapping[str, Sequence[Row]],
    ) -> GraphChange:
        """Return the graph's part, without existing episodes and mentions by absent turns."""
        episodes = await self._client.episodes([episode.uuid for episode in content.episodes])
        existing = {episode.uuid for episode in episodes}
        turns = await self._journal.turns([turn for turn, _ in content.mentions])
        mentioning = {turn.uuid for turn in turns}
        mentioning.update(str(row["uuid"]) for row in rows.get("turns", ()))
        return GraphChange(
            nodes=nodes,
            facts=facts,
            episodes=[episode for episode in content.episodes if episode.uuid not in existing],
            mentions=[(turn, node) for turn, node in content.mentions if turn in mentioning],
        )

    async def _rows_to_put_back(self, content: _Content) -> dict[str, list[Row]]:
        """Return the rows without the versions of anchors whose slug another anchor has by now."""
        versions = content.rows.get("anchor_versions", [])
        if content.anchors:
            slugs = {anchor.slug for anchor in await self._anchors.list()}
            versions = [version for version in versions if version["slug"] not in slugs]
        return content.rows | {"anchor_versions": versions}

    async def _facts_to_put_back(self, content: _Content) -> list[Fact]:
        """Return the facts with the supports that exist.

        A fact that is still in the graph keeps its present state and regains the supports that it
        lost to this row.
        """
        stored = await self._client.facts([fact.uuid for fact in content.facts])
        existing = {fact.uuid: fact for fact in stored}
        stating = {turn for fact in (*content.facts, *stored) for turn in fact.episodes}
        order = {turn.uuid: turn.seq for turn in await self._journal.turns([*stating])}
        order |= {str(row["uuid"]): int(row["seq"] or 0) for row in content.rows.get("turns", ())}
        facts: list[Fact] = []
        for before in content.facts:
            current = existing.get(before.uuid, before)
            turns = [
                turn
                for turn in before.episodes
                if turn in content.plan.turns or turn in current.episodes
            ]
            added = set(current.episodes).difference(turns)
            if added:
                turns = sorted(added.union(turns), key=lambda turn: order.get(turn, 0))
            fact = replace(current, episodes=tuple(turn for turn in turns if turn in order))
            if is_undated(self._client.entity.group, fact):
                fact = replace(fact, valid_at=None)  # indexing dates it by its first turn
            facts.append(fact)
        return facts

    async def _nodes_to_put_back(self, content: _Content, facts: Sequence[Fact]) -> list[Node]:
        """Return the nodes that are needed and absent, were stripped or lost an alias."""
        plan = content.plan
        stored = await self._client.nodes([node.uuid for node in content.nodes])
        existing = {node.uuid: node for node in stored}
        needed = {*plan.asked, *(end for fact in facts for end in (fact.subject, fact.object))}
        needed.update(node for _, node in content.mentions)
        nodes: list[Node] = []
        for before in content.nodes:
            current = existing.get(before.uuid)
            if current is None:
                if before.uuid in needed:
                    nodes.append(before)
                continue
            is_plain = (current.kind, current.summary) == ("Thing", "")
            if before.uuid in plan.stripped and is_plain:
                nodes.append(before)
                continue
            renamed = with_names_back(current, before)
            if renamed != current:
                nodes.append(renamed)
        return nodes

    async def _preload_vectors(self, content: _Content) -> None:
        """Preload the stored vectors and those of neighbouring turns, unless the model changed."""
        if content.fingerprint != await self._journal.get_meta("fingerprint"):
            return
        self._indexer.know(
            {passage: _decode_vector(vector) for passage, vector in content.vectors.items()}
        )
        await self._indexer.know_near(content.plan.turns)

    async def _payloads_to_put_back(
        self, row: Binned, content: _Content
    ) -> tuple[dict[str, str], list[Binned]]:
        """Return turn → payload to put back, and the other rows that keep payloads instead.

        When another row removed something of the same turn, that row keeps the longer payload: the
        turn regains it when the last of these rows is restored.
        """
        payloads = dict(content.given)
        others: list[Binned] = []
        for other in await self._journal.bin.holding(payloads):
            other_content = _load(other)
            shared = payloads.keys() & other_content.given.keys()
            if other.id == row.id or not shared:
                continue
            merged = dict(other_content.given)
            for turn in shared:
                merged[turn] = max(payloads.pop(turn), merged[turn], key=len)
            others.append(_with_content(other, replace(other_content, given=merged)))
        return payloads, others


def _erase(content: _Content, erased: Collection[str]) -> _Content | None:
    """Return a content without some ids and all that only they support.

    None when nothing is left of what was asked for.
    """
    plan = content.plan
    gone = set(erased)
    for record in content.rows.get("records", ()):  # a record and its source are one thing
        pair = {str(record["turn"]), str(record["node"])}
        if not pair.isdisjoint(gone):
            gone |= pair

    lost_payloads = {turn for turn, node in content.mentions if node in gone}
    ties = _ties(content)
    facts: list[Fact] = []
    for fact in content.facts:
        if not gone.isdisjoint((fact.uuid, fact.subject, fact.object)):
            lost_payloads.update(fact.episodes)
            continue
        episodes = supports_left(fact, ties.get(fact.uuid, {}), gone)
        if episodes or not fact.episodes:
            facts.append(replace(fact, episodes=episodes))
        else:
            lost_payloads.update(fact.episodes)

    rows = without_rows(content.rows, gone)
    for job in rows.get("jobs", ()):
        if job["turn"] in lost_payloads:
            job["payload"] = without_given(str(job["payload"]), str(job["state"]))
    mentions = tuple(pair for pair in content.mentions if gone.isdisjoint(pair))
    needed = {*plan.asked, *plan.stripped, *(node for _, node in mentions)}
    needed.update(end for fact in facts for end in (fact.subject, fact.object))
    needed -= gone
    nodes = tuple(node for node in content.nodes if node.uuid in needed)
    gone.update({*plan.facts} - {fact.uuid for fact in facts})
    gone.update({*plan.nodes} - {node.uuid for node in nodes})
    left = _without_ids(plan, gone)
    if not left.asked:
        return None

    lost_payloads |= gone
    texts = [f"{row['actor'] or row['role']}: {row['content']}" for row in rows.get("turns", ())]
    texts += [node.name for node in nodes]
    texts += [fact.text for fact in facts]
    remaining_text = "\n".join(texts)
    return replace(
        content,
        plan=left,
        nodes=nodes,
        facts=tuple(facts),
        episodes=tuple(episode for episode in content.episodes if episode.uuid not in gone),
        mentions=mentions,
        rows=rows,
        given={turn: text for turn, text in content.given.items() if turn not in lost_payloads},
        anchors=tuple((file, parts) for file, parts in content.anchors if file.slug not in gone),
        vectors={
            passage: vector
            for passage, vector in content.vectors.items()
            if passage in remaining_text
        },
    )


def _without_ids(plan: Plan, gone: Collection[str]) -> Plan:
    remaining: dict[str, tuple[str, ...]] = {}
    for field in fields(plan):
        ids: tuple[str, ...] = getattr(plan, field.name)
        remaining[field.name] = tuple(id_ for id_ in ids if id_ not in gone)
    return Plan(**remaining)


def _ties(content: _Content) -> dict[str, dict[str, frozenset[str]]]:
    """Return the ties of the facts of a content, as ``journal.tie_rows`` has them."""
    ties: dict[str, dict[str, frozenset[str]]] = {}
    for row in content.rows.get("fact_ties", ()):
        holders = ties.setdefault(str(row["fact"]), {})
        holder = str(row["holder"])
        holders[holder] = holders.get(holder, frozenset()) | {str(row["needs"])}
    return ties


def _with_content(row: Binned, content: _Content) -> Binned:
    """Return a row with a content and every id in it, by which ``Bin.holding`` finds the row."""
    plan = content.plan
    ids = [*plan.asked, *plan.turns, *plan.rows]
    ids += [node.uuid for node in content.nodes]
    ids += [fact.uuid for fact in content.facts]
    ids += content.given
    for tie in content.rows.get("fact_ties", ()):
        ids += (str(tie["holder"]), str(tie["needs"]))
    for source in content.rows.get(FEATURE_SOURCES, ()):
        ids += (str(source["row"]), str(source["item"]))
    for turn, node in content.mentions:
        ids += (turn, node)
    for fact in content.facts:
        ids += (fact.subject, fact.object, *fact.episodes)
    text = _CONTENT.dump_json(content).decode()
    return replace(row, asked=plan.asked, ids=tuple(dict.fromkeys(ids)), content=text)


def _load(row: Binned) -> _Content:
    return _CONTENT.validate_json(row.content)


def _encode_vector(vector: Vector) -> str:
    return base64.b64encode(np.asarray(vector, dtype=np.float32).tobytes()).decode()


def _decode_vector(encoded: str) -> Vector:
    return np.frombuffer(base64.b64decode(encoded), dtype=np.float32)
