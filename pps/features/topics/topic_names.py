"""Names for topics: the nodes and noun phrases that most of a topic's central turns mention.

No part-of-speech tagger is needed. Punctuation and words that are part of no noun phrase
(``config/topics.toml``, by language) split a text into runs of content words. A word names
something if it often ends such a run: in "green tiles", "tiles" does and "green" does not. In
Romance languages the first word of a run is the head. Chinese and Japanese are split at characters.

A name is stored as the places in turns where its phrases stand, so no text is stored twice.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from pps.config.packaged import shipped
from pps.core.text import fold
from pps.journal.topic_rows import Place

Key: TypeAlias = tuple[str, ...]
"""The words of a phrase in the form that is compared: folded, without a plural or genitive s."""

MOST_PHRASES = 3
"""Phrases of a topic's name."""
MOST_TERMS = 5
"""Terms listed beside the name."""
MOST_NAMED = 3
"""Nodes listed beside the name."""
_LONGEST_PHRASE = 3
_LONGEST_DENSE = 6
_MOST_CHARACTERS = 2_000
"""Only this many characters of a turn are searched for phrases."""
_REPLACING_SHARE = 0.6
"""A longer phrase replaces a part of it that it has at least this share of the support of."""
_LEAST_HEAD_SHARE = 0.3
"""A word names something if at least this share of its occurrences is the head of a run."""
_LEAST_HEADS = 3
"""A word also names something if it stands before at least this many different heads."""
_ENOUGH_COVERED = 0.85
"""A name of two phrases is complete when its turns have this share of the topic's weight."""
_WORTH_WHILE_LITTLE_IS_COVERED = 0.2
"""Least worth of a further phrase, as a share of the first one's, below half of the weight."""
_WORTH_WHILE_MUCH_IS_COVERED = 0.4
"""The same when the phrases chosen so far cover half of the topic's weight or more."""
_WORTH_WITHOUT_NEW_TURNS = 0.45
"""The same when the further phrase is in no turn that the chosen phrases do not cover already."""
_STAYING_SHARE = 0.6
"""An earlier name stays while its phrases have this share of the best phrases' worth in total."""
_ONE_WORD = 1.0
_SEVERAL_WORDS = 1.7
_NODE = 1.8
_PERSON = 1.2
_IN_ONE_TURN = 0.35
"""Factor for a phrase that only one turn has."""
_NODE_IN_ONE_TURN = 0.8
"""Factor for the name of a node that only one turn has."""
_UNDETERMINED = 0.4
"""Factor for a word that never stands where nouns do.

Nouns follow an article, a number or a preposition, or are part of a longer phrase.
"""
_GERUND = 0.6
_CODE = re.compile(
    r"```.*?(?:```|\Z)|https?://\S+|[\w.+-]+@[\w-]+\.\w+|`[^`\n]*[\s(\[{<=&][^`\n]*`", re.DOTALL
)
_WORD = re.compile(r"[^\W_]+(?:(?:[-'’._+&]|::)[^\W_]+)*[+#]*|[^\s\w]")
_ELIDED = re.compile(r"[^\W_]+(?:(?:[-._+&]|::)[^\W_]+)*[+#]*|[^\s\w]")
_KANA = "\u30a1-\u30fa\u30fc"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々"
_DENSE = re.compile(f"[{_HAN}]+|[{_KANA}]+")
_SENTENCE_START = re.compile(r"(?:^|[.!?:\n。！？…])[\s\"'“‘(*_>-]*\Z")
_FIRST_WORDS = re.compile(r"\w(?:\S{0,30} ?){1,5}")
_JOINED = re.compile(r"[ \u00a0-]?\Z")
_NUMBER = re.compile(
    r"[\d.,:/%²-]+(?:st|nd|rd|th|am|pm|k|m|h|kb|mb|gb|ms|kg|km|cm)?\Z|(?:\D*\d){4}"
)
_PARTICIPLE = re.compile(r"\w{2,}[^aeiou\W]ed\Z|\w{2,}[aiou]ed\Z")
_ADVERB = re.compile(r"\w{3,}ly\Z")

