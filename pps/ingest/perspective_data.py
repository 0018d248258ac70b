"""The features of turns, facts and nodes that perspectives find them by, made with their index entries."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence

import numpy as np

from pps.core.errors import PPSError
from pps.core.values import Fact, ItemKind, Node, Turn, words_of
from pps.index.personal import statements_of
from pps.index.prompts import ASKS, only_asks
from pps.index.signs import causal_pairs, hashed, identifiers, letters
from pps.ingest.passage_vectors import PassageVectors
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.journal.links import holds
from pps.journal.perspective_rows import FAILED, PerspectiveDatum

VERSION = 3
"""Of the rules by which features are made; where those of a memory are of another, all are made again."""
_MARK = "features"
_PAGE = 500
_RETRY_S = 30.0
_log = logging.getLogger(__name__)


class PerspectiveData:
    """Makes and keeps the features of one entity. One that fails is marked, and keeps nothing else waiting."""

    def __init__(
        self, client: IsolatedGraphitiClient, journal: Journal, vectors: PassageVectors | None
    ) -> None:
        self._client = client
        self._journal = journal
        self._vectors = vectors

    async def nodes(
        self, ids: Sequence[str], nodes: Sequence[Node], texts: Mapping[str, str]
    ) -> None:
        """Keep the features of the nodes that there are of some ids: of their names and of what records say."""
        told = {
            one.uuid: "\n".join((one.name, *one.aliases, texts.get(one.uuid) or one.summary))
            for one in nodes
        }
        await self._write("node", ids, told)

    async def facts(self, ids: Sequence[str], facts: Sequence[Fact]) -> None:
        """Keep those of the facts that hold; a past one is found by its words and its meaning alone."""
        moment = self._journal.now()
        told = {one.uuid: one.text for one in facts if one.kind == "fact" and holds(one, moment)}
        await self._write("fact", ids, told)

    async def turns(self, ids: Sequence[str], turns: Sequence[Turn]) -> None:
        """Keep those of the turns that there are of some ids."""
        texts = {turn.uuid: turn.content for turn in turns}
        await self._write("episode", ids, texts, await asyncio.to_thread(_statements, turns))

    async def mend(self, draining: asyncio.Lock) -> float | None:
        """Make what is missing: all of a memory of other rules, and what failed; return in how many seconds to retry.

        ``draining`` is held for each page: nothing changes between its reading and its writing.
        """
        if await self._journal.get_meta(_MARK) != self._rules():
            async for kind, ids in self._all():
                await self._again(draining, kind, ids)
            await self.made()
        failed = await self._journal.perspective_data.failed()
        kinds: tuple[ItemKind, ...] = ("node", "fact", "episode")
        for kind in kinds:
            await self._again(draining, kind, [item for of, item in failed if of == kind])
        return _RETRY_S if failed and await self._journal.perspective_data.failed() else None

    async def made(self) -> None:
        """Note that all are made, by these rules."""
        await self._journal.set_meta(_MARK, self._rules())

    async def _all(self) -> AsyncGenerator[tuple[ItemKind, list[str]]]:
        after = ""
        while nodes := await self._client.scan_nodes(after, _PAGE):
            yield "node", [one.uuid for one in nodes]
            after = nodes[-1].uuid
        after = ""
        while facts := await self._client.scan_facts(after, _PAGE):
            yield "fact", [one.uuid for one in facts]
            after = facts[-1].uuid
        seq = 0
        while turns := await self._journal.scan(seq, _PAGE):
            yield "episode", [one.uuid for one in turns]
            seq = turns[-1].seq

    async def _again(self, draining: asyncio.Lock, kind: ItemKind, ids: Sequence[str]) -> None:
        if not ids:
            return
        async with draining:
            if kind == "fact":
                await self.facts(ids, await self._client.facts(ids))
            elif kind == "node":
                texts = await self._journal.records.texts(ids)
                told = {one: turn.content for one, turn in texts.items()}
                await self.nodes(ids, await self._client.nodes(ids), told)
            else:
                await self.turns(ids, await self._journal.turns(ids))

    async def _write(
        self,
        kind: ItemKind,
        ids: Sequence[str],
        texts: Mapping[str, str],
        more: Sequence[PerspectiveDatum] = (),
    ) -> None:
        made = await asyncio.to_thread(_signs, kind, texts) if texts else []
        made += await self._causes(kind, texts)
        await self._journal.perspective_data.put(ids, [*made, *more])

    async def _causes(self, kind: ItemKind, texts: Mapping[str, str]) -> list[PerspectiveDatum]:
        """Return the vectors of causes and effects, shape (pairs, 2, dimension), as half-precision numbers."""
        pairs = {item: found for item, text in texts.items() if (found := causal_pairs(text))}
        if self._vectors is None or not pairs:
            return []
        try:
            vectors = await self._vectors.of(
                [span for found in pairs.values() for pair in found for span in pair]
            )
        except PPSError as error:
            _log.warning("causes are to be embedded later: %s", error.message)
            return [PerspectiveDatum(item, kind, "cause", FAILED) for item in pairs]
        return [
            PerspectiveDatum(
                item,
                kind,
                "cause",
                VERSION,
                np.array(
                    [[vectors[span] for span in pair] for pair in found], dtype=np.float16
                ).tobytes(),
            )
            for item, found in pairs.items()
        ]

    def _rules(self) -> str:
        return f"{VERSION} {self._vectors.embedder.fingerprint if self._vectors else ''}"


def _signs(kind: ItemKind, texts: Mapping[str, str]) -> list[PerspectiveDatum]:
    made = [
        PerspectiveDatum(item, kind, "trigrams", VERSION, letters(text))
        for item, text in texts.items()
    ]
    code = {item: found for item, text in texts.items() if (found := identifiers(text))}
    return [
        *made,
        *(
            PerspectiveDatum(item, kind, "code", VERSION, hashed(found))
            for item, found in code.items()
        ),
    ]


def _statements(turns: Sequence[Turn]) -> list[PerspectiveDatum]:
    """Return what a turn's words are besides what they say: a person's statements of a kind, or nothing but a question.

    Such a feature has no bytes: that it is there says all.
    """
    made: list[PerspectiveDatum] = []
    for turn in turns:
        words = words_of(turn)
        if turn.kind != "turn":
            continue
        if only_asks(words):
            made.append(PerspectiveDatum(turn.uuid, "episode", ASKS, VERSION))
        elif turn.role == "user":
            made += [
                PerspectiveDatum(turn.uuid, "episode", kind, VERSION)
                for kind in statements_of(words)
            ]
    return made
