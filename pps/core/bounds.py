"""Bounds of what a memory stores; a broken bound is an InvalidRequest that names the field."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence

from pps.core.errors import InvalidRequest
from pps.core.text import nearest_name, normalise
from pps.core.time import utc
from pps.core.values import JSON, RESERVED_KINDS, FactDraft, NodeDraft

MAX_CONTENT = 65_536
MAX_PATH = 1_000
"""Most characters of the path of a document that a turn is a part of."""
MAX_LEVELS = 64
"""Of lists and maps within each other in attributes: what reads JSON again stops at some 200."""
MAX_NAME = 500
MAX_TEXT = 4_000
MAX_ANCHOR_TITLE = 200
MAX_ANCHOR = 1_000_000
"""Most characters of a document that an entity keeps in its folder."""
MAX_NODES = 200
MAX_FACTS = 500
MAX_ALIASES = 20
MAX_REPLACED = 50
"""Most facts that one fact may replace."""
MAX_TAGS = 50
MAX_TAG = 64
MAX_ATTRIBUTES_BYTES = 16_384
ROLES = ("user", "assistant", "system", "tool")
EXTRACTIONS = ("given", "rules", "command", "model", "none")

_RESERVED = frozenset({"uuid", "group_id", "labels", "pps"})
_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


def is_text(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_length(field: str, text: str, least: int, most: int) -> None:
    """Raise unless a text has ``least`` to ``most`` characters and can be written as UTF-8."""
    if not least <= len(text) <= most or (least and not text.strip()):
        raise InvalidRequest(
            field, f"must have {least:,} to {most:,} characters, not only white space"
        )
    if not is_text(text):
        raise InvalidRequest(field, "has a lone surrogate, which is not a character")
    if "\0" in text:
        raise InvalidRequest(field, "must not contain the character NUL")


def check_range(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidRequest(field, f"must be {least:,} to {most:,}")


def check_keywords(method: str, given: Iterable[str], taken: type) -> None:
    """Raise TypeError for a keyword that a method's TypedDict does not name, as Python does."""
    names = [*taken.__annotations__]
    for name in given:
        if name not in names:
            near = nearest_name(name, names)
            meant = f"; did you mean {near!r}?" if near else ""
            raise TypeError(f"{method}() got an unexpected keyword argument {name!r}{meant}")


def check_choice(field: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InvalidRequest(field, f"must be one of {', '.join(choices)}")


def check_label(field: str, label: str) -> None:
    """Raise unless a kind or a relation can be one: a kind reaches the graph as a label."""
    if not _LABEL.fullmatch(label):
        raise InvalidRequest(
            field, "must be a letter, then up to 63 letters, digits or '_' (ASCII)"
        )


def check_kind(field: str, kind: str) -> None:
    """Raise unless a kind is a label that Graphiti does not use itself."""
    check_label(field, kind)
    if kind in RESERVED_KINDS:
        raise InvalidRequest(
            field, f"is reserved ({', '.join(sorted(RESERVED_KINDS))}); choose another word"
        )


def in_tag(character: str) -> bool:
    return (
        character.isalnum()
        or character in "_-\u200c\u200d"
        or unicodedata.category(character)[0] == "M"
    )


def is_tag(text: str) -> bool:
    """Tell whether a text is a tag: a letter of any script, then letters, digits, ``_`` or ``-``.

    At most 64.
    """
    return 0 < len(text) <= MAX_TAG and text[0].isalpha() and all(map(in_tag, text))


def tag_of(text: str) -> str:
    """Return the form in which a tag is kept: NFC, lower case, without its ``#``. May be no tag."""
    return normalise(text.removeprefix("#").lower())


def check_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Return tags in lower case, once each; raise when one has another shape."""
    if len(tags) > MAX_TAGS:
        raise InvalidRequest("tags", f"at most {MAX_TAGS} of them")
    folded = tuple(dict.fromkeys(map(tag_of, tags)))
    for tag in folded:
        if not is_tag(tag):
            raise InvalidRequest(
                "tags", "each must be a letter, then up to 63 letters, digits, '_' or '-'"
            )
    return folded


def check_attributes(field: str, attributes: Mapping[str, JSON]) -> None:
    """Raise when a user's attributes use a reserved name, are too large or are not JSON."""
    for name in attributes:
        if name in _RESERVED or name.startswith("_"):
            raise InvalidRequest(f"{field}.{name}", "is reserved; choose another name")
    try:
        size = len(json.dumps(dict(attributes), ensure_ascii=False, allow_nan=False).encode())
    except RecursionError:
        size = 0
    except (TypeError, ValueError):
        raise InvalidRequest(
            field,
            "must be plain JSON: text without lone surrogates, finite numbers, true, false, null, "
            "lists, maps",
        ) from None
    if size > MAX_ATTRIBUTES_BYTES:
        raise InvalidRequest(field, f"must be at most {MAX_ATTRIBUTES_BYTES:,} bytes as JSON")
    if _is_deeper(dict(attributes), MAX_LEVELS):
        raise InvalidRequest(field, f"must be at most {MAX_LEVELS} levels of lists and maps deep")


def _is_deeper(value: JSON, levels: int) -> bool:
    within = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, list | tuple)
        else None
    )
    return within is not None and (
        levels == 0 or any(_is_deeper(item, levels - 1) for item in within)
    )


