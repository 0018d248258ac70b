"""Detectors of secrets in sentences and command lines: "my api key is …", "redis-cli -a …".

The vocabulary is data: nouns of many languages ("la contraseña es …"), the words that join a noun
and its value, and the options of programs that take a password. Last, the value itself is checked:
a word, a path, a placeholder or the name of an algorithm is no secret.
"""

from __future__ import annotations

import re

from pps.ingest.detectors import Detector, entropy_bits, given, looks_random

PASSWORD_NOUNS = (
    # English
    *(
        "password",
        "passwd",
        "passcode",
        "pass code",
        "passphrase",
        "pass phrase",
        "pwd",
        "pin code",
    ),
    *("passwort", "kennwort", "zugangscode", "passwörter"),  # German
    *("mot de passe", "code d'accès", "mdp"),  # French
    *("contraseña", "contrasena", "clave de acceso", "clave del", "clave"),  # Spanish
    *("senha", "palavra-passe", "palavra passe"),  # Portuguese
    *("parola d'ordine", "parola chiave"),  # Italian
    *("wachtwoord", "toegangscode"),  # Dutch
    *("hasło", "haslo", "hasłem"),  # Polish
    *("пароль", "пароля", "паролем", "кодовое слово"),  # Russian
    *("密码", "密碼", "口令", "暗号"),  # Chinese
    *("パスワード", "パスコード", "暗証番号", "合言葉"),  # Japanese
    *("비밀번호", "비번", "패스워드", "암호"),  # Korean
    *("şifre", "şifresi", "sifre", "parolası"),  # Turkish
    *("lösenord", "lösenordet", "adgangskode", "passord", "salasana"),  # Nordic languages
    *("heslo", "parolă", "parola", "jelszó", "lozinka"),  # Czech, Romanian, Hungarian, Croatian
    *("κωδικός", "كلمة المرور", "كلمة السر", "סיסמה"),
    *("पासवर्ड", "mật khẩu", "kata sandi", "รหัสผ่าน"),
    *("wifi code", "wi-fi code", "wlan-code", "security code", "unlock code", "access code"),
)
SHORT_NOUNS = ("pw", "p/w", "pass", "psw", "pswd", "mdp")
"""Abbreviations that stand alone, directly before a sign or a copula."""
_KEY_NOUNS = (
    *(
        "api key",
        "api-key",
        "apikey",
        "api_key",
        "secret key",
        "access key",
        "auth key",
        "license key",
    ),
    *(
        "private key",
        "account key",
        "encryption key",
        "signing key",
        "master key",
        "hmac key",
        "secret",
        "token",
    ),
    *("credential", "access code", "client secret", "webhook secret"),
    *("api-schlüssel", "schlüssel", "geheimnis", "zugangsschlüssel"),
    *("clé api", "clé d'api", "clé secrète", "clé d'accès", "clé", "jeton", "cle api"),
    *("clave api", "clave de api", "clave de la api", "clave secreta", "llave", "clave"),
    *("chave de api", "chave da api", "chave api", "chave secreta", "chave de acesso", "chave"),
    *("chiave api", "chiave segreta", "chiave di accesso", "chiave"),
    *("api-sleutel", "sleutel", "toegangssleutel", "geheime sleutel"),
    *("klucz api", "klucz", "sekret", "tokenem"),
    *("ключ", "ключа", "токен", "токена", "секрет"),
    *(
        "密钥",
        "密鑰",
        "秘钥",
        "令牌",
        "金鑰",
        "キー",
        "トークン",
        "シークレット",
        "秘密鍵",
        "키",
        "토큰",
        "시크릿",
    ),
)
_PLAIN_KEY = (
    "".join(
        f"(?<!{word}[ _-])"
        for word in (
            *(
                "primary",
                "foreign",
                "cache",
                "public",
                "partition",
                "sort",
                "row",
                "object",
                "index",
                "message",
                "routing",
            ),
            *(
                "idempotency",
                "hash",
                "range",
                "map",
                "composite",
                "natural",
                "surrogate",
                "lookup",
                "translation",
                "dict",
            ),
        )
    )
    + r"(?<![\w-])key(?![\w-])"
)
"""The word "key", unless it is the key of a table or a cache."""
_COPULAS = (
    *(
        "is",
        "was",
        "are",
        "to",
        "will be",
        "should be",
        "as",
        "be",
        "'s",
        "’s",
        "equals",
        "reads",
        "now",
        "still",
        "currently",
        "remains",
    ),
    *("ist", "lautet", "war", "heißt", "heisst", "auf"),
    *("est", "c'est", "c’est", "était", "vaut"),
    *("es", "era", "son", "a"),
    *("é", "eh", "era", "para"),
    *("è", "e'", "era"),
    *("luidt", "wordt", "naar"),
    *("to", "jest", "brzmi", "na"),
    *(
        "veranderd in",
        "gewijzigd in",
        "geändert in",
        "changé en",
        "cambiado por",
        "cambiada por",
        "cambiata in",
    ),
    *(
        "这样",
        "改成",
        "改成了",
        "改为",
        "改為",
        "换成",
        "設為",
        "设为",
        "设置为",
        "になりました",
        "に",
        "を",
    ),
    *("это", "такой", "такая", "—", "–", "-", "на"),
    "?",
    *("是", "为", "為", "は", "が", "은", "는", "이", "가", "를", "을"),
    *(":=", "=>", "->", "→", "=", ":", "："),
)
_ADVERBS = (
    *("still", "now", "currently", "just", "simply", "always", "probably", "again"),
    *("jetzt", "nun", "immer noch", "weiterhin", "toujours", "maintenant", "désormais"),
    *("ahora", "todavía", "siempre", "agora", "ainda", "adesso", "ora", "ancora"),
    *("nu", "nog", "nog steeds", "teraz", "nadal", "сейчас", "теперь", "всё ещё"),
)
_JOINED = (
    *("改成了", "改成", "改为", "改為", "换成", "設為", "设为", "设置为", "を", "に"),
    "是",
    "为",
    "為",
    "は",
    "が",
    "은",
    "는",
    "이",
    "가",
    "를",
    "을",
    "：",
    ":",
    "=",
    "->",
    "→",
    "=>",
    ":=",
)
"""Copulas that need no space beside them."""
VALUE = r"((?=[^\s\"'`<>]{0,127}?\d)[!#-&(-;=?-_a-~]{5,127}[!#-&(-+\-/-9=?-_a-~])"
"""ASCII with a digit, without spaces, quotes and ``<>``; it does not end with ``,.;:``.

The pattern itself requires the digit, so that a match cannot end at an ordinary word before the
value.
"""
OPENED = r"[ \t]{0,3}[\"'`*_「『“«(\[]{0,3}"
_CHANGED = (
    *(
        "changed",
        "change",
        "set",
        "reset",
        "cambiato",
        "cambiata",
        "cambié",
        "cambiado",
        "mudei",
        "changé",
        "modifié",
    ),
    *(
        "veranderd",
        "gewijzigd",
        "geändert",
        "zmieniłem",
        "zmieniłam",
        "сменил",
        "поменял",
        "impostato",
    ),
)
_LOGINS = (
    *(
        "credentials",
        "creds",
        "logins",
        "zugangsdaten",
        "anmeldedaten",
        "credenciales",
        "credenciais",
        "credenziali",
    ),
    *(
        "identifiants",
        "inloggegevens",
        "dane logowania",
        "учётные данные",
        "учетные данные",
        "доступы",
    ),
    *("凭据", "凭证", "認証情報", "자격 증명", "계정 정보"),
)
_WORDS = r"(?:,?[ \t][^\s\"`:=，。]{1,24}){0,6}?"
_ASIDE = r"(?:[ \t]?[(\[（][^\n()（）\[\]]{1,40}[)\]）])?"
_PLACEHOLDER = re.compile(
    r"\$\{|\$\(|\$[A-Za-z_]\w*$|\{\{|\{[\w.:!]*\}$|%[({]|<|\[?redacted|\[MASK|urn:|\{[\w.\[\]]+\}"
    r"|x{4,}|\*{3,}|\.{3}|your|example|changeme(?![^\s\w]\d)|(?:env|file|fd|stdin):|stdin\Z|prompt",
    re.IGNORECASE,
)
_ALGORITHM = re.compile(
    r"(?i)(?:sha|md|aes|rsa|base|utf|hmac|bcrypt|scrypt|argon|pbkdf|oauth|ipv|http|tls|ssl|ed|x|v|p"
    r"|ecdsa|hs|rs|es|blake|crc|iso|win|py|web|s|k|i)[-_/]?\d+(?:[-_/][A-Za-z0-9-]*)?\Z"
)
_PRODUCT = re.compile(
    r"(?i)(?:1password|keepass\w*|office365|microsoft365|windows\d*|log4j\d*|web[23]\d*)\W*\Z"
)
_DATE_OR_TIME = re.compile(r"\d{1,4}([-/:.T]\d{1,4})+(?:[a-z]{0,3})?\Z", re.IGNORECASE)
_ADDRESS = re.compile(
    r"(?i)\w+://|[\w.+-]+@[\w-]+\.[a-z]{2,}\Z|(?:~|\.{1,2})?/{1,2}[\w.]|[a-z]:\\"
    r"|(?:[\w-]+\.)+(?:com|org|net|io|dev|de|py|js|ts|md|json|toml|ya?ml|txt|html?|sh|rs|go|cfg"
    r"|conf|ini)(?:[/:].*)?\Z"
)
_CODE = re.compile(
    r"[A-Za-z_][\w.]*(?:\(.*\)|\[.*\])|[\w]+(?:\.[A-Za-z_]\w*)+(?:\(|\Z)"
    r"|[a-z]+(?:_[a-z0-9]+)+\Z|\w+\("
)
_CALL = re.compile(r"[A-Za-z_]{3,}\w*(?:\.\w+)*\(")
_WORD = re.compile(
    r"[^\W\d_]+(?:[-'][^\W\d_]+)*\d?\Z|\d+(?:[-.,]\d+)*\w{0,4}\Z"
    r"|\d+(?:st|nd|rd|th|px|ms|kb|mb|gb|%)\Z"
)
_INNER_CAPITAL = re.compile(r"(?=.*[a-z][A-Z]).{7,}\d\Z")
"""A capital inside and a digit at the end: "perroVerde8" is no word."""
_KEY_COMBINATION = re.compile(r"(?i)(?:ctrl|cmd|command|alt|shift|option|super|meta|fn|win)[+-]")
_PIN_NOUNS = (
    *("pin code", "pin number", "pin-code", "pincode", "pin nummer", "codice pin", "code pin"),
    *(
        "code secret",
        "código pin",
        "geheimzahl",
        "kod pin",
        "пин-код",
        "пинкод",
        "пин",
        "暗証番号",
        "핀번호",
    ),
    *("door code", "gate code", "alarm code", "garage code", "entry code", "keypad code"),
    *("combination of the lock", "combination of the safe", "lock combination", "safe combination"),
    *("safe code", "lock code", "locker code", "unlock code", "building code for the door"),
    *(
        "passcode",
        "unlock pin",
        "card pin",
        "phone pin",
        "sim pin",
        "bank pin",
        "my pin",
        "your pin",
    ),
    *(
        "türcode",
        "code de la porte",
        "code du portail",
        "código de la puerta",
        "codice del cancello",
    ),
)
_PIN_COPULAS = (
    *("is", "was", "'s", "’s", "ist", "lautet", "est", "es", "é", "è", "to", "jest", "это"),
    *(":", "=", "：", "は", "是", "->"),
)
_LIST_OF_CODES = (
    *("backup code", "recovery code", "rescue code", "scratch code", "2fa code", "otp code"),
    *("wiederherstellungscode", "code de secours", "códigos de respaldo", "codici di backup"),
)
_MNEMONIC_NOUNS = ("seed phrase", "recovery phrase", "mnemonic", "wallet phrase", "seed words")
_FUNCTION_WORD = re.compile(
    r"(?i)\b(?:a|an|and|as|ask|at|be|by|for|from|has|in|is|it|must|no|none|not|of|on|or|same|see|"
    r"should|that|the|this|to|use|was|we|with|you|your)\b"
)
_OPTION_VALUE = r"[\"']?([^\s\"'`$<>{}|;&-][^\s\"'`]{3,128})"

