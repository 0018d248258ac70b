"""Real models of a few thousand weights, built on the spot: they show behaviour, not quality."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def _save_bert(folder: Path, kind: str, labels: int = 1) -> None:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizerFast

    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=30_522,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
        num_labels=labels,
    )
    model = BertForSequenceClassification(config) if kind == "scorer" else BertModel(config)
    model.save_pretrained(folder)
    vocabulary = files("pps.models") / "data" / "vocab.txt"
    BertTokenizerFast(vocab=str(vocabulary), model_max_length=128).save_pretrained(folder)


def save_cross_encoder(folder: Path, labels: int = 1) -> str:
    """Save a cross-encoder and return its folder."""
    _save_bert(folder, "scorer", labels)
    return str(folder)


def save_embedder(folder: Path) -> str:
    """Save a sentence-transformers model of 32 dimensions, with prompts, and return its folder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    _save_bert(folder / "bert", "encoder")
    inner = Transformer(str(folder / "bert"))
    model = SentenceTransformer(
        modules=[inner, Pooling(32, "mean")],
        prompts={"query": "query: ", "document": "passage: "},
        device="cpu",
    )
    model.save(str(folder / "tiny-embedder"))
    return str(folder / "tiny-embedder")
