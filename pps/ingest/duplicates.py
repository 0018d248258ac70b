"""Merge nodes that stand for one thing: proposed by name, shown in a dry run, undone exactly.

A merge is one transaction; its row in the journal lists all that it changes, so that it can be
undone. Facts keep their ids and texts; only their ends move.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import re
import unicodedata
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from pydantic import TypeAdapter

from pps.core.bounds import check_range
from pps.core.errors import InvalidRequest, NotFound, StoreConflict
from pps.core.ids import check_uuid, is_beginning, stable_id
from pps.core.reports import Duplicate, Merge, MergePlan
from pps.core.sql import Connection
from pps.core.text import fold
from pps.core.time import iso, now
from pps.core.values import Fact, Node
from pps.graph.graph_store import GraphChange
from pps.ingest.indexer import Indexer
from pps.ingest.worker import Worker
from pps.ingest.write_path import Pipeline
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.change_log import log_changes
from pps.journal.entries import Change
from pps.journal.journal import Journal
from pps.journal.merge_rows import MergeRow
from pps.journal.record_rows import move_record, repoint

_TITLES = {
    **dict.fromkeys(("dr", "dra", "prof", "professor", "doctor", "ing", "mag", "rev", "hon"), ""),
    **dict.fromkeys(("mr", "sir", "herr", "señor", "monsieur", "signor"), "he"),
    **dict.fromkeys(("mrs", "ms", "miss", "mme", "mlle", "frau", "señora", "signora"), "she"),
    "lady": "she",
}  # fmt: skip
"""Title → ``he`` or ``she`` if it tells: "Mr Ruiz" and "Mrs Ruiz" are two people."""
_COMPANY_FORMS = frozenset(
    (
        *("inc", "incorporated", "llc", "llp", "ltd", "limited", "corp", "corporation", "co"),
        *("company", "plc", "gmbh", "ag", "kg", "ug", "se", "sa", "sas", "sarl", "srl", "spa"),
        *("bv", "nv", "oy", "oyj", "ab", "as", "aps", "pty", "kk", "holdings"),
    )
)
_DEGREES = frozenset(("phd", "mba", "msc", "bsc", "dphil", "esq"))
"""Degrees after a person's name and a comma; not "MA" and "MD", which follow names of towns too."""
_AND = frozenset(("&", "and", "und", "et", "y"))
_MARKED = re.compile(r"(?<=[a-z])[\u0300-\u036f]+")
"""Marks on Latin letters: kana and Cyrillic letters with marks are letters of their own."""
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[\s._,-]+(?=\d)")
_SIGNS = re.compile(r"[\s._,'’‘`\"-]+")
_PARTS = re.compile(r"[^\s,]+")
_DIGIT_SEPARATOR = "\ue000"
"""Replaces signs between digits: 1.1 is not 11."""
_SHORTEST = 3


def name_key(name: str) -> tuple[str, str]:
    """Return a key of a name, and ``he``, ``she`` or "" according to its titles.

    Names with the same key are alike, unless both have a second part and these differ. A name that
    is too short to compare has an empty key.
    """
    plain = _MARKED.sub("", unicodedata.normalize("NFD", fold(name)))
    plain, person = _without_ending(unicodedata.normalize("NFC", plain))
    parts = _PARTS.findall(plain)
    while len(parts) > 1:
        title = _TITLES.get(parts[0].strip("."))
        if title is None:
            break
        person = person or title
        parts = parts[1:]
    has_form = False
    while len(parts) > 1:  # "GmbH & Co. KG": forms of a company, and signs that join two
        is_form = parts[-1].replace(".", "") in _COMPANY_FORMS
        if not is_form and not (has_form and parts[-1] in _AND):
            break
        parts = parts[:-1]
        has_form = True
    text = _BETWEEN_DIGITS.sub(_DIGIT_SEPARATOR, " ".join(parts))
    key = _SIGNS.sub("", text)
    letters = sum(char.isalnum() for char in key)
    return (key, person) if letters >= _SHORTEST else ("", "")


def _without_ending(name: str) -> tuple[str, str]:
    """Return a name without titles and degrees behind commas; and ``he``, ``she`` or ""."""
    person = ""
    while True:
        before, comma, ending = name.rpartition(",")
        word = ending.strip().replace(".", "")
        if not comma or not before.strip() or not (word in _DEGREES or word in _TITLES):
            return name, person
        name = before
        person = _TITLES.get(word, "") or person


