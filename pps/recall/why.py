"""Explanation of a recall: what became of each candidate and of an expected id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import is_uuid
from pps.core.recalled import Evidence, Recall
from pps.core.values import ChannelName, ItemKind
from pps.journal.filters import ItemFilter
from pps.recall.hits import fetch, ranks_of, text_of
from pps.recall.profiles import restrictions
from pps.recall.search import COLLECTION_KINDS, Item, Search, Trace

MAX_CANDIDATES = 50
"""Most candidates that are explained in each channel."""
_MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class WhyCandidate:
    """What became of one candidate.

    Attributes:
        ranks: Its rank in each perspective that has it.
        joined: Its fused score: the sum of ranks or of weighted signals.
        factor: Of freshness, novelty and the like: score is joined times factor.
        verdict: What became of it, in words.
        place: In the answer, from 1; None when it is not there.
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
    """One channel: its perspectives with their weights, the number of candidates, the first 50."""

    limit: int
    fusion: str
    weights: Mapping[str, float]
    found: int
    candidates: tuple[WhyCandidate, ...]


@dataclass(frozen=True, slots=True)
class Why:
    """Why a recall answers as it does; ``expected`` says where the expected id is, or why not."""

    query: str
    profile: str
    filters: tuple[str, ...]
    channels: Mapping[ChannelName, WhyChannel]
    expected: str = ""


async def explain(
    search: Search, recall: Recall, traces: Mapping[ChannelName, Trace], expect: str
) -> Why:
    """Return what became of the candidates of a recall that has just been answered.

    Args:
        search: The recall's own.
        recall: Its answer.
        traces: How its channels were filled.
        expect: Id of an item that should be there; empty for none. That of another entity reads as
            absent.
    """
    channels: dict[ChannelName, WhyChannel] = {}
    verdicts: list[str] = []
    for name, trace in traces.items():
        channels[name] = await _explain_channel(search, recall, name, trace, expect)
        candidates = channels[name].candidates
        verdicts += [f"{name}: {each.verdict}" for each in candidates if each.id == expect]
    expected = "; ".join(verdicts)
    if expect and not expected:
        expected = await _reason_absent(search, recall, traces, expect)
    filters = [
        f"{name}: {value}" for each in search.filters for name, value in restrictions(each).items()
    ]
    return Why(recall.query, recall.profile, tuple(filters), channels, expected)


async def _explain_channel(
    search: Search, recall: Recall, name: ChannelName, trace: Trace, expect: str
) -> WhyChannel:
    hits = {hit.id.split("#")[0]: (place, hit) for place, hit in enumerate(recall[name], 1)}
    unranked = [id_ for id_ in trace.fused if id_ not in trace.scores]
    ids = [*trace.order, *trace.duplicates, *unranked]
    explained = [
        id_
        for number, id_ in enumerate(ids)
        if number < MAX_CANDIDATES or id_ == expect or id_ in hits
    ]
    items = await fetch(search, name, explained)
    ranks = ranks_of(trace.lists, set(explained))
    candidates: list[WhyCandidate] = []
    for id_ in explained:
        place = None
        if id_ in hits:
            place, hit = hits[id_]
            verdict = _verdict_of_hit(place, hit.id, recall.evidence)
            if id_ in trace.moves:
                verdict += f", {trace.moves[id_]}"
            if hit.superseded_by:
                verdict += f", {hit.superseded_by.mark()} [{hit.superseded_by.id}]"
        else:
            verdict = _reason_left_out(id_, trace, items)
        fused = trace.fused.get(id_, 0.0)
        score = trace.scores.get(id_, 0.0)
        candidates.append(
            WhyCandidate(
                id=id_,
                text=text_of(items[id_])[:_MAX_TEXT] if id_ in items else "",
                ranks=ranks.get(id_, {}),
                joined=round(fused, 6),
                factor=round(score / fused, 4) if score and fused else 1.0,
                verdict=verdict,
                place=place,
            )
        )
    candidates.sort(key=lambda candidate: (candidate.place is None, candidate.place or 0))
    return WhyChannel(trace.limit, trace.fusion, trace.weights, len(ids), tuple(candidates))


def _verdict_of_hit(place: int, hit_id: str, evidence: Evidence | None) -> str:
    """Say what becomes of a hit: a pack leaves out what the floor of its profile drops."""
    if evidence is not None and hit_id not in evidence.shown:
        return (
            f"at place {place}, but below the floor: it has too little to do with what was asked; "
            "a pack leaves it out"
        )
    if evidence is not None and hit_id not in evidence.clear:
        return (
            f"shown at place {place}, near only beside what is nearer: not in later packs of a "
            "session"
        )
    return f"shown at place {place}"


