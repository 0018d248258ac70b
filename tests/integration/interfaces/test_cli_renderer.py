"""Answers on the command line are worded by their operations, once, on the entity's clock; colour is all it adds."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys

import pytest

from tests.integration.interfaces.serving import Served
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def ana(served: Served) -> Served:
    made = served.pps("entity", "create", "ana", "--time-zone", "Asia/Tokyo")
    assert made.returncode == 0, made.stderr
    facts = [
        {"subject": "Ana", "relation": "LIKES", "object": name, "text": f"Ana likes {name}."}
        for name in ("rye", "oats", "barley")
    ]
    given = {"content": "Ana likes bread.", "facts": facts, "occurred_at": "2026-03-07T23:30:00Z"}
    served.link.call("remember", "ana", given)
    return served


@pytest.mark.parametrize(
    ("command", "operation", "arguments"),
    [
        ("recall", "recall", {"query": "bread"}),
        ("timeline", "timeline", {}),
        ("around", "graph_around", {}),
        ("turns", "turns_list", {}),
    ],
)
def test_a_command_prints_what_its_operation_says_with_short_ids(
    ana: Served, command: str, operation: str, arguments: dict[str, str]
) -> None:
    text = str(ana.link.call(operation, "ana", arguments)["text"])
    printed = ana.pps(command, "ana", *arguments.values()).stdout
    full = [
        word for word in text.replace("[", " ").replace("]", " ").split() if word.count("-") == 4
    ]
    for id_ in full:
        text = text.replace(id_, id_[:8])
    assert printed == text + "\n"
    assert "2026-03-08" in printed or command == "around", "the entity's clock"


def test_a_page_is_followed_by_the_cursor_that_was_printed(ana: Served) -> None:
    seen: list[str] = []
    more: list[str] = []
    for _ in range(3):
        *lines, last = ana.pps("facts", "ana", "--limit", "1", *more).stdout.splitlines()
        seen += lines
        assert last.startswith("More: --cursor ")
        more = last.removeprefix("More: ").split()
    assert [line.split(" (")[0] for line in seen] == [
        line.split(" (")[0] for line in ana.pps("facts", "ana").stdout.splitlines()
    ]


def _on_a_terminal(ana: Served, *arguments: str, **more: str) -> str:
    main, far = pty.openpty()
    command = [sys.executable, "-m", "pps", *arguments]
    env = {name: value for name, value in ana.env.items() if name != "NO_COLOR"}
    process = subprocess.Popen(command, env={**env, **more}, stdin=far, stdout=far, stderr=far)
    os.close(far)
    shown = b""
    while True:
        try:
            piece = os.read(main, 65_536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(main)
    assert process.wait(60) == 0
    return shown.decode().replace("\r\n", "\n")


def test_colour_is_for_terminals_that_want_it(ana: Served) -> None:
    plain = ana.pps("recall", "ana", "bread").stdout
    coloured = _on_a_terminal(ana, "recall", "ana", "bread")
    assert "\x1b[1mfacts:\x1b[0m" in coloured
    assert _on_a_terminal(ana, "recall", "ana", "bread", NO_COLOR="1") == plain
    assert "\x1b" not in plain


def in_flight(served: Served) -> int:
    """Return how many requests a server has in hand; the one that asks is one of them."""
    with served.owner() as owner:
        answer = owner.get("/metrics")
    [line] = [one for one in answer.text.splitlines() if one.startswith("pps_requests_in_flight ")]
    return int(float(line.split()[1]))


def test_an_interrupted_command_says_so_in_one_line(ana: Served) -> None:
    command = [sys.executable, "-m", "pps", "verify-isolation", "--operations", "100000"]
    # A shell starts what runs in its background with SIGINT ignored, and a program inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        command, env=ana.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: process.poll() is not None or in_flight(ana) > 1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.strip() == "pps: interrupted; the server finishes what it has begun"
