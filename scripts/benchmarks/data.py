"""What a benchmark asks about: conversations of turns with their facts, and questions with the turns that answer.

Read from JSON lines (a folder) or from MuSiQue's own file. Data come from strangers: what the public write path
would refuse is put within its bounds and counted, so that one odd line does not end a long run; what cannot be
understood at all is refused with its file and line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime

from pps.core.bounds import MAX_CONTENT, MAX_FACTS, MAX_NAME, MAX_NODES, MAX_TEXT
from pps.core.values import FactDraft, NodeDraft

CONTENT = "content"
"""The category of questions that ask for a thing besides a time; they are scored by their turns."""
_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_LONGEST_SPEAKER = 40
_LONGEST_SESSION = 200


@dataclass(frozen=True, slots=True)
class Question:
    """A query and what answers it; one that nothing answers is not scored.

    Attributes:
        gold: Ids of the turns that answer.
        days: Of a question about a time, the days (UTC, ISO 8601) that are meant.
    """

    id: str
    text: str
    category: str
    gold: frozenset[str]
    days: frozenset[str] = frozenset()

    @property
    def is_about_a_time(self) -> bool:
        """Whether it is scored by the days of what is shown: any turn of a day answers, so recall says nothing."""
        return bool(self.days) and self.category != CONTENT


@dataclass(slots=True)
class Said:
    """A turn of the data with the nodes and facts that stand on it.

    Attributes:
        role: Whose turn it is, as ``remember`` has it.
        at: When it was said; None is not known.
        session: Neighbouring turns are those of one session.
    """

    id: str
    content: str
    actor: str = ""
    role: str = "user"
    session: str = "default"
    at: datetime | None = None
    nodes: dict[str, NodeDraft] = field(default_factory=dict[str, NodeDraft])
    facts: list[FactDraft] = field(default_factory=list[FactDraft])

    def add(self, fact: FactDraft, ends: dict[str, NodeDraft]) -> bool:
        """Put a fact on this turn; False when it has as many as one call may carry."""
        if len(self.facts) >= MAX_FACTS or len(self.nodes | ends) > MAX_NODES:
            return False
        self.facts.append(fact)
        self.nodes.update(ends)
        return True

    def mention(self, key: str, named: NodeDraft) -> bool:
        """Put a node on this turn, by the data's id of it; False when it has as many as one call may carry."""
        if key not in self.nodes and len(self.nodes) >= MAX_NODES:
            return False
        self.nodes.setdefault(key, named)
        return True


@dataclass(slots=True)
class Conversation:
    """One conversation, written into an entity of its own: what was said and what is asked.

    Attributes:
        notes: What was left out or cut, with how often.
    """

    name: str
    turns: dict[str, Said] = field(default_factory=dict[str, Said])
    questions: list[Question] = field(default_factory=list[Question])
    notes: dict[str, int] = field(default_factory=dict[str, int])

    def note(self, what: str, times: int = 1) -> None:
        """Count something that was left out or cut."""
        if times:
            self.notes[what] = self.notes.get(what, 0) + times

    def say(self, turn: Said) -> None:
        """Add a turn; a blank one is left out, a second one of the same id replaces the first."""
        content = clean(turn.content)
        if not content.strip():
            self.note("blank turns left out")
            return
        self.note("turns cut to the longest text", len(content) > MAX_CONTENT)
        self.note("turns of an id that was there before", turn.id in self.turns)
        self.turns[turn.id] = replace(
            turn, content=content[:MAX_CONTENT], session=turn.session[:_LONGEST_SESSION]
        )

    def ask(self, question: Question) -> None:
        """Add a question. Turns named as gold that are not there stay gold: nothing can find them."""
        self.note("gold turns that the data lack", len(question.gold - self.turns.keys()))
        self.questions.append(question)

    def scored(self) -> list[Question]:
        """Return the questions that name a turn, but for those about a time alone."""
        return [one for one in self.questions if one.gold and not one.is_about_a_time]

    def timed(self) -> list[Question]:
        """Return the questions about a time alone, which are scored by days."""
        return [one for one in self.questions if one.is_about_a_time]


def speaker(content: str) -> str:
    """Return who says a message that begins with ``Name: ``; empty when nobody is named."""
    name, colon, _ = content.partition(": ")
    return name if colon and "\n" not in name and len(name) <= _LONGEST_SPEAKER else ""


def node(name: str, kind: str, summary: str = "") -> NodeDraft:
    """Return a node within the bounds of what may be remembered."""
    kind = kind if _LABEL.fullmatch(kind) else "Thing"
    return NodeDraft(clean(name).strip()[:MAX_NAME] or "unnamed", kind, clean(summary)[:MAX_TEXT])


def fact(
    ends: tuple[NodeDraft, NodeDraft], name: str, text: str, times: tuple[datetime | None, ...]
) -> FactDraft:
    """Return a fact within the bounds; ``times`` are when it began and ended to hold."""
    valid_at, invalid_at = times
    if valid_at and invalid_at and invalid_at < valid_at:
        invalid_at = None
    relation = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[:64]
    return FactDraft(
        subject=ends[0].name,
        relation=relation if _LABEL.fullmatch(relation) else "RELATED_TO",
        object=ends[1].name,
        text=clean(text)[:MAX_TEXT],
        valid_at=valid_at,
        invalid_at=invalid_at,
    )


def clean(text: str) -> str:
    """Return a text without what no store keeps: NUL and lone surrogates."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
