"""Redaction: secrets are replaced with a marker before anything is kept.

Pure functions on values. What a marker in a text stood for is nowhere: neither its length nor a digest of it is
kept. A marker in an identifier has a digest, under a key of the entity, so that one stays one and two stay two.
"""

from __future__ import annotations

import hashlib
import hmac
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import TypeAlias

from pps.core.errors import InvalidRequest
from pps.core.values import JSON, FactDraft, NodeDraft
from pps.ingest.detecting import Detector, Span
from pps.ingest.detectors import detectors

_MOST_ROUNDS = 4
_DIGITS = 16
_COMMON = "zqjxkvbpygfwmucldrhsnioate- "
"""Signs by how often they are in texts and identifiers, the rarest first; all others are rarer."""
_MOST_IDENTIFIER = 200
_Marker: TypeAlias = Callable[[str, str], str]
_Hint: TypeAlias = tuple[str, list[int]]
_Hints: TypeAlias = tuple[list[_Hint], list[_Hint]]
_BySign: TypeAlias = list[tuple[str, list[_Hint]]]


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and how many there were."""

    text: str
    count: int = 0


def redact(text: str) -> Redacted:
    """Return a text with each secret replaced by ``[redacted: KIND]``; what is redacted again stays as it is.

    Cheap when there is none: a detector looks only at a text that holds one of its hints.
    """
    return _redacted(text, _marker)


def spans(text: str) -> list[Span]:
    """Return where a text's secrets begin and end, in order."""
    return [span for span, _ in _found(text)]


