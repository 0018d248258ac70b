"""A life told in turns, the facts that each source finds in it, and how well its memory's packs answer.

``tests/life/traveller``: the turns, each with its own offset; the facts, written from the turns alone, that an agent gives
and that stand-ins for a command and a model find; the questions, each with words of the right line and a pattern of the
lines that are superseded; prompts that need nothing of a memory.

    PYTHONPATH=. .venv/bin/python -m tests.lives

prints the table of all sources.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from pps.app import App
from pps.config import EmbedderSettings, ExtractorSettings, Settings
from pps.core.values import FactDraft, NodeDraft
from pps.ingest.drafts import RememberOptions
from pps.memory import Memory
from tests import stand_in
from tests.model_answers import Reading
from tests.model_server import model_server, reading_by

Source = Literal["none", "rules", "agent", "command", "model"]
SOURCES: tuple[Source, ...] = get_args(Source)
_FOLDER = Path(__file__).parent / "life" / "traveller"
_PERSON = "Elena Marsh"
_MARKED = re.compile(
    r"\((?:superseded|possibly outdated since) \d{4}| to \d{4}-\d\d-\d\d\)|\(until \d{4}"
)
"""What a line says of itself when it holds no more: what took its place, or when it ended."""


@dataclass(frozen=True, slots=True)
class Life:
    """What is told and asked; see the module."""

    turns: Sequence[dict[str, str]]
    facts: Sequence[dict[str, Any]]
    questions: Sequence[dict[str, Any]]
    negatives: Sequence[str]


@dataclass(frozen=True, slots=True)
class Score:
    """What the packs of a life hold.

    Attributes:
        facts: How many facts the memory has.
        missed: Questions whose pack has no right line.
        late: Questions whose pack has a superseded line above the first right one.
        unmarked: Questions whose pack has a superseded line that does not say so, with that line.
        loud: Prompts that need nothing and were given something.
    """

    facts: int
    missed: tuple[str, ...]
    late: tuple[str, ...]
    unmarked: tuple[tuple[str, str], ...]
    loud: tuple[str, ...]


def life() -> Life:
    read = {
        name: json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
        for name in ("turns", "facts", "questions")
    }
    return Life(**read, negatives=(_FOLDER / "negatives.txt").read_text("utf-8").splitlines())


@contextlib.asynccontextmanager
async def lived(source: Source, folder: Path, embedder: str = "minilm") -> AsyncIterator[Memory]:
    """Open a memory that was told the life; its facts come from one source."""
    told = life()
    with _extractor(source, folder, told) as extractor:
        settings = Settings(
            home=folder / "home", embedder=EmbedderSettings(name=embedder), extractor=extractor
        )
        async with App.open(settings) as app:
            await app.create("elena")
            async with app.memory("elena") as memory:
                for session in dict.fromkeys(turn["session"] for turn in told.turns):
                    turns = [turn for turn in told.turns if turn["session"] == session]
                    await memory.remember_many([_entry(turn, source, told) for turn in turns])
                    if not await memory.settled(300):
                        raise TimeoutError(f"{session} was not taken in")
                yield memory


async def score(memory: Memory) -> Score:
    """Ask every question, and every prompt that needs nothing, in a session of its own."""
    told = life()
    missed: list[str] = []
    late: list[str] = []
    unmarked: list[tuple[str, str]] = []
    for number, question in enumerate(told.questions):
        pack = await memory.sessions.pack(question["question"], f"question-{number}")
        lines = (
            [line for line in pack.text.splitlines() if line.startswith("- ")]
            if pack.sections
            else []
        )
        right = [
            at for at, line in enumerate(lines) if any(word in line for word in question["answer"])
        ]
        superseded = [at for at, line in enumerate(lines) if _is_superseded(line, question)]
        if not right:
            missed.append(question["question"])
        elif superseded and superseded[0] < right[0]:
            late.append(question["question"])
        unmarked += [
            (question["question"], lines[at]) for at in superseded if not _MARKED.search(lines[at])
        ]
    loud: list[str] = []
    for number, prompt in enumerate(told.negatives):
        if (await memory.sessions.pack(prompt, f"needless-{number}")).sections:
            loud.append(prompt)
    page = await memory.timeline(limit=200)
    return Score(len(page.facts), tuple(missed), tuple(late), tuple(unmarked), tuple(loud))


def _is_superseded(line: str, question: dict[str, Any]) -> bool:
    """Tell whether a line states what holds no more, beside the words of its mark."""
    stated = re.split(r" \((?:superseded|possibly outdated)", line)[0]
    old = question.get("superseded")
    return bool(old and re.search(old, stated)) and not any(
        word in stated for word in question["answer"]
    )


def _entry(turn: dict[str, str], source: Source, told: Life) -> tuple[str, RememberOptions]:
    options: RememberOptions = {
        "session": turn["session"],
        "occurred_at": datetime.fromisoformat(turn["at"]),
        "source_ref": turn["at"],
    }
    if source == "none":
        options["extraction"] = "none"
    if source == "agent":
        found = [fact for fact in told.facts if fact["said"][-1] in turn["text"]]
        options["nodes"] = [NodeDraft(_PERSON, "Person", aliases=("Elena",))] if found else []
        options["facts"] = [_draft(fact) for fact in found]
    return turn["text"], options


def _draft(fact: dict[str, Any]) -> FactDraft:
    begun = fact.get("valid_at")
    return FactDraft(
        fact["subject"],
        fact["relation"],
        fact["object"],
        fact["text"],
        valid_at=datetime.fromisoformat(f"{begun}T00:00:00+00:00") if begun else None,
        invalidates=tuple(fact.get("invalidates", ())),
    )


@contextlib.contextmanager
def _extractor(source: Source, folder: Path, told: Life) -> Iterator[ExtractorSettings]:
    if source == "command":
        script = [
            {"node": {"name": _PERSON, "kind": "Person", "aliases": ["Elena", "User"]}},
            *told.facts,
        ]
        (folder / "script.json").write_text(json.dumps(script), "utf-8")
        words = (sys.executable, str(Path(stand_in.__file__)), str(folder))
        yield ExtractorSettings(mode="command", command=words)
    elif source == "model":
        with model_server(reading=Reading(_facts_in(told), _ends_in(told))) as server:
            yield reading_by(server.base_url)
    else:
        yield ExtractorSettings(mode="rules" if source == "rules" else "given")


def _facts_in(told: Life) -> Any:
    """Return the reading of a text: the facts of the life whose last words are in it."""

    def facts(text: str) -> Iterator[dict[str, str]]:
        for fact in told.facts:
            if fact["said"][-1] in text:
                names = {name: fact[name] for name in ("subject", "object", "relation")}
                yield {**names, "fact": fact["text"]}

    return facts


def _ends_in(told: Life) -> Any:
    ended = {fact["text"]: fact.get("invalidates", ()) for fact in told.facts}
    return lambda new, old: old in ended.get(new, ())


def table(scores: dict[Source, Score]) -> str:
    """Return the scores as a table, a source a line."""
    told = life()
    lines = ["source    facts  right  current first  superseded unmarked  negatives silent"]
    for source, found in scores.items():
        asked, silent = len(told.questions), len(told.negatives)
        right = asked - len(found.missed)
        lines.append(
            f"{source:8} {found.facts:6}  {right:2}/{asked}  {right - len(found.late):2}/{asked}"
            f"          {len(found.unmarked):2}                   {silent - len(found.loud)}/{silent}"
        )
    return "\n".join(lines)


async def main() -> None:
    scores: dict[Source, Score] = {}
    for source in [one for one in SOURCES if one in sys.argv[1:]] or SOURCES:
        folder = Path(tempfile.mkdtemp())
        try:
            async with lived(source, folder) as memory:
                scores[source] = await score(memory)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        sys.stderr.write(f"{source}: {scores[source]}\n")
    sys.stdout.write(f"{table(scores)}\n")


if __name__ == "__main__":
    asyncio.run(main())
