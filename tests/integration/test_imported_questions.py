"""Files of other programs are imported together; their owner's questions find what each of them said."""

from __future__ import annotations

from pathlib import Path

from pps.app import App
from pps.config import Settings
from pps.ingest.importing.run import Wanted
from tests import importing_files as made

QUESTIONS: tuple[tuple[str, str, str], ...] = (
    ("open-webui", "How long does my sourdough starter rest?", "Twelve hours."),
    ("open-webui", "At which temperature do I keep the starter?", "24 degrees"),
    ("open-webui", "Which photo did I send of the starter?", "gerald.jpg"),
    ("librechat", "How much does the van use?", "Eight litres."),
    ("librechat", "Which van did we buy?", "blue one"),
    ("librechat", "What did I ask about the van?", "How thirsty"),
    ("codex", "What was wrong with the till?", "rounds wrongly"),
    ("codex", "How does the till round?", "half to even"),
    ("codex", "What did you change in the till?", "I changed it"),
    ("codex", "Which search was run for rounding?", "rg round"),
    ("gemini-cli", "Where do the labels lie?", "print/labels"),
    ("gemini-cli", "Which files were searched for?", "*.svg"),
    ("messages", "What is my sister's name?", "Ines"),
    ("whatsapp", "When is grandma's party?", "on the 20th"),
    ("whatsapp", "How many chairs does Rui bring?", "I'll bring six"),
    ("whatsapp", "Are the chairs old or new?", "two old, four new"),
    ("whatsapp", "Where are the chairs?", "in the car"),
    ("whatsapp", "What should I bring to the party?", "chairs"),
    ("mcp-memory", "Which instrument does Marta play?", "cello"),
    ("mcp-memory", "What is Marta allergic to?", "nuts"),
    ("mcp-memory", "Where does Marta play?", "plays in Orchestra"),
    ("claude-mem", "Why did the till lose half cents?", "cut, not rounded"),
    ("claude-mem", "How do banks round?", "half to even"),
    ("claude-mem", "What does till.py use now?", "decimal"),
    ("claude-mem", "What did I ask about a cent?", "off by a cent"),
    ("mcp-memory-service", "When does the staging key rotate?", "Mondays"),
    ("letta", "On which day do I row?", "Tuesdays"),
    ("letta", "Which river do I like?", "Elbe"),
)
"""Format, question, and words of the right turn, which is to be among the first ten of all programs' turns together."""


async def test_questions_find_what_other_programs_kept(tmp_path: Path) -> None:
    async with App.open(Settings(home=tmp_path / "home")) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            for name in dict.fromkeys(name for name, _, _ in QUESTIONS):
                path = made.MAKE[name](tmp_path / name)
                done = await memory.documents.import_files(Wanted((path,)))
                assert done.files == {name: 1}
            assert await memory.settled(120)
            missed: list[tuple[str, str]] = []
            for name, question, words in QUESTIONS:
                recalled = await memory.recall(question, channels=("episodes",), limit=10)
                if not any(words in hit.text for hit in recalled["episodes"]):
                    missed.append((name, question))
    assert missed == []
