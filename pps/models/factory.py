"""From settings to models.

Nothing loads here; what is missing is said here, with the way to get it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Literal

from pps.config import ColbertSettings, EmbedderSettings, ExtractorSettings, RerankerSettings
from pps.core.errors import ConfigError
from pps.models.embedding import CachedEmbedder
from pps.models.hash import HashEmbedder
from pps.models.protocols import OLLAMA_URL, Embedder, ExtractorModel, Reranker
from pps.models.token_encoder import ColbertEncoder, find_colbert

_OPENAI_URL = "https://api.openai.com/v1"
_OPENAI_MODEL = "text-embedding-3-small"
_BY_MODEL: Mapping[str, Literal["minilm", "bge-small", "e5"]] = {
    "all-MiniLM-L6-v2": "minilm",
    "bge-small-en-v1.5": "bge-small",
    "multilingual-e5-small": "e5",
}
"""Models that need no setting."""
_SERVED = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "nomic-embed-text": 768,
    "mxbai-embed-large": 1024,
    "all-minilm": 384,
    "bge-m3": 1024,
}
"""Dimensions of models that are often served."""
_PACKAGES = {"anthropic": "anthropic", "gemini": "google.genai", "groq": "groq"}
"""Packages of the extra ``providers`` that a provider needs."""


def make_embedder(settings: EmbedderSettings, *, keep_queries: bool = True) -> Embedder | None:
    """Return the embedder that the settings name.

    None for ``none``, ConfigError that names what is missing.

    Without ``keep_queries`` each query is embedded anew, which is what a clock should see.
    """
    embedder = _embedder(settings)
    return CachedEmbedder(embedder) if embedder is not None and keep_queries else embedder


def embedder_of(model: str) -> Embedder | None:
    """Return the embedder of a model that an entity's vectors are of already.

    None for one that needs settings.
    """
    name = _BY_MODEL.get(model)
    return make_embedder(EmbedderSettings(name=name)) if name else None


def make_reranker(settings: RerankerSettings) -> Reranker | None:
    """Return the reranker that the settings name.

    None for ``none``, ConfigError that names what is missing.
    """
    if settings.name == "none":
        return None
    if settings.name == "minilm":
        from pps.models.reranker import MiniLMReranker

        return MiniLMReranker(settings.path, batch=settings.batch, threads=settings.threads)
    from pps.models.sentence_transformers import CrossEncoderReranker

    return CrossEncoderReranker(settings.model, batch=settings.batch)


def make_colbert(settings: ColbertSettings, embedder: EmbedderSettings) -> ColbertEncoder | None:
    """Return the encoder of token states.

    None where it is off, its file is not there, or no embedder reads meaning.

    Raises:
        ConfigError: ``colbert.path`` names no file.
    """
    if settings.name == "none" or embedder.name in ("none", "hash"):
        return None
    return find_colbert(settings.path)


def make_extractor(settings: ExtractorSettings) -> ExtractorModel | None:
    """Return the language model for extraction; None unless ``extractor.mode`` is ``model``."""
    if settings.mode != "model":
        return None
    package = _PACKAGES.get(settings.provider)
    if package is not None and not _installed(package):
        raise ConfigError(
            f"extractor.provider = '{settings.provider}' needs {package}: install pps with its "
            "extra 'providers'"
        )
    return ExtractorModel(
        provider=settings.provider,
        model=settings.model,
        small_model=settings.small_model,
        base_url=settings.base_url or (OLLAMA_URL if settings.provider == "ollama" else ""),
        api_key=settings.api_key.get_secret_value() if settings.api_key else "",
        timeout_s=settings.timeout_s,
    )


def _embedder(settings: EmbedderSettings) -> Embedder | None:
    match settings.name:
        case "none":
            return None
        case "hash":
            return HashEmbedder(settings.dimension or 256)
        case "openai":
            return _served(settings)
        case "minilm" | "bge-small":
            from pps.models.bert import BGE_SMALL, MINILM, BertEmbedder

            bert = MINILM if settings.name == "minilm" else BGE_SMALL
            return _of_dimension(
                BertEmbedder(bert, settings.path, threads=settings.threads), settings
            )
        case "e5":
            from pps.models.e5 import E5Embedder

            return _of_dimension(E5Embedder(settings.path), settings)
        case "sentence-transformers":
            from pps.models.sentence_transformers import SentenceTransformerEmbedder

            source = str(settings.path.expanduser()) if settings.path else settings.model
            return SentenceTransformerEmbedder(source, dimension=settings.dimension)


def _of_dimension(embedder: Embedder, settings: EmbedderSettings) -> Embedder:
    has = embedder.fingerprint.dimension
    if settings.dimension not in (None, has):
        raise ConfigError(
            f"embedder.dimension: '{settings.name}' has {has}, and {settings.dimension} is set"
        )
    return embedder


def _served(settings: EmbedderSettings) -> Embedder:
    from pps.models.openai_compatible import EmbeddingServer, OpenAICompatibleEmbedder

    model = settings.model or _OPENAI_MODEL
    native = _SERVED.get(model)
    dimension = settings.dimension or native
    if dimension is None:
        raise ConfigError(
            f"embedder.dimension: say how long the vectors of {model} are, for example 768"
        )
    key = settings.api_key.get_secret_value() if settings.api_key else ""
    if not key and not settings.base_url:
        raise ConfigError(
            "embedder.api_key: 'openai' needs one (or OPENAI_API_KEY), or another embedder.base_url"
        )
    return OpenAICompatibleEmbedder(
        EmbeddingServer(
            base_url=settings.base_url or _OPENAI_URL,
            model=model,
            dimension=dimension,
            shorten=model.startswith("text-embedding-3") and dimension != native,
            api_key=key,
        )
    )


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False  # its parent is not there either
