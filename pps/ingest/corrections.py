"""What puts right what was just said: "Actually no, it's Turin.", "I meant Tuesday"."""

from __future__ import annotations

import re

from pps.core.values import CorrectionDraft
from pps.ingest import vocabulary as words
from pps.ingest.relations import KIN
from pps.ingest.sentences import Sentence

_CORRECTS = re.compile(
    r"^(?:(?P<cue>(?:(?:actually|no|nope|sorry|oops|wait|hmm|hm|correction|my mistake|scratch "
    r"that)[,.!:;]*\s+)+)"
    r"(?P<says>(?:it is|it's|that's|that is|I meant|I mean|make that|make it|that should be)\s+)?"
    r"|(?P<meant>I meant)\s+)"
    r"(?:on |in |at )?(?P<right>(?:[^,.;!]|(?<=\d)[,.](?=\d)){1,60}?)(?:,? (?:and )?not (?:on |in |at "
    r")?(?P<wrong>(?:[^,.;!]|(?<=\d)[,.](?=\d)){1,60}))?[.!]*$",
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
    *sorted(set(KIN.values())),
)
_AMOUNT_RELATIONS = ("HAS_VALUE", "IS", "COSTS", "HAS_BUDGET")


def _read_whole_product(text: str) -> str:
    return text if words.is_product(text) else ""


def _read_whole_name(text: str) -> str:
    name = words.read_name(text)
    return name if name == text and words.is_person(name) else ""


_READ_IF_PLAIN = (
    (_read_whole_product, _PRODUCT_RELATIONS),
    (_read_whole_name, _NAME_RELATIONS),
)
"""What counts only after "it's" or "I meant": "Oh no, Jon!" corrects nothing."""


def read_correction(sentence: Sentence) -> CorrectionDraft | None:
    """Return what puts right what was said before, as in "Actually no, it's Turin"."""
    match = _CORRECTS.match(sentence.text)
    if match is None:
        return None
    right = match["right"].strip()
    is_plain = bool(match["says"] or match["meant"])
    for read, relations in (
        (words.read_day, _DAY_RELATIONS),
        (words.read_clock_time, ("STARTS_AT",)),
        (words.read_room, ("TAKES_PLACE_IN",)),
        (words.read_known_place, _PLACE_RELATIONS),
        (words.read_amount, _AMOUNT_RELATIONS),
        (words.read_phone_number, ("HAS_PHONE_NUMBER",)),
        *(_READ_IF_PLAIN if is_plain else ()),
    ):
        value = read(right)
        if value and len(value) >= len(right) - 8:
            wrong = (match["wrong"] or "").strip()
            return CorrectionDraft(value, sentence.text, wrong, relations)
    return None
