"""Features of this installation: which there are, and switching them on and off, for the owner."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from pps.app import App
from pps.app.features import InstalledFeature
from pps.core.text import counted
from pps.operations.command_line import argument
from pps.operations.inputs import Input, Label, Nothing
from pps.operations.table import MAINTENANCE, READS, SETS


class FeatureInput(Input):
    """A feature, by its name."""

    name: Label = Field(
        description="Name of the feature, from {feature_list}.", json_schema_extra=argument()
    )


@dataclass(frozen=True, slots=True)
class FeatureLine:
    """A feature of this installation.

    Attributes:
        package: The distribution that it comes from; empty for one that is no longer installed.
        on: Its operations and views are offered.
        operations: How many it has.
        commands: Its commands.
        problem: Why it cannot be used; empty when it can.
    """

    name: str
    summary: str
    package: str
    on: bool
    operations: int = 0
    commands: tuple[str, ...] = ()
    problem: str = ""


def _line(feature: InstalledFeature, *, on: bool) -> FeatureLine:
    if feature.feature is None:
        return FeatureLine(feature.name, "", feature.package, on=False, problem=feature.problem)
    own = feature.feature.operations()
    commands = tuple(f"pps {operation.command}" for operation in own if operation.command)
    return FeatureLine(
        feature.name, feature.feature.summary, feature.package, on, len(own), commands
    )


def _listed(lines: tuple[FeatureLine, ...]) -> str:
    return "\n".join(map(_shown, lines))


def _shown(line: FeatureLine) -> str:
    state = "on" if line.on else "off"
    if line.problem:
        return f"{line.name}  cannot be used: {line.problem}"
    if not line.package:
        return f"{line.name}  {state}, not installed; its data are kept"
    origin = "" if line.package == "pps" else f", from {line.package}"
    return f"{line.name}  {state}{origin}, {counted(line.operations, 'operation')}: {line.summary}"


def _switched(line: FeatureLine) -> str:
    if line.on:
        return f"{line.name} is on: {counted(line.operations, 'operation')}."
    return (
        f"{line.name} is off: its operations and views are hidden. Its data are kept, and "
        f"forgetting still reaches them; `pps feature enable {line.name}` brings it back."
    )


@MAINTENANCE.operation(
    "List the features",
    _listed,
    READS,
    items="features",
    command="feature list",
    examples=("pps feature list",),
)
async def feature_list(app: App, _: Nothing) -> tuple[FeatureLine, ...]:
    """Returns the installed features, each with its commands, its package, and whether it is on."""
    features = app.features
    lines = [_line(feature, on=features.is_on(feature.name)) for feature in features.installed()]
    gone = [FeatureLine(name, "", "", on=False) for name in features.absent()]
    return (*lines, *gone)


@MAINTENANCE.operation(
    "Switch a feature on",
    _switched,
    SETS,
    command="feature enable",
    examples=("pps feature enable squad",),
)
async def feature_enable(app: App, request: FeatureInput) -> FeatureLine:
    """Offers a feature's operations and views again.

    Its listeners continue where they stopped.
    """
    return _line(await app.switch_feature(request.name, on=True), on=True)


@MAINTENANCE.operation(
    "Switch a feature off",
    _switched,
    SETS,
    command="feature disable",
    examples=("pps feature disable squad",),
)
async def feature_disable(app: App, request: FeatureInput) -> FeatureLine:
    """Hides a feature's operations and views.

    Its data is kept, and is still forgotten, erased and exported.
    """
    return _line(await app.switch_feature(request.name, on=False), on=False)
