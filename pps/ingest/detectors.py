"""What a secret looks like: detect-secrets' patterns, and a few for keys that it does not know yet.

Only patterns are used, never its scanner: that keeps global settings and may call the vendors to verify.
Left out are its entropy detectors and its keyword detector as it is (they find git hashes, ids and prose),
public IP addresses (no secrets), and patterns whose time grows with the square of a text's length; those
are written anew here, from the start of a token on.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from pps.ingest.detecting import TOKEN_START, Detector, detector, looks_random
from pps.ingest.gitleaks import gitleaks
from pps.ingest.given_secrets import given_secrets
from pps.ingest.vendor_keys import VENDOR_KEYS, WORDS

_DISCORD = ("MD", "MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT")
"""How two digits, with which such a token begins, look in base 64."""
_PEM = r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_PEM_END = re.compile(r"(?:[\s\\nr>]{0,8}[A-Za-z0-9+/=]{1,80})?[\s\\nr>]{0,8}-----END [A-Z0-9 ]{0,60}-----")
_PUTTY_END = re.compile(r"(?:[^\n]{0,200}\n){0,200}?Private-MAC: ?[0-9a-f]+|(?:[^\n]{0,200}(?:\n|\Z)){0,200}")


@cache
def detectors() -> tuple[Detector, ...]:
    """Return every detector; the library is imported here (0.3 s), when the first text is looked at."""
    return (*_private_keys(), *_of_library(), *_newer(), *given_secrets(), *gitleaks())


def _private_keys() -> tuple[Detector, ...]:
    # The library knows the headers; a secret is the whole block, or what is there of one that was cut off.
    lines = r"(?:(?:[\s>]|\\[rn]){0,8}(?:[A-Za-z-]{4,20}: [^\n]{0,100}|[A-Za-z0-9+/=]{20,}))"
    short = r"(?:(?:[\s>]|\\[rn]){1,4}[A-Za-z0-9+/]{1,19}(?:={1,2}|(?=\s*\Z)))?"
    return (
        detector(
            "Private Key",
            ("PRIVATE KEY",),
            rf"{_PEM}{lines}{{1,400}}{short}",
            tail=_PEM_END,
        ),
        detector("Private Key", ("PuTTY-User-Key-File-",), r"PuTTY-User-Key-File-\d:", tail=_PUTTY_END),
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
    return str(cast("Any", plugin).secret_type)


def _patterns(plugin: object) -> tuple[re.Pattern[str], ...]:
    return tuple(cast("Any", plugin).denylist)


def _bounded(pattern: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(rf"{TOKEN_START}(?<![+/])(?:{pattern.pattern})(?![A-Za-z0-9+/])", pattern.flags)


def _jwt() -> Detector:
    from detect_secrets.plugins.jwt import JwtTokenDetector

    def is_valid(token: str) -> bool:
        return JwtTokenDetector.is_formally_valid(".".join(token.split(".")[:2]))

    part = r"[A-Za-z0-9_=-]"
    return detector(
        _kind(JwtTokenDetector),
        ("eyJ",),
        rf"{TOKEN_START}eyJ{part}{{4,20000}}\.{part}{{2,40000}}(?:\.{part}{{0,4000}})?",
        accepts=is_valid,
    )


def _newer() -> tuple[Detector, ...]:
    """Return detectors of keys that are told by their beginning; newer than the library, or slow in it."""
    start, alone = TOKEN_START, r"(?<![A-Za-z0-9_-])"
    return (
        *(detector(kind, hints, (alone if kind in WORDS else start) + pattern) for kind, hints, pattern in VENDOR_KEYS),
        detector("OpenAI Token", ("T3BlbkFJ",), start + r"sk-[A-Za-z0-9_-]{10,200}T3BlbkFJ[A-Za-z0-9_-]{20,200}"),
        detector(
            "OpenAI Token",
            ("sk-proj-", "sk-svcacct-", "sk-admin-"),
            start + r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{32,250}",
        ),
        detector("API Key", ("sk-",), alone + r"sk-[A-Za-z0-9]{32,64}", accepts=looks_random),
        detector("Anthropic API Key", ("sk-ant-",), start + r"sk-ant-[A-Za-z0-9_-]{32,200}"),
        detector("OpenRouter API Key", ("sk-or-",), start + r"sk-or-[A-Za-z0-9_-]{32,200}"),
        detector("Google API Key", ("AIza",), start + r"AIza[A-Za-z0-9_-]{35}"),
        detector("Groq API Key", ("gsk_",), start + r"gsk_[A-Za-z0-9]{40,64}"),
        detector("xAI API Key", ("xai-",), start + r"xai-[A-Za-z0-9]{60,90}"),
        detector("Hugging Face Token", ("hf_",), start + r"hf_[A-Za-z0-9]{30,40}"),
        detector("Replicate Token", ("r8_",), start + r"r8_[A-Za-z0-9]{37}"),
        detector("GitHub Token", ("github_pat_",), start + r"github_pat_[A-Za-z0-9_]{22,100}"),
        detector(
            "Stripe Access Key", ("k_test_", "k_live_", "whsec_"), start + r"(?:[rs]k_(?:test|live)|whsec)_\w{20,250}"
        ),
        detector("NPM Token", ("npm_",), start + r"npm_[A-Za-z0-9]{36}"),
        detector("NPM Token", (":_authToken=",), r":_authToken=[ \t]{0,4}([^\s$\"'\[]{8,200})", group=1, tail=None),
        detector("Slack Token", ("xapp-", "xoxe"), start + r"(?:xapp-|xoxe[.-])[A-Za-z0-9.-]{20,250}"),
        detector("DigitalOcean Token", ("_v1_",), start + r"do[opr]_v1_[a-f0-9]{64}"),
        detector("PPS Token", ("pps_",), start + r"pps_[a-z]_(?:[a-z0-9]{12}_)?[a-z0-9]{40,64}"),
    )


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
