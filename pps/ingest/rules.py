"""*rules* extraction: what a person's sentence says plainly, as facts; offline, deterministic, silent when in doubt.

A fact's text is the sentence, and a date in it its ``valid_at``, read against the turn's own wall clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from itertools import islice

from pps.core.time import CoarseTime, Span, coarse, has_begun, months_on, wall
from pps.core.time_reading import read_times
from pps.core.values import (
    CorrectionDraft,
    EndingDraft,
    FactDraft,
    NodeDraft,
    Turn,
    local_time,
)
from pps.ingest import phrasing as said
from pps.ingest.drafts import with_plain_links, without_code
from pps.ingest.relations import KIN, RELATIONS

USER = "User"
"""The node that "I" stands for where nobody is named as the speaker; "My name is Nadia" gives it an alias."""

_ROLE = "user"
_DAY = timedelta(days=1)
_OVER = re.compile(r"\b(?:last|ago|past|yesterday|\d{4})\b")
_MOST = 64
"""Statements of one text that are taken: reading the dates of more would hold others up."""


_LONGEST = 300
"""Characters of a sentence that is read: a longer one says nothing plainly."""

_MOST_SENTENCES = 400
"""Sentences of a text that are read."""

_SENTENCE = re.compile(
    r"(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bProf\.)(?<=[.!?…])[\"')\]]*\s+|\n+"
)
_MARKER = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
# Questions, quotes, code, other people's words, and what holds only under a condition.
_UNSAID = re.compile(
    r"[?\"“”„«»`{}<>=|\\]|(?:^|\s)['‘]|https?:|\b(?:if|unless|whether|imagine|pretend|suppose|assuming|hypothetically"
    r"|says?|said|saying|tells?|told|heard|hear|claims?|claimed|mentioned|according|apparently|supposedly|reportedly"
    r"|allegedly|rumou?rs?|wishe?s?|wished|dream(?:s|ed|t)?|joking|kidding|example|e\.g)\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|likely|might|may|could|would|should|must|can|cannot|think|thinks|thought"
    r"|guess|believe|bet|doubt|not|no|never|nobody|nothing|none|neither|nor|hardly|barely|used to|anymore|almost"
    r"|nearly|was going|wanted?|wants|hop(?:e|es|ed|ing)|whatever|whoever"
    r"|until (?:I|we|he|she|they|you))\b|n't\b|\w'd\b"
)
_CLAUSE = re.compile(
    r"\s*;\s+|\s+[—–-]+\s+|,?\s+(?:but|and|so|because|although|though|while|since|yet|plus)\s+"
    r"(?=(?:I|we|We|my|My|our|he|she|it|they|you|this|that|there|her|his|their|here|even|now)\b"
    r"|[A-Z]\w+ (?:is|has|lives|likes|loves|hates|works|owns)\b|please (?:never|always)\b)"
    r"|,\s+(?=(?:he|she|it|they|his|her|their) )"
)
_PLAIN = tuple(
    (re.compile(rf"\b{who}'{short}\b"), rf"{plain} {verb}")
    for who, plain, shorts in (
        ("[Ii]", "I", "m=am ve=have ll=will"),
        ("([Ww]e)", r"\1", "re=are ve=have ll=will"),
    )
    for short, _, verb in (one.partition("=") for one in shorts.split())
)
_I = re.compile(r"\bi(?= )")
_ADVERB = re.compile(r"^((?:I|[Ww]e|[A-Z]\w+)(?: (?:am|is|are|have|has))?) (?:now|also|still|just|really|currently|"
                     r"absolutely|actually|finally|already|recently|only|both|totally|definitely) ")  # fmt: skip
_TIME = (
    r"(?:[Ll]ast|[Tt]his|[Nn]ext) \w+|[Ii]n (?:(?:early|late|mid) )?(?:[A-Z]\w+ )?\d{4}|[Oo]n [A-Z]\w+(?: \d{1,2})?"
    r"|[Ii]n [A-Z]\w+|(?:[Aa]|[Tt]wo|[Tt]hree|\d+) \w+ ago|(?i:yesterday|today|tomorrow|recently)"
)
_NAMED = r"[A-Z][\w'-]+(?: [A-Z][\w'-]+)?"
_FIRST = r"(?=(?:I|[Mm]y|[Ww]e|[Oo]ur)\b)"
_LEAD = re.compile(
    rf"^(?:(?i:hey|hi|hello|thanks|thank you|yes|wow|oh|good morning|dear) {_NAMED}(?:[,!.:] |\s{_FIRST})"
    r"|(?i:hey|hi|hello|oh|ah|well|so|yeah|yes|yep|yup|nope|no|ok|okay|btw|by the way|also|and|but|actually|currently"
    r"|right now|now|nowadays|these days|honestly|personally|fun fact|fyi|anyway|plus|wow|haha|lol|sure|thanks|update"
    r"|good news|as you know|for the record|of course|just so you know|from now on|going forward|please|in general)"
    rf"(?:[,!:]+\s*|\s)|(?:{_TIME})(?:,\s*|\s{_FIRST})|{_NAMED}, {_FIRST})"
)
_GREETING = re.compile(r"^(?:hey|hi|hello|good (?:morning|evening|afternoon))\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Found:
    """What the rules found in one turn: nodes, facts, what ends facts, and what puts the fact before it right."""

    nodes: tuple[NodeDraft, ...] = ()
    facts: tuple[FactDraft, ...] = ()
    endings: tuple[EndingDraft, ...] = ()
    corrections: tuple[CorrectionDraft, ...] = ()


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: as it was said, and as it is read.

    Attributes:
        text: Its own words.
        plain: Without what leads in, its contractions spelled out.
        clauses: Those that state something plainly; empty when the sentence states nothing.
        greets: It opens, or follows, a greeting: "I'm Nadia" is a name there.
    """

    text: str
    plain: str
    clauses: tuple[str, ...]
    greets: bool


