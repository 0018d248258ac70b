"""The answers of recall: hits in channels, what a search brought, the text handed to a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Literal

from pps.core.text import estimate_tokens
from pps.core.time import shown_day
from pps.core.values import AnchorPassage, ChannelName, Episode, Fact, Node, Turn

NOTHING_NEAR = "nothing here is near this text: no name, no rare word and no meaning in common"


def superseded(text: str, at: datetime, zone: tzinfo, *, sure: bool) -> str:
    """Return the note behind an earlier statement: the day in a zone, and the later text."""
    return f"{'superseded' if sure else 'possibly outdated since'} {shown_day(at, zone)}: {text}"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path through the graph: a fact, and the node that it leads to."""

    fact: str
    relation: str
    node: str
    name: str


@dataclass(frozen=True, slots=True)
class Relationship:
    """A fact or relation that joins a node to another, with the names of its subject and object."""

    fact: Fact
    names: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Successor:
    """The later statement, a turn or a fact, that took the place of one.

    Attributes:
        id: Its uuid.
        text: What it says, in one line of at most 200 characters.
        at: When it was said (aware UTC).
        sure: False when it only may have taken its place: the earlier statement is possibly
            outdated.
    """

    id: str
    text: str
    at: datetime
    sure: bool = True

    def mark(self, zone: tzinfo = UTC) -> str:
        """Return the note behind an earlier statement: the day in a zone, and the new text."""
        return superseded(self.text, self.at, zone, sure=self.sure)


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of one channel.

    Attributes:
        id: Uuid of the node, fact, episode or turn; ``slug#part`` for an anchor passage.
        score: Unitless; compares only within its own list.
        text: What a reader is shown: the fact's sentence, the node's name and summary, the turn.
        passage: The part of a long text that matched, when it is not the whole.
        ranks: Rank (1 is best) in each perspective that found it: why it is here.
        item: The whole value.
        names: Names of a fact's subject and object.
        signals: What each perspective gave it, in [0, 1]: the breakdown of a weighted sum; for
            joined ranks where it is asked for.
        path: A shortest way from the anchor to this node, where the profile looks for one; empty
            when there is none.
        relationships: The newest facts and relations that hold and join this node, where they are
            asked for.
        superseded_by: What took the place of this fact or turn, or of what a node's summary says;
            None while it stands.
    """

    id: str
    score: float
    text: str
    item: Node | Fact | Episode | Turn | AnchorPassage
    passage: str = ""
    ranks: Mapping[str, int] = field(default_factory=dict[str, int])
    names: tuple[str, str] | None = None
    signals: Mapping[str, float] = field(default_factory=dict[str, float])
    path: tuple[Step, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    superseded_by: Successor | None = None


@dataclass(frozen=True, slots=True)
class SearchStats:
    """How much one list brought (S0-06).

    Attributes:
        total_results: How many hits are in the list.
        avg_score: Their mean score; None when there is none: no score is not a score of 0.
        token_estimate: Size of their texts in tokens, always as ``estimate_tokens`` says.
    """

    total_results: int
    avg_score: float | None
    token_estimate: int


@dataclass(frozen=True, slots=True)
class Channel:
    """One ranked list. ``error`` is set when it failed, which is not the same as empty.

    Attributes:
        notes: What a reader should know: a reranker that ran out of time, text-only recall, …
    """

    name: ChannelName
    hits: tuple[Hit, ...] = ()
    error: str = ""
    notes: tuple[str, ...] = ()

    @property
    def stats(self) -> SearchStats:
        """How much the list brought; of a channel that failed it says nothing."""
        average = sum(hit.score for hit in self.hits) / len(self.hits) if self.hits else None
        return SearchStats(
            len(self.hits), average, estimate_tokens("".join(hit.text for hit in self.hits))
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """How much of what was found has to do with what was asked.

    Attributes:
        level: ``nothing`` (silence is the answer), ``little`` (a line or two), ``much``.
        shown: Ids of the hits that are worth showing.
        clear: Those of them that stand on their own, not beside better ones.
    """

    level: Literal["nothing", "little", "much"]
    shown: frozenset[str] = frozenset()
    clear: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Recall:
    """What one recall brought back, channel by channel, never merged.

    Attributes:
        evidence: Set where the profile asks for it (``floor``): what is injected goes by it.
        notes: What a reader should know of all of it: that nothing is near, …
        own: The person's statements for this prompt by kind, ``preference`` and ``instruction``,
            nearest first; set with ``evidence``, and shown whatever that says.
    """

    query: str
    profile: str
    channels: Mapping[ChannelName, Channel]
    took_ms: Mapping[str, float] = field(default_factory=dict[str, float])
    evidence: Evidence | None = None
    notes: tuple[str, ...] = ()
    own: Mapping[str, tuple[Hit, ...]] = field(default_factory=dict[str, tuple[Hit, ...]])

    def __getitem__(self, name: ChannelName) -> tuple[Hit, ...]:
        """Return the hits of a channel; an empty tuple when the profile does not fill it."""
        channel = self.channels.get(name)
        return channel.hits if channel else ()


@dataclass(frozen=True, slots=True)
class Pack:
    """The sectioned, budgeted text that a recall hands to a model.

    Attributes:
        text: Fenced Markdown; never longer than the budget.
        tokens: Its size as ``counter`` says (``tiktoken`` or ``estimate``).
        sections: Lines kept in each section; left_out: lines that the budget dropped.
        mark: The random fence mark of this pack.
        shown: Ids of the recalled items whose lines are in the text.
    """

    text: str
    tokens: int
    counter: str
    sections: Mapping[str, int]
    left_out: Mapping[str, int]
    mark: str
    recall: Recall | None = None
    took_ms: float = 0.0
    shown: tuple[str, ...] = ()
