"""Made-up secrets of every kind, put together here so that no scanner takes this file for a leak.

kind → (text as it is pasted, the secret in it)
"""

from __future__ import annotations

import base64
from pathlib import Path

from tests.held_files import files_below

_BODY = "\n".join("b1C2d3E4f5G6h7I8" * 4 for _ in range(6))
PRIVATE_KEY = f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{_BODY}\nb1C2d3E4f5Gw==\n-----END RSA {'PRIVATE'} KEY-----"
PUTTY_KEY = f"PuTTY-User-Key-{'File'}-2: ssh-rsa\nPrivate-Lines: 6\n{_BODY}\nPrivate-MAC: 0a1b2c3d4e5f60718293"


def _json(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


_JWT = ".".join(
    (
        _json('{"alg":"HS256","typ":"JWT"}'),
        _json('{"sub":"1234567890"}'),
        "Sfl7Kxw9RJSMeKKF2QT4fwpMeJf36POk6yJVadQ",
    )
)
_DISCORD = ".".join((_json("123456789012345678"), "Gx1Y2z", "a1B2c3D4e5F6g7H8i9J0k1L2m3N"))


def _alone(secret: str) -> tuple[str, str]:
    return secret, secret


SECRETS: dict[str, tuple[str, str]] = {
    "Private Key": _alone(PRIVATE_KEY),
    "GitHub Token": _alone("gh" + "p_" + "a1B2c3D4e" * 4),
    "GitLab Token": _alone("gl" + "pat-" + "a1B2c3D4e5F6g7H8i9J0"),
    "AWS Access Key": _alone("AK" + "IA" + "Z7Q2X9W4L1M8N5P3"),
    "Anthropic API Key": _alone("sk-" + "ant-api03-" + "a1B2_c3D4-" * 9 + "AA"),
    "OpenAI Token": _alone(
        "sk-" + "proj-" + "a1B2c3D4e5F6g7H8i9J0" + "T3Blbk" + "FJ" + "k1L2m3N4o5P6q7R8s9T0"
    ),
    "Google API Key": _alone("AI" + "za" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"),
    "Slack Token": _alone("xo" + "xb-123456789012-123456789012-a1B2c3D4e5F6g7H8"),
    "Stripe Access Key": _alone("sk" + "_live_" + "a1B2c3D4e5F6g7H8i9J0k1L2"),
    "Hugging Face Token": _alone("h" + "f_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH"),
    "JSON Web Token": _alone(_JWT),
    "Discord Bot Token": _alone(_DISCORD),
    "Telegram Bot Token": _alone("123456789:" + "AAb1C2d3E4f5G6h7I8j9K0l1M2n3O4p5Q6r"),
    "SendGrid API Key": _alone(
        "S" + "G." + "a1B2c3D4e5F6g7H8i9J0k1" + "." + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V"
    ),
    "Twilio API Key": _alone("S" + "K" + "0a1b2c3d4e5f60718293a4b5c6d7e8f9"),
    "PPS Token": _alone("pps_" + "e_a1b2c3d4e5f6_" + "a1b2c3d4e5" * 4),
    "NPM Token": _alone("np" + "m_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"),
    "Azure Storage Account access key": _alone(
        "Account" + "Key=" + "a1B2c3D4e5F6g7H8" * 5 + "i9J0k1=="
    ),
    "API Key": ('api_key = "f3a9c8b7e6d5a4f3b2c1d0e9"', "f3a9c8b7e6d5a4f3b2c1d0e9"),
    "Bearer Token": ("Authorization: Bearer abcDEF1234567890abcDEF12", "abcDEF1234567890abcDEF12"),
    "Password": ("password: hunter2-correct-horse", "hunter2-correct-horse"),
    "Basic Auth Credentials": ("postgres://bob:s3cr3tpw4you@db.example.org/x", "s3cr3tpw4you"),
}

_ANY = "a1B2c3D4e5F6g7H8i9J0" * 5
_HEX = "0a1b2c3d4e5f6789" * 10
_UUID = "0a1b2c3d-4e5f-4789-8a1b-2c3d4e5f6789"
_ODD = "Tr0ub4dor&3x"
_TELEGRAM = SECRETS["Telegram Bot Token"][1]

VENDORS: tuple[str, ...] = (
    "AGE-SECRET" + "-KEY-1" + ("QPZRY9X8GF" * 6)[:58],
    "pa" + "t" + _ANY[:14] + "." + _HEX[:64],
    "ATA" + "TT3" + _ANY[:80],
    "v1" + ".0-" + _HEX[:24] + "-" + _HEX[:146],
    "da" + "pi" + _HEX[:32],
    "dckr" + "_pat_" + _ANY[:27],
    "dp" + ".pt." + _ANY[:43],
    "fig" + "d_" + _ANY[:40],
    "fo" + "1_" + _ANY[:43],
    "GOC" + "SPX-" + _ANY[:28],
    "ya" + "29." + _ANY[:60],
    "1/" + "/0" + _ANY[:60],
    "gl" + "sa_" + _ANY[:32] + "_" + _HEX[:8],
    "pat" + "-na1-" + _UUID,
    "lsv2" + "_pt_" + _HEX[:32] + "_" + _HEX[:10],
    "sk" + "-lf-" + _UUID,
    "lin" + "_api_" + _ANY[:40],
    "ke" + "y-" + _HEX[:32],
    "NR" + "AK-" + _ANY[:27].upper(),
    "nt" + "n_" + _ANY[:46],
    "sec" + "ret_" + _ANY[:43],
    "nv" + "api-" + _ANY[:64],
    "pp" + "lx-" + _ANY[:48],
    "pc" + "sk_" + _ANY[:60],
    "pscale" + "_tkn_" + _ANY[:43],
    "PM" + "AK-" + _HEX[:24] + "-" + _HEX[:34],
    "sntr" + "ys_" + _ANY[:80],
    "shp" + "at_" + _HEX[:32],
    "sb" + "p_" + _HEX[:40],
    "tv" + "ly-" + _ANY[:32],
    "hv" + "s." + _ANY[:90],
    "sk" + "-admin-" + _ANY[:60],
)
"""Keys that are told by their beginning, of vendors that the library does not know."""

GIVEN: tuple[tuple[str, str], ...] = (
    ("password=hunter2", "hunter2"),
    (f"https://api.telegram.org/bot{_TELEGRAM}/getMe", _TELEGRAM),
    *((f"password={sign}ecretP4ss", f"{sign}ecretP4ss") for sign in "${}[]()"),
    ("https://0123456789abcdef0123456789abcdef:@host/x", "0123456789abcdef0123456789abcdef"),
    (f'{{\\"password\\": \\"{_ODD}\\"}}', _ODD),
    (f"<password>{_ODD}</password>", _ODD),
    (f"**Password:** {_ODD}", _ODD),
    (f"The wifi password is {_ODD}", _ODD),
    (f"psql --password {_ODD} -h db", _ODD),
    (f"curl -s -u ana:{_ODD} https://example.org", _ODD),
    (f"machine example.org login ana password {_ODD}", _ODD),
    (f"**API key:** {_ANY[:40]}", _ANY[:40]),
    (f"x-api-key: {_ANY[:40]}", _ANY[:40]),
    (f"service-key={_ANY[:40]}", _ANY[:40]),
    (f"The credential: {_ANY[:40]}", _ANY[:40]),
    (f"| API_KEY | {_ANY[:40]} |", _ANY[:40]),
    (f"Here is my token:\n\n{_ANY[:40]}", _ANY[:40]),
    (f"deploy --token {_ANY[:40]}", _ANY[:40]),
    (f"https://a.example.org/c?sv=2022&sig={_ANY[:43]}%3D", f"{_ANY[:43]}%3D"),
    (f"//registry.example.org/:_authToken={_ANY[:36]}", _ANY[:36]),
    ("DB_PASSWORD=opensesame", "opensesame"),
    ("# .env\nexport PGPASSWORD='open-sesame'\nDEBUG=1", "open-sesame"),
    ("services:\n  - MYSQL_PWD=opensesame\n", "opensesame"),
    ("docker run -e POSTGRES_PASSWORD=opensesame -p 5432:5432 postgres", "opensesame"),
    ("db.example.org:5432:shop:ana:opensesame", "opensesame"),
    ("~/.pgpass has\n*:*:*:ana:opensesame\n", "opensesame"),
    ("mysql -h db -u root -popensesame shop", "opensesame"),
    ("mysqldump -uroot -p'opensesame' shop > all.sql", "opensesame"),
    ("Cookie: theme=dark; sessionid=opensesame", "opensesame"),
    (f"curl -H 'Cookie: id={_ANY[:32]}' https://example.org", _ANY[:32]),
    ("Set-Cookie: auth=opensesame; Path=/; HttpOnly", "opensesame"),
    (f'{{"cookie": "a={_ANY[:32]}"}}', _ANY[:32]),
    ("> " + PRIVATE_KEY.replace("\n", "\n> "), "\n> ".join(PRIVATE_KEY.split("\n")[1:4])),
)
"""(text, the secret in it): as people and programs hand secrets over."""

PARTS = [secret.split("\n")[1 if "\n" in secret else 0] for _, secret in SECRETS.values()]


def holding(folder: Path) -> dict[str, str]:
    """Return file → a secret that it holds, or that is in its name, in any encoding that a store might use."""
    found: dict[str, str] = {}
    for file, data in files_below(folder):
        name = str(file.relative_to(folder))
        for part in PARTS:
            if part in name or any(
                part.encode(code) in data for code in ("utf-8", "utf-16-le", "utf-32-le")
            ):
                found[name] = part
    return found