def _reason_left_out(id_: str, trace: Trace, items: Mapping[str, Item]) -> str:
    if id_ not in items:
        return "found, but it is gone, or it no longer holds: give as_of to ask for another time"
    if id_ in trace.duplicates:
        return "passed over: something above it says the same, or joins the same two"
    if id_ not in trace.order:
        return f"found, but too far down to be ordered: only the best {len(trace.scores)} are"
    rank = trace.order.index(id_) + 1
    return (
        f"rank {rank} of {len(trace.order)}: the limit of {trace.limit} cuts it; ask with a higher "
        "limit"
    )


async def _reason_absent(
    search: Search, recall: Recall, traces: Mapping[ChannelName, Trace], expect: str
) -> str:
    """Say why no channel has an id among its candidates; the first reason that holds."""
    kind = await _kind_of(search, expect)
    if kind is None:
        return "nothing of this memory has that id: look it up with `recall` or `get`"
    if not traces:
        return f"profile {recall.profile!r} is Graphiti's own search, which gives no reasons"
    channels: list[ChannelName] = [
        name for name in traces if COLLECTION_KINDS[search.collections(name)[0]] == kind
    ]
    if not channels:
        return (
            f"it is of the kind {kind}, and no channel that was asked for holds those: "
            f"{', '.join(traces)}"
        )
    blocking: list[str] = []
    for filters in search.filters:
        blocking += await _blocking_fields(search, kind, expect, filters)
    if blocking:
        names = ", ".join(dict.fromkeys(blocking))
        return f"left out before ranking by the filter on {names}"
    if kind == "fact":
        [fact] = await search.sources.client.facts([expect])
        if fact.kind == "relation":
            return "it is a relation: those join nodes, and are not searched as facts"
        if not await fetch(search, "facts", [expect]):
            return (
                "it no longer holds, and only what holds is asked for: give as_of for another time"
            )
    collections = [collection for name in channels for collection in search.collections(name)]
    if not await _is_indexed(search, collections, expect):
        return "it is not in the indexes yet: wait for its job (`pps jobs show`), or `pps reindex`"
    return await _reason_far(search, traces[channels[0]], collections, expect)


async def _is_indexed(search: Search, collections: Sequence[str], expect: str) -> bool:
    for collection in collections:
        with_vectors, with_text = await search.sources.indexes.owners(collection)
        if expect in with_text or expect in (with_vectors or ()):
            return True
    return False


async def _reason_far(search: Search, trace: Trace, collections: Sequence[str], expect: str) -> str:
    """Say how far an indexed item is from the query, by words and by meaning."""
    depth = max((len(entries) for entries in trace.lists.values()), default=0)
    shares_words = False
    for collection in collections:
        if await search.text_matches_among(collection, search.words, {expect}):
            shares_words = True
    cosines: list[float] = []
    for collection in (*collections, "records"):
        entries = await search.vector_matches_among(collection, {expect})
        cosines += [entry.score for entry in entries]
    reasons = ["it shares no word with the question that tells much"]
    if shares_words:
        reasons = ["it shares words with the question"]
    if cosines:
        reasons.append(f"its nearness of meaning is {max(cosines):.2f} (1 is the same)")
    least = trace.min_similarity
    if least is not None and cosines and max(cosines) < least:
        reasons.append(f"and the profile drops what is below {least}")
    return f"in no perspective among the first {depth}: {', '.join(reasons)}"


async def _kind_of(search: Search, id_: str) -> ItemKind | None:
    """Return what an id of this memory is; None for any other, whoever's it may be."""
    sources = search.sources
    if not is_uuid(id_):
        try:
            has_passages = sources.anchors is not None and await sources.anchors.passages(id_)
        except (InvalidRequest, NotFound):
            return None
        return "anchor" if has_passages else None
    if await sources.journal.turns([id_]) or await sources.client.episodes([id_]):
        return "episode"
    if await sources.client.nodes([id_]):
        return "node"
    return "fact" if await sources.client.facts([id_]) else None


async def _blocking_fields(
    search: Search, kind: ItemKind, expect: str, filters: ItemFilter
) -> list[str]:
    """Return the fields of a filter that leave an id out."""
    blocking: list[str] = []
    for name, value in restrictions(filters).items():
        single = replace(ItemFilter(), **{name: value})
        allowed = await search.sources.journal.allowed(kind, single)
        if allowed is not None and expect not in allowed:
            blocking.append(name)
    return blocking
