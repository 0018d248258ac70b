"""Tags: candidates that carry the tags of the query (``#word``) or of the filters."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pps.core.text import fold
from pps.core.values import ChannelName, Turn
from pps.journal.links import NodeOutline
from pps.recall.query import Ask, Candidate, Scored

_TAG = re.compile(r"(?<![\w#])#([^\W\d_][\w-]*)")


async def weigh(ask: Ask, channel: ChannelName, items: Mapping[str, Candidate]) -> list[Scored]:
    """Return the candidates that carry any of the tags; the signal is the share of them that it carries."""
    filtered = (tag for one in ask.filters for tag in one.tags)
    wanted = {fold(tag) for tag in (*_TAG.findall(ask.request.query), *filtered)}
    shares = {
        one: len(wanted & {fold(tag) for tag in item.tags}) / len(wanted)
        for one, item in items.items()
        if wanted and isinstance(item, (NodeOutline, Turn))
    }
    found = sorted((one for one, share in shares.items() if share), key=lambda one: -shares[one])
    return [Scored(one, shares[one], shares[one]) for one in found]
