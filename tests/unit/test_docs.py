"""The documents say what the program does: commands, tools, settings, the README's tables and links."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import typer.main

from benchmarks import perspectives, scale_report, tune
from benchmarks import squad as SQUAD  # noqa: N812
from benchmarks.__main__ import app as benchmarks
from benchmarks.report import markdown
from benchmarks.times_report import HOOKS, RERANK, TIMELINE
from pps.interfaces.cli.main import build
from pps.operations.catalog import INDEX, index_text, operations_for
from tests.figures import DOCUMENTS, QUALITY, RESULTS, filled
from tests.reference import FOLDER, PAGE, TOOLS, pages, tools

ROOT = PAGE.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_reference_is_what_scripts_docs_would_write() -> None:
    assert TOOLS.read_text(encoding="utf-8") == tools(), "run scripts/docs"
    assert INDEX.read_text(encoding="utf-8") == index_text(), "run scripts/docs"
    for file, text in pages().items():
        assert file.read_text(encoding="utf-8") == text, f"{file.name}: run scripts/docs"
    assert {*FOLDER.glob("*.md")} == pages().keys() - {PAGE}, "run scripts/docs"


def test_the_reference_names_every_command_and_every_tool_with_a_link_to_its_page() -> None:
    index = PAGE.read_text(encoding="utf-8")
    whole = {file.stem: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.md")}
    names = [f"pps {name}" for name in build().commands]
    for name in names:
        assert f"[`{name}" in index, f"the reference does not name `{name}`"
    tools = operations_for("entity", "member", "router", "runner").values()
    for verb in tools:
        assert f"[`{verb.name}`]" in index, f"the reference does not name the tool {verb.name}"
    links = re.findall(r"\[`([^`]+)`\]\(reference/(\w+)\.md#[\w-]+\)", index)
    assert len(links) >= len(names) + len(tools)
    for name, area in links:
        assert f"### `{name}`\n" in whole[area], f"{name} does not stand in {area}.md"


def test_the_tree_of_the_architecture_is_the_package() -> None:
    tree = (
        (ROOT / "docs" / "architecture.md")
        .read_text(encoding="utf-8")
        .split("```\npps/\n")[1]
        .split("```")[0]
    )
    rooms = {one.name for one in (ROOT / "pps").iterdir() if not one.name.startswith("_")}
    assert {line.split()[0].rstrip("/") for line in tree.splitlines()} == rooms


def test_every_link_and_script_in_the_documents_leads_somewhere() -> None:
    for document in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
        for script in re.findall(r"(?<![\w/])scripts/[a-z_0-9]+(?:\.py)?", text):
            assert (ROOT / script).exists(), f"{document.name} names {script}"


def test_each_documented_benchmark_is_a_command_with_those_options() -> None:
    lines = re.findall(
        r"^(?:PPS_SET=\w+ )?scripts/bench ([^#\n]+)",
        (RESULTS / "README.md").read_text("utf-8"),
        re.M,
    )
    commands = cast("Any", typer.main.get_command(benchmarks)).commands
    for line in lines:
        name, *arguments = line.split()
        commands[name].make_context(name, arguments)
    assert {line.split()[0] for line in lines} == set(commands)


def test_no_document_or_code_names_a_path_of_somebodys_machine() -> None:
    for path in (
        *sorted(ROOT.glob("pps/**/*.py")),
        *sorted(Path(ROOT / "docs").rglob("*.md")),
        ROOT / "README.md",
    ):
        assert not re.search(r"/(?:home|Users)/\w+/", path.read_text(encoding="utf-8")), path


def test_every_figure_of_the_documents_is_that_of_a_benchmarks_file() -> None:
    marked = [
        document
        for document in DOCUMENTS
        if "<!-- figures: " in document.read_text(encoding="utf-8")
    ]
    assert marked, "no document shows a figure"
    for document in marked:
        text = document.read_text(encoding="utf-8")
        assert filled(text) == text, (
            f"{document.name} shows other figures than docs/benchmarks: run scripts/docs"
        )


def test_each_quality_page_is_what_its_json_says() -> None:
    for file in sorted(RESULTS.glob("quality*.json")):
        report = json.loads(file.read_text(encoding="utf-8"))
        assert file.with_suffix(".md").read_text(encoding="utf-8") == markdown(report, file.stem)
        assert file.with_suffix(".png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("scale", scale_report.markdown),
        ("scale-0.1", scale_report.markdown),
        ("scale-neo4j", scale_report.markdown),
        ("tune", tune.markdown),
        ("hooks", HOOKS.page),
        ("rerank", RERANK.page),
        ("timeline", TIMELINE.page),
        ("squad", SQUAD.page),
        ("perspectives", perspectives.page),
    ],
)
def test_each_page_is_what_its_json_says(
    name: str, page: Callable[[Mapping[str, Any], str], str]
) -> None:
    report = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    assert (RESULTS / f"{name}.md").read_text(encoding="utf-8") == page(report, name)
    assert (RESULTS / f"{name}.png").stat().st_size > 10_000


def test_no_page_of_figures_is_without_the_json_that_it_is_made_of() -> None:
    pages = {page.stem for page in RESULTS.glob("*.md")} - {"README"}
    others = (
        "scale",
        "scale-0.1",
        "scale-neo4j",
        "tune",
        "hooks",
        "lookups",
        "perspectives",
        "records",
        "rerank",
        "squad",
        "timeline",
    )
    assert pages == {*QUALITY, *others}
    assert pages <= {file.stem for file in RESULTS.glob("*.json")}
