"""The reader: has turns that are saved read by a command, a group at a time, beside the worker.

What a command answers is written into the turns' jobs, which are then saved once more: the *given* path. So saving
never waits for a reading, a reading that is cut short is done again with nothing doubled, and one whose turn was
forgotten or changed meanwhile is thrown away whole. While the command cannot be asked, rules read the turns that
wait for it; they stay in the queue, and the command reads them when it answers again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pps.core import bounds, time
from pps.core.errors import BudgetSpent, ModelUnavailable, PPSError
from pps.core.text import estimate_tokens
from pps.core.values import Fact, Node
from pps.ingest.budget import Costs
from pps.ingest.extraction import Findings, Known, prompt_of, speaker, understand
from pps.ingest.redact import KeyedRedactor
from pps.ingest.support import content_words
from pps.ingest.work_rules import Failing, WorkRules
from pps.isolation.client import IsolatedGraphitiClient
from pps.isolation.providers import TokensUsed
from pps.journal.entries import Job, JobPayload, Reading
from pps.journal.journal import Journal
from pps.models.command import ModelCommand

_log = logging.getLogger(__name__)
_MOST_TURNS = 200
_MOST_NAMES = 40
_MOST_KNOWN_FACTS = 60
_MOST_MENTIONS = 2_000
_LOOK_S = 60.0
_PLACE_S = 5.0
_LEAST_S = 0.05
_SOON_S = 0.2


@dataclass(frozen=True, slots=True)
class Groups:
    """When turns that wait are read: when they have ``tokens`` together, or none has come for ``idle_s``."""

    tokens: int
    idle_s: float


@dataclass(frozen=True, slots=True)
class Asked:
    """Whom a reader asks, for whom, and what it may cost; all of it is one entity's."""

    command: ModelCommand
    client: IsolatedGraphitiClient
    costs: Costs
    groups: Groups
    redactor: Callable[[], KeyedRedactor]


