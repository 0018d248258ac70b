"""What a memory says about itself and about what it did: frozen values for every surface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from pps.core.recalled import Successor
from pps.core.time import micros
from pps.core.values import Fact, Skipped


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """Facts in order of world time; ``next_cursor`` is empty on the last page.

    Attributes:
        names: Of the facts' ends, by uuid.
        successors: What took the place of those facts that are superseded, by uuid.
    """

    facts: tuple[Fact, ...]
    names: Mapping[str, str]
    next_cursor: str
    successors: Mapping[str, Successor] = field(default_factory=dict[str, Successor])


def timeline_cursor(valid_at: datetime | None, uuid: str) -> str:
    """Return the cursor that continues a timeline after the fact of a time and uuid."""
    return f"{'' if valid_at is None else micros(valid_at)}:{uuid}"


@dataclass(frozen=True, slots=True)
class Changes:
    """A page of the facts that began or ended between two moments of world time, newest first.

    Attributes:
        opened: Facts that began then and replace none.
        closed: Facts that ended then and have no successor.
        replaced: Pairs of a fact that ended and the one of the same subject that began at that very
            moment.
        names: Of the facts' ends, by uuid.
        more: There is more than is told.
        next_cursor: Where the next page begins; empty on the last.
        total: Changes between the two moments in all; a replacement is one.
    """

    opened: tuple[Fact, ...]
    closed: tuple[Fact, ...]
    replaced: tuple[tuple[Fact, Fact], ...]
    names: Mapping[str, str]
    more: bool
    next_cursor: str = ""
    total: int = 0


@dataclass(frozen=True, slots=True)
class TimeBin:
    """How many facts began, and how many ended, from ``since`` to the next bin's.

    Aware, in world time.
    """

    since: datetime
    began: int
    ended: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """How the facts of a memory are spread over time, in bins of equal length.

    Attributes:
        since, until: The span of the bins; absent when no fact has a time. A few facts that lie far
            before all others are left out of it: they would leave no room for the rest.
        dated, undated: Facts that have a time, and those that have none.
    """

    bins: tuple[TimeBin, ...]
    dated: int
    undated: int
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class ShownItem:
    """An item in words: ``text`` has at most 200 characters.

    ``kind`` is turn, fact, node, anchor or copy.

    ``id`` is what ``get`` and ``forget`` take; of an anchor its slug, of a copy that in the squad's
    pool.
    """

    kind: str
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Mentions:
    """What says the name of something that is forgotten and is not forgotten with it.

    Attributes:
        names: The names that were looked for, aliases included.
        turns, facts, nodes, anchors: How many there are. Turns that speak of it in other words
            count.
        copies: Of a squad's member, its copies in the pool.
        items: The first 20 of each kind.
    """

    names: tuple[str, ...] = ()
    turns: int = 0
    facts: int = 0
    nodes: int = 0
    anchors: int = 0
    copies: int = 0
    items: tuple[ShownItem, ...] = ()

    @property
    def total(self) -> int:
        return self.turns + self.facts + self.nodes + self.anchors + self.copies


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What ``forget`` removed, or would remove when ``dry_run``.

    Attributes:
        facts: Facts that lose their last support or an end; facts_kept: those that lose one of
            several.
        nodes: Nodes named, and nodes that nothing mentions any more.
        copies: Of a squad's member, its copies in the pool that go with them, or stay where that is
            asked for.
        restorable_as: What ``restore`` takes until ``restorable_until``; empty when it is gone for
            good.
        no_longer_restorable: Ids of what was forgotten for a while before and lost something of it,
            or all, for good.
        asked: Of a dry run: the ids that stand for what was asked for, to call again with. A name
            is none.
        shown: Of a dry run: the first of what would go, a line each.
        by_name: Of a dry run: something was asked for by its name.
        items: Of a dry run: the first 20 of each kind of what would go, in words.
        mentions: What still mentions it afterwards; absent where nothing was named that could be
            mentioned.
        rows: Ids of rows of features' tables that go along; None where there are none.
        upgrade_copy: Of a dry run: the copy of the memory from before its upgrade, which holds all
            that, goes whole too.
        pending: What still holds text of it on disk, since it could not be changed just now:
            "text" and "vectors" (the indexes), "neo4j", "anchor:SLUG", a copy. No turn, fact or
            node of it is found any more; erasing it is tried again until it succeeds. Empty when
            everything is gone.
        moved_copy: Of a dry run: the same of what another store keeps since the memory was moved.
    """

    dry_run: bool
    turns: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    facts_kept: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    restorable_as: str = ""
    restorable_until: datetime | None = None
    no_longer_restorable: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    by_name: bool = False
    items: tuple[ShownItem, ...] = ()
    mentions: Mentions | None = None
    rows: tuple[str, ...] | None = None
    upgrade_copy: bool = False
    pending: tuple[str, ...] = ()
    moved_copy: bool = False


