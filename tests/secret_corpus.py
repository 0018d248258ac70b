"""Two corpora, made anew each time from one seed: texts that hold a secret, and texts that look as if they did.

The secrets are made up here, by the forms that vendors document and in the ways that people hand them over; none of
them opens anything. The harmless ones are hashes, ids, encoded bytes, and lines of real code: the standard library's.
"""

from __future__ import annotations

import base64
import hashlib
import json
import linecache
import random
import string
import sysconfig
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

_LETTERS = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_MODULES = """
argparse ast asyncio/base_events configparser datetime decimal difflib doctest email/message ftplib getpass
hashlib hmac http/client http/cookiejar http/cookies http/server imaplib inspect json/decoder logging/config
netrc nntplib os pathlib pickle poplib random secrets shutil smtplib sqlite3/dbapi2 ssl subprocess tarfile
threading tokenize turtle typing urllib/parse urllib/request uuid xmlrpc/client zipfile
"""


def _some(draw: random.Random, signs: str, size: int) -> str:
    return "".join(draw.choice(signs) for _ in range(size))


def _json(value: dict[str, object]) -> str:
    return (
        base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode())
        .decode()
        .rstrip("=")
    )


def _jwt(draw: random.Random) -> str:
    head = _json({"alg": "HS256", "typ": "JWT"})
    return f"{head}.{_json({'sub': draw.randrange(10**9), 'exp': 1_800_000_000})}.{_some(draw, _LETTERS + '-_', 43)}"


