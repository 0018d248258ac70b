"""Names spelled otherwise, and languages that the embedder cannot read: words decide what is near."""

from __future__ import annotations

from pathlib import Path

import pytest

from pps.app import App
from pps.config import Settings
from pps.core.values import Turn
from pps.memory import Memory

TOLD = (
    "Mohammed teaches chemistry at the evening school.",
    "Akib borrowed my bicycle on Friday.",
    "Catherine moved to Lyon in March.",
    "The kitchen tap drips.",
    "Recycling is collected on Wednesdays.",
    "The market opens at nine.",
)
CHINESE = (
    "我的车停在火车站旁边。",
    "妈妈的生日是十一月九日。",
    "备用钥匙在花盆下面。",
    "我对坚果过敏。",
    "我们把走廊漆成了绿色。",
    "水管工叫王师傅。",
    "牙医预约在星期二下午。",
    "我在北京的一家银行工作。",
    "护照在蓝色的抽屉里。",
    "邻居借走了我们的电钻。",
)
ASKED = {
    "我的车停在哪里？": "火车站",
    "备用钥匙在哪里？": "花盆",
    "妈妈的生日是什么时候？": "十一月",
    "护照在哪里？": "抽屉",
    "谁借走了电钻？": "邻居",
    "护照放哪儿？": "抽屉",
    "我对什么过敏？": "坚果",
    "钥匙呢？": "花盆",
}
FAR = (
    "法国的首都是哪里？",
    "怎么写一个排序算法？",
    "把这句话翻译成英文。",
    "谢谢你！",
    "什么是量子力学？",
    "明天天气怎么样？",
    "你是谁？",
)
RUSSIAN = (
    "Запасной ключ лежит под цветочным горшком.",
    "Кота зовут Мисо.",
    "Сосед взял нашу дрель.",
)


async def tell(memory: Memory, texts: tuple[str, ...]) -> None:
    await memory.remember_many(
        [
            (text, {"source_ref": str(at), "session": f"day {at // 3}"})
            for at, text in enumerate(texts)
        ]
    )
    assert await memory.settled()


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What does Muhammad teach?", TOLD[0]),
        ("What did Akim borrow?", TOLD[1]),
        ("Where does Katherine live now?", TOLD[2]),
    ],
)
async def test_a_name_spelled_otherwise_is_found_in_recall_and_in_packs(
    tmp_path: Path, question: str, answer: str
) -> None:
    async with App.open(Settings(home=tmp_path)) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await tell(memory, TOLD)
            recalled = await memory.recall(question)
            first = recalled["episodes"][0].item
            assert isinstance(first, Turn)
            assert first.content == answer
            assert recalled.query == question
            assert answer.rstrip(".") in (await memory.sessions.pack(question, "s")).text
            assert (await memory.sessions.pack("What does Marek sell?", "t")).sections == {}


async def test_words_decide_where_the_embedder_does_not_read_the_language(tmp_path: Path) -> None:
    async with App.open(Settings(home=tmp_path)) as app:
        await app.create("li")
        async with app.memory("li") as memory:
            await tell(memory, CHINESE)
            for question, answer in ASKED.items():
                assert answer in (await memory.sessions.pack(question, question)).text, question
            for question in FAR:
                assert (await memory.sessions.pack(question, question)).sections == {}, question
        await app.create("olga")
        async with app.memory("olga") as memory:
            await tell(memory, RUSSIAN)
            assert "горшком" in (await memory.sessions.pack("Где лежит запасной ключ?", "s")).text
            far = await memory.sessions.pack("Как написать алгоритм сортировки?", "t")
            assert far.sections == {}
