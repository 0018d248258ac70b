"""Counting tokens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pps.models.token_counts import estimate_tokens

_ASK = "from pps.models.token_counts import count_tokens, counter_name; print(counter_name(), count_tokens('x' * 8))"


def asked(cache: Path | str) -> str:
    environment = {"TIKTOKEN_CACHE_DIR": str(cache), "HTTPS_PROXY": "http://127.0.0.1:9"}
    return subprocess.run(
        [sys.executable, "-c", _ASK], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("x" * 35, 10), ("茶" * 7, 2)]
)
def test_the_estimate_is_a_token_for_three_and_a_half_characters(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_without_an_encoding_at_hand_it_estimates_and_says_so(tmp_path: Path) -> None:
    assert asked(tmp_path) == "estimate 3"


def test_without_a_cache_at_all_it_estimates() -> None:
    assert asked("") == "estimate 3"


def test_a_damaged_encoding_is_neither_used_nor_fetched_again(tmp_path: Path) -> None:
    damaged = tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790"
    damaged.write_bytes(b"IQ== 0\n")
    assert asked(tmp_path) == "estimate 3"
    assert damaged.read_bytes() == b"IQ== 0\n"
