"""What a clause states as triples, and the people and animals that it names.

"My sister Ana", "a dog named Rex", and the speaker's own name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pps.ingest import vocabulary as words
from pps.ingest.relations import KIN
from pps.ingest.sentences import Sentence


@dataclass(frozen=True, slots=True)
class Triple:
    """A statement of a clause, or an ending of facts.

    Attributes:
        subject, object: Names of nodes; in an ending, an empty name stands for any node.
        relations: The relation of a statement, or the relations that an ending ends.
        object_kind: Kind of the object's node if the clause shows it, else "".
    """

    subject: str
    relations: tuple[str, ...]
    object: str
    object_kind: str = ""


@dataclass(frozen=True, slots=True)
class ClauseReading:
    """The facts that a clause states, and the facts that it ends."""

    states: tuple[Triple, ...] = ()
    ends: tuple[Triple, ...] = ()

    def __add__(self, other: ClauseReading) -> ClauseReading:
        return ClauseReading((*self.states, *other.states), (*self.ends, *other.ends))


def subject_named(who: str, speaker: str) -> str:
    """Return the name of a clause's subject; empty if it is not a name."""
    lowered = who.lower()
    if lowered in ("i", "we", "my", "our"):
        return speaker
    if lowered.startswith(("my ", "our ")) or lowered in _PARENTS:
        relative = lowered.split(" ", 1)[-1]
        return f"{speaker}'s {relative}" if speaker else ""
    return who if words.is_person(who) else ""


_PARENTS = frozenset(("mum", "dad", "mom", "grandma", "grandpa"))


_OF_KIN = "|".join(sorted((*KIN, "GP"), key=len, reverse=True))
KIN_LEAD = re.compile(
    rf"^[Mm]y (?:[a-z-]+ )?(?:{_OF_KIN}),? (?={words.CAPITAL})({words.PERSON})?", re.ASCII
)
_MY_KIN = (
    rf"\b[Mm]y (?:(?:best|older|younger|little|big|elder|twin|new|old|dear|late) "
    rf")?(?P<kin>{_OF_KIN})"
)
_KIN_IN_PASSING = re.compile(rf"{_MY_KIN},? (?P<name>{words.PERSON})")
_KIN_STATED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_MY_KIN}(?:'s name)? is (?:now )?(?:called |named "
        rf")?(?P<name>{words.TITLED_PERSON})(?=[.,!]|$| now\b)",
        rf"^(?:I|[Ww]e) have (?:got )?an? new (?P<kin>{_OF_KIN})[,:] "
        rf"(?P<name>{words.TITLED_PERSON})(?=[.,!]|$)",
        rf"^(?:[Tt]he|[Oo]ur) (?:new )?(?P<kin>{_OF_KIN})(?:'s name)? is (?:now )?(?:called "
        rf"|named )?"
        rf"(?P<name>{words.TITLED_PERSON})(?=[.,!]|$| now\b)",
        rf"\b(?P<name>{words.PERSON}), my (?:[a-z]+ )?(?P<kin>{_OF_KIN})(?=[.,!]|$)",
        rf"^(?P<name>{words.TITLED_PERSON}) is (?:now )?(?:my|our) (?:[a-z]+ )?"
        rf"(?P<kin>{_OF_KIN})\b(?!')",
        rf"^(?P<name>{words.PERSON}) is (?P<of>{words.PERSON})'s (?:[a-z]+ "
        rf")?(?P<kin>{_OF_KIN})\b(?!')",
    )
)
_REPLACED_BY = re.compile(
    rf"\b(?:my|our|the|an?) new (?:{_OF_KIN})\b|\bis now\b|\bnow[.!]?$", re.IGNORECASE
)
_MY_PET = rf"\b(?:[Mm]y|[Oo]ur) (?:[a-z]+ )?{words.ANIMAL}s?"
_PETS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_MY_PET},? (?P<name>{words.PERSON})",
        rf"{_MY_PET}(?:'s name)? (?:is|are)(?: called| named)? (?P<name>{words.PERSON}(?:,? "
        rf"(?:and )?{words.PERSON})*)"
        r"(?=[.,!]|$| now\b)",
        rf"^[Tt]he {words.ANIMAL}(?:'s name is| is called) (?P<name>{words.PERSON})(?=[.,!]|$| "
        rf"now\b)",
    )
)
_A = r"(?:an?|the|my|our|some|two|three|four|\d+)"
_NAMED_ONE = tuple(
    re.compile(pattern)
    for pattern in (
        rf"^(?P<who>I|[Ww]e|{words.PERSON}) (?:have(?: got)?|has|own|adopted|got) (?:{_A} "
        rf")?(?P<what>(?:[\w-]+ ){{0,3}}[\w-]+)"
        rf" (?:named|called) (?P<name>{words.PERSON}(?:,? (?:and )?{words.PERSON})*)",
        rf"^(?P<who>I|[Ww]e|{words.PERSON}) (?:have(?: got)?|has|own|adopted|got) {_A} "
        rf"(?P<what>(?:[\w-]+ ){{0,2}}{words.ANIMAL}s?)"
        rf"[,:] (?P<name>{words.PERSON}(?:,? (?:and )?{words.PERSON})*)",
    )
)


