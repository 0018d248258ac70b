"""Redaction: every kind of secret goes, innocent text stays as it is, and doing it twice changes nothing."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.core.errors import InvalidRequest
from pps.core.values import FactDraft, NodeDraft
from pps.ingest.importing.markdown import passages
from pps.ingest.redact import KeyedRedactor, Redactor, clipped, cut, redact
from tests.secrets import GIVEN, PRIVATE_KEY, PUTTY_KEY, SECRETS, VENDORS

INNOCENT = [
    "password={user.pass1} password=$DB_PASS2 password=${DB_PASS2} password=(secret1, password={Secret1Holder}",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 broke the build",
    "9fceb02d0ae598e95dc970b74767f19372d61af8 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "id 123e4567-e89b-42d3-a456-426614174000, session=123e4567-e89b-42d3-a456-426614174000",
    "see https://example.org/a/b-c_d?q=1&token_type=bearer#part and http://user@host:8080/x",
    "![shot](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==)",
    "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    "My secret: I love the sea. The password is the name of my first cat. The key to it: patience.",
    "I could not login to password manager today, so they sent the login ana password reset link again.",
    "Passwords: at least twelve characters, please. The token bucket: a limiter. api keys: none here",
    "password = getpass.getpass()  # then token = os.environ['GITHUB_TOKEN']; secret = settings.client_secret_name",
    "api_key = config.openai_api_key_for_production; password: ${DB_PASSWORD}; token: <your-token-here>",
    "SKU ABC-12345, AC/DC live at 12:30, flight AKL123, phone +49 30 1234567, IBAN DE89370400440532013000",
    "It begins with BEGIN RSA PRIVATE KEY, doesn't it? -----BEGIN PRIVATE KEY----- is a header.",
    "skating on task-list-for-the-very-long-project-name-of-ours and risk-based-approach-to-everything-2024",
    "密码是秘密。パスワードは秘密です。كلمة السر سرية. Пароль — это секрет. contraseña: ninguna",
    "at org.example.MyVeryLongClassNameHere.method1.another_long_module_name_abc(File.java:42)",
    "10.0.0.1 8.8.8.8 2001:db8::1 2026-03-07T08:30:00.000Z 1700000000:event-name-that-is-quite-long-indeed",
    "def bearer(token: str) -> str: return f'Bearer {token}'  # basic auth: none",
    "primary_key: 550e8400e29b41d4a716446655440000x, foreign_key=orders_customers_2024_id, keyboard: qwertz",
    "PWD=/home/ana/project2 OLDPWD=~/work/v2 pwd: ./notes2024",
    "The password is sha256-hashed; a password is base64-encoded, the passphrase is between 12-64",
    "| password | varchar255 | token | The token of a session. |\n| secret | text |",
    "--token-limit 4096 --password-file /run/secrets2 --secret-name orders-2024 curl -u https://example.org:8080/x",
    "patch-na1, key-value-store, dp.scale.linear, secret_santa_list_of_the_whole_family_2024, hvs.py, v1.0-rc1",
    "Tokens:\n\n- one of twelve, e.g. the-very-long-name-of-it-2024\n\nAPI keys:\n\nThere are none here.",
    "The session cookie: it ends after a day. Cookie: name=Chocolate; size=large\nSet-Cookie: lang=english; Path=/",
    "PASSWORD=$SECRET\nexport PGPASSWORD=<yours>\nDB_PASSWORD=${PASSWORD}\nPASSWORD=getpass.getpass()\nMY_PASS=******",
    "DB_PASSWORD=os.environ['X']\nDB_PASSWORD=/run/secrets/db\nPASSWORD=\nOf PASSWORD=anything the rule says nothing.",
    "mysql -u root -p shop, docker run --name mysql -p3306:3306, mysqldump --port=3306 --protocol=tcp; mkdir -pvm700 x",
    "At 12:30:45 on db:5432 the log said host:5432: refused. a:b:c:d:e  1:*:2  std::vector:5432:",
    "The authentication-service-v2-deployment-7d4b9c6f5-x2k8p restarted. keypad: 1234567890123456789",
]


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_goes_and_what_stands_around_it_stays(kind: str) -> None:
    text, secret = SECRETS[kind]
    found = redact(f"Before it. {text} After it.")
    assert secret not in found.text
    assert not any(part in found.text for part in re.findall(r"[A-Za-z0-9]{12,}", secret))
    assert found.text.startswith("Before it. ")
    assert found.text.endswith(" After it.")
    assert f"[redacted: {kind}]" in found.text
    assert found.count == 1


@pytest.mark.parametrize("key", VENDORS)
def test_a_key_that_begins_as_its_vendors_do_goes_whole(key: str) -> None:
    found = redact(f"Before it. {key} After it.")
    assert re.fullmatch(r"Before it\. \[redacted: [\w ]+\] After it\.", found.text)
    assert found.count == 1


@pytest.mark.parametrize(("text", "secret"), GIVEN)
def test_a_secret_goes_however_it_is_handed_over_and_twice_is_as_once(
    text: str, secret: str
) -> None:
    found = redact(text)
    assert secret not in found.text
    assert not any(part in found.text for part in re.findall(r"[A-Za-z0-9&]{7,}", secret))
    assert found.count == 1
    assert redact(found.text) == type(found)(found.text, 0)


@pytest.mark.parametrize("text", INNOCENT)
def test_innocent_text_stays_as_it_is(text: str) -> None:
    assert redact(text).text == text


def test_a_private_key_that_was_cut_off_or_escaped_goes_too() -> None:
    cut = PRIVATE_KEY[: len(PRIVATE_KEY) // 2]
    assert "b1C2" not in redact(f"key: {cut}").text
    assert redact(f"key: {PUTTY_KEY}\nend").text == "key: [redacted: Private Key]\nend"
    escaped = PRIVATE_KEY.replace("\n", "\\n")
    assert (
        redact(f'{{"private_key": "{escaped}", "x": 1}}').text
        == '{"private_key": "[redacted: Private Key]", "x": 1}'
    )


def test_several_secrets_are_counted_one_by_one() -> None:
    text = " and ".join(text for text, _ in SECRETS.values())
    found = redact(text)
    assert found.count == len(SECRETS)
    assert all(secret not in found.text for _, secret in SECRETS.values())


@given(
    st.lists(
        st.sampled_from([text for text, _ in SECRETS.values()]) | st.text(max_size=40), max_size=6
    )
)
def test_redacting_twice_changes_nothing_more(parts: list[str]) -> None:
    once = redact(" ".join(parts))
    assert redact(once.text) == type(once)(once.text, 0)


@given(st.text(max_size=300))
def test_text_of_any_script_without_a_secret_is_kept_letter_for_letter(text: str) -> None:
    found = redact(text)
    assert found.text == text or found.count


def test_nodes_facts_attributes_and_tags_lose_theirs_also_where_only_a_name_tells() -> None:
    text, secret = SECRETS["GitHub Token"]
    redactor = Redactor(on=True)
    (node,) = redactor.nodes(
        [
            NodeDraft(
                f"key {text}",
                summary=text,
                aliases=(text,),
                tags=("tea", secret),
                attributes={
                    "api_key": "f3a9c8b7e6d5a4f3b2c1d0e9",
                    "deep": [{"at": text}],
                    "n": 1,
                    text: None,
                    "plain": "x=y",
                },
            )
        ]
    )
    (fact,) = redactor.facts(
        [FactDraft("Ana", "HAS", text, text=f"Ana has {text}", invalidates=(text,))]
    )
    assert secret not in repr((node, fact))
    assert node.tags == ("tea",)
    assert node.attributes["api_key"] == "[redacted: API Key]"
    assert (node.attributes["n"], node.attributes["plain"]) == (1, "x=y")
    assert redactor.count == 10


def test_of_many_facts_only_the_one_with_a_secret_is_changed() -> None:
    text, secret = SECRETS["GitHub Token"]
    text_of_others = "The key is hers. So is the token."
    plain = [FactDraft("Ana", "HAS", f"key {number}", text=text_of_others) for number in range(9)]
    redactor = Redactor(on=True)
    facts = redactor.facts([*plain, FactDraft("Ana", "HAS", "it", text=text), *plain])
    assert [one for one in facts if one in plain] == [*plain, *plain]
    assert facts[9].text == text.replace(secret, "[redacted: GitHub Token]")
    assert (redactor.count, redactor.facts([])) == (1, ())


def test_it_can_be_turned_off() -> None:
    text, _ = SECRETS["GitHub Token"]
    redactor = Redactor(on=False)
    assert (redactor.text(text), redactor.count) == (text, 0)


def test_many_threads_at_once_find_the_same() -> None:
    text = " ".join(text for text, _ in SECRETS.values())
    with ThreadPoolExecutor(8) as pool:
        assert len({found.text for found in pool.map(redact, [text] * 64)}) == 1


HOSTILE = {
    "spaces": "apikey" + " " * 65_000,
    "tokens without an end": "eyJ" * 21_000,
    "beginnings": "sk-" * 21_000 + "T3BlbkFJ",
    "headers": "-----BEGIN RSA PRIVATE KEY-----\n" * 2_000,
    "PuTTY headers": "PuTTY-User-Key-File-2:\n" * 2_800,
    "slashes": "/" * 65_000 + ":_authToken=",
    "words": "password:" * 7_000,
    "addresses": "://a:" * 13_000,
    "command lines": "curl -u " * 8_000,
    "names without a value": "token:\n" * 9_000,
    "stars": "password" + "*" * 65_000,
    "quoted key": "-----BEGIN PRIVATE KEY-----" + ">" * 65_000,
    "logins": "login " * 11_000,
    "databases": "mysql -p" * 8_000,
    "cookies": "cookie:a=" * 7_000,
    "many cookies": "cookie:" + "a=;" * 20_000,
    "variables": "PASSWORD=\n" * 6_000 + "A" * 65_000,
    "sentences": "password for " * 5_000,
    "copulas": "password is " * 5_000,
    "keys": "api key for " * 5_000,
    "CJK": "密码是" * 20_000,
    "programs": "redis-cli " * 6_000,
    "options": "ldapsearch -w " * 4_500,
    "values behind": "a1B2c3D4! is the " * 4_000 + "password",
    "logins and passwords": "user/pass: a / " * 4_000,
    "changes": "changed the password " * 3_000,
    "names and values": "password value " * 4_000,
    "one long value": "password is " + "aB1!" * 16_000,
    "fields": "pgpass " + "a:12:" * 13_000,
    "pins": "my pin code of the " * 3_500,
    "backup codes": "backup codes: " + "a1b2 " * 13_000,
    "seed words": "seed phrase: " + "abandon " * 8_000,
    "wireless": "wifi Home key " * 4_500,
    "values first": "aB1!cD2? " * 7_000 + "as my password",
    "keys for": "my key for the thing " * 3_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(
    60
)  # a pattern that runs away takes minutes, also on a busy machine far more than this
def test_a_text_made_to_be_slow_is_read_in_linear_time(name: str) -> None:
    redact(HOSTILE[name])


def known(text: str, key: bytes = b"of one entity") -> str:
    return KeyedRedactor(key, on=True).identifier(text)


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_in_an_identifier_becomes_a_digest_that_only_the_key_makes(kind: str) -> None:
    text, secret = SECRETS[kind]
    found = known(f"ref {text} end")
    assert re.fullmatch(rf"ref .*\[redacted: {kind} [0-9a-f]{{16}}\].* end", found, re.DOTALL)
    assert not any(part in found for part in re.findall(r"[A-Za-z0-9]{12,}", secret))
    assert known(f"ref {text} end") == found
    assert known(f"ref {text} other") != found
    assert known(f"ref {text} end", b"of another") != found
    assert known(found) == redact(found).text == found


@pytest.mark.parametrize("key", VENDORS)
def test_two_secrets_of_a_kind_stay_two_identifiers(key: str) -> None:
    other = key[:-1] + ("0" if key[-1] != "0" else "1")
    assert known(key) != known(other)
    assert len({known(key), known(other), known(f"{key} {other}"), known(f"{other} {key}")}) == 4


SHORT = [text for text, _ in SECRETS.values() if len(text) < 60]
PIECES = st.sampled_from([*SHORT, *VENDORS[:8]]) | st.text(max_size=9)


@given(st.lists(PIECES, max_size=6), st.lists(PIECES, max_size=6))
def test_identifiers_stay_as_many_as_they_were_and_cleaned_twice_are_as_once(
    one: list[str], two: list[str]
) -> None:
    first, second = " ".join(one), " ".join(two)
    assert (known(first) == known(second)) == (first == second)
    assert known(known(first)) == known(first)
    assert len(known(first)) <= max(200, len(first) if known(first) == first else 0)


@given(st.text(max_size=90), st.lists(PIECES, min_size=3, max_size=3))
def test_a_text_and_its_identifiers_are_cleaned_together_as_they_are_alone(
    text: str, names: list[str]
) -> None:
    redactor = KeyedRedactor(b"of one entity", on=True)
    assert redactor.known_text(text, *names) == (redact(text).text, *map(known, names))
    off = KeyedRedactor(b"of one entity", on=False)
    assert off.known_text(text, *names) == (text, *names)
    assert (tuple(map(off.identifier, names)), off.count) == (tuple(names), 0)


@pytest.mark.parametrize(
    "name", ["prompt:1f0c:9b74c98736", "note:0a1b2c3d4e5f:a/b.md", "créé à 10:30", "", "x" * 500]
)
def test_an_identifier_without_a_secret_is_kept_letter_for_letter(name: str) -> None:
    assert known(name) == name


def test_a_kind_or_a_relation_that_holds_a_secret_is_refused_by_its_place() -> None:
    token, _ = SECRETS["GitHub Token"]
    redactor = Redactor(on=True)
    with pytest.raises(
        InvalidRequest, match=r"^nodes\[1\]\.kind: holds what looks like a secret"
    ) as refused:
        redactor.nodes([NodeDraft("Ana"), NodeDraft("Ben", kind=token)])
    assert token not in str(refused.value)
    with pytest.raises(
        InvalidRequest, match=r"^facts\[2\]\.relation: holds what looks like a secret"
    ):
        redactor.facts([*[FactDraft("Ana", "HAS", "tea")] * 2, FactDraft("Ana", token, "tea")])
    off = Redactor(on=False)
    assert (
        off.nodes([NodeDraft("Ben", kind=token)])[0].kind
        == off.facts([FactDraft("A", token, "B")])[0].relation
    )


def test_a_long_text_is_cut_beside_its_secrets_and_nothing_of_it_is_lost() -> None:
    for before in range(0, 700, 23):
        text = "word " * (before // 5) + PRIVATE_KEY + " and more words" * 30
        pieces = cut(text, 700)
        assert "".join(pieces) == text
        assert max(map(len, pieces)) <= 700
        assert not any("b1C2d3" in redact(piece).text for piece in pieces)
    assert cut("short", 700) == ["short"]
    assert "b1C2" not in "".join(cut(PRIVATE_KEY, 100))  # no piece could hold it


def test_what_is_clipped_ends_before_a_secret_that_the_bound_would_cut() -> None:
    token, _ = SECRETS["GitHub Token"]
    assert clipped(f"git push {token} origin", 30) == "git push…"
    assert clipped("git push origin main", 12) == "git push or…"
    assert clipped("git push", 12) == "git push"


def test_no_passage_of_a_document_ends_within_a_secret() -> None:
    for before in range(0, 220, 7):
        text = f"{'word ' * before}. The key:\n\n{PRIVATE_KEY}\n\nAfter it. {'More words. ' * 60}"
        assert not any(
            "b1C2d3" in redact(one.text).text for one in passages(text, words=30, overlap=8)
        )


@pytest.mark.parametrize(
    "found",
    ["a_word_that_a_rule_of_gitleaks_knows: adafruit_key = 'ab12cd34ef56ab78cd90ef12ab34cd56'"],
)
def test_a_rule_of_gitleaks_finds_what_ours_do_not_know_and_names_it(found: str) -> None:
    assert redact(found).text.endswith("adafruit_key = '[redacted: Adafruit Api Key]'")
    assert redact("adafruit_key = 'ab12cd34ef56ab78cd90ef12ab34cd56', and on.").count == 1
    assert redact("AWS's own example, AKIAIOSFODNN7EXAMPLE").count <= 1
