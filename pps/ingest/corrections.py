"""Corrections of the sentence before: "Actually no, it's Turin.", "I meant Tuesday"."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pps.core.relation_table import relation_key
from pps.core.values import CorrectionDraft
from pps.ingest import vocabulary as words
from pps.ingest.relations import KIN
from pps.ingest.sentences import Sentence

_VALUE = r"(?:[^,.;!]|(?<=\d)[,.](?=\d)){1,60}?"
_CORRECTS = re.compile(
    r"^(?:(?P<cue>(?:(?:actually|no|nope|sorry|oops|wait|hmm|hm|correction|my mistake|scratch "
    r"that)[,.!:;]*\s+)+)"
    r"(?:(?P<is>it is|it's|that's|that is)\s+|(?P<means>I meant|I mean|that should be)\s+"
    r"|(?P<makes>make (?:that|it))\s+"
    r"|(?:s?he|they) (?P<verb>lives? in|works? (?:at|for)|drives?)\s+)?"
    r"|(?P<meant>I meant)\s+)"
    rf"(?P<whole>(?:on |in |at )?(?P<right>{_VALUE}))"
    rf"(?:,? (?:and )?not (?:on |in |at )?(?P<wrong>{_VALUE}))?[.!]*$",
    re.IGNORECASE,
)
_DAY_RELATIONS = ("HAPPENS_ON", "BORN_ON", "DUE_ON")
_PLACE_RELATIONS = ("LIVES_IN", "FROM")
_PRODUCT_RELATIONS = (
    "USES",
    *(
        f"FAVOURITE_{topic}"
        for topic in ("EDITOR", "LANGUAGE", "TOOL", "FRAMEWORK", "DATABASE", "APP", "BROWSER")
    ),
)
_NAME_RELATIONS = (
    "WORKS_AT",
    "MARRIED_TO",
    "IS_CALLED",
    "HAS",
    "NAMED",
    "FAVOURITE_*",
    *sorted(set(KIN.values())),
)
_AMOUNT_RELATIONS = ("HAS_VALUE", "IS", "COSTS", "HAS_BUDGET")
_ANY_SINGLE_VALUED: tuple[str, ...] = ()
_MOST_WORDS = 3

_Reader = tuple[Callable[[str], str], tuple[str, ...]]


def _read_whole_product(text: str) -> str:
    return text if words.is_product(text) else ""


def _read_whole_name(text: str) -> str:
    name = words.read_name(text)
    return name if name == text and words.is_person(name) else ""


def _read_whole_thing(text: str) -> str:
    """Return a thing that is the whole text; "fine" and "raining" are states and no things."""
    if len(text.split()) > _MOST_WORDS or text.lower().split()[0] in _STATES:
        return ""
    if re.fullmatch(r"[a-z]+ing", text):
        return ""
    thing = words.thing(text)
    return thing if text.endswith(thing) else ""


_STATES = words.word_set(
    """fine ok okay broken late early over done true false good bad great nice correct wrong right
    better worse well cold hot warm enough possible impossible clear unclear dead alive up down
    perfect easy hard ready closed open gone off on full empty free busy sure safe urgent
    important complicated weird funny sad happy boring expensive cheap old new different same
    only just still already almost really so too quite never always business hilarious"""
)
"""Words for a state: "Actually no, it's fine" corrects nothing."""
_TYPED: tuple[_Reader, ...] = (
    (words.read_day, _DAY_RELATIONS),
    (words.read_clock_time, ("STARTS_AT",)),
    (words.read_room, ("TAKES_PLACE_IN",)),
    (words.read_known_place, _PLACE_RELATIONS),
    (words.read_size, (*_AMOUNT_RELATIONS, "HAS_SHOE_SIZE")),
    (words.read_amount, _AMOUNT_RELATIONS),
    (words.read_phone_number, ("HAS_PHONE_NUMBER",)),
)
_NAMED: tuple[_Reader, ...] = (
    (_read_whole_product, _PRODUCT_RELATIONS),
    (_read_whole_name, _NAME_RELATIONS),
)
"""Readers that apply only after "it's" or "I meant": "Oh no, Jon!" corrects nothing."""
_AFTER_IS: tuple[_Reader, ...] = (*_NAMED, (_read_whole_thing, ("FAVOURITE_*",)))
_AFTER_MEANT: tuple[_Reader, ...] = (*_NAMED, (_read_whole_thing, _ANY_SINGLE_VALUED))
_BY_VERB: tuple[tuple[str, _Reader], ...] = (
    ("live", (words.read_place, ("LIVES_IN",))),
    ("work", (words.read_organisation, ("WORKS_AT",))),
    ("drive", (words.read_brand, ("DRIVES",))),
)


def read_correction(sentence: Sentence) -> CorrectionDraft | None:
    """Return the correction of an earlier sentence; None if the sentence corrects nothing.

    "Actually no, it's Turin" is one, "I meant cortado", and about another person "Wait, no: she
    works at Ericsson".
    """
    match = _CORRECTS.match(sentence.text)
    if match is None:
        return None
    right = match["right"].strip()
    wrong = (match["wrong"] or "").strip()
    if not right:
        return None
    for read, relations in _readers(match):
        value = read(right)
        if value and len(value) >= len(right) - 8:
            return CorrectionDraft(value, sentence.text, wrong, relations)
    if match["whole"] != match["right"] and (where := words.read_kept_at(match["whole"])):
        return CorrectionDraft(where, sentence.text, wrong, ("KEPT_AT",))
    return None


def _readers(match: re.Match[str]) -> Sequence[_Reader]:
    if match["verb"]:
        return [reader for verb, reader in _BY_VERB if match["verb"].lower().startswith(verb)]
    if match["makes"]:
        return (*_TYPED, *_NAMED)
    if match["means"] or match["meant"]:
        return (*_TYPED, *_AFTER_MEANT)
    if match["is"]:
        return (*_TYPED, *_AFTER_IS)
    return _TYPED


def may_mean(relations: Sequence[str], keys: Sequence[str]) -> bool:
    """Tell whether a correction's relations have one of a fact's names.

    Args:
        relations: As in ``CorrectionDraft``; "FAVOURITE_*" is every favourite.
        keys: Names of the fact's relation, as ``relation_key`` makes them.
    """
    for relation in relations:
        wanted = relation_key(relation)
        if relation.endswith("*"):
            if any(key.startswith(wanted) for key in keys):
                return True
        elif wanted in keys:
            return True
    return False
