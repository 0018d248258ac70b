"""The words that rules know, and the readers of the slots in their phrasings.

Each ``read_…`` function takes the words that a slot of a pattern caught and returns the value in
them, or an empty string when they name nothing of the slot's type. What follows a value must end
it ("Milan in March", not "Milan team").
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from pps.core.time_reading import phrases
from pps.ingest.relations import KIN


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text, separated by white space."""
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class Products:
    """Names of products by group, lower-case.

    Attributes:
        group_of: Name → its group.
        rivals: Group → the spellings of its names, where one of the group is used at a time.
    """

    group_of: Mapping[str, str]
    rivals: Mapping[str, tuple[str, ...]]


@cache
def products() -> Products:
    text = resources.files("pps.ingest.data").joinpath("products.toml").read_text(encoding="utf-8")
    tables: Mapping[str, Mapping[str, list[str]]] = tomllib.loads(text)
    group_of = {
        name.lower(): group
        for groups in tables.values()
        for group, names in groups.items()
        for name in names
    }
    rivals = {group: tuple(names) for group, names in tables["one_at_a_time"].items()}
    return Products(group_of, rivals)


@cache
def places() -> frozenset[str]:
    """Return the names of towns, countries and regions, lower-case."""
    text = resources.files("pps.ingest.data").joinpath("places.txt").read_text(encoding="utf-8")
    return frozenset(text.lower().splitlines())


@cache
def nouns(kind: str) -> frozenset[str]:
    """Return the nouns of a kind of things, a key of ``data/things.toml``."""
    text = resources.files("pps.ingest.data").joinpath("things.toml").read_text(encoding="utf-8")
    table: Mapping[str, str] = tomllib.loads(text)
    return word_set(table[kind])


def is_product(name: str) -> bool:
    """Tell whether a name is a product's, also with a version ("Python 3.12")."""
    bare = re.sub(r"\s+v?\d[\d.]*$", "", name.lower())
    return bare in products().group_of


# Names

CAPITAL = "[A-ZÀ-ÖØ-ÞŁŚŠŽĐĆČŞİ]"
_NAME_WORD = rf"{CAPITAL}[\w'&.-]*\w"
_TITLE = r"(?:(?:St|Mt|Ft|Mr|Mrs|Ms|Dr|Prof)\. )"
NAME = (
    rf"{_TITLE}?{_NAME_WORD}"
    rf"(?: (?:(?:of|de|da|do|del|la|las|los|van|von|der|the|and|&) )?{_TITLE}?{_NAME_WORD}){{0,3}}"
)
PERSON = rf"{CAPITAL}[\w-]+(?: {CAPITAL}[\w-]+){{0,2}}"
_PERSON_TITLE = r"(?:Mr|Mrs|Ms|Mx|Miss|Dr|Prof)\.?"
TITLED_PERSON = rf"(?:{_PERSON_TITLE} )?{PERSON}"
_TITLED = re.compile(rf"^{_PERSON_TITLE} (?={CAPITAL})")
VALUE_END = (
    r"(?=\s*(?:[,.;:!()]|$)|\s+[–—-]\s|\s+(?:now|with|for|since|in|on|at|near|and|because|to|as"
    r"|these|this|last|next|until"
    r"|from|during|where|when|after|before|again|right|currently|recently|yesterday|today"
    r"|tomorrow|a few|two|three|about"
    r"|around|by|alone|together|just|which|who|so|but|too|btw|lol|instead|every|most|over|finally"
    r"|myself|full|part|here"
    r"|not|a week|a month|a year|anymore|any more|any longer|permanently|though|each|per)\b)"
)
_NAME_AT_START = re.compile(rf"(?:the |The )?({NAME}){VALUE_END}")
_PERSON_AT_START = re.compile(rf"({TITLED_PERSON}){VALUE_END}")
_LIST_OF_NAMES = re.compile(rf"({PERSON}(?:,? (?:and )?{PERSON})*){VALUE_END}")
_LOWER_PLACE = re.compile(rf"((?:[\w'-]+ ){{0,2}}?[\w'-]+?){VALUE_END}")

_NO_NAMES = word_set(
    """he she it they you we who what this that these those there here everyone everybody someone
    somebody anyone nobody people one mr mrs ms dr the a an my our your his her their its
    mom mum dad mother father sister brother monday tuesday wednesday thursday friday
    saturday sunday january february march april may june july august september october
    november december yes no ok okay god today tomorrow yesterday some many most all both
    each if when where why how and or but so as at in on for with by from to of not never
    always then than also just life love time work everything nothing something home tongue
    nature earth tv let please thanks hello hey hi i"""
)
_NOT_PEOPLE = word_set(
    """state data code user users server client service app api worker process job queue cache
    config build test tests parser thread pod container cluster node nodes host database
    table row column schema request response session token key file folder path module
    package library function method class type variable field value object array string list
    dict set map event events message messages log logs error errors bug bugs issue pr
    branch commit release version deploy deployment pipeline script command hook plugin page
    route router endpoint model models memory disk network device kernel driver system
    program software tool agent bot assistant docker company team management marketing sales
    engineering support product design legal finance hr qa ops devops infra platform
    security mobile backend frontend note notes todo fix docs readme returns args warning
    example step chapter page customer customers admin tenant client guest visitor member
    buyer seller owner author player character person employee patient student manager
    developer section figure everything root cause windows battery phone laptop computer
    machine internet wifi"""
)
_PARTS_OF_PROGRAMS = word_set(
    """function variable field branch commit test tests container pod process thread model script
    endpoint route table column service node cluster string object flag parameter argument
    event hook plugin component loop exception directory folder file cell query index"""
)
_UNITS_OF_WORK = word_set(
    """team department dept division squad group chapter guild unit project branch channel tier
    plan layer stack mode version office floor desk role service platform framework library
    language tool repo repository architecture setup cluster server"""
)
_DEPARTMENTS = word_set(
    """marketing sales engineering support product design legal finance hr qa ops devops infra
    infrastructure platform security backend frontend it r&d research operations accounting
    procurement logistics data analytics growth"""
)


