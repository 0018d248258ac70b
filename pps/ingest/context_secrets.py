"""Detectors of secrets by context: a login, a call, a directive, a header, a name, a command line.

Each rule is a context that holds secrets in any program or language. If the context alone shows
that a value is a secret (an assignment to ``…_SECRET``), a mix of letters and digits is enough; if
it only shows that one is near ("the password of the router … "), the value must look like one
beyond doubt.
"""

from __future__ import annotations

import re

from pps.ingest.detectors import TOKEN_START, Detector, detector, entropy_bits, given, looks_random
from pps.ingest.spoken_secrets import (
    OPENED,
    PASSWORD_NOUNS,
    SHORT_NOUNS,
    VALUE,
    any_of,
    is_beyond_doubt,
    is_no_secret,
    is_quoted_secret,
)

_LOGIN_NOUNS = (
    *("user", "username", "login", "account", "email", "e-mail", "uid", "usuario", "usuário"),
    *("benutzer", "benutzername", "utilisateur", "identifiant", "utente", "gebruiker"),
    *("użytkownik", "логин", "пользователь", "账号", "用户名", "ユーザー", "아이디"),
)
_DIRECTIVES = (
    *(r"requirepass", r"masterauth", r"key-string", r"snmp-server[ \t]{1,4}community"),
    *(r"community[ \t]{1,4}string(?:[ \t]{1,4}is)?", r"enable[ \t]{1,4}(?:secret|password)"),
    r"(?:neighbor|peer)[ \t]{1,4}\S{1,60}[ \t]{1,4}password",
    r"username[ \t]{1,4}\S{1,60}[ \t]{1,4}(?:secret|password)",
    r"encrypt_string",
    r"(?:ENV|ARG|setenv|set[ \t]{1,4}-g?x)[ \t]{1,4}[A-Za-z0-9_]{0,60}"
    r"(?:PASS|PASSWORD|PWD|SECRET|TOKEN|API_KEY)",
)
"""Patterns of the words before a secret in configuration files and command lines; blanks follow."""
_NO_HEADERS = (
    "(?!(?:idempotency|cache|surrogate|partition|sec-websocket|routing|sort|host|public)-)"
)
_CODE_NOUNS = (
    *("alarm code", "door code", "gate code", "garage code", "garage door code", "entry code"),
    *("keypad code", "safe code", "lock code", "locker code", "unlock code"),
    *("bank pin", "card pin", "phone pin", "sim pin"),
)
_ONE_TIME_NOUNS = (
    *("one-time code", "one time code", "verification code", "login code", "security code"),
    *("confirmation code", "bestätigungscode", "code de vérification", "código de verificación"),
)
_VERSIONED = re.compile(r"[^\W\d_]{2,}[-_ ]?v?\d+(?:\.\w+)*[^\W\d_]{0,4}\d?\Z")
"""A word with a number behind it: Debian12.5, OAuth2.0, iPhone15Pro."""
_HAS_INNER = re.compile(r"[a-z][A-Z]{1,3}[a-z]+\d\Z")
_PLACEHOLDER_WORD = re.compile(
    r"(?i)(?:password|secret|token|hunter|test|example|changeme|none)\d*\Z"
)
_LEAST_KEY_BITS = 4.0
_LEAST_PREFIXED = 32


def context_secrets() -> tuple[Detector, ...]:
    return (*_beside_a_login(), *_assigned(), *_handed_over(), *_near_a_noun(), *_codes())


def _beside_a_login() -> tuple[Detector, ...]:
    password = any_of((*PASSWORD_NOUNS, *SHORT_NOUNS))
    quotes = r"[\"'`]{0,2}"
    return (
        given(
            "Password",
            _LOGIN_NOUNS,
            rf"(?i:(?<!\w)(?:{any_of(_LOGIN_NOUNS)}))(?!\w){quotes}"
            rf"[ \t]{{0,3}}(?:[:=：]|=>)?[ \t]{{0,3}}"
            rf"{quotes}[^\s\"'`,;]{{1,60}}{quotes}[,;]?\s{{1,4}}"
            rf"(?:(?:and|und|y|et|e|en|i|и)[ \t])?{quotes}"
            rf"(?i:(?<!\w)(?:{password}))(?!\w){quotes}"
            rf"[ \t]{{0,3}}(?:[:=：]|=>)?[ \t]{{0,3}}{OPENED}{VALUE}",
            _is_mixed,
        ),
        given(
            "Password",
            ("pass", "passwd", "pwd"),
            r"[\"'](?i:pass|passwd|pwd|pw)[\"']\]?[ \t]{0,4}(?::|=>|=)[ \t]{0,4}"
            r"[\"']([^\s\"'<>{}]{5,128})(?=[\"'])",
            _is_mixed,
        ),
        given(
            "Password",
            ("connect", "login", "auth", "sign_in", "signin"),
            r"(?i:\b[\w.]{0,60}(?:connect|login|log_in|auth|authenticate|sign_?in))"
            r"\w{0,12}(?:=\(|\()"
            r"(?:[^()\n\"']{0,60}[\"'][^\"'\n]{0,200}[\"'],){1,3}"
            r"[ \t]{0,4}[\"']([^\s\"'<>{}]{6,128})[\"'][ \t]{0,4}\)",
            is_quoted_secret,
        ),
    )


