"""The tools of one audience: operations as the protocol's tools, their calls and results.

Both ways to the tools end here: ``/mcp``, which speaks the protocol through its library, and the
owner's bridge, which must not wait until that library is imported.

Memory text is escaped and read back only here. Every text of an answer is escaped
(``core.model_text``), names of fields and errors included. An answer with sentences names the
entity that they are from, and says that they are data. A text of a model is read back, so that a
text which it returns unchanged is the stored text, byte for byte, and an edited text is the stored
text with the edits. ``/v1``, the command line and Python have the texts unescaped.

A client gives its model the structured content or the text, never both. No model sees ``_meta``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pps.core.errors import InvalidRequest, PPSError
from pps.core.json_bounds import LARGE_BYTES, is_large
from pps.core.log_context import unforeseen
from pps.core.model_text import NOTICE, Fenced, as_written, escape, escape_all, shown_error
from pps.core.values import JSON
from pps.interfaces.mcp.offer import DEFAULT
from pps.operations.calls import Caller, Calls, ProgressReport
from pps.operations.references import for_tools
from pps.operations.table import Answer, AnyOperation, Audience

if TYPE_CHECKING:
    from pps.operations.table import Answer


_UNREAD = (
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "pattern",
    "additionalProperties",
    "propertyNames",
)
_SET_UP = ("command", "model")
"""Ways to read a text that need a setting.

A schema leaves them out, since the setting applies by itself.
"""

_log = logging.getLogger(__name__)
ToolResult: TypeAlias = dict[str, Any]
"""The protocol's ``CallToolResult`` as JSON: content, structuredContent, isError, _meta.

The protocol's library is not needed to make one.
"""
_META = "pps"
"""Prefix of the names in a result's ``_meta``."""
_NOTICE = "notice"


def tool(operation: AnyOperation) -> dict[str, Any]:
    """Return an operation as the protocol's ``Tool``, as JSON.

    Bounds of lengths are left to the refusal, and outputs to the answer itself.

    Its schema has no ``$ref``, ``$defs``, ``anyOf`` or ``const``: some clients refuse a tool that
    has one.
    """
    schema = operation.input_schema()
    definitions = schema.pop("$defs", {})
    schema.pop("description", None)
    schema = _lean(_without_references(schema, definitions, ()))
    return {
        "name": operation.name,
        "title": operation.title,
        "description": for_tools(operation.description),
        "inputSchema": {**schema, "additionalProperties": False},
        "annotations": {
            "readOnlyHint": operation.hints.read_only,
            "destructiveHint": operation.hints.destructive,
            "idempotentHint": operation.hints.idempotent,
            "openWorldHint": False,
        },
    }


def _without_references(
    schema: Any, definitions: Mapping[str, Any], within: tuple[str, ...]
) -> Any:
    """Return a schema with each reference replaced by what it points to.

    One to what it lies in says nothing.
    """
    if isinstance(schema, list):
        return [
            _without_references(item, definitions, within) for item in cast("list[Any]", schema)
        ]
    if not isinstance(schema, dict):
        return schema
    resolved: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", schema).items():
        if key == "properties":
            resolved[key] = {
                name: _without_references(item, definitions, within) for name, item in value.items()
            }
        elif key in ("default", "enum", "required"):
            resolved[key] = value
        elif key != "$ref":
            resolved[key] = _without_references(value, definitions, within)
    if "$ref" in schema:
        name = str(cast("dict[str, Any]", schema)["$ref"]).rpartition("/")[2]
        if name not in within:
            target = _without_references(definitions.get(name, {}), definitions, (*within, name))
            target.pop("description", None)  # of the model, for whoever reads the code
            resolved = {**target, **resolved}
    return _without_alternatives(resolved)


