"""Redaction: secrets are replaced with a marker before anything is kept.

Pure functions on values. What a marker in a text stood for is nowhere: neither its length nor a digest of it is
kept. A marker in an identifier has a digest, under a key of the entity, so that one stays one and two stay two.
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
from pps.ingest.context_secrets import context_secrets
from pps.ingest.detectors import Detector, Span, gitleaks, known_keys
from pps.ingest.given_secrets import given_secrets
from pps.ingest.spoken_secrets import spoken_secrets

_MOST_ROUNDS = 4
_DIGITS = 16
_MOST_IDENTIFIER = 200
_AnyFact = TypeVar("_AnyFact", bound=FactDraft)
_MARKER = re.compile(r"\[redacted: (?:[A-Za-z][\w ]{0,60})?(?: ?[0-9a-f]{16})?\]")
"""What stands in the place of a secret, with the digest that an identifier has."""
_Marker: TypeAlias = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and how many there were."""

    text: str
    count: int = 0


def redact(text: str) -> Redacted:
    """Return a text with each secret replaced by ``[redacted: KIND]``; what is redacted again stays as it is."""
    return _redacted(text, lambda kind, _: f"[redacted: {kind}]")


def spans(text: str) -> list[Span]:
    return [span for span, _ in _found(text)]


def whole(text: str, at: int) -> int:
    """Return the place nearest before ``at`` where a text can be cut without cutting a secret in two.

    Half a secret is known as none: what is cut before it is redacted must be cut beside it.
    """
    return (
        next((start for start, end in spans(text) if start < at < end), at)
        if len(text) > at
        else at
    )


def clipped(text: str, most: int, end: str = "…") -> str:
    """Return a text of at most ``most`` characters; of a longer one its beginning, no secret cut, and ``end``."""
    return text if len(text) <= most else text[: whole(text, most - len(end))].rstrip() + end


