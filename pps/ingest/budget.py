"""What reading by a language model takes: noted by day, bounded by a budget, estimated before a bulk run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from pps.config import Price
from pps.core.bounds import check_range
from pps.core.errors import BudgetSpent, InvalidRequest, NotSet
from pps.core.reports import CostDay, CostEstimate, CostReport
from pps.core.time import iso, now
from pps.isolation.graphiti_models import NO_EXTRACTOR, Extractor, Shape
from pps.isolation.providers import TokensUsed
from pps.journal.entries import MICROS, Charge
from pps.journal.journal import Journal
from pps.journal.usage import Spent

_LOOK_BACK_D = 30
_LEAST_TEXTS = 5
# Of Graphiti 0.31's prompts, measured on a scripted model: two requests a text, together 4,200 tokens beside the
# text itself, which each of them holds. Resolving against what is known adds requests: the estimate is a least one.
_PROMPTS_TOKENS = 4_200
_TIMES_READ = 2
_OUT_TOKENS = 300
_CHARACTERS_A_TOKEN = 3.5


@dataclass(frozen=True, slots=True)
class Costs:
    """The spending of one entity, and its bound.

    Attributes:
        prices: Model's name → price; a model without one is counted in tokens only.
        tokens_per_day: Most tokens a day (UTC), in and out together; 0 is no bound.
        model: The model that is asked, as far as the settings name it.
        asked: That model; None where the settings name none.
    """

    journal: Journal
    prices: Mapping[str, Price]
    tokens_per_day: int = 0
    model: str = ""
    asked: Extractor | None = None

    async def ask(self, task: str, text: str, shape: type[Shape]) -> Shape:
        """Return the model's answer to a task on a text; what it took is noted, also when it failed.

        Raises:
            BudgetSpent: Nothing was asked.
            NotSet: There is no model.
            ModelUnavailable, ModelOutputInvalid, ModelError: The model.
        """
        if self.asked is None:
            raise NotSet(NO_EXTRACTOR)
        await self.check()
        try:
            return await self.asked.ask(task, text, shape)
        finally:
            used = self.asked.meter.take()
            await self.journal.spending.add(
                [self._spent(now().date(), name, one, 0) for name, one in used.items()]
            )

    async def check(self) -> None:
        """Raise BudgetSpent, with the moment from which there is a new budget, when today's is spent."""
        if until := await self.paused_until():
            raise BudgetSpent(until)

    async def paused_until(self) -> datetime | None:
        """Return the beginning of the next day when today's budget is spent, else None."""
        if not self.tokens_per_day:
            return None
        today = now().date()
        spent = sum(
            one.tokens_in + one.tokens_out for one in await self.journal.spending.since(today)
        )
        if spent < self.tokens_per_day:
            return None
        return datetime(today.year, today.month, today.day, tzinfo=UTC) + timedelta(days=1)

    async def note(self, job_id: int, used: Mapping[str, TokensUsed], texts: int = 1) -> None:
        """Add what reading texts took, to the day and to the attempt of a job, the first of them."""
        if not used:
            return
        today = now().date()
        spent = [
            self._spent(today, model, one, 0 if at else texts)
            for at, (model, one) in enumerate(used.items())
        ]
        await self.journal.spending.add(spent)
        sums = [
            sum(each)
            for each in zip(
                *((one.tokens_in, one.tokens_out, one.cost_micros) for one in spent), strict=True
            )
        ]
        await self.journal.queue.charge(job_id, Charge(*sums))

    async def report(self, days: int = 30) -> CostReport:
        """Return what was spent, day by day, newest first.

        Args:
            days: How many days back, today among them, 1 to 3,660.
        """
        check_range("days", days, 1, 3_660)
        today = now().date()
        spent = await self.journal.spending.since(today - timedelta(days=days - 1))
        return CostReport(
            days=tuple(_day(one) for one in spent),
            tokens_today=sum(one.tokens_in + one.tokens_out for one in spent if one.day == today),
            tokens_per_day=self.tokens_per_day,
            paused_until=await self.paused_until(),
        )

    async def estimate(self, texts: int, characters: int) -> CostEstimate:
        """Return what a model would take to read so many texts of so many characters in all.

        From what this memory's own texts of the last 30 days took, when at least five were read; else from the
        size of Graphiti's prompts. An order of magnitude: how much a model says is not known before.
        """
        if texts < 0 or characters < 0:
            raise InvalidRequest("texts", "must not be negative")
        spent = await self.journal.spending.since(now().date() - timedelta(days=_LOOK_BACK_D))
        read = sum(one.texts for one in spent)
        if read >= _LEAST_TEXTS:
            tokens_in = texts * math.ceil(sum(one.tokens_in for one in spent) / read)
            tokens_out = texts * math.ceil(sum(one.tokens_out for one in spent) / read)
            basis = f"the {read:,} texts that were read here in the last {_LOOK_BACK_D} days"
        else:
            tokens_in = texts * _PROMPTS_TOKENS + math.ceil(
                characters * _TIMES_READ / _CHARACTERS_A_TOKEN
            )
            tokens_out = texts * _OUT_TOKENS
            basis = "the size of the prompts, at least: too little was read here yet to go by"
        price = self.prices.get(self.model)
        return CostEstimate(
            texts=texts,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost_usd=price.micros(tokens_in, tokens_out) / MICROS if price else None,
            days=math.ceil((tokens_in + tokens_out) / self.tokens_per_day)
            if self.tokens_per_day
            else None,
            basis=basis,
        )

    async def notes(self) -> tuple[str, ...]:
        """Return what health says of the budget: nothing unless reading pauses."""
        if (until := await self.paused_until()) is None:
            return ()
        return (
            f"today's budget of {self.tokens_per_day:,} tokens is spent: reading by the language model pauses until "
            f"{iso(until)}; texts are kept and found meanwhile. extractor.tokens_per_day raises it",
        )

    def _spent(self, day: date, model: str, used: TokensUsed, texts: int) -> Spent:
        tokens, price = (used.tokens_in, used.tokens_out), self.prices.get(model)
        priced = (price.micros(*tokens), 0) if price else (0, sum(tokens))
        return Spent(day, model, texts, used.requests, used.unmetered, *tokens, *priced)


def _day(one: Spent) -> CostDay:
    cost_usd = None if one.unpriced else one.cost_micros / MICROS
    counts = one.texts, one.requests, one.unmetered, one.tokens_in, one.tokens_out
    return CostDay(one.day, one.model, *counts, cost_usd)
