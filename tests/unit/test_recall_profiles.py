"""Profiles are data: shipped ones are sound, a user's own replace and extend them, mistakes are named."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pps.config import Settings
from pps.core.errors import ConfigError, InvalidRequest
from pps.isolation.recipes import RECIPES
from pps.journal.filters import ItemFilter
from pps.recall.engine import tuned
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.profiles import Profiles, in_words
from pps.recall.request import RecallRequest, make_request

FACTS = 'description = "d"\n[channels.facts]\nperspectives = { bm25 = 1.0 }\n'


@pytest.fixture
def shipped(tmp_path: Path) -> Profiles:
    return Profiles.load(Settings(home=tmp_path))


def test_every_promised_profile_is_shipped(shipped: Profiles) -> None:
    names = {profile.name for profile in shipped.all()}

    assert names >= {
        "default",
        "ambient",
        "facts",
        "nodes",
        "episodes",
        "semantic",
        "hybrid",
        "blended",
        "e1_only",
    }
    assert names >= set(RECIPES)


def test_channels_come_in_the_order_in_which_they_are_shown(shipped: Profiles) -> None:
    assert list(shipped.get("default").channels) == ["nodes", "facts", "episodes", "anchors"]


def test_the_blend_has_the_five_weights(shipped: Profiles) -> None:
    weights = shipped.get("blended").channels["nodes"].perspectives

    assert weights == {"dense": 0.4, "bm25": 0.3, "near_center": 0.15, "tags": 0.1, "recency": 0.05}


def test_hybrid_and_semantic_have_their_weights_and_thresholds(shipped: Profiles) -> None:
    hybrid, semantic = shipped.get("hybrid").channels["nodes"], shipped.get("semantic")

    assert (hybrid.perspectives, hybrid.min_similarity) == ({"structural": 0.6, "dense": 0.4}, 0.65)
    assert {channel.min_similarity for channel in semantic.channels.values()} == {0.7}
    assert [shipped.get(name).max_limit for name in ("semantic", "hybrid", "default", "facts")] == [
        50,
        50,
        100,
        100,
    ]


def test_the_defaults_of_the_acceptance_table_are_those_of_the_settings_and_profiles(
    shipped: Profiles,
) -> None:
    tuning = shipped.tuning
    assert (tuning.freshness_half_life_d, tuning.freshness_weight, tuning.rerank_deadline_s) == (
        14.0,
        0.3,
        0.5,
    )
    assert shipped.get("diverse").channels["facts"].mmr == 0.5
    assert [
        profile.name
        for profile in shipped.all()
        if any(one.pairs for one in profile.channels.values())
    ] == ["ambient"]
    request = make_request("q", {})
    assert (request.limit, request.max_hops, request.min_similarity) == (10, 2, None)


def test_a_requests_weights_stand_in_place_of_the_profiles(shipped: Profiles) -> None:
    channels = shipped.get("blended").channels
    wanted = tuned(
        channels, RecallRequest("q", weights={"dense": 0.0, "tags": 2.0}, min_similarity=0.5)
    )

    assert wanted["nodes"].perspectives == {
        **channels["nodes"].perspectives,
        "dense": 0.0,
        "tags": 2.0,
    }
    assert wanted["nodes"].min_similarity == 0.5
    assert tuned(channels, RecallRequest("q")) == channels
    for weights in ({"magic": 1.0}, {"dense": 0.0, "bm25": 0.0}):
        with pytest.raises(InvalidRequest, match="weights"):
            tuned(channels, RecallRequest("q", weights=weights))


def test_only_ambient_recall_is_damped(shipped: Profiles) -> None:
    damped = {
        profile.name
        for profile in shipped.all()
        if any(channel.freshness or channel.novelty for channel in profile.channels.values())
    }

    assert damped == {"ambient"}


def test_a_profile_takes_the_channels_of_the_one_it_extends(shipped: Profiles) -> None:
    assert shipped.get("ambient").channels["facts"].freshness


def test_a_file_that_names_the_channel_of_communities_still_opens(
    caplog: pytest.LogCaptureFixture,
) -> None:
    old = 'description = "d"\n[limits]\ncommunities = 3\n[channels.communities.perspectives]\nbm25 = 1.0\n'
    profiles = Profiles({"p": f"{old}[channels.facts.perspectives]\ndense = 1.0\n", "only": old})
    assert list(profiles.get("p").channels) == ["facts"]
    assert profiles.get("p").limits == {}
    assert "only" not in profiles
    assert "there is no such channel any more" in caplog.text


def test_a_profile_takes_the_bound_of_the_one_it_extends_unless_it_says_another() -> None:
    same, own = ('description = "d"\nextends = "p"\n' + more for more in ("", "max_limit = 30"))
    profiles = Profiles({"p": "max_limit = 20\n" + FACTS, "same": same, "own": own, "free": FACTS})

    assert [profiles.get(name).max_limit for name in ("p", "same", "own", "free")] == [
        20,
        20,
        30,
        100,
    ]


def test_a_users_profile_is_added_and_wins(tmp_path: Path) -> None:
    folder = tmp_path / "profiles"
    folder.mkdir()
    (folder / "mine.toml").write_text(FACTS)
    (folder / "facts.toml").write_text(FACTS.replace('"d"', '"my own"'))
    profiles = Profiles.load(Settings(home=tmp_path))

    assert list(profiles.get("mine").channels) == ["facts"]
    assert profiles.get("facts").description == "my own"


def test_a_profile_that_was_not_there_is_found_when_it_is_asked_for_and_a_mistake_keeps_what_was(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "profiles"
    folder.mkdir()
    profiles = Profiles.load(Settings(home=tmp_path))
    profiles.look_for("mine")
    assert "mine" not in profiles

    (folder / "mine.toml").write_text(FACTS)
    profiles.look_for("mine")
    assert profiles.get("mine").origin == "yours"

    (folder / "wrong.toml").write_text(FACTS + "k = -1")
    profiles.look_for("wrong")
    with pytest.raises(ConfigError, match=r"wrong\.toml: channels\.facts\.k: "):
        profiles.get("wrong")
    assert {name for name in ("mine", "wrong", "default", RECIPES[0]) if name in profiles} == {
        "mine",
        "default",
        RECIPES[0],
    }
    for outside in ("../mine", "profiles/mine", str(folder / "mine")):
        profiles.look_for(outside)
        assert outside not in profiles

    assert len(profiles.mistakes()) == 1
    (folder / "wrong.toml").unlink()
    assert profiles.mistakes() == (), "what was mended is told no more"


def test_an_unknown_profile_is_refused_with_the_names(shipped: Profiles) -> None:
    with pytest.raises(InvalidRequest, match="ambient"):
        shipped.get("nothing")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("description = 3", "description"),
        ("not toml", "profile 'p'"),
        (FACTS.replace("bm25", "magic"), "magic"),
        (FACTS.replace("bm25", "recency"), "finds"),
        (FACTS.replace("1.0", "-1.0"), r"channels\.facts\.perspectives\.bm25: .* 0"),
        (FACTS.replace("1.0", "nan"), r"channels\.facts\.perspectives\.bm25"),
        (FACTS.replace("1.0", "1001"), r"channels\.facts\.perspectives\.bm25: .* 1000"),
        (FACTS.replace("1.0", "0"), "finds"),
        (FACTS + "k = 2000", r"channels\.facts\.k: .* 1000"),
        (FACTS + "[limits]\nfacts = 0", r"limits\.facts: .* 1"),
        ("max_limit = 9\n" + FACTS, "max_limit: .* 10"),
        ("max_limit = 101\n" + FACTS, "max_limit: .* 100"),
        (FACTS.replace("facts", "tables"), "channels"),
        (FACTS + "typo = 1", "typo"),
        (FACTS + '[filters]\ntags = "work"', r"filters\.tags: .*tuple"),
        (FACTS + '[filters]\ntags = ["#work"]', r"filters\.tags\.0: must be a tag without '#'"),
        (FACTS + f'[filters]\ntags = ["{"t" * 65}"]', r"filters\.tags\.0: .* 64"),
        (FACTS + f"[filters]\nkinds = {['k'] * 51}", r"filters\.kinds: .* 50"),
        (FACTS + '[filters]\nsources = [""]', r"filters\.sources\.0: .* 1"),
        (FACTS + '[filters]\nroles = ["king"]', r"filters\.roles\.0: .*'user'"),
        (
            FACTS + "[filters]\nsince = 2026-01-01T08:00:00",
            r"filters\.since: must be a date, or a time with its zone",
        ),
        (
            FACTS + "[filters]\nuntil = 3",
            r"filters\.until: must be a date, or a time with its zone",
        ),
        (
            FACTS + "[filters]\nsince = 2026-01-02\nuntil = 2026-01-02",
            r"filters\.until: must be after since",
        ),
        (FACTS + "[filters]\nas_of = 2026-01-02", r"filters\.as_of: "),
        ('description = "d"', "no channel"),
        ('description = "d"\nextends = "gone"', "gone"),
        ('description = "d"\nextends = "p"', "circle"),
    ],
)
def test_a_mistake_in_a_profile_is_named(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Profiles({"p": text})

    assert re.search(problem, caught.value.message)


def test_what_a_profile_lets_through_is_read_inherited_field_by_field_and_told() -> None:
    january = "[filters]\ntags = ['work', 'home']\nsince = 2026-01-01\nuntil = 2026-02-01T01:00:00+01:00\n"
    child = 'description = "d"\nextends = "january"\n[filters]\ntags = []\nroles = ["user"]\n'
    profiles = Profiles({"plain": FACTS, "january": FACTS + january, "child": child})

    since, until = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    assert profiles.get("plain").filters == profiles.get(RECIPES[0]).filters == ItemFilter()
    assert profiles.get("january").filters == ItemFilter(
        tags=("work", "home"), since=since, until=until
    )
    assert profiles.get("child").filters == ItemFilter(roles=("user",), since=since, until=until)
    assert in_words(profiles.get("plain").filters) == ""
    assert in_words(profiles.get("child").filters) == (
        "since 2026-01-01T00:00:00.000000Z; until 2026-02-01T00:00:00.000000Z; roles user"
    )


def test_a_bound_that_only_a_child_breaks_is_told_with_the_childs_file(tmp_path: Path) -> None:
    folder = tmp_path / "profiles"
    folder.mkdir()
    (folder / "parent.toml").write_text(FACTS + "[filters]\nsince = 2026-01-02\n")
    (folder / "child.toml").write_text(
        'description = "d"\nextends = "parent"\n[filters]\nuntil = 2026-01-01T00:00:00Z\n'
    )
    with pytest.raises(ConfigError) as caught:
        Profiles.load(Settings(home=tmp_path)).get("child")
    assert caught.value.message.startswith(
        f"{folder / 'child.toml'}: filters.until: must be after since"
    )
    assert "\n" not in caught.value.message


def test_a_mistake_in_a_users_file_is_told_with_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "profiles"
    folder.mkdir()
    file = folder / "mine.toml"
    for content in (FACTS.encode() + b"k = -1", b"\xff\xfe"):
        file.write_bytes(content)
        profiles = Profiles.load(Settings(home=tmp_path))
        with pytest.raises(ConfigError) as caught:
            profiles.get("mine")
        assert caught.value.message.startswith(str(file))
        assert list(profiles.refused) == ["mine"]
        assert profiles.get("default").origin == "shipped"  # that profile alone is refused


def test_a_refused_profile_of_a_shipped_name_takes_no_other_with_it(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "default.toml").write_text("[channels.facts]\nk = -1\n")
    profiles = Profiles.load(Settings(home=tmp_path))

    assert list(profiles.refused) == ["default"]
    with pytest.raises(ConfigError, match=r"default\.toml: channels\.facts\.k: "):
        profiles.get("default")
    assert "anchors" in profiles.get("ambient").channels  # of the shipped one that it extends


def test_a_channels_table_may_be_all_that_a_profile_says(tmp_path: Path) -> None:
    folder = tmp_path / "profiles"
    folder.mkdir()
    shipped = Profiles.load(Settings(home=tmp_path))
    (folder / "ambient.toml").write_text("[channels.facts]\n")
    (folder / "few.toml").write_text("[channels.facts]\ndepth = 7\n")
    (folder / "turns.toml").write_text("[channels.turns]\n")
    profiles = Profiles.load(Settings(home=tmp_path))

    ambient = profiles.get("ambient")
    assert dict(ambient.channels) == {"facts": shipped.get("ambient").channels["facts"]}
    assert ambient.floor
    assert ambient.description
    few = profiles.get("few").channels["facts"]
    assert few.perspectives == shipped.get("default").channels["facts"].perspectives
    assert few.depth == 7
    assert not profiles.get("few").floor
    assert "channels.turns.perspectives" in profiles.refused["turns"]


def test_a_profile_says_where_it_is_from(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "mine.toml").write_text(FACTS)
    origins = {
        profile.name: profile.origin for profile in Profiles.load(Settings(home=tmp_path)).all()
    }

    assert (origins["mine"], origins["default"], origins[RECIPES[0]]) == (
        "yours",
        "shipped",
        "graphiti",
    )

    (tmp_path / "profiles" / "default.toml").write_text(FACTS)
    profiles = Profiles.load(Settings(home=tmp_path))
    assert profiles.origins("ambient") == {"ambient": "shipped", "default": "yours"}
    assert profiles.origins("facts") == {"facts": "shipped"}
    assert profiles.origins(RECIPES[0]) == {RECIPES[0]: "graphiti"}


def test_every_perspective_says_what_it_is_and_has_one_function() -> None:
    for name, perspective in PERSPECTIVES.items():
        assert perspective.about, name
        assert (perspective.retrieve is None) != (perspective.rerank is None), name
