"""The floor: whether a memory has anything to say to a query, and which hits have to do with it.

Silence and answers are two decisions. The first goes by the kind of a prompt (``prompts``) and by
evidence, each piece of which can be told in a sentence: an uncommon word of the query that few
texts of the memory have, a cosine that stands clear of those of unrelated pairs
(``config/floor.toml``), a node that the query names and that something says more of, or, for a
question, retrievers that agree on what they put first. The second judges each hit by itself.

Where the embedder cannot read a query's language, words decide in its place.

Unit of all thresholds of nearness: standard deviations of the cosines of unrelated pairs. They are
compared with how far the nearest of as many unrelated texts is expected above the mean.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pps.config import shipped
from pps.core.recalled import Channel, Evidence, Hit
from pps.core.time_reading import WEEKDAYS
from pps.core.values import AnchorPassage, ChannelName, Fact, Node, Turn, words_of
from pps.index.prompts import (
    ASKS,
    asks_what_was_asked,
    is_small_talk,
    only_asks,
)
from pps.journal.perspective_rows import ids_of
from pps.models.onnx import wordpiece
from pps.models.protocols import Embedder, Matrix
from pps.recall.profiles import Profile
from pps.recall.question import TERM, beyond_names, grams, is_rare
from pps.recall.ranking import is_reply
from pps.recall.search import Scored, Search

# Deviations above the nearest of as many unrelated texts. With MiniLM and 500 turns SURE, NEAR,
# ITEM, WEAK and WORD are cosines of .55, .42, .38, .35 and .30.
SURE = 3.1
"""Enough to fill a pack without a name or a rare word besides."""
NEAR = 1.4
"""Enough to be near at all."""
ITEM = 0.9
"""Enough for an item beside something near."""
WEAK = 0.5
"""Enough for an item beside a name alone."""
WORD = -0.1
"""Enough for an item with a rare word of the query."""
TALK = 0.4
"""Enough for a person who tells of something, to be reminded at all."""
BESIDE = -0.9
"""Enough for one of the best lines of an answer."""

# Deviations above any unrelated text.
LINE = 2.0
"""Enough for one of the best lines of an answer in a small memory.

Of a dozen turns about half of the unrelated ones are above ``BESIDE``.
"""
LOOSE = 1.2
"""Enough for what is about somebody who is named and shares another word."""
NAME_ALONE = 5.2
"""Enough for what shares a name with the query and no other word: a cosine of .44 with MiniLM."""
BEST_LINES = 5
"""Lines of a channel that answer a question, best first, if each has something to do with it."""

# Retrievers agree on an item that is among the first two by words and by meaning, that shares half
# of the words and at least two of them, and lies so many deviations above unrelated pairs. One
# word is enough if it is all that a question about the speaker's own has ("Where do I live?"), and
# the item is the nearest in meaning.
_AGREED_RANK = 2
_AGREED_SHARE = 0.5
_AGREED_WORDS = 2
_AGREED_NEARNESS = 2.5

_MIN_TURNS_COUNTED = 8
_MAX_TURNS_OF_SMALL_MEMORY = 100
_OWN_MATTER_BONUS = 0.9
"""How much lower all of that lies for a query about the speaker's own: only a memory knows it."""
_OWN_MATTERS = re.compile(
    r"\b(?:my|our|mine|ours)\b|(?<!how )\b(?:do|did|am|was|were|have|had|are) (?:i|we)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|me|we|we're|we've|our)\b", re.IGNORECASE)
