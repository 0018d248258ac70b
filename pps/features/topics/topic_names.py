"""Names of topics that a person would give: the nodes and noun phrases that most of a topic's central turns speak of.

No part-of-speech tagger is needed: words that are in no noun phrase (``config/topics.toml``, by language) and punctuation
part a text into runs of content words, and a word names something if it often ends such a run ("green tiles": "tiles"
does, "green" does not; in Romance languages it begins it). Chinese and Japanese are parted at characters instead.

A name is kept as the places in turns where its phrases stand, so no text is kept beside the turns.
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
"""The words of a phrase as they are compared: folded, without a plural or genitive s."""

MOST_PHRASES = 3
"""Phrases of a topic's name."""
MOST_TERMS = 5
"""Terms listed beside the name."""
MOST_NAMED = 3
"""Nodes listed beside the name."""
_LONGEST_PHRASE = 3
_LONGEST_DENSE = 6
_READ = 2_000
"""Characters of a turn that are read."""
_CARRIES = 0.6
"""A longer phrase takes the place of its part where it stands for so much of the part's support."""
_LEADS = 0.3
"""A word names something if this share of its occurrences are the head of a run."""
_LEADS_OF = 3
"""A word also names something if it stands before this many different heads."""
_ENOUGH = 0.85
"""Share of a topic's weight from which on a name says enough."""
_FURTHER = 0.2
_BESIDE = 0.4
_ALSO = 0.45
"""What a further phrase must be worth of the first: where less than half is said, where more is, and where it speaks of
no other turns."""
_KEPT = 0.6
"""A name stays for as long as its phrases are together worth so much of the best ones."""
_ONE_WORD = 1.0
_SEVERAL_WORDS = 1.7
_NODE = 1.8
_PERSON = 1.2
_ONCE = 0.35
"""Factor for a phrase that only one turn has."""
_NODE_ONCE = 0.8
"""Factor for the name of a node that only one turn has."""
_UNDETERMINED = 0.4
"""What a word counts that never stands where nouns do: behind an article, a number or a preposition, or in a phrase."""
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
    """Where the phrases of a topic stand.

    Attributes:
        name: Of its name, at most three.
        terms: The most telling ones, at most five.
        named: Names of nodes, those that most of its turns name, at most three.
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
        joined: Only a space or a hyphen parts it from the word before.
        link: It joins two nouns ("de").
        can_head: A phrase may end with it, or begin with it in Romance languages.
        determined: It stands behind an article, a number or a preposition.
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
class _Found:
    """One occurrence of a phrase.

    Attributes:
        heads: Its head stands where heads do, or it is a node's name.
        determined: It is more than a word, a name, or stands where nouns do.
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

    verbs = {form for base in words("verbs") for form in _forms(base)} | words("irregular")
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


def _forms(base: str) -> Iterator[str]:
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
    """Tell whether nodes of a kind name no topic: dates, amounts and other values."""
    return fold(kind).replace(" ", "") in _rules().passed_kinds


def name_topics(
    topics: Mapping[str, Sequence[TopicTurn]],
    nodes: Mapping[str, str],
    earlier: Mapping[str, Sequence[Place]] | None = None,
) -> dict[str, TopicName]:
    """Return the name of each topic.

    The same for the same turns, and for nearly the same where it was kept.

    Args:
        topics: The turns of each.
        nodes: Name or alias of a node → its kind.
        earlier: The places of names that topics had before; one that still says enough stays.
    """
    known = {words: kind for name, kind in nodes.items() if (words := _name_key(name))}
    read_phrases = {id_: [_read(turn, known) for turn in turns] for id_, turns in topics.items()}
    usage = _Usage.of([phrases for turns in read_phrases.values() for phrases in turns])
    names: dict[str, TopicName] = {}
    taken: set[frozenset[Key]] = set()
    for id_ in sorted(topics, key=lambda id_: (-len(topics[id_]), id_)):
        namer = _Namer(topics[id_], read_phrases[id_], usage, known)
        names[id_] = namer.name((earlier or {}).get(id_, ()), taken)
    return names


