"""The bounds of what a caller gives with a turn: checked before it is acknowledged, not after."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

from pps.core.errors import InvalidRequest
from pps.core.time import utc
from pps.core.values import JSON, FactDraft, FactKind, NodeDraft
from pps.journal.turns import clean_tags, is_text
from pps.journal.values import Extraction, JobPayload, dump_payload

MAX_DRAFTS = 1_000
"""Most nodes and most facts of one turn."""

_MAX_NAME = 500
_MAX_TEXT = 4_000
_MAX_RELATION = 200
_MAX_LIST = 100
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_RESERVED = {"uuid", "group_id", "labels"}


def prepare_payload(payload: JobPayload) -> str:
    """Return a payload as JSON after checking it.

    Raises:
        InvalidRequest: A bound is broken; the field and the bound are named.
    """
    if payload.extraction not in get_args(Extraction):
        raise InvalidRequest("extraction", f"must be one of {', '.join(get_args(Extraction))}")
    for name, size in (("nodes", len(payload.nodes)), ("facts", len(payload.facts))):
        if size > MAX_DRAFTS:
            raise InvalidRequest(name, f"at most {MAX_DRAFTS:,}, got {size:,}")
    for number, node in enumerate(payload.nodes):
        _check_node(f"nodes[{number}]", node)
    for number, fact in enumerate(payload.facts):
        _check_fact(f"facts[{number}]", fact)
    return _dump(payload)


def _dump(payload: JobPayload) -> str:
    try:
        text = dump_payload(payload)
    except (TypeError, ValueError) as error:
        raise InvalidRequest("nodes.attributes", "must be JSON: text, numbers, lists, objects") from error
    if not is_text(text):
        raise InvalidRequest("nodes.attributes", "must be valid Unicode, without lone surrogates")
    return text


def _check_node(where: str, node: NodeDraft) -> None:
    _check_text(f"{where}.name", node.name, 1, _MAX_NAME)
    _check_text(f"{where}.summary", node.summary, 0, _MAX_TEXT)
    if not _KIND.fullmatch(node.kind):
        raise InvalidRequest(f"{where}.kind", "must match [A-Za-z][A-Za-z0-9_]{0,63}")
    _check_count(f"{where}.aliases", len(node.aliases))
    for alias in node.aliases:
        _check_text(f"{where}.aliases", alias, 1, _MAX_NAME)
    clean_tags(node.tags)
    _check_attributes(f"{where}.attributes", node.attributes)


def _check_fact(where: str, fact: FactDraft) -> None:
    _check_text(f"{where}.subject", fact.subject, 1, _MAX_NAME)
    _check_text(f"{where}.object", fact.object, 1, _MAX_NAME)
    _check_text(f"{where}.relation", fact.relation, 1, _MAX_RELATION)
    _check_text(f"{where}.text", fact.text, 0, _MAX_TEXT)
    if fact.kind not in get_args(FactKind):
        raise InvalidRequest(f"{where}.kind", f"must be one of {', '.join(get_args(FactKind))}")
    _check_count(f"{where}.invalidates", len(fact.invalidates))
    for text in fact.invalidates:
        _check_text(f"{where}.invalidates", text, 1, _MAX_TEXT)
    _check_times(where, fact)


def _check_times(where: str, fact: FactDraft) -> None:
    start = None if fact.valid_at is None else utc(fact.valid_at, f"{where}.valid_at")
    end = None if fact.invalid_at is None else utc(fact.invalid_at, f"{where}.invalid_at")
    if start is not None and end is not None and end < start:
        raise InvalidRequest(f"{where}.invalid_at", "must not lie before valid_at")


def _check_attributes(where: str, attributes: Mapping[str, JSON]) -> None:
    for key in attributes:
        if key in _RESERVED or key.startswith("_"):
            raise InvalidRequest(f"{where}.{key}", "is a reserved name: choose another")


def _check_count(where: str, size: int) -> None:
    if size > _MAX_LIST:
        raise InvalidRequest(where, f"at most {_MAX_LIST}, got {size:,}")


def _check_text(where: str, value: str, least: int, most: int) -> None:
    if not least <= len(value) <= most or not is_text(value) or (least and not value.strip()):
        raise InvalidRequest(where, f"must be {least:,} to {most:,} characters of valid Unicode, not blank")
