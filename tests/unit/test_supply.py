"""What a set-up fetches is named to the last byte: every package by its hash, every image by its digest."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_install_of_the_set_up_checks_hashes_or_fetches_nothing() -> None:
    installs = re.findall(r"^.*pip install.*$", (ROOT / "scripts/setup").read_text(), re.MULTILINE)
    assert len(installs) >= 3
    assert all(
        "--require-hashes" in one or "--no-deps --no-build-isolation --editable" in one
        for one in installs
    )
    for listed in (ROOT / "config/requirements").glob("*.txt"):
        packages = re.findall(
            r"^[A-Za-z0-9].*(?:\n[ ]+--hash=.*)+|^[A-Za-z0-9].*", listed.read_text(), re.MULTILINE
        )
        assert packages
        assert all("==" in one and "--hash=sha256:" in one for one in packages), listed.name


def test_every_image_of_a_compose_file_has_a_digest() -> None:
    images = re.findall(r"image: (\S+)", (ROOT / "config/compose.yaml").read_text())
    assert images
    assert all(re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", one) for one in images)
