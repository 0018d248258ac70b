"""Why a recall answers as it does: what became of each candidate, and why the one that was expected is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import is_uuid
from pps.core.recalled import Evidence, Recall
from pps.core.values import ChannelName, Fact, ItemKind, Node
from pps.journal.filters import ItemFilter
from pps.recall.hits import fetch, ranks_of, text_of
from pps.recall.profiles import ChannelProfile, said
from pps.recall.query import KINDS, Ask, Item, Scored

MOST = 50
"""Most candidates that are told of in each channel."""


@dataclass(frozen=True, slots=True)
class Trace:
    """How a channel was filled: what each perspective said, joined scores, scores after the factors, and the order.

    ``moved`` says why some stand before what has better scores.
    """

    profile: ChannelProfile
    limit: int
    said: Mapping[str, list[Scored]]
    joined: Mapping[str, float]
    scores: Mapping[str, float]
    order: tuple[str, ...]
    passed: tuple[str, ...]
    moved: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one candidate.

    Attributes:
        place: In the answer, from 1; None when it is not there.
        ranks: Its rank in each perspective that has it.
        joined: What the ranks, or the weighted signals, add up to.
        factor: What freshness, novelty and the like made of that: score is joined times factor.
        verdict: What became of it, in words.
    """

    id: str
    text: str
    ranks: Mapping[str, int]
    joined: float
    factor: float
    verdict: str
    place: int | None = None


@dataclass(frozen=True, slots=True)
class WhyChannel:
    """One channel: its perspectives with their weights, how many candidates there were, and the first 50 of them."""

    limit: int
    fusion: str
    weights: Mapping[str, float]
    found: int
    candidates: tuple[Told, ...]


@dataclass(frozen=True, slots=True)
class Why:
    """Why a recall answers as it does; ``expected`` says of the expected id where it is, or why it is not there."""

    query: str
    profile: str
    filters: tuple[str, ...]
    channels: Mapping[ChannelName, WhyChannel]
    expected: str = ""


async def explain(
    ask: Ask, recall: Recall, traces: Mapping[ChannelName, Trace], expect: str
) -> Why:
    """Return what became of the candidates of a recall that has just been answered.

    Args:
        ask: The recall's own.
        recall: Its answer.
        traces: How its channels were filled.
        expect: Id of an item that should be there; empty for none. That of another entity reads as absent.
    """
    channels: dict[ChannelName, WhyChannel] = {
        name: await _channel(ask, recall, name, trace, expect) for name, trace in traces.items()
    }
    told = [
        (name, one)
        for name, channel in channels.items()
        for one in channel.candidates
        if one.id == expect
    ]
    expected = "; ".join(f"{name}: {one.verdict}" for name, one in told)
    if expect and not expected:
        expected = await _absent(ask, recall, traces, expect)
    shown = tuple(f"{name}: {value}" for one in ask.filters for name, value in said(one).items())
    return Why(recall.query, recall.profile, shown, channels, expected)


async def _channel(
    ask: Ask, recall: Recall, name: ChannelName, trace: Trace, expect: str
) -> WhyChannel:
    hits = {hit.id.split("#")[0]: (place, hit.id) for place, hit in enumerate(recall[name], 1)}
    ids = [*trace.order, *trace.passed, *(one for one in trace.joined if one not in trace.scores)]
    wanted = [
        one for number, one in enumerate(ids) if number < MOST or one == expect or one in hits
    ]
    items, ranks = await fetch(ask, name, wanted), ranks_of(trace.said, set(wanted))
    superseded = {hit.id: hit.superseded_by for hit in recall[name] if hit.superseded_by}
    told: list[Told] = []
    for one in wanted:
        place, hit = hits.get(one, (None, ""))
        verdict = (
            _left_out(one, trace, items) if place is None else _kept(place, hit, recall.evidence)
        )
        moved = f", {trace.moved[one]}" if place is not None and one in trace.moved else ""
        if successor := superseded.get(hit):
            moved += f", {successor.mark()} [{successor.id}]"
        joined, score = trace.joined.get(one, 0.0), trace.scores.get(one, 0.0)
        factor = round(score / joined, 4) if score and joined else 1.0
        text = text_of(items[one])[:200] if one in items else ""
        told.append(
            Told(one, text, ranks.get(one, {}), round(joined, 6), factor, verdict + moved, place)
        )
    told.sort(key=lambda one: (one.place is None, one.place or 0))
    return WhyChannel(
        trace.limit, trace.profile.fusion, trace.profile.perspectives, len(ids), tuple(told)
    )


