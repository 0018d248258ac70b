"""The node that a name stands for, where a person gives a name in place of an id: exactly one, or a list of them."""

from __future__ import annotations

from pps.core.errors import InvalidRequest
from pps.core.ids import short_id
from pps.journal.journal import Journal

_MOST_LISTED = 5


async def node_called(journal: Journal, name: str, field: str) -> str | None:
    """Return the uuid of the one node of this entity with a name or alias; None where none is called so.

    Case, accents and spaces at the ends do not count. Only the entity's own journal is read.

    Raises:
        InvalidRequest: Several are called so. They are listed by kind and id: no text of the memory is in an error.
    """
    nodes = await journal.nodes_called(name)
    if len(nodes) > 1:
        listed = ", ".join(f"{node.kind} [{short_id(node.uuid)}]" for node in nodes[:_MOST_LISTED])
        more = ", …" if len(nodes) > _MOST_LISTED else ""
        raise InvalidRequest(
            field, f"{len(nodes)} nodes are called so: {listed}{more}; give the id of one"
        )
    return nodes[0].uuid if nodes else None
