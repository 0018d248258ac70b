"""What a text is compared by besides meaning: letters, identifiers, causes."""

from __future__ import annotations

import numpy as np
import pytest

from pps.index.signs import causal_pairs, causal_question, hashed, identifiers, letters, numbers


@pytest.mark.parametrize(
    ("text", "cause", "effect"),
    [
        ("The cellar flooded because the pump broke.", "the pump broke", "The cellar flooded"),
        ("After the pump broke, the cellar flooded.", "the pump broke", "the cellar flooded"),
        ("The frost led to burst pipes.", "The frost", "burst pipes"),
        (
            "The outage was caused by an expired certificate.",
            "an expired certificate",
            "The outage was",
        ),
        ("The key was gone. Therefore we slept outside.", "The key was gone", "we slept outside"),
        (
            "Der Keller stand unter Wasser, weil die Pumpe ausfiel.",
            "die Pumpe ausfiel",
            "Der Keller stand unter Wasser",
        ),
        ("Wegen Nebel, fiel der Flug aus.", "Nebel", "fiel der Flug aus"),
    ],
)
def test_a_cue_divides_cause_and_effect(text: str, cause: str, effect: str) -> None:
    assert causal_pairs(text) == ((cause, effect),)


def test_a_text_without_a_cue_has_no_cause() -> None:
    assert causal_pairs("We ate soup. The causeway was long.") == ()
    assert len(causal_pairs("It broke because of rain. " * 50)) == 8


def test_a_question_asks_for_one_end_of_a_cause_or_for_none() -> None:
    assert causal_question("Why did the cellar flood?") == ("cause", "did the cellar flood")
    assert causal_question("What did the frost lead to?") == ("effect", "the frost")
    assert causal_question("What did the outage cause?") == ("effect", "the outage")
    assert causal_question("What can cause an outage?") is None
    assert causal_question("Warum fiel der Flug aus?") == ("cause", "fiel der Flug aus")
    assert causal_question("Where is the cellar?") is None
    assert causal_question("why") is None


def test_identifiers_are_whole_and_in_their_parts() -> None:
    assert {"parseconfigfile", "parse", "config", "file"} <= identifiers(
        "call parseConfigFile first"
    )
    assert {"max_retry_count", "maxretrycount", "retry"} <= identifiers("set max_retry_count")
    assert {"src/app/http_server.py", "server"} <= identifiers("see src/app/http_server.py")
    assert {"numpy", "load"} <= identifiers("import numpy\nload(path)")
    assert identifiers("Mira grows roses in the garden, always.") == frozenset()


def test_letters_are_near_in_spite_of_misspellings_and_hashes_are_the_same_in_any_order() -> None:
    right, wrong, other = (
        np.unpackbits(np.frombuffer(letters(text), dtype=np.uint8))
        for text in ("Kubernetes", "Kubernets", "gardening")
    )
    assert (right & wrong).sum() > 3 * (right & other).sum() + 3
    assert hashed(["a", "b"]) == hashed(["b", "a"])
    assert len(numbers(hashed(["a", "b"]))) == 2
