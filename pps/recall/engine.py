"""The recall engine: one query, the channels of a profile filled side by side, never merged."""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pps.core.errors import ConfigError, InvalidRequest, IsolationError, PPSError
from pps.core.ids import check_uuid
from pps.core.recalled import NOTHING_NEAR, Channel, Evidence, Hit, Recall
from pps.core.time_reading import names_time
from pps.core.values import ChannelName, Episode, Fact, Node
from pps.isolation.graphiti_search import GraphFilters
from pps.journal.filters import ItemFilter
from pps.recall.channel import fill
from pps.recall.channel_profile import ChannelProfile
from pps.recall.floor import evidence, is_readable, measure, prepare, scale_of
from pps.recall.hits import fetch, make_hits, with_relationships
from pps.recall.named_time import named_time
from pps.recall.own_statements import own_statements
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.perspectives.retrievers import DATED_COLLECTIONS
from pps.recall.profiles import Profile, Profiles
from pps.recall.question import Kind, ask_kind, kind_of, routes_of
from pps.recall.request import RecallRequest
from pps.recall.search import Item, Search, Sources
from pps.recall.superseding import current_first, prepare_later_turns
from pps.recall.why import Why, explain

NOTHING_THEN = "nothing here is of that time ({time}): these are the nearest to it"
_PROFILE_OF_KIND: dict[Kind, str] = {
    "factual": "facts",
    "navigational": "nodes",
    "contextual": "contextual",
}
"""Kind of query → the profile that answers it if the caller leaves that open (S2-06)."""
SIGNALS: Mapping[str, str] = {
    "vector": "dense",
    "text": "bm25",
    "full_text": "bm25",
    "graph": "near_center",
    "tags": "tags",
    "recency": "recency",
}
"""A caller's name for a signal → the perspective."""
_TIME_ALONE: Mapping[str, object] = {
    "perspectives": {"when": 1.0},
    "routing": {},
    "fusion": "rrf",
    "led": False,
    "latest": False,
    "freshness": False,
    "mmr": None,
    "substance": None,
    "assistant": 1.0,
    "speaker": 1.0,
    "standing": 1.0,
}
"""Changes to a channel's profile if the query names a time and nothing else."""
_PARTS_TIMED = ("embed", "retrieve", "fetch", "rerank")


class RecallEngine:
    """Answers queries from one entity's memory."""

    def __init__(self, sources: Sources, profiles: Profiles) -> None:
        self.sources = sources
        self._profiles = profiles

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with the user's own profiles, one line each; each is refused alone."""
        try:
            mistakes = self._profiles.mistakes()
        except ConfigError as error:
            return (f"the profiles cannot be read again: {error.message}",)
        return tuple(f"a profile is refused: {mistake}" for mistake in mistakes)

    async def recall(self, request: RecallRequest) -> Recall:
        """Return one list a channel of the profile, best first.

        ``took_ms`` has ``embed``, ``retrieve``, ``fetch``, ``rerank`` (each that of the slowest
        channel, since channels run side by side) and ``total``.

        Raises:
            ConfigError: The profile's file is new and has a mistake.
            InvalidRequest: The profile is misspelt, does not fill a channel that was asked for,
                allows no limit as high, or has no perspective of a weight's name.
            NotFound: ``center`` is not a node of this entity.
            IsolationError: A foreign row came back; nothing is returned.
        """
        _, recall = await self._search(request, trace=False)
        return recall

    async def why(self, request: RecallRequest, expect: str) -> Why:
        """Recall, and return what became of each candidate and of the expected id.

        As ``recall``.
        """
        [expect] = await self.sources.journal.whole([expect], strict=False, path="expect")
        search, recall = await self._search(request, trace=True)
        return await explain(search, recall, search.traces or {}, expect)

    async def _search(self, request: RecallRequest, *, trace: bool) -> tuple[Search, Recall]:
        started = clock.perf_counter()
        request, profile = await self._prepared(request)
        search = Search(self.sources, request)
        search.traces = {} if trace else None
        search.add_filter(profile.filters)
        await search.correct_names()
        seen: Evidence | None = None
        time_note = ""
        own: Mapping[str, tuple[Hit, ...]] = {}
        try:
            if request.channels == "auto":
                profile = self._profile(request, await profile_for(search))
                search.add_filter(profile.filters)
            if profile.recipe:
                channels = await recipe_channels(search, profile.recipe)
            else:
                channels = await _fill_channels(search, profile)
            if profile.floor:
                own = await _own_statements(search)
            (channels, own, unread_note), _ = await asyncio.gather(
                _put_current_first(search, channels, own, profile),
                _measure(search, channels, profile),
            )
            if not profile.recipe:
                seen = await _judge(search, channels, profile)
                time_note = await _time_note(search, channels)
            if request.include_relationships:
                for name, channel in channels.items():
                    with search.timed("fetch", name):
                        hits = await with_relationships(search, channel.hits)
                    channels[name] = replace(channel, hits=hits)
        finally:
            await search.close()
        took_ms = {part: search.took_s(part) * 1000 for part in _PARTS_TIMED}
        took_ms["total"] = (clock.perf_counter() - started) * 1000
        has_failed = any(channel.error for channel in channels.values())
        is_nothing_near = seen is not None and seen.level == "nothing" and not has_failed
        notes = (NOTHING_NEAR if is_nothing_near else "", time_note, unread_note)
        return search, Recall(
            request.query,
            profile.name,
            channels,
            took_ms,
            seen if profile.floor else None,
            tuple(note for note in notes if note),
            own,
        )

    async def _prepared(self, request: RecallRequest) -> tuple[RecallRequest, Profile]:
        """Return the request, its limit and centre checked, and its profile."""
        if request.profile not in self._profiles:
            await asyncio.to_thread(self._profiles.look_for, request.profile)
        if request.is_usual:
            most = self._profiles.get(request.profile).max_limit
            request = replace(request, limit=min(request.limit, most))
        profile = self._profile(request, request.profile)
        if request.center:
            [center] = await self.sources.journal.whole([request.center], path="center")
            await self.sources.client.nodes([check_uuid(center, "center")], strict=True)
            request = replace(request, center=center)
        return request, profile

    def _profile(self, request: RecallRequest, name: str) -> Profile:
        profile = self._profiles.get(name)
        if request.limit > profile.max_limit:
            raise InvalidRequest(
                "limit", f"must be 1 to {profile.max_limit} with profile {profile.name!r}"
            )
        return profile


