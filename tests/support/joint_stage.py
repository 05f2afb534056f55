"""Bindings and VariantAutoscalings on the same nodes, with both reconcilers and their exchange."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from apiserver.cluster.client import Cluster
from apiserver.cluster.events import EventRecorder
from apiserver.schema.json import Json
from controller.bindings.autoscalingpolicybinding import BindingSettings
from controller.bindings.joint import Exchange
from controller.engines.scraping import ScrapeResult
from controller.observe.binding_targets import bound_targets
from controller.observe.gather import PlanningTerms, World
from controller.observe.objectives import NO_OBJECTIVES, Objectives
from controller.observe.policies import Policies, ServiceClass
from controller.observe.targets import TargetKey, TargetKind
from controller.planning.decision import Plan
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot
from controller.variants.advisory import Scope
from controller.variants.privileges import Privileges
from controller.variants.telemetry import CycleResult
from controller.variants.variantautoscaling import (
    CycleSettings,
    Tools,
    VariantAutoscalingReconciler,
)
from support.binding_stage import Stage, follower, metadata
from support.manifests import deployment, node

PRODUCTS = {"h100": "NVIDIA-H100-80GB-HBM3", "a100": "NVIDIA-A100-SXM4-80GB"}
EVERYWHERE = Scope(everywhere=True)
_PATIENCE_SECONDS = 60.0
_NO_PATIENCE_SECONDS = 0.001


PREMIUM = ServiceClass(name="premium", priority=1, ttft_ms={}, tpot_ms={})
POLICIES = Policies(classes={("classes", "premium"): PREMIUM})


@dataclass
class JointStage:
    """Deployments named after their accelerator, such as `h100` or `a100-other`, and nodes for them."""

    bindings: dict[str, Json]
    replicas: dict[str, int]
    loads: dict[str, float]
    room: dict[str, int]
    """Accelerators of each type, on one node."""

    autoscalings: list[Json] = field(default_factory=list)
    objectives: Objectives = NO_OBJECTIVES
    joint: Scope = EVERYWHERE
    accelerators: int = 1
    """Accelerators per replica."""

    scale_to_zero: bool = True
    fails: bool = False
    """Whether planning fails."""

    may_use: tuple[str, ...] | None = None
    """With tenants: users whose service classes and costs count."""

    policies: Policies = POLICIES
    planned: list[Snapshot] = field(default_factory=list)
    written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.exchange = Exchange()
        self.bound = Stage(
            bindings=self.bindings,
            replicas=self.replicas,
            loads=self.loads,
            autoscalers=[follower(name) for name in self.replicas],
            autoscalings=self.autoscalings,
            settings=BindingSettings(joint=self.joint),
            exchange=self.exchange,
        )
        self.variants = VariantAutoscalingReconciler(
            Tools(
                cluster=cast("Cluster", self),
                events=cast("EventRecorder", self),
                source=self,
                planner=self,
                world=self.world,
                policies=lambda: self.policies,
                objectives=lambda: self.objectives,
                now=self.bound.now,
                steady=self.bound.steady,
                exchange=self.exchange,
                privileges=None
                if self.may_use is None
                else Privileges(
                    cast("Cluster", self), namespace="stowplan-system", seconds=self.bound.steady
                ),
            ),
            CycleSettings(scale_to_zero=self.scale_to_zero, terms=PlanningTerms(steers_removal=False)),
        )

    def world(self) -> World:
        """Return the content of the caches."""
        pods = []
        for pod in self.bound.world().pods:
            kind = _kind(pod["metadata"]["name"])
            container = {"resources": {"requests": {"nvidia.com/gpu": self.accelerators}}}
            spec = {"nodeName": f"node-{kind}", "containers": [container if self.accelerators else {}]}
            pods.append(pod | {"spec": spec})
        return World(
            autoscalings=self.autoscalings,
            targets={
                TargetKey(TargetKind.DEPLOYMENT, "ns", name): deployment(
                    name, product=PRODUCTS[_kind(name)], accelerators=self.accelerators, replicas=count
                )
                | {"metadata": metadata(name)}
                for name, count in self.bound.replicas.items()
            },
            pods=pods,
            nodes=[
                node(f"node-{kind}", accelerators=count, product=PRODUCTS[kind])
                for kind, count in self.room.items()
            ],
            autoscalers=self.bound.autoscalers,
            bound=bound_targets(list(self.bindings.values())),
        )

    async def scrape(self, _asked: Sequence[Json]) -> ScrapeResult:
        """Return no readings: the loads of VariantAutoscalings are unknown, and their replicas stay."""
        return ScrapeResult(readings={}, failures={})

    async def solve(self, snapshot: Snapshot) -> Plan:
        """Return a plan, like the controller's solver process."""
        if self.fails:
            raise RuntimeError("planning fails")
        self.planned.append(snapshot)
        return plan(snapshot, Settings())

    async def create(self, _resource: object, body: Json, **_options: object) -> Json:
        """Answer a SubjectAccessReview about privileges."""
        return {"status": {"allowed": body["spec"]["user"] in (self.may_use or ())}}

    async def apply(self, _resource: object, body: Json, **_options: object) -> Json:
        """Store the status of a VariantAutoscaling."""
        self.written.append(body["metadata"]["name"])
        return body

    def record(self, about: Json, **event: str) -> None:
        """Record an event."""

    async def cycle(self, *, times: int = 1, follow: bool = False) -> CycleResult | None:
        """Run a cycle of the bindings with a plan in between, `times` times."""
        outcome = None
        for _ in range(times):
            self.exchange.patience_seconds = _NO_PATIENCE_SECONDS if self.fails else _PATIENCE_SECONDS
            deciding = asyncio.create_task(self.bound.cycle(follow=follow))
            before = self.exchange.take().number
            while not deciding.done() and self.exchange.take().number == before:  # noqa: ASYNC110 (threads run)
                await asyncio.sleep(0)
            outcome = None if self.fails else await self.variants.cycle()
            await deciding
        return outcome


def _kind(name: str) -> str:
    return name.split("-", maxsplit=1)[0]
