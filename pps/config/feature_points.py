"""Which features are installed: the entry points of the group ``pps.features``, found without importing any of them."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

FEATURES_GROUP = "pps.features"
_SECTION = f"[{FEATURES_GROUP}]"


@dataclass(frozen=True, slots=True)
class FeaturePoint:
    """An entry point that leads to a feature.

    Attributes:
        target: ``module:attribute``, of a value ``Feature``.
        package: The distribution that declares it.
    """

    name: str
    target: str
    package: str

    @property
    def is_shipped(self) -> bool:
        return self.package == "pps"


def shipped_feature_points() -> tuple[FeaturePoint, ...]:
    """Return the features that PPS itself declares, in the order of ``pyproject.toml``.

    In a checkout that file is read: the metadata of an editable install is of the day on which it
    was made.
    """
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    if pyproject.is_file():
        project = cast("dict[str, Any]", tomllib.loads(pyproject.read_text("utf-8"))["project"])
        if project["name"] == "pps":
            declared = cast("dict[str, str]", project["entry-points"].get(FEATURES_GROUP, {}))
            return tuple(FeaturePoint(name, target, "pps") for name, target in declared.items())
    from importlib.metadata import distribution  # 0.1 s to import, and a checkout needs none of it

    points = distribution("pps").entry_points.select(group=FEATURES_GROUP)
    return tuple(FeaturePoint(point.name, point.value, "pps") for point in points)


def other_feature_points() -> tuple[FeaturePoint, ...]:
    """Return the features that other distributions declare, by name.

    A few milliseconds where there are none.
    """
    if not _any_declared():
        return ()
    from importlib.metadata import distributions

    points = {
        (point.name, point.value): FeaturePoint(point.name, point.value, name)
        for distribution in distributions()
        if (name := distribution.metadata["Name"]) != "pps"
        for point in distribution.entry_points.select(group=FEATURES_GROUP)
    }
    return tuple(sorted(points.values(), key=lambda point: (point.name, point.package)))


def _any_declared() -> bool:
    """Tell whether any distribution but PPS names the group, by the files alone."""
    for folder in {Path(place) for place in sys.path if place}:
        for declared in folder.glob("*.*-info/entry_points.txt"):
            is_pps = declared.parent.name.startswith("pps-")
            if not is_pps and _SECTION in declared.read_text("utf-8", errors="replace"):
                return True
    return False