def is_no_name(name: str) -> bool:
    """Tell whether a capitalised word is no name: a pronoun, a day, the beginning of a sentence."""
    untitled = _TITLED.sub("", name)
    return not untitled or untitled.split()[0].lower() in _NO_NAMES


def is_person(name: str) -> bool:
    """Tell whether a name may be of a person or an animal: of no product or program."""
    first = name.split()[0].lower() if name else ""
    return not (is_no_name(name) or first in _NOT_PEOPLE or is_product(name) or is_product(first))


def is_nationality(name: str) -> bool:
    """Tell whether a capitalised word is of an origin: "Scottish", "Brazilian"."""
    lowered = name.lower()
    return lowered.endswith(("ish", "ese")) or lowered in _NATIONALITIES


_NATIONALITIES = word_set(
    """african albanian algerian american argentinian armenian asian australian austrian belgian
    bolivian bosnian brazilian bulgarian canadian chilean colombian croatian cuban czech dutch
    ecuadorian egyptian estonian ethiopian european french georgian german ghanaian greek
    hungarian icelandic indian indonesian iranian iraqi israeli italian jamaican kenyan korean
    latvian lebanese lithuanian malaysian mexican moroccan nigerian norwegian pakistani
    palestinian persian peruvian romanian russian saudi scandinavian scots serbian slovak
    slovenian somali sudanese swiss syrian thai tunisian ukrainian venezuelan welsh
    buddhist catholic hindu jewish muslim protestant"""
)


def bare_name(name: str) -> str:
    """Return a name without the mark of the possessive and the full stop of a sentence."""
    return re.sub(r"(?:'s|[.'])$", "", name)


def read_name(text: str) -> str:
    """Return the name that a text begins with; empty for a fragment ("Platform team")."""
    match = _NAME_AT_START.match(text)
    if match is None:
        return ""
    name = bare_name(match[1])
    return "" if is_no_name(name) else name


def read_person(text: str) -> str:
    match = _PERSON_AT_START.match(text)
    if match is None:
        return ""
    name = bare_name(match[1])
    return name if _TITLED.match(name) or is_person(name) else ""


def read_people(text: str) -> tuple[str, ...]:
    """Return the names that a text lists: "Pixel and Byte"."""
    match = _LIST_OF_NAMES.match(text)
    if match is None:
        return ()
    names = map(bare_name, _LIST_SEPARATOR.split(match[1]))
    return tuple(name for name in names if not is_no_name(name))


def read_known_place(text: str) -> str:
    """Return the town, country or region that a text begins with, in any case of letters."""
    name = read_name(text)
    if name:
        return name if name.lower() in places() and not is_product(name) else ""
    match = _LOWER_PLACE.match(text)
    if match is None or match[1] != match[1].lower() or is_product(match[1]):
        return ""
    return match[1] if match[1] in places() and match[1] not in _COMMON_WORDS else ""


def read_place(text: str) -> str:
    """Return the place that a text begins with: any name that is not known to be another thing."""
    name = read_name(text)
    if not name:
        return read_known_place(text)
    tail = name.split()[-1].lower()
    if is_product(name) or tail in _UNITS_OF_WORK or tail in _DEPARTMENTS:
        return ""
    return name


_COMMON_WORDS = word_set(
    "hope most normal mobile orange split nice reading bath of same here best moss fear"
)


def read_organisation(text: str) -> str:
    """Return the organisation that a text begins with: a name, or a workplace ("a bank")."""
    kind = _WORKPLACE_AT_START.match(text)
    if kind is not None:
        return kind[1]
    match = _NAME_AT_START.match(text)
    name = match[1].rstrip(".'") if match and not is_no_name(match[1]) else ""
    words = name.lower().split()
    if not words or words[-1] in _UNITS_OF_WORK or words[0] in _DEPARTMENTS:
        return ""
    return "" if products().group_of.get(name.lower()) == "language" else name


_WORKPLACE = (
    r"(?:bank|hospital|school|university|college|startup|start-up|company|firm|restaurant|cafe"
    r"|café|bakery|shop|store"
    r"|agency|studio|lab|clinic|library|museum|factory|hotel|bar|gym|farm|nonprofit|charity"
    r"|bookstore|bookshop"
    r"|pharmacy|garage|salon|warehouse|newspaper|consultancy|publisher|airline|airport|brewery"
    r"|nursery|kindergarten)"
)
_WORKPLACE_AT_START = re.compile(rf"an? ((?:\w+ ){{0,2}}{_WORKPLACE}){VALUE_END}")