@dataclass(frozen=True, slots=True)
class _Triple:
    """What a clause says; ``instead`` is what it says no more, ``kind`` that of the object where it is known."""

    subject: str
    relation: str
    object: str
    instead: str = ""
    kind: str = ""


def extract(turn: Turn, zone: tzinfo = UTC) -> Found:
    """Return the nodes and facts that a turn's words state; its dates are those of its offset, else of ``zone``.

    Only what people say is read: turns of role ``user``. "I" is the turn's actor, else ``USER``; a document's
    "I" is nobody that is known, and gives nothing.
    """
    if turn.role != _ROLE or not said.may_state(turn.content):
        return Found()
    speaker = "" if turn.chunk else turn.actor or USER
    nodes: dict[str, NodeDraft] = {}
    facts: dict[tuple[str, str, str], FactDraft] = {}
    stated = (
        (*one, sentence)
        for sentence in _sentences(turn.content)
        for one in _stated(sentence, speaker)
    )
    for triple, clause, sentence in islice(stated, _MOST):
        fact = _fact(triple, sentence, clause, local_time(turn, zone))
        if (
            fact is not None
            and facts.setdefault((fact.subject, fact.relation, fact.object), fact) is fact
        ):
            for node in _nodes(triple):
                known = nodes.setdefault(node.name, node)
                nodes[node.name] = replace(
                    known, aliases=tuple(dict.fromkeys((*known.aliases, *node.aliases)))
                )
    return Found(tuple(nodes.values()), tuple(facts.values()))


def _stated(sentence: Sentence, speaker: str) -> Iterator[tuple[_Triple, str]]:
    if speaker and (order := said.ORDER.match(sentence.plain)):
        what = said.PLEASE.sub("", order["what"]).rstrip(" .!")
        if len(what.split()) <= said.MOST_WORDS and not _reported(what.partition(" ")[2]):
            yield _Triple(speaker, order["when"].upper(), what), ""
        return
    for clause in sentence.clauses:
        kept, instead = said.without_other(clause)
        doubtful = _unsure(kept)
        yield from (
            (triple, kept) for triple in _kin(kept, speaker, said.KIN[: 1 if doubtful else None])
        )
        if doubtful:  # "my sister Ana" is said of her whatever else is denied
            continue
        kept = said.KIN_LEAD.sub(r"\1", kept)
        for name, pattern in _patterns() if said.has_subject(kept) else ():
            if (match := pattern.match(kept)) and (who := _who(match, speaker)):
                triples = list(_triples(name, match, who, sentence))
                yield from ((replace(one, instead=instead), kept) for one in triples)
                if triples:
                    break


