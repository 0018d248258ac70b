"""``pps init``: makes the data folder and its settings.

On a terminal it asks for the person's name and time zone.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

import click

from pps.config.home import home_folder
from pps.core.errors import InvalidRequest
from pps.interfaces.cli.commands import AS_JSON, Taught
from pps.interfaces.cli.output import say, show_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_SETTING = re.compile(r"^(?=[a-z_]+ = )", re.MULTILINE)


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