# Occupations, animals, possessions

_JOB = (
    r"(?:engineer|developer|programmer|designer|teacher|professor|lecturer|nurse|doctor|physician"
    r"|surgeon|dentist|vet"
    r"|veterinarian|paramedic|pharmacist|therapist|psychologist|lawyer|attorney|paralegal"
    r"|accountant|analyst|student"
    r"|consultant|manager|director|scientist|researcher|biologist|chemist|physicist|writer|author"
    r"|editor|journalist"
    r"|reporter|translator|interpreter|artist|painter|sculptor|musician|singer|drummer|guitarist"
    r"|actor|actress|dancer"
    r"|photographer|filmmaker|chef|baker|barista|bartender|waiter|waitress|carpenter|plumber"
    r"|electrician|mechanic"
    r"|welder|architect|farmer|gardener|florist|driver|pilot|sailor|soldier|firefighter|officer"
    r"|librarian|curator"
    r"|social worker|caretaker|cashier|realtor|broker|trader|banker|economist|entrepreneur"
    r"|freelancer|intern|technician"
    r"|administrator|secretary|receptionist|coach|trainer|tutor|counselor|counsellor|midwife"
    r"|historian|geologist"
    r"|statistician|mathematician|hairdresser|tailor|butcher|locksmith|radiologist|cardiologist"
    r"|beekeeper|recruiter"
    r"|physiotherapist|optician|bookkeeper|copywriter|illustrator|animator|roofer|joiner"
    r"|bricklayer|paediatrician)"
)
_JOB_AT_START = re.compile(rf"((?:[a-z-]+ ){{0,2}}{_JOB}){VALUE_END}")
_ANY_JOB_AT_START = re.compile(rf"((?:[\w-]+ ){{0,2}}?[\w-]+?){VALUE_END}")
_BOAST = re.compile(
    r"\b(?:good|great|bad|terrible|big|huge|real|true|better|best|worst|natural|amazing|wonderful"
    r"|awesome|horrible|nice"
    r"|only|first|last|same|former|retired|aspiring|future|control|lousy|decent|fast|slow"
    r"|backseat|sore|quick)\b"
)
ANIMAL = (
    r"(?:dog|cat|puppy|kitten|parrot|hamster|rabbit|bunny|horse|pony|turtle|tortoise|snake|lizard"
    r"|gecko|goldfish"
    r"|guinea pig|ferret|budgie|canary|chicken|goat|greyhound|labrador|poodle|beagle|retriever"
    r"|terrier|spaniel|dachshund)"
)
_ANIMAL_WORD = re.compile(rf"\b{ANIMAL}s?\b")
_CAR = (
    r"(?:car|van|truck|Volvo|Skoda|Škoda|Fiat|Toyota|Honda|Ford|Opel|Vauxhall|Volkswagen|VW|Golf"
    r"|Polo|Passat|BMW|Audi"
    r"|Mercedes|Mazda|Nissan|Renault|Peugeot|Citroën|Citroen|Seat|Subaru|Suzuki|Hyundai|Kia|Tesla"
    r"|Dacia|Mini|Saab|Lexus"
    r"|Jaguar|Porsche|Chevrolet|Chevy|Jeep|Polestar|Panda|Yaris|Corolla|Civic|Octavia|Fabia|Clio"
    r"|Prius|Corsa|Fiesta)"
)
_CAR_NAME = re.compile(rf"\b{_CAR}\b")
_OWNED = (
    rf"(?:{ANIMAL}|car|bike|bicycle|motorcycle|motorbike|scooter|van|truck|boat|house|apartment"
    rf"|flat|cottage|garden"
    r"|piano|guitar|violin|cello|ukulele|laptop|telescope|camera|typewriter|sewing machine"
    r"|caravan|camper van|kayak"
    r"|canoe|drum kit|accordion|harp|flute|trumpet|saxophone|kiln|loom|greenhouse|allotment|tent"
    r"|drone|e-bike)s?"
)
_A = r"(?:an?|the|my|our|some|two|three|four|\d+)"
_OWNED_AT_START = re.compile(rf"({_A} (?:[\w-]+ ){{0,3}}{_OWNED}){VALUE_END}")
_MY_OWNED_AT_START = re.compile(
    rf"(?:[Mm]y|[Oo]ur|[Tt]he|an?) (?:old |new )?((?:[\w-]+ ){{0,2}}?{_OWNED}|{NAME}){VALUE_END}"
)
_BRAND_AT_START = re.compile(
    rf"an? (?:new )?((?:(?:used|second-hand|red|blue|black|white|green|grey|silver|old|little"
    rf"|small|big|electric|hybrid"
    rf"|\d{{4}}) ){{0,2}}(?P<name>{NAME})(?: \d{{1,4}}[a-z]{{0,2}})?)"
    rf"{VALUE_END}"
)


def is_animal(words: str) -> bool:
    return _ANIMAL_WORD.search(words) is not None


