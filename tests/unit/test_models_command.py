"""A command as a model: what it writes is read, or refused with the same error whatever is wrong with it."""

from __future__ import annotations

import sys

import pytest

from pps.core.errors import ModelOutputInvalid
from pps.models.program import ModelCommand, Preset


@pytest.mark.parametrize("program", ["print('no JSON')", "print('[' * 200_000)", "print('\\xff')"])
async def test_what_is_no_json_or_nested_too_deep_is_invalid_output(program: str) -> None:
    words = (sys.executable, "-S", "-c", program)
    with pytest.raises(ModelOutputInvalid, match="something else than its documented output"):
        await ModelCommand("deep", words, Preset(words, answer="result"), timeout_s=30).ask("")
