"""The relations that rules make, as data: what stands at either end, and which of them a subject has one of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pps.core.values import FactDraft


@dataclass(frozen=True, slots=True)
class Ends:
    """What a relation joins.

    Attributes:
        subject, object: Kinds of its nodes.
        single: A subject has one at a time: a new one closes the old.
        dated: A date beside it tells when it began; else it tells of something else.
    """

    subject: str
    object: str
    single: bool = False
    dated: bool = True


KIN = {
    "sister": "SISTER_OF", "brother": "BROTHER_OF", "mother": "MOTHER_OF", "mom": "MOTHER_OF", "mum": "MOTHER_OF",
    "father": "FATHER_OF", "dad": "FATHER_OF", "son": "SON_OF", "daughter": "DAUGHTER_OF", "wife": "WIFE_OF",
    "husband": "HUSBAND_OF", "partner": "PARTNER_OF", "fiancé": "FIANCE_OF", "fiancée": "FIANCE_OF",
    "fiance": "FIANCE_OF", "fiancee": "FIANCE_OF", "girlfriend": "GIRLFRIEND_OF", "boyfriend": "BOYFRIEND_OF",
    "aunt": "AUNT_OF", "uncle": "UNCLE_OF", "cousin": "COUSIN_OF", "niece": "NIECE_OF", "nephew": "NEPHEW_OF",
    "grandmother": "GRANDMOTHER_OF", "grandma": "GRANDMOTHER_OF", "grandfather": "GRANDFATHER_OF",
    "grandpa": "GRANDFATHER_OF", "friend": "FRIEND_OF", "boss": "BOSS_OF", "colleague": "COLLEAGUE_OF",
    "coworker": "COLLEAGUE_OF", "roommate": "ROOMMATE_OF", "flatmate": "ROOMMATE_OF", "neighbour": "NEIGHBOUR_OF",
    "neighbor": "NEIGHBOUR_OF", "landlord": "LANDLORD_OF", "landlady": "LANDLADY_OF", "teacher": "TEACHER_OF",
    "vet": "VET_OF", "doctor": "DOCTOR_OF", "dentist": "DENTIST_OF", "therapist": "THERAPIST_OF",
    "manager": "MANAGER_OF", "coach": "COACH_OF", "tutor": "TUTOR_OF", "lawyer": "LAWYER_OF",
}  # fmt: skip
"""English word → the relation of that person to another."""

RELATIONS: Mapping[str, Ends] = {
    "NAMED": Ends("Person", "Person", dated=False),
    "LIVES_IN": Ends("Person", "Place", single=True),
    "FROM": Ends("Person", "Place", dated=False),
    "WORKS_AT": Ends("Person", "Organisation", single=True),
    "WORKS_AS": Ends("Person", "Occupation"),
    "STUDIES": Ends("Person", "Subject"),
    "SPEAKS": Ends("Person", "Language", dated=False),
    "BORN_ON": Ends("Person", "Date", dated=False),
    "MARRIED_TO": Ends("Person", "Person", single=True),
    "KNOWS": Ends("Person", "Person", dated=False),
    "HAS": Ends("Person", "Thing"),
    "IS_A": Ends("Thing", "Thing", dated=False),
    "IS_CALLED": Ends("Thing", "Thing", dated=False),
    "KEPT_AT": Ends("Thing", "Place", single=True),
    "IS": Ends("Thing", "Thing"),
    "MEASURES": Ends("Thing", "Thing"),
    "LIKES": Ends("Person", "Thing", dated=False),
    "DISLIKES": Ends("Person", "Thing", dated=False),
    "PREFERS": Ends("Person", "Thing", dated=False),
    "ALLERGIC_TO": Ends("Person", "Thing", dated=False),
    "USES": Ends("Person", "Thing"),
    "DECIDED": Ends("Person", "Decision", dated=False),
    "PLANS": Ends("Person", "Plan"),
    "ALWAYS": Ends("Person", "Instruction", dated=False),
    "NEVER": Ends("Person", "Instruction", dated=False),
    **{relation: Ends("Person", "Person", dated=False) for relation in KIN.values()},
}


def is_single(relation: str) -> bool:
    return relation in RELATIONS and RELATIONS[relation].single


def replacing(fact: FactDraft) -> FactDraft:
    """Return a fact that closes what its subject had in its relation, where a subject has one at a time."""
    if not is_single(fact.relation):
        return fact
    return replace(fact, invalidates=(*fact.invalidates, f"{fact.subject} {fact.relation}"))
