"""What reading by a language model took: the verb about an entity's spending."""

from __future__ import annotations

from pydantic import Field

from pps.core.reports import CostDay, CostReport
from pps.core.time import iso
from pps.memory import Memory
from pps.operations import inputs
from pps.operations.table import AnyVerb, Hints, Verb


class CostsInput(inputs.Input):
    """How far back."""

    days: int = Field(default=30, ge=1, le=3_660, description="Days, today among them.")


async def _costs(memory: Memory, given: CostsInput) -> CostReport:
    return await memory.costs.report(given.days)


def costs(value: CostReport) -> str:
    """Return a line a day and model, and how today's budget stands."""
    bound = f" of {value.tokens_per_day:,}" if value.tokens_per_day else ""
    pause = f"; reading pauses until {iso(value.paused_until)}" if value.paused_until else ""
    return "\n".join([f"today {value.tokens_today:,}{bound} tokens{pause}", *map(_line, value.days)])


def _line(one: CostDay) -> str:
    cost = f", ${one.cost_usd:.4f}" if one.cost_usd is not None else ""
    silent = f", {one.unmetered:,} answers did not say" if one.unmetered else ""
    name = one.model or "a model without a name"
    return (
        f"{one.day} {name}: {one.texts:,} texts, {one.requests:,} requests, {one.tokens_in:,} tokens in, "
        f"{one.tokens_out:,} out{cost}{silent}"
    )


COST_VERBS: tuple[AnyVerb, ...] = (
    Verb(
        "costs",
        "What language models took",
        "Tokens, requests and (where the price is known) dollars that reading texts by a language model took, by day "
        "and model, and how today's budget stands.",
        CostsInput,
        CostReport,
        _costs,
        costs,
        Hints(read_only=True, idempotent=True),
    ),
)