Role: TypeAlias = Literal["content", "vague", "calendar", "other"]


@dataclass(frozen=True, slots=True)
class TopicTurn:
    """A turn of a topic; ``nearness`` to the topic's middle is above 0, at most 1."""

    turn: str
    text: str
    nearness: float = 1.0


@dataclass(frozen=True, slots=True)
class TopicName:
    """The places of a topic's phrases in its turns.

    Attributes:
        name: Phrases of its name, at most three.
        terms: The phrases of greatest worth, at most five.
        named: Names of the nodes that most of its turns mention, at most three.
    """

    name: tuple[Place, ...]
    terms: tuple[Place, ...]
    named: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class _Language:
    function: frozenset[str]
    subjects: frozenset[str]
    verbs: frozenset[str]
    vague: frozenset[str]
    calendar: frozenset[str]
    links: frozenset[str]
    determiners: frozenset[str]
    articles: frozenset[str]
    nouns: frozenset[str]
    head: Literal["last", "first"]
    capital_nouns: bool
    adverbs_in_ly: bool


@dataclass(frozen=True, slots=True)
class _Rules:
    languages: Mapping[str, _Language]
    dense_function: frozenset[str]
    dense_vague: frozenset[str]
    passed_kinds: frozenset[str]
    calendar: frozenset[str]
    vague: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Token:
    """A word of a text.

    Attributes:
        joined: Only a space or a hyphen stands between it and the word before.
        link: It joins two nouns ("de").
        can_head: A phrase may end with it, or begin with it in Romance languages.
        determined: It follows an article, a number or a preposition.
    """

    key: str
    start: int
    stop: int
    role: Role
    joined: bool
    link: bool
    can_head: bool
    determined: bool
    capital: bool


@dataclass(frozen=True, slots=True)
class _Occurrence:
    """One occurrence of a phrase.

    Attributes:
        heads: Its head is the head of the whole run, or it is a node's name.
        determined: It has several words, is a node's name, or stands where nouns do.
    """

    key: Key
    place: Place
    heads: bool
    determined: bool = True


@cache
def _rules() -> _Rules:
    data = tomllib.loads(shipped("config/topics.toml").read_text("utf-8"))
    languages = {name: _language(table) for name, table in data["languages"].items()}
    return _Rules(
        languages,
        frozenset(data["dense"]["function"]),
        frozenset(data["dense"]["vague"].split()),
        frozenset(data["passed_kinds"]),
        frozenset(_key(word) for language in languages.values() for word in language.calendar),
        frozenset(_key(word) for language in languages.values() for word in language.vague),
    )


def _language(table: Mapping[str, str]) -> _Language:
    def words(name: str) -> frozenset[str]:
        return frozenset(fold(word) for word in table.get(name, "").split())

    verbs = {form for base in words("verbs") for form in _verb_forms(base)} | words("irregular")
    return _Language(
        words("function"),
        words("subjects"),
        frozenset(verbs),
        words("vague"),
        words("calendar"),
        words("links"),
        words("determiners"),
        words("articles"),
        words("nouns"),
        "first" if table["head"] == "first" else "last",
        table.get("nouns_are") == "capitalised",
        table.get("adverbs") == "ly",
    )


def _verb_forms(base: str) -> Iterator[str]:
    """Yield the regular forms of an English verb."""
    stem = base[:-1] if base.endswith("e") else base
    yield base
    if base.endswith("y") and base[-2] not in "aeiou":
        yield from (f"{base[:-1]}ies", f"{base[:-1]}ied", f"{base}ing")
    else:
        yield from (
            f"{base}s",
            f"{base}es",
            f"{stem}ed",
            f"{stem}ing",
            f"{stem}{stem[-1]}ed",
            f"{stem}{stem[-1]}ing",
        )


