"""The data by which perspectives find turns, facts and nodes, made with their index entries."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence

import numpy as np

from pps.core.errors import ModelError, ModelUnavailable, PPSError
from pps.core.values import Fact, ItemKind, Node, Turn, words_of
from pps.index.prompts import ASKS, only_asks, statements_of
from pps.index.signs import causal_pairs, hashed, identifiers, letters
from pps.ingest.passage_vectors import PassageVectors
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.journal.links import holds
from pps.journal.perspective_rows import FAILED, PerspectiveDatum

VERSION = 4
"""Version of the rules: increase it and every memory computes its perspective data again."""
_MARK = "features"
_PAGE = 500
_RETRY_S = 30.0
_log = logging.getLogger(__name__)


class PerspectiveData:
    """Makes and stores the perspective data of one entity.

    An item whose data fails is marked and retried later.
    """

    def __init__(
        self, client: IsolatedGraphitiClient, journal: Journal, vectors: PassageVectors | None
    ) -> None:
        self._client = client
        self._journal = journal
        self._vectors = vectors

    async def nodes(
        self, ids: Sequence[str], nodes: Sequence[Node], texts: Mapping[str, str]
    ) -> None:
        """Store the data of nodes, from names and records' texts; drop that of other ``ids``."""
        words = {
            node.uuid: "\n".join((node.name, *node.aliases, texts.get(node.uuid) or node.summary))
            for node in nodes
        }
        await self._write("node", ids, words)

    async def facts(self, ids: Sequence[str], facts: Sequence[Fact]) -> None:
        """Store the data of facts that hold; past facts are found by words and vectors alone."""
        moment = self._journal.now()
        texts = {
            fact.uuid: fact.text for fact in facts if fact.kind == "fact" and holds(fact, moment)
        }
        await self._write("fact", ids, texts)

    async def turns(self, ids: Sequence[str], turns: Sequence[Turn]) -> None:
        """Store the data of turns; drop that of other ``ids``."""
        texts = {turn.uuid: turn.content for turn in turns}
        statements = await asyncio.to_thread(_statement_data, turns)
        await self._write("episode", ids, texts, statements)

    async def mend(self, draining: asyncio.Lock) -> float | None:
        """Make missing data: all of it after a change of the rules, and data that failed.

        Return the seconds until the next retry, None if nothing failed. ``draining`` is held for
        each page, so that nothing changes between its reading and its writing.
        """
        if await self._journal.get_meta(_MARK) != self._rules():
            async for kind, ids in self._all():
                await self._make_again(draining, kind, ids)
            await self.made()
        failed = await self._journal.perspective_data.failed()
        kinds: tuple[ItemKind, ...] = ("node", "fact", "episode")
        for kind in kinds:
            ids = [item for failed_kind, item in failed if failed_kind == kind]
            await self._make_again(draining, kind, ids)
        return _RETRY_S if failed and await self._journal.perspective_data.failed() else None

    async def made(self) -> None:
        """Note that the data of the whole memory is made by the present rules."""
        await self._journal.set_meta(_MARK, self._rules())

    async def _all(self) -> AsyncGenerator[tuple[ItemKind, list[str]]]:
        after = ""
        while nodes := await self._client.scan_nodes(after, _PAGE):
            yield "node", [node.uuid for node in nodes]
            after = nodes[-1].uuid
        after = ""
        while facts := await self._client.scan_facts(after, _PAGE):
            yield "fact", [fact.uuid for fact in facts]
            after = facts[-1].uuid
        seq = 0
        while turns := await self._journal.scan(seq, _PAGE):
            yield "episode", [turn.uuid for turn in turns]
            seq = turns[-1].seq

    async def _make_again(self, draining: asyncio.Lock, kind: ItemKind, ids: Sequence[str]) -> None:
        if not ids:
            return
        async with draining:
            if kind == "fact":
                await self.facts(ids, await self._client.facts(ids))
            elif kind == "node":
                turns = await self._journal.records.texts(ids)
                texts = {node: turn.content for node, turn in turns.items()}
                await self.nodes(ids, await self._client.nodes(ids), texts)
            else:
                await self.turns(ids, await self._journal.turns(ids))

    async def _write(
        self,
        kind: ItemKind,
        ids: Sequence[str],
        texts: Mapping[str, str],
        statements: Sequence[PerspectiveDatum] = (),
    ) -> None:
        data = await asyncio.to_thread(_spelling_data, kind, texts) if texts else []
        data += await self._cause_data(kind, texts)
        await self._journal.perspective_data.put(ids, [*data, *statements])

    async def _cause_data(self, kind: ItemKind, texts: Mapping[str, str]) -> list[PerspectiveDatum]:
        """Return the vectors of causes and effects, float16 of shape (pairs, 2, dimension).

        If the texts are refused together, each is embedded alone: one that a provider refuses
        keeps no other from having its vectors.
        """
        pairs_of = {item: causal_pairs(text) for item, text in texts.items()}
        pairs_of = {item: pairs for item, pairs in pairs_of.items() if pairs}
        if self._vectors is None or not pairs_of:
            return []
        try:
            spans = [span for pairs in pairs_of.values() for pair in pairs for span in pair]
            vectors = await self._vectors.of(spans)
        except PPSError as error:
            # Only a refused request may be due to one text: not a refused key, nor a server away.
            is_refused = isinstance(error, ModelError) and not isinstance(error, ModelUnavailable)
            if len(pairs_of) == 1 or not is_refused:
                _log.warning("causes are to be embedded later: %s", error.message)
                return [PerspectiveDatum(item, kind, "cause", FAILED) for item in pairs_of]
            data: list[PerspectiveDatum] = []
            for item in pairs_of:
                data += await self._cause_data(kind, {item: texts[item]})
            return data
        data = []
        for item, pairs in pairs_of.items():
            rows = [[vectors[cause], vectors[effect]] for cause, effect in pairs]
            packed = np.array(rows, dtype=np.float16).tobytes()
            data.append(PerspectiveDatum(item, kind, "cause", VERSION, packed))
        return data

    def _rules(self) -> str:
        return f"{VERSION} {self._vectors.embedder.fingerprint if self._vectors else ''}"


def _spelling_data(kind: ItemKind, texts: Mapping[str, str]) -> list[PerspectiveDatum]:
    """Return the letters of each text, and the identifiers of those that have some."""
    data = [
        PerspectiveDatum(item, kind, "trigrams", VERSION, letters(text))
        for item, text in texts.items()
    ]
    for item, text in texts.items():
        names = identifiers(text)
        if names:
            data.append(PerspectiveDatum(item, kind, "code", VERSION, hashed(names)))
    return data


def _statement_data(turns: Sequence[Turn]) -> list[PerspectiveDatum]:
    """Return what sort of statement a turn is: only a question, or a person's statements of a kind.

    Such a datum has no bytes: that it is there says all.
    """
    data: list[PerspectiveDatum] = []
    for turn in turns:
        if turn.kind != "turn":
            continue
        words = words_of(turn)
        if only_asks(words):
            data.append(PerspectiveDatum(turn.uuid, "episode", ASKS, VERSION))
        elif turn.role == "user":
            data += [
                PerspectiveDatum(turn.uuid, "episode", kind, VERSION)
                for kind in statements_of(words)
            ]
    return data