def telling_words(text: str) -> dict[str, str]:
    """Return the words of a text that name something: as they are compared → as written.

    Pairs of Chinese characters.
    """
    tokens = _tokens(text, _language_of(text))
    words = {
        token.key: text[token.start : token.stop] for token in tokens if token.role == "content"
    }
    dense = (phrase.key[0] for phrase in _dense_phrases("", text))
    return words | {word: word for word in dense if len(word) == 2 or re.match(f"[{_KANA}]", word)}


def figures(text: str) -> frozenset[str]:
    """Return the numbers, days and months that a text speaks of, as they are compared."""
    tokens = _tokens(text, _language_of(text))
    return frozenset(
        token.key
        for token in tokens
        if token.role == "calendar" or any(char.isdigit() for char in token.key)
    )


def surface(place: Place, text: str) -> str:
    """Return the phrase that stands at a place of a turn's text, on one line."""
    return " ".join(text[place.start : place.stop].split())


def title(phrases: Sequence[str]) -> str:
    """Return phrases as one name.

    It begins with a capital, unless its first word is spelt in a way of its own.
    """
    text = ", ".join(dict.fromkeys(phrases))
    first = text.split(" ", 1)[0].rstrip(",")
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


@dataclass(frozen=True, slots=True)
class _Usage:
    """How phrases are used in all topics.

    Attributes:
        turns: How many there are.
        having: In how many of them each phrase is.
        heads: Share of a phrase's occurrences at the head of a run.
        determined: Phrases that stand where nouns do.
    """

    turns: int
    having: Mapping[Key, int]
    heads: Mapping[Key, float]
    determined: Set[Key]

    @staticmethod
    def of(by_topic: Sequence[Sequence[_Found]]) -> _Usage:
        every = [phrase for phrases in by_topic for phrase in phrases]
        having = Counter(key for phrases in by_topic for key in {phrase.key for phrase in phrases})
        determined = frozenset(phrase.key for phrase in every if phrase.determined)
        return _Usage(len(by_topic), having, _leading(every), determined)


