"""Models that talk: what they are asked and what they stream, whoever serves them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

MOST_CHARACTERS = 60_000
"""Most characters of one answer; a model that says more is cut off there."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to have a tool called; ``arguments`` is JSON as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a prompt.

    Attributes:
        calls: Of an assistant's message: the tools that it wanted.
        call_id: Of a tool's message: the call that it answers.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ChatTool:
    """A tool that a model may call; ``parameters`` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Words:
    """The next words of an answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Used:
    """What a request took in tokens; ``metered`` is False where that is an estimate."""

    tokens_in: int
    tokens_out: int
    metered: bool


@dataclass(frozen=True, slots=True)
class CutShort:
    """The answer ended at its bound of tokens, not by itself."""


Piece: TypeAlias = Words | ToolCall | Used | CutShort


class ChatModel(Protocol):
    """A model that talks.

    Attributes:
        name: What the room calls it.
        calls_tools: Whether it can be offered tools.
    """

    @property
    def name(self) -> str: ...

    @property
    def calls_tools(self) -> bool: ...

    def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[ChatTool]
    ) -> AsyncGenerator[Piece]:
        """Yield an answer as it comes: words at once, calls of tools whole, what it took last.

        Closing the generator ends the request.

        Raises:
            ConfigError: The server refuses the key, or knows no such model.
            ModelUnavailable: It cannot be reached, is busy, or is silent for too long.
            ModelOutputInvalid: It streams something else than its protocol.
            ModelError: It refuses the request.
        """
        ...


@dataclass(frozen=True, slots=True)
class TalkSettings:
    """Who answers for an entity; see ``[talk]`` of its ``entity.toml``.

    Attributes:
        folder: The entity's, where a relative ``key_file`` begins.
    """

    server: Literal["openai", "anthropic", "command"] | None
    folder: Path
    model: str = ""
    base_url: str = ""
    command: str | Sequence[str] | None = None
    key_env: str | None = None
    key_file: str = ""
    tools: bool = True
    max_tokens: int = 1_024
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class ChatServer:
    """Where a model is asked, and for what; ``key`` is shown by no text of it."""

    model: str
    base_url: str
    max_tokens: int
    timeout_s: float
    calls_tools: bool
    key: str = field(repr=False)