_PROGRAMS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("redis-",), r"redis-(?:cli|benchmark)", r"-a[ \t]{1,4}"),
    (("pass:",), r"openssl|keytool|jarsigner|apksigner|qpdf", r"-pass(?:in|out)?[ \t]{1,4}pass:"),
    (("openssl",), r"openssl", r"-k[ \t]{1,4}"),
    (
        ("ldap",),
        r"ldap(?:search|add|modify|delete|whoami|compare|modrdn|exop|passwd)",
        r"-w[ \t]{0,4}",
    ),
    (("ldappasswd",), r"ldappasswd", r"-[sa][ \t]{1,4}"),
    (("mongo",), r"mongo(?:sh|dump|restore|export|import|stat|top)?", r"-p[ \t]{0,4}"),
    (("cypher-shell", "rabbitmqadmin"), r"cypher-shell|rabbitmqadmin", r"-p[ \t]{0,4}"),
    (
        ("login",),
        r"(?:docker|podman|buildah|skopeo|helm|oras|nerdctl|oc|az)[^\n|;&]{0,60}login",
        r"-p[ \t]{1,4}",
    ),
    (
        ("sql", "bcp", "mosquitto_", "ipmitool"),
        r"sqlcmd|bcp|[iot]sql|mosquitto_(?:pub|sub)|ipmitool",
        r"-P[ \t]{0,4}",
    ),
    (("zip",), r"(?:un)?zip", r"-P[ \t]{1,4}"),
    (("7z", "rar"), r"7z[az]?|(?:un)?rar", r"-h?p(?=\S)"),
    (
        ("plink", "pscp", "psftp", "klink", "putty"),
        r"plink|pscp|psftp|putty|klink",
        r"-pw[ \t]{1,4}",
    ),
    (("smb", "rpcclient"), r"smbclient|rpcclient|smbget", r"-U[ \t]{0,4}[\"']?[\w.\\/-]{1,60}%"),
    (("/p:",), r"[xw]l?freerdp|mstsc", r"/p:"),
    (
        ("rdesktop", "cadaver", "ncftp", "influx", "cqlsh", "vsql"),
        r"rdesktop|cadaver|ncftp(?:get|put)?|influx|cqlsh|vsql",
        r"-p[ \t]{1,4}",
    ),
    (("lftp",), r"lftp", r"-u[ \t]{1,4}[\w.@-]{1,60},"),
    (("net use", "net user"), r"net[ \t]{1,4}use", r"/user:\S{1,60}[ \t]{1,4}"),
    (("net user",), r"net", r"user[ \t]{1,4}[\w.-]{1,60}[ \t]{1,4}(?!/)"),
    (("rclone",), r"rclone", r"obscure[ \t]{1,4}"),
    (("vault",), r"vault", r"login[ \t]{1,4}(?!-)"),
    (("doctl",), r"doctl", r"(?:-t|--access-token)[ \t]{1,4}"),
    (("kinit",), r"kinit", r"<<<[ \t]{0,4}"),
    (("password-file",), r"rsync", r"--password-file=<\(echo[ \t]{1,4}"),
    (
        ("storepass", "keypass"),
        r"keytool|jarsigner|apksigner",
        r"-(?:src|dest)?(?:store|key)pass[ \t]{1,4}",
    ),
    (
        ("htpasswd",),
        r"htpasswd",
        r"-[a-zA-Z]*b[a-zA-Z]*[ \t]{1,4}\S{1,120}[ \t]{1,4}\S{1,60}[ \t]{1,4}",
    ),
    (("http", "xh "), r"https?|xh", r"(?:-a|--auth)[ \t=]{1,4}[\"']?[^\s:\"'$]{1,100}:"),
    (("nmcli", "iwctl", "netsh"), r"nmcli|iwctl|netsh", r"(?:password|psk|key)[ \t=]{1,4}"),
    (("wpa_passphrase",), r"wpa_passphrase", r"(?:\"[^\"]{1,40}\"|\S{1,40})[ \t]{1,4}"),
    (("rabbitmqctl",), r"rabbitmqctl", r"(?:add_user|change_password)[ \t]{1,4}\S{1,60}[ \t]{1,4}"),
    (("snmp",), r"snmp(?:walk|get|bulkwalk|set)", r"-[AX][ \t]{1,4}"),
    (
        ("sqlplus", "expdp", "impdp", "sqlldr"),
        r"sqlplus|expdp|impdp|sqlldr",
        r"[\w$#]{1,60}/(?=\S{4,60}@)",
    ),
    (
        ("configure set",),
        r"aws[ \t]{1,4}configure[ \t]{1,4}set",
        r"[\w.]{0,60}(?:secret|token)[\w.]{0,40}[ \t]{1,4}",
    ),
    (
        ("config",),
        r"(?:git|npm|pip)[ \t]{1,4}config",
        r"[\w.:/-]{0,80}(?:token|password)[ \t=]{1,4}",
    ),
    (
        ("sudo", "chpasswd", "--stdin", "login"),
        r"echo|printf",
        r"[\"']?(?:[\w.-]{1,40}:)?(?=[^\n]{4,130}\|[ \t]{0,4}"
        r"(?:sudo[ \t]{1,4}(?:-\w{1,4}[ \t]{1,4}){0,3}-S|(?:sudo[ \t]{1,4})?chpasswd"
        r"|(?:sudo[ \t]{1,4})?passwd[ \t]{1,4}--stdin|docker[ \t]{1,4}login))",
    ),
)
"""(hints, pattern of the programs, pattern of what precedes the password) of each command line."""


