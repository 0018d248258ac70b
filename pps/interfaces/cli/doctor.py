"""``pps doctor``: check the installation, report each problem's remedy, mend what is safe."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pps.core.errors import PPSError
from pps.core.file_lock import FileLock
from pps.interfaces.cli.output import finished
from pps.server import Link, connect, runfile, spool

if TYPE_CHECKING:
    from pps.config import Settings
    from pps.core.values import JSON


_TURNS = "turns done"
"""How the comparison of the journal's turns with the graph's begins."""
_UNFIT = "no longer fit the packs"
"""In a note of an examination: some records are not as their kinds are now."""


@dataclass(frozen=True, slots=True)
class Fix:
    """What mends a finding and loses nothing: ``says`` tells it, as a command would be told.

    ``act`` does it.

    ``act`` may raise PPSError or OSError.
    """

    says: str
    act: Callable[[], None]


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One look: ``detail`` says what was seen or what to do. A finding that is not ok is a problem.

    One that asks for attention is something to do when there is time. ``fix`` is what ``--fix``
    does about it.
    """

    check: str
    ok: bool
    detail: str
    attention: bool = False
    fix: Fix | None = None

    def as_json(self) -> dict[str, JSON]:
        """Return it for programs; ``fix`` is what ``--fix`` does, in words, or null."""
        return {
            "check": self.check,
            "ok": self.ok,
            "detail": self.detail,
            "attention": self.attention,
            "fix": self.fix.says if self.fix else None,
        }


def findings(home: Path, only: str, *, offline: bool) -> Iterator[DoctorFinding]:
    """Look at settings, folder, server and every entity (or ``only`` one).

    ``offline`` opens the files itself.
    """
    from pps.config import load

    version = ".".join(str(part) for part in sys.version_info[:3])
    yield DoctorFinding(
        "python",
        (3, 11) <= sys.version_info[:2] <= (3, 14),
        f"{version} ({sys.executable})",
    )
    try:
        settings = load()
    except PPSError as error:
        yield DoctorFinding("settings", False, error.message)
        return
    yield DoctorFinding(
        "settings", True, f"store {settings.store}, embedder {settings.embedder.name}"
    )
    folder = _folder(home)
    yield folder
    if not folder.ok:
        return
    yield from _settings_file(home)
    broken = _relations(home)
    if broken:
        yield broken
        return
    yield _registry(home)
    yield _profiles(settings)
    yield _hooks_spool(home)
    yield from _offline(settings, only) if offline else _online(home, only)


def _folder(home: Path) -> DoctorFinding:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        return DoctorFinding(
            "data folder",
            False,
            f"{home} cannot be made ({error.strerror}); set PPS_HOME to another",
        )
    private = home.stat().st_mode & 0o077 == 0
    if home.stat().st_mode & 0o002:
        detail = f"everybody can write {home}: run `chmod 700 {home}`"
        return DoctorFinding("data folder", False, detail, fix=_make_private(home, 0o700))
    writable = os.access(home, os.W_OK | os.X_OK)
    detail = (
        str(home)
        if writable
        else f"{home} cannot be written; make it yours to write, or set PPS_HOME to another"
    )
    if private or not writable:
        return DoctorFinding("data folder", writable, detail)
    return DoctorFinding(
        "data folder",
        True,
        f"{detail} (others may read it: chmod 700)",
        fix=_make_private(home, 0o700),
    )


def _make_private(path: Path, mode: int) -> Fix:
    return Fix(f"chmod {mode:o} {path}: nobody else can read or write it", lambda: path.chmod(mode))


def _settings_file(home: Path) -> Iterator[DoctorFinding]:
    """Report a pps.toml that others can read or write: it may hold keys."""
    file = home / "pps.toml"
    if file.is_file() and file.stat().st_mode & 0o077:
        detail = f"others may read or write {file}, which may hold keys: chmod 600"
        yield DoctorFinding(
            "settings file", True, detail, attention=True, fix=_make_private(file, 0o600)
        )


def _relations(home: Path) -> DoctorFinding | None:
    """Return the error in the installation's own table of relations: it keeps memories closed."""
    from pps.config.relation_files import load_relations

    try:
        load_relations(home)
    except PPSError as error:
        return DoctorFinding("relations", False, error.message)
    return None


def _registry(home: Path) -> DoctorFinding:
    from pps.entities.registry import Registry

    try:
        wrong = Registry(home).damage()
    except PPSError as error:
        wrong = [error.message]
    return DoctorFinding("registry", not wrong, "; ".join(wrong) or "whole")


def _profiles(settings: Settings) -> DoctorFinding:
    from pps.recall.profiles import Profiles

    try:
        profiles = Profiles.load(settings)
    except PPSError as error:
        return DoctorFinding("profiles", False, error.message)
    refused = "; ".join(profiles.refused.values())
    return DoctorFinding("profiles", not refused, refused or f"{len(profiles.all())} ways to rank")


