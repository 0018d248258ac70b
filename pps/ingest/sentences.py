"""English sentences as rules read them: split, plain in spelling, and silent where nothing is plainly said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pps.ingest.drafts import with_plain_links, without_code

LONGEST = 300
"""Characters of a sentence that is read: a longer one says nothing plainly."""

_MOST = 400
"""Sentences of a text that are read."""

_SENTENCE = re.compile(r"(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bProf\.)(?<=[.!?…])[\"')\]]*\s+|\n+")
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
    for who, plain, shorts in (("[Ii]", "I", "m=am ve=have ll=will"), ("([Ww]e)", r"\1", "re=are ve=have ll=will"))
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


def sentences(content: str) -> Iterator[Sentence]:
    """Yield the sentences of a text that may state something; code, quotes and questions are left out."""
    prose = with_plain_links(without_code(content)).replace("’", "'")
    greets = False
    for number, piece in enumerate(_SENTENCE.split(prose)):
        if number >= _MOST:
            return
        text = _MARKER.sub("", piece).strip().strip("*_ ")
        greets = _GREETING.match(text) is not None or (greets and number < 2)
        if 6 <= len(text) <= LONGEST and not text.startswith(">") and not re.search(r"[?\"“”«»`{}]", text):
            yield _read(text, greets)


def _read(text: str, greets: bool) -> Sentence:
    plain = _led_off(_spelled(text))
    if reported(plain):
        return Sentence(text, plain, (), greets)
    clauses = (_led_off(clause.strip()) for clause in _CLAUSE.split(plain))
    return Sentence(text, plain, tuple(map(_adverbs_off, clauses)), greets)


def unsure(clause: str) -> bool:
    """Tell whether a clause denies, wishes, guesses, or says what may be."""
    return _UNSURE.search(clause) is not None


def reported(text: str) -> bool:
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
