"""``pps jobs``: what became of what was told, and what to do about turns that could not be taken in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pps.core.errors import InvalidRequest
from pps.interfaces.cli.output import EXIT_AGAIN, Answer, AsJson, Name, ask, confirm, say, show_json, work

if TYPE_CHECKING:
    from pps.core.values import JSON

app = typer.Typer(no_args_is_help=True, help="Look at the turns that wait or failed; try them again, or give them up.")

Numbers = Annotated[list[int] | None, typer.Argument(help="Numbers of jobs.", metavar="ID", show_default=False, min=1)]
All = Annotated[bool, typer.Option("--all", help="Every job that failed.")]


@app.command("list")
def list_(
    name: Name,
    state: Annotated[
        str, typer.Option(help="queued, running, done, failed or dropped; unfinished and failed ones if not given.")
    ] = "",
    after: Annotated[int, typer.Option(min=0, help="Only jobs with a greater number.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Most jobs.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List jobs, oldest first: number, state, attempts, the text's beginning, what went wrong.

    Example: pps jobs list ana --state failed
    """
    asked: dict[str, JSON] = {"entity": name, "state": state or None, "after": after, "limit": limit}
    found = work("jobs.list", asked, as_json=as_json)
    if as_json:
        show_json(found)
        return
    jobs = found["jobs"]
    for job in jobs if isinstance(jobs, list) else []:
        if isinstance(job, dict):
            why = f"  ({job['error']})" if job["error"] else ""
            say(f"{job['id']:>7} {job['state']:<8} {job['stage']:<5} tried {job['attempts']}  {job['text']}{why}")
    if not jobs:
        typer.echo("No such jobs.")
    elif found.get("next"):
        typer.echo(f"More: --after {found['next']}")


@app.command()
def show(
    name: Name,
    job: Annotated[str, typer.Argument(help="A job's number or a turn's id.", metavar="ID", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Show one job with every attempt, its errors and what it cost.

    Example: pps jobs show ana 17
    """
    ask("job_status", name, {"id": job}, as_json=as_json)


@app.command()
def retry(name: Name, jobs: Numbers = None, all_: All = False, as_json: AsJson = False) -> None:
    """Take turns in again, from the beginning: the ones named, or all that failed. What is there is not doubled.

    Examples: pps jobs retry ana 17 18 · pps jobs retry ana --all
    """
    _act("jobs.retry", _chosen(name, jobs, all_=all_), as_json=as_json, done="retried")


@app.command()
def drop(
    name: Name,
    jobs: Numbers = None,
    all_: All = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give up turns that failed or wait: the ones named, or all that failed. Texts stay; `retry` takes them up again.

    Example: pps jobs drop ana 17
    """
    chosen = _chosen(name, jobs, all_=all_)
    if not yes:
        confirm("Give them up?")
    _act("jobs.drop", chosen, as_json=as_json, done="dropped")


def _chosen(name: str, jobs: list[int] | None, *, all_: bool) -> dict[str, JSON]:
    if bool(jobs) == all_:
        raise InvalidRequest("ID", "give numbers of jobs, or --all")
    return {"entity": name, "all": True} if all_ else {"entity": name, "ids": list(jobs or [])}


def _act(task: str, chosen: dict[str, JSON], *, as_json: bool, done: str) -> None:
    answer = work(task, chosen, as_json=as_json)
    if as_json:
        show_json(answer)
        return
    ids = answer[done]
    typer.echo(f"{len(ids) if isinstance(ids, list) else 0} {done}.")


def extract(
    name: Name,
    since: Annotated[str, typer.Option(help="Only turns said at this time or later; ISO 8601.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count, and estimate what it takes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Have a command read the turns that nothing has read for facts, such as those from before it was set.

    It may be cut short and run again: what was read is not read again. Exit code 4 while some still wait.

    Examples: pps extract ana --dry-run · pps extract ana --since 2026-11-01
    """
    found = work("extract", {"since": since or None, "dry_run": dry_run}, entity=name, as_json=as_json)
    if as_json:
        show_json(found)
    else:
        typer.echo(_extracted(found))
    if found["waiting"] and not dry_run:
        raise typer.Exit(EXIT_AGAIN)


def _extracted(found: Answer) -> str:
    if not found["turns"]:
        return "Nothing to read: every turn was read, or came with facts."
    if found["dry_run"]:
        why = f" {found['why']}." if found["why"] else ""
        return f"{found['turns']:,} turns to read, about {found['tokens']:,} tokens in and out.{why}"
    rest = f"; {found['waiting']:,} wait ({found['why']})" if found["waiting"] else ""
    return (
        f"{found['read']:,} of {found['turns']:,} turns read: {found['facts']:,} facts, {found['dropped']:,} left out "
        f"that no turn says, {found['tokens']:,} tokens{rest}."
    )
