"""A save in one transaction: find or make each record, merge, check and write it."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, TypeAlias, cast

from pps.core.errors import Changed, InvalidRequest, NotFound
from pps.core.ids import is_beginning, is_uuid
from pps.core.kinds import PLAIN_KIND, FieldSpec, Kinds, KindSpec
from pps.core.record_values import Cite, Record, Relation
from pps.core.text import fold, normalise, snake
from pps.core.time import now
from pps.core.values import JSON
from pps.ingest.drafts import TYPED_SOURCE, Automatic, tags_in
from pps.ingest.linking import draft_of, record_id, relation_id
from pps.ingest.redact import KeyedRedactor
from pps.journal.entries import JobPayload, TurnDraft
from pps.journal.graph_queries import Titled, ambiguous
from pps.journal.record_rows import RecordRows
from pps.journal.turns import prepare, turn_id
from pps.journal.versions import Text
from pps.records.kind_models import KindModels
from pps.records.listing import field_values

MAX_RECORDS = 200
MAX_RELATIONS = 200
MAX_CITES = 200
GAP = "\n\n"
"""Between a record's summary and its description, in its text."""
_OWN = ("title", "summary", "status", "tags")
Change: TypeAlias = Literal["created", "changed", "unchanged"]


@dataclass(frozen=True, slots=True)
class RelationGiven:
    """A relation from a record: ``target`` by id or title, of this memory or of the same call."""

    type: str
    target: str
    properties: Mapping[str, JSON] = field(default_factory=dict[str, JSON])


@dataclass(frozen=True, slots=True)
class RecordGiven:
    """A record to make, or to change.

    What is None or left out of ``fields`` stays, a null takes a field out.

    Attributes:
        id: Which one; without it the one of that ``ref``, or of that ``kind`` and ``title``, else a
            new one.
        fields: The kind's own, and description, metadata, provenance.
        relations: Made beside those that there are.
        cites: Ids of facts, turns and records that it rests on, all of them.
        expected_version: The version that is changed; another one is a StoreConflict. 0: there must
            be none yet.
        created_at: When it happened, of a new one; now when None.
        ref: Its id where it comes from.
        another: Make a new one even if there is one of that kind and title.
    """

    kind: str = ""
    title: str | None = None
    summary: str | None = None
    id: str = ""
    fields: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    status: str | None = None
    tags: tuple[str, ...] | None = None
    relations: tuple[RelationGiven, ...] = ()
    cites: tuple[str, ...] | None = None
    expected_version: int | None = None
    created_at: datetime | None = None
    ref: str = ""
    another: bool = False


@dataclass(frozen=True, slots=True)
class Saved:
    """A record as it was saved.

    Attributes:
        relations: Ids of those given with it.
        job: 0 when nothing changed.
        warnings: Of the relations given with it those that were kept the other way round.
    """

    record: Record
    change: Change
    relations: tuple[str, ...] = ()
    job: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Writing:
    """Who writes records, and what they are checked by.

    Attributes:
        is_system: The system writes: it alone makes reserved kinds and relations.
    """

    group: str
    kinds: Kinds
    models: KindModels
    automatic: Automatic
    actor: str
    is_system: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a given record goes: the one that there is, or the ids that it gets."""

    before: Record | None
    id: str
    turn: str
    kind: KindSpec
    ref: str = ""


def redacted(draft: RecordGiven, redactor: KeyedRedactor) -> RecordGiven:
    """Return a record without secrets.

    Raises:
        InvalidRequest: The title holds a secret. Two redacted titles could not be told apart.
    """
    redactor.label("title", normalise(draft.title or ""))

    def clean(text: str | None) -> str | None:
        return None if text is None else redactor.text(normalise(text))

    return replace(
        draft,
        title=None if draft.title is None else " ".join((clean(draft.title) or "").split()),
        summary=clean(draft.summary),
        fields=redactor.attributes(draft.fields),
        tags=None if draft.tags is None else redactor.tags(draft.tags),
        relations=tuple(
            replace(relation, properties=redactor.attributes(relation.properties))
            for relation in draft.relations
        ),
        ref=redactor.identifier(draft.ref),
    )


@contextlib.contextmanager
def told(place: str) -> Generator[None]:
    """Let an InvalidRequest say of which of many things it speaks."""
    try:
        yield
    except InvalidRequest as error:
        raise error.within(place) from None


def all_redacted(records: Sequence[RecordGiven], redactor: KeyedRedactor) -> list[RecordGiven]:
    """Return records without secrets; what is wrong says which of them it is about."""
    record_givens: list[RecordGiven] = []
    for number, record in enumerate(records):
        with told(f"records[{number}]"):
            record_givens.append(redacted(record, redactor))
    return record_givens


def content_of(summary: str, fields: Mapping[str, JSON]) -> str:
    """Return a record's text: its summary, then its description."""
    description = fields.get("description")
    return f"{summary}{GAP}{description}" if description else summary


