"""The floor: whether a memory has anything to say to a text, and which of what was found has to do with it.

Silence and answers are two decisions. The first goes by the kind of a prompt (``prompts``) and by evidence, each piece
of which can be told in a sentence: an uncommon word of the text that few texts of the memory have, a cosine that stands
clear of those of unrelated pairs (``config/floor.toml``), a node that the text names and that something says more of,
or, for a question, retrievers that agree on what they put first. The second judges each item by itself.

Where the embedder cannot read a text's language, words decide in its place.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pps.config import shipped
from pps.core.recalled import Channel, Evidence, Hit
from pps.core.values import AnchorPassage, ChannelName, Fact, Node, Turn, words_of
from pps.index.prompts import (
    ASKS,
    asks_what_was_asked,
    is_small_talk,
    only_asks,
    without_small_talk,
)
from pps.journal.perspective_rows import ids_of
from pps.models.onnx import wordpiece
from pps.models.protocols import Embedder, Matrix
from pps.recall.profiles import ChannelProfile, Profile
from pps.recall.query_words import STOP_WORDS, content_words, grams, is_rare
from pps.recall.question import beyond_names
from pps.recall.search import Scored, Search

SURE, NEAR, ITEM, WEAK, WORD = 3.1, 1.4, 0.9, 0.5, -0.1
"""How many standard deviations a text must stand above the nearest of so many unrelated ones: to fill a pack without a
name or a rare word besides; to be near at all; beside something near; beside a name alone; with a rare word of it.
With MiniLM and 500 turns cosines of .55, .42, .38, .35 and .30."""
TALK, BESIDE = 0.4, -0.9
"""The same for a person who tells of something, to be reminded at all; and for one of the best lines of an answer."""
LOOSE = 1.2
"""The same above any unrelated one: enough for what is about somebody who is named and shares another word."""
NAME_ALONE = 5.2
"""The same for what shares a name with the text and no other word: a cosine of .44 with MiniLM."""
BEST_LINES = 5
"""Lines of a channel that answer a question, best first, where each has something to do with it."""
_AGREED_RANK, _AGREED_SHARE, _AGREED_WORDS, _AGREED = 2, 0.5, 2, 2.5
"""Retrievers agree on an item that words and meaning both have among their first two, that has half of the words and at
least two of them, and lies so many deviations above unrelated pairs."""
_FEWEST = 8
_OWN = 0.9
"""How much lower all of that lies for a text about what is the speaker's own: only a memory can know it."""
_OWN_MATTERS = re.compile(
    r"\b(?:my|our|mine|ours)\b|(?<!how )\b(?:do|did|am|was|were|have|had|are) (?:i|we)\b",
    re.IGNORECASE,
)
_TALKS = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|me|we|we're|we've|our)\b", re.IGNORECASE)
_LEAST_TALK = 9
"""Words of a text in the first person that tells of something."""
_OWN_TEXTS, _LEAST_TEXTS = 200, 20
_WORDS = 8
_RARE_SHARE, _LEAST_RARE = 100, 3
_TERM = re.compile(r"\w+(?:[.:/_-]\w+)*")
_BEGINNING = 5
"""Letters by which two words are one, without an ending: "open" and "opens", "lives" and "living"."""
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|e)$")
_LATIN_END = 0x250
_WITHOUT_SPACES = "\u0e00"
"""The first character of scripts that put no spaces between words; most of those behind it do not either."""
_MOST_PIECES_A_WORD = 2.4
"""An English word has 1.1 to 1.4 pieces of an English vocabulary, one of a language it does not know 2.5 to 4."""
_LEAST_WORDS_READ = 3
_UNREAD_SHARE, _UNREAD_RARE_SHARE = 0.4, 0.25
"""Of a text's words (pairs of characters in scripts without spaces) that an item must have where only words decide; and
where one of them is rare in the memory."""


async def evidence(
    search: Search,
    channels: Mapping[ChannelName, Channel],
    profile: Profile,
    *,
    by_meaning: bool = True,
) -> Evidence:
    """Return how much a memory has to say to a text, and which of the hits have to do with it.

    Args:
        search: The recall's own.
        channels: What it found.
        profile: How; one without a floor looks for rare words among what was found only, since a note is all it is for.
        by_meaning: False when no embedder answers: words and names are all the evidence.
    """
    if search.kind == "idle" or not _telling(search):
        return Evidence("nothing")
    scale = await scale_of(search) if by_meaning and is_readable(search) else None
    turns = await search.once("turns", search.sources.journal.count_turns)
    return await _Floor(search, scale, turns).evidence(channels, profile)


