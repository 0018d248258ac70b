"""A setting in the environment that differs from the running server's is refused, with what to do: for every setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from pps.config import Settings
from pps.core.errors import ConfigError
from pps.server.link import find
from tests.integration.interfaces.serving import Served

_OTHERS = {"true": "false", "false": "true", "on": "off", "off": "on"}


def differing(text: str) -> str:
    if text in _OTHERS:
        return _OTHERS[text]
    return str(float(text) + 1) if text.replace(".", "", 1).isdigit() else f"{text}-other"


def test_every_setting_that_differs_is_refused_with_the_remedy(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in served.env.items():
        if name.startswith("PPS_"):
            monkeypatch.setenv(name, value)
    assert find(served.home)
    status = served.link.status()
    settings, secrets = status["settings"], status["secrets"]
    assert isinstance(settings, dict)
    assert isinstance(secrets, dict)
    assert len(settings) > 60
    assert {"PPS_NEO4J__PASSWORD", "PPS_EMBEDDER__API_KEY"} <= secrets.keys()
    for name, value in [*settings.items(), *((name, "x") for name in secrets)]:
        with monkeypatch.context() as patch:
            patch.setenv(name, differing(str(value).lower()))
            with pytest.raises(ConfigError, match=f"{name} is .*pps serve --stop"):
                find(served.home)
        if name in settings:
            with monkeypatch.context() as patch:
                patch.setenv(name, str(value))
                assert find(served.home), name


def test_the_same_written_otherwise_is_the_same(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in served.env.items():
        if name.startswith("PPS_"):
            monkeypatch.setenv(name, value)
    for name, text in (
        ("PPS_SERVER__PORT", "0"),
        ("PPS_VECTORS__IN_MEMORY", f"{Settings(home=Path('/x')).vectors.in_memory}.0"),
        ("PPS_EMBEDDER__NAME", "hash"),
    ):
        monkeypatch.setenv(name, text)
    assert find(served.home)


def test_a_command_with_another_reranker_is_refused(served: Served) -> None:
    served.create("ana")
    asked = Served(served.home, {**served.env, "PPS_RERANKER__NAME": "minilm"}, served.run)
    ended = asked.pps("recall", "ana", "bees")
    assert ended.returncode != 0
    assert "PPS_RERANKER__NAME is 'minilm' here" in ended.stderr
    assert "pps serve --stop" in ended.stderr


def test_no_secret_is_told(served: Served) -> None:
    status = served.link.status()
    settings = status["settings"]
    assert isinstance(settings, dict)
    assert not [name for name in settings if "KEY" in name or "PASSWORD" in name or "URLS" in name]