class _Namer:
    """Chooses the phrases of one topic."""

    def __init__(
        self,
        turns: Sequence[TopicTurn],
        read_phrases: Sequence[Sequence[_Found]],
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
        """Return the places of a name that is not among those taken, and add it to them."""
        ranked = sorted(self._worth, key=lambda key: (-self._worth[key], -len(key), key))
        best = self._choose(ranked, taken)
        before = self._kept(places)
        stays = (
            before is not None
            and frozenset(before) not in taken
            and self._together(before) >= _KEPT * self._together(best)
        )
        taken.add(frozenset(before if before and stays else best))
        nodes = [key for key in ranked if key in self._nodes]
        nodes.sort(key=lambda key: -self._support(self._having[key]))
        return TopicName(
            name=tuple(places)
            if stays
            else tuple(map(self._best_place, best)) or self._beginning(),
            terms=tuple(map(self._best_place, _apart(ranked, MOST_TERMS))),
            named=tuple(map(self._best_place, _apart(nodes, MOST_NAMED))),
        )

    def _beginning(self) -> tuple[Place, ...]:
        """Return the first words of the most central turn: the name of a topic in which nothing is named."""
        nearest = max(
            self._turns.values(), key=lambda turn: (turn.nearness, turn.turn), default=None
        )
        words = _FIRST_WORDS.search(nearest.text) if nearest else None
        return (Place(nearest.turn, words.start(), words.end()),) if nearest and words else ()

    def _support(self, having: set[int]) -> float:
        return sum(self._weights[at] for at in having)

    def _worth_of(self, key: Key) -> float:
        """Return support in the topic, by how much of its use is here, and by what kind of phrase it is."""
        kind = self._nodes.get(key)
        if (kind is not None and passed(kind)) or (
            kind is None and self._usage.heads.get(key, 0.0) < _LEADS
        ):
            return 0.0
        having = self._having[key]
        here = len(having)
        everywhere = self._usage.having[key]
        rare = (here / everywhere) * math.log(1 + self._usage.turns / (1 + everywhere - here))
        if {*key} <= _rules().calendar and 2 * here < len(self._turns):
            return 0.0
        worth = self._support(having) * rare * (_ONE_WORD if len(key) == 1 else _SEVERAL_WORDS)
        if kind is not None:
            worth *= _PERSON if fold(kind) == "person" else _NODE
            return worth * (_NODE_ONCE if here == 1 else 1.0)
        if here == 1:
            by_chance = _DENSE.match(key[0]) or key[0] in _rules().vague or key[-1].endswith("ing")
            worth *= 0.0 if by_chance else _ONCE
        if key not in self._usage.determined:
            worth *= _UNDETERMINED
        return worth * (_GERUND if len(key) == 1 and key[0].endswith("ing") else 1.0)

    def _is_part(self, key: Key) -> bool:
        """Tell whether a longer phrase that is worth something stands for most of this one."""
        own = self._support(self._having[key])
        if key in self._nodes:
            return any(_contains(other, key) and self._worth.get(other) for other in self._nodes)
        return any(
            len(other) > len(key)
            and _contains(other, key)
            and self._worth.get(other, 0.0) > 0
            and self._support(self._having[other]) >= _CARRIES * own
            for other in self._having
        )

    def _choose(self, ranked: Sequence[Key], taken: Set[frozenset[Key]]) -> list[Key]:
        """Return the best phrase, then those that say most of what is not said yet."""
        chosen: list[Key] = []
        covered: set[int] = set()
        whole = sum(self._weights)
        while len(chosen) < MOST_PHRASES:
            is_taken = frozenset(chosen) in taken
            if len(chosen) >= 2 and self._support(covered) >= _ENOUGH * whole and not is_taken:
                break
            left = [key for key in ranked if not any(_share(key, other) for other in chosen)]
            if not left:
                break
            gains = {key: self._worth[key] * (0.4 + self._fresh(key, covered)) for key in left}
            best = max(left, key=lambda key: gains[key])
            least = _FURTHER if self._support(covered) < 0.5 * whole else _BESIDE
            if not self._fresh(best, covered):
                least = _ALSO
            if chosen and not is_taken and self._worth[best] < least * self._worth[chosen[0]]:
                break
            chosen.append(best)
            covered |= self._having[best]
        return chosen

    def _fresh(self, key: Key, covered: set[int]) -> float:
        """Return the share of a phrase's support that is in turns nothing chosen speaks of."""
        return self._support(self._having[key] - covered) / (
            self._support(self._having[key]) or 1.0
        )

    def _together(self, keys: Sequence[Key]) -> float:
        return sum(self._worth.get(key, 0.0) for key in keys)

    def _kept(self, places: Sequence[Place]) -> list[Key] | None:
        """Return the phrases at the places of a kept name.

        None where one is no phrase of the topic any more.
        """
        at = {place: key for key in self._worth for place in self._places[key]}
        keys = [at[place] for place in places if place in at]
        return keys if keys and len(keys) == len(places) else None

    def _best_place(self, key: Key) -> Place:
        """Return where a phrase stands as it is most often written: not first in a sentence, in a central turn."""

        def fitness(place: Place) -> tuple[bool, int, float, str, int]:
            turn = self._turns[place.turn]
            within = not _SENTENCE_START.search(turn.text[max(0, place.start - 5) : place.start])
            return within, common[surfaces[place]], turn.nearness, place.turn, -place.start

        surfaces = {
            place: surface(place, self._turns[place.turn].text) for place in self._places[key]
        }
        common = Counter(surfaces.values())
        return max(surfaces, key=fitness)


def _apart(ranked: Sequence[Key], most: int) -> list[Key]:
    """Return the best phrases of which none is a part of another."""
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


def _share(key: Key, other: Key) -> bool:
    return bool({*key} & {*other}) or _contains(key, other) or _contains(other, key)


def _leading(candidates: Sequence[_Found]) -> dict[Key, float]:
    """Return for each phrase the share of its occurrences that are at the head of a run.

    1 for what many heads follow.
    """
    whole = Counter[Key]()
    heads = Counter[Key]()
    follow: dict[Key, set[Key]] = defaultdict(set)
    for phrase in candidates:
        whole[phrase.key] += 1
        heads[phrase.key] += phrase.heads
        if len(phrase.key) == 2:
            follow[phrase.key[:1]].add(phrase.key)
    several = {key for key, phrases in follow.items() if len(phrases) >= _LEADS_OF}
    return {key: 1.0 if key in several else heads[key] / count for key, count in whole.items()}


def _name_key(name: str) -> Key:
    language = _rules().languages["en"]
    tokens = _tokens(name, language)
    while tokens and tokens[0].key in language.articles:
        tokens = tokens[1:]
    if not tokens or (tokens[0].role == "other" and not tokens[0].capital):
        return ()  # "in the blue pot": where something is, no name
    return (
        ()
        if all(token.role != "content" for token in tokens)
        else tuple(token.key for token in tokens)
    )


def _key(word: str) -> str:
    """Return a word as it is compared: folded, without a genitive or plural s."""
    word = fold(word).replace("’", "'")
    word = word.removesuffix("'s").removesuffix("'")
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("oes", "ches", "shes", "xes", "sses")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _read(topic_turn: TopicTurn, nodes: Mapping[Key, str]) -> list[_Found]:
    """Return the phrases of a turn."""
    text = _CODE.sub(lambda match: "\n" * len(match.group()), topic_turn.text[:_READ])
    language = _language_of(text)
    phrases = _dense_phrases(topic_turn.turn, text)
    run: list[_Token] = []
    tokens = _tokens(text, language)
    phrases += _node_names(topic_turn.turn, tokens, nodes)
    for token in tokens:
        if not token.joined or (token.role == "other" and not token.link) or _parts(run, token):
            phrases += _phrases(topic_turn.turn, run, language)
            run = []
        if token.role != "other" or (token.link and run):
            run.append(token)
    return [*phrases, *_phrases(topic_turn.turn, run, language)]


def _parts(run: Sequence[_Token], token: _Token) -> bool:
    """Tell whether a participle is a verb here: "Priya labelled", "called Bagel"."""
    if not run:
        return False
    return bool(_PARTICIPLE.match(token.key)) or (
        bool(_PARTICIPLE.match(run[-1].key)) and token.capital
    )


def _language_of(text: str) -> _Language:
    """Return the language whose words between nouns the text has most of; English if none."""
    words = [match.group() for match in _ELIDED.finditer(fold(text))]
    languages = _rules().languages
    counts = {
        name: sum(word in language.function for word in words)
        for name, language in languages.items()
    }
    return languages[max(counts, key=lambda name: (counts[name], name == "en"))]


def _tokens(text: str, language: _Language) -> list[_Token]:
    """Return the words of a text in scripts that part words; punctuation only ends runs."""
    tokens: list[_Token] = []
    after = 0
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
                joined=bool(tokens) and bool(_JOINED.match(text[after : match.start()])),
                link=folded in language.links,
                can_head=role in ("content", "calendar")
                and not participle
                and not (word[0].isdigit() and "-" in word)
                and (capital or not language.capital_nouns),
                determined=before in language.determiners or (capital and bool(before)),
                capital=capital,
            )
        )
        after = match.end()
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


