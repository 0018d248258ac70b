"""Records from files: CSV with a column a field, JSON as ``record_save`` takes it, exports.

All of it, or nothing.
"""

from __future__ import annotations

import asyncio
import csv
import errno
import hashlib
import io
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

from pydantic import ValidationError

from pps.config import problems
from pps.core.errors import Changed, InvalidRequest, Overloaded
from pps.core.kinds import FieldSpec, Kinds
from pps.core.text import counted, snake
from pps.core.user_files import read_regular
from pps.core.values import JSON, Skipped
from pps.ingest.indexer import Progress
from pps.journal.kept_records import KEPT, ExportedRecord
from pps.memory import Memory
from pps.operations.record_shapes import RecordInput
from pps.records.saving import MAX_RECORDS, RecordGiven, Saved

T = TypeVar("T")

MAX_BYTES = 64 * 1024 * 1024
MAX_MISTAKES = 100
"""Most mistakes that are looked for, where none may be passed over."""
SHOWN = 20
"""Mistakes that are shown as text."""
_ITEMS = ";"
_YES = ("true", "yes", "1")
_NO = ("false", "no", "0")
_PLACE = re.compile(r"records\[(\d+)\]\.?(.*)")
_LONGEST_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class RecordsImported:
    """What an import of records did, or would do when it was a dry run or has mistakes.

    Attributes:
        rows: Records that were read.
        kept: They are in the memory; where a row is wrong none is, unless mistakes are passed over.
        mistakes: What is wrong, by file, row and field; at most 100 where none is passed over.
        warnings: Relations that were kept the other way round, by file and row.
    """

    rows: int
    created: int
    changed: int
    unchanged: int
    kept: bool
    mistakes: tuple[Skipped, ...] = ()
    warnings: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class WantedRecords:
    """Files of records to import.

    Attributes:
        kind: Of the rows that name none.
        skip: Keep the rows without mistakes all the same.
    """

    paths: Sequence[Path]
    kind: str = ""
    skip: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    where: str
    given: RecordGiven


@dataclass(frozen=True, slots=True)
class _CheckedRecord:
    where: str
    kept: ExportedRecord


def recorded(value: RecordsImported, unreadable: int) -> str:
    """Return what an import of records did, as text; ``unreadable`` counts all mistakes."""
    text = f"{value.created} new, {value.changed} changed, {value.unchanged} as they were"
    verb = "kept" if value.kept else "nothing was kept"
    head = (
        f"read {counted(value.rows, 'record')}: "
        f"{text if not unreadable or value.kept else 'not all can be'}; {verb}"
    )
    lines = [f"{mistake.what}: {mistake.why}" for mistake in value.mistakes[:SHOWN]]
    lines += [f"{warning.what}: {warning.why}" for warning in value.warnings[:SHOWN]]
    if unreadable:
        listed = f", the first {SHOWN} are above" if unreadable > SHOWN else ""
        right = value.created + value.changed + value.unchanged
        keeps = (
            f"the {counted(right, 'record')} that have none"
            if right > 1
            else "the records that have none"
        )
        lines.append(f"{counted(unreadable, 'mistake')}{listed}; --skip keeps {keeps}")
    return "\n".join([head, *lines])


async def import_records(
    memory: Memory, wanted: WantedRecords, progress: Progress | None = None
) -> RecordsImported:
    """Save the records of files; the same files again change nothing.

    All is tried first, as one save that is undone; then it is saved by 200, records before
    relations.

    Raises:
        InvalidRequest: A file cannot be read as records at all.
    """
    rows, exported, mistakes = await asyncio.to_thread(_read, wanted, memory.kinds)
    if exported:
        if rows:
            raise InvalidRequest(
                "paths", "import exports by themselves: their records are restored as they were"
            )
        return await _restored(memory, wanted, exported, mistakes, progress)
    count = len(rows) + len(mistakes)
    saved, further = await _tried(
        memory, rows, most=count if wanted.skip else MAX_MISTAKES - len(mistakes)
    )
    mistakes = sorted([*mistakes, *further], key=_in_order)
    keeps = not wanted.dry_run and bool(rows) and (wanted.skip or not mistakes)
    if keeps:
        saved = await _saved(memory, rows, progress)
    changes = [record.change for record in saved[: len(rows)]]
    created, changed, unchanged = (
        changes.count(change) for change in ("created", "changed", "unchanged")
    )
    return RecordsImported(
        count, created, changed, unchanged, keeps, tuple(mistakes), _warnings(rows, saved)
    )


def _warnings(rows: Sequence[_Row], saved: Sequence[Saved]) -> tuple[Skipped, ...]:
    """Return what the saves of relations, which come after those of all rows, warned of."""
    related = [row for row in rows if row.given.relations]
    return tuple(
        Skipped(row.where, warning)
        for row, record in zip(related, saved[len(rows) :], strict=False)
        for warning in record.warnings
    )


