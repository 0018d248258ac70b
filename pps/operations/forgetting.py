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
        default=False,
        description="True hides it everywhere and lets it be restored for 30 days. False erases it.",
    )
    reason: Why = Field(default="", description="Reason, kept with what is softly forgotten.")
    along: tuple[MentionKind, ...] = Field(
        default=(),
        max_length=5,
        description="Kinds of items that mention the forgotten nodes and are forgotten with them: "
        "turns, facts, nodes, anchors, copies (in a squad's pool). A dry run lists such "
        "items as 'mentions'. Those of other kinds stay, and recall finds them.",
    )


class ForgottenInput(Input):
    """Everything that can be restored, or one entry of it."""

    id: Id | None = Field(
        default=None,
        description="Only this entry, with what still mentions it.",
        json_schema_extra=argument(),
    )


class ForgetConceptInput(Input):
    """One thing to forget."""

    id: Name = Field(
        description="Id of a node, record, fact or turn (or its first 8 characters), or a title."
    )
    soft_delete: bool = Field(
        default=True,
        description="True hides it everywhere and lets it be restored for 30 days. False erases it "
        "at once.",
    )
    reason: Why = Field(default="", description="Reason.")
    operator: Why = Field(default="", description="Who asked for it, if not you.")
    dry_run: bool = Field(default=False, description="True only lists what would be forgotten.")

    @property
    def ids(self) -> tuple[str, ...]:
        """What is to go, as ``ForgetInput`` has it."""
        return (self.id,)


class RestoreInput(Input):
    """What to restore."""

    id: Id = Field(
        description="Id from 'forgotten' or from the answer of 'forget', or its first 8 characters.",
        json_schema_extra=argument(),
    )


class EditsInput(Input):
    """Which changes."""

    limit: int = Field(default=50, ge=1, le=MOST, description="Maximum changes on a page.")
    cursor: Annotated[str, StringConstraints(max_length=20)] = Field(
        default="", description="'next_cursor' of the page before."
    )


class UndoInput(Input):
    """Which change to undo."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=100)] = Field(
        description="Id from 'edits' or from the answer of the change: a correction's turn, a "
        "forgetting's id, or an id with '@' and a version.",
        json_schema_extra=argument(),
    )


@CORE.operation(
    "Forget turns, facts, nodes or anchors",
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
    """Use it to erase turns, facts, nodes or anchors for good.

    With soft=true they can be restored. By default it is a dry run: it returns what would be
    forgotten, and in 'mentions' what else mentions it and would stay. Show that to the person, and
    only then call again with dry_run=false and the ids in 'asked'. 'along' forgets mentions too. Do
    not forget a fact that merely changed: replace it by remember with 'invalidates'.
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
    "List what can be restored",
    words.restorables,
    READS,
    items="forgotten",
    command="forgotten",
    examples=("pps forgotten ana", "pps forgotten ana 1b4e28ba"),
)
async def forgotten(memory: Memory, request: ForgottenInput) -> tuple[Restorable, ...]:
    """Use it to find what was softly forgotten, and until when it can be restored.

    Returns entries, latest first, each with the id that 'restore_forgotten' takes. With 'id' it
    returns that entry alone, and what still mentions it.
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
    """Use it to restore what was softly forgotten, complete and unchanged.

    Returns the ids of what came back.
    """
    return await memory.forgetting.restore(request.id)


@UPKEEP.operation(
    "List changes made by hand", words.edits, READS, command="edits", examples=("pps edits ana",)
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
    """Use it when a correction, a soft forgetting, or an edit of a text or an anchor was a mistake.

    Returns what was undone, and in 'redo' the id with which 'undo' does it again, if that is
    possible.
    """
    return await memory.undoing.undo(request.id)


@PERSPECTIVES.operation("Forget one thing", words.gone, ERASES, for_model=forgotten_for_model)
async def forget_concept(memory: Memory, request: ForgetConceptInput) -> Forgotten:
    """Use it to hide one item everywhere, with what only it supported.

    Within 30 days 'restore_forgotten' brings it back; with soft_delete=false it is erased for good
    at once.
    """
    how = Manner(soft=request.soft_delete, why=request.reason, by=request.operator)
    return await memory.forget(request.ids, dry_run=request.dry_run, **how)
