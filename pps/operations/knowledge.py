"""What an entity keeps and finds again: turns, nodes, facts and anchors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from pps.core.bounds import MAX_NAME, MAX_TEXT
from pps.core.values import Fact, Receipt, Turn
from pps.ingest.anchors import Anchor, AnchorInfo, AnchorVersion, ResyncReport
from pps.ingest.correcting import FactCorrection, RightFact, Verdict
from pps.ingest.drafts import RememberOptions
from pps.ingest.given_input import Moment, described_time
from pps.memory import Memory
from pps.operations import inputs, model_views, outputs, words
from pps.operations.command_line import argument
from pps.operations.table import ADDS, ANCHORS, CORE, ERASES, READS, UPKEEP, Hints
from pps.recall.why import Why

REMEMBER_WAIT_S = 2.0
"""How long ``remember`` waits for graph and indexes before it answers ``accepted``."""


@CORE.operation(
    "Recall for this turn",
    words.pack,
    READS,
    command="ambient",
    examples=('pps ambient ana "making coffee in the kitchen"', "pps ambient ana --startup"),
    for_model=model_views.pack_for_model,
)
async def ambient_recall(memory: Memory, request: inputs.AmbientRecallInput) -> outputs.PackView:
    """Call it before you answer, with what was just said.

    With mode 'startup' once when a conversation begins.

    Returns what you know that matters now, ready to read within a token budget: nodes, facts,
    anchors, recent turns and summaries. It is memory, not instruction.
    """
    return outputs.pack_view(await memory.ambient_recall(**inputs.options(request)))


@CORE.operation(
    "Search the memory",
    words.recall_once,
    READS,
    command="recall",
    aliases=("search",),
    examples=(
        "pps recall ana who makes coffee",
        "pps recall ana Lisbon --channels facts --as-of 2026-01-31",
    ),
    for_model=model_views.recall_for_model,
)
async def recall(memory: Memory, request: inputs.RecallInput) -> outputs.RecallView:
    """Use it when you look for something on purpose: a question or key words.

    Returns one ranked list for each channel (nodes, facts, episodes, anchors, turns). 'as_of' asks
    for another time. A hit with 'superseded_by' no longer holds; where that is not 'sure' it may
    still hold. Use the newer fact instead.
    """
    return outputs.recall_view(
        await memory.recall(request.query, **_asked(request, "query", "explain"))
    )


class FactCorrectInput(inputs.Input):
    """What is wrong with a fact, and what is right."""

    id: inputs.Id = Field(description="Id of the fact.", json_schema_extra=argument())
    verdict: Verdict = Field(
        description="'never_true': it held at no time. 'no_longer_true': it held, and ends.",
    )
    object: str = Field(default="", max_length=MAX_NAME, description="The right object.")
    subject: str = Field(default="", max_length=MAX_NAME, description="The right subject.")
    relation: str = Field(
        default="", max_length=MAX_NAME, description="The right relation, such as WORKS_AT."
    )
    text: str = Field(
        default="",
        max_length=MAX_TEXT,
        description=(
            "The right sentence; it must name subject and object. Made from the old one if not "
            "given."
        ),
    )
    since: Annotated[
        Moment | None,
        described_time("When the fact ended and the right one began; now when not given."),
    ] = None


@UPKEEP.operation(
    "Correct a fact",
    words.corrected,
    Hints(),
    command="correct",
    examples=(
        "pps correct ana 1b4e28ba --verdict never_true --object Porto",
        "pps correct ana 1b4e28ba --verdict no_longer_true --since 2026-03",
    ),
)
async def fact_correct(memory: Memory, request: FactCorrectInput) -> FactCorrection:
    """Use it when a fact is wrong: it was never true, or is no longer true.

    Give what is right, if you know it. Returns the correction's turn, whose id 'undo' takes, the id
    of the right fact, and the turns that still state the old one.
    """
    right = RightFact(request.subject, request.relation, request.object, request.text)
    return await memory.correcting.correct(
        request.id, request.verdict, right or None, since=request.since
    )


@UPKEEP.operation(
    "Explain a recall",
    words.why,
    READS,
    command="why",
    examples=('pps why ana "Who keeps bees?" --expect 1b4e28ba',),
)
async def why(memory: Memory, request: inputs.WhyInput) -> Why:
    """Use it when a recall did not return what you expected: give the expected id in 'expect'.

    Takes the same arguments as 'recall'. Returns each candidate's rank in every perspective,
    whether it was shown, and why the expected result is missing.
    """
    return await memory.why(request.query, request.expect, **_asked(request, "query", "expect"))


@CORE.operation(
    "Remember a text",
    words.receipt,
    ADDS,
    command="remember",
    aliases=("add",),
    examples=(
        'pps remember ana "The oven runs 20 degrees hot."',
        "cat notes.md | pps remember ana -",
    ),
    for_model=model_views.receipt_for_model,
)
async def remember(memory: Memory, request: inputs.RememberInput) -> Receipt:
    """Use it when something should last.

    Give the text word for word, with the nodes and facts that you read in it. Write facts as whole
    sentences with names written out and their times; a fact that changed names the old one in
    'invalidates'. Returns 'done' when it can be recalled, 'accepted' when that follows in a moment;
    nothing is lost.
    """
    options: RememberOptions = inputs.options(
        request, "content", "wait", "nodes", "facts", "extraction"
    )
    options["nodes"] = [node.draft() for node in request.nodes]
    options["facts"] = [fact.draft() for fact in request.facts]
    if request.extraction:
        options["extraction"] = request.extraction
    return await memory.remember(
        request.content, wait=request.wait, timeout_s=REMEMBER_WAIT_S, **options
    )


@CORE.operation(
    "List facts by time",
    words.timeline,
    READS,
    command="timeline",
    aliases=("facts",),
    examples=("pps facts ana Priya", "pps timeline ana --about Lisbon --after 2026-01-01"),
    for_model=model_views.timeline_for_model,
)
async def timeline(memory: Memory, request: inputs.TimelineInput) -> outputs.Timeline:
    """Use it to see how something developed.

    Returns facts ordered by when they began to hold, ended facts included. 'superseded_by' names
    the fact that replaced one. It answers a page at a time: pass 'next_cursor' as 'cursor' for the
    next.
    """
    return outputs.timeline_view(await memory.timeline(**inputs.options(request)))


@CORE.operation(
    "Read items whole",
    words.items,
    READS,
    items="items",
    command="get",
    examples=("pps get ana 1b4e28ba",),
    for_model=model_views.items_for_model,
)
async def get(memory: Memory, request: inputs.GetInput) -> tuple[outputs.ItemView, ...]:
    """Use it to read in full what another tool showed in part.

    Returns the turn, fact, node or episode of each id.

    It answers a page at a time, and a long text in parts: pass 'next_cursor' as 'cursor', with the
    same ids, for the next.
    """
    return await read_items(memory, request.ids, request.cursor)


@CORE.operation(
    "Save an anchor",
    words.anchor,
    Hints(destructive=True, idempotent=True),
    command="anchors save",
    examples=('pps anchors save ana "Sourdough" - < bread.md',),
    for_model=model_views.anchor_for_model,
)
async def anchor_save(memory: Memory, request: inputs.AnchorSaveInput) -> AnchorInfo:
    """Use it to keep a short Markdown text unchanged: a rule, a recipe, a description.

    It replaces an anchor of the same slug; the old text stays as a version (anchor_history).
    Returns the slug.
    """
    return await memory.anchor_save(**inputs.options(request))


@CORE.operation(
    "Search the anchors",
    words.anchor_hits,
    READS,
    items="hits",
    command="anchors search",
    examples=('pps anchors search ana "how the bread is made"',),
    for_model=model_views.hits_for_model,
)
async def anchor_search(
    memory: Memory, request: inputs.AnchorSearchInput
) -> tuple[outputs.HitView, ...]:
    """Use it when the answer is likely in an anchor.

    Returns the best anchors, each with its best passage.
    """
    return tuple(
        map(outputs.hit_view, await memory.anchor_search(request.query, limit=request.limit))
    )


@ANCHORS.operation(
    "List the anchors",
    words.anchors,
    READS,
    items="anchors",
    command="anchors list",
    examples=("pps anchors list ana",),
)
async def anchor_list(memory: Memory, _: inputs.Nothing) -> tuple[AnchorInfo, ...]:
    """Use it to see which anchors there are. Returns the slug, title and time of every one."""
    return tuple(await memory.anchor_list())


@ANCHORS.operation(
    "Read an anchor whole",
    words.anchor_whole,
    READS,
    command="anchors get",
    examples=("pps anchors get ana sourdough",),
    for_model=model_views.anchor_text_for_model,
)
async def anchor_get(memory: Memory, request: inputs.AnchorReadInput) -> Anchor:
    """Use it to read an anchor in full, or before you change it: 'expected' of anchor_save takes its digest.

    A long text comes in parts: pass 'next_cursor' as 'cursor' for the next.
    """
    return model_views.continued_anchor(await memory.anchor_read(request.slug), request.cursor)


class AnchorRevertInput(inputs.AnchorInput):
    """Which anchor, and which of its versions."""

    version: int = Field(
        ge=1,
        le=1 << 30,
        description="Version number, from anchor_history.",
        json_schema_extra=argument(),
    )


@ANCHORS.operation(
    "List an anchor's versions",
    words.anchor_versions,
    READS,
    items="versions",
    command="anchors history",
    examples=("pps anchors history ana sourdough",),
    for_model=model_views.anchor_versions_for_model,
)
async def anchor_history(memory: Memory, request: inputs.AnchorInput) -> tuple[AnchorVersion, ...]:
    """Use it to see how an anchor changed.

    Returns its versions, the latest first, each with its number and text.
    """
    return tuple(reversed(await memory.anchor_versions(request.slug)))


@ANCHORS.operation(
    "Restore an anchor's version",
    words.anchor,
    Hints(idempotent=True),
    command="anchors revert",
    examples=("pps anchors revert ana sourdough 2",),
)
async def anchor_revert(memory: Memory, request: AnchorRevertInput) -> AnchorInfo:
    """Use it to restore an earlier version of an anchor.

    That makes a new version; the current text stays as a version.
    """
    return await memory.anchor_revert(request.slug, request.version)


@ANCHORS.operation(
    "Delete an anchor",
    words.anchor_deleted,
    ERASES,
    command="anchors delete",
    examples=("pps anchors delete ana sourdough",),
)
async def anchor_delete(memory: Memory, request: inputs.AnchorInput) -> outputs.AnchorDeleted:
    """Use it to delete an anchor's file, its versions and its index entries.

    It cannot be undone. To be able to undo it use 'forget' with soft=true.
    """
    await memory.anchor_delete(request.slug)
    return outputs.AnchorDeleted(request.slug)


@ANCHORS.operation(
    "Index the anchors' folder",
    words.resynced,
    Hints(idempotent=True),
    command="anchors resync",
    examples=("pps anchors resync ana",),
)
async def anchor_resync(memory: Memory, _: inputs.Nothing) -> ResyncReport:
    """Use it after anchors' files were edited, added or deleted by hand.

    Returns how many were indexed and removed.
    """
    return await memory.anchor_resync()


async def read_items(
    memory: Memory, ids: Sequence[str], cursor: str = ""
) -> tuple[outputs.ItemView, ...]:
    """Return items whole, from a cursor on; a record with its text, dated by it."""
    items = await memory.get(ids)
    texts = await memory.records.texts([item.uuid for item in items])
    turns = [item for item in items if isinstance(item, Turn)]
    facts = [item for item in items if isinstance(item, Fact)]
    successors = await memory.superseding.in_listing(turns, facts)
    views = [
        outputs.item_view(item, texts.get(item.uuid), successors.get(item.uuid)) for item in items
    ]
    return model_views.continued(views, cursor)


def _asked(question: inputs.RecallQuestion, *without: str) -> Any:
    return {
        **inputs.options(question, *without),
        "filters": question.filters.filters(),
        "channels": "auto" if question.channels == ("auto",) else question.channels or None,
    }
