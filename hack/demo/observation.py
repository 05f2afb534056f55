"""What is seen at one time and over the whole demo; all but reading it is pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_in, accelerators_of, product_of
from controller.observe.claim import Claim, Claimant
from controller.observe.classes import class_of
from controller.observe.gather import World, claims_in
from controller.observe.pods import by_target, is_present, is_ready
from controller.observe.policies import Policies
from controller.observe.prices import accelerator_of, effective_cost
from controller.observe.targets import target_of
from controller.simulation.batch import CompletedRequest
from controller.simulation.outcome import ModelOutcome, model_outcome, reversals
from controller.simulation.scenario import ScenarioModel
from controller.simulation.workload import Request
from hack.demo.model_story import ModelStory


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedRequests:
    """All requests that arrived until the end, and those that were completed."""

    model: ScenarioModel
    requests: Sequence[Request]
    finished: Sequence[CompletedRequest]

    @property
    def outcome(self) -> ModelOutcome:
        """The numbers of missed targets."""
        return model_outcome(self.model, len(self.requests), self.finished)

    def first_tokens(self, from_seconds: float, to_seconds: float) -> tuple[int, int]:
        """Return the number of requests in [from, to) with the first token in time, and of all of them."""
        most = self.model.targets.ttft_seconds
        arrived = [r for r in self.requests if from_seconds <= r.arrival_us / 1e6 < to_seconds]
        in_time = sum(
            from_seconds <= done.request.arrival_us / 1e6 < to_seconds
            for done in self.finished
            if most is None or done.time_to_first_token_seconds <= most
        )
        return in_time, len(arrived)


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantView:
    """One variant: its replicas and the decision."""

    name: str
    shape: Literal["legacy", "current", "annotated"]
    accelerator: str
    accelerators_per_replica: int
    cost_per_replica: Decimal
    current_replicas: int
    """Replicas in the Deployment's spec."""

    placed_replicas: int
    """Replicas with pods bound to nodes, which incur costs."""

    ready_replicas: int
    desired_replicas: int | None
    """The published decision; None before the first one."""

    reason: str
    bound_by: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientView:
    """Measurements by the clients of one model."""

    requests_per_second: float
    ttft_p90_ms: float | None
    """90th percentile of the time to first token in milliseconds; None for too few samples."""

    unfinished_requests: int
    """Waiting or running requests."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelView:
    """One model: its service class, clients and variants."""

    model_id: str
    class_name: str
    priority: int
    ttft_target_ms: int | None
    clients: ClientView
    variants: tuple[VariantView, ...]

    @property
    def current_replicas(self) -> int:
        """Replicas of all variants."""
        return sum(variant.current_replicas for variant in self.variants)

    @property
    def is_on_target(self) -> bool:
        """Whether the time to first token is within its target; False if unknown."""
        measured, target = self.clients.ttft_p90_ms, self.ttft_target_ms
        return measured is not None and target is not None and measured <= target


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundView:
    """One target of a binding: its replicas and the decision."""

    name: str
    current_replicas: int
    desired_replicas: int | None
    """The published decision; None before the first one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingView:
    """One AutoscalingPolicyBinding."""

    name: str
    targets: tuple[BoundView, ...]
    is_placed: bool
    """Whether the plan has room for all required replicas."""

    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceleratorView:
    """One type of accelerator in the whole cluster."""

    name: str
    used: int
    total: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoObservation:
    """Everything at one time; `seconds` counts from the start of the load."""

    seconds: float
    models: tuple[ModelView, ...]
    """By priority, then by name."""

    accelerators: tuple[AcceleratorView, ...]
    bindings: tuple[BindingView, ...] = ()

    @property
    def variants(self) -> tuple[VariantView, ...]:
        """All variants of all models."""
        return tuple(variant for model in self.models for variant in model.variants)

    @property
    def cost_per_hour(self) -> Decimal:
        """Cost of all replicas that are bound to nodes."""
        return sum((v.cost_per_replica * v.placed_replicas for v in self.variants), start=Decimal(0))


_NOBODY = ClientView(requests_per_second=0.0, ttft_p90_ms=None, unfinished_requests=0)
_LOWEST_PRIORITY = 100


def observe(
    world: World,
    *,
    policies: Policies,
    clients: Mapping[str, ClientView],
    seconds: float,
    bindings: Sequence[Json] = (),
) -> DemoObservation:
    """Return the observation; a variant whose Deployment does not exist is left out."""
    claims, groups = claims_in(world), defaultdict[str, list[tuple[Claim, Claimant]]](list)
    claimants = {item.key: item for item in claims.claimants}
    for claim in claims.readable:
        if claim.target in world.targets:
            groups[claim.model_id].append((claim, claimants[claim.key]))
    models = [
        _model(model_id, group, world=world, policies=policies, client=clients.get(model_id, _NOBODY))
        for model_id, group in groups.items()
    ]
    return DemoObservation(
        seconds=seconds,
        models=tuple(sorted(models, key=lambda model: (model.priority, model.model_id))),
        accelerators=_accelerators(world),
        bindings=tuple(map(_binding, bindings)),
    )


