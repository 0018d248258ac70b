"""Sentences read for what they state and what they change: terms, typed values, phrases that tell of change.

English phrases are data (``config/amending.toml``); nothing here knows which of them speaks for what.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from pps.core.text import is_question
from pps.index.terms import stem
from pps.recall.question import IDLE
from pps.recall.rarity import is_rare, pieces_of

MOST_READ = 1_000
"""Characters of a text that are read."""
MOST_SENTENCES = 12
"""Sentences of a text that are read."""

_TOKEN = re.compile(
    r"[€$£]?\d+(?:[.,:/-]\d+)*(?:[ap]m\b|%|k\b)?|[^\W\d_](?:[\w+#]|['.-](?=\w))*", re.IGNORECASE
)
_ENDS = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？])|\n+")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_CODE = re.compile(
    r"^(?:import|from|def|class|return|const|let|var|if|for|#|//|>|\$) |[={};]\s*$|\w\(|[<>]=|==|::|^\W*$|:$"
)
_CALENDAR = frozenset(
    [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "spring",
        "summer",
        "autumn",
        "winter",
    ]
)
_MONEY = frozenset(
    [
        "euro",
        "euros",
        "eur",
        "dollar",
        "dollars",
        "usd",
        "pound",
        "pounds",
        "gbp",
        "chf",
        "francs",
        "yen",
        "k",
    ]
)
_UNITS = frozenset(
    [
        "second",
        "seconds",
        "minute",
        "minutes",
        "hour",
        "hours",
        "day",
        "days",
        "week",
        "weeks",
        "month",
        "months",
        "year",
        "years",
        "percent",
        "km",
        "kilometres",
        "kilometers",
        "miles",
        "mile",
        "metres",
        "meters",
        "kg",
        "kilos",
        "grams",
        "litres",
        "liters",
        "mb",
        "gb",
        "tb",
        "ms",
        "requests",
        "people",
        "characters",
        "pages",
        "chapters",
    ]
)
_COUNTED = frozenset(
    ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
)
_VALUE_WORDS = _CALENDAR | _COUNTED | _MONEY
_SELF = frozenset(["i", "we", "my", "our", "user"])
_POINTING = frozenset(["it", "that", "this", "these", "those", "you", "your", "there"])
_BEING = frozenset(
    ["is", "are", "am", "be", "been", "being", "was", "were", "get", "gets", "getting", "got"]
)
_ARTICLES = frozenset(
    [
        "the",
        "a",
        "an",
        "my",
        "our",
        "his",
        "her",
        "their",
        "its",
        "in",
        "at",
        "on",
        "of",
        "with",
        "to",
        "using",
        "taking",
        "called",
    ]
)
_AUXILIARY = frozenset(
    [
        "have",
        "has",
        "had",
        "am",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "being",
        "will",
        "would",
        "just",
        "now",
        "still",
        "also",
        "recently",
        "finally",
        "both",
        "all",
        "do",
        "did",
        "used",
        "not",
        "never",
        "always",
        "currently",
    ]
)
_NO_OWNERS = IDLE | {"let's"}
_NAME_PIECES = 3
"""Word pieces from which a word in lower case is taken for a name: "postgres", "kubernetes"."""
_REACH = 3
"""Words behind, or before, a phrase of ending that may be what has ended."""
_GAP = 4
"""Words that ``…`` stands for in a phrase, at most."""
_NAMED, _PLAIN = 2.0, 1.0
"""Weights of a term: a name, an identifier or a word that is seldom used; any other."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, read.

    Attributes:
        terms: Stem of each word that tells something → its weight, 2 for names and rare words, 1 for others.
        names: Those of the stems that are names or identifiers.
        values: Type of value ("date", "time", "money", "number", "number hour") → the values of that type.
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

    def joined(self, other: Sentence) -> Sentence:
        """Return this sentence and its neighbour read as one."""
        kinds = self.values.keys() | other.values.keys()
        nothing = frozenset[str]()
        return Sentence(
            text=f"{self.text} {other.text}",
            terms={**self.terms, **other.terms},
            names=self.names | other.names,
            values={
                kind: self.values.get(kind, nothing) | other.values.get(kind, nothing)
                for kind in kinds
            },
            ended=self.ended | other.ended,
            cues=self.cues | other.cues,
            owners=self.owners | other.owners,
            about_self=self.about_self or other.about_self,
            pointing=self.pointing,
            states=self.states | other.states,
            changes=self.changes | other.changes,
        )


@dataclass(frozen=True, slots=True)
class Found:
    """A phrase in a sentence: its group, and the tokens ``[start, end)`` that it takes."""

    group: str
    start: int
    end: int


class Phrases:
    """Groups of phrases, found in lists of tokens by their first words.

    In a phrase ``*`` at the end of a word stands for its rest, ``…`` for at most four words, ``$`` for the end.
    """

    def __init__(self, groups: Mapping[str, Iterable[str]]) -> None:
        self._whole: defaultdict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
        self._begun: defaultdict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
        for group, phrases in groups.items():
            for phrase in phrases:
                words = tuple(phrase.split())
                if words[0].endswith("*"):
                    self._begun[words[0][:_HEAD]].append((group, words))
                else:
                    self._whole[words[0]].append((group, words))

    def find(self, tokens: Sequence[str]) -> list[Found]:
        """Return every phrase of every group, in the order of the tokens."""
        found: list[Found] = []
        for start, token in enumerate(tokens):
            for group, words in (*self._whole.get(token, ()), *self._begun.get(token[:_HEAD], ())):
                end = _matched(tokens, start, words)
                if end is not None:
                    found.append(Found(group, start, end))
        return found


