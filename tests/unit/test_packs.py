"""Packs of kinds: what their files say, every mistake in them, and the models that check records."""

from __future__ import annotations

from pathlib import Path

import pytest

from pps.config.pack_reading import read_pack
from pps.config.packs import load_packs, packs_together, shipped_pack
from pps.core.errors import ConfigError, InvalidRequest
from pps.core.packs import Kinds
from pps.records.kind_models import KindModels

LAYERS = ("foundation", "vision", "strategy", "tactics", "execution", "track", "mind")


def test_the_constitution_has_seven_layers_and_38_kinds() -> None:
    pack = shipped_pack("constitution")
    assert tuple(one.name for one in pack.layers) == LAYERS
    assert len(pack.kinds) == 38
    assert [one.load for one in pack.layers[:2]] == ["always", "always"]


def test_own_packs_lie_beside_the_settings_and_take_no_shipped_name(tmp_path: Path) -> None:
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs" / "garden.toml").write_text('name = "garden"\nversion = 1\n[kinds.Plant]\n')
    assert "Plant" in Kinds(load_packs(tmp_path, ["garden", "constitution"]))
    (tmp_path / "packs" / "weeds.toml").write_text('name = "weeds"\nversion = 1\n[kinds.Goal]\n')
    with pytest.raises(InvalidRequest, match="constitution and weeds both have the kind Goal"):
        packs_together(tmp_path, ["constitution", "weeds"])
    (tmp_path / "packs" / "events.toml").write_text('name = "events"\nversion = 1\n[kinds.X]\n')
    with pytest.raises(ConfigError, match="name of a shipped pack"):
        load_packs(tmp_path, [])


def test_a_mistake_is_told_with_its_line_and_field() -> None:
    pack, mistakes = read_pack('name = "a"\nversion = 1\n[kinds.Plant]\nlayr = "x"\n')
    assert pack is None
    assert [str(one) for one in mistakes] == ["line 4: kinds.Plant.layr: unknown key, did you mean 'layer'?"]


def test_a_record_is_checked_by_its_kind() -> None:
    models = KindModels(Kinds([shipped_pack("constitution")]))
    kept = models.check("Task", {"title": "Sow", "summary": "In rows", "dueDate": "2026-03-01"})
    assert kept["due_date"] == "2026-03-01"
    with pytest.raises(InvalidRequest, match=r"^Goal\.target: at most 2,000 characters$"):
        models.check("Goal", {"title": "Sow", "summary": "In rows", "target": "x" * 2001})
