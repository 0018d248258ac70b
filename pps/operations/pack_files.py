"""Packs of kinds: their list, their content, their entities, and the mistakes in own files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from pps.app import App
from pps.config.pack_reading import Mistake, Operations, read_pack
from pps.config.packs import find_pack, pack_files
from pps.config.toml_lines import TomlLines
from pps.core.errors import ConfigError, InvalidRequest
from pps.core.kinds import KindPack
from pps.core.text import counted
from pps.core.user_files import read_text
from pps.entities.paths import MAX_PATH
from pps.operations.exchange import OfEntity
from pps.operations.inputs import Input, Label, Nothing, argument
from pps.operations.inventory import Schema, diagram, schema_of, schema_words
from pps.operations.pack_tools import TYPED
from pps.operations.table import PACKS, READS, SETS, TOOLSETS


class PackInput(Input):
    """Which pack."""

    pack: Label = Field(
        description="Name of the pack, from {pack_list}.", json_schema_extra=argument()
    )
    diagram: bool = Field(
        default=False, description="Its kinds and relations as a Mermaid diagram."
    )


class EnableInput(OfEntity):
    """Which pack, and for whom."""

    pack: Label = Field(
        description="Name of the pack, from {pack_list}.", json_schema_extra=argument()
    )


class CheckInput(Input):
    """A pack's file."""

    path: Annotated[str, Field(max_length=MAX_PATH)] = Field(
        description="A TOML file, absolute.",
        json_schema_extra=argument(path=True, help="A TOML file."),
    )
    diagram: bool = Field(
        default=False, description="Draw its kinds and relations as a Mermaid diagram."
    )


@dataclass(frozen=True, slots=True)
class PackLine:
    """A pack in a list; ``mistakes`` counts what is wrong in its file."""

    name: str
    version: int
    own: bool
    kinds: int
    about: str = ""
    mistakes: int = 0


@dataclass(frozen=True, slots=True)
class KindPackView:
    """A pack, or its diagram alone."""

    name: str
    version: int
    own: bool
    about: str
    schema: Schema | None = None
    diagram: str | None = None


@dataclass(frozen=True, slots=True)
class EnabledPacks:
    """The packs that an entity has from now on."""

    entity: str
    packs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckedPack:
    """What is wrong in a pack's file; nothing when ``ok``."""

    ok: bool
    mistakes: tuple[Mistake, ...]
    kinds: int = 0
    relations: int = 0
    diagram: str | None = None


def _packs_text(packs: Sequence[PackLine]) -> str:
    width = max(len(pack.name) for pack in packs)
    lines: list[str] = []
    for pack in packs:
        facts = [f"version {pack.version}", counted(pack.kinds, "kind")]
        facts += ["your own"] if pack.own else []
        facts += [counted(pack.mistakes, "mistake")] if pack.mistakes else []
        lines.append(f"{pack.name:<{width}}  {', '.join(facts)}  {pack.about}".rstrip())
    return "\n".join(lines)


def _pack_text(value: KindPackView) -> str:
    if value.schema is None:
        return value.diagram or ""
    head = (
        f"{value.name}, version {value.version}{', your own' if value.own else ''}: {value.about}"
    )
    return f"{head}\n{schema_words(value.schema)}"


def _check_text(value: CheckedPack) -> str:
    if not value.ok:
        return "\n".join([*map(str, value.mistakes), counted(len(value.mistakes), "mistake")])
    result = f"No mistake: {counted(value.kinds, 'kind')}, {counted(value.relations, 'relation')}."
    return "\n".join(filter(None, (result, value.diagram)))


def known_operations() -> Operations:
    from pps.operations.catalog import OPERATIONS  # it has this module's own

    return {operation.name: [*operation.input.model_fields] for operation in OPERATIONS}


def read_for_entities(
    text: str, name: str, *, own: bool
) -> tuple[KindPack | None, tuple[Mistake, ...]]:
    """Read a pack as ``read_pack``.

    Its name and the operations of its tools must be such as entities can have.
    """
    from pps.operations.catalog import OPERATIONS, operations_for

    pack, mistakes = read_pack(text, name, known_operations())
    if pack is None:
        return pack, mistakes
    lines = TomlLines(text)
    wrong = list[Mistake]()
    if own and (
        name.endswith(TYPED)
        or name in {*TOOLSETS, *(operation.toolset for operation in OPERATIONS)}
    ):
        wrong.append(
            Mistake(lines.line(("name",)), "name", "is the name of a toolset, choose another")
        )
    of_entities = operations_for("entity")
    for tool in pack.tools:
        if tool.operation not in of_entities:
            where = ("tools", tool.name, "operation")
            wrong.append(
                Mistake(
                    lines.line(where),
                    ".".join(where),
                    f"{tool.operation!r} is no operation of entities",
                )
            )
    return (None if wrong else pack), tuple(wrong)


