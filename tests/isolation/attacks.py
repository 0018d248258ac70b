"""What the owner's and operators' operations are asked about one of two entities; the other must stay as it was."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pps.operations.table import AnyOperation
from tests.isolation import test_projects, test_verbs

Arguments = dict[str, Any]


def owners(folder: Path, entity: str) -> dict[str, list[Arguments]]:
    """Return what is asked about one entity, by operation; those that end it last."""
    notes, project = folder / "notes", folder / "project"
    for made in (notes, project):
        made.mkdir(exist_ok=True)
    (notes / "MEMORY.md").write_text("- Bread is good.")
    (notes / "note.md").write_text("# Note\n\nBread.")
    of, named = {"entity": entity}, {"name": entity}
    return {
        "entity_show": [named],
        "entity_list": [{}],
        "status": [{}],
        "entity_create": [named, {"name": "newcomer"}],
        "entity_extract": [{**named, "command": ""}],
        "token_issue": [named, {**named, "toolsets": ["core"]}],
        "token_revoke": [named],
        "page_open": [named],
        "page_close": [named],
        "haven_open": [{}],
        "haven_close": [{}],
        "operator_issue": [{}],
        "operator_revoke": [{}],
        "route_add": [{"path": str(project), **of}],
        "route_find": [{"path": str(project)}],
        "route_list": [{}],
        "route_remove": [{"path": str(project)}],
        "router_create": [{"roots": [str(project)]}],
        "router_list": [{}],
        "router_revoke": [{"id": "nobodys"}],
        "import": [{**of, "paths": [str(notes)]}, {**of, "paths": [str(notes)], "dry_run": True}],
        "export": [{**of, "path": str(folder / "out.jsonl")}],
        "anchors_import": [{**of, "path": str(notes)}],
        "watch_add": [{**of, "path": str(notes)}],
        "watch_list": [{}, named],
        "watch_remove": [{**of, "path": str(notes), "forget": True}],
        "feature_list": [{}],
        "feature_disable": [{"name": "nobodys"}],
        "feature_enable": [{"name": "nobodys"}],
        "pack_list": [{}],
        "pack_show": [{"pack": "constitution"}],
        "pack_check": [{"path": str(notes / "note.md")}],
        "pack_enable": [{**of, "pack": "constitution"}],
        "reindex": [of, {**of, "index": "vectors"}],
        "reembed": [of],
        "rebuild": [of],
        "move": [{**of, "to": "embedded"}, {**of, "drop_source": True}],
        "publish": [{**of, "target": "neo4j", "stop": True}],
        "upgrade": [
            {**of, "dry_run": True},
            of,
            {"all": True},
            {**of, "drop_copy": True},
            {"all": True, "drop_copy": True},
        ],
        "jobs_list": [of],
        "jobs_retry": [{**of, "all": True}],
        "jobs_drop": [{**of, "all": True}],
        "doctor": [of],
        "verify_isolation": [{"operations": 20}],
        "squad_create": [{"name": "duo", "file": "duo"}],
        "squad_show": [{"name": "duo"}],
        "squad_list": [{}],
        "squad_token": [{"name": "duo", "member": "kublai"}],
        "squad_import": [{"name": "duo", "member": "kublai", "path": str(notes)}],
        "squad_remove": [
            {"name": "duo", "member": "kublai"},
            {"name": "duo", "member": "kublai", "dry_run": False},
        ],
        "squad_add": [{"name": "duo", "member": "kublai", "entity": entity}],
        "squad_delete": [{"name": "duo"}],
        "entity_archive": [named, {**named, "undo": True}],
        "entity_delete": [named],
    }


def unattacked(table: Iterable[AnyOperation], folder: Path) -> set[str]:
    """Return the operations that no test carries out against another: each of these tables is what a test asks."""
    from tests.isolation import test_squads

    attacked = {
        "entity": set(test_verbs.ARGUMENTS),
        "member": set(test_squads.MEMBERS),
        "router": {tool for tool, _ in test_projects.calls("/work/proj")} | {"list_vaults"},
        "runner": set(test_projects.RUNNER),
        "operator": set(owners(folder, "ana")),
        "owner": set(owners(folder, "ana")),
    }
    return {f"{one.audience} {one.name}" for one in table if one.name not in attacked[one.audience]}