def named_people(clause: str, speaker: str, *, only_in_passing: bool) -> ClauseReading:
    """Return the people and animals named after their owner: "my sister Ana", "my dog Rex"."""
    states: list[Triple] = []
    ends: list[Triple] = []
    for pattern in (_KIN_IN_PASSING, *(() if only_in_passing else _KIN_STATED)):
        for match in pattern.finditer(clause):
            of = match.groupdict().get("of") or speaker
            name = words.bare_name(match["name"])
            if not of or words.is_no_name(name) or words.is_no_name(of):
                continue
            if pattern is not _KIN_IN_PASSING and words.is_nationality(name):
                continue
            relation = KIN[match["kin"].lower()]
            states.append(Triple(name, (relation,), of))
            if pattern is not _KIN_IN_PASSING and _REPLACED_BY.search(clause):
                ends.append(Triple("", (relation,), of))
    for pattern in _PETS if speaker else ():
        for match in pattern.finditer(clause):
            names = words.read_people(match["name"])
            states += [Triple(speaker, ("HAS",), name, "Animal") for name in names]
    return ClauseReading(tuple(dict.fromkeys(states)), tuple(ends))


def owned_by_name(clause: str, speaker: str) -> ClauseReading:
    """Return people and animals of a person: "a sister named Rosa", "two dogs, Pixel and Byte"."""
    for pattern in _NAMED_ONE:
        match = pattern.match(clause)
        who = subject_named(match["who"], speaker) if match else ""
        if match is None or not who:
            continue
        relation = KIN.get(match["what"].split()[-1].lower().removesuffix("s"))
        kind = "Animal" if words.is_animal(match["what"]) else ""
        names = words.read_people(match["name"])
        if relation:
            return ClauseReading(tuple(Triple(name, (relation,), who) for name in names))
        return ClauseReading(tuple(Triple(who, ("HAS",), name, kind) for name in names))
    return ClauseReading()


_TITLES = frozenset(
    [
        "Doctor",
        "Sir",
        "Madam",
        "Boss",
        "Captain",
        "Chef",
        "Professor",
        "Later",
        "Maybe",
        "Crazy",
        "Paranoid",
        "Lazy",
    ]
)
_NAME_SAID = tuple(
    re.compile(pattern)
    for pattern in (
        rf"^[Mm]y (?:full )?name is (?P<name>{words.PERSON}){words.VALUE_END}",
        rf"^(?:[Jj]ust |[Ee]veryone calls |Please |[Yy]ou can )?(?:[Cc]all )?me "
        rf"(?P<name>{words.CAPITAL}\w+)[.!]?$",
        rf"^I am (?P<name>{words.PERSON})(?:,? nice to|,? your |,? by the way|,? pleased|, the "
        rf"(?:new )?[a-z]|,? and I am new"
        r"|, and I am (?:an?|the) |, an? [a-z]).*",
    )
)
_NAME_AFTER_GREETING = re.compile(
    rf"^I am (?P<name>{words.PERSON})(?:[.!]?$|,.*| and\b.*| from\b.*)"
)
_FULL_NAME = re.compile(
    rf"^I am (?P<name>{words.CAPITAL}[\w'-]+ (?:(?:van|von|de|da|der) "
    rf")?{words.CAPITAL}[\w'-]+)[.!]?$"
)
_NO_PERSONS_NAME = re.compile(
    r"(?:ian|ish|ese|ean|Dutch|French|Greek|German|American|Done|Sorry|Back|Jewish|Muslim|Swiss"
    r"|Czech|Thai)$"
)


def name_of_speaker(clause: str, speaker: str, sentence: Sentence) -> Triple | None:
    """Return the speaker's name; "I am Nadia" is one after a greeting or with a surname."""
    if not speaker:
        return None
    patterns = (*_NAME_SAID, _FULL_NAME, *((_NAME_AFTER_GREETING,) if sentence.greets else ()))
    for pattern in patterns:
        match = pattern.match(clause)
        if match is None:
            continue
        name = match["name"]
        known = words.is_product(name) or name.lower() in words.places()
        if name in _TITLES:
            return None
        if all(words.is_person(part) for part in name.split()) and not (
            known or _NO_PERSONS_NAME.search(name)
        ):
            return Triple(speaker, ("NAMED",), name)
    return None
