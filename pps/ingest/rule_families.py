"""The phrasings that rules read, as data: families of statements that open, change and end facts.

A phrasing is a pattern of a whole clause in RE2's syntax (no backtracking) with slots in angle
brackets. A slot is read by the function of its name in ``SLOTS``; an ``old_`` before the name
makes it what held before. ``states`` and ``ends`` name what follows, as "subject RELATION object":
words in lower case are slots, ``*`` is anything, and several relations are joined by commas. A
phrasing whose slots do not all hold values of their types says nothing.

A family that opens facts reads how they are changed or ended too, or says that they do not change
(``lasting``). Examples are sentences with what they give, in the form of ``tests/rule_sentences``;
a test runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pps.ingest import vocabulary as words
from pps.ingest.relations import KIN

COUPLE = "GIRLFRIEND_OF,BOYFRIEND_OF,PARTNER_OF,FIANCE_OF,WIFE_OF,HUSBAND_OF"
_PAIRED = "MARRIED_TO,ENGAGED_TO,DATING"
ROLES = (
    "BOSS_OF,MANAGER_OF,COLLEAGUE_OF,TEACHER_OF,TUTOR_OF,COACH_OF,DOCTOR_OF,DENTIST_OF,VET_OF"
    ",THERAPIST_OF,LAWYER_OF,ACCOUNTANT_OF,HAIRDRESSER_OF,BARBER_OF,PHYSIOTHERAPIST_OF,OPTICIAN_OF"
    ",PSYCHOLOGIST_OF,PSYCHIATRIST_OF,PLUMBER_OF,ELECTRICIAN_OF,MECHANIC_OF,CLEANER_OF,GARDENER_OF"
    ",BABYSITTER_OF,NANNY_OF,MENTOR_OF,SUPERVISOR_OF"
)
"""Relations of people by their work, until they leave it."""

Value = str | tuple[str, ...]
"""The value of a slot, or the values of a list; empty if the text has none of the slot's type."""

SLOTS: Mapping[str, Callable[[str], Value]] = {
    "place": words.read_place,
    "known_place": words.read_known_place,
    "organisation": words.read_organisation,
    "job": words.read_job,
    "any_job": words.read_any_job,
    "person": words.read_person,
    "names": words.read_people,
    "field": words.read_field,
    "languages": words.read_languages,
    "owned": words.read_owned,
    "brand": words.read_brand,
    "given_away": words.read_given_away,
    "owned_thing": words.thing,
    "things": lambda text: tuple(words.things(text)),
    "thing": words.thing,
    "used": words.read_used,
    "product": words.read_product,
    "known_product": words.read_known_product,
    "diet": words.read_diet,
    "intolerance": words.read_intolerance,
    "day": words.read_day,
    "decided": words.read_decided,
    "planned": words.read_planned,
    "planned_action": words.read_planned_action,
    "phone_number": words.read_phone_number,
    "shoe_size": words.read_size,
    "living": words.read_living,
    "employer": words.read_employer,
    "stolen": words.read_stolen,
    "put_down": words.read_living,
    "hour": words.read_hour,
    "trip": words.read_trip,
    "changer": words.read_changer,
    "system": words.read_system,
    "amount_thing": lambda text: words.read_thing_of("amount", text),
    "event": lambda text: words.read_thing_of("event", text),
    "code_thing": lambda text: words.read_thing_of("code", text),
    "text_thing": lambda text: words.read_thing_of("text", text),
    "kept_thing": lambda text: words.read_thing_of("kept", text),
    "any_thing": words.read_any_thing,
    "amount": words.read_amount,
    "amount_with_unit": words.read_amount_with_unit,
    "clock_time": words.read_clock_time,
    "room": words.read_room,
    "code": words.read_code,
    "short_text": words.read_short_text,
    "proper_name": words.read_name,
    "kept_at": words.read_kept_at,
    "kept_in": words.read_kept_in,
    "measure": words.read_measure,
    "topic": words.read_topic,
    "email": words.read_email,
    "blood_type": words.read_blood_type,
    "animal": words.thing,
}
"""Name of a slot → the function that reads its words; the rules read ``who`` and ``me``."""


@dataclass(frozen=True, slots=True)
class Phrasing:
    """A phrasing of a statement.

    Attributes:
        words: Pattern of the clause.
        states: The facts that it states.
        ends: The facts that it ends.
        rivals: A slot with a product: the use of the other products of its group ends too.
    """

    words: str
    states: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    rivals: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """The phrasings of statements about one property of a person or a thing.

    Attributes:
        opens: Phrasings that state a fact for the first time (and again).
        changes: Those that state one in place of another.
        closes: Those that end a fact and state none; they are read in denials too.
        lasting: The facts do not change, so that nothing is read that ends them.
        examples: Sentences with what they give.
    """

    name: str
    opens: tuple[Phrasing, ...] = ()
    changes: tuple[Phrasing, ...] = ()
    closes: tuple[Phrasing, ...] = ()
    lasting: bool = False
    examples: tuple[str, ...] = ()


_HAVE = "(?:have |has )?(?:just |recently |finally )?"
_HOME = (
    "(?:flat|house|apartment|place|cottage|studio|room|farm|farmhouse|bungalow|villa|home"
    "|houseboat|village|suburb|dorm)"
)
_KIN = "|".join(sorted(KIN, key=len, reverse=True))
_NOT = "(?:do not|does not|no longer|did not)"
_RISES = (
    "(?:(?:has |have |is |are )?(?:went|gone|going|goes|rose|risen|fell|fallen|dropped|increased"
    "|decreased"
    "|changed|climbed)(?: up| down| back)?"
    "|(?:was|were|is|got|has been|have been|is being) (?:raised|cut|lowered|increased|reduced"
    "|changed|set|bumped|put up)(?: up| down)?)"
)
_RAISES = (
    "(?:(?:have |has )?(?:just )?(?:raised|cut|lowered|increased|reduced|changed|set|bumped"
    "|put|trimmed)(?: up| down)?|had to (?:raise|cut|lower|increase|reduce|change|trim))"
)
_NOW = "(?:now|these days|nowadays|instead|from now on)"
_MOVES = (
    "(?:(?:has |have )?(?:just )?(?:moved|slipped|shifted|changed)"
    "|(?:was|were|is|are|got|has been|have been|had to be)(?: now)? (?:moved|postponed|pushed"
    "|rescheduled|delayed|shifted|put off|changed"
    "|brought forward))(?: back| forward| up| out| over)?"
)
_SHIFTS = (
    "(?:have |has |had to )?(?:just )?(?:moved?|postponed?|pushe?d?|rescheduled?|delaye?d?"
    "|shifte?d?|brought forward|put off|changed)"
    "(?: back| forward| up)?"
)
_NO_MORE = "(?: any ?more| any longer)?"
_IS_NOT = "(?:am|is|are) (?:not|no longer)"
_IS_NOW = "(?:am|is|are)(?: now)?"
_LATELY = (
    "(?:(?: now| again| these days| at the moment| in | on | at the | last | this | since | two "
    "| three | a |,| after | yesterday| today| because ).*)?"
)
"""Text that may follow a clause without changing its meaning."""

