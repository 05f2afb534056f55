"""The interface of policies, HPAs on load, constant fleets, and AutoscalingPolicies in closed loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from controller.policies.history import History
from controller.policies.measuring import PodExposure, PodMemory, exposed_values
from controller.policies.policy import Binding, ScalingPolicy, Value, lone_binding
from controller.policies.sharing import (
    BindingObservation,
    SharedDecision,
    TargetObservation,
    binding_sentence,
    decide_binding,
)
from controller.simulation.autoscaler import SimulatedAutoscaler
from controller.simulation.cluster import VirtualCluster
from controller.simulation.outcome import BindingCourse, BindingPoint, PolicyDecision
from controller.simulation.scenario import Scenario, VariantSetup
from controller.simulation.server import EngineCollector
from controller.sizing.records import SizingSettings


class Policy(Protocol):
    """Publishes a metric per variant; it may have state, so create a new one for each run."""

    name: str
    decisions: list[PolicyDecision]

    @property
    def interval_seconds(self) -> float:
        """Seconds between two decisions. Metrics are published at HPA syncs, so that is the minimum."""

    def autoscaler(self, variant: VariantSetup) -> SimulatedAutoscaler | None:
        """Return the HPA that follows a variant's metric; None if it takes effect directly."""

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Return the current metrics by variant; a missing one is unavailable."""


def scaled_variants(scenario: Scenario, named: Sequence[str] = ()) -> frozenset[str]:
    """Return the variants that a policy scales: the named ones, and all of each other model and role."""
    pairs = {(item.model_id, item.profile.role) for item in scenario.variants if item.name in named}
    return frozenset(
        item.name
        for item in scenario.variants
        if item.name in named or (item.model_id, item.profile.role) not in pairs
    )


def chosen_variants(scenario: Scenario, named: Sequence[str] = ()) -> frozenset[str]:
    """Return one variant of each model and role: the named one, or the first."""
    named_variants = [item for item in scenario.variants if item.name in named]
    chosen = {
        (item.model_id, item.profile.role): item.name
        for item in (*reversed(scenario.variants), *named_variants)
    }
    return frozenset(chosen.values())


@dataclass(kw_only=True)
class LoadPolicy:
    """An HPA for each of some variants, on its running and waiting requests, or on the waiting ones only.

    `per_replica` is its target; other variants have their least replicas. Requests that no engine has are not
    visible to it, as in a real cluster.
    """

    scenario: Scenario
    per_replica: float
    scaled: frozenset[str]
    name: str = ""
    counts_running: bool = True
    decisions: list[PolicyDecision] = field(default_factory=list)

    @property
    def interval_seconds(self) -> float:
        """The sync period of HPAs, because they read the load directly."""
        return self.scenario.sync_seconds

    def autoscaler(self, variant: VariantSetup) -> SimulatedAutoscaler | None:
        """Return the HPA of a scaled variant. It keeps one replica, because without any there is no load."""
        if variant.name not in self.scaled:
            return None
        return SimulatedAutoscaler(
            behaviour=self.scenario.behaviour,
            min_replicas=max(1, variant.min_replicas),
            max_replicas=variant.max_replicas,
            target_average=self.per_replica,
        )

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Return the load of each scaled variant, and the least replicas of the others."""
        metrics = {
            name: 0.0 if name in self.scaled else float(item.min_replicas)
            for name, item in cluster.variants.items()
        }
        for pod in cluster.pods.values():
            if pod.is_ready and pod.deleted_seconds is None and pod.variant in self.scaled:
                server = cluster.server(pod)
                metrics[pod.variant] += server.waiting + (server.running if self.counts_running else 0)
        return metrics


@dataclass(kw_only=True)
class ConstantPolicy:
    """A fixed number of replicas of one variant per model, whatever the load; none of the others."""

    replicas: int
    scaled: frozenset[str]
    name: str = ""
    interval_seconds: float = 15.0
    decisions: list[PolicyDecision] = field(default_factory=list)

    def autoscaler(self, variant: VariantSetup) -> SimulatedAutoscaler | None:
        """Return None: published replicas take effect directly."""
        del variant
        return None

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Return the fixed numbers."""
        return {name: float(self.replicas * (name in self.scaled)) for name in cluster.variants}


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyFile:
    """A policy with its binding; without a binding, it scales the first variant of each model."""

    policy: ScalingPolicy
    binding: Binding | None = None


def unbound_problem(file: PolicyFile, scenario: Scenario) -> str:
    """Return why a scenario lacks the targets of a binding; empty if it has them."""
    names = {variant.name for variant in scenario.variants}
    strangers = sorted(set(target_names(file.binding)) - names) if file.binding else []
    if not strangers:
        return ""
    return f"the binding scales {', '.join(strangers)}: variants are {', '.join(sorted(names))}"


def target_names(binding: Binding) -> tuple[str, ...]:
    """Return the names of a binding's targets, in order."""
    return tuple(target.target.name for target in binding.targets)