async def profile_for(search: Search) -> str:
    """Return the name of the profile that answers this kind of query."""
    nodes = await fetch(search, "nodes", await search.named_nodes())
    names: list[str] = []
    for node in nodes.values():
        if isinstance(node, Node):
            names += [node.name, *node.aliases]
    return _PROFILE_OF_KIND[kind_of(search.request.query, names)]


# ---- Weights of the channels ----


def tuned(
    channels: Mapping[ChannelName, ChannelProfile], request: RecallRequest
) -> Mapping[ChannelName, ChannelProfile]:
    """Return channels with the request's weights and threshold.

    The profile itself is never changed.

    Raises:
        InvalidRequest: A weight is of no perspective, or a channel is left with none that finds
            anything.
    """
    for name in request.weights:
        if name not in PERSPECTIVES and name not in SIGNALS:
            known = ", ".join(dict.fromkeys((*SIGNALS, *PERSPECTIVES)))
            raise InvalidRequest("weights", f"has no {name!r} to weigh; there are {known}")
    if not request.weights and request.min_similarity is None:
        return channels
    return {name: _tuned(name, channel, request) for name, channel in channels.items()}


def _tuned(name: ChannelName, channel: ChannelProfile, request: RecallRequest) -> ChannelProfile:
    requested = {SIGNALS.get(signal, signal): weight for signal, weight in request.weights.items()}
    weights = {**channel.perspectives, **requested}
    finds = any(weight > 0 and PERSPECTIVES[each].finds for each, weight in weights.items())
    # If the caller asks for it, a perspective that only orders may be all that counts.
    if not finds and not any(requested.values()):
        signals = [signal for signal, each in SIGNALS.items() if each in channel.perspectives]
        raise InvalidRequest(
            "weights",
            f"leave nothing that finds or orders {name}; give one above 0, such as "
            f"{', '.join(signals) or 'vector'}",
        )
    least = request.min_similarity
    if least is None:
        least = channel.min_similarity
    return channel.model_copy(update={"perspectives": weights, "min_similarity": least})


