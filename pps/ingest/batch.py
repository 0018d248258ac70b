"""One batch of turns on its way into the graph: additions, changes and omissions.

A batch overlays the graph: a later turn of the batch sees the nodes and facts of an earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pps.config.relation_files import shipped_relations
from pps.core.ids import EntityId, stable_id
from pps.core.kinds import NO_KINDS, Kinds
from pps.core.relation_table import RelationRule, Relations
from pps.core.text import fold
from pps.core.values import Closing, Episode, Fact, Node, Skipped, Turn
from pps.journal.closing_rows import Ending
from pps.journal.tie_rows import Ties


@dataclass(slots=True)
class TurnOutcome:
    """The counts and omissions of one turn, for its receipt."""

    nodes: int = 0
    facts: int = 0
    edges: int = 0
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    record: str = ""
    title: str = ""


@dataclass(slots=True)
class Batch:
    """Changes that are collected before they are written, each uuid once, in its latest form.

    Attributes:
        names: Folded name or alias to node uuid: what the graph knows and what this batch adds.
        known: Nodes by uuid, as the graph has them or as this batch changes them.
        nodes, facts, episodes: To be written.
        mentions: (episode, node) pairs, no pair twice.
        records: Turn → the node of its record.
        record_nodes: Nodes that are records already.
        links: Turn → the titles that it links to.
        fresh: Folded names that this batch gives to nodes; links of texts may wait for them.
        restated: Stored episodes that state another fact now, in their new form.
        reworded: Turns of which the graph has facts from an earlier text.
        parted: (episode, node) pairs whose mention is removed before ``mentions`` are saved.
        stated: (subject, relation, object) to the facts that say so, by uuid.
        ties: (fact, turn that holds it, turn that it needs for that), see ``journal.tie_rows``.
        known_ties: The ties of stored facts that changed turns may end.
        reread: Turns that a command must read again: they share facts with changed turns.
        closings: Fact → its closings by ``invalidates`` in this batch; they are settled with the
            slots.
        own_ends: Fact that this batch states → the end in its own statement.
        endings: Turn of this batch → the endings in it.
        corrections: Turn with a correction → whether its fact was found.
        relations: The table of relations.
        kinds: Kinds of the entity's packs; texts may name nodes of these kinds but do not change
            them.
    """

    entity: EntityId
    at: datetime
    names: dict[str, str] = field(default_factory=dict[str, str])
    known: dict[str, Node] = field(default_factory=dict[str, Node])
    stored: dict[str, Fact] = field(default_factory=dict[str, Fact])
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    facts: dict[str, Fact] = field(default_factory=dict[str, Fact])
    episodes: dict[str, Episode] = field(default_factory=dict[str, Episode])
    mentions: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])
    records: dict[str, str] = field(default_factory=dict[str, str])
    record_nodes: set[str] = field(default_factory=set[str])
    links: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    fresh: set[str] = field(default_factory=set[str])
    restated: dict[str, Episode] = field(default_factory=dict[str, Episode])
    reworded: set[str] = field(default_factory=set[str])
    parted: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    stated: dict[tuple[str, str, str], dict[str, None]] = field(
        default_factory=dict[tuple[str, str, str], dict[str, None]]
    )
    ties: dict[tuple[str, str, str], None] = field(default_factory=dict[tuple[str, str, str], None])
    known_ties: Ties = field(default_factory=dict[str, Mapping[str, frozenset[str]]])
    reread: set[str] = field(default_factory=set[str])
    closings: dict[str, list[Closing]] = field(default_factory=dict[str, list[Closing]])
    own_ends: dict[str, datetime | None] = field(default_factory=dict[str, "datetime | None"])
    corrections: dict[str, bool] = field(default_factory=dict[str, bool])
    endings: dict[str, list[Ending]] = field(default_factory=dict[str, list[Ending]])
    kinds: Kinds = NO_KINDS
    relations: Relations = field(default_factory=shipped_relations)

    def copy(self) -> Batch:
        """Return a batch that knows what this one knows of the graph, and changes nothing yet."""
        batch = Batch(
            self.entity,
            self.at,
            dict(self.names),
            dict(self.known),
            dict(self.stored),
            kinds=self.kinds,
            relations=self.relations,
        )
        batch.records = dict(self.records)
        batch.record_nodes = set(self.record_nodes)
        batch.known_ties = self.known_ties
        for fact in batch.stored.values():
            batch.note_stated(fact)
        return batch

    def node_named(self, name: str) -> str | None:
        """Return the uuid that a name or alias stands for, if it is known."""
        return self.names.get(fold(name))

    def put_node(self, node: Node) -> None:
        """Add or change a node; its name and aliases resolve to it unless they are taken."""
        self.known[node.uuid] = node
        self.nodes[node.uuid] = node
        for folded in map(fold, (node.name, *node.aliases)):
            if folded not in self.names:
                self.names[folded] = node.uuid
                self.fresh.add(folded)

    def new_node_id(self, name: str) -> str:
        """Return the uuid that a new node of this name gets: the same one each time."""
        return stable_id(self.entity.group, "node", fold(name))

    def fact(self, uuid: str) -> Fact | None:
        """Return a fact in its latest form, from this batch or from the graph."""
        return self.facts.get(uuid) or self.stored.get(uuid)

    def put_fact(self, fact: Fact) -> None:
        self.facts[fact.uuid] = fact
        self.note_stated(fact)

    def note_stated(self, fact: Fact) -> None:
        """Register a fact under its subject, relation and object."""
        self.stated.setdefault((fact.subject, fact.relation, fact.object), {})[fact.uuid] = None

    def alike(self, subject: str, relation: str, object_: str) -> list[Fact]:
        """Return the known facts of the same nodes and relation, in their latest form."""
        uuids = self.stated.get((subject, relation, object_), ())
        return [fact for fact in map(self.fact, uuids) if fact]

    def relation_of(self, fact: Fact) -> RelationRule | None:
        """Return a fact's relation in the table, by the kinds of its ends if they are known."""
        kinds = [
            self.known[end].kind if end in self.known else "" for end in (fact.subject, fact.object)
        ]
        return self.relations.find(fact.relation, *kinds)

    def mention(self, episode: str, nodes: Sequence[str]) -> None:
        self.mentions.update(dict.fromkeys((episode, node) for node in nodes))

    def put_episode(self, turn: Turn, facts: Sequence[str]) -> None:
        """Add the episode of a turn: same uuid, same words, the turn's event time."""
        speaker = turn.actor or turn.role
        self.episodes[turn.uuid] = Episode(
            uuid=turn.uuid,
            name=f"{turn.session}:{turn.seq}",
            content=turn.content,
            valid_at=turn.occurred_at,
            created_at=turn.recorded_at,
            source="message",
            description=f"{turn.source} {turn.session} {speaker}",
            facts=tuple(dict.fromkeys(facts)),
        )

    def tie(self, fact: Fact, turn: Turn, cites: Sequence[str], uses: Sequence[str]) -> Fact:
        """Tie a fact to its turn, the turns that it cites, and those whose words it uses."""
        others = [other for other in dict.fromkeys((*cites, *uses)) if other != turn.uuid]
        self.ties.update(dict.fromkeys((fact.uuid, turn.uuid, other) for other in others))
        for cited in cites:
            fact = self.support(fact, cited)
        self.put_fact(fact)
        return fact

    def support(self, fact: Fact, episode: str) -> Fact:
        """Return the fact with an episode among its supports."""
        return (
            fact if episode in fact.episodes else replace(fact, episodes=(*fact.episodes, episode))
        )
