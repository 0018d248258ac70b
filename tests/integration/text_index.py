"""A text index of given texts, and whose texts it finds."""

from __future__ import annotations

from pathlib import Path

from pps.index.text_index import TextDoc, TextIndex
from tests.index_data import GROUP


def filled(
    path: Path, texts: dict[str, str], collection: str = "episodes", *, language: str = "english"
) -> TextIndex:
    index = TextIndex.open(path, group=GROUP, language=language)
    index.replace([TextDoc(collection, owner, text) for owner, text in texts.items()])
    index.commit()
    return index


def owners(index: TextIndex, query: str, k: int = 10, collection: str = "episodes") -> list[str]:
    return [hit.owner for hit in index.search(collection, query, k)]
