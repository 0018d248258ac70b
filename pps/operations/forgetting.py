"""Forgetting, for good or so that it can be restored; correcting facts; undoing changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from pps.core.bounds import MAX_NAME, MAX_TEXT
from pps.core.errors import InvalidRequest
from pps.core.reports import Forgotten, Mentions, Restorable, Restored
from pps.core.text import counted
from pps.ingest.correcting import FactCorrection, RightFact, Verdict
from pps.ingest.forget import MAX_WHY, Manner
from pps.ingest.given_input import Input, Moment, Name, described_time
from pps.ingest.mentions import MentionKind
from pps.memory import Memory
from pps.operations.inputs import YES_OPTION, Id, Names, argument
from pps.operations.item_views import model_time, moment_text, short_line
from pps.operations.pages import EMPTY, NOTHING_CHANGED
from pps.operations.table import ADDS, CORE, ERASES, PERSPECTIVES, READS, UPKEEP, Hints, ModelView
from pps.records.undoing import MOST, Edits, Undone

_MOST_MENTIONS = 5
"""Of each kind of what mentions something forgotten."""
_KINDS_OF_MENTIONS = "turns, facts, nodes, anchors or copies"
_MOST_IDS = 100
Reason = Annotated[str, StringConstraints(max_length=MAX_WHY)]


class ForgetInput(Input):
    """What to erase for good."""

    ids: Names = Field(
        description="Ids of turns, facts or nodes (or their first 8 characters), or slugs of "
        "anchors. A dry run also takes titles of records and names of nodes.",
        json_schema_extra=argument(),
    )
    dry_run: bool = Field(
        default=True,
        description="True only lists what would be forgotten. Ask the person, then call again with "
        "false.",
        json_schema_extra=YES_OPTION,
    )
    keep: bool = Field(default=False, description="True keeps copies in a squad's pool.")


class ForgetSoftlyInput(ForgetInput):
    """What to forget, and whether for good."""

    soft: bool = Field(
        default=False,
        description="True hides it everywhere and lets it be restored for 30 days. False erases "
        "it.",
    )
    reason: Reason = Field(default="", description="Reason, kept with what is softly forgotten.")
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
    reason: Reason = Field(default="", description="Reason.")
    operator: Reason = Field(default="", description="Who asked for it, if not you.")
    dry_run: bool = Field(default=False, description="True only lists what would be forgotten.")

    @property
    def ids(self) -> tuple[str, ...]:
        """What is to go, as ``ForgetInput`` has it."""
        return (self.id,)


class RestoreInput(Input):
    """What to restore."""

    id: Id = Field(
        description="Id from 'forgotten' or from the answer of 'forget', or its first 8 "
        "characters.",
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


class FactCorrectInput(Input):
    """What is wrong with a fact, and what is right."""

    id: Id = Field(description="Id of the fact.", json_schema_extra=argument())
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


def forgotten_text(value: Forgotten) -> str:
    """Return what went, or would go, and what still mentions it."""
    counts = _count_text(value.turns, value.facts, value.nodes, value.anchors)
    beside = ""
    if value.facts_kept:
        beside += f" {counted(len(value.facts_kept), 'fact')} kept: others support them."
    if value.no_longer_restorable:
        ids = ", ".join(value.no_longer_restorable)
        beside += f" What could be restored of it cannot be any more ({ids})."
    if value.upgrade_copy:
        beside += " The copy of this memory from before its upgrade goes with it, whole."
    if value.moved_copy:
        beside += " What another store keeps of this memory since its move goes with it, whole."
    mentions = _mention_lines(value.mentions) if value.mentions and value.mentions.total else []
    if value.dry_run:
        lines = [f"Would erase {counts}.{beside}", *(f"  {line}" for line in value.shown)]
        if mentions:
            along = f"`along` (`--along KIND`) takes a kind of them along: {_KINDS_OF_MENTIONS}."
            lines += [*mentions, along]
        return "\n".join([*lines, NOTHING_CHANGED])
    if value.pending:
        beside += (
            f" Its text is still on disk in: {', '.join(value.pending)}. Erasing it there is tried "
            "again until it succeeds."
        )
    if value.restorable_until:
        until = moment_text(value.restorable_until)
        restorable = f"Until {until} it can be restored as {value.restorable_as}."
        return "\n".join([f"Forgot {counts}.{beside} {restorable}", *mentions])
    return "\n".join([f"Erased {counts} for good.{beside}", *mentions])


def _mention_lines(value: Mentions) -> list[str]:
    """Return what still mentions something: how much of each kind, then the first of each."""
    counts = (
        (value.turns, "turn"),
        (value.facts, "fact"),
        (value.nodes, "node"),
        (value.anchors, "anchor"),
        (value.copies, "pool copy"),
    )
    total = ", ".join(counted(number, word) for number, word in counts if number)
    called = f" {', '.join(value.names)}" if value.names else " it"
    verb = "mentions" if value.total == 1 else "mention"
    lines: list[str] = []
    for kind in ("turn", "fact", "node", "anchor", "copy"):
        mentions = [item for item in value.items if item.kind == kind][:_MOST_MENTIONS]
        lines += [f"  {kind} {short_line(item.text)} [{item.id}]" for item in mentions]
    more = value.total - len(lines)
    rest = [f"  … and {more:,} more"] if more else []
    return [f"{total} still {verb}{called}; recall finds what stays:", *lines, *rest]


def _count_text(turns: Sized, facts: Sized, nodes: Sized, anchors: Sized) -> str:
    groups = ((turns, "turn"), (facts, "fact"), (nodes, "node"), (anchors, "anchor"))
    return ", ".join(counted(len(ids), noun) for ids, noun in groups if ids) or "nothing"


@dataclass(frozen=True, slots=True)
class ForgottenLines:
    """What went, or would go; of each the first 100 ids, and in ``more`` how many there are beyond.

    ``asked``: of a dry run by names, the ids to give when it is done. ``mentions``: what still says
    its name. ``upgrade_copy``, ``moved_copy``: of a dry run, the copy of the memory from before its
    upgrade, or its move to another store, goes too. ``pending``: what still holds its text on disk,
    to be erased later.
    """

    dry_run: bool
    asked: tuple[str, ...] | None = None
    turns: tuple[str, ...] | None = None
    facts: tuple[str, ...] | None = None
    facts_kept: tuple[str, ...] | None = None
    nodes: tuple[str, ...] | None = None
    anchors: tuple[str, ...] | None = None
    no_longer_restorable: tuple[str, ...] | None = None
    restorable_as: str | None = None
    restorable_until: str | None = None
    upgrade_copy: bool | None = None
    pending: tuple[str, ...] | None = None
    moved_copy: bool | None = None
    more: Mapping[str, int] | None = None
    mentions: Mentions | None = None


def forgotten_for_model(value: Forgotten, _: Input) -> ModelView:
    """Return the forgotten items with their ids; those of a dry run are shown before it is done."""
    names = ("turns", "facts", "facts_kept", "nodes", "anchors", "no_longer_restorable")
    groups: dict[str, tuple[str, ...]] = {}
    for name in names:
        ids = getattr(value, name)
        if ids:
            groups[name] = ids
    more = {name: len(ids) - _MOST_IDS for name, ids in groups.items() if len(ids) > _MOST_IDS}
    first: dict[str, Any] = {name: ids[:_MOST_IDS] for name, ids in groups.items()}
    data = ForgottenLines(
        value.dry_run,
        asked=value.asked if value.by_name else None,
        **first,
        restorable_as=value.restorable_as or None,
        restorable_until=model_time(value.restorable_until),
        upgrade_copy=value.upgrade_copy or None,
        pending=value.pending or None,
        moved_copy=value.moved_copy or None,
        more=more or None,
        mentions=value.mentions,
    )
    lines = [
        f"{name.replace('_', ' ')}: {', '.join(ids)}"
        + (f" and {more[name]:,} more" if name in more else "")
        for name, ids in first.items()
    ]
    if value.dry_run:
        ids = f" and the ids {', '.join(value.asked)}" if value.by_name else ""
        lines.append(f"To do it, call again with dry_run=false{ids}.")
    return ModelView(data, "\n".join([forgotten_text(value), *lines]))


@CORE.operation(
    "Forget turns, facts, nodes or anchors",
    forgotten_text,
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
    only then call again with {dry_run=false} and the ids in 'asked'. {along} forgets mentions too.
    Do not forget a fact that merely changed: replace it by remember with 'invalidates'.
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


@PERSPECTIVES.operation("Forget one thing", forgotten_text, ERASES, for_model=forgotten_for_model)
async def forget_concept(memory: Memory, request: ForgetConceptInput) -> Forgotten:
    """Use it to hide one item everywhere, with what only it supported.

    Within 30 days {restore_forgotten} brings it back; with soft_delete=false it is erased for good
    at once.
    """
    how = Manner(soft=request.soft_delete, why=request.reason, by=request.operator)
    return await memory.forget(request.ids, dry_run=request.dry_run, **how)


def restorables_text(forgotten: Sequence[Restorable]) -> str:
    lines: list[str] = []
    for entry in forgotten:
        numbers = (entry.turns, entry.facts, entry.nodes, entry.anchors)
        counts = _count_text(*(range(number) for number in numbers))
        by = f" by {entry.by}" if entry.by else ""
        why = f": {entry.why}" if entry.why else ""
        lines.append(
            f"{moment_text(entry.at)} {', '.join(map(repr, entry.what))} ({counts})"
            f"{by}{why}; until {moment_text(entry.until)} [{entry.id}]"
        )
        if entry.mentions is not None:
            lines += (
                _mention_lines(entry.mentions) if entry.mentions.total else ["Nothing mentions it."]
            )
    return "\n".join(lines) or EMPTY["forgotten"]


@UPKEEP.operation(
    "List what can be restored",
    restorables_text,
    READS,
    items="forgotten",
    command="forgotten",
    examples=("pps forgotten ana", "pps forgotten ana 1b4e28ba"),
)
async def forgotten(memory: Memory, request: ForgottenInput) -> tuple[Restorable, ...]:
    """Use it to find what was softly forgotten, and until when it can be restored.

    Returns entries, latest first, each with the id that {restore_forgotten} takes. With {id} it
    returns that entry alone, and what still mentions it.
    """
    if request.id is not None:
        return (await memory.forgetting.get(request.id),)
    return tuple(await memory.forgetting.list())


def restored_text(value: Restored) -> str:
    return f"Restored {_count_text(value.turns, value.facts, value.nodes, value.anchors)}."


@UPKEEP.operation(
    "Restore what was forgotten",
    restored_text,
    ADDS,
    command="restore",
    examples=("pps restore ana 1b4e28ba",),
)
async def restore_forgotten(memory: Memory, request: RestoreInput) -> Restored:
    """Use it to restore what was softly forgotten, complete and unchanged.

    Returns the ids of what came back.
    """
    return await memory.forgetting.restore(request.id)


def correction_text(value: FactCorrection) -> str:
    state_text = {
        "done": "Corrected.",
        "accepted": "Safe on disk; the fact is corrected in a moment.",
        "duplicate": "Corrected already.",
        "failed": "Kept in the journal, but the fact could not be corrected; `health` says why.",
    }[value.state]
    right = f" What is right: [{value.right}]." if value.right else ""
    skipped = [
        f"Left out: {skipped_item.what}: {skipped_item.why}" for skipped_item in value.skipped
    ]
    still = _mention_lines(value.mentions) if value.mentions.total else []
    first = f"{state_text}{right} Undo it with the id {value.turn_id}."
    return "\n".join([first, *skipped, *still])


@UPKEEP.operation(
    "Correct a fact",
    correction_text,
    Hints(),
    command="correct",
    examples=(
        "pps correct ana 1b4e28ba --verdict never_true --object Porto",
        "pps correct ana 1b4e28ba --verdict no_longer_true --since 2026-03",
    ),
)
async def fact_correct(memory: Memory, request: FactCorrectInput) -> FactCorrection:
    """Use it when a fact is wrong: it was never true, or is no longer true.

    Give what is right, if you know it. Returns the correction's turn, whose id {undo} takes, the id
    of the right fact, and the turns that still state the old one.
    """
    right = RightFact(request.subject, request.relation, request.object, request.text)
    return await memory.correcting.correct(
        request.id, request.verdict, right or None, since=request.since
    )


def edits_text(value: Edits) -> str:
    """Return a line a change: when, what, by whom, and the id that undoes it."""
    lines: list[str] = []
    for edit in value.edits:
        by = f" by {edit.actor}" if edit.actor else ""
        how = f"cannot be undone: {edit.why_not}" if edit.why_not else f"undo: {edit.id}"
        lines.append(f"{moment_text(edit.at)} {edit.kind}{by}: {edit.text} [{how}]")
    return "\n".join(lines or [EMPTY["edits"]])


@UPKEEP.operation(
    "List changes made by hand", edits_text, READS, command="edits", examples=("pps edits ana",)
)
async def edits(memory: Memory, request: EditsInput) -> Edits:
    """Use it to see what was corrected, softly forgotten and edited, the latest first, each with the id for {undo}.

    It answers a page at a time: pass 'next_cursor' as {cursor} for the next.
    """
    return await memory.undoing.list(limit=request.limit, cursor=request.cursor)


def undone_text(value: Undone) -> str:
    again = f" Undo this with the id {value.redo}." if value.redo else ""
    return f"Undone: {value.kind}: {value.text}{again}"


@UPKEEP.operation(
    "Undo a change",
    undone_text,
    Hints(),
    command="undo",
    examples=("pps undo ana 1b4e28ba", "pps undo ana sourdough@3"),
)
async def undo(memory: Memory, request: UndoInput) -> Undone:
    """Use it when a correction, a soft forgetting, or an edit of a text or an anchor was a mistake.

    Returns what was undone, and in 'redo' the id with which {undo} does it again, if that is
    possible.
    """
    return await memory.undoing.undo(request.id)
