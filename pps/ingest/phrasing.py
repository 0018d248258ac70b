"""The English that rules read: patterns of clauses, closed lists of words, and what a thing may be called."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pps.core.time_reading import phrases
from pps.ingest.relations import KIN as _KIN

MOST_WORDS = 14
"""Words of an instruction or a decision."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CAPITAL = r"[A-ZÀ-ÖØ-ÞŁŚŠŽĐĆČŞİ]"
_NAME = rf"{_CAPITAL}[\w'&.-]*\w(?: (?:(?:of|de|da|do|del|la|las|los|van|von|der|the|and|&) )?{_CAPITAL}[\w'&-]*\w){{0,3}}"
_PERSON = rf"{_CAPITAL}[\w-]+(?: {_CAPITAL}[\w-]+){{0,2}}"
_TITLED = rf"(?:(?:Mr|Mrs|Ms|Dr|Prof)\. )?{_PERSON}"
_AS_ONE = re.compile(
    r"^(?:I|[Ww]e|[Mm]y|[Oo]ur|[Tt]he"
    rf"|{_PERSON} (?:is|has|moved|relocated|started|got|adopted|bought|will|grew|\w+s))\b"
)
# What may follow a name or a thing that has been said whole.
_END = (
    r"(?=\s*(?:[,.;:!()]|$)|\s+(?:now|with|for|since|in|on|at|near|and|because|to|as|these|this|last|next|until|from"
    r"|during|where|when|after|before|again|right|currently|recently|yesterday|today|tomorrow|a few|two|about|around"
    r"|by|alone|together|just|which|who|so|but|too|btw|lol|instead|every|most|over|finally|myself|full|part|here)\b)"
)
_WHO = rf"^(?P<who>I|[Ww]e|{_PERSON})"
_ME = r"^(?P<who>I|[Ww]e)"
_A = r"(?:an?|the|my|our|some|two|three|four|\d+)"
_OF_KIN = "|".join(sorted(_KIN, key=len, reverse=True))
_WORKPLACE = (
    r"(?:bank|hospital|school|university|college|startup|start-up|company|firm|restaurant|cafe|café|bakery|shop|store"
    r"|agency|studio|lab|clinic|library|museum|factory|hotel|bar|gym|farm|nonprofit|charity|bookstore|bookshop"
    r"|pharmacy|garage|salon|warehouse|newspaper|consultancy|publisher|airline|airport|brewery|nursery|kindergarten)"
)
_JOB = (
    r"(?:engineer|developer|programmer|designer|teacher|professor|lecturer|nurse|doctor|physician|surgeon|dentist|vet"
    r"|veterinarian|paramedic|pharmacist|therapist|psychologist|lawyer|attorney|paralegal|accountant|analyst|student"
    r"|consultant|manager|director|scientist|researcher|biologist|chemist|physicist|writer|author|editor|journalist"
    r"|reporter|translator|interpreter|artist|painter|sculptor|musician|singer|drummer|guitarist|actor|actress|dancer"
    r"|photographer|filmmaker|chef|baker|barista|bartender|waiter|waitress|carpenter|plumber|electrician|mechanic"
    r"|welder|architect|farmer|gardener|florist|driver|pilot|sailor|soldier|firefighter|officer|librarian|curator"
    r"|social worker|caretaker|cashier|realtor|broker|trader|banker|economist|entrepreneur|freelancer|intern|technician"
    r"|administrator|secretary|receptionist|coach|trainer|tutor|counselor|counsellor|midwife|historian|geologist"
    r"|statistician|mathematician|hairdresser|tailor|butcher|locksmith|radiologist|cardiologist|beekeeper|recruiter)"
)
BOASTS = re.compile(
    r"\b(?:good|great|bad|terrible|big|huge|real|true|better|best|worst|natural|amazing|wonderful|awesome|horrible|nice"
    r"|former|retired|aspiring|future|control|lousy|decent|fast|slow|backseat|sore|quick)\b"
)
_ANIMAL = (
    r"(?:dog|cat|puppy|kitten|parrot|hamster|rabbit|bunny|horse|pony|turtle|tortoise|snake|lizard|gecko|goldfish"
    r"|guinea pig|ferret|budgie|canary|chicken|goat|greyhound|labrador|poodle|beagle|retriever|terrier)"
)
_OWNED = (
    rf"(?:{_ANIMAL}|car|bike|bicycle|motorcycle|motorbike|scooter|van|truck|boat|house|apartment|flat|cottage|garden"
    r"|piano|guitar|violin|cello|ukulele|laptop|telescope|camera|typewriter|sewing machine)s?"
)
ANIMAL = re.compile(rf"\b{_ANIMAL}s?\b")
_LANGUAGE = (
    r"(?:English|Spanish|French|German|Italian|Portuguese|Dutch|Polish|Russian|Ukrainian|Czech|Greek|Turkish|Arabic"
    r"|Hebrew|Hindi|Urdu|Bengali|Tamil|Mandarin|Cantonese|Chinese|Japanese|Korean|Vietnamese|Thai|Swedish|Norwegian"
    r"|Danish|Finnish|Hungarian|Romanian|Bulgarian|Serbian|Croatian|Swahili|Catalan|Welsh|Irish|Farsi|Persian)"
)
_FIELD = (
    r"(?:science|sciences|biology|chemistry|physics|mathematics|maths?|engineering|law|medicine|history|philosophy"
    r"|psychology|sociology|economics|literature|linguistics|architecture|design|nursing|music|art|geography|geology"
    r"|astronomy|statistics|business|finance|marketing|journalism|politics|theology|anthropology|informatics)"
)
_VERB = (
    r"(?:add|address|answer|apply|ask|attach|avoid|back up|begin|book|bring|buy|call|check|cite|close|commit|confirm"
    r"|convert|create|delete|deploy|describe|document|double-check|drink|edit|eat|email|end|explain|export|feed|follow"
    r"|force|format|generate|give|handle|hardcode|import|include|install|invoice|keep|leave|let|link|list|lock|log|make"
    r"|mention|merge|modify|name|notify|number|offer|open|order|pay|pin|prefer|prefix|print|push|put|quote|read|rebase"
    r"|recommend|refer|remove|rename|reply|respond|review|round|run|save|schedule|send|set|share|show|sign|skip|squash"
    r"|start|store|suggest|summari[sz]e|take|tell|test|touch|translate|trust|turn|update|use|validate|verify|wear|wrap"
    r"|write)"
)
_DOING = {
    "flying": "fly", "going": "go", "travelling": "travel", "traveling": "travel", "visiting": "visit",
    "meeting": "meet", "starting": "start", "leaving": "leave", "moving": "move", "driving": "drive", "taking": "take",
    "running": "run", "hosting": "host", "having": "have", "getting": "get", "attending": "attend", "giving": "give",
    "launching": "launch", "seeing": "see", "returning": "return", "presenting": "present", "playing": "play",
}  # fmt: skip
_THE = r"^(?:[Tt]he|[Mm]y|[Oo]ur) (?P<thing>[\w-]+(?: [\w-]+){0,5}?)"
_AMOUNT = (
    r"\d[\d,.]*(?: ?[€$£%]| (?:metres?|meters?|km|cm|mm|kilometres?|miles?|feet|kg|kilos?|grams?|tons?|litres?|liters?"
    r"|euros?|dollars?|pounds?|francs?|crowns?|zloty|yen|rupees?|degrees|square metres))"
)
_EVENT = (
    r"(?:appointment|meeting|interview|exam|flight|concert|wedding|trip|deadline|checkup|check-up|surgery|operation"
    r"|party|recital|presentation|conference|reservation|audition|marathon|race|test|game|performance|hearing)"
)

