"""The floor: whether a memory has anything to say to a text, and which of what was found has to do with it.

Three things are evidence, and each can be told in a sentence: a node that the text names, an uncommon word of the text
that few texts of the memory have, and a cosine that stands clear of those of unrelated pairs (``config/floor.toml``).
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from pps.config import shipped
from pps.core.recalled import Channel, Evidence, Hit
from pps.core.values import AnchorPassage, ChannelName, Fact, Node
from pps.models.onnx import wordpiece
from pps.models.protocols import Embedder, Matrix
from pps.recall.profiles import ChannelProfile, Profile
from pps.recall.query import Ask, Scored
from pps.recall.question import IDLE, content_words, grams

SURE, NEAR, ITEM, WEAK, WORD = 3.1, 1.4, 0.9, 0.5, -0.1
"""How many standard deviations a text must stand above the nearest of so many unrelated ones: to fill a pack without a
name or a rare word besides; to be near at all; beside something near; beside a name alone; with a rare word of it.
With MiniLM and 500 turns cosines of .55, .42, .38, .35 and .30."""
LOOSE = 1.2
"""The same above any unrelated one: enough beside something near of somebody who is named."""
_FEWEST = 8
_OWN = 0.9
"""How much lower all of that lies for a text about what is the speaker's own: only a memory can know it."""
_OWN_MATTERS = re.compile(
    r"\b(?:my|our|mine|ours)\b|(?<!how )\b(?:do|did|am|was|were|have|had|are) (?:i|we)\b",
    re.IGNORECASE,
)
_OWN_TEXTS, _LEAST_TEXTS = 200, 20
_WORDS = 8
_COMMON_PIECES = 7_000
"""The vocabulary is in order of frequency: a word that is one of its first pieces is a common one."""
_RARE_SHARE, _LEAST_RARE = 100, 3
_TERM = re.compile(r"\w+(?:[.:/_-]\w+)*")
_PHRASES = re.compile(
    r"\b(?:good (?:morning|afternoon|evening|night|day)|see you(?: \w+)?|how are you(?: \w+)?|how's it going"
    r"|what time is it|what's up|what do you think|(?:that|it)(?:'s| is)? works?|sounds? (?:good|great|right|fine)"
    r"|never mind|thank you|(?:go|move|carry|keep) (?:on|ahead|going)|let me \w+|(?:one|a) (?:moment|second|minute)"
    r"|next step|try again)\b",
    re.IGNORECASE,
)
_SMALL_TALK_WORDS = """
agree agreed alright anyway awesome bye cheers continue cool correct exactly excellent fine glad goodbye good great haha
hello hey hi hm hmm let let's lol lovely no nope now ok okay perfect please really right sorry sure thank thanks there
understood wait welcome well wonderful wow wrong yeah yep yes yet again
"""
_SMALL_TALK = frozenset(_SMALL_TALK_WORDS.split())
"""What is said to keep a talk going; a text of nothing else asks nothing of a memory."""


async def evidence(
    ask: Ask, channels: Mapping[ChannelName, Channel], profile: Profile, *, by_meaning: bool = True
) -> Evidence:
    """Return how much a memory has to say to a text, and which of the hits have to do with it.

    Args:
        ask: The recall's own.
        channels: What it found.
        profile: How; one without a floor looks for rare words among what was found only, since a note is all it is for.
        by_meaning: False when no embedder answers: words and names are all the evidence.
    """
    if not _telling(ask):
        return Evidence("nothing")
    scale = await _scale(ask) if by_meaning else None
    turns = await ask.once("turns", ask.sources.journal.count_turns)
    return await _Floor(ask, scale, turns).evidence(channels, profile)


def least_similarity(model: str) -> float | None:
    """Return the cosine from which a model's record answers a question, measured on labelled ones; None if unknown."""
    found = tomllib.loads(shipped("config/floor.toml").read_text("utf-8"))["models"].get(model, {})
    return float(found["records"]) if "records" in found else None