def passed(kind: str) -> bool:
    """Return whether nodes of this kind never name a topic (dates, amounts and other values)."""
    return fold(kind).replace(" ", "") in _rules().passed_kinds


def name_topics(
    topics: Mapping[str, Sequence[TopicTurn]],
    nodes: Mapping[str, str],
    earlier: Mapping[str, Sequence[Place]] | None = None,
) -> dict[str, TopicName]:
    """Return the name of each topic.

    The same turns always give the same name. Larger topics choose first, and no two topics get the
    same phrases where others are left.

    Args:
        topics: Topic id → its turns.
        nodes: Name or alias of a node → the node's kind.
        earlier: Topic id → places of the name it had before. That name stays while its phrases
            are worth enough beside the best ones.
    """
    kinds: dict[Key, str] = {}
    for name, kind in nodes.items():
        key = _name_key(name)
        if key:
            kinds[key] = kind
    phrases_by_topic: dict[str, list[list[_Occurrence]]] = {}
    for id_, turns in topics.items():
        phrases_by_topic[id_] = [_read(turn, kinds) for turn in turns]
    usage = _Usage.of([phrases for turns in phrases_by_topic.values() for phrases in turns])
    names: dict[str, TopicName] = {}
    taken: set[frozenset[Key]] = set()
    for id_ in sorted(topics, key=lambda id_: (-len(topics[id_]), id_)):
        namer = _Namer(topics[id_], phrases_by_topic[id_], usage, kinds)
        names[id_] = namer.name((earlier or {}).get(id_, ()), taken)
    return names


def telling_words(text: str) -> dict[str, str]:
    """Return the content words of a text: the form that is compared → the word as written.

    Of Chinese text, each pair of characters that can be a word.
    """
    tokens = _tokens(text, _language_of(text))
    words = {
        token.key: text[token.start : token.stop] for token in tokens if token.role == "content"
    }
    dense = (phrase.key[0] for phrase in _dense_phrases("", text))
    return words | {word: word for word in dense if len(word) == 2 or re.match(f"[{_KANA}]", word)}


def figures(text: str) -> frozenset[str]:
    """Return the numbers, days and months that a text mentions, in the form that is compared."""
    tokens = _tokens(text, _language_of(text))
    return frozenset(
        token.key
        for token in tokens
        if token.role == "calendar" or any(char.isdigit() for char in token.key)
    )


def surface(place: Place, text: str) -> str:
    """Return the phrase at a place of a turn's text, on one line."""
    return " ".join(text[place.start : place.stop].split())


def title(phrases: Sequence[str]) -> str:
    """Join phrases into one name.

    The first letter becomes a capital, unless the first word has capitals or digits of its own.
    """
    text = ", ".join(dict.fromkeys(phrases))
    first = text.split(" ", 1)[0].rstrip(",")
    if first.isalpha() and first.islower():
        return text[:1].upper() + text[1:]
    return text


@dataclass(frozen=True, slots=True)
class _Usage:
    """How phrases are used in the turns of all topics.

    Attributes:
        turns: Number of turns.
        having: Phrase → number of turns that contain it.
        heads: Phrase → share of its occurrences at the head of a run.
        determined: Phrases that stand where nouns do at least once.
    """

    turns: int
    having: Mapping[Key, int]
    heads: Mapping[Key, float]
    determined: Set[Key]

    @staticmethod
    def of(phrases_by_turn: Sequence[Sequence[_Occurrence]]) -> _Usage:
        every = [phrase for phrases in phrases_by_turn for phrase in phrases]
        having = Counter[Key]()
        for phrases in phrases_by_turn:
            having.update({phrase.key for phrase in phrases})
        determined = frozenset(phrase.key for phrase in every if phrase.determined)
        return _Usage(len(phrases_by_turn), having, _head_shares(every), determined)


