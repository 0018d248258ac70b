"""Packs of kinds: those that are shipped, and a person's own in ``$PPS_HOME/packs``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pps.config.pack_reading import read_pack
from pps.config.packaged import shipped
from pps.core.errors import ConfigError, InvalidRequest
from pps.core.kinds import KindPack
from pps.core.text import snake
from pps.core.user_files import read_text

ALWAYS = "events"
"""The pack that every memory has."""


@dataclass(frozen=True, slots=True)
class PackFile:
    """A pack that can be had; ``own`` tells that it is a person's, not a shipped one."""

    name: str
    text: str
    own: bool
    place: str = ""

    def pack(self) -> KindPack:
        """Return the pack; ConfigError names its first mistakes."""
        pack, mistakes = read_pack(self.text, self.name)
        if pack is None:
            text = "; ".join(map(str, mistakes[:3]))
            raise ConfigError(
                f"the pack {self.name}: {text} (`pps pack check {self.place}` lists every mistake)"
            )
        return pack


def pack_files(home: Path) -> dict[str, PackFile]:
    """Return every pack's file by its name, the shipped ones first.

    ConfigError when one cannot be read.

    A person's own cannot take a shipped one's name: it is left out, and ``find_pack`` says so.
    """
    places = [
        (place, False)
        for place in sorted(shipped("config/packs").iterdir(), key=lambda place: place.name)
    ]
    places += [(place, True) for place in sorted((home / "packs").glob("*.toml"))]
    files: dict[str, PackFile] = {}
    for place, own in places:
        name = place.name.removesuffix(".toml")
        try:
            text = read_text(Path(str(place))) if own else place.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{place}: cannot be read ({error.strerror})") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{place}: cannot be read as UTF-8 text") from None
        files.setdefault(name, PackFile(name, text, own, str(place)))
    return files


def find_pack(home: Path, name: str) -> PackFile:
    """Return a pack's file; InvalidRequest names those that there are, ConfigError a shipped name that was taken."""
    files = pack_files(home)
    if name not in files:
        raise InvalidRequest(
            "pack", f"{name!r} is not shipped nor in {home / 'packs'}; there are {', '.join(files)}"
        )
    if not files[name].own and (taken := home / "packs" / f"{name}.toml").exists():
        raise ConfigError(
            f"{taken}: {name} is the name of a shipped pack; give the file and the pack another"
        )
    return files[name]


def load_packs(home: Path, names: Iterable[str]) -> tuple[KindPack, ...]:
    """Return an entity's packs, with the one that every memory has.

    ConfigError when they cannot be had together.
    """
    try:
        packs = tuple(_loaded(find_pack(home, name)) for name in dict.fromkeys((*names, ALWAYS)))
    except InvalidRequest as error:
        raise ConfigError(
            f"{error.message}; take it out of the entity's `packs` in entity.toml, or bring it back"
        ) from None
    if clashing := clash(packs):
        raise ConfigError(
            f"{clashing}; take one of them out of the entity's `packs` in entity.toml"
        )
    return packs


def packs_together(home: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of packs that an entity asks for, each once, without the one that every memory has.

    Raises:
        ConfigError: A pack's file has mistakes.
        InvalidRequest: There is no such pack, or two have a kind, a layer or a tool of one name.
    """
    wanted = tuple(fromkey for fromkey in dict.fromkeys(names) if fromkey != ALWAYS)
    if clashing := clash([_loaded(find_pack(home, name)) for name in (*wanted, ALWAYS)]):
        raise InvalidRequest("pack", f"{clashing}; nothing was changed")
    return wanted


@lru_cache(maxsize=64)
def _loaded(file: PackFile) -> KindPack:
    return file.pack()


def shipped_pack(name: str) -> KindPack:
    return _loaded(
        PackFile(name, shipped(f"config/packs/{name}.toml").read_text(encoding="utf-8"), False)
    )


def clash(packs: Sequence[KindPack]) -> str:
    """Return which kind, layer or tool two packs both have, in words; an empty text when none."""
    owners: dict[tuple[str, str], str] = {}
    for pack in packs:
        names = [("kind", kind) for kind in pack.kinds]
        names += [("layer", layer.name) for layer in pack.layers]
        names += [("tool", tool) for tool in _tools(pack)]
        for noun, name in names:
            other = owners.setdefault((noun, name), pack.name)
            if other != pack.name:
                return f"the packs {other} and {pack.name} both have the {noun} {name}"
    return ""


def _tools(pack: KindPack) -> list[str]:
    """Return the names of a pack's tools, with those that are made of its kinds."""
    rows = [tool.name.replace(".", "_") for tool in pack.tools]
    made = [
        f"{snake(kind)}{{}}_{verb}_v1"
        for kind in pack.kinds
        for verb in ("create", "update")
        if not pack.open
    ]
    return rows + [
        pattern.format("_record" if pattern.format("") in rows else "") for pattern in made
    ]