def spoken_secrets() -> tuple[Detector, ...]:
    return (*_in_sentences(), *_codes(), *_in_assignments(), *_in_command_lines())


def _in_sentences() -> tuple[Detector, ...]:
    password = rf"{any_of(PASSWORD_NOUNS)}|(?<![\w/])(?:pw|p/w|mdp|psw)(?!\w)"
    key = rf"{any_of((*_KEY_NOUNS, *PASSWORD_NOUNS))}|{_PLAIN_KEY}"
    joined = rf"(?:{any_of(_JOINED)})"
    copula = rf"(?:[ \t]{{0,3}}{joined}|,?[ \t]{{0,3}}(?:{any_of(_COPULAS)})(?=[ \t\"'`]))"
    behind = rf"{_ASIDE}{_WORDS}{copula}[ \t:=]{{0,4}}{OPENED}"
    return (
        given(
            "Password",
            (*PASSWORD_NOUNS, "pw", "p/w", "psw"),
            rf"(?i:{password}){behind}{VALUE}",
            _is_spoken_password,
        ),
        given(
            "API Key",
            ("key", *_KEY_NOUNS, *PASSWORD_NOUNS),
            rf"(?i:{key}){behind}{VALUE}",
            _is_spoken_key,
        ),
        given(
            "Password",
            SHORT_NOUNS,
            rf"(?i:(?<![\w/])(?:{any_of(SHORT_NOUNS)}))"
            rf"(?:[ \t]{{0,3}}(?:[:=]|is\b|was\b|->)|(?<=p/w)[ \t]){OPENED}{VALUE}",
            _is_spoken_password,
        ),
        # "ana / Tr0ub4dor&3" after "user/pass", "login and password", "credentials" and the like
        given(
            "Password",
            (
                "user",
                "login",
                "usuario",
                "benutzer",
                "utilisateur",
                "логин",
                "账号",
                "u/p",
                *_LOGINS,
            ),
            r"(?i:(?:user(?:name)?|login|usuario|benutzer(?:name)?|utilisateur|логин|账号|u)"
            r"[ \t]{0,3}(?:/|\||&|and|und|y|et|и)[ \t]{0,3}[^\s:=/]{1,24}"
            rf"|(?:{any_of(_LOGINS)})"
            rf"(?:[ \t](?:for|of|für|de|pour|para|per|voor|do|для)[ \t][^\s:]{{1,24}})?)"
            rf"(?:[ \t]{{1,3}}(?:are|is|sind|son|sont|sono|zijn|to))?[ \t]{{0,3}}[:=：]?[ \t]{{0,3}}"
            rf"[\w.@+-]{{1,60}}[ \t]{{0,3}}[/|:,][ \t]{{0,3}}{OPENED}{VALUE}",
            _is_spoken_password,
        ),
        # "ho cambiato la password in Tr0ub4dor"
        given(
            "Password",
            PASSWORD_NOUNS,
            rf"(?i:{any_of(_CHANGED)})[ \t][^\n.:;]{{0,40}}?(?i:{password})"
            rf"(?:[ \t][^\s.:;]{{1,20}}){{0,4}}?[ \t]"
            rf"(?i:in|en|por|to|a|op|naar|auf|na|на)[ \t]{OPENED}{VALUE}",
            _is_spoken_password,
        ),
        # "I changed the password from Tr0ub4dor&3 to …": the old one may be in use elsewhere
        given(
            "Password",
            PASSWORD_NOUNS,
            rf"(?i:{password})(?:[ \t][^\s.:;]{{1,20}}){{0,4}}?"
            rf"[ \t](?i:from|von|de|da|van|z|с)[ \t]{OPENED}{VALUE}",
            _is_spoken_password,
        ),
        # "set the secret to Tr0ub4dor&3": shorter than a generated key, and no word
        given(
            "Password",
            ("secret", "token", "credential"),
            rf"(?i:(?<![\w-])(?:secret|token|credential)(?![\w-])){behind}{VALUE}",
            is_beyond_doubt,
        ),
        # "IDENTIFIED BY 'Tr0ub4dor&3'", as SQL has it
        given(
            "Password",
            ("identified",),
            r"(?i:identified[ \t]{1,4}(?:with[ \t]{1,4}\S{1,60}[ \t]{1,4})?(?:by|as))"
            r"[ \t]{1,4}[\"'`]([^\s\"'`<>{}]{6,128})(?=[\"'`])",
            is_quoted_secret,
        ),
        # "mein Passwort ist jetzt Tr0ub4dor&3", "| password | Tr0ub4dor&3 |"
        given(
            "Password",
            (*PASSWORD_NOUNS, "pw", "p/w", "psw"),
            rf"(?i:{password})(?:{_ASIDE}{_WORDS}{copula}"
            rf"(?:[ \t]{{1,3}}(?i:{any_of(_ADVERBS)})){{1,2}}[ \t]{{1,3}}"
            rf"|[ \t*`]{{0,6}}\|[ \t*`]{{0,6}}){OPENED}{VALUE}",
            is_beyond_doubt,
        ),
        # The value first: "… as my password", or the noun in brackets after it
        given(
            "Password",
            (*PASSWORD_NOUNS, "pw", "p/w", "psw"),
            rf"(?<![^\s\"'`(]){VALUE}[\"'`]{{0,2}}"
            rf"(?:[ \t]{{1,3}}[^\W\d_]{{1,16}}){{0,3}}?[ \t]{{1,3}}"
            r"(?:(?i:as|als|comme|como|come)[ \t]{1,3}(?:[^\s.:;]{1,16}[ \t]{1,3}){0,3}?|\()"
            rf"(?i:{password})(?!\w)",
            is_beyond_doubt,
        ),
        # The key of a wireless network: after "WPA key" or "PSK", or after the network's name
        given(
            "Password",
            ("wpa", "psk", "ssid", "wifi", "wi-fi", "wlan"),
            rf"(?i:(?<![a-z])(?:wpa\d?|ssid|wi-?fi|wlan)(?![a-z]))[^\n]{{0,40}}?"
            rf"(?:(?i:(?<![a-z])(?:key|psk))[ \t]?[:=]?|[/,|][ \t]|:)[ \t]{{0,3}}"
            rf"{OPENED}{VALUE}",
            is_beyond_doubt,
        ),
        given(
            "Password",
            ("psk",),
            rf"(?i:(?<![a-z])psk)[ \t]?[:=][ \t]?{OPENED}{VALUE}",
            is_beyond_doubt,
        ),
        # "Tr0ub4dor&3 is the password"
        given(
            "Password",
            PASSWORD_NOUNS,
            rf"(?<![^\s\"'`(]){VALUE}[\"'`)]{{0,2}}[ \t]{{1,3}}"
            rf"(?i:is|ist|est|es|é|è|to|—|as)[ \t]{{1,3}}"
            rf"(?:[^\s.:;]{{1,16}}[ \t]{{1,3}}){{0,4}}?(?i:{password})(?!\w)",
            _is_spoken_password,
        ),
        # "AWS secret wJalr…": a noun and a generated key side by side
        given(
            "API Key",
            _KEY_NOUNS,
            rf"(?i:{any_of(_KEY_NOUNS)})"
            rf"(?:[ \t]{{1,3}}(?:for|of|für|de|pour|для)[ \t]{{1,3}}\S{{1,24}})?[ \t]{{1,3}}"
            rf"{OPENED}([A-Za-z0-9+/=_-]{{20,200}})",
            looks_random,
        ),
        # "ana, password Tr0ub4dor&3": the same for a password that is one beyond doubt
        given(
            "Password",
            (*PASSWORD_NOUNS, *SHORT_NOUNS),
            rf"(?i:{password}|(?<![\w/])(?:{any_of(SHORT_NOUNS)}))[ \t]{{1,3}}{OPENED}{VALUE}",
            is_beyond_doubt,
        ),
        # "login ana/Tr0ub4dor&3"
        given(
            "Password",
            ("login", "log in", "sign in"),
            rf"(?i:(?<!\w)(?:login|log in|sign in))(?:[ \t](?:as|is|with))?[ \t:]{{1,3}}"
            rf"[\w.@+-]{{1,60}}[ \t]?/[ \t]?{VALUE}",
            is_beyond_doubt,
        ),
        # "my key for OpenWeather 3f2a…": a plain key, what it is for, and a generated value
        given(
            "API Key",
            ("key",),
            rf"(?i:(?:my|our|the|a)[ \t](?:new[ \t])?{_PLAIN_KEY})"
            rf"[ \t]{{1,3}}(?i:for|of|to)[ \t]{{1,3}}"
            rf"(?:[^\s:=]{{1,24}}[ \t]{{1,3}}){{1,3}}?([A-Za-z0-9+/=_-]{{20,200}})(?![\w-])",
            looks_random,
        ),
        # Four groups of four small letters, as mail providers make passwords for programs
        given(
            "Password",
            ("app password", "app-password", "application password"),
            r"(?i:app(?:lication)?[ -]passwords?)[^\n:=]{0,40}?(?:[:=]|\bis\b)[ \t]{0,3}[\"'`]?"
            r"([a-z]{4}(?:[ -][a-z]{4}){3})(?![a-z])",
        ),
        # Groups of digits or of capitals and digits, as keys of disks and licences are printed
        given(
            "Recovery Key",
            (
                "recovery key",
                "license key",
                "licence key",
                "product key",
                "activation key",
                "bitlocker",
            ),
            r"(?i:(?:recovery|licen[cs]e|product|activation|bitlocker)[ _-]?(?:key|code)?)"
            r"[^\n:=\d]{0,30}?(?:[:=]|\bis\b|[ \t])[ \t]{0,3}"
            r"[\"'`]?((?=[A-Z0-9-]{0,40}\d)[A-Z0-9]{4,8}(?:-[A-Z0-9]{4,8}){3,9})(?![\w-])",
        ),
    )


