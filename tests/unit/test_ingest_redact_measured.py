"""Redaction on two corpora: of the secrets nearly all are found, of what only looks like one nearly none is touched."""

from __future__ import annotations

from pps.ingest.redact import redact
from tests.secret_corpus import harmless, secrets


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
