"""Names that people type: commands by other names, questions without quotes, entities as they are spelled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.interfaces.serving import Served, pps


def test_an_entity_is_made_in_five_lines_by_the_name_that_was_typed(served: Served) -> None:
    made = served.pps("entity", "create", "my-agent")
    assert made.returncode == 0, made.stderr
    lines = made.stdout.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("my_agent is made: ")
    assert lines[1].startswith("Its token, shown this once: pps_e_")
    assert lines[2].startswith("Claude Code: pps hooks install --entity my_agent")
    assert "pps entity show my_agent" in lines[3]
    assert lines[4].startswith("Next: pps remember my_agent ")
    shown = served.pps("entity", "show", "my-agent").stdout
    assert '"mcpServers"' in shown
    again = json.loads(served.pps("entity", "create", "my-agent", "--json").stdout)
    assert (again["name"], again["is_new"]) == ("my_agent", False)
    assert set(again["clients"]) == {"claude_code", "claude_code_http", "json", "json_http"}
    assert served.pps("add", "my-agent", "Ana", "drinks", "coffee.").returncode == 0
    assert "Ana drinks coffee." in served.pps("search", "my-agent", "coffee").stdout


def test_texts_and_questions_need_no_quotes(served: Served) -> None:
    served.create("unquoted")
    kept = served.pps("remember", "unquoted", "Ana", "drinks", "her", "coffee", "black.", "--json")
    assert kept.returncode == 0, kept.stderr
    turn = json.loads(kept.stdout)["turn_id"]
    got = json.loads(served.pps("get", "unquoted", turn, "--json").stdout)
    assert got["items"][0]["content"] == "Ana drinks her coffee black."
    asked = served.pps("recall", "unquoted", "what", "does", "Ana", "drink", "--limit", "3")
    assert "Ana drinks her coffee black." in asked.stdout
    quoted = served.pps("recall", "unquoted", "what does Ana drink", "--limit", "3")
    assert quoted.stdout == asked.stdout
    assert served.pps("remember", "unquoted", "-", given="From a pipe.").returncode == 0
    assert "From a pipe." in served.pps("turns", "unquoted").stdout


def test_a_command_by_another_name_is_the_same_command(served: Served) -> None:
    served.create("called")
    facts = [{"subject": "Priya", "relation": "LIVES_IN", "object": "Lisbon", "text": "In Lisbon."}]
    served.link.call("remember", "called", {"content": "x", "facts": facts})
    for name, other, words in (
        ("recall", "search", ("Lisbon",)),
        ("timeline", "facts", ("--about", "Priya")),
    ):
        first = served.pps(name, "called", *words, "--json")
        second = served.pps(other, "called", *words, "--json")
        assert (second.returncode, json.loads(second.stdout).keys()) == (
            0,
            json.loads(first.stdout).keys(),
        )
        assert f"Usage: pps {other} " in served.pps(other, "--help").stdout
        assert f"Also: pps {other}." in served.pps(name, "--help").stdout
    assert "In Lisbon." in served.pps("facts", "called", "Priya").stdout
    assert served.pps("facts", "called", "Lisbon").stdout == served.pps("facts", "called").stdout
    twice = served.pps("facts", "called", "Priya", "--about", "Priya")
    assert (twice.returncode, "give it once" in twice.stderr) == (2, True)


def test_a_question_without_an_entity_is_answered_with_what_to_type(
    alone: dict[str, str],
) -> None:
    assert pps(alone, "entity", "create", "ana").returncode == 0
    ended = pps(alone, "recall", "what", "does", "Ana", "drink")
    assert (ended.returncode, ended.stderr.count("\n")) == (3, 1)
    assert "`pps recall ana what does Ana drink`" in ended.stderr
    ended = pps(alone, "forget", "what", "does")
    assert ended.returncode == 3
    assert "pps forget" not in ended.stderr


def test_stop_ends_the_server_and_says_so(alone: dict[str, str]) -> None:
    assert pps(alone, "entity", "create", "ana").returncode == 0
    pps(alone, "remember", "ana", "Kept before the end.")
    ended = pps(alone, "stop")
    assert ended.returncode == 0
    assert ended.stdout.startswith("The server (process ")
    assert not (Path(alone["PPS_HOME"]) / "server.json").exists()
    again = pps(alone, "stop")
    assert (again.returncode, again.stdout) == (0, "No server is running.\n")
    said = json.loads(pps(alone, "stop", "--json").stdout)
    assert said == {"stopped": False, "pid": None}
    assert "Kept before the end." in pps(alone, "turns", "ana").stdout


@pytest.mark.parametrize("words", [(), ("recall",), ("entity", "create")])
def test_help_is_what_the_option_help_prints(alone: dict[str, str], words: tuple[str, ...]) -> None:
    helped, asked = pps(alone, "help", *words), pps(alone, *words, "--help")
    assert helped.returncode == 0
    assert helped.stdout == asked.stdout
    as_json = json.loads(pps(alone, "help", *words, "--json").stdout)
    assert as_json["help"] == helped.stdout.rstrip("\n")
    assert pps(alone, *words, "-h").stdout == asked.stdout


MOMO = {
    "content": "Momo lives in Lisbon.",
    "nodes": [{"name": "Momo", "kind": "Cat"}],
    "facts": [
        {"subject": "Momo", "relation": "LIVES_IN", "object": "Lisbon", "text": "In Lisbon."}
    ],
}


def test_a_node_is_looked_around_by_its_name_and_several_are_listed(served: Served) -> None:
    served.create("near")
    served.link.call("remember", "near", MOMO)
    assert served.pps("event", "near", "A shop.", "--title", "Momo").returncode == 0
    around = served.pps("around", "near", "lisbon")
    assert around.stdout.startswith("0: Lisbon ")
    assert "In Lisbon." in around.stdout
    several = served.pps("around", "near", "momo")
    assert (several.returncode, several.stderr.count("\n")) == (2, 1)
    assert "ID 'momo': 2 nodes are called so: Cat [" in several.stderr
    first = several.stderr.split("[")[1].split("]")[0]
    assert served.pps("around", "near", first).stdout.startswith("0: Momo (Cat)")
    absent = served.pps("around", "near", "Nobody")
    assert (absent.returncode, "ID 'Nobody': not found" in absent.stderr) == (3, True)
    listed = served.pps("forget", "near", "Momo", "--yes")
    assert (listed.returncode, "give the id of one" in listed.stderr) == (2, True)


def test_what_is_forgotten_by_a_name_is_shown_first(served: Served) -> None:
    served.create("forgets")
    served.link.call("remember", "forgets", MOMO)
    shown = served.pps("forget", "forgets", "Lisbon")
    assert shown.returncode == 0, shown.stderr
    assert "node Lisbon " in shown.stdout
    assert "fact In Lisbon. [" in shown.stdout
    command = shown.stdout.splitlines()[-1].split("`")[1]
    assert command.startswith("pps forget forgets ")
    for more in ((), ("--json",), ("--soft",)):
        refused = served.pps("forget", "forgets", "Lisbon", "--yes", *more)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert "nothing is forgotten by a name unseen" in refused.stderr
        assert more == ("--json",) or "fact In Lisbon. [" in refused.stdout
    assert "In Lisbon." in served.pps("facts", "forgets").stdout
    done = served.pps(*command.split()[1:])
    assert "for good" in done.stdout
    assert "In Lisbon." not in served.pps("facts", "forgets").stdout
