"""A commit that was killed leaves files behind; the next start is not stopped by them."""

from __future__ import annotations

import json
from pathlib import Path

from pps.core.ids import new_group
from pps.index.text_index import TextDoc, TextIndex


def test_the_files_of_a_killed_commit_do_not_stop_the_next_one(tmp_path: Path) -> None:
    group, folder = new_group(), tmp_path / "text"
    index = TextIndex.open(folder, group=group)
    index.replace([TextDoc("episodes", f"o{number}", f"body {number}") for number in range(50)])
    index.commit()
    index.close()
    shelf = folder / "episodes"
    meta = json.loads((shelf / "meta.json").read_text())
    segment = meta["segments"][0]["segment_id"].replace("-", "")
    left = [f"{segment}.{meta['opstamp'] + step}.del" for step in range(8)]
    managed = json.loads((shelf / ".managed.json").read_text())
    (shelf / ".managed.json").write_text(json.dumps([*managed, *left]))
    for name in left:
        (shelf / name).write_bytes(b"half")
    index = TextIndex.open(folder, group=group)
    index.replace([TextDoc("episodes", "o3", "new words")])
    index.commit()
    assert [hit.owner for hit in index.search("episodes", "new words", 3)] == ["o3"]
    assert index.count("episodes") == 50
    index.close()
