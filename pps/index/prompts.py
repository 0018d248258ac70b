"""Classifies prompts, turns that only ask, and what a person says of themselves.

The kind of a prompt decides whether a memory answers at all (an idle prompt gets nothing), and what
it searches for (advice searches for likes and restrictions of the person). The cues are data:
``config/prompts.toml``.

Statements of a turn about its speaker are preferences (constraints and health too: what somebody
likes, avoids or may not have), instructions, identity and duties. Their cues are
``config/statements.toml``. They are looked for sentence by sentence, and never in a sentence that
asks. What is found is kept with a turn as perspective data, so that a context pack looks it up
without reading any text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias, cast, get_args

from pps.config.packaged import shipped
from pps.core.text import fold, is_question, sentences_of

Statement: TypeAlias = Literal["preference", "instruction", "identity", "todo"]
STATEMENTS: tuple[Statement, ...] = get_args(Statement)
_STATEMENT_CHARS = 4_000
"""Characters of a turn that are read: a pasted document says nothing about the speaker."""
_LONGEST_SENTENCE = 400
PromptKind: TypeAlias = Literal["idle", "task", "advice", "question", "instruction", "statement"]
"""``idle`` is small talk; ``task`` is code or common knowledge; ``advice`` asks for a product, a
plan or an idea; ``question`` asks the memory; ``instruction`` and ``statement`` tell it
something."""
Cue: TypeAlias = Literal[
    "small_talk",
    "small_talk_words",
    "orders",
    "task",
    "advice_outright",
    "advice",
    "asks",
    "asks_what_was_asked",
    "asks_without_mark",
]
ASKS = "asks"
"""The feature of a turn that only asks."""
_READ_CHARS = 2_000
_LONGEST_IDLE = 160
"""Most characters of an idle prompt; a longer prompt has a subject."""
_WORD = re.compile(r"\w+(?:'\w+)*")
_FUNCTION_WORDS = frozenset(
    [
        "a",
        "an",
        "the",
        "and",
        "or",
        "but",
        "if",
        "of",
        "at",
        "by",
        "for",
        "with",
        "about",
        "to",
        "from",
        "in",
        "on",
        "as",
        "so",
        "than",
        "too",
        "very",
        "just",
        "also",
        "any",
        "some",
        "not",
        "i",
        "i'm",
        "i've",
        "i'd",
        "i'll",
        "me",
        "my",
        "you",
        "you're",
        "you've",
        "your",
        "he",
        "she",
        "it",
        "it's",
        "its",
        "we",
        "we're",
        "us",
        "they",
        "them",
        "this",
        "that",
        "that's",
        "these",
        "those",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "do",
        "does",
        "did",
        "done",
        "don't",
        "didn't",
        "have",
        "has",
        "had",
        "will",
        "would",
        "can",
        "could",
        "should",
        "may",
        "might",
        "what",
        "what's",
        "who",
        "which",
        "where",
        "when",
        "why",
        "how",
        "here",
    ]
)
_EDGES = re.compile(r"^\W+|\W+$")
_ASIDE = re.compile(r"^(?:\W*(?:and|but|so|also|oh|hmm*|hey|hi|hello|well|ok|okay)\b\W*)+", re.I)


@lru_cache(maxsize=2_048)
def statements_of(text: str) -> frozenset[Statement]:
    """Return which kinds of statement a person's words hold; empty for most texts.

    Args:
        text: The words alone, without the speaker's name.
    """
    sentences = [
        sentence.strip().replace("’", "'")
        for sentence in sentences_of(text[:_STATEMENT_CHARS])
        if len(sentence) <= _LONGEST_SENTENCE and not is_question(sentence)
    ]
    return frozenset(
        kind
        for kind in STATEMENTS
        if any(_cues(kind).search(sentence) for sentence in sentences if sentence)
    )


@lru_cache(maxsize=len(STATEMENTS))
def _cues(kind: Statement) -> re.Pattern[str]:
    languages = tomllib.loads(shipped("config/statements.toml").read_text("utf-8"))
    patterns = [pattern for cues in languages.values() for pattern in cues[kind]]
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AboutThePerson:
    """How to answer questions such as "who am I?", which share no word with their answers.

    Attributes:
        seek: Words of an answer, which are searched for in place of the question.
        statement: The kind of the person's statements that answer the question.
    """

    seek: str
    statement: Statement


@dataclass(frozen=True, slots=True)
class _Data:
    cues: Mapping[Cue, re.Pattern[str]]
    about_the_person: Mapping[str, AboutThePerson]


def prompt_kind(prompt: str) -> PromptKind:
    """Return the kind of a prompt: the first that fits, in the order of ``_decide``."""
    return _decide(_plain(prompt))


def about_the_person(query: str) -> AboutThePerson | None:
    """Return how to answer a question about the person; None for any other query."""
    folded = _EDGES.sub("", fold(_plain(query)))
    return _data().about_the_person.get(_EDGES.sub("", _ASIDE.sub("", folded)))


def asks_what_was_asked(query: str) -> bool:
    """Tell whether a query asks for earlier questions: "What did I ask about the boiler?"."""
    return _has("asks_what_was_asked", query)


def without_small_talk(text: str) -> str:
    """Return a text without its phrases of small talk."""
    return _data().cues["small_talk"].sub(" ", text)


def is_small_talk(word: str) -> bool:
    """Tell whether a single word is small talk."""
    return _data().cues["small_talk_words"].fullmatch(word.lower()) is not None


@lru_cache(maxsize=4_096)
def only_asks(text: str) -> bool:
    """Tell whether a text only asks, and so states nothing.

    A text with a sentence that is neither a question nor small talk states something, and so does a
    question longer than 25 words, which explains its subject.
    """
    has_question = False
    for sentence in sentences_of(_plain(text)):
        words = _WORD.findall(_ASIDE.sub("", sentence))
        if is_question(sentence) or _has("asks_without_mark", _ASIDE.sub("", sentence.strip())):
            if len(words) > 25:
                return False
            has_question = True
        elif any(not is_small_talk(word) for word in _WORD.findall(without_small_talk(sentence))):
            return False
    return has_question


def _decide(prompt: str) -> PromptKind:
    if about_the_person(prompt):
        return "question"
    if _is_idle(prompt):
        return "idle"
    if "instruction" in statements_of(prompt):
        return "instruction"
    if _has("advice_outright", prompt):
        return "advice"
    if _has("task", prompt):
        return "task"
    if _has("advice", prompt):
        return "advice"
    sentences = [sentence for sentence in sentences_of(prompt) if sentence.strip()]
    if sentences and is_question(sentences[-1]):
        return "question"
    if any(_has("asks", sentence.strip()) for sentence in sentences):
        return "question"
    return "statement"


def _is_idle(prompt: str) -> bool:
    if len(prompt) > _LONGEST_IDLE:
        return False
    clauses: list[str] = []
    for sentence in sentences_of(prompt):
        clauses += _EDGES.sub("", sentence).split(", ")
    return all(_is_idle_clause(clause) for clause in clauses)


def _is_idle_clause(clause: str) -> bool:
    bare = _EDGES.sub("", _ASIDE.sub("", clause.strip()))
    if _data().cues["orders"].fullmatch(bare):
        return True
    words = _WORD.findall(without_small_talk(bare))
    return all(is_small_talk(word) or word.lower() in _FUNCTION_WORDS for word in words)


def _plain(text: str) -> str:
    return text[:_READ_CHARS].replace("’", "'").strip()


def _has(cue: Cue, text: str) -> bool:
    return _data().cues[cue].search(text) is not None


@lru_cache(maxsize=1)
def _data() -> _Data:
    tables = tomllib.loads(shipped("config/prompts.toml").read_text("utf-8"))
    answers = cast("list[dict[str, object]]", tables.pop("about_the_person"))
    languages = cast("dict[str, dict[Cue, list[str]]]", tables)
    names: list[Cue] = list(next(iter(languages.values())))
    cues: dict[Cue, re.Pattern[str]] = {}
    for name in names:
        patterns = [pattern for language in languages.values() for pattern in language[name]]
        if name == "small_talk":  # matches whole words
            alternatives = [rf"\b(?:{pattern})\b" for pattern in patterns]
        else:
            alternatives = [f"(?:{pattern})" for pattern in patterns]
        cues[name] = re.compile("|".join(alternatives), re.IGNORECASE | re.MULTILINE)
    about = {
        asks: AboutThePerson(str(answer["seek"]), cast("Statement", answer["statement"]))
        for answer in answers
        for asks in cast("list[str]", answer["asks"])
    }
    return _Data(cues, about)