@dataclass(frozen=True, slots=True)
class Restorable:
    """An entry of the recycle bin: ``what`` shows its first three items, the counts cover all.

    Attributes:
        by: Who did it; empty for the person.
        mentions: What still mentions it; absent where that was not asked for, or nothing in it has
            a name.
    """

    id: str
    what: tuple[str, ...]
    at: datetime
    until: datetime
    by: str
    why: str
    turns: int
    facts: int
    nodes: int
    anchors: int
    mentions: Mentions | None = None


@dataclass(frozen=True, slots=True)
class Restored:
    """What came back, by ids; anchors by their slugs."""

    id: str
    turns: tuple[str, ...]
    facts: tuple[str, ...]
    nodes: tuple[str, ...]
    anchors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stats:
    """How much a memory holds.

    ``indexed`` counts documents by collection in text and vector index.
    """

    entity: str
    store: str
    turns: int
    nodes: int
    facts: int
    episodes: int
    anchors: int
    unfinished_jobs: int
    index_lag: int
    text_indexed: Mapping[str, int]
    vector_indexed: Mapping[str, int]
    fingerprint: str
    first_turn_at: datetime | None = None
    last_turn_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How the indexes of an entity are: documents by collection, and what is not in them yet.

    Attributes:
        fields: Values of fields that ``where`` and ``order`` find.
        lag: Changes that no index has yet.
        vectors_waiting: Records that are embedded when there is time or a failed model is tried
            again.
        vectors_failed: Records that are tried no more.
        model: Of the vectors; empty for none.
        token_states, token_states_waiting: Turns that late interaction compares, and those whose
            states follow.
    """

    text: Mapping[str, int]
    vectors: Mapping[str, int]
    fields: int
    lag: int
    vectors_waiting: int
    vectors_failed: int
    model: str
    token_states: int = 0
    token_states_waiting: int = 0


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """One ended attempt at a job; ``outcome`` is ``done``, ``again`` or ``failed``."""

    stage: str
    outcome: str
    began_at: datetime
    ended_at: datetime
    code: str
    error: str
    tokens_in: int
    tokens_out: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class JobReport:
    """What became of a turn after it was acknowledged.

    Attributes:
        state: ``queued``, ``running``, ``done``, ``failed`` (parked) or ``dropped``.
        stage: ``save`` or ``read`` (by a model): what comes next, or what failed.
        text: The beginning of the turn.
        attempts: Starts, crashes included; failures: bad ends in a row; code, error: of the last
            one.
        next_at: Not tried before; None is at once.
        tried: Attempts that came to an end, oldest first; empty in a list of jobs.
        skipped: What was left out of what was given with the turn or found in it, and why.
    """

    id: int
    turn_id: str
    state: str
    stage: str
    text: str
    attempts: int
    failures: int
    code: str
    error: str
    nodes: int
    facts: int
    queued_at: datetime | None = None
    next_at: datetime | None = None
    tried: tuple[AttemptReport, ...] = ()
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class IngestionStats:
    """How a queue stands.

    Attributes:
        oldest_s: Age of the oldest unfinished job; stalled_s: for how long nothing has ended; both
            in seconds.
        attempts, failures, tokens_in, tokens_out, cost_usd: Of the last ``window_s`` seconds.
        tried, failing: Turns of the latest 2,000 of those attempts, and those whose last one
            failed.
        queue_most: More waiting turns than this are refused.
        waits_for: Stores and models that failed and are left alone for a while, a sentence each.
    """

    queued: int
    running: int
    done: int
    failed: int
    dropped: int
    index_lag: int
    oldest_s: float
    stalled_s: float
    window_s: int
    attempts: int
    failures: int
    tokens_in: int
    tokens_out: int
    cost_usd: float
    queue_most: int
    tried: int = 0
    failing: int = 0
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Agreement:
    """A comparison of the ids in two places: their numbers, and up to three ids only in one."""

    what: str
    expected: int
    found: int
    missing: int = 0
    extra: int = 0
    samples: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not (self.missing or self.extra)


@dataclass(frozen=True, slots=True)
class Ledger:
    """Whether journal, graph and indexes of a memory hold the same ids.

    Attributes:
        waiting: Ids whose entries are still being made; they are left out of the comparison.
        problems: One line each, with the command that mends it; notes: what else should be known.
    """

    agreements: tuple[Agreement, ...]
    waiting: int
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CostDay:
    """What one language model took on one day (UTC).

    Attributes:
        texts: Texts that it read; requests: answers that came, usable or not.
        unmetered: Answers that did not say what they took.
        cost_usd: None when the model's price is not in ``prices.toml``.
    """

    day: date
    model: str
    texts: int
    requests: int
    unmetered: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class CostReport:
    """What language models took, newest day first; ``tokens_per_day`` is the budget, 0 for none."""

    days: tuple[CostDay, ...]
    tokens_today: int
    tokens_per_day: int
    paused_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What reading texts would take, to an order of magnitude; ``basis`` says what it goes by.

    Attributes:
        cost_usd: None when the price is not known.
        days: For how many days' budgets it is; None when there is no budget.
    """

    texts: int
    tokens_in: int
    tokens_out: int
    basis: str
    cost_usd: float | None = None
    days: int | None = None