def cut(text: str, size: int) -> list[str]:
    """Return a text in pieces of at most ``size`` characters: at line breaks or spaces, and none within a secret.

    Together they are the text. A secret that is longer than a piece is replaced: no piece could hold it.
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
    """Redacts the parts of one request and counts what it replaced; or lets all through when it is off."""

    __slots__ = ("_on", "count")

    def __init__(self, *, on: bool) -> None:
        self._on = on
        self.count: int = 0

    def text(self, text: str) -> str:
        if not self._on or not text:
            return text
        found = redact(text)
        self.count += found.count
        return found.text

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
        """Return attributes without secrets, in names and values, also what only its name shows to be one."""
        return {self.text(name): self._value(value, name) for name, value in attributes.items()}

    def nodes(self, nodes: Sequence[NodeDraft]) -> tuple[NodeDraft, ...]:
        """Return nodes without secrets; InvalidRequest when a kind holds one."""
        self.labels({node.kind: f"nodes[{number}].kind" for number, node in enumerate(nodes)})
        return tuple(map(self._node, nodes))

    def _node(self, node: NodeDraft) -> NodeDraft:
        name, summary, aliases = (
            self.text(node.name),
            self.text(node.summary),
            self.texts(node.aliases),
        )
        tags, attributes = self.tags(node.tags), self.attributes(node.attributes)
        return replace(
            node, name=name, summary=summary, aliases=aliases, tags=tags, attributes=attributes
        )

    def facts(self, facts: Sequence[_AnyFact]) -> tuple[_AnyFact, ...]:
        """Return facts without secrets, texts of those to replace too; InvalidRequest when a relation holds one."""
        return (
            tuple(self._fact(fact, at) for at, fact in enumerate(facts))
            if self._on
            else tuple(facts)
        )

    def _fact(self, fact: _AnyFact, at: int) -> _AnyFact:
        if _is_clean((fact.subject, fact.relation, fact.object, fact.text, *fact.invalidates)):
            return fact
        self.label(f"facts[{at}].relation", fact.relation)
        names = {name: self.text(getattr(fact, name)) for name in ("subject", "object", "text")}
        return replace(fact, **names, invalidates=self.texts(fact.invalidates))

    def _value(self, value: JSON, name: str) -> JSON:
        if isinstance(value, str):
            head = f"{name}="
            whole = self.text(head + value) if name else self.text(value)
            return whole.removeprefix(head) if whole.startswith(head) else self.text(value)
        if isinstance(value, Mapping):
            return self.attributes(value)
        if isinstance(value, Sequence):
            return [self._value(one, name) for one in value]
        return value


class KeyedRedactor(Redactor):
    """Redacts the parts of one request to one entity, also the identifiers by which a caller knows a text.

    The key is of the entity alone: without it nothing can be told of a secret by its digest.
    """

    __slots__ = ("_key",)

    def __init__(self, key: bytes, *, on: bool) -> None:
        super().__init__(on=on)
        self._key = key

    def identifier(self, given: str) -> str:
        """Return an identifier with each secret replaced by ``[redacted: KIND DIGEST]``; done again it stays as it is.

        Equal ones stay equal and different ones different. One that would be longer than 200 characters goes whole.
        """
        if not self._on or not given:
            return given
        found = _redacted(given, lambda kind, secret: f"[redacted: {kind} {self._digest(secret)}]")
        self.count += found.count
        fits = not found.count or len(found.text) <= _MOST_IDENTIFIER
        return found.text if fits else f"[redacted: {self._digest(given)}]"

    def known_text(self, text: str, *identifiers: str) -> tuple[str, ...]:
        """Return a text and its identifiers without their secrets; what hints at one is looked for in all at once."""
        if not self._on or _is_clean((text, *identifiers)):
            return text, *identifiers
        return self.text(text), *map(self.identifier, identifiers)

    def _digest(self, secret: str) -> str:
        return hmac.new(
            self._key, secret.encode("utf-8", "surrogatepass"), hashlib.sha256
        ).hexdigest()[:_DIGITS]


def _is_clean(texts: Sequence[str]) -> bool:
    hinted = _hinted("\n".join(texts))
    return not any(True for one in hinted for text in texts for _ in one.find(text))


def _redacted(text: str, marker: _Marker) -> Redacted:
    count = 0
    for _ in range(_MOST_ROUNDS):
        found = _found(text)
        if not found:
            break
        count += len(found)
        parts: list[str] = []
        at = 0
        for (start, end), kind in found:
            parts += [text[at:start], marker(kind, text[start:end])]
            at = end
        text = "".join([*parts, text[at:]])
    return Redacted(text, count)


def _found(text: str) -> list[tuple[Span, str]]:
    """Return the spans of a text's secrets in order, those that overlap joined; the first kind names them."""
    spans = [(span, one.kind) for one in _hinted(text) for span in one.find(text)]
    if spans:
        marked = {at for match in _MARKER.finditer(text) for at in range(*match.span())}
        spans = [(span, kind) for span, kind in spans if not {span[0], span[1] - 1} <= marked]
    spans.sort(key=lambda found: found[0])
    joined: list[tuple[Span, str]] = []
    for (start, end), kind in spans:
        if joined and start < joined[-1][0][1]:
            (first, last), before = joined[-1]
            joined[-1] = ((first, max(last, end)), before)
        else:
            joined.append(((start, end), kind))
    return joined


def _hinted(text: str) -> list[Detector]:
    """Return the detectors one of whose hints a text holds, in their order; one pass looks for all hints."""
    hints, places = _hints()
    found: list[int] = hints.Match(text.encode("utf-8", "replace")) or []
    every = _detectors()
    return [every[at] for at in sorted({at for hint in found for at in places[hint]})]


@cache
def _hints() -> tuple[Any, list[list[int]]]:
    """Return the hints as a set of RE2's, lower-case ones in any case, and of each the places of its detectors."""
    by_hint: dict[str, list[int]] = {}
    for at, one in enumerate(_detectors()):
        for hint in one.hints:
            by_hint.setdefault(hint, []).append(at)
    re2 = cast("Any", importlib.import_module("re2"))
    hints = re2.Set.SearchSet()
    for hint in by_hint:
        hints.Add(("(?i)" if hint.islower() else "") + re2.escape(hint))
    hints.Compile()
    return hints, list(by_hint.values())


@cache
def _detectors() -> tuple[Detector, ...]:
    """Return every detector; libraries are imported here (0.3 s), when the first text is looked at."""
    return (
        *known_keys(),
        *given_secrets(),
        *spoken_secrets(),
        *context_secrets(),
        *gitleaks(),
    )
