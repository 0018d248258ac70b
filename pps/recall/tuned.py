"""A profile's channels with the weights and the threshold that one request gives them."""

from __future__ import annotations

from collections.abc import Mapping

from pps.core.errors import InvalidRequest
from pps.core.values import ChannelName
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.profiles import ChannelProfile
from pps.recall.request import RecallRequest


def tuned(
    channels: Mapping[ChannelName, ChannelProfile], request: RecallRequest
) -> Mapping[ChannelName, ChannelProfile]:
    """Return the channels as the request wants them; the profile itself is never changed.

    Raises:
        InvalidRequest: A weight is for a perspective that none of the channels has, or leaves a channel with none
            that finds anything.
    """
    known = {name for channel in channels.values() for name in channel.perspectives}
    for name in request.weights:
        if name not in known:
            raise InvalidRequest(
                "weights", f"has no perspective {name!r} to weigh; there are {', '.join(sorted(known))}"
            )
    if not request.weights and request.min_similarity is None:
        return channels
    return {name: _tuned(name, channel, request) for name, channel in channels.items()}


def _tuned(name: ChannelName, channel: ChannelProfile, request: RecallRequest) -> ChannelProfile:
    weights = {one: request.weights.get(one, weight) for one, weight in channel.perspectives.items()}
    if not any(weight > 0 and PERSPECTIVES[one].finds for one, weight in weights.items()):
        raise InvalidRequest(
            "weights", f"leave nothing that finds {name}; give one of {', '.join(channel.perspectives)}"
        )
    least = channel.min_similarity if request.min_similarity is None else request.min_similarity
    return channel.model_copy(update={"perspectives": weights, "min_similarity": least})
