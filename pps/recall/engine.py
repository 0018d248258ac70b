"""The recall engine: one question, the channels of a profile side by side, never merged."""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pps.core.errors import ConfigError, InvalidRequest, IsolationError, PPSError
from pps.core.ids import check_uuid
from pps.core.phrases import NOTHING_NEAR
from pps.core.recalled import Channel, Evidence, Hit, Recall
from pps.core.values import ChannelName, Episode, Fact, Node
from pps.isolation.graphiti_search import GraphFilters
from pps.journal.filters import ItemFilter
from pps.recall.channel import Lists, fill
from pps.recall.current_first import current_first
from pps.recall.floor import evidence, is_readable, scale_of
from pps.recall.hits import fetch, make_hits, with_relationships
from pps.recall.lane import own_statements
from pps.recall.named_time import named_time
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.perspectives.finders import DATED
from pps.recall.profiles import ChannelProfile, Profile, Profiles
from pps.recall.query import Ask, Sources
from pps.recall.question import Kind, ask_kind, kind_of, routes_of
from pps.recall.request import RecallRequest
from pps.recall.why import Why, explain

NOTHING_THEN = "nothing here is of that time ({time}): these are the nearest to it"
ROUTES: dict[Kind, str] = {"factual": "facts", "navigational": "nodes", "contextual": "contextual"}
"""Kind of query → the profile that answers it: facts; nodes; facts by how many episodes mention them (S2-06)."""
SIGNALS: Mapping[str, str] = {
    "vector": "dense",
    "text": "bm25",
    "full_text": "bm25",
    "graph": "near_center",
    "tags": "tags",
    "recency": "recency",
}
"""What a person calls a signal, and the perspective that it is."""


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
"""What a channel's profile says where the query names a time and nothing else."""


class RecallEngine:
    """Answers questions from one entity's memory."""

    def __init__(self, sources: Sources, profiles: Profiles) -> None:
        self.sources = sources
        self._profiles = profiles

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with profiles of the user's own, one line each; each of them alone is refused."""
        try:
            mistakes = self._profiles.mistakes()
        except ConfigError as error:
            return (f"the profiles cannot be read again: {error.message}",)
        return tuple(f"a profile is refused: {what}" for what in mistakes)

    async def recall(self, request: RecallRequest) -> Recall:
        """Return one list a channel of the profile, best first.

        ``took_ms`` has ``embed``, ``retrieve``, ``fetch``, ``rerank`` (each that of the slowest channel, since
        channels run side by side) and ``total``.

        Raises:
            ConfigError: The profile's file is new and says what no profile can.
            InvalidRequest: The profile is misspelt, does not fill a channel that was asked for, allows no limit as
                high, or has no perspective of a weight's name.
            NotFound: ``center`` is not a node of this entity.
            IsolationError: A foreign row came back; nothing is returned.
        """
        return (await self._recalled(request, why=False))[1]

    async def why(self, request: RecallRequest, expect: str) -> Why:
        """Recall, and return what became of each candidate and why ``expect``, an id, is not there; as ``recall``."""
        [expect] = await self.sources.journal.whole([expect], strict=False, path="expect")
        ask, recall = await self._recalled(request, why=True)
        return await explain(ask, recall, ask.traces or {}, expect)

    async def _recalled(self, request: RecallRequest, *, why: bool) -> tuple[Ask, Recall]:
        started = clock.perf_counter()
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
        ask = Ask(self.sources, request)
        ask.traces = {} if why else None
        ask.narrow(profile.filters)
        await ask.respell()
        seen: Evidence | None = None
        by_time_note = ""
        own: Mapping[str, tuple[Hit, ...]] = {}
        try:
            if request.channels == "auto":
                profile = self._profile(request, await routed(ask))
                ask.narrow(profile.filters)
            channels = await (
                recipe_channels(ask, profile.recipe) if profile.recipe else _filled(ask, profile)
            )
            if profile.floor:
                own = await _own(ask)
            channels, own, unread = await _current_first(ask, channels, own, profile)
            if not profile.recipe:
                seen = await _evidence(ask, channels, profile)
                by_time_note = await _time_note(ask, channels)
            if request.include_relationships:
                for name, one in channels.items():
                    with ask.timed("fetch", name):
                        channels[name] = replace(one, hits=await with_relationships(ask, one.hits))
        finally:
            await ask.close()
        took = {part: ask.took_s(part) * 1000 for part in ("embed", "retrieve", "fetch", "rerank")}
        took["total"] = (clock.perf_counter() - started) * 1000
        failed = any(channel.error for channel in channels.values())
        nothing_near = seen is not None and seen.level == "nothing" and not failed
        noted = (NOTHING_NEAR if nothing_near else "", by_time_note, unread)
        notes = tuple(note for note in noted if note)
        return ask, Recall(
            request.query,
            profile.name,
            channels,
            took,
            seen if profile.floor else None,
            notes,
            own,
        )

    def _profile(self, request: RecallRequest, name: str) -> Profile:
        profile = self._profiles.get(name)
        if request.limit > profile.max_limit:
            raise InvalidRequest(
                "limit", f"must be 1 to {profile.max_limit} with profile {profile.name!r}"
            )
        return profile