@dataclass(frozen=True, slots=True)
class Extracted:
    """What reading the turns that nothing had read came to, or would take when ``dry_run``.

    Attributes:
        turns: That were found unread; ``read`` of them are done, ``waiting`` are in the queue and
            go on by themselves.
        facts, dropped: What was found in those that are done, and what was left out because no turn
            says it.
        tokens: What it took, in and out; of a dry run, or where nothing waited for it, an estimate.
        why: What the rest waits for, or what a dry run says is not set; empty when nothing.
        left_out: The first 20 of what was dropped, each with the reason.
    """

    dry_run: bool
    turns: int
    read: int
    facts: int
    dropped: int
    waiting: int
    tokens: int
    why: str = ""
    left_out: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two nodes that may be one thing, and why; ``keep`` is the one that would stay."""

    keep: str
    keep_name: str
    keep_kind: str
    drop: str
    drop_name: str
    drop_kind: str
    why: str


@dataclass(frozen=True, slots=True)
class MergePlan:
    """The result of a merge, or its preview if ``dry_run``: the remaining node and its gains.

    Attributes:
        id: Of the merge, for undoing it; empty when nothing was done.
        facts, mentions: How many facts change an end, and how many texts speak of the one that
        goes.
    """

    id: str
    keep: str
    drop: str
    name: str
    kind: str
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    facts: int
    mentions: int
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge that was done; ``state`` is ``applied`` or ``undone`` (or on the way there)."""

    id: str
    keep: str
    keep_name: str
    drop: str
    drop_name: str
    at: datetime
    state: str


@dataclass(frozen=True, slots=True)
class SessionInjected:
    """The packs of one session in numbers: prompts, prompts without a pack, tokens in all."""

    session: str
    prompts: int
    empty: int
    tokens: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class GivenLine:
    """One item of a pack that an agent was given, as it is now.

    ``id`` is a uuid, or an anchor's slug and part.
    """

    id: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class GivenPack:
    """A context pack of a session, from its start or a prompt.

    Its items that still exist are unordered.
    """

    at: datetime
    occasion: str
    tokens: int
    lines: tuple[GivenLine, ...]


@dataclass(frozen=True, slots=True)
class Injected:
    """How much of a memory was put before agents unasked.

    Attributes:
        empty_share: Of the prompts; None when there was none.
        sessions, tokens_a_session: Packs that were asked for without a session count in neither;
            the mean is None when there was no session.
        latest: The latest sessions, at most 20; one without a name stands for those packs.
        packs: Those of one session, where it was asked for, the latest first, at most 50.
    """

    days: int
    sessions: int
    prompts: int
    empty: int
    tokens: int
    latest: tuple[SessionInjected, ...]
    empty_share: float | None = None
    tokens_a_session: float | None = None
    packs: tuple[GivenPack, ...] = ()


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a memory can do its work. ``problems`` are one line each and say what to do next.

    ``outage``: what stands in the way is shared with other memories: the disk, a server, a model.
    """

    ok: bool
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    outage: bool = False
