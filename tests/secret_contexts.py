"""Secrets in contexts of many programs and eleven languages and more, and ordinary lines that hold none.

Both were written before any rule was tried on them, by somebody who had not read the rules. Keys are drawn anew in each
run of the program, so that none of them stands in this file.
"""

from __future__ import annotations

import random
import string

_draw = random.Random(77123)  # noqa: S311 - the same in each run


def hexs(size: int) -> str:
    return "".join(_draw.choice("0123456789abcdef") for _ in range(size))


def b62(size: int) -> str:
    return "".join(_draw.choice(string.ascii_letters + string.digits) for _ in range(size))


def b64(size: int) -> str:
    return "".join(_draw.choice(string.ascii_letters + string.digits + "+/") for _ in range(size))


FORMS: list[tuple[str, str]] = [
    ("mysql -u root -p{} shop", "hT7kq2Lz"),
    ("mysqldump --password={} --all-databases > dump.sql", "Gw82_pLm!x"),
    ("PGPASSWORD={} psql -h db.internal -U app", "tinY-horse-99"),
    ("sshpass -p {} ssh deploy@10.0.0.4", "Rk4!vvQe"),
    ("sshpass -p '{}' scp x host:", "z1 Kola bear"),
    ("curl -u admin:{} https://ci.example.com/job", "kL93mmQ!a"),
    ("curl --user jenkins:{} https://ci.example.com", hexs(34)),
    ('curl -H "X-Api-Key: {}" https://api.example.com', b62(28)),
    ('curl -H "Authorization: Basic {}" https://x.example', "YWRtaW46aHVudGVyMjIh"),
    ("wget --http-password={} https://files.example.com/a.tgz", "Vb7!pear"),
    ("docker login -u me -p {} registry.example.com", "dckr_pat_" + b62(27)),
    ("echo {} | docker login --username ci --password-stdin", b62(24)),
    ("helm upgrade app ./chart --set db.password={}", "Mauve7Lamp"),
    ("kubectl create secret generic db --from-literal=password={}", "S3a!gull"),
    ("ansible-vault encrypt_string {} --name dbpass", "Quartz-8812"),
    ("zip -P {} -r a.zip folder", "moss77River"),
    ("7z x backup.7z -p{}", "Brick_0991"),
    ("gpg --batch --passphrase {} -d x.gpg", "walrus-tango-6"),
    ("smbclient //nas/share -U bob%{}", "Fj39kkd!"),
    ('mongosh "mongodb://root:{}@mongo:27017/admin"', "pEar99tree"),
    ("export STRIPE_KEY={}", "rk_live_" + b62(24)),
    ("az login --service-principal -u 1234 -p {} --tenant foo", "Abc8Q~" + b62(34)),
    ("vault login {}", "hvs." + b62(24)),
    ("npm config set //registry.npmjs.org/:_authToken {}", "npm_" + b62(36)),
    ("git clone https://oauth2:{}@gitlab.com/acme/app.git", "glpat-" + b62(20)),
    ("git remote set-url origin https://{}@github.com/a/b.git", "ghp_" + b62(36)),
    ("htpasswd -b .htpasswd ana {}", "rQ82!plum"),
    ("net use Z: \\\\srv\\data /user:corp\\ana {}", "Tulip#4410"),
    ("wpa_passphrase HomeNet {}", "correct-hills-81"),
    ('nmcli dev wifi connect "Casa" password {}', "gatito2093x"),
    ('restic -r s3:x --password-command "echo {}" backup', "Blau-88-Ente"),
    ("influx auth create --token {}", b64(60) + "=="),
    ("cloudflared tunnel run --token {}", "eyJhIjoi" + b62(80)),
    ("ngrok config add-authtoken {}", b62(27) + "_" + b62(21)),
    ("flyctl auth token FlyV1 {}", "fm2_" + b64(60)),
    ("rclone obscure {}", "Pine!tree55"),
    ("ffmpeg -i rtsp://cam:{}@192.168.1.9/stream out.mp4", "hik12345Z"),
    ("xfreerdp /v:host /u:ana /p:{}", "Wd0!wd0!aa"),
    ("redis-cli -h cache --pass {}", "cacheMe_771"),
    ("sqlcmd -S srv -U sa -P {}", "Str0ng#Sa99"),
    ("spring.datasource.password={}", "w1nter_Sun"),
    ('"clientSecret": "{}",', b62(32)),
    ("client_secret: {}", "GOCSPX-" + b62(28)),
    ('private_token = "{}"', b62(20)),
    ("<password>{}</password>", "oN3.two!x"),
    ('<add key="SmtpPassword" value="{}"/>', "mailM3now"),
    ("Server=db;Database=x;User Id=sa;Password={};Encrypt=true", "Krill!902"),
    ("Server=db;Uid=u;Pwd={};", "nOvember_1"),
    (
        "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={};EndpointSuffix=core.windows.net",
        b64(86) + "==",
    ),
    (
        "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={}",
        b64(43) + "=",
    ),
    ("amqp://svc:{}@mq.internal:5672/v", "rabbIt4242"),
    ("SECRET_KEY_BASE={}", hexs(128)),
    ("JWT_SECRET: {}", "my-very-long-jwt-signing-9xQ"),
    ("ENCRYPTION_KEY={}", b64(43) + "="),
    ('COOKIE_SALT="{}"', b62(22)),
    ("webhook_signing_secret: whsec_{}", b62(32)),
    ("SLACK_WEBHOOK=https://hooks.slack.com/services/T0AB12CD3/B0EF45GH6/{}", b62(24)),
    ("discord webhook https://discord.com/api/webhooks/1098765432109876543/{}", b62(68)),
    ("TELEGRAM_BOT=7123456789:{}", "AAH" + b62(32)),
    ("SENDGRID: {}", "SG." + b62(22) + "." + b62(43)),
    ("TWILIO_AUTH={}", hexs(32)),
    ("mailgun {}", "key-" + hexs(32)),
    ("OPENAI={}", "sk-proj-" + b62(48)),
    ("anthropic: {}", "sk-ant-api03-" + b62(80) + "AA"),
    ("HF={}", "hf_" + b62(34)),
    ("google maps {}", "AIza" + b62(35)),
    ("DD_APP_KEY={}", hexs(40)),
    ("aws_secret_access_key = {}", b64(40)),
    ("aws_session_token={}", b64(120)),
    ("digitalocean {}", "dop_v1_" + hexs(64)),
    ("shopify {}", "shpat_" + hexs(32)),
    ("pypi upload with {}", "pypi-AgEIcHlwaS5vcmc" + b62(60)),
    ("linear {}", "lin_api_" + b62(40)),
    ("notion integration {}", "ntn_" + b62(46)),
    ("postman {}", "PMAK-" + hexs(24) + "-" + hexs(34)),
    ("figma {}", "figd_" + b62(40)),
    ("new relic {}", "NRAK-" + b62(27).upper()),
    ("grafana {}", "glsa_" + b62(32) + "_" + hexs(8)),
    ("groq {}", "gsk_" + b62(52)),
    ("xai {}", "xai-" + b62(80)),
    ("replicate {}", "r8_" + b62(37)),
    ("supabase service role {}", "sbp_" + hexs(40)),
    ("planetscale {}", "pscale_tkn_" + b62(43)),
    ("doppler {}", "dp.pt." + b62(43)),
    ("age key: {}", "AGE-SECRET-KEY-1" + b62(58).upper()),
    ("databricks {}", "dapi" + hexs(32)),
    ("square {}", "EAAAE" + b62(59)),
    ("atlassian token {}", "ATATT3xFfGF0" + b62(100)),
    ("machine api.example.com login ana password {}", "netrcP4ss"),
    ('db_pass: "{}"', "c0bra~Venom"),
    ('$config["pass"] = "{}";', "dolphin_x8"),
    ("password => '{}',", "kite-9-kite"),
    ('os.environ["TOKEN"] = "{}"', b62(30)),
    ("const apiKey = `{}`;", b62(26)),
    ('String pwd = "{}";', "Java_4ever!"),
    ('password := "{}"', "goLang99!"),
    ("| password | {} |", "Table5top!"),
    ("user: ana\npass: {}\n", "cl0ver-hill"),
    ("login=ana&password={}&remember=1", "f0rm%21Data"),
    ("https://api.example.com/v2/items?access_token={}&page=2", b62(32)),
    ("https://maps.example.com/?sig={}", b62(43)),
    ("https://acct.blob.core.windows.net/c/f?sv=2022-11-02&sig={}", b62(43) + "%3D"),
    ("Set-Cookie: session={}; HttpOnly", b62(40)),
    ("Cookie: sessionid={}; theme=dark", hexs(32)),
    ("X-Auth-Token: {}", hexs(40)),
    ("Proxy-Authorization: Basic {}", "cHJveHk6czNjcmV0OTk="),
    ("Authorization: Token {}", hexs(40)),
    ("Authorization: {}", b62(40)),
    ("Bearer {}", "eyJhbGciOiJIUzI1NiJ9." + b62(40) + "." + b62(43)),
    (
        "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----",
        b64(70) + "\n" + b64(70),
    ),
    (
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{}\n-----END PGP PRIVATE KEY BLOCK-----",
        b64(64) + "\n=aB3d",
    ),
    ("the wifi password at my parents is {}", "duckpond1987"),
    ("The password for the router: {}", "ZYX-998-acc"),
    ("my password is {} but I will change it", "sunny.Day12"),
    ("I set the root password to {} on the NAS", "Gr8Wall77"),
    ("use {} as the password for staging", "Staging#2291"),
    ("log in with ana / {}", "h0neyBee!"),
    ("username ana, password {}", "purple19x"),
    ("user ana pass {}", "tangO!88"),
    ("creds are admin:{}", "adm1nX!x"),
    ("credentials: bob / {}", "Bobs-pw-17"),
    ("The PIN of my debit card is {}", "4829"),
    ("my pin is {}", "7731"),
    ("alarm code {} at the front door", "90412"),
    ("the safe combination is {}", "17-33-08"),
    ("The one-time code is {}", "493 021"),
    ("my 2FA backup codes: {}", "k3x9-22mm 8fj2-q0qa"),
    ("recovery code is {}", "XKCD-91QM-22PL-7HHA"),
    ("TOTP seed {}", "JBSWY3DPEHPK3PXPJBSW"),
    ("my passphrase is {}", "lobster drum violet ninety"),
    (
        "seed phrase: {}",
        "abandon ability able about above absent absorb abstract absurd abuse access accident",
    ),
    ("my wallet private key 0x{}", hexs(64)),
    ("the secret key is {}", b62(32)),
    ("here is the token you asked for: {}", b62(36)),
    ("the access key for the bucket is {}", b62(20)),
    ("here, this is the key: {}", b62(40)),
    ("api token = {}", hexs(32)),
    ("Ana's API key: {}", b62(32)),
    ('The API secret we got from them is "{}".', b62(30)),
    ("the new pw is {}", "Fig!newt0n"),
    ("pwd for the vm is {}", "vmVm#33a"),
    ("Old password {} no longer works", "Sn0wman1"),
    ("I changed my password from {} to something better", "kitten2011"),
    ("password hint: dog. Password: {}", "R3x!R3x!"),
    ("the db password (it is {}) must be rotated", "dbDb_4417"),
    ('"{}" is the password', "Open.Sesame8"),
    ("{} is my password for github", "octoCat_31"),
    ("My credit card number is {}", "4539 1488 0343 6467"),
    ("IBAN password portal: user x, passwort {}", "Bank!Zug7"),
    ("the license key: {}", "A1B2C-D3E4F-G5H6I-J7K8L-M9N0P"),
    ("security answer: {}", "Fluffy the cat 2"),
    ("Passcode for the Zoom call: {}", "8aQ!2z"),
    ("the unlock code of my phone is {}", "258013"),
    ("the admin pass is still {}", "changeMe!22"),
    ("shared secret for the VPN is {}", "ipsec~Pineapple3"),
    ("PSK: {}", "vpnPsk-88-alpha"),
    ("community string {}", "snmpRo_x71"),
    ("sudo pw {}", "sUdo!99x"),
    ("la contraseña del wifi es {}", "perroVerde8"),
    ("contraseña: {}", "Luna_2040"),
    ("mi clave es {}", "Gato#771"),
    ("la clave del banco: {}", "b4nc0Azul"),
    ("das Passwort lautet {}", "Eichhorn!5"),
    ("Mein WLAN-Passwort ist {}", "Zaunkoenig42"),
    ("Kennwort: {}", "Kenn_99wort"),
    ("die PIN meiner Karte ist {}", "5518"),
    ("Zugangsdaten: admin / {}", "Tuer!Auf8"),
    ("le mot de passe est {}", "Fromage!12"),
    ("mot de passe du wifi : {}", "baguette_88"),
    ("mon code secret est {}", "7712"),
    ("mdp: {}", "Chat!noir3"),
    ("la password è {}", "Pizza_bella9"),
    ("la mia password del router: {}", "Gatto!44x"),
    ("parola d'ordine: {}", "Sole!Mare7"),
    ("a senha é {}", "Cafe!Preto8"),
    ("senha do wifi: {}", "praia2099x"),
    ("het wachtwoord is {}", "Fiets!pad3"),
    ("wachtwoord: {}", "Kaas_broodje7"),
    ("hasło to {}", "Zamek!Klucz4"),
    ("hasło do wifi: {}", "pierogi_77x"),
    ("пароль: {}", "Moloko!55"),
    ("пароль от вайфая {}", "snegURka9"),
    ("мой пароль — {}", "Lisa_krasna1"),
    ("密码是{}", "Panda888x"),
    ("我的密码：{}", "longMao_66"),
    ("WiFi密码 {}", "tea4guests"),
    ("パスワードは{}です", "Sakura!2031"),
    ("パスワード：{}", "neko_9931"),
    ("비밀번호는 {} 입니다", "Kimchi!77"),
    ("비밀번호: {}", "hanok_2231"),
    ("lösenordet är {}", "Fika!bulle2"),
    ("şifre: {}", "Kahve!33x"),
    ("şifrem {}", "deniz_9912"),
    ("كلمة المرور: {}", "Qahwa!812"),
    ("كلمة السر هي {}", "Nakhla_55x"),
    ("पासवर्ड है {}", "chai_4455X"),
    ("mật khẩu là {}", "pho!Bo991"),
    ("kata sandi: {}", "nasi_Goreng3"),
    ("auth:\n  username: bot\n  password: {}\n", "yaml!77Zz"),
    ("[smtp]\nuser = x\npasswd = {}\n", "ini_88_Cfg"),
    ("connect('host', 'user', '{}')", "Pos1tional!"),
    ('requests.get(u, auth=("ana", "{}"))', "Tuple!x91"),
    ('login("ana@example.com", "{}")', "Func_4491a"),
    ("ENV DB_PASS {}", "dockerENV!2"),
    ('variable "db_password" { default = "{}" }', "terraF0rm!"),
    ("set requirepass {}", "redisCONF_9"),
    ('identified by "{}"', "Orac1e#xx"),
    ("CREATE USER ana WITH PASSWORD '{}';", "pgUser!44"),
    ("ALTER USER 'ana'@'%' IDENTIFIED BY '{}';", "mySq1!aa"),
    ("enable secret 0 {}", "Cisc0!x88"),
    ("snmp-server community {} RO", "commStr1ng"),
    ("key-string {}", "ospf_K3y9"),
    ("--token={}", b62(32)),
    ("--api-key {}", b62(32)),
    ("-e API_KEY={}", b62(30)),
    ('--secret "{}"', b62(24)),
    ("--client-secret {}", b62(34)),
    ("Ocp-Apim-Subscription-Key: {}", hexs(32)),
    ("x-goog-api-key: {}", "AIza" + b62(35)),
    ("refresh_token: 1//{}", b62(60)),
    ("oauth_token_secret={}", b62(45)),
    ("consumer secret {}", b62(50)),
    ("the guest network at the office uses {} as its password", "Fr0st!Lake"),
    ("kennwort für das NAS: {}", "Wolke_7713"),
    ("Mon mot de passe Netflix c'est {}", "Crepe!sucre8"),
    ("la clave de la caja fuerte es {}", "48-12-77"),
    ("mi contraseña nueva de Gmail, {}", "Mango.Verde21"),
    ("password del portatile {}", "Lampone#33a"),
    ("senha do banco = {}", "coxinha77X"),
    ("hasło do routera Zbigniewa {}", "Kluski!992"),
    ("пароль у бабушки {}", "Babka_1941x"),
    ("邮箱密码 {}", "Qing!2044a"),
    ("サーバーのパスワード {}", "kaede#7719Z"),
    ("내 비밀번호 {}", "dokkaebi_81X"),
    ("mitt lösenord på jobbet {}", "Kanel!bulle4"),
    ("salasana on {}", "Sauna!88kk"),
    ("adgangskoden er {}", "Rugbroed_19x"),
    ("jelszó: {}", "Gulyas_771"),
    ("sifre olarak {} kullan", "Lokum!55a"),
    ("credentials for grafana: viewer:{}", "Vw!3342ab"),
    ("login: marta\npw: {}\n", "tin-roof-88"),
    ("email: a@b.co\npassword: {}", "kettle-77"),
    ('"username": "svc", "pass": "{}"', "svc-pass-09x"),
    ("['user' => 'root', 'pass' => '{}']", "r00t-toor"),
    ('db.connect("pg", "app", "{}")', "Quail#2201x"),
    ('client.login("bot", "{}")', "B0t!Secret9"),
    ('requests.post(u, auth=("svc", "{}"))', "Zebra_9910K"),
    ("MAILER_SECRET={}", "plain-words-then-9Z"),
    ("SESSION_SALT: {}", "pepper-and-salt-31"),
    ("export GITEA_TOKEN={}", hexs(40)),
    ("Api-Key: {}", b62(32)),
    ("X-Vault-Token: {}", "s." + b62(24)),
    ("X-Shopify-Access-Token: {}", hexs(32)),
    ("Ocp-Subscription-Key: {}", hexs(32)),
    ("Authorization: Key {}", b62(40)),
    ("authorization: {}", hexs(64)),
    ("acme_live_{} is what the dashboard shows", b62(40)),
    ("use zap_{} for the automation", b62(48)),
    ("their key: prod-{}", b62(36)),
    ("https://discord.com/api/webhooks/{}", "998877665544332211/" + b62(68)),
    ("https://hooks.zapier.com/hooks/catch/123456/{}", b62(24)),
    ("https://outlook.office.com/webhook/{}", b62(40)),
    ("https://api.telegram.org/bot{}/getMe", "7012345678:AAF" + b62(32)),
    ("masterauth {}", "Redis!55pw"),
    ("snmp-server community {} RW", "Wr1teComm9"),
    ("username admin secret {}", "C1sco!Rocks"),
    ("neighbor 10.0.0.1 password {}", "Bgp#peer77"),
    ("ENV API_SECRET {}", b62(28)),
    ("set -x DB_PASSWORD {}", "fishy!Shell9"),
    ("setenv SMTP_PASS {}", "Csh!ell881"),
    ("ansible-vault encrypt_string '{}' --name x", "Vlt!pass90"),
    ("mosquitto_sub -u a -P {}", "mqTT!9981"),
    ("verification code: {}", "482 913"),
    ("the gate code: {}#", "3391"),
    ("my bank PIN {}", "8842"),
    ("sudo password on the pi is {}", "raspb3rry_Pi9"),
    ("Old pass was {}", "Penguin!2019"),
    ("temporary password {} expires tomorrow", "Tmp-8812-xY"),
    ("{} (wifi password)", "Harbour!33x"),
]
"""(text with ``{}`` where the secret stands, the secret)."""

