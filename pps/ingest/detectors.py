"""Detectors, each of one kind of secret: gitleaks' rules, and patterns for keys that these miss.

A pattern begins at the start of a token, so that its time is linear in the length of a text and not
quadratic.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from pps.core.errors import ConfigError

Span = tuple[int, int]

_TOKEN_TAIL = re.compile(r"[A-Za-z0-9_-]*")
_re = cache(re.compile)
_LEAST_ENTROPY_BITS = 2.8
_LEAST_RUN = 12
_RUN = re.compile(r"[A-Za-z0-9+/]+")


@dataclass(frozen=True)
class Detector:
    """Finds one kind of secret.

    Attributes:
        kind: The name of the kind in the marker that replaces the secret.
        hints: A text without any of them holds no secret of this kind; lower-case hints match in
            any case.
        pattern: Regular expression; ``group`` of a match is the secret.
        tail: Characters after a match that belong to the secret too: patterns of fixed length cut
            longer tokens short.
        accepts: Called with the secret; False rejects the match.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: str
    group: int = 0
    tail: re.Pattern[str] | None = _TOKEN_TAIL
    accepts: Callable[[str], bool] = bool

    def find(self, text: str) -> Iterator[Span]:
        for match in _re(self.pattern).finditer(text):
            start, end = match.span(self.group)
            if self.accepts(text[start:end]):
                rest = self.tail.match(text, end) if self.tail else None
                yield start, rest.end() if rest else end


def detector(
    kind: str,
    hints: tuple[str, ...],
    pattern: str,
    *,
    tail: re.Pattern[str] | None = _TOKEN_TAIL,
    accepts: Callable[[str], bool] = bool,
) -> Detector:
    return Detector(kind, hints, pattern, tail=tail, accepts=accepts)


def given(
    kind: str, hints: tuple[str, ...], pattern: str, accepts: Callable[[str], bool] = bool
) -> Detector:
    """Return a detector whose secret is the first group of the pattern, without a tail."""
    return Detector(kind, hints, pattern, group=1, tail=None, accepts=accepts)


TOKEN_START = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))"  # noqa: S105 - a pattern
"""Start of a token: no letter or digit precedes it, but ``%3D`` or an escaped line break may."""


def looks_random(value: str) -> bool:
    """Tell whether a value may be a generated key: one long run of mixed letters and digits.

    A run of repeated characters is none. Words joined by ``-``, ``_`` or ``.`` are names, however
    long.
    """
    for run in _RUN.findall(value):
        digits = sum(char.isdigit() for char in run)
        is_mixed = 2 <= digits < len(run) - 1
        if len(run) >= _LEAST_RUN and is_mixed and entropy_bits(run) >= _LEAST_ENTROPY_BITS:
            return True
    return False