def alike(names: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return pairs of ids whose names are alike but not the same, each in the order of ``names``.

    Args:
        names: (id, name) of every name; an id may have several.
    """
    by_key: dict[str, list[tuple[str, str, str]]] = {}
    for id_, name in names:
        key, person = name_key(name)
        if key:
            by_key.setdefault(key, []).append((id_, fold(name), person))
    pairs: dict[tuple[str, str], None] = {}
    for members in by_key.values():
        first_id, _, first_person = members[0]
        for id_, _, person in members[1:]:
            is_other_person = bool(person and first_person and person != first_person)
            if id_ != first_id and not is_other_person:
                pairs[first_id, id_] = None
    return list(pairs)


_ALL = 100_000
_QUIET_S = 30.0
_MOST_ALIKE = 5_000
_ALIKE = "the names differ only in titles, company forms, marks or signs"


@dataclass(frozen=True, slots=True)
class MergeMoves:
    """All that a merge changes, by id: enough to repeat and to undo it. Stored as JSON.

    Attributes:
        kept, gone: The two nodes before the merge.
        subjects, objects: Facts whose subject, or object, is the node that goes.
        mentions: Episodes that mention the node that goes.
        new_mentions: Those of them that do not mention the kept node already.
        record: Whether the node that goes has a source turn.
        typed: Whether the kept node is a record of a pack's kind: only names, facts and mentions
            are transferred to it.
    """

    kept: Node
    gone: Node
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    mentions: tuple[str, ...]
    new_mentions: tuple[str, ...]
    record: bool
    typed: bool = False


_MOVES = TypeAdapter(MergeMoves)


def merged(kept: Node, gone: Node, *, typed: bool = False) -> Node:
    """Return the merged node: the name of ``kept``, and the aliases, tags and fields of both.

    Of a ``typed`` node, a record of a pack's kind, only the aliases change.
    """
    names = {fold(kept.name)}
    aliases: list[str] = []
    for name in (*kept.aliases, gone.name, *gone.aliases):
        if fold(name) not in names:
            names.add(fold(name))
            aliases.append(name)
    if typed:
        return replace(kept, aliases=tuple(aliases))
    return replace(
        kept,
        kind=gone.kind if kept.kind == "Thing" else kept.kind,
        summary=kept.summary or gone.summary,
        aliases=tuple(aliases),
        tags=tuple(dict.fromkeys((*kept.tags, *gone.tags))),
        attributes={**gone.attributes, **kept.attributes},
    )


def unmerged(now_kept: Node, before: Node, gone: Node, *, typed: bool = False) -> Node:
    """Return the kept node without what the merge added; later additions stay."""
    after = merged(before, gone, typed=typed)
    if now_kept == after:
        return before
    added = {fold(name) for name in after.aliases} - {fold(name) for name in before.aliases}
    fields = {
        name: value
        for name, value in now_kept.attributes.items()
        if name in before.attributes or after.attributes.get(name) != value
    }
    return replace(
        now_kept,
        kind=before.kind if now_kept.kind == after.kind else now_kept.kind,
        summary=before.summary if now_kept.summary == after.summary else now_kept.summary,
        aliases=tuple(name for name in now_kept.aliases if fold(name) not in added),
        tags=tuple(tag for tag in now_kept.tags if tag in before.tags or tag not in after.tags),
        attributes=fields,
    )


def plan_of(id_: str, moves: MergeMoves) -> MergePlan:
    """Return the report of a merge; an empty id is a dry run."""
    after = merged(moves.kept, moves.gone, typed=moves.typed)
    return MergePlan(
        id=id_,
        keep=moves.kept.uuid,
        drop=moves.gone.uuid,
        name=after.name,
        kind=after.kind,
        aliases=after.aliases,
        tags=after.tags,
        facts=len({*moves.subjects, *moves.objects}),
        mentions=len(moves.mentions),
        dry_run=not id_,
    )


def merge_of(row: MergeRow) -> Merge:
    moves = load(row.change)
    return Merge(row.id, row.kept, moves.kept.name, row.gone, moves.gone.name, row.at, row.state)


def dump(moves: MergeMoves) -> str:
    return _MOVES.dump_json(moves).decode()


def load(text: str) -> MergeMoves:
    """Return the change that ``dump`` wrote."""
    return _MOVES.validate_json(text)


Check: TypeAlias = Callable[[Sequence[str]], Awaitable[None]]
"""Called with node ids; raises when one is a record that the actor may not write."""


class Merging:
    """Finds and merges duplicates among the nodes of one entity."""

    def __init__(
        self,
        client: IsolatedGraphitiClient,
        journal: Journal,
        indexer: Indexer,
        worker: Worker,
        pipeline: Pipeline,
        self_node: str,
    ) -> None:
        self._client = client
        self._journal = journal
        self._indexer = indexer
        self._self_node = self_node
        self._worker = worker
        self._pipeline = pipeline
        self._check: Check | None = None

    def checked(self, check: Check) -> Merging:
        """Return a copy that checks whether the actor may change the node that stays."""
        own: Merging = copy.copy(self)
        own._check = check
        return own

    async def duplicates(self, *, limit: int = 50) -> list[Duplicate]:
        """Return pairs of nodes that may be one thing; nothing is changed.

        Pairs with the same folded name come first, then those with a common alias, then those with
        alike names (``alike``) unless their kinds differ. Two records are never proposed: each has
        a text of its own.

        Args:
            limit: Most pairs, 1 to 1,000.
        """
        check_range("limit", limit, 1, 1_000)
        reasons: dict[tuple[str, str], str] = {}
        for pair in await self._journal.merges.same_names(limit):
            reasons[pair.first, pair.second] = (
                "an alias of one is a name of the other" if pair.by_alias else "the same name"
            )
        names = await self._journal.merges.all_names()
        by_writing = await asyncio.to_thread(alike, names)
        for first, second in by_writing[:_MOST_ALIKE]:
            if (second, first) not in reasons:
                reasons.setdefault((first, second), _ALIKE)
        ids = list(dict.fromkeys(uuid for pair in reasons for uuid in pair))
        nodes = {node.uuid: node for node in await self._client.nodes(ids)}
        records = await self._journal.records.of_nodes(ids)
        duplicates: list[Duplicate] = []
        for (first, second), why in reasons.items():
            both = [nodes[uuid] for uuid in (first, second) if uuid in nodes]
            if len(both) < 2 or all(node.uuid in records for node in both):
                continue
            kinds = {node.kind for node in both} - {"Thing", ""}
            if why == _ALIKE and len(kinds) > 1:
                continue
            keep, drop = sorted(
                both, key=lambda node: (node.uuid != self._self_node, node.uuid not in records)
            )
            duplicates.append(
                Duplicate(keep.uuid, keep.name, keep.kind, drop.uuid, drop.name, drop.kind, why)
            )
        return duplicates[:limit]

    async def merge(self, keep: str, drop: str, *, dry_run: bool = True) -> MergePlan:
        """Merge one node into another: transfer names, tags, fields, facts and mentions; delete it.

        Args:
            keep: Id of the node that stays.
            drop: Id of the node that goes.
            dry_run: Only report what the merge would do.

        Raises:
            NotFound: One of them is not this entity's node; nothing was changed.
            InvalidRequest: They are the same, both are records, or the one to drop is the entity's
                own node; or the one to keep is a record that the actor may not write.
            StoreConflict: The queue does not become empty in time; try again.
        """
        [keep] = await self._journal.whole([keep], path="keep")
        [drop] = await self._journal.whole([drop], path="drop")
        if keep == drop:
            raise InvalidRequest("drop", "must be another node than the one to keep")
        if drop == self._self_node:
            raise InvalidRequest("drop", "the entity's own node stays; keep that one")
        if self._check:
            await self._check([keep])
        if dry_run:
            return plan_of(
                "", await self._moves(check_uuid(keep, "keep"), check_uuid(drop, "drop"))
            )
        async with self._quiet():
            moves = await self._moves(check_uuid(keep, "keep"), check_uuid(drop, "drop"))
            at = now()
            id_ = stable_id(self._client.entity.group, "merge", keep, drop, iso(at))
            await self._apply(moves, MergeRow(id_, keep, drop, "applied", at, dump(moves)))
        return plan_of(id_, moves)

    async def merges(self, *, limit: int = 50) -> list[Merge]:
        """Return the latest merges, newest first, 1 to 1,000 of them."""
        check_range("limit", limit, 1, 1_000)
        return [merge_of(row) for row in await self._journal.merges.list(limit)]

    async def undo(self, merge: str) -> Merge:
        """Restore both nodes of a merge; what the kept node got since then stays with it.

        Raises:
            NotFound: This entity has no such merge.
            InvalidRequest: It is undone already, or its node was merged into another since: undo
                that merge first.
            StoreConflict: As ``merge``.
        """
        async with self._quiet():
            row = await self._journal.merges.get(
                merge if is_beginning(merge) else check_uuid(merge)
            )
            if row is None:
                raise NotFound("merge")
            if row.state == "undone":
                raise InvalidRequest("id", "is undone already")
            if self._check:
                await self._check([row.kept])
            if not await self._client.nodes([row.kept]):
                raise InvalidRequest(
                    "id", "its node was merged into another since; undo that merge first"
                )
            row = replace(row, state="undone")
            await self._take_back(load(row.change), row)
        return merge_of(row)

    async def resume(self) -> None:
        """Finish merges that an old PPS, which merged in several transactions, left unfinished."""
        for row in await self._journal.merges.unfinished():
            moves = load(row.change)
            if row.state == "applying":
                await self._apply(moves, replace(row, state="applied"))
            else:
                await self._take_back(moves, replace(row, state="undone"))

    @contextlib.asynccontextmanager
    async def _quiet(self) -> AsyncGenerator[None]:
        # An extraction command writes nothing itself, and its turns may wait long for others.
        quiet = self._worker.saved if self._worker.reader else self._worker.settled
        if not await quiet(_QUIET_S):
            raise StoreConflict(
                "texts are still being taken in; try again when `ingestion_stats` shows none"
            )
        async with self._worker.held():
            yield

    async def _moves(self, keep: str, drop: str) -> MergeMoves:
        nodes = {node.uuid: node for node in await self._client.nodes([keep, drop])}
        if len(nodes) != 2:
            raise NotFound()
        records = await self._journal.records.of_nodes([keep, drop])
        if len(records) == 2:
            raise InvalidRequest(
                "drop", "both are records with texts of their own; append one text to the other"
            )
        typed = await self._journal.records.read(lambda rows: rows.find([keep, drop]))
        if drop in typed:
            raise InvalidRequest(
                "drop", f"is a {typed[drop].kind}, a record of its own: keep it and drop the other"
            )
        facts = await self._client.facts_of_nodes([drop], _ALL)
        mentioned = await self._client.episodes_of_nodes([keep, drop])
        mentions = tuple(mentioned.get(drop, ()))
        mentions_of_kept = set(mentioned.get(keep, ()))
        return MergeMoves(
            kept=nodes[keep],
            gone=nodes[drop],
            subjects=tuple(fact.uuid for fact in facts if fact.subject == drop),
            objects=tuple(fact.uuid for fact in facts if fact.object == drop),
            mentions=mentions,
            new_mentions=tuple(turn for turn in mentions if turn not in mentions_of_kept),
            record=drop in records,
            typed=keep in typed,
        )

    async def _apply(self, moves: MergeMoves, row: MergeRow) -> None:
        kept = moves.kept.uuid
        gone = moves.gone.uuid
        facts = await self._facts_with_ends_at(kept, moves)
        change = GraphChange(
            nodes=[merged(moves.kept, moves.gone, typed=moves.typed)],
            facts=facts,
            mentions=[(turn, kept) for turn in await self._existing_episodes(moves.new_mentions)],
            gone_nodes=[gone],
        )
        await self._write(row, moves, change, partial(move_record, old=gone, new=kept))

    async def _take_back(self, moves: MergeMoves, row: MergeRow) -> None:
        kept = moves.kept.uuid
        gone = moves.gone.uuid
        nodes = [
            unmerged(node, moves.kept, moves.gone, typed=moves.typed)
            for node in await self._client.nodes([kept])
        ]
        facts = await self._facts_with_ends_at(gone, moves)
        change = GraphChange(
            nodes=[moves.gone, *nodes],
            facts=facts,
            parted=[(turn, kept) for turn in moves.new_mentions],
            mentions=[(turn, gone) for turn in await self._existing_episodes(moves.mentions)],
        )
        await self._write(row, moves, change, partial(move_record, old=kept, new=gone))

    async def _write(
        self,
        row: MergeRow,
        moves: MergeMoves,
        change: GraphChange,
        move: Callable[[Connection], None],
    ) -> None:
        """Write a merge, or its undoing, in one transaction.

        Relations and the record follow the facts to their new node; the slots of both nodes are
        settled.
        """
        to = row.kept if row.state == "applied" else row.gone
        facts = dict.fromkeys((*moves.subjects, *moves.objects))
        marks = [
            *(Change("node", uuid) for uuid in (moves.kept.uuid, moves.gone.uuid)),
            *(Change("fact", uuid) for uuid in facts),
        ]

        def before(db: Connection) -> None:
            log_changes(db, marks)
            repoint(db, moves.subjects, moves.objects, to)
            if moves.record:
                move(db)

        async with self._indexer.draining, self._journal.transaction():
            await self._journal.merges.put(row)
            await self._client.apply(change, before)
            settled = await self._pipeline.resettle(facts=[fact.uuid for fact in change.facts])
        self._journal.records.touch()
        await self._pipeline.keep_vectors(settled)
        await self._indexer.drain()

    async def _facts_with_ends_at(self, node: str, moves: MergeMoves) -> list[Fact]:
        """Return the existing facts of a merge, with their moved ends at ``node``."""
        subjects = set(moves.subjects)
        objects = set(moves.objects)
        ids = list(dict.fromkeys((*moves.subjects, *moves.objects)))
        return [
            replace(
                fact,
                subject=node if fact.uuid in subjects else fact.subject,
                object=node if fact.uuid in objects else fact.object,
            )
            for fact in await self._client.facts(ids)
        ]

    async def _existing_episodes(self, episodes: Sequence[str]) -> list[str]:
        if not episodes:
            return []
        return [episode.uuid for episode in await self._client.episodes(list(episodes))]