class Saving:
    """One call: what it raises says which record it is about, and undoes all of them."""

    def __init__(self, by: Writing, drafts: Sequence[RecordGiven]) -> None:
        self._by = by
        self._given = drafts
        self._at = now()
        self._minted = [draft.ref or secrets.token_hex(16) for draft in drafts]

    def __call__(self, rows: RecordRows) -> list[Saved]:
        """Write all of it: records first, for their relations may lead to each other."""
        places: list[_Place] = []
        for number, draft in enumerate(self._given):
            with told(f"records[{number}]"):
                places.append(self._placed(rows, number, draft, places))
        names = self._names(places)
        saved: list[Saved] = []
        for number, (draft, place) in enumerate(zip(self._given, places, strict=True)):
            with told(f"records[{number}]"):
                saved.append(self._kept(rows, draft, place, names))
        for number, draft in enumerate(self._given):
            with told(f"records[{number}]"):
                relations, warnings = self._related(rows, draft, saved[number].record, names)
                cited = self._cited(rows, draft, saved[number].record)
            if cited and saved[number].change == "unchanged":
                saved[number] = replace(
                    saved[number], record=rows.bump(saved[number].record), change="changed"
                )
            saved[number] = replace(saved[number], relations=relations, warnings=warnings)
        return saved

    def _placed(
        self, rows: RecordRows, number: int, draft: RecordGiven, others: Sequence[_Place]
    ) -> _Place:
        before = self._before(rows, number, draft)
        kind = self._by.kinds.kind(before.kind if before else draft.kind)
        if before and draft.kind not in ("", before.kind):
            raise InvalidRequest("kind", f"is a {before.kind} and stays one")
        self._by.kinds.check_write(self._by.actor, kind.name)
        if not self._by.is_system:
            self._by.kinds.check_by_hand("kind", kind.name)
        version = before.version if before else 0
        if draft.expected_version not in (None, version):
            is_at = f"is at version {version}" if before else "is not there"
            raise Changed(
                f"the record {is_at}, not {draft.expected_version}: read it again",
                path=f"records[{number}].expected_version",
            )
        if before:
            place = _Place(before, before.id, before.turn, kind)
        else:
            ref = self._minted[number]
            turn = turn_id(self._by.group, TYPED_SOURCE, ref, ref)
            place = _Place(None, record_id(self._by.group, turn), turn, kind, ref)
        if place.id in {other.id for other in others} or (
            not before and self._repeats(draft, number)
        ):
            raise InvalidRequest(
                "id" if draft.id else "title", "the same record is given twice in one call"
            )
        return place

    def _before(self, rows: RecordRows, number: int, draft: RecordGiven) -> Record | None:
        """Return the record that a given one is already."""
        if draft.id:
            return self._named(rows, draft.id, draft.kind, f"records[{number}].id")
        if draft.ref:
            turn = turn_id(self._by.group, TYPED_SOURCE, draft.ref, draft.ref)
            return rows.find([turn]).get(turn)
        if draft.another or not draft.title:
            return None
        titled = rows.titled(draft.title, self._by.kinds.kind(draft.kind).name)
        if len(titled) > 1:
            request = [Titled(record.id, record.kind, is_record=True) for record in titled]
            raise ambiguous("id", request)
        return titled[0] if titled else None

    def _named(self, rows: RecordRows, name: str, kind: str, path: str) -> Record:
        """Return the record of an id or title; among several of a title, that of the given kind."""
        candidates = rows.candidates(name)
        if kind and len(candidates) > 1:
            candidates = [
                candidate for candidate in candidates if candidate.kind == kind
            ] or candidates
        if len(candidates) > 1:
            raise ambiguous("id", candidates)
        record = rows.typed(candidates[0].id) if candidates else None
        if record is None:
            raise NotFound(path)
        return record

    def _repeats(self, draft: RecordGiven, number: int) -> bool:
        if draft.another or draft.ref:
            return False
        key = draft.kind, fold(draft.title or "")
        return key in {
            (other.kind, fold(other.title or ""))
            for other in self._given[:number]
            if not other.another
        }

    def _names(self, places: Sequence[_Place]) -> dict[str, list[tuple[str, str]]]:
        """Return folded title → (id, kind) of the records of this call."""
        names: dict[str, list[tuple[str, str]]] = {}
        for draft, place in zip(self._given, places, strict=True):
            title = draft.title or (place.before.title if place.before else "")
            if title:
                names.setdefault(fold(title), []).append((place.id, place.kind.name))
        return names

    def _kept(self, rows: RecordRows, draft: RecordGiven, place: _Place, names: _Names) -> Saved:
        """Write a record, new or changed."""
        spec = place.kind
        before = place.before
        whole = self._whole(rows, draft, place, names)
        own: dict[str, JSON] = {name: value for name, value in whole.items() if name not in _OWN}
        title, summary, status = (str(whole[name]) for name in _OWN[:3])
        content = content_of(summary, own)
        tags = self._by.automatic.tags_of(
            tuple(cast("Sequence[str]", whole.get("tags", ()))), content
        )
        record = Record(
            id=place.id,
            kind=spec.name,
            title=title,
            summary=summary,
            created_at=before.created_at if before else draft.created_at or self._at,
            updated_at=self._at,
            fields=own,
            status=status,
            state=before.state if before else spec.lifecycle.start if spec.lifecycle else "",
            tags=tags,
            pack=spec.pack,
            pack_version=spec.version,
            version=before.version if before else 1,
            actor=self._by.actor,
            author=before.author if before else self._by.actor,
            turn=place.turn,
        )
        saved = self._changed(rows, record) if before else self._made(rows, record, place)
        if saved.job:
            rows.put_fields(record.id, field_values(spec, own))
        return saved

    def _made(self, rows: RecordRows, record: Record, place: _Place) -> Saved:
        draft = TurnDraft(
            content_of(record.summary, record.fields),
            actor=record.actor,
            session=place.ref,
            source=TYPED_SOURCE,
            source_ref=place.ref,
            occurred_at=record.created_at,
            kind=record.kind,
            tags=record.tags,
            title=record.title,
        )
        links = self._by.automatic.links_of(draft.content)
        payload = JobPayload(extraction="none", record=draft_of(record), links=links)
        return Saved(
            record, "created", job=rows.add(prepare(self._by.group, draft), payload, record)
        )

    def _changed(self, rows: RecordRows, record: Record) -> Saved:
        content = content_of(record.summary, record.fields)
        links = self._by.automatic.links_of(content)

        def rework(before: Text) -> Text:
            return Text(
                content, record.tags, replace(before.payload, record=draft_of(record), links=links)
            )

        after, job = rows.change(record, "modified", rework)
        return Saved(after, "changed" if job else "unchanged", job=job)

    def _whole(
        self, rows: RecordRows, draft: RecordGiven, place: _Place, names: _Names
    ) -> dict[str, JSON]:
        """Return all of a record's fields, existing and new, checked by its kind."""
        spec = place.kind
        before = place.before
        fields = dict(draft.fields)
        if spec.lifecycle:
            self._check_state(spec, fields, before)
        own, mistakes = self._by.models.read_names(spec.name, fields)
        for name, value in list(own.items()):
            ref = spec.fields.get(name)
            if ref and value is not None:
                try:
                    own[name] = self._ref(rows, ref, value, names)
                except InvalidRequest as error:
                    del own[name]  # what is wrong with it is said once
                    mistakes.setdefault(f"{spec.name}.{name}", error.problem)
        whole: dict[str, JSON] = {}
        if before:
            tags = set(tags_in(content_of(before.summary, before.fields)))
            whole = {
                **before.fields,
                "title": before.title,
                "summary": before.summary,
                "status": before.status,
            }
            whole["tags"] = [tag for tag in before.tags if tag not in tags]
        # A title by which a record was found is no new one.
        title = draft.title if draft.id or draft.ref or not before else None
        named = {"title": title, "summary": draft.summary, "status": draft.status}
        whole |= own | {name: value for name, value in named.items() if value is not None}
        if draft.tags is not None:
            whole["tags"] = list(draft.tags)
        return self._by.models.check(spec.name, whole, mistakes)

    def _check_state(self, spec: KindSpec, fields: dict[str, JSON], before: Record | None) -> None:
        """Remove the state from the fields.

        It may be passed unchanged; only record_move changes it.
        """
        assert spec.lifecycle  # noqa: S101 - for the type checker: only such kinds are asked about
        name = spec.lifecycle.field
        for key in [key for key in fields if snake(key) == name]:
            is_now = before.state if before else spec.lifecycle.start
            if fields.pop(key) not in (None, is_now):
                begins = "is" if before else "begins as"
                raise InvalidRequest(
                    f"{spec.name}.{name}", f"{begins} {is_now}; record_move alone changes it"
                )

    def _ref(self, rows: RecordRows, spec: FieldSpec, value: JSON, names: _Names) -> JSON:
        """Return a field's value with each ref as the id of the node that it names."""
        if (
            spec.type == "list"
            and spec.of
            and spec.of.type == "ref"
            and isinstance(value, Sequence)
        ):
            return [self._ref(rows, spec.of, item, names) for item in value]
        if spec.type != "ref" or not isinstance(value, str):
            return value
        return end_of(rows, value, spec.name or "ref", names, spec.kind)[0]

    def _related(
        self, rows: RecordRows, draft: RecordGiven, record: Record, names: _Names
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Save the relations of a record; return their ids and the warnings about turned ones."""
        if len(draft.relations) > MAX_RELATIONS:
            raise InvalidRequest("relations", f"at most {MAX_RELATIONS}")
        made: list[str] = []
        warnings: list[str] = []
        for number, related in enumerate(draft.relations):
            with told(f"relations[{number}]"):
                target = end_of(rows, related.target, "target", names)
                relation, turned = relation_of(
                    self._by, (record.id, record.kind), related, target, self._at
                )
            rows.relate(relation)
            made.append(relation.id)
            if turned:
                warnings.append(f"relations[{number}]: {turned}, from the target to this record")
        return tuple(made), tuple(warnings)

    def _cited(self, rows: RecordRows, draft: RecordGiven, record: Record) -> bool:
        """Add citations to a record. Existing citations stay, even of forgotten items."""
        if draft.cites is None:
            return False
        if len(draft.cites) > MAX_CITES:
            raise InvalidRequest("cites", f"at most {MAX_CITES}")
        wanted = rows.whole(draft.cites, "cites")
        cited = rows.cited(wanted)
        before = {cite.id: cite for cite in rows.cites([record.id]).get(record.id, ())}
        for number, id_ in enumerate(wanted):
            if (id_ not in cited and id_ not in before) or id_ == record.id:
                raise InvalidRequest(
                    f"cites[{number}]", "is no other fact, turn or record of this memory"
                )
        return rows.put_cites(
            record.id, [before.get(id_) or Cite(cited[id_], id_) for id_ in dict.fromkeys(wanted)]
        )


_Names: TypeAlias = Mapping[str, Sequence[tuple[str, str]]]


def end_of(
    rows: RecordRows, end: str, path: str, names: _Names | None = None, kind: str = ""
) -> tuple[str, str]:
    """Return id and kind of the node that an id or title stands for, of the same call first.

    Raises InvalidRequest when it stands for none, for several, or for one of another kind than
    ``kind``.
    """
    of_call = (names or {}).get(fold(end), ()) if not is_uuid(end) else ()
    candidates = [Titled(id_, own, is_record=True) for id_, own in dict(of_call).items()]
    candidates = candidates or rows.candidates(end, path)
    candidates = [
        candidate
        for candidate in candidates
        if kind in ("", candidate.kind) or (kind == PLAIN_KIND and candidate.kind)
    ]
    if len(candidates) > 1:
        raise ambiguous(path, candidates)
    if not candidates:
        description = kind or "record or node"
        by = "id" if is_uuid(end) or is_beginning(end) else "id or title"
        raise InvalidRequest(path, f"no {description} of this memory has that {by}")
    return candidates[0].id, candidates[0].kind


def relation_of(
    by: Writing,
    source: tuple[str, str],
    draft: RelationGiven,
    target: tuple[str, str],
    at: datetime,
) -> tuple[Relation, str]:
    """Return a relation between two nodes (id, kind), checked by the pack, and a warning or "".

    Where the pack lets it join two such kinds the other way alone, it leads that way, and the
    warning says so.

    Raises:
        InvalidRequest: It joins no two such kinds, a property is wrong, or the actor may not write
            its source.
    """
    if source[0] == target[0]:
        raise InvalidRequest("target", "joins a record to itself")
    draft = replace(draft, type=by.kinds.relation_name(draft.type))
    if not by.is_system:
        by.kinds.check_by_hand("type", draft.type)
    kinds = [kind if kind in by.kinds else PLAIN_KIND for kind in (source[1], target[1])]
    warning = ""
    if by.kinds.is_turned(draft.type, kinds[0], kinds[1]):
        source, target = target, source
        kinds.reverse()
        by.kinds.check_write(by.actor, source[1])
        if not by.is_system:
            by.kinds.check_by_hand("target", source[1])
        warning = f"{draft.type} leads {kinds[0]} → {kinds[1]}: it was kept that way round"
    properties = by.models.check_relation(draft.type, kinds[0], kinds[1], draft.properties)
    weight = properties.get("weight", 1)
    if not isinstance(weight, int | float) or not 0 <= weight <= 1:
        raise InvalidRequest("properties.weight", "must be 0 to 1")
    id_ = relation_id(by.group, source[0], draft.type, target[0])
    relation = Relation(id_, source[0], draft.type, target[0], at, properties, by.actor)
    return relation, warning