def entropy_bits(value: str) -> float:
    """Return Shannon's entropy of a text's characters, in bits a character; 0 when it is empty."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())


_HEX = "[a-f0-9]"
_ANY = "[A-Za-z0-9_-]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"

_VENDOR_KEYS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        *("AWS Access Key", ("A3T", "ABIA", "ACCA", "AKIA", "ASIA")),
        r"(?<![+/])(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}(?![A-Za-z0-9+/])",
    ),
    ("Age Secret Key", ("AGE-SECRET-KEY-",), "AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ("Airtable Token", ("pat",), f"pat[A-Za-z0-9]{{14}}\\.{_HEX}{{64}}"),
    ("Atlassian Token", ("ATATT3",), "ATATT3[A-Za-z0-9_=-]{60,300}"),
    ("Cloudflare Key", ("v1.0-",), f"v1\\.0-{_HEX}{{24}}-{_HEX}{{146}}"),
    ("Databricks Token", ("dapi",), f"dapi{_HEX}{{32}}"),
    ("Docker Token", ("dckr_",), f"dckr_[po]at_{_ANY}{{20,60}}"),
    ("Doppler Token", ("dp.",), r"dp\.(?:ct|pt|st|sa|scim|audit)\.[A-Za-z0-9.]{40,60}"),
    ("Figma Token", ("figd_",), f"figd_{_ANY}{{38,60}}"),
    ("Fly Token", ("fo1_",), f"fo1_{_ANY}{{43}}"),
    ("Google OAuth Secret", ("GOCSPX-",), f"GOCSPX-{_ANY}{{28}}"),
    ("Google OAuth Token", ("ya29.", "1//0"), rf"(?:ya29\.|1//0){_ANY}{{30,500}}"),
    (
        "Grafana Token",
        ("glsa_", "glc_ey"),
        "(?:glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|glc_ey[A-Za-z0-9+/=]{30,400})",
    ),
    ("HubSpot Token", ("pat-",), rf"pat-(?:na|eu)\d-{_UUID}"),
    ("LangSmith API Key", ("lsv2_",), f"lsv2_[ps][tk]_{_HEX}{{32}}_{_HEX}{{10}}"),
    ("Langfuse API Key", ("sk-lf-",), f"sk-lf-{_UUID}"),
    ("Linear API Key", ("lin_",), "lin_(?:api|oauth)_[A-Za-z0-9]{32,64}"),
    ("Mailgun API Key", ("key-",), f"key-{_HEX}{{32}}"),
    ("New Relic API Key", ("NRAK-",), "NRAK-[A-Z0-9]{27}"),
    ("Notion Token", ("ntn_", "secret_"), "(?:ntn_[A-Za-z0-9]{40,60}|secret_[A-Za-z0-9]{43})"),
    ("NVIDIA API Key", ("nvapi-",), f"nvapi-{_ANY}{{60,80}}"),
    ("Perplexity API Key", ("pplx-",), "pplx-[A-Za-z0-9]{40,64}"),
    ("Pinecone API Key", ("pcsk_",), "pcsk_[A-Za-z0-9_]{40,100}"),
    ("PlanetScale Token", ("pscale_",), r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}"),
    ("Postman API Key", ("PMAK-",), f"PMAK-{_HEX}{{24}}-{_HEX}{{34}}"),
    ("Sentry Token", ("sntrys_", "sntryu_"), "sntry[su]_[A-Za-z0-9+/=_-]{40,300}"),
    (
        "Shopify Token",
        ("shpat_", "shpca_", "shppa_", "shpss_"),
        "shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}",
    ),
    ("Supabase Token", ("sbp_", "sb_secret_"), f"(?:sbp_{_HEX}{{40}}|sb_secret_{_ANY}{{20,60}})"),
    ("Tavily API Key", ("tvly-",), "tvly-(?:dev-|prod-)?[A-Za-z0-9]{32}"),
    ("Vault Token", ("hvs.", "hvb.", "hvr."), rf"hv[sbr]\.{_ANY}{{24,300}}"),
    ("OpenAI Token", ("T3BlbkFJ",), f"sk-{_ANY}{{10,200}}T3BlbkFJ{_ANY}{{20,200}}"),
    (
        "OpenAI Token",
        ("sk-proj-", "sk-svcacct-", "sk-admin-"),
        f"sk-(?:proj|svcacct|admin)-{_ANY}{{32,250}}",
    ),
    ("Anthropic API Key", ("sk-ant-",), f"sk-ant-{_ANY}{{32,200}}"),
    ("OpenRouter API Key", ("sk-or-",), f"sk-or-{_ANY}{{32,200}}"),
    ("Google API Key", ("AIza",), f"AIza{_ANY}{{35}}"),
    ("Groq API Key", ("gsk_",), "gsk_[A-Za-z0-9]{40,64}"),
    ("xAI API Key", ("xai-",), "xai-[A-Za-z0-9]{60,90}"),
    ("Hugging Face Token", ("hf_",), "hf_[A-Za-z0-9]{30,40}"),
    ("Replicate Token", ("r8_",), "r8_[A-Za-z0-9]{37}"),
    (
        *("GitHub Token", ("github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
        "(?:github_pat_[A-Za-z0-9_]{22,100}|gh[pousr]_[A-Za-z0-9_]{36})",
    ),
    ("GitLab Token", ("gl",), f"gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-{_ANY}{{20,1000}}"),
    (
        "Stripe Access Key",
        ("k_test_", "k_live_", "whsec_"),
        r"(?:[rs]k_(?:test|live)|whsec)_\w{20,250}",
    ),
    ("NPM Token", ("npm_",), "npm_[A-Za-z0-9]{36}"),
    ("PyPI Token", ("pypi-AgE",), f"pypi-AgE{_ANY}{{70,}}"),
    (
        "Slack Token",
        ("xapp-", "xox"),
        r"(?:(?:xapp-|xoxe[.-])[A-Za-z0-9.-]{20,250}|xox[abopsr]-(?:\d+-)+[A-Za-z0-9]+)",
    ),
    ("Slack Token", ("hooks.slack.com",), r"https://hooks\.slack\.com/services/T\w+/B\w+/\w+"),
    ("Square OAuth Secret", ("sq0csp-",), f"sq0csp-{_ANY}{{43}}"),
    ("DigitalOcean Token", ("_v1_",), "do[opr]_v1_[a-f0-9]{64}"),
    ("PPS Token", ("pps_",), "pps_[a-z]_(?:[a-z0-9]{12}_)?[a-z0-9]{40,64}"),
)
"""(kind, hints, pattern) of each."""

_WORDS = frozenset({"Airtable Token", "Databricks Token", "Doppler Token", "Mailgun API Key"})
"""Kinds whose keys begin like the end of names such as ``cache-key-``: they must stand alone."""
GITLEAKS_SHA256 = "e163e53b9e7e8a8511e77271e2b323ed057759542a6d988258afe3a1fa329caf"

_LEFT_OUT = frozenset(
    {
        "generic-api-key",  # matches identifiers in code; `context_secrets` has stricter patterns
        "jwt",  # `_is_jwt` decodes the token: it finds more and is never wrong
        "private-key",  # also matches the text between two keys
        "vault-service-token",  # its old form, `s.` and 24 letters, is a method's name
        "sourcegraph-access-token",  # any 40 hexadecimal digits beside the word: a commit
        "facebook-page-access-token",  # keywords that base64 is full of
        "square-access-token",
    }
)
_END = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
_ANY_END = r"(?:[^\w+/=-]|\\[nr]|$)"
"""``_END`` for prose: a full stop, a bracket or a comma ends a key too."""
_DISCORD = ("MD", "MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT")
"""Starts of a token of Discord: base 64 of two digits."""
_PART = "[A-Za-z0-9_=-]"
"""A character of a JSON Web Token."""
_PEM = r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_PEM_END = re.compile(
    r"(?:[\s\\nr>]{0,8}[A-Za-z0-9+/=]{1,80})?[\s\\nr>]{0,8}-----END [A-Z0-9 ]{0,60}-----"
)
_PUTTY_END = re.compile(
    r"(?:[^\n]{0,200}\n){0,200}?Private-MAC: ?[0-9a-f]+|(?:[^\n]{0,200}(?:\n|\Z)){0,200}"
)


def known_keys() -> tuple[Detector, ...]:
    return (*_private_keys(), *_vendors_keys())


def _private_keys() -> tuple[Detector, ...]:
    # The secret is the whole block, or the rest of one that was cut off.
    lines = r"(?:(?:[\s>]|\\[rn]){0,8}(?:[A-Za-z-]{4,20}: [^\n]{0,100}|[A-Za-z0-9+/=]{20,}))"
    short = r"(?:(?:[\s>]|\\[rn]){1,4}[A-Za-z0-9+/]{1,19}(?:={1,2}|(?=\s*\Z)))?"
    return (
        detector("Private Key", ("PRIVATE KEY",), rf"{_PEM}{lines}{{1,400}}{short}", tail=_PEM_END),
        detector(
            "Private Key", ("PuTTY-User-Key-File-",), r"PuTTY-User-Key-File-\d:", tail=_PUTTY_END
        ),
    )


def _vendors_keys() -> tuple[Detector, ...]:
    """Return detectors of keys with a vendor's prefix or form."""
    alone = r"(?<![A-Za-z0-9_-])"
    starts = dict.fromkeys(_WORDS, alone)
    return (
        *(
            detector(kind, hints, starts.get(kind, TOKEN_START) + key)
            for kind, hints, key in _VENDOR_KEYS
        ),
        detector("API Key", ("sk-",), alone + r"sk-[A-Za-z0-9]{32,64}", accepts=looks_random),
        given("NPM Token", (":_authToken=",), r":_authToken=[ \t]{0,4}([^\s$\"'\[]{8,200})"),
        given(
            "AWS Access Key",
            ("aws",),
            r"(?i:aws.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?['\"]([0-9a-z/+]{40})['\"])",
        ),
        # These may follow a letter, as in `/bot123456789:…`, the address of Telegram's bots.
        detector(
            "Azure Storage Account access key", ("AccountKey=",), "AccountKey=[A-Za-z0-9+/=]{88}"
        ),
        detector("SendGrid API Key", ("SG.",), rf"SG\.{_ANY}{{22}}\.{_ANY}{{43}}"),
        detector("Stripe Access Key", ("k_live_",), "[rs]k_live_[0-9A-Za-z]{24}"),
        detector(
            "Discord Bot Token",
            _DISCORD,
            rf"[MNO]{_ANY}{{23,25}}\.{_ANY}{{6}}\.{_ANY}{{27}}",
            accepts=_is_discord,
        ),
        detector("Mailchimp Access Key", ("-us",), r"[0-9a-z]{32}-us\d{1,2}", accepts=looks_random),
        detector(
            "Telegram Bot Token", (":",), rf"\d{{8,10}}:{_ANY}{{35}}", accepts=_has_both_cases
        ),
        detector("Twilio API Key", ("AC", "SK"), "(?:AC|SK)[a-z0-9]{32}", accepts=looks_random),
        detector(
            *("JSON Web Token", ("eyJ",)),
            rf"{TOKEN_START}eyJ{_PART}{{4,20000}}\.{_PART}{{2,40000}}(?:\.{_PART}{{0,4000}})?",
            accepts=_is_jwt,
        ),
    )