class _Namer:
    """Chooses the phrases of one topic."""

    def __init__(
        self,
        turns: Sequence[TopicTurn],
        read_phrases: Sequence[Sequence[_Occurrence]],
        usage: _Usage,
        nodes: Mapping[Key, str],
    ) -> None:
        self._turns = {turn.turn: turn for turn in turns}
        self._weights = [turn.nearness for turn in turns]
        self._usage = usage
        self._nodes = nodes
        self._having: dict[Key, set[int]] = defaultdict(set)
        self._places: dict[Key, list[Place]] = defaultdict(list)
        for at, phrases in enumerate(read_phrases):
            for phrase in phrases:
                self._having[phrase.key].add(at)
                self._places[phrase.key].append(phrase.place)
        self._worth = {key: self._worth_of(key) for key in self._having}
        self._worth = {
            key: worth for key, worth in self._worth.items() if worth > 0 and not self._is_part(key)
        }

    def name(self, places: Sequence[Place], taken: set[frozenset[Key]]) -> TopicName:
        """Choose a name whose phrases are not in ``taken``, add them to it, return their places.

        Args:
            places: Of the topic's earlier name, which stays if it is still good enough.
            taken: The names of other topics, each as a set of phrases.
        """
        ranked = sorted(self._worth, key=lambda key: (-self._worth[key], -len(key), key))
        best = self._choose(ranked, taken)
        before = self._phrases_at(places)
        if (
            before is not None
            and frozenset(before) not in taken
            and self._total_worth(before) >= _STAYING_SHARE * self._total_worth(best)
        ):
            taken.add(frozenset(before))
            name = tuple(places)
        else:
            taken.add(frozenset(best))
            name = tuple(map(self._best_place, best)) or self._first_words()
        nodes = [key for key in ranked if key in self._nodes]
        nodes.sort(key=lambda key: -self._support(self._having[key]))
        return TopicName(
            name=name,
            terms=tuple(map(self._best_place, _without_overlaps(ranked, MOST_TERMS))),
            named=tuple(map(self._best_place, _without_overlaps(nodes, MOST_NAMED))),
        )

    def _first_words(self) -> tuple[Place, ...]:
        """Return the first words of the most central turn, the name of a topic without phrases."""
        nearest = max(
            self._turns.values(), key=lambda turn: (turn.nearness, turn.turn), default=None
        )
        words = _FIRST_WORDS.search(nearest.text) if nearest else None
        return (Place(nearest.turn, words.start(), words.end()),) if nearest and words else ()

    def _support(self, having: set[int]) -> float:
        return sum(self._weights[at] for at in having)

    def _worth_of(self, key: Key) -> float:
        """Return the support of a phrase in this topic, weighted like tf-idf and by its kind.

        0 for a phrase that cannot be part of a name.
        """
        kind = self._nodes.get(key)
        if (kind is not None and passed(kind)) or (
            kind is None and self._usage.heads.get(key, 0.0) < _LEAST_HEAD_SHARE
        ):
            return 0.0
        having = self._having[key]
        here = len(having)
        everywhere = self._usage.having[key]
        rare = (here / everywhere) * math.log(1 + self._usage.turns / (1 + everywhere - here))
        if set(key) <= _rules().calendar and 2 * here < len(self._turns):
            return 0.0
        worth = self._support(having) * rare * (_ONE_WORD if len(key) == 1 else _SEVERAL_WORDS)
        if kind is not None:
            worth *= _PERSON if fold(kind) == "person" else _NODE
            return worth * (_NODE_IN_ONE_TURN if here == 1 else 1.0)
        if here == 1:
            by_chance = _DENSE.match(key[0]) or key[0] in _rules().vague or key[-1].endswith("ing")
            worth *= 0.0 if by_chance else _IN_ONE_TURN
        if key not in self._usage.determined:
            worth *= _UNDETERMINED
        return worth * (_GERUND if len(key) == 1 and key[0].endswith("ing") else 1.0)

    def _is_part(self, key: Key) -> bool:
        """Return whether a longer phrase of worth above 0 has most of this phrase's support."""
        own = self._support(self._having[key])
        if key in self._nodes:
            return any(_contains(other, key) and self._worth.get(other) for other in self._nodes)
        return any(
            len(other) > len(key)
            and _contains(other, key)
            and self._worth.get(other, 0.0) > 0
            and self._support(self._having[other]) >= _REPLACING_SHARE * own
            for other in self._having
        )

    def _choose(self, ranked: Sequence[Key], taken: Set[frozenset[Key]]) -> list[Key]:
        """Return the phrase of most worth, then those that add most turns without a phrase yet."""
        chosen: list[Key] = []
        covered: set[int] = set()
        whole = sum(self._weights)
        while len(chosen) < MOST_PHRASES:
            is_taken = frozenset(chosen) in taken
            if (
                len(chosen) >= 2
                and self._support(covered) >= _ENOUGH_COVERED * whole
                and not is_taken
            ):
                break
            remaining = [key for key in ranked if not _overlaps(key, chosen)]
            if not remaining:
                break
            gains = {
                key: self._worth[key] * (0.4 + self._new_share(key, covered)) for key in remaining
            }
            best = max(remaining, key=lambda key: gains[key])
            if not self._new_share(best, covered):
                least = _WORTH_WITHOUT_NEW_TURNS
            elif self._support(covered) < 0.5 * whole:
                least = _WORTH_WHILE_LITTLE_IS_COVERED
            else:
                least = _WORTH_WHILE_MUCH_IS_COVERED
            if chosen and not is_taken and self._worth[best] < least * self._worth[chosen[0]]:
                break
            chosen.append(best)
            covered |= self._having[best]
        return chosen

    def _new_share(self, key: Key, covered: set[int]) -> float:
        """Return the share of a phrase's support that lies in turns not covered yet, 0 to 1."""
        support = self._support(self._having[key])
        return self._support(self._having[key] - covered) / (support or 1.0)

    def _total_worth(self, keys: Sequence[Key]) -> float:
        return sum(self._worth.get(key, 0.0) for key in keys)

    def _phrases_at(self, places: Sequence[Place]) -> list[Key] | None:
        """Return the phrases at these places, or None if the topic lacks one of them by now."""
        key_at = {place: key for key in self._worth for place in self._places[key]}
        keys = [key_at[place] for place in places if place in key_at]
        return keys if keys and len(keys) == len(places) else None

    def _best_place(self, key: Key) -> Place:
        """Return the place where a phrase is written in its most usual form.

        Prefer places inside a sentence (no capital by position), then the commonest spelling, then
        central turns.
        """

        def fitness(place: Place) -> tuple[bool, int, float, str, int]:
            turn = self._turns[place.turn]
            before = turn.text[max(0, place.start - 5) : place.start]
            is_inside = not _SENTENCE_START.search(before)
            return is_inside, spellings[surfaces[place]], turn.nearness, place.turn, -place.start

        surfaces = {
            place: surface(place, self._turns[place.turn].text) for place in self._places[key]
        }
        spellings = Counter(surfaces.values())
        return max(surfaces, key=fitness)