def _binding(value: Json) -> BindingView:
    status = value.get("status") or {}
    placed = [item["status"] for item in status.get("conditions") or [] if item["type"] == "Placed"]
    return BindingView(
        name=value["metadata"]["name"],
        targets=tuple(
            BoundView(
                name=item["name"],
                current_replicas=item["currentReplicas"],
                desired_replicas=item.get("replicas"),
            )
            for item in status.get("targets") or []
        ),
        is_placed=placed == ["True"],
        message=(status.get("decision") or {}).get("message", ""),
    )


def _model(
    model_id: str,
    group: Sequence[tuple[Claim, Claimant]],
    *,
    world: World,
    policies: Policies,
    client: ClientView,
) -> ModelView:
    classes = (class_of(claim, policies) for claim, _ in group)
    best = min((item for item in classes if item), key=lambda item: item.priority, default=None)
    variants = (_variant(claim, claimant, world, policies) for claim, claimant in group)
    return ModelView(
        model_id=model_id,
        class_name=best.name if best else "",
        priority=best.priority if best else _LOWEST_PRIORITY,
        ttft_target_ms=best.ttft_ms.get(model_id) if best else None,
        clients=client,
        variants=tuple(sorted(variants, key=lambda variant: variant.name)),
    )


def _variant(claim: Claim, claimant: Claimant, world: World, policies: Policies) -> VariantView:
    scale_target = target_of(claim.target, world.targets[claim.target])
    decision = claimant.status.get("decision") or {}
    pods = by_target(world.pods).get(claim.target, ())
    is_legacy = "variantProfile" in claimant.value["spec"]
    return VariantView(
        name=claim.name,
        shape="annotated" if claimant.is_annotated else "legacy" if is_legacy else "current",
        accelerator=accelerator_of(claim, scale_target.pod_spec),
        accelerators_per_replica=scale_target.accelerators_per_replica,
        cost_per_replica=effective_cost(claim, scale_target, policies)[0],
        current_replicas=scale_target.replicas,
        placed_replicas=sum("nodeName" in pod["spec"] for pod in pods),
        ready_replicas=sum(map(is_ready, pods)),
        desired_replicas=(claimant.status.get("desiredOptimizedAlloc") or {}).get("numReplicas"),
        reason=decision.get("reason", ""),
        bound_by=decision.get("boundBy", ""),
        message=decision.get("message", ""),
    )


def _accelerators(world: World) -> tuple[AcceleratorView, ...]:
    types = {
        node["metadata"]["name"]: product_of(node["metadata"].get("labels") or {}) for node in world.nodes
    }
    total: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for node in world.nodes:
        total[types[node["metadata"]["name"]]] += accelerators_in(node["status"].get("allocatable") or {})
    for pod in world.pods:
        node_name = pod["spec"].get("nodeName")
        if node_name in types and is_present(pod):
            used[types[node_name]] += accelerators_of(pod["spec"])
    return tuple(
        AcceleratorView(name=name, used=used[name], total=total[name]) for name in sorted(total) if name
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ManifestRefusal:
    """The answer to a manifest that should be rejected."""

    manifest: str
    exit_code: int
    output: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessOutage:
    """The absence of one of our processes, in seconds after the start of the load."""

    component: str
    from_seconds: float
    to_seconds: float


@dataclass(slots=True)
class DemoHistory:
    """Observations in chronological order, and events."""

    observations: list[DemoObservation] = field(default_factory=list)
    refusals: list[ManifestRefusal] = field(default_factory=list)
    outages: list[ProcessOutage] = field(default_factory=list)
    model: ModelStory = field(default_factory=ModelStory)
    served: list[ServedRequests] = field(default_factory=list)
    """Results of each model's requests, by priority; empty until the end."""

    def between(self, from_seconds: float, to_seconds: float) -> list[DemoObservation]:
        """Return the observations in [from, to)."""
        return [o for o in self.observations if from_seconds <= o.seconds < to_seconds]

    def variant_names(self) -> list[str]:
        """Return the names of all variants ever observed, sorted."""
        return sorted({variant.name for o in self.observations for variant in o.variants})

    def reversals(self) -> dict[str, int]:
        """Return how often the replicas of each variant change direction."""
        return {
            name: reversals([view.current_replicas for _, view in self.of_variant(name)])
            for name in self.variant_names()
        }

    def of_variant(self, name: str) -> Iterator[tuple[float, VariantView]]:
        """Yield the times and views of one variant."""
        for observation in self.observations:
            for variant in observation.variants:
                if variant.name == name:
                    yield observation.seconds, variant


def model_view(observation: DemoObservation, model_id: str) -> ModelView | None:
    """Return the view of a model, or None if it was not there."""
    return next((model for model in observation.models if model.model_id == model_id), None)
