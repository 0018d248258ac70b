"""The thirteen perspectives as data: category, weight in topics, direction, thresholds of similarity by model."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from pps.config.packaged import shipped

Category: TypeAlias = Literal["semantic", "relational", "structural", "temporal"]
CATEGORY_WEIGHTS: Mapping[Category, float] = {
    "semantic": 1.0,
    "relational": 0.5,
    "structural": 0.5,
    "temporal": 0.0,
}
"""What a perspective of a category counts in the relevance of a memory (S4-11)."""
ANY = "any"
"""The thresholds of a model that has none of its own."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Thresholds(_Table):
    """Similarities in [-1, 1].

    Attributes:
        high: From which on a memory is worth injecting.
        low: Below which a turn is like none of its session's before it.
        same: From which on two memories may say the same; None where it was not measured.
        left: Cosine of a session's two newest turns and the middle of those before them, less what
            all memories share; below it they have left the subject.
    """

    high: float = Field(ge=-1, le=1)
    low: float | None = Field(default=None, ge=-1, le=1)
    left: float | None = Field(default=None, ge=-1, le=1)
    same: float | None = Field(default=None, ge=-1, le=1)


class Direction(_Table):
    """What a likeness counts the way that a question asks, and against it."""

    along: float = Field(gt=0, le=2)
    against: float = Field(gt=0, le=2)


class Space(_Table):
    """One of the thirteen.

    Attributes:
        perspective: Its name among ``recall.perspectives``.
        weight: What it counts in the relevance of a memory, beside its category.
        topic_weight: What it counts where two memories agree; 0 for what is temporal.
        in_context: For topics a memory is read with its neighbours in its session, less what all
            memories share.
        thresholds: By embedding model, ``any`` for every other; empty where similarity is no
            question.
    """

    perspective: str
    category: Category
    weight: float = Field(default=0, ge=0, le=1)
    topic_weight: float = Field(ge=0, le=1)
    finds: str
    in_context: bool = False
    direction: Direction | None = None
    thresholds: Mapping[str, Thresholds] = Field(default_factory=dict[str, Thresholds])

    def threshold(self, model: str, own: Thresholds | None = None) -> Thresholds | None:
        """Return the thresholds that hold: an entity's own, the model's, those of any model.

        None where it has none.
        """
        return own or self.thresholds.get(model) or self.thresholds.get(ANY)


_SPACES = TypeAdapter(dict[Annotated[str, Field(pattern=r"^E([1-9]|1[0-3])$")], Space])
_AGREEMENT = "agreement"


@lru_cache(maxsize=1)
def spaces() -> Mapping[str, Space]:
    """Return the thirteen by their ids, E1 to E13, in order."""
    return _SPACES.validate_python(
        {name: table for name, table in _tables().items() if name != _AGREEMENT}
    )


def least_agreement(model: str) -> float:
    """Return the sum of topic weights from which on two memories are of one topic, by embedding model."""
    by_model = _tables()[_AGREEMENT]
    return float(by_model.get(model, by_model[ANY]))


@lru_cache(maxsize=1)
def _tables() -> dict[str, Any]:
    return tomllib.loads(shipped("config/perspectives.toml").read_text("utf-8"))