_MIN_WORDS_OF_TALK = 9
"""Words of a text in the first person that tells of something."""
_OWN_TEXTS_MEASURED = 200
_MIN_OWN_TEXTS = 20
_MAX_UNCOMMON_WORDS = 8
_RARE_SHARE = 100
"""A word is rare in a memory if at most one in so many turns has it."""
_MIN_RARE_TURNS = 3
_CHANNELS_WITH_WORDS: tuple[ChannelName, ...] = ("facts", "episodes", "turns", "nodes")
"""Channels whose items are looked up by a rare word of the query."""
_RECORDS: Mapping[ChannelName, tuple[str, ...]] = {"nodes": ("records",)}
"""Channel → further collections that its items have vectors in."""
_BY_TEXT: Mapping[str, str] = {"nodes": "records"}
"""Collection of texts → the collection of their vectors, where that is another one."""
_STEM_LETTERS = 5
"""Letters by which two words are one, without an ending: "open" and "opens", "lives", "living"."""
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|e)$")
_LATIN_END = 0x250
_SCRIPTS_WITHOUT_SPACES = "\u0e00"
"""The first character of scripts that put no spaces between words; most behind it do not either."""
_MAX_PIECES_PER_WORD = 2.4
"""An English word has 1.1 to 1.4 pieces of an English vocabulary, a word of another language 2.5
to 4."""
_ASKING_CHARACTERS = frozenset(
    "什么怎谁哪吗呢嗎麼誰為为多少几幾的了是在我你您他她它们們这這那有和与與也就都"
    "何誰どこいつなぜのはがをにでとかもですますた"
    "누구언제어디무엇왜"
)
"""Characters of Chinese, Japanese and Korean that ask, refer or join, as ``STOP_WORDS`` do."""
_MIN_WORDS_READ = 3
_UNREAD_SHARE = 0.4
"""Share of a query's words that an item must have if only words decide."""
_UNREAD_RARE_SHARE = 0.25
"""The same if one of them is rare in the memory."""


async def evidence(
    search: Search,
    channels: Mapping[ChannelName, Channel],
    profile: Profile,
    *,
    by_meaning: bool = True,
) -> Evidence:
    """Return how much a memory has to say to a query, and which hits have to do with it.

    Args:
        search: The recall in progress.
        channels: Its hits.
        profile: One without a floor looks for rare words among the hits only, since a note is all
            that it needs.
        by_meaning: False when no embedder answers: words and names are all the evidence.
    """
    if search.kind == "idle" or not search.telling_words:
        return Evidence("nothing")
    scale = await scale_of(search) if by_meaning and is_readable(search) else None
    turn_count = await search.turn_count()
    return await _Floor(search, scale, turn_count).evidence(channels, profile)


async def prepare(search: Search, channels: Iterable[ChannelName], *, everywhere: bool) -> None:
    """Look up what ``evidence`` needs whatever the hits are. It runs beside the retrievers.

    Args:
        search: The recall in progress.
        channels: Those that it fills.
        everywhere: Rare words are looked up in the indexes: of a profile with a floor.
    """
    if search.kind == "idle" or not search.telling_words:
        return
    await search.turn_count()
    if everywhere:
        await _rare_word_lists(search, channels)


async def measure(
    search: Search, channels: Mapping[ChannelName, Channel], *, everywhere: bool
) -> None:
    """Look up how near the hits are that ``evidence`` will judge. It runs beside other look-ups.

    Args:
        search: The recall in progress.
        channels: Its hits.
        everywhere: As for ``prepare``.
    """
    if search.kind == "idle" or not search.telling_words or not is_readable(search):
        return
    if await scale_of(search) is None:
        return
    owners_of = _owners_by_collection(search, channels)
    if everywhere:
        _add_rare(owners_of, await _owners_of_rare_words(search, channels))
    await asyncio.gather(
        *(search.cosines(collection, owners) for collection, owners in owners_of.items())
    )


def is_readable(search: Search) -> bool:
    """Tell whether the embedder knows the query's language, by its script and its word pieces.

    A model that ``config/floor.toml`` does not list is taken to read all languages.
    """
    embedder = search.sources.embedder
    model = embedder.fingerprint.model if embedder else ""
    if model not in _floor_file().english_models:
        return True
    letters = [character for character in search.text if character.isalpha()]
    foreign = sum(ord(character) >= _LATIN_END for character in letters)
    if foreign * 2 > len(letters):
        return False
    words = [word for word in re.findall(r"[^\W\d_]+", search.text) if word[1:].islower()]
    if len(words) < _MIN_WORDS_READ:
        return True
    piece_counts = [len(wordpiece().encode(word, add_special_tokens=False).ids) for word in words]
    return sum(piece_counts) <= _MAX_PIECES_PER_WORD * len(words)


