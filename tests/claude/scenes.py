"""The scenes that are recorded: what is typed into Claude Code, and what its model says to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.claude.client import Claude
from tests.claude.model import Step, TalkingModel, says, uses

RECALL = "mcp__plugin_pps_memory__ambient_recall"
FULL = 2_000_000
"""Tokens that no window holds: the client compacts by itself."""
LONG = "\n".join(
    f"{number}. A cup of flour goes into bowl number {number}." for number in range(1, 61)
)
_WAIT_S = 60.0
_CUSTOM = "Clean the $ARGUMENTS, and say when it is done."


@dataclass
class Stage:
    """Where a scene is played: the client, its model, and what was recorded so far."""

    claude: Claude
    model: TalkingModel
    events: Callable[[], list[str]]

    def until(self, event: str, times: int) -> None:
        """Wait until an event was recorded so many times in all."""
        deadline = time.monotonic() + _WAIT_S
        while self.events().count(event) < times:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{event} came {self.events().count(event)} times, not {times}: {self.events()}"
                )
            time.sleep(0.1)


def script(project: Path) -> Mapping[str, Sequence[Step]]:
    """Return what the model says to each prompt of the scenes."""
    notes = str(project / "notes.txt")
    shelf = str(project / "shelf.txt")
    everything: list[Step] = [
        [
            says("I look at what is there."),
            uses("Bash", command="ls -a", description="List the files"),
        ],
        [uses(RECALL, context="the colour of the kitchen")],
        [
            says("I write it down."),
            uses("Write", file_path=notes, content="The kitchen is green.\n"),
        ],
        [uses("Read", file_path=notes)],
        [uses("Edit", file_path=notes, old_string="green", new_string="blue")],
        [uses("Bash", command="cat nowhere.txt", description="Read a file that is not there")],
        [uses("Read", file_path=str(project / "nowhere.txt"))],
        [
            uses(
                "Agent",
                description="Count the shelves",
                prompt="Count shelves, please.",
                subagent_type="general-purpose",
            )
        ],
        [says("The kitchen is blue now.\n\nIt has three shelves.")],
    ]
    return {
        "Paint the kitchen": everything,
        "Count shelves, please.": [
            [says("I note it."), uses("Write", file_path=shelf, content="three\n")],
            [uses("Bash", command="wc -l shelf.txt", description="Count the lines")],
            [says("There are three shelves.")],
        ],
        "And the ceiling?": [[says("The ceiling stays white.")]],
        "Once more from here": [[says("This is another branch.")]],
        "What is for dinner?": [[says("Soup.")]],
        "A cup of flour": [[says("That is a lot of flour.")]],
        "Clean the oven": [[says("The oven is clean.")]],
        "Bake the bread": [
            [
                says("The oven warms up."),
                uses("Bash", command="true", description="Wait for the oven"),
            ],
            [says("The bread is in, with salt.")],
        ],
        "What did we bake?": [[says("Bread.")]],
        "Who are you?": [[says("Your cook.")]],
        "Where were we?": [[says("At the bread.")]],
        "Fill the pantry": [
            [
                says("I count the jars."),
                uses("Bash", command="echo 12 jars", description="Count the jars"),
            ],
            [says("The pantry is full.")],
        ],
        "Anything else?": [[says("No, all is done.")]],
    }


def printed(stage: Stage) -> None:
    """``claude -p``: every kind of tool, one that fails, a subagent; then the same session again, and a fork of it."""
    stage.claude.prints("Paint the kitchen: note, look, count.")
    stage.claude.prints("And the ceiling?\nIt was white,\n\n  I think.", "--continue")
    stage.claude.prints("Once more from here.", "--continue", "--fork-session")


def typed(stage: Stage) -> None:
    """A person at a terminal: lines, a paste, commands, a prompt while the model is at work, compaction, clearing."""
    command = stage.claude.project / ".claude" / "commands" / "clean.md"
    command.parent.mkdir(parents=True, exist_ok=True)
    command.write_text(_CUSTOM)
    with stage.claude.in_terminal() as terminal:
        terminal.settle()
        stage.until("SessionStart", 1)
        terminal.enters("What is for dinner?")
        stage.until("Stop", 1)
        terminal.pastes(LONG)
        stage.until("Stop", 2)
        terminal.enters("!echo salt")
        time.sleep(2)
        terminal.enters("/clean oven")
        stage.until("Stop", 3)
        terminal.enters("Bake the bread")
        stage.until("UserPromptSubmit", 4)
        terminal.enters("With salt, please")
        stage.model.held["Bake the bread"].set()
        stage.until("Stop", 4)
        terminal.enters("/compact")
        stage.until("SessionStart", 2)
        terminal.enters("What did we bake?")
        stage.until("Stop", 5)
        terminal.enters("/clear")
        stage.until("SessionStart", 3)
        terminal.enters("Who are you?")
        stage.until("Stop", 6)
        terminal.enters("/resume")
        time.sleep(2)
        terminal.press("\r")
        stage.until("SessionStart", 4)
        terminal.enters("Where were we?")
        stage.until("Stop", 7)
        terminal.enters("/exit")
        terminal.process.wait(_WAIT_S)
    stage.until("SessionEnd", 3)


def filled(stage: Stage) -> None:
    """A conversation that fills the model's window in the middle of its work: the client compacts it by itself."""
    stage.model.tokens = {"Fill the pantry": FULL}
    stage.claude.prints("Fill the pantry")
    stage.model.tokens = {}
    stage.claude.prints("Anything else?", "--continue")


SCENES: Mapping[str, Callable[[Stage], None]] = {
    "printed": printed,
    "typed": typed,
    "filled": filled,
}
