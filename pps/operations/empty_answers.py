"""Texts of empty answers: that there is nothing, and what to do next, as a tool and a command."""

from __future__ import annotations

from collections.abc import Mapping

EMPTY: Mapping[str, str] = {
    "recall": (
        "Keep a text with `remember` (`pps remember NAME TEXT`), see all with `turns_list` (`pps "
        "turns NAME`)."
    ),
    "timeline": "No facts. `remember` takes them with a text (`pps remember NAME TEXT`); "
    "`jobs_list` shows texts that wait (`pps jobs list NAME`).",
    "turns_list": "Nothing was said. `remember` keeps a text (`pps remember NAME TEXT`), "
    "hooks keep sessions (`pps hooks install`).",
    "anchor_search": "No anchor found. `anchor_list` shows all (`pps anchors list NAME`).",
    "anchor_list": "No anchors. `anchor_save` writes one (`pps anchors save NAME`), "
    "`pps anchors import NAME FOLDER` takes in a folder.",
    "forgotten": "Nothing that could be restored. What `forget` takes softly (`pps forget NAME ID "
    "--soft`) is here for 30 days.",
    "edits": "Nothing was changed by hand. What `fact_correct` (`pps correct NAME ID`), `update` "
    "(`pps update NAME ID`) and soft forgetting do is here.",
    "find_duplicates": (
        "No duplicates found. `merge_nodes` makes two nodes one (`pps merges apply NAME KEEP "
        "DROP`)."
    ),
    "record_list": "No records. `record_save` makes one (`pps records save NAME`), "
    "`schema_inventory` shows which kinds there are (`pps schema NAME`).",
    "schema_inventory": "No kinds of its own: `pps pack enable NAME PACK` gives a memory a pack, "
    "`pps pack list` shows which there are.",
    "session_context": "This memory has no pack with layers that are always loaded: `pps pack "
    "enable NAME constitution` gives it one.",
    "jobs_list": "No such jobs: nothing waits and nothing has failed. `turns_list` shows what was "
    "kept (`pps turns NAME`).",
    "costs": (
        "No language model has read anything: `pps hooks install --entity NAME --extract claude` "
        "sets one."
    ),
    "injected": (
        "Nothing was put before an agent: `pps hooks install --entity NAME` gives sessions their "
        "memory."
    ),
    "context_usage": "Nothing was given to this session. `pps injected NAME` lists the sessions.",
    "fact_histogram": "`remember` takes facts with their times (`pps remember NAME TEXT`).",
}
"""Operation → its text. ``NAME`` is the entity's."""