class _Floor:
    """What is evidence: how far texts, and nodes' names, stand above unrelated pairs; rare words; named nodes.

    Args:
        ask: The recall's own.
        scale: Mean and deviation of the cosines of unrelated pairs; None where nothing knows what texts mean.
        turns: How many the memory has.
    """

    def __init__(self, ask: Ask, scale: tuple[float, float] | None, turns: int) -> None:
        self._ask = ask
        self._scale = scale
        self._turns = turns
        self._uncommon = _uncommon(ask)
        # How many deviations the nearest of as many unrelated texts is expected above their mean.
        rise = math.sqrt(2 * math.log(max(_FEWEST, turns)))
        self._rise = rise - _OWN if _OWN_MATTERS.search(ask.text) else rise
        self._near: dict[str, float] = {}
        self._about: dict[str, float] = {}
        self._exact: set[str] = set()
        self._named: set[str] = set()

    async def evidence(self, channels: Mapping[ChannelName, Channel], profile: Profile) -> Evidence:
        hits = [hit for channel in channels.values() for hit in channel.hits]
        self._named = await self._nodes_named()
        for name, channel in channels.items():
            await self._measure(channel, profile.channels[name])
        if profile.floor:
            for name in channels.keys() & {"facts", "episodes", "turns", "nodes"}:
                for collection in self._ask.collections(name):
                    self._exact |= await self._with_rare_words(collection)
        else:
            rare = grams(" ".join(self._uncommon))
            self._exact |= {
                _owner(hit) for hit in hits if rare & grams(f"{hit.text} {hit.passage}")
            }
        if (
            self._scale is None
        ):  # half of the words: all that can be said where nothing knows what texts mean
            words = grams(" ".join(_telling(self._ask)))
            sharing = (
                hit
                for hit in hits
                if 2 * len(words & grams(f"{hit.text} {hit.passage}")) >= len(words)
            )
            self._near.update((_owner(hit), self._rise + SURE) for hit in sharing)
        return self._judged(hits)

    def _judged(self, hits: Sequence[Hit]) -> Evidence:
        rise, named = self._rise, bool(self._named)
        best = max(self._near.values(), default=0.0)
        if best < rise + NEAR and not named and not self._exact:
            return Evidence("nothing")
        certain = (
            self._scale is None
            or best >= rise + SURE
            or (best >= rise + NEAR and (named or bool(self._exact)))
        )
        least = LOOSE if certain and named else rise + (ITEM if best >= rise + NEAR else WEAK)
        return Evidence(
            "much" if certain else "little",
            self._passing(hits, least),
            self._passing(hits, rise + ITEM),
        )

    def _passing(self, hits: Sequence[Hit], least: float) -> frozenset[str]:
        """Return the ids of the hits that have to do with a text; a turn comes with a fact that it says, and back."""
        passing = {hit.id for hit in hits if self._passes(hit, least)}
        facts = [hit.item for hit in hits if isinstance(hit.item, Fact) and hit.id in passing]
        return frozenset(passing.union(*(fact.episodes for fact in facts)))

    def _passes(self, hit: Hit, least: float) -> bool:
        owner, near = _owner(hit), self._near
        if owner in self._exact or near.get(owner, 0.0) >= least:
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
            *self._ask.collections(channel.name),
            *(("records",) if channel.name == "nodes" else ()),
        )
        for collection in collections if self._scale else ():
            nearest = await self._ask.similar(
                collection, self._ask.depth(profile.depth, self._ask.request.limit)
            )
            more = await self._ask.similar_among(collection, owners - {one.id for one in nearest})
            self._note(self._about if collection == "nodes" else self._near, [*nearest, *more])

    def _note(self, into: dict[str, float], scored: Sequence[Scored]) -> None:
        mean, deviation = self._scale or (0.0, 1.0)
        for one in scored:
            into[one.id] = max(into.get(one.id, -1.0), (one.score - mean) / deviation)

    async def _nodes_named(self) -> set[str]:
        """Return the nodes that a text names by a word that is no common one, or its only one; not the entity's own."""
        named = [one for one in await self._ask.named() if one != self._ask.sources.self_node]
        names = await self._ask.sources.journal.names_of(named) if named else {}
        said = _telling(self._ask)
        telling = {word.casefold() for word in (said if len(said) == 1 else self._uncommon)}
        return {
            one
            for one in named
            if any(telling & set(name.casefold().split()) for name in names.get(one, ()))
        }

    async def _with_rare_words(self, collection: str) -> set[str]:
        """Return what has an uncommon word of the text that few of a collection have, and is not far in meaning."""
        words = self._uncommon[:_WORDS]
        if not words:
            return set()
        most = max(_LEAST_RARE, self._turns // _RARE_SHARE)
        lists = await asyncio.gather(
            *(self._ask.matches(collection, word, most + 1) for word in words)
        )
        having = {one.id for hits in lists if len(hits) <= most for one in hits}
        if self._scale is None:
            return having
        meant = "records" if collection == "nodes" else collection
        self._note(self._near, await self._ask.similar_among(meant, having - self._near.keys()))
        return {one for one in having if self._near.get(one, 0.0) >= self._rise + WORD}


def _owner(hit: Hit) -> str:
    return hit.item.slug if isinstance(hit.item, AnchorPassage) else hit.id


def _telling(ask: Ask) -> list[str]:
    said = _TERM.findall(content_words(_PHRASES.sub(" ", ask.text)))
    return [word for word in said if len(word) > 1 and word.lower() not in _SMALL_TALK | IDLE]


def _uncommon(ask: Ask) -> list[str]:
    """Return the words of a text that are names, identifiers or seldom used, in order."""
    found: dict[str, None] = {}
    begins = True
    for match in _TERM.finditer(ask.text):
        word = match[0]
        named = word[0].isupper() and not begins and word.lower() not in _SMALL_TALK
        begins = ask.text[match.end() : match.end() + 1] in (".", "!", "?", ":", "\n")
        if len(word) > 2 and word in ask.words and (named or _is_rare(word)):
            found[word] = None
    return list(found)


@lru_cache(maxsize=4096)
def _is_rare(word: str) -> bool:
    """Tell whether English seldom has a word, or it is an identifier."""
    if word.isdigit():
        return len(word) > 3  # one of a house or a line tells nothing
    if not word.isalpha():
        return True
    pieces = wordpiece().encode(word, add_special_tokens=False).ids
    return len(pieces) > 1 or pieces[0] >= _COMMON_PIECES


async def _scale(ask: Ask) -> tuple[float, float] | None:
    """Return mean and deviation of the cosines of unrelated pairs; None without an embedder."""
    embedder = ask.sources.embedder
    if (
        embedder is None or embedder.fingerprint.pooling == "hash"
    ):  # which knows words, and no meaning
        return None
    probes, table = _shipped()
    model = embedder.fingerprint.model
    if model in table:
        return table[model]
    key = f"floor:{model}"
    if kept := await ask.sources.journal.get_meta(key):
        mean, deviation = json.loads(kept)
        return float(mean), float(deviation)
    turns = [turn.uuid for turn in await ask.sources.journal.recent(_OWN_TEXTS)]
    own = list((await ask.sources.indexes.vectors("episodes", turns)).values()) if turns else []
    embedded = await asyncio.to_thread(_embedded, embedder, probes)
    enough = len(own) >= _LEAST_TEXTS
    scale = _calibrated(embedded, np.stack(own) if enough else None)
    if enough:
        await ask.sources.journal.set_meta(key, json.dumps(scale))
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


@lru_cache(maxsize=1)
def _shipped() -> tuple[tuple[str, ...], Mapping[str, tuple[float, float]]]:
    found = tomllib.loads(shipped("config/floor.toml").read_text("utf-8"))
    scales = {
        name: (float(one["mean"]), float(one["deviation"])) for name, one in found["models"].items()
    }
    return tuple(found["probes"]), scales
