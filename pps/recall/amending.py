"""Detect which earlier statements a later one amends.

"It is CockroachDB now" amends "we'll use Postgres for the ledger".

Everything here is pure: statements in, amendments out. No language model reads them, so a pair is
judged by its words and by how near the two are in meaning. Precision comes first: most statements
about one thing are true side by side.

A pair is scored sentence by sentence. What speaks for it: words of change ("instead", "no longer"),
the thing that ended called by name ("not Rex"), another value of the same type ("12 May", "26 May")
beside the same other words, a matter that somebody has one of at a time ("live in", "moved to"),
nearness of meaning. What speaks against it: words that add ("also"), that tell of an earlier time
or of a thought ("used to", "might"), another owner ("my neighbour's dog"), and words of the earlier
sentence that the later one lacks. Phrases, weights and thresholds are data:
``config/amending.toml``; nothing here knows which phrase speaks for what.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import pairwise

from pydantic import BaseModel, ConfigDict

from pps.config.packaged import shipped
from pps.core.text import is_question
from pps.core.values import Vector
from pps.index.terms import stem
from pps.recall.question import STOP_WORDS, is_rare, piece_count, word_set

MAX_CHARS_READ = 1_000
"""Characters of a text that are read."""
MAX_SENTENCES_READ = 12
"""Sentences of a text that are read."""
_CACHED_TEXTS = 4_096
_CACHED_WORDS = 16_384

# ---- Sentences ----

_TOKEN = re.compile(
    r"[€$£]?\d+(?:[.,:/-]\d+)*(?:[ap]m\b|%|k\b)?|[^\W\d_](?:[\w+#]|['.-](?=\w))*", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？])|\n+")
_CODE_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_CODE_LINE = re.compile(
    r"^(?:import|from|def|class|return|const|let|var|if|for|#|//|>|\$) |[={};]\s*$"
    r"|\w\(|[<>]=|==|::|^\W*$|:$"
)
_CALENDAR_WORDS = word_set(
    """
    january february march april may june july august september october november december jan
    feb mar apr jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday
    saturday sunday spring summer autumn winter
    """
)
_MONEY_WORDS = word_set("euro euros eur dollar dollars usd pound pounds gbp chf francs yen k")
_UNITS = word_set(
    """
    second seconds minute minutes hour hours day days week weeks month months year years percent
    km kilometres kilometers miles mile metres meters kg kilos grams litres liters mb gb tb ms
    requests people characters pages chapters
    """
)
_NUMBER_WORDS = word_set("two three four five six seven eight nine ten eleven twelve")
_VALUE_WORDS = _CALENDAR_WORDS | _NUMBER_WORDS | _MONEY_WORDS
_SELF_WORDS = frozenset(["i", "we", "my", "our", "user"])
_POINTING_WORDS = word_set("it that this these those you your there")
_BEING_WORDS = word_set("is are am be been being was were get gets getting got")
_SKIPPED_NEAR_ENDING = word_set(
    """
    the a an my our his her their its in at on of with to using taking called
    """
)
"""Words that stand between a phrase of ending and the thing that has ended."""
_AUXILIARY_WORDS = word_set(
    """
    have has had am is are was were be been being will would just now still also recently
    finally both all do did used not never always currently
    """
)
_NOT_AN_OWNER = STOP_WORDS | {"let's"}
_MIN_NAME_PIECES = 3
"""Word pieces from which a word in lower case is taken for a name: "postgres", "kubernetes"."""
_WORDS_AROUND_ENDING = 3
"""Words after, or before, a phrase of ending that may be what has ended."""
_MAX_GAP = 4
"""Words that ``…`` stands for in a phrase, at most."""
_INDEXED_LETTERS = 3
"""Letters by which phrases are looked up that begin with a part of a word; such a part is at least
so long."""
_NAME_WEIGHT = 2.0
_PLAIN_WEIGHT = 1.0


@dataclass(frozen=True, slots=True)
class AmendingSentence:
    """One sentence, read.

    Attributes:
        terms: Stem of each content word → its weight, 2 for names and rare words, 1 for others.
        names: Those of the stems that are names or identifiers.
        values: Type of value ("date", "time", "money", "number", "number hour") → the values of
            that type.
        ended: Stems and values that it says have ended.
        cues: Names of the groups of phrases that it has.
        owners: Whose things it speaks of, where it says so: stems of words with "'s".
        about_self: Its speaker speaks of himself, alone or with others.
        pointing: It begins with "it", "that", "you": what it is about stands elsewhere.
        states, changes: Numbers of the matters that it states or changes, each with its subject.
    """

    text: str
    terms: Mapping[str, float]
    names: frozenset[str]
    values: Mapping[str, frozenset[str]]
    ended: frozenset[str]
    cues: frozenset[str]
    owners: frozenset[str]
    about_self: bool
    pointing: bool
    states: frozenset[tuple[int, str]]
    changes: frozenset[tuple[int, str]]

    @property
    def all_values(self) -> frozenset[str]:
        return frozenset[str]().union(*self.values.values())

    def joined(self, other: AmendingSentence) -> AmendingSentence:
        """Return this sentence and its neighbour read as one."""
        values = dict(self.values)
        for kind, kind_values in other.values.items():
            values[kind] = values.get(kind, frozenset()) | kind_values
        return AmendingSentence(
            text=f"{self.text} {other.text}",
            terms={**self.terms, **other.terms},
            names=self.names | other.names,
            values=values,
            ended=self.ended | other.ended,
            cues=self.cues | other.cues,
            owners=self.owners | other.owners,
            about_self=self.about_self or other.about_self,
            pointing=self.pointing,
            states=self.states | other.states,
            changes=self.changes | other.changes,
        )


@dataclass(frozen=True, slots=True)
class PhraseMatch:
    """A phrase in a sentence: its group, and the tokens ``[start, end)`` that it takes."""

    group: str
    start: int
    end: int


class Phrases:
    """Groups of phrases, looked up in lists of tokens by their first words.

    In a phrase ``*`` at the end of a word stands for its rest, ``…`` for at most four words, ``$``
    for the end.
    """

    def __init__(self, groups: Mapping[str, Iterable[str]]) -> None:
        self._by_first_word: defaultdict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
        self._by_first_letters: defaultdict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(
            list
        )
        for group, phrases in groups.items():
            for phrase in phrases:
                words = tuple(phrase.split())
                if words[0].endswith("*"):
                    self._by_first_letters[words[0][:_INDEXED_LETTERS]].append((group, words))
                else:
                    self._by_first_word[words[0]].append((group, words))

    def find(self, tokens: Sequence[str]) -> list[PhraseMatch]:
        """Return every phrase of every group, in the order of the tokens."""
        matches: list[PhraseMatch] = []
        for start, token in enumerate(tokens):
            candidates = [
                *self._by_first_word.get(token, ()),
                *self._by_first_letters.get(token[:_INDEXED_LETTERS], ()),
            ]
            for group, words in candidates:
                end = _end_of_phrase(tokens, start, words)
                if end is not None:
                    matches.append(PhraseMatch(group, start, end))
        return matches


def _end_of_phrase(tokens: Sequence[str], at: int, words: Sequence[str]) -> int | None:
    """Return where a phrase that begins at a token ends, or None if it does not stand there."""
    for place, word in enumerate(words):
        if word == "…":
            for gap in range(min(_MAX_GAP, len(tokens) - at) + 1):
                end = _end_of_phrase(tokens, at + gap, words[place + 1 :])
                if end is not None:
                    return end
            return None
        if word == "$":
            return at if at == len(tokens) else None
        if at >= len(tokens):
            return None
        token = tokens[at]
        if not (token.startswith(word[:-1]) if word.endswith("*") else token == word):
            return None
        at += 1
    return at


class SentenceReader:
    """Reads texts by groups of phrases; the latest 4,096 texts stay cached.

    Args:
        cues: Group → phrases. ``ends_behind``, ``ends_before`` and ``dies_before`` say on which
            side of them stands what has ended; ``happened`` is what tells of something that
            happened once.
        matters: Of each matter the phrases that state it, and those that change it.
        light: Words that tell nothing of what a sentence is about.
        stays: Words with "-ed" that tell of what is so from then on.
    """

    def __init__(
        self,
        cues: Mapping[str, Sequence[str]],
        matters: Sequence[tuple[Sequence[str], Sequence[str]]],
        light: Iterable[str],
        stays: Iterable[str],
    ) -> None:
        groups = dict(cues)
        for number, (states, changes) in enumerate(matters):
            groups[f"states {number}"] = states
            groups[f"changes {number}"] = changes
        self._phrases = Phrases(groups)
        self._light = frozenset(map(stem, light))
        self._stays = frozenset(stays)
        self.read = lru_cache(maxsize=_CACHED_TEXTS)(self._read)
        self._term = lru_cache(maxsize=_CACHED_WORDS)(self._read_term)

    def _read(self, text: str) -> tuple[AmendingSentence, ...]:
        """Return the sentences that state something: no questions, no code, at most 12."""
        plain = _CODE_FENCE.sub(" ", text[:MAX_CHARS_READ].replace("’", "'"))
        statements: list[str] = []
        for piece in _SENTENCE_END.split(plain):
            sentence = piece.strip()
            if sentence and not is_question(sentence) and not _CODE_LINE.search(sentence):
                statements.append(sentence)
        return tuple(map(self._sentence, statements[:MAX_SENTENCES_READ]))

    def _sentence(self, text: str) -> AmendingSentence:
        words = _TOKEN.findall(text)
        tokens = [word.lower() for word in words]
        terms, names = self._terms(words)
        matches = self._phrases.find(tokens)
        cues = {match.group for match in matches}
        if self._tells_of_past(tokens):
            cues.add("happened")
        return AmendingSentence(
            text=text,
            terms=terms,
            names=names,
            values=_typed_values(tokens),
            ended=frozenset(_ended_terms(tokens, matches)),
            cues=frozenset(cues),
            owners=frozenset(_owners(tokens)),
            about_self=not _SELF_WORDS.isdisjoint(map(_without_suffix, tokens)),
            pointing=bool(tokens) and _without_suffix(tokens[0]) in _POINTING_WORDS,
            states=frozenset(_matters("states", tokens, matches)),
            changes=frozenset(_matters("changes", tokens, matches)),
        )

    def _terms(self, words: Sequence[str]) -> tuple[dict[str, float], frozenset[str]]:
        """Return stem → weight of the content words, and the stems of names and identifiers."""
        terms: dict[str, float] = {}
        names: set[str] = set()
        for place, word in enumerate(words):
            term = self._term(word, place == 0)
            if term is not None:
                root, weight, is_name = term
                terms[root] = weight
                if is_name:
                    names.add(root)
        return terms, frozenset(names)

    def _read_term(self, word: str, begins_sentence: bool) -> tuple[str, float, bool] | None:
        """Return a content word's stem, its weight and whether it is a name; None for others."""
        token = word.lower()
        if not token[0].isalpha() or token in _VALUE_WORDS:
            return None
        root = _root(token)
        is_empty = token in STOP_WORDS or _without_suffix(token) in _SELF_WORDS
        if len(root) < 2 or is_empty or root in self._light:
            return None
        if _is_name(word, begins_sentence=begins_sentence):
            return root, _NAME_WEIGHT, True
        return root, _NAME_WEIGHT if is_rare(token) else _PLAIN_WEIGHT, False

    def _tells_of_past(self, tokens: Sequence[str]) -> bool:
        for previous, token in pairwise(("", *tokens)):
            is_past_form = token.endswith("ed") and len(token) > 3 and token not in self._stays
            if is_past_form and previous not in _BEING_WORDS:
                return True
        return False