def _unpacked(part: str) -> bytes:
    """Return a part of a token decoded from base 64; empty if it is not base 64."""
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        return b""


def _is_discord(value: str) -> bool:
    return _unpacked(value.partition(".")[0]).isdigit()


def _is_jwt(value: str) -> bool:
    try:
        return all(json.loads(_unpacked(part)) for part in value.split(".")[:2])
    except ValueError:
        return False


def _has_both_cases(value: str) -> bool:
    secret = value.partition(":")[2]
    return (
        secret != secret.lower()
        and secret != secret.upper()
        and any(char.isdigit() for char in secret)
    )


@dataclass(frozen=True)
class _Rule(Detector):
    """A rule of gitleaks; its secret is the first group that is not empty, else the whole match.

    Its patterns are written for RE2, and RE2 runs them in linear time. A rule is compiled when a
    text first holds one of its keywords.

    Attributes:
        least_entropy_bits: The secret's entropy is above this, in bits a character.
        words: A match that holds one of these, in any case, is no secret.
        placeholders: Regular expressions; a match that holds one is no secret.
    """

    least_entropy_bits: float = 0.0
    words: tuple[str, ...] = ()
    placeholders: tuple[str, ...] = ()

    def find(self, text: str) -> Iterator[Span]:
        for match in _re2(self.pattern).finditer(text):
            group = next((number for number, text in enumerate(match.groups(), 1) if text), 0)
            secret = match[group]
            if entropy_bits(secret) <= self.least_entropy_bits:
                continue
            lower = secret.lower()
            is_allowed = any(word in lower for word in self.words) or any(
                _re2(placeholder).search(secret) for placeholder in self.placeholders
            )
            if not is_allowed:
                yield match.span(group)


