"""The shape of the table: one Operation for each thing that can be asked.

Every interface is made from it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from functools import partial
from types import ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    cast,
    get_type_hints,
)

from pydantic import ValidationError

from pps.config import problems
from pps.config.zones import zone_name
from pps.core import json_bounds
from pps.core.argument_reading import read_arguments
from pps.core.errors import InvalidRequest
from pps.core.json_bounds import check_values
from pps.core.json_shapes import MARKS, Shape, shape_of
from pps.core.model_text import read_back
from pps.core.text import nearest_name, snake
from pps.core.values import JSON
from pps.ingest.given_input import ZONE
from pps.operations.inputs import Input
from pps.operations.pages import adapter, as_json, on_clock, with_next_page
from pps.operations.references import for_tools

if TYPE_CHECKING:
    from pps.ingest.indexer import Progress

_MAX_UNKNOWN = 20
"""Unknown names in one object that are left to the model, which names the nearest known ones."""
_NAMES_SHOWN = 3
_MAX_NAME_SHOWN = 100
Audience: TypeAlias = Literal["entity", "member", "router", "runner", "operator", "owner"]
"""Who may call an operation, and the subject that its action gets.

An entity acts on its ``Memory``, a member of a squad on its ``Desk``, a router and a runner of
tasks on their ``Projects``, an operator on the ``App``. The machine's owner acts on the ``App``
too, and may call all operations.
"""
Subject = TypeVar("Subject")
In = TypeVar("In", bound=Input)
Out = TypeVar("Out")
Act: TypeAlias = Callable[Concatenate[Subject, In, ...], Awaitable[Out]]
ForModel: TypeAlias = "Callable[[Out, In], ModelView]"
_NAMED: Mapping[str, Any] = {
    "entity": {"type": "string", "description": "Whose memory answers, by name."},
    "as_of": {"type": "string", "description": "The time that was asked about, where one was."},
}
"""What every answer has beside its own fields."""
_USERS = ("attributes", "fields")
"""Of a user's own names: a null takes one out."""


def check_sizes(arguments: Mapping[str, JSON], arguments_shape: Shape) -> None:
    """Raise InvalidRequest at the first list or object that is larger than the schema takes.

    The whole is bounded too: see ``json_bounds.check_values``.
    """
    json_bounds.check_values(arguments)
    pending: list[tuple[str, Any, Shape]] = [("", arguments, arguments_shape)]
    while pending:
        path, value, shape = pending.pop()
        if isinstance(value, Mapping):
            named = cast("Mapping[str, Any]", value)
            _check_names(path, named, shape)
            pending.extend(
                (
                    f"{path}.{name}" if path else name,
                    inner,
                    shape.properties.get(name, shape.any_name),
                )
                for name, inner in named.items()
                if _is_container(inner)
            )
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            if len(items) > shape.max_items:
                raise InvalidRequest(
                    _shown(path), f"give at most {shape.max_items:,} items, not {len(items):,}"
                )
            pending.extend(
                (f"{path}.{number}", inner, shape.item)
                for number, inner in enumerate(items)
                if _is_container(inner)
            )


def _check_names(path: str, value: Mapping[str, Any], shape: Shape) -> None:
    place = _shown(path) if path else "arguments"
    if not shape.is_closed:
        if len(value) > json_bounds.MAX_NAMES:
            raise InvalidRequest(
                place, f"give at most {json_bounds.MAX_NAMES:,} names, not {len(value):,}"
            )
        return
    unknown = [name for name in value if name not in shape.properties]
    if len(unknown) > _MAX_UNKNOWN:
        names_text = ", ".join(repr(_shown(name)) for name in unknown[:_NAMES_SHOWN])
        raise InvalidRequest(place, f"{len(unknown):,} unknown arguments: {names_text}, …")


def _is_container(value: object) -> bool:
    return isinstance(value, Mapping | list)


def _shown(name: str) -> str:
    return name if len(name) <= _MAX_NAME_SHOWN else f"{name[:_MAX_NAME_SHOWN]}…"


