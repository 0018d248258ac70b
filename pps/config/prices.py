"""Prices of models, from a small file of the user's own.

PPS ships no prices: they change, and a wrong price misleads.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pps.core.errors import ConfigError
from pps.core.user_files import parse_toml, read_text


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