def _without_overlaps(ranked: Sequence[Key], most: int) -> list[Key]:
    """Return the best ``most`` phrases of which none is a part of another."""
    chosen: list[Key] = []
    for key in ranked:
        if len(chosen) < most and not any(
            _contains(other, key) or _contains(key, other) for other in chosen
        ):
            chosen.append(key)
    return chosen


def _contains(longer: Key, shorter: Key) -> bool:
    if len(longer) == len(shorter) == 1:  # scripts without spaces: a phrase is one key
        return longer != shorter and bool(_DENSE.match(shorter[0])) and shorter[0] in longer[0]
    steps = range(len(longer) - len(shorter) + 1)
    return longer != shorter and any(longer[at : at + len(shorter)] == shorter for at in steps)


def _overlaps(key: Key, others: Sequence[Key]) -> bool:
    """Return whether a phrase has a word in common with one of the others, or is a part of it."""
    return any(
        not set(key).isdisjoint(other) or _contains(key, other) or _contains(other, key)
        for other in others
    )


def _head_shares(occurrences: Sequence[_Occurrence]) -> dict[Key, float]:
    """Return for each phrase the share of its occurrences that are at the head of a run.

    1 for a word that stands before ``_LEAST_HEADS`` different heads.
    """
    counts = Counter[Key]()
    heads = Counter[Key]()
    pairs: dict[Key, set[Key]] = defaultdict(set)
    for phrase in occurrences:
        counts[phrase.key] += 1
        heads[phrase.key] += phrase.heads
        if len(phrase.key) == 2:
            pairs[phrase.key[:1]].add(phrase.key)
    shares = {key: heads[key] / count for key, count in counts.items()}
    for key, phrases in pairs.items():
        if key in shares and len(phrases) >= _LEAST_HEADS:
            shares[key] = 1.0
    return shares


