"""The feature ``topics``: what a memory is about, how that changes, and what could be tidied up."""

from __future__ import annotations

from pps.operations.feature import Feature

FEATURE = Feature(
    name="topics",
    summary=(
        "What a memory is about and how that changes; sessions that leave their subject; nodes "
        "that may be one."
    ),
    modules=("pps.features.topics.topic_tools",),
    provides={"topics": "pps.features.topics.portfolio:Topics"},
)