def _assigned() -> tuple[Detector, ...]:
    return (
        # JWT_SECRET: …, SESSION_SALT=…: names of settings, in capitals
        given(
            "API Key",
            ("secret", "salt", "token", "passphrase"),
            r"(?<![\w.-])[A-Z][A-Z0-9_]{0,60}(?:SECRET|SALT|TOKEN|PASSPHRASE)[\"']?"
            r"[ \t]{0,3}[:=][ \t]{0,3}[\"']?([^\s\"'`<>{}()\[\]$,;]{12,200})(?=[\"',;]?(?:\s|\Z))",
            _is_mixed,
        ),
        # variable "db_password" { default = "…" }
        given(
            "Password",
            ("default",),
            r"(?i:variable)[ \t]{1,4}\"[\w-]{0,60}(?i:password|passwd|secret|token|api_?key)\""
            r"\s{0,4}\{[^{}]{0,200}?(?i:default)[ \t]{0,8}=[ \t]{0,4}\"([^\s\"$]{6,200})\"",
            _is_mixed,
        ),
        given(
            "Password",
            (
                *("requirepass", "masterauth", "key-string", "community", "enable", "neighbor"),
                *("peer", "username", "encrypt_string", "env", "arg", "set -"),
            ),
            rf"(?<![\w-])(?:{'|'.join(_DIRECTIVES)})[ \t]{{1,4}}(?:\d[ \t]{{1,4}})?[\"']?"
            r"([^\s\"'`<>{}$;&|()/][^\s\"'`<>;&|]{5,128})",
            _is_mixed,
        ),
    )


def _handed_over() -> tuple[Detector, ...]:
    return (
        given(
            "Authorization Token",
            ("authorization",),
            r"(?i:authorization)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?"
            r"([\w.~+/=-]{24,4000})(?![\w.~+/=-])",
            looks_random,
        ),
        given(
            "API Key",
            ("-key", "-token", "-secret"),
            rf"(?<![\w-])(?i:{_NO_HEADERS}[A-Za-z]{{1,20}}(?:-[A-Za-z]{{1,20}}){{0,5}}"
            rf"-?(?:key|token|secret))[\"']?:[ \t]{{0,4}}[\"']?"
            r"([A-Za-z0-9+/=_.-]{20,400})(?![\w+/=-])",
            looks_random,
        ),
        # https://discord.com/api/webhooks/…/KEY: the address itself grants access
        given(
            "Webhook Address",
            ("/webhook", "/hooks/"),
            r"https?://[\w.-]{1,100}/(?:[\w.-]{1,60}/){0,4}(?:webhooks?|hooks)/"
            r"(?:[\w.@-]{1,60}/){0,4}([\w-]{20,200})(?![\w-])",
            _is_random_path,
        ),
        # acme_live_9fQ…: a vendor's short prefix, and a long generated run of both cases
        detector(
            "API Key",
            ("_", "-"),
            rf"{TOKEN_START}(?!(?i:sha\d{{3}}-))[A-Za-z][a-z0-9]{{1,11}}"
            rf"(?:[_-][a-z0-9]{{1,8}}){{0,2}}[_-]"
            rf"[A-Za-z0-9]{{{_LEAST_PREFIXED},200}}(?![A-Za-z0-9+/=])",
            tail=None,
            accepts=_is_prefixed_key,
        ),
        detector("Square Access Token", ("EAAA",), rf"{TOKEN_START}EAAA[A-Za-z0-9_-]{{56,64}}"),
        detector(
            "Fly Token",
            ("fm1a_", "fm1r_", "fm2_"),
            rf"{TOKEN_START}fm(?:1[ar]|2)_[A-Za-z0-9+/=]{{40,800}}",
            tail=None,
        ),
    )