def is_readable(search: Search) -> bool:
    """Tell whether the embedder knows the language of a text: by its script, and by how it cuts the words.

    A model that ``config/floor.toml`` says nothing of is taken to read all languages.
    """
    embedder = search.sources.embedder
    model = embedder.fingerprint.model if embedder else ""
    if model not in _shipped().english:
        return True
    letters = [char for char in search.text if char.isalpha()]
    if sum(ord(char) >= _LATIN_END for char in letters) * 2 > len(letters):
        return False
    words = [word for word in re.findall(r"[^\W\d_]+", search.text) if word[1:].islower()]
    if len(words) < _LEAST_WORDS_READ:
        return True
    pieces = [len(wordpiece().encode(word, add_special_tokens=False).ids) for word in words]
    return sum(pieces) <= _MOST_PIECES_A_WORD * len(words)


def least_similarity(model: str) -> float | None:
    """Return the cosine from which a model's record answers a question, measured on labelled ones; None if unknown."""
    found = tomllib.loads(shipped("config/floor.toml").read_text("utf-8"))["models"].get(model, {})
    return float(found["records"]) if "records" in found else None


class _Floor:
    """What is evidence: how far texts, and nodes' names, stand above unrelated pairs; rare words; named nodes.

    Args:
        search: The recall's own.
        scale: Mean and deviation of the cosines of unrelated pairs; None where nothing knows what texts mean.
        turns: How many the memory has.
    """

    def __init__(self, search: Search, scale: tuple[float, float] | None, turns: int) -> None:
        self._search = search
        self._scale = scale
        self._turns = turns
        self._uncommon = _uncommon(search)
        # How many deviations the nearest of as many unrelated texts is expected above their mean.
        rise = math.sqrt(2 * math.log(max(_FEWEST, turns)))
        self._rise = rise - _OWN if _OWN_MATTERS.search(search.text) else rise
        self._near: dict[str, float] = {}
        self._about: dict[str, float] = {}
        self._exact: set[str] = set()
        self._named: set[str] = set()
        self._needed = NEAR
        self._words = _beginnings(grams(" ".join(_telling(search))))
        self._rest = self._words

    async def evidence(self, channels: Mapping[ChannelName, Channel], profile: Profile) -> Evidence:
        hits = [hit for channel in channels.values() for hit in channel.hits]
        names = await self._nodes_named()
        self._named = set(names)
        spelled = [name for each in names.values() for name in each]
        self._rest = (
            _beginnings(grams(" ".join(beyond_names(self._search.text, spelled)))) & self._words
        )
        for name, channel in channels.items():
            await self._measure(channel, profile.channels[name])
        if profile.floor:
            for name in channels.keys() & {"facts", "episodes", "turns", "nodes"}:
                for collection in self._search.collections(name):
                    self._exact |= await self._with_rare_words(collection)
        else:
            rare = grams(" ".join(self._uncommon))
            self._exact |= {
                _owner(hit) for hit in hits if rare & grams(f"{hit.text} {hit.passage}")
            }
        if await self._names_nobody_known():
            self._needed = SURE
        if self._scale is None:
            await self._judge_by_words(hits)
        asking = await self._only_asking(hits)
        for one in asking:
            self._near.pop(one, None)
        self._exact -= asking
        told = [hit for hit in hits if _owner(hit) not in asking]
        return self._judged(channels, told)

    async def _only_asking(self, hits: Sequence[Hit]) -> set[str]:
        """Return the turns that only search, which are no evidence and no answer, unless one asks what was asked."""
        if asks_what_was_asked(self._search.request.query):
            return set()
        features = self._search.sources.journal.perspective_data
        return set(await features.every(ASKS, "episode", ids_of)) | {
            hit.id for hit in hits if isinstance(hit.item, Turn) and only_asks(words_of(hit.item))
        }

    async def _names_nobody_known(self) -> bool:
        """Tell whether a text has names and no text of the memory has any of them: it is about somebody else."""
        names = [word for word, is_name in self._uncommon.items() if is_name][:_WORDS]
        if not names or self._scale is None or self._named:
            return False
        found = await asyncio.gather(
            *(self._search.text_matches("episodes", name, 1) for name in names)
        )
        return not any(found)

    async def _judge_by_words(self, hits: Sequence[Hit]) -> None:
        """Take what has enough of the text's words for near: all that can be said where nothing knows what texts mean."""
        words = [word for word in grams(" ".join(_telling(self._search))) if _is_compared(word)]
        most = max(_LEAST_RARE, self._turns // _RARE_SHARE)
        rare: set[str] = set()
        for word in words:
            having = await self._search.text_matches("episodes", word, most + 1)
            if 0 < len(having) <= most:
                rare.add(word)
        for hit in hits:
            shared = set(words) & grams(f"{hit.text} {hit.passage}")
            least = _UNREAD_RARE_SHARE if shared & rare else _UNREAD_SHARE
            least_pairs = 1 if any(len(word) > 2 for word in shared) else 2
            if len(shared) >= max(least_pairs, least * len(words)):
                self._near[_owner(hit)] = self._rise + SURE

    def _judged(self, channels: Mapping[ChannelName, Channel], hits: Sequence[Hit]) -> Evidence:
        rise = self._rise
        best = max(self._near.values(), default=0.0)
        named = any(self._is_about_a_name(hit) for hit in hits)
        agreed = (
            self._search.kind == "question"
            and self._needed == NEAR
            and any(map(self._is_agreed, hits))
        )
        reminded = self._talks() and best >= rise + TALK
        if best < rise + self._needed and not (named or self._exact or agreed or reminded):
            return Evidence("nothing")
        certain = (
            self._scale is None
            or best >= rise + SURE
            or (best >= rise + self._needed and (named or bool(self._exact)))
            or agreed
            or reminded
        )
        least = rise + (ITEM if best >= rise + NEAR else WEAK)
        lines = self._best_lines(channels, hits) if certain else frozenset[str]()
        return Evidence(
            "much" if certain else "little",
            self._passing(hits, least) | lines,
            self._passing(hits, rise + ITEM) | lines,
        )

    def _talks(self) -> bool:
        """Tell whether a person tells of something at some length, whatever is asked beside it."""
        text = self._search.text
        return (
            self._search.kind != "task"
            and self._scale is not None
            and len(_TERM.findall(text)) >= _LEAST_TALK
            and _TALKS.search(text) is not None
        )

    def _is_agreed(self, hit: Hit) -> bool:
        """Tell whether words and meaning both put a hit first, and it says enough of what is asked."""
        ranks = hit.ranks
        shared = self._words & _beginnings(grams(hit.text))
        return (
            ranks.get("bm25", _AGREED_RANK + 1) <= _AGREED_RANK
            and ranks.get("dense", _AGREED_RANK + 1) <= _AGREED_RANK
            and len(shared) >= max(_AGREED_WORDS, _AGREED_SHARE * len(self._words))
            and self._near.get(_owner(hit), 0.0) >= _AGREED
        )

    def _best_lines(
        self, channels: Mapping[ChannelName, Channel], hits: Sequence[Hit]
    ) -> frozenset[str]:
        """Return the first facts and turns of an answer, each with something to do with what is asked."""
        if self._search.kind == "task" or self._search.about_the_person:
            return frozenset()
        told = {hit.id for hit in hits}
        lines: set[str] = set()
        for name in channels.keys() & {"facts", "episodes", "turns"}:
            first = [hit for hit in channels[name].hits if hit.id in told][:BEST_LINES]
            near = (
                hit
                for hit in first
                if self._nearness(hit) >= self._least_of(hit, self._rise + BESIDE)
                and not _is_reply(hit)
            )
            lines.update(hit.id for hit in near)
        return frozenset(lines)

    def _least_of(self, hit: Hit, least: float) -> float:
        """Return how near a hit must be: a name alone, without another word of the text, makes a cosine, and no answer."""
        return max(least, NAME_ALONE) if self._shares_a_name_alone(hit) else least

    def _shares_a_name_alone(self, hit: Hit) -> bool:
        said = _beginnings(grams(hit.text))
        shared = (self._words - self._rest) & said
        alone = len(self._named) < 2 or len(shared) < 2
        return alone and bool(shared) and bool(self._rest) and not self._rest & said

    def _nearness(self, hit: Hit) -> float:
        """Return how far a hit stands above unrelated pairs; of a fact, the turns that say it count too."""
        owners = [_owner(hit), *(hit.item.episodes if isinstance(hit.item, Fact) else ())]
        return max(self._near.get(owner, 0.0) for owner in owners)

    def _is_about_a_name(self, hit: Hit) -> bool:
        """Tell whether a hit is about a node that the text names and says more of what the text asks."""
        if not self._named:
            return False
        item = hit.item
        if isinstance(item, Node):
            return hit.id in self._named and not self._rest
        is_theirs = isinstance(item, Fact) and bool(self._named & {item.subject, item.object})
        return (
            (is_theirs or hit.ranks.get("named") is not None or self._names_in(hit.text))
            and (not self._rest or bool(self._rest & _beginnings(grams(hit.text))))
            and (not self._rest or self._near.get(_owner(hit), 0.0) >= LOOSE)
        )

    def _names_in(self, text: str) -> bool:
        return bool((self._words - self._rest) & _beginnings(grams(text)))

    def _passing(self, hits: Sequence[Hit], least: float) -> frozenset[str]:
        """Return the ids of the hits that have to do with a text; a turn comes with a fact that it says, and back."""
        passing = {hit.id for hit in hits if self._passes(hit, least)}
        facts = [hit.item for hit in hits if isinstance(hit.item, Fact) and hit.id in passing]
        return frozenset(passing.union(*(fact.episodes for fact in facts)))

    def _passes(self, hit: Hit, least: float) -> bool:
        owner, near = _owner(hit), self._near
        least = self._least_of(hit, least)
        if owner in self._exact and not self._shares_a_name_alone(hit):
            return True
        if near.get(owner, 0.0) >= least or self._is_about_a_name(hit):
            return True
        if isinstance(hit.item, Node):  # a node is shown when the text is about it
            return hit.id in self._named or self._about.get(hit.id, 0.0) >= self._rise + SURE
        return isinstance(hit.item, Fact) and any(
            near.get(one, 0.0) >= least for one in hit.item.episodes
        )

    async def _measure(self, channel: Channel, profile: ChannelProfile) -> None:
        """Note how far the nearest of a channel, and all that was found of it, stand above unrelated pairs."""
        owners = {_owner(hit) for hit in channel.hits}
        collections = (
            *self._search.collections(channel.name),
            *(("records",) if channel.name == "nodes" else ()),
        )
        for collection in collections if self._scale else ():
            nearest = await self._search.vector_matches(
                collection, self._search.depth(profile.depth, self._search.request.limit)
            )
            more = await self._search.vector_matches_among(
                collection, owners - {one.id for one in nearest}
            )
            self._note(self._about if collection == "nodes" else self._near, [*nearest, *more])

    def _note(self, into: dict[str, float], scored: Sequence[Scored]) -> None:
        mean, deviation = self._scale or (0.0, 1.0)
        for one in scored:
            into[one.id] = max(into.get(one.id, -1.0), (one.score - mean) / deviation)

    async def _nodes_named(self) -> dict[str, Sequence[str]]:
        """Return the nodes, with their names, that a text names by a word that is no common one, or its only one.

        The entity's own node is left out.
        """
        named = [
            one for one in await self._search.named_nodes() if one != self._search.sources.self_node
        ]
        names = await self._search.sources.journal.names_of(named) if named else {}
        said = _telling(self._search)
        telling = {word.casefold() for word in (said if len(said) == 1 else self._uncommon)}
        return {
            one: names[one]
            for one in named
            if any(telling & set(name.casefold().split()) for name in names.get(one, ()))
        }

    async def _with_rare_words(self, collection: str) -> set[str]:
        """Return what has an uncommon word of the text that few of a collection have, and is not far in meaning."""
        words = list(self._uncommon)[:_WORDS]
        if not words:
            return set()
        most = max(_LEAST_RARE, self._turns // _RARE_SHARE)
        lists = await asyncio.gather(
            *(self._search.text_matches(collection, word, most + 1) for word in words)
        )
        having = {one.id for hits in lists if len(hits) <= most for one in hits}
        if self._scale is None:
            return having
        meant = "records" if collection == "nodes" else collection
        self._note(
            self._near, await self._search.vector_matches_among(meant, having - self._near.keys())
        )
        return {one for one in having if self._near.get(one, 0.0) >= self._rise + WORD}


def _is_reply(hit: Hit) -> bool:
    """Tell whether no person said a turn: a reply is shown when it is near by itself, not beside better lines."""
    item = hit.item
    return isinstance(item, Turn) and item.kind == "turn" and item.role != "user"


def _owner(hit: Hit) -> str:
    return hit.item.slug if isinstance(hit.item, AnchorPassage) else hit.id


def _beginnings(words: AbstractSet[str]) -> frozenset[str]:
    return frozenset(_ENDING.sub("", word)[:_BEGINNING] for word in words)


def _is_compared(word: str) -> bool:
    """Tell whether a word is compared by itself: of a script without spaces only its pairs are."""
    return word[0] < _WITHOUT_SPACES or len(word) == 2


def _telling(search: Search) -> list[str]:
    said = _TERM.findall(content_words(without_small_talk(search.text)))
    return [
        word
        for word in said
        if len(word) > 1 and word.lower() not in STOP_WORDS and not is_small_talk(word)
    ]


def _uncommon(search: Search) -> dict[str, bool]:
    """Return the words of a text that are names, identifiers or seldom used, in order, and which of them are names.

    A name has a capital where no sentence begins.
    """
    found: dict[str, bool] = {}
    begins = True
    for match in _TERM.finditer(search.text):
        word = match[0]
        is_name = word[0].isupper() and not begins and not is_small_talk(word)
        begins = search.text[match.end() : match.end() + 1] in (".", "!", "?", ":", "\n")
        # In a script without spaces a run of characters is no word: it matches whatever has two of them.
        is_word = word[0] < _WITHOUT_SPACES
        if is_word and len(word) > 2 and word in search.words and (is_name or is_rare(word)):
            found[word] = is_name
    return found


async def scale_of(search: Search) -> tuple[float, float] | None:
    """Return mean and deviation of the cosines of unrelated pairs; None without an embedder."""
    embedder = search.sources.embedder
    if (
        embedder is None or embedder.fingerprint.pooling == "hash"
    ):  # which knows words, and no meaning
        return None
    model = embedder.fingerprint.model
    if model in _shipped().scales:
        return _shipped().scales[model]
    key = f"floor:{model}"
    if kept := await search.sources.journal.get_meta(key):
        mean, deviation = json.loads(kept)
        return float(mean), float(deviation)
    turns = [turn.uuid for turn in await search.sources.journal.recent(_OWN_TEXTS)]
    own = list((await search.sources.indexes.vectors("episodes", turns)).values()) if turns else []
    embedded = await asyncio.to_thread(_embedded, embedder, _shipped().probes)
    enough = len(own) >= _LEAST_TEXTS
    scale = _calibrated(embedded, np.stack(own) if enough else None)
    if enough:
        await search.sources.journal.set_meta(key, json.dumps(scale))
    return scale


@lru_cache(maxsize=8)
def _embedded(embedder: Embedder, probes: tuple[str, ...]) -> tuple[Matrix, Matrix]:
    """Return probes as queries and as passages; once a process, since each recall of a young memory needs them."""
    return np.stack([embedder.embed_query(one) for one in probes]), embedder.embed_passages(probes)


def _calibrated(probes: tuple[Matrix, Matrix], texts: Matrix | None) -> tuple[float, float]:
    """Return mean and deviation of probes against texts; against each other while there are too few texts."""
    queries, passages = probes
    cosines = (
        queries @ texts.T
        if texts is not None
        else (queries @ passages.T)[~np.eye(len(queries), dtype=bool)]
    )
    return float(cosines.mean()), max(float(cosines.std()), 0.01)


@dataclass(frozen=True, slots=True)
class _Scales:
    """What ``config/floor.toml`` says: probes, scales by model, and the models that read English alone."""

    probes: tuple[str, ...]
    scales: Mapping[str, tuple[float, float]]
    english: frozenset[str]


@lru_cache(maxsize=1)
def _shipped() -> _Scales:
    found = tomllib.loads(shipped("config/floor.toml").read_text("utf-8"))
    scales = {
        name: (float(model["mean"]), float(model["deviation"]))
        for name, model in found["models"].items()
    }
    english = {name for name, model in found["models"].items() if model.get("reads") == "english"}
    return _Scales(tuple(found["probes"]), scales, frozenset(english))