STATEMENTS: tuple[tuple[str, str], ...] = (
    ("name", rf"^[Mm]y name is (?P<what>{_PERSON})(?P<sure>{_END})"),
    ("name", rf"^(?:[Jj]ust |[Ee]veryone calls |Please )?(?:[Cc]all )?me (?P<what>{_CAPITAL}\w+)(?P<sure>[.!]?$)"),
    ("name", rf"^I am (?P<what>{_PERSON})"
             r"(?:$|[.!]|,? (?:and I am new|(?P<sure>nice to|your |by the way|pleased)).*|,.*)"),
    ("LIVES_IN", rf"{_WHO} (?:lives?|(?:am|is|are) living|(?:have |has )?(?:been living|lived)(?= in .*since)) in "
                 rf"(?:the )?(?P<what>{_NAME}){_END}"),
    ("LIVES_IN", rf"{_WHO} (?:have |has )?(?:just )?(?:moved|relocated)(?: back)?(?: from {_NAME})? to (?:the )?"
                 rf"(?P<what>{_NAME}){_END}"),
    ("FROM", rf"{_WHO} (?:(?:am|is|are|comes?)(?: originally)? from|grew up in) (?:the )?(?P<what>{_NAME}){_END}"),
    ("WORKS_AT", rf"{_WHO} (?:works?|(?:am|is|are) working|(?:have |has )?(?:just )?started(?: working)?"
                 rf"|(?:have |has )?(?:just )?got(?:ten)? an? (?:new )?job|(?:have|has) a (?:new )?job) (?:at|for) "
                 rf"(?:(?:the )?(?P<what>{_NAME}){_END}|an? (?P<where>(?:\w+ ){{0,2}}{_WORKPLACE}){_END})"),
    ("work", rf"{_WHO} (?:am|is|works?|(?:am|is) working|started|have a job)(?: as)? (?:an?|the)(?: new)? "
             rf"(?P<job>(?:[a-z-]+ ){{0,2}}{_JOB})(?: (?:at|for|with) (?:the )?(?P<place>{_NAME})(?={_END}))?{_END}"),
    ("work", rf"{_WHO} works? as an? (?P<job>(?:[\w-]+ ){{0,2}}[\w-]+)"
             rf"(?: (?:at|for) (?:the )?(?P<place>{_NAME}))?{_END}"),
    ("STUDIES", rf"{_WHO} (?:study|studies|(?:am|is) studying) (?P<what>(?:[\w-]+ ){{0,2}}{_FIELD}){_END}"),
    ("SPEAKS", rf"{_WHO} speaks? (?:(?:fluent|some) )?(?P<what>{_LANGUAGE}\b.*)"),
    ("BORN_ON", rf"^(?:[Mm]y birthday is(?: on)?|{_WHO[1:]} was born on) (?P<what>(?:the )?[\w ]*\d[\w ,]*?){_END}"),
    ("MARRIED_TO", rf"{_WHO} (?:am|is|are) married to (?P<what>{_PERSON})"),
    ("named", rf"{_WHO} (?:have(?: got)?|has|own|adopted|got) (?:{_A} )?(?P<what>(?:[\w-]+ ){{0,3}}[\w-]+) "
              rf"(?:named|called) (?P<name>{_PERSON}(?:,? (?:and )?{_PERSON})*)"),
    ("named", rf"{_WHO} (?:have(?: got)?|has|own|adopted|got) {_A} (?P<what>(?:[\w-]+ ){{0,2}}{_ANIMAL}s?)[,:] "
              rf"(?P<name>{_PERSON}(?:,? (?:and )?{_PERSON})*)"),
    ("plan", rf"{_WHO} (?:have|has) an? (?P<what>(?:[\w-]+ ){{0,2}}{_EVENT}\b.*)"),
    ("plan", rf"^(?P<who>[Mm]y|[Oo]ur) (?P<what>(?:[\w-]+ ){{0,2}}{_EVENT} is "
             r"(?:scheduled for|planned for|on|in)\b.*)"),
    ("HAS", rf"{_WHO} (?:have(?: got)?|has|owns?|bought|adopted|got) "
            rf"(?P<what>{_A} (?:[\w-]+ ){{0,3}}{_OWNED}){_END}"),
    ("HAS", rf"{_WHO} (?:owns?|adopted) (?P<what>(?:an?|two|three) (?:[\w-]+ ){{0,2}}[\w-]+){_END}"),
    ("HAS", rf"{_WHO} (?:bought|drives?) "
            rf"(?P<what>an? (?:(?:new|used|second-hand|red|blue|black|white) )?{_NAME}){_END}"),
    ("IS_A", rf"^(?P<who>{_PERSON}) is (?P<what>an? (?:[\w-]+ ){{0,4}}{_ANIMAL})\b"),
    ("of a thing IS_CALLED", rf"{_THE} (?:is|are) (?:called|named) (?P<what>{_NAME}){_END}"),
    ("of a thing KEPT_AT", rf"{_THE} (?:hangs?|stands?|lies?|(?:is|are) (?:kept|stored|hidden|parked)) "
                           r"(?P<what>(?:behind|under|in|on|at|above|below|beside|near|next to) [\w' -]+?)(?=[,.!]|$)"),
    ("of a thing IS", rf"{_THE} (?:is|are|costs?|amounts? to|(?:went|goes) (?:up|down) to|rose to|fell to) "
                      rf"(?P<what>{_AMOUNT}){_END}"),
    ("of a thing IS", r"^(?:[Tt]he|[Mm]y|[Oo]ur) (?P<thing>(?:[\w-]+ ){0,2}(?:number|code|plate)(?: of [\w -]+?)?) is "
                      rf"(?P<what>[\w-]*\d[\w-]*){_END}"),
    ("of a thing MEASURES", rf"{_THE} has an? (?P<what>[\w -]{{1,30}}? of {_AMOUNT}){_END}"),
    ("KNOWS", rf"^(?P<who>{_PERSON}) knows (?P<what>{_PERSON}){_END}"),
    ("LIKES", rf"{_WHO} (?:likes?|loves?|enjoys?|(?:am|is) (?:very )?(?:into|a (?:big |huge )?fan of)) (?P<what>.+)"),
    ("DISLIKES", rf"{_WHO} (?:hates?|dislikes?|detests?) (?P<what>.+)"),
    ("PREFERS", rf"{_WHO} prefers? (?P<what>.+)"),
    ("PREFERS", r"^(?P<who>[Mm]y) (?:all-time )?favou?rite [\w-]+(?: [\w-]+)? (?:is|are) (?P<what>.+)"),
    ("ALLERGIC_TO", rf"{_WHO} (?:am|is) (?:\w+ly )?allergic to (?P<what>.+)"),
    ("decision", rf"{_ME} (?:have )?(?:decided|agreed)(?: (?:at|in|with|on) [\w ]{{1,30}}?)? to (?P<what>.+)"),
    ("decision", rf"{_ME} (?P<what>(?:will use|chose|went with|am going with|are going with|settled on|switched"
                 r"|migrated) .+)"),
    ("plan", rf"{_WHO} (?:(?:am|is|are) going to|will|plans? to|(?:am|is|are) planning to) (?=[a-z])(?P<what>.+)"),
    ("plan", rf"{_WHO} (?:am|is|are) (?P<what>(?:{'|'.join(_DOING)}) .+)"),
    ("USES", rf"{_ME} (?:use|am using|are using) (?P<what>.+)"),
)  # fmt: skip
"""Relation, or how a clause is read, and the pattern of such a clause; the first that finds something has it."""

