"""Installed features: the entry points of the group ``pps.features``, none of them imported."""

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
    """An entry point of a feature.

    Attributes:
        target: ``module:attribute`` of a ``Feature`` object.
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

    In a checkout that file is read, because the metadata of an editable install may be older.
    """
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    if pyproject.is_file():
        project = cast("dict[str, Any]", tomllib.loads(pyproject.read_text("utf-8"))["project"])
        if project["name"] == "pps":
            declared = cast("dict[str, str]", project["entry-points"].get(FEATURES_GROUP, {}))
            return tuple(FeaturePoint(name, target, "pps") for name, target in declared.items())
    from importlib.metadata import distribution  # takes 0.1 s to import; not needed above

    points = distribution("pps").entry_points.select(group=FEATURES_GROUP)
    return tuple(FeaturePoint(point.name, point.value, "pps") for point in points)


def other_feature_points() -> tuple[FeaturePoint, ...]:
    """Return the features that other distributions declare, sorted by name.

    Without any it takes a few milliseconds.
    """
    if not _any_declared():
        return ()
    from importlib.metadata import distributions

    points: dict[tuple[str, str], FeaturePoint] = {}
    for distribution in distributions():
        package = distribution.metadata["Name"]
        if package != "pps":
            for point in distribution.entry_points.select(group=FEATURES_GROUP):
                points[point.name, point.value] = FeaturePoint(point.name, point.value, package)
    return tuple(sorted(points.values(), key=lambda point: (point.name, point.package)))


def _any_declared() -> bool:
    """Return whether a distribution other than PPS names the group, read from files alone."""
    for folder in {Path(place) for place in sys.path if place}:
        for declared in folder.glob("*.*-info/entry_points.txt"):
            is_pps = declared.parent.name.startswith("pps-")
            if not is_pps and _SECTION in declared.read_text("utf-8", errors="replace"):
                return True
    return False
