"""Aliases that only forgotten turns gave: nodes that stay lose them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from pps.core.text import fold
from pps.core.values import Node, NodeDraft, Turn
from pps.ingest.rules import extract
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.entries import JobPayload, Reading, load_payload
from pps.journal.journal import Journal

_MOST_MENTIONS = 2_000
"""A node that more turns mention keeps its names: looking through them would hold everything up."""


async def without_lost_names(
    client: IsolatedGraphitiClient,
    journal: Journal,
    turns: Sequence[str],
    gone: Collection[str],
    dropped: Collection[str],
) -> list[Node]:
    """Return the nodes that lose aliases when turns are forgotten, in their new form.

    An alias stays if another turn gave it or has it in its text, or if no turn gave it.

    Args:
        client: The entity's client.
        journal: The entity's journal.
        turns: The turns to forget; they must still be stored.
        gone: Nodes that are forgotten too.
        dropped: Turns that stay without the nodes and facts that were given with them.
    """
    mentioned = await client.mentioned_nodes(turns)
    ids = {node for nodes in mentioned.values() for node in nodes}.difference(gone)
    nodes = [node for node in await client.nodes(sorted(ids)) if node.aliases]
    lost_names = await _given_names(journal, turns)
    candidates = [
        node for node in nodes if any(fold(alias) in lost_names for alias in node.aliases)
    ]
    if not candidates:
        return []
    mentions = await journal.mentioning([node.uuid for node in candidates], _MOST_MENTIONS)
    changed: list[Node] = []
    for node in candidates:
        if node.uuid not in mentions:
            continue
        others = [turn for turn in mentions[node.uuid] if turn not in turns]
        other_names = await _given_names(journal, [turn for turn in others if turn not in dropped])
        texts = [fold(turn.content) for turn in await journal.turns(others)]
        aliases = tuple(
            alias
            for alias in node.aliases
            if fold(alias) not in lost_names
            or fold(alias) in other_names
            or any(fold(alias) in text for text in texts)
        )
        if aliases != node.aliases:
            changed.append(replace(node, aliases=aliases))
    return changed


def with_names_back(current: Node, before: Node) -> Node:
    """Return a node with the aliases that it had before, beside those that it has."""
    known = {fold(name) for name in (current.name, *current.aliases)}
    back = [alias for alias in before.aliases if fold(alias) not in known]
    return replace(current, aliases=(*current.aliases, *back)) if back else current


async def _given_names(journal: Journal, turns: Sequence[str]) -> set[str]:
    """Return the folded aliases from some turns: given with them, read by rules or by a command."""
    payloads: Mapping[str, JobPayload] = {
        turn: load_payload(stored) for turn, stored in (await journal.bin.given(turns)).items()
    }
    names: set[str] = set()
    for turn in await journal.turns(list(payloads)):
        names.update(
            fold(alias) for draft in _drafts(turn, payloads[turn.uuid]) for alias in draft.aliases
        )
    return names


def _drafts(turn: Turn, payload: JobPayload) -> Iterable[NodeDraft]:
    yield from payload.nodes
    yield from (payload.read or Reading()).nodes
    if payload.extraction == "rules" or payload.rules_meanwhile:
        yield from extract(turn).nodes
