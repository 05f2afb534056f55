"""The accelerator type that counts: that of the nodes where pods run, not the declared one. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from apiserver.schema.json import Json
from controller.observe.accelerators import PRODUCT_LABELS, accelerators_of, product_of, short_name
from controller.observe.claim import Claim
from controller.observe.pods import is_present
from controller.observe.scheduling import node_affinity
from controller.observe.targets import Target
from controller.planning.cluster import Node


class ActualTypes:
    """The types of all nodes with accelerators."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._types = {node.name: node.accelerator for node in nodes}

    def counted(self, claim: Claim, target: Target, pods: Sequence[Json]) -> tuple[Claim, str]:
        """Return a claim with the type that counts, and the contradiction to what it declares, if any."""
        declared = claim.accelerator
        running, selected = self._running(pods), _selected_types(target.pod_spec)
        if not declared or declared in (running or selected or {declared}):
            return claim, ""
        actual = running.most_common(1)[0][0] if running else min(selected)
        if running:
            where = f"its pods run on {' and '.join(f'{number} {name}' for name, number in running.items())}"
        else:
            where = f"its pods select nodes with {' or '.join(sorted(selected))}"
        text = f"the accelerator is declared as {declared}, but {where}: {actual} is counted; correct it"
        return replace(claim, accelerator=actual), text

    def _running(self, pods: Sequence[Json]) -> Counter[str]:
        """Return how many pods with accelerators run on each known type."""
        bound = (
            pod["spec"].get("nodeName") for pod in pods if is_present(pod) and accelerators_of(pod["spec"])
        )
        return Counter(kind for name in bound if name and (kind := self._types.get(name)))


def _selected_types(pod_spec: Json) -> frozenset[str]:
    """Return the types that pods require of their nodes; empty if any will do."""
    if product := product_of(pod_spec.get("nodeSelector") or {}):
        return frozenset({product})
    found: set[str] = set()
    for term in node_affinity(pod_spec):
        named = [item for item in term if item.key in PRODUCT_LABELS and item.operator == "In"]
        if not named:
            return frozenset()
        found.update(map(short_name, named[0].values))
    return frozenset(found)
