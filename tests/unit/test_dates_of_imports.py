"""Dates that other programs wrote stay dates: profiles' filters, Graphiti's facts, notes of a day."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path

from pps.core.time import coarse, coarse_text, export_text, precision_of, read_imported
from pps.ingest.importing.formats import FORMATS
from pps.ingest.importing.items import Item
from pps.ingest.importing.source_files import Source
from pps.recall.profiles import parse_filter_time


def test_a_date_of_a_profile_is_no_instant() -> None:
    assert precision_of(parse_filter_time(date(2026, 3, 10))) == "day"


def test_a_graphiti_fact_of_midnight_is_of_that_day(tmp_path: Path) -> None:
    file = tmp_path / "graph.json"
    nodes = [{"uuid": name, "name": name, "labels": ["Entity"]} for name in ("a", "b")]
    edge = {
        "uuid": "e",
        "source_node_uuid": "a",
        "target_node_uuid": "b",
        "name": "KNOWS",
        "fact": "A knows B.",
        "valid_at": "2026-03-10T00:00:00Z",
        "invalid_at": "2026-04-01T08:00:00Z",
    }
    file.write_text(json.dumps({"nodes": nodes, "edges": [edge], "episodes": []}))
    read = FORMATS["graphiti"].read(Source(file.name, file, tmp_path, 0))
    (fact,) = [
        fact for one in read if isinstance(one, Item) for fact in one.options.get("facts", ())
    ]
    assert fact.valid_at is not None
    assert fact.invalid_at is not None
    assert [precision_of(at) for at in (fact.valid_at, fact.invalid_at)] == ["day", "instant"]


def test_what_is_exported_is_read_back() -> None:
    for text in ("2026", "2026-03", "2026-03-10", "2026-03-10T00:00:00Z", "2026-03-10T08:30:00Z"):
        moment = read_imported(text)
        again = read_imported(export_text(moment))
        assert (again, precision_of(again)) == (moment, precision_of(moment))
    assert coarse_text(read_imported("2026-03-10T00:00:00.000000Z")) == "2026-03-10"
    assert read_imported("2026-03-10T08:30") == datetime(2026, 3, 10, 8, 30)  # noqa: DTZ001
    assert export_text(coarse(date(2026, 3, 1), "month")) == "2026-03"
