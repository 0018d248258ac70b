"""Sentences and clauses of a person's text, and which of them state something plainly.

Questions, quotes, code, pasted documents, reports of what others say, conditions and guesses state
nothing. A clause comes with its contractions spelled out and without what leads in ("Hey", "By the
way", "Last May,").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pps.ingest.drafts import with_plain_links

Mood: TypeAlias = Literal["stated", "denied", "guessed"]
LONGEST_SENTENCE = 300
"""Most characters of a sentence that is read; a longer one states nothing plainly."""

MOST_SENTENCES = 400
"""Most pieces of a text that are looked at."""

_SHORTEST_SENTENCE = 6

_SENTENCE_END = re.compile(
    r"(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bProf\.)(?<!\bSt\.)"
    r"(?<!\bMt\.)(?<!\bvs\.)(?<!\bNo\.)"
    r"(?<!\b[A-Z]\.)(?<=[.!?…])[\"')\]]*\s+|\n+"
)
_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_CODE_SPAN = re.compile(r"`[^`\n]*`")
"""A removed span leaves a mark, so that its sentence is not read: it would have another meaning."""
_LIST_MARKER = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_NEVER_READ = re.compile(r"[?\"“”«»`{}]|\*\*|__|^[#>|]")
_SHOUTED = re.compile(
    r"\b(?:NEVER|ALWAYS|MUST|IMPORTANT|WARNING|NOTE|NOT|ONLY|REQUIRED|CRITICAL|STOP|PLEASE|SKIP"
    r"|EVERY|ALL|ANY|BEFORE|AFTER"
    r"|DO|DON'T|READ|THE|THIS|AND|ERROR|TODO|FIXME|CAUTION)\b"
)
_LABEL = re.compile(r"^(?!I |We |My |Our )(?:[A-Z][\w ]{0,20}|[a-z]+):\s")

# A pasted document or prompt: its sentences are not the person's.
_PROMPT = re.compile(r"^\s*(?:You are an? |You're an? |Act as |Given (?:an?|the) |# |<\w+>)")
_MARKDOWN_SIGN = re.compile(
    r"^[ \t]*(?:#{1,6} |\|[^\n|]*\||\*\*[^*\n]+\*\*|[-*] \*\*|---+[ \t]*$)", re.MULTILINE
)
_MARKDOWN_SIGNS = 2

_REPORTED = re.compile(
    r"[?\"“”„«»`{}<>=|\\]|(?:^|\s)['‘]|https?:|\b(?:if|unless|whether|imagine|pretend|suppose"
    r"|assuming"
    r"|hypothetically|says?|said|saying|tells?|told|heard|hear|claims?|claimed|mentioned"
    r"|according|apparently"
    r"|supposedly|reportedly|allegedly|rumou?rs?|wishe?s?|wished|dream(?:s|ed|t)?|joking|kidding"
    r"|for example|an example|example:|e\.g|as in"
    r"|puts it|fixture|haha|lol)\b|: (?:write|create|implement|generate|return|build|make|give)\b",
    re.IGNORECASE,
)
_GUESSED = re.compile(
    r"\b(?:(?i:maybe|perhaps|probably|possibly|likely)|might|may|could|would|should|must|think"
    r"|thinks|thought|guess|believe"
    r"|bet|doubt|almost|nearly|was going|wanted?|wants|hop(?:e|es|ed|ing)|whatever|whoever"
    r"|considering|about to"
    r"|until (?:I|we|he|she|they|you))\b|\w'd\b"
)
_DENIED = re.compile(
    r"\b(?:can|cannot|not|no|never|nobody|nothing|none|neither|nor|hardly|barely|used to|anymore"
    r"|any more|any longer)\b"
)
_SHARED_VERB = (
    r"(?:drive|live|work|use|prefer|like|have|own|started|bought|moved|joined|switched|got|adopted"
    r"|left|quit|sold|took|went|hate|love|am|are)"
)
"""Verbs that follow "and" without a subject of their own: "I sold the car and drive a bike"."""
_CLAUSE_END = re.compile(
    r"\s*;\s+|\s+[—–-]+\s+|,?\s+(?:but|and|so|because|although|though|while|since|yet|plus)\s+"
    r"(?=(?:I|we|We|my|My|our|he|she|it|they|you|this|that|there|her|his|their|here|even"
    rf"|now(?! {_SHARED_VERB}\b))\b"
    r"|[A-Z]\w+ (?:is|has|lives|likes|loves|hates|works|owns)\b|please (?:never|always)\b|never\b)"
    r"|,\s+so\s+|,\s+(?=(?:last|this|since|in|on) \w+ (?:I|we) )|,\s+(?=(?:he|she|it(?!(?: is|'s) "
    r"\+?\d)|they|his|her|their|I|we) |the old (?:one|number)\b)"
)
_SHARED_SUBJECT = re.compile(
    r"^(?P<first>(?P<subject>I|[Ww]e)(?: have| am| are)? .+?),? and "
    rf"(?P<rest>(?:now |then |have )?{_SHARED_VERB}\b .+)$"
)

_NAMED = r"[A-Z][\w'-]+(?: [A-Z][\w'-]+)?"
_SOMEBODY_AND_I = re.compile(rf"^(?:[Mm]y \w+|{_NAMED}) and I ")
_SPELLED_OUT = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"\b[Ii]'?m\b(?=[ ,])", "I am"),
        (r"\b[Ii]'ve\b", "I have"),
        (r"\b[Ii]'ll\b", "I will"),
        (r"\b([Ww]e)'re\b", r"\1 are"),
        (r"\b([Ww]e)'ve\b", r"\1 have"),
        (r"\b([Ww]e)'ll\b", r"\1 will"),
        (r"\b(name|birthday|number|budget|deadline)'s (?=[\w])", r"\1 is "),
        (r"\b([Cc])an't\b", r"\1an not"),
        (r"\b([Ww])on't\b", r"\1ill not"),
        (r"\b(\w+)n't\b", r"\1 not"),
        (r"\bdont\b", "do not"),
    )
)
_LOWER_I = re.compile(r"\bi(?= )")
_ADVERBS = re.compile(
    r"^(?P<who>(?:I|[Ww]e|[A-Z]\w+)(?: (?:am|is|are|have|has))?) (?P<adverb>now|also|still|just"
    r"|really|currently"
    r"|absolutely|actually"
    r"|finally|already|recently|only|both|totally|definitely) "
)
_SAYS_OTHERWISE = re.compile(r" now\b| instead\b| rather than |, not ")
_TIME_LED = (
    r"(?:[Ll]ast|[Tt]his|[Nn]ext|[Ss]ince|[Bb]ack in) \w+|[Ii]n (?:(?:early|late|mid) "
    r")?(?:[A-Z]\w+ )?\d{4}"
    r"|(?:[Ff]rom|[Ss]tarting(?: from| on)?|[Aa]s (?:of|from)) (?:next \w+|tomorrow"
    r"|(?:\d{1,2} )?[A-Z]\w+(?: \d{1,2})?(?:,? \d{4})?)"
    r"|[Oo]n [A-Z]\w+(?: \d{1,2})?|[Ii]n [A-Z]\w+|(?:[Aa]|[Tt]wo|[Tt]hree|\d+) \w+ ago"
    r"|(?i:yesterday|today|tomorrow|recently)"
)
_BEFORE_SPEAKER = r"(?=(?:I|[Mm]y|[Ww]e|[Oo]ur)\b)"
_LEAD = re.compile(
    rf"^(?:(?i:hey|hi|hello)(?i: there| all| everyone| team)[,!.]? |(?i:hey|hi|hello|thanks|thank "
    rf"you|yes|wow|oh|good morning|dear) {_NAMED}(?:[,!.:] |\s{_BEFORE_SPEAKER})"
    r"|(?i:hey|hi|hello|oh|ah|well|so|yeah|yes|yep|yup|nope|no|ok|okay|btw|by the way|also|and"
    r"|but|actually|currently"
    r"|right now|now|nowadays|these days|honestly|personally|fun fact|fyi|anyway|plus|wow|haha"
    r"|lol|sure|thanks|update"
    r"|good news|bad news|sad news|as you know|for the record|of course|just so you know|from now "
    r"on|going forward"
    r"|please|in general|turns out|it turns out|sorry|correction|small correction|heads up|quick "
    r"update|note"
    r"|remember that|remember|in the end|unfortunately|sadly|change of plans?|plans? changed|news"
    r"|quick correction)"
    rf"(?:[,!:]+\s*|\s)|(?:{_TIME_LED})(?:,\s*|\s{_BEFORE_SPEAKER})|{_NAMED}, {_BEFORE_SPEAKER})"
)
_GREETING = re.compile(r"^(?:hey|hi|hello|good (?:morning|evening|afternoon))\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a sentence.

    Attributes:
        text: Its words, contractions spelled out, without what leads in.
        mood: ``denied`` can end facts; ``guessed`` cannot. Both name people in passing ("my sister
            Ana").
        dated: Its words with what leads in, which may name its time: "from Monday I work there".
    """

    text: str
    mood: Mood
    dated: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence that may state something.

    Attributes:
        text: Its own words.
        plain: The same with contractions spelled out.
        led_off: ``plain`` without what leads in.
        clauses: Those that state or deny something plainly; empty when the sentence reports
            or supposes.
        greets: It opens, or follows, a greeting: "I'm Nadia" is a name there.
        whole: It is one clause, so that a date anywhere in it belongs to what it states.
    """

    text: str
    plain: str
    led_off: str
    clauses: tuple[Clause, ...]
    greets: bool
    whole: bool


def read_sentences(content: str) -> Iterator[Sentence]:
    """Yield the sentences of a text that may state something, at most ``MOST_SENTENCES``."""
    prose = with_plain_links(_CODE_SPAN.sub("`", _CODE_BLOCK.sub("\n", content))).replace("’", "'")
    if _is_pasted(prose):
        return
    greets = False
    for number, piece in enumerate(_SENTENCE_END.split(prose)):
        if number >= MOST_SENTENCES:
            return
        text = _LIST_MARKER.sub("", piece).strip()
        greets = _GREETING.match(text) is not None or (greets and number < 2)
        if not _SHORTEST_SENTENCE <= len(text) <= LONGEST_SENTENCE:
            continue
        if _NEVER_READ.search(text) or _SHOUTED.search(text):
            continue
        yield _read_sentence(text.strip("*_ "), greets)


def is_reported(text: str) -> bool:
    """Tell whether a text reports another person's words, or holds only under a condition."""
    return _REPORTED.search(text) is not None