def _near_a_noun() -> tuple[Detector, ...]:
    few_words = r"(?:,?[ \t][^\s\d\"'`:=.;]{1,24}){0,4}?"
    noun = rf"(?i:{any_of(PASSWORD_NOUNS)})[^\W\d_]{{0,6}}"
    return (
        # "пароль от вайфая …", "mi contraseña nueva de Gmail, …": a noun, a few words, the value
        given(
            "Password",
            PASSWORD_NOUNS,
            rf"{noun}{few_words}[ \t]{{0,2}}[:=：,—–-]?[ \t]{{1,3}}{OPENED}{VALUE}",
            _is_password_in_prose,
        ),
        # "mot de passe du wifi : …", "hasło do routera: …": the password follows a colon
        given(
            "Password",
            PASSWORD_NOUNS,
            rf"{noun}{few_words}[ \t]{{0,2}}[:：][ \t]{{0,3}}"
            rf"{OPENED}{VALUE}(?=[\"'`.,;)]{{0,2}}(?:\s|\Z))",
            _is_mixed_twice,
        ),
        # The value first: a phrase such as "uses … as its password" follows it
        given(
            "Password",
            PASSWORD_NOUNS,
            rf"(?<![^\s\"'`(]){VALUE}[\"'`]{{0,2}}[ \t]{{1,3}}"
            rf"(?:(?i:as|als|como|comme|come)[ \t]|\()(?:[^\s\d:;]{{1,16}}[ \t]){{0,3}}?{noun}",
            _is_password_in_prose,
        ),
    )


def _codes() -> tuple[Detector, ...]:
    is_given = r"(?i:[ \t]{1,3}(?:is|was|ist|est|es)|[ \t]{0,2}[:=：])"
    return (
        given(
            "PIN",
            _CODE_NOUNS,
            rf"(?i:(?<!\w)(?:{any_of(_CODE_NOUNS)}))[ \t]{{1,3}}"
            rf"([*#]?\d{{4,8}}[*#]?)(?![\w.,:/%-]?\w)",
        ),
        given(
            "One-time Code",
            _ONE_TIME_NOUNS,
            rf"(?i:(?<!\w)(?:{any_of(_ONE_TIME_NOUNS)})){is_given}[ \t]{{0,3}}"
            rf"(\d{{4,8}}|\d{{3}}[ -]\d{{3}})(?![\w.,:/%-]?\w)",
        ),
    )


def _is_mixed(value: str) -> bool:
    """Tell whether a value has letters and digits and is no placeholder, path or code."""
    core = value.rstrip(".,;:!?)")
    if len(core) < 6 or is_placeholder_or_path(core):
        return False
    return any(map(str.isalpha, core)) and any(map(str.isdigit, core))


def _is_mixed_twice(value: str) -> bool:
    """As ``_is_mixed``, with two digits or a sign between: ``step2`` is a word."""
    core = value.rstrip(".,;:!?)")
    has_sign = any(not char.isalnum() and char not in "-_./" for char in core)
    return (
        len(core) >= 7
        and _is_mixed(core)
        and (sum(map(str.isdigit, core)) >= 2 or has_sign)
        and not _is_versioned(core)
        and not is_no_secret(core)
    ) or is_beyond_doubt(value)


def _is_password_in_prose(value: str) -> bool:
    core = value.rstrip(".,;:!?)")
    return is_beyond_doubt(value) and not _is_versioned(core)


def _is_versioned(value: str) -> bool:
    return "_" not in value and _VERSIONED.match(value) is not None and not _HAS_INNER.search(value)


def is_placeholder_or_path(value: str) -> bool:
    return (
        "://" in value
        or value.startswith(("/", "~", "./", "../", "$", "%", "@", "<", "{", "[redacted"))
        or re.search(r"[A-Za-z_]\w*\.[A-Za-z_]\w*[.\[(]|\w[\[(]|/[\w-]+/", value) is not None
        or _PLACEHOLDER_WORD.match(value) is not None
        or is_no_secret(value)
    )


def _is_random_path(value: str) -> bool:
    has_cases = value != value.lower() and value != value.upper()
    return looks_random(value) or (has_cases and value.isalnum() and entropy_bits(value) >= 3.5)


def _is_prefixed_key(value: str) -> bool:
    run = re.split(r"[_-]", value)[-1]
    kinds = (str.islower, str.isupper, str.isdigit)
    return all(any(map(kind, run)) for kind in kinds) and entropy_bits(run) >= _LEAST_KEY_BITS


