"""Builds what is given out: a wheel, a bundle for MCP clients (.mcpb), and the manifest of a release, into ``dist``."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "pps",
    "config",
    "skills",
    "entities/_template",
)
"""What a bundle has of the checkout, beside its own manifest and entry point."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


def build_wheel(dist: Path) -> Path:
    """Build the wheel with the build tool that scripts/setup installed; nothing is fetched."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", str(dist)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return max(dist.glob("pps-*.whl"), key=lambda file: file.stat().st_mtime_ns)


def build_bundle(dist: Path) -> Path:
    """Build the bundle: the same bytes from the same files, wherever and whenever it is built."""
    manifest = (ROOT / "config" / "mcpb" / "manifest.json").read_bytes()
    version = json.loads(manifest)["version"]
    bundle = dist / f"pps-{version}.mcpb"
    dist.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "manifest.json", manifest)
        _add(archive, "server.py", (ROOT / "config" / "mcpb" / "server.py").read_bytes())
        for file in _files():
            _add(archive, file.relative_to(ROOT).as_posix(), file.read_bytes())
    return bundle


def write_release_manifest(dist: Path, bundle: Path) -> Path:
    """Write ``server.json`` of a release: that of the checkout, with the hash of this bundle."""
    manifest = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    [package] = manifest["packages"]
    package["fileSha256"] = hashlib.sha256(bundle.read_bytes()).hexdigest()
    file = dist / "server.json"
    file.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return file


def _files() -> list[Path]:
    """Return the tracked files of a bundle, in one order; what lies about in a checkout is not in it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *SOURCES], cwd=ROOT, check=True, capture_output=True
    ).stdout.decode()
    names = sorted(name for name in listed.split("\0") if name)
    kept = [name for name in names if not name.startswith("config/neo4j/")]
    return [ROOT / name for name in kept if (ROOT / name).is_file()]


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, content)


def main() -> None:
    """Build all of it and print what was made."""
    dist = ROOT / "dist"
    wheel, bundle = build_wheel(dist), build_bundle(dist)
    for file in (wheel, bundle, write_release_manifest(dist, bundle)):
        print(f"{file.relative_to(ROOT)}  {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
