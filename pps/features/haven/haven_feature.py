"""The feature ``haven``: rooms where a person talks with entities, and the owner's page."""

from __future__ import annotations

from pps.features.haven.room_tables import TABLES
from pps.operations.feature import Feature

FEATURE = Feature(
    name="haven",
    summary="Rooms in which a person talks with one or several entities, "
    "each answering with its own memory.",
    tables=TABLES,
    modules=("pps.features.haven.haven_tools",),
    provides={"talk": "pps.features.haven.room_requests:House"},
    attack_suite="pps.features.haven.room_attacks:RoomAttacks",
)