CHOICE = re.compile(
    rf"^(?:(?:will )?(?:use|adopt)|(?P<loose>(?:am |are )?go(?:ing)? with|went with|chose|choose|settled on)"
    rf"|(?:switch|migrat)(?:ed|e)?(?: from {_NAME})? to) (?P<what>.+)"
)
ORDER = re.compile(
    rf"^(?:please )?(?P<when>always|never) (?!give up|say never)(?P<what>(?:force-)?{_VERB}\b .+)",
    re.IGNORECASE,
)
PLEASE = re.compile(r",?\s*(?:please|ok|okay|thanks|thank you)[.!]*$", re.IGNORECASE)
KIN_LEAD = re.compile(rf"^[Mm]y (?:[a-z-]+ )?(?:{_OF_KIN}),? (?={_CAPITAL})({_PERSON})?", re.ASCII)
_MY_KIN = rf"\b[Mm]y (?:(?:best|older|younger|little|big|elder|twin|new|old|dear|late) )?(?P<kin>{_OF_KIN})"
KIN = tuple(map(re.compile, (
    rf"{_MY_KIN},? (?P<name>{_PERSON})",
    rf"{_MY_KIN}(?:'s name)? is (?:called |named )?(?P<name>{_TITLED})(?=[.,!]|$)",
    rf"^(?:[Tt]he|[Oo]ur) (?P<kin>{_OF_KIN}) is (?:called |named )?(?P<name>{_TITLED})(?=[.,!]|$)",
    rf"\b(?P<name>{_PERSON}), my (?:[a-z]+ )?(?P<kin>{_OF_KIN})(?=[.,!]|$)",
    rf"^(?P<name>{_PERSON}) is my (?:[a-z]+ )?(?P<kin>{_OF_KIN})\b(?!')",
    rf"^(?P<name>{_PERSON}) is (?P<of>{_PERSON})'s (?:[a-z]+ )?(?P<kin>{_OF_KIN})\b(?!')",
)))  # fmt: skip
_MY_PET = rf"\b(?:[Mm]y|[Oo]ur) (?:[a-z]+ )?{_ANIMAL}s?"
PETS = tuple(map(re.compile, (
    rf"{_MY_PET},? (?P<name>{_PERSON})",
    rf"{_MY_PET}(?:'s name)? (?:is|are)(?: called| named)? (?P<name>{_PERSON}(?:,? (?:and )?{_PERSON})*)(?=[.,!]|$)",
)))  # fmt: skip