def _codes() -> tuple[Detector, ...]:
    """Return detectors of PINs, door codes, backup codes, authenticator secrets and wallets."""
    no_digits = r"(?:,?[ \t][^\s\d\"'`:=，。.]{1,24}){0,6}?"
    pin = rf"(?i:(?<!\w)(?:{any_of(_PIN_NOUNS)})(?!\w))|(?<!\w)PIN(?!\w)"
    code = r"(?=[A-Za-z0-9-]{0,60}\d)[A-Za-z0-9]{3,12}(?:-[A-Za-z0-9]{3,12}){0,6}"
    return (
        given(
            "PIN",
            ("pin", *_PIN_NOUNS),
            rf"(?:{pin}){_ASIDE}{no_digits}"
            rf"[ \t]{{0,3}}(?i:{any_of(_PIN_COPULAS)})[ \t:=]{{0,4}}{OPENED}"
            r"([*#]?\d{4,10}[*#]?|\d{1,3}(?:-\d{1,3}){2,3})(?![\w.,:/%-]?[A-Za-z0-9_])",
        ),
        given(
            "Backup Codes",
            _LIST_OF_CODES,
            rf"(?i:{any_of(_LIST_OF_CODES)})s?{_ASIDE}{no_digits}"
            rf"[ \t]{{0,3}}(?i:is|are|[:=：])\s{{0,4}}"
            rf"({code}(?:[,;\s]{{1,3}}(?:and[ \t])?{code}){{0,19}})",
        ),
        given(
            "Authenticator Secret",
            ("otp", "2fa", "mfa", "authenticator"),
            r"(?i:(?<![a-z])(?:t?otp|2fa|mfa|authenticator)"
            r"[ \t_-]{0,2}(?:secret|seed|key|setup key))"
            r"[\w \t\"':=]{0,12}?[ \t\"':=]([A-Z2-7]{16,64})(?![A-Za-z0-9])",
        ),
        given(
            "Wallet Phrase",
            _MNEMONIC_NOUNS,
            rf"(?i:{any_of(_MNEMONIC_NOUNS)})[^\n:]{{0,40}}?(?:[:=]|\bis\b|\bare\b)\s{{0,3}}[\"'`]?"
            r"([a-z]{3,8}(?:[, \n]{1,2}[a-z]{3,8}){11,23})(?![a-z])",
        ),
        given(
            "Password",
            ("pass phrase", "passphrase", "pass-phrase"),
            r"(?i:pass[ -]?phrase)[^\n:=\"'`]{0,40}?(?:[:=]|\bis\b)[ \t]{0,3}[\"'`]?"
            r"([a-z]{3,12}(?:[ -][a-z]{3,12}){3,9})(?=[\"'`.!]|\s*(?:\n|\Z))",
            lambda words: _FUNCTION_WORD.search(words) is None,
        ),
    )