async def _restored(
    memory: Memory,
    wanted: WantedRecords,
    checked_records: Sequence[_CheckedRecord],
    mistakes: list[Skipped],
    progress: Progress | None,
) -> RecordsImported:
    """Restore the records of an export, by 200 in a transaction."""
    restoring = await memory.records.restoring(
        [checked_record.kept for checked_record in checked_records]
    )
    wrong = [*mistakes]
    for number, error in restoring.mistakes:
        wrong.append(
            Skipped(
                f"{checked_records[number].where}: {error.field}",
                error.problem,
            )
        )
    keeps = not wanted.dry_run and bool(restoring.right) and (wanted.skip or not wrong)
    saved = restoring.saved
    if keeps:
        saved = list[Saved]()
        for at in range(0, len(restoring.right), MAX_RECORDS):
            some = restoring.right[at : at + MAX_RECORDS]
            saved += await _patiently(partial(memory.records.restore, restoring, some))
            if progress:
                progress("records", at + len(some), len(restoring.right))
    changes = [record.change for record in saved]
    count = len(checked_records) + len(mistakes)
    listed = wrong if wanted.skip else wrong[:MAX_MISTAKES]
    return RecordsImported(
        count, changes.count("created"), 0, changes.count("unchanged"), keeps, tuple(listed)
    )


async def _patiently(save: Callable[[], Awaitable[T]]) -> T:
    """Save once there is room for it in the queue."""
    while True:
        try:
            return await save()
        except Overloaded as error:
            await asyncio.sleep(min(error.retry_after_s, _LONGEST_WAIT_S))


def _calls(rows: Sequence[_Row]) -> list[list[int]]:
    """Return the batches of rows: all of them by 200, then those with relations again."""
    related = [number for number, row in enumerate(rows) if row.given.relations]
    return [
        [*numbers[at : at + MAX_RECORDS]]
        for numbers in (range(len(rows)), related)
        for at in range(0, len(numbers), MAX_RECORDS)
    ]


def _given(rows: Sequence[_Row], call: Sequence[int], *, related: bool) -> list[RecordGiven]:
    """Return the records of a call: first without their relations, then with nothing else."""
    if not related:
        return [replace(rows[number].given, relations=()) for number in call]
    return [replace(rows[number].given, expected_version=None) for number in call]


