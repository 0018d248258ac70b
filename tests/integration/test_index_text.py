"""The text index on a real tantivy: any text, full lists, scores, and deleted text that is gone."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pps.core.errors import ConfigError, InvalidRequest, IsolationError, StoreConflict, StoreError
from pps.index.text_index import TextDoc, TextIndex
from tests.index_data import GROUP, OTHER_GROUP
from tests.integration.text_index import filled, owners


@pytest.fixture
def index(tmp_path: Path) -> Iterator[TextIndex]:
    made = TextIndex.open(tmp_path / "text", group=GROUP)
    yield made
    made.close()


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=20), st.text(st.characters()), max_size=8
    )
)
def test_any_text_of_any_owner_is_kept_and_dropped(index: TextIndex, texts: dict[str, str]) -> None:
    index.replace(
        [TextDoc("anchors", owner, text, title=text[:9]) for owner, text in texts.items()]
    )
    index.commit()
    assert index.owners("anchors") == set(texts)
    index.delete("anchors", texts)
    index.commit()
    assert index.count("anchors") == 0


def test_a_word_of_every_text_is_still_found_as_a_name(index: TextIndex) -> None:
    index.replace(
        [
            TextDoc("nodes", "will", "", title="Will"),
            TextDoc("nodes", "the", "will be there for this"),
        ]
    )
    index.commit()
    assert owners(index, "will", collection="nodes") == ["will"]


def test_a_name_counts_more_than_a_mention(index: TextIndex) -> None:
    index.replace(
        [
            TextDoc("nodes", "mention", "met Ana in Paris"),
            TextDoc("nodes", "name", "met her in Rome", title="Ana"),
        ]
    )
    index.commit()
    assert owners(index, "Ana", collection="nodes") == ["name", "mention"]


def test_scores_are_bm25(tmp_path: Path) -> None:
    index = filled(
        tmp_path,
        {"short": "zebra", "long": "zebra and a great many other striped animals", "no": "cat"},
    )
    hits = index.search("episodes", "zebra", 5)
    # idf = ln(1 + (3 - 2 + .5) / (2 + .5)); tf part with k1 = 1.2, b = .75 and a mean length of 3 words.
    assert hits[0].owner == "short"
    assert hits[0].score == pytest.approx(0.470 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 1 / 3)), rel=0.15)
    assert hits[0].score > hits[1].score
    index.close()


def test_other_collections_do_not_change_scores(index: TextIndex) -> None:
    index.replace([TextDoc("nodes", f"n{at}", f"animal number {at} zebra") for at in range(20)])
    index.commit()
    alone = index.search("nodes", "zebra 7", 20)
    index.replace([TextDoc("episodes", f"e{at}", "zebra " * (1 + at % 50)) for at in range(500)])
    index.commit()
    assert index.search("nodes", "zebra 7", 20) == alone


def test_a_change_is_found_from_the_commit_on(index: TextIndex) -> None:
    index.replace([TextDoc("facts", "a", "first zebra")])
    assert owners(index, "zebra", collection="facts") == []
    index.commit()
    assert owners(index, "zebra", collection="facts") == ["a"]
    index.replace([TextDoc("facts", "a", "second"), TextDoc("facts", "a", "third lion")])
    index.commit()
    assert owners(index, "zebra second", collection="facts") == []
    assert owners(index, "lion", collection="facts") == ["a"]
    assert index.count("facts") == 1


def test_deleted_owners_are_gone_and_absent_ones_are_no_error(index: TextIndex) -> None:
    index.replace([TextDoc("facts", "a", "zebra"), TextDoc("facts", "b", "zebra lion")])
    index.delete("facts", ["a", "nobody"])
    index.delete("nodes", ["a"])
    index.commit()
    assert owners(index, "zebra", collection="facts") == ["b"]
    assert index.owners("facts") == {"b"}


def test_what_was_not_committed_is_dropped_at_a_close(tmp_path: Path) -> None:
    index = filled(tmp_path, {"a": "zebra"})
    index.replace([TextDoc("episodes", "b", "zebra")])
    index.close()
    again = TextIndex.open(tmp_path, group=GROUP)
    assert owners(again, "zebra") == ["a"]
    again.close()


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1, 0.02, 0.001])
def test_lists_are_full_and_exact_at_any_share_of_allowed_owners(
    tmp_path: Path, share: float
) -> None:
    words, chance = [f"w{at}" for at in range(300)], random.Random(5)  # noqa: S311 - a test's data
    weights = [1 / (at + 1) for at in range(300)]
    texts = {f"o{at}": " ".join(chance.choices(words, weights, k=12)) for at in range(4000)}
    index = filled(tmp_path, texts)
    allowed = set(chance.sample(sorted(texts), int(4000 * share)))
    for query in ("w0 w5", "w120", "w1 w250 w299"):
        exact = [hit for hit in index.search("episodes", query, 4000) if hit.owner in allowed][:10]
        found = index.search("episodes", query, 10, allowed)
        assert {hit.owner for hit in found} <= allowed
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in exact], rel=1e-4)
    assert index.search("episodes", "w0", 10, set()) == []
    assert index.search("episodes", "w0", 10, {f"stranger{at}" for at in range(5000)}) == []
    index.close()


def traces(folder: Path, *secrets: bytes) -> list[Path]:
    return [
        file
        for file in folder.rglob("*")
        if file.is_file() and any(secret in file.read_bytes() for secret in secrets)
    ]


def test_purged_text_is_not_on_disk_and_the_rest_is_found(tmp_path: Path) -> None:
    index = TextIndex.open(tmp_path, group=GROUP)
    secrets = (b"qqsecretword", "泄漏密码".encode(), b"qqoldtitle")
    index.replace([TextDoc("episodes", f"o{at}", f"keep{at} zebra 咖啡 {at}") for at in range(300)])
    index.replace([TextDoc("episodes", "o7", "qqsecretword 泄漏密码 once", title="qqoldtitle")])
    index.replace([TextDoc("nodes", "n", "qqsecretword too"), TextDoc("nodes", "stays", "zebra")])
    index.commit()
    assert traces(tmp_path, *secrets)
    index.delete("nodes", ["n"])
    index.replace([TextDoc("episodes", "o7", "keep7 zebra 咖啡 7")])
    index.commit()
    assert owners(index, "qqsecretword 泄漏密码 qqoldtitle") == []
    assert traces(tmp_path, *secrets)
    assert index.purge() >= 2
    assert traces(tmp_path, *secrets) == []
    assert index.count("episodes") == 300
    assert owners(index, "keep7") == ["o7"]
    assert len(owners(index, "咖啡", 300)) == 300
    assert index.purge() == 0
    index.close()


def test_purging_keeps_scores_titles_and_every_field(index: TextIndex) -> None:
    docs = [
        TextDoc("nodes", f"n{at}", f"body{at} 很好的咖啡", title=f"Name{at}", at=at)
        for at in range(50)
    ]
    index.replace([*docs, TextDoc("nodes", "gone", "body1")])
    index.delete("nodes", ["gone"])
    index.commit()
    index.purge()
    before = [index.search("nodes", query, 50) for query in ("Name7", "body9", "咖啡", "好")]
    index.replace([docs[3]])
    index.commit()
    index.purge()
    assert [
        index.search("nodes", query, 50) for query in ("Name7", "body9", "咖啡", "好")
    ] == before


def test_stemming_follows_the_language(tmp_path: Path) -> None:
    german = filled(tmp_path / "de", {"a": "Die Häuser der Kinder"}, language="german")
    assert owners(german, "haus kind") == ["a"]
    german.close()
    plain = filled(tmp_path / "none", {"a": "running the shops"}, language="none")
    assert (owners(plain, "run"), owners(plain, "the"), owners(plain, "RUNNING")) == (
        [],
        ["a"],
        ["a"],
    )
    plain.close()


def test_another_language_starts_the_index_anew(tmp_path: Path) -> None:
    filled(tmp_path, {"a": "zebra"}).close()
    again = TextIndex.open(tmp_path, group=GROUP, language="german")
    assert again.count("episodes") == 0
    again.close()


def test_an_unknown_language_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"text\.language"):
        TextIndex.open(tmp_path, group=GROUP, language="klingon")


def test_another_entitys_folder_is_refused(tmp_path: Path) -> None:
    filled(tmp_path, {"a": "zebra"}).close()
    for language in ("english", "german"):
        with pytest.raises(IsolationError):
            TextIndex.open(tmp_path, group=OTHER_GROUP, language=language)
    again = TextIndex.open(tmp_path, group=GROUP)
    assert owners(again, "zebra") == ["a"]
    again.close()


def test_a_folder_is_open_once(tmp_path: Path) -> None:
    index = filled(tmp_path, {"a": "zebra"})
    with pytest.raises(StoreConflict):
        TextIndex.open(tmp_path, group=GROUP)
    assert owners(index, "zebra") == ["a"]
    index.close()
    index.close()
    with pytest.raises(StoreError, match="closed"):
        index.search("episodes", "zebra", 1)
    TextIndex.open(tmp_path, group=GROUP).close()


def test_a_write_that_failed_is_no_reason_for_the_next_to_fail(tmp_path: Path) -> None:
    index = filled(tmp_path, {"a": "zebra"})
    folder, away = tmp_path / "episodes", tmp_path / "away"
    docs = [TextDoc("episodes", f"b{at}", f"lion {at}") for at in range(200)]
    index.delete(
        "episodes", ["nobody"]
    )  # there is a writer, and then no file can be made: as good as a full disk
    folder.rename(away)

    def written() -> None:
        for some in (docs[:100], docs[100:]):
            index.replace(some)
            time.sleep(0.2)  # the writer's thread finds out by itself
        index.commit()

    for _ in range(3):
        with pytest.raises(StoreError, match="pps reindex"):
            written()
    away.rename(folder)
    assert owners(index, "zebra") == ["a"]
    assert owners(index, "lion") == []
    index.replace(docs)
    index.commit()
    assert len(owners(index, "lion", 300)) == 200
    assert index.purge() == 0
    index.close()
    again = TextIndex.open(tmp_path, group=GROUP)
    assert again.count("episodes") == 201
    again.close()


def test_files_that_cannot_be_read_are_an_error_that_names_reindex(tmp_path: Path) -> None:
    filled(tmp_path, {"a": "zebra"}).close()
    meta = tmp_path / "episodes" / "meta.json"
    good = meta.read_text()
    meta.write_text("not json")
    with pytest.raises(StoreError, match="pps reindex"):
        TextIndex.open(tmp_path, group=GROUP)
    meta.write_text(json.dumps({"segments": []}))
    index = TextIndex.open(tmp_path, group=GROUP)
    with pytest.raises(StoreError, match="pps reindex"):
        index.search("episodes", "zebra", 1)
    index.close()
    meta.write_text(good)
    for file in (tmp_path / "episodes").glob("*.term"):
        file.unlink()
    index = TextIndex.open(tmp_path, group=GROUP)
    with pytest.raises(StoreError, match="pps reindex"):
        index.search("episodes", "zebra", 1)
    index.close()
    shutil.rmtree(tmp_path / "episodes")
    (tmp_path / "episodes").mkdir()
    index = TextIndex.open(tmp_path, group=GROUP)
    assert (index.count("episodes"), owners(index, "zebra")) == (0, [])
    index.close()


def test_clearing_empties_every_collection_and_the_index_goes_on(index: TextIndex) -> None:
    index.replace([TextDoc("facts", "a", "zebra")])
    index.commit()
    index.clear()
    assert (index.count("facts"), owners(index, "zebra", collection="facts")) == (0, [])
    index.replace([TextDoc("facts", "b", "zebra")])
    index.commit()
    assert owners(index, "zebra", collection="facts") == ["b"]


def test_an_index_tells_its_own_empty_collections_from_those_of_another(tmp_path: Path) -> None:
    with (
        closing(TextIndex.open(tmp_path / "a" / "text", group=GROUP)) as ours,
        closing(TextIndex.open(tmp_path / "b" / "text", group=OTHER_GROUP)) as other,
    ):
        other.replace([TextDoc("nodes", "other", "the other's lighthouse")])
        other.commit()
        assert ours.is_empty("nodes")
        assert ours.search("nodes", "lighthouse", 5) == []
        ours.replace([TextDoc("nodes", "own", "a windmill")])
        assert not ours.is_empty("nodes")
        ours.commit()
        assert owners(ours, "windmill", collection="nodes") == ["own"]
        other.clear()
        assert other.is_empty("nodes")
        assert not ours.is_empty("nodes")
    with closing(TextIndex.open(tmp_path / "a" / "text", group=GROUP)) as reopened:
        assert not reopened.is_empty("nodes")
        assert reopened.is_empty("facts")
        assert owners(reopened, "windmill", collection="nodes") == ["own"]


def test_bad_arguments_are_refused(index: TextIndex) -> None:
    with pytest.raises(InvalidRequest, match="collection"):
        index.search("secrets", "zebra", 1)
    with pytest.raises(InvalidRequest, match="collection"):
        index.replace([TextDoc("secrets", "a", "zebra")])
    with pytest.raises(InvalidRequest, match="k:"):
        index.search("facts", "zebra", 0)


def test_searches_and_writes_run_beside_each_other(tmp_path: Path) -> None:
    index = filled(tmp_path, {f"o{at}": f"zebra {at}" for at in range(200)})
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            assert len(index.search("episodes", "zebra", 50)) == 50
            assert len(index.search("episodes", "zebra", 5, {f"o{at}" for at in range(150)})) == 5

    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(ask) for _ in range(3)]
        try:
            for at in range(15):
                index.replace([TextDoc("episodes", f"x{at}-{n}", "zebra lion") for n in range(20)])
                index.commit()
                if at % 5 == 4:
                    index.delete("episodes", [f"x{at}-0"])
                    index.purge()
        finally:
            done.set()
        for one in asking:
            one.result()
    assert index.count("episodes") == 497
    index.close()