def _in_assignments() -> tuple[Detector, ...]:
    name = (
        r"[\w.-]{0,60}(?i:passw(?:or)?d|passphrase|passcode|[_-]pass|[_-]pwd|[_-]pw"
        r"|secret|secret[_-]?key|api[_-]?key|token)"
    )
    key = r"(?i:secret|token|[a-z]{2,12}[_-]?key|credentials?|passphrase|salt|signature|dsn|_auth)"
    return (
        # A name with a password's ending, as in programs: ansible_become_pass=…, REDISCLI_AUTH=…
        given(
            "Password",
            ("_pass", "-pass", "_pw", "-pw", "_auth", "_psw", "_pin", "_cred", "_key", "_secret"),
            r"(?<![\w.-])(?:[\w.-]{1,60}[_-](?i:pass|pw|pwd|psw|auth|pin|creds?))"
            rf"[ \t]{{0,4}}[:=][ \t]{{0,4}}{OPENED}{VALUE}",
            _is_spoken_password,
        ),
        # JWT_SIGNING_KEY: …, a key whose name says that it signs or encrypts
        given(
            "API Key",
            ("key",),
            r"(?<![\w.-])[\w.-]{0,60}"
            r"(?i:signing|encryption|master|jwt|hmac|session|cookie|cipher|aes|app)"
            r"[_-]?(?i:key)[\"'\])]{0,2}[ \t]{0,4}(?::=|=>|=|:)[ \t]{0,4}[\"'`]?"
            r"([A-Za-z0-9+/=_-]{16,200})",
            looks_random,
        ),
        # A name and its value side by side, as in XML, Kubernetes and Compose
        given(
            "Password",
            ("value",),
            rf"{name}[\w.-]{{0,40}}[\"']?[,]?\s{{1,20}}"
            rf"[\"']?(?i:value)[\"']?[ \t]{{0,4}}[:=][ \t]{{0,4}}[\"']?"
            r"([^\s\"'`<>]{6,200})",
            is_quoted_secret,
        ),
        # A quoted value is literal, with any signs in it.
        given(
            "Password",
            (
                "passw",
                "passphrase",
                "passcode",
                "_pass",
                "-pass",
                "_pwd",
                "_pw",
                "secret",
                "key",
                "token",
            ),
            rf"(?<![\w.-]){name}[\w-]{{0,20}}[\"'\])]{{0,2}}"
            rf"[ \t]{{0,4}}(?::=|=>|=|:)[ \t]{{0,4}}(?:[\"'`])"
            r"([^\s\"'`<>]{6,200})(?=[\"'`])",
            is_quoted_secret,
        ),
        given(
            "API Key",
            ("secret", "token", "key", "credential", "passphrase", "salt", "signature", "_auth"),
            rf"(?<![\w.-])[\w.-]{{0,60}}{key}[\"'\])]{{0,2}}"
            rf"[ \t]{{0,4}}(?::=|=>|=|:)[ \t]{{0,4}}[\"'`]?"
            r"([^\s\"'`<>,]{12,200})",
            _is_key_with_signs,
        ),
    )


