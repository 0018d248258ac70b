"""``pps task``: what a runner of agents does: claim a task, hold it, say how it ended. PPS starts none itself."""

from __future__ import annotations

from typing import Annotated

import typer

from pps.core.values import JSON
from pps.interfaces.cli.output import AsJson, absolute, say, server, show_json, text_or_stdin

app = typer.Typer(no_args_is_help=True, help="Carry out tasks that agents handed out with spawn_agent.")

Project = Annotated[str, typer.Argument(help="The project's folder.", metavar="PROJECT", show_default=False)]
Task = Annotated[str, typer.Argument(help="The task's id.", metavar="TASK", show_default=False)]
Lease = Annotated[str, typer.Argument(help="As claim printed it.", metavar="LEASE", show_default=False)]
Seconds = Annotated[int, typer.Option("--lease-s", min=5, max=3600, help="How long it is yours, in seconds.")]


@app.command()
def claim(
    runner: Annotated[str, typer.Option(help="The runner's name.")] = "cli",
    project: Annotated[str, typer.Option(help="Only of this project.")] = "",
    agent: Annotated[str, typer.Option(help="Only for this kind of agent.")] = "",
    lease_s: Seconds = 300,
    as_json: AsJson = False,
) -> None:
    """Take the task that has waited longest; prints its project, id, lease and what is to be done.

    Example: pps task claim --lease-s 600 --json
    """
    given: dict[str, JSON] = {"runner": runner, "agent": agent, "lease_s": lease_s}
    _do("task_claim", {**given, **({"project": absolute(project)} if project else {})}, as_json=as_json)


@app.command()
def extend(
    project: Project,
    task: Task,
    lease: Lease,
    lease_s: Seconds = 300,
    note: Annotated[str, typer.Option(help="How far it is.")] = "",
    as_json: AsJson = False,
) -> None:
    """Hold a claimed task for so many seconds from now.

    Example: pps task extend ~/work/shop TASK LEASE --note "tests run"
    """
    _do("task_extend", {**_held(project, task, lease), "lease_s": lease_s, "note": note}, as_json=as_json)


@app.command()
def complete(
    project: Project,
    task: Task,
    lease: Lease,
    result: Annotated[str, typer.Argument(help="What came of it; '-' reads stdin.")] = "",
    as_json: AsJson = False,
) -> None:
    """Say that a claimed task is done, with its result.

    Example: pps task complete ~/work/shop TASK LEASE "All tests pass."
    """
    _do("task_complete", {**_held(project, task, lease), "result": text_or_stdin(result)}, as_json=as_json)


@app.command()
def fail(
    project: Project,
    task: Task,
    lease: Lease,
    error: Annotated[str, typer.Argument(help="Why; '-' reads stdin.")],
    retry: Annotated[bool, typer.Option("--retry/--no-retry", help="Try again while attempts are left.")] = True,
    as_json: AsJson = False,
) -> None:
    """Say that a claimed task failed.

    Example: pps task fail ~/work/shop TASK LEASE "no such branch" --no-retry
    """
    _do("task_fail", {**_held(project, task, lease), "error": text_or_stdin(error), "retry": retry}, as_json=as_json)


@app.command("list")
def list_(
    project: Project,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Most tasks.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List a project's tasks, newest first.

    Example: pps task list ~/work/shop
    """
    _do("task_list", {"project": absolute(project), "limit": limit}, as_json=as_json)


def _held(project: str, task: str, lease: str) -> dict[str, JSON]:
    return {"project": absolute(project), "task_id": task, "lease": lease}


def _do(verb: str, arguments: dict[str, JSON], *, as_json: bool) -> None:
    answer = server().runner(verb, arguments)
    if as_json:
        show_json(answer["data"])
    else:
        say(str(answer["text"]))
