"""Redaction: secrets are replaced by a marker before anything is stored.

No I/O. A marker in a text keeps nothing of the secret, neither its length nor a digest. A marker in
an identifier has a digest under a key of the entity, so that equal identifiers stay equal and
different ones different.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast

from pps.core.errors import InvalidRequest
from pps.core.values import JSON, FactDraft, NodeDraft
from pps.ingest.context_secrets import context_secrets, given_secrets
from pps.ingest.detectors import Detector, Span, gitleaks, known_keys
from pps.ingest.spoken_secrets import spoken_secrets

_MOST_ROUNDS = 4
_DIGITS = 16
_MOST_IDENTIFIER = 200
_AnyFact = TypeVar("_AnyFact", bound=FactDraft)
_MARKER = re.compile(r"\[redacted: (?:[A-Za-z][\w ]{0,60})?(?: ?[0-9a-f]{16})?\]")
"""The replacement of a secret; in an identifier it ends with a digest."""
_Marker: TypeAlias = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and the number of replaced secrets."""

    text: str
    count: int = 0


def redact(text: str) -> Redacted:
    """Return a text with each secret replaced by ``[redacted: KIND]``; idempotent."""
    return _replace_secrets(text, lambda kind, _: f"[redacted: {kind}]")


def spans(text: str) -> list[Span]:
    return [span for span, _ in _find_secrets(text)]


def whole(text: str, at: int) -> int:
    """Return the position at or before ``at`` where a text can be cut without cutting a secret.

    No detector recognizes half a secret, so a text that is cut before it is redacted must be cut
    beside its secrets.
    """
    if len(text) <= at:
        return at
    for start, end in spans(text):
        if start < at < end:
            return start
    return at


def clipped(text: str, most: int, end: str = "…") -> str:
    """Return a text shortened to ``most`` characters with ``end`` behind it; no secret is cut."""
    if len(text) <= most:
        return text
    return text[: whole(text, most - len(end))].rstrip() + end


def cut(text: str, size: int) -> list[str]:
    """Return a text in pieces of at most ``size`` characters, cut at line breaks or spaces.

    Joined, the pieces are the text. No secret is cut; one that is longer than ``size`` is replaced.
    """
    if len(text) <= size:
        return [text]
    secrets = spans(text)
    if any(end - start > size for start, end in secrets):
        return cut(redact(text).text, size)
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = start + size
        if end < len(text):
            half = start + size // 2
            end = (text.rfind("\n", half, end) + 1) or (text.rfind(" ", half, end) + 1) or end
            end = next((begin for begin, last in secrets if start < begin < end < last), end)
        pieces.append(text[start:end])
        start = end
    return pieces


class Redactor:
    """Redacts the parts of one request and counts the replacements; when off it changes nothing."""

    __slots__ = ("_on", "count")

    def __init__(self, *, on: bool) -> None:
        self._on = on
        self.count: int = 0

    def text(self, text: str) -> str:
        if not self._on or not text:
            return text
        redacted = redact(text)
        self.count += redacted.count
        return redacted.text

    def texts(self, texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.text(text) for text in texts)

    def tags(self, tags: Sequence[str]) -> tuple[str, ...]:
        """Return the tags that hold no secret: a marker is no tag."""
        return tuple(tag for tag in tags if self.text(tag) == tag)

    def labels(self, labels: Mapping[str, str]) -> None:
        """Raise InvalidRequest when one of label → field holds a secret."""
        for label, field in labels.items():
            self.label(field, label)

    def label(self, field: str, label: str) -> None:
        """Raise InvalidRequest when a label holds a secret: a marker is no label."""
        if self.text(label) != label:
            raise InvalidRequest(
                field, "holds what looks like a secret, and it is kept as it is: name it without"
            )

    def attributes(self, attributes: Mapping[str, JSON]) -> dict[str, JSON]:
        """Return attributes without secrets in names and values.

        A value is read together with its name, which may be all that shows that it is a secret.
        """
        return {self.text(name): self._value(value, name) for name, value in attributes.items()}

    def nodes(self, nodes: Sequence[NodeDraft]) -> tuple[NodeDraft, ...]:
        """Return nodes without secrets; InvalidRequest when a kind holds one."""
        self.labels({node.kind: f"nodes[{number}].kind" for number, node in enumerate(nodes)})
        return tuple(map(self._node, nodes))

    def _node(self, node: NodeDraft) -> NodeDraft:
        return replace(
            node,
            name=self.text(node.name),
            summary=self.text(node.summary),
            aliases=self.texts(node.aliases),
            tags=self.tags(node.tags),
            attributes=self.attributes(node.attributes),
        )

    def facts(self, facts: Sequence[_AnyFact]) -> tuple[_AnyFact, ...]:
        """Return facts without secrets; InvalidRequest when a relation holds one.

        The texts in ``invalidates`` are redacted too.
        """
        if not self._on:
            return tuple(facts)
        return tuple(self._fact(fact, number) for number, fact in enumerate(facts))

    def _fact(self, fact: _AnyFact, number: int) -> _AnyFact:
        if _is_clean((fact.subject, fact.relation, fact.object, fact.text, *fact.invalidates)):
            return fact
        self.label(f"facts[{number}].relation", fact.relation)
        return replace(
            fact,
            subject=self.text(fact.subject),
            object=self.text(fact.object),
            text=self.text(fact.text),
            invalidates=self.texts(fact.invalidates),
        )

    def _value(self, value: JSON, name: str) -> JSON:
        if isinstance(value, str):
            head = f"{name}="
            whole = self.text(head + value) if name else self.text(value)
            return whole.removeprefix(head) if whole.startswith(head) else self.text(value)
        if isinstance(value, Mapping):
            return self.attributes(value)
        if isinstance(value, Sequence):
            return [self._value(item, name) for item in value]
        return value