def least_similarity(model: str) -> float | None:
    """Return the cosine from which a model's record answers a question; None if unknown.

    It is measured on labelled questions.
    """
    models = tomllib.loads(shipped("config/floor.toml").read_text("utf-8"))["models"]
    entry = models.get(model, {})
    return float(entry["records"]) if "records" in entry else None


class _Floor:
    """Judges the hits of one recall.

    Args:
        search: The recall in progress.
        scale: Mean and deviation of the cosines of unrelated pairs; None without a model of
            meaning.
        turn_count: How many turns the memory has.
    """

    def __init__(self, search: Search, scale: tuple[float, float] | None, turn_count: int) -> None:
        self._search = search
        self._scale = scale
        self._max_rare_turns = _max_rare_turns(turn_count)
        self._uncommon = _uncommon_words(search)
        # How many deviations the nearest of as many unrelated texts is expected above their mean.
        self._rise = math.sqrt(2 * math.log(max(_MIN_TURNS_COUNTED, turn_count)))
        self._is_own_matter = _OWN_MATTERS.search(search.text) is not None
        if self._is_own_matter:
            self._rise -= _OWN_MATTER_BONUS
        self._least_of_best_lines = self._rise + BESIDE
        if turn_count <= _MAX_TURNS_OF_SMALL_MEMORY:
            self._least_of_best_lines = max(self._least_of_best_lines, LINE)
        self._nearness: dict[str, float] = {}
        self._name_nearness: dict[str, float] = {}
        self._with_rare_word: set[str] = set()
        self._named: set[str] = set()
        self._needed = NEAR
        self._stems_of_hits: dict[str, frozenset[str]] = {}
        self._words = _stems(grams(" ".join(search.telling_words)))
        self._words_beyond_names = self._words

    async def evidence(self, channels: Mapping[ChannelName, Channel], profile: Profile) -> Evidence:
        hits = [hit for channel in channels.values() for hit in channel.hits]
        names_of = await self._distinctively_named_nodes()
        self._named = set(names_of)
        names = [name for node_names in names_of.values() for name in node_names]
        beyond = grams(" ".join(beyond_names(self._search.text, names)))
        self._words_beyond_names = _stems(beyond) & self._words
        rare: Mapping[str, AbstractSet[str]] = {}
        if profile.floor:
            rare = await _owners_of_rare_words(self._search, channels)
        else:
            self._note_uncommon_words(hits)
        await self._measure(channels, profile, rare)
        self._note_rare_words(rare)
        if await self._names_nobody_known():
            self._needed = SURE
        if self._scale is None:
            await self._judge_by_words(hits)
        asking = await self._turns_that_only_ask(hits)
        for id_ in asking:
            self._nearness.pop(id_, None)
        self._with_rare_word -= asking
        return self._judged(channels, [hit for hit in hits if _owner(hit) not in asking])

    # ---- Measuring ----

    async def _distinctively_named_nodes(self) -> dict[str, Sequence[str]]:
        """Return node → names of the nodes that the query names by a word that is no common one.

        A common word counts if it is the query's only one. The entity's own node is left out, and
        so is a weekday: "Friday" says when, and nothing of whom the query is about.
        """
        sources = self._search.sources
        named = [node for node in await self._search.named_nodes() if node != sources.self_node]
        names_of = await sources.journal.names_of(named) if named else {}
        telling = self._search.telling_words
        words = telling if len(telling) == 1 else self._uncommon
        distinctive = {word.casefold() for word in words}.difference(WEEKDAYS)
        nodes: dict[str, Sequence[str]] = {}
        for node in named:
            for name in names_of.get(node, ()):
                if not distinctive.isdisjoint(name.casefold().split()):
                    nodes[node] = names_of[node]
                    break
        return nodes

    async def _measure(
        self,
        channels: Mapping[ChannelName, Channel],
        profile: Profile,
        rare: Mapping[str, AbstractSet[str]],
    ) -> None:
        """Note how far the nearest of the channels, and some items, are above unrelated pairs.

        The items are the hits, and those with a rare word of the query.
        """
        if self._scale is None:
            return
        owners_of = _owners_by_collection(self._search, channels)
        depth_of: dict[str, int] = {}
        for name in channels:
            depth = self._search.depth(profile.channels[name].depth, self._search.request.limit)
            depth_of.update(dict.fromkeys(_collections_measured(self._search, name), depth))
        _add_rare(owners_of, rare)
        for collection, owners in owners_of.items():  # ``measure`` has looked them up already
            await self._measure_collection(collection, owners, depth_of.get(collection))

    async def _measure_collection(
        self, collection: str, owners: AbstractSet[str], depth: int | None
    ) -> None:
        nearest: list[Scored] = []
        if depth is not None:
            nearest = await self._search.vector_matches(collection, depth)
        more = await self._search.cosines(collection, owners - {entry.id for entry in nearest})
        into = self._name_nearness if collection == "nodes" else self._nearness
        self._note(into, [*nearest, *more])

    def _note(self, into: dict[str, float], entries: Sequence[Scored]) -> None:
        mean, deviation = self._scale or (0.0, 1.0)
        for entry in entries:
            nearness = (entry.score - mean) / deviation
            into[entry.id] = max(into.get(entry.id, -1.0), nearness)

    # ---- Rare words ----

    def _note_rare_words(self, owners_of: Mapping[str, AbstractSet[str]]) -> None:
        """Note the items with a rare word of the query, unless they are far from it."""
        least = self._rise + WORD
        for owners in owners_of.values():
            for owner in owners:
                if self._scale is None or self._nearness.get(owner, 0.0) >= least:
                    self._with_rare_word.add(owner)

    def _note_uncommon_words(self, hits: Sequence[Hit]) -> None:
        """Note the hits with any uncommon word of the query: they need no look-up."""
        uncommon = grams(" ".join(self._uncommon))
        for hit in hits:
            if uncommon & grams(f"{hit.text} {hit.passage}"):
                self._with_rare_word.add(_owner(hit))

    async def _names_nobody_known(self) -> bool:
        """Tell whether a query has names and no text has any of them: it is about somebody else."""
        names = [word for word, is_name in self._uncommon.items() if is_name]
        if not names or self._scale is None or self._named:
            return False
        lists_of = await self._search.word_matches(["episodes"], names[:_MAX_UNCOMMON_WORDS], 1)
        return not any(lists_of["episodes"])

    async def _judge_by_words(self, hits: Sequence[Hit]) -> None:
        """Take hits with enough of the query's words for near; there is no model of meaning."""
        telling = grams(" ".join(self._search.telling_words))
        comparable = {word for word in telling if _is_comparable(word)}
        words = {word for word in comparable if _ASKING_CHARACTERS.isdisjoint(word)} or comparable
        rare: set[str] = set()
        ordered = sorted(words)
        lists_of = await self._search.word_matches(["episodes"], ordered, self._max_rare_turns + 1)
        for word, having in zip(ordered, lists_of["episodes"], strict=True):
            if 0 < len(having) <= self._max_rare_turns:
                rare.add(word)
        for hit in hits:
            shared = words & grams(f"{hit.text} {hit.passage}")
            share = _UNREAD_RARE_SHARE if shared & rare else _UNREAD_SHARE
            # A single pair of characters of a script without spaces may be chance, unless it is
            # rare and half of what is asked.
            is_telling = bool(shared & rare) and len(shared) * 2 >= len(words)
            least = 1 if is_telling or any(len(word) > 2 for word in shared) else 2
            if len(shared) >= max(least, share * len(words)):
                self._nearness[_owner(hit)] = self._rise + SURE

    async def _turns_that_only_ask(self, hits: Sequence[Hit]) -> set[str]:
        """Return the turns that only ask.

        No evidence, no answer, unless one asks what was asked.
        """
        if asks_what_was_asked(self._search.request.query):
            return set()
        stored = self._search.sources.journal.perspective_data
        asking = set(await stored.every(ASKS, "episode", ids_of))
        for hit in hits:
            if isinstance(hit.item, Turn) and only_asks(words_of(hit.item)):
                asking.add(hit.id)
        return asking

    # ---- Judging ----

    def _judged(self, channels: Mapping[ChannelName, Channel], hits: Sequence[Hit]) -> Evidence:
        rise = self._rise
        best = max(self._nearness.values(), default=0.0)
        is_named = any(self._is_about_a_name(hit) for hit in hits)
        is_agreed = (
            self._search.kind == "question"
            and self._needed == NEAR
            and any(self._is_agreed(hit) for hit in hits)
        )
        is_reminded = self._tells_of_something() and best >= rise + TALK
        is_near = best >= rise + self._needed
        if not (is_near or is_named or self._with_rare_word or is_agreed or is_reminded):
            return Evidence("nothing")
        is_certain = (
            self._scale is None
            or best >= rise + SURE
            or (is_near and (is_named or bool(self._with_rare_word)))
            or is_agreed
            or is_reminded
        )
        least = rise + (ITEM if best >= rise + NEAR else WEAK)
        lines = self._best_lines(channels, hits) if is_certain else frozenset[str]()
        return Evidence(
            "much" if is_certain else "little",
            self._passing(hits, least) | lines,
            self._passing(hits, rise + ITEM) | lines,
        )

    def _tells_of_something(self) -> bool:
        """Tell whether a person tells of something at some length, whatever is asked beside it."""
        text = self._search.text
        return (
            self._search.kind != "task"
            and self._scale is not None
            and len(TERM.findall(text)) >= _MIN_WORDS_OF_TALK
            and _FIRST_PERSON.search(text) is not None
        )

    def _is_agreed(self, hit: Hit) -> bool:
        """Tell whether words and meaning both put a hit first, and it has enough of the words."""
        beyond = _AGREED_RANK + 1
        has_one_word = self._is_own_matter and len(self._words) == 1
        max_dense_rank = 1 if has_one_word else _AGREED_RANK
        if hit.ranks.get("bm25", beyond) > _AGREED_RANK:
            return False
        if hit.ranks.get("dense", beyond) > max_dense_rank:
            return False
        min_words = 1 if has_one_word else max(_AGREED_WORDS, _AGREED_SHARE * len(self._words))
        shared = self._words & self._stems_of(hit)
        return len(shared) >= min_words and self._nearness.get(_owner(hit), 0.0) >= _AGREED_NEARNESS

    def _best_lines(
        self, channels: Mapping[ChannelName, Channel], hits: Sequence[Hit]
    ) -> frozenset[str]:
        """Return the first facts and turns that have something to do with the query."""
        if self._search.kind == "task" or self._search.about_the_person:
            return frozenset()
        judged = {hit.id for hit in hits}
        lines: set[str] = set()
        for name in channels.keys() & {"facts", "episodes", "turns"}:
            first = [hit for hit in channels[name].hits if hit.id in judged][:BEST_LINES]
            for hit in first:
                # A reply is shown when it is near by itself, not beside better lines.
                is_answer = not (isinstance(hit.item, Turn) and is_reply(hit.item))
                least = self._least_of(hit, self._least_of_best_lines)
                if is_answer and self._nearness_of(hit) >= least:
                    lines.add(hit.id)
        return frozenset(lines)

    def _passing(self, hits: Sequence[Hit], least: float) -> frozenset[str]:
        """Return the ids of the hits that pass.

        The turns that state a passing fact pass with it.
        """
        passing = {hit.id for hit in hits if self._passes(hit, least)}
        for hit in hits:
            if isinstance(hit.item, Fact) and hit.id in passing:
                passing.update(hit.item.episodes)
        return frozenset(passing)

    def _passes(self, hit: Hit, least: float) -> bool:
        least = self._least_of(hit, least)
        owner = _owner(hit)
        if owner in self._with_rare_word and not self._shares_a_name_alone(hit):
            return True
        if self._nearness.get(owner, 0.0) >= least or self._is_about_a_name(hit):
            return True
        if isinstance(hit.item, Node):  # a node is shown when the query is about it
            is_sure = self._name_nearness.get(hit.id, 0.0) >= self._rise + SURE
            return hit.id in self._named or is_sure
        return isinstance(hit.item, Fact) and self._nearness_of(hit) >= least

    def _is_about_a_name(self, hit: Hit) -> bool:
        """Tell whether a hit is about a node that the query names and says more of what it asks."""
        if not self._named:
            return False
        item = hit.item
        if isinstance(item, Node):
            return hit.id in self._named and not self._words_beyond_names
        words = self._stems_of(hit)
        is_theirs = isinstance(item, Fact) and not self._named.isdisjoint(
            (item.subject, item.object)
        )
        has_name = bool((self._words - self._words_beyond_names) & words)
        if not (is_theirs or hit.ranks.get("named") is not None or has_name):
            return False
        if not self._words_beyond_names:
            return True
        is_loosely_near = self._nearness.get(_owner(hit), 0.0) >= LOOSE
        return bool(self._words_beyond_names & words) and is_loosely_near

    def _least_of(self, hit: Hit, least: float) -> float:
        """Return how near a hit must be: a shared name alone makes a cosine, and no answer."""
        return max(least, NAME_ALONE) if self._shares_a_name_alone(hit) else least

    def _shares_a_name_alone(self, hit: Hit) -> bool:
        words = self._stems_of(hit)
        shared_names = (self._words - self._words_beyond_names) & words
        if not shared_names or not self._words_beyond_names:
            return False
        shares_several = len(self._named) >= 2 and len(shared_names) >= 2
        return not shares_several and not self._words_beyond_names & words

    def _stems_of(self, hit: Hit) -> frozenset[str]:
        """Return the stems of a hit's text; each hit is judged several times."""
        stems = self._stems_of_hits.get(hit.text)
        if stems is None:
            stems = self._stems_of_hits[hit.text] = _stems(grams(hit.text))
        return stems

    def _nearness_of(self, hit: Hit) -> float:
        """Return how far a hit, or a turn that states the fact, stands above unrelated pairs."""
        owners = [_owner(hit)]
        if isinstance(hit.item, Fact):
            owners += hit.item.episodes
        return max(self._nearness.get(owner, 0.0) for owner in owners)


