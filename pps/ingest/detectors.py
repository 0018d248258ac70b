"""What a secret looks like: detect-secrets' patterns, and a few for keys that it does not know yet.

Only patterns are used, never its scanner: that keeps global settings and may call the vendors to verify.
Left out are its entropy detectors and its keyword detector as it is (they find git hashes, ids and prose),
public IP addresses (no secrets), and patterns whose time grows with the square of a text's length; those
are written anew here, from the start of a token on.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypedDict, Unpack, cast

from pps.ingest.vendor_keys import VENDOR_KEYS

Span = tuple[int, int]

_TOKEN_TAIL = re.compile(r"[A-Za-z0-9_-]*")
_LEAST_ENTROPY_BITS = 2.8
_LEAST_RUN = 12
_RUN = re.compile(r"[A-Za-z0-9+/]+")


@dataclass(frozen=True, slots=True)
class Detector:
    """Finds one kind of secret.

    Attributes:
        kind: What the marker says in its place.
        hints: A text without any of them holds none of this kind; lower-case ones are looked for in any case.
        patterns: What it looks like; ``group`` of a match is the secret.
        tail: What still belongs to it after a match: patterns of fixed length cut longer tokens short.
        accepts: A last look at the secret itself.
    """

    kind: str
    hints: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...]
    group: int = 0
    tail: re.Pattern[str] | None = _TOKEN_TAIL
    accepts: Callable[[str], bool] = bool

    def find(self, text: str) -> Iterator[Span]:
        """Yield where its secrets begin and end."""
        for pattern in self.patterns:
            for match in pattern.finditer(text):
                start, end = match.span(self.group)
                if self.accepts(text[start:end]):
                    rest = self.tail.match(text, end) if self.tail else None
                    yield start, rest.end() if rest else end


def looks_random(value: str) -> bool:
    """Tell whether a value can be a generated key: letters and digits mixed in one long run, no repetition.

    Words joined by ``-``, ``_`` or ``.`` are names, however long.
    """
    runs = [run for run in _RUN.findall(value) if len(run) >= _LEAST_RUN]
    return any(_mixed(run) and entropy_bits(run) >= _LEAST_ENTROPY_BITS for run in runs)


def entropy_bits(value: str) -> float:
    """Return Shannon's entropy of a text's characters, in bits a character; 0 when it is empty."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())


def _mixed(run: str) -> bool:
    digits = sum(char.isdigit() for char in run)
    return digits >= 2 and digits < len(run) - 1


def _is_password(value: str) -> bool:
    """Tell whether a value given as a password is one: letters and digits, no address, no placeholder."""
    has_both = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
    is_path = "://" in value or value.startswith(("/", "~/", "./", "../"))
    return has_both and not is_path and len(set(value.lower())) >= 5


def _is_odd_password(value: str) -> bool:
    """Tell whether a value that prose gives as a password is one: such as no word and no name of an algorithm is."""
    core = value.rstrip(".,;:")
    has_cases = core != core.lower() and core != core.upper()
    return _is_password(core) and (has_cases or any(not char.isalnum() and char not in "-_." for char in core))


def _is_discord(value: str) -> bool:
    """Tell whether a token's first part is a number in base 64, as Discord's are."""
    head = value.partition(".")[0]
    try:
        return base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)).isdigit()
    except (ValueError, binascii.Error):
        return False


def _has_both_cases(value: str) -> bool:
    secret = value.partition(":")[2]
    return secret != secret.lower() and secret != secret.upper() and any(char.isdigit() for char in secret)


class _More(TypedDict, total=False):
    group: int
    tail: re.Pattern[str] | None
    accepts: Callable[[str], bool]


def _own(kind: str, hints: tuple[str, ...], pattern: str, **more: Unpack[_More]) -> Detector:
    return Detector(kind, hints, (re.compile(pattern),), **more)


