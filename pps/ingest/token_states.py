"""Token states of turns: a turn is noted when it is indexed, and its states are made later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence

from pps.core.errors import PPSError
from pps.core.text import content_hash
from pps.core.values import Turn, spoken
from pps.index.indexes import EntityIndexes
from pps.journal.journal import Journal
from pps.models.token_encoder import ColbertEncoder

_AT_ONCE = 8
"""Turns of one step: other work waits for no more."""
_PAGE = 500
_RETRY_S = 30.0
_log = logging.getLogger(__name__)


def has_states(turn: Turn) -> bool:
    """Tell whether a turn has token states; turns of tools have none."""
    return turn.role != "tool"


def compared_text(turn: Turn) -> str:
    """Return the text of a turn's states: its content, after its actor if it has one."""
    return spoken(turn) if turn.actor else turn.content


class TokenStates:
    """Notes which turns need token states, and makes them step by step; none without an encoder.

    Turns of tools have none: they are most of a coding agent's turns, and queries do not ask for
    them.
    """

    def __init__(
        self, journal: Journal, indexes: EntityIndexes, encoder: ColbertEncoder | None
    ) -> None:
        self._journal = journal
        self._indexes = indexes
        self._encoder = encoder
        self._begun = False

    async def note(self, ids: Iterable[str], turns: Sequence[Turn]) -> None:
        """Note turns whose text is new or has changed; drop the states of other ``ids``."""
        if self._encoder is None:
            return
        hashes = {
            turn.uuid: content_hash(compared_text(turn)) for turn in turns if has_states(turn)
        }
        await self._indexes.note_tokens(hashes, [id_ for id_ in ids if id_ not in hashes])

    async def step(self) -> float | None:
        """Make the states of a few turns; return the seconds until the next step, or None."""
        if not self._begun:
            await self._begin()
        if self._encoder is None:
            return None
        due = await self._indexes.tokens_due(_AT_ONCE)
        if not due:
            return None
        turns = {turn.uuid: turn for turn in await self._journal.turns(list(due))}
        texts = {id_: compared_text(turn) for id_, turn in turns.items()}
        try:
            made = await asyncio.to_thread(self._encoder.text_states, list(texts.values()))
        except PPSError as error:
            _log.warning("token states are to be made later: %s", error.message)
            return _RETRY_S
        states = {
            id_: (content_hash(text), rows.tobytes())
            for (id_, text), rows in zip(texts.items(), made, strict=True)
        }
        await self._indexes.put_tokens(states)
        await self._settle_changed(due, states)
        return 0.0

    async def _settle_changed(
        self, due: dict[str, str], states: dict[str, tuple[str, bytes]]
    ) -> None:
        """Note texts anew that are not as they were noted, so that no step meets them forever."""
        hashes = {id_: text_hash for id_, (text_hash, _) in states.items()}
        changed = {id_: hash_ for id_, hash_ in hashes.items() if due[id_] != hash_}
        gone = [id_ for id_ in due if id_ not in hashes]
        if changed or gone:
            await self._indexes.note_tokens(changed, gone)

    async def _begin(self) -> None:
        """Note all turns if their states are missing or of another model; without one drop them."""
        model = self._encoder.fingerprint if self._encoder else ""
        if await self._indexes.token_model() != model:
            await self._indexes.clear_tokens()
            if self._encoder is not None:
                await self._note_all()
                await self._indexes.keep_token_model(model)
        self._begun = True

    async def _note_all(self) -> None:
        seq = 0
        while turns := await self._journal.scan(seq, _PAGE):
            await self.note((), turns)
            seq = turns[-1].seq
