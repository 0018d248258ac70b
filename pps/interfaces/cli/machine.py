"""The commands that need this machine: init, server, bridge, doctor, demo, profiles, registry."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from pps.config.home import INSIDE, home_folder
from pps.core.errors import InvalidRequest, StoreConflict
from pps.core.ids import check_actor
from pps.interfaces.cli.commands import AS_JSON, EntityName, Ordered, Taught
from pps.interfaces.cli.output import absolute, finished, say, server, show_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pps.config import Settings
    from pps.core.values import JSON
    from pps.interfaces.cli.doctor import DoctorFinding

_SETTING = re.compile(r"^(?=[a-z_]+ = )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Runners:
    """What the command line starts but does not know: other interfaces, handed in by ``__main__``.

    Attributes:
        serve: Serves until it is ended; takes the settings and whether it was started by need.
        bridge: Serves an entity on stdio; takes the data folder, the name, the toolsets and who
            writes.
        projects: Serves the project tools on stdio; takes the data folder and the roots.
    """

    serve: Callable[[Settings, bool], None]
    bridge: Callable[[Path, str, str, str], None]
    projects: Callable[[Path, list[str]], None]


@click.command(
    params=[AS_JSON],
    cls=Taught,
    examples=("pps init", "pps init --yes", "pps init --person Nadia --time-zone Europe/Lisbon"),
)
@click.option("--person", default=None, help="Your name: who says “I” to new entities.")
@click.option("--time-zone", default=None, help="Of new entities; this machine's if not given.")
@click.option("--yes", is_flag=True, help="Ask nothing: no name, and this machine's time zone.")
def init(*, person: str | None, time_zone: str | None, yes: bool, as_json: bool) -> None:
    """Make the data folder, with a pps.toml in which all settings but the chosen ones are comments.

    On a terminal it asks two things of a new data folder: your name, which new entities then know,
    and your time zone. What is there stays. The folder is $PPS_HOME, else this platform's usual
    one.
    """
    from pps.config import load
    from pps.config.settings import checked_person
    from pps.config.zones import checked_zone, machine_zone
    from pps.entities.registry import Registry

    home = home_folder()
    file = home / "pps.toml"
    is_new = not file.exists()
    here = machine_zone()
    if not is_new and (person is not None or time_zone is not None):
        label = "--person" if person is not None else "--time-zone"
        raise InvalidRequest(label, f"is for a new data folder; change it in {file}")
    chosen_person = _checked("--person", person or "", checked_person)
    chosen_zone = _checked("--time-zone", time_zone or here, checked_zone)
    if is_new and not yes and not as_json and sys.stdin.isatty() and sys.stdout.isatty():
        if person is None:
            question = "Your name, for what you say of yourself (Enter: none)"
            chosen_person = _ask(question, "", checked_person)
        if time_zone is None:
            chosen_zone = _ask("Your time zone", here, checked_zone)
    Registry(home)
    if is_new:
        _write_settings(file, chosen_person, chosen_zone)
    settings = load()
    if as_json:
        chosen = {"person": settings.person, "time_zone": settings.time_zone}
        show_json({"home": str(home), "settings": str(file), "is_new": is_new, **chosen})
        return
    say(f"{home} is {'made' if is_new else 'there already'}; settings: {file}")
    say(f"Time zone of new entities: {settings.time_zone}")
    if "time_zone" not in settings.model_fields_set and here != settings.time_zone:
        say(f'None is set; this machine\'s is set by the line: time_zone = "{here}"')
    if settings.person:
        say(f"New entities know you as {settings.person}.")
    say("Next: pps entity create ana  (or another name: a companion, an agent, a project)")


def _checked(label: str, value: str, check: Callable[[str], str]) -> str:
    try:
        return check(value)
    except ValueError as error:
        raise InvalidRequest(label, f"{value!r}: {error}") from None


def _ask(question: str, default: str, check: Callable[[str], str]) -> str:
    """Ask on the terminal until the answer passes ``check``.

    Nothing has been made yet when somebody gives up.
    """
    while True:
        answer = click.prompt(question, default=default, show_default=bool(default))
        try:
            return check(answer)
        except ValueError as error:
            say(f"{answer!r}: {error}")


def _write_settings(file: Path, person: str, time_zone: str) -> None:
    """Write the shipped settings, all but the chosen ones commented out, for this user alone."""
    from pps.config import shipped

    text = _SETTING.sub("# ", shipped("config/pps.toml").read_text(encoding="utf-8"))
    text = text.replace('# time_zone = "UTC"', f'time_zone = "{time_zone}"', 1)
    if person:
        quoted = json.dumps(person, ensure_ascii=False)
        text = text.replace('# person = ""', f"person = {quoted}", 1)
    file.touch(mode=0o600)
    file.write_text(text, encoding="utf-8")


@click.command(cls=Taught, examples=("pps serve", "pps serve --port 9000", "pps serve --stop"))
@click.option("--host", default="", help="The setting's if not given (127.0.0.1).")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="The setting's if not given; 0 takes any."
)
@click.option("--stop", is_flag=True, help="End the running server instead.")
@click.option("--auto", is_flag=True, hidden=True)
@click.pass_obj
def serve(runners: Runners, *, host: str, port: int | None, stop: bool, auto: bool) -> None:
    """Run the server that owns the memories, until Ctrl-C. `pps stop` ends one that runs elsewhere.

    Other commands start one when they need it, and that one ends when idle. Run it yourself for
    clients over HTTP, or to have it always there.
    """
    from pps.server import find
    from pps.server import stop as end

    home = home_folder()
    if stop:
        end_server(as_json=False)
        return
    from pps.config import load
    from pps.interfaces import logs

    settings = load()
    settings_given = {
        name: value for name, value in (("host", host), ("port", port)) if value not in ("", None)
    }
    settings = settings.model_copy(
        update={"server": settings.server.model_copy(update=settings_given)}
    )
    logs.set_up(settings.log_level, settings.logs, file=home / "server.log" if auto else None)
    running = None if auto else find(home)
    if running is not None and running.run.auto:
        end(home)
    elif running is not None:
        raise StoreConflict(
            f"process {running.run.pid} serves already, at {running.run.url}; `pps stop` ends it"
        )
    runners.serve(settings, auto)


@click.command(params=[AS_JSON], cls=Taught, examples=("pps stop",))
def stop(*, as_json: bool) -> None:
    """End the server, once it has finished what it is doing. Nothing is lost.

    The next command that needs a server starts one. Without a server there is nothing to do, which
    is no error.
    """
    end_server(as_json=as_json)


def end_server(*, as_json: bool) -> None:
    """End the running server and wait until it has let go of the files.

    Say whether there was one.
    """
    from pps.server import stop as end

    run = end(home_folder())
    if as_json:
        show_json({"stopped": run is not None, "pid": run.pid if run else None})
    elif run:
        click.echo(f"The server (process {run.pid}) has ended.")
    else:
        click.echo("No server is running.")


@click.command(
    "help",
    params=[click.Argument(["words"], nargs=-1, metavar="[COMMAND]"), AS_JSON],
    cls=Taught,
    examples=("pps help", "pps help recall", "pps help entity create"),
)
@click.pass_context
def show_help(context: click.Context, words: tuple[str, ...], *, as_json: bool) -> None:
    """Say what a command does and takes, as its --help does.

    Without one, which commands there are.
    """
    parent = context.find_root()
    command: click.Command = parent.command
    for at, word in enumerate(words):
        if not isinstance(command, Ordered):
            break
        name, below, _ = command.resolve_command(parent, list(words[at:]))
        if below is None:  # a word that begins with a dash
            parent.fail(f"no such command {word!r}")
        parent = click.Context(below, parent=parent, info_name=name)
        command = below
    if not as_json:
        click.echo(command.get_help(parent))
        return
    help_data: dict[str, JSON] = {"command": parent.command_path, "help": command.get_help(parent)}
    if isinstance(command, Ordered):
        help_data["commands"] = {
            name: below.get_short_help_str(200) for name, below in command.commands.items()
        }
    show_json(help_data)


@click.command(
    "open",
    params=[click.Argument(["name"], type=EntityName(), metavar="NAME"), AS_JSON],
    cls=Taught,
    examples=("pps open ana", "pps open ana --print", "pps open ana --close"),
)
@click.option("--print", "only_print", is_flag=True, help="Print the link, and open no browser.")
@click.option(
    "--close", is_flag=True, help="End every session of its page instead, in all browsers."
)
def open_page(name: str, *, only_print: bool, close: bool, as_json: bool) -> None:
    """Open an entity's page in the browser: what it remembers, why, and how to correct it.

    The link works once, within a minute; the browser may then see this entity for a week, and
    nothing else. Whoever has the link can do so: where there is no browser here, it is printed.
    """
    import webbrowser

    answer = server().call("page_close" if close else "page_open", "", {"name": name})
    if as_json:
        show_json(answer["data"])
    elif not close and not only_print and _has_browser() and webbrowser.open(answer["data"]["url"]):
        click.echo(f"The page of {name} opens in your browser.")
    else:
        say(str(answer["text"]))


@click.command(
    "haven",
    params=[AS_JSON],
    cls=Taught,
    examples=("pps haven", "pps haven --print", "pps haven --close"),
)
@click.option("--print", "only_print", is_flag=True, help="Print the link, and open no browser.")
@click.option("--close", is_flag=True, help="End every session of it instead, in all browsers.")
def open_haven(*, only_print: bool, close: bool, as_json: bool) -> None:
    """Open the owner's page in the browser: all entities, and rooms to talk with them.

    The link works once, within a minute; the browser may then see every entity for a week. Whoever
    has the link can do so: where there is no browser here, it is printed. `pps open NAME` opens the
    page of one entity alone.
    """
    import webbrowser

    answer = server().call("haven_close" if close else "haven_open", "", {})
    if as_json:
        show_json(answer["data"])
    elif not close and not only_print and _has_browser() and webbrowser.open(answer["data"]["url"]):
        click.echo("Haven opens in your browser.")
    else:
        say(str(answer["text"]))


def _has_browser() -> bool:
    """Tell whether there is a screen: a browser of the terminal would take it over."""
    return sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


@click.command(
    cls=Taught,
    examples=(
        "claude mcp add pps-ana -- pps mcp --entity ana",
        "claude mcp add pps-plan -- pps mcp --entity ana --toolset core,records --actor plan",
        "claude mcp add pps-projects -- pps mcp --router",
        "PPS_ENTITY=ana pps mcp",
    ),
)
@click.option(
    "--entity",
    "-e",
    type=EntityName(),
    default="",
    help="Whose memory; nothing else can be reached. $PPS_ENTITY if not given.",
)
@click.option("--router", is_flag=True, help="The project tools instead, for any project.")
@click.option("--root", multiple=True, help="With --router: only projects at or below this folder.")
@click.option(
    "--toolset",
    default="",
    help=(
        "With --entity: core, anchors, records, upkeep, perspectives (commas between) or all; core "
        "if not given."
    ),
)
@click.option(
    "--actor", default="", help="With --entity: who writes, such as plan; the person if not given."
)
@click.pass_obj
def mcp(
    runners: Runners, *, entity: str, router: bool, root: tuple[str, ...], toolset: str, actor: str
) -> None:
    """Serve the tools of an entity, or of projects, on stdin and stdout, for an MCP client.

    Starts the server when it is away. `pps entity show NAME` prints the client's configuration.
    """
    from pps.interfaces import logs

    # Plugins of clients start this without arguments of a person's: they set a variable.
    entity = entity or ("" if router else os.environ.get("PPS_ENTITY", "").strip())
    if router == bool(entity) or (root and not router):
        raise InvalidRequest(
            "--entity",
            "give an entity's name, by --entity or in PPS_ENTITY, or --router (and --root with it)",
        )
    if INSIDE in os.environ:
        return  # a command that reads turns has no use for the memory, and must not write to it
    logs.set_up("warning")
    if router:
        runners.projects(home_folder(), [absolute(path) for path in root or ["/"]])
    else:
        runners.bridge(home_folder(), entity, toolset, check_actor(actor))


@click.command(
    params=[click.Argument(["name"], type=EntityName(), default="", metavar="[NAME]"), AS_JSON],
    cls=Taught,
    examples=(
        "pps doctor",
        "pps doctor ana",
        "pps doctor --offline",
        "pps doctor --fix --dry-run",
        "pps doctor --fix",
    ),
)
@click.option("--offline", is_flag=True, help="Open the files here; the server must not run.")
@click.option("--fix", is_flag=True, help="Mend what can be mended without losing anything.")
@click.option("--dry-run", is_flag=True, help="With --fix: only say what would be done.")
def doctor(name: str, *, offline: bool, fix: bool, dry_run: bool, as_json: bool) -> None:
    """Look at settings, folder, server and every entity, and say what to do.

    Exit code 1 on a problem.

    Of each entity it compares journal, graph, text and vector index by their ids. With --fix it
    says what it will do, does it, and looks again: it takes rights of others to files away, builds
    indexes anew where the graph is whole, and resets the count of events that were dropped. It
    deletes nothing that anybody said.
    """
    from pps.interfaces.cli.doctor import apply, findings

    if dry_run and not fix:
        raise InvalidRequest("--dry-run", "goes with --fix")
    home = home_folder()
    report = _looked(findings(home, name, offline=offline), quiet=as_json)
    steps: list[JSON] = []
    for finding in report if fix else ():
        if finding.fix is None:
            continue
        if not as_json:
            say(f"{'WOULD' if dry_run else 'FIX '} {finding.fix.says}")
        problem = "" if dry_run else apply(finding)
        if problem and not as_json:
            say(f"BAD  could not be done: {problem}")
        steps.append(
            {"does": finding.fix.says, "done": not dry_run and not problem}
            | ({"problem": problem} if problem else {})
        )
    if steps and not dry_run:
        if not as_json:
            say("Looking again:")
        report = _looked(findings(home, name, offline=offline), quiet=as_json)
    if as_json and fix:
        show_json({"fixes": steps, "findings": [finding.as_json() for finding in report]})
    elif as_json:
        show_json([finding.as_json() for finding in report])
    if not all(finding.ok for finding in report):
        raise click.exceptions.Exit(1)


def _looked(findings: Iterable[DoctorFinding], *, quiet: bool) -> list[DoctorFinding]:
    """Return the findings; each is shown as soon as it is there, unless ``quiet``."""
    doctor_findings: list[DoctorFinding] = []
    for finding in findings:
        doctor_findings.append(finding)
        if not quiet:
            mark = "LOOK" if finding.attention else "ok  "
            say(f"{mark if finding.ok else 'BAD '} {finding.check}: {finding.detail}")
    return doctor_findings


@click.command(
    params=[
        click.Argument(["what"], type=click.Choice(["sample", "squad"]), default="sample"),
        AS_JSON,
    ],
    cls=Taught,
    examples=("pps demo", "PPS_HOME=/tmp/pps-demo pps demo", "pps demo squad"),
)
def demo(*, what: str, as_json: bool) -> None:
    """Tell the shipped sample as a story in five steps: entities apart, and a year of records.

    With `squad`: six agents work on one thing, each with its own memory, and share what they find.
    It needs no server and no key. --json is for `squad`.

    Your own memories stay as they are: the data folder is `pps-demo` beside the usual folder, and
    each run begins it anew. If PPS_HOME is set, that folder is used as it is; entities that exist
    already are refused.
    """
    import asyncio
    import os

    from rich.console import Console

    from pps.config import load
    from pps.interfaces.cli.demo import choose_folder, demonstrate, demonstrate_squad

    if as_json and what != "squad":
        raise InvalidRequest("--json", "goes with `pps demo squad`")
    os.environ["PPS_HOME"] = str(choose_folder())
    if what == "squad":
        done = asyncio.run(demonstrate_squad(load(), quiet=as_json))
        if as_json:
            show_json(done)
    else:
        asyncio.run(demonstrate(load(), Console()))


@click.command(
    "verify-isolation",
    params=[AS_JSON],
    cls=Taught,
    examples=("pps verify-isolation --operations 10000",),
)
@click.option(
    "--operations",
    type=click.IntRange(1),
    default=2000,
    help="How many adversarial operations to try; what features attack by themselves is added.",
)
def verify_isolation(*, operations: int, as_json: bool) -> None:
    """Attack the boundary between throw-away entities of this installation.

    Exit code 1 on any leak.
    """
    answer = finished(
        server().follow("verify_isolation", "", {"operations": operations}), quiet=as_json
    )
    if as_json:
        show_json(answer["data"])
    else:
        say(str(answer["text"]))
    if not answer["data"]["ok"]:
        raise click.exceptions.Exit(1)


@click.command(params=[AS_JSON], cls=Taught, examples=("pps profiles",))
def profiles(*, as_json: bool) -> None:
    """List the profiles of `pps recall --profile`: shipped ones, yours, and Graphiti's recipes.

    Yours are TOML files in $PPS_HOME/profiles; a file with a shipped profile's name replaces it. A
    mistake is reported with the file, the key and the bound. A running server finds a new file by
    itself; it reads a changed file when it starts again (`pps serve --stop`). The [filters] of a
    profile are listed with it; a caller's own filter holds beside them. With --json: channels,
    weights and limits too.
    """
    # Not at the top: the engine takes seconds to import, and every other command does without.
    from pps.config import load
    from pps.recall.profiles import Profiles, in_words

    profiles = Profiles.load(load())
    listed = profiles.all()
    if as_json:
        show_json([_profile(profile) for profile in listed])
        return
    width = max(len(profile.name) for profile in listed)
    for profile in listed:
        words = in_words(profile.filters)
        only = f"; only {words}" if words else ""
        click.echo(f"{profile.name:<{width}}  {profile.description} ({profile.origin}{only})")
    for name, problem in profiles.refused.items():
        click.echo(f"{name:<{width}}  refused: {problem}")


def _profile(profile: Any) -> JSON:
    from pps.recall.profiles import as_json

    return {
        "name": profile.name,
        "origin": profile.origin,
        "description": profile.description,
        "channels": {
            name: {"fusion": channel.fusion, "perspectives": dict(channel.perspectives)}
            for name, channel in profile.channels.items()
        },
        "limits": {str(name): most for name, most in profile.limits.items()},
        "max_limit": profile.max_limit,
        "filters": as_json(profile.filters),
    }


@click.command(
    params=[click.Argument(["name"], type=EntityName(), default="", metavar="[NAME]"), AS_JSON],
    cls=Taught,
    examples=("pps config", "pps config --changed", "pps config ana"),
)
@click.option("--changed", is_flag=True, help="Only what is not as shipped.")
def config(name: str, *, changed: bool, as_json: bool) -> None:
    """Show every setting that is in effect here, and where its value comes from.

    Of an entity those of its own too.

    Defaults < pps.toml < environment < the entity's entity.toml. Of a secret it shows only whether
    it is set. A running server has the settings that it was started with: where they differ, that
    is said.
    """
    from pps.interfaces.cli.settings_shown import SettingsShown

    effective = SettingsShown.of(home_folder(), name)
    settings = [setting for setting in effective.settings if not (changed and setting.is_default)]
    if as_json:
        rows = [
            {"key": setting.key, "value": setting.value, "source": setting.source}
            for setting in settings
        ]
        show_json({"home": str(effective.home), "settings": rows, "differing": effective.differing})
        return
    say(f"Data folder: {effective.home}")
    for setting in settings:
        say(f"{setting.key} = {setting.value or '(empty)'}  ({setting.source})")
    for key, value in effective.differing.items():
        say(f"The running server has {key} = {value or '(empty)'}; `pps stop` ends it")


def with_registry(rebuild: click.Command) -> None:
    """Add ``--registry`` to the command ``rebuild``; it needs that no server holds the registry."""
    of_entity: Any = rebuild.callback

    def callback(*, registry: bool, **typed: Any) -> None:
        if registry == bool(typed["entity"]):
            raise InvalidRequest("NAME", "give an entity's name, or --registry")
        if registry:
            _registered(as_json=typed["as_json"])
        else:
            of_entity(**typed)

    rebuild.callback = callback
    rebuild.params[0].required = False
    rebuild.params.append(
        click.Option(["--registry"], is_flag=True, help="The list of entities, from their folders.")
    )


def _registered(*, as_json: bool) -> None:
    from pps.core.file_lock import FileLock
    from pps.entities.registry import NOT_RESTORED, Registry
    from pps.server import runfile

    home = home_folder()
    with FileLock(runfile.lock_file(home), what="pps rebuild"):
        names = Registry.restored(home)
    if as_json:
        show_json(list(names))
        return
    click.echo(f"{', '.join(names) or 'No entities'}: registered again ({len(names)}).")
    click.echo(f"Not back: {NOT_RESTORED}.")


BY_HAND = (
    init,
    serve,
    stop,
    open_page,
    open_haven,
    mcp,
    doctor,
    demo,
    verify_isolation,
    profiles,
    config,
    show_help,
)
