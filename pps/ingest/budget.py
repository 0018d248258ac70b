"""The cost of reading by a language model: noted by day, bounded by a budget, estimated."""

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
# Graphiti 0.31's prompts, measured on a scripted model: two requests a text, together 4,200 tokens
# beside the text itself, which each holds. Resolving known names adds requests: a lower bound.
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
        model: The model's name in the settings; empty if they name none.
        asked: The extractor of that model; None if the settings name none.
    """

    journal: Journal
    prices: Mapping[str, Price]
    tokens_per_day: int = 0
    model: str = ""
    asked: Extractor | None = None

    async def ask(self, task: str, text: str, shape: type[Shape]) -> Shape:
        """Return the model's answer to a task on a text; note its tokens, also after a failure.

        Raises:
            BudgetSpent: Today's budget is spent; the model was not called.
            NotSet: The settings name no model.
            ModelUnavailable, ModelOutputInvalid, ModelError: The model failed.
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
        """Raise BudgetSpent, with the time of the next budget, if today's is spent."""
        until = await self.paused_until()
        if until:
            raise BudgetSpent(until)

    async def paused_until(self) -> datetime | None:
        """Return the beginning of the next day (UTC) if today's budget is spent, else None."""
        if not self.tokens_per_day:
            return None
        today = now().date()
        if _tokens(await self.journal.spending.since(today)) < self.tokens_per_day:
            return None
        return datetime(today.year, today.month, today.day, tzinfo=UTC) + timedelta(days=1)

    async def note(self, job_id: int, used: Mapping[str, TokensUsed], texts: int = 1) -> None:
        """Add the tokens of reading ``texts`` texts to the day, and to the attempt of a job."""
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
        """Return the tokens and costs of each day, newest first.

        Args:
            days: Number of days, with today, 1 to 3,660.
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
        """Estimate the tokens and costs of reading ``texts`` texts of ``characters`` in all.

        The basis is this memory's readings of the last 30 days if there are at least five, else the
        size of Graphiti's prompts. It is an order of magnitude: the length of answers is not known
        before.
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
