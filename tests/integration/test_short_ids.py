"""Ids as packs show them, their first eight characters: every operation that takes an id takes them."""

from __future__ import annotations

from typing import Any, cast
from uuid import uuid4

import pytest

from pps.core.errors import NotFound
from pps.memory import Memory
from pps.operations.catalog import operations_for
from tests.integration.recall_scene import uuid_of

LONG = f"{'The committee talked about the budget. ' * 40}The lighthouse is red. {'Then it was late. ' * 40}"


async def told(memory: Memory, verb: str, **arguments: object) -> Any:
    """Return the data that a verb answers."""
    found = operations_for("entity")[verb]
    return (await found.answer(memory, found.parse(cast("Any", arguments)))).data


async def test_the_first_characters_of_an_id_do_wherever_an_id_is_asked_for(scene: Memory) -> None:
    mira, tomas = await uuid_of(scene, "Mira"), await uuid_of(scene, "Tomas")
    near = {"query": "roses", "profile": "hybrid", "channels": ["nodes"]}
    assert (await told(scene, "recall", **near, center=mira[:8]))["channels"] == (
        await told(scene, "recall", **near, center=mira)
    )["channels"]
    assert "shown at place" in (await told(scene, "why", query="Mira", expect=mira[:8]))["expected"]
    about = await told(scene, "timeline", id=mira[:8])
    assert about["facts"] == (await told(scene, "timeline", id="Mira"))["facts"] != []
    planned = await told(scene, "merge_nodes", keep=mira[:8], drop=tomas[:8])
    assert (planned["keep"], planned["dry_run"]) == (mira, True)

    assert (await scene.graph.around(mira[:8])).nodes == (await scene.graph.around(mira)).nodes

    kept = await told(scene, "add_event", content="The roses want water.", title="Roses")
    await scene.settled()
    short = kept["node_id"][:8]
    await told(scene, "append", id=short, content="Twice a day.")
    await told(scene, "update", id=short, title="Roses in June")
    await scene.settled()
    assert len((await told(scene, "history", id=short))["versions"]) == 3
    assert "Twice a day." in (await told(scene, "get", ids=[short]))["items"][0]["content"]


async def test_the_beginning_of_no_id_is_not_found_and_changes_nothing(scene: Memory) -> None:
    mira, nobody = await uuid_of(scene, "Mira"), str(uuid4())[:8]
    asked: list[tuple[str, dict[str, object]]] = [
        ("recall", {"query": "roses", "profile": "hybrid", "center": nobody}),
        ("timeline", {"id": nobody}),
        ("merge_nodes", {"keep": mira, "drop": nobody, "dry_run": False}),
        ("append", {"id": nobody, "content": "x"}),
        ("update", {"id": nobody, "content": "x"}),
        ("history", {"id": nobody}),
    ]
    for verb, arguments in asked:
        with pytest.raises(NotFound):
            await told(scene, verb, **arguments)
    with pytest.raises(NotFound):  # too short for the beginning of an id, and no title
        await told(scene, "history", id=mira[:7])


async def test_a_long_hit_is_told_by_what_matched_and_get_has_the_whole(scene: Memory) -> None:
    await scene.remember(LONG, source_ref="long")
    await scene.settled()
    data = await told(
        scene, "recall", query="Which colour has the lighthouse?", channels=["episodes"]
    )
    hit = data["channels"]["episodes"]["hits"][0]

    assert "The lighthouse is red." in hit["text"]
    assert len(hit["text"]) < 700 < len(LONG)
    assert "passage" not in hit
    assert (await told(scene, "get", ids=[hit["id"]]))["items"][0]["content"] == LONG
