"""Tasks of agents: routers hand them out and wait, runners carry them out.

PPS starts no agent itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from pps.core import bounds
from pps.core.bounds import MAX_CONTENT, check_length
from pps.entities.paths import MAX_PATH
from pps.entities.tasks import FINISHED, AgentTask, TaskDraft, TaskState
from pps.features.projects.project_graph import ProjectInput, line
from pps.features.projects.projects import Projects
from pps.ingest.given_input import Input, Name
from pps.ingest.indexer import Progress
from pps.ingest.redact import Redactor
from pps.operations.inputs import Content, Id, Ids, Label, argument, option
from pps.operations.table import ADDS, PROJECTS, READS, SETS, TASKS

MAX_WAIT_S = 60
"""Longest that ``wait_for_agents`` waits, in seconds."""
_LOOK_S = 0.25

Seconds = Annotated[
    int,
    Field(
        ge=5,
        le=3600,
        description="Seconds of the lease. Extend it in time, or another runner gets the task.",
    ),
]


class SpawnAgentInput(ProjectInput):
    """A task for an agent that somebody else runs."""

    task: Content = Field(
        description="Complete instructions. The agent knows nothing else of this conversation."
    )
    title: Label = Field(default="", description="One line that describes the task to people.")
    agent: Annotated[str, StringConstraints(max_length=64)] = Field(
        default="", description="Kind of agent, if the runners here know several."
    )
    node_id: Name | None = Field(
        default=None, description="Id or title of the node that the task is about."
    )
    max_attempts: int = Field(
        default=3, ge=1, le=10, description="Number of attempts before the task has failed."
    )


class WaitForAgentsInput(ProjectInput):
    """Tasks to wait for."""

    ids: Ids = Field(description="Ids that {spawn_agent} returned.")
    timeout_s: float = Field(
        default=20,
        ge=0,
        le=MAX_WAIT_S,
        description="Maximum wait in seconds. After that the answer says which tasks still run.",
    )


class TaskClaimInput(Input):
    """A runner that is ready for a task."""

    runner: Annotated[str, StringConstraints(min_length=1, max_length=100)] = Field(
        description="Name of the runner.", json_schema_extra=option("--runner", default="cli")
    )
    project: Annotated[str, StringConstraints(min_length=1, max_length=MAX_PATH)] | None = Field(
        default=None,
        description="Only tasks of this project.",
        json_schema_extra=option("--project", path=True),
    )
    agent: Annotated[str, StringConstraints(max_length=64)] = Field(
        default="", description="Only tasks for this kind of agent or for any agent."
    )
    lease_s: Seconds = 300


class HeldTaskInput(ProjectInput):
    """A task that the runner holds."""

    id: Id = Field(description="The task's id.", json_schema_extra=argument())
    lease: Annotated[str, StringConstraints(min_length=1, max_length=64)] = Field(
        description="Lease from {task_claim}.", json_schema_extra=argument()
    )


class TaskExtendInput(HeldTaskInput):
    """A task that needs longer."""

    lease_s: Seconds = 300
    note: Annotated[str, StringConstraints(max_length=1000)] = Field(
        default="", description="Progress, in words."
    )


class TaskCompleteInput(HeldTaskInput):
    """A task that is done."""

    result: Annotated[str, StringConstraints(max_length=bounds.MAX_CONTENT)] = Field(
        default="",
        description="Result.",
        json_schema_extra=argument(stdin=True, rest=True),
    )


class TaskFailInput(HeldTaskInput):
    """A task that failed."""

    error: Annotated[str, StringConstraints(min_length=1, max_length=bounds.MAX_TEXT)] = Field(
        description="Reason.", json_schema_extra=argument(stdin=True, rest=True)
    )
    retry: bool = Field(
        default=True,
        description="True tries again while attempts are left.",
        json_schema_extra=option("--retry/--no-retry"),
    )


class TaskListInput(ProjectInput):
    """Which tasks to show."""

    limit: int = Field(default=50, ge=1, le=1000, description="Maximum tasks, newest first.")


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task and how it stands."""

    id: str
    state: TaskState
    attempts: int
    max_attempts: int
    created_at: datetime
    updated_at: datetime
    title: str | None = None
    agent: str | None = None
    runner: str | None = None
    lease_until: datetime | None = None
    note: str | None = None
    result: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TaskStates:
    """Tasks in the order asked.

    ``running`` are ids of those that have not ended, waiting ones too.
    """

    tasks: tuple[TaskView, ...]
    running: tuple[str, ...]
    all_done: bool


@dataclass(frozen=True, slots=True)
class ClaimedTask:
    """A task to carry out; ``lease`` is what its end is reported with."""

    project: str
    prompt: str
    lease: str
    task: TaskView
    node_id: str | None = None


@dataclass(frozen=True, slots=True)
class MaybeTask:
    """A task, or none when none waits."""

    claimed: ClaimedTask | None = None


def _view(task: AgentTask) -> TaskView:
    """Return the view of a task; what it asks for and its lease are left out."""
    return TaskView(
        task.id,
        task.state,
        task.attempts,
        task.draft.max_attempts,
        task.created_at,
        task.updated_at,
        task.draft.title or None,
        task.draft.agent or None,
        task.runner or None,
        task.lease_until,
        task.note or None,
        task.result or None,
        task.error or None,
    )


def _states_text(view: TaskStates) -> str:
    lines = [_task_text(task) for task in view.tasks]
    return "\n".join(
        [*lines, "All ended." if view.all_done else f"Still running: {', '.join(view.running)}"]
    )


