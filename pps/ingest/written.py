"""What a write passes on to the indexes, so that they need not read it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pps.core.values import Fact, Node
from pps.journal.values import DirtyChange


@dataclass(frozen=True, slots=True)
class Written:
    """What a write has just put into the graph, so that it need not be read back.

    Attributes:
        rows: The numbers of the outbox rows that the write made before it. A row with another number was noted
            by somebody else, who may have changed or removed the thing since: that one is read where it is true.
        nodes, facts: What was written, by uuid.
        texts: Record → its text: who is a record is noted beside the graph, so it cannot be looked up meanwhile.
    """

    rows: range = range(0)
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    def of(self, rows: Sequence[DirtyChange]) -> Written:
        """Return what still is as it was written, as far as the rows name it."""
        ours = [row.change for row in rows if row.seq in self.rows]
        nodes = {one.id: self.nodes[one.id] for one in ours if one.kind == "node" and one.id in self.nodes}
        facts = {one.id: self.facts[one.id] for one in ours if one.kind == "fact" and one.id in self.facts}
        return Written(self.rows, nodes, facts, self.texts)


NOTHING_WRITTEN = Written()
