"""Queries of the text index on a real tantivy: any script, no operators, any length."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pps.index.text_index import TextIndex
from tests.integration.text_index import filled, owners

WORLD = {
    "running": "Ana was running to the coffee shop.",
    "tea": "Ben drinks green tea at noon",
    "chinese": "我今天在北京喝了一杯很好的咖啡",
    "japanese": "毎朝コーヒーを飲みます",
    "thai": "ฉันชอบดื่มกาแฟร้อน",
    "korean": "오늘 아침에 커피를 마셨다",
    "lao": "ຂ້ອຍມັກກາເຟ",
    "khmer": "ខ្ញុំចូលចិត្តកាហ្វេ",
    "burmese": "ကျွန်တော် ကော်ဖီ ကြိုက်တယ်",
    "russian": "Она пьёт кофе каждое утро",
    "hindi": "मुझे हिन्दी में चाय पसंद है",
    "hebrew": "אני אוהב קפה",
    "french": "Les résumés du café étaient prêts",
    "code": "call memory_store.flush_all(path='/tmp/x') in C++",
    "emoji": "what a day 🎉",
    "mixed": "我的iPhone充电器坏了",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TextIndex]:
    made = filled(tmp_path_factory.mktemp("world"), WORLD)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("query", "owner"),
    [
        ("run", "running"),
        ("coffee shops", "running"),
        ("ANA", "running"),
        ("咖啡", "chinese"),
        ("北京咖啡", "chinese"),
        ("茶 杯", "chinese"),
        ("喝", "chinese"),
        ("コーヒー", "japanese"),
        ("ｺｰﾋｰ", "japanese"),
        ("朝", "japanese"),
        ("กาแฟ", "thai"),
        ("커피", "korean"),
        ("ກາເຟ", "lao"),
        ("កាហ្វេ", "khmer"),
        ("ကော်ဖီ", "burmese"),
        ("кофе", "russian"),
        ("हिन्दी", "hindi"),
        ("קפה", "hebrew"),
        ("cafe resume", "french"),
        ("CAFÉ", "french"),
        ("flush_all", "code"),
        ("memory-store", "code"),
        ("🎉", "emoji"),
        ("充电", "mixed"),
        ("iphone", "mixed"),
        ("ｉＰｈｏｎｅ", "mixed"),
    ],
)
def test_every_script_is_found(world: TextIndex, query: str, owner: str) -> None:
    assert owners(world, query)[0] == owner


@pytest.mark.parametrize(
    "query",
    ["", " ", '"', '"tea', "tea?", "-tea", "+tea", "NOT tea", "tea AND", "tea OR OR", "(tea", "tea)", "tea^9", "tea~",
     "body:tea", "*", "te*", "[a TO b]", "\\", "/tea/", "tea\x00", "\ud83d", "'; DROP TABLE", "owner:tea IN [tea]"],
)  # fmt: skip
def test_nothing_in_a_query_is_an_operator(world: TextIndex, query: str) -> None:
    found = owners(world, query)
    assert ("tea" in found) == ("tea" in query)


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.text(st.characters()), st.integers(1, 20))
def test_any_query_text_is_safe(world: TextIndex, query: str, k: int) -> None:
    hits = world.search("episodes", query, k)
    assert len(hits) <= k
    assert all(hit.score > 0 and hit.owner in WORLD for hit in hits)


def test_a_query_of_ten_thousand_words_finds_what_few_of_them_name(world: TextIndex) -> None:
    words = [f"filler{at}" for at in range(10_000)]
    words[5000] = "coffee"
    assert owners(world, " ".join(words)) == ["running"]


def test_a_long_query_is_condensed_to_the_words_that_say_most(tmp_path: Path) -> None:
    texts = {f"common{at}": " ".join(f"word{n}" for n in range(100)) for at in range(30)}
    index = filled(tmp_path, {**texts, "rare": "zebra"})
    assert owners(index, " ".join([*(f"word{n}" for n in range(100)), "zebra"]), 1) == ["rare"]
    index.close()
