"""An AutoscalingPolicy in closed loop: metrics are read from each engine, and HPAs follow the decisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from controller.closedloop.decided import Decided, DecidedPoint, decided_point, target_names
from controller.closedloop.policy import Told
from controller.closedloop.rivals import chosen_variants
from controller.policies.history import History
from controller.policies.measuring import Look, PodMemory, exposed_values
from controller.policies.policy import Binding, BoundTarget, ScalingPolicy, Value, lone_binding
from controller.policies.sharing import BindingSeen, TargetSeen, decide_binding
from controller.simulation.exposition import EngineCollector
from controller.sizing.records import DEFAULT_SIZING, SizingSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.closedloop.autoscaler import Autoscaler
    from controller.closedloop.cluster import VirtualCluster
    from controller.closedloop.scenario import Scenario, VariantSetup


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyFile:
    """A policy with its binding; without a binding, it scales the first variant of each model."""

    policy: ScalingPolicy
    binding: Binding | None = None


def unbound_problem(found: PolicyFile, scenario: Scenario) -> str:
    """Return why a scenario lacks the targets of a binding; empty if it has them."""
    names = {variant.name for variant in scenario.variants}
    targets = found.binding.targets if found.binding else ()
    strangers = sorted(target.target.name for target in targets if target.target.name not in names)
    if not strangers:
        return ""
    return f"the binding scales {', '.join(strangers)}: variants are {', '.join(sorted(names))}"


@dataclass(kw_only=True)
class BoundPolicy:
    """Decides once per interval, by the same function as the controller."""

    scenario: Scenario
    file: PolicyFile
    name: str
    settings: SizingSettings = DEFAULT_SIZING
    told: list[Told] = field(default_factory=list)
    _points: dict[int, list[DecidedPoint]] = field(default_factory=dict)
    _histories: dict[int, History] = field(default_factory=dict)
    _memories: dict[str, PodMemory] = field(default_factory=dict)
    _said: dict[int, str] = field(default_factory=dict)
    _reported: set[str] | None = None

    @property
    def interval_seconds(self) -> float:
        """The controller's interval."""
        return self.settings.interval_seconds

    @property
    def decided(self) -> tuple[Decided, ...]:
        """The decisions for each binding; times are negative in the warm-up."""
        return tuple(
            Decided(
                targets=target_names(binding),
                is_alike=binding.is_alike,
                points=tuple(self._points.get(number, ())),
                unreported=self._unreported(),
            )
            for number, binding in enumerate(self._bindings())
        )

    def autoscaler(self, variant: VariantSetup) -> Autoscaler | None:
        """Return the HPA of a variant that is scaled, or None."""
        scaled = {target.target.name for binding in self._bindings() for target in binding.targets}
        return self.scenario.follower(variant) if variant.name in scaled else None

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Return the replicas of each variant: those decided for scaled ones, and 0 for the others."""
        published = dict.fromkeys(cluster.variants, 0.0)
        bindings = self._bindings()
        seen = {
            target.target.name: self._seen(cluster, target.target.name)
            for binding in bindings
            for target in binding.targets
        }
        self._memories = {name: item for name, item in self._memories.items() if name in cluster.pods}
        for number, binding in enumerate(bindings):
            here = tuple(seen[target.target.name] for target in binding.targets)
            found = decide_binding(
                self.file.policy,
                binding,
                self._histories.get(number, History()),
                BindingSeen(targets=here),
                cluster.now_seconds,
                settings=self.settings,
            )
            self._histories[number] = found.history
            counts = [item.current_replicas for item in here]
            point = decided_point(binding, found, counts, cluster.now_seconds - self.scenario.warm_up_seconds)
            self._points.setdefault(number, []).append(point)
            for target, count, before in zip(binding.targets, found.replicas, here, strict=True):
                published[target.target.name] = float(count)
                if point.sentence != self._said.get(number):
                    self._tell(cluster.now_seconds, target, count, before, point.sentence)
            self._said[number] = point.sentence
        return published

    def _tell(self, now: float, target: BoundTarget, count: int, seen: TargetSeen, text: str) -> None:
        self.told.append(
            Told(
                seconds=now,
                variant=target.target.name,
                replicas=count,
                current_replicas=seen.current_replicas,
                sentence=f"{target.target.name}: {count}; {text}",
            )
        )

    def _bindings(self) -> Sequence[Binding]:
        if self.file.binding is not None:
            return (self.file.binding,)
        chosen = chosen_variants(self.scenario)
        return [
            lone_binding(item.name, min_replicas=max(1, item.min_replicas), max_replicas=item.max_replicas)
            for item in self.scenario.variants
            if item.name in chosen
        ]

    def _seen(self, cluster: VirtualCluster, variant: str) -> TargetSeen:
        pods = [pod for pod in cluster.pods_of(variant) if pod.is_ready]
        return TargetSeen(
            current_replicas=cluster.replicas[variant],
            ready_replicas=len(pods),
            pods=tuple(self._values(cluster, pod.name) for pod in pods),
        )

    def _unreported(self) -> tuple[str, ...]:
        if self._reported is None:
            return ()
        names = (metric.name for metric in self.file.policy.metrics)
        return tuple(name for name in names if name not in self._reported)

    def _values(self, cluster: VirtualCluster, pod: str) -> Mapping[str, Value]:
        names = {metric.name for metric in self.file.policy.metrics}
        families = EngineCollector(cluster.server(cluster.pods[pod])).collect()
        look = Look(cluster.now_seconds, exposed_values(families, names))
        self._reported = (self._reported or set()) | look.exposed.keys()
        memory = self._memories[pod] = self._memories.get(pod, PodMemory()).with_look(look)
        return {name: Value(value=value) for name, value in memory.values(look).items()}