class Reader:
    """One task an entity. Its prompts hold turns of this entity, and what this entity's graph knows of their names.

    Attributes:
        groups: When turns that wait are read.
        away: Why the command cannot be asked, while it cannot: its last failure; empty when it can.
    """

    def __init__(self, journal: Journal, name: str, rules: WorkRules, asked: Asked) -> None:
        self.groups = asked.groups
        self.away = ""
        self._journal = journal
        self._queue = journal.queue
        self._name = name
        self._rules = rules
        self._asked = asked
        self._defect = ""
        self._failing = Failing(journal, name, rules)
        self._wake = asyncio.Event()
        self._at_once_until: datetime | None = None
        self._waiting_callers = 0
        self._max_turns = _MOST_TURNS
        self._task: asyncio.Task[None] | None = None
        self._ended: Callable[[Sequence[int]], Awaitable[None]]
        self._save_by_rules: Callable[[Sequence[int]], Awaitable[None]]

    @property
    def command(self) -> str:
        """The command's name, as the reports of costs have it."""
        return self._asked.command.name

    @property
    def trouble(self) -> str:
        """Why it cannot go on for now; empty when it can."""
        if self.away:
            return f"the extractor failed, {self.away} (rules read the turns meanwhile)"
        return self._defect

    def start(
        self,
        ended: Callable[[Sequence[int]], Awaitable[None]],
        save_by_rules: Callable[[Sequence[int]], Awaitable[None]],
    ) -> None:
        """Begin.

        Args:
            ended: Told of jobs that go on to be saved, or were parked.
            save_by_rules: Saves, with what rules read in them, the turns of jobs that wait for the command.
        """
        self._ended = ended
        self._save_by_rules = save_by_rules
        self._rules.breakers.by_provider["extractor"].listen(self.notify)
        self._task = asyncio.create_task(self._run(), name=f"reader-{self._name}")

    async def stop(self) -> None:
        """End the command too; what it was asked is asked again at the next start."""
        self._rules.breakers.by_provider["extractor"].forget(self.notify)
        self._release()
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def notify(self) -> None:
        self._wake.set()

    def hurry(self) -> None:
        """Read what waits by now without waiting for more: a session has ended. Later turns are grouped again."""
        self._at_once_until = time.now()
        self._wake.set()

    @contextlib.contextmanager
    def awaited(self) -> Generator[None]:
        """Read whatever waits, and what comes meanwhile, at once: somebody waits for it."""
        self._waiting_callers += 1
        self.hurry()
        try:
            yield
        finally:
            self._waiting_callers -= 1

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                wait_s = await self._next()
                self._defect = ""
            except PPSError as error:  # the journal or the graph
                wait_s = _PLACE_S
                self._defect = f"{error.code}: {error.message}"
                _log.warning("entity %s: reading waits after: %s", self._name, self._defect)
            except Exception as error:  # noqa: BLE001 - a task's outermost call: health tells it, and reading goes on
                wait_s = _PLACE_S
                self._defect = self._failing.unforeseen(error)
            finally:
                self._release()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(_LEAST_S, wait_s) if wait_s else 0):
                    await self._wake.wait()

    def _release(self) -> None:
        self._rules.breakers.release(("extractor",), self)
        self._rules.places.release(self)

    async def _next(self) -> float:
        """Read the next group, if it may be read now; return how many seconds to wait for the one after."""
        saves_now = await self._saves_now()  # asked first: what is saved by now is among what waits
        waiting = await self._queue.after("read", 0, _MOST_TURNS, bounds.MAX_FACTS * _MOST_TURNS)
        if not waiting:
            self.away = (
                ""  # nothing waits for the command any more: it is asked when something does
            )
            return _LOOK_S
        if self.away:
            await self._let_rules_read(waiting)
        group = self._first_group(waiting)
        is_full = len(group) < len(waiting)
        if saves_now and self._is_at_once(waiting) and not is_full:
            return _SOON_S  # the session's last words are being saved: they are read with the rest
        if wait_s := self._wait_s(waiting, is_full=is_full):
            return min(wait_s, _LOOK_S)
        if not self._rules.places.claim(self, self._wake.set):
            return _PLACE_S
        if held := self._rules.breakers.claim(("extractor",), self):
            self.away = self.away or held.why
            await self._let_rules_read(waiting)
            return held.wait_s or _LEAST_S
        jobs = await self._queue.take("read", len(group), time.now())
        if jobs:
            await self._try(jobs)
        return 0.0

    async def _let_rules_read(self, waiting: Sequence[Job]) -> None:
        """Have rules read those turns that wait for the command and that rules have not read."""
        unread = [job.id for job in waiting if reads(job) and not job.payload.rules_meanwhile]
        if unread:
            await self._save_by_rules(unread)

    async def _saves_now(self) -> bool:
        due = await self._queue.due_at("save")
        return due is not None and due <= time.now()

    def _first_group(self, waiting: Sequence[Job]) -> Sequence[Job]:
        """Return the first of the waiting jobs that have as many tokens as one prompt takes, one at least."""
        tokens = 0
        for at, job in enumerate(waiting):
            tokens += estimate_tokens(job.turn.content)
            if at and (tokens > self.groups.tokens or at == self._max_turns):
                return waiting[:at]
        return waiting

    def _is_at_once(self, waiting: Sequence[Job]) -> bool:
        """Tell whether the first of the waiting jobs is to be read without waiting for more."""
        if self._waiting_callers:
            return True
        queued_at = waiting[0].queued_at
        until = self._at_once_until
        return until is not None and queued_at is not None and queued_at <= until

    def _wait_s(self, waiting: Sequence[Job], *, is_full: bool) -> float:
        """Return how long a first group waits: for its next try, and for more to come until none has for a while."""
        first = waiting[0]
        moment = time.now()
        put_off_s = (first.next_at - moment).total_seconds() if first.next_at else 0.0
        if is_full or first.failures or self._is_at_once(waiting):
            return max(0.0, put_off_s)
        latest = max(job.queued_at for job in waiting if job.queued_at)
        return max(0.0, put_off_s, self.groups.idle_s - (moment - latest).total_seconds())

    async def _try(self, jobs: Sequence[Job]) -> None:
        """Read a group, or note why it could not be read: half as many are tried the next time."""
        try:
            readings = await self._read(jobs)
        except BudgetSpent as spent:
            await self._queue.put_back([job.id for job in jobs], spent.until)
        except PPSError as error:
            await self._failed(jobs, error)
        else:
            self.away = ""
            self._rules.breakers.succeeded(("extractor",))
            self._max_turns = min(_MOST_TURNS, self._max_turns * 2)
            if not await self._queue.give(readings):
                await self._queue.put_back([job.id for job in jobs])
            await self._ended([job.id for job in jobs])

    async def _failed(self, jobs: Sequence[Job], error: PPSError) -> None:
        self._max_turns = max(1, len(jobs) // 2)
        if isinstance(error, ModelUnavailable):
            self.away = error.message
        if len(jobs) > 1 and self._failing.fault_of(error) != "outage":
            await self._queue.put_back([job.id for job in jobs])
            return
        await self._queue.put_back([job.id for job in jobs[1:]])
        still = await self._queue.job(jobs[0].id)
        if still is None or (still.state, still.stage) != ("running", "read"):
            return  # forgotten or changed meanwhile: it is not this turn that failed
        if await self._failing.note(jobs[0], error, "extractor"):
            self._rules.backlog.release(1)
        else:
            await self._let_rules_read([still])
        await self._ended([jobs[0].id])

    async def _read(self, jobs: Sequence[Job]) -> list[tuple[int, JobPayload]]:
        await self._asked.costs.check()
        turns = [job.turn for job in jobs]
        known = await self._known(jobs)
        said = await self._asked.command.ask(prompt_of(turns, known, self._journal.zone))
        used = TokensUsed(1, int(not said.metered), said.tokens_in, said.tokens_out)
        await self._asked.costs.note(jobs[0].id, {self._asked.command.name: used}, texts=len(jobs))
        found = understand(said.text, turns, known)
        return [
            (job.id, replace(job.payload, read=self._clean(one)))
            for job, one in zip(jobs, found, strict=True)
        ]

    async def _known(self, jobs: Sequence[Job]) -> Known:
        """Return what the graph knows of the names in some turns, and of those who speak in them."""
        text = "\n".join(f"{speaker(job.turn)}: {job.turn.content}" for job in jobs)
        ids = await self._journal.named_in(text, _MOST_NAMES)
        nodes = await self._asked.client.nodes(ids)
        facts = await self._asked.client.facts_of_nodes(ids, _MOST_KNOWN_FACTS * 2) if ids else []
        moment = time.now()
        turns = {job.turn.uuid for job in jobs}
        current = [
            fact
            for fact in facts
            if fact.kind == "fact"
            and (fact.invalid_at is None or fact.invalid_at > moment)
            and fact.episodes
            and not turns.issuperset(fact.episodes)  # else what rules found in these very turns
        ]
        shown = current[:_MOST_KNOWN_FACTS]
        return Known(nodes, shown, await self._sources(nodes, shown))

    async def _sources(self, nodes: Sequence[Node], facts: Sequence[Fact]) -> dict[str, str]:
        """Return content word of a known name or fact → a turn that says it: what uses it is tied to that turn."""
        mentions = await self._journal.mentioning([node.uuid for node in nodes], _MOST_MENTIONS)
        turns = [*(turn for some in mentions.values() for turn in some)]
        turns += [turn for fact in facts for turn in fact.episodes[:1]]
        words = {
            turn.uuid: content_words(turn.content)
            for turn in await self._journal.turns(list(dict.fromkeys(turns)))
        }
        sources: dict[str, str] = {}
        for node in nodes:
            for word in content_words(" ".join((node.name, *node.aliases))):
                for turn in mentions.get(node.uuid, ()):
                    if word in words.get(turn, ()):
                        sources.setdefault(word, turn)
        for fact in facts:
            for word in content_words(fact.text) & words.get(fact.episodes[0], set()):
                sources.setdefault(word, fact.episodes[0])
        return sources

    def _clean(self, found: Findings) -> Reading:
        """Return what was found in a turn, within the bounds of what a job holds and without secrets."""
        redactor = self._asked.redactor()
        nodes = redactor.nodes(tuple(found.nodes[: bounds.MAX_NODES]))
        facts = redactor.facts(tuple(found.facts[: bounds.MAX_FACTS]))
        dropped = [replace(one, what=redactor.text(one.what)) for one in found.dropped]
        return Reading(nodes, facts, tuple(dropped[: bounds.MAX_FACTS]))


def reads(job: Job) -> bool:
    """Tell whether a command is to read a saved turn; what tools did says nothing of the world."""
    return (
        job.payload.extraction == "command" and job.payload.read is None and job.turn.role != "tool"
    )