def check_drafts(
    nodes: Sequence[NodeDraft],
    facts: Sequence[FactDraft],
    tags: Callable[[Sequence[str]], object] = check_tags,
) -> None:
    """Raise at the first node or fact that breaks a bound; the message counts from 0.

    ``tags`` checks a node's.
    """
    if len(nodes) > MAX_NODES:
        raise InvalidRequest("nodes", f"at most {MAX_NODES} in one call")
    if len(facts) > MAX_FACTS:
        raise InvalidRequest("facts", f"at most {MAX_FACTS} in one call")
    for number, node in enumerate(nodes):
        _check_node(f"nodes[{number}]", node)
    for number, fact in enumerate(facts):
        _check_fact(f"facts[{number}]", fact)
    for node in nodes:
        tags(node.tags)


def _check_node(field: str, node: NodeDraft) -> None:
    check_length(f"{field}.name", node.name, 1, MAX_NAME)
    check_length(f"{field}.summary", node.summary, 0, MAX_TEXT)
    check_kind(f"{field}.kind", node.kind)
    if len(node.aliases) > MAX_ALIASES:
        raise InvalidRequest(f"{field}.aliases", f"at most {MAX_ALIASES} of them")
    for alias in node.aliases:
        check_length(f"{field}.aliases", alias, 1, MAX_NAME)
    check_attributes(f"{field}.attributes", node.attributes)


def _check_fact(field: str, fact: FactDraft) -> None:
    check_length(f"{field}.subject", fact.subject, 1, MAX_NAME)
    check_length(f"{field}.object", fact.object, 1, MAX_NAME)
    check_length(f"{field}.text", fact.text, 0, MAX_TEXT)
    check_label(f"{field}.relation", fact.relation)
    check_choice(f"{field}.kind", fact.kind, ("fact", "relation"))
    for name in ("valid_at", "invalid_at"):
        moment = getattr(fact, name)
        if moment:
            utc(moment, f"{field}.{name}")
    if fact.valid_at and fact.invalid_at and fact.invalid_at < fact.valid_at:
        raise InvalidRequest(f"{field}.invalid_at", "must not lie before valid_at")
    if len(fact.invalidates) > MAX_REPLACED:
        raise InvalidRequest(f"{field}.invalidates", f"at most {MAX_REPLACED} of them")
    for replaced in fact.invalidates:
        check_length(f"{field}.invalidates", replaced, 1, MAX_TEXT)
