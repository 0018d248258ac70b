"""The form of an input's field on a command line, in the field's JSON schema under ``cli``.

A field that says nothing is an option of its name (``limit`` → ``--limit N``); a list may be given
more than once.
"""

from __future__ import annotations

from typing import Any

from pps.core.json_shapes import ALSO


def argument(
    *,
    path: bool = False,
    stdin: bool = False,
    rest: bool = False,
    default: Any = None,
    help: str = "",
) -> dict[str, Any]:
    """Return the mark of an argument by position.

    Args:
        path: It names a file or folder of this machine, and is sent as an absolute path.
        stdin: ``-`` reads it from stdin.
        rest: It is all the words that follow, joined by spaces: a text that need not be quoted.
        default: What is sent when it is left out, where that differs from the input's own.
        help: Its help, where that differs from the field's description.
    """
    return _mark("argument", path=path, stdin=stdin, rest=rest, default=default, help=help)


def option(flag: str, *, inverts: bool = False, value: Any = None, **more: Any) -> dict[str, Any]:
    """Return the mark of an option that is called otherwise than its field, or that says more.

    Args:
        flag: Such as ``--at``; with ``/--no-…`` behind it a switch both ways.
        inverts: A switch that sets the field to false: ``--yes`` for ``dry_run``.
        value: A switch that sets the field to this.
        more: ``path``, ``stdin``, ``default`` and ``help``, as ``argument`` takes them; ``rest``,
            where the words that follow the arguments may be given in its place.
    """
    return _mark("option", flag=flag, inverts=inverts, value=value, **more)


def json_file(flag: str, about: str = "") -> dict[str, Any]:
    """Return the mark of a field that a JSON file has, with the other fields of the flag."""
    return _mark("file", flag=flag, about=about)


def json_text(flag: str) -> dict[str, Any]:
    """Return the mark of an option that is written as JSON."""
    return _mark("json", flag=flag)


def unoffered(default: Any = None) -> dict[str, Any]:
    """Return the mark of a field that no command line offers; ``default`` is what it sends."""
    return _mark("none", default=default)


def also(*names: str) -> dict[str, Any]:
    """Return the mark of a field with other accepted names, such as those of a design document."""
    return {ALSO: list(names)}


def _mark(kind: str, **setting: Any) -> dict[str, Any]:
    mark = {
        name: value
        for name, value in setting.items()
        if value or (name == "default" and value is not None)
    }
    return {"cli": {"kind": kind, **mark}}
