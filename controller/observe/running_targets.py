"""Scale targets and accelerator types as their pods run, not as declared. Pure functions.

Admission plugins and mutating webhooks add tolerations, labels, node selectors and resources. New pods get
the same, so by the template alone, a plan would take nodes for unusable on which its pods run. What a
template has and its pods lack is newer than the pods, and counts. The type of an accelerator is that of the
nodes where pods run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from apiserver.schema.json import Json
from controller.observe.accelerators import CLAIMED, PRODUCT_LABELS, accelerators_of, product_of, short_name
from controller.observe.claim import Claim
from controller.observe.pods import is_present
from controller.observe.scales import ADDED_LABELS
from controller.observe.scheduling import node_affinity
from controller.observe.targets import REVISION_LABELS, ScaleTarget, TargetKind
from controller.planning.cluster import Node
from controller.planning.wording import count

_CONTAINERS: Final = ("containers", "initContainers")
_DEFAULT_TOLERATIONS: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
"""Added to every pod, with the effect NoExecute for some minutes: they concern no placement."""


def as_running(target: ScaleTarget, pods: Sequence[Json]) -> ScaleTarget:
    """Return a target with what all of its newest pods have, and what that adds to its template."""
    running = _newest(pods)
    if not running:
        return target
    spec, differences = dict(target.pod_spec), []
    if tolerations := _tolerations(spec, running):
        spec["tolerations"] = [*(spec.get("tolerations") or []), *tolerations]
        differences.append(
            f"toleration {', '.join(str(item.get('key') or 'of any taint') for item in tolerations)}"
        )
    labels = target.labels
    if target.key.kind is not TargetKind.LEADER_WORKER_SET:  # its controller sets these for each group
        differences += _add_placement(spec, running)
        labels, lacking = _labels(target, running)
        differences += [f"label {_pairs(lacking)}"] if lacking else []
    if not differences:
        return target
    difference = f"its pods have what the template lacks, and are planned with it: {'; '.join(differences)}"
    return replace(target, pod_spec=spec, labels=labels, difference=difference)


def _add_placement(spec: Json, running: Sequence[Json]) -> list[str]:
    """Add to a pod spec what else pods have of nodes, priority and accelerators; return it in words."""
    differences = []
    selector = spec.get("nodeSelector") or {}
    if added := _additions(selector, [pod["spec"].get("nodeSelector") or {} for pod in running]):
        spec["nodeSelector"] = {**selector, **added}
        differences.append(f"nodeSelector {_pairs(added)}")
    for name in ("affinity", "priorityClassName"):
        values = [pod["spec"].get(name) for pod in running]
        if values[0] and values[0] != spec.get(name) and all(value == values[0] for value in values):
            spec[name] = values[0]
            differences.append(name)
    held = {accelerators_of(pod["spec"]) for pod in running}
    if len(held) == 1 and held.isdisjoint({0, accelerators_of(spec)}):
        spec |= {name: running[0]["spec"].get(name) or [] for name in _CONTAINERS}
        spec[CLAIMED] = running[0]["spec"].get(CLAIMED) or 0
        differences.append(count(held.pop(), "accelerator"))
    return differences


def _newest(pods: Sequence[Json]) -> list[Json]:
    """Return the present pods of the newest revision that hold accelerators, or all of it if none does."""
    present = [pod for pod in pods if is_present(pod)]
    if not present:
        return []
    newest = _revision(max(present, key=lambda pod: pod["metadata"].get("creationTimestamp") or ""))
    revised = [pod for pod in present if _revision(pod) == newest]
    return [pod for pod in revised if accelerators_of(pod["spec"])] or revised


def _revision(pod: Json) -> tuple[str | None, ...]:
    labels = pod["metadata"].get("labels") or {}
    return tuple(labels.get(name) for name in sorted(REVISION_LABELS))


def _additions(own: Mapping[str, str], of_pods: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return what all pods have in common and a template has not, or otherwise."""
    shared = set(of_pods[0].items()).intersection(*(item.items() for item in of_pods))
    return dict(sorted(shared - own.items()))


def _tolerations(spec: Json, running: Sequence[Json]) -> list[Json]:
    """Return the tolerations that all pods have and the template lacks."""
    own = spec.get("tolerations") or []
    of_pods = [pod["spec"].get("tolerations") or [] for pod in running]
    return [
        item
        for item in of_pods[0]
        if item not in own
        and item.get("key") not in _DEFAULT_TOLERATIONS
        and all(item in others for others in of_pods)
    ]


def _labels(
    target: ScaleTarget, running: Sequence[Json]
) -> tuple[tuple[Mapping[str, str], ...], Mapping[str, str]]:
    """Return the labels of new pods, and those that their only template lacks."""
    if len(target.labels) != 1:
        return target.labels, {}
    of_pods = [pod["metadata"].get("labels") or {} for pod in running]
    added = {
        name: text for name, text in _additions(target.labels[0], of_pods).items() if name not in ADDED_LABELS
    }
    return ({**target.labels[0], **added},), added


def _pairs(items: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={text}" for name, text in items.items())


def with_type(
    claim: Claim, target: ScaleTarget, pods: Sequence[Json], nodes: Mapping[str, Node]
) -> tuple[Claim, str]:
    """Return a claim with the type that counts, and the contradiction to what it declares, if any.

    It is that of the nodes with accelerators on which its pods run, else that which they select; `nodes` are
    by name.
    """
    declared, selected = claim.accelerator, _selected_types(target.pod_spec)
    bound = (pod["spec"].get("nodeName") for pod in pods if is_present(pod) and accelerators_of(pod["spec"]))
    known = (nodes[name].accelerator for name in bound if name in nodes)
    running = Counter(filter(None, known))
    if not declared or declared in (running or selected or {declared}):
        return claim, ""
    actual = running.most_common(1)[0][0] if running else min(selected)
    if running:
        where = f"its pods run on {' and '.join(f'{number} {name}' for name, number in running.items())}"
    else:
        where = f"its pods select nodes with {' or '.join(sorted(selected))}"
    text = f"the accelerator is declared as {declared}, but {where}: {actual} is counted; correct it"
    return replace(claim, accelerator=actual), text


def _selected_types(pod_spec: Json) -> frozenset[str]:
    """Return the types that pods require of their nodes; empty if any will do."""
    if product := product_of(pod_spec.get("nodeSelector") or {}):
        return frozenset({product})
    types: set[str] = set()
    for term in node_affinity(pod_spec):
        named = [item for item in term if item.key in PRODUCT_LABELS and item.operator == "In"]
        if not named:
            return frozenset()
        types.update(map(short_name, named[0].values))
    return frozenset(types)