async def _for_this_query(
    search: Search, channels: Mapping[ChannelName, ChannelProfile]
) -> Mapping[ChannelName, ChannelProfile]:
    """Return channels with the weights for this kind of query and for the installed models."""
    if search.sources.colbert is None:
        channels = {name: channel.without_colbert() for name, channel in channels.items()}
    if any(channel.kinds for channel in channels.values()):
        kind = ask_kind(search.text)
        channels = {name: channel.of_kind(kind) for name, channel in channels.items()}
    if not any(channel.routing for channel in channels.values()):
        return channels
    misspelt: Sequence[str] = ()
    if any("misspelt" in channel.routing for channel in channels.values()):
        misspelt = await search.misspelt_words()
    routes = routes_of(search.text, await search.meant_nodes(), misspelt)
    routed: dict[ChannelName, ChannelProfile] = {}
    for name, channel in channels.items():
        routed[name] = channel
        for route, weights in channel.routing.items():
            if route in routes:
                routed[name] = routed[name].with_weights(weights)
    return routed


async def _by_time_alone(
    search: Search, channels: Mapping[ChannelName, ChannelProfile]
) -> Mapping[ChannelName, ChannelProfile]:
    """Return channels that go by time alone if the query names a time and nothing else.

    A gate: no word, no meaning and no property of a turn lifts what lies outside the time. Only a
    channel that goes by time at all (``when``) is changed.
    """
    if not any(channel.perspectives.get("when") for channel in channels.values()):
        return channels
    if await named_time(search) is None:
        return channels
    changed: dict[ChannelName, ChannelProfile] = {}
    for name, channel in channels.items():
        goes_by_time = name in DATED_COLLECTIONS and bool(channel.perspectives.get("when"))
        changed[name] = channel.model_copy(update=_TIME_ALONE) if goes_by_time else channel
    return changed


def _wanted_channels(
    request: RecallRequest, profile: Profile
) -> Mapping[ChannelName, ChannelProfile]:
    if request.channels is None or request.channels == "auto":
        wanted: dict[ChannelName, ChannelProfile] = {
            name: channel
            for name, channel in profile.channels.items()
            if name not in request.leave_out
        }
        return wanted or profile.channels
    missing = [name for name in request.channels if name not in profile.channels]
    if missing:
        raise InvalidRequest(
            "channels",
            f"profile {profile.name!r} fills {', '.join(profile.channels)}, not "
            f"{', '.join(missing)}",
        )
    return {name: profile.channels[name] for name in dict.fromkeys(request.channels)}


# ---- The steps of a recall ----


async def _fill_channels(search: Search, profile: Profile) -> dict[ChannelName, Channel]:
    """Fill the wanted channels side by side.

    A channel that fails has an error, never an empty list.
    """
    request = search.request
    wanted = _wanted_channels(request, profile)
    if _surely_needs_vector(search, wanted):
        search.begin(search.query_vector())  # first: it takes longest
    search.begin(prepare(search, wanted, everywhere=profile.floor))
    search.begin(prepare_later_turns(search, wanted))
    if profile.floor:
        search.begin(_own_statements(search))
    wanted = await _for_this_query(search, wanted)
    wanted = tuned(await _by_time_alone(search, wanted), request)
    outcomes = await asyncio.gather(
        *(
            fill(
                search,
                name,
                channel,
                profile.limit_of(name, request.limit, is_usual=request.is_usual),
            )
            for name, channel in wanted.items()
        ),
        return_exceptions=True,
    )
    channels: dict[ChannelName, Channel] = {}
    for name, outcome in zip(wanted, outcomes, strict=True):
        if isinstance(outcome, PPSError) and not isinstance(outcome, IsolationError):
            channels[name] = Channel(name, error=f"{outcome.code}: {outcome.message}")
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            channels[name] = outcome
    return channels


async def _own_statements(search: Search) -> Mapping[str, tuple[Hit, ...]]:
    """Return the person's own statements for a prompt; none if they cannot be read."""

    async def read() -> Mapping[str, tuple[Hit, ...]]:
        scale = await scale_of(search) if is_readable(search) else None
        return await own_statements(search, search.kind, scale)

    try:
        return await search.once("own statements", read)
    except IsolationError:
        raise
    except PPSError:  # the channels have answered, and say what is unavailable
        return {}


async def _put_current_first(
    search: Search,
    channels: dict[ChannelName, Channel],
    own: Mapping[str, tuple[Hit, ...]],
    profile: Profile,
) -> tuple[dict[ChannelName, Channel], Mapping[str, tuple[Hit, ...]], str]:
    """Return channels and own statements with superseded hits marked, and a note if that failed."""
    try:
        with search.timed("fetch", "superseded"):
            channels, own = await current_first(search, channels, own, profile)
    except IsolationError:
        raise
    except PPSError as error:  # the channels have answered, and say what is unavailable
        return channels, own, f"what is superseded could not be looked up: {error.message}"
    return channels, own, ""