def _in_command_lines() -> tuple[Detector, ...]:
    detectors = [
        given(
            "Password",
            hints,
            rf"(?<![\w-])(?:{programs})(?=[ \t])[^\n;|&]{{0,300}}?"
            rf"(?<=[ \t]){before}{_OPTION_VALUE}",
            _is_option_value,
        )
        for hints, programs, before in _PROGRAMS
    ]
    detectors.append(
        given(
            "Password",
            ("pass", "-pw"),
            rf"(?<=[ \t])(?:--?[a-z-]{{0,20}}pass(?:wd|word|phrase)?|-pw|/pass(?:word)?:)"
            rf"[ \t=:]{{0,3}}{_OPTION_VALUE}",
            _is_spoken_password,
        )
    )
    return tuple(detectors)


def any_of(words: tuple[str, ...]) -> str:
    """Return a pattern that matches any of the words, the longest first."""
    longest_first = sorted(dict.fromkeys(words), key=len, reverse=True)
    return "|".join(re.escape(word).replace(r"\ ", r"[ \t]") for word in longest_first)


def is_no_secret(value: str) -> bool:
    patterns = (_PLACEHOLDER, _DATE_OR_TIME, _ADDRESS, _PRODUCT)
    if any(pattern.match(value) is not None for pattern in patterns):
        return True
    return _WORD.match(value) is not None and _INNER_CAPITAL.match(value) is None


