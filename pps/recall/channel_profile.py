"""How one channel of a profile is ranked, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from pps.recall.question import AskKind, Route

Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]


class ProfileTable(BaseModel):
    """A table of a profile's file: unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Substance(ProfileTable):
    """How much less a turn counts that tells little; see ``ranking.substance``."""

    floor: float = Field(default=0.4, ge=0, le=1)
    words: float = Field(default=10, gt=0, le=1000)


class ForKind(ProfileTable):
    """Changes for one kind of query.

    Attributes:
        perspectives: Name to weight, in place of the channel's or beside them.
        k, substance: In place of the channel's, where set.
    """

    perspectives: Mapping[str, Weight] = Field(default_factory=dict[str, Weight])
    k: float | None = Field(default=None, ge=0, le=1000)
    substance: Substance | None = None


class ChannelProfile(ProfileTable):
    """How one channel is ranked.

    Attributes:
        perspectives: Name to weight; 0 leaves one out. A channel whose table is empty is that of
            the profile that it extends, of the shipped one of its name, or of ``default``.
        fusion: ``rrf`` joins ranks; ``sum`` adds signals in [0, 1], weights renormalised over the
            lists that are not empty.
        k: Of reciprocal rank fusion: small trusts the first ranks of each list.
        depth: Length of each retriever's list; twice the limit when that is more.
        min_similarity: Raw cosine below which the dense perspective drops a hit; None keeps all.
        pairs: Keep one fact of each unordered (subject, object).
        distinct: Keep one turn of those that say the same, and none that only asks the query's
            question again.
        mmr: Maximal marginal relevance with this lambda; None is off.
        led: Meaning leads: where it is sure the others count half, where it is weak twice, and
            words by how many of them match; see ``ranking.led``.
        routing: By route of the query, other weights: ``cause`` asks why, ``code`` has identifiers,
            ``intent`` asks for a purpose, ``named`` names a node, ``exact`` quotes words.
        kinds: Changes for a query of a kind: ``question``, ``advice`` (asks what to do, buy or see)
            or ``talk`` (tells more than it asks); see ``question.ask_kind``.
        without: Perspective → weights instead where its model is not installed (``colbert`` alone
            has one).
        latest: Put the last of several statements of one thing before the others, where the query
            asks about now.
        statements_first: Put turns that only ask behind all others, unless the query is after what
            was asked.
        freshness, novelty: Damp what is old, and what the session was shown lately.
        substance: Damp turns that tell little, but none of the first three by meaning (``dense``)
            that says something.
        assistant: Factor of a turn that no user said: of an assistant, a tool, a system.
        speaker: Factor of a turn whose speaker the query names.
        standing: Factor of "always …" and "never …" where the query is about how to act.
        importance: Of turns with equal scores put the one first that was stored as more important.

    Whatever these say, a hit that every retriever ranks first comes first, unless the caller gives
    weights or a centre, the session was shown it lately (novelty), it only asks (statements_first,
    distinct), or a later statement takes its place (latest).
    """

    perspectives: Mapping[str, Weight] = Field(default_factory=dict[str, float])
    fusion: Literal["rrf", "sum"] = "rrf"
    k: float = Field(default=5, ge=0, le=1000)
    depth: int = Field(default=50, ge=1, le=1000)
    min_similarity: float | None = Field(default=None, ge=-1, le=1)
    pairs: bool = False
    distinct: bool = False
    mmr: float | None = Field(default=None, ge=0, le=1)
    freshness: bool = False
    novelty: bool = False
    latest: bool = False
    statements_first: bool = False
    led: bool = False
    routing: Mapping[Route, Mapping[str, Weight]] = Field(
        default_factory=dict[Route, Mapping[str, Weight]]
    )
    kinds: Mapping[AskKind, ForKind] = Field(default_factory=dict[AskKind, ForKind])
    without: Mapping[Literal["colbert"], Mapping[str, Weight]] = Field(
        default_factory=dict[Literal["colbert"], Mapping[str, Weight]]
    )
    substance: Substance | None = None
    assistant: float = Field(default=1, ge=0, le=1)
    speaker: float = Field(default=1, ge=1, le=2)
    standing: float = Field(default=1, ge=1, le=2)
    importance: bool = False

    @property
    def goes_by_meaning(self) -> bool:
        """Tell whether the nearness of the query's vector counts: without it none is needed."""
        return any(
            name.startswith("dense") and weight > 0 for name, weight in self.perspectives.items()
        )

    def without_colbert(self) -> ChannelProfile:
        """Return the channel for a machine on which the token model is not installed."""
        instead = self.without.get("colbert")
        return self.with_weights(instead) if instead else self

    def of_kind(self, kind: AskKind) -> ChannelProfile:
        """Return the channel for a query of this kind."""
        changes = self.kinds.get(kind)
        if changes is None:
            return self
        channel = self.with_weights(changes.perspectives)
        if changes.k is not None:
            channel = channel.model_copy(update={"k": changes.k})
        if changes.substance is not None:
            channel = channel.model_copy(update={"substance": changes.substance})
        return channel

    def with_weights(self, weights: Mapping[str, float]) -> ChannelProfile:
        """Return the channel with some weights in place of its own or beside them."""
        return self.model_copy(update={"perspectives": {**self.perspectives, **weights}})