class KeyedRedactor(Redactor):
    """Redacts the parts of one request to one entity, also a caller's identifiers of a text.

    The key belongs to the entity alone; without it a digest reveals nothing about its secret.
    """

    __slots__ = ("_key",)

    def __init__(self, key: bytes, *, on: bool) -> None:
        super().__init__(on=on)
        self._key = key

    def identifier(self, identifier: str) -> str:
        """Return an identifier with each secret replaced by ``[redacted: KIND DIGEST]``.

        Idempotent. Equal identifiers stay equal and different ones different. A result of over 200
        characters is replaced by the digest of the whole identifier.
        """
        if not self._on or not identifier:
            return identifier
        redacted = _replace_secrets(
            identifier, lambda kind, secret: f"[redacted: {kind} {self._digest(secret)}]"
        )
        self.count += redacted.count
        if redacted.count and len(redacted.text) > _MOST_IDENTIFIER:
            return f"[redacted: {self._digest(identifier)}]"
        return redacted.text

    def known_text(self, text: str, *identifiers: str) -> tuple[str, ...]:
        """Return a text and its identifiers without secrets."""
        if not self._on or _is_clean((text, *identifiers)):
            return text, *identifiers
        return self.text(text), *map(self.identifier, identifiers)

    def _digest(self, secret: str) -> str:
        return hmac.new(
            self._key, secret.encode("utf-8", "surrogatepass"), hashlib.sha256
        ).hexdigest()[:_DIGITS]


def _is_clean(texts: Sequence[str]) -> bool:
    for detector in _hinted("\n".join(texts)):
        for text in texts:
            for _ in detector.find(text):
                return False
    return True


def _replace_secrets(text: str, marker: _Marker) -> Redacted:
    count = 0
    for _ in range(_MOST_ROUNDS):
        secrets = _find_secrets(text)
        if not secrets:
            break
        count += len(secrets)
        parts: list[str] = []
        at = 0
        for (start, end), kind in secrets:
            parts += [text[at:start], marker(kind, text[start:end])]
            at = end
        text = "".join([*parts, text[at:]])
    return Redacted(text, count)


def _find_secrets(text: str) -> list[tuple[Span, str]]:
    """Return the spans and kinds of a text's secrets in order.

    Overlapping spans are joined, with the kind of the first. Markers are no secrets.
    """
    spans = [(span, detector.kind) for detector in _hinted(text) for span in detector.find(text)]
    if spans:
        marked = {at for match in _MARKER.finditer(text) for at in range(*match.span())}
        spans = [(span, kind) for span, kind in spans if not {span[0], span[1] - 1} <= marked]
    spans.sort(key=lambda secret: secret[0])
    joined: list[tuple[Span, str]] = []
    for (start, end), kind in spans:
        if joined and start < joined[-1][0][1]:
            (first, last), before = joined[-1]
            joined[-1] = ((first, max(last, end)), before)
        else:
            joined.append(((start, end), kind))
    return joined


def _hinted(text: str) -> list[Detector]:
    """Return the detectors with a hint that a text contains, in order; one pass finds all hints."""
    hints, detectors_of_hint = _hints()
    matches: list[int] = hints.Match(text.encode("utf-8", "replace")) or []
    numbers = {number for hint in matches for number in detectors_of_hint[hint]}
    detectors = _detectors()
    return [detectors[number] for number in sorted(numbers)]


@cache
def _hints() -> tuple[Any, list[list[int]]]:
    """Return the hints as an RE2 set, and for each hint the numbers of its detectors.

    A lower-case hint matches in any case.
    """
    by_hint: dict[str, list[int]] = {}
    for number, detector in enumerate(_detectors()):
        for hint in detector.hints:
            by_hint.setdefault(hint, []).append(number)
    re2 = cast("Any", importlib.import_module("re2"))
    hints = re2.Set.SearchSet()
    for hint in by_hint:
        hints.Add(("(?i)" if hint.islower() else "") + re2.escape(hint))
    hints.Compile()
    return hints, list(by_hint.values())


@cache
def _detectors() -> tuple[Detector, ...]:
    """Return all detectors; the first text imports their libraries here (0.3 s)."""
    return (
        *known_keys(),
        *given_secrets(),
        *spoken_secrets(),
        *context_secrets(),
        *gitleaks(),
    )