async def _measure(
    search: Search, channels: Mapping[ChannelName, Channel], profile: Profile
) -> None:
    """Measure the hits for ``_judge``, which meets what fails here again."""
    if profile.recipe or not _goes_by_meaning(profile, channels):
        return
    try:
        await measure(search, channels, everywhere=profile.floor)
    except IsolationError:
        raise
    except PPSError:
        return


def _surely_needs_vector(search: Search, channels: Mapping[ChannelName, ChannelProfile]) -> bool:
    """Tell whether the query's vector is needed, whatever the query turns out to name.

    The request's weights may leave no list by meaning, and so may a time (``_by_time_alone``).
    """
    if search.request.weights or names_time(search.text):
        return False
    return any(channel.goes_by_meaning for channel in channels.values())


def _goes_by_meaning(profile: Profile, channels: Iterable[ChannelName]) -> bool:
    return any(profile.channels[name].goes_by_meaning for name in channels)


async def _judge(
    search: Search, channels: Mapping[ChannelName, Channel], profile: Profile
) -> Evidence | None:
    """Return which hits have to do with the query; None if that cannot be judged.

    Hits inside the time that the query is about alone have to do with it. Words decide where the
    embedder fails, and where no channel goes by meaning: then the query needs no vector.
    """
    inside_time = await _hits_inside_time(search, channels)
    if inside_time:
        return Evidence("much", inside_time, inside_time)
    for by_meaning in (True, False) if _goes_by_meaning(profile, channels) else (False,):
        try:
            return await evidence(search, channels, profile, by_meaning=by_meaning)
        except IsolationError:
            raise
        except PPSError:  # the channels have answered, and say what is unavailable
            continue
    return None


async def _hits_inside_time(
    search: Search, channels: Mapping[ChannelName, Channel]
) -> frozenset[str]:
    """Return the ids of the hits inside the time that the query is about alone."""
    time = await named_time(search)
    if time is None or not time.inside:
        return frozenset()
    inside = {*time.turns, *time.facts}
    ids = {hit.id for channel in channels.values() for hit in channel.hits}
    return frozenset(ids & inside)


async def _time_note(search: Search, channels: Mapping[ChannelName, Channel]) -> str:
    """Return a note if nothing lies in the time that the query is about alone; else empty."""
    time = await named_time(search)
    if time is None or time.inside or not any(channel.hits for channel in channels.values()):
        return ""
    return NOTHING_THEN.format(time=time.words)


# ---- Graphiti's own recipes ----


async def recipe_channels(search: Search, recipe: str) -> dict[ChannelName, Channel]:
    """Return the channels of one of Graphiti's recipes.

    The centre is the entity's own node unless the request has one.

    Raises:
        InvalidRequest: A filter is set that Graphiti's search does not know.
        NotFound: The centre is not this entity's.
    """
    result = await search.sources.client.search(
        search.text,
        recipe=recipe,
        limit=search.request.limit,
        center=search.center(),
        filters=_graph_filters(search.request.filters),
        as_of=search.request.as_of,
    )
    lists: dict[ChannelName, Sequence[tuple[Node | Fact | Episode, float]]] = {
        "nodes": result.nodes,
        "facts": result.facts,
        "episodes": result.episodes,
    }
    only = {"EDGE": "facts", "NODE": "nodes"}.get(recipe.split("_")[0])
    channels: dict[ChannelName, Channel] = {}
    for name, entries in lists.items():
        if not entries and only not in (None, name):
            continue
        items: dict[str, Item] = {item.uuid: item for item, _ in entries}
        scores = {item.uuid: score for item, score in entries}
        hits = await make_hits(search, items, scores, {})
        channels[name] = Channel(name, hits, notes=result.notes)
    return channels


def _graph_filters(filters: ItemFilter) -> GraphFilters | None:
    unknown_to_graphiti = (
        filters.tags,
        filters.sources,
        filters.sessions,
        filters.roles,
        filters.layers,
        filters.statuses,
    )
    if any(unknown_to_graphiti):
        raise InvalidRequest(
            "filters", "Graphiti's recipes know kinds, relations, since and until only"
        )
    if filters == ItemFilter():
        return None
    return GraphFilters(
        kinds=filters.kinds, relations=filters.relations, valid=(filters.since, filters.until)
    )