def _without_alternatives(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose alternatives are the widest of them.

    What is read by its schema takes the others too.
    """
    if "const" in schema:
        schema = {"enum": [schema["const"]], **schema}
        del schema["const"]
    alternatives: list[dict[str, Any]] = schema.pop("anyOf", [])
    known = [
        alternative for alternative in alternatives if alternative.get("type") not in (None, "null")
    ]
    if not known or len(known) < len(
        [alternative for alternative in alternatives if alternative != {"type": "null"}]
    ):
        return schema
    of_one_type = len({alternative["type"] for alternative in known}) == 1
    if of_one_type and all("enum" in alternative for alternative in known):
        choices = list(
            dict.fromkeys(value for alternative in known for value in alternative["enum"])
        )
        return {"type": known[0]["type"], "enum": choices, **schema}
    lists = [alternative for alternative in known if alternative["type"] == "array"]
    return {**(known[0] if of_one_type else lists[0]), **schema} if of_one_type or lists else schema


def _lean(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_lean(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("dict[str, Any]", schema)
    lean: dict[str, Any] = {}
    for key, value in members.items():
        if key == "properties":
            lean[key] = {name: _lean(item) for name, item in value.items()}
        elif key == "enum":
            lean[key] = [item for item in value if item not in _SET_UP]
        elif key not in _UNREAD:
            lean[key] = value if key == "default" else _lean(value)
    return lean


def tool_arguments(arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return a model's arguments, marked so that ``Operation.parse`` reads its texts back."""
    return cast("dict[str, JSON]", as_written(dict(arguments)))


def tool_result(answer: Answer, owner: str) -> ToolResult:
    """Return an answer that was made for a model as the result of a tool.

    The text and the structured content both name the entity that answers and the time that was
    asked about. What the text does not say itself stands in a block of its own, so that a pack
    stays within its budget.

    Args:
        answer: Its texts as they are; a text that is ``Fenced`` stands in a fence already, and is
            shown as it is.
        owner: Whose memory it is from, where the answer does not say.
    """
    notice = NOTICE.format(entity=answer.entity or owner)
    text = escape(answer.text)
    data = _escaped_but(answer.named, answer.text)
    beside = [f"as of: {answer.as_of}"] if answer.as_of else []
    is_fenced = isinstance(answer.text, Fenced)
    has_sentences = _has_sentences(answer.data)
    # A text may name what its data only has the ids of.
    if not is_fenced and (has_sentences or "\n" in answer.text or text != answer.text):
        text = f"{notice}\n{text}"
    elif answer.entity and not is_fenced:
        beside.insert(0, f"entity: {answer.entity}")
    if has_sentences and not (is_fenced and answer.text in answer.data.values()):
        data = {_NOTICE: notice, **data}
    content = [_text_block(text)]
    if beside:
        content.append(_text_block(escape(", ".join(beside))))
    result: ToolResult = {"content": content, "structuredContent": data, "isError": False}
    details = {f"{_META}/{name}": escape_all(value) for name, value in answer.details.items()}
    return {**result, "_meta": details} if details else result


def failed_result(error: Exception, tool: str) -> ToolResult:
    """Return the result of a call that raised: the text of PPS's errors, a fixed text for others.

    An error that nobody foresaw may quote memory or a path; it is logged without its text.
    """
    if isinstance(error, PPSError):
        return refusal(error)
    unforeseen(_log, f"tool {tool!r} failed", error)
    return failure("Something went wrong inside PPS; its log has the details. (internal)")


def refusal(error: PPSError) -> ToolResult:
    """Return one of our own errors as a result that a model can act on."""
    again = ", try again later" if error.retryable else ""
    return failure(f"{error.message} ({error.code}{again})")


def failure(text: str) -> ToolResult:
    """Return a result that says that a call failed."""
    return {"content": [_text_block(shown_error(text))], "isError": True}


def _text_block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _escaped_but(data: Mapping[str, JSON], text: str) -> dict[str, JSON]:
    """Return data with its texts escaped, except for a fenced text that it repeats."""
    if not isinstance(text, Fenced):
        return cast("dict[str, JSON]", escape_all(dict(data)))
    return {
        escape(name): text if value == text else escape_all(value) for name, value in data.items()
    }


def _has_sentences(value: JSON) -> bool:
    """Tell whether JSON data has a text of several words; ids, states and kinds have one word."""
    if isinstance(value, str):
        return len(value.split(maxsplit=1)) > 1
    if isinstance(value, Mapping):
        return any(map(_has_sentences, cast("Mapping[str, JSON]", value).values()))
    if isinstance(value, Sequence):
        return any(map(_has_sentences, cast("Sequence[JSON]", value)))
    return False


class NoTool(Exception):
    """A client called a tool that it is not offered; ``message`` says which ones there are."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ToolDesk:
    """Offers and calls the operations of one audience as tools."""

    def __init__(self, calls: Calls, audience: Audience) -> None:
        self._calls = calls
        self._audience: Audience = audience

    async def offered(self, caller: Caller, toolset: str) -> list[dict[str, Any]]:
        """Return the tools of toolsets: names with commas between, ``all``, or "" (the default).

        Raises:
            InvalidRequest: A toolset is unknown.
        """
        asking = await self._with_toolsets(caller, toolset)
        return [tool(operation) for operation in (await self._calls.operations(asking)).values()]

    async def call(
        self,
        caller: Caller,
        toolset: str,
        name: str,
        arguments: Mapping[str, JSON],
        *,
        wants_progress: bool,
    ) -> AsyncGenerator[ProgressReport | ToolResult]:
        """Yield reports of a long call's progress, if wanted, and its result last.

        Raises:
            NoTool: The client is not offered a tool of that name.
            PPSError: A toolset is unknown, or the operation raised it.
        """
        asking = await self._with_toolsets(caller, toolset)
        try:
            operation = await self._calls.find(asking, name)
        except InvalidRequest:
            raise NoTool(await self._no_such_tool(caller, asking, name)) from None
        if is_large(arguments):
            read = await asyncio.to_thread(tool_arguments, arguments)
        else:
            read = tool_arguments(arguments)
        if not (operation.long and wants_progress):
            yield await _result(
                await self._calls.answer(asking, name, read, for_model=True), asking
            )
            return
        async with contextlib.aclosing(
            self._calls.reported(asking, name, read, for_model=True)
        ) as steps:
            async for step in steps:
                yield await _result(step, asking) if isinstance(step, Answer) else step

    async def _no_such_tool(self, caller: Caller, asking: Caller, name: str) -> str:
        """Return the refusal of an unknown tool.

        If another toolset has the tool, how to add that.
        """
        whole = replace(caller, audiences=(self._audience,))
        with contextlib.suppress(InvalidRequest):
            other = await self._calls.find(whole, name)
            more = f"{name} is in the toolset {other.toolset!r}: add it to toolset="
            return (
                f"there is no tool of that name among those asked for; {more} (or pps mcp "
                "--toolset)"
            )
        return (
            "there is no tool of that name; there are "
            f"{', '.join(await self._calls.operations(asking))}"
        )

    async def _with_toolsets(self, caller: Caller, chosen: str) -> Caller:
        """Return the caller with the toolsets that it chose: never more than its token opens."""
        caller = replace(caller, audiences=(self._audience,))
        usual = DEFAULT[self._audience]
        present = (
            await self._calls.toolsets(replace(caller, toolsets=None))
            if chosen
            else frozenset([usual])
        )
        toolsets = chosen_of(chosen or usual, present, caller.toolsets, is_said=bool(chosen))
        return replace(caller, toolsets=toolsets)


async def _result(answer: Answer, caller: Caller) -> ToolResult:
    owner = caller.entity_name or "this project"
    if len(answer.text) > LARGE_BYTES:
        return await asyncio.to_thread(tool_result, answer, owner)
    return tool_result(answer, owner)


def chosen_of(
    header: str, known: Set[str], allowed: Set[str] | None, *, is_said: bool
) -> frozenset[str] | None:
    """Return the toolsets that a client gets; None for all.

    Args:
        header: Names with commas between, or ``all``.
        known: The toolsets that there are.
        allowed: The most that its token opens; None for all.
        is_said: The client asked; where it did not, a token that does not open what is usual opens
            all of its own.

    Raises:
        InvalidRequest: There is none of a name.
    """
    wanted = frozenset(name.strip() for name in header.split(","))
    strange = wanted - known - {"all"}
    if strange:
        raise InvalidRequest(
            "toolset", f"{min(strange)!r} is none of {', '.join(sorted(known))}, all"
        )
    if "all" in wanted:
        return None if allowed is None else frozenset(allowed)
    if allowed is None:
        return wanted
    return wanted & allowed if is_said or wanted & allowed else frozenset(allowed)
