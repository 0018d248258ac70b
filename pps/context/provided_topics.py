"""The interface of topics, which a feature provides: sections of packs, and finding topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from pps.context.lines import Line
from pps.core.errors import NotFound
from pps.core.recalled import Recall
from pps.recall.search import Sources


class TopicSections(Protocol):
    """Makes the sections of a pack that come from topics."""

    async def about(
        self, recall: Recall, session: str, wanted: Sequence[str]
    ) -> tuple[Recall, Mapping[str, Sequence[tuple[str, Line]]]]: ...


class TopicsOfMemory(Protocol):
    """The topics of one memory."""

    @property
    def injecting(self) -> TopicSections: ...

    def begin(self) -> None: ...

    async def stop(self) -> None: ...


MakeTopics: TypeAlias = Callable[[Sources, str, tuple[str, ...]], TopicsOfMemory]


class ProvidedTopics:
    """The topics of an entity, created when first needed; none while no feature provides them.

    Attributes:
        in_hooks: The sections in the packs of agents' hooks, by the settings.
    """

    def __init__(
        self,
        find: Callable[[], MakeTopics | None],
        sources: Sources,
        group: str,
        in_hooks: tuple[str, ...],
    ) -> None:
        self.in_hooks = in_hooks
        self._find = find
        self._sources = sources
        self._group = group
        self._made: TopicsOfMemory | None = None

    def current(self) -> Any:
        """Return the topics. NotFound while the feature that provides them is off."""
        topics = self._current()
        if topics is None:
            raise NotFound("feature")
        return topics

    async def about(
        self, recall: Recall, session: str, wanted: Sequence[str]
    ) -> tuple[Recall, Mapping[str, Sequence[tuple[str, Line]]]]:
        """Return a recall ordered by relevance, and the ids and lines of the wanted sections.

        Without topics the recall is unchanged and there is no section.
        """
        topics = self._current()
        if topics is None:
            return recall, {}
        return await topics.injecting.about(recall, session, wanted)

    def begin(self) -> None:
        """Start finding topics in the background, if a feature provides them."""
        topics = self._current()
        if topics is not None:
            topics.begin()

    async def stop(self) -> None:
        """Stop the background work."""
        if self._made is not None:
            await self._made.stop()

    def _current(self) -> TopicsOfMemory | None:
        make = self._find()
        if make is None:
            return None
        if self._made is None:
            self._made = make(self._sources, self._group, self.in_hooks)
        return self._made
