"""What the project tools answer, as text that a person or a model reads."""

from __future__ import annotations

from pps.core.text import first_line
from pps.operations.project.desk import Vault
from pps.operations.project.outputs import (
    CreatedGraph,
    GraphEdgeView,
    GraphView,
    MaybeTask,
    NodeHit,
    NodeHits,
    TaskList,
    TaskStates,
    TaskView,
    Vaults,
)
from pps.operations.render import counted

_LINE = 300


def created(view: CreatedGraph) -> str:
    """Return what was made, a line a node, and what was left out."""
    lines = [f"{counted(view.nodes_created, 'node')}, {counted(view.edges_created, 'link')} made."]
    lines += [f"{_line(one.title)} [{one.id}]" for one in view.node_ids]
    lines += [f"Left out: {one.what}: {one.why}" for one in view.skipped]
    return "\n".join(lines)


def hits(view: NodeHits) -> str:
    """Return one line a node."""
    found = [f"{number}. {_hit(one)}" for number, one in enumerate(view.results, 1)]
    return "\n".join([*found, *(f"note: {one}" for one in view.notes)]) or "Nothing found."


def graph(view: GraphView) -> str:
    """Return the nodes, then the edges by the titles of their ends."""
    if not view.found:
        return "No path within max_hops."
    titles = {one.id: one.title for one in view.nodes}
    lines = [f"{one.hops}: {_line(one.title)} ({one.kind}) [{one.id}]{_said(one.content)}" for one in view.nodes]
    lines += [_edge(one, titles) for one in view.edges]
    return "\n".join([*lines, *(["… and more nodes"] if view.truncated else [])])


def vaults(view: Vaults) -> str:
    """Return one line a project."""
    return "\n".join(_vault(one) for one in view.vaults) or "No projects yet: create_graph makes the first."


def spawned(view: TaskView) -> str:
    """Return that a task waits for a runner."""
    return f"Queued for a runner. [{view.id}]"


def states(view: TaskStates) -> str:
    """Return one line a task, and what has not ended."""
    lines = [_task(one) for one in view.tasks]
    return "\n".join([*lines, "All ended." if view.all_done else f"Still running: {', '.join(view.running)}"])


def tasks(view: TaskList) -> str:
    """Return one line a task."""
    return "\n".join(_task(one) for one in view.tasks) or "No tasks."


def task(view: TaskView) -> str:
    """Return how a task stands."""
    return _task(view)


def claimed(view: MaybeTask) -> str:
    """Return what is to be done, with what the runner needs to report its end."""
    if view.claimed is None:
        return "No task waits."
    one = view.claimed
    return f"{one.project}\ntask {one.task.id}\nlease {one.lease}\n\n{one.prompt}"


def _hit(hit: NodeHit) -> str:
    tags = "".join(f" #{tag}" for tag in hit.tags)
    return f"{hit.title} ({hit.kind}){_said(hit.content)}{tags} {hit.score:.3f} [{hit.id}]"


def _said(content: str) -> str:
    return f": {_line(content)}" if content else ""


def _edge(edge: GraphEdgeView, titles: dict[str, str]) -> str:
    said = f": {_line(edge.text)}" if edge.text else ""
    source, target = titles.get(edge.source, edge.source), titles.get(edge.target, edge.target)
    return f"{source} -{edge.relation_type}-> {target}{said}"


def _vault(vault: Vault) -> str:
    if vault.error:
        return f"{vault.project} ({vault.name}): cannot be opened: {vault.error}"
    held = (("node", vault.nodes), ("edge", vault.edges), ("tag", vault.tags))
    return (
        f"{vault.project} ({vault.name}) [{vault.id}]: {', '.join(counted(number or 0, word) for word, number in held)}"
    )


def _task(view: TaskView) -> str:
    what = view.result or view.error or view.note or view.title or ""
    return f"{view.state} [{view.id}]{': ' + _line(what) if what else ''}"


def _line(text: str) -> str:
    return first_line(" ".join(text.split()), _LINE)