def _tasks_text(tasks: Sequence[TaskView]) -> str:
    return "\n".join(map(_task_text, tasks)) or "No tasks."


def _claimed_text(view: MaybeTask) -> str:
    """Return what is to be done, with what the runner needs to report its end."""
    if view.claimed is None:
        return "No task waits."
    task = view.claimed
    return f"{task.project}\ntask {task.task.id}\nlease {task.lease}\n\n{task.prompt}"


def _task_text(view: TaskView) -> str:
    text = view.result or view.error or view.note or view.title or ""
    return f"{view.state} [{view.id}]{': ' + line(text) if text else ''}"


@PROJECTS.operation(
    "Hand a task to an agent", lambda task: f"Queued for a runner. [{task.id}]", ADDS
)
async def spawn_agent(projects: Projects, request: SpawnAgentInput) -> TaskView:
    """Use it to put a task into the project's queue.

    An agent that somebody runs here takes it. Returns the task's id at once; {wait_for_agents}
    returns its result.
    """
    check_length("task", request.task, 1, MAX_CONTENT)
    node = ""
    if request.node_id is not None:
        async with projects.memory(request.project) as memory:
            [about] = await memory.get([request.node_id])
            node = about.uuid
    redactor = Redactor(on=projects.redacts)
    redactor.label("agent", request.agent)
    task = redactor.text(request.task)
    title = redactor.text(request.title)
    draft = TaskDraft(task, title, request.agent, node, request.max_attempts)
    tasks = await projects.tasks(request.project, create=True)
    return _view(await asyncio.to_thread(tasks.add, draft))


@PROJECTS.operation("Wait for tasks", _states_text, READS)
async def wait_for_agents(
    projects: Projects, request: WaitForAgentsInput, progress: Progress | None
) -> TaskStates:
    """Use it to wait until tasks have ended, for at most a minute; call it again to wait longer.

    Returns their results, and which tasks still run.
    """
    tasks = await projects.tasks(request.project)
    loop = asyncio.get_running_loop()
    until = loop.time() + request.timeout_s
    while True:
        states = await asyncio.to_thread(tasks.get, request.ids)
        if progress:
            progress("tasks", sum(task.state in FINISHED for task in states), len(states))
        left = until - loop.time()
        if left <= 0 or all(task.state in FINISHED for task in states):
            running = tuple(task.id for task in states if task.state not in FINISHED)
            return TaskStates(tuple(map(_view, states)), running, not running)
        await asyncio.sleep(min(_LOOK_S, left))


@TASKS.operation(
    "Claim a task",
    _claimed_text,
    ADDS,
    command="task claim",
    examples=("pps task claim --lease-s 600 --json",),
)
async def task_claim(projects: Projects, request: TaskClaimInput) -> MaybeTask:
    """For a runner: claims the task that has waited longest, until the lease ends.

    Returns its project, id, lease and instructions.
    """
    claimed = await projects.claim(
        request.project, projects.redacted(request.runner), request.lease_s, request.agent
    )
    if claimed is None:
        return MaybeTask()
    task = claimed.task
    return MaybeTask(
        ClaimedTask(
            claimed.project, task.draft.prompt, task.lease, _view(task), task.draft.node or None
        )
    )


@TASKS.operation(
    "Extend a task's lease",
    _task_text,
    SETS,
    command="task extend",
    examples=('pps task extend ~/work/shop TASK LEASE --note "tests run"',),
)
async def task_extend(projects: Projects, request: TaskExtendInput) -> TaskView:
    """Extends the lease of a claimed task from now on, and notes its progress."""
    tasks = await projects.tasks(request.project)
    note = projects.redacted(request.note)
    return _view(
        await asyncio.to_thread(tasks.extend, request.id, request.lease, request.lease_s, note)
    )


@TASKS.operation(
    "Complete a task",
    _task_text,
    ADDS,
    command="task complete",
    examples=('pps task complete ~/work/shop TASK LEASE "All tests pass."',),
)
async def task_complete(projects: Projects, request: TaskCompleteInput) -> TaskView:
    """Ends a claimed task with its result, which {wait_for_agents} then returns."""
    tasks = await projects.tasks(request.project)
    result = projects.redacted(request.result)
    return _view(await asyncio.to_thread(tasks.complete, request.id, request.lease, result))


@TASKS.operation(
    "Fail a task",
    _task_text,
    ADDS,
    command="task fail",
    examples=('pps task fail ~/work/shop TASK LEASE "no such branch" --no-retry',),
)
async def task_fail(projects: Projects, request: TaskFailInput) -> TaskView:
    """Ends a claimed task that did not succeed; it is tried again while attempts are left."""
    tasks = await projects.tasks(request.project)
    error = projects.redacted(request.error)
    failed = await asyncio.to_thread(
        tasks.fail, request.id, request.lease, error, again=request.retry
    )
    return _view(failed)


@TASKS.operation(
    "List tasks",
    _tasks_text,
    READS,
    items="tasks",
    command="task list",
    examples=("pps task list ~/work/shop",),
)
async def task_list(projects: Projects, request: TaskListInput) -> tuple[TaskView, ...]:
    """Returns the tasks of a project with their state, newest first."""
    tasks = await projects.tasks(request.project)
    listed = await asyncio.to_thread(tasks.list, request.limit)
    return tuple(map(_view, listed))
