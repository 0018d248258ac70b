"""What is given out agrees with itself: wheel, bundle, plugin manifests, container. No client and no engine is needed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
import yaml

import packages
from pps import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Source"]
REGISTRY_HOST = re.compile(
    r"\b(pypi|npmjs|crates|registry\.|docker\.io|ghcr\.io|quay\.io|pythonhosted|maven)[\w.]*\b"
    r"(?=[./])"
)


def read_json(path: str) -> dict[str, Any]:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


def test_every_manifest_has_the_version_and_the_repository_of_the_project() -> None:
    assert PROJECT["version"] == __version__
    versions = {
        path: read_json(path)["version"]
        for path in (
            *("plugin.json", "server.json", "config/mcpb/manifest.json"),
            "config/claude/.claude-plugin/plugin.json",
        )
    }
    assert set(versions.values()) == {__version__}, versions
    [package] = read_json("server.json")["packages"]
    release = f"{REPOSITORY}/releases/download/v{__version__}/pps-{__version__}.mcpb"
    assert (package["identifier"], package["version"]) == (release, __version__)
    for path in ("plugin.json", "server.json", "config/mcpb/manifest.json"):
        urls = re.findall(r"https://github\.com/[\w-]+/[\w-]+", (ROOT / path).read_text())
        assert urls
        assert set(urls) == {REPOSITORY}, path


def test_the_name_and_the_address_are_defined_once_and_written_everywhere_else() -> None:
    mentioned = re.compile(
        r"github\.com/(?!modelcontextprotocol|getzep)[\w-]+/pps|The PPS maintainers"
    )
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True
    ).stdout.decode()
    own = {"pyproject.toml", "docs/contributing.md", "tests/unit/test_packages.py"}
    for name in filter(None, listed.split("\0")):
        file = ROOT / name
        if name in own or not file.is_file() or file.suffix in (".png", ".xz", ".svg"):
            continue
        text = file.read_bytes().decode("utf-8", "replace")
        if name in packages.WITH_IDENTITY:
            assert packages.with_identity(name, text) == text, (
                f"{name}: run scripts/package --identity"
            )
        else:
            assert not mentioned.search(text), name
    other = '{"author": { "name": "X" }, "u": "https://github.com/a/b/issues"}'
    assert packages.with_identity("plugin.json", other) == (
        f'{{"author": {{ "name": "{PROJECT["authors"][0]["name"]}" }}, "u": "{REPOSITORY}/issues"}}'
    )


def test_the_plugin_keeps_agent_plugins_1_0() -> None:
    manifest, servers = read_json("plugin.json"), read_json("mcp.json")
    closed = {"$schema", "name", "version", "description", "author", "homepage", "repository"}
    assert manifest.keys() <= closed | {"license", "keywords", "extensions"}
    assert manifest["$schema"] == "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
    assert re.fullmatch(r"[a-z0-9](?:[a-z0-9]|[-.](?![-.])){0,62}[a-z0-9]", manifest["name"])
    assert manifest["author"].keys() <= {"name", "email", "url"}
    assert servers.keys() == {"$schema", "mcpServers"}
    assert servers["$schema"] == "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"
    for server in servers["mcpServers"].values():
        assert server["type"] == "stdio"
        assert server.keys() <= {"type", "command", "args", "env", "cwd"}
        assert "/" not in server["command"], "a bare name: the plugin brings no program"
    skills = [path.parent.name for path in (ROOT / "skills").glob("*/SKILL.md")]
    assert skills == ["pps-memory"]
    for path in ("plugin.json", "mcp.json", "skills"):
        assert not (ROOT / path).is_symlink()


def test_the_marketplace_of_the_root_has_the_plugin_of_claude_code() -> None:
    [plugin] = read_json(".claude-plugin/marketplace.json")["plugins"]
    manifest = ROOT / plugin["source"] / ".claude-plugin" / "plugin.json"
    assert json.loads(manifest.read_text(encoding="utf-8"))["name"] == plugin["name"]


def test_the_manifest_of_the_server_keeps_its_schema_and_names_no_package_registry() -> None:
    manifest = read_json("server.json")
    assert manifest.keys() <= {
        *("$schema", "name", "description", "version"),
        *("websiteUrl", "repository", "packages", "remotes"),
    }
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", manifest["name"])
    assert len(manifest["description"]) <= 100
    for package in manifest["packages"]:
        assert "registryBaseUrl" not in package
        assert package["transport"] == {"type": "stdio"}
    for path in ("server.json", "mcp.json", "plugin.json", "Dockerfile", "compose.yaml"):
        assert not REGISTRY_HOST.search((ROOT / path).read_text(encoding="utf-8")), path


def test_the_manifest_of_the_bundle_keeps_version_0_4() -> None:
    manifest = read_json("config/mcpb/manifest.json")
    assert manifest["manifest_version"] == "0.4"
    assert {"name", "version", "description", "author", "server"} <= manifest.keys()
    server = manifest["server"]
    assert server.keys() == {"type", "entry_point", "mcp_config"}
    assert server["type"] == "uv"
    assert server["mcp_config"].keys() <= {"command", "args", "env", "platform_overrides"}
    placeholders = set(re.findall(r"\$\{user_config\.(\w+)\}", json.dumps(server)))
    assert placeholders == manifest["user_config"].keys()
    for option in manifest["user_config"].values():
        assert {"type", "title", "description"} <= option.keys()
    assert manifest["compatibility"]["runtimes"]["python"] == PROJECT["requires-python"]


def test_the_bundle_is_the_same_bytes_each_time_and_has_what_it_runs(tmp_path: Path) -> None:
    bundle = packages.build_bundle(tmp_path / "one")
    again = packages.build_bundle(tmp_path / "two")
    assert bundle.read_bytes() == again.read_bytes()
    with zipfile.ZipFile(bundle) as archive:
        names = set(archive.namelist())
        manifest = json.loads(archive.read("manifest.json"))
    assert manifest["server"]["entry_point"] in names
    assert {"pyproject.toml", "pps/__main__.py", "config/pps.toml", "LICENSE"} <= names
    assert "skills/pps-memory/SKILL.md" in names
    assert not [name for name in names if name.startswith(("tests/", ".", "config/neo4j/"))]
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    released = packages.write_release_manifest(tmp_path, bundle)
    [package] = json.loads(released.read_text())["packages"]
    assert re.fullmatch(r"[0-9a-f]{64}", package["fileSha256"])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packages.build_wheel(tmp_path_factory.mktemp("dist"))


def test_the_wheel_says_who_made_it_where_it_is_and_what_it_runs_on(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(name).decode())
        names = archive.namelist()
    assert metadata["Author"] == PROJECT["authors"][0]["name"]
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL", []))
    assert urls.keys() == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    classifiers = metadata.get_all("Classifier", [])
    for minor in (11, 12, 13, 14):
        assert f"Programming Language :: Python :: 3.{minor}" in classifiers
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == "<3.15,>=3.11"
    assert "pps/_shipped/skills/pps-memory/SKILL.md" in names
    assert "pps/_shipped/config/pps.toml" in names
    assert not [name for name in names if name.startswith("tests")]


def test_the_wheel_alone_finds_its_settings_and_its_skill(wheel: Path, tmp_path: Path) -> None:
    """Only what lies in the wheel is imported: the checkout is not on the path, and is not where it runs."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import pps\n"
        "from pps.config import shipped\n"
        "from pps.interfaces.mcp.offer import shipped_skills\n"
        "print(pps.__file__, len(shipped_skills()), len(shipped('config/pps.toml').read_text()))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-P", "-c", script, str(tmp_path / "site")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    file, skills, size = ended.stdout.split()
    assert file.startswith(str(tmp_path))
    assert (skills, int(size) > 1_000) == ("1", True)


