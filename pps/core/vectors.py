"""The types of vectors: unit-length float32, of the entity's pinned dimension."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float32]
"""One vector, shape (dimension,)."""
Matrix: TypeAlias = NDArray[np.float32]
"""One vector a row, shape (rows, dimension)."""
