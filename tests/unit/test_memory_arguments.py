from __future__ import annotations

from typing import Any

import pytest

from pps.memory import Memory


@pytest.mark.parametrize(
    ("method", "arguments", "named", "said"),
    [
        ("remember", ("x",), {"ocurred_at": 1}, "'ocurred_at'; did you mean 'occurred_at'"),
        ("remember", ("x",), {"group_id": "theirs"}, "'group_id'"),
        ("remember_many", ([("x", {"taggs": ()})],), {}, "'taggs'; did you mean 'tags'"),
        ("recall", ("x",), {"limitt": 3}, "'limitt'; did you mean 'limit'"),
        ("recall", ("x",), {"group_ids": ["theirs"]}, "'group_ids'"),
        ("why", ("x",), {"profil": "nodes"}, "'profil'; did you mean 'profile'"),
        ("timeline", (), {"entity": "theirs"}, "'entity'"),
    ],
)
async def test_a_keyword_that_is_none_is_refused(
    method: str, arguments: tuple[Any, ...], named: dict[str, Any], said: str
) -> None:
    memory = Memory.__new__(Memory)  # before anything of it is looked at
    with pytest.raises(TypeError, match=f"{method}.*unexpected keyword argument {said}"):
        await getattr(memory, method)(*arguments, **named)