def spelled_out(text: str) -> str:
    """Return a text with its contractions as whole words: "I'm" is "I am", "don't" is "do not"."""
    for pattern, plain in _SPELLED_OUT if "'" in text or "dont" in text or "m " in text else ():
        text = pattern.sub(plain, text)
    return _LOWER_I.sub("I", text)


def without_lead(text: str) -> str:
    """Return a text without the words that lead in: "Hey Ana, by the way, I moved" is "I moved"."""
    for _ in range(3):
        rest = _LEAD.sub("", text)
        if rest == text:
            break
        text = rest
    return text


def _is_pasted(prose: str) -> bool:
    if _PROMPT.match(prose):
        return True
    signs = _MARKDOWN_SIGN.finditer(prose)
    return sum(1 for _, _ in zip(signs, range(_MARKDOWN_SIGNS), strict=False)) == _MARKDOWN_SIGNS


def _read_sentence(text: str, greets: bool) -> Sentence:
    plain = spelled_out(text)
    led_off = without_lead(plain)
    if is_reported(led_off) or _LABEL.match(led_off):
        return Sentence(text, plain, led_off, (), greets, whole=True)
    is_of_two = _SOMEBODY_AND_I.match(led_off) is not None
    pieces = [led_off] if is_of_two else [piece.strip() for piece in _CLAUSE_END.split(led_off)]
    pieces[0] = plain.removesuffix(led_off) + pieces[0]
    clauses = [clause for piece in pieces for clause in _clauses_of(piece)]
    return Sentence(text, plain, led_off, tuple(clauses), greets, whole=len(clauses) == 1)


