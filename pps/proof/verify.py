"""Proof by attack: ``pps verify-isolation`` runs it; tests run it also with a lock taken away."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypedDict, Unpack

from pps.config import Settings
from pps.core.errors import InvalidRequest, IsolationError, NotFound, PPSError, StoreError
from pps.core.ids import EntityId
from pps.index.indexes import EntityIndexes
from pps.isolation.client import EntityDriver
from pps.isolation.neo4j import open_neo4j
from pps.isolation.recipes import RECIPES
from pps.journal.journal import Journal
from pps.journal.postgresql import database_of
from pps.proof.arena import PLANTED_TABLE, Arena, ArenaStore, Being, dice, tables_of
from pps.proof.by_id import CREATES, READS, SEARCHES, WRITES, IdAttack, Ids, malformed, queries
from pps.proof.by_statement import HOOKED, STOCK, GuardAttack, Strike, raw_attacks
from pps.proof.honest import Honest
from pps.store.graph_tables import GraphTables

_INJECTED = (
    "planted UNION SELECT id, group_id, text, number "  # noqa: S608 - an attack
    f"FROM feature_arena__{PLANTED_TABLE.name}"
)
Progress = Callable[[int, int], None]
_WEIGHTS: Mapping[str, int] = {
    "read": 34,
    "write": 16,
    "create": 4,
    "malformed": 10,
    "search": 4,
    "query": 4,
    "statement": 12,
    "stock call": 10,
    "hook": 6,
    "row": 6,
    "honest": 6,
}
KINDS = tuple(_WEIGHTS)
"""Kinds of operation: six go through the client, two to the guard, one to what Graphiti asks, one
to the rows of features' tables, one is honest work."""
_LOOK_EVERY = 150
_MOST_FINDINGS = 20


async def rows_differ(being: Being) -> str:
    """Return how an entity's rows differ from those that were planted; empty where they do not."""
    rows = await tables_of(being).select(PLANTED_TABLE.name, limit=1_000)
    if [row["id"] for row in rows] != being.rows or any(
        being.mark not in str(row["text"]) for row in rows
    ):
        return "rows of a feature: not those that were planted"
    return ""


async def _insert_of_another_group(being: Being, ids: Ids) -> object:
    """Write a row with another group past every method: the CHECK must refuse it."""
    statement = (
        f"INSERT INTO feature_arena__{PLANTED_TABLE.name} "  # noqa: S608 - literals
        "(id, group_id) VALUES (?, ?)"
    )
    try:
        await being.journal.write(
            lambda db: db.execute(statement, (ids.row, "ent_" + "a" * 26)).rowcount
        )
    except (StoreError, IsolationError):
        raise InvalidRequest("group_id", "was refused") from None
    return "a row with another group was written"


