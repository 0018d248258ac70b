"""Passages are embedded in few calls, each once, some of them before they are asked for."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Sequence

import pytest

from pps.core.errors import ModelUnavailable
from pps.ingest.passage_vectors import PassageVectors
from pps.models.hash import HashEmbedder
from pps.models.protocols import Matrix
from tests.waiting import PATIENCE_S


class Counting(HashEmbedder):
    """Notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[list[str]] = []

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        self.calls.append(list(texts))
        return super().embed_passages(texts)

    @property
    def sizes(self) -> list[int]:
        return [len(call) for call in self.calls]


def numbered(what: str, count: int) -> list[str]:
    return [f"{what} {number}" for number in range(count)]


async def test_texts_are_embedded_a_few_at_a_time_as_long_as_it_must_be_gentle() -> None:
    model, texts = Counting(), numbered("text", 40)
    found = await PassageVectors(model, lambda: len(model.calls) < 2).of(texts)
    assert model.sizes == [8, 8, 24]
    assert list(found) == texts
    assert all((found[text] == HashEmbedder().embed_passages([text])[0]).all() for text in texts)
    model.calls.clear()
    await PassageVectors(model).of(texts)
    assert model.sizes == [40]


async def test_what_is_asked_for_next_is_embedded_in_the_same_call_however_much_it_is() -> None:
    model = Counting()
    vectors = PassageVectors(model)
    facts, turns = numbered("fact", 3_000), ["One.", " ".join(map(str, range(500))), ""]
    found = await vectors.of(facts, soon=turns)
    passages = await vectors.passages([*facts, *turns])
    parts = [part for some, _ in passages[-3:] for part in some]
    assert model.sizes == [len(facts) + len(parts)]
    assert len(parts) > 3
    assert set(facts) <= found.keys()
    assert (passages[0][1][0] == found["fact 0"]).all()


async def test_what_was_asked_for_but_once_outlasts_thousands_that_were_asked_for_again() -> None:
    model = Counting()
    vectors = PassageVectors(model)
    turns = numbered("turn", 1_000)
    first = await vectors.of(turns)
    for batch in range(4):
        facts = numbered(f"fact of batch {batch}", 3_000)
        await vectors.of(facts)
        await vectors.of(facts)
    again = await vectors.of(turns)
    assert model.sizes == [1_000, 3_000, 3_000, 3_000, 3_000]
    assert all((again[text] == first[text]).all() for text in turns)


async def test_so_many_are_kept_and_no_more() -> None:
    model = Counting()
    vectors = PassageVectors(model)
    many = numbered("turn", 20_000)
    for at in range(0, len(many), 1_000):
        await vectors.of(many[at : at + 1_000])
    model.calls.clear()
    await vectors.of(many[-16_384:])
    assert model.calls == []
    await vectors.of(many[: 20_000 - 16_384])
    assert model.sizes == [20_000 - 16_384]
    await vectors.of(many[-1:])  # of those that were asked for again 2,048 stay
    assert model.sizes == [20_000 - 16_384]
    await vectors.of(many[-16_384 : -16_384 + 10])
    assert model.sizes == [20_000 - 16_384, 10]


async def test_texts_are_embedded_while_something_else_is_done_and_are_there_when_they_are_asked_for() -> (
    None
):
    done = threading.Event()

    class Telling(Counting):
        def embed_passages(self, texts: Sequence[str]) -> Matrix:
            rows = super().embed_passages(texts)
            if sum(self.sizes) >= 5 + 300:
                done.set()
            return rows

    model = Telling()
    vectors = PassageVectors(model)
    known, coming = numbered("known", 5), numbered("a text that comes", 300)
    await vectors.of(known)

    async def texts() -> list[str]:
        return [*known, *coming, "long " * 400]

    async with vectors.ahead(texts):
        assert await asyncio.to_thread(done.wait, 60)
    assert max(model.sizes) == 128
    assert not {text for call in model.calls[1:] for text in call} & {*known}
    embedded = sum(model.sizes)
    await vectors.of(coming)
    assert sum(model.sizes) == embedded


