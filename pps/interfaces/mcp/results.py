"""Arguments and results of tools for models: memory text is escaped and read back only here.

Every text of an answer is escaped (``core.model_text``), names of fields and errors included. An
answer with sentences names the entity that they are from, and says that they are data. A text of a
model is read back, so that a text which it returns unchanged is the stored text, byte for byte, and
an edited text is the stored text with the edits. ``/v1``, the command line and Python have the
texts unescaped.

A client gives its model the structured content or the text, never both. No model sees ``_meta``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pps.core.errors import PPSError
from pps.core.log_context import unforeseen
from pps.core.model_text import NOTICE, Fenced, as_written, escape, escape_all, shown_error
from pps.core.values import JSON

if TYPE_CHECKING:
    from pps.operations.table import Answer

_log = logging.getLogger(__name__)

ToolResult: TypeAlias = dict[str, Any]
"""The protocol's ``CallToolResult`` as JSON: content, structuredContent, isError, _meta.

The protocol's library is not needed to make one.
"""

_META = "pps"
"""Prefix of the names in a result's ``_meta``."""
_NOTICE = "notice"


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
