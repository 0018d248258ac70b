"""A hook that only notes down: the event as it came in, and the transcript as it stood then.

python take.py FOLDER EVENT
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

folder, event = Path(sys.argv[1]), sys.argv[2]
given = sys.stdin.buffer.read()
name = f"{time.time_ns():020d}-{event}"
transcript = Path(json.loads(given)["transcript_path"])
if transcript.exists():
    shutil.copyfile(transcript, folder / f"{name}.jsonl")
draft = folder / f".{name}"
draft.write_bytes(given)
draft.rename(folder / f"{name}.json")
