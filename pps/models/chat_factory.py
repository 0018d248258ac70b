"""From ``[talk]`` of an entity's ``entity.toml`` to the model that answers for it.

A key stands in the environment or in a file of mode 0600, is read when it is needed, and is in no
message, log or answer.
"""

from __future__ import annotations

import os
import stat
from importlib.util import find_spec
from pathlib import Path

from pps.core.errors import ConfigError, NotSet
from pps.models.chat import ChatModel, ChatServer, TalkSettings
from pps.models.chat_command import make_chat_command
from pps.models.chat_sdk import AnthropicChat, OpenAIChat

_HOW_TO_SET = (
    "nobody answers for {name} yet: set [talk] server (openai, anthropic or command) and model "
    "in its entity.toml"
)
_MOST_KEY = 4_096


def make_chat_model(settings: TalkSettings, name: str) -> ChatModel:
    """Return the model that answers for the entity of a name. Blocks while it reads a key's file.

    Raises:
        NotSet: Nothing is set; the message says in one line what to set.
        ConfigError: Something that is needed is missing, or a key's file may be read by others.
    """
    if settings.server is None:
        raise NotSet(_HOW_TO_SET.format(name=name))
    if settings.server == "command":
        return make_chat_command(settings)
    if not settings.model:
        raise ConfigError(f"talk.model: server '{settings.server}' needs a model's name")
    key = _read_key(settings)
    if settings.server == "openai":
        if not key and not settings.base_url:
            raise ConfigError(
                "talk.key_env: OpenAI needs a key in OPENAI_API_KEY, or another variable or "
                "talk.key_file; another server is named by talk.base_url, such as "
                "http://127.0.0.1:11434/v1"
            )
        return OpenAIChat(_server(settings, key))
    if find_spec("anthropic") is None:
        raise ConfigError(
            "talk.server: 'anthropic' needs its package: install pps with its extra 'providers'"
        )
    if not key:
        raise ConfigError(
            "talk.key_env: Anthropic needs a key in ANTHROPIC_API_KEY, or another variable or "
            "talk.key_file"
        )

    return AnthropicChat(_server(settings, key))


def _server(settings: TalkSettings, key: str) -> ChatServer:
    return ChatServer(
        model=settings.model,
        base_url=settings.base_url,
        max_tokens=settings.max_tokens,
        timeout_s=settings.timeout_s,
        calls_tools=settings.tools,
        key=key,
    )


def _read_key(settings: TalkSettings) -> str:
    """Return the key; empty where none is named, and the vendor's variable is not set either."""
    if settings.key_file:
        return _key_of_file(settings.folder / Path(settings.key_file).expanduser())
    if settings.key_env is not None:
        key = os.environ.get(settings.key_env, "")
        if not key:
            raise ConfigError(
                f"talk.key_env: {settings.key_env} is not set in the server's environment"
            )
        return key
    if settings.base_url:  # the vendor's key is for the vendor alone
        return ""
    vendor = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
    return os.environ.get(vendor[settings.server or "openai"], "")


def _key_of_file(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise ConfigError(f"talk.key_file: {path} cannot be read ({error.strerror})") from None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_mode & 0o077:
            raise ConfigError(
                f"talk.key_file: {path} must be a file that its owner alone may read; "
                f"run `chmod 600 {path}`"
            )
        key = file.read(_MOST_KEY + 1).decode("utf-8", "replace").strip()
    if not key or len(key) > _MOST_KEY or not key.isprintable():
        raise ConfigError(f"talk.key_file: {path} holds no key")
    return key
