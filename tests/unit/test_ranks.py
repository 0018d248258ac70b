"""Ranks of records: exact on small graphs by hand, and on a large one as a second library has them."""

from __future__ import annotations

import itertools
import random
from typing import Any, cast

import networkx as _networkx
import pytest

from pps.core.errors import InvalidRequest, NotFound
from pps.core.record_values import RecordGraph
from pps.records.ranks import (
    KEPT_S,
    Algorithm,
    RankRequest,
    Ranks,
    betweenness,
    chosen,
    pagerank,
    ranking,
    shortest_path,
)
from tests.sampling import SEED, sized
from tests.year import CONSTITUTION, Shelf, graph, record, relation, year

networkx = cast("Any", _networkx)
FOREIGN = "1b4e28ba-2fa1-5d2b-883f-0016d3cca427"


def ranks(given: RecordGraph) -> Ranks:
    return Ranks(Shelf(given), CONSTITUTION)


async def scores(given: RecordGraph, algorithm: Algorithm, **more: Any) -> dict[str, float]:
    return {
        one.id: one.score
        for one in (await ranks(given).rank(RankRequest(algorithm, **more))).ranked
    }


def large(records: int, relations: int) -> RecordGraph:
    """Return a graph in which a few records are known by many, as relations are in a life."""
    chance = random.Random(f"{SEED} ranks")  # noqa: S311 - the same each time
    them = [record(f"r{n:05}", "Goal") for n in range(records)]
    ends = {
        (chance.randrange(records), int(records * chance.random() ** 3))
        for _ in range(relations * 2)
    }
    pairs = itertools.islice(sorted((a, b) for a, b in ends if a != b), relations)
    return graph(
        them,
        [
            relation(f"r{a:05}", "SUPPORTED_BY", f"r{b:05}", round(chance.uniform(0.05, 1), 3))
            for a, b in pairs
        ],
    )


async def test_pagerank_of_a_circle_and_of_a_pair_are_those_by_hand() -> None:
    circle = [record(one, "Goal") for one in "abc"]
    ring = [relation(a, "SUPPORTED_BY", b, 0.3) for a, b in ("ab", "bc", "ca")]
    assert await scores(graph(circle, ring), "pagerank") == pytest.approx(
        dict.fromkeys("abc", 1 / 3)
    )
    pair = graph(circle[:2], [relation("a", "SERVES", "b")])
    # b has none to give to and gives to both alike: a = .15 / 2 + .85 b / 2, b = a + .85 a; a + b = 1.
    a = 1 / 2.85
    assert await scores(pair, "pagerank") == pytest.approx({"a": a, "b": 1 - a})


async def test_weights_are_strengths_and_those_of_two_records_add_up() -> None:
    them = [record(one, "Goal") for one in "abc"]
    ties = [
        relation("a", "SERVES", "b", 0.5),
        relation("a", "ALIGNS_WITH", "b", 0.25),
        relation("a", "SERVES", "c", 0.25),
    ]
    found = await scores(
        graph(them, [*ties, relation("b", "SERVES", "c", 0.0), relation("c", "SERVES", "c")]),
        "pagerank",
    )
    rest = found["a"]
    assert found["b"] - rest == pytest.approx(3 * (found["c"] - rest))


async def test_betweenness_of_a_row_and_of_a_star_are_those_by_hand() -> None:
    row = graph(
        [record(one, "Goal") for one in "abcd"],
        [relation(a, "SERVES", b) for a, b in ("ab", "cb", "cd")],
    )
    assert await scores(row, "betweenness") == pytest.approx(
        {"b": 2 / 3, "c": 2 / 3, "a": 0, "d": 0}
    )
    star = graph(
        [record(one, "Goal") for one in "abcd"], [relation(one, "SERVES", "d") for one in "abc"]
    )
    assert await scores(star, "betweenness") == pytest.approx({"d": 1, "a": 0, "b": 0, "c": 0})


async def test_communities_of_two_triangles_are_the_triangles() -> None:
    them = [record(one, "Goal") for one in "abcxyz"]
    ties = [relation(a, "SERVES", b) for a, b in ("ab", "bc", "ca", "xy", "yz", "zx", "cx")]
    found = await ranks(graph(them, ties)).rank(RankRequest("communities"))
    assert [sorted(one.id for one in part.members) for part in found.communities] == [
        ["a", "b", "c"],
        ["x", "y", "z"],
    ]
    assert found.modularity == pytest.approx(6 / 7 - 2 * (7 / 14) ** 2)
    assert (await ranks(graph(them, [])).rank(RankRequest("communities"))).modularity is None


async def test_a_shortest_path_prefers_strong_relations_whatever_their_direction() -> None:
    them = [record(one, "Goal") for one in "abcde"]
    ties = [
        relation("a", "SERVES", "d", 0.2),
        relation("b", "SERVES", "a", 0.5),
        relation("b", "ALIGNS_WITH", "d", 0.8),
    ]
    found = await ranks(graph(them, ties)).rank(
        RankRequest("shortest_path", source="a", target="d")
    )
    assert [(one.id, one.forward, one.relation) for one in found.path] == [
        ("b", False, "SERVES"),
        ("d", True, "ALIGNS_WITH"),
    ]
    assert found.length == pytest.approx(1 / 0.5 + 1 / 0.8)
    none = await ranks(graph(them, ties)).rank(RankRequest("shortest_path", source="a", target="e"))
    assert (none.path, none.length) == ((), None)
    same = await ranks(graph(them, ties)).rank(RankRequest("shortest_path", source="a", target="a"))
    assert (same.path, same.length) == ((), 0.0)


