"""The relations that rules make: those of ``config/relations.toml`` and those between people."""

from __future__ import annotations

from collections.abc import Mapping

from pps.config.relation_files import shipped_relations
from pps.core.relation_table import RelationRule

KIN = {
    "sister": "SISTER_OF", "brother": "BROTHER_OF", "mother": "MOTHER_OF", "mom": "MOTHER_OF",
    "mum": "MOTHER_OF", "father": "FATHER_OF", "dad": "FATHER_OF", "son": "SON_OF",
    "daughter": "DAUGHTER_OF", "wife": "WIFE_OF", "husband": "HUSBAND_OF", "partner": "PARTNER_OF",
    "fiancé": "FIANCE_OF", "fiancée": "FIANCE_OF", "fiance": "FIANCE_OF", "fiancee": "FIANCE_OF",
    "girlfriend": "GIRLFRIEND_OF", "boyfriend": "BOYFRIEND_OF", "aunt": "AUNT_OF",
    "uncle": "UNCLE_OF", "cousin": "COUSIN_OF", "niece": "NIECE_OF", "nephew": "NEPHEW_OF",
    "grandmother": "GRANDMOTHER_OF", "grandma": "GRANDMOTHER_OF", "grandfather": "GRANDFATHER_OF",
    "grandpa": "GRANDFATHER_OF", "friend": "FRIEND_OF", "boss": "BOSS_OF",
    "colleague": "COLLEAGUE_OF", "coworker": "COLLEAGUE_OF", "roommate": "ROOMMATE_OF",
    "flatmate": "ROOMMATE_OF", "neighbour": "NEIGHBOUR_OF", "neighbor": "NEIGHBOUR_OF",
    "landlord": "LANDLORD_OF", "landlady": "LANDLADY_OF", "teacher": "TEACHER_OF", "vet": "VET_OF",
    "doctor": "DOCTOR_OF", "dentist": "DENTIST_OF", "therapist": "THERAPIST_OF",
    "manager": "MANAGER_OF", "coach": "COACH_OF", "tutor": "TUTOR_OF", "lawyer": "LAWYER_OF",
    "gp": "DOCTOR_OF", "solicitor": "LAWYER_OF", "accountant": "ACCOUNTANT_OF",
    "hairdresser": "HAIRDRESSER_OF", "barber": "BARBER_OF", "physio": "PHYSIOTHERAPIST_OF",
    "physiotherapist": "PHYSIOTHERAPIST_OF", "optician": "OPTICIAN_OF",
    "psychologist": "PSYCHOLOGIST_OF", "psychiatrist": "PSYCHIATRIST_OF", "plumber": "PLUMBER_OF",
    "electrician": "ELECTRICIAN_OF", "mechanic": "MECHANIC_OF", "cleaner": "CLEANER_OF",
    "gardener": "GARDENER_OF", "babysitter": "BABYSITTER_OF", "nanny": "NANNY_OF",
    "mentor": "MENTOR_OF", "supervisor": "SUPERVISOR_OF",
}  # fmt: skip
"""English word → the relation of that person to another."""

VALUE_IS_SUBJECT = frozenset(KIN.values())
"""Relations whose subject is the value of a statement: "my boss is Karin" is Karin BOSS_OF User."""

RELATIONS: Mapping[str, RelationRule] = {
    **shipped_relations().by_name,
    **{name: RelationRule(name, "Person", "Person", dated=False) for name in KIN.values()},
}
"""Every relation that a rule may make, by its name."""


def relation_made(name: str) -> RelationRule:
    """Return the relation that a rule makes, by its name; each kind of favourite has its own."""
    relation = RELATIONS.get(name) or shipped_relations().find(name)
    if relation is None:
        raise KeyError(name)
    return relation
