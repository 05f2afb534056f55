"""An index of scale targets and the objects that scale them, for warnings about targets named twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from apiserver.kinds.autoscalers import Autoscaler, autoscaler_of
from apiserver.kinds.registry import find_kind

if TYPE_CHECKING:
    from apiserver.cluster.cache import Change
    from apiserver.schema.json import Json
    from apiserver.schema.kind import Reference

Claimant = tuple[str, str]
"""Kind and name of the object that scales a target."""

_Target = tuple[str, str, str, str]


class Claims:
    """Scale targets with their claimants, kept current by `take`."""

    def __init__(self) -> None:
        self._claimants: dict[_Target, set[Claimant]] = {}

    def take(self, kind: str, change: Change) -> None:
        """Apply a change to an object, both states reduced by `targets_only`."""
        namespace, name = change.key
        for target in _targets(change.old, namespace):
            claimants = self._claimants.get(target, set())
            claimants.discard((kind, name))
            if not claimants:
                self._claimants.pop(target, None)
        for target in _targets(change.new, namespace):
            self._claimants.setdefault(target, set()).add((kind, name))

    def others(self, reference: Reference, namespace: str, own: Claimant) -> Iterator[Claimant]:
        """Yield the other claimants of a target, sorted by kind and name."""
        target = (namespace, reference.group, reference.kind, reference.name)
        yield from sorted(self._claimants.get(target, set()) - {own})


class Autoscalers:
    """The HorizontalPodAutoscalers of all scale targets, kept current by `take`."""

    def __init__(self) -> None:
        self._records: dict[_Target, dict[str, Autoscaler]] = {}

    def take(self, change: Change) -> None:
        """Apply a change to an object, both states reduced by `autoscaler_only`."""
        namespace, name = change.key
        for target in _targets(change.old, namespace):
            known = self._records.get(target, {})
            known.pop(name, None)
            if not known:
                self._records.pop(target, None)
        if change.new is not None:
            for target in _targets(change.new, namespace):
                self._records.setdefault(target, {})[name] = change.new["autoscaler"]

    def of(self, reference: Reference, namespace: str) -> list[Autoscaler]:
        """Return those that scale a target, sorted by name."""
        records = self._records.get((namespace, reference.group, reference.kind, reference.name), {})
        return [records[name] for name in sorted(records)]


def autoscaler_only(value: Json) -> Json:
    """Reduce a HorizontalPodAutoscaler to its target and its record."""
    meant = value["spec"]["scaleTargetRef"]
    group = str(meant.get("apiVersion") or "").rpartition("/")[0]
    return {"targets": [(group, meant["kind"], meant["name"])], "autoscaler": autoscaler_of(value)}


def targets_only(group: str, kind: str) -> Callable[[Json], Json]:
    """Return the function that reduces an object of one of our kinds to its scale targets."""
    known = find_kind(group, kind)
    assert known is not None, f"{kind} of {group} is a kind of Stowplan"
    references = known.storage_version.references

    def reduce(value: Json) -> Json:
        try:
            named = list(references(value))
        except (KeyError, TypeError, AttributeError):
            named = []  # stored without admission, so its targets are unreadable
        return {
            "targets": [(item.group, item.kind, item.name) for item in named if item.is_scaled and item.name]
        }

    return reduce


def _targets(value: Json | None, namespace: str) -> Iterator[_Target]:
    for group, kind, name in value["targets"] if value else ():
        yield namespace, group, kind, name
