"""Both indexes of an entity behind asynchronous methods, in shared threads."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from pps.core.errors import (
    ConfigError,
    InvalidRequest,
    IsolationError,
    StoreConflict,
    StoreError,
    StoreUnavailable,
)
from pps.core.footprint import cores
from pps.index.indexes import EntityIndexes, IndexDoc, TextQuery, index_threads
from pps.models.protocols import Fingerprint, Matrix
from pps.models.token_encoder import WIDTH
from tests.index_data import DIMENSION, FINGERPRINT, GROUP, OTHER_GROUP, clustered


def doc(
    owner: str, text: str, vectors: Matrix | None = None, *, collection: str = "episodes"
) -> IndexDoc:
    passages = tuple(f"{text} {at}" for at in range(0 if vectors is None else len(vectors)))
    return IndexDoc("episode", owner, collection, text, passages=passages, vectors=vectors)


@pytest.fixture(scope="module")
def threads() -> Iterator[ThreadPoolExecutor]:
    with index_threads(3) as made:
        yield made


@pytest.fixture
async def indexes(tmp_path: Path, threads: ThreadPoolExecutor) -> AsyncIterator[EntityIndexes]:
    made = await EntityIndexes.open(
        tmp_path, group=GROUP, fingerprint=FINGERPRINT, executor=threads
    )
    yield made
    await made.close()


async def test_what_is_applied_is_found_by_text_and_by_vector(indexes: EntityIndexes) -> None:
    vectors, _ = clustered(3, 1)
    await indexes.apply([doc("a", "green tea", vectors[:2]), doc("b", "black coffee", vectors[2:])])
    assert [hit.owner for hit in await indexes.text_search("episodes", "coffee", 5)] == ["b"]
    hits = await indexes.vector_search("episodes", vectors[1], 5)
    assert (hits[0].owner, hits[0].part) == ("a", 1)
    assert await indexes.vector_search("episodes", vectors[1], 5, {"b"}) == hits[1:]
    assert list(await indexes.vectors("episodes", ["a", "zz"])) == ["a"]
    assert await indexes.owners("episodes") == ({"a", "b"}, {"a", "b"})


async def test_several_texts_searched_together_find_what_each_finds_alone(
    indexes: EntityIndexes,
) -> None:
    await indexes.apply(
        [doc("a", "green tea"), doc("b", "black coffee"), doc("c", "tea", collection="facts")]
    )
    queries = [
        TextQuery("episodes", "coffee", 5),
        TextQuery("facts", "tea", 5),
        TextQuery("episodes", "tea coffee", 5, {"a"}),
        TextQuery("nodes", "tea", 5),
    ]
    alone = [
        await indexes.text_search(query.collection, query.text, query.k, query.allowed)
        for query in queries
    ]
    assert [[hit.owner for hit in hits] for hits in alone] == [["b"], ["c"], ["a"], []]
    assert await indexes.text_searches(queries) == alone


async def test_of_the_best_only_those_with_a_needed_word_are_hits(indexes: EntityIndexes) -> None:
    await indexes.apply(
        [doc("a", "what of the tea"), doc("b", "what of the coffee"), doc("c", "tea")]
    )
    [whole] = await indexes.text_searches([TextQuery("episodes", "what of the tea", 5)])
    query = TextQuery("episodes", "what of the tea", 5, needed="tea leaves")
    assert await indexes.text_searches([query]) == [[hit for hit in whole if hit.owner != "b"]]
    assert {hit.owner for hit in whole} == {"a", "b", "c"}
    allowed = TextQuery("episodes", "what of the tea", 5, {"b", "c"}, "tea")
    [hits] = await indexes.text_searches([allowed])
    assert [hit.owner for hit in hits] == ["c"]
    nothing = TextQuery("episodes", "what of the tea", 5, needed="cocoa")
    assert await indexes.text_searches([nothing]) == [[]]


async def test_token_states_in_memory_follow_every_change(indexes: EntityIndexes) -> None:
    first, second = (bytes(range(start, start + WIDTH)) for start in (0, 100))
    await indexes.note_tokens({"a": "1", "b": "2"})
    await indexes.put_tokens({"a": ("1", first)})
    assert (await indexes.token_states(None)).owners == ("a",)
    await indexes.put_tokens({"b": ("2", second + second)})
    states = await indexes.token_states(None)
    assert (states.owners, states.starts.tolist()) == (("a", "b"), [0, 1])
    assert states.states.tobytes() == first + second + second
    await indexes.note_tokens({"a": "3"})
    assert (await indexes.token_states(None)).owners == ("b",)
    await indexes.note_tokens({}, ["b"])
    assert (await indexes.token_states(None)).owners == ()
    await indexes.put_tokens({"a": ("3", second)})
    assert (await indexes.token_states(None)).owners == ("a",)
    await indexes.clear_tokens()
    assert (await indexes.token_states(None)).owners == ()


async def test_applying_twice_is_applying_once(indexes: EntityIndexes) -> None:
    vectors, _ = clustered(2, 1)
    for _ in range(2):
        await indexes.apply([doc("a", "tea", vectors)], [("episodes", "b"), ("facts", "a")])
    text, held = await indexes.counts()
    assert (text["episodes"], held["episodes"], text["facts"]) == (1, 1, 0)


async def test_what_an_owner_no_longer_has_is_dropped(indexes: EntityIndexes) -> None:
    vectors, _ = clustered(2, 1)
    await indexes.apply(
        [doc("a", "tea", vectors[:1]), doc("b", "tea", vectors[1:]), doc("c", "tea", vectors)]
    )
    await indexes.apply([doc("a", "", vectors[:1]), doc("b", "tea")], [("episodes", "c")])
    assert await indexes.owners("episodes") == ({"a"}, {"b"})


async def test_moving_an_owner_between_collections_leaves_it_in_one(indexes: EntityIndexes) -> None:
    vectors, _ = clustered(1, 1)
    await indexes.apply([doc("f", "lives in Rome", vectors, collection="facts")])
    await indexes.apply(
        [doc("f", "lives in Rome", vectors, collection="past_facts")], [("facts", "f")]
    )
    assert await indexes.owners("facts") == (set(), set())
    assert await indexes.owners("past_facts") == ({"f"}, {"f"})


async def test_without_a_model_text_is_indexed_and_vectors_find_nothing(tmp_path: Path) -> None:
    vectors, _ = clustered(1, 1)
    made = await EntityIndexes.open(tmp_path, group=GROUP, fingerprint=None)
    await made.apply([doc("a", "tea", vectors)])
    assert not made.has_vectors
    assert await made.vector_search("episodes", vectors[0], 3) == []
    assert await made.owners("episodes") == (None, {"a"})
    assert (await made.counts())[1] == {}
    assert not (tmp_path / "vectors.db").exists()
    await made.close()


async def test_passages_and_vectors_must_agree(indexes: EntityIndexes) -> None:
    vectors, _ = clustered(2, 1)
    with pytest.raises(InvalidRequest):
        await indexes.apply(
            [IndexDoc("episode", "a", "episodes", "tea", passages=("one",), vectors=vectors)]
        )


async def test_purging_and_clearing(indexes: EntityIndexes) -> None:
    vectors, _ = clustered(2, 1)
    await indexes.apply([doc("a", "tea", vectors[:1]), doc("b", "coffee", vectors[1:])])
    await indexes.apply([], [("episodes", "a")])
    assert await indexes.purge() == 1
    assert [hit.owner for hit in await indexes.text_search("episodes", "coffee tea", 5)] == ["b"]
    await indexes.clear()
    assert await indexes.owners("episodes") == (set(), set())


async def test_two_entities_folders_never_see_each_other(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    vectors, _ = clustered(2, 1)
    ana = await EntityIndexes.open(
        tmp_path / "ana", group=GROUP, fingerprint=FINGERPRINT, executor=threads
    )
    ben = await EntityIndexes.open(
        tmp_path / "ben", group=OTHER_GROUP, fingerprint=FINGERPRINT, executor=threads
    )
    await asyncio.gather(
        ana.apply([doc("a", "tea", vectors[:1])]), ben.apply([doc("b", "tea", vectors[1:])])
    )
    for indexes, owner in ((ana, "a"), (ben, "b")):
        assert [hit.owner for hit in await indexes.text_search("episodes", "tea", 9)] == [owner]
        assert [hit.owner for hit in await indexes.vector_search("episodes", vectors[0], 9)] == [
            owner
        ]
    await ana.close()
    await ben.close()


async def test_another_group_or_model_is_refused_and_nothing_stays_open(tmp_path: Path) -> None:
    await (await EntityIndexes.open(tmp_path, group=GROUP, fingerprint=FINGERPRINT)).close()
    with pytest.raises(IsolationError):
        await EntityIndexes.open(tmp_path, group=OTHER_GROUP, fingerprint=FINGERPRINT)
    with pytest.raises(ConfigError, match="pps reembed"):
        await EntityIndexes.open(
            tmp_path, group=GROUP, fingerprint=Fingerprint("other", DIMENSION, "mean")
        )
    again = await EntityIndexes.open(tmp_path, group=GROUP, fingerprint=FINGERPRINT)
    with pytest.raises(StoreConflict):
        await EntityIndexes.open(tmp_path, group=GROUP, fingerprint=FINGERPRINT)
    await again.close()


async def test_an_index_is_started_anew_when_asked(tmp_path: Path) -> None:
    vectors, _ = clustered(1, 1)
    first = await EntityIndexes.open(tmp_path, group=GROUP, fingerprint=FINGERPRINT)
    await first.apply([doc("a", "tea", vectors)])
    await first.close()
    other = Fingerprint("other", DIMENSION, "mean")
    second = await EntityIndexes.open(tmp_path, group=GROUP, fingerprint=other, rebuild="vectors")
    assert await second.owners("episodes") == (set(), {"a"})
    await second.close()
    (tmp_path / "vectors.db").write_bytes(b"broken" * 1000)
    third = await EntityIndexes.open(tmp_path, group=GROUP, fingerprint=other, rebuild="all")
    assert await third.owners("episodes") == (set(), set())
    await third.close()


async def test_what_an_index_cannot_write_may_be_written_later(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    vectors, _ = clustered(2, 1)
    made = await EntityIndexes.open(
        tmp_path, group=GROUP, fingerprint=FINGERPRINT, executor=threads
    )
    await made.apply([doc("a", "tea", vectors[:1])])
    (tmp_path / "text" / "episodes").rename(tmp_path / "away")
    with pytest.raises(StoreUnavailable, match="pps reindex"):
        await made.apply([doc("b", "coffee", vectors[1:])])
    (tmp_path / "away").rename(tmp_path / "text" / "episodes")
    await made.apply([doc("b", "coffee", vectors[1:])])
    assert await made.owners("episodes") == ({"a", "b"}, {"a", "b"})
    await made.close()


async def test_closing_waits_for_what_runs_and_refuses_what_comes(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    vectors, _ = clustered(400, 1)
    made = await EntityIndexes.open(
        tmp_path, group=GROUP, fingerprint=FINGERPRINT, executor=threads
    )
    writing = asyncio.create_task(
        made.apply([doc(f"o{at}", f"tea {at}", vectors[at : at + 1]) for at in range(400)])
    )
    await asyncio.sleep(0.01)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await asyncio.gather(made.close(), made.close())
    with pytest.raises(StoreError, match="closed"):
        await made.text_search("episodes", "tea", 1)
    again = await EntityIndexes.open(
        tmp_path, group=GROUP, fingerprint=FINGERPRINT, executor=threads
    )
    assert len((await again.owners("episodes"))[1]) in (0, 400)
    await again.close()


async def test_many_calls_at_once_on_several_entities(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    vectors, _ = clustered(60, 1)
    entities = [
        await EntityIndexes.open(
            tmp_path / str(at), group=GROUP, fingerprint=FINGERPRINT, executor=threads
        )
        for at in range(3)
    ]

    async def busy(indexes: EntityIndexes) -> None:
        await asyncio.gather(
            *(
                indexes.apply([doc(f"o{at}", f"tea number{at}", vectors[at : at + 1])])
                for at in range(20)
            ),
            *(indexes.text_search("episodes", "tea", 5) for _ in range(20)),
            *(indexes.vector_search("episodes", vectors[at], 5) for at in range(20)),
        )

    await asyncio.gather(*(busy(indexes) for indexes in entities))
    for indexes in entities:
        assert (await indexes.counts())[0]["episodes"] == 20
        assert [hit.owner for hit in await indexes.text_search("episodes", "number7", 5)] == ["o7"]
        assert (await indexes.vector_search("episodes", vectors[7], 1))[0].owner == "o7"
        await indexes.close()


@pytest.mark.timeout(400)
async def test_two_hundred_openings_keep_threads_and_files_flat(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    vectors, _ = clustered(2, 1)
    first: tuple[int, int] | None = None
    for turn in range(200):
        made = await EntityIndexes.open(
            tmp_path / str(turn % 5), group=GROUP, fingerprint=FINGERPRINT, executor=threads
        )
        await made.apply([doc(f"o{turn}", "tea", vectors)])
        assert (await made.vector_search("episodes", vectors[0], 1))[0].similarity > 0.99
        await made.close()
        if turn == 19:
            first = await settled(0, 0, looks=30)
    assert first is not None
    running, files = await settled(*first)
    assert running <= first[0] + 2
    assert files <= first[1] + 2


async def settled(running: int, files: int, looks: int = 600) -> tuple[int, int]:
    """Return how many threads and files are open: a closed client's threads end a moment after the close.

    It looks again, ten times a second, until there are no more than these.
    """
    gc.collect()
    process, seen = psutil.Process(), (10_000, 10_000)
    for _ in range(looks):
        seen = min(seen[0], process.num_threads()), min(seen[1], process.num_fds())
        if seen[0] <= running and seen[1] <= files:
            break
        await asyncio.sleep(0.1)
    return seen


async def test_thirty_two_open_entities_hold_a_bounded_number_of_files(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    vectors, _ = clustered(1, 1)
    process = psutil.Process()
    files, running = process.num_fds(), process.num_threads()
    entities = [
        await EntityIndexes.open(
            tmp_path / str(at), group=GROUP, fingerprint=FINGERPRINT, executor=threads
        )
        for at in range(32)
    ]
    for indexes in entities:
        await indexes.apply(
            [doc("a", "tea", vectors), doc("b", "tea", vectors, collection="nodes")]
        )
        await indexes.vector_search("episodes", vectors[0], 1)
    assert process.num_fds() - files <= 32 * 25
    assert process.num_threads() - running <= 32 * (
        cores() + 8
    )  # Chroma starts one a core, and three
    for indexes in entities:
        await indexes.close()
    assert (await settled(running + 4, files + 2))[1] <= files + 2


PROGRAM = """
import asyncio, logging, sys
from pathlib import Path
logging.basicConfig(level=logging.INFO)
from pps.core.errors import PPSError
from pps.index.indexes import EntityIndexes, IndexDoc
from tests.index_data import *
async def main():
    made = await EntityIndexes.open(Path(sys.argv[1]), group=GROUP, fingerprint=FINGERPRINT)
    vectors, _ = clustered(1, 1)
    await made.apply([IndexDoc("anchor", "a", "anchors", "tea", vectors=vectors)])
    await made.vector_search("anchors", vectors[0], 1)
    file = Path(sys.argv[1]) / "chroma" / "anchors" / "chroma.sqlite3"
    while sys.argv[2] == "built" and not file.exists():
        await asyncio.sleep(0.05)
    await made.close()
try:
    asyncio.run(main())
except PPSError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def run_apart(folder: Path, until: str = "built") -> subprocess.CompletedProcess[str]:
    """Run a small program on the indexes in a process of its own, in ``folder``."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(folder / "data"), until],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_the_indexes_say_nothing_on_their_own(tmp_path: Path) -> None:
    ran = run_apart(tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_a_projects_own_environment_file_does_not_change_the_index(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "PERSIST_DIRECTORY=elsewhere\nCHROMA_API_IMPL=chromadb.api.fastapi.FastAPI\n"
    )
    ran = run_apart(tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert (tmp_path / "data" / "chroma" / "anchors" / "chroma.sqlite3").exists()


def test_an_environment_that_chroma_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MIGRATIONS=down\n")
    ran = run_apart(tmp_path, "asked")
    assert ran.returncode == 0
    assert "anchors stays in memory: MIGRATIONS: set in the environment" in ran.stderr
