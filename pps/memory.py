"""Memory: all that one entity can do, a verb a method. The public API of PPS."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from pps.context.ambient import LIMIT, Ambient, AmbientRequest, Sessions, SharedLines
from pps.context.fence import without_packs
from pps.context.overview import (
    MAX_LINE,
    MAX_LINES_GIVEN,
    MAX_WAITING,
    HealthLine,
    Holdings,
    Overview,
    Waiting,
    current_record,
    failed_turn,
    read_latest,
)
from pps.context.provided_topics import ProvidedTopics
from pps.core.bounds import check_keywords, check_range, check_tags
from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import EntityId, check_actor
from pps.core.kinds import Kinds
from pps.core.recalled import Hit, Pack, Recall
from pps.core.record_values import RecordQuery
from pps.core.reports import Forgotten, Health, Ledger, Stats, TimelinePage
from pps.core.text import one_line
from pps.core.values import (
    ChannelName,
    Episode,
    Fact,
    Node,
    Receipt,
    RetractionDraft,
    Turn,
)
from pps.entities.last_proof import Proof
from pps.index.indexes import EntityIndexes, Index
from pps.ingest.anchors import (
    Anchor,
    AnchorInfo,
    Anchors,
    AnchorVersion,
    ImportReport,
    ResyncReport,
)
from pps.ingest.budget import Costs
from pps.ingest.correcting import FactCorrector
from pps.ingest.documents import Documents
from pps.ingest.drafts import (
    Automatic,
    Intake,
    RememberOptions,
    accepted,
    finished,
    make_draft,
    time_and_offset,
)
from pps.ingest.exporting import Exporter
from pps.ingest.feature_listening import MemoryFeatures
from pps.ingest.forget import Forgetter, Forgetting, Manner
from pps.ingest.indexer import Indexer, Progress
from pps.ingest.ingestion import Jobs
from pps.ingest.ledger import Bookkeeper
from pps.ingest.mentions import MentionFinder
from pps.ingest.redact import KeyedRedactor
from pps.ingest.transcripts import Capture
from pps.ingest.worker import Worker
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal import JobPayload, TurnDraft
from pps.journal.entries import Job
from pps.journal.feature_tables import FeatureTables
from pps.journal.journal import Journal
from pps.recall.engine import RecallEngine
from pps.recall.explore import Walks, timeline_page
from pps.recall.request import RecallOptions, RecallRequest, TimelineOptions, known_by, make_request
from pps.recall.superseding import Superseding
from pps.recall.why import Why
from pps.records.asks import Asks
from pps.records.finding import RecordFinder
from pps.records.records import Records
from pps.records.session import Layers
from pps.records.undoing import Undoing

if TYPE_CHECKING:
    from pps.features.topics.portfolio import Topics

READ_OWN_WRITES_S = 0.05
_REBUILD_S = 86_400.0
_CORRECTED_S = 10.0
"""How long a correction waits to be taken in before it answers ``accepted``."""
_MOST_MERGES_COUNTED = 50
NOT_YET_FOUND = (
    "what was stored just now is not yet indexed and may be missing; ask again in a moment"
)
"""Note of a recall that waited ``READ_OWN_WRITES_S`` for turns that were acknowledged before it, and no longer."""
Item = Node | Fact | Episode | Turn


@dataclass(frozen=True, slots=True)
class Parts:
    """What a memory is made of; put together in ``app``."""

    entity: EntityId
    store: str
    self_node: str
    kinds: Kinds
    layers: Layers
    extraction: Literal["given", "rules", "command", "model"]
    redactor: Callable[[], KeyedRedactor]
    automatic: Automatic
    records: Records
    asks: Asks
    costs: Costs
    budget_tokens: int
    journal: Journal
    client: IsolatedGraphitiClient
    indexes: EntityIndexes
    indexer: Indexer
    worker: Worker
    intake: Intake
    jobs: Jobs
    bookkeeper: Bookkeeper
    anchors: Anchors
    engine: RecallEngine
    topics: ProvidedTopics
    features: MemoryFeatures
    hooks_leave_out: frozenset[ChannelName]
    proof: Callable[[], Proof | None]
    forgetter: Forgetter
    closing: contextlib.AsyncExitStack
    notes: tuple[str, ...] = ()
    shared: SharedLines | None = None


class Memory:
    """One entity's memory. Every method stays inside the entity; none takes a group or a name.

    Errors beside those named: StoreUnavailable (safe to retry), IsolationError (never expected).
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = (
            parts  # for who measures what a memory stands on; a write there goes round the checks
        )
        self._actor = ""
        self._noting: dict[asyncio.Task[None], str] = {}
        """What writes down what a session was shown, after the answer → the session."""
        journal = parts.journal
        told = self.remember_many
        hooks = parts.topics.in_hooks
        export = partial(Exporter, parts.client, journal, parts.self_node)
        self._documents = Documents(
            told, journal, parts.forgetter, parts.worker, export, self._identifier
        )
        self._sessions = Sessions(
            self._pack,
            Capture(journal, told, self._identifier, self._ended),
            journal,
            parts.client,
            hooks,
            parts.hooks_leave_out,
        )

    def by(self, actor: str) -> Memory:
        """Return the same memory for an actor: what is written with it is theirs.

        Empty is the person.
        """
        bound: Memory = copy.copy(self)
        bound._actor = check_actor(actor)
        return bound

    @property
    def entity(self) -> EntityId:
        """Whose memory this is."""
        return self.parts.entity

    @property
    def zone(self) -> tzinfo:
        """The entity's time zone: a time that is given without one is there, and "yesterday" is a day there."""
        return self.parts.journal.zone

    @property
    def kinds(self) -> Kinds:
        """What its packs say of the kinds of records."""
        return self.parts.kinds

    @property
    def layers(self) -> Layers:
        """What sessions begin with, and how full the days are."""
        return self.parts.layers

    @property
    def graph(self) -> Walks:
        """The graph's joints: what is next to a node, and how two are joined."""
        parts = self.parts
        return Walks(parts.client, parts.journal, self.superseding, parts.self_node)

    @property
    def superseding(self) -> Superseding:
        """What finds the statements that took the place of others."""
        parts = self.parts
        return Superseding(
            parts.client, parts.journal, parts.indexes, parts.engine.sources.embedder
        )

    @property
    def jobs(self) -> Jobs:
        """What became of the turns that were acknowledged, and what can be done about those that failed."""
        return self.parts.jobs

    @property
    def costs(self) -> Costs:
        """What reading by a language model took, and its budget."""
        return self.parts.costs

    @property
    def records(self) -> Records:
        """Records of packs' kinds, and titled texts with tags, parents and relations.

        Their versions and duplicates.
        """
        return self.parts.records.by(self._actor)

    @property
    def finding(self) -> RecordFinder:
        """Records by meaning; how the indexes are that they are found by."""
        return RecordFinder(
            self.recall, self.kinds, self.parts.journal, self.parts.indexes, self.parts.indexer
        )

    @property
    def asks(self) -> Asks:
        """Ranks of records, named queries along their relations, and everything page by page."""
        return self.parts.asks

    @property
    def last_proof(self) -> Proof | None:
        """What the last proof of isolation on this installation came to; None when none was run."""
        return self.parts.proof()

    @property
    def topics(self) -> Topics:
        """What the memory is about, and how that changes.

        NotFound while the feature ``topics`` is off.
        """
        return self.parts.topics.current()

    def tables(self, feature: str) -> FeatureTables:
        """Return the tables of a feature, by its name, for the feature itself.

        NotFound unless it is on.
        """
        return self.parts.features.tables(feature)

    @property
    def forgetting(self) -> Forgetting:
        """What was softly forgotten, and how to have it back."""
        return Forgetting(
            self.parts.forgetter, self._actor, self.records.check_write, self.parts.redactor
        )

    @property
    def correcting(self) -> FactCorrector:
        """Corrections of facts by their ids."""
        parts = self.parts
        mentions = MentionFinder(parts.client, parts.journal, parts.anchors)
        return FactCorrector(parts.client, parts.journal, mentions, self._keep_correction)

    @property
    def undoing(self) -> Undoing:
        """What was corrected, forgotten and edited, and how to undo it."""
        parts = self.parts
        return Undoing(parts.journal, parts.anchors, self.forgetting, self.records, self._actor)

    @property
    def documents(self) -> Documents:
        """Other programs' files to import, and folders of Markdown to follow."""
        return self._documents

    @property
    def sessions(self) -> Sessions:
        """What coding agents' hooks ask and tell."""
        return self._sessions

    async def remember(
        self,
        content: str,
        *,
        wait: Literal["done", "journal"] = "done",
        timeout_s: float | None = None,
        **options: Unpack[RememberOptions],
    ) -> Receipt:
        """Keep a text for good, with the nodes and facts in it.

        ``accepted`` and ``done`` both survive a crash.

        Args:
            content: 1 to 65,536 characters.
            wait: ``journal`` answers when it is on disk; ``done`` when graph and indexes have it.
            timeout_s: Past it a ``done`` wait answers ``accepted``; the work goes on.
            options: See RememberOptions.

        Raises:
            InvalidRequest: A bound is broken; nothing was changed.
            Overloaded: Too much waits to be taken in; nothing was changed, and it is safe to try
                again.
        """
        check_keywords("remember", options, RememberOptions)
        started = clock.perf_counter()
        draft, payload, redacted = await self._draft(content, options)
        appended = await self.parts.intake.append(draft, payload)
        receipt = accepted(appended, redacted)
        if wait == "done" and (job := await self.parts.worker.ended(receipt.job_id, timeout_s)):
            receipt = finished(receipt, job)
        if appended.duplicate and receipt.state != "failed":
            receipt = replace(receipt, state="duplicate")
        return replace(receipt, duration_ms=(clock.perf_counter() - started) * 1000)

    async def remember_many(self, items: Sequence[tuple[str, RememberOptions]]) -> list[Receipt]:
        """Keep many texts in one transaction, all or none.

        ``settled`` waits until graph and indexes have them.
        """
        for _, options in items:
            check_keywords("remember_many", options, RememberOptions)
        started = clock.perf_counter()
        drafts = [await self._draft(content, options) for content, options in items]
        appended = await self.parts.intake.append_many(
            [(draft, payload) for draft, payload, _ in drafts]
        )
        took_ms = (clock.perf_counter() - started) * 1000
        pairs = zip(appended, drafts, strict=True)
        return [
            replace(accepted(receipt, redacted), duration_ms=took_ms)
            for receipt, (_, _, redacted) in pairs
        ]

    async def settled(self, timeout_s: float = 3600.0) -> bool:
        """Wait until all that was acknowledged is in graph and indexes, and is noted.

        False when time ran out.
        """
        await asyncio.gather(*self._noting)
        return await self.parts.worker.settled(timeout_s)

    async def recall(self, query: str, **options: Unpack[RecallOptions]) -> Recall:
        """Return what the entity knows that best answers the query: one list a channel, best first, length 0..limit.

        Args:
            query: Free text, 1 to 8,000 characters; longer text is condensed before it is asked.
            options: See RecallOptions.

        Raises:
            InvalidRequest: A bound is broken or the profile is unknown; NotFound: ``center`` is no node of this entity.
        """
        check_keywords("recall", options, RecallOptions)
        return await self._recalled(make_request(query, options, self.zone))

    async def why(self, query: str, expect: str = "", **options: Unpack[RecallOptions]) -> Why:
        """Return what became of each candidate of a recall, and why the id ``expect`` is not in it; as ``recall``."""
        check_keywords("why", options, RecallOptions)
        return await self.parts.engine.why(
            known_by(make_request(query, options, self.zone), self._identifier), expect
        )

    async def ambient_recall(
        self,
        context: str,
        *,
        limit_per_layer: int = LIMIT,
        session: str | None = None,
        mode: Literal["turn", "startup", "preview"] = "turn",
        budget_tokens: int | None = None,
    ) -> Pack:
        """Return the pack for one turn of a conversation: sections of nodes, facts, anchors, turns, summaries.

        Args:
            context: What is being talked about; may be empty at start-up.
            limit_per_layer: Most items a section, 1 to 50; what is not near the context is not shown.
            session: What it was shown is not shown again.
            mode: ``startup`` goes by recency, ``turn`` by the context. ``preview`` is what ``turn`` would give; it
                counts as given to nobody.
            budget_tokens: 100 to 100,000; the setting's when None. The text never exceeds it.
        """
        budget = self.parts.budget_tokens if budget_tokens is None else budget_tokens
        is_preview = mode == "preview"
        request = AmbientRequest(
            context, budget, limit_per_layer, session, "turn" if mode == "preview" else mode
        )
        return await self._pack(request, is_noted=not is_preview)

    async def timeline(self, **options: Unpack[TimelineOptions]) -> TimelinePage:
        """Return facts in order of world time, undated last, a page at a time.

        NotFound if ``id`` names nothing.
        """
        check_keywords("timeline", options, TimelineOptions)
        parts = self.parts
        return await timeline_page(parts.client, parts.journal, self.superseding, options)

    async def get(self, ids: Sequence[str]) -> list[Item]:
        """Return turns, facts, nodes and episodes, in order: by uuid, by 8 or more first characters of it, or by title.

        A title is that of a record, else the name or an alias of a node.

        Raises:
            InvalidRequest: No id, more than 200, or the beginning or title of more than one.
            NotFound: One of them is not this entity's.
        """
        check_range("ids", len(ids), 1, 200)
        wanted = await self.parts.journal.whole(ids)
        client = self.parts.client
        journal = self.parts.journal
        reads = (client.episodes, journal.turns, client.facts, client.nodes)
        items: dict[str, Item] = {item.uuid: item for read in reads for item in await read(wanted)}
        if len(items) != len(set(wanted)):
            raise NotFound()
        return [items[id_] for id_ in wanted]

    async def forget(
        self, ids: Sequence[str], *, dry_run: bool = True, **how: Unpack[Manner]
    ) -> Forgotten:
        """Remove turns, facts, nodes (by id, as ``get``) and anchors (slugs), with what only they supported.

        Args:
            ids: 1 to 500 of this entity's; of what was softly forgotten too, unless it is to be so now. In a dry run
                names of nodes too.
            dry_run: True only says what would go.
            how: See Manner; for good, unless it says ``soft``.

        Raises:
            NotFound: One of them is not this entity's; nothing was changed.
            StoreConflict: A text is being taken in and it does not end; nothing was changed, try again.
        """
        return await self.forgetting.forget(ids, dry_run=dry_run, **how)

    async def anchor_save(
        self,
        title: str,
        text: str,
        *,
        slug: str | None = None,
        tags: Sequence[str] = (),
        expected: str = "",
    ) -> AnchorInfo:
        """Write an anchor's Markdown file and index it.

        A slug that exists is replaced (if it has that digest).
        """
        return await self.parts.anchors.save(
            title,
            text,
            slug=slug,
            tags=check_tags(tags),
            expected=expected,
            actor=self._actor,
        )

    async def anchor_versions(self, slug: str) -> list[AnchorVersion]:
        """Return what an anchor was and is, oldest first.

        NotFound when there is none of that slug.
        """
        return await self.parts.anchors.versions(slug)

    async def anchor_revert(self, slug: str, version: int) -> AnchorInfo:
        """Let an anchor be what it was in one of its versions, which makes a new version.

        Raises:
            NotFound: There is no such anchor; InvalidRequest: It has no such version.
        """
        return await self.parts.anchors.revert(slug, version, actor=self._actor)

    async def anchor_search(self, query: str, *, limit: int = 10) -> tuple[Hit, ...]:
        """Return the passages of anchors that best answer the query; one an anchor."""
        request = make_request(query, {"channels": ("anchors",), "limit": limit})
        return (await self.parts.engine.recall(request))["anchors"]

    async def anchor_list(self) -> list[AnchorInfo]:
        """Return the anchors by slug."""
        return await self.parts.anchors.list()

    async def anchor_read(self, slug: str) -> Anchor:
        """Return an anchor whole; NotFound when there is none of that slug."""
        return await self.parts.anchors.read(slug)

    async def anchor_delete(self, slug: str) -> None:
        """Delete an anchor's file and its index entries; NotFound when there is none."""
        await self.parts.anchors.delete(slug)

    async def anchor_resync(self) -> ResyncReport:
        """Index what changed in the anchors' folder and drop what is gone."""
        return await self.parts.anchors.resync()

    async def anchor_import(self, folder: Path) -> ImportReport:
        """Copy the Markdown files of a folder into the anchors.

        What is there already is left as it is.
        """
        return await self.parts.anchors.import_folder(folder)

    async def stats(self) -> Stats:
        """Return how much this memory holds."""
        return await self.parts.bookkeeper.stats(
            self.parts.store, len(await self.parts.anchors.list())
        )

    async def overview(self) -> Overview:
        """Return what a person sees first: who it is, what matters now, what changed, what waits, how it is.

        Every list is bounded; the whole answer is at most some 60,000 characters.
        """
        parts = self.parts
        latest = await read_latest(parts.journal, parts.client, parts.self_node, self.entity.name)
        jobs, failed, given = await asyncio.gather(
            parts.jobs.stats(),
            parts.jobs.list("failed", limit=MAX_WAITING),
            self.sessions.given_today(MAX_LINES_GIVEN),
        )
        proposed, changed, stats, health = await asyncio.gather(
            self.records.merging.duplicates(limit=_MOST_MERGES_COUNTED),
            self.records.list(RecordQuery(order=("-updated_at",), limit=MAX_WAITING)),
            self.stats(),
            self.health(),
        )
        return Overview(
            identity=latest.identity,
            own_node=parts.self_node,
            holds=Holdings(stats.turns, stats.nodes, stats.facts, stats.anchors),
            nodes=latest.nodes,
            changes=latest.changes,
            conversations=latest.conversations,
            records=tuple(map(current_record, changed.records)),
            given=given,
            waiting=Waiting(
                jobs.failed,
                tuple(map(failed_turn, failed)),
                len(proposed),
                tuple(proposed[:MAX_WAITING]),
            ),
            health=HealthLine(
                health.ok,
                len(health.problems),
                one_line(next(iter(health.problems), ""), MAX_LINE),
                jobs.queued + jobs.running,
            ),
        )

    async def health(self) -> Health:
        """Return whether this memory can do its work, and what to do when it cannot."""
        problems = [
            *await self.parts.jobs.problems(),
            *await self.parts.indexer.records.problems(self.entity.name),
            *self.parts.engine.problems,
            *self.parts.features.problems,
        ]
        if (publisher := self.parts.indexer.publisher) is not None:
            problems += (await publisher.state()).problems()
        clock = await self.forgetting.look_at_clock()
        problems += filter(None, [clock.problem])
        drifted = await self.parts.indexer.drift.notes(self.entity.name)
        notes = (
            *self.parts.notes,
            *await self.parts.jobs.notes(),
            *drifted,
            *filter(None, [clock.note]),
        )
        return Health(not problems, tuple(problems), notes, self.parts.worker.outage)

    async def ledger(self) -> Ledger:
        """Compare journal, graph and indexes by their ids.

        Return what differs and what mends it.
        """
        return await self.parts.bookkeeper.ledger()

    async def reindex(
        self, progress: Progress | None = None, which: Index = "all"
    ) -> dict[str, int]:
        """Rebuild fields, text and vectors, or one index, from journal, graph and anchors.

        Return documents by kind.
        """
        async with self.parts.worker.held():
            await self.records.index_fields()
            if which == "fields":
                return {"fields": await self.parts.journal.vector_states.fields()}
            counts = await self.parts.indexer.rebuild(progress, which)
        self.parts.worker.notify()  # token states follow
        return counts

    async def reembed(self, progress: Progress | None = None) -> dict[str, int]:
        """Embed every node, fact, turn and anchor anew.

        Only for a memory that was opened for it.
        """
        async with self.parts.worker.held():
            return await self.parts.indexer.reembed(progress)

    async def rebuild(self, progress: Progress | None = None) -> dict[str, int]:
        """Wait until a graph that was begun anew has what the journal says, then rebuild the indexes as ``reindex``."""
        await self.parts.worker.saved(_REBUILD_S)
        return await self.reindex(progress)

    async def pending(self) -> bool:
        """Tell whether acknowledged turns or index entries are not done yet."""
        return bool(await self.parts.journal.unfinished() or await self.parts.indexer.lag())

    async def close(self) -> None:
        """Give back files and threads; jobs in hand go on at the next start."""
        await asyncio.gather(*self._noting, return_exceptions=True)
        await self.parts.closing.aclose()

    async def _draft(
        self, content: str, options: RememberOptions
    ) -> tuple[TurnDraft, JobPayload, int]:
        """Return what the journal keeps, without secrets and packs of this memory, and how many secrets there were."""
        journal = self.parts.journal
        said_at, _ = time_and_offset(options.get("occurred_at"), journal.zone, "occurred_at")
        kept = await without_packs(content, journal, said_at)
        if content.strip() and not kept.strip():
            raise InvalidRequest(
                "content",
                "holds nothing but what this memory recalled; there is nothing new to keep",
            )
        self.kinds.check_nodes(options.get("nodes", ()))
        redactor = self.parts.redactor()
        return *make_draft(
            kept,
            options,
            self.parts.extraction,
            redactor,
            self.parts.automatic,
            journal.zone,
        ), redactor.count

    async def _keep_correction(
        self, content: str, options: RememberOptions, retractions: tuple[RetractionDraft, ...]
    ) -> tuple[str, Job | None]:
        """Keep a turn that corrects facts; return its id, and its job when that ended in time."""
        if self._actor:
            options = {**options, "actor": self._actor}
        draft, payload, _ = await self._draft(content, options)
        appended = await self.parts.intake.append(draft, replace(payload, retractions=retractions))
        return appended.turn.uuid, await self.parts.worker.ended(appended.job_id, _CORRECTED_S)

    def _ended(self) -> None:
        self.parts.worker.read_now()
        self.parts.topics.begin()

    def _identifier(self, given: str) -> str:
        return self.parts.redactor().identifier(given)

    async def _recalled(self, request: RecallRequest) -> Recall:
        # A worker that has not looked yet, in a memory that was opened just now, has nothing to do
        # more often than not.
        is_behind = (
            not await self.parts.worker.saved(READ_OWN_WRITES_S)
            and await self.parts.journal.queue.due_at("save") is not None
        )
        recalled = await self.parts.engine.recall(known_by(request, self._identifier))
        return replace(recalled, notes=(*recalled.notes, NOT_YET_FOUND)) if is_behind else recalled

    async def _pack(self, request: AmbientRequest, *, is_noted: bool = True) -> Pack:
        parts = self.parts
        session = self._identifier(request.session or "")
        earlier = [
            task for task, shown_to in self._noting.items() if session and shown_to == session
        ]
        if earlier:  # what was shown a moment ago is not shown again
            await asyncio.wait(earlier)
        name = self.entity.name
        ambient = Ambient(
            name,
            parts.journal,
            parts.client,
            parts.layers.lines,
            parts.topics.about,
            parts.jobs.facts_hint,
            self.superseding,
            parts.shared,
        )
        pack = await ambient.pack(replace(request, session=session or None), self._recalled)
        if not is_noted:
            return pack
        noting = parts.journal.given.record_if_room(
            session, request.mode, pack.tokens if pack.sections else 0, pack.shown
        )
        task = asyncio.create_task(noting)  # after the answer; ``close`` waits for it
        self._noting[task] = session
        task.add_done_callback(self._noting.pop)
        return pack
