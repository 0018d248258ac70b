"""``python -m pps.bench quality --data DIR``: one JSON on stdout, progress on stderr."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pps import __version__
from pps.app import App
from pps.bench import quality
from pps.bench.ablation import ablated
from pps.bench.data import Conversation, read_conversations
from pps.bench.scores import line, summary
from pps.config import Settings, load
from pps.core.errors import PPSError
from pps.recall.request import DEFAULT_PROFILE


def main() -> int:
    """Run a benchmark; 0 when it was measured, 2 when it could not be, with one line that says why."""
    options = _options()
    data = options.data or os.environ.get("PPS_BENCH_DATA")
    if not data:
        return _refused("no data: give --data DIR or set PPS_BENCH_DATA")
    try:
        conversations = read_conversations(Path(data))
        with tempfile.TemporaryDirectory(prefix="pps-bench-") as home:
            settings = load(env={**os.environ, "PPS_HOME": home})
            report = asyncio.run(_quality(settings, conversations, options))
    except PPSError as error:
        return _refused(f"{error.code}: {error.message}")
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure PPS on data of your own.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("quality", help="how well recall finds the turns that answer a question")
    command.add_argument("--data", help="folder of JSON lines as locomo_to_graph.py writes them ($PPS_BENCH_DATA)")
    command.add_argument("--profile", action="append", help=f"profile to ask; may be repeated ({DEFAULT_PROFILE})")
    command.add_argument("--ablate", action="store_true", help="also ask with each perspective left out in turn")
    command.add_argument("--answers", type=Path, help="write each question's result to this file, as JSON lines")
    return parser.parse_args()


async def _quality(
    settings: Settings, conversations: Sequence[Conversation], options: argparse.Namespace
) -> dict[str, object]:
    profiles: list[str] = options.profile or [DEFAULT_PROFILE]
    if options.ablate:
        profiles += await asyncio.to_thread(ablated, settings, profiles[0])
    answers: dict[str, list[quality.Answer]] = {name: [] for name in profiles}
    written: list[quality.Written] = []
    async with App.open(settings) as app:
        for one in conversations:
            written.append(await quality.write(app, one, _say))
            for name in profiles:
                answers[name] += await quality.ask(app, one, name)
    if options.answers:
        rows = [json.dumps({"profile": name, **line(one)}) for name in profiles for one in answers[name]]
        await asyncio.to_thread(options.answers.write_text, "\n".join(rows) + "\n", "utf-8")
    return {
        "benchmark": "quality",
        "version": __version__,
        "machine": {"cores": os.cpu_count(), "processor": platform.machine(), "python": platform.python_version()},
        "store": settings.store,
        "embedder": settings.embedder.name,
        "reranker": settings.reranker.name,
        "scored": "the ten best turns of the episodes channel (R@20: the twenty best)",
        "questions_without_answer": quality.without_answers(conversations),
        "written": [asdict(one) for one in written],
        "profiles": {name: summary(found) for name, found in answers.items()},
    }


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def _refused(why: str) -> int:
    sys.stderr.write(f"bench: {why}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
