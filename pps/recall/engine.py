"""The recall engine: one question, the channels of a profile side by side, never merged."""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import Mapping
from dataclasses import replace

from pps.core.errors import InvalidRequest, IsolationError, PPSError
from pps.core.ids import check_uuid
from pps.core.recalled import Channel, Evidence, Recall
from pps.core.values import ChannelName
from pps.index.indexes import EntityIndexes
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.models.protocols import Embedder, Reranker
from pps.recall.channel import fill
from pps.recall.floor import evidence
from pps.recall.graphiti import recipe_channels
from pps.recall.profiles import ChannelProfile, Profile, Profiles
from pps.recall.query import Ask
from pps.recall.relationships import with_relationships
from pps.recall.request import RecallRequest
from pps.recall.routing import routed
from pps.recall.sources import AnchorSource, Sources
from pps.recall.tuned import tuned
from pps.recall.why import Why, explain

NOTHING_NEAR = "nothing here is near this text: no name, no rare word and no meaning in common"


class RecallEngine:
    """Answers questions from one entity's memory."""

    def __init__(  # noqa: PLR0913 - the parts of one entity, put together in one place
        self,
        client: IsolatedGraphitiClient,
        journal: Journal,
        indexes: EntityIndexes,
        embedder: Embedder | None,
        reranker: Reranker | None,
        profiles: Profiles,
        self_node: str | None = None,
        anchors: AnchorSource | None = None,
    ) -> None:
        self._profiles = profiles
        self._sources = Sources(client, journal, indexes, embedder, reranker, anchors, self_node, profiles.tuning)

    async def recall(self, request: RecallRequest) -> Recall:
        """Return one list a channel of the profile, best first.

        ``took_ms`` has ``embed``, ``retrieve``, ``fetch``, ``rerank`` (each that of the slowest channel, since
        channels run side by side) and ``total``.

        Raises:
            ConfigError: The profile's file is new and says what no profile can.
            InvalidRequest: The profile is unknown, does not fill a channel that was asked for, allows no limit as
                high, or has no perspective of a weight's name.
            NotFound: ``center`` is not a node of this entity.
            IsolationError: A foreign row came back; nothing is returned.
        """
        return (await self._recalled(request, why=False))[1]

    async def why(self, request: RecallRequest, expect: str) -> Why:
        """Recall, and return what became of each candidate and why ``expect``, an id, is not there; as ``recall``."""
        [expect] = await self._sources.journal.beginnings.whole([expect], strict=False)
        ask, recall = await self._recalled(request, why=True)
        return await explain(ask, recall, ask.traces or {}, expect)

    async def _recalled(self, request: RecallRequest, *, why: bool) -> tuple[Ask, Recall]:
        started = clock.perf_counter()
        if request.profile not in self._profiles:
            await asyncio.to_thread(self._profiles.look_for, request.profile)
        profile = self._profiles.get(request.profile)
        _check_limit(request, profile)
        if request.center:
            [center] = await self._sources.journal.beginnings.whole([request.center])
            await self._sources.client.nodes([check_uuid(center, "center")], strict=True)
            request = replace(request, center=center)
        ask = Ask(self._sources, request)
        ask.traces = {} if why else None
        ask.narrow(profile.filters)
        seen: Evidence | None = None
        try:
            if request.channels == "auto":
                profile = self._profiles.get(await routed(ask))
                _check_limit(request, profile)
                ask.narrow(profile.filters)
            channels = await self._channels(ask, profile)
            if not profile.recipe:
                seen = await _evidence(ask, channels, profile)
            if request.include_relationships:
                for name, one in channels.items():
                    channels[name] = await _with_relationships(ask, one)
        finally:
            await ask.close()
        took = {part: ask.took_s(part) * 1000 for part in ("embed", "retrieve", "fetch", "rerank")}
        took["total"] = (clock.perf_counter() - started) * 1000
        failed = any(channel.error for channel in channels.values())
        notes = (NOTHING_NEAR,) if seen is not None and seen.level == "nothing" and not failed else ()
        return ask, Recall(request.query, profile.name, channels, took, seen if profile.floor else None, notes)

    async def _channels(self, ask: Ask, profile: Profile) -> dict[ChannelName, Channel]:
        if profile.recipe:
            return await recipe_channels(ask, profile.recipe)
        wanted = tuned(_wanted(ask.request, profile), ask.request)
        limits = [min(ask.request.limit, profile.limits.get(name, ask.request.limit)) for name in wanted]
        results = await asyncio.gather(
            *(fill(ask, name, channel, limit) for (name, channel), limit in zip(wanted.items(), limits, strict=True)),
            return_exceptions=True,
        )
        return {name: _settled(name, result) for name, result in zip(wanted, results, strict=True)}


async def _evidence(ask: Ask, channels: Mapping[ChannelName, Channel], profile: Profile) -> Evidence | None:
    """Return what of the answer has to do with the text; by words where meaning fails, None where those do too."""
    for by_meaning in (True, False):
        try:
            return await evidence(ask, channels, profile, by_meaning=by_meaning)
        except IsolationError:
            raise
        except PPSError:  # the channels have answered, and say what is away
            continue
    return None


def _check_limit(request: RecallRequest, profile: Profile) -> None:
    if request.limit > profile.max_limit:
        raise InvalidRequest("limit", f"must be 1 to {profile.max_limit} with profile {profile.name!r}")


async def _with_relationships(ask: Ask, channel: Channel) -> Channel:
    with ask.timed("fetch", channel.name):
        return replace(channel, hits=await with_relationships(ask, channel.hits))


def _wanted(request: RecallRequest, profile: Profile) -> Mapping[ChannelName, ChannelProfile]:
    asked = request.channels
    if asked is None or asked == "auto":
        return profile.channels
    missing = [name for name in asked if name not in profile.channels]
    if missing:
        raise InvalidRequest(
            "channels", f"profile {profile.name!r} fills {', '.join(profile.channels)}, not {', '.join(missing)}"
        )
    return {name: profile.channels[name] for name in dict.fromkeys(asked)}


def _settled(name: ChannelName, result: Channel | BaseException) -> Channel:
    """Return a channel, or what kept it from being filled: an error is never an empty list."""
    if isinstance(result, PPSError) and not isinstance(result, IsolationError):
        return Channel(name, error=f"{result.code}: {result.message}")
    if isinstance(result, BaseException):
        raise result
    return result