_NAMED = r"[\w.\-]{0,40}[\\\"'\])*`]{0,3}[ \t]{0,4}"
_OPENED = r"\*{0,2}[ \t]{0,4}[\\\"'`(]{0,3}"
_ASSIGNED = rf"{_NAMED}(?::=|=>|::|==|=|:){_OPENED}"
_SHOWN = rf"{_NAMED}(?::=|=>|::|==|=|:|\|)(?:[ \t]{{0,4}}\r?\n){{0,2}}{_OPENED}"
"""As assigned; also in a table, or on a line of its own below its name."""
_DISCORD = ("MD", "MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT")
"""How two digits, with which such a token begins, look in base 64."""
_PEM = r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_PEM_END = re.compile(r"(?:[\s\\nr>]{0,8}[A-Za-z0-9+/=]{1,80})?[\s\\nr>]{0,8}-----END [A-Z0-9 ]{0,60}-----")
_PUTTY_END = re.compile(r"(?:[^\n]{0,200}\n){0,200}?Private-MAC: ?[0-9a-f]+|(?:[^\n]{0,200}(?:\n|\Z)){0,200}")


@cache
def detectors() -> tuple[Detector, ...]:
    """Return every detector; the library is imported here (0.3 s), when the first text is looked at."""
    return (*_private_keys(), *_of_library(), *_newer(), *_generic(), *_spoken())


def _private_keys() -> tuple[Detector, ...]:
    # The library knows the headers; a secret is the whole block, or what is there of one that was cut off.
    lines = r"(?:(?:[\s>]|\\[rn]){0,8}(?:[A-Za-z-]{4,20}: [^\n]{0,100}|[A-Za-z0-9+/=]{20,}))"
    short = r"(?:(?:[\s>]|\\[rn]){1,4}[A-Za-z0-9+/]{1,19}(?:={1,2}|(?=\s*\Z)))?"
    return (
        _own(
            "Private Key",
            ("PRIVATE KEY",),
            rf"{_PEM}{lines}{{1,400}}{short}",
            tail=_PEM_END,
        ),
        _own("Private Key", ("PuTTY-User-Key-File-",), r"PuTTY-User-Key-File-\d:", tail=_PUTTY_END),
    )