@dataclass(frozen=True, slots=True)
class Hints:
    """What a careful client wants to know before it calls.

    Attributes:
        read_only: Nothing changes (what a session was shown is noted).
        destructive: Something may be erased or replaced.
        idempotent: The same call again changes nothing more.
        withdraws: Something is put away or refused from now on, as an archived entity or a revoked
            token is.
    """

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    withdraws: bool = False


READS = Hints(read_only=True, idempotent=True)
ADDS = Hints()
SETS = Hints(idempotent=True)
ERASES = Hints(destructive=True)
WITHDRAWS = Hints(idempotent=True, withdraws=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """An operation's result: JSON data, and the same as text to read.

    Attributes:
        data: Of the output's schema; for a model what ``Operation.for_model`` keeps of it.
        time_zone: Name of the zone of the text's times; those of the data are in UTC.
        details: What a client may show and a model does not need; filled for a model only.
        entity: Whose memory answers, by name; empty where an operation acts on none or on several.
        as_of: The time that was asked about, ISO 8601; empty where none was given.
    """

    data: dict[str, JSON]
    text: str
    time_zone: str = "UTC"
    details: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    entity: str = ""
    as_of: str = ""

    @property
    def named(self) -> dict[str, JSON]:
        """Return the data with the answering entity and the time asked about at its end."""
        own = {"entity": self.entity, "as_of": self.as_of}
        return self.data | {
            name: value for name, value in own.items() if value and name not in self.data
        }


@dataclass(frozen=True, slots=True)
class ModelView:
    """What a calling model gets of an operation's output.

    A client hands its model either the text or the data, never both: each is complete by itself.

    Attributes:
        data: A dataclass; its fields are those of the answer's data, readable ones first.
        text: The same to read.
        details: JSON values that no model reads, for the client.
    """

    data: object
    text: str
    details: Mapping[str, JSON] = field(default_factory=dict[str, JSON])


@dataclass(frozen=True, slots=True)
class Operation(Generic[Subject, In, Out]):
    """One thing that can be asked.

    Attributes:
        description: When to use it and what comes back, with references: see ``references``. Models
            read it.
        words: Its output as text that a person or a model reads. How the next page is asked for,
            and how a dry run is carried out, is data: each interface adds it in its own terms.
        toolset: Which tools it is offered with.
        long: The act takes a third argument, a callback that is told how far it is.
        carried_through: A long one that leaves a memory out of use in its middle: it goes on when
            nobody listens.
        items: Where the act returns a sequence, the name that it has in the answer's data.
        command: Its path on the command line, such as ``entity create``; empty when it has none.
        aliases: Other names that people type for its command, such as ``search``.
        examples: Command lines for its help.
        for_model: Returns what a model gets of an output; None: the whole output and its words.
    """

    name: str
    title: str
    description: str
    input: type[In]
    output: type[Out]
    act: Act[Subject, In, Out]
    words: Callable[[Out], str]
    hints: Hints
    audience: Audience
    toolset: str
    long: bool
    carried_through: bool
    items: str
    command: str
    examples: tuple[str, ...]
    for_model: ForModel[Out, In] | None = None
    aliases: tuple[str, ...] = ()

    def parse(self, arguments: Mapping[str, JSON], zone: tzinfo | None = UTC) -> In:
        """Return the checked input; InvalidRequest names each field that is wrong, never its value.

        The arguments are read first as ``read_arguments`` has it, and what a model wrote is read
        back. Times without a zone are of ``zone``, the entity's; without it they stay so, for the
        memory to read.

        A null for an argument that may be left out counts as left out: calling models send it.
        Lists and objects that are larger than the schema takes are refused before the model reads
        them.
        """
        shape = shape_of(self.input)
        check_values(arguments)
        arguments = cast("dict[str, JSON]", read_back(read_arguments(arguments, shape)))
        check_sizes(arguments, shape)
        known = self.input.model_fields
        present = {
            name: value
            for name, value in arguments.items()
            if value is not None or name not in known
        }
        try:
            return self.input.model_validate_json(
                json.dumps({name: _without_nulls(value) for name, value in present.items()}),
                context={ZONE: zone},
            )
        except RecursionError:
            raise InvalidRequest("arguments", "are nested too deeply") from None
        except ValidationError as error:
            raise _refusal(error, self.input) from None

    async def answer(
        self,
        subject: Subject,
        request: In,
        progress: Progress | None = None,
        zone: tzinfo = UTC,
        *,
        for_model: bool = False,
    ) -> Answer:
        """Let it be done, and answer with times of ``zone``, the person's.

        Raises whatever the subject raises.

        With ``for_model`` the answer is what a calling model reads.
        """
        if self.long:
            value = await self.act(subject, request, progress or _unheard)
        else:
            value = await self.act(subject, request)
        if for_model and self.for_model is not None:
            view = self.for_model(on_clock(value, zone), request)
            return Answer(as_json(view.data), view.text, zone_name(zone), view.details)
        answer = self.shown(value, zone)
        if for_model:
            cursor = cast("str | None", answer.data.get("next_cursor"))
            return replace(answer, text=with_next_page(answer.text, cursor))
        return answer

    def shown(self, value: Out, zone: tzinfo = UTC) -> Answer:
        """Return an output as data without fields that do not apply, and as text in a zone."""
        data = adapter(self.output).dump_python(value, mode="json", exclude_none=True)
        return Answer(
            {self.items: data} if self.items else cast("dict[str, JSON]", data),
            self.words(on_clock(value, zone)),
            zone_name(zone),
        )

    def input_schema(self, refs: str = "#/$defs/{model}") -> dict[str, Any]:
        """Return the JSON schema of the arguments, without what only a command line reads."""
        return plain(self.input.model_json_schema(ref_template=refs))

    def output_schema(self, refs: str = "#/$defs/{model}") -> dict[str, Any]:
        """Return the JSON schema of the answer's data."""
        schema = plain(adapter(self.output).json_schema(ref_template=refs), nulls=True)
        if self.items:
            defs = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
            schema = {
                "type": "object",
                "properties": {self.items: schema},
                "required": [self.items],
                **defs,
            }
        properties = cast("dict[str, Any]", schema.get("properties", {}))
        return {**schema, "properties": properties | self._named_properties(properties)}

    def _named_properties(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schemas of ``Answer.named`` that an output does not have itself."""
        taken = self.input.model_fields
        is_of_one = self.audience not in ("operator", "owner") or "entity" in taken
        named = {"entity": is_of_one, "as_of": "as_of" in taken}
        return {
            name: _NAMED[name]
            for name, applies in named.items()
            if applies and name not in properties
        }


AnyOperation: TypeAlias = Operation[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Toolset:
    """Operations that are offered together to one audience."""

    audience: Audience
    name: str

    def operation(
        self,
        title: str,
        words: Callable[[Any], str],
        hints: Hints,
        *,
        command: str = "",
        aliases: tuple[str, ...] = (),
        examples: tuple[str, ...] = (),
        items: str = "",
        carried_through: bool = False,
        for_model: ForModel[Any, Any] | None = None,
    ) -> Callable[[Act[Subject, In, Out]], Operation[Subject, In, Out]]:
        """Return a decorator that makes a function an operation of its name.

        Its docstring is the description, in which other operations and fields stand in braces; its
        second argument's type the input, its return type the output; a third argument is told the
        progress.
        """

        def made(act: Act[Subject, In, Out]) -> Operation[Subject, In, Out]:
            types = get_type_hints(act)
            parameters = list(inspect.signature(act).parameters)
            return Operation(
                act.__name__.rstrip("_"),  # ``import_``
                title,
                " ".join((act.__doc__ or "").split()),
                types[parameters[1]],
                types["return"],
                act,
                words,
                hints,
                self.audience,
                self.name,
                len(parameters) > 2,
                carried_through,
                items,
                command,
                examples,
                for_model,
                aliases,
            )

        return made


CORE = Toolset("entity", "core")
ANCHORS = Toolset("entity", "anchors")
RECORDS = Toolset("entity", "records")
UPKEEP = Toolset("entity", "upkeep")
PERSPECTIVES = Toolset("entity", "perspectives")
SQUAD = Toolset("member", "squad")
TOOLSETS = tuple(toolset.name for toolset in (CORE, ANCHORS, RECORDS, UPKEEP, PERSPECTIVES, SQUAD))
"""Those of an entity; a client gets ``core`` unless it asks for others."""
PROJECTS = Toolset("router", "projects")
TASKS = Toolset("runner", "tasks")
REGISTRY = Toolset("operator", "registry")
OWNERS_REGISTRY = Toolset("owner", "registry")
MAINTENANCE = Toolset("owner", "maintenance")
PACKS = Toolset("owner", "packs")


def defined_in(*modules: ModuleType) -> tuple[AnyOperation, ...]:
    """Return the operations that modules define, in the order in which they stand there."""
    return tuple(
        cast("AnyOperation", operation)
        for module in modules
        for operation in vars(module).values()
        if isinstance(operation, Operation)
    )


def _without_null(variants: Sequence[Any]) -> list[Any]:
    return [variant for variant in variants if variant != {"type": "null"}]


def plain(schema: Any, *, nulls: bool = False) -> Any:
    """Return a JSON schema without titles, marks and, for inputs, the nulls of optional fields.

    A model reads every word of it.
    """
    inner = partial(plain, nulls=nulls)
    if isinstance(schema, list):
        return [inner(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    plain_schema: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", schema).items():
        if key in ("properties", "$defs"):
            plain_schema[key] = {name: inner(item) for name, item in value.items()}
        elif key == "anyOf" and not nulls and len(_without_null(value)) == 1:
            [variant] = _without_null(value)
            plain_schema = {**inner(variant), **plain_schema}
        elif (
            key != "cli"
            and key not in MARKS
            and not (key == "title" and isinstance(value, str))
            and (key, value) != ("default", None)
        ):
            if key == "description" and isinstance(value, str):
                plain_schema[key] = for_tools(value)
            else:
                plain_schema[key] = value if key in ("default", "enum", "const") else inner(value)
    return plain_schema


def _unheard(stage: str, done: int, total: int) -> None:
    del stage, done, total


def _without_nulls(value: JSON) -> JSON:
    """Return nested arguments without the names that are null.

    A user's own attributes stay as they are.
    """
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    members = {name: item for name, item in value.items() if item is not None}
    return {
        name: item if name in _USERS else _without_nulls(item) for name, item in members.items()
    }


def unknown_argument(name: str, known: Iterable[str], above: Sequence[str] = ()) -> str:
    """Return what is wrong with an argument that there is not, with the nearest one that there is.

    Args:
        name: As it was given.
        known: The names that there are.
        above: The path that they lie at, such as ``filters``.
    """
    near = nearest_name(snake(name), known)
    return "unknown argument" + (f", did you mean '{'.'.join([*above, near])}'?" if near else "")


def _refusal(error: ValidationError, model: type[Input]) -> InvalidRequest:
    """Return the first four problems of a validation, unknown names with the nearest known one."""
    first, *more = [
        replace(problem, problem=_unknown_at(problem.path, shape_of(model)))
        if problem.unknown
        else problem
        for problem in problems(error, model)[:4]
    ]
    return InvalidRequest.of([replace(first, path=first.path or "arguments"), *more])


def _unknown_at(path: str, shape: Shape) -> str:
    """Return what is wrong with an unknown name at a dotted path, such as ``nodes.0.nmae``."""
    *above, name = path.split(".")
    for part in above:
        shape = shape.item if part.isdecimal() else shape.properties.get(part, shape.any_name)
    return unknown_argument(name, shape.properties, above)
