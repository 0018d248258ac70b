"""What was put before agents unasked: the verb about the packs of an entity."""

from __future__ import annotations

from pydantic import Field

from pps.core.reports import Injected
from pps.journal.shown import KEPT_D
from pps.memory import Memory
from pps.operations import inputs
from pps.operations.table import AnyVerb, Hints, Verb


class InjectedInput(inputs.Input):
    """How far back."""

    days: int = Field(default=7, ge=1, le=KEPT_D, description="Days, up to now; older ones are forgotten.")


async def _injected(memory: Memory, given: InjectedInput) -> Injected:
    return await memory.sessions.injected(given.days)


def injected(value: Injected) -> str:
    """Return the sums, then a line a session."""
    share = "none" if value.empty_share is None else f"{value.empty_share:.0%}"
    mean = f", {value.tokens_a_session:,.0f} a session" if value.tokens_a_session is not None else ""
    head = (
        f"{value.days} days: {value.sessions:,} sessions, {value.prompts:,} prompts ({share} answered with nothing), "
        f"{value.tokens:,} tokens{mean}"
    )
    lines = [
        f"{one.last_at:%Y-%m-%d %H:%M} {one.session or '(no session)'}: {one.prompts:,} prompts, {one.empty:,} with "
        f"nothing, {one.tokens:,} tokens"
        for one in value.latest
    ]
    return "\n".join([head, *lines])


INJECTED_VERBS: tuple[AnyVerb, ...] = (
    Verb(
        "injected",
        "How much was injected",
        "How many tokens of this memory hooks and ambient_recall put before agents, by session, and how many prompts "
        "were answered with nothing.",
        InjectedInput,
        Injected,
        _injected,
        injected,
        Hints(read_only=True, idempotent=True),
    ),
)