def _who(match: re.Match[str], speaker: str) -> str:
    who = match.groupdict().get("who") or "I"
    if who.lower() in ("i", "we", "my", "our"):
        return speaker
    return "" if said.is_no_name(who) else who


def _kin(clause: str, speaker: str, patterns: Sequence[re.Pattern[str]]) -> Iterator[_Triple]:
    """Yield those that a clause names as somebody's: "my sister Ana", "Ana is Leo's sister"."""
    for pattern in patterns:
        for match in pattern.finditer(clause):
            of, name = match.groupdict().get("of") or speaker, said.bare_name(match["name"])
            if of and not said.is_no_name(name) and not said.is_no_name(of):
                yield _Triple(name, KIN[match["kin"].lower()], of)
    for pattern in said.PETS if speaker else ():
        for match in pattern.finditer(clause):
            for name in said.names_in(match["name"]):
                yield _Triple(speaker, "HAS", name, kind="Animal")


def _triples(name: str, match: re.Match[str], who: str, sentence: Sentence) -> Iterator[_Triple]:
    """Yield what a clause says that matched the pattern of a relation or of a way to read."""
    groups = match.groupdict()
    what = groups.get("what") or ""
    if read := _READINGS.get(name):
        yield from read(match, who, sentence)
    elif name in _LISTS:
        yield from (_Triple(who, name, one) for one in said.things(what))
    elif name in _PLACES:
        bare = said.bare_name(what)
        if place := groups.get("where") or ("" if said.is_no_name(bare) else bare):
            yield _Triple(who, name, place)
    elif name.startswith(_OF_A_THING):
        if not said.is_vague(match["thing"]):
            yield _Triple(match["thing"], name.removeprefix(_OF_A_THING), what)
    elif one := what if name == "BORN_ON" else said.thing(what):
        yield _Triple(who, name, one)


def _work(match: re.Match[str], who: str, _: Sentence) -> Iterator[_Triple]:
    job, place = match["job"], match["place"]
    if said.BOASTS.search(job):
        return
    yield _Triple(who, "WORKS_AS", job)
    if place:
        yield _Triple(who, "WORKS_AT", said.bare_name(place))


def _pet(match: re.Match[str], who: str, _: Sentence) -> Iterator[_Triple]:
    kin = KIN.get(match["what"].split()[-1].lower().removesuffix("s"))
    for name in said.names_in(match["name"]):
        animal = said.ANIMAL.search(match["what"]) is not None
        yield (
            _Triple(name, kin, who)
            if kin
            else _Triple(who, "HAS", name, kind="Animal" if animal else "")
        )


def _name(match: re.Match[str], who: str, sentence: Sentence) -> Iterator[_Triple]:
    name = match["what"]
    if (
        (sentence.greets or match["sure"] is not None)
        and not said.is_no_name(name)
        and not said.PEOPLE.search(name)
    ):
        yield _Triple(who, "NAMED", name)


def _plan(match: re.Match[str], who: str, _: Sentence) -> Iterator[_Triple]:
    if what := said.planned(match["what"]):
        yield _Triple(who, "PLANS", what)


def _decided(match: re.Match[str], who: str, _: Sentence) -> Iterator[_Triple]:
    if chosen := said.CHOICE.match(match["what"]):
        if chosen["loose"] is None or re.search(r"[A-Z]", chosen["what"]):
            yield from (_Triple(who, "USES", what) for what in said.things(chosen["what"]))
    elif what := said.decided(match["what"]):
        yield _Triple(who, "DECIDED", what)