@PACKS.operation(
    "List the packs of kinds",
    _packs_text,
    READS,
    items="packs",
    command="pack list",
    examples=("pps pack list",),
)
async def pack_list(app: App, _: Nothing) -> tuple[PackLine, ...]:
    """Returns the packs of kinds: the shipped ones, and your own in packs/ of the data folder."""

    def look() -> tuple[PackLine, ...]:
        pack_lines: list[PackLine] = []
        for file in pack_files(app.settings.home).values():
            pack, mistakes = read_for_entities(file.text, file.name, own=file.own)
            listed = pack or KindPack(file.name, 0)
            pack_lines.append(
                PackLine(
                    file.name,
                    listed.version,
                    file.own,
                    len(listed.kinds),
                    listed.about,
                    len(mistakes),
                )
            )
        return tuple(pack_lines)

    return await asyncio.to_thread(look)


@PACKS.operation(
    "Show a pack of kinds",
    _pack_text,
    READS,
    command="pack show",
    examples=("pps pack show constitution", "pps pack show constitution --diagram"),
)
async def pack_show(app: App, request: PackInput) -> KindPackView:
    """Returns a pack's layers, kinds with fields, relations and life cycles, and who may write.

    Or its diagram.
    """
    file = await asyncio.to_thread(find_pack, app.settings.home, request.pack)
    pack = await asyncio.to_thread(file.pack)
    drawn = diagram(pack) if request.diagram else None
    return KindPackView(
        pack.name, pack.version, file.own, pack.about, None if drawn else schema_of((pack,)), drawn
    )


@PACKS.operation(
    "Give an entity a pack of kinds",
    lambda enabled: f"{enabled.entity} has {', '.join(enabled.packs) or 'no pack'}.",
    SETS,
    command="pack enable",
    examples=("pps pack enable ana constitution",),
)
async def pack_enable(app: App, request: EnableInput) -> EnabledPacks:
    """Enables a pack's kinds for an entity; its nodes of these kinds stay as they are.

    It is refused if PPS or an enabled pack has a kind, a layer or a tool of the same name.
    """
    file = await asyncio.to_thread(find_pack, app.settings.home, request.pack)
    _, mistakes = await asyncio.to_thread(read_for_entities, file.text, file.name, own=file.own)
    if mistakes:
        raise InvalidRequest(
            "pack", f"{request.pack} has mistakes: {'; '.join(map(str, mistakes[:3]))}"
        )
    return EnabledPacks(request.entity, await app.enable_pack(request.entity, request.pack))


@PACKS.operation(
    "Check a pack's file",
    _check_text,
    READS,
    command="pack check",
    examples=("pps pack check garden.toml --diagram",),
)
async def pack_check(app: App, request: CheckInput) -> CheckedPack:
    """Returns every mistake in a pack's file with its line.

    For a file without mistakes it returns the kinds, as a Mermaid diagram if asked.
    """
    path = Path(request.path)

    def read() -> tuple[KindPack | None, tuple[Mistake, ...]]:
        text = _read_pack_file(path)
        files = pack_files(app.settings.home).values()
        shipped = {file.name: file.text for file in files if not file.own}
        pack, mistakes = read_for_entities(text, path.stem, own=path.stem not in shipped)
        if path.stem in shipped and (
            text != shipped[path.stem] or path.parent == app.settings.home / "packs"
        ):
            taken = Mistake(1, "name", "a shipped pack has this name, choose another")
            mistakes = (taken, *mistakes)
        return pack, mistakes

    pack, mistakes = await asyncio.to_thread(read)
    if pack is None or mistakes:
        return CheckedPack(False, mistakes)
    drawn = diagram(pack) if request.diagram else None
    return CheckedPack(
        True, (), len(pack.kinds), len({relation.name for relation in pack.relations}), drawn
    )


def _read_pack_file(path: Path) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: cannot be read as UTF-8 text") from None
