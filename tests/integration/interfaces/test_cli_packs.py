"""The commands of packs: what is listed, shown, checked and enabled, as text and as JSON, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.interfaces.serving import Served


def test_packs_are_listed_checked_shown_and_enabled(served: Served) -> None:
    served.create("ana")
    packs = served.home / "packs"
    packs.mkdir()
    garden = packs / "garden.toml"
    garden.write_text('name = "garden"\nversion = 1\n[kinds.plant]\nlayr = "x"\n')
    wrong = served.pps("pack", "check", str(garden))
    assert wrong.returncode == 1
    assert wrong.stdout.splitlines() == [
        "line 3: kinds.plant: the name must be a capital, then up to 63 letters, digits or '_'",
        "line 4: kinds.plant.layr: unknown key, did you mean 'layer'?",
        "2 mistakes",
    ]
    refused = served.pps("pack", "enable", "ana", "garden")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "garden has mistakes: line 3" in refused.stderr
    garden.write_text(
        'name = "garden"\nversion = 1\nabout = "Plants"\n[kinds.Plant]\n[kinds.Goal]\n'
    )
    assert json.loads(served.pps("pack", "check", str(garden), "--json").stdout)["ok"] is True
    listed = json.loads(served.pps("pack", "list", "--json").stdout)["packs"]
    own = [
        (one["name"], one["kinds"], one["own"])
        for one in listed
        if one["name"] in ("constitution", "garden")
    ]
    assert own == [("constitution", 38, False), ("garden", 2, True)]
    assert served.pps("pack", "show", "constitution", "--diagram").stdout.startswith(
        "classDiagram\n"
    )
    assert (
        "  Goal: What is to be reached, and by when (P1)\n"
        in served.pps("pack", "show", "constitution").stdout
    )
    assert served.pps("pack", "enable", "ana", "constitution").stdout == "ana has constitution.\n"
    assert served.pps("pack", "enable", "ana", "constitution").stdout == "ana has constitution.\n"
    clash = served.pps("pack", "enable", "ana", "garden")
    assert (clash.returncode, clash.stdout) == (2, "")
    assert (
        "the packs constitution and garden both have the kind Goal; nothing was changed"
        in clash.stderr
    )
    schema = json.loads(served.pps("schema", "ana", "--json").stdout)
    assert (schema["packs"], len(schema["kinds"])) == ({"constitution": 1}, 38)


def test_an_entity_is_made_with_packs(served: Served) -> None:
    assert served.pps("entity", "create", "cai", "--pack", "nowhere").returncode == 2
    assert "cai" not in served.pps("entity", "list").stdout
    assert served.pps("entity", "create", "cai", "--pack", "constitution").returncode == 0
    assert "Goal" in served.pps("schema", "cai").stdout
    assert served.pps("entity", "create", "dan").returncode == 0
    assert served.pps("schema", "dan").stdout.startswith("No kinds of its own: `pps pack enable ")


def test_records_are_saved_from_a_file_and_from_stdin_and_found_by_a_condition(
    served: Served, tmp_path: Path
) -> None:
    served.create("fay")
    assert served.pps("pack", "enable", "fay", "constitution").returncode == 0
    sail = {
        "kind": "Goal",
        "title": "Sail north",
        "summary": "Go.",
        "fields": {"description": "To the cape.", "deadline": "2027-05-01"},
    }
    rest = {
        "kind": "Goal",
        "title": "Rest",
        "summary": "Stay.",
        "fields": {"description": "By the sea.", "deadline": "2027-09-01"},
    }
    file = tmp_path / "goals.json"
    file.write_text(json.dumps({"records": [sail]}))
    saved = served.pps("records", "save", "fay", "--file", str(file))
    assert (saved.returncode, saved.stderr) == (0, "")
    assert (
        served.pps(
            "records", "save", "fay", "--file", "-", given=json.dumps({"records": [rest]})
        ).returncode
        == 0
    )
    missing = served.pps("records", "save", "fay")
    assert (missing.returncode, "--file" in missing.stderr) == (2, True)
    where = json.dumps([{"field": "deadline", "op": "<", "value": "2027-06-01"}])
    found = served.pps("records", "list", "fay", "--where", where)
    assert (found.returncode, "Sail north" in found.stdout, "Rest" in found.stdout) == (
        0,
        True,
        False,
    )
    assert (
        "SOURCE 'Nobody'"
        in served.pps("records", "relate", "fay", "Nobody", "SERVES", "Rest").stderr
    )
    path = served.pps("rank", "fay", "shortest_path", "--source", "Nobody", "--target", "Rest")
    assert "--source 'Nobody': not found" in path.stderr
    asked = served.pps("ask", "fay", "why", "--with", '{"id": "Nope"}')
    assert "--with id 'Nope': not found" in asked.stderr
    near = served.pps("records", "search", "fay", "the sea", "--anchor", "1b4e28ba")
    assert "--anchor '1b4e28ba': not found" in near.stderr
