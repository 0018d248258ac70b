"""How important a memory is: what it was given, how often it was really shown, and how long ago it was said."""

from __future__ import annotations

import math
from datetime import datetime

PRIOR = 0.5
"""The importance of what says none itself, so that a new memory is not worth nothing."""
_K1 = 1.2
_HALF_LIFE_D = 45.0
_DAY_S = 86_400.0


def importance(shown: int, at: datetime, moment: datetime, stored: float = PRIOR) -> float:
    """Return ``stored * (1 + log-saturated showings) * 2 ** (-age / 45 d)``: above 0, at most ``stored * 3.2``.

    Args:
        shown: How often sessions were really shown it; 0 takes nothing away.
        at: When it was said.
        moment: The moment of the question; one before ``at`` counts as the same.
        stored: 0 to 1.

    Source: the saturation of BM25's term frequency, Robertson et al. 1994.
    """
    times = math.log1p(shown)
    age_d = max(0.0, (moment - at).total_seconds() / _DAY_S)
    return stored * (1 + times * (_K1 + 1) / (times + _K1)) * 2 ** (-age_d / _HALF_LIFE_D)
