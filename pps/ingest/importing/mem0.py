"""mem0's memories: what ``get_all`` returns, an export of its platform, or OpenMemory's backup (``memories.json``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pps.core.text import content_hash
from pps.core.values import JSON, FactDraft
from pps.ingest.drafts import RememberOptions
from pps.ingest.importing.items import (
    Item,
    Passed,
    Read,
    Unreadable,
    label,
    mapping,
    moment,
    pieces,
    sequence,
    short,
    string,
    tags,
)
from pps.ingest.importing.sources import Source
from pps.ingest.importing.streams import Value, document, elements, lines
from pps.ingest.redact import whole

SOURCE = "mem0"
_TEXTS = ("memory", "content", "data", "text")


def is_memory(value: Mapping[str, JSON]) -> bool:
    """Tell whether a JSON object is one memory of this format."""
    if "memory" in value and "id" in value:
        return isinstance(value["memory"], str)
    return {"id", "content", "created_at"} <= value.keys() and bool({"state", "categories", "app_id"} & value.keys())


def is_export(value: Mapping[str, JSON]) -> bool:
    """Tell whether a JSON object holds memories of this format."""
    return any(is_memory(mapping(one)) for one in _listed(value)[:1]) or (
        "relations" in value and any(key in value for key in ("results", "memories"))
    )


def read(source: Source) -> Iterator[Read]:
    """Yield a turn for each memory, and one with its fact for each relation."""
    if source.suffix in (".jsonl", ".ndjson"):
        for line in lines(source):
            yield from _of(line)
        return
    with source.opened() as file:
        is_list = file.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    if is_list:
        for element in elements(source):
            yield from _of(element)
        return
    whole = document(source)
    if isinstance(whole, Unreadable):
        yield whole
        return
    value = mapping(whole.value)
    categories = {string(mapping(one).get("id")): mapping(one).get("name") for one in sequence(value.get("categories"))}
    for number, one in enumerate(_listed(value)):
        yield from _memory(mapping(one), f"{source.name} memory {number}", categories)
    for number, one in enumerate(sequence(value.get("relations"))):
        yield from _relation(mapping(one), f"{source.name} relation {number}")


def _of(line: Value | Unreadable) -> Iterator[Read]:
    if isinstance(line, Unreadable):
        yield line
    else:
        yield from _memory(mapping(line.value), line.where, {})


def _listed(value: Mapping[str, JSON]) -> Sequence[JSON]:
    return sequence(value.get("results")) or sequence(value.get("memories"))


def _memory(found: Mapping[str, JSON], where: str, categories: Mapping[str, JSON]) -> Iterator[Read]:
    if string(found.get("state")) == "deleted" or found.get("deleted_at"):
        yield Passed("memories that were deleted in mem0")
        return
    metadata = mapping(found.get("metadata"))
    text = next((string(found.get(name)) for name in _TEXTS if string(found.get(name)).strip()), "")
    text = text or string(metadata.get("data"))
    if not text:
        yield Unreadable(where, f"has no text: none of {', '.join(_TEXTS)}")
        return
    named = [*sequence(found.get("categories")), *(categories.get(string(one)) for one in _ids(found))]
    # A memory that mem0 rewrote keeps its id there; here its new words are a turn of their own.
    ref = f"{string(found.get('id')) or 'memory'}:{content_hash(text)[:12]}"
    options: RememberOptions = {
        "source": SOURCE,
        "source_ref": short(ref, 200),
        "session": short(string(found.get("run_id")) or string(found.get("user_id")) or SOURCE, 200),
        "actor": short(string(found.get("agent_id")) or string(found.get("actor_id")), 200),
        "kind": "memory",
        "tags": tags([string(one) for one in named]),
        "occurred_at": moment(found.get("updated_at")) or moment(found.get("created_at")),
    }
    yield from pieces(text, options, where)


def _ids(found: Mapping[str, JSON]) -> Sequence[JSON]:
    return sequence(found.get("category_ids"))


def _relation(found: Mapping[str, JSON], where: str) -> Iterator[Read]:
    subject, relation = string(found.get("source")), string(found.get("relationship")) or string(found.get("relation"))
    target = string(found.get("target")) or string(found.get("destination"))
    if not (subject.strip() and relation.strip() and target.strip()):
        yield Unreadable(where, "has no source, relationship and target")
        return
    text = f"{subject} {relation.replace('_', ' ')} {target}"
    fact = FactDraft(
        short(subject, 500), label(relation, "RELATES_TO").upper(), short(target, 500), text=text[: whole(text, 4_000)]
    )
    options: RememberOptions = {
        "source": SOURCE,
        "source_ref": f"relation:{content_hash(text)[:32]}",
        "session": SOURCE,
        "kind": "memory",
        "facts": [fact],
        "extraction": "given",
    }
    yield Item(text, options, where)