def _clauses_of(piece: str) -> list[Clause]:
    """Return the clauses of a piece of a sentence: one, or those that share its subject."""
    texts = [text for text in _with_shared_subject(without_lead(piece)) if text]
    return [
        Clause(_without_adverbs(text), _mood(text), piece if len(texts) == 1 else text)
        for text in texts
    ]


def _mood(clause: str) -> Mood:
    if _GUESSED.search(clause):
        return "guessed"
    return "denied" if _DENIED.search(clause) else "stated"


def _with_shared_subject(clause: str) -> tuple[str, ...]:
    """Return "I sold the car and drive a bike" as "I sold the car" and "I drive a bike"."""
    match = _SHARED_SUBJECT.match(clause)
    if match is None:
        return (clause,)
    return match["first"], f"{match['subject']} {match['rest']}"


def _without_adverbs(clause: str) -> str:
    for _ in range(2):
        match = _ADVERBS.match(clause)
        if match is None:
            break
        rest = clause[match.end() :]
        # "I now use Zed" is a change as "I use Zed now" is.
        is_now = match["adverb"] == "now" and not _SAYS_OTHERWISE.search(rest)
        clause = f"{match['who']} {rest.rstrip(' .!')} now" if is_now else f"{match['who']} {rest}"
    return clause
