"""What each operation answers, as text that a person or a model reads.

One line an item, ids in brackets.
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Sized
from dataclasses import replace
from datetime import UTC, datetime

from pps.context.lines import span
from pps.core.phrases import NOTHING_NEAR
from pps.core.recalled import Successor
from pps.core.reports import (
    AttemptReport,
    CostDay,
    CostReport,
    Extracted,
    Forgotten,
    Health,
    IngestionStats,
    Injected,
    JobReport,
    Mentions,
    Merge,
    MergePlan,
    Restorable,
    Restored,
    Stats,
)
from pps.core.text import counted, fold, one_line
from pps.core.time import iso, shown, shown_day
from pps.core.values import EventReceipt, Receipt, Skipped
from pps.ingest.anchors import Anchor, AnchorInfo, AnchorVersion, ResyncReport
from pps.ingest.correcting import FactCorrection
from pps.operations.empty_answers import EMPTY
from pps.operations.outputs import (
    AnchorDeleted,
    ChannelView,
    Duplicates,
    Examined,
    FactView,
    HistoryView,
    HitView,
    ItemView,
    LastProof,
    NodeView,
    PackView,
    RecallView,
    Timeline,
    TurnView,
    VersionView,
)
from pps.recall.why import Why
from pps.records.undoing import Edits, Undone

_LINE = 400
_MOST_MENTIONS = 5
"""Of each kind of what mentions something forgotten."""
_KINDS = "turns, facts, nodes, anchors or copies"
_SHOWN_FAR = 2
"""Hits of a channel that are told where nothing is near; as JSON all are."""
_ENDS = {
    "queued": "waits to be taken in",
    "running": "is being taken in",
    "done": "is in graph and indexes",
    "failed": "could not be taken in; it is kept in the journal",
    "dropped": "was given up; it is kept in the journal",
}


def pack(view: PackView) -> str:
    return view.text


def recall_once(view: RecallView) -> str:
    """Return the lists as a person reads them: with sources, and a text that several channels found stands once."""
    ids: set[str] = set()
    channels: dict[str, ChannelView] = {}
    for name, channel in view.channels.items():
        hits = [hit for hit in channel.hits if fold(hit.text) not in ids]
        ids.update(fold(hit.text) for hit in channel.hits)
        if hits or not channel.hits:
            channels[name] = replace(channel, hits=tuple(hits))
    return recall(replace(view, channels=channels), with_source=True)


def recall(view: RecallView, *, explain: bool = False, with_source: bool = False) -> str:
    """Return the lists one after another, each with a heading.

    Where scores are sums of signals, with their mean.

    With ``explain`` each hit has its score, ranks and signals on a line of its own.
    """
    lines: list[str] = []
    empty: list[str] = []
    nothing_near = NOTHING_NEAR in view.notes and not explain
    for name, channel in view.channels.items():
        if channel.error:
            lines.append(f"{name}: could not be searched ({channel.error})")
        elif channel.hits:
            hits = channel.hits[:_SHOWN_FAR] if nothing_near else channel.hits
            lines.append(_heading(name, channel))
            for number, hit in enumerate(hits, 1):
                lines.append(f"  {number}. {_hit(hit, with_source=with_source)}")
                lines.extend(_why_here(hit) if explain else ())
                lines.extend(f"     {fact_line(fact)}" for fact in hit.relationships or ())
            if len(hits) < len(channel.hits):
                lines.append(f"  … and {len(channel.hits) - len(hits)} more, farther away")
        else:
            empty.append(name)
        lines.extend(f"  note: {note}" for note in channel.notes)
    rest = [f"note: {note}" for note in view.notes if note != NOTHING_NEAR]
    if not lines:
        nothing = f"Nothing found in {', '.join(empty)}." if empty else "Nothing found."
        return "\n".join([f"{nothing} {EMPTY['recall']}", *rest])
    if empty:
        lines.append(f"nothing in {', '.join(empty)}")
    first = [f"note: {NOTHING_NEAR}"] if NOTHING_NEAR in view.notes else []
    return "\n".join([*first, *lines, *rest])


def anchor_hits(hits: Sequence[HitView]) -> str:
    return (
        "\n".join(f"{number}. {_hit(hit)}" for number, hit in enumerate(hits, 1))
        or EMPTY["anchor_search"]
    )


def receipt(value: Receipt) -> str:
    state_text = {
        "done": "Remembered.",
        "accepted": "Safe on disk; graph and indexes follow in a moment.",
        "duplicate": "Known already; nothing was stored twice.",
        "failed": (
            "Kept in the journal, but it could not be taken into the graph; `health` says why."
        ),
    }[value.state]
    counts = (
        f"{counted(value.nodes, 'node')}, {counted(value.facts, 'fact')}, "
        f"{counted(value.edges, 'link')}"
    )
    tail = f" {counts} touched." if value.state == "done" else ""
    skipped = "".join(
        f"\nLeft out: {skipped_item.what}: {skipped_item.why}" for skipped_item in value.skipped
    )
    return f"{state_text}{tail} [{value.turn_id}]{redacted(value.redacted)}{skipped}"


def corrected(value: FactCorrection) -> str:
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
    still = _mentions(value.mentions) if value.mentions.total else []
    first = f"{state_text}{right} Undo it with the id {value.turn_id}."
    return "\n".join([first, *skipped, *still])


def timeline(view: Timeline) -> str:
    lines = [fact_line(fact) for fact in view.facts] or [EMPTY["timeline"]]
    if view.next_cursor:
        lines.append(f"More: cursor={view.next_cursor}")
    return "\n".join(lines)


def items(items: Sequence[ItemView]) -> str:
    return "\n\n".join(map(_item, items))


def gone(value: Forgotten) -> str:
    counts = _counts(value.turns, value.facts, value.nodes, value.anchors)
    facts_text = (
        f" {counted(len(value.facts_kept), 'fact')} kept: others support them."
        if value.facts_kept
        else ""
    )
    if value.no_longer_restorable:
        facts_text += f" What could be restored of it cannot be any more ({', '.join(value.no_longer_restorable)})."
    if value.upgrade_copy:
        facts_text += " The copy of this memory from before its upgrade goes with it, whole."
    if value.dry_run:
        lines = [f"Would erase {counts}.{facts_text}", *(f"  {line}" for line in value.shown)]
        if value.mentions and value.mentions.total:
            lines += [*_mentions(value.mentions), f"Take a kind along with along=KIND: {_KINDS}."]
        again = f"and ids {', '.join(value.asked)} " if value.by_name else ""
        lines.append(f"Nothing was changed; call again with dry_run=false {again}to do it.")
        return "\n".join(lines)
    left = _mentions(value.mentions) if value.mentions and value.mentions.total else []
    if value.restorable_until:
        until = moment_text(value.restorable_until)
        done = (
            f"Forgot {counts}.{facts_text} Until {until} it can be restored as "
            f"{value.restorable_as}."
        )
    else:
        done = f"Erased {counts} for good.{facts_text}"
    return "\n".join([done, *left])


def _mentions(value: Mentions) -> list[str]:
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
        items = [item for item in value.items if item.kind == kind][:_MOST_MENTIONS]
        lines += [f"  {kind} {_line(item.text)} [{item.id}]" for item in items]
    more = value.total - len(lines)
    rest = [f"  … and {more:,} more"] if more else []
    return [f"{total} still {verb}{called}; recall finds what stays:", *lines, *rest]


def restorables(forgotten: Sequence[Restorable]) -> str:
    lines: list[str] = []
    for entry in forgotten:
        numbers = (entry.turns, entry.facts, entry.nodes, entry.anchors)
        counts = _counts(*(range(number) for number in numbers))
        by = f" by {entry.by}" if entry.by else ""
        why = f": {entry.why}" if entry.why else ""
        lines.append(
            f"{moment_text(entry.at)} {', '.join(map(repr, entry.what))} ({counts})"
            f"{by}{why}; until {moment_text(entry.until)} [{entry.id}]"
        )
        if entry.mentions is not None:
            lines += _mentions(entry.mentions) if entry.mentions.total else ["Nothing mentions it."]
    return "\n".join(lines) or EMPTY["forgotten"]


def restored(value: Restored) -> str:
    return f"Restored {_counts(value.turns, value.facts, value.nodes, value.anchors)}."


def _counts(turns: Sized, facts: Sized, nodes: Sized, anchors: Sized) -> str:
    named = (turns, "turn"), (facts, "fact"), (nodes, "node"), (anchors, "anchor")
    return ", ".join(counted(len(items), word) for items, word in named if items) or "nothing"


def anchor(value: AnchorInfo) -> str:
    return f"Saved '{value.title}' as {value.slug}.{redacted(value.redacted)}"


def anchor_whole(value: Anchor) -> str:
    return (
        f"{value.title} ({value.slug}, {value.modified_at:%Y-%m-%d}, digest {value.digest})\n\n"
        f"{value.text}"
    )


def anchor_versions(versions: Sequence[AnchorVersion]) -> str:
    return "\n\n".join(
        f"version {version.number}, "
        f"{moment_text(version.at)}{f', by {version.actor}' if version.actor else ''}: "
        f"{version.title}\n{version.text}"
        for version in versions
    )


def edits(value: Edits) -> str:
    """Return a line a change: when, what, by whom, and the id that undoes it."""
    lines: list[str] = []
    for edit in value.edits:
        by = f" by {edit.actor}" if edit.actor else ""
        how = f"cannot be undone: {edit.why_not}" if edit.why_not else f"undo: {edit.id}"
        lines.append(f"{moment_text(edit.at)} {edit.kind}{by}: {edit.text} [{how}]")
    more = [f"More: cursor={value.next_cursor}"] if value.next_cursor else []
    return "\n".join([*(lines or [EMPTY["edits"]]), *more])


def undone(value: Undone) -> str:
    again = f" Undo this with the id {value.redo}." if value.redo else ""
    return f"Undone: {value.kind}: {value.text}{again}"


def anchors(them: Sequence[AnchorInfo]) -> str:
    return (
        "\n".join(
            f"{anchor_info.slug}: {_line(anchor_info.title)} ({_day(anchor_info.modified_at)})"
            for anchor_info in them
        )
        or EMPTY["anchor_list"]
    )


def anchor_deleted(view: AnchorDeleted) -> str:
    return f"Deleted {view.slug}."


def resynced(value: ResyncReport) -> str:
    return (
        f"{value.added + value.changed} indexed, {value.unchanged} unchanged, {value.removed} "
        "removed."
    )


def stats(value: Stats) -> str:
    span = (
        f", {_day(value.first_turn_at)} to {_day(value.last_turn_at)}"
        if value.first_turn_at
        else ""
    )
    lines = [
        f"{value.entity} ({value.store})",
        f"turns {value.turns:,}{span}",
        (
            f"nodes {value.nodes:,} · facts {value.facts:,} · episodes {value.episodes:,} · "
            f"anchors {value.anchors:,}"
        ),
    ]
    if value.unfinished_jobs or value.index_lag:
        lines.append(
            f"in work: {counted(value.unfinished_jobs, 'turn')}, "
            f"{counted(value.index_lag, 'index entry')}"
        )
    return "\n".join(lines)


def why(value: Why) -> str:
    """Return what became of the expected one, then of each candidate, channel by channel, and what the words mean."""
    lines = [
        f"Profile {value.profile}."
        + "".join(f" Only {perspective}." for perspective in value.filters)
    ]
    if value.expected:
        lines.append(f"The expected one: {value.expected}.")
    for name, channel in value.channels.items():
        weighed = ", ".join(
            f"{perspective} {weight:g}" for perspective, weight in channel.weights.items() if weight
        )
        how = "signals are added up" if channel.fusion == "sum" else "ranks are joined, 1 is best"
        lines.append(
            f"\n{name}: {counted(channel.found, 'candidate')}, at most {channel.limit} shown; "
            f"{how} ({weighed})"
        )
        for candidate in channel.candidates:
            ranks = ", ".join(
                f"{perspective} #{rank}" for perspective, rank in candidate.ranks.items()
            )
            factor = (
                "" if candidate.factor == 1 else f" x {candidate.factor:g} (fresh, new, telling)"
            )
            lines.append(
                f"- {_line(candidate.text)} [{candidate.id}]\n  {candidate.verdict}; "
                f"{ranks or 'no rank'}; {candidate.joined:.4f}{factor}"
            )
    return "\n".join(lines)


def health(value: Health | Examined) -> str:
    lines = ["All is well." if value.ok else "Not well:"]
    return "\n".join(
        [
            *lines,
            *(f"- {problem}" for problem in value.problems),
            *(f"note: {note}" for note in value.notes),
        ]
    )


def event(value: EventReceipt) -> str:
    state_text = {
        "done": f"Kept as version {value.version}.",
        "accepted": "Safe on disk; graph and indexes follow in a moment.",
        "duplicate": "Known already; nothing was stored twice.",
        "failed": (
            "Kept in the journal, but it could not be taken into the graph; `job_status` says why."
        ),
    }[value.state]
    title = f" “{value.title}”" if value.title else ""
    tags = f" Tags: {', '.join(value.tags_applied)}." if value.tags_applied else ""
    links = f" {counted(value.edges_created, 'relation')} made." if value.edges_created else ""
    skipped = "".join(
        f"\nLeft out: {skipped_item.what}: {skipped_item.why}" for skipped_item in value.skipped
    )
    return (
        f"{state_text}{title}{tags}{links} "
        f"[{value.node_id or value.turn_id}]{redacted(value.redacted)}{skipped}"
    )


def history(view: HistoryView) -> str:
    more = [f"More: cursor={view.next_cursor}"] if view.next_cursor else []
    return "\n\n".join([*("\n".join(_version(version)) for version in view.versions), *more])


def _version(version: VersionView) -> Sequence[str]:
    by = f" by {version.actor}" if version.actor else ""
    head = f"version {version.version}: {version.change}{by}{at(version.at)}"
    return [
        head,
        *([version.diff] if version.diff else []),
        *([version.content] if version.content else []),
    ]


def duplicates(view: Duplicates) -> str:
    lines = [
        f"{duplicate.keep_name} ({duplicate.keep_kind}) [{duplicate.keep}] · {duplicate.drop_name} "
        f"({duplicate.drop_kind}) [{duplicate.drop}]: {duplicate.why}"
        for duplicate in view.duplicates
    ]
    return "\n".join(
        [
            *(lines or [EMPTY["find_duplicates"]]),
            *(f"merge: {merge(merge_view)}" for merge_view in view.merges),
        ]
    )


def merge(value: Merge) -> str:
    return f"{value.drop_name} into {value.keep_name}{at(value.at)}, {value.state} [{value.id}]"


def plan(value: MergePlan) -> str:
    names = f", also {', '.join(value.aliases)}" if value.aliases else ""
    moved = f"{counted(value.facts, 'fact')} and {counted(value.mentions, 'mention')}"
    if value.dry_run:
        return (
            f"Would make one node: {value.name} ({value.kind}{names}); {moved} go over to it "
            f"[{value.keep}]. Nothing "
            "was changed; call again with dry_run=false to do it."
        )
    return (
        f"One node: {value.name} ({value.kind}{names}); {moved} went over to it [{value.keep}]. "
        f"Undo: [{value.id}]"
    )


def costs(value: CostReport) -> str:
    bound = f" of {value.tokens_per_day:,}" if value.tokens_per_day else ""
    pause = (
        f"; reading pauses until {moment_text(value.paused_until)}" if value.paused_until else ""
    )
    none = [] if value.days else [EMPTY["costs"]]
    today = f"today {value.tokens_today:,}{bound} tokens{pause}"
    return "\n".join([today, *map(_cost_day, value.days), *none])


def _cost_day(cost_day: CostDay) -> str:
    cost = f", ${cost_day.cost_usd:.4f}" if cost_day.cost_usd is not None else ""
    silent = f", {cost_day.unmetered:,} answers did not say" if cost_day.unmetered else ""
    name = cost_day.model or "a model without a name"
    return (
        f"{cost_day.day} {name}: {cost_day.texts:,} texts, {cost_day.requests:,} requests, "
        f"{cost_day.tokens_in:,} tokens in, "
        f"{cost_day.tokens_out:,} out{cost}{silent}"
    )


def injected(value: Injected) -> str:
    share = "none" if value.empty_share is None else f"{value.empty_share:.0%}"
    mean = (
        f", {value.tokens_a_session:,.0f} a session" if value.tokens_a_session is not None else ""
    )
    head = (
        f"{value.days} days: {value.sessions:,} sessions, {value.prompts:,} prompts ({share} "
        "answered with nothing), "
        f"{value.tokens:,} tokens{mean}"
    )
    lines = [
        f"{pack.last_at:%Y-%m-%d %H:%M} {pack.session or '(no session)'}: {pack.prompts:,} "
        f"prompts, {pack.empty:,} with "
        f"nothing, {pack.tokens:,} tokens"
        for pack in value.latest
    ]
    for pack in value.packs:
        lines.append(f"{pack.at:%Y-%m-%d %H:%M:%S} {pack.occasion}: {pack.tokens:,} tokens")
        lines += [f"  {line.kind} {line.text} [{line.id}]" for line in pack.lines]
    none = [] if lines else [EMPTY["injected"]]
    return "\n".join([head, *lines, *none])


def proved(value: LastProof) -> str:
    if (proof := value.proof) is None:
        return "No proof was run here; the owner runs one with `pps verify-isolation`."
    text = (
        "nothing went wrong"
        if proof.ok
        else f"{proof.leaks} leaks, {proof.told_apart} told apart, {proof.broken} broken"
    )
    return (
        f"{moment_text(proof.at)}: {proof.operations:,} attacks on {proof.store} in "
        f"{proof.seconds:g} s, {text} (PPS {proof.version})."
    )


def job(value: JobReport) -> str:
    why = f": {value.error}" if value.error and value.state != "done" else ""
    again = (
        f" It is tried again at {moment_text(value.next_at)}."
        if value.next_at and value.state == "queued"
        else ""
    )
    lines = [
        f"Job {value.id} {_ENDS[value.state]}{why}.{again} [{value.turn_id}]",
        f"  “{value.text}”",
    ]
    lines += [f"  {_attempt(skipped_item)}" for skipped_item in value.tried]
    return "\n".join([*lines, *(f"  {_left_out(skipped_item)}" for skipped_item in value.skipped)])


def _left_out(skipped: Skipped) -> str:
    return (
        f"left out: {skipped.what}: {skipped.why}" if skipped.what else f"left out: {skipped.why}"
    )


def ingestion(value: IngestionStats) -> str:
    lines = [
        f"waiting {value.queued + value.running:,} of at most {value.queue_most:,} · done "
        f"{value.done:,} · "
        f"failed {value.failed:,} · dropped {value.dropped:,} · index entries to make "
        f"{value.index_lag:,}",
        f"last {value.window_s:,} s: {value.attempts:,} attempts, {value.failures:,} failed, "
        f"{value.tokens_in:,} tokens in, {value.tokens_out:,} out, ${value.cost_usd:.4f}",
    ]
    if value.queued + value.running:
        lines.append(
            f"oldest waits {value.oldest_s:,.0f} s; nothing ended for {value.stalled_s:,.0f} s"
        )
    return "\n".join([*lines, *(f"waits: {reason}" for reason in value.waits_for)])


def _attempt(attempt_report: AttemptReport) -> str:
    took_s = (attempt_report.ended_at - attempt_report.began_at).total_seconds()
    why = f": {attempt_report.error}" if attempt_report.error else ""
    cost = (
        f", {attempt_report.tokens_in:,} + {attempt_report.tokens_out:,} tokens, "
        f"${attempt_report.cost_usd:.4f}"
        if attempt_report.tokens_in
        else ""
    )
    return (
        f"{iso(attempt_report.began_at)} {attempt_report.stage} {attempt_report.outcome} "
        f"({took_s:.2f} s{cost}){why}"
    )


def extracted(value: Extracted) -> str:
    if not value.turns:
        return "Nothing to read: every turn was read, or came with facts."
    why = f" ({value.why})" if value.why else ""
    if value.dry_run:
        return f"{value.turns:,} turns to read, about {value.tokens:,} tokens in and out.{why}"
    rest = f"; {value.waiting:,} wait{why}" if value.waiting else ""
    head = (
        f"{value.read:,} of {value.turns:,} turns read: {value.facts:,} facts, {value.dropped:,} "
        "left out "
        f"that no turn says, {value.tokens:,} tokens{rest}."
    )
    return "\n".join([head, *map(_left_out, value.left_out)])


def _heading(name: str, channel: ChannelView) -> str:
    stats = channel.stats
    if stats is None or stats.avg_score is None or not any(hit.signals for hit in channel.hits):
        return f"{name}:"
    results = counted(stats.total_results, "result")
    return (
        f"{name} ({results}, average score {stats.avg_score:.3f}, about "
        f"{counted(stats.token_estimate, 'token')}):"
    )


def _hit(hit: HitView, *, with_source: bool = False) -> str:
    text = hit.passage or hit.text
    speaker = hit.actor or hit.role
    who = f"{speaker}: " if hit.role and not text.startswith(f"{speaker}:") else ""
    title = f"{hit.title}: " if hit.title and not text.startswith(hit.title) else ""
    when = span(hit.valid_at, hit.invalid_at) if hit.relation else at(hit.occurred_at)
    if with_source and hit.source:
        when = f" ({hit.source}, {when[2:]}" if when else f" ({hit.source})"
    way = ", ".join(f"{step.relation} “{step.name}”" for step in hit.path or ())
    from_center = f" (from the center: {way})" if way else ""
    return f"{title}{who}{_line(text)}{when}{mark(hit.superseded_by)}{from_center} [{hit.id}]"


def _why_here(hit: HitView) -> Sequence[str]:
    """Return a line with a hit's score, its rank in each perspective and what each gave it."""
    ranks = ", ".join(f"{name} #{rank}" for name, rank in hit.ranks.items())
    signals = ", ".join(f"{name} {value:.3f}" for name, value in (hit.signals or {}).items())
    parts = [f"score {hit.score:.4f}", *filter(None, (ranks, signals))]
    return [f"     {'; '.join(parts)}"]