def _of_library() -> tuple[Detector, ...]:
    from detect_secrets.plugins.artifactory import ArtifactoryDetector
    from detect_secrets.plugins.aws import AWSKeyDetector
    from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
    from detect_secrets.plugins.discord import DiscordBotTokenDetector
    from detect_secrets.plugins.github_token import GitHubTokenDetector
    from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
    from detect_secrets.plugins.mailchimp import MailchimpDetector
    from detect_secrets.plugins.pypi_token import PypiTokenDetector
    from detect_secrets.plugins.sendgrid import SendGridDetector
    from detect_secrets.plugins.slack import SlackDetector
    from detect_secrets.plugins.square_oauth import SquareOAuthDetector
    from detect_secrets.plugins.stripe import StripeDetector
    from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
    from detect_secrets.plugins.twilio import TwilioKeyDetector

    def known(plugin: object, *hints: str, accepts: Callable[[str], bool] = bool) -> Detector:
        return Detector(_kind(plugin), hints, _patterns(plugin), accepts=accepts)

    aws_id, aws_secret = _patterns(AWSKeyDetector)
    return (
        Detector("AWS Access Key", ("A3T", "ABIA", "ACCA", "AKIA", "ASIA"), (_bounded(aws_id),)),
        Detector("AWS Access Key", ("aws",), (aws_secret,), group=1),
        # Its second pattern finds words in capitals.
        Detector("Artifactory Credentials", ("AKC",), _patterns(ArtifactoryDetector)[:1]),
        known(AzureStorageKeyDetector, "AccountKey="),
        known(DiscordBotTokenDetector, *_DISCORD, accepts=_is_discord),
        known(GitHubTokenDetector, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        known(GitLabTokenDetector, "glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "GR1348941", "glcbt-", "glimt-"),
        known(GitLabTokenDetector, "glptt-", "glagent-", "gloas-"),
        known(MailchimpDetector, "-us", accepts=looks_random),
        known(PypiTokenDetector, "pypi-AgE"),
        known(SendGridDetector, "SG."),
        known(SlackDetector, "xox", "hooks.slack.com"),
        known(SquareOAuthDetector, "sq0csp-"),
        known(StripeDetector, "k_live_"),
        known(TelegramBotTokenDetector, ":", accepts=_has_both_cases),
        known(TwilioKeyDetector, "AC", "SK", accepts=looks_random),
        _jwt(),
    )


def _kind(plugin: object) -> str:
    return str(cast(Any, plugin).secret_type)


def _patterns(plugin: object) -> tuple[re.Pattern[str], ...]:
    return tuple(cast(Any, plugin).denylist)


def _bounded(pattern: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9+/])(?:{pattern.pattern})(?![A-Za-z0-9+/])", pattern.flags)


def _jwt() -> Detector:
    from detect_secrets.plugins.jwt import JwtTokenDetector

    def is_valid(token: str) -> bool:
        return JwtTokenDetector.is_formally_valid(".".join(token.split(".")[:2]))

    part = r"[A-Za-z0-9_=-]"
    return _own(
        _kind(JwtTokenDetector),
        ("eyJ",),
        rf"(?<![A-Za-z0-9_=-])eyJ{part}{{4,20000}}\.{part}{{2,40000}}(?:\.{part}{{0,4000}})?",
        accepts=is_valid,
    )


def _newer() -> tuple[Detector, ...]:
    """Return detectors of keys that are told by their beginning; newer than the library, or slow in it."""
    start = r"(?<![A-Za-z0-9_-])"
    return (
        *(_own(kind, hints, start + pattern) for kind, hints, pattern in VENDOR_KEYS),
        _own("OpenAI Token", ("T3BlbkFJ",), start + r"sk-[A-Za-z0-9_-]{10,200}T3BlbkFJ[A-Za-z0-9_-]{20,200}"),
        _own(
            "OpenAI Token",
            ("sk-proj-", "sk-svcacct-", "sk-admin-"),
            start + r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{32,250}",
        ),
        _own("API Key", ("sk-",), start + r"sk-[A-Za-z0-9]{32,64}", accepts=looks_random),
        _own("Anthropic API Key", ("sk-ant-",), start + r"sk-ant-[A-Za-z0-9_-]{32,200}"),
        _own("OpenRouter API Key", ("sk-or-",), start + r"sk-or-[A-Za-z0-9_-]{32,200}"),
        _own("Google API Key", ("AIza",), start + r"AIza[A-Za-z0-9_-]{35}"),
        _own("Groq API Key", ("gsk_",), start + r"gsk_[A-Za-z0-9]{40,64}"),
        _own("xAI API Key", ("xai-",), start + r"xai-[A-Za-z0-9]{60,90}"),
        _own("Hugging Face Token", ("hf_",), start + r"hf_[A-Za-z0-9]{30,40}"),
        _own("Replicate Token", ("r8_",), start + r"r8_[A-Za-z0-9]{37}"),
        _own("GitHub Token", ("github_pat_",), start + r"github_pat_[A-Za-z0-9_]{22,100}"),
        _own(
            "Stripe Access Key", ("k_test_", "k_live_", "whsec_"), start + r"(?:[rs]k_(?:test|live)|whsec)_\w{20,250}"
        ),
        _own("NPM Token", ("npm_",), start + r"npm_[A-Za-z0-9]{36}"),
        _own("NPM Token", (":_authToken=",), r":_authToken=[ \t]{0,4}([^\s$\"'\[]{8,200})", group=1, tail=None),
        _own("Slack Token", ("xapp-", "xoxe"), start + r"(?:xapp-|xoxe[.-])[A-Za-z0-9.-]{20,250}"),
        _own("DigitalOcean Token", ("_v1_",), start + r"do[opr]_v1_[a-f0-9]{64}"),
        _own("PPS Token", ("pps_",), start + r"pps_[a-z]_(?:[a-z0-9]{12}_)?[a-z0-9]{40,64}"),
    )


def _generic() -> tuple[Detector, ...]:
    """Return detectors of what is given as a secret, whoever made it: assigned, in a header, in an address."""
    key = r"(?:api|auth|service|account|access|db|client|private)[-_ ]?key"
    value = r"((?:[^\s\"'`<>{}\[\]$()\\]|\\(?![\"'])){6,128})"
    token = rf"(?i:{key}|secret|token|passphrase|credential)"
    password = r"(?i:password|passwd|pwd|passphrase|db_?pass|key_?pass|contraseña|contrasena)"  # noqa: S105
    return (
        _own(
            "API Key",
            ("key", "secret", "token", "passphrase", "credential"),
            rf"{token}{_SHOWN}([A-Za-z0-9+/=_.~-]{{16,500}})",
            group=1,
            tail=None,
            accepts=looks_random,
        ),
        _own(
            "Password",
            ("passw", "pwd", "_pass", "passphrase", "contrase"),
            rf"{password}(?:{_ASSIGNED}|>){value}",
            group=1,
            tail=None,
            accepts=_is_password,
        ),
        _own(
            "Bearer Token",
            ("bearer ",),
            r"(?i:bearer)[ \t]{1,4}([A-Za-z0-9._~+/=-]{20,4000})",
            group=1,
            tail=None,
            accepts=looks_random,
        ),
        _own(
            "Basic Auth Credentials",
            ("basic ",),
            r"(?i:authorization)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?i:basic)[ \t]{1,4}([A-Za-z0-9+/=]{8,500})",
            group=1,
            tail=None,
        ),
        _own(
            "Basic Auth Credentials",
            ("://",),
            r"://[^\s:/?#@\"'<>]{0,100}:([^\s/@\"'<>{}\[\]]{3,200})@",
            group=1,
            tail=None,
        ),
    )


def _spoken() -> tuple[Detector, ...]:
    """Return detectors of what prose, a command line or a link gives as a secret."""
    given = r"[ \t=]{1,4}[\"']?"
    return (
        _own(
            "Password",
            ("password is ", "passwort ist ", "passphrase is "),
            r"(?i:password is|passwort ist|passphrase is)[ \t:]{1,4}[\"'`*]{0,3}([^\s\"'`*<>{}\[\]$()]{8,128})",
            group=1,
            tail=None,
            accepts=_is_odd_password,
        ),
        _own(
            "Password",
            ("--pass",),
            rf"--pass(?:word|wd|phrase)?{given}([^\s\"'`<>{{}}\[\]$()-][^\s\"'`<>{{}}\[\]$()]{{5,128}})",
            group=1,
            tail=None,
            accepts=_is_password,
        ),
        _own(
            "Password",
            ("login ",),  # of .netrc
            r"(?i:machine\s{1,4}\S{1,253}|default)\s{1,4}login\s{1,4}\S{1,100}\s{1,4}password\s{1,4}([^\s\[]{4,128})",
            group=1,
            tail=None,
        ),
        _own(
            "API Key",
            ("--token", "--api-key", "--secret", "--access-token"),
            rf"--(?:access-)?(?:token|api-key|secret){given}([A-Za-z0-9+/=_.~-]{{16,500}})",
            group=1,
            tail=None,
            accepts=looks_random,
        ),
        _own(
            "Basic Auth Credentials",
            ("curl ",),
            r"curl [^\n]{0,200}?(?:-u|--user)[ =]?[\"']?[^\s:\"'$]{1,100}:(?!//)([^\s\"'$<>{}\[]{3,200})",
            group=1,
            tail=None,
        ),
        _own("Signed Link", ("sig=",), r"[?&]sig=([A-Za-z0-9%+/=_-]{30,200})", group=1, tail=None),
    )
