"""The virtual cluster: nodes, Deployments of engines, and their pods from creation to deletion.

A pod is bound when a node has room, and ready after its start-up time. A deleted pod gets no new requests: it
finishes those that it has, up to its grace period; the remaining ones are retried elsewhere.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_in, product_of, short_name
from controller.observe.pods import removal_order
from controller.simulation.fleet import Fleet
from controller.simulation.manifests import Manifests, VirtualPod
from controller.simulation.scenario import Scenario, VariantSetup
from controller.simulation.server import Server
from controller.simulation.workload import Request


@dataclass(kw_only=True, slots=True)
class SimulatedNode:
    """One node, with its free accelerators and its pods."""

    name: str
    accelerator: str
    free: int
    pods: Counter[str] = field(default_factory=Counter)
    """Number of pods of each variant."""

    is_lost: bool = False


class Places:
    """All schedulable nodes, sorted by name."""

    def __init__(self, nodes: Sequence[Json]) -> None:
        self._places = {
            node["metadata"]["name"]: SimulatedNode(
                name=node["metadata"]["name"],
                accelerator=product_of(node["metadata"].get("labels") or {}),
                free=accelerators_in((node.get("status") or {}).get("allocatable") or {}),
            )
            for node in sorted(nodes, key=lambda node: str(node["metadata"]["name"]))
            if not (node.get("spec") or {}).get("unschedulable")
        }

    def take(self, variant: VariantSetup) -> str | None:
        """Take a place for a replica and return the node, or None if there is none.

        Among nodes with room, the one with the fewest pods of the variant is chosen, because kube-scheduler
        spreads them.
        """
        kind, size = short_name(variant.accelerator), variant.accelerators_per_replica
        fitting = [
            place
            for place in self._places.values()
            if place.accelerator == kind and place.free >= size and not place.is_lost
        ]
        if not fitting:
            return None
        chosen = min(fitting, key=lambda place: place.pods[variant.name])
        chosen.free -= size
        chosen.pods[variant.name] += 1
        return chosen.name

    def is_lost(self, node: str) -> bool:
        """Return whether a node is away."""
        return node in self._places and self._places[node].is_lost

    def switch(self, node: str) -> None:
        """Take a node away, from which all replicas are released, or bring it back. Raises KeyError."""
        self._places[node].is_lost = not self._places[node].is_lost

    def release(self, node: str, variant: VariantSetup) -> None:
        """Release the place of a replica."""
        place = self._places[node]
        place.free += variant.accelerators_per_replica
        place.pods[variant.name] -= 1


_DRAIN_LOOK_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaCounts:
    """Replicas of one variant: requested, ready, starting, and all that hold accelerators."""

    spec: int
    ready: int
    starting: int
    held: int


class VirtualCluster:
    """Requested replicas of variants by name, and their pods by name, in order of creation.

    `requests` are those of each model, in order of arrival. Call `advance` before observing or changing the
    state at a time.
    """

    def __init__(
        self, scenario: Scenario, manifests: Manifests, requests: Mapping[str, Sequence[Request]]
    ) -> None:
        patience_seconds = scenario.patience_seconds
        self.fleet = Fleet(
            {model_id: iter(items) for model_id, items in requests.items()},
            patience_us=None if patience_seconds is None else round(patience_seconds * 1e6),
            routing=scenario.routing,
            seed=scenario.seed,
            pairs={variant.model_id for variant in scenario.variants if variant.profile.role},
        )
        self.manifests = manifests
        self.variants = {variant.name: variant for variant in scenario.variants}
        self.replicas = {variant.name: variant.initial_replicas for variant in scenario.variants}
        self.pods: dict[str, VirtualPod] = {}
        self.now_seconds = 0.0
        self.replica_seconds = dict.fromkeys(self.variants, 0.0)
        self._places = Places(manifests.nodes)
        self._switches = sorted(
            (scenario.warm_up_seconds + seconds, item.node)
            for item in scenario.outages
            for seconds in (item.from_seconds, item.to_seconds)
        )
        self._grace_seconds = scenario.grace_seconds
        self._seed = scenario.seed
        self._chance = random.Random(scenario.seed)  # noqa: S311 (not used for security)
        self._made = 0
        self._started = 0
        self._reconcile()
        for pod in self.pods.values():  # initial replicas have just become ready
            if pod.node is not None:
                started_seconds = -self.variants[pod.variant].start_up_seconds
                pod.created_seconds = pod.bound_seconds = started_seconds
                pod.starts_seconds = 0.0
        self._change()

    @property
    def _now_us(self) -> int:
        return round(self.now_seconds * 1e6)

    @property
    def nodes(self) -> list[Json]:
        """The nodes that exist now."""
        return [node for node in self.manifests.nodes if not self._places.is_lost(node["metadata"]["name"])]

    def pods_of(self, variant: str) -> list[VirtualPod]:
        """Return the pods of a variant that are not being deleted."""
        return [p for p in self.pods.values() if p.variant == variant and p.deleted_seconds is None]

    def server(self, pod: VirtualPod) -> Server:
        """Return the server of a ready pod."""
        return self.fleet.routers[self.variants[pod.variant].model_id].servers[pod.name]

    def counts(self, variant: str) -> ReplicaCounts:
        """Return the current replica counts of a variant."""
        pods = self.pods_of(variant)
        ready = sum(pod.is_ready for pod in pods)
        held = sum(p.node is not None for p in self.pods.values() if p.variant == variant)
        return ReplicaCounts(spec=self.replicas[variant], ready=ready, starting=len(pods) - ready, held=held)

    def scale(self, variant: str, replicas: int) -> None:
        """Set the requested replicas of a variant."""
        if self.replicas[variant] != replicas:
            self.replicas[variant] = replicas
            self._reconcile()

    def advance(self, until_seconds: float) -> None:
        """Process all events that are due by then, each at its time."""
        while (due_seconds := min(self._due_moments(), default=math.inf)) <= until_seconds:
            self._pass(due_seconds)
            self._change()
        self._pass(until_seconds)
        self.fleet.advance(round(until_seconds * 1e6))

    def _pass(self, until_seconds: float) -> None:
        elapsed = until_seconds - self.now_seconds
        if elapsed > 0:
            for pod in self.pods.values():
                if pod.node is not None:
                    self.replica_seconds[pod.variant] += elapsed
        self.now_seconds = max(self.now_seconds, until_seconds)

    def _due_moments(self) -> Iterator[float]:
        for seconds, _ in self._switches[:1]:
            yield seconds
        for pod in self.pods.values():
            if pod.deleted_seconds is not None:
                end_seconds = pod.deleted_seconds + self._grace_seconds
                yield min(end_seconds, self.now_seconds + _DRAIN_LOOK_SECONDS)
            elif pod.starts_seconds is not None and not pod.is_ready:
                yield pod.starts_seconds

    def _change(self) -> None:
        """Lose or restore the nodes, and start and drain the pods that are due now."""
        while self._switches and self._switches[0][0] <= self.now_seconds:
            self._switch(self._switches.pop(0)[1])
        for pod in list(self.pods.values()):
            if pod.deleted_seconds is not None:
                self._drain(pod, pod.deleted_seconds)
            elif not pod.is_ready and pod.starts_seconds is not None:
                self._start(pod, pod.starts_seconds)

    def _switch(self, node: str) -> None:
        """Lose a node with its pods, or restore it if it was lost."""
        for pod in [pod for pod in self.pods.values() if pod.node == node]:
            self._remove(pod)
        self._places.switch(node)
        self._reconcile()

    def _start(self, pod: VirtualPod, starts_seconds: float) -> None:
        if starts_seconds <= self.now_seconds:
            pod.is_ready = True
            self._started += 1
            seed = self._seed * 100_000 + self._started
            server = Server(self.variants[pod.variant].profile, now_us=self._now_us, seed=seed)
            self.fleet.join(pod.name, server, now_us=self._now_us)

    def _drain(self, pod: VirtualPod, deleted_seconds: float) -> None:
        is_over = self.now_seconds >= deleted_seconds + self._grace_seconds
        if pod.is_ready:
            self.fleet.catch_up(self._now_us)
            if not is_over and not self.server(pod).is_idle:
                return
        self._remove(pod)
        self._bind()

    def _remove(self, pod: VirtualPod) -> None:
        """End a pod; requests that it still has are retried elsewhere."""
        variant = self.variants[pod.variant]
        if pod.is_ready:
            self.fleet.catch_up(self._now_us)
            self.fleet.leave(pod.name, model_id=variant.model_id, now_us=self._now_us)
        del self.pods[pod.name]
        if pod.node is not None:
            self._places.release(pod.node, variant)

    def _reconcile(self) -> None:
        """Create and delete pods until each variant has the requested number."""
        for name, variant in self.variants.items():
            pods = self.pods_of(name)
            excess = len(pods) - self.replicas[name]
            for pod in self._removal_order(pods)[: max(0, excess)]:
                self._delete(pod, variant)
            for _ in range(-excess):
                self._made += 1
                new = f"{name}-0000000000-{self._made:05d}"
                self.pods[new] = VirtualPod(name=new, variant=name, created_seconds=self.now_seconds)
        self._bind()

    def _removal_order(self, pods: list[VirtualPod]) -> list[VirtualPod]:
        """Return pods in the order in which a ReplicaSet deletes them."""
        if not pods:
            return []
        deployment = self.manifests.variants[pods[0].variant].deployment
        written = removal_order([pod.manifest(deployment) for pod in pods])
        return [self.pods[item["metadata"]["name"]] for item in written]

    def _delete(self, pod: VirtualPod, variant: VariantSetup) -> None:
        pod.deleted_seconds = self.now_seconds
        if pod.is_ready:
            self.fleet.cordon(pod.name, model_id=variant.model_id, now_us=self._now_us)
        self._drain(pod, self.now_seconds)

    def _bind(self) -> None:
        for pod in self.pods.values():
            if pod.node is not None:
                continue
            variant = self.variants[pod.variant]
            pod.node = self._places.take(variant)
            if pod.node is not None:
                jitter_seconds = variant.start_up_jitter_seconds
                late_seconds = self._chance.uniform(-jitter_seconds, jitter_seconds)
                pod.bound_seconds = self.now_seconds
                pod.starts_seconds = self.now_seconds + max(0.0, variant.start_up_seconds + late_seconds)