async def routed(ask: Ask) -> str:
    """Return the name of the profile that answers this kind of query, where the caller leaves that open."""
    nodes = (await fetch(ask, "nodes", await ask.named())).values()
    names = [
        name for node in nodes if isinstance(node, Node) for name in (node.name, *node.aliases)
    ]
    return ROUTES[kind_of(ask.request.query, names)]


def tuned(
    channels: Mapping[ChannelName, ChannelProfile], request: RecallRequest
) -> Mapping[ChannelName, ChannelProfile]:
    """Return channels with the request's weights and threshold; the profile itself is never changed.

    Raises:
        InvalidRequest: A weight is for nothing that there is, or leaves a channel with none that finds anything.
    """
    if misspelt := [
        name for name in request.weights if name not in PERSPECTIVES and name not in SIGNALS
    ]:
        there = ", ".join(dict.fromkeys((*SIGNALS, *PERSPECTIVES)))
        raise InvalidRequest("weights", f"has no {misspelt[0]!r} to weigh; there are {there}")
    if not request.weights and request.min_similarity is None:
        return channels
    return {name: _tuned(name, channel, request) for name, channel in channels.items()}


def _tuned(name: ChannelName, channel: ChannelProfile, request: RecallRequest) -> ChannelProfile:
    given = {SIGNALS.get(one, one): weight for one, weight in request.weights.items()}
    weights = {**channel.perspectives, **given}
    finds = any(
        weight > 0 and PERSPECTIVES[one].find is not None for one, weight in weights.items()
    )
    if not finds and not any(
        given.values()
    ):  # what only orders may be all that counts, where it is asked for
        said = ", ".join(named for named, one in SIGNALS.items() if one in channel.perspectives)
        raise InvalidRequest(
            "weights",
            f"leave nothing that finds or orders {name}; give one above 0, such as {said or 'vector'}",
        )
    least = channel.min_similarity if request.min_similarity is None else request.min_similarity
    return channel.model_copy(update={"perspectives": weights, "min_similarity": least})


async def _filled(ask: Ask, profile: Profile) -> dict[ChannelName, Channel]:
    """Fill the wanted channels side by side; what keeps one from being filled is its error, never an empty list."""
    routed_channels = await _routed(ask, _wanted(ask.request, profile))
    by_time = await _by_time_alone(ask, routed_channels)
    wanted = tuned(by_time, ask.request)
    request = ask.request
    limits = [profile.limit_of(name, request.limit, is_usual=request.is_usual) for name in wanted]
    results = await asyncio.gather(
        *(
            fill(ask, name, channel, limit)
            for (name, channel), limit in zip(wanted.items(), limits, strict=True)
        ),
        return_exceptions=True,
    )
    channels: dict[ChannelName, Channel] = {}
    for name, result in zip(wanted, results, strict=True):
        if isinstance(result, PPSError) and not isinstance(result, IsolationError):
            channels[name] = Channel(name, error=f"{result.code}: {result.message}")
        elif isinstance(result, BaseException):
            raise result
        else:
            channels[name] = result
    return channels


async def _routed(
    ask: Ask, channels: Mapping[ChannelName, ChannelProfile]
) -> Mapping[ChannelName, ChannelProfile]:
    """Return channels with the weights that they have for this kind of query, and for the models that are there."""
    if ask.sources.colbert is None:
        channels = {name: channel.without_colbert() for name, channel in channels.items()}
    if any(channel.kinds for channel in channels.values()):
        kind = ask_kind(ask.text)
        channels = {name: channel.of_kind(kind) for name, channel in channels.items()}
    if not any(channel.routing for channel in channels.values()):
        return channels
    needs_misspelt = any("misspelt" in channel.routing for channel in channels.values())
    misspelt = await ask.misspelt_words() if needs_misspelt else ()
    kinds = routes_of(ask.text, await ask.meant(), misspelt)
    found: dict[ChannelName, ChannelProfile] = {}
    for name, channel in channels.items():
        raised = [weights for kind, weights in channel.routing.items() if kind in kinds]
        weights = {
            **channel.perspectives,
            **{one: weight for each in raised for one, weight in each.items()},
        }
        found[name] = channel.model_copy(update={"perspectives": weights})
    return found


async def _by_time_alone(
    ask: Ask, channels: Mapping[ChannelName, ChannelProfile]
) -> Mapping[ChannelName, ChannelProfile]:
    """Return channels with nothing but the time to go by, where that is all that the query names.

    A gate: no word, no meaning and no property of a turn lifts what lies outside the time. Only a channel that goes by
    time at all (``when``) is changed.
    """
    if not any(channel.perspectives.get("when") for channel in channels.values()):
        return channels
    if await named_time(ask) is None:
        return channels
    return {
        name: channel.model_copy(update=_TIME_ALONE)
        if name in DATED and channel.perspectives.get("when")
        else channel
        for name, channel in channels.items()
    }