_NAMED = r"[\w.\-]{0,40}[\\\"'\])*`]{0,3}[ \t]{0,4}"
_OPENED = r"\*{0,2}[ \t]{0,4}[\\\"'`(]{0,3}"
_ASSIGNED = rf"{_NAMED}(?::=|=>|::|==|=|:|：){_OPENED}"
_SHOWN = rf"{_NAMED}(?::=|=>|::|==|=|:|：|\|)(?:[ \t]{{0,4}}\r?\n){{0,2}}{_OPENED}"
"""As ``_ASSIGNED``; also in a table, or on a line of its own below the name."""
_PASSWORDS = (
    "password|passwd|pwd|passphrase|passwort|kennwort|senha|contraseña|contrasena|mot de passe"
    "|wachtwoord"
    "|hasło|пароль|密码|密碼|口令|パスワード|비밀번호"
)
_VALUE = r"((?:[^\s\"'`\\<]|\\(?![\"'])|<(?!/)){6,128})"
"""A password, which may hold signs of shells and templates, up to a quote or a closing tag."""
_SESSION = re.compile(r"(?i)(?:sess|sid|auth|token|jwt|login)[^=;]{0,60}=[^;]{8}")
"""A cookie whose name says that it opens a session."""


_FILLED_IN = re.compile(
    r"\$\{?[A-Za-z_]\w*\}?(?!\w)|\$\(|\$\{|<[\w .-]+>|\{\{|\{[\w.:!]*\}|%[({]|\[redacted"
    r"|[\[({]*[A-Za-z_]\w*(?:\.\w+)*[(\[{](?:[\"')\]}]|[A-Za-z_][\w.]*(?:[\"')\],(=]|\Z)|\Z)"
    r"|[\[({]*[a-z_]+[0-9]*(?:\.\w+)+|[\[({]*[A-Za-z_]\w*[),\]};](?!\w)|[()\[\]{},;:.]"
)
"""Start of a stand-in for a value: a variable, a placeholder, code that looks the value up."""


def given_secrets() -> tuple[Detector, ...]:
    return (*_named(), *_sent(), *_spoken(), *_written())


def _named() -> tuple[Detector, ...]:
    key = r"(?:api|auth|service|account|access|db|client|private)[-_ ]?key"
    token = rf"(?i:{key}|secret|token|passphrase|credential)"
    password = rf"(?i:{_PASSWORDS}|db_?pass|key_?pass)"
    return (
        given(
            "API Key",
            ("key", "secret", "token", "passphrase", "credential"),
            rf"{token}{_SHOWN}([A-Za-z0-9+/=_.~-]{{16,500}})",
            looks_random,
        ),
        given(
            "Password",
            (*_PASSWORDS.split("|"), "_pass", "dbpass", "keypass"),
            rf"{password}(?:{_ASSIGNED}|>){_VALUE}",
            _is_password,
        ),
    )


def _sent() -> tuple[Detector, ...]:
    return (
        given(
            "Bearer Token",
            ("bearer ",),
            r"(?i:bearer)[ \t]{1,4}([A-Za-z0-9._~+/=-]{20,4000})",
            looks_random,
        ),
        given(
            "Basic Auth Credentials",
            ("basic ",),
            r"(?i:authorization)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?"
            r"(?i:basic)[ \t]{1,4}([A-Za-z0-9+/=]{8,500})",
        ),
        given(
            "Authorization Token",
            ("authorization",),
            r"(?i:authorization)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?"
            r"[A-Za-z-]{2,20}[ \t=]{1,4}[\"']?([\w.~+/=-]{16,4000})",
            looks_random,
        ),
        given("Basic Auth Credentials", ("://",), r"://([A-Za-z0-9_-]{20,200}):?@", looks_random),
        given(
            "Basic Auth Credentials",
            ("@tcp(", "@unix("),
            r"(?<![^\s\"'`=(])[\w.-]{1,64}:([^\s:@/\"'`\[]{3,128})@(?:tcp|unix)\(",
        ),
        given(
            "Basic Auth Credentials",
            ("://",),
            r"://[^\s:/?#@\"'<>]{0,100}:([^\s/@\"'<>{}\[\]]{3,200})@",
        ),
    )