def _hooks_spool(home: Path) -> DoctorFinding:
    state = spool.look(home)
    folder = spool.spool_folder(home)
    lines = [f"{state.waiting} events wait for the server" if state.waiting else "empty"]
    if state.dropped:
        lines.append(
            f"{state.dropped} events found no room while the server was away; run `pps serve`, "
            "then remove "
            f"{folder / 'dropped'}"
        )
    if state.bad:
        lines.append(
            f"{state.bad} events could not be taken in; look at {folder}/*.bad, then remove them"
        )
    forget_count = Fix(
        f"remove {folder / 'dropped'}: it only counts the events that found no room",
        lambda: (folder / "dropped").unlink(missing_ok=True),
    )
    return DoctorFinding(
        "hooks' spool",
        not (state.dropped or state.bad),
        "; ".join(lines),
        fix=forget_count if state.dropped else None,
    )


def _online(home: Path, only: str) -> Iterator[DoctorFinding]:
    try:
        link = connect(home)
        yield DoctorFinding(
            "server", True, f"{link.run.url}, version {link.run.version}, process {link.run.pid}"
        )
        names = [only]
        if not only:
            listed = link.call("entity_list", "", {"archived": True})["data"]["entities"]
            names = [entity["name"] for entity in listed]
    except PPSError as error:
        yield DoctorFinding("server", False, error.message)
        return
    for name in names:
        try:
            examined = finished(link.follow("doctor", "", {"entity": name}), quiet=True)["data"]
        except PPSError as error:
            yield DoctorFinding(f"entity {name}", False, error.message)
            continue
        yield from _examined(name, examined, Fix(_reindexing(name), _Reindexing(link, name)))


@dataclass(frozen=True, slots=True)
class _Reindexing:
    """Lets the server build an entity's derived indexes anew."""

    link: Link
    name: str

    def __call__(self) -> None:
        finished(self.link.follow("reindex", "", {"entity": self.name}), quiet=True)


def _reindexing(name: str) -> str:
    return f"pps reindex {name}: builds its text and vector index anew from what is true"


def _offline(settings: Settings, only: str) -> Iterator[DoctorFinding]:
    try:
        with FileLock(runfile.lock_file(settings.home), what="pps doctor --offline"):
            yield from asyncio.run(_opened(settings, only))
    except PPSError as error:
        yield DoctorFinding("files", False, f"{error.message}; `pps serve --stop` ends the server")


async def _opened(settings: Settings, only: str) -> list[DoctorFinding]:
    """Run the server's operation ``doctor`` in this process."""
    from pps.app import App
    from pps.operations.maintenance import doctor

    doctor_findings: list[DoctorFinding] = []
    async with App.open(settings) as app:
        entries = app.registry.list(include_archived=True)
        for name in [only] if only else [entry.entity.name for entry in entries]:
            try:
                answer = await doctor.answer(app, doctor.parse({"entity": name}))
            except PPSError as error:
                doctor_findings.append(DoctorFinding(f"entity {name}", False, error.message))
                continue
            reindexing = Fix(_reindexing(name), _ReindexingHere(settings, name))
            doctor_findings += _examined(name, answer.data, reindexing)
    return doctor_findings


@dataclass(frozen=True, slots=True)
class _ReindexingHere:
    """Builds an entity's derived indexes anew in this process, while no server runs."""

    settings: Settings
    name: str

    def __call__(self) -> None:
        with FileLock(runfile.lock_file(self.settings.home), what="pps doctor --offline --fix"):
            asyncio.run(self._reindexed())

    async def _reindexed(self) -> None:
        from pps.app import App

        async with App.open(self.settings) as app:
            await app.reindex(self.name)


def apply(finding: DoctorFinding) -> str:
    """Do what mends a finding; return why it could not be done, or an empty text."""
    try:
        if finding.fix:
            finding.fix.act()
    except PPSError as error:
        return error.message
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""


def _examined(name: str, report: Mapping[str, Any], reindexing: Fix) -> Iterator[DoctorFinding]:
    """Say whether a memory is well, and whether its stores hold the same ids.

    Indexes are built anew only where the graph has all turns: else they would be made to agree with
    what is lost.
    """
    differing = [
        agreement["what"]
        for agreement in report["ledger"]["agreements"]
        if agreement["missing"] or agreement["extra"]
    ]
    is_derived = differing and not any(difference.startswith(_TURNS) for difference in differing)
    unfit = [note for note in report["notes"] if _UNFIT in note]
    lines = [*report["problems"], *(note for note in report["notes"] if note not in unfit)]
    yield DoctorFinding(
        f"entity {name}",
        report["ok"],
        "; ".join(lines) or "well",
        fix=reindexing if is_derived else None,
    )
    yield from (
        DoctorFinding(f"entity {name}, records", True, note, attention=True) for note in unfit
    )
    for agreement in report["ledger"]["agreements"]:
        same = not (agreement["missing"] or agreement["extra"])
        detail = (
            f"{agreement['expected']:,} and {agreement['found']:,}, {'' if same else 'NOT '}the "
            "same ids"
        )
        yield DoctorFinding(f"entity {name}, {agreement['what']}", same, detail)
