"""The start of a session: the entity's identity, the latest facts and the nodes in them."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from string import Template

from pps.config import shipped
from pps.core.errors import IsolationError, PPSError
from pps.core.recalled import Channel, Hit, Recall
from pps.core.user_files import open_regular
from pps.core.values import ChannelName, Fact, Node
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.journal.links import holds
from pps.recall.hits import text_of

MAX_IDENTITY_CHARS = 1_500
"""Most characters of an identity in a pack."""
_IDENTITY = "identity.md"
_TURNS_READ = 200


async def startup_recall(journal: Journal, client: IsolatedGraphitiClient, limit: int) -> Recall:
    """Return, by recency, the facts that the latest turns support and the nodes that these join.

    A channel that fails says so in ``error``; the other is still filled.

    Raises:
        IsolationError: A foreign row came back.
    """
    started = time.perf_counter()
    facts: list[Fact] = []

    async def read_latest_facts() -> Sequence[Fact]:
        facts.extend(await _latest_facts(journal, client, limit))
        return facts[:limit]

    async def read_ends() -> Sequence[Node]:
        nodes = dict.fromkeys(end for fact in facts for end in (fact.subject, fact.object))
        return await client.nodes(list(nodes)[:limit]) if nodes else ()

    channels: dict[ChannelName, Channel] = {"facts": await _channel("facts", read_latest_facts())}
    channels["nodes"] = await _channel("nodes", read_ends())
    return Recall("", "startup", channels, {"total": (time.perf_counter() - started) * 1000})


async def _channel(name: ChannelName, reading: Awaitable[Sequence[Fact | Node]]) -> Channel:
    try:
        return Channel(name, _hits_by_recency(await reading))
    except IsolationError:
        raise
    except PPSError as error:
        return Channel(name, error=f"{error.code}: {error.message}")


async def _latest_facts(journal: Journal, client: IsolatedGraphitiClient, limit: int) -> list[Fact]:
    """Return the facts of the latest turns that hold now, those of the latest turn first."""
    turns = [turn.uuid for turn in await journal.recent(_TURNS_READ)]
    supported = await journal.facts_supported_by(turns)
    ids = list(dict.fromkeys(fact for turn in turns for fact in supported.get(turn, ())))
    moment = journal.now()
    facts: list[Fact] = []
    for start in range(0, len(ids), 4 * limit):
        page = await client.facts(ids[start : start + 4 * limit])
        facts += [fact for fact in page if fact.kind == "fact" and holds(fact, moment)]
        if len(facts) >= limit:
            break
    return facts


def _hits_by_recency(items: Sequence[Fact | Node]) -> tuple[Hit, ...]:
    return tuple(
        Hit(item.uuid, 1 / rank, text_of(item), item, ranks={"recency": rank})
        for rank, item in enumerate(items, 1)
    )


def identity_of(folder: Path, name: str) -> str:
    """Return the text of ``identity.md``; empty if it is absent, a link, or still the template."""
    try:
        file = open_regular(folder / _IDENTITY, flags=os.O_NOFOLLOW)
    except OSError:
        return ""
    with file as opened:
        if os.fstat(opened.fileno()).st_nlink > 1:
            return ""
        text = opened.read(4 * MAX_IDENTITY_CHARS).decode("utf-8", "ignore").strip()
    template = (
        Template(shipped(f"entities/_template/{_IDENTITY}").read_text("utf-8"))
        .safe_substitute(name=name)
        .strip()
    )
    return "" if text == template else text
