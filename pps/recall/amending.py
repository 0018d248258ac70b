"""Which of several statements a later one amends: "it is CockroachDB now" after "we'll use Postgres for the ledger".

Everything here is pure: statements in, pairs out. No language model reads them, so a pair is told by its words and by
how near the two are in meaning. Precision comes first: most statements about one thing are true side by side.

A pair is scored sentence by sentence. What speaks for it: words of change ("instead", "no longer"), the thing that
ended called by name ("not Rex"), another value of the same type ("12 May", "26 May") beside the same other words, a
matter that somebody has one of at a time ("live in", "moved to"), nearness of meaning. What speaks against it: words
that add ("also"), that tell of an earlier time or of a thought ("used to", "might"), another owner ("my neighbour's
dog"), and words of the earlier sentence that the later one lacks. Phrases, weights and thresholds are data:
``config/amending.toml``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import pairwise

from pydantic import BaseModel, ConfigDict

from pps.config.packaged import shipped
from pps.core.values import Vector
from pps.recall.statement_reading import Sentence, SentenceReader

_WHOLE, _PART = 0.8, 0.3
"""Share of an earlier sentence's words from which a later one is about the same thing, and below which about another."""
_SHORT = 10
"""Words up to which two neighbouring sentences are read as one."""
_USUAL, _FRAME = 4, 2
"""Words that a later sentence may have beyond the earlier one's, and those that only another value may bring."""
_NEAREST = 1.5
_CHANGING = frozenset(
    ("strong", "choice", "now", "weak", "ends_behind", "ends_before", "dies_before")
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A turn or a fact, as the detection sees it.

    Attributes:
        id: Its uuid.
        text: What it says; the first 1,000 characters and 12 sentences are read.
        at: When it was said (aware), in the world's time.
        speaker: Who said it: what two people say of themselves ("I live in …") is never compared. Empty for a fact,
            whose text names whom it is about, and for a person whose name is not known.
        vector: Its unit-length vector of the entity's model, or None without one.
        amends: Whether it may amend others: a person's own words may; what an assistant, a tool or a summary
            writes, and a fact, may not.
    """

    id: str
    text: str
    at: datetime
    speaker: str = ""
    vector: Vector | None = None
    amends: bool = True


@dataclass(frozen=True, slots=True)
class Amendment:
    """That a later statement amends an earlier one.

    Attributes:
        earlier, later: Their ids.
        sentence: The sentence of the earlier one that no longer holds.
        score: How sure that is, in the unit of the rules' thresholds.
        sure: Whether the earlier one counts as superseded; else it is possibly outdated.
    """

    earlier: str
    later: str
    sentence: str
    score: float
    sure: bool


class _Data(BaseModel):
    """``config/amending.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    class Words(BaseModel):
        light: tuple[str, ...]
        stays: tuple[str, ...]

    class Matter(BaseModel):
        states: tuple[str, ...]
        changes: tuple[str, ...]

    class Scale(BaseModel):
        far: float
        near: float

    cues: Mapping[str, tuple[str, ...]]
    words: Words
    matters: tuple[Matter, ...]
    models: Mapping[str, Scale]
    thresholds: Mapping[str, float]
    weights: Mapping[str, float]


_LABEL = re.compile(
    r"\W*(?:(?:the|my|our|this) )?(?P<noun>[^\W\d_]+)[ -]?#?(?P<number>\d[\w.-]*)\b", re.IGNORECASE
)
"""What a sentence begins with that is one of a series: its kind and its number."""


class Rules:
    """The detection with the thresholds of one embedding model; every call is pure."""

    def __init__(self, data: _Data, model: str) -> None:
        matters = [(one.states, one.changes) for one in data.matters]
        self._reader = SentenceReader(data.cues, matters, data.words.light, data.words.stays)
        self._weights = data.weights
        self._likely, self._sure = data.thresholds["likely"], data.thresholds["sure"]
        self._scale = data.models.get(model, data.models["other"])

    def amendments(
        self, earlier: Sequence[Statement], later: Sequence[Statement]
    ) -> dict[str, Amendment]:
        """Return id → the amendment that counts, of those of ``earlier`` that one of ``later`` amends.

        Of several the last said of the sure ones counts, else the last said of the others. A statement amends what was
        said before it, never at the same instant, whichever order they come in.
        """
        found: dict[str, Amendment] = {}
        for new in sorted(later, key=lambda one: one.at):
            windows = _windows(self._reader.read(new.text)) if new.amends else ()
            for old in earlier if windows else ():
                if old.at >= new.at or old.id == new.id:
                    continue
                amendment = self._compared(old, new, windows)
                known = found.get(old.id)
                if amendment and (known is None or amendment.sure >= known.sure):
                    found[old.id] = amendment
        return found

    def score(self, old: Sentence, new: Sentence, nearness: float = 0.0) -> float:
        """Return how sure it is that a later sentence amends an earlier one; the sum of its weighted features."""
        features = self.features(old, new, nearness)
        return sum(self._weights[name] * value for name, value in features.items() if value)

    def features(self, old: Sentence, new: Sentence, nearness: float) -> dict[str, float]:
        """Return what speaks for and against, by the names of the weights; most are 0 or 1.

        Args:
            old: The earlier sentence.
            new: The later one, or two of them joined.
            nearness: Of the two statements, see ``nearness_of``.
        """
        shared = old.terms.keys() & new.terms.keys()
        lost = {term: weight for term, weight in old.terms.items() if term not in new.terms}
        gained = new.terms.keys() - old.terms.keys()
        strong, choice, now = (name in new.cues for name in ("strong", "choice", "now"))
        changes = strong or choice or now

        old_values = frozenset[str]().union(*old.values.values())
        new_values = frozenset[str]().union(*new.values.values())
        ended = new.ended & (old.terms.keys() | old_values)
        dies = "dies_before" in new.cues and bool(ended)
        typed = any(
            old.values[kind] - new.values[kind] and new.values[kind] - old.values[kind]
            for kind in old.values.keys() & new.values.keys()
        )
        matter = bool(old.states & new.changes)
        replaces = bool(ended) or typed or matter
        kept = not lost or (bool(old.names) and not old.names & lost.keys())
        renamed = changes and bool(old.names & lost.keys()) and bool(new.names - old.names)
        introduced = (strong or choice) and not kept and bool(new.names - old.names)
        introduced = introduced and "deciding" in old.cues
        frame = changes and not kept and len(shared) > 1 and len(lost) == 1
        frame = frame and 0 < len(gained) <= _FRAME
        # The earlier value is what a change leaves out: one word that the later sentence lacks is forgiven.
        value = max(lost.values()) if lost and gained and not typed and not ended else 0.0
        whole = sum(old.terms.values()) - value
        coverage = sum(old.terms[term] for term in shared) / whole if whole > 0 else 0.0
        marks = {
            "bias": True,
            "strong": strong,
            "choice": choice and not strong,
            "now": now and not strong and not choice,
            "weak": "weak" in new.cues and not changes,
            "cueless": not new.cues & _CHANGING and not replaces,
            "ended_name": bool(ended & (old.names | old_values)),
            "ended": bool(ended) and not ended & (old.names | old_values),
            "typed": typed,
            "partly": typed and not strong and coverage < _WHOLE,
            "astray": coverage < _PART and not matter and not dies,
            "untyped": bool(old.values) and not typed and not ended,
            "renamed": renamed and not typed,
            "frame": frame,
            "introduced": introduced and not renamed,
            "valueless": not (typed or renamed or introduced or ended or matter or frame),
            "nothing_new": not gained and not new_values - old_values and not ended,
            "thin": len(shared) <= 1 and not (strong or choice or replaces),
            "kept": kept and not replaces,
            "unshared": not shared and not matter,
            "matter": matter,
            "adds": "additive" in new.cues,
            "aside": "aside" in new.cues,
            "happened": "happened" in old.cues and "deciding" not in old.cues and not matter,
            "pointing": old.pointing,
            "decides": "deciding" in old.cues,
            "owner": bool(new.owners - old.owners - old.terms.keys()) and not matter,
        }
        return {
            **{name: float(is_so) for name, is_so in marks.items()},
            "coverage": coverage,
            "beyond": float(max(0, len(gained) - _USUAL)),
            "nearness": nearness,
        }

    def nearness_of(self, one: Statement, other: Statement) -> float:
        """Return how near two are in meaning: 0 at the cosine ``far``, 1 at ``near``, at most 1.5; 0 without vectors."""
        if one.vector is None or other.vector is None:
            return 0.0
        far, near = self._scale.far, self._scale.near
        return min(_NEAREST, (float(one.vector @ other.vector) - far) / (near - far))

    def _compared(
        self, old: Statement, new: Statement, windows: Sequence[Sentence]
    ) -> Amendment | None:
        best, sentence = float("-inf"), ""
        nearness: float | None = None
        if new.speaker:
            two_people = bool(old.speaker) and old.speaker != new.speaker
        else:
            two_people = bool(old.speaker) and not old.amends
        for stated in self._reader.read(old.text):
            for changing in windows:
                if two_people and (stated.about_self or changing.about_self):
                    continue
                if _are_apart(stated, changing):
                    continue
                if nearness is None:
                    nearness = self.nearness_of(old, new)
                score = self.score(stated, changing, nearness)
                if score > best:
                    best, sentence = score, stated.text
        if best < self._likely:
            return None
        return Amendment(old.id, new.id, sentence, round(best, 3), best >= self._sure)


@lru_cache(maxsize=8)
def rules_for(model: str) -> Rules:
    """Return the detection with an embedding model's thresholds; an unknown model, or none, has those of ``other``."""
    data = tomllib.loads(shipped("config/amending.toml").read_text("utf-8"))
    return Rules(_Data.model_validate(data), model)


def _are_apart(stated: Sentence, changing: Sentence) -> bool:
    """Tell whether two sentences are about different things, so that neither can amend the other."""
    first, second = _LABEL.match(stated.text), _LABEL.match(changing.text)
    if first and second and "strong" not in changing.cues:
        # "Note 12" and "Note 13", "PR #4" and "PR #5" are items of a series.
        same_kind = first["noun"].casefold() == second["noun"].casefold()
        if same_kind and first["number"] != second["number"]:
            return True
    no_term = stated.terms.keys().isdisjoint(changing.terms)
    return no_term and stated.states.isdisjoint(changing.changes)


def _windows(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences that may change something, and short neighbours as one.

    "Changed my mind about the ledger. CockroachDB it is." tells the matter in one sentence, the value in the other.
    """
    neighbours = [
        one.joined(other)
        for one, other in pairwise(sentences)
        if {"strong", "choice"} & (one.cues | other.cues)
        and len(one.terms) + len(other.terms) <= _SHORT
    ]
    return [
        one
        for one in (*sentences, *neighbours)
        if one.cues & _CHANGING or one.values or one.changes
    ]
