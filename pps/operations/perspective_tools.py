"""Searching by chosen perspectives: meaning with all others, causes, connections, intent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from pps.config.spaces import spaces
from pps.core.errors import InvalidRequest
from pps.core.values import Receipt
from pps.ingest.drafts import RememberOptions
from pps.ingest.given_input import Input
from pps.memory import Memory
from pps.operations.inputs import Label, Question, also
from pps.operations.memory_tools import REMEMBER_WAIT_S, receipt_for_model, receipt_text
from pps.operations.recall_tools import (
    RecallView,
    ranks_for_model,
    recall_for_model,
    recall_text,
    recall_view,
)
from pps.operations.table import ADDS, PERSPECTIVES, READS

_CHANNELS = ("facts", "episodes")
_CAUSAL_QUESTIONS = {"auto": "{}", "cause": "Why {}?", "effect": "What did {} lead to?"}


class _SearchInput(Input):
    query: Question = Field(description="A question or key words.")
    limit: int = Field(
        default=10,
        ge=1,
        le=100,
        description="Maximum results in each channel.",
        json_schema_extra=also("topK"),
    )


class SearchGraphInput(_SearchInput):
    """A question, and the perspectives that answer it."""

    strategy: Literal["e1_only", "multi_space", "pipeline"] = Field(
        default="multi_space",
        description=(
            "Meaning alone (e1_only), several by kind of question, or wide and then word by word "
            "(pipeline)."
        ),
    )
    exclude: tuple[str, ...] = Field(
        default=(),
        max_length=13,
        description="Perspectives to leave out, E1 to E13 or by name.",
        json_schema_extra=also("excludeEmbedders"),
    )
    weights: Mapping[Label, float] = Field(
        default={},
        description=(
            "Perspective (E1 to E13 or its name) to weight, 0 to 1000, in place of the strategy's."
        ),
        json_schema_extra=also("customWeights"),
    )
    min_similarity: float | None = Field(
        default=None,
        ge=-1,
        le=1,
        description="Minimum cosine similarity of results found by meaning.",
    )
    session: Label | None = Field(default=None, description="Id of this conversation.")
    breakdown: bool = Field(
        default=False,
        description="True adds 'signals' to each hit: its score in each perspective, 0 to 1.",
        json_schema_extra=also("includeEmbedderBreakdown"),
    )


class SearchCausesInput(_SearchInput):
    """What happened, and whether its cause or its effect is wanted."""

    direction: Literal["auto", "cause", "effect"] = Field(
        default="auto",
        description=(
            "cause: find what led to it; effect: find what it led to; auto: read it from "
            "the question, default cause."
        ),
        json_schema_extra=also("causalDirection"),
    )


class SearchConnectionsInput(_SearchInput):
    """Things by their names, and which way to go from them."""

    direction: Literal["source", "target", "both"] = Field(
        default="both",
        description="source: facts whose subject it is; target: facts whose object it is.",
    )


class SearchByIntentInput(_SearchInput):
    """What somebody wants to reach."""

    blend: float = Field(
        default=0.3,
        ge=0,
        le=1,
        description="Weight of plain meaning beside intent, 0 to 1.",
        json_schema_extra=also("blendWithSemantic"),
    )


class StoreMemoryInput(Input):
    """A text that should last."""

    content: str = Field(min_length=1, max_length=65_536, description="The text, word for word.")
    rationale: str = Field(
        default="", max_length=1024, description="Why the text should last; kept with it."
    )
    importance: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="How much it matters: topics, dreams and what is explored go by it, and what "
        "is often shown matters more by itself. It does not change what recall finds; it orders "
        "hits of equal score where a profile says 'importance = true' for the channel, and none of "
        "the shipped ones does.",
    )
    session: Label | None = Field(
        default=None,
        description="Id of this conversation.",
        json_schema_extra=also("sessionId"),
    )


@PERSPECTIVES.operation(
    "Search by several perspectives", recall_text, READS, for_model=ranks_for_model
)
async def search_graph(memory: Memory, request: SearchGraphInput) -> RecallView:
    """Use it when {recall} misses something: it searches by several perspectives.

    Returns one ranked list for each channel; 'ranks' of a hit are its places in each perspective.
    """
    weights = {
        _perspective_named(space, "weights"): weight for space, weight in request.weights.items()
    }
    weights |= {_perspective_named(space, "exclude"): 0.0 for space in request.exclude}
    options: dict[str, Any] = {
        "min_similarity": request.min_similarity,
        "session": request.session,
        "breakdown": request.breakdown,
    }
    recalled = await memory.recall(
        request.query,
        profile=request.strategy,
        limit=request.limit,
        channels=_CHANNELS,
        weights=weights,
        **options,
    )
    return recall_view(recalled)


@PERSPECTIVES.operation(
    "Search for causes and effects", recall_text, READS, for_model=recall_for_model
)
async def search_causes(memory: Memory, request: SearchCausesInput) -> RecallView:
    """Use it to find why something happened, or what it led to.

    It reads words such as 'because'. Returns facts and turns; those that name the cause or effect
    come first.
    """
    query = _CAUSAL_QUESTIONS[request.direction].format(request.query.rstrip(" ?"))
    weights = {"cause": 4.0, "dense": 0.25, "bm25": 0.25}
    recalled = await memory.recall(
        query, profile="multi_space", limit=request.limit, channels=_CHANNELS, weights=weights
    )
    return recall_view(recalled)


@PERSPECTIVES.operation("Search for connections", recall_text, READS, for_model=recall_for_model)
async def search_connections(memory: Memory, request: SearchConnectionsInput) -> RecallView:
    """Use it to find what is connected to a person, place or thing, and by which facts.

    Facts of a relation that you name come first. Returns the neighbours, the facts that connect
    them, and the turns that state the facts.
    """
    recalled = await memory.recall(
        request.query,
        profile="connections",
        limit=request.limit,
        connections=request.direction,
    )
    return recall_view(recalled)


@PERSPECTIVES.operation("Search by intent", recall_text, READS, for_model=recall_for_model)
async def search_by_intent(memory: Memory, request: SearchByIntentInput) -> RecallView:
    """Use it to find turns with the same purpose in other words: give the purpose.

    Returns ranked turns.
    """
    weights = {
        "intent": 2 * (1 - request.blend),
        "dense_windows": 1 - request.blend,
        "dense": 2 * request.blend,
    }
    recalled = await memory.recall(
        request.query,
        profile="e1_only",
        limit=request.limit,
        channels=["episodes"],
        weights=weights,
    )
    return recall_view(recalled)


@PERSPECTIVES.operation("Store a memory", receipt_text, ADDS, for_model=receipt_for_model)
async def store_memory(memory: Memory, request: StoreMemoryInput) -> Receipt:
    """Use it like {remember}, for a text with the reason why it should last.

    Returns its id.
    """
    content = (
        f"{request.content}\n\nWhy it matters: {request.rationale}"
        if request.rationale.strip()
        else request.content
    )
    options: RememberOptions = {"importance": request.importance}
    if request.session:
        options["session"] = request.session
    return await memory.remember(content, wait="done", timeout_s=REMEMBER_WAIT_S, **options)


def _perspective_named(name: str, field: str) -> str:
    """Return the name of a perspective that is given so or as E1 to E13."""
    known = spaces()
    if name in known:
        return known[name].perspective
    if name[:1] == "E" and name[1:].isdigit():
        raise InvalidRequest(field, f"{name!r} is none of {', '.join(known)}")
    return name