def is_car(words: str) -> bool:
    return _CAR_NAME.search(words) is not None


def short_names(owned: str) -> tuple[str, ...]:
    """Return an owner's names for a thing: "Volvo V60" is the "Volvo" and the "car"."""
    tokens = owned.split()
    if is_car(owned):
        names = [token for token in tokens if token[:1].isupper()]
        return tuple(dict.fromkeys((*(names if len(tokens) > 1 else ()), "car")))
    return (tokens[-1],) if len(tokens) > 1 and _OWNED_WORD.fullmatch(tokens[-1]) else ()


_OWNED_WORD = re.compile(_OWNED)


def read_job(text: str) -> str:
    """Return the occupation that a text begins with; empty for a boast ("great cook")."""
    match = _JOB_AT_START.match(text)
    return match[1] if match and not _BOAST.search(match[1]) else ""


def read_any_job(text: str) -> str:
    """Return the occupation after "works as", with any words."""
    match = _ANY_JOB_AT_START.match(text)
    return match[1] if match and not _BOAST.search(match[1]) else ""


def read_owned(text: str) -> str:
    """Return the possession that a text begins with, without its article: "grey cat"."""
    match = _OWNED_AT_START.match(text)
    return thing(match[1]) if match else ""


def read_brand(text: str) -> str:
    """Return the thing that is bought or driven, called by its make: "a used Subaru"."""
    match = _BRAND_AT_START.match(text)
    if match is None or is_no_name(match["name"]) or is_product(match["name"]):
        return ""
    return match[1]


def read_given_away(text: str) -> str:
    """Return the possession that is sold or given away: "the Volvo", "my bike"."""
    match = _MY_OWNED_AT_START.match(text)
    if match is None or is_product(match[1]) or is_no_name(match[1]):
        return ""
    return match[1]


# Languages, subjects of study, diets

_LANGUAGE = re.compile(
    r"(?:(?:fluent|some) )?((?:English|Spanish|French|German|Italian|Portuguese|Dutch|Polish"
    r"|Russian|Ukrainian|Czech"
    r"|Greek|Turkish|Arabic|Hebrew|Hindi|Urdu|Bengali|Tamil|Mandarin|Cantonese|Chinese|Japanese"
    r"|Korean|Vietnamese|Thai"
    r"|Swedish|Norwegian|Danish|Finnish|Hungarian|Romanian|Bulgarian|Serbian|Croatian|Swahili"
    r"|Catalan|Welsh|Irish|Farsi"
    r"|Persian|Tagalog|Slovak|Slovenian|Estonian|Latvian|Lithuanian|Icelandic)\b.*)"
)
_FIELD = re.compile(
    r"((?:[\w-]+ ){0,2}(?:science|sciences|biology|chemistry|physics|mathematics|maths?"
    r"|engineering|law|medicine|history"
    r"|philosophy|psychology|sociology|economics|literature|linguistics|architecture|design"
    r"|nursing|music|art|geography"
    rf"|geology|astronomy|statistics|business|finance|marketing|journalism|politics|theology"
    rf"|anthropology|informatics)){VALUE_END}"
)
_DIET = re.compile(
    rf"(?:an? )?(vegetarian|vegan|pescatarian|pescetarian|flexitarian|teetotal|kosher|halal"
    rf"|gluten[ -]free|keto){VALUE_END}",
    re.IGNORECASE,
)
_INTOLERANCE = re.compile(r"(lactose|gluten|fructose|histamine|nut|egg|soy)[- ]intolerant")


def read_languages(text: str) -> tuple[str, ...]:
    match = _LANGUAGE.match(text)
    return tuple(things(match[1])) if match else ()


def read_employer(text: str) -> str:
    """Return the organisation that somebody leaves: a name that is no place's and no tool's."""
    name = read_organisation(text)
    known = name.lower() in places() or is_no_name(name) or name[:1].islower()
    return "" if known or (is_product(name) and _is_no_company(name)) else name


def _is_no_company(name: str) -> bool:
    return products().group_of.get(name.lower()) in (
        "language",
        "editor",
        "shell",
        "operating_system",
    )


def read_living(text: str) -> str:
    """Return the name of a person or an animal."""
    return text if re.fullmatch(PERSON, text) and is_person(text) else ""


def read_trip(text: str) -> tuple[str, ...]:
    """Return the plans that a destination stands for: "go to Crete", "fly to Crete" and so on."""
    place = read_place(text)
    return tuple(f"{verb} {place}" for verb in _TRIP_VERBS) if place else ()


_TRIP_VERBS = ("go to", "fly to", "travel to", "drive to", "visit")
_STOLEN = re.compile(rf"(?:[\w-]+ ){{0,2}}?{_OWNED}|{NAME}")


def read_stolen(text: str) -> str:
    return text if _STOLEN.fullmatch(text) and not is_product(text) else ""


def read_field(text: str) -> str:
    match = _FIELD.match(text)
    return match[1] if match else ""


def read_diet(text: str) -> str:
    match = _DIET.match(text)
    return match[1].lower() if match else ""


def read_intolerance(text: str) -> str:
    match = _INTOLERANCE.match(text)
    return match[1] if match else ""


