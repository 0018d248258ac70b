"""The write path of one entity put together: what its worker goes by, and what stands around it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pps.config import JobsSettings
from pps.core.ids import EntityId
from pps.ingest.backlog import Backlog, EntityBacklog
from pps.ingest.breaker import Breakers
from pps.ingest.health import HealthLimits
from pps.ingest.retrying import Provider, RetryPolicy
from pps.ingest.slots import Places
from pps.ingest.working import Probe, WorkRules
from pps.isolation.client import IsolatedGraphitiClient
from pps.models.protocols import Embedder


@dataclass(frozen=True, slots=True)
class SharedWork:
    """What the workers of a process share: the rules, the breakers of models and server, the bounds on all of them."""

    settings: JobsSettings
    policy: RetryPolicy
    breakers: Breakers
    backlog: Backlog
    places: Places

    @classmethod
    def of(cls, settings: JobsSettings) -> SharedWork:
        """Return what the settings say."""
        policy = RetryPolicy(
            settings.first_wait_s, settings.longest_wait_s, settings.attempts, float(settings.give_up_s)
        )
        breakers = Breakers.make(policy, settings.breaker_failures)
        return cls(settings, policy, breakers, Backlog(settings.queue_total), Places(settings.read_at_once))

    @property
    def limits(self) -> HealthLimits:
        """When ingestion counts as unwell."""
        found = self.settings
        return HealthLimits(found.red_after_s, found.red_oldest_s, found.red_failure_rate, found.red_window_s)

    def rules(
        self, client: IsolatedGraphitiClient, embedder: Embedder | None, own_node: str, own: Iterable[Provider]
    ) -> WorkRules:
        """Return what one entity's worker goes by.

        Args:
            client: Of the entity.
            embedder: What it embeds with.
            own_node: Is read to see whether the graph answers.
            own: What no other entity depends on: when that fails, nobody else waits, is unwell or is told why.
        """
        breakers = self.breakers.with_own(own, self.policy, self.settings.breaker_failures)
        probes: dict[Provider, Probe] = {"store": lambda: client.nodes([own_node])}
        if embedder is not None:
            probes["embedder"] = lambda: asyncio.to_thread(embedder.embed_passages, ["."])
        backlog = EntityBacklog(self.backlog, self.settings.queue_entity)
        return WorkRules(self.policy, breakers, backlog, probes, self.places)


def surroundings(
    entity: EntityId, data: Path, missing: Callable[[], Awaitable[tuple[str, ...]]] | None
) -> Callable[[], Awaitable[tuple[str, ...]]]:
    """Return a look at what stands around a memory: damaged logs that were kept, a server's missing indexes."""

    async def look() -> tuple[str, ...]:
        kept = await asyncio.to_thread(lambda: sorted(data.glob("*.wal.damaged*")))
        notes = [
            f"{file} keeps a log of the graph whose end was damaged; what it held was taken from the journal again: "
            "remove the file once `pps doctor` finds that all agrees"
            for file in kept
        ]
        absent = await missing() if missing else ()
        notes += [f"Neo4j lacks {one}; the next start of {entity.name} makes it" for one in absent]
        return tuple(notes)

    return look
