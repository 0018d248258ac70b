"""What reading by a language model takes: noted by day, bounded by a budget, estimated before a bulk run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
            today = now().date()
            used = self.asked.meter.take()
            await self.journal.spending.add(
                [self._spent(today, model, tokens, 0) for model, tokens in used.items()]
            )

    async def check(self) -> None:
        """Raise BudgetSpent, with the moment from which there is a new budget, when today's is spent."""
        until = await self.paused_until()
        if until:
            raise BudgetSpent(until)

    async def paused_until(self) -> datetime | None:
        """Return the beginning of the next day when today's budget is spent, else None."""
        if not self.tokens_per_day:
            return None
        today = now().date()
        if _tokens(await self.journal.spending.since(today)) < self.tokens_per_day:
            return None
        return datetime(today.year, today.month, today.day, tzinfo=UTC) + timedelta(days=1)

    async def note(self, job_id: int, used: Mapping[str, TokensUsed], texts: int = 1) -> None:
        """Add what reading texts took, to the day and to the attempt of a job, the first of them."""
        if not used:
            return
        today = now().date()
        spent: list[Spent] = []
        for model, tokens in used.items():
            # The texts count once, with the first model.
            spent.append(self._spent(today, model, tokens, 0 if spent else texts))
        await self.journal.spending.add(spent)
        charge = Charge(
            sum(entry.tokens_in for entry in spent),
            sum(entry.tokens_out for entry in spent),
            sum(entry.cost_micros for entry in spent),
        )
        await self.journal.queue.charge(job_id, charge)

    async def report(self, days: int = 30) -> CostReport:
        """Return what was spent, day by day, newest first.

        Args:
            days: How many days back, today among them, 1 to 3,660.
        """
        check_range("days", days, 1, 3_660)
        today = now().date()
        spent = await self.journal.spending.since(today - timedelta(days=days - 1))
        return CostReport(
            days=tuple(_cost_day(entry) for entry in spent),
            tokens_today=_tokens([entry for entry in spent if entry.day == today]),
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
        read = sum(entry.texts for entry in spent)
        if read >= _LEAST_TEXTS:
            tokens_in = texts * math.ceil(sum(entry.tokens_in for entry in spent) / read)
            tokens_out = texts * math.ceil(sum(entry.tokens_out for entry in spent) / read)
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
        until = await self.paused_until()
        if until is None:
            return ()
        return (
            f"today's budget of {self.tokens_per_day:,} tokens is spent: reading by the language "
            f"model pauses until {iso(until)}; texts are kept and found meanwhile. "
            "extractor.tokens_per_day raises it",
        )

    def _spent(self, day: date, model: str, used: TokensUsed, texts: int) -> Spent:
        price = self.prices.get(model)
        cost_micros = price.micros(used.tokens_in, used.tokens_out) if price else 0
        unpriced = 0 if price else used.tokens_in + used.tokens_out
        return Spent(
            day,
            model,
            texts,
            used.requests,
            used.unmetered,
            used.tokens_in,
            used.tokens_out,
            cost_micros,
            unpriced,
        )


def _tokens(spent: Sequence[Spent]) -> int:
    return sum(entry.tokens_in + entry.tokens_out for entry in spent)


def _cost_day(spent: Spent) -> CostDay:
    return CostDay(
        spent.day,
        spent.model,
        spent.texts,
        spent.requests,
        spent.unmetered,
        spent.tokens_in,
        spent.tokens_out,
        None if spent.unpriced else spent.cost_micros / MICROS,
    )
