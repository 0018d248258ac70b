"""Find the turns, facts, nodes and anchors that have a name, word for word.

Every text is read and compared, so that the answer "nothing mentions it" is true. That takes about
a second for 100,000 turns and facts; people ask for it, recall never does.
"""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from pps.core.reports import Mentions, ShownItem
from pps.core.text import UNSEEN_CHARACTERS, fold, one_line
from pps.core.values import SELF, Fact, Node, Turn, speaker_of, words_of
from pps.ingest.anchors import Anchors
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal

SHOWN_CHARACTERS = 200
MOST_SHOWN = 20
"""Most items of each kind that are shown with their texts."""
MentionKind: TypeAlias = Literal["turns", "facts", "nodes", "anchors", "copies"]
_SHORTEST = 2
"""Least characters of a name: a single letter is in every text."""
_PAGE = 1_000


_Item = TypeVar("_Item")


_UNSEEN = re.compile(rf"[{UNSEEN_CHARACTERS}\u200c\u200d]")
_MARKED = re.compile(r"(?<=[a-z])[\u0300-\u036f]+")


class NamePattern:
    """Finds any of some names in a text as whole words, with or without a possessive ending.

    Case, marks on Latin letters and characters that are not seen make no difference; ``_`` ends a
    word, as in ``@wren_alder``.
    """

    def __init__(self, names: Iterable[str]) -> None:
        folded = dict.fromkeys(_plain(name) for name in names)
        wanted = [_pattern_of(name) for name in folded if len(name) >= _SHORTEST]
        self._pattern = re.compile("|".join(wanted)) if wanted else None

    def is_in(self, *texts: str) -> bool:
        if self._pattern is None:
            return False
        return any(self._pattern.search(_plain(text)) for text in texts)


def _plain(text: str) -> str:
    if text.isascii():
        return fold(text)
    unmarked = _MARKED.sub("", unicodedata.normalize("NFD", fold(_UNSEEN.sub("", text))))
    return unicodedata.normalize("NFC", unmarked)


def _pattern_of(folded: str) -> str:
    """Return a pattern for a folded name; in scripts without spaces it needs no word ends."""
    before = "" if _is_unspaced(folded[0]) else r"(?<![^\W_])"
    after = "" if _is_unspaced(folded[-1]) else r"s?(?![^\W_])"
    return before + re.escape(folded) + after


def _is_unspaced(character: str) -> bool:
    if unicodedata.east_asian_width(character) in ("W", "F"):
        return True
    return unicodedata.name(character, "").startswith(("THAI", "LAO", "KHMER", "MYANMAR"))


def shown_turn(turn: Turn) -> ShownItem:
    return ShownItem("turn", turn.uuid, _line(f"{speaker_of(turn)}: {words_of(turn)}"))


def shown_fact(fact: Fact) -> ShownItem:
    return ShownItem("fact", fact.uuid, _line(fact.text))


def shown_node(node: Node) -> ShownItem:
    return ShownItem("node", node.uuid, _line(f"{node.name} ({node.kind})"))


def shown_anchor(slug: str, title: str) -> ShownItem:
    return ShownItem("anchor", slug, _line(title))


def _line(text: str) -> str:
    return one_line(text, SHOWN_CHARACTERS)


