"""Redaction on two corpora: of the secrets nearly all are found, of what only looks like one nearly none is touched."""

from __future__ import annotations

from pps.ingest.redact import redact
from tests import secret_contexts
from tests.secret_corpus import harmless, secrets
from tests.secret_forms_held_out import FORMS, FRESH_FORMS, HARMLESS
from tests.secret_forms_held_out import secrets as held_out_secrets


def _is_gone(secret: str, text: str) -> bool:
    return not any(secret[at : at + 8] in text for at in range(max(1, len(secret) - 7)))


def test_of_secrets_as_they_are_handed_over_at_least_97_in_100_go_whole() -> None:
    corpus = list(secrets())
    left = [text for text, secret in corpus if not _is_gone(secret, redact(text).text)]
    assert len(corpus) >= 400
    assert len(left) <= 0.03 * len(corpus), left


def test_of_hashes_ids_encoded_bytes_and_code_at_most_5_in_1000_are_touched() -> None:
    corpus = list(harmless())
    touched = [text for text in corpus if redact(text).text != text]
    assert len(corpus) >= 2_000
    assert len(touched) <= 0.005 * len(corpus), touched


def test_of_forms_that_no_rule_was_written_for_97_in_100_go_whole() -> None:
    for forms in (FORMS, FRESH_FORMS):
        corpus = list(held_out_secrets(forms))
        left = [text for text, secret in corpus if not _is_gone(secret, redact(text).text)]
        assert len(corpus) >= 250
        assert len(left) <= 0.03 * len(corpus), left


def test_sentences_and_commands_about_secrets_that_hold_none_stay_as_they_are() -> None:
    assert [text for text in HARMLESS if redact(text).text != text] == []


def test_what_was_redacted_once_stays_as_it_is() -> None:
    for text, _ in (*held_out_secrets(FORMS), *held_out_secrets(FRESH_FORMS)):
        found = redact(text)
        assert redact(found.text).text == found.text, text


def test_of_secrets_in_contexts_of_many_programs_and_languages_95_in_100_go_whole() -> None:
    corpus = [(text.replace("{}", secret), secret) for text, secret in secret_contexts.FORMS]
    left = [text for text, secret in corpus if not _is_gone(secret, redact(text).text)]
    assert len(corpus) >= 275
    assert len(left) <= 0.05 * len(corpus), left


def test_lines_that_resemble_those_contexts_stay_as_they_are() -> None:
    lines = secret_contexts.HARMLESS
    assert len(lines) >= 200
    assert [line for line in lines if redact(line).text != line] == []
