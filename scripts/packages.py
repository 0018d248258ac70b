"""Builds what is given out: a wheel, a bundle for MCP clients (.mcpb), and the manifest of a release, into ``dist``.

With ``--identity`` it writes the maintainers' name and the repository's address, which ``pyproject.toml`` defines, into the
files that must have them too.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
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
WITH_IDENTITY = (
    "plugin.json",
    "server.json",
    "config/mcpb/manifest.json",
    ".claude-plugin/marketplace.json",
    "config/claude/.claude-plugin/marketplace.json",
    "config/claude/.claude-plugin/plugin.json",
    "mkdocs.yml",
    "CHANGELOG.md",
)
"""Files that have the maintainers' name or the repository's address, and can only have them in full."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_ADDRESS = re.compile(r"https://github\.com/[\w-]+/[\w-]+")
_SERVER_NAME = re.compile(r'(?<="name": ")io\.github\.[\w-]+/[\w-]+')
_MAINTAINERS = re.compile(r'(?<="author": \{ "name": ")[^"]+|(?<="owner": \{ "name": ")[^"]+')


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


def with_identity(path: str, text: str) -> str:
    """Return a file's text with the name and the address that ``pyproject.toml`` defines."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address, maintainers = project["urls"]["Source"], project["authors"][0]["name"]
    owner, _, name = address.removeprefix("https://github.com/").partition("/")
    text = _MAINTAINERS.sub(maintainers, text)
    if path == "server.json":
        text = _SERVER_NAME.sub(f"io.github.{owner}/{name}", text)
    return _ADDRESS.sub(address, text)


def write_identity() -> None:
    """Write the name and the address into every file that must have them."""
    for path in WITH_IDENTITY:
        file = ROOT / path
        file.write_text(with_identity(path, file.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> None:
    """Build all of it and print what was made."""
    if "--identity" in sys.argv[1:]:
        write_identity()
        return
    dist = ROOT / "dist"
    wheel, bundle = build_wheel(dist), build_bundle(dist)
    for file in (wheel, bundle, write_release_manifest(dist, bundle)):
        print(f"{file.relative_to(ROOT)}  {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
