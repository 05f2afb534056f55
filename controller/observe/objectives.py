"""InferenceObjectives: the pods they apply to, and their conversion to planning priorities. Pure functions.

For an endpoint picker a higher number is more important; for planning, priority 1 is served first. Requests
without an objective have the number 0, and may go to any pool: so objectives of 0 or less change no pool's
priority.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.identity import key_of
from apiserver.kinds.inference.inferenceobjective import FORMER_POOL_GROUP, POOL_GROUP, POOL_KIND
from apiserver.schema.json import Json
from controller.observe.targets import ScaleTarget
from controller.planning.snapshot import LOWEST_PRIORITY

POOL_GROUPS: Final = (POOL_GROUP, FORMER_POOL_GROUP)
"""API groups of InferencePools, the current one first."""

Labels = Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Objective:
    """One objective, as it applies to the pods of its pool."""

    name: str
    pool: str
    number: int
    """The objective's own number; above 0."""

    priority: int
    """The corresponding planning priority."""

    def __str__(self) -> str:
        return f"InferenceObjective {self.name!r} ({self.number}) of InferencePool {self.pool!r}"


class Objectives:
    """The objectives of a cluster, by the pods that their pools select."""

    def __init__(
        self, objectives: Sequence[Json], pools: Sequence[Json], *, highest_priority: int = 1
    ) -> None:
        """Objectives get at best the priority `highest_priority`; 1 is the highest of all."""
        labels = {(_group(item), *key_of(item)): pool_labels(item) for item in pools}
        self._of_namespace: Mapping[str, list[tuple[Labels, Objective]]] = defaultdict(list)
        for item in objectives:
            namespace, name = key_of(item)
            group, pool = pool_of(item)
            selector, number = labels.get((group, namespace, pool)), number_of(item)
            if selector and number > 0:
                priority = max(highest_priority, LOWEST_PRIORITY - number)
                objective = Objective(name=name, pool=pool, number=number, priority=priority)
                self._of_namespace[namespace].append((selector, objective))

    def of(self, target: ScaleTarget, pods: Sequence[Json]) -> Objective | None:
        """Return the most important objective whose pool selects pods of a target, or None."""
        known = self._of_namespace.get(target.key.namespace)
        if known is None:
            return None
        # Template labels count, too: the target may have no pods at the moment.
        every = [*target.labels, *((pod["metadata"].get("labels") or {}) for pod in pods)]
        matching = [
            objective
            for selector, objective in known
            if any(selector.items() <= labels.items() for labels in every)
        ]
        return min(
            matching, key=lambda objective: (-objective.number, objective.name, objective.pool), default=None
        )


NO_OBJECTIVES: Final = Objectives((), ())
"""No objectives."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectiveRules:
    """Which objectives apply, and their highest priority."""

    everywhere: bool = False
    namespaces: frozenset[str] = frozenset()
    highest_priority: int = 1

    @property
    def are_in_force(self) -> bool:
        """Whether any objective may apply."""
        return self.everywhere or bool(self.namespaces)

    def applicable(self, objectives: Sequence[Json], pools: Sequence[Json]) -> Objectives:
        """Return those of the objectives that apply; `pools` are InferencePools of both groups."""
        if not self.are_in_force:
            return NO_OBJECTIVES
        applicable = [item for item in objectives if self.everywhere or key_of(item)[0] in self.namespaces]
        return Objectives(applicable, pools, highest_priority=self.highest_priority)


OBJECTIVES_IGNORED: Final = ObjectiveRules()
"""No objective applies."""


def pool_labels(pool: Json) -> Labels:
    """Return the labels by which an InferencePool of either group selects pods."""
    selector = (pool.get("spec") or {}).get("selector") or {}
    labels = selector.get("matchLabels", selector)
    return labels if isinstance(labels, dict) else {}


def pool_of(objective: Json) -> tuple[str, str]:
    """Return group and name of an objective's pool; empty if it refers to no InferencePool."""
    reference = (objective.get("spec") or {}).get("poolRef") or {}
    group = str(reference.get("group", POOL_GROUP))
    if reference.get("kind", POOL_KIND) != POOL_KIND or group not in POOL_GROUPS:
        return "", ""
    return group, str(reference.get("name", ""))


def number_of(objective: Json) -> int:
    """Return the number of an objective; 0 by default."""
    return int((objective.get("spec") or {}).get("priority") or 0)


def _group(pool: Json) -> str:
    return str(pool["apiVersion"]).rpartition("/")[0]
