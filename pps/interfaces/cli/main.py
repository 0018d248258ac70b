"""The command line as a whole, and its outermost call: an error is one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import partial

import click

from pps.core.errors import PPSError
from pps.core.version import __version__
from pps.interfaces.cli import asking, commands, hooks, machine
from pps.interfaces.cli.command_table import Command, load_table
from pps.interfaces.cli.output import EXIT_INTERRUPTED, acting, misused, told, unforeseen

_HELP = """A private, lasting memory for AI agents.

\b
Begin with:
  pps init
  pps entity create ana
  pps remember ana Priya moved to Lisbon in March.
  pps recall ana where does Priya live

\b
Then:
  pps status          how the server and the memories are
  pps help COMMAND    what a command does and takes

Exit codes: 0 done, 1 failed, 2 asked wrongly, 3 not there, 4 try again later."""


def build(table: Iterable[Command] | None = None) -> commands.Ordered:
    """Return the command line; nothing of a memory is imported for it.

    Args:
        table: The commands that are made from operations; the ones that ``scripts/docs`` has kept
            when None.
    """
    root = commands.Ordered(
        "pps",
        help=_HELP,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    click.version_option(__version__, message="pps %(version)s")(root)
    actor = "Who writes, where it is not the person: packs of kinds say what an actor may write."
    root.params.append(
        click.Option(["--actor"], default="", expose_value=False, callback=acting, help=actor)
    )
    for command in machine.BY_HAND[:1]:
        root.add_command(command)
    commands.add(root, load_table() if table is None else table, asking.do)
    for command in machine.BY_HAND[1:]:
        root.add_command(command)
    for command in hooks.COMMANDS:
        commands.group(root, ["hooks"]).add_command(command)
    root.add_more = partial(_add_features_of_others, root)
    if "rebuild" in root.commands:
        machine.with_registry(root.commands["rebuild"])
    return root


def _add_features_of_others(root: commands.Ordered) -> None:
    """Add the commands of features that other distributions install.

    The server says what is wrong with one.
    """
    from pps.config.feature_points import other_feature_points  # not at the top: few have any

    points = other_feature_points()
    if not points:
        return
    from pps.app.features import load_feature
    from pps.interfaces.cli.command_table import describe_operations

    for point in points:
        try:
            feature = load_feature(point)
            own = describe_operations(feature.operations())
        except Exception as error:  # noqa: BLE001 - the code of others
            unusable = f"the feature {point.name} cannot be used ({type(error).__name__})"
            click.echo(f"pps: {unusable}; `pps feature list` says why", err=True)
            continue
        if point.name in root.commands:
            continue  # it is refused
        mine = [command for command in own if command.words[0] == point.name]
        if any(len(command.words) > 1 for command in mine):
            commands.group(root, [point.name]).help = feature.summary
        commands.add(root, mine, asking.do)


def run(runners: machine.Runners) -> None:
    """Run the command line on this process's arguments, and exit."""
    code = ended(runners)
    try:
        _flush()
    except OSError:
        # Python would try again at its end to write what cannot be written, and print errors.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def ended(runners: machine.Runners | None) -> int:
    """Run the command line on this process's arguments; return the exit code."""
    try:
        code = build().main(obj=runners, prog_name="pps", standalone_mode=False) or 0
        _flush()
    except click.exceptions.Abort as abort:
        if isinstance(abort.__cause__, KeyboardInterrupt):
            click.echo("pps: interrupted; the server finishes what it has begun", err=True)
            return EXIT_INTERRUPTED
        click.echo("pps: nothing was done", err=True)
        return 1
    except click.ClickException as error:
        return misused(error)
    except PPSError as error:
        return told(error)
    except BrokenPipeError:  # who reads the output has enough of it
        return 1
    except Exception as error:  # noqa: BLE001 - the interface's outermost call
        return unforeseen(error)
    return code


def _flush() -> None:
    if sys.stdout:  # there is none when it was closed from the start
        sys.stdout.flush()
