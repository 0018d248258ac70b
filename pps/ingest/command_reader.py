"""The reader: has saved turns read by a command, a group at a time, beside the worker.

The command's answer is written into the turns' jobs, which are then saved once more on the *given*
path. So saving never waits for a reading; a reading that is cut short is done again and doubles
nothing; and the reading of a turn that was forgotten or changed meanwhile is discarded whole. While
the command is unavailable, rules read the waiting turns; these stay in the queue for the command.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain

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
from pps.models.program import ModelCommand

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
    """When waiting turns are read: at ``tokens`` in all, or ``idle_s`` after the latest turn."""

    tokens: int
    idle_s: float


@dataclass(frozen=True, slots=True)
class Asked:
    """The command of a reader, its client, budget, groups and redactor; all of one entity."""

    command: ModelCommand
    client: IsolatedGraphitiClient
    costs: Costs
    groups: Groups
    redactor: Callable[[], KeyedRedactor]


class Reader:
    """One task for each entity.

    Its prompts hold turns of this entity, and what this entity's graph knows of the names in them.

    Attributes:
        groups: When waiting turns are read.
        away: The last failure of the command while it is unavailable; empty if it is available.
    """

    def __init__(self, journal: Journal, name: str, rules: WorkRules, setup: Asked) -> None:
        self.groups = setup.groups
        self.away = ""
        self._journal = journal
        self._queue = journal.queue
        self._name = name
        self._rules = rules
        self._setup = setup
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
        return self._setup.command.name

    @property
    def trouble(self) -> str:
        """The reason why reading cannot go on for now; empty if it can."""
        if self.away:
            return f"the extractor failed, {self.away} (rules read the turns meanwhile)"
        return self._defect

    def start(
        self,
        ended: Callable[[Sequence[int]], Awaitable[None]],
        save_by_rules: Callable[[Sequence[int]], Awaitable[None]],
    ) -> None:
        """Start the task.

        Args:
            ended: Called with jobs that go on to be saved, or were parked.
            save_by_rules: Saves the turns of jobs that wait for the command, with the facts that
                rules read in them.
        """
        self._ended = ended
        self._save_by_rules = save_by_rules
        self._rules.breakers.by_provider["extractor"].listen(self.notify)
        self._task = asyncio.create_task(self._run(), name=f"reader-{self._name}")

    async def stop(self) -> None:
        """Stop the task and the command; the next start asks the command again."""
        self._rules.breakers.by_provider["extractor"].forget(self.notify)
        self._release()
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def notify(self) -> None:
        self._wake.set()

    def hurry(self) -> None:
        """Read the turns that wait now at once: a session has ended. Later turns are grouped."""
        self._at_once_until = time.now()
        self._wake.set()

    @contextlib.contextmanager
    def awaited(self) -> Generator[None]:
        """Read waiting turns, and those that come meanwhile, at once: a caller waits for them."""
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
            except Exception as error:  # noqa: BLE001 - a task's outermost call; health reports it
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
        """Read the next group if it may be read now; return the seconds until the one after."""
        due = await self._queue.due_at("save")  # first: turns saved by now are among those waiting
        saves_now = due is not None and due <= time.now()
        waiting = await self._queue.after("read", 0, _MOST_TURNS, bounds.MAX_FACTS * _MOST_TURNS)
        if not waiting:
            self.away = ""  # no turn waits: the command is tried again for the next one
            return _LOOK_S
        if self.away:
            await self._let_rules_read(waiting)
        group = self._first_group(waiting)
        is_full = len(group) < len(waiting)
        if saves_now and self._is_at_once(waiting) and not is_full:
            return _SOON_S  # the session's last turns are being saved: they are read with the rest
        wait_s = self._wait_s(waiting, is_full=is_full)
        if wait_s:
            return min(wait_s, _LOOK_S)
        if not self._rules.places.claim(self, self._wake.set):
            return _PLACE_S
        breaker = self._rules.breakers.claim(("extractor",), self)
        if breaker:
            self.away = self.away or breaker.why
            await self._let_rules_read(waiting)
            return breaker.wait_s or _LEAST_S
        jobs = await self._queue.take("read", len(group), time.now())
        if jobs:
            await self._try(jobs)
        return 0.0

    async def _let_rules_read(self, waiting: Sequence[Job]) -> None:
        """Have rules read the waiting turns that they have not read yet."""
        unread = [job.id for job in waiting if reads(job) and not job.payload.rules_meanwhile]
        if unread:
            await self._save_by_rules(unread)

    def _first_group(self, waiting: Sequence[Job]) -> Sequence[Job]:
        """Return the first waiting jobs, as many as fit the tokens of one prompt, one at least."""
        tokens = 0
        for at, job in enumerate(waiting):
            tokens += estimate_tokens(job.turn.content)
            if at and (tokens > self.groups.tokens or at == self._max_turns):
                return waiting[:at]
        return waiting

    def _is_at_once(self, waiting: Sequence[Job]) -> bool:
        """Tell whether the first waiting job is to be read without waiting for more turns."""
        if self._waiting_callers:
            return True
        queued_at = waiting[0].queued_at
        until = self._at_once_until
        return until is not None and queued_at is not None and queued_at <= until

    def _wait_s(self, waiting: Sequence[Job], *, is_full: bool) -> float:
        """Return the seconds until a group is read: until its next try, and ``idle_s`` of quiet."""
        first = waiting[0]
        moment = time.now()
        put_off_s = (first.next_at - moment).total_seconds() if first.next_at else 0.0
        if is_full or first.failures or self._is_at_once(waiting):
            return max(0.0, put_off_s)
        latest = max(job.queued_at for job in waiting if job.queued_at)
        return max(0.0, put_off_s, self.groups.idle_s - (moment - latest).total_seconds())

    async def _try(self, jobs: Sequence[Job]) -> None:
        """Read a group, or note why it failed; then half as many are tried the next time."""
        try:
            readings = await self._read(jobs)
        except BudgetSpent as spent:
            await self._queue.put_back([job.id for job in jobs], spent.until)
        except PPSError as error:
            await self._note_failure(jobs, error)
        else:
            self.away = ""
            self._rules.breakers.succeeded(("extractor",))
            self._max_turns = min(_MOST_TURNS, self._max_turns * 2)
            if not await self._queue.give(readings):
                await self._queue.put_back([job.id for job in jobs])
            await self._ended([job.id for job in jobs])

    async def _note_failure(self, jobs: Sequence[Job], error: PPSError) -> None:
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
        await self._setup.costs.check()
        turns = [job.turn for job in jobs]
        known = await self._known(jobs)
        answer = await self._setup.command.ask(prompt_of(turns, known, self._journal.zone))
        used = TokensUsed(1, int(not answer.metered), answer.tokens_in, answer.tokens_out)
        await self._setup.costs.note(jobs[0].id, {self._setup.command.name: used}, texts=len(jobs))
        findings = understand(answer.text, turns, known)
        return [
            (job.id, replace(job.payload, read=self._clean(findings_of_turn)))
            for job, findings_of_turn in zip(jobs, findings, strict=True)
        ]

    async def _known(self, jobs: Sequence[Job]) -> Known:
        """Return what the graph knows of the names in the turns, and of their speakers."""
        text = "\n".join(f"{speaker(job.turn)}: {job.turn.content}" for job in jobs)
        ids = await self._journal.named_in(text, _MOST_NAMES)
        nodes = await self._setup.client.nodes(ids)
        facts = await self._setup.client.facts_of_nodes(ids, _MOST_KNOWN_FACTS * 2) if ids else []
        moment = time.now()
        turns = {job.turn.uuid for job in jobs}
        current = [
            fact
            for fact in facts
            if fact.kind == "fact"
            and (fact.invalid_at is None or fact.invalid_at > moment)
            and fact.episodes
            and not turns.issuperset(fact.episodes)  # else rules read it in these very turns
        ][:_MOST_KNOWN_FACTS]
        return Known(nodes, current, await self._sources(nodes, current))

    async def _sources(self, nodes: Sequence[Node], facts: Sequence[Fact]) -> dict[str, str]:
        """Return content word of a known name or fact → a turn that says it.

        A new fact that uses such a word is tied to that turn.
        """
        mentions = await self._journal.mentioning([node.uuid for node in nodes], _MOST_MENTIONS)
        turns = list(chain.from_iterable(mentions.values()))
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

    def _clean(self, findings: Findings) -> Reading:
        """Return the findings of a turn without secrets, within the bounds of a job's payload."""
        redactor = self._setup.redactor()
        nodes = redactor.nodes(tuple(findings.nodes[: bounds.MAX_NODES]))
        facts = redactor.facts(tuple(findings.facts[: bounds.MAX_FACTS]))
        dropped = [replace(part, what=redactor.text(part.what)) for part in findings.dropped]
        return Reading(nodes, facts, tuple(dropped[: bounds.MAX_FACTS]))


def reads(job: Job) -> bool:
    """Tell whether a command is to read a saved turn; turns of tools state nothing of the world."""
    return (
        job.payload.extraction == "command" and job.payload.read is None and job.turn.role != "tool"
    )
