"""Every setting as it is in effect, and where its value comes from; never a secret."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import BaseModel, SecretStr

from pps.config.home import home_folder
from pps.config.loading import load, read_layers, tool_variable
from pps.config.settings import Settings, as_text, is_secret_field
from pps.config.toml_lines import TomlLines
from pps.core.user_files import read_text

_CREDENTIALS = re.compile(r"//[^/@\s]+@")


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """One setting.

    Attributes:
        key: Such as ``embedder.name``.
        value: As text; of a secret only whether it is set.
        source: ``default``, ``pps.toml line 12``, or the variable of the environment that sets it.
    """

    key: str
    value: str
    source: str

    @property
    def is_default(self) -> bool:
        return self.source == "default"


def effective_settings(env: Mapping[str, str] | None = None) -> list[EffectiveSetting]:
    """Return all settings that ``load`` returns, in the order of the shipped file.

    Raises as ``load``.
    """
    env = os.environ if env is None else env
    settings = load(env=env)
    sources = _Sources(env, home_folder(env) / "pps.toml", settings.extractor.provider)
    return [
        EffectiveSetting(
            ".".join(path), _shown(_in_words(path, value), secret=secret), sources.of(path)
        )
        for path, value, secret in _leaves(settings)
    ]


class _Sources:
    """Where the values of settings come from."""

    def __init__(self, env: Mapping[str, str], file: Path, extractor: str) -> None:
        self._env = env
        self._file = file
        self._extractor = extractor
        self._layers = read_layers(env)
        self._lines = TomlLines(read_text(file)) if self._layers.file else None

    def of(self, path: tuple[str, ...]) -> str:
        if _holds(self._layers.own, path):
            return f"environment: PPS_{'__'.join(path).upper()}"
        if _holds(self._layers.tools, path):
            provider = self._extractor if path[0] == "extractor" else "openai"
            return f"environment: {tool_variable(self._env, provider, path)}"
        if self._lines is not None and _holds(self._layers.file, path):
            return f"{self._file.name} line {self._lines.line(path)}"
        return "default"


def _holds(tree: object, path: tuple[str, ...]) -> bool:
    for part in path:
        if not isinstance(tree, dict) or part not in tree:
            return False
        tree = cast("dict[str, object]", tree)[part]
    return True


def _leaves(settings: Settings) -> Iterator[tuple[tuple[str, ...], object, bool]]:
    """Yield each setting's path and value, and whether it is a secret."""
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, BaseModel):
            for key, field in type(value).model_fields.items():
                yield (name, key), getattr(value, key), is_secret_field(field)
        elif name != "home":
            yield (name,), value, False


def _in_words(path: tuple[str, ...], value: object) -> object:
    """Return a command in the form in which it is typed, else the value.

    A secret among the words of a command is recognised only in that form.
    """
    if path == ("extractor", "command") and isinstance(value, tuple):
        return shlex.join(cast("tuple[str, ...]", value))
    return value


def _shown(value: object, *, secret: bool) -> str:
    if secret:
        if isinstance(value, tuple):
            number = len(cast("tuple[object, ...]", value))
            return f"{number} set" if number else "not set"
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        return "set" if text else "not set"
    if isinstance(value, bool):
        return str(value).lower()
    return without_credentials(as_text(value))


def without_credentials(text: str) -> str:
    """Return a text without names and passwords in addresses (``bolt://…@host``)."""
    return _CREDENTIALS.sub("//…@", text)