def _is_name(word: str, *, begins_sentence: bool) -> bool:
    if word[0].isupper() and not begins_sentence:
        return True
    if any(character.isupper() for character in word[1:]):
        return True
    return word.isascii() and piece_count(word.lower().removesuffix("s")) >= _MIN_NAME_PIECES


def _typed_values(tokens: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return type → values of a sentence: dates, times, money, numbers with their units."""
    values: defaultdict[str, set[str]] = defaultdict(set)
    for place, token in enumerate(tokens):
        previous = tokens[place - 1] if place > 0 else ""
        following = tokens[place + 1] if place + 1 < len(tokens) else ""
        is_number = token[0].isdigit()
        if token in _CALENDAR_WORDS:
            day = next((word for word in (previous, following) if word.isdigit()), "")
            values["date"].add(f"{day} {token}".strip())
        elif is_number and (":" in token or token.endswith(("am", "pm"))):
            values["time"].add(token)
        elif token[0] in "€$£" or (
            is_number and (following in _MONEY_WORDS or token.endswith("k"))
        ):
            values["money"].add(token.strip("€$£"))
        elif is_number or token in _NUMBER_WORDS:
            if not _CALENDAR_WORDS.isdisjoint((previous, following)):
                continue  # the day of a date
            unit = stem(following) if following in _UNITS else ""
            values[f"number {unit}".strip()].add(token)
    return {kind: frozenset(kind_values) for kind, kind_values in values.items()}


def _ended_terms(tokens: Sequence[str], matches: Iterable[PhraseMatch]) -> Iterator[str]:
    """Yield the stems that stand near a phrase of ending, on the side that its group names."""
    for match in matches:
        if match.group == "ends_behind":
            after = [token for token in tokens[match.end :] if token not in _SKIPPED_NEAR_ENDING]
            yield from map(_root, after[:_WORDS_AROUND_ENDING])
        elif match.group in ("ends_before", "dies_before"):
            before = [token for token in tokens[: match.start] if token not in _SKIPPED_NEAR_ENDING]
            yield from map(_root, before[-_WORDS_AROUND_ENDING:])


def _owners(tokens: Iterable[str]) -> Iterator[str]:
    for token in tokens:
        if token.endswith("'s") and token not in _NOT_AN_OWNER:
            yield _root(token)


def _matters(
    side: str, tokens: Sequence[str], matches: Iterable[PhraseMatch]
) -> Iterator[tuple[int, str]]:
    """Yield the matters of a sentence, each with its subject.

    The subject is "self", or the stem of the word before the phrase.
    """
    for match in matches:
        if not match.group.startswith(f"{side} "):
            continue
        before = [_without_suffix(token) for token in tokens[: match.start]]
        subject = next((token for token in reversed(before) if token not in _AUXILIARY_WORDS), "i")
        number = int(match.group.split()[1])
        yield number, "self" if subject in _SELF_WORDS else _root(subject)


def _without_suffix(token: str) -> str:
    """Return a token without what an apostrophe joins to it: "i" of "i've"."""
    return token.partition("'")[0]


def _root(token: str) -> str:
    if not token[0].isalpha():
        return token
    return stem(token.removesuffix("'s").replace("'", ""))


# ---- Amendments ----

_SAME_COVERAGE = 0.8
"""Share of an earlier sentence's words from which a later one is about the same thing."""
_OTHER_COVERAGE = 0.3
"""The same below which it is about another."""
_MAX_TERMS_JOINED = 10
"""Words up to which two neighbouring sentences are read as one."""
_USUAL_GAIN = 4
"""Words that a later sentence may have beyond the earlier one's."""
_MAX_FRAME_GAIN = 2
"""Words that another value may bring into the frame of an earlier sentence."""
_MAX_NEARNESS = 1.5
_CHANGE_CUES = frozenset(
    ("strong", "choice", "now", "weak", "ends_behind", "ends_before", "dies_before")
)
_SERIES_ITEM = re.compile(
    r"\W*(?:(?:the|my|our|this) )?(?P<noun>[^\W\d_]+)[ -]?#?(?P<number>\d[\w.-]*)\b", re.IGNORECASE
)
"""The beginning of a sentence about an item of a series: its kind and its number."""


@dataclass(frozen=True, slots=True)
class AmendingStatement:
    """A turn or a fact, as the detection sees it.

    Attributes:
        id: Its uuid.
        text: What it says; the first 1,000 characters and 12 sentences are read.
        at: When it was said (aware), in the world's time.
        speaker: Who said it: what two people say of themselves ("I live in …") is never compared.
            Empty for a fact, whose text names whom it is about, and for a person whose name is not
            known.
        vector: Its unit-length vector of the entity's model, or None without one.
        amends: Whether it may amend others: a person's own words may; what an assistant, a tool or
            a summary writes, and a fact, may not.
    """

    id: str
    text: str
    at: datetime
    speaker: str = ""
    vector: Vector | None = None
    amends: bool = True


@dataclass(frozen=True, slots=True)
class Amendment:
    """A later statement amends an earlier one.

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


class _WordLists(BaseModel):
    light: tuple[str, ...]
    stays: tuple[str, ...]


class _Matter(BaseModel):
    states: tuple[str, ...]
    changes: tuple[str, ...]


class _CosineScale(BaseModel):
    far: float
    near: float


class _AmendingFile(BaseModel):
    """``config/amending.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cues: Mapping[str, tuple[str, ...]]
    words: _WordLists
    matters: tuple[_Matter, ...]
    models: Mapping[str, _CosineScale]
    thresholds: Mapping[str, float]
    weights: Mapping[str, float]


class Rules:
    """The detection with the thresholds of one embedding model; every call is pure."""

    def __init__(self, data: _AmendingFile, model: str) -> None:
        matters = [(matter.states, matter.changes) for matter in data.matters]
        self._reader = SentenceReader(data.cues, matters, data.words.light, data.words.stays)
        self._weights = data.weights
        self._likely = data.thresholds["likely"]
        self._sure = data.thresholds["sure"]
        self._scale = data.models.get(model, data.models["other"])

    def amendments(
        self, earlier: Sequence[AmendingStatement], later: Sequence[AmendingStatement]
    ) -> dict[str, Amendment]:
        """Return id → the amendment of each statement of ``earlier`` that one of ``later`` amends.

        Of several the last said of the sure ones counts, else the last said of the others. A
        statement amends what was said before it, never at the same instant, whichever order they
        come in.
        """
        amendments: dict[str, Amendment] = {}
        if not earlier:
            return amendments
        first_at = min(statement.at for statement in earlier)
        for new in sorted(later, key=lambda statement: statement.at):
            may_amend = new.amends and new.at > first_at
            windows = _changing_windows(self._reader.read(new.text)) if may_amend else ()
            if not windows:
                continue
            for old in earlier:
                if old.at >= new.at or old.id == new.id:
                    continue
                amendment = self._compare(old, new, windows)
                known = amendments.get(old.id)
                if amendment and (known is None or amendment.sure >= known.sure):
                    amendments[old.id] = amendment
        return amendments

    def score(self, old: AmendingSentence, new: AmendingSentence, nearness: float = 0.0) -> float:
        """Return how surely a later sentence amends an earlier one: a sum of weighted features."""
        features = self.features(old, new, nearness)
        return sum(self._weights[name] * value for name, value in features.items() if value)

    def features(
        self, old: AmendingSentence, new: AmendingSentence, nearness: float
    ) -> dict[str, float]:
        """Return what speaks for and against, by the names of the weights; most are 0 or 1.

        Args:
            old: The earlier sentence.
            new: The later one, or two of them joined.
            nearness: Of the two statements, see ``nearness_of``.
        """
        shared = old.terms.keys() & new.terms.keys()
        lost = {term: weight for term, weight in old.terms.items() if term not in new.terms}
        gained = new.terms.keys() - old.terms.keys()
        has_new_name = bool(new.names - old.names)
        strong = "strong" in new.cues
        choice = "choice" in new.cues
        now = "now" in new.cues
        deciding = "deciding" in old.cues
        changes = strong or choice or now

        ended = new.ended & (old.terms.keys() | old.all_values)
        ended_by_name = bool(ended & (old.names | old.all_values))
        dies = "dies_before" in new.cues and bool(ended)
        typed = any(
            old.values[kind] - new.values[kind] and new.values[kind] - old.values[kind]
            for kind in old.values.keys() & new.values.keys()
        )
        matter = bool(old.states & new.changes)
        replaces = bool(ended) or typed or matter
        keeps_matter = not lost or (bool(old.names) and not old.names & lost.keys())
        renamed = changes and bool(old.names & lost.keys()) and has_new_name
        introduced = (strong or choice) and not keeps_matter and has_new_name and deciding
        fills_frame = (
            changes
            and not keeps_matter
            and len(shared) > 1
            and len(lost) == 1
            and 0 < len(gained) <= _MAX_FRAME_GAIN
        )
        # The earlier value is what a change leaves out: one word that the later sentence lacks is
        # forgiven.
        forgiven = max(lost.values()) if lost and gained and not typed and not ended else 0.0
        whole = sum(old.terms.values()) - forgiven
        coverage = sum(old.terms[term] for term in shared) / whole if whole > 0 else 0.0
        names_a_value = typed or renamed or introduced or bool(ended) or matter or fills_frame
        marks = {
            "bias": True,
            "strong": strong,
            "choice": choice and not strong,
            "now": now and not strong and not choice,
            "weak": "weak" in new.cues and not changes,
            "cueless": not new.cues & _CHANGE_CUES and not replaces,
            "ended_name": ended_by_name,
            "ended": bool(ended) and not ended_by_name,
            "typed": typed,
            "partly": typed and not strong and coverage < _SAME_COVERAGE,
            "astray": coverage < _OTHER_COVERAGE and not matter and not dies,
            "untyped": bool(old.values) and not typed and not ended,
            "renamed": renamed and not typed,
            "frame": fills_frame,
            "introduced": introduced and not renamed,
            "valueless": not names_a_value,
            "nothing_new": not gained and not new.all_values - old.all_values and not ended,
            "thin": len(shared) <= 1 and not (strong or choice or replaces),
            "kept": keeps_matter and not replaces,
            "unshared": not shared and not matter,
            "matter": matter,
            "adds": "additive" in new.cues,
            "aside": "aside" in new.cues,
            "happened": "happened" in old.cues and not deciding and not matter,
            "pointing": old.pointing,
            "decides": deciding,
            "owner": bool(new.owners - old.owners - old.terms.keys()) and not matter,
        }
        return {
            **{name: float(is_set) for name, is_set in marks.items()},
            "coverage": coverage,
            "beyond": float(max(0, len(gained) - _USUAL_GAIN)),
            "nearness": nearness,
        }

    def nearness_of(self, first: AmendingStatement, second: AmendingStatement) -> float:
        """Return how near two statements are in meaning; 0 without vectors.

        It is 0 at the cosine ``far``, 1 at ``near``, and at most 1.5.
        """
        if first.vector is None or second.vector is None:
            return 0.0
        cosine = float(first.vector @ second.vector)
        scaled = (cosine - self._scale.far) / (self._scale.near - self._scale.far)
        return min(_MAX_NEARNESS, scaled)

    def _compare(
        self, old: AmendingStatement, new: AmendingStatement, windows: Sequence[AmendingSentence]
    ) -> Amendment | None:
        """Return the amendment of the best pair of sentences, or None where that is unlikely."""
        best_score = float("-inf")
        best_sentence = ""
        nearness: float | None = None
        may_be_two_people = _may_be_two_people(old, new)
        for stated in self._reader.read(old.text):
            for changing in windows:
                if may_be_two_people and (stated.about_self or changing.about_self):
                    continue
                if _are_apart(stated, changing):
                    continue
                if nearness is None:
                    nearness = self.nearness_of(old, new)
                score = self.score(stated, changing, nearness)
                if score > best_score:
                    best_score = score
                    best_sentence = stated.text
        if best_score < self._likely:
            return None
        return Amendment(
            earlier=old.id,
            later=new.id,
            sentence=best_sentence,
            score=round(best_score, 3),
            sure=best_score >= self._sure,
        )


@lru_cache(maxsize=8)
def rules_for(model: str) -> Rules:
    """Return the detection with an embedding model's thresholds.

    An unknown model, or none, has those of ``other``.
    """
    data = tomllib.loads(shipped("config/amending.toml").read_text("utf-8"))
    return Rules(_AmendingFile.model_validate(data), model)


def _may_be_two_people(old: AmendingStatement, new: AmendingStatement) -> bool:
    if new.speaker:
        return bool(old.speaker) and old.speaker != new.speaker
    return bool(old.speaker) and not old.amends


def _are_apart(stated: AmendingSentence, changing: AmendingSentence) -> bool:
    """Tell whether two sentences are about different things: neither can amend the other."""
    matter = not stated.states.isdisjoint(changing.changes)
    if not matter and stated.terms.keys().isdisjoint(changing.terms):
        return True
    if "strong" in changing.cues:
        return False
    if not matter and not _may_change(stated, changing):
        return True
    first = _SERIES_ITEM.match(stated.text)
    second = _SERIES_ITEM.match(changing.text)
    if not first or not second:
        return False
    # "Note 12" and "Note 13", "PR #4" and "PR #5" are items of a series.
    same_kind = first["noun"].casefold() == second["noun"].casefold()
    return same_kind and first["number"] != second["number"]


def _may_change(stated: AmendingSentence, changing: AmendingSentence) -> bool:
    """Tell whether a sentence has a word of change, or a value of a type that the other has too.

    Without both, and without a matter, all that may speak for a pair (coverage, nearness, a
    decision) stays below every threshold: such pairs need no score.
    """
    has_cue = not _CHANGE_CUES.isdisjoint(changing.cues)
    return has_cue or not stated.values.keys().isdisjoint(changing.values)


def _changing_windows(sentences: Sequence[AmendingSentence]) -> list[AmendingSentence]:
    """Return the sentences that may change something, and short neighbours as one.

    "Changed my mind about the ledger. CockroachDB it is." names the matter in one sentence, the
    value in the other.
    """
    windows = list(sentences)
    for sentence, following in pairwise(sentences):
        has_cue = not {"strong", "choice"}.isdisjoint(sentence.cues | following.cues)
        if has_cue and len(sentence.terms) + len(following.terms) <= _MAX_TERMS_JOINED:
            windows.append(sentence.joined(following))
    return [
        window
        for window in windows
        if window.cues & _CHANGE_CUES or window.values or window.changes
    ]
