"""What language models took, by day and model; no text, so forgetting leaves it as it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

from pps.journal.reader import Readers
from pps.journal.writer import Writer


@dataclass(frozen=True, slots=True)
class Spent:
    """What one model took on one day (UTC).

    Attributes:
        texts: Texts that were read.
        requests, unmetered: Answers, and those that did not say what they took.
        cost_micros: Millionths of a dollar, for the tokens whose price was known.
        unpriced: Tokens whose price was not known.
    """

    day: date
    model: str
    texts: int = 0
    requests: int = 0
    unmetered: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micros: int = 0
    unpriced: int = 0


class Spending:
    """The spending of one ``memory.db``; errors and durability as for ``Journal``."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def add(self, spent: Sequence[Spent]) -> None:
        """Add to what was spent."""
        await self._writer.write(partial(_add, spent=spent))

    async def since(self, first: date) -> list[Spent]:
        """Return what was spent from a day on, newest day first, then by model."""
        return await self._readers.read(partial(_since, first=first))


def _add(db: sqlite3.Connection, spent: Sequence[Spent]) -> None:
    db.executemany(
        """INSERT INTO spending VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (day, model) DO UPDATE SET
            texts = texts + excluded.texts, requests = requests + excluded.requests,
            unmetered = unmetered + excluded.unmetered, tokens_in = tokens_in + excluded.tokens_in,
            tokens_out = tokens_out + excluded.tokens_out, cost_micros = cost_micros + excluded.cost_micros,
            unpriced = unpriced + excluded.unpriced""",
        [
            (
                one.day.isoformat(),
                one.model,
                one.texts,
                one.requests,
                one.unmetered,
                one.tokens_in,
                one.tokens_out,
                one.cost_micros,
                one.unpriced,
            )
            for one in spent
        ],
    )


def _since(db: sqlite3.Connection, first: date) -> list[Spent]:
    rows = db.execute(
        """SELECT day, model, texts, requests, unmetered, tokens_in, tokens_out, cost_micros, unpriced FROM spending
            WHERE day >= ? ORDER BY day DESC, model""",
        (first.isoformat(),),
    )
    return [Spent(date.fromisoformat(day), *rest) for day, *rest in rows]
