"""Labelled sentences (``tests/rule_sentences``, examples of families) and how rules score.

A label is ``subject | RELATION | object``, or the same after ``ends`` for facts that a sentence
ends; labels are joined by `` ; ``. ``*`` is anything, several relations are joined by commas, and
``COUPLE`` are those between two who are one, ``ROLES`` those by somebody's work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pps.core.text import fold
from pps.core.values import Turn
from pps.ingest.rule_families import COUPLE, ROLES
from pps.ingest.rules import Found, extract

SENTENCES = Path(__file__).parent / "rule_sentences"
SAID_AT = datetime(2026, 3, 4, 9, tzinfo=UTC)
"""A Wednesday."""

Triple = tuple[str, str, str]
_PAIRED = "MARRIED_TO,ENGAGED_TO,DATING"
_OPPOSITE = {"always": "never", "never": "always"}


@dataclass(frozen=True, slots=True)
class Labels:
    """The facts that a sentence states and those that it ends, folded."""

    states: frozenset[Triple]
    ends: frozenset[Triple]


@dataclass(slots=True)
class Score:
    """Counts over labelled sentences, and those that were read otherwise."""

    right: int = 0
    wrong: int = 0
    missed: int = 0
    differing: list[str] = field(default_factory=list[str])

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed)

    def add(self, sentence: str, read: frozenset[Triple], labelled: frozenset[Triple]) -> None:
        self.right += len(read & labelled)
        self.wrong += len(read - labelled)
        self.missed += len(labelled - read)
        if read != labelled:
            self.differing.append(f"{sentence} READ {sorted(read)} LABELLED {sorted(labelled)}")


def user_turn(text: str) -> Turn:
    return Turn("00000000-0000-5000-8000-000000000000", 1, "user", text, "s", SAID_AT, SAID_AT)


def labelled_sentence(line: str) -> tuple[str, Labels]:
    """Return the sentence of a line with its labels."""
    sentence, _, labels = line.partition(" =>")
    states: set[Triple] = set()
    ends: set[Triple] = set()
    for label in filter(None, map(str.strip, labels.split(" ; "))):
        subject, relations, object_ = map(str.strip, label.removeprefix("ends ").split("|"))
        relations = (
            relations.replace("COUPLED", _PAIRED).replace("COUPLE", COUPLE).replace("ROLES", ROLES)
        )
        triples = {
            (fold(subject), fold(relation), fold(object_)) for relation in relations.split(",")
        }
        (ends if label.startswith("ends ") else states).update(triples)
    return sentence.strip(), Labels(frozenset(states), frozenset(ends))


def labelled_set(name: str) -> Iterator[tuple[str, Labels]]:
    for line in (SENTENCES / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield labelled_sentence(line)


def states_of(found: Found) -> frozenset[Triple]:
    return frozenset(
        (fold(fact.subject), fold(fact.relation), fold(fact.object)) for fact in found.facts
    )


def ends_of(found: Found, labels: Labels) -> frozenset[Triple]:
    """Return what was found to end, without what a stated fact implies (its slot's old value).

    What is labelled counts although it is implied.
    """
    states = states_of(found)
    ends = {
        (fold(ending.subject or "*"), fold(relation), fold(ending.object or "*"))
        for ending in found.endings
        for relation in (ending.relations or ("*",))
    }
    by_owner = {(who, relation, f"{who}'s {what}") for who, relation, what in ends}
    return frozenset(
        end for end in ends - by_owner if end in labels.ends or not _is_implied(end, states)
    )


def _is_implied(end: Triple, states: frozenset[Triple]) -> bool:
    subject, relation, object_ = end
    for stated_of, stated, stated_object in states:
        if subject in ("*", stated_of) and (relation, object_) == (stated, stated_object):
            return True  # said anew, perhaps of another day
        of_the_same = subject in (stated_of, "*")
        if of_the_same and object_ == "*" and (stated == relation or relation == "is"):
            return True
        if of_the_same and relation == _OPPOSITE.get(stated):
            return True
        if stated == relation == "uses" or (stated == "happens_on" and relation == "plans"):
            return True
    return False


def scores(name: str) -> tuple[Score, Score]:
    """Return the scores of a set: of the facts that are stated, and of those that are ended."""
    states, ends = Score(), Score()
    for sentence, labels in labelled_set(name):
        found = extract(user_turn(sentence))
        states.add(sentence, states_of(found), labels.states)
        ends.add(sentence, ends_of(found, labels), labels.ends)
    return states, ends
