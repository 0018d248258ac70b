"""The feature ``squad``: members, what they share in a pool, and what they do together."""

from __future__ import annotations

from pps.operations.feature import Feature

FEATURE = Feature(
    name="squad",
    summary=(
        "Agents with memories of their own that share what they know in a pool and work together."
    ),
    modules=(
        "pps.features.squad.squad_tools",
        "pps.features.squad.squad_inbox",
        "pps.features.squad.squad_work",
        "pps.features.squad.squad_admin",
    ),
    provides={
        "desks": "pps.features.squad.desk:desk_of",
        "shared_lines": "pps.features.squad.knowing:shared_lines",
        "member_forgetting": "pps.features.squad.member_forgetting:forget_as_member",
    },
)
