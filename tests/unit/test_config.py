from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from pps.config import Settings, load, shipped
from pps.core.errors import ConfigError


def _load(tmp_path: Path, text: str = "", **env: str) -> Settings:
    if text:
        (tmp_path / "pps.toml").write_text(text, encoding="utf-8")
    return load(env={"PPS_HOME": str(tmp_path), **env})


def _paths(model: type[BaseModel], prefix: str = "") -> set[str]:
    found: set[str] = set()
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found |= _paths(inner, f"{prefix}{name}.")
        else:
            found.add(prefix + name)
    return found


def test_without_a_file_and_variables_the_defaults_stand(tmp_path: Path) -> None:
    settings = _load(tmp_path)
    assert settings == Settings(home=tmp_path)
    assert settings.store == "embedded"
    assert settings.server.host == "127.0.0.1"


def test_the_shipped_file_says_every_default_as_it_is(tmp_path: Path) -> None:
    text = shipped("config/pps.toml").read_text(encoding="utf-8")
    assert _load(tmp_path, text) == Settings(home=tmp_path, store="embedded")


def test_the_shipped_file_names_every_setting() -> None:
    text = shipped("config/pps.toml").read_text(encoding="utf-8")
    uncommented = "\n".join(
        line.removeprefix("# ") if line.startswith("# ") and " = " in line else line
        for line in text.splitlines()
    )
    kept = "\n".join(line for line in uncommented.splitlines() if not line.startswith("#"))
    tree = tomllib.loads(kept)
    named = {f"{k}.{inner}" for k, v in tree.items() if isinstance(v, dict) for inner in v}
    named |= {k for k, v in tree.items() if not isinstance(v, dict)}
    assert named == _paths(Settings) - {"home"}


def test_the_environment_wins_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    text = "[server]\nport = 9001\nopen_entities = 4\n"
    settings = _load(tmp_path, text, PPS_SERVER__PORT="9002")
    assert (settings.server.port, settings.server.open_entities) == (9002, 4)


def test_an_unknown_key_is_named_with_the_nearest_known_one(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"unknown setting 'embedder\.nme', did you mean 'embedder\.name'"
    ):
        _load(tmp_path, "[embedder]\nnme = 'e5'\n")
    with pytest.raises(ConfigError, match="unknown setting 'embeder'"):
        load(env={"PPS_HOME": str(tmp_path / "other"), "PPS_EMBEDER__NAME": "e5"})


def test_a_value_out_of_bounds_is_refused_without_quoting_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"server\.port") as caught:
        _load(tmp_path, PPS_SERVER__PORT="70000")
    assert "70000" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["store = ", "\x00", "home = '/tmp/x'"])
def test_a_file_that_cannot_stand_is_refused_by_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"pps\.toml"):
        _load(tmp_path, text)


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(env={"PPS_HOME": str(tmp_path)}, file=tmp_path / "absent.toml")


def test_neo4j_names_of_the_ecosystem_are_understood(tmp_path: Path) -> None:
    settings = _load(
        tmp_path,
        NEO4J_URI="bolt://db:7687",
        NEO4J_USERNAME="u",
        NEO4J_PASSWORD="p",
        NEO4J_DATABASE="d",
    )
    assert settings.neo4j.uri == "bolt://db:7687"
    assert settings.neo4j.user == "u"
    assert settings.neo4j.password.get_secret_value() == "p"
    assert settings.neo4j.database == "d"


def test_own_names_win_over_the_ecosystems(tmp_path: Path) -> None:
    settings = _load(tmp_path, NEO4J_URI="bolt://a", PPS_NEO4J__URI="bolt://b")
    assert settings.neo4j.uri == "bolt://b"


def test_an_openai_key_goes_to_openai_and_to_no_server_that_only_the_settings_name(
    tmp_path: Path,
) -> None:
    own = _load(tmp_path, PPS_EMBEDDER__NAME="openai", OPENAI_API_KEY="sk-1")
    assert own.embedder.api_key is not None
    assert own.extractor.api_key is not None
    named = {
        "PPS_EMBEDDER__NAME": "openai",
        "PPS_EMBEDDER__BASE_URL": "http://else/v1",
        "OPENAI_API_KEY": "sk-1",
    }
    assert _load(tmp_path, **named).embedder.api_key is None
    both = _load(
        tmp_path,
        OPENAI_BASE_URL="http://proxy/v1",
        OPENAI_API_KEY="sk-1",
        PPS_EMBEDDER__NAME="openai",
    )
    assert both.embedder.base_url == "http://proxy/v1"
    assert both.embedder.api_key is not None


def test_each_provider_reads_its_own_key(tmp_path: Path) -> None:
    keys = {
        "ANTHROPIC_API_KEY": "a",
        "GOOGLE_API_KEY": "g",
        "GROQ_API_KEY": "q",
        "OPENAI_API_KEY": "o",
    }
    for provider, key in (("anthropic", "a"), ("gemini", "g"), ("groq", "q"), ("openai", "o")):
        found = _load(tmp_path, PPS_EXTRACTOR__PROVIDER=provider, **keys).extractor.api_key
        assert found is not None
        assert found.get_secret_value() == key
    assert _load(tmp_path, PPS_EXTRACTOR__PROVIDER="compatible", **keys).extractor.api_key is None


def test_lists_are_written_with_commas(tmp_path: Path) -> None:
    settings = _load(tmp_path, PPS_SERVER__ALLOWED_HOSTS="a.example, b.example:443")
    assert settings.server.allowed_hosts == ("a.example", "b.example:443")


def test_secrets_never_print(tmp_path: Path) -> None:
    settings = _load(tmp_path, NEO4J_PASSWORD="hunter2", OPENAI_API_KEY="sk-hunter2")
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in settings.model_dump_json()


def test_shipped_files_are_found_and_nothing_beside_them() -> None:
    assert shipped("entities/_template").is_dir()
    for path in ("config/../README.md", "/etc/passwd", "pps/__init__.py", "config/absent.toml"):
        with pytest.raises(ConfigError):
            shipped(path)
