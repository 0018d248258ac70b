"""What a language model took is noted by day, bounded by a budget that pauses, and estimated beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, ExtractorSettings, Settings
from pps.core import time
from pps.core.errors import ConfigError, InvalidRequest
from pps.isolation.providers import TokensUsed, read_usage
from tests.model_server import ModelServer, model_server
from tests.waiting import PATIENCE_S

TEXT = "Ana lives in Lisbon. Ana works at Blue Heron."


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock of costs and workers begin at noon: no test meets the end of a day unawares."""
    began = datetime.now(UTC)
    ahead = began.replace(hour=12, minute=0) - began
    for clock in ("pps.ingest.budget.now", "pps.core.time.now"):
        monkeypatch.setattr(clock, lambda: datetime.now(UTC) + ahead)


def metered(settings: Settings, server: ModelServer, **more: int) -> Settings:
    """Return settings of texts that a model with a name reads."""
    extractor = ExtractorSettings(
        mode="model", provider="compatible", model="some-model", base_url=server.base_url, **more
    )
    return settings.model_copy(update={"extractor": extractor})


async def test_what_the_answers_say_is_added_up_by_day_model_and_attempt(
    settings: Settings, server: ModelServer
) -> None:
    server.asked.clear()
    async with App.open(metered(settings, server)) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            receipt = await memory.remember(TEXT)
            requests = len(server.asked)
            assert (receipt.state, requests > 0) == ("done", True)
            report = await memory.costs.report()
            (day,) = report.days
            assert (day.day, day.texts, day.requests, day.unmetered) == (
                time.now().date(),
                1,
                requests,
                0,
            )
            assert (day.tokens_in, day.tokens_out, day.cost_usd) == (
                10 * requests,
                5 * requests,
                None,
            )
            assert report.tokens_today == 15 * requests
            job = await memory.jobs.status(receipt.turn_id)
            assert sum(one.tokens_in for one in job.tried) == 10 * requests


async def test_an_answer_that_cannot_be_used_is_paid_for_all_the_same_and_a_known_price_gives_the_cost(
    settings: Settings, server: ModelServer
) -> None:
    prices = settings.home / "prices.toml"
    prices.parent.mkdir(mode=0o700)
    prices.write_text(
        '["some-model"]\ninput_usd_per_million = 100.0\noutput_usd_per_million = 400.0\n'
    )
    server.asked.clear()
    server.first = ["malformed"]
    async with App.open(metered(settings, server)) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await memory.remember(TEXT)
            (day,) = (await memory.costs.report()).days
            assert day.requests == len(server.asked) >= 3
            assert day.cost_usd == pytest.approx(day.requests * (10 * 100 + 5 * 400) / 1_000_000)
            before = await memory.costs.estimate(100, 10_000)
            assert (before.days, before.basis[:8]) == (None, "the size")
            assert before.tokens_in > 100 * 4_200
            for at in range(4):
                await memory.remember(f"{TEXT} Note {at}.")
            learned = await memory.costs.estimate(100, 10_000)
            report = await memory.costs.report()
            assert learned.basis.startswith("the 5 texts")
            assert 0 <= learned.tokens_in - 100 * report.days[0].tokens_in / 5 < 100
            assert learned.cost_usd == pytest.approx(
                learned.tokens_in * 1e-4 + learned.tokens_out * 4e-4
            )
            with pytest.raises(InvalidRequest, match="days"):
                await memory.costs.report(0)
    prices.write_text('["some-model"]\ninput_usd_per_million = -1\noutput_usd_per_million = 1\n')
    async with App.open(metered(settings, server)) as app:
        with pytest.raises(ConfigError, match=r"some-model\.input_usd_per_million"):
            async with app.memory("ana"):
                pass


