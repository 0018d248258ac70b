"""Statements of a turn about its speaker: preferences, instructions, identity, duties.

Preferences are constraints and health too: what somebody likes, avoids or may not have.

The cues are data (``config/statements.toml``). A statement is looked for sentence by sentence, and
never in a sentence that asks. What is found is kept with a turn as perspective data, so that a
context pack looks it up without reading any text.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from pps.config.packaged import shipped
from pps.core.text import is_question, sentences_of

Statement: TypeAlias = Literal["preference", "instruction", "identity", "todo"]
STATEMENTS: tuple[Statement, ...] = get_args(Statement)
_READ_CHARS = 4_000
"""Characters of a turn that are read: a pasted document says nothing about the speaker."""
_LONGEST_SENTENCE = 400


@lru_cache(maxsize=2_048)
def statements_of(text: str) -> frozenset[Statement]:
    """Return which kinds of statement a person's words hold; empty for most texts.

    Args:
        text: The words alone, without the speaker's name.
    """
    sentences = [
        sentence.strip().replace("’", "'")
        for sentence in sentences_of(text[:_READ_CHARS])
        if len(sentence) <= _LONGEST_SENTENCE and not is_question(sentence)
    ]
    return frozenset(
        kind
        for kind in STATEMENTS
        if any(_cues(kind).search(sentence) for sentence in sentences if sentence)
    )


@lru_cache(maxsize=len(STATEMENTS))
def _cues(kind: Statement) -> re.Pattern[str]:
    languages = tomllib.loads(shipped("config/statements.toml").read_text("utf-8"))
    patterns = [pattern for cues in languages.values() for pattern in cues[kind]]
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)
