"""The thirteen perspectives as data: category, weight in topics, direction, thresholds of similarity by model."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from pps.config.packaged import shipped

Category: TypeAlias = Literal["semantic", "relational", "structural", "temporal"]
CATEGORY_WEIGHTS: Mapping[Category, float] = {"semantic": 1.0, "relational": 0.5, "structural": 0.5, "temporal": 0.0}
"""What a perspective of a category counts in the relevance of a memory (S4-11)."""
ANY = "any"
"""The thresholds of a model that has none of its own."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Thresholds(_Table):
    """Similarities in [-1, 1]: worth injecting from ``high`` on; below ``low`` a turn has left the subject."""

    high: float = Field(ge=-1, le=1)
    low: float | None = Field(default=None, ge=-1, le=1)


class Direction(_Table):
    """What a likeness counts in each of two directions."""

    cause_to_effect: float = Field(gt=0, le=2)
    effect_to_cause: float = Field(gt=0, le=2)


class Space(_Table):
    """One of the thirteen.

    Attributes:
        perspective: Its name among ``recall.perspectives``.
        topic_weight: What it counts where two memories agree; 0 for what is temporal.
        thresholds: By embedding model, ``any`` for every other; empty where similarity is no question.
    """

    perspective: str
    category: Category
    topic_weight: float = Field(ge=0, le=1)
    finds: str
    direction: Direction | None = None
    thresholds: Mapping[str, Thresholds] = Field(default_factory=dict[str, Thresholds])

    def threshold(self, model: str, own: Thresholds | None = None) -> Thresholds | None:
        """Return the thresholds that hold: an entity's own, the model's, those of any model; None where it has none."""
        return own or self.thresholds.get(model) or self.thresholds.get(ANY)


_SPACES = TypeAdapter(dict[Annotated[str, Field(pattern=r"^E([1-9]|1[0-3])$")], Space])


@lru_cache(maxsize=1)
def spaces() -> Mapping[str, Space]:
    """Return the thirteen by their ids, E1 to E13, in order."""
    return _SPACES.validate_python(tomllib.loads(shipped("config/perspectives.toml").read_text("utf-8")))
