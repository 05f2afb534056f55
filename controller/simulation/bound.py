"""An AutoscalingPolicy in closed loop: metrics are read from each engine, and HPAs follow the decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.policies.history import History
from controller.policies.measuring import Look, PodMemory, exposed_values
from controller.policies.policy import Binding, ScalingPolicy, Value, lone_binding
from controller.policies.sharing import (
    BindingDecision,
    BindingSeen,
    TargetSeen,
    binding_sentence,
    decide_binding,
)
from controller.simulation.autoscaler import Autoscaler
from controller.simulation.cluster import VirtualCluster
from controller.simulation.outcome import BindingCourse, BindingPoint, PolicyDecision
from controller.simulation.policies import chosen_variants
from controller.simulation.scenario import Scenario, VariantSetup
from controller.simulation.server import EngineCollector
from controller.sizing.records import SizingSettings


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
    binding: Binding, made: BindingDecision, counts: Sequence[int], seconds: float
) -> BindingPoint:
    """Return the record of a decision; `counts` are the current replicas of each target."""
    return BindingPoint(
        seconds=seconds,
        values={asked.metric: asked.total for asked in made.whole.recommendations},
        recommended=made.whole.wanted_replicas,
        replicas=sum(made.replicas),
        current_replicas=sum(counts),
        targets=made.replicas,
        in_panic=made.whole.panic_since_seconds is not None,
        limits=tuple(str(limit) for limit in made.whole.limits),
        sentence=binding_sentence(binding, made),
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

    def autoscaler(self, variant: VariantSetup) -> Autoscaler | None:
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
            before = BindingSeen(targets=tuple(seen[name] for name in target_names(binding)))
            made = decide_binding(
                self._policy,
                binding,
                self._histories[number],
                before,
                cluster.now_seconds,
                settings=self._settings,
            )
            self._histories[number] = made.history
            counts = [item.current_replicas for item in before.targets]
            point = binding_point(binding, made, counts, cluster.now_seconds - self._scenario.warm_up_seconds)
            points, decided = self._points[number], zip(target_names(binding), made.replicas, strict=True)
            published |= {name: float(replicas) for name, replicas in decided}
            if not points or points[-1].sentence != point.sentence:
                self._tell(cluster.now_seconds, target_names(binding), counts, point)
            points.append(point)
        return published

    def _tell(
        self, now_seconds: float, names: Sequence[str], counts: Sequence[int], point: BindingPoint
    ) -> None:
        self.decisions += [
            PolicyDecision(
                seconds=now_seconds,
                variant=name,
                replicas=replicas,
                current_replicas=count,
                sentence=f"{name}: {replicas}; {point.sentence}",
            )
            for name, replicas, count in zip(names, point.targets, counts, strict=True)
        ]

    def _observed_target(self, cluster: VirtualCluster, variant: str) -> TargetSeen:
        pods = [pod for pod in cluster.pods_of(variant) if pod.is_ready]
        return TargetSeen(
            current_replicas=cluster.replicas[variant],
            ready_replicas=len(pods),
            pods=tuple(self._values(cluster, pod.name) for pod in pods),
        )

    def _values(self, cluster: VirtualCluster, pod: str) -> Mapping[str, Value]:
        families = EngineCollector(cluster.server(cluster.pods[pod])).collect()
        look = Look(cluster.now_seconds, exposed_values(families, set(self._metrics)))
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