async def test_a_spent_budget_pauses_reading_until_the_next_day_and_nothing_else(
    settings: Settings, server: ModelServer
) -> None:
    async with App.open(metered(settings, server, tokens_per_day=20)) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            assert (await memory.remember(TEXT)).state == "done"
            server.asked.clear()
            second = await memory.remember("Ben knows Ana.", timeout_s=1.0)
            given = await memory.remember("Tea at nine.", extraction="given")
            assert (second.state, given.state, server.asked) == ("accepted", "done", [])
            assert second.turn_id in {
                hit.id for hit in (await memory.recall("Ben knows"))["episodes"]
            }
            health = await memory.health()
            assert (health.ok, len(health.notes)) == (True, 1)
            assert "budget of 20 tokens is spent" in health.notes[0]
            job = await memory.jobs.status(second.turn_id)
            report = await memory.costs.report()
            assert report.paused_until is not None
            assert (job.state, job.next_at, job.failures) == ("queued", report.paused_until, 0)
            assert timedelta(0) < report.paused_until - time.now() <= timedelta(days=1)
            assert (await memory.costs.estimate(1, 0)).days is not None
    card = settings.home / "entities" / "ana" / "entity.toml"
    card.write_text(card.read_text().replace("# tokens_per_day = 200000", "tokens_per_day = 0"))
    async with (
        App.open(metered(settings, server, tokens_per_day=20)) as app,
        app.memory("ana") as memory,
    ):
        assert await memory.settled(PATIENCE_S), (
            "an entity's own bound comes first; a start looks again"
        )
        assert (await memory.jobs.status(second.turn_id)).state == "done"


async def test_reading_that_paused_goes_on_by_itself_when_the_next_day_begins(
    tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock stands four seconds before midnight until the budget is spent; then it is past. Nobody does anything."""
    began = time.now()
    midnight = began.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    stands = midnight - timedelta(seconds=4)

    def moved() -> datetime:
        return stands

    settings = Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))
    async with App.open(metered(settings, server, tokens_per_day=20)) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            monkeypatch.setattr("pps.ingest.budget.now", moved)
            monkeypatch.setattr(time, "now", moved)  # what a worker goes by
            assert (await memory.remember(TEXT)).state == "done"
            server.asked.clear()
            paused = await memory.remember("Ben knows Ana.", timeout_s=0.5)
            job = await memory.jobs.status(paused.turn_id)
            assert (paused.state, job.state, job.next_at, server.asked) == (
                "accepted",
                "queued",
                midnight,
                [],
            )
            assert (await memory.health()).ok

            stands = midnight + timedelta(seconds=1)
            assert await memory.settled(PATIENCE_S)
            job = await memory.jobs.status(paused.turn_id)
            assert (job.state, job.failures, [one.outcome for one in job.tried]) == (
                "done",
                0,
                ["done", "done"],
            )
            report = await memory.costs.report()
            assert [(one.day, one.texts) for one in report.days] == [
                (midnight.date(), 1),
                (began.date(), 1),
            ]
            health = await memory.health()
            assert (health.ok, report.paused_until) == (True, midnight + timedelta(days=1))
            assert "budget of 20 tokens is spent" in health.notes[0], (
                "today's is spent again, by that one text"
            )


@pytest.mark.parametrize(
    ("answer", "model", "used"),
    [
        ({"model": "m", "usage": {"prompt_tokens": 7, "completion_tokens": 3}}, "m", TokensUsed(1, 0, 7, 3)),
        ({"model": "c", "usage": {"input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": 5}}, "c",
         TokensUsed(1, 0, 12, 3)),
        ({"modelVersion": "g", "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3,
          "thoughtsTokenCount": 2}}, "g", TokensUsed(1, 0, 7, 5)),
        ({"model": "m", "usage": None}, "m", TokensUsed(1, 1, 0, 0)),
        ({"usage": {"prompt_tokens": "seven", "completion_tokens": -1}}, "", TokensUsed(1, 1, 0, 0)),
        ({}, "", TokensUsed(1, 1, 0, 0)),
    ],
)  # fmt: skip
def test_usage_is_read_in_each_providers_words(
    answer: dict[str, object], model: str, used: TokensUsed
) -> None:
    assert read_usage(answer) == (model, used)
