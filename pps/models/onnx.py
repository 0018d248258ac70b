"""BERT's networks on onnxruntime: word pieces in, the first output back."""

from __future__ import annotations

import importlib
import logging
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from pps.core.errors import ModelUnavailable
from pps.core.footprint import give_back
from pps.models.model_file import Weights, read_model

log = logging.getLogger(__name__)

Ids: TypeAlias = NDArray[np.int64]


class _Input(Protocol):
    @property
    def name(self) -> str: ...


class _Session(Protocol):
    """What is used of onnxruntime's InferenceSession; several threads may call ``run``."""

    def get_inputs(self) -> Sequence[_Input]: ...

    def run(self, output_names: None, input_feed: Mapping[str, Ids]) -> Sequence[NDArray[np.float32]]: ...


class Network:
    """A network in memory; several threads may call ``run``, each of which works in its own thread alone.

    Args:
        weights: Which one.
        path: As ``read_model`` takes it.
        rewrite: What is done to the file before it is opened.

    Raises:
        ConfigError: As ``read_model``.
        ModelUnavailable: onnxruntime cannot open it.
    """

    def __init__(self, weights: Weights, path: Path | None, rewrite: Callable[[bytes], bytes] = bytes) -> None:
        start = time.perf_counter()
        self._user = weights.user
        self._session = self._open(rewrite(read_model(weights, path)))
        self._inputs = frozenset(each.name for each in self._session.get_inputs())
        give_back()  # reading and rewriting the model took twice what it keeps
        log.info("%s loaded in %.1f s", weights.model, time.perf_counter() - start)

    def run(self, tokens: Ids, mask: Ids, kinds: Ids) -> NDArray[np.float32]:
        """Return the first output for word pieces, their mask and their kinds, each of shape (texts, width).

        Raises:
            ModelUnavailable: onnxruntime failed.
        """
        feed = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": kinds}
        with self._mapped_errors():
            return self._session.run(None, {name: feed[name] for name in self._inputs})[0]

    def _open(self, model: bytes) -> _Session:
        runtime = importlib.import_module("onnxruntime")  # untyped in parts: the seam is _Session
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.enable_cpu_mem_arena = False  # 0.27 GB instead of 0.6, at the same speed
        with self._mapped_errors():
            return cast("_Session", runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"]))

    @contextmanager
    def _mapped_errors(self) -> Generator[None]:
        """Map onnxruntime's errors, which have no base of their own."""
        state = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
        kinds = (state.Fail, state.RuntimeException, state.InvalidGraph, state.InvalidProtobuf, state.NotImplemented)
        try:
            yield
        except kinds as error:
            raise ModelUnavailable(f"{self._user}: onnxruntime failed ({type(error).__name__})") from error