def _wanted(request: RecallRequest, profile: Profile) -> Mapping[ChannelName, ChannelProfile]:
    asked = request.channels
    if asked is None or asked == "auto":
        kept: dict[ChannelName, ChannelProfile] = {
            name: channel
            for name, channel in profile.channels.items()
            if name not in request.leave_out
        }
        return kept or profile.channels
    if missing := [name for name in asked if name not in profile.channels]:
        raise InvalidRequest(
            "channels",
            f"profile {profile.name!r} fills {', '.join(profile.channels)}, not {', '.join(missing)}",
        )
    return {name: profile.channels[name] for name in dict.fromkeys(asked)}


async def _current_first(
    ask: Ask,
    channels: dict[ChannelName, Channel],
    own: Mapping[str, tuple[Hit, ...]],
    profile: Profile,
) -> tuple[dict[ChannelName, Channel], Mapping[str, tuple[Hit, ...]], str]:
    """Return the channels with what is superseded marked, and a note where that could not be looked up."""
    try:
        with ask.timed("fetch", "superseded"):
            return *await current_first(ask, channels, own, profile), ""
    except IsolationError:
        raise
    except PPSError as error:  # the channels have answered, and say what is away
        return channels, own, f"what is superseded could not be looked up: {error.message}"


async def _evidence(
    ask: Ask, channels: Mapping[ChannelName, Channel], profile: Profile
) -> Evidence | None:
    """Return what of the answer has to do with the text; by words where meaning fails, None where those do too.

    What lies in the time that the text is about alone has to do with it, whatever it says.
    """
    if by_time := await _hits_by_time(ask, channels):
        return Evidence("much", by_time, by_time)
    for by_meaning in (True, False):
        try:
            return await evidence(ask, channels, profile, by_meaning=by_meaning)
        except IsolationError:
            raise
        except PPSError:  # the channels have answered, and say what is away
            continue
    return None


async def _hits_by_time(ask: Ask, channels: Mapping[ChannelName, Channel]) -> frozenset[str]:
    """Return the ids of the hits that lie in the time that the query is about alone; none for any other query."""
    time = await named_time(ask)
    if time is None or not time.inside:
        return frozenset()
    within = {*time.turns, *time.facts}
    return frozenset(
        hit.id for channel in channels.values() for hit in channel.hits if hit.id in within
    )


async def _time_note(ask: Ask, channels: Mapping[ChannelName, Channel]) -> str:
    """Return what a reader should know where nothing lies in the time that the query is about; empty else."""
    time = await named_time(ask)
    if time is None or time.inside or not any(channel.hits for channel in channels.values()):
        return ""
    return NOTHING_THEN.format(time=time.words)


async def _own(ask: Ask) -> Mapping[str, tuple[Hit, ...]]:
    """Return the person's own statements for a prompt; none where they cannot be looked for."""
    try:
        scale = await scale_of(ask) if is_readable(ask) else None
        return await own_statements(ask, ask.kind, scale)
    except IsolationError:
        raise
    except PPSError:  # the channels have answered, and say what is away
        return {}


async def recipe_channels(ask: Ask, recipe: str) -> dict[ChannelName, Channel]:
    """Return what a recipe of Graphiti's finds; the centre is the entity's own node unless one is given.

    Raises:
        InvalidRequest: A filter is set that Graphiti's search has no word for.
        NotFound: The centre is not this entity's.
    """
    found = await ask.sources.client.search(
        ask.text,
        recipe=recipe,
        limit=ask.request.limit,
        center=ask.center(),
        filters=_graph_filters(ask.request.filters),
        as_of=ask.request.as_of,
    )
    lists: dict[ChannelName, Sequence[tuple[Node | Fact | Episode, float]]] = {
        "nodes": found.nodes,
        "facts": found.facts,
        "episodes": found.episodes,
    }
    only = {"EDGE": "facts", "NODE": "nodes"}.get(recipe.split("_")[0])
    channels: dict[ChannelName, Channel] = {}
    for name, entries in lists.items():
        if entries or only in (None, name):
            items = {value.uuid: value for value, _ in entries}
            scores = {value.uuid: score for value, score in entries}
            channels[name] = Channel(
                name, await make_hits(ask, dict(items), scores, Lists()), notes=found.notes
            )
    return channels


def _graph_filters(wanted: ItemFilter) -> GraphFilters | None:
    if any(
        (wanted.tags, wanted.sources, wanted.sessions, wanted.roles, wanted.layers, wanted.statuses)
    ):
        raise InvalidRequest(
            "filters", "Graphiti's recipes know kinds, relations, since and until only"
        )
    if wanted == ItemFilter():
        return None
    return GraphFilters(
        kinds=wanted.kinds, relations=wanted.relations, valid=(wanted.since, wanted.until)
    )
