"""What agents store is never lost, believed, approved or moved by one voice alone (S3-04, S3-11, S3-14)."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound, PPSError, StoreConflict
from pps.features.squad import squad_members
from pps.operations.calls import OPERATOR, Caller
from tests.squads import TRIO, Team, team_of_three, write_squad


@pytest.fixture
async def team(app: App) -> Team:
    return await team_of_three(app)


BELIEF = {"type": "Belief", "confidence": 0.75}


async def own_records(team: Team, member: str, kind: str) -> list[Any]:
    async with team.app.memory(team.squad.members[member].entity) as memory:
        graph = await memory.records.graph()
    return [record for record in graph.records.values() if record.kind == kind]


# 1. memory_store never loses what an agent wrote.


async def test_two_experiences_with_one_title_are_two_records(team: Team) -> None:
    first = await team.store("mongke", "It rained in Oslo.", title="Trip")
    second = await team.store("mongke", "It snowed in Tromsø.", title="Trip")
    assert first["id"] != second["id"]
    assert {record.summary for record in await own_records(team, "mongke", "Experience")} == {
        "It rained in Oslo.",
        "It snowed in Tromsø.",
    }


async def test_texts_with_the_same_first_120_characters_are_two_records(team: Team) -> None:
    opening = (
        "The deployment of the billing service to the second region went as planned until the " * 2
    )
    for ending in ("queue filled.", "queue drained."):
        await team.store("mongke", opening + ending)
    assert len(await own_records(team, "mongke", "Experience")) == 2


async def test_a_belief_changes_by_superseding_only(team: Team) -> None:
    first = await team.store("mongke", "Redis is the best cache.", title="Best cache", **BELIEF)
    second = await team.store("mongke", "Valkey is the best cache.", title="Best cache", **BELIEF)
    states = {r.id: r.state for r in await own_records(team, "mongke", "Belief")}
    assert states == {first["id"]: "active", second["id"]: "active"}
    third = await team.store(
        "mongke", "KeyDB is.", title="Best cache", supersedes=first["id"], **BELIEF
    )
    states = {r.id: r.state for r in await own_records(team, "mongke", "Belief")}
    assert states[first["id"]] == "superseded"
    assert states[third["id"]] == "active"
    with pytest.raises(StoreConflict):
        await team.store("mongke", "Other.", supersedes=first["id"], **BELIEF)
    assert len(await own_records(team, "mongke", "Belief")) == 3  # a refused call stores nothing


async def test_an_exact_repeat_is_reported_and_adds_nothing(team: Team) -> None:
    first = await team.store("mongke", "Valkey is fine.", **BELIEF)
    again = await team.store("mongke", "Valkey is fine.", **BELIEF)
    assert (again["id"], again["repeat"]) == (first["id"], True)
    assert first.get("repeat", False) is False
    answer = await team.calls.answer(
        team.caller("mongke"), "memory_store", {"content": "Valkey is fine.", **BELIEF}
    )
    assert "was kept before" in answer.text
    at_once = await asyncio.gather(
        *(team.store("jochi", "Said at once.", **BELIEF) for _ in range(8))
    )
    assert len({kept["id"] for kept in at_once}) == 1
    assert len(await own_records(team, "jochi", "Belief")) == 1


async def test_what_was_superseded_and_is_stated_again_is_a_new_record(team: Team) -> None:
    first = await team.store("mongke", "Tea is best.", **BELIEF)
    second = await team.store("mongke", "Coffee is best.", supersedes=first["id"], **BELIEF)
    third = await team.store("mongke", "Tea is best.", **BELIEF)
    assert len({first["id"], second["id"], third["id"]}) == 3


async def test_record_save_by_kind_and_title_still_changes_that_record(team: Team) -> None:
    kept = await team.store("mongke", "It rained.", title="Trip")
    saved = await team.ask(
        "mongke",
        "record_save",
        records=[{"kind": "Experience", "title": "Trip", "summary": "It poured."}],
    )
    assert saved["records"][0]["id"] == kept["id"]
    assert [r.summary for r in await own_records(team, "mongke", "Experience")] == ["It poured."]


# 2. Reviews are compare-and-set; shares and improvements keep one history.

TWO_REVIEWERS = TRIO.replace(
    'reviewers = ["kublai"]', 'gate = "approve"\nreviewers = ["kublai", "jochi"]'
)


@pytest.fixture
async def gated(app: App) -> Team:
    write_squad(app.settings.home, "gated", TWO_REVIEWERS)
    return Team(app, (await squad_members.found(app, "team", "gated", {})).squad)


async def test_of_ten_reviews_of_a_share_at_once_one_is_written(gated: Team) -> None:
    for number in range(30):
        await review_ten_times_at_once(gated, number)


async def review_ten_times_at_once(gated: Team, number: int) -> None:
    kept = await gated.store("mongke", f"Share number {number}.", **BELIEF)
    copy = kept["copy"]
    assert copy["state"] == "waiting"
    reviews = [
        gated.ask(
            ("kublai", "jochi")[index % 2],
            "proposal_review",
            id=copy["id"],
            decision=("approved", "rejected", "needs_revision")[(index + number) % 3],
            notes=f"review {index}",
        )
        for index in range(10)
    ]
    answers = await asyncio.gather(*reviews, return_exceptions=True)
    won = [answer for answer in answers if isinstance(answer, dict)]
    assert len(won) == 1
    assert all(isinstance(a, PPSError) for a in answers if not isinstance(a, dict)), answers
    async with gated.app.memory(gated.squad.pool, pool=True) as pool:
        [move] = await pool.records.transitions(copy["id"])
        shared = (await pool.records.pool.shared([copy["id"]]))[copy["id"]]
    expected = {"approved": "shared", "rejected": "rejected", "needs_revision": "needs_revision"}
    assert shared.state == expected[move.after]
    assert move.why.startswith("review ")


async def test_a_rejection_reaches_its_author_with_the_reason(gated: Team) -> None:
    kept = await gated.store("mongke", "Pay at once.", **BELIEF)
    await gated.ask(
        "kublai", "proposal_review", id=kept["copy"]["id"], decision="rejected", notes="No source."
    )
    [delivery] = (await gated.ask("mongke", "squad_inbox"))["deliveries"]
    assert (delivery["why"], delivery["notes"], delivery["record"]["content"]) == (
        "rejected",
        "No source.",
        "Pay at once.",
    )
    with pytest.raises(InvalidRequest, match="was rejected by a reviewer"):
        await gated.ask("mongke", "memory_share", id=kept["id"])
    assert (await gated.ask("jochi", "memory_query", topic="pay at once"))["pool"] == []


async def test_a_share_that_needs_a_revision_is_revised_and_reviewed_again(gated: Team) -> None:
    kept = await gated.store("mongke", "Pay at once.", **BELIEF)
    id_ = kept["copy"]["id"]
    await gated.ask("kublai", "proposal_review", id=id_, decision="needs_revision", notes="Which?")
    await gated.ask(
        "mongke", "record_save", records=[{"id": kept["id"], "summary": "Pay rent at once."}]
    )
    assert (await gated.ask("mongke", "memory_share", id=kept["id"]))["state"] == "waiting"
    await gated.ask("jochi", "proposal_review", id=id_, decision="approved")
    async with gated.app.memory(gated.squad.pool, pool=True) as pool:
        moves = await pool.records.transitions(id_)
    assert [(move.after, move.actor) for move in moves] == [
        ("needs_revision", "kublai"),
        ("revised", "mongke"),
        ("approved", "jochi"),
    ]


async def test_an_approved_share_that_is_shared_again_unchanged_stays_approved(gated: Team) -> None:
    kept = await gated.store("mongke", "Rent is due in May.", **BELIEF)
    await gated.ask("kublai", "proposal_review", id=kept["copy"]["id"], decision="approved")
    assert (await gated.ask("mongke", "memory_share", id=kept["id"]))["state"] == "shared"
    await gated.ask("mongke", "record_save", records=[{"id": kept["id"], "summary": "In June."}])
    assert (await gated.ask("mongke", "memory_share", id=kept["id"]))["state"] == "waiting"


# 3. Confidence is the author's own; support and opposition of others move it.


async def confidence(team: Team, topic: str) -> dict[str, Any]:
    [line] = (await team.ask("kublai", "memory_query", topic=topic, kinds=["Belief"]))["pool"][:1]
    return line


async def test_a_lie_that_cites_true_records_gains_nothing(team: Team) -> None:
    true = [
        (await team.store("mongke", text, **BELIEF))["copy"]["id"]
        for text in ("Water boils at 100 degrees.", "Ice melts at zero.")
    ]
    lie = await team.store("jochi", "The vault code is public.", cites=true, **BELIEF)
    assert lie["copy"]["confidence"] == 0.75
    again = await team.store(
        "jochi",
        "So it is.",
        cites=true,
        relations=[{"type": "SUPPORTS", "target": lie["copy"]["id"]}],
        **BELIEF,
    )
    assert again["copy"]["state"] == "shared"
    line = await confidence(team, "The vault code is public.")
    assert (line["id"], line["confidence"]) == (lie["copy"]["id"], 0.75)


async def test_independent_support_raises_and_an_echo_does_not(team: Team) -> None:
    claim = await team.store("mongke", "Queues fill at noon.", **BELIEF)
    target = claim["copy"]["id"]
    support = [{"type": "SUPPORTS", "target": target}]
    await team.store("jochi", "As mongke says.", cites=[target], relations=support, **BELIEF)
    assert (await confidence(team, "Queues fill at noon."))["confidence"] == 0.75
    own = await team.store("jochi", "I saw them fill.", relations=support, **BELIEF)
    line = await confidence(team, "Queues fill at noon.")
    assert line["confidence"] == 0.9375  # 1 - (1 - .75) * (1 - .75)
    await team.store("jochi", "I saw it twice.", relations=support, **BELIEF)
    assert (await confidence(team, "Queues fill at noon."))["confidence"] == 0.9375
    await team.ask("jochi", "memory_revoke", ids=[own["id"]], dry_run=False)
    assert (await confidence(team, "Queues fill at noon."))["confidence"] == 0.9375
    shared = (await team.ask("kublai", "squad_pool"))["shared"]
    twice = next(record["id"] for record in shared if record["content"] == "I saw it twice.")
    gone = await team.ask("jochi", "memory_revoke", ids=[twice], dry_run=False)
    assert gone["weaker"] == {target: 0.75}


async def test_a_challenge_lowers_at_most_by_half_and_shows(team: Team) -> None:
    claim = await team.store("mongke", "Queues fill at noon.", type="Belief", confidence=0.8)
    against = [{"type": "CHALLENGED", "target": claim["copy"]["id"]}]
    opponent = await team.store(
        "jochi", "They were empty.", type="Belief", confidence=0.9, relations=against
    )
    for number in range(3):
        await team.store(
            "jochi", f"Empty again {number}.", type="Belief", confidence=0.9, relations=against
        )
    line = await confidence(team, "Queues fill at noon.")
    assert line["confidence"] == 0.44  # .8 * (1 - .9 / 2): one voice counts once
    assert opponent["copy"]["id"] in [each["id"] for each in line["opposed_by"]]
    text = (
        await team.calls.answer(team.caller("kublai"), "memory_query", {"topic": "Queues fill"})
    ).text
    assert "CHALLENGED by jochi" in text
    [notice] = [
        delivery
        for delivery in (await team.ask("mongke", "squad_inbox"))["deliveries"]
        if delivery["record"]["id"] == opponent["copy"]["id"]
    ]
    assert notice["why"] == "opposes yours"


@pytest.mark.parametrize("relation", ["SUPPORTS", "VALIDATED", "CHALLENGED", "CONTRADICTS"])
async def test_the_four_stances_join_any_two_kinds_of_knowledge(team: Team, relation: str) -> None:
    fields = {"topic": "queues", "findings": "They fill."}
    research = await team.store(
        "mongke", "They fill.", type="Research", confidence=0.8, fields=fields
    )
    stance = [{"type": relation, "target": research["copy"]["id"]}]
    await team.store(
        "jochi",
        "An analysis.",
        type="Analysis",
        confidence=0.8,
        fields={"type": "metric", "findings": "Counted."},
        relations=stance,
    )
    async with team.app.memory(team.squad.pool, pool=True) as pool:
        after = (await pool.records.pool.shared([research["copy"]["id"]])).popitem()[1].confidence
    assert after == (0.96 if relation in ("SUPPORTS", "VALIDATED") else 0.48)


# 4. The pool and its queries.


async def test_a_query_has_a_floor_and_only_what_it_returns_counts_as_seen(team: Team) -> None:
    near = await team.store("mongke", "The cache evicts the oldest keys first.", **BELIEF)
    far = await team.store("mongke", "Penguins live near the south pole.", **BELIEF)
    answer = await team.ask("kublai", "memory_query", topic="cache evicts keys", limit=10)
    assert [line["id"] for line in answer["pool"]] == [near["copy"]["id"]]
    async with team.app.memory(team.squad.pool, pool=True) as pool:
        uses = await pool.records.pool.uses([near["copy"]["id"], far["copy"]["id"]])
    assert set(uses) == {near["copy"]["id"]}


async def test_near_copies_fold_into_one_line_and_their_denial_does_not(team: Team) -> None:
    first = await team.store("mongke", "The vault of the bank opens at nine.", **BELIEF)
    copies = [
        await team.store("mongke", text, **BELIEF)
        for text in ("The vault of the bank opens at nine!", "the vault of the bank opens at NINE")
    ]
    denial = await team.store("jochi", "The vault of the bank never opens at nine.", **BELIEF)
    answer = await team.ask("kublai", "memory_query", topic="vault of the bank opens")
    lines = {line["id"]: line for line in answer["pool"]}
    assert denial["copy"]["id"] in lines
    [folded] = [line for id_, line in lines.items() if id_ != denial["copy"]["id"]]
    stored = {first["copy"]["id"], *(copy["copy"]["id"] for copy in copies)}
    assert {folded["id"], *(each.split(":")[1] for each in folded["copies"])} == stored


async def test_no_author_fills_more_than_a_third_where_several_fit(team: Team) -> None:
    for number in range(12):
        words = (
            "alpha",
            "beta",
            "gamma",
            "delta",
            "echo",
            "fox",
            "golf",
            "hotel",
            "india",
            "juli",
            "kilo",
            "lima",
        )
        await team.store(
            "jochi", f"The vault code of site {words[number]} is public {number}.", **BELIEF
        )
    honest = [
        await team.store(member, text, **BELIEF)
        for member, text in (
            ("mongke", "The vault code is secret, the manual says."),
            ("mongke", "A vault code changes each week."),
            ("kublai", "The vault code is with the guard."),
            ("kublai", "Nobody but the guard has the vault code."),
        )
    ]
    answer = await team.ask("mongke", "memory_query", topic="vault code", limit=10)
    authors = [line["shared_by"] for line in answer["pool"]]
    assert 3 * authors.count("jochi") <= len(authors) + 1
    assert authors.count("jochi") < len(authors) - authors.count("jochi")
    assert answer["held_back"]["jochi"] >= 9
    assert honest


async def test_the_lead_withdraws_anothers_record_with_a_reason_and_can_undo_it(team: Team) -> None:
    kept = await team.store("mongke", "The vault code is public.", **BELIEF)
    id_ = kept["copy"]["id"]
    with pytest.raises(InvalidRequest, match="reason"):
        await team.ask("kublai", "memory_revoke", ids=[id_], dry_run=False)
    with pytest.raises(NotFound):
        await team.ask("jochi", "memory_revoke", ids=[id_], dry_run=False, reason="I say so.")
    shown = await team.ask("kublai", "memory_revoke", ids=[id_], reason="False.")
    assert shown["records"][0]["owner"] == "mongke"
    assert len((await team.ask("jochi", "memory_query", topic="vault code public"))["pool"]) == 1
    await team.ask("kublai", "memory_revoke", ids=[id_], reason="False.", dry_run=False)
    assert (await team.ask("jochi", "memory_query", topic="vault code public"))["pool"] == []
    [notice] = (await team.ask("mongke", "squad_inbox"))["deliveries"]
    assert (notice["why"], notice["notes"]) == ("withdrawn", "False.")
    with pytest.raises(InvalidRequest, match="was withdrawn by a reviewer"):
        await team.ask("mongke", "memory_share", id=kept["id"])
    await team.ask(
        "kublai", "memory_revoke", ids=[id_], reason="It was right.", undo=True, dry_run=False
    )
    [line] = (await team.ask("jochi", "memory_query", topic="vault code public"))["pool"]
    assert line["id"] == id_


# 5. Members, tasks, provenance.


async def test_what_others_made_stays_marked_when_a_member_leaves(team: Team) -> None:
    base = await team.store("mongke", "Pressure breaks queues.", title="Pressure", **BELIEF)
    resting = await team.store(
        "jochi", "So limit them.", title="Limits", cites=[base["copy"]["id"]], **BELIEF
    )
    remove = {"name": "team", "member": "mongke"}
    shown = await team.calls.answer(OPERATOR, "squad_remove", remove)
    assert [(r["title"], r["owner"]) for r in shown.data["records"]] == [("Pressure", "mongke")]  # type: ignore[index,union-attr]
    assert [(r["title"], r["owner"]) for r in shown.data["marked"]] == [("Limits", "jochi")]  # type: ignore[index,union-attr]
    assert "Pressure of mongke" in shown.text
    await team.calls.answer(OPERATOR, "squad_remove", {**remove, "dry_run": False})
    [line] = (await team.ask("kublai", "memory_query", topic="limit them"))["pool"]
    assert (line["id"], line["withdrawn"]) == (resting["copy"]["id"], [base["copy"]["id"]])


async def test_a_sole_reviewers_own_proposal_is_refused_at_submit(team: Team) -> None:
    fields = {"target_process": "handoff", "proposed_state": "In writing."}
    made = await team.store("kublai", "Write.", type="WorkflowImprovement", fields=fields)
    with pytest.raises(InvalidRequest, match="nobody else may review it here"):
        await team.ask("kublai", "proposal_submit", id=made["id"])


async def test_a_refused_submission_shares_nothing_with_the_squad(team: Team) -> None:
    fields = {"topic": "handoff", "findings": "The handoff takes an hour."}
    made = await team.store("mongke", "An hour.", type="Research", fields=fields)
    with pytest.raises(InvalidRequest, match="is no WorkflowImprovement"):
        await team.ask("mongke", "proposal_submit", id=made["id"])
    assert "The handoff takes an hour." not in await team.pool_text()
    assert (await team.ask("kublai", "memory_query", topic="handoff"))["pool"] == []


async def test_tasks_are_refused_for_former_members_cancelled_and_reported_blocked(
    team: Team,
) -> None:
    task = {"title": "Look", "description": "Look.", "type": "ops"}
    given = await team.ask("kublai", "squad_task_give", to="mongke", **task)
    await team.ask("mongke", "squad_task_take", id=given["id"])
    blocked = await team.ask(
        "mongke", "squad_task_done", id=given["id"], outcome="blocked", notes="No access."
    )
    assert blocked["state"] == "blocked"
    [told] = [
        d
        for d in (await team.ask("kublai", "squad_inbox"))["deliveries"]
        if d["why"] == "task blocked"
    ]
    assert told["notes"] == "No access."
    assert (await team.ask("mongke", "squad_task_take", id=given["id"]))["state"] == "in_progress"
    with pytest.raises(InvalidRequest, match="was given by another member"):
        await team.ask("jochi", "squad_task_cancel", id=given["id"])
    cancelled = await team.ask("kublai", "squad_task_cancel", id=given["id"], notes="Not needed.")
    assert cancelled["state"] == "cancelled"
    with pytest.raises(StoreConflict):
        await team.ask("kublai", "squad_task_cancel", id=given["id"])
    await team.calls.answer(
        OPERATOR, "squad_remove", {"name": "team", "member": "mongke", "dry_run": False}
    )
    with pytest.raises(InvalidRequest, match="mongke is not in the squad now"):
        await team.ask("kublai", "squad_task_give", to="mongke", **task)


async def test_domains_match_in_any_case_and_one_record_arrives_once(app: App) -> None:
    text = TRIO + '\n[[subscriptions]]\nto = "mongke"\nfrom = "jochi"\ndomains = ["Security"]\n'
    write_squad(app.settings.home, "twice", text)
    team = Team(app, (await squad_members.found(app, "team", "twice", {})).squad)
    insight = {"type": "Insight", "fields": {"category": "technical"}, "confidence": 0.8}
    await team.store("jochi", "Rotate the keys.", domain="SECURITY", **insight)
    assert len((await team.ask("mongke", "squad_inbox"))["deliveries"]) == 1
    await team.store("jochi", "Patch the hosts.", type="Belief", confidence=0.8, domain="SECURITY")
    assert len((await team.ask("mongke", "squad_inbox"))["deliveries"]) == 2


async def test_an_agent_is_not_made_by_hand(team: Team) -> None:
    fields = {"role": "orchestrator"}
    with pytest.raises(InvalidRequest, match="made by the squad itself"):
        await team.store("jochi", "I am Kublai.", title="Kublai", type="Agent", fields=fields)
    record = {"kind": "Agent", "title": "Kublai", "summary": "Me.", "fields": fields}
    with pytest.raises(InvalidRequest, match="made by the squad itself"):
        await team.ask("jochi", "record_save", records=[record])


@pytest.mark.parametrize(
    "relation", ["CREATED", "ACCESSED", "LEARNED", "APPROVED_BY", "ASSIGNED_TO"]
)
async def test_provenance_is_not_made_by_hand(team: Team, relation: str) -> None:
    one = await team.store("jochi", "One.", type="Belief", confidence=0.2)
    other = await team.store("jochi", "Other.", type="Belief", confidence=0.2)
    with pytest.raises(InvalidRequest):
        await team.ask(
            "jochi",
            "record_relate",
            relations=[{"source": one["id"], "type": relation, "target": other["id"]}],
        )


async def test_only_the_roles_that_the_squad_names_move_anothers_improvement(team: Team) -> None:
    fields = {"target_process": "handoff", "proposed_state": "In writing."}
    made = await team.store("mongke", "Write.", type="WorkflowImprovement", fields=fields)
    sent = await team.ask("mongke", "proposal_submit", id=made["id"])
    await team.ask("kublai", "proposal_review", id=sent["id"], decision="approved")
    with pytest.raises(InvalidRequest, match="is another's improvement"):
        await team.ask("jochi", "proposal_submit", id=sent["id"], to="implementing")
    await team.ask("mongke", "proposal_submit", id=sent["id"], to="implementing")
    moved = await team.ask("jochi", "proposal_submit", id=sent["id"], to="measuring")
    assert moved["state"] == "measuring"  # the analyst measures


async def test_what_rests_on_a_private_record_stays_private(team: Team) -> None:
    secret = await team.store("mongke", "The code is kanarie66.", private=True, **BELIEF)
    middle = await team.store(
        "mongke", "It is short.", type="Belief", confidence=0.2, cites=[secret["id"]]
    )
    kept = await team.store("mongke", "Codes are short.", cites=[middle["id"]], **BELIEF)
    assert "copy" not in kept
    with pytest.raises(InvalidRequest, match="rests on a private record"):
        await team.ask("mongke", "memory_share", id=kept["id"])


async def test_what_is_tagged_private_later_leaves_the_pool_at_the_next_heartbeat(
    team: Team,
) -> None:
    kept = await team.store("mongke", "The code is kanarie67.", **BELIEF)
    built = await team.store("jochi", "Codes are short.", cites=[kept["copy"]["id"]], **BELIEF)
    await team.ask("mongke", "record_save", records=[{"id": kept["id"], "tags": ["private"]}])
    await team.ask("mongke", "heartbeat")
    assert "kanarie67" not in await team.pool_text()
    left = await team.ask("jochi", "memory_query", topic="codes are short")
    assert built["copy"]["id"] not in [line["id"] for line in left["pool"]]


RESTING: dict[str, tuple[str, dict[str, Any], str, dict[str, Any], bool]] = {
    "BASED_ON": ("Belief", {}, "Experience", {}, False),
    "SYNTHESIZES": (
        "Content",
        {"type": "article"},
        "Research",
        {"topic": "tides", "findings": "They turn."},
        False,
    ),
    "FORMED": ("Belief", {}, "Reflection", {}, True),
}
"""Relation → the resting kind and its fields, the kind it rests on and its fields, and whether the
relation leads from there to what rests."""


async def resting_on(team: Team, relation: str, ground: dict[str, Any]) -> str:
    """Store a record of mongke's and what rests on it by a relation; return the id of the latter."""
    kind, fields, ground_kind, ground_fields, into = RESTING[relation]
    below = await team.store(
        "mongke", "The page says so.", type=ground_kind, fields=ground_fields, **ground
    )
    relations = [] if into else [{"type": relation, "target": below["id"]}]
    above = await team.store(
        "mongke", "So it is.", type=kind, fields=fields, confidence=0.2, relations=relations
    )
    if into:
        await team.ask(
            "mongke", "record_relate", source=below["id"], type=relation, target=above["id"]
        )
    return str(above["id"])


