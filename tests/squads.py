"""A squad of three for tests: small, so that it is made fast."""

from __future__ import annotations

from pathlib import Path

TRIO = """
name = "trio"
[pool]
reviewers = ["kublai"]
[members.kublai]
aliases = ["main"]
role = "orchestrator"
[members.mongke]
role = "researcher"
[members.jochi]
role = "analyst"
[broadcast]
interval = "PT5M"
rules = [{ kinds = ["Synthesis"] }, { kinds = ["WorkflowImprovement"], states = ["approved"] }]
[[subscriptions]]
to = "kublai"
interval = "PT5M"
tier = "orchestrator"
[[subscriptions]]
to = "mongke"
from = "jochi"
kinds = ["Insight", "Analysis"]
min_confidence = 0.6
[[subscriptions]]
to = "jochi"
kinds = ["Research", "Task"]
domains = ["technical"]
"""


def write_squad(home: Path, name: str, text: str = TRIO) -> str:
    """Put a squad's file into a data folder; return its name."""
    folder = home / "squads"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(text.replace('name = "trio"', f'name = "{name}"'), encoding="utf-8")
    return name