def _name_key(name: str) -> Key:
    language = _rules().languages["en"]
    tokens = _tokens(name, language)
    while tokens and tokens[0].key in language.articles:
        tokens = tokens[1:]
    if not tokens or (tokens[0].role == "other" and not tokens[0].capital):
        return ()  # "in the blue pot" is a location, not a name
    if all(token.role != "content" for token in tokens):
        return ()
    return tuple(token.key for token in tokens)


def _key(word: str) -> str:
    """Return the form of a word that is compared: folded, without a genitive or plural s."""
    word = fold(word).replace("’", "'")
    word = word.removesuffix("'s").removesuffix("'")
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("oes", "ches", "shes", "xes", "sses")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _read(topic_turn: TopicTurn, nodes: Mapping[Key, str]) -> list[_Occurrence]:
    """Return the phrases of a turn."""
    text = _CODE.sub(lambda match: "\n" * len(match.group()), topic_turn.text[:_MOST_CHARACTERS])
    language = _language_of(text)
    phrases = _dense_phrases(topic_turn.turn, text)
    run: list[_Token] = []
    tokens = _tokens(text, language)
    phrases += _node_names(topic_turn.turn, tokens, nodes)
    for token in tokens:
        if not token.joined or (token.role == "other" and not token.link) or _ends_run(run, token):
            phrases += _phrases(topic_turn.turn, run, language)
            run = []
        if token.role != "other" or (token.link and run):
            run.append(token)
    return [*phrases, *_phrases(topic_turn.turn, run, language)]


def _ends_run(run: Sequence[_Token], token: _Token) -> bool:
    """Return whether a participle beside this word is a verb: "Priya labelled", "called Bagel"."""
    if not run:
        return False
    return bool(_PARTICIPLE.match(token.key)) or (
        bool(_PARTICIPLE.match(run[-1].key)) and token.capital
    )


def _language_of(text: str) -> _Language:
    """Return the language with most function words in the text; English if none has any."""
    words = [match.group() for match in _ELIDED.finditer(fold(text))]
    languages = _rules().languages

    def fitness(name: str) -> tuple[int, bool]:
        count = sum(word in languages[name].function for word in words)
        return count, name == "en"

    return languages[max(languages, key=fitness)]


