"""Settings from defaults, ``pps.toml`` and the environment, in that order; the last one wins.

``effective_settings`` tells where each value in effect comes from, and never a secret. Prices of
models come from a small file of the user's own: PPS ships none, because they change, and a wrong
price misleads.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError

from pps.config.border import problems
from pps.config.home import INSIDE, home_folder
from pps.config.settings import Settings, as_text, is_secret_field
from pps.config.toml_lines import TomlLines
from pps.core.errors import ConfigError
from pps.core.user_files import parse_toml, read_text

_Tree: TypeAlias = "dict[str, object]"

_NEO4J = {
    "NEO4J_URI": "uri",
    "NEO4J_USER": "user",
    "NEO4J_USERNAME": "user",
    "NEO4J_PASSWORD": "password",
    "NEO4J_DATABASE": "database",
}
_NO_SETTINGS = ("PPS_HOME", "PPS_SET", "PPS_PYTHON", "PPS_LONG", "PPS_BENCH_DATA", INSIDE)
"""Where things lie, and where one is; what the scripts beside the package are told.

Read by whoever needs them.
"""
_PROVIDER_KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
}
_CREDENTIALS = re.compile(r"//[^/@\s]+@")


def load(*, env: Mapping[str, str] | None = None, file: Path | None = None) -> Settings:
    """Return the settings of this installation.

    Args:
        env: The environment to read; the process's own when None. ``PPS_EMBEDDER__NAME`` sets
            ``embedder.name``; ``NEO4J_*``, ``OPENAI_*`` and the other providers' names are
            understood.
        file: The TOML file; ``$PPS_HOME/pps.toml`` when None, which may be absent.

    Raises:
        ConfigError: A key is unknown or a value is out of bounds; the message names the key and
            never quotes a value, which may be a secret.
    """
    env = os.environ if env is None else env
    layers = read_layers(env, file)
    tree = _merged(_merged(layers.file, layers.tools), layers.own)
    try:
        return Settings.model_validate({**tree, "home": home_folder(env)})
    except ValidationError as error:
        raise ConfigError(_one_line(error)) from None


@dataclass(frozen=True, slots=True)
class SettingLayers:
    """What sets settings over their defaults.

    Of a key that several set, the last one's value holds.

    Attributes:
        file: The TOML file.
        tools: Variables of other tools, such as ``OPENAI_API_KEY``.
        own: Variables of PPS.
    """

    file: dict[str, object]
    tools: dict[str, object]
    own: dict[str, object]


def read_layers(env: Mapping[str, str], file: Path | None = None) -> SettingLayers:
    """Return what a file (``pps.toml`` of the data folder when None) and an environment set.

    Raises as ``load``.
    """
    tree = _read(file, home_folder(env))
    own = _own_names(env)
    tools: _Tree = dict(_ecosystem(env, _merged(tree, own)))
    return SettingLayers(tree, tools, own)


def tool_variable(env: Mapping[str, str], provider: str, path: tuple[str, ...]) -> str:
    """Return the variable of another tool that sets a setting, of a provider where that counts."""
    section, key = path
    if section == "neo4j":
        return next(name for name in reversed(_NEO4J) if _NEO4J[name] == key and env.get(name))
    if key == "base_url":
        return "OPENAI_BASE_URL"
    return next(name for name in _PROVIDER_KEYS[provider] if env.get(name))


def _read(file: Path | None, home: Path) -> _Tree:
    path = file or home / "pps.toml"
    try:
        tree = cast("_Tree", parse_toml(read_text(path)))
    except OSError as error:
        if file is None and isinstance(error, FileNotFoundError | NotADirectoryError):
            return {}
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML ({error})") from None
    if "home" in tree:
        raise ConfigError(
            f"{path}: 'home' cannot be set in a file, set the environment variable PPS_HOME"
        )
    return tree


def _own_names(env: Mapping[str, str]) -> _Tree:
    tree: _Tree = {}
    for name, value in env.items():
        if not name.startswith("PPS_") or name in _NO_SETTINGS:
            continue
        path = name.removeprefix("PPS_").lower().split("__")
        setting: object = (
            tuple(part.strip() for part in value.split(",")) if _is_list(path) else value
        )
        for part in reversed(path):
            setting = {part: setting}
        tree = _merged(tree, cast("_Tree", setting))
    return tree


def _is_list(path: list[str]) -> bool:
    return path in (
        ["server", "allowed_hosts"],
        ["server", "allowed_origins"],
        ["calendar", "files"],
        ["calendar", "urls"],
    )


def _ecosystem(env: Mapping[str, str], known: _Tree) -> dict[str, _Tree]:
    """Return sections from other tools' variables, if the settings use the same provider."""
    sections: dict[str, _Tree] = {}
    neo4j: _Tree = {key: env[name] for name, key in _NEO4J.items() if env.get(name)}
    if neo4j:
        sections["neo4j"] = neo4j
    embedder = _section(known, "embedder")
    extractor = _section(known, "extractor")
    if embedder.get("name") == "openai":
        sections["embedder"] = _provider(env, "openai", embedder)
    sections["extractor"] = _provider(env, str(extractor.get("provider", "openai")), extractor)
    return {name: section for name, section in sections.items() if section}


def _provider(env: Mapping[str, str], provider: str, section: _Tree) -> _Tree:
    tree: _Tree = {}
    base_url = env.get("OPENAI_BASE_URL", "") if provider == "openai" else ""
    if base_url:
        tree["base_url"] = base_url
    # A provider's key is not handed to some other server that only the settings name.
    if base_url or not section.get("base_url"):
        key = next((env[name] for name in _PROVIDER_KEYS.get(provider, ()) if env.get(name)), "")
        if key:
            tree["api_key"] = key
    return tree


def _section(tree: _Tree, name: str) -> _Tree:
    value = tree.get(name)
    return cast("_Tree", value) if isinstance(value, dict) else {}


def _merged(under: _Tree, over: _Tree) -> _Tree:
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            result[key] = _merged(cast("_Tree", below), cast("_Tree", value))
        else:
            result[key] = value
    return result


def _one_line(error: ValidationError) -> str:
    lines: list[str] = []
    for problem in problems(error, Settings):
        if problem.unknown:
            suggestion = f", did you mean '{problem.near}'?" if problem.near else ""
            lines.append(f"unknown setting '{problem.path}'{suggestion}")
        else:
            lines.append(f"setting '{problem.path}': {problem.problem}")
    return "; ".join(lines) + " (pps.toml or a PPS_* variable; config/pps.toml lists every setting)"


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


class Price(BaseModel):
    """Dollars for a million tokens, as the provider lists them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_usd_per_million: float = Field(ge=0, le=100_000)
    output_usd_per_million: float = Field(ge=0, le=100_000)

    def micros(self, tokens_in: int, tokens_out: int) -> int:
        """Return what tokens cost in millionths of a dollar, rounded."""
        return round(
            tokens_in * self.input_usd_per_million + tokens_out * self.output_usd_per_million
        )


_FILE = TypeAdapter(dict[str, Price])


def load_prices(home: Path) -> Mapping[str, Price]:
    """Return model's name → price from ``$PPS_HOME/prices.toml``.

    The result is empty if there is no such file.

    Raises:
        ConfigError: The file cannot be read, or a price is out of bounds; it is named.
    """
    path = home / "prices.toml"
    try:
        return _FILE.validate_python(parse_toml(read_text(path)))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({type(error).__name__})") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}: {key}: {first['msg']}") from None