@dataclass(frozen=True, slots=True)
class NameMentions:
    """All items that have one of the names, each with its text."""

    names: tuple[str, ...]
    turns: tuple[ShownItem, ...] = ()
    facts: tuple[ShownItem, ...] = ()
    nodes: tuple[ShownItem, ...] = ()
    anchors: tuple[ShownItem, ...] = ()

    def ids(self, kinds: Iterable[MentionKind]) -> list[str]:
        """Return the ids of the items of the given kinds."""
        return [item.id for kind in kinds if kind != "copies" for item in self._of(kind)]

    def without(self, ids: Collection[str]) -> NameMentions:
        """Return a copy without the items of the given ids."""

        def left(items: tuple[ShownItem, ...]) -> tuple[ShownItem, ...]:
            return tuple(item for item in items if item.id not in ids)

        return NameMentions(
            self.names,
            left(self.turns),
            left(self.facts),
            left(self.nodes),
            left(self.anchors),
        )

    def report(self) -> Mentions:
        groups = (self.turns, self.facts, self.nodes, self.anchors)
        return Mentions(
            self.names,
            len(self.turns),
            len(self.facts),
            len(self.nodes),
            len(self.anchors),
            items=tuple(item for group in groups for item in group[:MOST_SHOWN]),
        )

    def _of(self, kind: MentionKind) -> tuple[ShownItem, ...]:
        groups = {
            "turns": self.turns,
            "facts": self.facts,
            "nodes": self.nodes,
            "anchors": self.anchors,
        }
        return groups[kind]


class MentionFinder:
    """Searches all texts of one entity for names."""

    def __init__(self, client: IsolatedGraphitiClient, journal: Journal, anchors: Anchors) -> None:
        self._client = client
        self._journal = journal
        self._anchors = anchors

    async def find(
        self,
        names: Sequence[str],
        nodes: Sequence[str] = (),
        turns: Sequence[str] = (),
        *,
        beside: Sequence[str] = (),
    ) -> NameMentions:
        """Return the texts that have one of the names, or refer to one of the nodes in other words.

        Args:
            names: Compared folded, as whole words; those of one character are left out.
            nodes: Turns that mention one of these nodes match too, such as "Bob told me about her".
            turns: Turns that match in any case.
            beside: Further names; if there are any, a text must have one of these too.

        Raises:
            StoreUnavailable: A store does not answer.
        """
        first = NamePattern(names)
        second = NamePattern(beside)

        def says(*texts: str) -> bool:
            return first.is_in(*texts) and (not beside or second.is_in(*texts))

        linked = set(turns)
        for mentioning in (await self._client.episodes_of_nodes(nodes)).values() if nodes else ():
            linked.update(mentioning)
        found_turns = await _matching(
            lambda last: self._journal.scan(last.seq if last else 0, _PAGE),
            lambda turn: turn.uuid in linked or says(turn.content),
        )
        found_facts = await _matching(
            lambda last: self._client.scan_facts(last.uuid if last else "", _PAGE),
            lambda fact: fact.kind == "fact" and says(fact.text),
        )
        found_nodes = await _matching(
            lambda last: self._client.scan_nodes(last.uuid if last else "", _PAGE),
            lambda node: node.kind != SELF and says(*_texts(node)),
        )
        anchors = await self._anchors.texts()
        records = await self._journal.records.of_turns([turn.uuid for turn in found_turns])
        shown_as_turns = {*records.values()}
        return NameMentions(
            tuple(dict.fromkeys(names)),
            tuple(map(shown_turn, found_turns)),
            tuple(map(shown_fact, found_facts)),
            tuple(shown_node(node) for node in found_nodes if node.uuid not in shown_as_turns),
            tuple(
                shown_anchor(anchor.slug, anchor.title)
                for anchor in anchors
                if says(anchor.title, anchor.text, *anchor.tags)
            ),
        )


async def _matching(
    page_after: Callable[[_Item | None], Awaitable[list[_Item]]],
    matches: Callable[[_Item], bool],
) -> list[_Item]:
    """Return the items that match, page by page; comparing runs in a thread."""
    matching: list[_Item] = []
    last: _Item | None = None
    while page := await page_after(last):
        last = page[-1]
        matching += await asyncio.to_thread(_filtered, page, matches)
    return matching


def _filtered(items: Sequence[_Item], matches: Callable[[_Item], bool]) -> list[_Item]:
    return [item for item in items if matches(item)]


def _texts(node: Node) -> tuple[str, ...]:
    attributes = json.dumps(node.attributes, ensure_ascii=False) if node.attributes else ""
    return (node.name, *node.aliases, node.summary, attributes)