def whole(text: str, at: int) -> int:
    """Return the place nearest before ``at`` where a text can be cut without cutting a secret in two.

    Half a secret is known as none: what is cut before it is redacted must be cut beside it.
    """
    return next((start for start, end in spans(text) if start < at < end), at) if len(text) > at else at


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
    """Redacts the parts of one request and counts what it found; or lets all through when it is off.

    Attributes:
        count: Secrets replaced so far.
    """

    __slots__ = ("_on", "count")

    def __init__(self, *, on: bool) -> None:
        self._on = on
        self.count: int = 0

    def text(self, text: str) -> str:
        """Return a text without its secrets."""
        if not self._on or not text:
            return text
        found = redact(text)
        self.count += found.count
        return found.text

    def texts(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Return texts without their secrets."""
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
            raise InvalidRequest(field, "holds what looks like a secret, and it is kept as it is: name it without")

    def attributes(self, attributes: Mapping[str, JSON]) -> dict[str, JSON]:
        """Return attributes without secrets, in names and values, also what only its name shows to be one."""
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

    def facts(self, facts: Sequence[FactDraft]) -> tuple[FactDraft, ...]:
        """Return facts without secrets; InvalidRequest when a relation holds one.

        Texts of facts to replace are redacted as those were. Nearly every fact is clean: those that hold a hint are
        found in all texts at once.
        """
        if not self._on:
            return tuple(facts)
        texts = ["\n".join(_texts(fact)) for fact in facts]
        hints = _held("\n".join(texts))
        clean = list(facts)
        for at in _holding(texts, hints):
            if not _is_clean(_texts(facts[at]), hints):
                self.label(f"facts[{at}].relation", facts[at].relation)
                clean[at] = self._fact(facts[at])
        return tuple(clean)

    def _fact(self, fact: FactDraft) -> FactDraft:
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
            return [self._value(one, name) for one in value]
        return value


class KeyedRedactor(Redactor):
    """Redacts the parts of one request to one entity, also the identifiers by which a caller knows a text.

    Args:
        key: Of the entity alone: without it nothing can be told of a secret by its digest.
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
        found = _redacted(given, self._keyed_marker)
        self.count += found.count
        fits = not found.count or len(found.text) <= _MOST_IDENTIFIER
        return found.text if fits else f"[redacted: {self._digest(given)}]"

    def known_text(self, text: str, *identifiers: str) -> tuple[str, ...]:
        """Return a text and its identifiers without their secrets; what hints at one is looked for in all at once."""
        if not self._on or _is_clean((text, *identifiers)):
            return text, *identifiers
        return self.text(text), *map(self.identifier, identifiers)

    def _keyed_marker(self, kind: str, secret: str) -> str:
        return f"[redacted: {kind} {self._digest(secret)}]"

    def _digest(self, secret: str) -> str:
        return hmac.new(self._key, secret.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:_DIGITS]


def _texts(fact: FactDraft) -> tuple[str, ...]:
    return (fact.subject, fact.relation, fact.object, fact.text, *fact.invalidates)


def _is_clean(texts: Sequence[str], hints: _Hints | None = None) -> bool:
    hinted = _hinted("\n".join(texts), hints)
    return not any(True for one in hinted for text in texts for _ in one.find(text))


def _holding(texts: Sequence[str], hints: _Hints) -> list[int]:
    """Return the places of the texts that hold one of the hints, in order."""
    folded, exact = hints
    found: set[int] = set()
    for some, these in (([text.lower() for text in texts] if folded else [], folded), (texts, exact)):
        whole = "\n".join(some)
        ends = list(accumulate(len(text) + 1 for text in some))
        for hint, _ in these:
            at = whole.find(hint)
            while at >= 0:
                place = bisect_right(ends, at)
                found.add(place)
                at = whole.find(hint, ends[place])
    return sorted(found)


def _redacted(text: str, marker: _Marker) -> Redacted:
    count = 0
    for _ in range(_MOST_ROUNDS):
        found = _found(text)
        if not found:
            break
        count += len(found)
        text = _replaced(text, found, marker)
    return Redacted(text, count)


def _found(text: str) -> list[tuple[Span, str]]:
    """Return the spans of a text's secrets in order, those that overlap joined; the first kind names them."""
    spans = [(span, one.kind) for one in _hinted(text) for span in one.find(text)]
    spans.sort(key=lambda found: found[0])
    joined: list[tuple[Span, str]] = []
    for (start, end), kind in spans:
        if joined and start < joined[-1][0][1]:
            (first, last), before = joined[-1]
            joined[-1] = ((first, max(last, end)), before)
        else:
            joined.append(((start, end), kind))
    return joined


def _hinted(text: str, hints: _Hints | None = None) -> list[Detector]:
    """Return the detectors one of whose hints a text holds, in their order; each hint is looked for once."""
    every = detectors()
    return [every[at] for at in sorted({at for some in _held(text, hints) for _, ats in some for at in ats})]


def _held(text: str, hints: _Hints | None = None) -> _Hints:
    """Return those of the hints, or of all, that a text holds."""
    lower = text.lower()
    folded, exact = hints or tuple(_likely(some, by) for some, by in zip((lower, text), _by_sign(), strict=True))
    return [one for one in folded if one[0] in lower], [one for one in exact if one[0] in text]


def _likely(text: str, by_sign: _BySign) -> list[_Hint]:
    return [one for sign, some in by_sign if sign in text for one in some]


@cache
def _by_sign() -> tuple[_BySign, _BySign]:
    """Return the hints that any case fits and those that are exact, each with the places of its detectors.

    They stand by their rarest sign: most texts hold few of the signs, so few of the hints are looked for.
    """
    places: dict[str, list[int]] = {}
    for at, one in enumerate(detectors()):
        for hint in one.hints:
            places.setdefault(hint, []).append(at)
    found: tuple[dict[str, list[_Hint]], dict[str, list[_Hint]]] = {}, {}
    for hint, ats in places.items():
        sign = min(hint, key=_COMMON.find)
        found[not hint.islower()].setdefault(sign, []).append((hint, ats))
    return list(found[0].items()), list(found[1].items())


def _marker(kind: str, _: str) -> str:
    return f"[redacted: {kind}]"


def _replaced(text: str, found: Sequence[tuple[Span, str]], marker: _Marker) -> str:
    parts: list[str] = []
    at = 0
    for (start, end), kind in found:
        parts += [text[at:start], marker(kind, text[start:end])]
        at = end
    return "".join([*parts, text[at:]])
