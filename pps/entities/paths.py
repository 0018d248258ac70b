"""Paths of projects: real ones, compared part by part, and the entity's name that one becomes."""

from __future__ import annotations

import errno
import os
import re
import unicodedata
from pathlib import Path, PurePosixPath

from pps.core.bounds import is_text
from pps.core.errors import InvalidRequest
from pps.core.ids import MAX_NAME

MAX_PATH = 4_096
"""Most characters of a path."""


def real_path(text: str, field: str = "project") -> str:
    """Return a path as it really is on this machine: absolute, no ``..``, every link followed.

    It need not exist. What is compared, kept and routed is only ever this form, so a link that
    leads out of a project's root, ``..`` and doubled or trailing slashes change nothing.

    Raises:
        InvalidRequest: It is not absolute, too long, not text that a path can be, or a circle of
            links.
    """
    plain = plain_path(text, field)
    real = os.path.realpath(plain)
    # What a circle leaves is not resolved; but since Python 3.13 "circle/.." is taken for the
    # folder that it is in.
    if any(map(_is_circle, ancestors(plain))) or any(map(os.path.islink, ancestors(real))):
        raise InvalidRequest(field, "goes through a circle of links")
    return real


def plain_path(text: str, field: str) -> str:
    """Return a path as it is written, when it can be one; the disk is not asked.

    Raises InvalidRequest.
    """
    if not text.startswith("/"):
        raise InvalidRequest(field, "must be an absolute path, such as /work/shop")
    if len(text) > MAX_PATH or "\0" in text or not is_text(text):
        raise InvalidRequest(
            field, f"must be a path of at most {MAX_PATH:,} characters, without NUL"
        )
    # POSIX lets "//a" mean something else than "/a"; no system that PPS runs on does.
    return "/" + text.lstrip("/")


def _is_circle(path: str) -> bool:
    try:
        os.stat(path)  # noqa: PTH116 - its error number is what counts
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def without_paths(text: str, home: Path) -> str:
    """Return a text without the paths of the data folder's files, which have names of entities."""
    return re.sub(rf"{re.escape(str(home))}[^\s:;,)'\"]*", "the memory's files", text)


def outside(home: Path, text: str, field: str = "path", *, around: bool = False) -> str:
    """Return the real path of what an owner's command reads or writes.

    None of the data folder's files is.

    Args:
        home: The data folder.
        text: The path as it was given.
        field: What an error names.
        around: It may be a folder that holds the data folder; the caller leaves that one out.

    Raises:
        InvalidRequest: As ``real_path``; or it lies in the data folder, where each entity's files
            are its own.
    """
    path = real_path(text, field)
    home_path = real_path(str(home.absolute()), "home")
    if is_inside(path, home_path) or (not around and is_inside(home_path, path)):
        more = "" if around else ", and not around it"
        raise InvalidRequest(
            field, f"must lie outside of the data folder{more}: what one entity has feeds no other"
        )
    return path


def is_inside(path: str, root: str) -> bool:
    """Tell whether a real path is a root or below it; ``/a/project2`` is not inside ``/a/proj``."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def ancestors(path: str) -> list[str]:
    return [path, *(str(parent) for parent in PurePosixPath(path).parents if str(parent) != path)]


def name_of(path: str) -> str:
    """Return the entity's name that a project's folder suggests: its base name, made legal.

    Accents are dropped, letters lowered, everything else becomes ``_``; what is left of a name
    without any Latin letter or digit is ``project``. It may be taken: see ``numbered``.
    """
    plain = (
        unicodedata.normalize("NFKD", PurePosixPath(path).name)
        .encode("ascii", "ignore")
        .decode()
        .lower()
    )
    name = re.sub(r"[^a-z0-9]+", "_", plain).strip("_") or "project"
    if not name[0].isalpha():
        name = f"p_{name}"
    return name[:MAX_NAME].rstrip("_")


def numbered(name: str, number: int) -> str:
    """Return the name with a suffix, still a legal name: ``shop``, 2 → ``shop_2``."""
    suffix = f"_{number}"
    return name[: MAX_NAME - len(suffix)] + suffix