PEOPLE = re.compile(
    r"(?:ian|ish|ese|ean|Dutch|French|Greek|German|American|Done|Sorry|Back|Jewish|Muslim)$"
)
_NO_NAMES = _words(
    """he she it they you we who what this that these those there here everyone everybody someone somebody anyone nobody
    people one mr mrs ms dr the a an my our your his her their its mom mum dad mother father sister brother monday
    tuesday wednesday thursday friday saturday sunday january february march april may june july august september
    october november december yes no ok okay god today tomorrow yesterday some many most all both each if when where
    why how and or but so as at in on for with by from to of not never always then than also just life love time work
    everything nothing something home tongue nature earth tv let please thanks hello hey hi i"""
)
_NOT_THINGS = _words(
    """it that this these those you your yours him his her hers them their theirs me us how what when where why who
    which to the my our its being so too there here everything nothing all every one ones some any most both another
    more not much being having as each i we he she they something anything lots a lot someone seeing hearing if"""
)
_THING_END = re.compile(
    r"\s*[.!:;…](?=\s|$)|\s*[()]|\s+[—–-]\s|\s+(?:because|but|when|whenever|since|so|as|while|although|though|that|who|which|where|than|too"
    r"|very|these|especially|a lot|lately|again|today|now|anyway|every|during|after|before|over|btw|lol|haha|instead|if"
    r"|rather|more|most|even|until|like|due|and (?:I|it|we|he|she|they|you))\b"
)
_PREPOSITIONS = _words("in on at for with from by about to of into")
_BESIDE = re.compile(r"\s+(?:in|on|at|for|with|from|by|about|to)\s")
_POINTING = _words("you your it that this there them him her me us these those its")
_VAGUE = _words("making doing seeing being having trying getting using going things stuff people")
_REASON = re.compile(
    r"[,.!;:]+(?:\s|$)|\s+(?:because|since|so that|which|who|but|and (?=[a-z]))\s*"
)
_AND = re.compile(r",\s*(?:and\s+)?|\s+and\s+")
_VERBS = re.compile(
    r"^(?:hate|love|like|am|is|are|was|go|went|do|have|has|want|need|try|get|got|can|makes?|feels?|often|always|usually"
    r"|sometimes|never|then|also|especially|just|really)\b"
)
_MAY = re.compile(
    r"\b(?:i|we|my|our|me|lives?|moved|relocated|from|works?|working|is|has|owns?|adopted|bought|likes?|loves?|enjoys?|hates?"
    r"|prefers?|speaks?|studies|always|never|drives?|are|hangs?|stands?|lies?|costs?|amounts?|went|goes|rose|fell)\b",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"^(.+?)(?:, (?:and )?not|,? instead of|,? rather than|,? over) (?P<other>[\w.+#-]+(?: (?!for\b)[\w.+#-]+){0,2})"
    r"(?:,? for [\w' -]+)?[.!]*$"
)
_TO_OTHER = re.compile(r"^(.+ prefers? .+?) to [\w -]+[.!]*$")
_FROM_OTHER = re.compile(rf"^.*\b(?:switched|migrated|switch|migrate) from (?P<other>{_NAME}) to ")