_OF_A_THING = "of a thing "
_LISTS = ("LIKES", "DISLIKES", "ALLERGIC_TO", "SPEAKS", "USES")
_PLACES = ("LIVES_IN", "FROM", "WORKS_AT", "MARRIED_TO", "KNOWS")
_READINGS: Mapping[str, Callable[[re.Match[str], str, Sentence], Iterator[_Triple]]] = {
    "name": _name,
    "work": _work,
    "named": _pet,
    "plan": _plan,
    "decision": _decided,
}


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return every pattern with how it is read; the first that finds something in a clause has it."""
    return tuple((name, re.compile(pattern)) for name, pattern in said.STATEMENTS)


def _fact(triple: _Triple, sentence: Sentence, clause: str, at: datetime) -> FactDraft | None:
    """Return the fact of a triple; None for a plan without a day to come."""
    ahead = triple.relation == "PLANS"
    where = sentence.text if len(sentence.clauses) == 1 else clause
    since = _since(where, at, ahead=ahead) if RELATIONS[triple.relation].dated else None
    if ahead and since is None:
        return None
    instead = (f"{triple.subject} {triple.relation} {triple.instead}",) if triple.instead else ()
    return FactDraft(
        triple.subject, triple.relation, triple.object, sentence.text, since, invalidates=instead
    )


def _since(text: str, at: datetime, *, ahead: bool) -> CoarseTime | None:
    """Return the beginning of the first time that a text names: to come, or else not after the text itself."""
    starts = [
        start
        for span in read_times(text, at)
        if (start := _start(span, at, ahead=ahead)) is not None
    ]
    return starts[0] if starts else None


def _start(span: Span, at: datetime, *, ahead: bool) -> CoarseTime | None:
    start, today = span.began(), coarse(wall(at).date())
    if start is None or not ahead:
        return start if start is None or has_begun(start, at) else None
    if start < today and not _OVER.search(span.text):  # "on Friday" is the next one
        following = (
            start + 7 * _DAY
            if span.grain == "day" and not re.search(r"\d", span.text)
            else months_on(start, 12)
        )
        start = coarse(following.date(), start.precision)
    return start if start >= today else None


def _nodes(triple: _Triple) -> Iterator[NodeDraft]:
    ends = RELATIONS[triple.relation]
    alias = (triple.object,) if triple.relation == "NAMED" else ()
    yield NodeDraft(triple.subject, ends.subject, aliases=alias)
    if not alias:
        yield NodeDraft(triple.object, triple.kind or ends.object)


def _sentences(content: str) -> Iterator[Sentence]:
    """Yield the sentences of a text that may state something; code, quotes and questions are left out."""
    prose = with_plain_links(without_code(content)).replace("’", "'")
    greets = False
    for number, piece in enumerate(_SENTENCE.split(prose)):
        if number >= _MOST_SENTENCES:
            return
        text = _MARKER.sub("", piece).strip().strip("*_ ")
        greets = _GREETING.match(text) is not None or (greets and number < 2)
        if (
            6 <= len(text) <= _LONGEST
            and not text.startswith(">")
            and not re.search(r"[?\"“”«»`{}]", text)
        ):
            yield _read(text, greets)


def _read(text: str, greets: bool) -> Sentence:
    plain = _led_off(_spelled(text))
    if _reported(plain):
        return Sentence(text, plain, (), greets)
    clauses = (_led_off(clause.strip()) for clause in _CLAUSE.split(plain))
    return Sentence(text, plain, tuple(map(_adverbs_off, clauses)), greets)


def _unsure(clause: str) -> bool:
    """Tell whether a clause denies, wishes, guesses, or says what may be."""
    return _UNSURE.search(clause) is not None


def _reported(text: str) -> bool:
    """Tell whether words are somebody else's, or hold only under a condition."""
    return _UNSAID.search(text) is not None


def _spelled(text: str) -> str:
    for pattern, plain in _PLAIN:
        text = pattern.sub(plain, text)
    return _I.sub("I", text)


def _led_off(text: str) -> str:
    for _ in range(3):
        rest = _LEAD.sub("", text)
        if rest == text:
            break
        text = rest
    return text


def _adverbs_off(clause: str) -> str:
    for _ in range(2):
        clause = _ADVERB.sub(r"\1 ", clause)
    return clause
