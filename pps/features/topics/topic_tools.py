"""What a memory is about: its topics, how they hold, and nodes that are one thing."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from pps.core.errors import InvalidRequest
from pps.core.ids import short_id
from pps.core.reports import MergePlan
from pps.core.text import counted
from pps.features.topics import calibration
from pps.features.topics.calibration import PerspectiveStates
from pps.features.topics.proposals import (
    Dream,
    DreamRequest,
    Pair,
    Proposals,
    Strategy,
    consolidation,
    dream,
)
from pps.features.topics.session_topics import Divergence, divergence
from pps.features.topics.topic_values import Portfolio, Stability
from pps.ingest.given_input import Input, Name
from pps.ingest.indexer import Progress
from pps.memory import Memory
from pps.operations.inputs import Label, Nothing, Question
from pps.operations.recall_tools import PackView, pack_for_model, pack_text, pack_view
from pps.operations.table import ERASES, PERSPECTIVES, READS, SETS
from pps.operations.titled_texts import merge_plan_text

_BAR = 24


class PortfolioInput(Input):
    """How much of each topic."""

    format: Literal["brief", "standard", "verbose"] = Field(
        default="standard",
        description=(
            "brief: names and sizes; standard: terms and how each changes too; verbose: ids of "
            "members too."
        ),
    )


class StabilityInput(Input):
    """Over which time."""

    hours: int = Field(default=6, ge=1, le=168, description="How far back to compare.")


class DetectInput(Input):
    """How thoroughly."""

    force: bool = Field(
        default=False,
        description="True detects again even if nothing was added since the last time.",
    )
    max_memories: int = Field(
        default=10_000,
        ge=3,
        le=100_000,
        description="Maximum memories, the newest and most important first.",
    )


class MergeConceptsInput(Input):
    """Which nodes are one thing."""

    source_ids: tuple[Name, ...] = Field(
        min_length=2, max_length=10, description="Ids or names of the nodes."
    )
    target_name: Name = Field(description="Name of the node that stays; one of the given nodes.")
    rationale: Annotated[str, StringConstraints(min_length=1, max_length=1_024)] = Field(
        description="Why they are the same; it is not kept."
    )
    dry_run: bool = Field(
        default=True, description="True only shows the result; nothing is merged."
    )


def portfolio_words(view: Portfolio) -> str:
    """Return a line a topic with a bar of its size, then how all of them change."""
    if view.at is None:
        return "No topics were looked for yet: detect_topics does (`pps detect NAME`)."
    if not view.topics:
        return (
            "No topics yet: a topic takes at least three memories about one thing. Remember more, "
            "then detect again (detect_topics, `pps detect NAME`)."
        )
    widest = max(len(topic.name) for topic in view.topics)
    most = view.topics[0].size
    lines: list[str] = []
    for topic in view.topics:
        bar = "█" * max(1, round(_BAR * topic.size / most))
        lines.append(
            f"{topic.name:<{widest}}  {bar:<{_BAR}} {topic.size:>4}  {topic.confidence:4.2f}  "
            f"{topic.phase}"
        )
        lines += [f"  {', '.join(topic.terms)}"] if topic.terms else []
        lines += [f"  {short_id(member)}" for member in topic.members]
    change = _change_text(
        view.churn, view.entropy, "since the earlier detection", consolidate=view.consolidate
    )
    return "\n".join([*lines, change])


def stability_words(view: Stability) -> str:
    """Return how many topics there are, in which phases, and how much changed."""
    phases = ", ".join(f"{count} {phase}" for phase, count in view.phases.items()) or "none"
    head = (
        f"{counted(view.topics, 'topic')} ({phases}); {counted(view.snapshots, 'snapshot')} in "
        f"{view.hours} h."
    )
    change = _change_text(
        view.churn,
        view.entropy,
        "from the first snapshot to the last",
        consolidate=view.consolidate,
    )
    return f"{head}\n{change}"


def _change_text(
    churn: float | None, entropy: float | None, compared: str, *, consolidate: bool
) -> str:
    """Return in words how much topics changed and how evenly they are spread.

    ``compared`` says between which detections they changed.
    """
    if churn is None:
        changed = (
            "How much the topics changed is not known yet: that takes two detections. Detect them "
            "again when more has been remembered (detect_topics, `pps detect NAME`)."
        )
    else:
        changed = f"{churn:.0%} of the memberships changed {compared}."
    if entropy is None:
        spread = "How evenly memories are spread over topics is not known: that takes two topics."
    else:
        spread = f"Memories are spread over the topics with an evenness of {entropy:.2f} of 1."
    hint = (
        " Much is new and scattered: trigger_consolidation proposes what to merge."
        if consolidate
        else ""
    )
    return f"{changed}\n{spread}{hint}"


@PERSPECTIVES.operation(
    "List topics",
    portfolio_words,
    READS,
    command="topics",
    examples=("pps topics ana", "pps topics ana --format verbose"),
)
async def get_topic_portfolio(memory: Memory, request: PortfolioInput) -> Portfolio:
    """Use it to see what a memory is about.

    A topic is a group of memories that several perspectives find similar. Returns the largest
    first. Returns each topic's name, size, confidence, phase (emerging, stable, declining, merging)
    and how much it changed.
    """
    portfolio = await memory.topics.portfolio()
    if request.format == "verbose":
        return portfolio
    bare = (
        {"members": ()}
        if request.format == "standard"
        else {"members": (), "terms": (), "named": ()}
    )
    return replace(portfolio, topics=tuple(replace(topic, **bare) for topic in portfolio.topics))


@PERSPECTIVES.operation("Show how topics change", stability_words, READS)
async def get_topic_stability(memory: Memory, request: StabilityInput) -> Stability:
    """Use it to see whether the topics of a memory change.

    Returns churn (the share of memories that changed their topic), entropy of the sizes, and topics
    by phase.
    """
    return await memory.topics.stability(request.hours)


@PERSPECTIVES.operation(
    "Detect topics",
    portfolio_words,
    SETS,
    command="detect",
    examples=("pps detect ana", "pps detect ana --force"),
)
async def detect_topics(
    memory: Memory, request: DetectInput, progress: Progress | None
) -> Portfolio:
    """Use it to detect topics again; the end of a session also does so.

    Returns the same as {get_topic_portfolio}.
    """
    portfolio = await memory.topics.detect(
        progress, force=request.force, max_memories=request.max_memories
    )
    return replace(
        portfolio, topics=tuple(replace(topic, members=()) for topic in portfolio.topics)
    )


@PERSPECTIVES.operation(
    "Merge nodes into one",
    lambda merges: "\n".join(map(merge_plan_text, merges)),
    ERASES,
    items="merges",
)
async def merge_concepts(memory: Memory, request: MergeConceptsInput) -> tuple[MergePlan, ...]:
    """Use it when 2 to 10 nodes are the same person, place or thing.

    The node named {target_name} gets the others' facts and mentions. By default it is a dry run:
    show what it returns, and only then call again with {dry_run=false}. {undo_merge} undoes each
    merge, the last one first.
    """
    nodes = {node.uuid: node for node in await memory.get(request.source_ids)}
    named = [
        id_
        for id_, node in nodes.items()
        if getattr(node, "name", "").casefold() == request.target_name.casefold()
    ]
    if len(nodes) < 2:
        raise InvalidRequest("source_ids", "must name at least two nodes")
    if not named:
        raise InvalidRequest("target_name", "must be the name of one of the nodes")
    merging = memory.records.merging
    others = [id_ for id_ in nodes if id_ != named[0]]
    plans = [
        await merging.merge(named[0], other, dry_run=True) for other in others
    ]  # all can, before one is done
    if not request.dry_run:
        plans = [await merging.merge(named[0], other, dry_run=False) for other in others]
    return tuple(plans)


class AlertsInput(Input):
    """How far back, and of which session."""

    lookback_hours: int = Field(
        default=2, ge=1, le=48, description="Number of hours whose turns are compared."
    )
    session: Label = Field(
        default="", description="Id of the conversation. Default: that of the newest turn."
    )


class ConsolidationInput(Input):
    """Which memories may say the same."""

    strategy: Strategy = Field(
        default="similarity",
        description="similarity: all similar pairs; temporal: only pairs said within a day; "
        "semantic: only pairs of one topic.",
    )
    min_similarity: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description=(
            "Minimum cosine similarity of two memories that say the same. Default: the "
            "threshold measured for this memory's model."
        ),
    )
    max_memories: int = Field(
        default=100, ge=2, le=2_000, description="Maximum memories, the most important first."
    )


class DreamInput(Input):
    """Which halves, and how long."""

    dry_run: bool = Field(default=False, description="True only counts the memories it would read.")
    skip_nrem: bool = Field(
        default=False, description="True skips the replay of the most similar memories."
    )
    skip_rem: bool = Field(default=False, description="True skips the walks that propose links.")
    max_duration_secs: int = Field(default=300, ge=10, le=600, description="Maximum seconds.")


def divergence_words(view: Divergence) -> str:
    if not view.alerts:
        return (
            f"No divergence: compared with {counted(view.turns, 'turn')} in "
            f"{counted(view.spaces, 'space')}."
        )
    lines = [
        f"{alert.severity}: {alert.space} {alert.similarity:.2f} < {alert.threshold:.2f}"
        for alert in view.alerts
    ]
    return "\n".join(
        [f"The session's newest turn left its subject: {view.alerts[0].summary}", *lines]
    )


def proposals_words(view: Proposals) -> str:
    more = ["More: ask for a higher min_similarity."] if view.more else []
    lines = [_pair(pair) for pair in view.pairs] or [
        f"Nothing to consolidate among {counted(view.memories, 'memory')}."
    ]
    return "\n".join([*lines, *more])


def dream_words(view: Dream) -> str:
    head = (
        f"Went over {counted(view.memories, 'memory')}, {counted(view.walks, 'walk')} "
        f"({view.ended})."
    )
    replayed = ["Goes on elsewhere:", *map(_pair, view.replayed)] if view.replayed else []
    proposed = ["Links to think about:", *map(_pair, view.proposed)] if view.proposed else []
    none = [] if replayed or proposed or view.ended == "dry_run" else ["Nothing to propose."]
    return "\n".join([head, *replayed, *proposed, *none])


def _pair(pair: Pair) -> str:
    first, second = pair.texts
    why = f"{pair.reason}: {', '.join(pair.shared)}" if pair.shared else pair.reason
    return (
        f"{first} [{short_id(pair.first)}]\n  {second} [{short_id(pair.second)}]\n"
        f"  ({why}; {pair.space} {pair.similarity:.2f})"
    )


@PERSPECTIVES.operation("Find where a session left its subject", divergence_words, READS)
async def get_divergence_alerts(memory: Memory, request: AlertsInput) -> Divergence:
    """Use it to see whether a conversation has left its subject.

    It compares the newest turn with those of the last hours. Returns an alert for each perspective
    in which it resembles none of them; no alert for short turns.
    """
    return await divergence(memory.topics.sources, request.lookback_hours, request.session)


@PERSPECTIVES.operation("Propose what to consolidate", proposals_words, READS)
async def trigger_consolidation(memory: Memory, request: ConsolidationInput) -> Proposals:
    """Use it to find pairs of memories that say the same, or where the later amends the earlier.

    Returns pairs with the reason and what both name, most similar first, each memory once. It
    changes nothing: use {forget_concept} for a repetition, {merge_concepts} for nodes.
    """
    topics = await memory.topics.portfolio() if request.strategy == "semantic" else Portfolio(())
    return await consolidation(
        memory.topics.sources,
        topics,
        request.strategy,
        request.min_similarity,
        request.max_memories,
    )


@PERSPECTIVES.operation("Propose links while idle", dream_words, READS)
async def trigger_dream(
    memory: Memory, dream_input: DreamInput, progress: Progress | None
) -> Dream:
    """Use it when idle.

    It replays recent conversations, then walks the graph from memories with few connections.
    Returns proposed links between memories of different meaning that share something rare, each
    with what both name; it may return none. It changes nothing.
    """
    if dream_input.skip_nrem and dream_input.skip_rem:
        raise InvalidRequest(
            "skip_rem", "must be false where skip_nrem is true: there would be nothing to do"
        )
    request = DreamRequest(
        dream_input.dry_run,
        dream_input.skip_nrem,
        dream_input.skip_rem,
        dream_input.max_duration_secs,
    )
    return await dream(memory.topics.sources, request, progress)


class InjectInput(Input):
    """What is being talked about, and how much room there is."""

    query: Question = Field(description="The latest one or two messages, unchanged.")
    max_tokens: int = Field(
        default=1_200, ge=100, le=100_000, description="Maximum tokens of the text; never exceeded."
    )
    session: Label | None = Field(
        default=None,
        description=(
            "Id of this conversation. Items it was already shown are left out; alerts say "
            "whether it left its subject."
        ),
    )
    explore: bool = Field(
        default=False,
        description=(
            "True gives at most 15 % of the tokens to topics that the query does not ask for."
        ),
    )


@PERSPECTIVES.operation(
    "Get memory for this turn, with topics", pack_text, READS, for_model=pack_for_model
)
async def inject_context(memory: Memory, request: InjectInput) -> PackView:
    """Use it in place of {ambient_recall} if you also want the topics.

    Returns the same pack, most relevant first, with an alert if the session left its subject, and
    the trust of each line's source (person, agent, outside). It returns nothing if nothing is
    relevant.
    """
    pack = await memory.sessions.inject(
        request.query, request.max_tokens, request.session, explore=request.explore
    )
    return pack_view(pack)


class CalibrateInput(Input):
    """Whether to measure, or to go back."""

    reset: bool = Field(
        default=False,
        description="True discards the measured thresholds and uses the shipped ones.",
    )


def states_words(view: PerspectiveStates) -> str:
    """Return a line a perspective: category, weights, thresholds and where they are from."""
    lines = [f"Embedding model: {view.model or 'none'}."]
    lines += [f"Measured with the newest {counted(view.read, 'turn')}."] if view.read else []
    for perspective in view.perspectives:
        limits = "" if perspective.high is None else f"  from {perspective.high:.2f} on"
        limits += "" if perspective.low is None else f", far below {perspective.low:.2f}"
        limits += "" if perspective.left is None else f", left below {perspective.left:.2f}"
        limits += "" if perspective.measured is None else f" ({perspective.measured})"
        waiting = (
            f"  {counted(perspective.waiting, 'feature')} to be made again"
            if perspective.waiting
            else ""
        )
        weights = f"{perspective.category_weight:.1f} {perspective.topic_weight:.1f}"
        lines.append(
            f"{perspective.id:<3} {perspective.name:<9} {perspective.category:<10} {weights}  "
            f"{perspective.finds}{limits}{waiting}"
        )
    return "\n".join(lines)


@PERSPECTIVES.operation(
    "List perspectives",
    states_words,
    READS,
    command="perspectives",
    examples=("pps perspectives ana",),
)
async def get_perspectives(memory: Memory, _: Nothing) -> PerspectiveStates:
    """Use it to see the thirteen perspectives.

    Returns what each finds, its category, weights and thresholds of similarity. Says whether the
    thresholds were measured for this memory or for the model, and how many features wait to be
    computed again.
    """
    return await calibration.states(memory.topics.sources)


@PERSPECTIVES.operation(
    "Measure the thresholds of similarity",
    states_words,
    SETS,
    command="calibrate",
    examples=("pps calibrate ana", "pps calibrate ana --reset"),
)
async def calibrate_perspectives(
    memory: Memory, request: CalibrateInput, progress: Progress | None
) -> PerspectiveStates:
    """Use it once a memory with an embedding model of your own has some hundred turns.

    It measures which similarities are high for it. It reads the newest 1,000 turns; the thresholds
    are kept for this memory alone. Returns the same as {get_perspectives}.
    """
    if request.reset:
        return await calibration.uncalibrate(memory.topics.sources)
    return await calibration.calibrate(memory.topics.sources, progress)
