"""Bounds of what may be remembered: those of the journal, and the shape that a tag must have when it is given."""

from __future__ import annotations

from collections.abc import Sequence

from pps.core.errors import InvalidRequest
from pps.core.values import FactDraft, NodeDraft
from pps.ingest.steps import is_tag, tag_of
from pps.journal import bounds
from pps.journal.bounds import (
    EXTRACTIONS,
    MAX_ALIASES,
    MAX_ATTRIBUTES_BYTES,
    MAX_CONTENT,
    MAX_FACTS,
    MAX_NAME,
    MAX_NODES,
    MAX_REPLACED,
    MAX_TAGS,
    MAX_TEXT,
    ROLES,
    check_attributes,
    check_choice,
    check_kind,
    check_label,
    check_length,
)

__all__ = [
    "EXTRACTIONS",
    "MAX_ALIASES",
    "MAX_ATTRIBUTES_BYTES",
    "MAX_CONTENT",
    "MAX_FACTS",
    "MAX_NAME",
    "MAX_NODES",
    "MAX_REPLACED",
    "MAX_TAGS",
    "MAX_TEXT",
    "ROLES",
    "check_attributes",
    "check_choice",
    "check_drafts",
    "check_kind",
    "check_label",
    "check_length",
    "check_tags",
]


def check_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Return tags in lower case, once each; raise when one has another shape."""
    if len(tags) > MAX_TAGS:
        raise InvalidRequest("tags", f"at most {MAX_TAGS} of them")
    folded = tuple(dict.fromkeys(map(tag_of, tags)))
    for tag in folded:
        if not is_tag(tag):
            raise InvalidRequest("tags", "each must be a letter, then up to 63 letters, digits, '_' or '-'")
    return folded


def check_drafts(nodes: Sequence[NodeDraft], facts: Sequence[FactDraft]) -> None:
    """Raise at the first node or fact that breaks a bound; the message counts from 0."""
    bounds.check_drafts(nodes, facts)
    for node in nodes:
        check_tags(node.tags)
