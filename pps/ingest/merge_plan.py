"""What a merge of two nodes changes: pure values, kept as JSON with the merge."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from pps.core.reports import Merge, MergePlan
from pps.core.text import fold
from pps.core.time import iso, parse
from pps.core.values import Node
from pps.journal.merges import MergeRow


@dataclass(frozen=True, slots=True)
class Moves:
    """What a merge changes, by id: enough to do it again after a crash, and to undo it."""

    kept: Node
    gone: Node
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    mentions: tuple[str, ...]
    new_mentions: tuple[str, ...]
    communities: tuple[str, ...]
    new_communities: tuple[str, ...]
    record: bool

    def merged(self) -> Node:
        """Return the kept node as the merge makes it."""
        return merged(self.kept, self.gone)


def merged(kept: Node, gone: Node) -> Node:
    """Return what two nodes become: the first one's name, the names, tags and fields of both."""
    names = {fold(kept.name)}
    aliases: list[str] = []
    for name in (*kept.aliases, gone.name, *gone.aliases):
        if fold(name) not in names:
            names.add(fold(name))
            aliases.append(name)
    return replace(
        kept,
        kind=gone.kind if kept.kind == "Thing" else kept.kind,
        summary=kept.summary or gone.summary,
        aliases=tuple(aliases),
        tags=tuple(dict.fromkeys((*kept.tags, *gone.tags))),
        attributes={**gone.attributes, **kept.attributes},
    )


def unmerged(now_kept: Node, before: Node, gone: Node) -> Node:
    """Return the kept node without what the merge gave it; what it got since then stays."""
    after = merged(before, gone)
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


def plan_of(id_: str, moves: Moves) -> MergePlan:
    """Return what a merge does, to be shown; without an id it was not done."""
    after = moves.merged()
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
    """Return a merge of the journal, to be shown."""
    moves = load(row.change)
    return Merge(row.id, row.kept, moves.kept.name, row.gone, moves.gone.name, row.at, row.state)


def dump(moves: Moves) -> str:
    """Return the JSON of a merge's change."""
    return json.dumps(asdict(moves), ensure_ascii=False, default=iso)


def load(text: str) -> Moves:
    """Return the change that ``dump`` wrote."""
    data: dict[str, Any] = json.loads(text)
    return Moves(
        kept=_node(data["kept"]),
        gone=_node(data["gone"]),
        subjects=tuple(data["subjects"]),
        objects=tuple(data["objects"]),
        mentions=tuple(data["mentions"]),
        new_mentions=tuple(data["new_mentions"]),
        communities=tuple(data["communities"]),
        new_communities=tuple(data["new_communities"]),
        record=data["record"],
    )


def _node(data: dict[str, Any]) -> Node:
    return Node(
        uuid=data["uuid"],
        name=data["name"],
        created_at=parse(data["created_at"]),
        kind=data["kind"],
        summary=data["summary"],
        aliases=tuple(data["aliases"]),
        tags=tuple(data["tags"]),
        attributes=data["attributes"],
    )
