"""An index of cached objects by group: each change concerns one group, and a scan of all objects is slow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from apiserver.cluster.cache import Change
from apiserver.schema.json import Json

G = TypeVar("G")
K = TypeVar("K")


class Grouped(Generic[G, K]):
    """Objects by a group that they belong to, and by a key within it; `place` returns both."""

    def __init__(self, place: Callable[[Json], tuple[G, K]]) -> None:
        self._place = place
        self._items: dict[G, dict[K, Json]] = {}

    def of(self, group: G) -> Mapping[K, Json]:
        """Return the objects of a group."""
        return self._items.get(group, {})

    def take(self, change: Change) -> None:
        """Apply a change of one object; one that stays in its place keeps its position among the others."""
        new = None if change.new is None else self._place(change.new)
        if change.old is not None and (old := self._place(change.old)) != new:
            group, key = old
            known = self._items[group]
            del known[key]
            if not known:
                del self._items[group]
        if change.new is not None and new is not None:
            group, key = new
            self._items.setdefault(group, {})[key] = change.new
