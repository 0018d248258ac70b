"""A profile's channels with the weights and the threshold that one request gives them."""

from __future__ import annotations

from collections.abc import Mapping

from pps.core.errors import InvalidRequest
from pps.core.values import ChannelName
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.profiles import ChannelProfile
from pps.recall.request import RecallRequest

SIGNALS: Mapping[str, str] = {
    "vector": "dense",
    "text": "bm25",
    "full_text": "bm25",
    "graph": "near_center",
    "tags": "tags",
    "recency": "recency",
}
"""What a person calls a signal, and the perspective that it is."""


def tuned(
    channels: Mapping[ChannelName, ChannelProfile], request: RecallRequest
) -> Mapping[ChannelName, ChannelProfile]:
    """Return the channels as the request wants them; the profile itself is never changed.

    Raises:
        InvalidRequest: A weight is for nothing that there is, or leaves a channel with none that finds anything.
    """
    unknown = [name for name in request.weights if name not in PERSPECTIVES and name not in SIGNALS]
    if unknown:
        there = ", ".join(dict.fromkeys((*SIGNALS, *PERSPECTIVES)))
        raise InvalidRequest("weights", f"has no {unknown[0]!r} to weigh; there are {there}")
    if not request.weights and request.min_similarity is None:
        return channels
    return {name: _tuned(name, channel, request) for name, channel in channels.items()}


def _tuned(name: ChannelName, channel: ChannelProfile, request: RecallRequest) -> ChannelProfile:
    given = {SIGNALS.get(one, one): weight for one, weight in request.weights.items()}
    weights = {**channel.perspectives, **given}
    finds = any(weight > 0 and PERSPECTIVES[one].finds for one, weight in weights.items())
    if not finds and not any(given.values()):  # what only orders may be all that counts, where it is asked for
        said = ", ".join(named for named, one in SIGNALS.items() if one in channel.perspectives)
        raise InvalidRequest(
            "weights", f"leave nothing that finds or orders {name}; give one above 0, such as {said or 'vector'}"
        )
    least = channel.min_similarity if request.min_similarity is None else request.min_similarity
    return channel.model_copy(update={"perspectives": weights, "min_similarity": least})