def fact_line(fact: FactView) -> str:
    """Return a fact as a line: its sentence, since when and until when, its id."""
    held = span(fact.valid_at, fact.invalid_at)
    return f"{_line(fact.text)}{held}{mark(fact.superseded_by)} [{fact.id}]"


def mark(successor: Successor | None) -> str:
    """Return in brackets what took the place of a statement; nothing while it stands."""
    return f" ({one_line(successor.mark(), _LINE)})" if successor else ""


def _item(item: ItemView) -> str:
    if isinstance(item, NodeView):
        names = f" (also {', '.join(item.aliases)})" if item.aliases else ""
        return f"node {item.name}{names}, {item.kind} [{item.id}]\n{item.content or item.summary}".rstrip()
    if isinstance(item, FactView):
        return f"fact {fact_line(item)}"
    who = f"{item.actor or item.role}" if isinstance(item, TurnView) else item.name
    later = mark(item.superseded_by) if isinstance(item, TurnView) else ""
    return f"{item.type} {who}{at(item.occurred_at)}{later} [{item.id}]\n{item.content}"


def _line(text: str) -> str:
    return one_line(text, _LINE)


def at(moment: datetime | None) -> str:
    """Return a moment in brackets, to the minute; nothing when there is none."""
    return f" ({moment_text(moment)})" if moment else ""


def moment_text(moment: datetime) -> str:
    """Return a moment to the minute, on the clock that it is of."""
    return shown(moment, moment.tzinfo or UTC)


def worded(value: object) -> str:
    """Return a field's value to read: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def redacted(number: int) -> str:
    """Return how many secrets were taken out, as a line of its own.

    Nothing when there were none.
    """
    return (
        f"\n{counted(number, 'secret')} replaced with a marker before anything was kept."
        if number
        else ""
    )


def _day(moment: datetime | None) -> str:
    return shown_day(moment, moment.tzinfo or UTC) if moment else "?"