def _kinds_of_signs(value: str) -> int:
    """Return how many of lower case, upper case, digits and signs but ``-_./`` a value has."""
    return sum(
        (
            any(char.islower() for char in value),
            any(char.isupper() for char in value),
            any(char.isdigit() for char in value),
            any(not char.isalnum() and char not in "-_./" for char in value),
        )
    )


def _is_spoken_password(value: str) -> bool:
    """Tell whether a password in a sentence is one.

    It has three kinds of characters, or at least seven letters and digits with two digits.
    """
    core = value.rstrip(".,;:!?)")
    if len(core) < 5 or is_no_secret(core) or _ALGORITHM.match(core):
        return False
    if _CODE.fullmatch(value) or _CODE.fullmatch(core) or _CALL.match(core):
        return False
    has_letter = any(char.isalpha() for char in core)
    has_digit = any(char.isdigit() for char in core)
    if has_letter and has_digit and _kinds_of_signs(core) >= 3:
        return True
    digits = sum(char.isdigit() for char in core)
    return core.isalnum() and has_letter and digits >= 2 and len(core) >= 7


def is_beyond_doubt(value: str) -> bool:
    core = value.rstrip(".,;:!?)")
    return (
        len(core) >= 8
        and _kinds_of_signs(core) >= 3
        and _KEY_COMBINATION.match(core) is None
        and _is_spoken_password(core)
    )


