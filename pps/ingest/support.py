"""What a fact owes to the texts that say it: a changed text takes it back, one that says it lets it hold.

A fact that only the old words of a text say is *taken back*: it ends for the world and for what is believed at
one and the same moment. It keeps the text as its support, so that forgetting the text takes the fact along.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pps.core.text import fold
from pps.core.values import Fact
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal

_WORD = re.compile(r"[^\W_]+")
_SHORT = re.compile(r"['’](?:s|m|d|t|ve|re|ll)\b")
_ENDING = re.compile(r"(?<=\w\w\w)(?:ing|ed|es|s)$")
_IDLE_WORDS = """
a an the is are was were be been am has have had do does did and of in on at to for from with as by that this now it
its his her their our my i he she they we you really still also just too so very currently
called named
"""
_IDLE = frozenset(_IDLE_WORDS.split())


def adds_nothing(text: str, fact: Fact, names: Sequence[str]) -> bool:
    """Tell whether a statement has no word that is not in a fact, in the names of its ends or in its relation."""
    known = content_words(" ".join((fact.text, fact.relation.replace("_", " "), *names)))
    return content_words(text) <= known


def content_words(text: str) -> set[str]:
    """Return the words of a text that carry meaning, without their endings."""
    return {_ENDING.sub("", word) for word in _WORD.findall(_SHORT.sub("", fold(text))) if word not in _IDLE}


def taken_back(fact: Fact) -> bool:
    """Tell whether a fact ended because the one text that said it was changed."""
    return fact.kind == "fact" and fact.invalid_at is not None and fact.invalid_at == fact.expired_at


def take_back(fact: Fact, turn: str, at: datetime) -> Fact:
    """Return a fact as it is once a text says it no more: without that support, or ended when it is the only one.

    Relations, and facts that had ended before ``at``, stay as they are when nothing else supports them.
    """
    if fact.kind != "fact":
        return fact
    if others := tuple(dict.fromkeys(one for one in fact.episodes if one != turn)):
        return replace(fact, episodes=others)
    ended = fact.expired_at is not None if fact.invalid_at is None else fact.invalid_at <= at
    return fact if ended else replace(fact, invalid_at=at, expired_at=at)


def said_by(fact: Fact, turn: str) -> Fact:
    """Return a fact as it is once a text says it: supported by that text, once, and no longer taken back."""
    if taken_back(fact):
        return replace(fact, invalid_at=None, expired_at=None, episodes=(turn,))
    return replace(fact, episodes=tuple(dict.fromkeys((*fact.episodes, turn))))


async def with_days(facts: Sequence[Fact], client: IsolatedGraphitiClient, journal: Journal) -> list[Fact]:
    """Return facts of the graph, those without a day from the first text that says them on; the graph has it then."""
    undated = [fact for fact in facts if fact.kind == "fact" and fact.valid_at is None]
    said = await journal.turns(list({turn for fact in undated for turn in fact.episodes}))
    days = {turn.uuid: turn.occurred_at for turn in said}
    begun: dict[str, Fact] = {}
    for fact in undated:
        first = min((days[turn] for turn in fact.episodes if turn in days), default=None)
        if first is not None and (fact.invalid_at is None or first < fact.invalid_at):
            begun[fact.uuid] = replace(fact, valid_at=first)
    if begun:
        await client.save_facts(list(begun.values()), {})
    return [begun.get(fact.uuid, fact) for fact in facts]
