"""Detectors of secrets by how they are passed: after a name, in a header, on a command line."""

from __future__ import annotations

import re

from pps.ingest.detectors import Detector, given, looks_random

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
    stands_for_another = _FILLED_IN.match(value) and not _begins_oddly(value)
    return not (_is_path(value) or stands_for_another) and len(set(value.lower())) >= 5


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


def _is_path(value: str) -> bool:
    return "://" in value or value.startswith(("/", "~/", "./", "../"))


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
