"""The table: every operation, in the order in which it is listed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pps.operations.administration import ADMINISTRATION
from pps.operations.agent_tasks import AGENT_TASKS
from pps.operations.exchange import EXCHANGE
from pps.operations.forgetting import FORGETTING
from pps.operations.graph_looks import GRAPH_LOOKS
from pps.operations.inventory import SCHEMA
from pps.operations.journal_tools import JOURNAL_TOOLS
from pps.operations.knowledge import KNOWLEDGE
from pps.operations.maintenance import MAINTENANCE
from pps.operations.pack_files import PACKS
from pps.operations.perspective_tools import PERSPECTIVE_TOOLS
from pps.operations.project_access import PROJECT_ACCESS
from pps.operations.project_tools import PROJECT_TOOLS
from pps.operations.record_asks import RECORD_ASKS
from pps.operations.record_search import FINDING
from pps.operations.session_start import SESSION_START
from pps.operations.squad_admin import SQUAD_ADMIN
from pps.operations.squad_inbox import SQUAD_INBOX
from pps.operations.squad_tools import SQUAD_TOOLS
from pps.operations.squad_work import SQUAD_WORK
from pps.operations.table import AnyOperation, Audience
from pps.operations.titled_texts import RECORDS
from pps.operations.topic_tools import TOPICS
from pps.operations.typed_records import TYPED_RECORDS
from pps.operations.upkeep import UPKEEP

OPERATIONS: tuple[AnyOperation, ...] = (
    *KNOWLEDGE,
    *FORGETTING,
    *RECORDS,
    *TYPED_RECORDS,
    *RECORD_ASKS,
    *SCHEMA,
    *FINDING,
    *GRAPH_LOOKS,
    *PERSPECTIVE_TOOLS,
    *SESSION_START,
    *TOPICS,
    *UPKEEP,
    *JOURNAL_TOOLS,
    *PROJECT_TOOLS,
    *AGENT_TASKS,
    *ADMINISTRATION,
    *SQUAD_TOOLS,
    *SQUAD_INBOX,
    *SQUAD_WORK,
    *SQUAD_ADMIN,
    *PROJECT_ACCESS,
    *EXCHANGE,
    *MAINTENANCE,
    *PACKS,
)


def operations_for(
    *audiences: Audience,
    toolsets: Collection[str] | None = None,
    table: Iterable[AnyOperation] = OPERATIONS,
) -> dict[str, AnyOperation]:
    """Return by name the operations of some audiences, and of some toolsets (None: of all).

    Of a name that two audiences share, it is the first one's. To anybody else they do not exist.
    """
    found: dict[str, AnyOperation] = {}
    for audience in audiences:
        for one in table:
            if one.audience == audience and (toolsets is None or one.toolset in toolsets):
                found.setdefault(one.name, one)
    return found