def _stages(text: str) -> list[list[tuple[str, str]]]:
    """Return the stages of a container file, each as its instructions with their arguments."""
    joined = re.sub(r"\\\n", " ", text)
    stages: list[list[tuple[str, str]]] = []
    for line in joined.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        instruction, _, arguments = line.strip().partition(" ")
        if instruction == "FROM":
            stages.append([])
        stages[-1].append((instruction, arguments.strip()))
    return stages


def test_the_container_runs_without_root_from_files_that_are_there() -> None:
    stages = _stages((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    known = {"FROM", "RUN", "COPY", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "WORKDIR"}
    assert {name for stage in stages for name, _ in stage} <= known | {"ENTRYPOINT", "CMD"}
    last = stages[-1]
    names = [name for name, _ in last]
    user = dict(last)["USER"]
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user), "a number: it can be checked as not root"
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert not [name for name in names[names.index("USER") :] if name in ("RUN", "COPY", "ADD")]
    for name in ("ENTRYPOINT", "CMD"):
        assert json.loads(dict(last)[name]), "the form that starts no shell"
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sent = [line[1:] for line in ignored if line.startswith("!")]
    for stage in stages:
        for name, arguments in stage:
            if name == "COPY" and "--from=" not in arguments:
                for source in arguments.split()[:-1]:
                    assert (ROOT / source).exists(), source
                    assert any(source == one or source.startswith(f"{one}/") for one in sent)
            if name == "RUN" and "pip install" in arguments:
                for command in arguments.split("&&"):
                    if "pip install" in command:
                        assert "--require-hashes" in command or "--no-deps" in command
    assert (f"python:3.{13}-slim") in stages[-1][0][1]


def test_the_compose_file_publishes_to_this_machine_alone_and_grants_nothing() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    service = compose["services"]["pps"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert not {"privileged", "cap_add", "network_mode", "pid", "devices"} & service.keys()
    volumes = [volume.split(":")[0] for volume in service["volumes"]]
    assert set(volumes) == compose["volumes"].keys()
    assert service["volumes"] == ["pps-data:/data"], "the data folder is kept"
    neo4j = yaml.safe_load((ROOT / "config/compose.yaml").read_text(encoding="utf-8"))
    assert all(port.startswith("127.0.0.1:") for port in neo4j["services"]["neo4j"]["ports"])