def _spoken() -> tuple[Detector, ...]:
    behind = r"[ \t=]{1,4}[\"']?"
    return (
        given(
            "Password",
            ("password is ", "passwort ist ", "passphrase is "),
            r"(?i:password is|passwort ist|passphrase is)[ \t:]{1,4}[\"'`*]{0,3}"
            r"([^\s\"'`*<>]{8,128})",
            _is_odd_password,
        ),
        given(
            "Password",
            ("--pass",),
            rf"--pass(?:word|wd|phrase)?{behind}(?!-){_VALUE}",
            _is_password,
        ),
        given(
            "Password",
            ("sshpass ",),
            r"sshpass[ \t]{1,4}-p[ \t]{0,2}[\"']?([^\s\"'`]{4,128})",
            _is_chosen,
        ),
        given(
            "Password",
            ("login ",),  # of .netrc
            r"(?i:machine\s{1,4}\S{1,253}|default)\s{1,4}login\s{1,4}\S{1,100}\s{1,4}"
            r"password\s{1,4}([^\s\[]{4,128})",
        ),
        given(
            "API Key",
            ("--token", "--api-key", "--secret", "--access-token"),
            rf"--(?:access-)?(?:token|api-key|secret){behind}([A-Za-z0-9+/=_.~-]{{16,500}})",
            looks_random,
        ),
        given(
            "Basic Auth Credentials",
            ("curl ",),
            r"curl [^\n]{0,200}?(?:-u|--user)[ =]?[\"']?[^\s:\"'$]{1,100}:(?!//)"
            r"([^\s\"'$<>{}\[]{3,200})",
        ),
        given("Signed Link", ("sig=",), r"[?&]sig=([A-Za-z0-9%+/=_-]{30,200})"),
    )


def _written() -> tuple[Detector, ...]:
    line = (
        r"(?:(?m:^)[ \t>$-]{0,8}(?:(?:export|set|env|ENV)[ \t]{1,4})?|(?<=\s-e\s)|(?<=--env[ =]))"
    )
    pair = r"[^\s=;,\"']{1,100}=[^\s;\"']{0,4000}"
    return (
        given(
            "Password",
            ("passw", "pwd", "_pass", "passphrase"),
            rf"{line}[A-Z0-9_]{{0,60}}(?:PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD)=[\"']?"
            r"([^\s\"'`<>{}\[\]$()\\;&|]{6,128})(?=[\s\"';&|]|\Z)",
            _is_chosen,
        ),
        given(
            "Password",
            (":5432:", ":*:", "pgpass"),
            r"(?<!\S)[^\s:#/\"'`]{1,253}:(?:\d{2,5}|\*):[^\s:]{1,63}:[^\s:]{1,63}:"
            r"([^\s\"'`\[]{3,128})",
        ),
        given(
            "Password",
            ("mysql", "mariadb"),
            r"(?:mysql|mariadb)[\w-]{0,20}[ \t][^\n;|&]{0,200}?(?<=[ \t])-p[\"']?"
            r"([^\s\"'`$<>{}\[-][^\s\"'`$<>{}\[]{3,128})",
            _has_letters,  # a port has none
        ),
        given(
            "Cookie",
            ("cookie",),
            rf"(?i:cookie)[\"']?:[ \t]{{0,4}}[\"']?({pair}(?:;[ \t]{{0,4}}{pair}){{0,50}})",
            _opens_a_session,
        ),
    )


def _is_chosen(value: str) -> bool:
    """Tell whether the value of a variable for passwords is one; letters alone suffice.

    A path is none, nor ``******``, nor a placeholder: ``${NAME}``, ``<yours>``,
    ``os.environ['X']``.
    """
    if "://" in value or value.startswith(("/", "~/", "./", "../")):
        return False
    if _FILLED_IN.match(value) and not _begins_oddly(value):
        return False
    return len(set(value.lower())) >= 5


def _begins_oddly(value: str) -> bool:
    """Tell whether a password begins with a sign of templates but is no template."""
    rest = value[1:]
    return (
        value[0] in "{[(}])$" and not any(sign in rest for sign in ")]}") and _is_odd_password(rest)
    )


def _has_letters(value: str) -> bool:
    return any(char.isalpha() for char in value)


def _opens_a_session(cookies: str) -> bool:
    """Tell whether one of the cookies may be a key, by its value or its name."""
    return looks_random(cookies) or _SESSION.search(cookies) is not None


def _is_password(value: str) -> bool:
    """Tell whether a value is a password: letters and digits, no address, no placeholder."""
    return any(char.isdigit() for char in value) and _has_letters(value) and _is_chosen(value)


def _is_odd_password(value: str) -> bool:
    """Tell whether a password in prose is one, and no word or name of an algorithm."""
    core = value.rstrip(".,;:")
    has_cases = core != core.lower() and core != core.upper()
    return _is_password(core) and (
        has_cases or any(not char.isalnum() and char not in "-_." for char in core)
    )
