"""Where requests for a model are visible while it has no replicas: pods in front of it, or Prometheus.

An annotation names the source. Without one, Prometheus is asked for the queue that an endpoint picker of the
Inference Extension, or of llm-d, keeps for a pool (flow control).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.activity import ANNOTATION, ActivitySeries
from apiserver.kinds.identity import Key, key_of
from apiserver.schema.json import Json, as_object
from controller.engines.endpoints import AnySource, PickerQueue
from controller.observe.claim import Claim
from controller.observe.gather import World
from controller.observe.objectives import pool_labels
from controller.observe.pods import is_ready

UNSEEN: Final = (
    "without replicas, it is not visible whether requests wait for the model, so it stays at 0: set the"
    f" annotation {ANNOTATION}, or prometheus.url of the controller if the queues of an endpoint picker with"
    " flow control are there"
)
"""Why a model without replicas and without a source stays at 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchedModel:
    """The sources of one model, each with the ready pods that expose it."""

    sources: tuple[tuple[AnySource, tuple[Json, ...]], ...] = ()


def watched_models(
    claims: Iterable[Claim], world: World, *, may_scale_to_zero: bool, has_prometheus: bool
) -> Mapping[Key, WatchedModel]:
    """Return the sources of each model that may scale to zero, as its owners name them, else the queues."""
    by_model: dict[Key, list[Claim]] = defaultdict(list)
    pods: dict[str, list[Json]] = {}
    for claim in claims:
        if not claim.is_bound and (may_scale_to_zero or claim.may_scale_to_zero):
            by_model[claim.model].append(claim)
            if isinstance(claim.orders.activity, ActivitySeries):
                pods[claim.owner.namespace] = []
    for pod in world.pods if pods else ():
        if (own_pods := pods.get(pod["metadata"]["namespace"])) is not None:
            own_pods.append(pod)

    def sources_of(model: Key, own: Sequence[Claim]) -> WatchedModel:
        named: list[AnySource] = [item.orders.activity for item in own if item.orders.activity is not None]
        if not named and has_prometheus:
            pools = frozenset(_pools(own, world))
            named.append(PickerQueue(namespace=model[0], model_id=model[1], pools=pools))
        distinct = [source for place, source in enumerate(named) if source not in named[:place]]
        return WatchedModel(
            sources=tuple((source, pods_in_front(source, pods.get(model[0], ()))) for source in distinct)
        )

    return {model: sources_of(model, own) for model, own in by_model.items()}


def pods_in_front(source: AnySource | None, pods: Sequence[Json]) -> tuple[Json, ...]:
    """Return the ready pods of a source, among those of a namespace."""
    if not isinstance(source, ActivitySeries):
        return ()
    labels_of_source = source.labels.items()
    return tuple(
        pod
        for pod in pods
        if labels_of_source <= (pod["metadata"].get("labels") or {}).items() and is_ready(pod)
    )


def _pools(claims: Sequence[Claim], world: World) -> set[str]:
    """Return the names of the InferencePools that select pods of the claims' targets."""
    namespace = claims[0].model[0]
    own = [
        (key_of(pool)[1], pool_labels(pool)) for pool in world.inference_pools if key_of(pool)[0] == namespace
    ]
    targets = [world.targets.get(claim.target) or {} for claim in claims] if own else []
    every = [labels for target in targets for labels in _template_labels(target)]
    return {
        name
        for name, labels_of_source in own
        for labels in every
        if labels_of_source and labels_of_source.items() <= labels.items()
    }


def _template_labels(target: Json) -> Iterator[Json]:
    spec = as_object(target.get("spec"))
    group = as_object(spec.get("leaderWorkerTemplate"))
    for template in (spec.get("template"), group.get("leaderTemplate"), group.get("workerTemplate")):
        yield as_object(as_object(as_object(template).get("metadata")).get("labels"))
