"""The words of a query: long texts condensed, what it is about and after, and the passage of a text that it means."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, TypeVar

from pps.core.text import chunks, fold, is_question, sentences_of
from pps.core.time_reading import names_time
from pps.core.values import AnchorPassage
from pps.index.signs import asked
from pps.journal.names import without_s

LONGEST = 1_000
"""Characters that are asked at most; about what a small embedding model reads."""
LONGEST_SENTENCE = 400

Kind: TypeAlias = Literal["factual", "navigational", "contextual"]

AskKind: TypeAlias = Literal["question", "advice", "talk"]
"""What a text wants of a memory: an answer that was said in its words, what bears on advice, or what bears on talk."""

Route: TypeAlias = Literal["cause", "code", "intent", "named", "exact", "misspelt"]
_ROUTES: dict[Route, re.Pattern[str]] = {
    "code": re.compile(
        r"[a-z0-9]_[a-z]|[a-z][A-Z]|\w\(|`|\w/\w+[./]\w|\b\w+\.(?:py|js|ts|rs|go|java|toml|sql|md)\b|::"
    ),
    "intent": re.compile(
        r"\b(?:goal|purpose|intent(?:ion)?|trying to|in order to|aim(?:ed|ing)?|meant to|so that)\b",
        re.I,
    ),
}
"""What tells of which kind a query is; ``named`` is told by nodes, ``cause`` by the cues of config/causes.toml,
``exact`` by quoted phrases, and ``misspelt`` by words that no turn of the memory
has, while one has a word spelt almost like them."""

LONG = 600
"""Characters above which a text is shown by its matching passage."""
_PASSAGE, _OVERLAP = 500, 120
T = TypeVar("T")

_WORDS = re.compile(r"\w+")
_ASKING_WORDS = """
who whom whose what which when where why how did does do is are was were has have had can could should would will
name list
"""
_ASKING = frozenset(_ASKING_WORDS.split())
_LEADING_WORDS = """
a about all an and any are at be by did do does everything for from give going has have her hers him his how i in is
it know let me my of on our please recall remember say show tell that the their them they to up us was we were what
when where which who whom whose why with you your
"""
_LEADING = frozenset(_LEADING_WORDS.split())
_IDLE_WORDS = """
what what's whats when when's where where's who who's whom whose which why how how's
do does did don't doesn't didn't doing have has had haven't hasn't hadn't having am is are was were isn't aren't
wasn't weren't be been being can could can't couldn't shall should shouldn't will would won't wouldn't may might must
i i'm i've i'd i'll me my mine myself we we're we've we'd we'll us our ours ourselves you you're you've you'd you'll
your yours yourself he he's him his himself she she's her hers herself they they're they've them their theirs
themselves it it's its itself this that that's these those there there's here
a an the and or but if of at by for with about to from in on as so than too very just also any some please tell
"""
IDLE = frozenset(_IDLE_WORDS.split())
_SEVERAL = re.compile(
    r"\b(?:list|enumerate|all|every|everything|each|several|different|various|how (?:many|often))\b"
    r"|\b(?:what|which) (?:are|were)\b"
    r"|\b(?:what|which) (?:\w+ ){0,2}?(?:\w{3,}[^s\W]s|people|children|men|women)"
    r" (?:do|does|did|has|have|is|are|was|were|would|can)\b",
    re.I,
)
_KIND_ASKED = re.compile(
    r"\b(?:which|what)(?: (?:kind|type|sort) of)? (?P<kind>[\w+#.-]+(?: [\w+#.-]+)?)"
    r" (?:do|does|did|is|are|was|were|has|have|should|can)\b",
    re.I,
)
_QUOTED = re.compile(r'"([^"]{2,200})"|“([^”]{2,200})”|«([^»]{2,200})»|「([^」]{2,200})」')
_TALKS = 2
"""Sentences that ask nothing, from which on a text talks."""
_FEW = 5
"""Words up to which a text that asks nothing is taken for what is looked up: a name, a keyword."""
_ADVICE = re.compile(
    r"\b(?:suggest(?:ions?)?|recommend(?:ations?)?|advice|advise|ideas?|tips?|should|best way"
    r"|looking (?:for|to)|help|(?:can|could) you"
    r"|(?:what|which|are there|any)\b.*\b(?:would|should|could|can|for me|options?)\b"
    r"|how (?:can|should|could|do)|good)\b",
    re.I,
)
_SPEAKER = re.compile(r"\b(?:i|i['’]m|me|my|we|us|our)\b", re.I)
_RECOMMENDS = re.compile(
    r"\b(?:can|could|would|will|do) you (?:\w+ )?(?:recommend|suggest|advise)\b"
    r"|^\W*(?:please )?(?:recommend|suggest)\b"
    r"|^\W*what (?:are|is) some (?:of the )?(?:best|good|great|fun|must|creative|popular|recommended|highly"
    r"|convenient|comprehensive|informative|easy|nice|unique|interesting|healthy|exciting|affordable)",
    re.I,
)
_EDGES = re.compile(r"^\W+|\W+$")
_PAST = re.compile(
    r"\b(?:did|was|were|had|been|ever|used to|first|before|ago|originally|previous(?:ly)?|earlier|last|yesterday"
    r"|history|order(?:ed)?|how long|how many times|since)\b",
    re.I,
)


def condensed(query: str) -> str:
    """Return a query of at most ``LONGEST`` characters: its questions, its end, its beginning.

    What somebody wants stands at either end of a long text or carries a question mark; what lies
    between is mostly pasted. Sentences keep their order. A query that is short enough stays as it is.
    """
    query = query.strip()
    if len(query) <= LONGEST:
        return query
    sentences = [one.strip()[:LONGEST_SENTENCE] for one in sentences_of(query) if one.strip()]
    ends = [
        index
        for pair in zip(range(len(sentences) - 1, -1, -1), range(len(sentences)), strict=True)
        for index in pair
    ]
    asked = [index for index, one in enumerate(sentences) if is_question(one)]
    kept: set[int] = set()
    room = LONGEST
    for index in (*reversed(asked), *ends):
        if index not in kept and len(sentences[index]) + 1 <= room:
            kept.add(index)
            room -= len(sentences[index]) + 1
    return " ".join(sentences[index] for index in sorted(kept)) or query[:LONGEST]


def routes_of(query: str, nodes: Sequence[str], misspelt: Sequence[str] = ()) -> set[Route]:
    """Return the kinds of a query that a perspective is made for.

    Args:
        query: The question.
        nodes: Those that it names, or whose kinds it names.
        misspelt: Its words that no turn of the memory has, while one has a word spelt almost like them.
    """
    found: set[Route] = {kind for kind, cue in _ROUTES.items() if cue.search(query)}
    told: dict[Route, bool] = {
        "cause": asked(query) is not None,
        "named": bool(nodes),
        "exact": bool(quoted_phrases(query)),
        "misspelt": bool(misspelt),
    }
    found.update(kind for kind, is_so in told.items() if is_so)
    return found


def ask_kind(query: str) -> AskKind:
    """Return what a text wants of a memory; English alone is read for advice.

    ``talk``: it tells more than it asks ("I came in last. Why am I so slow?"). ``advice``: it asks what the speaker
    should do, buy, see or make ("Suggest a hotel for me in Rome"): no word of the answer need be in it, and a word that
    is in both is chance. ``question``: anything else.
    """
    sentences = [sentence for sentence in sentences_of(query) if sentence.strip()]
    told = sum(not is_question(sentence) for sentence in sentences)
    wants_advice = _RECOMMENDS.search(query) is not None or (
        _ADVICE.search(query) is not None and _SPEAKER.search(query) is not None
    )
    if told >= _TALKS:
        return "talk"
    if wants_advice:
        return "advice"
    words = _WORDS.findall(fold(query))
    asks = told < len(sentences) or not words or words[0] in _ASKING or len(words) <= _FEW
    return "question" if asks else "talk"


def asks_for_several(query: str) -> bool:
    """Tell whether a question wants several things ("Which books has she read?"), so that more is shown."""
    return _SEVERAL.search(query) is not None


def kind_asked_for(query: str) -> str:
    """Return what a question wants one of ("ORM" of "Which ORM do we use?"), or an empty text."""
    found = _KIND_ASKED.search(query)
    if found is None:
        return ""
    words = [word for word in found["kind"].split() if word.lower() not in IDLE]
    return " ".join(words)


def quoted_phrases(query: str) -> list[str]:
    """Return what stands between double quotation marks, in order."""
    return [next(filter(None, match.groups())).strip() for match in _QUOTED.finditer(query)]


def content_words(query: str) -> str:
    """Return a query without the words that only ask or refer (``where``, ``did``, ``she``): what words it is about.

    Such words are rare enough in what was said that BM25 would take "where" for the point of "Where is the key?".
    They stay where nothing else is left, and with a capital inside a sentence, where they are names ("Will").
    """
    kept: list[str] = []
    begins = True
    for word in query.split():
        bare = _EDGES.sub("", word).replace("’", "'")
        named = bare != bare.lower() and not begins and not bare.startswith("I")
        if bare.lower() not in IDLE or named:
            kept.append(word)
        begins = word[-1] in ".?!:…"
    return " ".join(kept) if any(_WORDS.search(word) for word in kept) else query


def asks_past(query: str) -> bool:
    """Tell whether a text asks for how something was: English alone is read for that."""
    return _PAST.search(query) is not None


def asks_now(query: str) -> bool:
    """Tell whether a text is a question that names no time but the present: English alone is read for that."""
    return is_question(query) and not asks_past(query) and not names_time(query)


def kind_of(query: str, names: list[str]) -> Kind:
    """Return what a query is after (S2-06).

    ``navigational``: the query is a name and little else. ``factual``: it asks. ``contextual``: it tells.
    ``names`` are those of the nodes in it.
    """
    if names and len(beyond_names(query, names)) == 0:
        return "navigational"
    first = next(iter(_WORDS.findall(fold(query))), "")
    asks = any(is_question(sentence) for sentence in sentences_of(query))
    return "factual" if asks or first in _ASKING else "contextual"


def beyond_names(query: str, names: list[str]) -> list[str]:
    """Return the words of a query that are neither in a name nor said in any request."""
    named = {word for name in names for word in _WORDS.findall(fold(name))}
    said = named | _LEADING
    words = _WORDS.findall(fold(query))
    return [
        word
        for word in words
        if len(word) > 1 and word not in said and without_s(word) not in named
    ]


def passage_of(query: str, text: str, size: int = LONG) -> str:
    """Return the passage of a long text that shares most with the query; empty up to ``size`` characters."""
    if len(text) <= size:
        return ""
    return _most(
        query, list(chunks(text, size=min(size, _PASSAGE), overlap=_OVERLAP)), lambda piece: piece
    )


def most_like(query: str, passages: Sequence[AnchorPassage]) -> AnchorPassage:
    """Return the passage that shares most with the query, the first of equals; there must be one."""
    return _most(query, passages, lambda passage: f"{passage.title} {passage.text}")


def _most(query: str, pieces: Sequence[T], text_of: Callable[[T], str]) -> T:
    wanted = grams(content_words(query))
    having = [wanted & grams(text_of(piece)) for piece in pieces]
    times = Counter(word for words in having for word in words)
    # A word of every piece tells none of them apart; one of a single piece does.
    worth = [sum(1 / times[word] for word in words) for words in having]
    return pieces[worth.index(max(worth))]


def grams(text: str) -> frozenset[str]:
    """Return the folded words of a text; in scripts without spaces, its pairs of characters too."""
    words = _WORDS.findall(fold(text))
    pairs = (
        word[at : at + 2] for word in words if not word.isascii() for at in range(len(word) - 1)
    )
    return frozenset(words) | frozenset(pairs)
