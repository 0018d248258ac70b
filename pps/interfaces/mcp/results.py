"""What a tool takes and answers, as a model writes and reads it: the one place where memory text is escaped and read back.

Each text of an answer is escaped (``core.model_text``), names of fields and errors included, and an answer with
sentences in it says whose memory they are from and that they are data. What a model sends is read back, so a text that
it returns as it was shown is the text that is stored, byte for byte, and one that it edits is the stored text with its
edits. ``/v1``, the command line and Python have the texts as they are.

A client gives its model the structured content or the text, never both; what is in ``_meta`` no model sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import mcp_types as types

from pps.core.errors import PPSError
from pps.core.model_text import NOTICE, Fenced, as_written, escape, escape_all, shown_error
from pps.core.values import JSON

if TYPE_CHECKING:
    from pps.operations.table import Answer

_META = "pps"
"""Prefix of the names in a result's ``_meta``."""
_NOTICE = "notice"


def tool_arguments(arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return what a model gave a tool, for ``Operation.parse``, which reads its texts back."""
    return cast("dict[str, JSON]", as_written(dict(arguments)))


def tool_result(answer: Answer, owner: str) -> types.CallToolResult:
    """Return an answer that was made for a model as the result of a tool.

    The text and the structured content both name the entity that answers and the time that was asked about. What the
    text does not say itself stands in a block of its own, so that a pack stays within its budget.

    Args:
        answer: Its texts as they are; a text that is ``Fenced`` stands in a fence already, and is shown as it is.
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
    content: list[types.ContentBlock] = [types.TextContent(text=text)]
    if beside:
        content.append(types.TextContent(text=escape(", ".join(beside))))
    details = {f"{_META}/{name}": escape_all(value) for name, value in answer.details.items()}
    return types.CallToolResult(content=content, structured_content=data, _meta=details or None)


def refusal(error: PPSError) -> types.CallToolResult:
    """Return one of our own errors as a result that a model can act on."""
    again = ", try again later" if error.retryable else ""
    return failure(f"{error.message} ({error.code}{again})")


def failure(text: str) -> types.CallToolResult:
    """Return a result that says that a call failed."""
    return types.CallToolResult(content=[types.TextContent(text=shown_error(text))], is_error=True)


def _escaped_but(data: Mapping[str, JSON], text: str) -> dict[str, JSON]:
    """Return data with its texts escaped, except for a fenced text that it repeats."""
    if not isinstance(text, Fenced):
        return cast("dict[str, JSON]", escape_all(dict(data)))
    return {
        escape(name): text if value == text else escape_all(value) for name, value in data.items()
    }


def _has_sentences(value: JSON) -> bool:
    """Tell whether a text in JSON data has several words: ids, states and names of kinds are one."""
    if isinstance(value, str):
        return len(value.split(maxsplit=1)) > 1
    if isinstance(value, Mapping):
        return any(map(_has_sentences, cast("Mapping[str, JSON]", value).values()))
    if isinstance(value, Sequence):
        return any(map(_has_sentences, cast("Sequence[JSON]", value)))
    return False
