"""The collections of an entity's indexes: one a channel, current and past facts apart."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from pps.core.errors import InvalidRequest

Collection: TypeAlias = Literal[
    "facts", "past_facts", "nodes", "records", "episodes", "windows", "anchors"
]
"""``nodes`` has the vectors of names and the words of records,
``records`` the vectors of what they say."""

COLLECTIONS: tuple[Collection, ...] = get_args(Collection)
"""Every collection, in vectors and in text."""


def check_collection(name: str) -> str:
    """Return a collection's name unchanged, or raise InvalidRequest."""
    if name not in COLLECTIONS:
        raise InvalidRequest("collection", f"must be one of {', '.join(COLLECTIONS)}")
    return name