def gitleaks() -> tuple[Detector, ...]:
    """Return a detector for each rule of gitleaks, without the rules that depend on a file's name.

    The rules are data: ``data/gitleaks.toml``, unchanged.

    Raises:
        ConfigError: The file was changed.
    """
    raw = (files("pps.ingest") / "data" / "gitleaks.toml").read_bytes()
    if hashlib.sha256(raw).hexdigest() != GITLEAKS_SHA256:
        raise ConfigError("gitleaks.toml: is not the file that PPS came with; install PPS again")
    config = tomllib.loads(raw.decode())
    rules = [rule for rule in config["rules"] if rule["id"] not in _LEFT_OUT and "path" not in rule]
    return tuple(_rule(rule, [config["allowlist"], *rule.get("allowlists", ())]) for rule in rules)


def _rule(rule: Mapping[str, Any], allowlists: Sequence[Mapping[str, Any]]) -> Detector:
    return _Rule(
        rule["id"].replace("-", " ").title(),
        tuple(rule["keywords"]),
        rule["regex"].replace(_END, _ANY_END),
        least_entropy_bits=rule.get("entropy", 0.0),
        words=tuple(
            word.lower() for allowlist in allowlists for word in allowlist.get("stopwords", ())
        ),
        placeholders=tuple(
            regex for allowlist in allowlists for regex in allowlist.get("regexes", ())
        ),
    )


@cache
def _re2(regex: str) -> re.Pattern[str]:
    """Return a pattern compiled by RE2; it has the methods of ``re.Pattern`` that are used here."""
    re2: Any = importlib.import_module("re2")
    return re2.compile(regex)