def _owner(hit: Hit) -> str:
    return hit.item.slug if isinstance(hit.item, AnchorPassage) else hit.id


def _stems(words: AbstractSet[str]) -> frozenset[str]:
    return frozenset(_ENDING.sub("", word)[:_STEM_LETTERS] for word in words)


def _is_comparable(word: str) -> bool:
    """Tell whether a word is compared by itself: of a script without spaces only its pairs are."""
    return word[0] < _SCRIPTS_WITHOUT_SPACES or len(word) == 2


def _collections_measured(search: Search, channel: ChannelName) -> tuple[str, ...]:
    """Return the collections that have vectors of a channel's items."""
    return (*search.collections(channel), *_RECORDS.get(channel, ()))


def _owners_by_collection(
    search: Search, channels: Mapping[ChannelName, Channel]
) -> dict[str, set[str]]:
    """Return collection → the owners of the hits that may have a vector in it."""
    owners_of: dict[str, set[str]] = {}
    for name, channel in channels.items():
        for collection in _collections_measured(search, name):
            owners_of.setdefault(collection, set()).update(map(_owner, channel.hits))
    return owners_of


def _text_collections(search: Search, channels: Iterable[ChannelName]) -> list[str]:
    """Return the collections of channels whose words are looked up, in order."""
    collections: set[str] = set()
    for name in channels:
        if name in _CHANNELS_WITH_WORDS:
            collections.update(search.collections(name))
    return sorted(collections)


