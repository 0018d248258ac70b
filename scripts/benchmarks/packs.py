"""What a prompt's context pack holds: a right turn's text, nothing at all, how many tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.data import Conversation, Question
from benchmarks.quality import Progress, Written
from pps.app import App
from pps.core.recalled import Pack
from pps.core.text import fold

_COMPARED_CHARS = 200
"""Beginning of a turn that must be in a pack: a long turn is cut around what matched."""
PROMPT_CHARS = 65_536


@dataclass(frozen=True, slots=True)
class PackAnswer:
    """The pack of one prompt, as an agent's hook gets it in a session of its own.

    Attributes:
        conversation: Whose question it is.
        memory: Whose memory was asked: the conversation's own, or another's of the same data.
        right: A right turn is in the pack, by its own line or by a line that says the same.
        tokens: 0 for a pack that says nothing.
    """

    conversation: str
    memory: str
    question: str
    category: str
    right: bool
    tokens: int
    sections: Mapping[str, int]

    @property
    def silent(self) -> bool:
        """Whether the pack says nothing."""
        return self.tokens == 0


async def ask_packs(
    app: App,
    conversations: Sequence[Conversation],
    written: Sequence[Written],
    progress: Progress,
) -> list[PackAnswer]:
    """Ask each scored question of its own memory and, where there are several, of the next conversation's too."""
    answers: list[PackAnswer] = []
    for number, conversation in enumerate(conversations):
        asked = [written[number]]
        if len(written) > 1:
            asked.append(written[(number + 1) % len(written)])
        questions = conversation.scored()
        for memory in asked:
            answers += await _asked(app, conversation, questions, memory)
            progress(f"packs of {memory.conversation}", len(answers), len(answers))
    return answers


async def _asked(
    app: App, conversation: Conversation, questions: Sequence[Question], written: Written
) -> list[PackAnswer]:
    uuids = {data_id: uuid for uuid, data_id in written.ids.items()}
    answers: list[PackAnswer] = []
    async with app.memory(written.entity) as memory:
        for question in questions:
            session = f"packs {conversation.name} {question.id}"[:200]
            pack = await memory.sessions.pack(question.text[:PROMPT_CHARS], session)
            own = conversation.name == written.conversation
            answers.append(
                PackAnswer(
                    conversation.name,
                    written.conversation,
                    question.id,
                    question.category,
                    own and _holds_right(pack, conversation, question, uuids),
                    pack.tokens if pack.sections else 0,
                    pack.sections,
                )
            )
    return answers


def _holds_right(
    pack: Pack, conversation: Conversation, question: Question, uuids: Mapping[str, str]
) -> bool:
    if not pack.sections:
        return False
    text = fold(pack.text)
    for gold in question.gold:
        turn = conversation.turns.get(gold)
        if turn is None:
            continue
        words = turn.content.removeprefix(f"{turn.actor}: ")
        if uuids.get(gold) in pack.shown or fold(words)[:_COMPARED_CHARS] in text:
            return True
    return False


def pack_figures(answers: Sequence[PackAnswer]) -> dict[str, float | int | None]:
    """Return the shares in percent of packs that hold a right turn, that are empty, and that are silent for others.

    ``tokens`` is the mean over all packs of the own memory, ``tokens_given`` that over those that say something.
    """
    own = [answer for answer in answers if answer.conversation == answer.memory]
    others = [answer for answer in answers if answer.conversation != answer.memory]
    spoken = [answer.tokens for answer in own if not answer.silent]
    return {
        "packs": len(own),
        "right": _percent([answer.right for answer in own]),
        "empty": _percent([answer.silent for answer in own]),
        "tokens": round(fmean(answer.tokens for answer in own), 1) if own else None,
        "tokens_given": round(fmean(spoken), 1) if spoken else None,
        "others_silent": _percent([answer.silent for answer in others]),
    }


def _percent(values: Sequence[bool]) -> float | None:
    return round(100 * fmean(values), 2) if values else None