TOKENS: dict[str, Callable[[random.Random], str]] = {
    "jwt": _jwt,
    "anthropic": lambda d: "sk-" + "ant-api03-" + _some(d, _LETTERS + "-_", 93) + "AA",
    "openai": lambda d: (
        "sk-"
        + "proj-"
        + _some(d, _LETTERS + "-_", 74)
        + "T3Blbk"
        + "FJ"
        + _some(d, _LETTERS + "-_", 74)
    ),
    "github fine": lambda d: (
        "github" + "_pat_" + _some(d, _LETTERS, 22) + "_" + _some(d, _LETTERS, 59)
    ),
    "github": lambda d: "gh" + d.choice("pousr") + "_" + _some(d, _LETTERS, 36),
    "gitlab": lambda d: "gl" + "pat-" + _some(d, _LETTERS, 20),
    "npm": lambda d: "np" + "m_" + _some(d, _LETTERS, 36),
    "hugging face": lambda d: "h" + "f_" + _some(d, string.ascii_letters, 34),
    "google": lambda d: "AI" + "za" + _some(d, _LETTERS + "-_", 34) + d.choice(_LETTERS),
    "vault": lambda d: "hv" + "s." + _some(d, _LETTERS + "-_", 94),
    "pps": lambda d: (
        "pps_"
        + "e_"
        + _some(d, _HEX, 12)
        + "_"
        + _some(d, string.ascii_lowercase + string.digits, 48)
    ),
    "aws": lambda d: "AK" + "IA" + _some(d, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
    "slack": lambda d: (
        f"xo{'xb'}-{d.randrange(10**11, 10**12)}-{d.randrange(10**11, 10**12)}-{_some(d, _LETTERS, 24)}"
    ),
    "stripe": lambda d: "sk" + "_live_" + _some(d, _LETTERS, 24),
    "digitalocean": lambda d: "do" + "p_v1_" + _some(d, _HEX, 64),
    "linear": lambda d: "lin" + "_api_" + _some(d, _LETTERS, 40),
    "pypi": lambda d: "pyp" + "i-AgEIcHlwaS5vcmc" + _some(d, _LETTERS + "-_", 70),
    "sendgrid": lambda d: "S" + "G." + _some(d, _LETTERS, 22) + "." + _some(d, _LETTERS, 43),
    "shopify": lambda d: "shp" + "at_" + _some(d, _HEX, 32),
    "notion": lambda d: "nt" + "n_" + _some(d, string.digits, 11) + _some(d, _LETTERS, 35),
}
"""What a vendor's key looks like, by vendor."""

PLACES: tuple[str, ...] = (
    "{}",
    "My key is {}.",
    "KEY={}",
    "https://example.org/cb?token={}&next=1",
    "https://example.org/cb?next=/&state=a%3D{}",
    "old-{}",
    "prod_{}",
    '{{"value": "{}"}}',
    "first line\\n{}\\nlast line",
    "({}), and then some",
)
"""Where a vendor's key stands."""


def _odd(draw: random.Random) -> str:
    """Return a password with a sign early in it, or before it, that quoting, shells or templates use."""
    sign = draw.choice("$()[]{}<>")
    parts = (
        _some(draw, string.ascii_uppercase, 1),
        _some(draw, string.ascii_lowercase, 2),
        _some(draw, _LETTERS, 6),
    )
    rest, at = "".join(parts), draw.randrange(5)
    return f"{rest[:at]}{sign}{rest[at:]}{draw.randrange(10)}!"


def _plain(draw: random.Random) -> str:
    parts = (
        _some(draw, string.ascii_lowercase, 4),
        _some(draw, string.ascii_uppercase, 1),
        _some(draw, _LETTERS, 4),
    )
    return f"{''.join(parts)}{draw.randrange(10, 99)}"


def _signed(draw: random.Random) -> str:
    """Return a password with a sign within, and three other kinds of characters."""
    parts = (
        _some(draw, string.ascii_lowercase, 2),
        draw.choice("!#%&+@?=^"),
        _some(draw, string.ascii_uppercase, 2),
        str(draw.randrange(10, 99)),
        _some(draw, string.ascii_lowercase, 3),
    )
    return "".join(parts)


_SEED_WORDS = (
    *("abandon", "ability", "bridge", "canal", "donkey", "ember", "fabric", "glimpse", "harbor"),
    *("insect", "jungle", "kitten", "lumber", "meadow", "nuclear", "oyster", "pepper", "quarter"),
)

GIVEN: tuple[tuple[str, Callable[[random.Random], str]], ...] = (
    ("password={}", _odd),
    ("password: {}", _odd),
    ('"password": "{}"', _odd),
    ("Passwort: {}", _plain),
    ("senha: {}", _plain),
    ("contraseña: {}", _plain),
    ("mot de passe : {}", _plain),
    ("密码：{}", _plain),
    ("パスワード：{}", _plain),
    ("пароль: {}", _plain),
    ("DB_PASSWORD={}", _odd),
    ("sshpass -p {} ssh ana@example.org", _plain),
    ("sshpass -p '{}' scp a b:", _odd),
    ("Authorization: token {}", lambda d: _some(d, _HEX, 40)),
    ("Authorization: ApiKey {}", lambda d: _some(d, _LETTERS, 40)),
    ("'Authorization': 'Bearer {}'", lambda d: _some(d, _LETTERS, 40)),
    ("ana:{}@tcp(db.example.org:3306)/shop?parseTime=true", _plain),
    ("https://{}@errors.example.org/42", lambda d: _some(d, _HEX, 32)),
    ("https://{}:@errors.example.org/42", lambda d: _some(d, _HEX, 32)),
    ("git clone https://{}@git.example.org/a/b.git", lambda d: _some(d, _HEX, 40)),
    ("postgres://ana:{}@db.example.org:5432/shop", _plain),
    ("curl -u ana:{} https://example.org", _plain),
    ("api_key = '{}'", lambda d: _some(d, _HEX, 32)),
    ("x-api-key: {}", lambda d: _some(d, _LETTERS, 32)),
    ("The wifi password is {}", lambda d: _plain(d) + "&"),
    ("adafruit_key = {}", lambda d: _some(d, string.ascii_lowercase + string.digits, 32)),
    ("DATADOG_TOKEN: {}", lambda d: _some(d, string.ascii_lowercase + string.digits, 40)),
    ("mysql -u root -p{} shop", _plain),
    ("--password {}", _plain),
    ("the wifi code at grandma's is {}", _signed),
    ("the password for the vpn was changed to {} yesterday", _signed),
    ("Mum's Netflix password is still {}, don't tell her", _signed),
    ("mein Passwort ist jetzt {}", _signed),
    ("mon mot de passe est toujours {}", _signed),
    ("mi contraseña ahora es {}", _signed),
    ("I changed my password from {} to something better", _signed),
    ("I use {} everywhere as my password", _signed),
    ("pls use {} as pw", _signed),
    ("unlock with {} (password)", _signed),
    ("| password | {} |", _signed),
    ("PW {}", _signed),
    ("user ana, pass {}", _signed),
    ("login ana/{}", _signed),
    ("the password? {}", _signed),
    ("set the secret to {}", _signed),
    ("ALTER USER ana IDENTIFIED BY '{}'", _signed),
    ("wifi: HomeNet / {}", _signed),
    ("SSID HomeNet, key {}", _signed),
    ("wpa key: {}", _signed),
    ("PSK={}", _signed),
    ("şifre: {}", _signed),
    ("heslo: {}", _signed),
    ("lösenord: {}", _signed),
    ("net user ana {} /add", _plain),
    ("kinit <<< {}", _plain),
    ("rclone obscure {}", _plain),
    ("vault login {}", lambda d: _some(d, _HEX, 32)),
    ("JWT_SIGNING_KEY: '{}'", lambda d: _some(d, _HEX, 32)),
    ("here's my key for openweather {}", lambda d: _some(d, _HEX, 32)),
    ("HMAC key {}", lambda d: _some(d, _HEX, 32)),
    ("my bank pin is {}", lambda d: _some(d, string.digits, 4)),
    ("the PIN for the SIM: {}", lambda d: _some(d, string.digits, 4)),
    ("our alarm code at home: {}", lambda d: _some(d, string.digits, 5)),
    ("hotel safe code was {}", lambda d: _some(d, string.digits, 4)),
    ("my 2fa backup codes: {}, 9d8s-1kd9", lambda d: f"{_some(d, _HEX, 4)}-{_some(d, _HEX, 3)}7"),
    ("TOTP secret: {}", lambda d: _some(d, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
    (
        "bitlocker recovery key: {}",
        lambda d: "-".join(_some(d, string.digits, 6) for _ in range(8)),
    ),
    ("app password: {}", lambda d: " ".join(_some(d, string.ascii_lowercase, 4) for _ in range(4))),
    ("seed phrase: {}", lambda d: " ".join(d.choice(_SEED_WORDS) for _ in range(12))),
    ("passphrase for the disk: {}", lambda d: "-".join(d.choice(_SEED_WORDS) for _ in range(5))),
)
"""How a secret of no vendor is handed over."""


def secrets(seed: int = 23) -> Iterator[tuple[str, str]]:
    """Yield (text, the secret in it), 890 of them."""
    draw = random.Random(seed)  # noqa: S311 - the same each time
    for place in PLACES:
        for make in TOKENS.values():
            secret = make(draw)
            yield place.format(secret), secret
    for form, make in GIVEN * 10:
        secret = make(draw)
        yield form.format(secret), secret


def harmless(seed: int = 23) -> Iterator[str]:
    """Yield some 2,400 texts without a secret."""
    draw = random.Random(seed)  # noqa: S311 - the same each time
    for _ in range(100):
        data = draw.randbytes(24)
        known = uuid.UUID(bytes=draw.randbytes(16), version=4)
        yield f"commit {hashlib.sha1(data).hexdigest()}"  # noqa: S324 - what git shows
        yield f"{hashlib.md5(data).hexdigest()}  dist/app-{draw.randrange(99)}.tar.gz"  # noqa: S324
        yield f"sha256:{hashlib.sha256(data).hexdigest()}"
        yield f"Author: ana, {hashlib.sha1(data).hexdigest()[:8]}, {draw.randrange(10**12)}"  # noqa: S324
        yield f"id={known} session: {known.hex}"
        yield f"integrity: sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}"
        yield f'ETag: W/"{base64.b64encode(data[:15]).decode()}"'
        yield f"![x](data:image/png;base64,{base64.b64encode(draw.randbytes(90)).decode()})"
        yield f"request {_some(draw, _HEX, 16)} took {draw.randrange(900)} ms on pod web-{_some(draw, _HEX, 10)}-x2k8p"
        yield f"cache-key-{hashlib.md5(data).hexdigest()} primary_key: {draw.randrange(10**6)}"  # noqa: S324
        yield f"https://example.org/{_some(draw, _LETTERS, 22)}?utm_source=mail&page=3#{_some(draw, _HEX, 8)}"
        yield f"token count: {draw.randrange(10**6)}, tokens_per_day = {draw.randrange(10**6)}"
    lines = [line for line in _code() if len(line) > 20]
    yield from draw.sample(lines, 1_200)


def _code() -> Iterator[str]:
    folder = Path(sysconfig.get_path("stdlib"))
    for name in _MODULES.split():
        yield from (line.strip() for line in linecache.getlines(str(folder / f"{name}.py")))