async def _tried(
    memory: Memory, rows: list[_Row], *, most: int
) -> tuple[list[Saved], list[Skipped]]:
    """Return what a save of all rows would do.

    Rows with mistakes are taken out and named, ``most`` at most.
    """
    mistakes: list[Skipped] = []
    while rows:
        calls = _calls(rows)
        bare = -(-len(rows) // MAX_RECORDS)
        drafts = [_given(rows, call, related=number >= bare) for number, call in enumerate(calls)]
        saved, error = await memory.records.tried(drafts)
        if error is None:
            return saved, mistakes
        if not isinstance(error, InvalidRequest | Changed):
            raise error
        path = error.field if isinstance(error, InvalidRequest) else error.path
        match = _PLACE.fullmatch(path)
        if match is None:
            raise error
        if len(mistakes) >= most:
            return [], mistakes
        row = rows.pop(calls[_calls_done(saved, drafts)][int(match[1])])
        place = f"{row.where}: {match[2]}" if match[2] else row.where
        mistakes.append(Skipped(place, error.problem))
    return [], mistakes


def _calls_done(saved: Sequence[Saved], drafts: Sequence[Sequence[RecordGiven]]) -> int:
    done = 0
    left = len(saved)
    while done < len(drafts) and left >= len(drafts[done]) > 0:
        left -= len(drafts[done])
        done += 1
    return done


async def _saved(memory: Memory, rows: Sequence[_Row], progress: Progress | None) -> list[Saved]:
    calls = _calls(rows)
    bare = -(-len(rows) // MAX_RECORDS)
    saved: list[Saved] = []
    for number, call in enumerate(calls):
        drafts = _given(rows, call, related=number >= bare)
        saved += (await _patiently(partial(memory.records.save, drafts, wait="journal"))).records
        if progress:
            progress(
                "records" if number < bare else "relations",
                min((number + 1) * MAX_RECORDS, len(rows)),
                len(rows),
            )
    return saved


def _read(
    wanted: WantedRecords, kinds: Kinds
) -> tuple[list[_Row], list[_CheckedRecord], list[Skipped]]:
    if wanted.kind:
        kinds.kind(wanted.kind)  # said once, not for every row
    rows: list[_Row] = []
    exported: list[_CheckedRecord] = []
    mistakes: list[Skipped] = []
    for path in wanted.paths:
        for where, row in _rows_of(path):
            try:
                if "record" in row:
                    exported.append(_CheckedRecord(where, KEPT.validate_python(row)))
                    continue
                rows.append(_Row(where, _as_given(where, {"kind": wanted.kind, **row}, kinds)))
            except ValidationError as error:
                mistakes += [
                    Skipped(": ".join(filter(None, (where, problem.path))), problem.problem)
                    for problem in problems(error, RecordInput)
                ]
            except InvalidRequest as error:
                mistakes.append(Skipped(f"{where}: {error.field}", error.problem))
    return rows, exported, mistakes


def _rows_of(path: Path) -> Iterator[tuple[str, Mapping[str, JSON]]]:
    """Yield each row of a file with where it is; InvalidRequest when it holds no rows."""
    name = path.name
    try:
        text = read_regular(path, MAX_BYTES).decode("utf-8-sig")
    except OSError as error:
        if error.errno == errno.EFBIG:
            limit = f"{MAX_BYTES // 2**20} MiB"
            raise InvalidRequest("paths", f"{name} has more than {limit}; split it") from None
        raise InvalidRequest("paths", f"{name} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InvalidRequest("paths", f"{name} is no file that can be read as UTF-8") from None
    if path.suffix.lower() in (".csv", ".tsv"):
        reader = csv.DictReader(
            io.StringIO(text, newline=""), delimiter="\t" if path.suffix.lower() == ".tsv" else ","
        )
        for number, cells in enumerate(
            reader, 2
        ):  # as a spreadsheet counts: the first has the names
            yield (
                f"{name} row {number}",
                {n.strip(): v.strip() for n, v in cells.items() if n and v and v.strip()},
            )
        return
    try:
        lines = path.suffix.lower() in (".jsonl", ".ndjson")
        rows: JSON = (
            [json.loads(row) for row in text.splitlines() if row.strip()]
            if lines
            else json.loads(text)
        )
    except (ValueError, RecursionError) as error:
        raise InvalidRequest("paths", f"{name} is neither CSV nor JSON ({error})") from None
    items = rows.get("records") if isinstance(rows, dict) else rows
    if isinstance(items, list):
        items = _exported(cast("list[JSON]", items)) or items
    if not isinstance(items, list):
        raise InvalidRequest("paths", f'{name} must hold a list of records, or {{"records": […]}}')
    for number, item in enumerate(items, 1):
        yield (
            f"{name} record {number}",
            cast("Mapping[str, JSON]", item) if isinstance(item, dict) else {"": item},
        )


def _exported(items: list[JSON]) -> list[JSON]:
    """Return the records among the lines of an export; the others are texts."""
    return [item for item in items if isinstance(item, dict) and "record" in item]


def _in_order(mistake: Skipped) -> list[str | int]:
    """Return what sorts mistakes by file and row: numbers as numbers."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", mistake.what)]


def _as_given(where: str, row: Mapping[str, JSON], kinds: Kinds) -> RecordGiven:
    """Return a row as a save takes it; other names than a record's are relations or fields."""
    relations = {relation.name for relation in kinds.relations()}
    kind = str(row.get("kind", ""))
    if not kind and not row.get("id"):
        raise InvalidRequest("kind", "is missing: give --kind, or a column 'kind'")
    of_kind: Mapping[str, FieldSpec] = kinds.kind(kind).fields if kind or not row.get("id") else {}
    record: dict[str, JSON] = {"fields": {}}
    fields: dict[str, JSON] = {}
    joins: list[JSON] = []
    for name, value in row.items():
        own = snake(name)
        if name in relations and isinstance(value, str):
            joins += [{"type": name, "target": item} for item in _items(value)]
        elif own in of_kind or own not in RecordInput.model_fields:
            fields[own] = _cell(of_kind.get(own), value) if isinstance(value, str) else value
        elif own == "fields" and isinstance(value, dict):
            fields |= value
        elif own == "relations" and isinstance(value, list):
            joins += value
        else:
            record[own] = (
                _items(value)
                if own in ("tags", "cites") and isinstance(value, str)
                else _whole(own, value)
            )
    record["fields"] = fields
    record["relations"] = joins
    draft = RecordInput.model_validate_json(json.dumps(record)).given()
    if draft.another and not draft.ref:  # found again when the file is imported again
        draft = replace(
            draft,
            another=False,
            ref=hashlib.sha256(f"{where}{json.dumps(record)}".encode()).hexdigest(),
        )
    return draft


def _items(text: str) -> list[JSON]:
    return [item.strip() for item in text.split(_ITEMS) if item.strip()]


def _whole(name: str, value: JSON) -> JSON:
    return (
        int(value)
        if name == "expected_version" and isinstance(value, str) and value.isdigit()
        else value
    )


def _cell(spec: FieldSpec | None, text: str) -> JSON:
    """Return a cell as its field's type.

    What cannot be one stays a text, which the kind's check refuses by name.
    """
    try:
        match spec.type if spec else "text":
            case "integer":
                return int(text)
            case "number":
                return float(text)
            case "json":
                return cast("JSON", json.loads(text))
            case "list":
                return [_cell(spec.of if spec else None, str(item)) for item in _items(text)]
            case "bool" if text.lower() in (*_YES, *_NO):
                return text.lower() in _YES
            case _:
                return text
    except ValueError:
        return text
