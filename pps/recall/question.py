"""Analysis of a query from its words alone: content words, spellings, kind, form and subject."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

from pps.core.text import chunks, fold, is_question, sentences_of
from pps.core.time_reading import names_time
from pps.core.values import AnchorPassage
from pps.index.prompts import is_small_talk, without_small_talk
from pps.index.signs import causal_question
from pps.journal.names import units, without_s
from pps.models.onnx import wordpiece

PASSAGE_FROM = 600
"""Characters above which a text is shown by its matching passage."""
_PASSAGE_SIZE = 500
_PASSAGE_OVERLAP = 120
_COMMON_PIECES = 7_000
"""A word that is one of the vocabulary's first pieces is a common one."""
_PUNCTUATION_AT_ENDS = re.compile(r"^\W+|\W+$")
MIN_NAME_LETTERS = 4
"""Letters of a name that may be spelled otherwise: of shorter ones half the dictionary is one
letter away."""
_MIN_CONSONANTS = 3
_MAX_LENGTH_DIFFERENCE = 2
_SOUNDS = (
    ("ph", "f"),
    ("th", "t"),
    ("dt", "t"),
    ("ck", "k"),
    ("sch", "s"),
    ("sh", "s"),
    ("ch", "k"),
    ("gh", "g"),
    ("kh", "k"),
    ("x", "ks"),
)
_EQUAL_LETTERS = str.maketrans("cqzwyj", "kksvii")
_VOWELS = re.compile(r"(?<!^)[aeiou]+")
_DOUBLED = re.compile(r"(.)\1+")
_EQUAL_INITIALS = ("ckqx", "fpv", "gjy", "iyje", "szcx", "vwf", "aeiou", "th", "kc")
_STEMMED_ENDINGS = ("", "d", "s", "r", "n", "ng", "l", "i")
"""Consonants that a stemmer may have taken off the end: Mohammed is indexed as "moham"."""
MAX_QUERY_CHARS = 1_000
"""Characters of a query that are searched for; about what a small embedding model reads."""
MAX_SENTENCE_CHARS = 400
Kind: TypeAlias = Literal["factual", "navigational", "contextual"]
"""What a query is after; the profile that answers it goes by this when the caller leaves it
open."""
AskKind: TypeAlias = Literal["question", "advice", "talk"]
"""What a query wants of a memory: an answer in its own words, what bears on advice, or what bears
on talk."""
Route: TypeAlias = Literal["cause", "code", "intent", "named", "exact", "misspelt"]
"""Properties of a query that a perspective is made for; see ``routes_of``."""
_ROUTE_PATTERNS: dict[Route, re.Pattern[str]] = {
    "code": re.compile(
        r"[a-z0-9]_[a-z]|[a-z][A-Z]|\w\(|`|\w/\w+[./]\w"
        r"|\b\w+\.(?:py|js|ts|rs|go|java|toml|sql|md)\b|::"
    ),
    "intent": re.compile(
        r"\b(?:goal|purpose|intent(?:ion)?|trying to|in order to|aim(?:ed|ing)?|meant to"
        r"|so that)\b",
        re.I,
    ),
}
_WORDS = re.compile(r"\w+")
TERM = re.compile(r"\w+(?:[.:/_-]\w+)*")
"""A word or an identifier."""
_ASKS_FOR_SEVERAL = re.compile(
    r"\b(?:list|enumerate|all|every|everything|each|several|different|various|how (?:many|often))\b"
    r"|\b(?:what|which) (?:are|were)\b"
    r"|\b(?:what|which) (?:\w+ ){0,2}?(?:\w{3,}[^s\W]s|people|children|men|women)"
    r" (?:do|does|did|has|have|is|are|was|were|would|can)\b",
    re.I,
)
_WANTED_KIND = re.compile(
    r"\b(?:which|what)(?: (?:kind|type|sort) of)? (?P<kind>[\w+#.-]+(?: [\w+#.-]+)?)"
    r" (?:do|does|did|is|are|was|were|has|have|should|can)\b",
    re.I,
)
_QUOTED = re.compile(r'"([^"]{2,200})"|“([^”]{2,200})”|«([^»]{2,200})»|「([^」]{2,200})」')
_MIN_STATEMENTS_OF_TALK = 2
"""Sentences that ask nothing, from which on a text talks."""
_MAX_KEYWORDS = 5
"""Words up to which a text that asks nothing is taken for keywords to look up."""
_ADVICE_WORDS = re.compile(
    r"\b(?:suggest(?:ions?)?|recommend(?:ations?)?|advice|advise|ideas?|tips?|should|best way"
    r"|looking (?:for|to)|help|(?:can|could) you"
    r"|(?:what|which|are there|any)\b.*\b(?:would|should|could|can|for me|options?)\b"
    r"|how (?:can|should|could|do)|good)\b",
    re.I,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i['’]m|me|my|we|us|our)\b", re.I)
_ASKS_FOR_RECOMMENDATION = re.compile(
    r"\b(?:can|could|would|will|do) you (?:\w+ )?(?:recommend|suggest|advise)\b"
    r"|^\W*(?:please )?(?:recommend|suggest)\b"
    r"|^\W*what (?:are|is) some (?:of the )?(?:best|good|great|fun|must|creative|popular"
    r"|recommended|highly|convenient|comprehensive|informative|easy|nice|unique|interesting"
    r"|healthy|exciting|affordable)",
    re.I,
)
_PAST_WORDS = re.compile(
    r"\b(?:did|was|were|had|been|ever|used to|first|before|ago|originally|previous(?:ly)?|earlier"
    r"|last|yesterday|history|order(?:ed)?|how long|how many times|since)\b",
    re.I,
)


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text that stand between white space."""
    return frozenset(text.split())


STOP_WORDS = word_set(
    """
    what what's whats when when's where where's who who's whom whose which why how how's do does
    did don't doesn't didn't doing have has had haven't hasn't hadn't having am is are was were
    isn't aren't wasn't weren't be been being can could can't couldn't shall should shouldn't
    will would won't wouldn't may might must i i'm i've i'd i'll me my mine myself we we're
    we've we'd we'll us our ours ourselves you you're you've you'd you'll your yours yourself he
    he's him his himself she she's her hers herself they they're they've them their theirs
    themselves it it's its itself this that that's these those there there's here a an the and
    or but if of at by for with about to from in on as so than too very just also any some
    please tell
    """
)
"""Words that ask, refer or join: no text is told from another by them."""


def grams(text: str) -> frozenset[str]:
    """Return the folded words of a text; in scripts without spaces, its pairs of characters too."""
    words = _WORDS.findall(fold(text))
    pairs: set[str] = set()
    for word in words:
        if not word.isascii():
            pairs.update(word[start : start + 2] for start in range(len(word) - 1))
    return frozenset(words) | pairs


def content_words(query: str) -> str:
    """Return a query without its stop words.

    Stop words are rare enough in what people say that BM25 would take "where" for the point of
    "Where is the key?". They stay if nothing else is left, and if they have a capital inside a
    sentence, where they are names ("Will").
    """
    remaining: list[str] = []
    begins_sentence = True
    for word in query.split():
        bare = _PUNCTUATION_AT_ENDS.sub("", word).replace("’", "'")
        has_capital = bare != bare.lower()
        is_name = has_capital and not begins_sentence and not bare.startswith("I")
        if bare.lower() not in STOP_WORDS or is_name:
            remaining.append(word)
        begins_sentence = word[-1] in ".?!:…"
    has_word = any(_WORDS.search(word) for word in remaining)
    return " ".join(remaining) if has_word else query


def passage_of(query: str, text: str, size: int = PASSAGE_FROM) -> str:
    """Return the passage of a text that shares most with the query.

    Return an empty text if the text has at most ``size`` characters.
    """
    if len(text) <= size:
        return ""
    pieces = list(chunks(text, size=min(size, _PASSAGE_SIZE), overlap=_PASSAGE_OVERLAP))
    return pieces[_best_match(query, pieces)]


def most_like(query: str, passages: Sequence[AnchorPassage]) -> AnchorPassage:
    """Return the passage that shares most with the query, the first of equals.

    There must be at least one passage.
    """
    texts = [f"{passage.title} {passage.text}" for passage in passages]
    return passages[_best_match(query, texts)]


def _best_match(query: str, texts: Sequence[str]) -> int:
    """Return the index of the text whose shared words are worth most.

    A word of every text tells none of them apart; a word of a single text does. So a word is worth
    1 / texts with it.
    """
    query_words = grams(content_words(query))
    shared = [query_words & grams(text) for text in texts]
    counts = Counter(word for words in shared for word in words)

    def worth(index: int) -> float:
        return sum(1 / counts[word] for word in shared[index])

    return max(range(len(texts)), key=worth)


def telling_words(query: str) -> list[str]:
    """Return a query's words without stop words and small talk."""
    words = TERM.findall(content_words(without_small_talk(query)))
    return [
        word
        for word in words
        if len(word) > 1 and word.lower() not in STOP_WORDS and not is_small_talk(word)
    ]


@lru_cache(maxsize=4096)
def is_rare(word: str) -> bool:
    """Tell whether a word is an identifier or seldom used in English.

    The vocabulary of the shipped embedding model is in order of frequency.
    """
    if word.isdigit():
        return len(word) > 3
    if not word.isalpha():
        return True
    pieces = wordpiece().encode(word, add_special_tokens=False).ids
    return len(pieces) > 1 or pieces[0] >= _COMMON_PIECES


@lru_cache(maxsize=4096)
def piece_count(word: str) -> int:
    """Return of how many pieces of the vocabulary a word is made; a common word is one piece."""
    return len(wordpiece().encode(word, add_special_tokens=False).ids)


def spelled_alike(word: str, other: str) -> bool:
    """Tell whether two words may be one name.

    Examples are Muhammad and Mohammed, Katherine and Catherine, Akim and Akib.

    They have the same consonants by sound, at least three, or differ in one letter. That is loose,
    so call it only for names that the memory does not know as they are written.
    """
    first = fold(word)
    second = fold(other)
    if first == second or min(len(first), len(second)) < MIN_NAME_LETTERS:
        return False
    consonants = consonant_skeleton(first)
    if len(consonants) >= _MIN_CONSONANTS and consonants == consonant_skeleton(second):
        return abs(len(first) - len(second)) <= _MAX_LENGTH_DIFFERENCE
    return first[0] == second[0] and _is_one_edit_apart(first, second)


def may_be_stem_of(term: str, name: str) -> bool:
    """Tell whether an indexed term, or a stem, can come from another spelling of a name."""
    consonants = consonant_skeleton(name)
    stem = consonant_skeleton(term)
    if any(stem + ending == consonants for ending in _STEMMED_ENDINGS):
        return True
    return _is_one_edit_apart(fold(term), fold(name))


def possible_initials(name: str) -> str:
    """Return the letters with which another spelling of a name may begin."""
    first = fold(name)[:1]
    letters = first + "".join(group for group in _EQUAL_INITIALS if first in group)
    return "".join(dict.fromkeys(letters))


def consonant_skeleton(word: str) -> str:
    """Return the first letter of a word and its further consonants by sound.

    For Mohammed it is ``mhmd``.
    """
    letters = "".join(units(fold(word)))
    for written, sound in _SOUNDS:
        letters = letters.replace(written, sound)
    letters = _DOUBLED.sub(r"\1", letters.translate(_EQUAL_LETTERS))
    return _DOUBLED.sub(r"\1", _VOWELS.sub("", letters))


def _is_one_edit_apart(first: str, second: str) -> bool:
    """Tell whether one letter is changed, added or left out, or two neighbours are swapped."""
    if abs(len(first) - len(second)) > 1:
        return False
    start = 0
    while start < min(len(first), len(second)) and first[start] == second[start]:
        start += 1
    left = first[start:]
    right = second[start:]
    is_changed = left[1:] == right[1:]
    is_inserted = left[1:] == right or left == right[1:]
    is_swapped = len(left) > 1 and left[:2] == right[:2][::-1] and left[2:] == right[2:]
    return is_changed or is_inserted or is_swapped


_QUESTION_WORDS = word_set(
    """
    who whom whose what which when where why how did does do is are was were has have had can
    could should would will name list
    """
)
_REQUEST_WORDS = word_set(
    """
    a about all an and any are at be by did do does everything for from give going has have her
    hers him his how i in is it know let me my of on our please recall remember say show tell
    that the their them they to up us was we were what when where which who whom whose why with
    you your
    """
)
"""Words of any request: beside a name they ask nothing more than the name."""


def condensed(query: str) -> str:
    """Return a query of at most ``MAX_QUERY_CHARS`` characters.

    Its questions, its end, its beginning.

    What somebody wants stands at either end of a long text or carries a question mark; what lies
    between is mostly pasted. Sentences keep their order. A query that is short enough stays as it
    is.
    """
    query = query.strip()
    if len(query) <= MAX_QUERY_CHARS:
        return query
    sentences = [text.strip()[:MAX_SENTENCE_CHARS] for text in sentences_of(query) if text.strip()]
    questions = [index for index, text in enumerate(sentences) if is_question(text)]
    from_both_ends: list[int] = []
    for index in range(len(sentences)):
        from_both_ends += [len(sentences) - 1 - index, index]
    chosen: set[int] = set()
    room = MAX_QUERY_CHARS
    for index in (*reversed(questions), *from_both_ends):
        size = len(sentences[index]) + 1
        if index not in chosen and size <= room:
            chosen.add(index)
            room -= size
    return " ".join(sentences[index] for index in sorted(chosen)) or query[:MAX_QUERY_CHARS]


def routes_of(query: str, nodes: Sequence[str], misspelt: Sequence[str] = ()) -> set[Route]:
    """Return the routes of a query: properties that a perspective is made for.

    ``cause`` goes by the cues of config/causes.toml, ``exact`` by quoted phrases, ``named`` and
    ``misspelt`` by the arguments.

    Args:
        query: The question.
        nodes: Ids of the nodes that it names, or whose kinds it names.
        misspelt: Its words that no turn of the memory has, while one has a word spelt almost like
            them.
    """
    routes: set[Route] = {name for name, cue in _ROUTE_PATTERNS.items() if cue.search(query)}
    if causal_question(query) is not None:
        routes.add("cause")
    if nodes:
        routes.add("named")
    if quoted_phrases(query):
        routes.add("exact")
    if misspelt:
        routes.add("misspelt")
    return routes


def ask_kind(query: str) -> AskKind:
    """Return what a query wants of a memory; advice is recognised in English alone.

    ``talk``: it states more than it asks ("I came in last. Why am I so slow?"). ``advice``: it asks
    what the speaker should do, buy, see or make ("Suggest a hotel for me in Rome"): no word of the
    answer need be in it, and a word that is in both is chance. ``question``: anything else.
    """
    sentences = [sentence for sentence in sentences_of(query) if sentence.strip()]
    statement_count = sum(not is_question(sentence) for sentence in sentences)
    if statement_count >= _MIN_STATEMENTS_OF_TALK:
        return "talk"
    if _ASKS_FOR_RECOMMENDATION.search(query):
        return "advice"
    if _ADVICE_WORDS.search(query) and _FIRST_PERSON.search(query):
        return "advice"
    words = _WORDS.findall(fold(query))
    has_question = statement_count < len(sentences)
    if has_question or len(words) <= _MAX_KEYWORDS or words[0] in _QUESTION_WORDS:
        return "question"
    return "talk"


def asks_for_several(query: str) -> bool:
    """Tell whether a question wants several things ("Which books has she read?")."""
    return _ASKS_FOR_SEVERAL.search(query) is not None


def kind_asked_for(query: str) -> str:
    """Return the kind that a question wants ("ORM" of "Which ORM do we use?"), or an empty text."""
    match = _WANTED_KIND.search(query)
    if match is None:
        return ""
    words = [word for word in match["kind"].split() if word.lower() not in STOP_WORDS]
    return " ".join(words)


def quoted_phrases(query: str) -> list[str]:
    """Return the phrases between double quotation marks, in order."""
    return [next(filter(None, match.groups())).strip() for match in _QUOTED.finditer(query)]


def asks_past(query: str) -> bool:
    """Tell whether a query asks for how something was; in English alone."""
    return _PAST_WORDS.search(query) is not None


def asks_now(query: str) -> bool:
    """Tell whether a query is a question that names no time but the present; in English alone."""
    return is_question(query) and not asks_past(query) and not names_time(query)


def kind_of(query: str, names: list[str]) -> Kind:
    """Return what a query is after (S2-06).

    ``navigational``: the query is a name and little else. ``factual``: it asks. ``contextual``: it
    tells. ``names`` are those of the nodes in it.
    """
    if names and not beyond_names(query, names):
        return "navigational"
    words = _WORDS.findall(fold(query))
    begins_like_question = bool(words) and words[0] in _QUESTION_WORDS
    if begins_like_question or any(is_question(sentence) for sentence in sentences_of(query)):
        return "factual"
    return "contextual"


def beyond_names(query: str, names: list[str]) -> list[str]:
    """Return the words of a query that are neither in one of the names nor in any request."""
    name_words: set[str] = set()
    for name in names:
        name_words.update(_WORDS.findall(fold(name)))
    return [
        word
        for word in _WORDS.findall(fold(query))
        if len(word) > 1
        and word not in name_words
        and word not in _REQUEST_WORDS
        and without_s(word) not in name_words
    ]
