"""Ways to hand over a secret, and harmless sentences, for which no rule was written: what redaction is measured on.

They were written before the rules of ``spoken_secrets`` were tried on them. What is found wrong here is mended for the
whole class, in a rule, and the sentences of that class then belong to ``secret_corpus``.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator

_LETTERS = string.ascii_letters + string.digits


def _word(draw: random.Random, signs: str, size: int) -> str:
    return "".join(draw.choice(signs) for _ in range(size))


def mixed(draw: random.Random) -> str:
    """Return a password of letters of both cases and digits."""
    return f"{_word(draw, string.ascii_uppercase, 1)}{_word(draw, string.ascii_lowercase, 4)}{_word(draw, _LETTERS, 3)}{draw.randrange(10, 99)}"


def signed(draw: random.Random) -> str:
    """Return a password with a sign within."""
    return f"{_word(draw, string.ascii_lowercase, 3)}{draw.choice('!#%&+@?=^')}{_word(draw, string.ascii_uppercase, 2)}{draw.randrange(100, 999)}{_word(draw, string.ascii_lowercase, 3)}"


def hexadecimal(draw: random.Random) -> str:
    return _word(draw, "0123456789abcdef", 32)


def key(draw: random.Random) -> str:
    """Return a generated key of letters and digits."""
    return f"{_word(draw, _LETTERS, 30)}{draw.randrange(10, 99)}"


def base64(draw: random.Random) -> str:
    return f"{_word(draw, _LETTERS + '+/', 36)}{draw.randrange(10, 99)}=="


FORMS: tuple[tuple[str, Callable[[random.Random], str]], ...] = (
    ("our staging api key was {} until May", hexadecimal),
    ("please note my OpenAI key: {}", key),
    ("use this token from now on: {}", key),
    ("Here's the secret for the webhook: {}", hexadecimal),
    ("The new admin password will be {} from tomorrow.", signed),
    ("I changed my password to {} yesterday", mixed),
    ("my pass is {}", mixed),
    ("PW: {}", mixed),
    ("pwd = {}", mixed),
    ("p/w = {}", signed),
    ("wifi pw is {}", mixed),
    ("Password for the router (admin): {}", mixed),
    ("password -> {}", signed),
    ("Login: ana, password {}", signed),
    ("the root password on db2 is now {}", signed),
    ("password of the vault = '{}'", signed),
    ("Das Passwort für den Drucker ist {}", mixed),
    ("Mein neues Kennwort: {}", signed),
    ("Das Root-Passwort wurde auf {} geändert", signed),
    ("Der API-Schlüssel lautet {}", hexadecimal),
    ("Le mot de passe de la box est {}", mixed),
    ("mon mdp : {}", mixed),
    ("La clé API de Mistral est {}", key),
    ("Voici le jeton : {}", key),
    ("La contraseña de la base de datos es {}", signed),
    ("mi clave es {}", mixed),
    ("La clave de API es {}", hexadecimal),
    ("nueva contraseña: {}", mixed),
    ("A senha do roteador é {}", mixed),
    ("minha senha nova é {}", signed),
    ("a chave de API é {}", hexadecimal),
    ("La password del router è {}", mixed),
    ("la mia password è {}", signed),
    ("La chiave API è {}", key),
    ("Het wachtwoord van de wifi is {}", mixed),
    ("mijn wachtwoord is {}", signed),
    ("De API-sleutel is {}", hexadecimal),
    ("Hasło do routera to {}", mixed),
    ("moje hasło: {}", signed),
    ("Klucz API to {}", hexadecimal),
    ("Пароль от роутера: {}", mixed),
    ("мой новый пароль {}", signed),
    ("Ключ API — {}", hexadecimal),
    ("токен бота: {}", key),
    ("路由器的密码是{}", mixed),
    ("我的密码为 {}", signed),
    ("API密钥是{}", hexadecimal),
    ("パスワードは「{}」です", mixed),
    ("新しいパスワード: {}", signed),
    ("APIキーは{}です", hexadecimal),
    ("공유기 비밀번호는 {}입니다", mixed),
    ("새 비밀번호: {}", signed),
    ("API 키는 {} 입니다", hexadecimal),
    ('MYSQL_ROOT_PASSWORD="{}"', signed),
    ("spring.datasource.password={}", signed),
    ("  password: '{}'", signed),
    ('"dbPassword": "{}",', signed),
    ("DJANGO_SECRET_KEY='{}'", lambda d: "django-insecure-" + signed(d) + "@" + signed(d) + "x9$k"),
    ("SESSION_SECRET={}", lambda d: signed(d) + "%" + signed(d)),
    ("JWT_SECRET: {}", base64),
    ("AWS_SECRET_ACCESS_KEY={}", lambda d: _word(d, _LETTERS + "/", 38) + "7x"),
    ("aws secret access key: {}", lambda d: _word(d, _LETTERS + "/", 38) + "7x"),
    ("The AWS secret is {}", lambda d: _word(d, _LETTERS, 38) + "7x"),
    ("const apiKey = '{}';", key),
    ("client_secret={}&grant_type=x", key),
    ("redis-cli -a {} -n 2 keys '*'", signed),
    ("redis-cli -h cache.local -p 6380 -a '{}'", mixed),
    ("openssl pkcs12 -in a.p12 -nodes -passin pass:{}", mixed),
    ("openssl enc -aes-256-cbc -pass pass:{} -in a", mixed),
    ("ldapsearch -H ldap://x -D cn=a,dc=b -w {} '(uid=ana)'", mixed),
    ("ldapmodify -x -D cn=admin -w '{}' -f a.ldif", signed),
    ("docker login -u ana -p {} registry.example.org", mixed),
    ("mongosh -u ana -p {} mongodb.example.org", mixed),
    ("sqlcmd -S db -U sa -P {} -Q 'select 1'", signed),
    ("smbclient //srv/share -U ana%{}", mixed),
    ("zip -P {} a.zip b", mixed),
    ("7z x -p{} a.7z", mixed),
    ("keytool -list -keystore a.jks -storepass {}", mixed),
    ("net use Z: \\\\srv\\share /user:ana {}", mixed),
    ("echo {} | sudo -S apt update", mixed),
    ("echo 'ana:{}' | chpasswd", mixed),
    ("http -a ana:{} example.org/api", mixed),
    ("wget --user=ana --password={} https://example.org", mixed),
    ("plink -ssh ana@host -pw {}", mixed),
    ("xfreerdp /u:ana /p:{} /v:host", mixed),
    ("nmcli dev wifi connect Home password {}", mixed),
    ("gpg --batch --passphrase {} -c a", mixed),
    ("ftp://ana:{}@files.example.org/a", mixed),
    ("ssh ana@host, password {}", signed),
    ("{} is my new password", signed),
    ("creds: ana/{}", signed),
    ("user: ana pass: {}", signed),
    ("username ana password {}", signed),
    ("Authorization: Bearer {}", key),
    ("curl -H 'X-Auth-Token: {}' https://example.org", key),
    ("the passcode is {}", mixed),
    ("The key for Stripe is {}", key),
    ("license key {}", key),
    ("Token (expires in May): {}", key),
    ('BOT_TOKEN = "{}"', base64),
)
"""(a way to hand over a secret, what the secret is like)."""

FRESH_FORMS: tuple[tuple[str, Callable[[random.Random], str]], ...] = (
    ("ok so the db creds are admin:{}", signed),
    ("I set the grafana password as {} last week", mixed),
    ("temp pw for bob is {}", mixed),
    ("don't tell anyone but my bank password is {}", signed),
    ("API_TOKEN={} python run.py", key),
    ("new secret key for prod: {}", hexadecimal),
    ("rotate this access key please: {}", key),
    ("here is the bearer token: {}", key),
    ("password (staging) = {}", signed),
    ("Password\t{}", signed),
    ("The passphrase for the ssh key is {}", signed),
    ("WIFI: HomeNet / password: {}", mixed),
    ("my github password is: {}", mixed),
    ("auth token was {}", hexadecimal),
    ("Bitte merk dir das Kennwort {}", signed),
    ("Zugangsdaten: ana / {}", signed),
    ("das neue WLAN Passwort heißt {}", mixed),
    ("Geheimer Schlüssel: {}", hexadecimal),
    ("le nouveau mot de passe, c'est {}", mixed),
    ("Mot de passe du compte admin -> {}", signed),
    ("clé secrète : {}", hexadecimal),
    ("cambié mi contraseña a {}", mixed),
    ("la clave del router es: {}", mixed),
    ("credenciales: ana / {}", signed),
    ("mudei a senha para {}", mixed),
    ("ho cambiato la password in {}", mixed),
    ("ik heb het wachtwoord veranderd in {}", mixed),
    ("zmieniłem hasło na {}", mixed),
    ("пароль сменил на {}", mixed),
    ("пароль администратора такой: {}", signed),
    ("数据库口令：{}", mixed),
    ("服务器密码改成了{}", mixed),
    ("管理者のパスワードを{}に変更しました", mixed),
    ("비밀번호를 {}로 바꿨어요", mixed),
    ("export REDISCLI_AUTH={}", mixed),
    ("redis-cli --pass {} ping", mixed),
    ("openssl rsa -passout pass:{} -in k.pem", mixed),
    ("ldapwhoami -x -D cn=a -w {}", signed),
    ("psql postgresql://ana:{}@db/shop", mixed),
    ("mongodump --username ana --password {}", mixed),
    ("mysqladmin -u root --password={} ping", signed),
    ("sshpass -p{} ssh host", mixed),
    ("curl --user ana:{} https://example.org", mixed),
    ("vault login {}", lambda d: "hvs." + _word(d, _LETTERS, 90)),
    ("kubectl create secret generic x --from-literal=password={}", mixed),
    ("ansible-playbook x.yml -e ansible_become_pass={}", mixed),
    ("rclone config create r sftp pass {}", mixed),
    ("restic: RESTIC_PASSWORD={} restic backup", mixed),
    ('<add key="Password" value="{}" />', signed),
    ("Server=db;User Id=sa;Password={};Encrypt=true", signed),
)
"""Written after the rules were mended by ``FORMS``, and measured once before any rule was mended by these."""

HARMLESS: tuple[str, ...] = (
    "password reset was broken in Safari17",
    "password from 1Password is synced",
    "My pin code does not work on Windows11",
    "Pin 13 is 3300 mV, and pin number one is red.",
    "Press the key Ctrl+Shift+F5 as the secret gesture",
    "The security code review is on 2026-03-01",
    "The passphrase is too short for us to use",
    "passphrase: ask the admin for it",
    "The door code is on the note behind door 2",
    "The seed phrase has twelve words and the PIN pad is broken.",
    "rows are identified by 'customer_id'",
    "The recovery code path is tested in 3 places",
    "the secret is stored in vault/prod/db2",
    "token from GitHub2 was rotated; secret santa is on 12/24",
    "mysql -u root -p shop; docker run -p 8080:80 nginx",
    "commit 9f86d081884c7d659a2feaa0c55ad015 has the key of the release",
    "The password must have 12 characters, 2 digits and 1 sign.",
    "My password is not stored anywhere, it is hashed with bcrypt2 and salted.",
    "The api key is missing in config2.toml, so the call fails with 401.",
    "The token is valid for 3600s and then refreshed by oauth2-proxy.",
    "The secret is to practise 20min every day.",
    "Is the key of the song A4 or B-flat? The key is C#minor.",
    "Reset your password at https://example.org/reset?step=2 within 24h.",
    "The password field is called user_password2 in the form.",
    "password: string; passwordConfirm: string; token?: string",
    "def check_password(user, password): return verify(password, user.hash)",
    "if password == os.environ.get('ADMIN_PASSWORD'): login()",
    "token = request.headers['X-Auth-Token']; secret = get_secret('db/prod')",
    "SECRET_KEY = env('DJANGO_SECRET_KEY')",
    'API_KEY="${API_KEY:?missing}"',
    'password="{{ vault.db.password }}"',
    "The pass is 2,106m high and closed in winter.",
    "We pass is_valid2 to the function; pass: int = 3",
    "PW: public works, p/w: per week, 40h p/w on average",
    "redis-cli -a $REDIS_PASSWORD ping",
    "ldapsearch -x -W -D cn=admin,dc=example2 -b dc=example",
    "openssl enc -aes-256-cbc -pass env:MY_PASS2 -in a -out b",
    "docker run -p 8080:80 nginx2 && docker login registry2.example.org",
    "zip -r a.zip b2 && unzip a.zip -d c2",
    "7z a -p archive2.7z files2",
    "mongosh --port 27018 -p --username ana2",
    "Das Passwort ist mindestens 12 Zeichen lang.",
    "Das Kennwort lautet wie beim letzten Mal, siehe Handbuch2.",
    "Der Schlüssel ist unter der Matte 2 vor Haus 17b.",
    "Le mot de passe est obligatoire depuis 2024.",
    "La clé est dans la boîte n°12, au 3e étage.",
    "La contraseña es obligatoria en iOS17 y Android14.",
    "La clave es trabajar 8h al día, no 12.",
    "A senha é obrigatória desde 2024 na versão v2.1.0.",
    "A chave é ter 3 pessoas em cada turno.",
    "La password è obbligatoria dal 2024 su Windows11.",
    "Het wachtwoord is verplicht vanaf versie2 van de app.",
    "De sleutel is verloren in kamer 12b.",
    "Hasło to minimum 12 znaków i 2 cyfry.",
    "Klucz to regularna praca od 8:30 do 16:45.",
    "Пароль — это минимум 12 символов. Ключ это регулярность.",
    "密码是必填项，至少12位。密钥是保密的。",
    "パスワードは12文字以上です。キーはC#です。",
    "비밀번호는 12자 이상입니다. 키는 180cm입니다.",
    "The commit 9fceb02d0ae598e95dc970b74767f19372d61af8 is the key to the bug.",
    "Key points: (1) latency, (2) cost. The key was 3x faster indexing.",
    "primary key is user_id2, foreign key is orders.customer_id2",
    "The cache key is sha256(url) and the partition key is tenant42.",
    "ssh-keygen -t ed25519 -C ana@example.org; the key is in ~/.ssh/id_ed25519",
    "public key: ssh-rsa AAAA (see the wiki), fingerprint SHA256:47DEQpj8HBSa",
    "The secret garden was read by 3b and 4c in 2024.",
    "A token is about 4 characters; GPT4o has 128k tokens.",
    "token_count=4096 max_tokens: 8192 tokenizer='cl100k_base'",
    "The access code is printed on page 12b of the manual.",
    "Benutzer/Passwort: siehe Tresor 7, Fach 3b",
    "login/password: ask Ana or see 1Password",
    "echo done2 | tee log2.txt; echo test123 | wc -c",
    "http -a example.org:8080 is wrong; https example.org/api2",
    "The pin code is 4 digits. PIN: optional.",
    "git config user.email ana2@example.org",
    "He gave me a key ring with 12 keys for room 4B, 4C and 4D.",
)


def secrets(
    forms: tuple[tuple[str, Callable[[random.Random], str]], ...] = FORMS, seed: int = 36
) -> Iterator[tuple[str, str]]:
    """Yield (text, the secret in it): each form five times."""
    draw = random.Random(seed)  # noqa: S311 - the same each time
    for form, make in forms * 5:
        secret = make(draw)
        yield form.format(secret), secret