async def _rare_word_lists(
    search: Search, channels: Iterable[ChannelName]
) -> dict[str, list[list[Scored]]]:
    """Return collection → items of each uncommon word, at most one more than rare words have."""
    words = list(_uncommon_words(search))[:_MAX_UNCOMMON_WORDS]
    most = _max_rare_turns(await search.turn_count())
    return await search.word_matches(_text_collections(search, channels), words, most + 1)


async def _owners_of_rare_words(
    search: Search, channels: Iterable[ChannelName]
) -> dict[str, set[str]]:
    """Return collection → its items with an uncommon word of the query that few of them have."""
    most = _max_rare_turns(await search.turn_count())
    owners_of: dict[str, set[str]] = {}
    for collection, lists in (await _rare_word_lists(search, channels)).items():
        owners = owners_of[collection] = set[str]()
        for entries in lists:
            if len(entries) <= most:
                owners.update(entry.id for entry in entries)
    return owners_of


def _add_rare(owners_of: dict[str, set[str]], rare: Mapping[str, AbstractSet[str]]) -> None:
    """Add items with rare words to the items to measure, under the collection of their vectors."""
    for collection, owners in rare.items():
        owners_of.setdefault(_BY_TEXT.get(collection, collection), set()).update(owners)


def _max_rare_turns(turn_count: int) -> int:
    """Return how many items of a collection may have a word that is rare in it."""
    return max(_MIN_RARE_TURNS, turn_count // _RARE_SHARE)


def _uncommon_words(search: Search) -> dict[str, bool]:
    """Return the query's names, identifiers and rare words → whether it is a name.

    A name has a capital where no sentence begins. A weekday is uncommon and no name.
    """
    uncommon: dict[str, bool] = {}
    begins_sentence = True
    for match in TERM.finditer(search.text):
        word = match[0]
        is_weekday = word.casefold() in WEEKDAYS
        begins_upper = word[0].isupper() and not begins_sentence
        is_name = begins_upper and not is_weekday and not is_small_talk(word)
        following = search.text[match.end() : match.end() + 1]
        begins_sentence = following in (".", "!", "?", ":", "\n")
        # In a script without spaces a run of characters is no word: it matches any two of them.
        is_word = word[0] < _SCRIPTS_WITHOUT_SPACES and len(word) > 2 and word in search.words
        if is_word and (is_name or is_weekday or is_rare(word)):
            uncommon[word] = is_name
    return uncommon


# ---- The scale of a model ----


async def scale_of(search: Search) -> tuple[float, float] | None:
    """Return mean and deviation of the cosines of unrelated pairs; None without an embedder.

    That of a shipped model is in ``config/floor.toml``. That of another is measured with the
    memory's latest texts, and stored once there are enough of them.
    """
    return await search.once("scale", lambda: _scale_of(search))


async def _scale_of(search: Search) -> tuple[float, float] | None:
    embedder = search.sources.embedder
    # A hash embedder knows words and no meaning.
    if embedder is None or embedder.fingerprint.pooling == "hash":
        return None
    model = embedder.fingerprint.model
    if model in _floor_file().scales:
        return _floor_file().scales[model]
    journal = search.sources.journal
    key = f"floor:{model}"
    stored = await journal.get_meta(key)
    if stored:
        mean, deviation = json.loads(stored)
        return float(mean), float(deviation)
    turns = [turn.uuid for turn in await journal.recent(_OWN_TEXTS_MEASURED)]
    vectors = await search.sources.indexes.vectors("episodes", turns) if turns else {}
    probes = await asyncio.to_thread(_embedded_probes, embedder, _floor_file().probes)
    if len(vectors) < _MIN_OWN_TEXTS:
        return _measured_scale(probes, None)
    scale = _measured_scale(probes, np.stack(list(vectors.values())))
    await journal.set_meta(key, json.dumps(scale))
    return scale


@lru_cache(maxsize=8)
def _embedded_probes(embedder: Embedder, probes: tuple[str, ...]) -> tuple[Matrix, Matrix]:
    """Return probes as queries and as passages.

    Cached, since each recall of a young memory needs them.
    """
    queries = np.stack([embedder.embed_query(probe) for probe in probes])
    return queries, embedder.embed_passages(probes)


def _measured_scale(probes: tuple[Matrix, Matrix], texts: Matrix | None) -> tuple[float, float]:
    """Return mean and deviation of probes against texts; against each other without texts."""
    queries, passages = probes
    if texts is None:
        pairs = ~np.eye(len(queries), dtype=bool)
        cosines = (queries @ passages.T)[pairs]
    else:
        cosines = queries @ texts.T
    return float(cosines.mean()), max(float(cosines.std()), 0.01)


@dataclass(frozen=True, slots=True)
class _FloorFile:
    """``config/floor.toml``: probes, scales by model, and the models that read English alone."""

    probes: tuple[str, ...]
    scales: Mapping[str, tuple[float, float]]
    english_models: frozenset[str]


@lru_cache(maxsize=1)
def _floor_file() -> _FloorFile:
    tree = tomllib.loads(shipped("config/floor.toml").read_text("utf-8"))
    models = tree["models"]
    scales = {
        name: (float(model["mean"]), float(model["deviation"])) for name, model in models.items()
    }
    english = frozenset(name for name, model in models.items() if model.get("reads") == "english")
    return _FloorFile(tuple(tree["probes"]), scales, english)