def _phrases(turn: str, run: Sequence[_Token], language: _Language) -> Iterator[_Found]:
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
            yield _Found(
                key=tuple(token.key for token in part if not token.link),
                place=Place(turn, part[0].start, part[-1].stop),
                heads=end == len(run) if language.head == "last" else start == 0,
                determined=len(part) > 1 or head.determined or start > 0,
            )


def _node_names(turn: str, tokens: Sequence[_Token], nodes: Mapping[Key, str]) -> Iterator[_Found]:
    """Yield the places where names of nodes stand, whatever words they are made of."""
    longest = max(map(len, nodes), default=0)
    keys = [token.key for token in tokens]
    for start in range(len(tokens)):
        for size in range(1, min(longest, len(tokens) - start) + 1):
            if (key := tuple(keys[start : start + size])) in nodes:
                yield _Found(
                    key, Place(turn, tokens[start].start, tokens[start + size - 1].stop), heads=True
                )


def _dense_phrases(turn: str, text: str) -> list[_Found]:
    """Return words in Katakana, and the parts of Chinese text that hold no character which parts names."""
    rules = _rules()
    phrases = list[_Found]()
    for match in _DENSE.finditer(text):
        run = match.group()
        start = match.start()
        if re.match(f"[{_KANA}]", run):
            if len(run) > 1:
                phrases.append(_Found((run,), Place(turn, start, match.end()), heads=True))
            continue
        for at in range(len(run)):
            for size in range(2, _LONGEST_DENSE + 1):
                part = run[at : at + size]
                if len(part) < size or any(char in rules.dense_function for char in part):
                    break
                if part not in rules.dense_vague:
                    place = Place(turn, start + at, start + at + size)
                    phrases.append(_Found((part,), place, heads=True))
    return phrases
