"""Real models of a few thousand weights, built on the spot: they show behaviour, not quality."""

from __future__ import annotations

from pathlib import Path

from benchmarks.reranking import Shape, save_bert

TINY = Shape(hidden=32, layers=2, heads=2, inner=64, window=128)


def save_cross_encoder(folder: Path, labels: int = 1) -> str:
    """Save a cross-encoder and return its folder."""
    return save_bert(folder, TINY, labels=labels)


def save_embedder(folder: Path) -> str:
    """Save a sentence-transformers model of 32 dimensions, with prompts, and return its folder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    inner = Transformer(save_bert(folder / "bert", TINY, scores=False))
    model = SentenceTransformer(
        modules=[inner, Pooling(32, "mean")],
        prompts={"query": "query: ", "document": "passage: "},
        device="cpu",
    )
    model.save(str(folder / "tiny-embedder"))
    return str(folder / "tiny-embedder")
