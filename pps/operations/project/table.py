"""The project tools: what a router's agents may ask, and what the runners of their tasks may."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal

from pps.core.bounds import MAX_CONTENT, check_length
from pps.core.errors import InvalidRequest
from pps.core.values import EventReceipt, Node, Turn
from pps.entities.tasks import FINISHED, TaskDraft
from pps.ingest.redact import Redactor
from pps.memory import Memory
from pps.operations import records
from pps.operations.outputs import Items
from pps.operations.project import inputs, outputs, render
from pps.operations.project.creating import create_graph
from pps.operations.project.desk import Projects
from pps.operations.project.searching import search_nodes
from pps.operations.records import read_items
from pps.operations.render import items
from pps.operations.table import AnyVerb, Hints, Verb

_LOOK_S = 0.25
_READ = Hints(read_only=True, idempotent=True)


async def _get_graph(projects: Projects, given: inputs.GetGraphInput) -> outputs.GraphView:
    if (given.operation == "shortest_path") != (given.target_node_id is not None):
        raise InvalidRequest("target_node_id", "is needed for a shortest_path, and for nothing else")
    async with projects.memory(given.project) as memory:
        if given.target_node_id is not None:
            path = await memory.graph.between(given.node_id, given.target_node_id, max_hops=given.max_hops)
            return outputs.path_view(path, await _texts(memory, path.nodes if path else ()))
        operation: Literal["neighbors", "subgraph"] = "neighbors" if given.operation == "neighbors" else "subgraph"
        hops = 1 if operation == "neighbors" else given.max_hops
        found = await memory.graph.around(given.node_id, max_hops=hops, limit=outputs.MOST_NODES + 1)
        return outputs.subgraph_view(operation, found, await _texts(memory, found.nodes))


async def _texts(memory: Memory, nodes: Sequence[Node]) -> Mapping[str, Turn]:
    return await memory.records.texts([one.uuid for one in nodes])


async def _get(projects: Projects, given: inputs.GetNodesInput) -> Items:
    async with projects.memory(given.project) as memory:
        return await read_items(memory, given.ids)


async def _update(projects: Projects, given: inputs.UpdateNodeInput) -> EventReceipt:
    async with projects.memory(given.project) as memory:
        return await records.update(memory, given)


async def _append(projects: Projects, given: inputs.AppendNodeInput) -> EventReceipt:
    async with projects.memory(given.project) as memory:
        return await records.append(memory, given)


async def _add_event(projects: Projects, given: inputs.RoutedEventInput) -> EventReceipt:
    async with projects.memory_of(given.project_path) as memory:
        return await records.add_event(memory, given)


async def _list_vaults(projects: Projects, _: inputs.NoInput) -> outputs.Vaults:
    return outputs.Vaults(tuple(await projects.vaults()))


async def _spawn_agent(projects: Projects, given: inputs.SpawnAgentInput) -> outputs.TaskView:
    check_length("task", given.task, 1, MAX_CONTENT)
    node = ""
    if given.node_id is not None:
        async with projects.memory(given.project) as memory:
            [about] = await memory.get([given.node_id])
            node = about.uuid
    redactor = Redactor(on=projects.redacts)
    redactor.label("agent", given.agent)
    task, title = redactor.text(given.task), redactor.text(given.title)
    draft = TaskDraft(task, title, given.agent, node, given.max_attempts)
    tasks = await projects.tasks(given.project, create=True)
    return outputs.task_view(await asyncio.to_thread(tasks.add, draft))


async def _wait_for_agents(projects: Projects, given: inputs.WaitForAgentsInput) -> outputs.TaskStates:
    """Look a few times a second until all have ended or the time is over; the runner may be another process."""
    tasks = await projects.tasks(given.project)
    loop = asyncio.get_running_loop()
    until = loop.time() + given.timeout_s
    while True:
        found = await asyncio.to_thread(tasks.get, given.task_ids)
        left = until - loop.time()
        if left <= 0 or all(one.state in FINISHED for one in found):
            return outputs.task_states(found)
        await asyncio.sleep(min(_LOOK_S, left))


async def _task_claim(projects: Projects, given: inputs.TaskClaimInput) -> outputs.MaybeTask:
    runner = Redactor(on=projects.redacts).text(given.runner)
    return outputs.claimed_view(await projects.claim(given.project, runner, given.lease_s, given.agent))


async def _task_extend(projects: Projects, given: inputs.TaskExtendInput) -> outputs.TaskView:
    tasks = await projects.tasks(given.project)
    note = Redactor(on=projects.redacts).text(given.note)
    return outputs.task_view(await asyncio.to_thread(tasks.extend, given.task_id, given.lease, given.lease_s, note))


async def _task_complete(projects: Projects, given: inputs.TaskCompleteInput) -> outputs.TaskView:
    tasks = await projects.tasks(given.project)
    result = Redactor(on=projects.redacts).text(given.result)
    return outputs.task_view(await asyncio.to_thread(tasks.complete, given.task_id, given.lease, result))


async def _task_fail(projects: Projects, given: inputs.TaskFailInput) -> outputs.TaskView:
    tasks = await projects.tasks(given.project)
    error = Redactor(on=projects.redacts).text(given.error)
    failed = await asyncio.to_thread(tasks.fail, given.task_id, given.lease, error, again=given.retry)
    return outputs.task_view(failed)


async def _task_list(projects: Projects, given: inputs.TaskListInput) -> outputs.TaskList:
    tasks = await projects.tasks(given.project)
    found = await asyncio.to_thread(tasks.list, given.limit)
    return outputs.TaskList(tuple(outputs.task_view(one) for one in found))


PROJECT_VERBS: tuple[AnyVerb, ...] = (
    Verb(
        "create_graph",
        "Add to a project's graph",
        "Keep what you found out about a project as nodes with titles, joined by typed edges. The project's memory is "
        "made when it is the first time. The same call again changes nothing; what is left out is in 'skipped'.",
        inputs.CreateGraphInput,
        outputs.CreatedGraph,
        create_graph,
        render.created,
        Hints(idempotent=True),
        "router",
    ),
    Verb(
        "search_nodes",
        "Search a project's graph",
        "The nodes of a project that best answer a question, by meaning, words, nearness in the graph, tags and youth; "
        "each with the signals that brought it here. A project without a memory is not found: create_graph makes it.",
        inputs.SearchNodesInput,
        outputs.NodeHits,
        search_nodes,
        render.hits,
        _READ,
        "router",
    ),
    Verb(
        "get_graph",
        "Look at a project's graph",
        "What a node is joined to, how it leads to another, or everything around it.",
        inputs.GetGraphInput,
        outputs.GraphView,
        _get_graph,
        render.graph,
        _READ,
        "router",
    ),
    Verb(
        "get",
        "Read nodes of a project whole",
        "Everything that nodes of a project say, by the ids that another tool returned.",
        inputs.GetNodesInput,
        Items,
        _get,
        items,
        _READ,
        "router",
    ),
    Verb(
        "update",
        "Change a node of a project",
        "Give a node of a project another text, title, kind, tags or fields. What it was stays as a version.",
        inputs.UpdateNodeInput,
        EventReceipt,
        _update,
        records.event,
        Hints(destructive=False, idempotent=True),
        "router",
    ),
    Verb(
        "append",
        "Add to a node of a project",
        "Add a paragraph to what a node of a project says. What it was stays as a version.",
        inputs.AppendNodeInput,
        EventReceipt,
        _append,
        records.event,
        Hints(),
        "router",
    ),
    Verb(
        "add_event",
        "Keep what happened in a project",
        "Keep something that happened as a record of the project whose folder holds 'project_path'. A path that no "
        "project of yours holds is not found: create_graph makes a project's memory.",
        inputs.RoutedEventInput,
        EventReceipt,
        _add_event,
        records.event,
        Hints(),
        "router",
    ),
    Verb(
        "list_vaults",
        "List the projects",
        "Every project that you may use and that has a memory, with how many nodes, edges and tags it holds.",
        inputs.NoInput,
        outputs.Vaults,
        _list_vaults,
        render.vaults,
        _READ,
        "router",
    ),
    Verb(
        "spawn_agent",
        "Hand a task to an agent",
        "Put a task into the project's queue, for an agent that somebody else runs here. It comes back at once with "
        "the task's id: ask wait_for_agents how it went.",
        inputs.SpawnAgentInput,
        outputs.TaskView,
        _spawn_agent,
        render.spawned,
        Hints(),
        "router",
    ),
    Verb(
        "wait_for_agents",
        "Wait for tasks",
        "Wait until tasks have ended, at most a minute, and get their results; says which still run. Call it again to "
        "wait longer.",
        inputs.WaitForAgentsInput,
        outputs.TaskStates,
        _wait_for_agents,
        render.states,
        _READ,
        "router",
    ),
    Verb(
        "task_claim",
        "Claim a task",
        "The task that has waited longest, for a runner that carries tasks out; the runner's until the lease ends.",
        inputs.TaskClaimInput,
        outputs.MaybeTask,
        _task_claim,
        render.claimed,
        Hints(),
        "runner",
    ),
    Verb(
        "task_extend",
        "Keep a task longer",
        "Hold a claimed task for so many seconds from now, and note how far it is.",
        inputs.TaskExtendInput,
        outputs.TaskView,
        _task_extend,
        render.task,
        Hints(idempotent=True),
        "runner",
    ),
    Verb(
        "task_complete",
        "Say that a task is done",
        "End a claimed task with its result, which wait_for_agents then returns.",
        inputs.TaskCompleteInput,
        outputs.TaskView,
        _task_complete,
        render.task,
        Hints(),
        "runner",
    ),
    Verb(
        "task_fail",
        "Say that a task failed",
        "End a claimed task that did not succeed; it is tried again while attempts are left.",
        inputs.TaskFailInput,
        outputs.TaskView,
        _task_fail,
        render.task,
        Hints(),
        "runner",
    ),
    Verb(
        "task_list",
        "List tasks",
        "The tasks of a project and how they stand, newest first.",
        inputs.TaskListInput,
        outputs.TaskList,
        _task_list,
        render.tasks,
        _READ,
        "runner",
    ),
)
"""In the order in which they are listed."""