@pytest.mark.parametrize("relation", RESTING)
async def test_what_rests_on_a_private_record_by_a_relation_stays_private(
    team: Team, relation: str
) -> None:
    resting = await resting_on(team, relation, {"private": True, "confidence": 0.2})
    with pytest.raises(InvalidRequest, match="rests on a private record"):
        await team.ask("mongke", "memory_share", id=resting)


@pytest.mark.parametrize("relation", RESTING)
async def test_what_rests_on_the_web_by_a_relation_is_from_outside(
    team: Team, relation: str
) -> None:
    resting = await resting_on(team, relation, {"tags": ["web"], "confidence": 0.2})
    copy = await team.ask("mongke", "memory_share", id=resting)
    assert copy["trust"] == "outside"


async def test_a_belief_based_on_anothers_share_from_the_web_waits(team: Team) -> None:
    """The relation leads into the pool, where the page's copy is."""
    page = await team.store(
        "jochi",
        "The page says so.",
        type="Event",
        confidence=0.9,
        tags=["web"],
    )
    relations = [{"type": "BASED_ON", "target": page["copy"]["id"]}]
    kept = await team.store("mongke", "So it is.", relations=relations, **BELIEF)
    assert (kept["copy"]["trust"], kept["copy"]["state"]) == ("outside", "waiting")


