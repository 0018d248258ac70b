"""Names that are written differently and may be of one thing: "U.S.A." and "USA", "Dr. Lindqvist" and "Lindqvist".

Two names are alike when nothing is left that tells them apart once titles of persons, forms of companies, and the
signs between letters are taken away. A letter or a digit that differs always tells two names apart: "Jon" and "John"
are two, and so are "SR-052" and "SR-053".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pps.core.text import fold

_TITLES = {
    **dict.fromkeys(("dr", "dra", "prof", "professor", "doctor", "ing", "mag", "rev", "hon"), ""),
    **dict.fromkeys(("mr", "sir", "herr", "señor", "monsieur", "signor"), "he"),
    **dict.fromkeys(("mrs", "ms", "miss", "mme", "mlle", "frau", "señora", "signora", "lady"), "she"),
}  # fmt: skip
"""Title → of whom it says that it is a man or a woman: "Mr Ruiz" and "Mrs Ruiz" are two."""
_COMPANY_FORMS = frozenset(
    (
        *("inc", "incorporated", "llc", "llp", "ltd", "limited", "corp", "corporation", "co"),
        *("company", "plc", "gmbh", "ag", "kg", "ug", "se", "sa", "sas", "sarl", "srl", "spa"),
        *("bv", "nv", "oy", "oyj", "ab", "as", "aps", "pty", "kk", "holdings"),
    )
)
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[\s._,-]+(?=\d)")
_SIGNS = re.compile(r"[\s._,'’‘`\"-]+")
_PARTS = re.compile(r"[^\s,]+")
_KEPT = "\ue000"
"""Stands between digits: 1.1 is not 11."""
_SHORTEST = 3


def name_key(name: str) -> tuple[str, str]:
    """Return what is left of a name, and ``he`` or ``she`` where its title says so; an empty key is like no other.

    Names with the same first part are alike, unless their second parts differ and none is empty.
    """
    parts = _PARTS.findall(fold(name))
    person = ""
    while len(parts) > 1 and (title := _TITLES.get(parts[0].strip("."))) is not None:
        person = person or title
        parts = parts[1:]
    while len(parts) > 1 and parts[-1].replace(".", "") in _COMPANY_FORMS:
        parts = parts[:-1]
    text = _BETWEEN_DIGITS.sub(_KEPT, " ".join(parts))
    key = _SIGNS.sub("", text)
    letters = sum(char.isalnum() for char in key)
    return (key, person) if letters >= _SHORTEST else ("", "")


def alike(names: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return pairs of ids whose names are alike but not the same; the one that comes first in ``names`` first.

    Args:
        names: (id, name) of every name; an id may have several.
    """
    by_key: dict[str, list[tuple[str, str, str]]] = {}
    for id_, name in names:
        key, person = name_key(name)
        if key:
            by_key.setdefault(key, []).append((id_, fold(name), person))
    pairs: dict[tuple[str, str], None] = {}
    for members in by_key.values():
        first_id, _, first_person = members[0]
        for id_, _, person in members[1:]:
            is_other_person = bool(person and first_person and person != first_person)
            if id_ != first_id and not is_other_person:
                pairs[first_id, id_] = None
    return list(pairs)
