"""What a caller gives with a turn, as the journal keeps it: checked before it is acknowledged, not after."""

from __future__ import annotations

from pps.core import bounds
from pps.journal.turns import clean_tags
from pps.journal.values import JobPayload, dump_payload


def prepare_payload(payload: JobPayload) -> str:
    """Return a payload as JSON after checking it.

    Raises:
        InvalidRequest: A bound is broken; the field and the bound are named.
    """
    bounds.check_choice("extraction", payload.extraction, bounds.EXTRACTIONS)
    bounds.check_drafts(payload.nodes, payload.facts, clean_tags)
    return dump_payload(payload)
