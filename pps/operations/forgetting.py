"""Forgetting, for good or so that it can be restored for a while, and restoring."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from pps.core.errors import InvalidRequest
from pps.core.reports import Forgotten, Restorable, Restored
from pps.ingest.forget import MAX_WHY, Manner
from pps.ingest.given_input import Input, Name
from pps.ingest.mentions import MentionKind
from pps.memory import Memory
from pps.operations import words
from pps.operations.command_line import argument
from pps.operations.inputs import ForgetInput, Id
from pps.operations.model_views import forgotten_for_model
from pps.operations.table import ADDS, CORE, ERASES, PERSPECTIVES, READS, UPKEEP, Hints
from pps.records.undoing import MOST, Edits, Undone

Why = Annotated[str, StringConstraints(max_length=MAX_WHY)]


class ForgetSoftlyInput(ForgetInput):
    """What to forget, and whether for good."""

    soft: bool = Field(
        default=False, description="It can be restored for 30 days, and nothing shows it meanwhile."
    )
    reason: Why = Field(default="", description="Why, kept with what is softly forgotten.")
    along: tuple[MentionKind, ...] = Field(
        default=(),
        max_length=5,
        description="What mentions the forgotten nodes and goes too: turns, facts, nodes, anchors, "
        "copies (in a "
        "squad's pool). A dry run lists it as 'mentions'; what is not taken along stays, and "
        "recall finds it.",
    )


class ForgottenInput(Input):
    """Everything that can be restored, or one entry of it."""

    id: Id | None = Field(
        default=None,
        description="Only that entry, with what still mentions it.",
        json_schema_extra=argument(),
    )


class ForgetConceptInput(Input):
    """One thing to forget."""

    id: Name = Field(
        description="Id of a node, record, fact or turn (the first 8 characters do), or a title."
    )
    soft_delete: bool = Field(
        default=True,
        description="It can be restored for 30 days; false erases it for good, at once.",
    )
    reason: Why = Field(default="", description="Why.")
    operator: Why = Field(default="", description="Who wants it, if not you.")
    dry_run: bool = Field(default=False, description="True only says what would go.")

    @property
    def ids(self) -> tuple[str, ...]:
        """What is to go, as ``ForgetInput`` has it."""
        return (self.id,)


class RestoreInput(Input):
    """What to restore."""

    id: Id = Field(
        description="What 'forgotten' and the answer of 'forget' give, or its first 8 characters.",
        json_schema_extra=argument(),
    )


class EditsInput(Input):
    """Which changes."""

    limit: int = Field(default=50, ge=1, le=MOST, description="Most changes a page.")
    cursor: Annotated[str, StringConstraints(max_length=20)] = Field(
        default="", description="'next_cursor' of the page before."
    )


class UndoInput(Input):
    """Which change to undo."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=100)] = Field(
        description="As 'edits' and the change itself gave it: the turn of a correction, the id of "
        "a forgetting, or an "
        "id with '@' and a version.",
        json_schema_extra=argument(),
    )


@CORE.operation(
    "Forget",
    words.gone,
    ERASES,
    command="forget",
    examples=(
        "pps forget ana Momo",
        "pps forget ana 1b4e28ba --yes",
        'pps forget ana 1b4e28ba --soft --reason "Moot." --yes',
    ),
    for_model=forgotten_for_model,
)
async def forget(memory: Memory, request: ForgetSoftlyInput) -> Forgotten:
    """Use it to erase turns, facts, nodes or anchors for good, or with soft=true so that they can be restored.

    By default a dry run that returns what would go, and as 'mentions' what still says its name and stays: show that, and
    only then call again with dry_run=false and the ids in 'asked'. 'along' takes mentions along. A fact that merely
    changed is not forgotten but replaced, by remember with 'invalidates'.
    """
    if request.soft and request.keep:
        raise InvalidRequest(
            "keep",
            "is for what goes for good: what can be restored is shown nowhere, pools included",
        )
    return await memory.forget(
        request.ids,
        dry_run=request.dry_run,
        soft=request.soft,
        why=request.reason,
        along=request.along,
    )


@UPKEEP.operation(
    "What can be restored",
    words.restorables,
    READS,
    items="forgotten",
    command="forgotten",
    examples=("pps forgotten ana", "pps forgotten ana 1b4e28ba"),
)
async def forgotten(memory: Memory, request: ForgottenInput) -> tuple[Restorable, ...]:
    """Use it to find what was softly forgotten: what, when, by whom, why, and until when it can be restored.

    Returns the latest first, each with the id that 'restore_forgotten' takes; with 'id' that entry alone, and what
    still mentions it.
    """
    if request.id is not None:
        return (await memory.forgetting.get(request.id),)
    return tuple(await memory.forgetting.list())


@UPKEEP.operation(
    "Restore what was forgotten",
    words.restored,
    ADDS,
    command="restore",
    examples=("pps restore ana 1b4e28ba",),
)
async def restore_forgotten(memory: Memory, request: RestoreInput) -> Restored:
    """Use it to have back what was softly forgotten, whole and as it was.

    Returns the ids of what came back.
    """
    return await memory.forgetting.restore(request.id)


@UPKEEP.operation(
    "What was changed by hand", words.edits, READS, command="edits", examples=("pps edits ana",)
)
async def edits(memory: Memory, request: EditsInput) -> Edits:
    """Use it to see what was corrected, softly forgotten and edited, the latest first, each with the id for 'undo'.

    It answers a page at a time: pass 'next_cursor' as 'cursor' for the next.
    """
    return await memory.undoing.list(limit=request.limit, cursor=request.cursor)


@UPKEEP.operation(
    "Undo a change",
    words.undone,
    Hints(),
    command="undo",
    examples=("pps undo ana 1b4e28ba", "pps undo ana sourdough@3"),
)
async def undo(memory: Memory, request: UndoInput) -> Undone:
    """Use it when a correction, a soft forgetting, or a change of a text or an anchor was a mistake: all is as it was.

    Returns what was undone, and in 'redo' the id with which 'undo' does it again, where that can be.
    """
    return await memory.undoing.undo(request.id)


@PERSPECTIVES.operation("Forget one thing", words.gone, ERASES, for_model=forgotten_for_model)
async def forget_concept(memory: Memory, request: ForgetConceptInput) -> Forgotten:
    """Use it to take one thing out of everything that you are shown, with what only it supported.

    Within 30 days 'restore_forgotten' brings it back; with soft_delete=false it is erased for good
    at once.
    """
    how = Manner(soft=request.soft_delete, why=request.reason, by=request.operator)
    return await memory.forget(request.ids, dry_run=request.dry_run, **how)