def may_state(content: str) -> bool:
    return _MAY.search(content) is not None


def has_subject(clause: str) -> bool:
    """Tell whether a clause begins with a person and, where that is not "I", a verb in the third person."""
    return _AS_ONE.match(clause) is not None


def without_other(clause: str) -> tuple[str, str]:
    """Return a clause without what it chooses against, and that: "use Rust, not Go" → ("use Rust", "Go")."""
    if match := _OTHER.match(clause):
        return match[1], match["other"].rstrip(".")
    if match := _TO_OTHER.match(clause):
        return match[1], ""
    before = _FROM_OTHER.match(clause)
    return clause, before["other"] if before else ""


def is_vague(thing: str) -> bool:
    """Tell whether the words of a thing are a person's or an animal's, or point at what they do not name."""
    words = thing.lower().split()
    lives = words[-1] in _KIN or ANIMAL.search(thing)
    return bool(lives or (_POINTING | _NOT_THINGS) & set(words) - {"the", "to"})


def is_no_name(name: str) -> bool:
    """Tell whether a capitalised word is no name: a pronoun, a day, the beginning of a sentence."""
    return not name or name.split()[0].lower() in _NO_NAMES


def bare_name(name: str) -> str:
    return re.sub(r"(?:'s|[.'])$", "", name)


