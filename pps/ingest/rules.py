"""*rules* extraction: nodes and facts from a turn's words alone, offline and deterministic.

It prefers saying too little to inventing: names the graph knows, ``[[links]]``, ``#tags``, proper
nouns inside a sentence, and a short list of plain English subject-verb-object sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pps.core.values import FactDraft, NodeDraft, Turn
from pps.ingest.steps import links_in, with_plain_links, without_code

_NAME = r"[A-Z][\w'’-]*(?:\s+(?:(?:of|de|van|von|da|la|al)\s+)?[A-Z][\w'’-]*){0,3}"
_PROPER = re.compile(rf"(?<=[a-z,;:]\s)({_NAME})")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_VERBS = {
    r"(?:live|lives|am living|is living)\s+in": "LIVES_IN",
    r"(?:moved|have moved|has moved)\s+to": "MOVED_TO",
    r"(?:work|works|am working|is working)\s+(?:at|for)": "WORKS_AT",
    r"(?:work|works|am working|is working)\s+on": "WORKS_ON",
    r"(?:like|likes|love|loves|enjoy|enjoys)": "LIKES",
    r"(?:dislike|dislikes|hate|hates)": "DISLIKES",
    r"(?:own|owns|have|has|adopted|bought)": "HAS",
    r"(?:use|uses|am using|is using)": "USES",
    r"(?:know|knows|met)": "KNOWS",
    r"(?:married)": "MARRIED",
    r"(?:am|is)\s+(?:a|an|the)": "IS_A",
}
_OBJECT = r"(?P<object>[^,.;:!?\n]{2,60})"
_FACTS = [
    (re.compile(rf"^(?P<subject>I|{_NAME})\s+(?:now\s+|also\s+|still\s+)?{verb}\s+{_OBJECT}"), relation)
    for verb, relation in _VERBS.items()
]
_NOT_NAMES = frozenset(
    re.split(
        r"\s+",
        "i i'm i've i'll i'd the a an it this that these those he she we they you monday tuesday wednesday thursday "
        "friday saturday sunday january february march april may june july august september october november "
        "december ok okay yes no mr mrs ms dr",
    )
)


@dataclass(frozen=True, slots=True)
class Found:
    """What the rules found in one turn."""

    nodes: tuple[NodeDraft, ...]
    facts: tuple[FactDraft, ...]
    links: tuple[str, ...]


def extract(turn: Turn) -> Found:
    """Return the nodes and facts that a turn's words show without any model.

    ``I`` stands for the turn's actor; without one, first-person sentences give no fact.
    """
    prose = without_code(turn.content)
    links = links_in(turn.content)
    facts = tuple(_facts(prose, turn.actor))
    names = dict.fromkeys((*links, *_proper_nouns(with_plain_links(prose))))
    stated = {end for fact in facts for end in (fact.subject, fact.object)}
    return Found(tuple(NodeDraft(name) for name in names if name not in stated), facts, links)


def _proper_nouns(prose: str) -> Iterator[str]:
    for match in _PROPER.findall(prose):
        if match.casefold() not in _NOT_NAMES and len(match) > 1:
            yield match


def _facts(prose: str, actor: str) -> Iterator[FactDraft]:
    for sentence in _SENTENCE.split(prose):
        if sentence.rstrip().endswith("?"):
            continue
        for pattern, relation in _FACTS:
            match = pattern.match(sentence.strip())
            if match and (fact := _fact(match, relation, actor, sentence.strip())):
                yield fact
                break


def _fact(match: re.Match[str], relation: str, actor: str, sentence: str) -> FactDraft | None:
    subject = actor if match["subject"] == "I" else match["subject"]
    target = _noun_phrase(match["object"])
    if not subject or not target or subject.casefold() in _NOT_NAMES:
        return None
    return FactDraft(subject=subject, relation=relation, object=target, text=_third_person(sentence, match, actor))


def _noun_phrase(text: str) -> str:
    """Return the object up to a clause's beginning, without its article; empty when too long to name a thing."""
    phrase = re.split(r"\s+(?:and|but|because|since|when|where|which|who|that|so|if|with|for|at|in|on)\s+", text)[0]
    phrase = re.sub(r"^(?:a|an|the|my|our|his|her|their)\s+", "", phrase.strip())
    return phrase if 1 <= len(phrase.split()) <= 5 else ""


def _third_person(sentence: str, match: re.Match[str], actor: str) -> str:
    return f"{actor}: {sentence}" if match["subject"] == "I" else sentence
