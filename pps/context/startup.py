"""What an agent is given before anything was said: the latest facts and the nodes in them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pps.core.errors import IsolationError, PPSError
from pps.core.recalled import Channel, Hit, Recall
from pps.core.time import now
from pps.core.values import ChannelName, Fact, Node
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.recall.fetch import holds
from pps.recall.hits import text_of

_TURNS = 200


async def startup_recall(journal: Journal, client: IsolatedGraphitiClient, limit: int) -> Recall:
    """Return, by recency, the facts that the latest turns support and the nodes that these join.

    A channel that fails says so in ``error``; the other is still filled.

    Raises:
        IsolationError: A foreign row came back.
    """
    started = time.perf_counter()
    channels: dict[ChannelName, Channel] = {}
    facts: list[Fact] = []
    try:
        facts = await _latest_facts(journal, client, limit)
        channels["facts"] = Channel("facts", _hits(facts[:limit]))
    except IsolationError:
        raise
    except PPSError as error:
        channels["facts"] = Channel("facts", error=f"{error.code}: {error.message}")
    try:
        ends = dict.fromkeys(end for fact in facts for end in (fact.subject, fact.object))
        nodes = await client.nodes(list(ends)[:limit]) if ends else []
        channels["nodes"] = Channel("nodes", _hits(nodes))
    except IsolationError:
        raise
    except PPSError as error:
        channels["nodes"] = Channel("nodes", error=f"{error.code}: {error.message}")
    return Recall("", "startup", channels, {"total": (time.perf_counter() - started) * 1000})


async def _latest_facts(journal: Journal, client: IsolatedGraphitiClient, limit: int) -> list[Fact]:
    """Return the facts of the latest turns that hold now, those of the latest turn first."""
    turns = [turn.uuid for turn in await journal.recent(_TURNS)]
    supported = await journal.facts_supported_by(turns)
    ids = list(dict.fromkeys(fact for turn in turns for fact in supported.get(turn, ())))
    moment = now()
    facts: list[Fact] = []
    for start in range(0, len(ids), 4 * limit):
        page = await client.facts(ids[start : start + 4 * limit])
        facts += [fact for fact in page if fact.kind == "fact" and holds(fact, moment)]
        if len(facts) >= limit:
            break
    return facts


def _hits(items: Sequence[Fact | Node]) -> tuple[Hit, ...]:
    return tuple(
        Hit(item.uuid, 1 / rank, text_of(item), item, ranks={"recency": rank}) for rank, item in enumerate(items, 1)
    )
