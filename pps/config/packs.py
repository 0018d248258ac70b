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
from pps.core.record_values import TITLED_PACK
from pps.core.text import snake
from pps.core.user_files import read_text

ALWAYS = TITLED_PACK
"""The pack that every memory has."""


@dataclass(frozen=True, slots=True)
class PackFile:
    """A pack's file; ``own`` is True for a person's own pack, False for a shipped one."""

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
    """Return name → file of all packs, the shipped ones first.

    A person's own file with a shipped pack's name is left out; ``find_pack`` reports it.

    Raises:
        ConfigError: A file cannot be read.
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
    """Return a pack's file.

    Raises:
        InvalidRequest: There is no such pack; the message lists all packs.
        ConfigError: A person's own file has the name of a shipped pack.
    """
    files = pack_files(home)
    if name not in files:
        raise InvalidRequest(
            "pack", f"{name!r} is not shipped nor in {home / 'packs'}; there are {', '.join(files)}"
        )
    own_file = home / "packs" / f"{name}.toml"
    if not files[name].own and own_file.exists():
        raise ConfigError(
            f"{own_file}: {name} is the name of a shipped pack; give the file and the pack another"
        )
    return files[name]


def load_packs(home: Path, names: Iterable[str]) -> tuple[KindPack, ...]:
    """Load an entity's packs and the pack that every memory has.

    Raises:
        ConfigError: A pack does not exist or has mistakes, or two packs clash.
    """
    try:
        packs = tuple(_loaded(find_pack(home, name)) for name in dict.fromkeys((*names, ALWAYS)))
    except InvalidRequest as error:
        raise ConfigError(
            f"{error.message}; take it out of the entity's `packs` in entity.toml, or bring it back"
        ) from None
    clashing = clash(packs)
    if clashing:
        raise ConfigError(
            f"{clashing}; take one of them out of the entity's `packs` in entity.toml"
        )
    return packs


def packs_together(home: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Return an entity's pack names, each once and without the one that every memory has.

    Raises:
        ConfigError: A pack's file has mistakes.
        InvalidRequest: There is no such pack, or two packs have a kind, a layer or a tool with the
            same name.
    """
    wanted = tuple(name for name in dict.fromkeys(names) if name != ALWAYS)
    clashing = clash([_loaded(find_pack(home, name)) for name in (*wanted, ALWAYS)])
    if clashing:
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
    """Return a sentence about a kind, layer or tool that two packs both have, or an empty text."""
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
    """Return the names of a pack's tools, including those generated from its kinds."""
    rows = [tool.name.replace(".", "_") for tool in pack.tools]
    if pack.open:
        return rows
    generated: list[str] = []
    for kind in pack.kinds:
        for verb in ("create", "update"):
            name = f"{snake(kind)}_{verb}_v1"
            generated.append(f"{snake(kind)}_record_{verb}_v1" if name in rows else name)
    return rows + generated