_HEAD = 3
"""Letters by which phrases are found that begin with a part of a word; such a part is at least so long."""


def _matched(tokens: Sequence[str], at: int, words: Sequence[str]) -> int | None:
    for place, word in enumerate(words):
        if word == "…":
            ends = (
                _matched(tokens, at + gap, words[place + 1 :])
                for gap in range(min(_GAP, len(tokens) - at) + 1)
            )
            return next((end for end in ends if end is not None), None)
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
    """Reads texts by groups of phrases; what was read is kept, for the latest 4,096 texts.

    Args:
        cues: Group → phrases. ``ends_behind``, ``ends_before`` and ``dies_before`` say on which side of them stands
            what has ended; ``happened`` is what tells of something that happened once.
        matters: Of each matter what states it, and what changes it.
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
        self.read = lru_cache(maxsize=4_096)(self._read)

    def _read(self, text: str) -> tuple[Sentence, ...]:
        """Return the sentences of a text that state something: no questions, no code, at most 12."""
        plain = _FENCED.sub(" ", text[:MOST_READ].replace("’", "'"))
        sentences = [one.strip() for one in _ENDS.split(plain)]
        stating = [
            one for one in sentences if one and not is_question(one) and not _CODE.search(one)
        ]
        return tuple(map(self._sentence, stating[:MOST_SENTENCES]))

    def _sentence(self, text: str) -> Sentence:
        words = _TOKEN.findall(text)
        tokens = [one.lower() for one in words]
        terms, names = self._terms(words)
        found = self._phrases.find(tokens)
        cues = {one.group for one in found}
        if self._tells_of_past(tokens):
            cues.add("happened")
        return Sentence(
            text=text,
            terms=terms,
            names=names,
            values=_values(tokens),
            ended=frozenset(_ended(tokens, found)),
            cues=frozenset(cues),
            owners=frozenset(_owners(tokens)),
            about_self=any(_bare(one) in _SELF for one in tokens),
            pointing=bool(tokens) and _bare(tokens[0]) in _POINTING,
            states=frozenset(_matters("states", tokens, found)),
            changes=frozenset(_matters("changes", tokens, found)),
        )

    def _terms(self, words: Sequence[str]) -> tuple[dict[str, float], frozenset[str]]:
        terms: dict[str, float] = {}
        names: set[str] = set()
        for place, word in enumerate(words):
            token = word.lower()
            if not token[0].isalpha() or token in _VALUE_WORDS:
                continue
            root = _root(token)
            if len(root) < 2 or token in IDLE or _bare(token) in _SELF or root in self._light:
                continue
            inside = word[0].isupper() and place > 0
            spelled = any(character.isupper() for character in word[1:])
            singular = token.removesuffix("s")
            odd = word.isascii() and pieces_of(singular) >= _NAME_PIECES
            is_name = inside or spelled or odd
            terms[root] = _NAMED if is_name or is_rare(token) else _PLAIN
            if is_name:
                names.add(root)
        return terms, frozenset(names)

    def _tells_of_past(self, tokens: Sequence[str]) -> bool:
        return any(
            token.endswith("ed") and len(token) > 3 and token not in self._stays
            for before, token in pairwise(("", *tokens))
            if before not in _BEING
        )


def _values(tokens: Sequence[str]) -> dict[str, frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for before, token, behind in zip(("", *tokens), tokens, (*tokens[1:], ""), strict=False):
        is_number = token[0].isdigit()
        if token in _CALENDAR:
            day = next((one for one in (before, behind) if one.isdigit()), "")
            found["date"].add(f"{day} {token}".strip())
        elif is_number and (":" in token or token.endswith(("am", "pm"))):
            found["time"].add(token)
        elif token[0] in "€$£" or (is_number and (behind in _MONEY or token.endswith("k"))):
            found["money"].add(token.strip("€$£"))
        elif (is_number or token in _COUNTED) and not {before, behind} & _CALENDAR:
            unit = stem(behind) if behind in _UNITS else ""
            found[f"number {unit}".strip()].add(token)
    return {kind: frozenset(some) for kind, some in found.items()}


def _ended(tokens: Sequence[str], found: Iterable[Found]) -> Iterator[str]:
    for one in found:
        if one.group == "ends_behind":
            near = [token for token in tokens[one.end :] if token not in _ARTICLES][:_REACH]
        elif one.group in ("ends_before", "dies_before"):
            near = [token for token in tokens[: one.start] if token not in _ARTICLES][-_REACH:]
        else:
            continue
        yield from map(_root, near)


def _owners(tokens: Iterable[str]) -> Iterator[str]:
    for token in tokens:
        if token.endswith("'s") and token not in _NO_OWNERS:
            yield _root(token)


def _matters(side: str, tokens: Sequence[str], found: Iterable[Found]) -> Iterator[tuple[int, str]]:
    """Yield the matters of a sentence, each with its subject: "self", or the stem of the word before the phrase."""
    for one in found:
        if one.group.startswith(f"{side} "):
            before = [_bare(token) for token in tokens[: one.start]]
            subject = next((token for token in reversed(before) if token not in _AUXILIARY), "i")
            yield int(one.group.split()[1]), "self" if subject in _SELF else _root(subject)


def _bare(token: str) -> str:
    """Return a token without what is joined to it: "i" of "i've"."""
    return token.split("'")[0]


def _root(token: str) -> str:
    return stem(token.removesuffix("'s").replace("'", "")) if token[0].isalpha() else token