class Slow(Counting):
    """Answers when it is let, and fails for so many calls before."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__()
        self.begun, self.go_on, self.failures = threading.Event(), threading.Event(), failures

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        self.begun.set()
        assert self.go_on.wait(PATIENCE_S)
        if self.failures:
            self.failures -= 1
            raise ModelUnavailable("the model is away")
        return super().embed_passages(texts)


async def test_what_is_not_begun_in_time_is_left_and_what_is_begun_is_waited_for_by_who_asks() -> (
    None
):
    model = Slow()
    vectors = PassageVectors(model)

    async def texts() -> list[str]:
        return numbered("text", 1_000)

    async with vectors.ahead(texts):
        await asyncio.to_thread(model.begun.wait, 60)
    asyncio.get_running_loop().call_later(0.05, model.go_on.set)
    found = await vectors.of(await texts())
    assert sorted(model.sizes) == [128, 872]
    alone = HashEmbedder()
    assert all((found[text] == alone.embed_passages([text])[0]).all() for text in await texts())


async def test_what_two_ask_for_at_once_is_embedded_once() -> None:
    model = Slow()
    vectors = PassageVectors(model)
    model.go_on.set()
    first, second = numbered("text", 60), numbered("text", 100)[40:]
    one, other = await asyncio.gather(vectors.of(first), vectors.of(second))
    assert model.sizes == [60, 40]
    assert (list(one), sorted(other)) == (first, sorted(second))
    assert (one["text 50"] == other["text 50"]).all()


@pytest.mark.parametrize("cancelled", [False, True])
async def test_what_another_failed_to_embed_is_tried_again_and_what_another_left_is_taken(
    cancelled: bool,
) -> None:
    model = Slow(failures=0 if cancelled else 1)
    vectors = PassageVectors(model)
    first = asyncio.create_task(vectors.of(["one", "two"]))
    await asyncio.to_thread(model.begun.wait, 60)
    second = asyncio.create_task(vectors.of(["two"]))
    await asyncio.sleep(0.02)
    if cancelled:
        first.cancel()
    model.go_on.set()
    assert list(await second) == ["two"]
    with pytest.raises(asyncio.CancelledError if cancelled else ModelUnavailable):
        await first
    assert model.calls == [["one", "two"]] if cancelled else [["two"]]


@pytest.mark.parametrize("failing", [False, True])
async def test_a_model_that_hangs_holds_nobody_up(failing: bool) -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    class Hanging(Counting):
        def embed_passages(self, texts: Sequence[str]) -> Matrix:
            begun.set()
            assert go_on.wait(PATIENCE_S)
            ended.set()
            return super().embed_passages(texts)

    async def texts() -> list[str]:
        return ["text"]

    with pytest.raises(KeyError) if failing else contextlib.nullcontext():
        async with PassageVectors(Hanging()).ahead(texts):
            await asyncio.to_thread(begun.wait, 60)
            if failing:
                raise KeyError
    assert not ended.is_set()
    go_on.set()


@pytest.mark.parametrize(
    "error", [ModelUnavailable("the model is away"), ValueError("a text that nobody can read")]
)
async def test_an_error_ahead_is_logged_and_met_by_whoever_asks(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    begun = threading.Event()

    class Away(HashEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> Matrix:
            begun.set()
            raise error

    vectors = PassageVectors(Away())

    async def texts() -> list[str]:
        return ["text"]

    with caplog.at_level(logging.INFO, logger="pps"):
        async with vectors.ahead(texts):
            [ahead] = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.wait([ahead])
            assert begun.is_set()
    assert str(error) in caplog.text
    with pytest.raises(type(error), match=str(error)):
        await vectors.of(["text"])


async def test_the_error_of_what_is_done_meanwhile_is_the_one_that_is_raised() -> None:
    vectors = PassageVectors(Counting())

    async def texts() -> list[str]:
        return numbered("text", 1_000)

    with pytest.raises(KeyError):
        async with vectors.ahead(texts):
            raise KeyError
