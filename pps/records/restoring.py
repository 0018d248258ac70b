"""Restoring records of an export with their state, moves, versions, relations and cites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pps.core.errors import InvalidRequest
from pps.core.kinds import PLAIN_KIND
from pps.core.record_values import Cite, Record
from pps.core.text import fold
from pps.core.values import JSON
from pps.ingest.drafts import TYPED_SOURCE
from pps.ingest.linking import draft_of, record_id, relation_id
from pps.ingest.redact import KeyedRedactor
from pps.journal.entries import JobPayload, TurnDraft
from pps.journal.kept_records import KNOWN, ExportedRecord, KeptCite, cited_as, sources, things
from pps.journal.record_rows import RecordRows
from pps.journal.turns import prepare, turn_id
from pps.records.listing import field_values
from pps.records.saving import RelationGiven, Saved, Writing, content_of, relation_of, told

_TEXTS = "import the texts of the same file first"


@dataclass(slots=True)
class _Places:
    """Where the records go.

    Attributes:
        here: Id there → the record that it is here already.
        ids: Id there → id here, of all records and of the nodes that they lead to.
    """

    here: dict[str, Record] = field(default_factory=dict[str, Record])
    ids: dict[str, str] = field(default_factory=dict[str, str])


def cleaned(exported_record: ExportedRecord, redactor: KeyedRedactor) -> ExportedRecord:
    """Return a record without secrets in anything that it was."""
    record = exported_record.record
    return replace(
        exported_record,
        record=replace(
            record,
            title=redactor.text(record.title),
            summary=redactor.text(record.summary),
            fields=redactor.attributes(record.fields),
            tags=redactor.tags(record.tags),
        ),
        relations=tuple(
            replace(each, properties=redactor.attributes(each.properties))
            for each in exported_record.relations
        ),
        moves=tuple(replace(each, why=redactor.text(each.why)) for each in exported_record.moves),
        versions=tuple(
            replace(
                each,
                title=redactor.text(each.title),
                content=redactor.text(each.content),
                tags=redactor.tags(each.tags),
                fields=redactor.attributes(each.fields),
            )
            for each in exported_record.versions
        ),
    )


class Restoring:
    """Records of one export; what is here already stays as it is.

    A record is known again by its id there, or by kind, title and event time. Else it gets an id
    that follows from the one there, or becomes the node of its title where texts that were imported
    first have made one.

    ``saved`` and ``mistakes``, each with the record's number, say what came of the trial.
    """

    def __init__(self, by: Writing, exported: Sequence[ExportedRecord]) -> None:
        self._by = by
        self._given = exported
        self._places = _Places()
        self._noting = True
        self.saved: list[Saved] = []
        self.mistakes: list[tuple[int, InvalidRequest]] = []

    def tried(self, rows: RecordRows) -> list[Saved]:
        """Check all records and find their places, noting mistakes; the caller rolls back."""
        right = [
            number
            for number, exported in enumerate(self._given)
            if not self._noted(number, self._wrong(exported))
        ]
        self._places = self._placed(rows, [self._given[number] for number in right])
        self.saved = self.kept(rows, right)
        self._noting = False
        return self.saved

    @property
    def right(self) -> list[int]:
        """The numbers of the records that are no mistake by themselves."""
        return [
            number
            for number, exported in enumerate(self._given)
            if exported.record.id in self._places.ids
        ]

    def kept(self, rows: RecordRows, numbers: Iterable[int]) -> list[Saved]:
        """Save some records with their versions, moves, relations and citations."""
        return [self._one(rows, number, self._given[number]) for number in numbers]

    def _noted(self, number: int, wrong: Iterable[InvalidRequest]) -> bool:
        noted = [(number, error) for error in wrong]
        if self._noting:
            self.mistakes += noted
        return bool(noted)

    def _wrong(self, exported_record: ExportedRecord) -> Iterator[InvalidRequest]:
        """Yield mistakes of a record by itself. What an earlier version of its pack allowed is valid."""
        record = exported_record.record
        kinds = self._by.kinds
        if record.kind not in kinds:
            yield InvalidRequest("kind", f"{record.kind!r} is no kind of this memory's packs")
        elif record.pack_version >= kinds.kind(record.kind).version:
            misfit = self._by.models.misfit(record)
            if misfit:
                yield InvalidRequest("record", misfit)
        numbers = [version.number for version in exported_record.versions]
        if not numbers or numbers != [*range(1, record.version + 1)]:
            yield InvalidRequest("versions", f"must be 1 to {record.version}, all of them")
        times = [record.created_at, record.updated_at]
        times += [version.at for version in exported_record.versions]
        times += [move.at for move in exported_record.moves]
        times += [relation.created_at for relation in exported_record.relations]
        if any(moment.tzinfo is None for moment in times):
            yield InvalidRequest("created_at", "times must say their offset from UTC")

    def _placed(self, rows: RecordRows, exported: Sequence[ExportedRecord]) -> _Places:
        group = self._by.group
        turns = {
            exported_record.record.id: self._turn(exported_record.record.id)
            for exported_record in exported
        }
        known = rows.find([*turns, *turns.values()])
        names = things(
            rows,
            {exported_record.record.title for exported_record in exported}
            | {name for exported_record in exported for name in exported_record.nodes.values()},
        )
        plain = {node for node, kind in rows.kinds_of(names.values()).items() if kind == PLAIN_KIND}
        plain -= sources(rows, plain)
        places = _Places()
        for exported_record in exported:
            existing = exported_record.record.id
            node = names.get(fold(exported_record.record.title), "")
            here = (
                known.get(existing)
                or known.get(turns[existing])
                or self._same(rows, exported_record.record)
            )
            if here:
                places.here[existing] = here
            taken = node if node in plain else record_id(group, turns[existing])
            plain.discard(node)
            places.ids[existing] = here.id if here else taken
        for exported_record in exported:
            for existing, name in exported_record.nodes.items():
                if fold(name) in names:
                    places.ids.setdefault(existing, names[fold(name)])
        return places

    def _turn(self, turn: str) -> str:
        ref = f"{KNOWN}{turn}"
        return turn_id(self._by.group, TYPED_SOURCE, ref, ref)

    @staticmethod
    def _same(rows: RecordRows, record: Record) -> Record | None:
        same = [
            titled
            for titled in rows.titled(record.title, record.kind)
            if titled.created_at == record.created_at
        ]
        return same[0] if len(same) == 1 else None

    def _one(self, rows: RecordRows, number: int, exported_record: ExportedRecord) -> Saved:
        restored = exported_record.record
        if restored.id in self._places.here:
            return Saved(self._places.here[restored.id], "unchanged")
        missing = sorted(
            {
                exported_record.nodes[end]
                for end in exported_record.nodes
                if end not in self._places.ids
            }
        )
        self._noted(
            number,
            (InvalidRequest("nodes", f"there is no {name!r} here: {_TEXTS}") for name in missing),
        )
        spec = self._by.kinds.kind(restored.kind)
        fields = self._fields_here(restored.fields)
        record = replace(
            restored,
            id=self._places.ids[restored.id],
            turn=self._turn(restored.id),
            fields=fields,
            pack=spec.pack,
        )
        saved = Saved(record, "created", job=self._put(rows, record, exported_record))
        rows.put_fields(record.id, field_values(spec, fields))
        for move in exported_record.moves:
            rows.note_move(replace(move, record=record.id))
        self._related(rows, number, exported_record)
        self._cited(rows, number, exported_record, record.id)
        return saved

    def _put(self, rows: RecordRows, record: Record, exported_record: ExportedRecord) -> int:
        content = content_of(record.summary, record.fields)
        ref = f"{KNOWN}{exported_record.record.id}"
        draft = TurnDraft(
            content,
            actor=record.author,
            session=ref,
            source=TYPED_SOURCE,
            source_ref=ref,
            occurred_at=record.created_at,
            kind=record.kind,
            tags=record.tags,
            title=record.title,
        )
        links = self._by.automatic.links_of(content)
        payload = JobPayload(extraction="none", record=draft_of(record), links=links)
        versions = [
            replace(version, fields=self._fields_here(version.fields))
            for version in exported_record.versions
        ]
        return rows.add(prepare(self._by.group, draft), payload, record, versions)

    def _fields_here(self, fields: Mapping[str, JSON]) -> dict[str, JSON]:
        return {name: self._here(value) for name, value in fields.items()}

    def _here(self, value: JSON) -> JSON:
        """Return a field's value with ids of the export replaced by ids of this memory."""
        if isinstance(value, str):
            return self._places.ids.get(value, value)
        if isinstance(value, Mapping):
            return {name: self._here(item) for name, item in value.items()}
        return [self._here(item) for item in value] if isinstance(value, Sequence) else value

    def _related(self, rows: RecordRows, number: int, exported_record: ExportedRecord) -> None:
        kinds = {each.record.id: each.record.kind for each in self._given}
        ids = self._places.ids
        for at, each in enumerate(exported_record.relations):
            lost = {each.source, each.target} - ids.keys()
            if lost:
                if not lost <= exported_record.nodes.keys():  # which are said already
                    self._noted(
                        number,
                        [InvalidRequest(f"relations[{at}]", "an end is none of these records")],
                    )
                continue
            try:
                with told(f"relations[{at}]"):
                    source, target = (
                        (ids[end], kinds.get(end, PLAIN_KIND)) for end in (each.source, each.target)
                    )
                    draft = RelationGiven(each.type, target[0], each.properties)
                    relation, turned = relation_of(self._by, source, draft, target, each.created_at)
                if turned:  # what is restored stays as it was, or is not restored
                    self._by.kinds.relation(each.type, source[1], target[1])
                rows.relate(replace(relation, actor=each.actor))
            except InvalidRequest as error:
                self._noted(number, [error])

    def _cited(
        self, rows: RecordRows, number: int, exported_record: ExportedRecord, record: str
    ) -> None:
        cites: list[Cite] = []
        for at, each in enumerate(exported_record.cites):
            id_ = self._cite(rows, each)
            if id_:
                cites.append(Cite(each.kind, id_))
            else:
                self._noted(
                    number,
                    [
                        InvalidRequest(
                            f"cites[{at}]", f"there is no such {each.kind} here: {_TEXTS}"
                        )
                    ],
                )
        if cites:
            rows.put_cites(record, cites)

    def _cite(self, rows: RecordRows, cite: KeptCite) -> str:
        """Return the id here of what a record cites there, empty for none.

        Records may come after it.
        """
        ids = self._places.ids
        group = self._by.group
        match cite.kind, cite.of:
            case "record", (there,):
                return ids.get(there, "")
            case "turn", (there,) if there in ids:
                here = self._places.here.get(there)
                return here.turn if here else self._turn(there)
            case "turn", (source, session, ref):
                turn = turn_id(group, source, session, ref)
                return turn if rows.cited([turn]) else ""
            case "fact", (source, relation, target):
                return (
                    relation_id(group, ids[source], relation, ids[target])
                    if {source, target} <= ids.keys()
                    else ""
                )
            case "fact", (_, _, _, _, _):
                return cited_as(rows, cite)
            case _:
                return ""
