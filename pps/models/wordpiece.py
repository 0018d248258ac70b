"""BERT's uncased word-piece tokenizer, from the vocabulary that PPS ships."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CLS, SEP = 101, 102
SPECIAL_TOKENS = 2
"""``[CLS]`` and ``[SEP]`` around a text."""


@lru_cache(maxsize=1)
def wordpiece() -> Tokenizer:
    """Return the tokenizer of BERT's uncased models: no truncation, no padding, safe in threads.

    A text that spells a special token, such as ``[SEP]``, is text.
    """
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors  # 60 ms
    from tokenizers.models import WordPiece

    lines = (files("pps.models") / "data" / "vocab.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
    vocabulary = {token: at for at, token in enumerate(lines)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106 (a token of text)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", SEP), ("[CLS]", CLS))
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer
