"""The thirteen perspectives as data: category, weights, direction, and thresholds by model."""

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
"""Weight of a category's perspectives in the relevance of a memory (S4-11)."""
ANY = "any"
"""Key of the thresholds for models without their own."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Thresholds(_Table):
    """Similarities in [-1, 1].

    Attributes:
        high: From this similarity on, a memory is worth injecting.
        low: Below this similarity a turn differs from all turns before it in its session.
        same: From this similarity on, two memories may say the same; None if not measured.
        left: Cosine between a session's two newest turns and the mean of those before them, without
            the mean of all memories. Below it the session has left its subject.
    """

    high: float = Field(ge=-1, le=1)
    low: float | None = Field(default=None, ge=-1, le=1)
    left: float | None = Field(default=None, ge=-1, le=1)
    same: float | None = Field(default=None, ge=-1, le=1)


class Direction(_Table):
    """Factors of a likeness along the direction of a question and against it."""

    along: float = Field(gt=0, le=2)
    against: float = Field(gt=0, le=2)


class Space(_Table):
    """One of the thirteen perspectives.

    Attributes:
        perspective: Its name among ``recall.perspectives``.
        weight: Its weight in the relevance of a memory, beside its category's.
        topic_weight: Its weight in the agreement of two memories; 0 for temporal perspectives.
        in_context: For topics, a memory's vector includes its neighbours in the session, without
            the mean of all memories.
        thresholds: Embedding model → thresholds, with ``any`` for all other models; empty if the
            perspective has no similarity.
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
        """Return the thresholds in force: the entity's own, the model's, or those of any model.

        None if the space has no thresholds.
        """
        return own or self.thresholds.get(model) or self.thresholds.get(ANY)


_SPACES = TypeAdapter(dict[Annotated[str, Field(pattern=r"^E([1-9]|1[0-3])$")], Space])
_AGREEMENT = "agreement"


@lru_cache(maxsize=1)
def spaces() -> Mapping[str, Space]:
    """Return id → perspective, E1 to E13, in order."""
    return _SPACES.validate_python(
        {name: table for name, table in _tables().items() if name != _AGREEMENT}
    )


def least_agreement(model: str) -> float:
    """Return a model's least agreement (sum of topic weights) of two memories of one topic."""
    by_model = _tables()[_AGREEMENT]
    return float(by_model.get(model, by_model[ANY]))


@lru_cache(maxsize=1)
def _tables() -> dict[str, Any]:
    return tomllib.loads(shipped("config/perspectives.toml").read_text("utf-8"))
