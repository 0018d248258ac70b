"""A seeded world of any size: people and places with Zipfian popularity, dated facts, turns that tell them.

Text is made of English words, grouped into topics with Zipfian frequencies, so that BM25 meets rare and
frequent terms and texts of one topic lie close together. Everything is a function of the seed and a number:
the same on every machine, and turn 7 is the same in a world of ten turns and in one of ten thousand.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.resources import files

from pps.core.values import FactDraft, NodeDraft
from pps.ingest.drafts import RememberOptions

FACTS_A_TURN = 4
FACTS_A_NODE = 5
SHARES = (90.0, 50.0, 10.0, 1.0, 0.1)
"""Percent of the turns that carry the tag of ``share_tag``."""

_TURNS_A_SESSION = 24
_TOPICS = 240
_WORDS_A_TOPIC = 48
_FIRST_WORD, _LAST_WORD = 1_996, 22_000
_LEAST_LETTERS = 4
_FIRST_NODES = 64
_START = datetime(2022, 1, 3, 8, tzinfo=UTC)
_KINDS = ("Person", "Person", "Person", "Place", "Organisation", "Project")
_RELATIONS = (
    ("WORKS_AT", "works at"),
    ("LIVES_IN", "lives in"),
    ("KNOWS", "has known"),
    ("LIKES", "likes to talk about"),
    ("VISITED", "visited"),
    ("OWNS", "owns a part of"),
    ("LEADS", "leads the work on"),
    ("STUDIED_AT", "studied at"),
    ("HELPED", "helped"),
    ("MEETS", "meets every week with"),
    ("PLANS", "plans a trip to"),
    ("BUILT", "built something for"),
)
_ONSETS = (
    "b",
    "ch",
    "d",
    "f",
    "g",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "sh",
    "t",
    "v",
    "w",
    "y",
    "z",
)
_VOWELS = ("a", "e", "i", "o", "u")
_FIRST_NAMES = 900


@dataclass(frozen=True, slots=True)
class World:
    """A generated memory.

    Attributes:
        seed: What else is made with the same numbers is the same.
    """

    seed: int = 7

    def turns(self, start: int, stop: int) -> Iterator[tuple[str, RememberOptions]]:
        """Yield turns ``start`` to ``stop - 1``, each with ``FACTS_A_TURN`` facts, as ``remember_many`` takes them."""
        for number in range(start, stop):
            yield self._turn(number)

    def facts(self, number: int) -> list[FactDraft]:
        """Return the facts that a turn states."""
        draw = self._draw("facts", number)
        first = number * FACTS_A_TURN
        return [
            self._fact(first + at, draw, self._words(number, draw, 3)) for at in range(FACTS_A_TURN)
        ]

    def questions(self, count: int, turns: int) -> list[str]:
        """Return different questions about what the first ``turns`` turns tell.

        They are as long as people's: a median of 13 word pieces and a 95th percentile of 20, as in LoCoMo.
        """
        draw = self._draw("questions", turns)
        asked: dict[str, None] = {}
        while len(asked) < count:
            number = draw.randrange(turns)
            fact = self.facts(number)[draw.randrange(FACTS_A_TURN)]
            verb = fact.relation.replace("_", " ").lower()
            who = fact.subject.split()[0] if draw.random() < 0.3 else fact.subject
            about = (
                f" because of the {' '.join(self._words(number, draw, 2))}"
                if draw.random() < 0.3
                else ""
            )
            asked.setdefault(f"When was it that {who} {verb} {fact.object}{about}?")
        return list(asked)

    def vague_questions(self, count: int, turns: int) -> list[str]:
        """Return different questions that name nobody."""
        draw = self._draw("vague", turns)
        asked: dict[str, None] = {}
        while len(asked) < count:
            words = self._words(draw.randrange(turns), draw, 5)
            asked.setdefault(
                f"what did we say about {words[0]} {words[1]} and the {' '.join(words[2:])}"
            )
        return list(asked)

    def _turn(self, number: int) -> tuple[str, RememberOptions]:
        draw = self._draw("turn", number)
        facts = self.facts(number)
        session = number // _TURNS_A_SESSION
        told = draw.choice(facts)
        words = self._words(number, draw, draw.randint(8, 24))
        content = f"{told.subject} {told.relation.replace('_', ' ').lower()} {told.object}: {' '.join(words)}."
        options: RememberOptions = {
            "role": "user" if number % 2 == 0 else "assistant",
            "actor": node_name(self._zipf(draw, _FIRST_NODES)),
            "session": f"session-{session}",
            "source": "bench",
            "source_ref": f"turn-{number}",
            "occurred_at": self._at(number),
            "tags": tuple(share_tag(share) for share in SHARES if draw.random() * 100 < share),
            "nodes": tuple(
                NodeDraft(name, _kind(name)) for name in dict.fromkeys(f.subject for f in facts)
            ),
            "facts": tuple(facts),
            "extraction": "given",
        }
        return content, options

    def _fact(self, number: int, draw: random.Random, words: list[str]) -> FactDraft:
        known = _FIRST_NODES + number // FACTS_A_NODE
        new = number % FACTS_A_NODE == 0
        subject = known - 1 if new else self._zipf(draw, known)
        target = self._zipf(draw, known)
        relation, verb = draw.choice(_RELATIONS)
        since = self._at(number // FACTS_A_TURN) - timedelta(days=draw.randint(0, 400))
        ended = draw.random() < 0.08
        return FactDraft(
            subject=node_name(subject),
            relation=relation,
            object=node_name(target if target != subject else (subject + 1) % known),
            text=f"{node_name(subject)} {verb} {node_name(target)} because of the {' '.join(words)} ({number}).",
            valid_at=since,
            invalid_at=since + timedelta(days=draw.randint(1, 300)) if ended else None,
        )

    def _words(self, number: int, draw: random.Random, count: int) -> list[str]:
        """Return words of the topic of a turn's session, a few of them of any topic."""
        topic = (number // _TURNS_A_SESSION * 31 + self.seed) % _TOPICS
        own = _topic(self.seed, topic)
        every = _vocabulary()
        return [
            every[self._zipf(draw, len(every))]
            if draw.random() < 0.25
            else own[self._zipf(draw, len(own))]
            for _ in range(count)
        ]

    def _at(self, number: int) -> datetime:
        session, place = divmod(number, _TURNS_A_SESSION)
        return _START + timedelta(hours=11 * session, minutes=place)

    def _draw(self, what: str, number: int) -> random.Random:
        return random.Random(f"{self.seed}:{what}:{number}")  # noqa: S311 - not a secret

    @staticmethod
    def _zipf(draw: random.Random, size: int) -> int:
        """Return a rank below ``size``; rank r is drawn about as 1 / r (Zipf's law)."""
        return min(size - 1, int(math.exp(draw.random() * math.log(size + 1))) - 1)


def share_tag(share: float) -> str:
    """Return the tag that this percentage of the turns carries."""
    return "share" + f"{share:g}".replace(".", "_")


@lru_cache(maxsize=65_536)
def node_name(number: int) -> str:
    """Return the name of a node, one a number: an English word as a first name, then a made-up one."""
    return f"{_first_names()[number % _FIRST_NAMES].capitalize()} {_made_up(number)}"


@lru_cache(maxsize=1)
def _first_names() -> list[str]:
    return random.Random("first names").sample(_vocabulary(), _FIRST_NAMES)  # noqa: S311 - not a secret


def _made_up(number: int) -> str:
    """Return a number as two syllables or more, so that no two names are the same."""
    syllables = ""
    for _ in range(2):
        number, place = divmod(number, len(_ONSETS) * len(_VOWELS))
        syllables += _syllable(place)
    while number:
        number, place = divmod(number, len(_ONSETS) * len(_VOWELS))
        syllables += _syllable(place)
    return syllables.capitalize()


def _syllable(place: int) -> str:
    onset, vowel = divmod(place, len(_VOWELS))
    return _ONSETS[onset] + _VOWELS[vowel]


def _kind(name: str) -> str:
    return _KINDS[len(name) % len(_KINDS)]


@lru_cache(maxsize=1)
def _vocabulary() -> list[str]:
    """Return English words, the frequent ones first: whole words of the word-piece vocabulary that PPS ships."""
    lines = (files("pps.models") / "data" / "vocab.txt").read_text(encoding="utf-8").split("\n")
    return [
        word
        for word in lines[_FIRST_WORD:_LAST_WORD]
        if len(word) >= _LEAST_LETTERS and word.isascii() and word.isalpha()
    ]


@lru_cache(maxsize=_TOPICS)
def _topic(seed: int, topic: int) -> list[str]:
    words = _vocabulary()[200:]
    return random.Random(f"{seed}:topic:{topic}").sample(words, _WORDS_A_TOPIC)  # noqa: S311 - not a secret