# Values of things: amounts, days, clock times, rooms, codes, numbers of phones, sizes

_UNIT = (
    r"(?: ?(?:€|\$|£|%|k\b|m\b|k€|million\b|thousand\b)| (?:metres?|meters?|km|cm|mm|kilometres?"
    r"|miles?|feet|kg|kilos?|grams?|tons?"
    r"|litres?|liters?|euros?|dollars?|pounds?|francs?|crowns?|zloty|yen|rupees?|degrees|square "
    r"metres|quid|kronor|kroner"
    r"|hours|days|weeks|months|people|guests|pages)\b)"
)
_AMOUNT = rf"(?:(?:about |around )?(?:[€$£] ?\d[\d,.]*\d?(?:k|m)?|\d[\d,.]*{_UNIT}(?:{_UNIT})?))"
_PER = r"(?: (?:a|an|per) (?:month|week|year|day|hour|person|head|night))?"
_AMOUNT_AT_START = re.compile(rf"({_AMOUNT}{_PER}|\d[\d,.]*\d{_PER}){VALUE_END}")
_WITH_UNIT_AT_START = re.compile(rf"({_AMOUNT}{_PER}){VALUE_END}")
_WEEKDAY = r"(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"
_DAY_LEAD = r"(?:on |for |until |the )*"
_WEEKDAY_AT_START = re.compile(
    rf"{_DAY_LEAD}((?:(?:next|every) )?{_WEEKDAY}s?){VALUE_END}", re.IGNORECASE
)
_DAY_LEAD_AT_START = re.compile(_DAY_LEAD)
_DATE_KINDS = ("iso", "dotted", "date", "weekday")
_MONTH_AT_START = re.compile(
    r"(?:in |to |for )?((?:early |mid |late |the (?:beginning|start|middle|end) of )?(?:January"
    r"|February|March|April|May|June|July"
    rf"|August|September|October|November|December)(?: \d{{4}})?){VALUE_END}"
)
_CLOCK_AT_START = re.compile(
    r"(?:at )?(\d{1,2}[:.]\d\d(?: ?[ap]\.?m\.?)?|\d{1,2} ?[ap]\.?m\.?|noon|midnight|half past \w+"
    r"|(?:\d{1,2}|\w+) o'clock)"
    rf"{VALUE_END}"
)
_HOUR_AT_START = re.compile(r"(\d{1,2})$")
_ROOM_AT_START = re.compile(
    r"(?:in |at )?(?:the )?((?:meeting |conference |class|seminar )?room [A-Z]?\d+\w?|[Rr]oom "
    r"[A-Z]\w*"
    r"|(?:[A-Z][\w'-]+ ){1,2}(?:room|hall|lab|library|office|building|church|park|hotel|café|cafe"
    r"|pub|centre|center|theatre"
    r"|studio|gym|school)|(?:small|big|large|blue|red|green|yellow|old|new|main|upper|lower)(?: "
    r"\w+)? (?:room|hall|office)"
    rf"|(?:town hall|community centre|church hall|main hall|auditorium|lecture hall|canteen"
    rf"|gym)){{1}}{VALUE_END}"
)
_CODE_AT_START = re.compile(rf"((?=[A-Za-z-]*\d)[A-Za-z0-9][\w-]*(?: \d[\d-]*)*){VALUE_END}")
_PHONE_AT_START = re.compile(
    r"(\+?\(?\d[\d ()/.-]{4,20}\d)(?=\s*(?:[,.;!]|$)| (?:now|from|since|instead)\b)"
)
_SIZE_AT_START = re.compile(rf"(?:an? )?(?:EU |UK |US )?(\d{{1,2}}(?:[.,]5)?(?: 1/2)?){VALUE_END}")
_BLOOD_AT_START = re.compile(rf"((?:AB|A|B|O)(?: (?:positive|negative)|[+-])?){VALUE_END}")
_EMAIL_AT_START = re.compile(r"([\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+)")
_SHORT_TEXT = re.compile(r"(?P<text>[^,.;:!?]{2,60})")
_TEXT_TAIL = re.compile(r"\s+(?:now|instead|from now on|again|these days|currently|at the moment)$")
_KEPT_AT_START = re.compile(
    r"((?:(?:behind|under|in|inside|on|at|above|below|beside|near|next to|on top of|underneath) "
    rf"|with (?=(?:the|my|our|{CAPITAL}))(?:{_PERSON_TITLE} )?)[\w' -]+?)"
    r"(?=\s*(?:[,.;!]|$)|\s+(?:now|instead|from now on|because|since|so|and|again)\b)"
)


