"""Words of queries and texts.

Stop words, comparable terms, matching passages, rarity, and spellings of names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from pps.core.text import chunks, fold
from pps.core.values import AnchorPassage
from pps.journal.names import units
from pps.models.onnx import wordpiece


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

PASSAGE_FROM = 600
"""Characters above which a text is shown by its matching passage."""
_PASSAGE_SIZE = 500
_PASSAGE_OVERLAP = 120
_COMMON_PIECES = 7_000
"""A word that is one of the vocabulary's first pieces is a common one."""
_WORDS = re.compile(r"\w+")
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
    kept: list[str] = []
    begins_sentence = True
    for word in query.split():
        bare = _PUNCTUATION_AT_ENDS.sub("", word).replace("’", "'")
        has_capital = bare != bare.lower()
        is_name = has_capital and not begins_sentence and not bare.startswith("I")
        if bare.lower() not in STOP_WORDS or is_name:
            kept.append(word)
        begins_sentence = word[-1] in ".?!:…"
    has_word = any(_WORDS.search(word) for word in kept)
    return " ".join(kept) if has_word else query


def passage_of(query: str, text: str, size: int = PASSAGE_FROM) -> str:
    """Return the passage of a long text that shares most with the query.

    Empty up to ``size`` characters.
    """
    if len(text) <= size:
        return ""
    pieces = list(chunks(text, size=min(size, _PASSAGE_SIZE), overlap=_PASSAGE_OVERLAP))
    return pieces[_best_match(query, pieces)]


def most_like(query: str, passages: Sequence[AnchorPassage]) -> AnchorPassage:
    """Return the passage that shares most with the query, the first of equals.

    There must be at least one.
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
    worth = [sum(1 / counts[word] for word in words) for words in shared]
    return worth.index(max(worth))


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

    Muhammad and Mohammed, Katherine and Catherine, Akim and Akib.

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

    Mohammed → ``mhmd``.
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
