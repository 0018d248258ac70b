"""An operation's answer as the result of a tool.

A client gives its model the structured content or the text, never both; what is in ``_meta`` no model sees.
"""

from __future__ import annotations

import mcp_types as types

from pps.operations.table import Answer

_META = "pps"
"""Prefix of the names in a result's ``_meta``."""


def tool_result(answer: Answer) -> types.CallToolResult:
    """Return an answer that was made for a model as the result of a tool."""
    details = {f"{_META}/{name}": value for name, value in answer.details.items()}
    return types.CallToolResult(
        content=[types.TextContent(text=answer.text)],
        structured_content=answer.data,
        _meta=details or None,
    )
