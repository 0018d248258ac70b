"""Where a text names a time: patterns by language. They find the words; reading them is ``time_reading``'s part.

Words that are mostly something else ("may", "march", "second", "fall") count only beside what makes
them a time: a preposition, a number, "last".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

LONGEST = 1_000
"""Characters of a text that are searched."""

_LONG = "january february march april may june july august september october november december"
_SHORT = "jan feb mar apr jun jul aug sept sep oct nov dec"
_MONTH = _LONG.replace(" ", "|")
_ANY_MONTH = rf"(?:{_MONTH}|(?:{_SHORT.replace(' ', '|')})\b\.?)"
_WEEKDAY = "(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_SEASON = "(?:spring|summer|autumn|fall|winter)"
_YEAR = r"(?:19|20)\d\d"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_COUNT = (
    r"\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:a )?few|several|a couple(?: of)?"
)
_PART = r"(?:early|mid|late|(?:the )?(?:beginning|start|middle|end) of)"
_BESIDE_MONTH = "in|since|during|before|after|until|till|around|last|next|past|previous"
_BESIDE_YEAR = "in|since|during|of|from|by|before|after|until|till|around|year"

_ENGLISH = (
    ("iso", r"\b\d{4}-\d{2}(?:-\d{2})?\b"),
    ("dotted", r"\b\d{1,2}\.\d{1,2}\.\d{4}\b"),
    ("nth_week", rf"\b(?:first|second|third|fourth|last) week (?:of|in) (?:{_MONTH})(?:,? {_YEAR})?\b"),
    ("date", rf"\b(?:{_DAY} (?:of )?{_ANY_MONTH}|{_ANY_MONTH} {_DAY}\b(?![:.]\d))(?:,? {_YEAR})?\b"),
    ("month", rf"\b(?:{_PART}[ -](?:in )?)?{_ANY_MONTH},? (?:of )?{_YEAR}\b"),
    ("month", rf"\b(?:(?:{_BESIDE_MONTH}|this (?!may|march))(?: {_PART})?|{_PART})[ -]?\b(?:{_MONTH})\b(?! \d)"),
    ("range", rf"\b(?:between|from) (?:{_MONTH})(?: {_YEAR})? (?:and|to|until|till) (?:{_MONTH})(?:,? {_YEAR})?\b"),
    ("range", rf"\b(?:between|from) {_YEAR} (?:and|to|until|till) {_YEAR}\b"),
    ("season", rf"\b(?:(?:last|this|next|past|previous|in|in the|during the|since) )?{_SEASON} (?:of )?{_YEAR}\b"),
    ("season", rf"\b(?:last|this|next|past|previous|in the|during the) {_SEASON}\b"),
    ("weekend", r"\b(?:last|this|past|previous|next) weekend\b"),
    ("window", rf"\b(?:the|these) (?:last|past) (?:(?:{_COUNT}) )?(?:day|week|month|year)s?\b"),
    ("ago", rf"\b(?:{_COUNT}) (?:day|week|month|year|decade)s? ago\b"),
    ("plain", r"\b(?:last|this|next|past|previous) (?:week|month|year|decade)\b"),
    ("plain", r"\b(?:day before yesterday|day after tomorrow|last night|this (?:morning|afternoon|evening))\b"),
    ("plain", r"\b(?:yesterday|today|tonight|tomorrow)\b"),
    ("weekday", rf"\b(?:on|last|this|past|previous|next|since|until|before|after) {_WEEKDAY}\b"),
    ("year", rf"\b(?:{_PART}|(?:{_BESIDE_YEAR})(?: {_PART})?) {_YEAR}\b(?! \w+s\b)"),
)


@dataclass(frozen=True, slots=True)
class _Tongue:
    """Another language: relative phrases, names of months, what stands before one, words that give a time away."""

    relative: str
    months: str
    before: str
    cues: str


_N = r"(?:\d{1,3}|\w{2,9})"
_LATIN: Mapping[str, _Tongue] = {
    "de": _Tongue(
        r"vorgestern|gestern|heute|(?:letzte|vorige|diese)[nrsm]? (?:woche|monat|jahr)"
        rf"|vor {_N} (?:tag|woche|monat|jahr)e?n?",
        "januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember",
        "im",
        "vorgestern gestern heute woche wochen monat monaten jahr jahren tag tagen",
    ),
    "fr": _Tongue(
        r"avant-hier|aujourd['’]hui|(?:la )?semaine dernière|(?:le )?mois dernier|l['’]année dernière"
        rf"|il y a {_N} (?:jours?|semaines?|mois|ans?)",
        "janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre",
        "en",
        "hier aujourd hui semaine semaines mois année jour jours an ans",
    ),
    "es": _Tongue(
        r"anteayer|ayer|hoy|la semana pasada|el mes pasado|el año pasado"
        rf"|hace {_N} (?:días?|semanas?|mes(?:es)?|años?)",
        "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre",
        "en",
        "anteayer ayer hoy semana semanas mes meses año años día días",
    ),
    "it": _Tongue(
        r"l['’]altro ieri|ieri|oggi|(?:la )?settimana scorsa|(?:il )?mese scorso|l['’]anno scorso"
        rf"|{_N} (?:giorn[io]|settiman[ae]|mes[ei]|ann[io]) fa",
        "gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre",
        "a|in|nel",
        "ieri oggi settimana settimane mese mesi anno anni giorno giorni",
    ),
    "pt": _Tongue(
        r"anteontem|ontem|hoje|(?:a )?semana passada|(?:o )?mês passado|(?:o )?ano passado"
        rf"|há {_N} (?:dias?|semanas?|mês|meses|anos?)",
        "janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro",
        "em",
        "anteontem ontem hoje semana semanas mês meses ano anos dia dias",
    ),
    "nl": _Tongue(
        r"eergisteren|gisteren|vandaag|vorige (?:week|maand)|vorig jaar"
        rf"|{_N} (?:dag(?:en)?|we(?:ek|ken)|maand(?:en)?|jaar) geleden",
        "januari|februari|maart|april|mei|juni|juli|augustus|september|oktober|november|december",
        "in",
        "eergisteren gisteren vandaag vorige vorig geleden",
    ),
}
_DENSE: Mapping[str, str] = {
    "ja": r"一昨日|昨日|今日|先々週|[先今]週|[先今]月|[去昨今]年|\d+(?:日|週間|か月|年)前"
    r"|\d{4}年(?:\d{1,2}月(?:\d{1,2}日)?)?|\d{1,2}月(?:\d{1,2}日)?",
    "zh": r"大前天|前天|昨天|今天|[上本]周|上个月|本月|\d+(?:天|周|个月)前",
    "ko": r"그저께|어제|오늘|지난\s?(?:주|달|해)|작년|\d+(?:일|주|개월|년) 전|\d{4}년 \d{1,2}월(?: \d{1,2}일)?",
}
_CUES = f"""
{_LONG} {_SHORT} monday tuesday wednesday thursday friday saturday sunday spring summer autumn fall winter weekend
week weeks month months year years decade decades day days ago yesterday today tonight tomorrow night morning
afternoon evening
"""
_WORD = re.compile(r"\w+")
_DENSE_SIGN = re.compile("[年月日天周週昨어오그작지]")


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that name a time, in lower case: where they stand, of what kind they are, and in which language."""

    text: str
    start: int
    end: int
    kind: str
    language: str