def _kept(place: int, hit: str, seen: Evidence | None) -> str:
    """Say what becomes of what has a place: a pack leaves out what the floor of its profile drops."""
    if seen is not None and hit not in seen.shown:
        return f"at place {place}, but below the floor: it has too little to do with what was asked; a pack leaves it out"
    beside = seen is not None and hit not in seen.clear
    return f"shown at place {place}" + (
        ", near only beside what is nearer: not in later packs of a session" * beside
    )


def _left_out(one: str, trace: Trace, there: Mapping[str, Item]) -> str:
    if one not in there:
        return "found, but it is gone, or it no longer holds: give as_of to ask for another time"
    if one in trace.passed:
        return "passed over: something above it says the same, or joins the same two"
    if one not in trace.order:
        return f"found, but too far down to be ordered: only the best {len(trace.scores)} are"
    rank = trace.order.index(one) + 1
    return f"rank {rank} of {len(trace.order)}: the limit of {trace.limit} cuts it; ask with a higher limit"


async def _absent(
    ask: Ask, recall: Recall, traces: Mapping[ChannelName, Trace], expect: str
) -> str:
    """Say why no channel has an id among its candidates; the first reason that holds."""
    kind = await _kind(ask, expect)
    if kind is None:
        return "nothing of this memory has that id: look it up with `recall` or `get`"
    channels: list[ChannelName] = [
        name for name in traces if KINDS[ask.collections(name)[0]] == kind
    ]
    if not traces:
        return f"profile {recall.profile!r} is Graphiti's own search, which gives no reasons"
    if not channels:
        return f"it is of the kind {kind}, and no channel that was asked for holds those: {', '.join(traces)}"
    if blocking := [
        one for filters in ask.filters for one in await _blocking(ask, kind, expect, filters)
    ]:
        return f"left out before ranking by the filter on {', '.join(dict.fromkeys(blocking))}"
    if kind == "fact":
        [fact] = await ask.sources.client.facts([expect])
        if fact.kind == "relation":
            return "it is a relation: those join nodes, and are not searched as facts"
        if not await fetch(ask, "facts", [expect]):
            return (
                "it no longer holds, and only what holds is asked for: give as_of for another time"
            )
    collections = [one for name in channels for one in ask.collections(name)]
    indexed = [await ask.sources.indexes.owners(one) for one in collections]
    if not any(expect in text or expect in (vectors or ()) for vectors, text in indexed):
        return "it is not in the indexes yet: wait for its job (`pps jobs show`), or `pps reindex`"
    return await _far(ask, traces[channels[0]], collections, expect)


async def _far(ask: Ask, trace: Trace, collections: Sequence[str], expect: str) -> str:
    depth = max((len(entries) for entries in trace.said.values()), default=0)
    words = [
        hit for one in collections for hit in await ask.matches_among(one, ask.words, {expect})
    ]
    like = [
        hit.score
        for one in (*collections, "records")
        for hit in await ask.similar_among(one, {expect})
    ]
    reasons = [
        "it shares words with the question"
        if words
        else "it shares no word with the question that tells much"
    ]
    if like:
        reasons.append(f"its nearness of meaning is {max(like):.2f} (1 is the same)")
    least = trace.profile.min_similarity
    if least is not None and like and max(like) < least:
        reasons.append(f"and the profile drops what is below {least}")
    return f"in no perspective among the first {depth}: {', '.join(reasons)}"


async def _kind(ask: Ask, expect: str) -> ItemKind | None:
    """Return what an id of this memory is; None for any other, whoever's it may be."""
    sources = ask.sources
    if not is_uuid(expect):
        try:
            return "anchor" if sources.anchors and await sources.anchors.passages(expect) else None
        except (InvalidRequest, NotFound):
            return None
    if await sources.journal.turns([expect]) or await sources.client.episodes([expect]):
        return "episode"
    found: list[Node] | list[Fact] = await sources.client.nodes(
        [expect]
    ) or await sources.client.facts([expect])
    return None if not found else "node" if isinstance(found[0], Node) else "fact"


async def _blocking(ask: Ask, kind: ItemKind, expect: str, filters: ItemFilter) -> list[str]:
    named = {name: replace(ItemFilter(), **{name: value}) for name, value in said(filters).items()}
    allowed = {name: await ask.sources.journal.allowed(kind, one) for name, one in named.items()}
    return [name for name, ids in allowed.items() if ids is not None and expect not in ids]