def _tokens(text: str, language: _Language) -> list[_Token]:
    """Return the words of a text in scripts that separate words; punctuation only ends runs."""
    tokens: list[_Token] = []
    previous_end = 0
    before = ""
    pattern = _ELIDED if language.head == "first" else _WORD
    for match in pattern.finditer(text):
        word = match.group()
        if not word[0].isalnum() or _DENSE.match(word):
            before = ""
            continue
        folded = fold(word).replace("’", "'")
        capital = word[0].isupper()
        role = _role(folded, language)
        if role != "other" and before in language.subjects and not capital:
            role = "other"  # "we ordered", "to repair"
        participle = bool(_PARTICIPLE.match(folded)) and folded not in language.nouns
        genitive = folded.endswith("'s")
        tokens.append(
            _Token(
                key=_key(word),
                start=match.start(),
                stop=match.end() - 2 * genitive,
                role=role,
                joined=bool(tokens) and bool(_JOINED.match(text[previous_end : match.start()])),
                link=folded in language.links,
                can_head=role in ("content", "calendar")
                and not participle
                and not (word[0].isdigit() and "-" in word)
                and (capital or not language.capital_nouns),
                determined=before in language.determiners or (capital and bool(before)),
                capital=capital,
            )
        )
        previous_end = match.end()
        before = folded
    return tokens


def _role(folded: str, language: _Language) -> Role:
    if folded in language.nouns:
        return "content"
    plain = folded.removesuffix("'s")
    if any(word in language.function or word in language.verbs for word in (folded, plain)):
        return "other"
    if _NUMBER.match(folded) or len(plain) < 2:
        return "other"
    if language.adverbs_in_ly and _ADVERB.match(folded):
        return "other"
    if all(part in language.function for part in plain.split("-")):
        return "other"  # "ninety-three"
    if plain in language.calendar:
        return "calendar"
    return "vague" if {plain, _key(plain)} & language.vague else "content"


def _phrases(turn: str, run: Sequence[_Token], language: _Language) -> Iterator[_Occurrence]:
    """Yield every part of a run that can be a phrase."""
    while run and run[-1].role == "other":
        run = run[:-1]
    for start in range(len(run)):
        for end in range(start + 1, min(len(run), start + _LONGEST_PHRASE) + 1):
            part = run[start:end]
            head = part[-1] if language.head == "last" else part[0]
            if not head.can_head or any(edge.role == "other" for edge in (part[0], part[-1])):
                continue
            if len(part) > 1 and head.role == "calendar":
                continue
            yield _Occurrence(
                key=tuple(token.key for token in part if not token.link),
                place=Place(turn, part[0].start, part[-1].stop),
                heads=end == len(run) if language.head == "last" else start == 0,
                determined=len(part) > 1 or head.determined or start > 0,
            )


def _node_names(
    turn: str, tokens: Sequence[_Token], nodes: Mapping[Key, str]
) -> Iterator[_Occurrence]:
    """Yield each occurrence of a node's name, whatever roles its words have."""
    longest = max(map(len, nodes), default=0)
    keys = [token.key for token in tokens]
    for start in range(len(tokens)):
        for size in range(1, min(longest, len(tokens) - start) + 1):
            key = tuple(keys[start : start + size])
            if key in nodes:
                place = Place(turn, tokens[start].start, tokens[start + size - 1].stop)
                yield _Occurrence(key, place, heads=True)


def _dense_phrases(turn: str, text: str) -> list[_Occurrence]:
    """Return words in Katakana, and parts of Chinese text without a function character."""
    rules = _rules()
    phrases = list[_Occurrence]()
    for match in _DENSE.finditer(text):
        run = match.group()
        start = match.start()
        if re.match(f"[{_KANA}]", run):
            if len(run) > 1:
                phrases.append(_Occurrence((run,), Place(turn, start, match.end()), heads=True))
            continue
        for at in range(len(run)):
            for size in range(2, _LONGEST_DENSE + 1):
                part = run[at : at + size]
                if len(part) < size or any(char in rules.dense_function for char in part):
                    break
                if part not in rules.dense_vague:
                    place = Place(turn, start + at, start + at + size)
                    phrases.append(_Occurrence((part,), place, heads=True))
    return phrases
