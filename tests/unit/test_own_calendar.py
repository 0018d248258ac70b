"""Mistakes in an entity's own calendar are told in plain words."""

from pathlib import Path

import pytest

from pps.core.errors import ConfigError
from pps.entities.own import own_settings

_CARD = 'name = "ana"\ngroup = "g"\nstore = "embedded"\ncreated_at = "2026-01-01"\n'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hours = [8, 8]", "calendar.hours: must be a number of 0 to 24, or seven of them"),
        ('time_zone = "Oslo"', "calendar.time_zone: must be a time zone of the IANA database"),
    ],
)
def test_a_wrong_calendar_is_named_plainly(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "entity.toml").write_text(f"{_CARD}[calendar]\n{line}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="entity.toml: " + said):
        own_settings(tmp_path)