HARMLESS = """\
The password policy requires twelve characters and one sign.
I forgot my password again and had to reset it by mail.
She said the key is to listen before you speak.
The key to the cellar is under the mat.
Our secret is that we bake the bread twice.
Token ring networks were common in the eighties.
The tokens per second dropped from 45 to 31 after the update.
max_tokens=4096 and temperature=0.2
We met at 17:30 in room 4829.
My flight is LH1234 on 2026-03-14 from MUC.
The commit is 3f2a9c1d8e7b6a5f4c3d2e1f0a9b8c7d6e5f4a3b.
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 is the image digest
The uuid of the order is 7c9e6679-7425-40de-944b-e07fc1f90ae7.
See https://docs.python.org/3/library/secrets.html#module-secrets for details.
git checkout -b feature/password-reset
The function get_password_hash(user) returns bytes.
password = getpass.getpass("Password: ")
api_key = os.environ["API_KEY"]
password: ${DB_PASSWORD}
password: <your password here>
Authorization: Bearer <token>
The PIN is four digits long.
Pin the version to 4.8.29 please.
My pin board is full of tickets.
passport number is needed for the visa
Pass me the salt, please; pass 2 of the compiler is slow.
We pass the user and the id as arguments.
He passed 4 of 5 exams in 2024.
The secret of good pasta is salt.
The code is in src/app/main.py, line 120.
The area code is 030 and the post code is 10115.
The dress code is smart casual.
error code 0x80070005 occurred on start
The alarm went off at 06:45.
Ana's phone number is +49 30 901820.
The wifi at the café is slow but has no password.
mysql -u root -p shop
ssh -p 2222 deploy@10.0.0.4
mkdir -p src/components/auth
docker run -p 8080:80 -e NODE_ENV=production nginx
curl -u admin https://ci.example.com
cp -p a.txt b.txt
The access was granted and the token expired after 30 minutes.
The cookie banner annoys me; cookies=12 per site.
The session id changes after login, as it should.
Session 14: introduction to graph databases.
primary key (id), foreign key (user_id) references users
key: value pairs are sorted by key
The keyboard shortcut is Ctrl+Shift+P.
The musical key is B-flat minor.
The key result for Q3 is 12,000 new users.
"password" is the most common password in the world.
I use a password manager called Bitwarden.
La contraseña debe tener ocho caracteres.
La clave está en la paciencia.
La clave del éxito es dormir bien.
Das Passwort muss geändert werden.
Der Schlüssel liegt unter der Matte.
Le mot de passe est trop court.
Le code postal est 75011.
La chiave è nella borsa rossa.
A senha expirou ontem de manhã.
Het wachtwoord is vergeten.
Hasło jest za krótkie.
Пароль слишком короткий.
Я забыл пароль от почты.
密码太短了。
我忘记了密码。
パスワードは長いほうがいいです。
パスワードを忘れました。
비밀번호를 잊어버렸어요.
비밀번호는 길어야 합니다.
Şifre çok kısa.
The model is sentence-transformers/all-MiniLM-L6-v2.
torch==2.3.1+cu121 and numpy>=1.26
The build 20260314.7 failed with exit code 137.
Ticket SR-052 blocks SR-053.
ISBN 978-3-16-148410-0 is on the list.
The IBAN is printed on the invoice.
The variable is called user_password_reset_token_expires_at.
class PasswordResetToken(Base): pass
from django.contrib.auth.hashers import make_password
def login(user, password): return check(user, password)
if token is None: raise PermissionDenied
const token = await getToken();
The secret santa draw is on Friday.
Victoria's Secret opened a store near us.
Top secret files were shown in the museum.
The shared secret of both sisters was the hidden garden.
A bearer of good news came to the door.
Basic auth is not enough for this endpoint.
The basic idea is simple: store less, find more.
Her answer to the security question surprised everyone.
The recovery took six weeks; the recovery code path is untested.
Backup codes are printed and kept in the safe.
The safe is behind the painting of the ship.
The combination of rye and caraway is great.
The license is MIT; the license key is not needed.
The seed phrase has twelve words, never type it anywhere.
seed=42 gives the same result on both machines
I planted seed potatoes in April.
The salt is 5 g per litre.
The hash of the file did not match.
md5sum d41d8cd98f00b204e9800998ecf8427e empty.txt
ETag: "33a64df551425fcc55e4d42a148795d9f25f89d4"
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA
color: #ff8800; background: #1a2b3c4d
MAC address 00:1B:44:11:3A:B7 of the printer
IPv6 2001:0db8:85a3:0000:0000:8a2e:0370:7334
/usr/lib/python3.11/site-packages/cryptography/hazmat/primitives/asymmetric/rsa.py
SELECT id, password_hash FROM users WHERE id = 7
ALTER TABLE users ADD COLUMN password_changed_at timestamptz
The user ana passes the test on the first try.
login with Google works again since Monday
Sign in with your username and password.
Username and password are required.
Enter your password to continue
The credentials are stored in 1Password.
credentials: include
The admin panel: users / roles / groups
The admin is Bob; Bob / Alice share the desk.
auth/login, auth/logout and auth/refresh are the routes
X-Request-Id: 5f2b9c1e8d7a4f3b
traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
v=spf1 include:_spf.google.com ~all
Version: 1.2.3-rc.4+build.5678abcd
The order number is A1B2C-D3E4F and ships Monday.
My membership number is 88213377.
My house number is 17 and my floor is 3.
The verification took two days.
Code review: 493 lines added, 21 removed.
Bus 42 leaves at 08:15; the code word for the trip is fun.
The new pw-reset page is live.
The PR is #4829 and the issue is #7731.
The unlock of level 25 took me a week.
The passphrase should be long and easy to remember.
The access road to the farm is closed.
Access keys can be rotated every 90 days.
Secrets are managed by Vault, tokens by Okta.
The API key must never be committed.
Put the API key in the .env file.
We rotated the API keys on Tuesday.
The token count is 128000.
The token limit is 8192 tokens.
The author of the key paper is Vaswani.
Key: E minor. Tempo: 92.
Pass: 31, Fail: 2, Skipped: 4
pass rate: 97.5%
user: ana
role: admin
The PSK modulation scheme encodes two bits.
The community string quartet plays on Sunday.
identified by the number on the back
password grant of OAuth2.0 is deprecated
The password manager KeePassXC2.7 works on Debian12.
passwords are hashed with Argon2id and a 16-byte salt
I typed my password on the new iPhone15Pro and it failed
mot de passe oublié depuis Windows11
the token bucket algorithm of RFC6585 limits calls
pass the request to Handler2B please
user: ana, role: admin2
login works in Firefox128 but not in Chrome127
password reset for build v2.3.1-rc4 failed
sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC
spreadsheet 1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms is shared
run_01HXYZ3J8QK4W5V6T7S8R9P0Q1 finished
trace chatcmpl-8yXk2JQz5f3b7c9d1e4Gh6Ij8Kl0Mn
https://example.com/webhooks/settings
https://example.com/hooks/catch/all
connect("localhost", 5432, "appdb2")
login("ana@example.com", "password123")  # from the tutorial
auth=("user", "pass")
SECRET_NAME=prod/db-7
TOKEN_URL=https://id.example.com/oauth2/token
MAX_TOKENS=4096
TOKEN_LIFETIME: 3600s
TOKENIZER=bert-base-uncased-2
CACHE_KEY=user:17:profile2
SORT_KEY: created_at_2
Idempotency-Key: 7c9e6679-7425-40de-944b-e07fc1f90ae7
Cache-Key: 9f86d081884c7d659a2feaa0c55ad015
the error code 90412 came back
The order code A90412 is on the label
postal code 10115, area code 0304
my pin number is four digits
verification code never came
one-time code expires in 10 minutes
set requirepass in redis.conf
snmp-server community is not set
ENV NODE_VERSION 20.11.1
ENV PATH /usr/local/bin2
set -x EDITOR vim9
variable "region" { default = "eu-west-1" }
variable "password_length" { default = 24 }
mi contraseña tiene 12 caracteres
пароль из 12 символов
密码长度至少12位
パスワードは8文字以上
비밀번호는 8자 이상
das Passwort besteht aus 12 Zeichen
username and password2 fields are missing in form_12
the user ana passed test_login_22
pass: test_case_12
passed: 31, failed: 2
"pass": true, "total": 12
pass = i % 2
const pass = await bcrypt.hash(p, 10);
password: process.env.DB_PASS2
password = config.db.password2
password=$DB_PASSWORD2
The wifi password is on the fridge in kitchen_2
Authorization: Bearer
Authorization: none
""".splitlines()