def names_time(text: str) -> bool:
    """Tell whether a text may name a time, by a look at its words; what costs more is only done then."""
    return _has_cue(text[:LONGEST].lower())


def phrases(text: str) -> list[Phrase]:
    """Return the phrases of a text that may name a time, in order; of those that overlap, the longest.

    A text without a word of time or a digit costs a look at its words and nothing else.
    """
    lowered = text[:LONGEST].lower()
    if not _has_cue(lowered):
        return []
    kept: list[Phrase] = []
    for one in sorted(_matches(lowered), key=lambda phrase: (phrase.start - phrase.end, phrase.start)):
        if all(one.end <= other.start or one.start >= other.end for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda phrase: phrase.start)


def _has_cue(lowered: str) -> bool:
    cues = _cues()
    if any(word in cues or word[0].isdigit() for word in _WORD.findall(lowered)):
        return True
    return not lowered.isascii() and _DENSE_SIGN.search(lowered) is not None


def _matches(lowered: str) -> Iterator[Phrase]:
    for kind, language, pattern in _patterns():
        for hit in pattern.finditer(lowered):
            yield Phrase(hit.group(), hit.start(), hit.end(), kind, language)


@cache
def _cues() -> frozenset[str]:
    words = _CUES.split()
    for tongue in _LATIN.values():
        words += [*tongue.months.split("|"), *tongue.cues.split()]
    return frozenset(words)


@cache
def _patterns() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    english = [(kind, "en", re.compile(pattern)) for kind, pattern in _ENGLISH]
    latin = [("plain", language, re.compile(_latin(tongue))) for language, tongue in _LATIN.items()]
    dense = [("plain", language, re.compile(pattern)) for language, pattern in _DENSE.items()]
    return (*english, *latin, *dense)


def _latin(tongue: _Tongue) -> str:
    of, month = "(?:de |del )?", f"(?:{tongue.months})"
    dated = rf"\d{{1,2}}(?:\.|er|º)? {of}{month}(?: {of}{_YEAR})?|{month} {of}{_YEAR}|(?:{tongue.before}) {month}"
    return rf"\b(?:{tongue.relative}|{dated})\b"