async def test_a_members_token_is_made_anew(team: Team) -> None:
    answer = await team.calls.answer(OPERATOR, "squad_token", {"name": "team", "member": "mongke"})
    members = cast("list[dict[str, Any]]", answer.data["members"])
    [member] = [member for member in members if member["id"] == "mongke"]
    holder = team.app.registry.entity_of_token(member["token"])
    assert holder
    assert holder.name == "team_mongke"


# Shared knowledge reaches an agent unasked.


async def test_what_the_squad_shares_is_in_a_members_pack_unasked(team: Team) -> None:
    kept = await team.store(
        "mongke", "The vault refuses unsigned builds.", type="Belief", confidence=0.9
    )
    await team.store("mongke", "The vault has a private door kanarie91.", private=True, **BELIEF)
    await team.store("mongke", "The vault may be blue, unsure.", type="Belief", confidence=0.3)
    pack = await team.ask("jochi", "ambient_recall", context="Does the vault take unsigned builds?")
    assert "The vault refuses unsigned builds." in pack["text"]
    assert "Belief of mongke, confidence 0.90" in pack["text"]
    assert "kanarie91" not in pack["text"]
    assert "unsure" not in pack["text"]
    async with team.app.memory(team.squad.pool, pool=True) as pool:
        assert await pool.records.pool.uses([kept["copy"]["id"]]) == {}  # unasked is not seen
    own = await team.ask("mongke", "ambient_recall", context="Does the vault take unsigned builds?")
    assert "Belief of mongke" not in own["text"]
    idle = await team.ask("jochi", "ambient_recall", context="Thanks, that's great!")
    assert "vault" not in idle["text"]
    await team.app.create("stranger")
    answer = await team.calls.answer(
        Caller.of_entity("stranger"), "ambient_recall", {"context": "Does the vault take builds?"}
    )
    assert "vault refuses" not in answer.text
    await team.ask("mongke", "memory_revoke", ids=[kept["id"]], dry_run=False)
    gone = await team.ask("jochi", "ambient_recall", context="Does the vault take unsigned builds?")
    assert "vault refuses" not in gone["text"]


async def test_a_hook_of_a_member_brings_the_pools_lines_once_a_session(team: Team) -> None:
    await team.store("mongke", "The vault refuses unsigned builds.", type="Belief", confidence=0.9)
    async with team.app.memory(team.squad.members["jochi"].entity) as memory:
        first = await memory.sessions.pack("Does the vault take unsigned builds?", "s1")
        await memory.settled()
        again = await memory.sessions.pack("And the vault, unsigned builds?", "s1")
    assert "The vault refuses unsigned builds." in first.text
    assert "The vault refuses unsigned builds." not in again.text


async def test_a_squads_file_switches_the_section_off(app: App) -> None:
    write_squad(app.settings.home, "quiet", TRIO.replace("[pool]", "[pool]\nunasked = false"))
    team = Team(app, (await squad_members.found(app, "team", "quiet", {})).squad)
    await team.store("mongke", "The vault refuses unsigned builds.", type="Belief", confidence=0.9)
    pack = await team.ask("jochi", "ambient_recall", context="Does the vault take unsigned builds?")
    assert "vault refuses" not in pack["text"]