def _first_group(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.match(text)
    return match[1].strip() if match else ""


def read_amount(text: str) -> str:
    """Return the amount that a text begins with: "15,000 euros", "18k", "1,150 a month"."""
    return _first_group(_AMOUNT_AT_START, text)


def read_amount_with_unit(text: str) -> str:
    return _first_group(_WITH_UNIT_AT_START, text)


def read_day(text: str) -> str:
    """Return the day that a text begins with, in its own words: "19 May", "Thursday"."""
    day = _first_group(_WEEKDAY_AT_START, text)
    if day:
        return day
    lead = _DAY_LEAD_AT_START.match(text)
    rest = text[lead.end() :] if lead else text
    for phrase in phrases(rest):
        if phrase.start == 0 and phrase.kind in _DATE_KINDS:
            return rest[: phrase.end].rstrip(" ,.")
    return _first_group(_MONTH_AT_START, text)


def read_clock_time(text: str) -> str:
    return _first_group(_CLOCK_AT_START, text)


def read_hour(text: str) -> str:
    """Return an hour without minutes: "10" of "at 10"."""
    match = _HOUR_AT_START.match(text)
    return match[1] if match and int(match[1]) <= 24 else ""


def read_room(text: str) -> str:
    """Return the room or building that a text begins with: "room 4", "Turing room"."""
    return _first_group(_ROOM_AT_START, text)


def read_code(text: str) -> str:
    return _first_group(_CODE_AT_START, text)


def read_phone_number(text: str) -> str:
    return _first_group(_PHONE_AT_START, text)


def read_size(text: str) -> str:
    return _first_group(_SIZE_AT_START, text)


def read_blood_type(text: str) -> str:
    return _first_group(_BLOOD_AT_START, text)


def read_email(text: str) -> str:
    return _first_group(_EMAIL_AT_START, text)


def read_short_text(text: str) -> str:
    """Return the words up to a comma or the end, without "now" and the like."""
    match = _SHORT_TEXT.match(text)
    if match is None:
        return ""
    words = _TEXT_TAIL.sub("", match["text"].strip())
    vague = set(words.lower().split()) & _POINTING
    return "" if vague or words.lower() in _NOT_THINGS or len(words.split()) > 8 else words


def read_kept_at(text: str) -> str:
    """Return where a thing is kept ("in the shed"); empty if it is no room or furniture."""
    where = _first_group(_KEPT_AT_START, text)
    tail = where.split()[-1] if where else ""
    return "" if tail.lower() in _NO_ROOMS or (tail.isupper() and len(tail) > 1) else where


_NO_ROOMS = word_set(
    """details detail bucket repo repository branch database schema class module package cloud
    inbox mail chat channel wiki docs documentation code config configuration header headers
    response request payload environment file files source log logs registry cluster store
    string object dictionary dict array map fire way order place progress danger doubt
    parser cache memory script commit history issue ticket notion parameters"""
)


def read_kept_in(text: str) -> str:
    """Return where a thing was moved to, as where it is kept: "the garage" is "in the garage"."""
    at = read_kept_at(f"in {text}")
    return at if at.startswith(("in the ", "in my ", "in our ")) else ""


_MEASURE_AT_START = re.compile(rf"([\w -]{{1,30}}? of {_AMOUNT}){VALUE_END}")


def read_measure(text: str) -> str:
    return _first_group(_MEASURE_AT_START, text)


_CHANGER = re.compile(
    rf"(?:I|[Ww]e|[Tt]hey|[Hh]e|[Ss]he|(?:[Mm]y|[Tt]he|[Oo]ur) [\w-]+(?: [\w-]+)?|{PERSON})(?: "
    rf"(?:have|has|had))?"
)


def read_changer(text: str) -> str:
    """Return who changes a thing; empty for things that cannot act."""
    return text if _CHANGER.fullmatch(text) else ""


# Things that have a value

_DETERMINER = re.compile(r"^(?:(my|our)|the|that|this|their|his|her) ", re.IGNORECASE)
_HEAD_END = re.compile(r" (?:for|of|to|at|in|with|from|on) ")
_THING_WORDS = re.compile(r"[\w'-]+(?: [\w'.-]+){0,7}")
MINE = "my "
"""Prefix of the speaker's own things; rules replace it by the speaker's name."""


def read_thing_of(kind: str, text: str) -> str:
    """Return the thing that all of a text names, if its noun is of a kind (see ``nouns``).

    A thing of "the" or "our" is named without it, one of somebody else keeps the name: "Hanna's
    wedding".
    """
    text = text.strip()
    determiner = _DETERMINER.match(text)
    words = text[determiner.end() :] if determiner else text
    if _THING_WORDS.fullmatch(words) is None:
        return ""
    head = _HEAD_END.split(words, maxsplit=1)[0]
    tokens = head.lower().split()
    if tokens[-1] not in nouns(kind) or set(tokens[:-1]) & nouns("technical"):
        return ""
    if set(words.lower().split()[1:]) & _POINTING or tokens[0] in _NOT_THINGS:
        return ""
    if kind == "kept" and " to " in words:
        return ""
    if kind == "code" and len(tokens) == 1 and _HEAD_END.search(words) is None:
        return ""
    if determiner is None and words[:1].isupper() and not words.split()[0].endswith("'s"):
        words = words[:1].lower() + words[1:]
    words = re.sub(r"^(?:new|current|old) ", "", words)
    if determiner and (determiner[1] or "").lower() == "my":
        return MINE + words
    return words


def read_system(text: str) -> str:
    """Return the part of a system that all of a text names: "the billing service"."""
    match = _SYSTEM.fullmatch(text.strip())
    return match["thing"] if match else ""


_SYSTEM = re.compile(
    r"(?:[Tt]he|[Oo]ur) (?P<thing>(?:[\w-]+ ){0,3}(?:service|app|application|backend|frontend"
    r"|front end|back end|api|API"
    r"|site|website|shop|server|worker|pipeline|dashboard|platform|system|ledger|store|catalogue"
    r"|catalog|warehouse"
    r"|project|product|prototype|database|client|bot|gateway|scheduler|queue|cache|search|blog"
    r"|wiki|game|module|library"
    r"|parser|compiler|crawler|importer|exporter|tests|build|CI))"
)


def other_names(thing_name: str) -> tuple[str, ...]:
    """Return other names of a thing: "budget for the kitchen" is the "kitchen budget", and back."""
    match = _OF_SOMETHING.fullmatch(thing_name)
    if match is not None:
        return (f"{match['of']} {match['head']}",)
    of, _, head = thing_name.rpartition(" ")
    if not of or of.endswith("'s") or _HEAD_END.search(thing_name):
        return ()
    return tuple(f"{head} {link}{of}" for link in ("for the ", "of the ", "for ", "of "))


_OF_SOMETHING = re.compile(
    r"(?P<head>[\w-]+(?: [\w-]+)?) (?:for|of) (?:the |my |our )?(?P<of>[\w'-]+(?: [\w'-]+)?)"
)


def read_any_thing(text: str) -> str:
    """Return the thing of any kind that all of a text names: "the drill", "my bridge"."""
    match = _ANY_THING.fullmatch(text)
    if match is None or is_vague_thing(match["thing"]):
        return ""
    if set(match["thing"].lower().split()) & (nouns("technical") | _PARTS_OF_PROGRAMS):
        return ""
    return match["thing"]


_ANY_THING = re.compile(r"(?:[Tt]he|[Mm]y|[Oo]ur) (?P<thing>[\w-]+(?: [\w-]+){0,5})")


def read_topic(text: str) -> str:
    """Return the topic of a favourite: "editor"; empty for "part" and other vague words."""
    words = text.lower().split()
    if not 1 <= len(words) <= 2 or set(words) & _NO_TOPICS or not text.replace(" ", "").isalpha():
        return ""
    return text.lower()


_NO_TOPICS = word_set(
    "part parts thing things bit one ones way moment aspect feature about of in example kind"
)
_EVENT_WORDS = (
    r"(?:appointment|meeting|interview|exam|flight|concert|wedding|trip|deadline|checkup|check-up"
    r"|surgery|operation"
    r"|party|recital|presentation|conference|reservation|audition|marathon|race|test|game"
    r"|performance|hearing)"
)
EVENT = _EVENT_WORDS

# Things that are liked, used, planned

_NOT_THINGS = word_set(
    """it that this these those you your yours him his her hers them their theirs me us how what
    when where why who which to the my our its being so too there here everything nothing
    all every one ones some any most both another more not much being having as each i we he
    she they something anything lots a lot someone seeing hearing if"""
)
_THING_END = re.compile(
    r"(?<!\bNo)\s*[.!:;…](?=\s|$)|\s*[()]|\s+[—–-]\s|\s+(?:because|but|when|whenever|since|so|as"
    r"|while|although|though|that|who"
    r"|which|where|than|too|very|these|especially|exclusively|mostly|mainly|a lot|lately|again"
    r"|today|now|anyway|every|during|after|before|over|btw"
    r"|lol|haha|instead|if|rather|more|most|even|until|like|due|here|there|most of the time|at "
    r"the moment"
    r"|and (?:I|it|we|he|she|they|you))\b"
)
_PREPOSITIONS = word_set("in on at for with from by about to of into")
_BESIDE = re.compile(r"\s+(?:in|on|at|for|with|from|by|about|to)\s")
_POINTING = word_set("you your it that this there them him her me us these those its")
_VAGUE = word_set(
    """making doing seeing being having trying getting using going things stuff people bug error
    issue option approach code refactor change"""
)
_REASON = re.compile(
    r"[,.!;:]+(?:\s|$)|\s+(?:because|since|so that|which|who|but|and (?=[a-z]))\s*"
)
_LIST_SEPARATOR = re.compile(r",\s*(?:and\s+)?|\s+and\s+")
_VERBS = re.compile(
    r"^(?:hate|love|like|am|is|are|was|go|went|do|have|has|want|need|try|get|got|can|makes?"
    r"|feels?|often|always|usually"
    r"|sometimes|never|then|also|especially|just|really|avoid|use|eat|keep|take|carry|prefer"
    r"|cannot)\b"
)
_ARTICLE = re.compile(r"^(?:an?|some) (?!lot\b|bit\b|few\b|little\b)|^a little (?=[A-Z])")
MOST_WORDS = 14
"""Words of an instruction or a decision."""

PLAN_VERBS = {
    "flying": "fly",
    "going": "go",
    "travelling": "travel",
    "traveling": "travel",
    "visiting": "visit",
    "meeting": "meet",
    "starting": "start",
    "leaving": "leave",
    "moving": "move",
    "driving": "drive",
    "taking": "take",
    "running": "run",
    "hosting": "host",
    "having": "have",
    "getting": "get",
    "attending": "attend",
    "giving": "give",
    "launching": "launch",
    "seeing": "see",
    "returning": "return",
    "presenting": "present",
    "playing": "play",
}


def thing(text: str) -> str:
    """Return the first thing that a text names; empty if it is vague."""
    return next(iter(things(text)), "")


def things(text: str) -> Iterator[str]:
    """Yield the things that a text lists, without articles, until one that is vague."""
    words = _THING_END.split(text, maxsplit=1)[0]
    parts = _LIST_SEPARATOR.split(words)
    if len(parts) > 1 and " and " not in words:
        if re.fullmatch(r"[a-z-]+", parts[0]) and not parts[0].endswith("ing"):
            return  # "mild, temperate climates"
        parts = parts[:1]
    only_doing = False
    for part in parts:
        whole = without_time(_ARTICLE.sub("", part.strip()))
        doing = re.match(r"[a-z]+ing\b", whole) is not None
        named = whole if doing else _BESIDE.split(whole, maxsplit=1)[0]
        if (only_doing and not doing) or not _is_thing(named):
            return
        yield named
        # In "exploring old towns and art" the last word depends on the verb.
        only_doing = only_doing or (doing and " " in whole) or _BESIDE.search(whole) is not None


def _is_thing(words: str) -> bool:
    tokens = re.findall(r"\w+", words.lower())
    if not tokens or len(words.split()) > 5 or tokens[0] in _NOT_THINGS or _VERBS.match(words):
        return False
    vague = len(tokens) == 1 and tokens[0] in _VAGUE
    return not vague and not _POINTING & set(tokens) and tokens[-1] not in _PREPOSITIONS


def read_product(text: str) -> str:
    """Return the known or capitalised product that a text begins with, unless it is a place."""
    first = thing(text)
    if is_product(first):
        return first
    name = read_name(text)
    return name if name and name.lower() not in places() else ""


def read_known_product(text: str) -> str:
    """Return the product of the list of products that a text begins with."""
    first = thing(text)
    if is_product(first):
        return first
    name = read_name(text)
    return name if is_product(name) else ""


def read_used(text: str) -> tuple[str, ...]:
    """Return the things that are used: names; the first is a known product or capitalised."""
    used = list(things(text))
    if not used or not (is_product(used[0]) or re.search(r"[A-Z]", used[0])):
        return ()
    return tuple(
        name
        for name in used
        if (is_product(name) or re.search(r"[A-Z]", name))
        and name.split()[-1] not in _UNITS_OF_WORK
    )


_POINTING_THIS = re.compile(
    r"\b(?:this|these)\b(?! (?:morning|afternoon|evening|week|weekend|month|year|spring|summer"
    r"|autumn|fall|winter|\w+day))"
)


def read_planned(text: str) -> str:
    """Return a plan without its date and with a plain verb; empty without a date."""
    bare = without_time(text)
    words = re.sub(
        r"\s+(?:is|is scheduled|is planned)\s*$|^be\b.*|\s+(?:now|instead)$",
        "",
        up_to_reason(bare).strip(" ,"),
    ).split()
    pointing = _POINTING & set(up_to_reason(text).lower().split()) - {"this", "these"}
    if bare == text or not 1 <= len(words) <= 8 or pointing or _POINTING_THIS.search(text):
        return ""
    words[0] = PLAN_VERBS.get(words[0], words[0])
    if words[0] in ("an", "a", "the", "have") or _POINTING & set(words):
        return ""
    if words[0] == "go" and len(words) > 1 and words[1] not in _GOING:
        return ""
    return " ".join(words[:-1] if words[-1] in _PREPOSITIONS else words)


_GOING = word_set(
    "to on for back home out away camping hiking skiing swimming sailing climbing dancing shopping"
)


def read_planned_action(text: str) -> str:
    """Return a plan that has a verb: "visit Ana", not "church"."""
    planned = read_planned(text)
    return planned if " " in planned or planned in _ACTIONS else ""


_ACTIONS = word_set("launch move retire graduate ship leave travel start")


def read_decided(text: str) -> str:
    """Return the action of a decision; empty if it is long or refers elsewhere ("do it")."""
    words = up_to_reason(text)
    is_definite = len(words.split()) <= MOST_WORDS and not _POINTING & set(words.lower().split())
    return words if is_definite else ""


def up_to_reason(text: str) -> str:
    """Return a phrase up to a comma, its end, or the reason that follows it."""
    return _REASON.split(text, maxsplit=1)[0].strip()


def without_time(text: str) -> str:
    """Return a text without the phrases that name a time."""
    for phrase in reversed(phrases(text)):
        before = re.sub(
            r"\s*\b(?:on|in|at|by|from|this|for|scheduled for|planned for)?\s*$",
            "",
            text[: phrase.start],
        )
        text = f"{before} {text[phrase.end :].strip()}".strip()
    return text


def is_vague_thing(words: str) -> bool:
    """Tell whether words are of a person or an animal, or refer to a thing without naming it."""
    tokens = words.lower().split()
    alive = tokens[-1] in KIN or is_animal(words)
    return bool(alive or (_POINTING | _NOT_THINGS) & set(tokens) - {"the", "to"})