def binding_point(
    binding: Binding, decision: SharedDecision, counts: Sequence[int], seconds: float
) -> BindingPoint:
    """Return the record of a decision; `counts` are the current replicas of each target."""
    return BindingPoint(
        seconds=seconds,
        values={item.metric: item.total for item in decision.whole.recommendations},
        recommended=decision.whole.wanted_replicas,
        replicas=sum(decision.replicas),
        current_replicas=sum(counts),
        targets=decision.replicas,
        in_panic=decision.whole.panic_since_seconds is not None,
        limits=tuple(str(limit) for limit in decision.whole.limits),
        sentence=binding_sentence(binding, decision),
    )


class BoundPolicy:
    """Decides once per interval, by the same function as the controller."""

    def __init__(self, scenario: Scenario, file: PolicyFile, *, name: str, settings: SizingSettings) -> None:
        self.name = name
        self.decisions: list[PolicyDecision] = []
        self.interval_seconds = settings.interval_seconds
        self._scenario = scenario
        self._policy = file.policy
        self._settings = settings
        self._bindings = _lone_bindings(scenario) if file.binding is None else [file.binding]
        self._histories = [History() for _ in self._bindings]
        self._points: list[list[BindingPoint]] = [[] for _ in self._bindings]
        self._memories: dict[str, PodMemory] = {}
        self._metrics = [metric.name for metric in file.policy.metrics]
        self._reported: set[str] | None = None
        """The metrics that any engine has reported; None as long as none was asked."""

    @property
    def courses(self) -> tuple[BindingCourse, ...]:
        """The decisions for each binding; times are negative in the warm-up."""
        reported = self._metrics if self._reported is None else self._reported
        return tuple(
            BindingCourse(
                targets=target_names(binding),
                is_alike=binding.is_alike,
                points=tuple(points),
                unreported=tuple(name for name in self._metrics if name not in reported),
            )
            for binding, points in zip(self._bindings, self._points, strict=True)
        )

    def autoscaler(self, variant: VariantSetup) -> SimulatedAutoscaler | None:
        """Return the HPA of a variant that is scaled, or None."""
        is_scaled = any(variant.name in target_names(binding) for binding in self._bindings)
        return self._scenario.follower(variant) if is_scaled else None

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Return the replicas of each variant: those decided for scaled ones, and 0 for the others."""
        published = dict.fromkeys(cluster.variants, 0.0)
        seen = {
            name: self._observed_target(cluster, name)
            for binding in self._bindings
            for name in target_names(binding)
        }
        self._memories = {name: item for name, item in self._memories.items() if name in cluster.pods}
        for number, binding in enumerate(self._bindings):
            before = BindingObservation(targets=tuple(seen[name] for name in target_names(binding)))
            decision = decide_binding(
                self._policy,
                binding,
                self._histories[number],
                before,
                cluster.now_seconds,
                settings=self._settings,
            )
            self._histories[number] = decision.history
            counts, points = [item.current_replicas for item in before.targets], self._points[number]
            point = binding_point(
                binding, decision, counts, cluster.now_seconds - self._scenario.warm_up_seconds
            )
            names = target_names(binding)
            published |= {name: float(count) for name, count in zip(names, decision.replicas, strict=True)}
            if not points or points[-1].sentence != point.sentence:
                self.decisions += [
                    PolicyDecision(
                        seconds=cluster.now_seconds,
                        variant=name,
                        replicas=replicas,
                        current_replicas=current,
                        sentence=f"{name}: {replicas}; {point.sentence}",
                    )
                    for name, replicas, current in zip(names, decision.replicas, counts, strict=True)
                ]
            points.append(point)
        return published

    def _observed_target(self, cluster: VirtualCluster, variant: str) -> TargetObservation:
        pods = [pod for pod in cluster.pods_of(variant) if pod.is_ready]
        return TargetObservation(
            current_replicas=cluster.replicas[variant],
            ready_replicas=len(pods),
            pods=tuple(self._values(cluster, pod.name) for pod in pods),
        )

    def _values(self, cluster: VirtualCluster, pod: str) -> Mapping[str, Value]:
        families = EngineCollector(cluster.server(cluster.pods[pod])).collect()
        look = PodExposure(cluster.now_seconds, exposed_values(families, set(self._metrics)))
        self._reported = (self._reported or set()) | look.exposed.keys()
        memory = self._memories[pod] = self._memories.get(pod, PodMemory()).with_look(look)
        return {name: Value(value=value) for name, value in memory.values(look).items()}


def _lone_bindings(scenario: Scenario) -> list[Binding]:
    """Return a binding of one target for each variant that a policy without a binding scales."""
    chosen = chosen_variants(scenario)
    return [
        lone_binding(item.name, min_replicas=max(1, item.min_replicas), max_replicas=item.max_replicas)
        for item in scenario.variants
        if item.name in chosen
    ]
