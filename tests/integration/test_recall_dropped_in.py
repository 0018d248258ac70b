"""A perspective of one's own: one file among the others and a profile that names it; nothing else is touched."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import ConfigError
from pps.recall import perspectives
from pps.recall.profiles import Profiles
from tests.integration.recall_scene import facts_of, play

CONTRARY = '''
from pps.recall.perspectives import retriever
from pps.recall.search import Scored


@retriever()
async def contrary(search, channel, depth):
    """Contrary: the facts that are least like the query come first."""
    near = await search.vector_matches("facts", depth) if channel == "facts" else []
    return [Scored(one.id, -one.score, 1 - one.signal) for one in reversed(near)]
'''
PROFILE = 'description = "Contrary"\n[channels.facts]\nperspectives = { contrary = 1.0 }\n'
QUERY = "Mira grows roses"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The embedded store: what is tried here knows nothing of stores."""
    return Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="hash"))


@contextmanager
def dropped_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str
) -> Iterator[None]:
    """Let a module stand among the perspectives while the block runs, found as the shipped ones are at an import."""
    (folder / f"{name}.py").write_text(code.lstrip(), encoding="utf-8")
    shipped = dict(perspectives.PERSPECTIVES)
    with monkeypatch.context() as patched:
        patched.setattr(perspectives, "__path__", [*perspectives.__path__, str(folder)])
        perspectives.load()
        yield
    perspectives.PERSPECTIVES.clear()
    perspectives.PERSPECTIVES.update(shipped)
    sys.modules.pop(f"{perspectives.__name__}.{name}")
    delattr(perspectives, name)


async def test_a_file_among_the_perspectives_is_all_that_a_profile_needs_to_rank_by_it(
    app: App, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = dict(perspectives.PERSPECTIVES)
    mine, folder = settings.home / "profiles" / "mine.toml", tmp_path / "more"
    mine.parent.mkdir()
    folder.mkdir()
    await app.create("ana")
    async with app.memory("ana") as memory:
        await play(memory)
        with dropped_in(folder, monkeypatch, "contrary", CONTRARY):
            assert perspectives.PERSPECTIVES.keys() - shipped == {"contrary"}
            assert perspectives.PERSPECTIVES["contrary"].about.startswith("Contrary: the facts")
            mine.write_text(PROFILE, encoding="utf-8")

            found = await memory.recall(QUERY, profile="mine")

            again = await memory.recall(QUERY, profile="mine", weights={"contrary": 2.0})
            assert facts_of(again) == facts_of(found)
    assert found["facts"][-1].text == "Mira grows roses."
    assert [hit.ranks for hit in found["facts"]] == [{"contrary": rank} for rank in range(1, 6)]
    assert dict(perspectives.PERSPECTIVES) == shipped
    with pytest.raises(
        ConfigError, match=r"mine\.toml: channels\.facts\..*: no perspective is called contrary"
    ):
        Profiles.load(settings).get("mine")
