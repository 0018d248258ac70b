"""The seven layers of a layered graph (S0-01) and the kinds of nodes in each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias, cast

Layer: TypeAlias = Literal["foundation", "vision", "strategy", "tactics", "execution", "track", "mind"]

LAYERS: Mapping[Layer, tuple[str, ...]] = {
    "foundation": (
        "Value",
        "Principle",
        "Guardrail",
        "Human",
        "AI",
        "Partnership",
        "Policy",
        "Context",
        "Core",
        "Relationship",
    ),
    "vision": ("Vision", "Business", "Goal", "Season"),
    "strategy": ("Strategy", "Objective", "KeyResult", "Initiative", "Milestone", "Risk"),
    "tactics": ("Project", "Area", "System", "Process"),
    "execution": ("Decision", "Task", "TimeBlock", "WorkSession", "Action"),
    "track": ("Metric", "Observation", "Event", "Signal"),
    "mind": ("Insight", "Pattern", "Evidence", "Source", "Note"),
}
"""Layer to its kinds, in the order of the layers."""


def kinds_of(layers: Iterable[str]) -> tuple[str, ...]:
    """Return the kinds of some layers; KeyError for a name that is none."""
    return tuple(kind for layer in dict.fromkeys(layers) for kind in LAYERS[cast("Layer", layer)])