FAMILIES: tuple[Family, ...] = (
    Family(
        name="home",
        opens=(
            Phrasing(
                f"<who> (?:lives?|(?:am|is|are) living) in (?:an?|our|my) (?:[a-z-]+ "
                f"){{0,3}}{_HOME} in <place>",
                ("who LIVES_IN place",),
            ),
            Phrasing("<who> (?:lives?|(?:am|is|are) living) in <place>", ("who LIVES_IN place",)),
            Phrasing(
                "<who> (?:have |has )?(?:been living|lived) in <place> since .+",
                ("who LIVES_IN place",),
            ),
            Phrasing("<who> (?:am|is|are) based in <place>", ("who LIVES_IN place",)),
        ),
        changes=(
            Phrasing(
                f"<who> {_HAVE}moved(?: back)?(?: from <old_place>)? (?:in)?to (?:an?|our|my|the) "
                f"(?:[a-z-]+ ){{0,3}}"
                f"{_HOME} in <place>",
                ("who LIVES_IN place",),
            ),
            Phrasing(
                f"<who> {_HAVE}(?:moved|relocated) from <old_known_place> to <place>",
                ("who LIVES_IN place",),
            ),
            Phrasing(
                f"<who> {_HAVE}(?:moved back|moved house|relocated) to <place>",
                ("who LIVES_IN place",),
            ),
            Phrasing(f"<who> {_HAVE}moved to <known_place>", ("who LIVES_IN known_place",)),
        ),
        closes=(
            Phrasing(f"<who> {_NOT} lives? in <place>", ends=("who LIVES_IN place",)),
            Phrasing(f"<who> {_IS_NOT} living in <place>", ends=("who LIVES_IN place",)),
            Phrasing(
                f"<who> {_HAVE}(?:moved (?:away from|out of)|left) <known_place> (?:for good"
                f"|behind).*",
                ends=("who LIVES_IN known_place",),
            ),
            Phrasing(
                f"<who> {_HAVE}moved (?:away from|out of) <known_place>",
                ends=("who LIVES_IN known_place",),
            ),
        ),
        examples=(
            "I live in Rome, near the river. => User | LIVES_IN | Rome",
            "i live in oslo => User | LIVES_IN | oslo",
            "My sister lives in Cork. => User's sister | LIVES_IN | Cork",
            "We've just moved to a flat in Leith. => User | LIVES_IN | Leith",
            "We moved to Milan in March. => User | LIVES_IN | Milan",
            "I don't live in Rome any more. => ends User | LIVES_IN | Rome",
            "We moved to Kubernetes last month. => User | USES | Kubernetes",
            "I moved to the platform team.",
            "I'm in marketing.",
        ),
    ),
    Family(
        name="origin",
        opens=(
            Phrasing(
                "<who> (?:am|is|are|comes?)(?: originally)? from <place>", ("who FROM place",)
            ),
            Phrasing("<who> grew up in <place>", ("who FROM place",)),
        ),
        lasting=True,
        examples=("I'm originally from Gdańsk. => User | FROM | Gdańsk", "I'm from QA."),
    ),
    Family(
        name="work",
        opens=(
            Phrasing(
                "<who> works? (?:at|for) <organisation> as an? <any_job>",
                ("who WORKS_AT organisation", "who WORKS_AS any_job"),
            ),
            Phrasing(
                "<who> (?:works?|(?:am|is|are) working) (?:at|for) (?:the )?<organisation>",
                ("who WORKS_AT organisation",),
            ),
            Phrasing(
                "<who> (?:am|is|works? as|(?:am|is) working as|started as|have a job as|has a job "
                "as) (?:an?|the)"
                "(?: new)? <job> (?:at|for|with) (?:the )?<organisation>",
                ("who WORKS_AS job", "who WORKS_AT organisation"),
            ),
            Phrasing(
                "<who> (?:am|is|started as|have a job as|has a job as) (?:an?|the)(?: new)? <job>",
                ("who WORKS_AS job",),
            ),
            Phrasing(
                "<who> (?:works?|(?:am|is) working) as an? <any_job> (?:at|for|with) (?:the "
                ")?<organisation>",
                ("who WORKS_AS any_job", "who WORKS_AT organisation"),
            ),
            Phrasing(
                "<who> (?:works?|(?:am|is) working) as an? <any_job>", ("who WORKS_AS any_job",)
            ),
        ),
        changes=(
            Phrasing(
                f"<who> {_HAVE}started(?: working)? (?:at|for|with) (?:the )?<organisation>",
                ("who WORKS_AT organisation",),
            ),
            Phrasing(
                "<who> (?:have |has )?(?:just )?(?:got|gotten|have|has|started|took) an? (?:new "
                ")?job (?:at|with)"
                " (?:the )?<organisation>",
                ("who WORKS_AT organisation",),
            ),
            Phrasing(
                "<who> (?:am|is) (?:now )?(?:at|with) (?:the )?<organisation> now.*",
                ("who WORKS_AT organisation",),
            ),
            Phrasing(
                "(?P<me>[Mm]y|[Oo]ur) (?:new )?(?:employer|company) is (?:now )?(?:called "
                ")?<employer>",
                ("me WORKS_AT employer",),
            ),
            Phrasing(
                "<who> (?:got|was|were|have been|has been) hired (?:by|at) <employer>",
                ("who WORKS_AT employer",),
            ),
            Phrasing(
                "<who> (?:got|was|were|(?:have |has )(?:just )?been|just got) (?:just )?promoted"
                "(?: from .+)? to (?:an? |the )?<any_job>",
                ("who WORKS_AS any_job",),
            ),
            Phrasing(
                f"<who> {_HAVE}joined <employer> (?:as an? .+|last (?:week|month|year).*|in "
                f"[A-Z0-9]\\w+.*"
                r"|(?:an?|two|three|four|five|six|\d+) (?:weeks?|months?|years?) ago.*)",
                ("who WORKS_AT employer",),
            ),
        ),
        closes=(
            Phrasing(
                f"<who> {_HAVE}(?:quit|left|lost|resigned from|gave up) (?:my|his|her|the|our) "
                f"(?:old )?job (?:at|with)"
                " (?:the )?<organisation>",
                ends=("who WORKS_AT organisation", "who WORKS_AS *"),
            ),
            Phrasing(
                f"<who> {_HAVE}(?:quit|left|lost|resigned from|gave up) (?:my|his|her|the|our) "
                f"(?:old )?job(?:[ ,].*)?",
                ends=("who WORKS_AT,WORKS_AS *",),
            ),
            Phrasing(
                f"<living> {_HAVE}(?:resigned|retired|(?:quit|left) the (?:company|team|firm"
                f"|practice|school|department)){_LATELY}",
                ends=("living WORKS_AT,WORKS_AS *", f"living {ROLES} *"),
            ),
            Phrasing(
                f"<who> {_HAVE}(?:resigned|retired)(?:(?:,| in| on| last| this| from work| early| "
                f"yesterday"
                "| after).*)?",
                ends=("who WORKS_AT,WORKS_AS *",),
            ),
            Phrasing(
                f"<who> {_IS_NOW} (?:retired|unemployed|jobless|out of (?:work|a job)|between "
                f"jobs){_LATELY}",
                ends=("who WORKS_AT,WORKS_AS *",),
            ),
            Phrasing(
                f"<who> (?:{_HAVE}(?:went|gone|turned)|{_IS_NOW}) (?:freelance|self-employed)"
                f"{_LATELY}",
                ends=("who WORKS_AT *",),
            ),
            Phrasing(
                "<who> (?:was|were|got|have been|has been|have just been) (?:laid off|fired|made "
                "redundant|let go"
                "|sacked)(?:(?:,| in| on| last| this| yesterday| today| by| from| after).*)?",
                ends=("who WORKS_AT,WORKS_AS *",),
            ),
            Phrasing(
                f"<who> {_NOT} works? (?:at|for) (?:the )?<organisation>",
                ends=("who WORKS_AT organisation",),
            ),
            Phrasing(
                f"<who> {_IS_NOT} (?:working )?(?:at|for) (?:the )?<organisation>{_NO_MORE}",
                ends=("who WORKS_AT organisation",),
            ),
            Phrasing(
                f"<who> {_HAVE}(?:stopped working (?:at|for)|resigned from|quit) (?:the "
                f")?<employer>",
                ends=("who WORKS_AT employer",),
            ),
            Phrasing(f"<who> {_HAVE}left (?:the )?<employer>", ends=("who WORKS_AT employer",)),
            Phrasing(
                "<who> (?:am|is) (?:no longer|not) an? <job> any ?more.*",
                ends=("who WORKS_AS job",),
            ),
            Phrasing("<who> (?:am|is) no longer an? <job>", ends=("who WORKS_AS job",)),
        ),
        examples=(
            "I work at St. Olaf Hospital. => User | WORKS_AT | St. Olaf Hospital",
            "I work at Siemens as a test engineer. => User | WORKS_AT | Siemens ; User | WORKS_AS "
            "| test engineer",
            "I quit my job and started at Bosch this week. => ends User | WORKS_AT,WORKS_AS | * ; "
            "User | WORKS_AT | Bosch",
            "I no longer work at Acme. => ends User | WORKS_AT | Acme",
            "I retired in April. => ends User | WORKS_AT,WORKS_AS | *",
            "I was promoted to head of design. => User | WORKS_AS | head of design",
            "I'm between jobs at the moment. => ends User | WORKS_AT,WORKS_AS | *",
            "I went freelance in May. => ends User | WORKS_AT | *",
            "My boss Karin left the company. => ends Karin | WORKS_AT,WORKS_AS | *"
            " ; ends Karin | ROLES | *",
            "I quit smoking.",
            "I moved to Marketing in May.",
        ),
    ),
    Family(
        name="studies",
        opens=(
            Phrasing("<who> (?:study|studies|(?:am|is) studying) <field>", ("who STUDIES field",)),
        ),
        changes=(
            Phrasing(
                f"<who> {_HAVE}switched from <old_field> to <field>",
                ("who STUDIES field",),
                ("who STUDIES old_field",),
            ),
        ),
        closes=(
            Phrasing(f"<who> {_NOT} (?:study|studies) <field>", ends=("who STUDIES field",)),
            Phrasing(f"<who> {_IS_NOT} studying <field>", ends=("who STUDIES field",)),
            Phrasing(
                f"<who> {_HAVE}(?:stopped studying|dropped) <field>", ends=("who STUDIES field",)
            ),
        ),
        examples=(
            "I study marine biology. => User | STUDIES | marine biology",
            "I switched from law to medicine. => User | STUDIES | medicine ; ends User | STUDIES "
            "| law",
        ),
    ),
    Family(
        name="languages",
        opens=(Phrasing("<who> speaks? <languages>", ("who SPEAKS languages",)),),
        lasting=True,
        examples=(
            "I speak Portuguese and a little German. => User | SPEAKS | Portuguese ; User | "
            "SPEAKS | German",
        ),
    ),
    Family(
        name="birthday",
        opens=(
            Phrasing(
                "(?P<who>[Mm]y|[Oo]ur) birthday is (?:on )?(?:the )?<day>", ("who BORN_ON day",)
            ),
            Phrasing("<who>'s birthday is (?:on )?(?:the )?<day>", ("who BORN_ON day",)),
            Phrasing("<who> (?:was|were) born (?:in .+ )?on (?:the )?<day>", ("who BORN_ON day",)),
        ),
        lasting=True,
        examples=(
            "Hanna's birthday is 14 March. => Hanna | BORN_ON | 14 March",
            "My birthday is on March 14. => User | BORN_ON | March 14",
            "My birthday is soon.",
        ),
    ),
    Family(
        name="couple",
        opens=(
            Phrasing("<who> (?:am|is|are) married to <person>", ("who MARRIED_TO person",)),
            Phrasing(
                r"<who> (?:have |has )?(?:got )?married (?:to )?<person>",
                ("who MARRIED_TO person",),
            ),
            Phrasing(
                f"<person> and (?P<me>I) (?:(?:just |finally )?got married|tied the knot"
                f"|are married){_LATELY}",
                ("me MARRIED_TO person",),
            ),
        ),
        closes=(
            Phrasing(
                r"<me> (?:(?:have )?(?:broke|broken|split|have split) up|got divorced|are "
                r"divorced|separated|got separated"
                r"|are separated)(?:(?: now| in | last | on | this |,| after | yesterday).*)?",
                ends=(f"who {_PAIRED} *", f"* {COUPLE} who"),
            ),
            Phrasing(
                r"<person> and I (?:(?:have )?(?:broke|broken|split) up|(?:got|are|were) "
                r"(?:divorced|separated)|separated)"
                r"(?:(?: now| in | last | on | this |,| after | yesterday).*)?",
                ends=(f"me {_PAIRED} person", f"person {COUPLE} me"),
            ),
            Phrasing(
                f"<who> {_HAVE}(?:broke up with|split up with|divorced|left) my (?:wife|husband"
                f"|girlfriend|boyfriend|partner)",
                ends=(f"who {_PAIRED} *", f"* {COUPLE} who"),
            ),
            Phrasing(
                f"<who> {_HAVE}(?:broke up with|broken up with|split up with|divorced) <person>",
                ends=(f"who {_PAIRED} person", f"person {COUPLE} who"),
            ),
            Phrasing(f"<who> {_IS_NOT} married(?: to .+)?{_NO_MORE}", ends=("who MARRIED_TO *",)),
            Phrasing(
                f"<who> {_IS_NOW} single(?: again| now| these days| at the moment|,.*)?",
                ends=(f"who {_PAIRED} *", f"* {COUPLE} who"),
            ),
        ),
        examples=(
            "I'm married to Jonas. => User | MARRIED_TO | Jonas",
            "Jonas and I are divorced now. => ends User | MARRIED_TO,ENGAGED_TO,DATING | Jonas"
            " ; ends Jonas | COUPLE | User",
            "We broke up. => ends User | MARRIED_TO,ENGAGED_TO,DATING | * ; ends * | COUPLE | User",
            "I'm single again."
            " => ends User | MARRIED_TO,ENGAGED_TO,DATING | * ; ends * | COUPLE | User",
            "Tom and I got married on Saturday. => User | MARRIED_TO | Tom",
            "The call broke up.",
        ),
    ),
    Family(
        name="death",
        closes=(
            Phrasing(
                "(?:[Mm]y|[Oo]ur|the|The) (?:[a-z]+ ){0,2}(?:"
                + words.ANIMAL
                + "),? <living>,? (?:has |have )?"
                "(?:just )?(?:died|passed away|passed|was put down|had to be put down)(?:[ ,].*)?",
                ends=("living * *", "* HAS living"),
            ),
            Phrasing(
                f"(?P<who>[Mm]y (?:{_KIN})) (?:has |have )?(?:just |sadly )?(?:died|passed "
                f"away)(?:[ ,].*)?",
                ends=("who * *",),
            ),
            Phrasing(
                "<living> (?:has |have )?(?:just |sadly )?(?:died|passed away|was put down|had to "
                "be put down"
                "|is dead)(?:(?: on | in | last | this | yesterday| today|,| at | after | of | "
                "peacefully"
                "| suddenly| two | a | three ).*)?",
                ends=("living * *", "* HAS living"),
            ),
            Phrasing(
                f"<living> is (?:no longer|not) with us{_NO_MORE}",
                ends=("living * *", "* HAS living"),
            ),
            Phrasing(
                f"<me> {_HAVE}(?:had to )?put (?:<living> down|down <put_down>){_LATELY}",
                ends=("living * *", "who HAS living", "put_down * *", "who HAS put_down"),
            ),
            Phrasing(
                f"<me> {_HAVE}lost <living> (?:last|yesterday|on|this|to|after) .+",
                ends=("who HAS living",),
            ),
        ),
        examples=(
            "Biscuit died on Sunday. => ends Biscuit | * | * ; ends * | HAS | Biscuit",
            "We had to put Rex down on Monday. => ends Rex | * | * ; ends User | HAS | Rex",
            "Rex is no longer with us. => ends Rex | * | * ; ends * | HAS | Rex",
            "The server died on Sunday.",
        ),
    ),
    Family(
        name="who lives with or near somebody",
        closes=(
            Phrasing(
                f"<living> {_HAVE}moved (?:out|away){_LATELY}",
                ends=("living ROOMMATE_OF,NEIGHBOUR_OF *",),
            ),
        ),
        examples=(
            "My flatmate Tim moved out. => ends Tim | ROOMMATE_OF,NEIGHBOUR_OF | *",
            "My flatmate Tim is from Leeds. => Tim | ROOMMATE_OF | User ; Tim | FROM | Leeds",
        ),
    ),
    Family(
        name="possession",
        opens=(
            Phrasing(
                "<who> (?:have(?: got)?|has|owns?|bought|adopted|got) <owned>", ("who HAS owned",)
            ),
            Phrasing(
                r"<who> (?:owns?|adopted) (?P<owned_thing>(?:an?|two|three) .+)",
                ("who HAS owned_thing",),
            ),
            Phrasing("<who> (?:bought|have|has|got|own) <brand>", ("who HAS brand",)),
            Phrasing("<who> drives? <brand>", ("who DRIVES brand",)),
            Phrasing("(?P<me>[Mm]y|[Oo]ur) (?:new )?car is <brand>", ("me DRIVES brand",)),
        ),
        changes=(
            Phrasing(
                f"<me> {_HAVE}(?:swapped|traded in|traded|replaced) <old_given_away> (?:for|with"
                f"|by) <brand>",
                ("who HAS brand",),
                ("who HAS,DRIVES old_given_away",),
            ),
            Phrasing(
                f"<me> {_HAVE}(?:swapped|traded in|traded|replaced) <old_given_away> (?:for|with"
                f"|by) <owned>",
                ("who HAS owned",),
                ("who HAS,DRIVES old_given_away",),
            ),
        ),
        closes=(
            Phrasing(
                f"<who> {_HAVE}(?:sold|gave away|got rid of|crashed|scrapped|donated|lost) "
                f"<given_away>",
                ends=("who HAS,DRIVES given_away",),
            ),
            Phrasing(
                f"<who> {_HAVE}(?:gave|given) <given_away> away.*",
                ends=("who HAS,DRIVES given_away",),
            ),
            Phrasing(
                "<who> (?:no longer (?:have|has|own|owns|drive|drives) <given_away>|do(?:es)? not "
                "(?:have|own|drive) <gone_given_away>"
                " (?:any ?more|any longer))",
                ends=("who HAS,DRIVES given_away", "who HAS,DRIVES gone_given_away"),
            ),
            Phrasing(
                "<given_away> (?:is|was|got|has been) (?:sold|scrapped|written off)(?:[ ,].*)?",
                ends=("me HAS,DRIVES given_away",),
            ),
            Phrasing(
                "(?P<me>[Mm]y|[Oo]ur) <stolen> (?:was|got|has been) (?:stolen|totalled|wrecked"
                "|sold)(?:[ ,].*)?",
                ends=("me HAS,DRIVES stolen",),
            ),
        ),
        examples=(
            "I drive a Volvo V60. => User | DRIVES | Volvo V60",
            "I sold the Volvo and drive a Skoda now. => ends User | HAS,DRIVES | Volvo ; User | "
            "DRIVES | Skoda",
            "I sold the idea to the board.",
            "I got rid of the warning.",
        ),
    ),
    Family(
        name="taste",
        opens=(
            Phrasing(
                "<who> (?:likes?|loves?|enjoys?|(?:am|is) (?:very )?(?:into|a (?:big |huge )?fan "
                "of)) <things> now",
                ("who LIKES things",),
                ("who DISLIKES things",),
            ),
            Phrasing(
                "<who> (?:likes?|loves?|enjoys?|(?:am|is) (?:very )?(?:into|a (?:big |huge )?fan "
                "of)) <things>",
                ("who LIKES things",),
            ),
            Phrasing(
                "<who> (?:hates?|dislikes?|detests?) <things> now",
                ("who DISLIKES things",),
                ("who LIKES things",),
            ),
            Phrasing("<who> (?:hates?|dislikes?|detests?) <things>", ("who DISLIKES things",)),
            Phrasing("<who> prefers? <thing> now", ("who PREFERS thing",)),
            Phrasing("<who> prefers? <thing>", ("who PREFERS thing",)),
        ),
        closes=(
            Phrasing(
                f"<who> {_NOT} (?:likes?|loves?|enjoys?) <things> any ?more.*",
                ends=("who LIKES things",),
            ),
            Phrasing(
                "<who> (?:do|does) not (?:really )?(?:likes?|loves?|enjoys?) <things>",
                ends=("who LIKES things",),
            ),
            Phrasing(
                "<who> no longer (?:likes?|loves?|enjoys?) <things>", ends=("who LIKES things",)
            ),
            Phrasing(
                "<who> (?:have |has )?(?:stopped liking|gone off|went off) <things>",
                ends=("who LIKES things",),
            ),
            Phrasing(
                "<who> no longer (?:hates?|dislikes?) <things>", ends=("who DISLIKES things",)
            ),
            Phrasing(
                f"<who> {_NOT} (?:hates?|dislikes?) <things> any ?more.*",
                ends=("who DISLIKES things",),
            ),
            Phrasing("<who> no longer prefers? <thing>", ends=("who PREFERS thing",)),
        ),
        examples=(
            "I really like Ethiopian coffee. => User | LIKES | Ethiopian coffee",
            "I like olives now. => User | LIKES | olives ; ends User | DISLIKES | olives",
            "I don't like olives any more. => ends User | LIKES | olives",
            "I don't really like jazz. => ends User | LIKES | jazz",
            "I prefer tea to coffee now. => User | PREFERS | tea ; ends User | PREFERS | coffee",
            "I like that idea.",
        ),
    ),
    Family(
        name="diet and allergy",
        opens=(
            Phrasing("<who> (?:am|is|are) (?:now )?<diet>", ("who HAS_DIET diet",)),
            Phrasing("<who> (?:am|is|are) <intolerance>", ("who ALLERGIC_TO intolerance",)),
            Phrasing(
                r"<who> (?:am|is|are) (?:[a-z]+ly )?allergic to <things>",
                ("who ALLERGIC_TO things",),
            ),
        ),
        changes=(
            Phrasing(
                "<who> (?:have |has )?(?:became|become|went|gone|turned) <diet>",
                ("who HAS_DIET diet",),
            ),
        ),
        closes=(
            Phrasing(f"<who> {_IS_NOT} <diet>(?: any ?more.*)?", ends=("who HAS_DIET diet",)),
            Phrasing("<who> (?:am|is|are) no longer <diet>", ends=("who HAS_DIET diet",)),
            Phrasing("<who> eats? (?:meat|fish) again.*", ends=("who HAS_DIET *",)),
            Phrasing(
                f"<who> {_IS_NOT} allergic to <things>(?: (?:any ?more|after all).*)?",
                ends=("who ALLERGIC_TO things",),
            ),
            Phrasing(
                "<who> (?:am|is|are) no longer allergic to <things>",
                ends=("who ALLERGIC_TO things",),
            ),
        ),
        examples=(
            "I'm vegetarian => User | HAS_DIET | vegetarian",
            "I'm allergic to latex, so please never buy it. => User | ALLERGIC_TO | latex",
            "I'm not vegetarian any more. => ends User | HAS_DIET | vegetarian",
            "I eat meat again. => ends User | HAS_DIET | *",
            "I'm not allergic to nuts, it was a mistake. => ends User | ALLERGIC_TO | nuts",
        ),
    ),
    Family(
        name="phone and shoes",
        opens=(
            Phrasing(
                "(?P<me>[Mm]y|[Oo]ur) (?:new )?(?:(?:phone|mobile|cell|telephone|cell phone"
                "|mobile phone) )?number is(?: now)? <phone_number>",
                ("me HAS_PHONE_NUMBER phone_number",),
            ),
            Phrasing(
                "<who>'s (?:new )?(?:(?:phone|mobile|cell|telephone) )?number is(?: now)? "
                "<phone_number>",
                ("who HAS_PHONE_NUMBER phone_number",),
            ),
            Phrasing("<me> wears? (?:shoe )?size <shoe_size>", ("who HAS_SHOE_SIZE shoe_size",)),
            Phrasing(
                "<me> takes? (?:a )?(?:shoe )?size <shoe_size> (?:in )?shoes?",
                ("who HAS_SHOE_SIZE shoe_size",),
            ),
        ),
        changes=(
            Phrasing(
                "<who> (?:have|has|got|have got) an? new (?:(?:phone|mobile|cell|telephone) "
                ")?number(?: now)?[:,]? (?:(?:it|that) is )?<phone_number>",
                ("who HAS_PHONE_NUMBER phone_number",),
            ),
            Phrasing(
                "(?:[Hh]ere is |[Tt]his is )?(?P<me>[Mm]y) new (?:phone |mobile )?number:? "
                "<phone_number>",
                ("me HAS_PHONE_NUMBER phone_number",),
            ),
            Phrasing(
                "(?P<me>[Mm]y|[Oo]ur) (?:(?:phone|mobile|cell|telephone) )?number (?:has |was "
                "|has been )?changed(?: from .+)? to <phone_number>",
                ("me HAS_PHONE_NUMBER phone_number",),
            ),
            Phrasing(
                "<who>'s (?:(?:phone|mobile|cell|telephone) )?number (?:has |was |has been )?"
                "changed(?: from .+)? to <phone_number>",
                ("who HAS_PHONE_NUMBER phone_number",),
            ),
            Phrasing(
                "<who> (?:have |has )?changed (?:my|his|her) (?:(?:phone|mobile|cell|telephone) "
                ")?number to <phone_number>",
                ("who HAS_PHONE_NUMBER phone_number",),
            ),
        ),
        examples=(
            "My phone number is 555-0199. => User | HAS_PHONE_NUMBER | 555-0199",
            "I have a new phone number: 555-0147. => User | HAS_PHONE_NUMBER | 555-0147",
            "My phone number changed to 555-0148. => User | HAS_PHONE_NUMBER | 555-0148",
            "I wear size 44 now, 43 was too tight. => User | HAS_SHOE_SIZE | 44",
            "The issue number is 34.",
        ),
    ),
    Family(
        name="decision",
        opens=(
            Phrasing(
                f"<me> {_HAVE}(?:decided|agreed)(?: (?:at|in|with|on) .{{1,30}}?)? to (?:use"
                f"|adopt|go with|stick with) <used>",
                ("who USES used",),
            ),
            Phrasing(
                f"<me> {_HAVE}(?:decided|agreed)(?: (?:at|in|with|on) .{{1,30}}?)? to (?:switch"
                f"|migrate)(?: from <old_product>)? to <product>",
                ("who USES product",),
                ("who USES old_product",),
                "product",
            ),
            Phrasing(
                f"<me> {_HAVE}(?:decided|agreed)(?: (?:at|in|with|on) .{{1,30}}?)? to <decided>",
                ("who DECIDED decided",),
            ),
        ),
        closes=(
            Phrasing(
                f"<me> {_HAVE}(?:decided|agreed) not to <decided>", ends=("who DECIDED decided",)
            ),
        ),
        examples=(
            "We have decided to postpone the launch. => User | DECIDED | postpone the launch",
            "We decided not to postpone the launch. => ends User | DECIDED | postpone the launch",
            "We decided to go with Stripe. => User | USES | Stripe",
        ),
    ),
    Family(
        name="tools",
        opens=(
            Phrasing(
                "<me> (?:use|am using|are using|will use|chose|went with|am going with|are going "
                "with|settled on) <used>",
                ("who USES used",),
            ),
            Phrasing(
                "(?P<me>[Mm]y|[Oo]ur|[Tt]he) (?:main |default )?(?:database|db|editor|ide|IDE|ci"
                "|CI|issue tracker|package manager|cache"
                "|message broker|broker|search engine|hosting|host|cloud|shell|browser|bundler"
                "|test runner|framework"
                "|web framework|orchestrator|data warehouse|note app|notes app|chat) (?:is|runs "
                "on)(?: now)? <known_product>",
                ("me USES known_product",),
                (),
                "known_product",
            ),
        ),
        changes=(
            Phrasing(
                f"<me> {_HAVE}(?:switched|migrated|moved|changed)(?: over)?(?: back)?(?: "
                f"[a-z ]{{1,25}})? from <old_product> to <product>",
                ("who USES product",),
                ("who USES old_product",),
            ),
            Phrasing(
                f"<me> {_HAVE}(?:switched|migrated|moved|changed)(?: over)?(?: back)?(?: "
                f"[a-z ]{{1,25}})? to <known_product> from <old_product>",
                ("who USES known_product",),
                ("who USES old_product",),
            ),
            Phrasing(
                f"<me> {_HAVE}(?:switched|migrated|moved|changed)(?: over)?(?: back)? to "
                f"<known_product>",
                ("who USES known_product",),
                (),
                "known_product",
            ),
            Phrasing(
                f"<me> {_HAVE}(?:switched|migrated)(?: over)?(?: back)? to <product>",
                ("who USES product",),
            ),
            Phrasing(
                f"<me> (?:use|am using|are using) <known_product> {_NOW}",
                ("who USES known_product",),
                (),
                "known_product",
            ),
            Phrasing(
                f"<me> {_HAVE}(?:went|gone) back to <known_product>",
                ("who USES known_product",),
                (),
                "known_product",
            ),
            Phrasing(
                f"<me> {_HAVE}(?:replaced|swapped) <old_known_product> (?:with|for|by) <product>",
                ("who USES product",),
                ("who USES old_known_product",),
            ),
            Phrasing(
                f"<me> {_HAVE}(?:dropped|ditched|abandoned) <old_known_product> (?:in favou?r of"
                f"|for) <known_product>",
                ("who USES known_product",),
                ("who USES old_known_product",),
            ),
        ),
        closes=(
            Phrasing(
                f"<me> (?:{_NOT} use|are no longer using|am no longer using|(?:am|are) not using) "
                f"<known_product>",
                ends=("who USES known_product",),
            ),
            Phrasing(
                f"<me> {_HAVE}(?:stopped using|dropped|ditched|abandoned|got rid of|moved (?:away "
                f"from|off)|migrated (?:away from|off)) <known_product>",
                ends=("who USES known_product",),
            ),
        ),
        examples=(
            "We use PostgreSQL for the ledger. => User | USES | PostgreSQL",
            "We switched from Jenkins to GitHub Actions last month. => User | USES | GitHub "
            "Actions ; ends User | USES | Jenkins",
            "We replaced Elasticsearch with Tantivy. => User | USES | Tantivy ; ends User | USES "
            "| Elasticsearch",
            "We stopped using Jira in May. => ends User | USES | Jira",
            "We switched seats.",
            "We dropped the table by accident.",
        ),
    ),
    Family(
        name="parts of systems",
        opens=(
            Phrasing(
                f"<system> (?:now )?(?:uses?|runs? on|is built (?:on|with)|is written in|is on) "
                f"<known_product>(?: {_NOW})?",
                ("system USES known_product",),
                (),
                "known_product",
            ),
        ),
        changes=(
            Phrasing(
                f"<me> {_HAVE}(?:switched|migrated|moved|ported) <system>(?: over)? from "
                f"<old_product> to <product>",
                ("system USES product",),
                ("system USES old_product",),
            ),
            Phrasing(
                f"<me> {_HAVE}(?:switched|migrated|moved|ported)(?: over)? <system>(?: over)? to "
                f"<known_product>",
                ("system USES known_product",),
                (),
                "known_product",
            ),
            Phrasing(
                "[Ff]or <system>,? (?:I|we) (?:now )?(?:use|are using|will use|went with|chose"
                "|switched to"
                "|settled on|are going with) <known_product>",
                ("system USES known_product",),
                (),
                "known_product",
            ),
        ),
        examples=(
            "The billing service uses PostgreSQL. => billing service | USES | PostgreSQL",
            "We migrated the billing service to CockroachDB. => billing service | USES | "
            "CockroachDB",
            "For the billing service we went with CockroachDB instead."
            " => billing service | USES | CockroachDB",
            "The client uses the API.",
        ),
    ),
    Family(
        name="plans",
        opens=(
            Phrasing(
                r"<who> (?:(?:am|is|are) going to|will|plans? to|(?:am|is|are) planning to) "
                r"(?P<planned_action>[a-z].+)",
                ("who PLANS planned_action",),
                ("who PLANS planned_action",),
            ),
            Phrasing(
                "<who> (?:am|is|are) (?P<planned>(?:" + "|".join(words.PLAN_VERBS) + ") .+)",
                ("who PLANS planned",),
                ("who PLANS planned",),
            ),
            Phrasing(
                "<who> (?:have|has) an? (?P<planned>(?:[a-z-]+ ){0,2}" + words.EVENT + r"\b.*)",
                ("who PLANS planned",),
                ("who PLANS planned",),
            ),
        ),
        closes=(
            Phrasing(
                f"<who> {_IS_NOT} (?:going|flying|travelling|driving) to <trip> (?:any ?more"
                f"|after all|in|on|this|next).*",
                ends=("who PLANS trip",),
            ),
            Phrasing(
                f"<me> {_HAVE}(?:cancelled|canceled|called off|dropped) <trip>",
                ends=("who PLANS trip",),
            ),
        ),
        examples=(
            "We're going to visit my parents next weekend. => User | PLANS | visit my parents",
            "I'm flying to Tokyo on June 3. => User | PLANS | fly to Tokyo",
            "We're going to Malta instead of Crete. => ends User | PLANS | go to Crete"
            " ; ends User | PLANS | fly to Crete ; ends User | PLANS | travel to Crete"
            " ; ends User | PLANS | drive to Crete ; ends User | PLANS | visit Crete",
            "We cancelled Crete. => ends User | PLANS | go to Crete ; ends User | PLANS | fly to "
            "Crete"
            " ; ends User | PLANS | travel to Crete ; ends User | PLANS | drive to Crete ; ends "
            "User | PLANS | visit Crete",
        ),
    ),
    Family(
        name="amounts",
        opens=(
            Phrasing(
                "<amount_thing> (?:is|are)(?: now| currently)? <amount>",
                ("amount_thing HAS_VALUE amount",),
                ("amount_thing IS *",),
            ),
            Phrasing(
                "<any_thing> (?:costs?|amounts? to)(?: now)? <amount_with_unit>",
                ("any_thing HAS_VALUE amount_with_unit",),
                ("any_thing IS *",),
            ),
        ),
        changes=(
            Phrasing(
                f"<amount_thing> {_RISES}(?: from [^ ]+(?: [a-z€]+)?)? to <amount>",
                ("amount_thing HAS_VALUE amount",),
                ("amount_thing IS *",),
            ),
            Phrasing(
                f"<changer> {_RAISES} <amount_thing>(?: from [^ ]+(?: [a-z€]+)?)? to <amount>",
                ("amount_thing HAS_VALUE amount",),
                ("amount_thing IS *",),
            ),
        ),
        examples=(
            "The budget for the kitchen is 12,000 euros. => budget for the kitchen | HAS_VALUE | "
            "12,000 euros",
            "The budget is 15,000 euros now. => budget | HAS_VALUE | 15,000 euros",
            "The salary went up to 4,100 euros. => salary | HAS_VALUE | 4,100 euros",
            "They cut the marketing budget to 32k. => marketing budget | HAS_VALUE | 32k",
            "The timeout is 30 seconds.",
            "The problem is 3 things.",
        ),
    ),
    Family(
        name="dates of events",
        opens=(
            Phrasing(
                "<event> (?:is|are|takes place|take place|will be)(?: now| scheduled| planned| "
                "set)?(?: on| for| in)? (?:the )?<day>",
                ("event HAPPENS_ON day",),
                ("* PLANS plan",),
            ),
            Phrasing(
                "<event> (?:is|are)(?: now)? due(?: on| by)? <day>", ("event HAPPENS_ON day",)
            ),
            Phrasing(
                "<event> (?:is|are|starts?|begins?)(?: now)? (?:at )?<clock_time>",
                ("event STARTS_AT clock_time",),
            ),
            Phrasing(
                f"<event> (?:is|are|starts?|begins?)(?: now)? at <hour>(?: {_NOW})?",
                ("event STARTS_AT hour",),
            ),
        ),
        changes=(
            Phrasing(
                "<event> (?:is|are|takes place|will be)(?: now)?(?: on)? <day>,? (?:at|from) "
                "<clock_time>",
                ("event HAPPENS_ON day", "event STARTS_AT clock_time"),
                ("* PLANS plan",),
            ),
            Phrasing(
                "[Tt]he new date (?:for|of) <event> is <day>",
                ("event HAPPENS_ON day",),
                ("* PLANS plan",),
            ),
            Phrasing(
                f"<event> {_MOVES}(?: from .+?)? (?:to|until|till) (?:the )?<day>",
                ("event HAPPENS_ON day",),
                ("* PLANS plan",),
            ),
            Phrasing(
                f"<changer> {_SHIFTS} <event>(?: (?:back|forward|up|out|over))?(?: from .+?)? "
                f"(?:to|until|till|for) (?:the )?<day>",
                ("event HAPPENS_ON day",),
                ("* PLANS plan",),
            ),
            Phrasing(
                f"<event> {_MOVES}(?: from .+?)? to <clock_time>", ("event STARTS_AT clock_time",)
            ),
            Phrasing(
                f"<changer> {_SHIFTS} <event>(?: (?:back|forward|up|out|over))?(?: from .+?)? to "
                f"<clock_time>",
                ("event STARTS_AT clock_time",),
            ),
        ),
        closes=(
            Phrasing(
                "<event> (?:(?:is|was|has been|got|are|were) (?:cancelled|canceled|called off"
                "|scrapped)(?:[ ,].*)?|(?:is|are) off(?: now| after all)?)",
                ends=("event * *", "* PLANS plan"),
            ),
            Phrasing(
                f"<me> {_HAVE}(?:cancelled|canceled|called off|scrapped) <event>",
                ends=("event * *", "* PLANS plan"),
            ),
            Phrasing(
                "<event> (?:is|was|has been|got|are|were) (?:postponed|delayed|put off|pushed back)"
                "(?: indefinitely| again| until further notice| by .+)?",
                ends=("event HAPPENS_ON,STARTS_AT *", "* PLANS plan"),
            ),
            Phrasing(
                "<event> (?:is|are) (?:not|no longer) (?:on|in) <day>(?: any ?more.*)?",
                ends=("event HAPPENS_ON day",),
            ),
        ),
        examples=(
            "The launch is on 12 May. => launch | HAPPENS_ON | 12 May ; ends * | PLANS | launch",
            "We moved the launch to 19 May. => launch | HAPPENS_ON | 19 May ; ends * | PLANS | "
            "launch",
            "Hanna's wedding has been postponed to 21 June. => Hanna's wedding | HAPPENS_ON | 21 "
            "June"
            " ; ends * | PLANS | Hanna's wedding",
            "Standup is at 9:15. => standup | STARTS_AT | 9:15",
            "The standup is now at 10. => standup | STARTS_AT | 10",
            "The deadline is tight.",
        ),
    ),
    Family(
        name="places of events",
        opens=(
            Phrasing(
                "<event> (?:is|are|takes place|will be|happens)(?: now| held)? <room>",
                ("event TAKES_PLACE_IN room",),
            ),
        ),
        changes=(
            Phrasing(f"<event> {_MOVES}(?: from .+?)? to <room>", ("event TAKES_PLACE_IN room",)),
            Phrasing(
                f"<changer> {_SHIFTS} <event>(?: from .+?)? (?:in)?to <room>",
                ("event TAKES_PLACE_IN room",),
            ),
        ),
        examples=(
            "The weekly meeting is in room 12. => weekly meeting | TAKES_PLACE_IN | room 12",
            "The retro moved to the Lovelace room. => retro | TAKES_PLACE_IN | Lovelace room",
        ),
    ),
    Family(
        name="codes",
        opens=(
            Phrasing(
                "<code_thing> is(?: now)? <code>",
                ("code_thing HAS_VALUE code",),
                ("code_thing IS *",),
            ),
        ),
        changes=(
            Phrasing(
                "<changer> (?:have |has )?changed <code_thing>(?: from [^ ]+)? to <code>",
                ("code_thing HAS_VALUE code",),
                ("code_thing IS *",),
            ),
            Phrasing(
                "<code_thing> (?:has )?(?:changed|was changed|has been changed) to <code>",
                ("code_thing HAS_VALUE code",),
                ("code_thing IS *",),
            ),
        ),
        examples=(
            "The door code is 4471. => door code | HAS_VALUE | 4471",
            "They changed the door code to 4482. => door code | HAS_VALUE | 4482",
            "The serial number of the drill is QX-77. => serial number of the drill | HAS_VALUE | "
            "QX-77",
            "The error code is 137.",
        ),
    ),
    Family(
        name="short texts",
        opens=(
            Phrasing(
                "<text_thing> is(?: now)? <short_text>",
                ("text_thing HAS_VALUE short_text",),
                ("text_thing IS *",),
            ),
        ),
        changes=(
            Phrasing(
                "<changer> (?:have |has )?(?:changed|set) <text_thing>(?: from .+?)? to "
                "<short_text>",
                ("text_thing HAS_VALUE short_text",),
                ("text_thing IS *",),
            ),
        ),
        examples=(
            "My password hint is the name of my first cat. => User's password hint | HAS_VALUE | "
            "the name of my first cat",
            "I changed my password hint to the street where I grew up."
            " => User's password hint | HAS_VALUE | the street where I grew up",
        ),
    ),
    Family(
        name="names of things",
        opens=(
            Phrasing(
                "<any_thing> (?:is|are)(?: now)? (?:called|named) <proper_name>",
                ("any_thing IS_CALLED proper_name",),
                ("any_thing IS_CALLED *",),
            ),
        ),
        changes=(
            Phrasing(
                f"<changer> {_HAVE}renamed <any_thing>(?: from .+?)? (?:to|as) <proper_name>",
                ("any_thing IS_CALLED proper_name",),
                ("any_thing IS_CALLED *",),
            ),
        ),
        examples=(
            "The printer is called Gutenberg. => printer | IS_CALLED | Gutenberg",
            "We renamed the project to Egret. => project | IS_CALLED | Egret",
            "This is called luck.",
        ),
    ),
    Family(
        name="where things are kept",
        opens=(
            Phrasing(
                "<any_thing> (?:hangs?|stands?|lies?|(?:is|are) (?:kept|stored|hidden|parked)) "
                "(?P<kept_at>(?:behind|under|in|on|at"
                "|above|below|beside|near|next to) .+)",
                ("any_thing KEPT_AT kept_at",),
            ),
            Phrasing(
                "<kept_thing> (?:is|are)(?: now| always)? (?P<kept_at>(?:behind|under|in|inside"
                "|on|at|above|below|beside|near|next to|with) .+)",
                ("kept_thing KEPT_AT kept_at",),
            ),
        ),
        changes=(
            Phrasing(
                f"<me> {_HAVE}moved <kept_thing> to <kept_in>", ("kept_thing KEPT_AT kept_in",)
            ),
            Phrasing(
                f"<me> {_HAVE}(?:moved|put) <kept_thing> (?:back )?(?P<kept_at>(?:behind|under|in"
                f"|on|above|below|beside|near|next to) .+)",
                ("kept_thing KEPT_AT kept_at",),
            ),
        ),
        closes=(
            Phrasing(
                f"<me> {_HAVE}(?:lost|threw away|thrown away|gave away) <kept_thing>",
                ends=("kept_thing KEPT_AT *",),
            ),
            Phrasing(
                "<kept_thing> (?:is|are) (?:no longer|not) (?:in|under|on|at|behind|with) .+",
                ends=("kept_thing KEPT_AT *",),
            ),
        ),
        examples=(
            "The spare key is in the shed. => spare key | KEPT_AT | in the shed",
            "I moved the spare key to the garage. => spare key | KEPT_AT | in the garage",
            "The spare key hangs behind the mirror. => spare key | KEPT_AT | behind the mirror",
            "The spare key is now with the neighbour. => spare key | KEPT_AT | with the neighbour",
            "The bug is in the parser.",
        ),
    ),
    Family(
        name="measures",
        opens=(Phrasing(r"<any_thing> has an? <measure>", ("any_thing MEASURES measure",)),),
        lasting=True,
        examples=("The bridge has a span of 40 metres. => bridge | MEASURES | span of 40 metres",),
    ),
    Family(
        name="favourites",
        opens=(
            Phrasing(
                "(?P<me>[Mm]y) (?:all-time |new )?favou?rite <topic> (?:is|are)(?: now)? <thing>",
                ("me FAVOURITE_topic thing",),
            ),
        ),
        changes=(
            Phrasing(
                "<thing> is (?:now )?(?P<me>my) (?:all-time |new )?favou?rite <topic>(?: now)?",
                ("me FAVOURITE_topic thing",),
            ),
        ),
        examples=(
            "My favourite editor is Helix now. => User | FAVOURITE_EDITOR | Helix",
            "Helix is my new favourite editor. => User | FAVOURITE_EDITOR | Helix",
            "My favourite part is when he falls.",
        ),
    ),
    Family(
        name="personal numbers",
        opens=(
            Phrasing(
                "(?P<me>[Mm]y) shoe size is(?: now)? <shoe_size>", ("me HAS_SHOE_SIZE shoe_size",)
            ),
            Phrasing("<who>'s shoe size is(?: now)? <shoe_size>", ("who HAS_SHOE_SIZE shoe_size",)),
            Phrasing(
                "(?P<me>[Mm]y) (?:e-?mail|email address|e-mail address) is(?: now)? <email>",
                ("me HAS_EMAIL email",),
            ),
            Phrasing(
                "(?P<me>[Mm]y) blood (?:type|group) is <blood_type>",
                ("me HAS_BLOOD_TYPE blood_type",),
            ),
        ),
        changes=(
            Phrasing(
                "<me> (?:have an?|have got an?|got an?) new (?:e-?mail|email address)[:,]? "
                "(?:(?:it|that) is )?<email>",
                ("who HAS_EMAIL email",),
            ),
        ),
        examples=(
            "My shoe size is 43. => User | HAS_SHOE_SIZE | 43",
            "My shoe size is 39, not 38. => User | HAS_SHOE_SIZE | 39 ; ends User | HAS_SHOE_SIZE "
            "| 38",
        ),
    ),
    Family(
        name="animals",
        opens=(
            Phrasing(
                "<living> is (?P<animal>an? (?:[a-z-]+ ){0,4}" + words.ANIMAL + r")\b.*",
                ("living IS_A animal",),
            ),
        ),
        lasting=True,
        examples=(
            "Pixel is a small grey cat and sleeps all day. => Pixel | IS_A | small grey cat",
        ),
    ),
    Family(
        name="acquaintance",
        opens=(Phrasing("<living> knows <person>", ("living KNOWS person",)),),
        lasting=True,
        examples=("Sam knows Kubernetes.", "Petra knows Jonas. => Petra | KNOWS | Jonas"),
    ),
)