def names_in(listed: str) -> list[str]:
    return [name for name in map(bare_name, _AND.split(listed)) if not is_no_name(name)]


def thing(text: str) -> str:
    """Return what a text names first; empty when that is nothing in particular, or more than a name."""
    return next(iter(things(text)), "")


def things(text: str) -> Iterator[str]:
    """Yield the things that a text lists, each without its article, until one that is nothing in particular."""
    said = _THING_END.split(text, maxsplit=1)[0]
    parts = _AND.split(said)
    if len(parts) > 1 and " and " not in said:
        parts = parts[:1]
    only_doing = False
    for part in parts:
        words = re.sub(
            r"^(?:an?|some) (?!lot\b|bit\b|few\b|little\b)|^a little (?=[A-Z])", "", part.strip()
        )
        whole = _without_time(words)
        doing = re.match(r"[a-z]+ing\b", whole) is not None
        named = whole if doing else _BESIDE.split(whole, maxsplit=1)[0]
        if (only_doing and not doing) or not _is_thing(named):
            return
        yield named
        # In "exploring old towns and art" and "books about war and peace" the last word is no thing of its own.
        only_doing = only_doing or (doing and " " in whole) or _BESIDE.search(whole) is not None


def _is_thing(words: str) -> bool:
    tokens = re.findall(r"\w+", words.lower())
    if not 1 <= len(words.split()) <= 5 or tokens[0] in _NOT_THINGS or _VERBS.match(words):
        return False
    vague = len(tokens) == 1 and tokens[0] in _VAGUE
    return not vague and not _POINTING & set(tokens) and tokens[-1] not in _PREPOSITIONS


def planned(text: str) -> str:
    """Return what is planned, its date left out and its verb plain; empty without a date, or for nothing definite."""
    bare = _without_time(text)
    words = re.sub(
        r"\s+(?:is|is scheduled|is planned)\s*$|^be\b.*", "", up_to_reason(bare).strip(" ,")
    ).split()
    if bare == text or not 1 <= len(words) <= 8:
        return ""
    words[0] = _DOING.get(words[0], words[0])
    if words[0] in ("an", "a", "the", "have") or _POINTING & set(words):
        return ""
    return " ".join(words[:-1] if words[-1] in _PREPOSITIONS else words)


def decided(text: str) -> str:
    """Return what is decided to be done; empty when it is long, or done to something that the words do not name."""
    words = up_to_reason(text)
    named = len(words.split()) <= MOST_WORDS and not _POINTING & set(words.lower().split())
    return words if named else ""


def up_to_reason(text: str) -> str:
    """Return a phrase up to a comma, its end, or the reason that follows it."""
    return _REASON.split(text, maxsplit=1)[0].strip()


def _without_time(text: str) -> str:
    for phrase in reversed(phrases(text)):
        before = re.sub(
            r"\s*\b(?:on|in|at|by|from|this|for|scheduled for|planned for)?\s*$",
            "",
            text[: phrase.start],
        )
        text = f"{before} {text[phrase.end :].strip()}".strip()
    return text