ROWS: tuple[IdAttack, ...] = (
    IdAttack("get", lambda b, i: tables_of(b).get("planted", i.row)),
    IdAttack("get by a turn's id", lambda b, i: tables_of(b).get("planted", i.turn)),
    IdAttack("select by id", lambda b, i: tables_of(b).select("planted", {"id": i.row})),
    IdAttack(
        "select by an injected table", lambda b, i: tables_of(b).select(_INJECTED, {"id": i.row})
    ),
    IdAttack(
        "select by an injected order",
        lambda b, i: tables_of(b).select("planted", order_by="id; DROP TABLE turns"),
    ),
    IdAttack(
        "select by an injected column", lambda b, i: tables_of(b).select("planted", {"1=1 --": 1})
    ),
    IdAttack("update", lambda b, i: tables_of(b).update("planted", i.row, {"text": "changed"})),
    IdAttack("delete", lambda b, i: tables_of(b).delete("planted", i.row)),
    IdAttack(
        "insert about another's turn",
        lambda b, i: tables_of(b).insert("planted", {"text": "about it"}, sources=[i.turn]),
    ),
    IdAttack(
        "insert about another's fact",
        lambda b, i: tables_of(b).insert("planted", {"text": "about it"}, sources=[i.fact]),
    ),
    IdAttack("insert of another group", _insert_of_another_group),
    IdAttack("rows about", lambda b, i: b.journal.features.rows_about([i.row, i.turn])),
    IdAttack("existing rows", lambda b, i: b.journal.features.existing_rows([i.row])),
    IdAttack("erase", lambda b, i: b.journal.features.forget([i.row, i.turn, i.node, i.fact])),
    IdAttack("export", lambda b, i: b.journal.features.exported(("", "", i.row)), alike=False),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What went wrong, without a word of memory.

    Attributes:
        operation: Its kind and name.
        entity: Whose call it was.
        what: What was seen.
    """

    operation: str
    entity: str
    what: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a run of the adversarial set found.

    Attributes:
        operations: How many of each kind were run; ``honest`` ones are the entities' own work
            meanwhile.
        refused: How many ended in which error, one of a library's own among them; ``answered``
            counts those that found nothing and said so.
        leaks: Something of one entity was seen, changed or made by another. Of this and the next
            two, the first 20 of each kind of operation.
        told_apart: An id of another entity had another outcome than an id of nobody.
        broken: A call failed in a way that is none of PPS's errors, or an honest call failed.
        second_lock: Attacks through the client that the first lock let by and the guard refused.
        seconds: Wall time.
    """

    store: str
    entities: int
    operations: Mapping[str, int]
    refused: Mapping[str, int]
    leaks: tuple[Finding, ...]
    told_apart: tuple[Finding, ...]
    broken: tuple[Finding, ...]
    second_lock: int
    seconds: float

    @property
    def total(self) -> int:
        return sum(self.operations.values())

    @property
    def ok(self) -> bool:
        return not (self.leaks or self.told_apart or self.broken)


async def verify(
    settings: Settings,
    *,
    operations: int = 2_000,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Attack throw-away entities on the configured store.

    They and their folder are gone afterwards.

    Args:
        settings: Which store, and where.
        operations: How many, 1 upwards; about 500 a second.
        seed: Of the choices, so that a run's kinds can be repeated; None takes a fresh one.
        progress: Called now and then with (done, wanted).

    Raises:
        StoreUnavailable, ConfigError: The store cannot be used.
    """
    async with (
        throw_away(settings) as (folder, store),
        Arena.open(folder, store) as arena,
    ):
        return await attack(arena, operations=operations, seed=seed, progress=progress)


@asynccontextmanager
async def throw_away(settings: Settings) -> AsyncGenerator[tuple[Path, ArenaStore]]:
    """Yield a folder that goes away, and the configured store."""
    await asyncio.to_thread(settings.home.mkdir, parents=True, exist_ok=True)
    place = await asyncio.to_thread(
        tempfile.TemporaryDirectory, prefix="verify-", dir=settings.home, ignore_cleanup_errors=True
    )
    try:
        if settings.store == "embedded":
            yield Path(place.name), ArenaStore(_embedded)
            return
        if settings.store == "postgresql":
            async with _on_postgresql(settings) as store:
                yield Path(place.name), store
            return
        at = settings.neo4j
        pool = await open_neo4j(at.uri, at.user, at.password.get_secret_value(), at.database)

        async def on_neo4j(
            entity: EntityId, journal: Journal, indexes: EntityIndexes
        ) -> EntityDriver:
            return EntityDriver(pool.driver(), "neo4j", pool.driver().close)

        try:
            yield Path(place.name), ArenaStore(on_neo4j)
        finally:
            await pool.close()
    finally:
        await asyncio.to_thread(place.cleanup)


@asynccontextmanager
async def _on_postgresql(settings: Settings) -> AsyncGenerator[ArenaStore]:
    database = await asyncio.to_thread(database_of, settings.postgresql)

    async def open_driver(
        entity: EntityId, journal: Journal, indexes: EntityIndexes
    ) -> EntityDriver:
        return EntityDriver(GraphTables(journal, indexes=indexes), "postgresql")

    async def erase(group: str) -> None:
        await asyncio.to_thread(database.erase, group)

    try:
        yield ArenaStore(open_driver, partial(Journal.open_in, database), erase)
    finally:
        await asyncio.to_thread(database.close)


async def _embedded(entity: EntityId, journal: Journal, indexes: EntityIndexes) -> EntityDriver:
    return EntityDriver(GraphTables(journal, indexes=indexes), "embedded")


class AttackOptions(TypedDict, total=False):
    """How a run attacks.

    Attributes:
        seed: Of the choices, so that a run's kinds can be repeated; None, the default, takes a
            fresh one.
        progress: Called now and then with (done, wanted).
        kinds: Which of ``KINDS``; all of them by default.
    """

    seed: int | None
    progress: Progress | None
    kinds: Sequence[str]


async def attack(arena: Arena, *, operations: int, **options: Unpack[AttackOptions]) -> Report:
    """Run the adversarial set in an arena: an attacker for each entity, all at once."""
    began = time.perf_counter()
    weights = {kind: _WEIGHTS[kind] for kind in options.get("kinds", KINDS)}
    run = _ProofRun(arena, operations, options.get("progress"), weights)
    base = dice(options.get("seed")).getrandbits(64)
    shares = [
        operations // len(arena.beings) + (index < operations % len(arena.beings))
        for index in range(len(arena.beings))
    ]
    async with asyncio.TaskGroup() as tasks:
        for index, (being, share) in enumerate(zip(arena.beings, shares, strict=True)):
            tasks.create_task(run.act(being, share, dice(base + index)))
    return run.report(time.perf_counter() - began)


@dataclass(slots=True)
class _AttackOutcome:
    error: Exception | None = None
    value: object = None

    def looks(self) -> str:
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        return repr(self.value)


@dataclass(slots=True)
class _ProofRun:
    arena: Arena
    wanted: int
    progress: Progress | None
    weights: Mapping[str, int]
    done: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    leaks: list[Finding] = field(default_factory=list[Finding])
    told_apart: list[Finding] = field(default_factory=list[Finding])
    broken: list[Finding] = field(default_factory=list[Finding])
    second_lock: int = 0

    async def act(self, being: Being, share: int, chance: random.Random) -> None:
        """Attack the others ``share`` times, and look now and then whether this one is whole."""
        kinds = chance.choices(list(self.weights), list(self.weights.values()), k=share)
        honest = Honest(self.arena)
        for number, kind in enumerate(kinds):
            await self._step(kind, being, self.arena.random_of(being, chance), chance, honest)
            self.counts[kind] += 1
            self.done += 1
            if number % _LOOK_EVERY == _LOOK_EVERY - 1:
                await self._look(being, honest)
        await self._look(being, honest)

    async def _step(
        self, kind: str, being: Being, other: Being, chance: random.Random, honest: Honest
    ) -> None:
        if kind == "honest":
            work = chance.choice(honest.operations())
            await self._call(
                f"honest: {work.__name__}", being, lambda: work(being, chance), honest=True
            )
        elif kind == "malformed":
            name, call = chance.choice(malformed(being, chance))
            await self._must_refuse(f"malformed: {name}", being, call, InvalidRequest)
        elif kind == "query":
            await self._query(being, other, chance)
        elif kind in ("statement", "stock call", "hook"):
            await self._on_guard(kind, being, other, chance)
        else:
            table = {
                "read": READS,
                "write": WRITES,
                "create": CREATES,
                "search": SEARCHES,
                "row": ROWS,
            }[kind]
            await self._by_id(kind, chance.choice(table), being, other, chance)

    async def _by_id(
        self, kind: str, id_attack: IdAttack, being: Being, other: Being, chance: random.Random
    ) -> None:
        name = f"{kind}: {id_attack.name}"
        ids = Ids.of(other, chance)
        theirs = await self._call(name, being, lambda: id_attack.call(being, ids), ids)
        if isinstance(theirs.error, IsolationError):
            self.second_lock += 1
        if kind == "create":
            await self._after_create(name, being, other, ids, theirs)
        elif id_attack.alike and not isinstance(theirs.error, IsolationError):
            nobodys = await self._call(
                f"{name}, nobody's", being, lambda: id_attack.call(being, Ids.of_nobody(chance))
            )
            if theirs.looks() != nobodys.looks():
                self._find(
                    self.told_apart, name, being, "another's id had another outcome than nobody's"
                )

    async def _after_create(
        self, name: str, being: Being, other: Being, ids: Ids, outcome: _AttackOutcome
    ) -> None:
        """On a shared database nothing may have been made.

        In a file of one's own it is taken away again.

        So it is where the owner has deleted a node or fact of these meanwhile: the id was nobody's
        then.
        """
        if not isinstance(
            outcome.error, PPSError
        ):  # answered, or failed on its way: something may be there
            if being.shared and ids.node in other.nodes and ids.fact in other.facts:
                self._find(
                    self.leaks,
                    name,
                    being,
                    "something was made under an id that another entity owns",
                )
            else:
                await self._clean(being, ids)

    async def _clean(self, being: Being, ids: Ids) -> None:
        """Take away what was made under ids that are free."""
        await being.client.delete_nodes([ids.node, ids.fact])
        await being.client.delete_episodes([ids.episode])
        await being.client.delete_facts([ids.fact])

    async def _query(self, being: Being, other: Being, chance: random.Random) -> None:
        text = queries(being, other, chance)
        recipe = chance.choice(RECIPES)
        await self._call(
            f"query: {recipe}", being, lambda: being.client.search(text, recipe=recipe, limit=20)
        )
        collection = chance.choice(("nodes", "facts", "episodes"))
        await self._call(
            "query: text index", being, lambda: being.indexes.text_search(collection, text, 20)
        )

    async def _on_guard(self, kind: str, being: Being, other: Being, chance: random.Random) -> None:
        strike = Strike(being, other.entity.group, Ids.of(other, chance))
        attacks = {"statement": raw_attacks(strike, chance), "stock call": STOCK, "hook": HOOKED}[
            kind
        ]
        guard_attack: GuardAttack = chance.choice(attacks)
        name = f"{kind}: {guard_attack.name}"
        if guard_attack.refused:
            await self._must_refuse(name, being, lambda: guard_attack.call(strike), IsolationError)
        else:
            await self._call(
                name, being, lambda: guard_attack.call(strike), strike.ids, library=True
            )
            if not being.shared:
                await self._clean(being, strike.ids)

    async def _must_refuse(
        self, name: str, being: Being, call: Callable[[], Awaitable[object]], error: type[PPSError]
    ) -> None:
        outcome = await self._call(name, being, call)
        if not isinstance(outcome.error, error):
            self._find(self.leaks, name, being, f"was not refused with {error.__name__}")

    async def _call(
        self,
        name: str,
        being: Being,
        call: Callable[[], Awaitable[object]],
        ids: Ids | None = None,
        *,
        honest: bool = False,
        library: bool = False,
    ) -> _AttackOutcome:
        """Run one call, look into what comes back, and tell its outcome."""
        outcome = _AttackOutcome()
        try:
            outcome.value = await call()
        except PPSError as error:
            outcome.error = error
            if honest or not isinstance(error, (NotFound, InvalidRequest, IsolationError)):
                self._find(self.broken, name, being, f"{type(error).__name__}: {error}")
        # Every other error is a finding, and the run goes on.
        except Exception as error:  # noqa: BLE001
            if not library:
                self._find(self.broken, name, being, type(error).__name__)
            outcome.error = error
        self.refused[type(outcome.error).__name__ if outcome.error else "answered"] += 1
        seen = outcome.error if outcome.error is not None else outcome.value
        for leak in self.arena.watch.leaks(being.name, seen, ids.all() if ids else frozenset()):
            self._find(self.leaks, name, being, leak)
        return outcome

    async def _look(self, being: Being, honest: Honest) -> None:
        for difference in await honest.differences(being):
            self._find(self.leaks, "look", being, difference)
        difference = await rows_differ(being)
        if difference:
            self._find(self.leaks, "look", being, difference)
        if self.progress:
            self.progress(self.done, self.wanted)

    def _find(self, findings: list[Finding], name: str, being: Being, problem: str) -> None:
        kind = name.partition(":")[0]
        if sum(finding.operation.startswith(kind) for finding in findings) < _MOST_FINDINGS:
            findings.append(Finding(name, being.name, problem))

    def report(self, seconds: float) -> Report:
        return Report(
            store=self.arena.beings[0].driver.store,
            entities=len(self.arena.beings),
            operations=dict(self.counts),
            refused=dict(self.refused),
            leaks=tuple(self.leaks),
            told_apart=tuple(self.told_apart),
            broken=tuple(self.broken),
            second_lock=self.second_lock,
            seconds=seconds,
        )