async def test_filters_choose_layers_kinds_relations_and_status() -> None:
    assert set(await scores(year(), "pagerank", layers=("foundation",))) == {
        "honesty",
        "learning",
        "candour",
    }
    assert set(await scores(year(), "pagerank", kinds=("Goal",))) == {"savings", "spend", "thesis"}
    assert set(await scores(year(), "pagerank", kinds=("Goal",), statuses=("archived",))) == {"old"}
    assert await scores(year(), "pagerank", kinds=("Value",), layers=("vision",)) == {}
    only = await ranks(year()).rank(RankRequest("pagerank", relations=("HAS_TASK",), limit=2))
    assert (only.relations, len(only.ranked)) == (2, 2)
    with pytest.raises(InvalidRequest, match="no kind of this memory's packs"):
        await scores(year(), "pagerank", kinds=("Goat",))
    with pytest.raises(InvalidRequest, match="no layer of this memory's packs"):
        await scores(year(), "pagerank", layers=("cellar",))


async def test_ends_are_this_memorys_and_belong_to_a_path_alone() -> None:
    with pytest.raises(NotFound, match=r"^source not found$"):
        await ranks(year()).rank(RankRequest("shortest_path", source=FOREIGN, target="thesis"))
    with pytest.raises(NotFound, match=r"^target not found$"):
        await ranks(year()).rank(RankRequest("shortest_path", source="thesis", target=FOREIGN))
    with pytest.raises(InvalidRequest, match="a shortest path takes"):
        await ranks(year()).rank(RankRequest("shortest_path", source="thesis"))
    with pytest.raises(InvalidRequest, match="the others neither"):
        await ranks(year()).rank(RankRequest("pagerank", source="thesis"))


async def test_a_ranking_is_kept_until_something_is_written_and_an_hour_at_most() -> None:
    shelf, at = Shelf(year()), [0.0]
    kept = Ranks(shelf, CONSTITUTION, lambda: at[0])
    asked = RankRequest("pagerank", kinds=("Goal",))
    first = await kept.rank(asked)
    shelf.now = graph([record("thesis", "Goal")], [], stamp=1)
    assert await kept.rank(asked) == first, "the same stamp: nothing was written"
    at[0] = KEPT_S + 1
    assert [one.id for one in (await kept.rank(asked)).ranked] == ["thesis"]
    shelf.now = graph([record("new", "Goal")], [], stamp=2)
    assert [one.id for one in (await kept.rank(asked)).ranked] == ["new"]


async def test_a_large_graph_is_ranked_as_networkx_ranks_it() -> None:
    given = large(sized(500, 5_000), sized(1_500, 15_000))
    ties = chosen(given, RankRequest("pagerank"))
    directed = networkx.DiGraph()
    directed.add_nodes_from(ties.records)
    directed.add_weighted_edges_from(
        (one.source, one.target, one.properties["weight"]) for one in given.relations
    )
    theirs = networkx.pagerank(directed, tol=1e-12, max_iter=1_000)
    assert pagerank(ties) == pytest.approx(theirs, abs=1e-9)
    assert betweenness(ties) == pytest.approx(
        networkx.betweenness_centrality(directed.to_undirected()), abs=1e-9
    )
    lengths: Any = networkx.Graph()
    lengths.add_nodes_from(ties.records)
    for (a, b), them in ties.undirected().items():
        lengths.add_edge(
            a, b, weight=min(1 / cast("float", one.properties["weight"]) for one in them)
        )
    chance = random.Random(f"{SEED} ends")  # noqa: S311 - the same each time
    for start, end in [chance.sample(sorted(ties.records), 2) for _ in range(sized(10, 100))]:
        ours = shortest_path(ties, start, end)[1]
        if networkx.has_path(lengths, start, end):
            assert ours == pytest.approx(
                networkx.shortest_path_length(lengths, start, end, weight="weight")
            )
        else:
            assert ours is None


async def test_communities_are_the_same_each_time() -> None:
    given = large(400, 1_200)
    turned = graph([*reversed(given.records.values())], [*reversed(given.relations)], stamp=2)
    one, other = [
        await ranks(them).rank(RankRequest("communities", limit=500)) for them in (given, turned)
    ]
    assert one == other
    assert one.modularity
    assert one.modularity > 0.3


async def test_a_kind_is_ranked_among_all_records_and_then_shown_alone() -> None:
    web = graph(
        [
            record("calm", "Value"),
            record("haste", "Value"),
            *(record(f"p{n}", "Principle") for n in range(4)),
        ],
        [relation(f"p{n}", "DEMONSTRATES", "calm") for n in range(4)],
    )
    ranked = ranking(web, RankRequest("pagerank", kinds=("Value",)), frozenset(("Value",))).ranked
    assert [each.id for each in ranked] == ["calm", "haste"]
    assert ranked[0].score > 2 * ranked[1].score
