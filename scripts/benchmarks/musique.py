"""Reading MuSiQue's own file: multi-hop questions over passages, all in one memory.

A second data set of another kind, without speakers, neighbours or facts: what helps conversations must not hurt it.

Source: MuSiQue, Trivedi et al. 2022.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from benchmarks.data import Conversation, Question, Said
from pps.core.errors import InvalidRequest
from pps.core.ids import stable_id

_NAME = "musique"


def read_musique(path: Path) -> list[Conversation]:
    """Return one conversation: each distinct passage a turn of its own session, each question by its hops.

    Raises:
        InvalidRequest: The file is not MuSiQue's list of questions with ``paragraphs``.
    """
    conversation = Conversation(_NAME)
    asked: list[Question] = []
    for number, one in enumerate(_questions(path)):
        gold: set[str] = set()
        for paragraph in _paragraphs(one, path, number):
            turn = _passage(paragraph)
            if turn.id not in conversation.turns:
                conversation.say(turn)
            if paragraph.get("is_supporting"):
                gold.add(turn.id)
        name = str(one.get("id") or number)
        hops, underscores, _ = name.partition("__")
        asked.append(
            Question(
                name, str(one.get("question", "")), hops if underscores else "none", frozenset(gold)
            )
        )
    for question in asked:
        conversation.ask(question)
    return [conversation]


def _questions(path: Path) -> Sequence[Mapping[str, Any]]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        raise InvalidRequest("data", f"{path} is not a JSON file that can be read") from None
    if not isinstance(found, list) or not all(
        isinstance(one, dict) for one in cast("list[Any]", found)
    ):
        raise InvalidRequest(
            "data", f"{path} must be a list of questions with their paragraphs, as MuSiQue's is"
        )
    return cast("list[Mapping[str, Any]]", found)


def _paragraphs(
    question: Mapping[str, Any], path: Path, number: int
) -> Sequence[Mapping[str, Any]]:
    found = question.get("paragraphs")
    if not isinstance(found, list):
        raise InvalidRequest(
            "data",
            f"{path}: question {number} has no 'paragraphs'; MuSiQue's file is read as it is, LoCoMo's goes "
            "through locomo_to_graph.py first",
        )
    return cast("list[Mapping[str, Any]]", found)


def _passage(paragraph: Mapping[str, Any]) -> Said:
    content = f"{paragraph.get('title', '')}: {paragraph.get('paragraph_text', '')}"
    uuid = stable_id(_NAME, content)
    return Said(id=uuid, content=content, session=uuid)
