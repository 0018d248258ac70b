"""The features of an installation: loaded by entry point, switched on or off by the owner."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from operator import attrgetter
from typing import Any, Protocol, runtime_checkable

from pps.config.feature_points import (
    FeaturePoint,
    other_feature_points,
    shipped_feature_points,
)
from pps.core.errors import NotFound, PPSError
from pps.core.feature_parts import Listener, Table, check_feature_name
from pps.core.log_context import unforeseen
from pps.entities.installation_rows import FeatureSwitches

_log = logging.getLogger(__name__)


@runtime_checkable
class LoadedFeature(Protocol):
    """A feature as the composition root sees it.

    ``pps.operations.feature.Feature`` says what each part is.
    """

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def tables(self) -> Sequence[Table]: ...

    @property
    def listeners(self) -> Sequence[Listener]: ...

    @property
    def views(self) -> Sequence[Any]: ...

    @property
    def provides(self) -> Mapping[str, str]: ...

    def operations(self) -> Sequence[Any]: ...

    def problem(self, others: Sequence[Any]) -> str: ...


@dataclass(frozen=True, slots=True)
class InstalledFeature:
    """A feature that a distribution declares.

    Attributes:
        package: The distribution.
        feature: None if it cannot be used.
        problem: Why it cannot be used; empty if it can.
    """

    name: str
    package: str
    is_shipped: bool
    feature: LoadedFeature | None = None
    problem: str = ""


class Features:
    """The installed features, and which of them are on. A feature that is off keeps its data.

    Attributes:
        changes: Number of switches so far. Callers that cache a result of the features compare it.
    """

    def __init__(self, switches: FeatureSwitches, installed: Iterable[InstalledFeature]) -> None:
        self._switches = switches
        self._installed = {feature.name: feature for feature in installed}
        self._off = switches.off()
        self.changes = 0

    @classmethod
    def load(cls, switches: FeatureSwitches) -> Features:
        """Import all features. It blocks; a feature that fails does not affect the others."""
        shipped = [_loaded(point) for point in shipped_feature_points()]
        known = {feature.name: feature for feature in shipped}
        others: dict[str, InstalledFeature] = {}
        for point in other_feature_points():
            loaded_feature = _loaded(point)
            taken = known.get(loaded_feature.name) or others.get(loaded_feature.name)
            if taken is None:
                features = [other.feature for other in others.values()]
                offered = [feature for feature in features if feature is not None]
                others[loaded_feature.name] = _checked(loaded_feature, offered)
            else:
                _log.warning(
                    "the feature %s of %s is left out: %s has one of that name",
                    loaded_feature.name,
                    loaded_feature.package,
                    taken.package,
                )
        return cls(switches, [*shipped, *others.values()])

    def installed(self) -> tuple[InstalledFeature, ...]:
        """Return all installed features, the shipped ones first."""
        return tuple(self._installed.values())

    def absent(self) -> tuple[str, ...]:
        """Return the names of features that were switched off and are no longer installed."""
        return tuple(sorted(self._off - self._installed.keys()))

    def enabled(self) -> tuple[LoadedFeature, ...]:
        """Return the features that are on and can be used."""
        return tuple(
            feature.feature
            for feature in self._installed.values()
            if feature.feature is not None and feature.name not in self._off
        )

    def provided(self, point: str, *, is_off_too: bool = False) -> Any:
        """Return what a feature provides at an extension point of the core, or None.

        Args:
            point: Name of the extension point.
            is_off_too: Include features that are off, because erasing is never switched off.
        """
        for feature in self._installed.values():
            if feature.feature is None or (feature.name in self._off and not is_off_too):
                continue
            target = feature.feature.provides.get(point)
            if target:
                return import_target(target)
        return None

    def is_on(self, name: str) -> bool:
        return name in self._installed and name not in self._off

    def find(self, name: str) -> InstalledFeature:
        """Return an installed feature by name.

        Raises:
            NotFound: No feature of that name is installed.
        """
        if name not in self._installed:
            raise NotFound("feature")
        return self._installed[name]

    async def switch(self, name: str, *, on: bool) -> InstalledFeature:
        """Switch a feature on or off for this installation.

        Raises:
            NotFound: No feature of that name is installed.
        """
        feature = self.find(name)
        await asyncio.to_thread(self._switches.switch, name, on=on)
        self._off = await asyncio.to_thread(self._switches.off)
        self.changes += 1
        return feature


def load_feature(point: FeaturePoint) -> LoadedFeature:
    """Import a feature.

    Raises:
        PPSError: The entry point has a bad name or leads to no feature.
        Exception: Any error of the import.
    """
    check_feature_name(point.name)
    value = import_target(point.target)
    if not isinstance(value, LoadedFeature) or value.name != point.name:
        raise PPSError(f"{point.target} is no Feature of the name {point.name}")
    return value


def import_target(target: str) -> Any:
    """Import ``module:attribute`` and return it; the attribute may contain dots."""
    module, _, attribute = target.partition(":")
    return attrgetter(attribute)(import_module(module))


def _loaded(point: FeaturePoint) -> InstalledFeature:
    feature = None
    problem = ""
    try:
        feature = load_feature(point)
    except PPSError as error:
        problem = error.message
    except Exception as error:  # noqa: BLE001 - others' code; the error is reported
        unforeseen(_log, f"the feature {point.name} of {point.package} cannot be imported", error)
        problem = f"cannot be imported ({type(error).__name__}: {error})"
    return InstalledFeature(point.name, point.package, point.is_shipped, feature, problem)


def _checked(
    installed_feature: InstalledFeature, offered: Sequence[LoadedFeature]
) -> InstalledFeature:
    """Return another distribution's feature without the parts that clash with earlier features."""
    if installed_feature.feature is None:
        return installed_feature
    try:
        others = [operation for feature in offered for operation in feature.operations()]
        problem = installed_feature.feature.problem(others)
    except Exception as error:  # noqa: BLE001 - others' code; the error is reported
        unforeseen(
            _log,
            f"the operations of the feature {installed_feature.name} cannot be imported",
            error,
        )
        problem = f"its operations cannot be imported ({type(error).__name__}: {error})"
    if not problem:
        return installed_feature
    _log.warning(
        "the feature %s of %s is left out: %s",
        installed_feature.name,
        installed_feature.package,
        problem,
    )
    return replace(installed_feature, feature=None, problem=problem)