def _is_spoken_key(value: str) -> bool:
    core = value.rstrip(".,;:!?)")
    return len(core) >= 16 and not is_no_secret(core) and looks_random(core)


def is_quoted_secret(value: str) -> bool:
    if len(value) < 6 or is_no_secret(value) or _CODE.fullmatch(value) or _ALGORITHM.match(value):
        return False
    has_letter = any(char.isalpha() for char in value)
    return has_letter and _kinds_of_signs(value) >= 3 and any(not char.isalpha() for char in value)


def _is_key_with_signs(value: str) -> bool:
    """Tell whether a value is a generated key with signs in it, as frameworks make them."""
    core = value.rstrip(",;")
    if (
        len(core) < 12
        or is_no_secret(core)
        or _CODE.match(core)
        or ("(" in core[1:] and ")" not in core)
    ):
        return False
    signs = sum(not char.isalnum() and char not in "-_./:" for char in core)
    return (
        signs >= 1
        and _kinds_of_signs(core) >= 3
        and any(char.isdigit() for char in core)
        and entropy_bits(core) >= 3.0
    )


def _is_option_value(value: str) -> bool:
    """Tell whether the value of a password option is one, and no placeholder, number or path."""
    return (
        not _PLACEHOLDER.match(value)
        and not value.startswith(("/", "~", "./", "-"))
        and any(char.isalpha() for char in value)
        and len(set(value.lower())) >= 4
    )
