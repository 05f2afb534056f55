"""Other pods that a placement rule may select: those of other targets, and unplanned ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from apiserver.kinds.core.selecting import selects
from apiserver.schema.json import Json
from controller.observe.pods import is_present, target_of_pod
from controller.observe.targets import Target, TargetKey

_Labels = Mapping[str, str]
_Known = tuple[TargetKey | None, str, _Labels]
"""The target, its name for messages, and its labels."""


class Neighbours:
    """All labeled workloads by namespace: targets by their templates, other pods individually."""

    def __init__(self, targets: Sequence[Target], pods: Sequence[Json]) -> None:
        self._all: dict[str, list[_Known]] = defaultdict(list)
        self._by_label: dict[tuple[str, str, str], list[_Known]] = defaultdict(list)
        known = {target.key for target in targets}
        for target in targets:
            for labels in target.labels:
                self._add(target.key.namespace, (target.key, str(target.key), labels))
        seen: set[tuple[str, frozenset[tuple[str, str]]]] = set()
        for pod in pods:
            namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}
            looks = namespace, frozenset(labels.items())
            if is_present(pod) and looks not in seen and target_of_pod(pod) not in known:
                seen.add(looks)
                self._add(namespace, (None, f"Pod {namespace}/{pod['metadata']['name']}", labels))

    def selected(self, selector: Json, but: TargetKey) -> str:
        """Return the name of another workload that a selector selects in the target's namespace, or ""."""
        return next(
            (
                name
                for key, name, labels in self._candidates(selector, but.namespace)
                if key != but and selects(selector, labels)
            ),
            "",
        )

    def _candidates(self, selector: Json, namespace: str) -> Sequence[_Known]:
        """Return the candidates of a selector, looked up by one of its labels if it has any."""
        lists = [
            self._by_label.get((namespace, key, value), [])
            for key, value in (selector.get("matchLabels") or {}).items()
        ]
        return min(lists, key=len, default=self._all.get(namespace, []))

    def _add(self, namespace: str, known: _Known) -> None:
        self._all[namespace].append(known)
        for key, value in known[2].items():
            self._by_label[namespace, key, value].append(known)
