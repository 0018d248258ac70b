"""The tables of a pack's file: models that its TOML is validated with."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from pps.core.kinds import FieldType, Load, Priority, TurnRole

Tree = dict[str, object]


class Part(BaseModel):
    """A table of the file; unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Head(Part):
    """The file's own keys."""

    name: str
    version: int = Field(ge=1, le=1_000_000)
    open: bool = False
    reserved: list[str] = []
    about: str = Field(default="", max_length=500)
    layers: Tree = {}
    kinds: Tree = {}
    lifecycles: Tree = {}
    relations: Tree = {}
    authority: Tree = {}
    tools: Tree = {}


class Layer(Part):
    """A layer."""

    load: Load = "on_demand"
    budget_tokens: int = Field(default=0, ge=0, le=1_000_000)


class Kind(Part):
    """A kind."""

    layer: str = ""
    about: str = Field(default="", max_length=500)
    embed: list[str] = []
    priority: Priority = "P2"
    describe: bool = False
    lifecycle: str = ""
    fields: Tree = {}
    sources: list[Annotated[str, Field(min_length=1, max_length=200)]] = []
    role: TurnRole = "user"


class FieldTable(Part):
    """A field of a kind, or a property of a relation."""

    type: FieldType | None = None
    of: FieldTable | None = None
    enum: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        default=[], max_length=200
    )
    kind: str = ""
    required: bool = False
    min: float | None = None
    max: float | None = None
    index: bool = False
    about: str = Field(default="", max_length=500)
    embed: bool = True


class LifecyclePart(Part):
    """A life cycle."""

    field: str = "state"
    start: str
    moves: dict[str, list[str]]
    others: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = []


class RelationPart(Part):
    """A relation of some pairs of kinds."""

    pairs: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = Field(min_length=1)
    fields: Tree = {}


class AuthorityPart(Part):
    """What an actor may write."""

    write: list[str]
    deny: list[str] = []


class Tool(Part):
    """A tool of the pack's own name."""

    operation: str = Field(min_length=1)
    fixed: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    about: str = Field(default="", max_length=500)
    without: list[str] = []
