"""Bindings with direct scaling, in memory: scales with resource versions, and permissions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.resource import AUTOSCALING_POLICY_BINDINGS, DEPLOYMENTS, Resource
from apiserver.kinds.authorship import WRITTEN_BY, record_of
from apiserver.schema.json import Json
from controller.bindings.autoscalingpolicybinding import BindingSettings
from controller.bindings.scaling import DirectScaler, ScalingTools
from controller.variants.advisory import Scope
from support.binding_stage import Stage, binding

ANN: Json = {"username": "ann", "groups": ["devs"]}


def written_by_ann(name: str = "b", target: str = "a", **annotations: str) -> Json:
    """Return a binding that ann wrote."""
    return binding(name, target, annotations={WRITTEN_BY: record_of(ANN)} | annotations)


@dataclass
class DirectStage(Stage):
    """A stage with scales; writes are recorded as `a: 2 -> 3`, and dry runs in parentheses."""

    bindings: dict[str, Json] = field(default_factory=lambda: {"b": written_by_ann()})
    autoscalers: list[Json] = field(default_factory=list)
    settings: BindingSettings = field(
        default_factory=lambda: BindingSettings(direct=Scope(namespaces=frozenset({"ns"})))
    )
    scales: list[str] = field(default_factory=list)
    refusals: dict[str, ClusterError] = field(default_factory=dict)
    """Errors by call: `get b`, `review`, `read a`, `write a`."""

    may_scale: set[tuple[str, str]] = field(default_factory=lambda: {("ann", "a"), ("ann", "c")})
    """Pairs of user and target."""

    leads: bool = True
    meanwhile: Callable[[], None] = lambda: None
    """Called between reading a scale and writing it."""

    notes: list[str] = field(default_factory=list)
    version: int = 1

    def scaler(self) -> DirectScaler:
        """Return the direct scaler of a process that just became leader."""
        return DirectScaler(
            ScalingTools(
                cluster=cast("Cluster", self),
                events=cast("EventRecorder", self),
                scalable=self.scalable,
                is_leading=lambda: self.leads,
                namespace="inference",
            )
        )

    async def scalable(self, _api_version: str, kind: str) -> Resource | None:
        """Return the resource of Deployments."""
        return DEPLOYMENTS if kind == "Deployment" else None

    async def get(self, resource: object, name: str, **_options: object) -> Json:
        """Return a stored binding, or a scale."""
        if resource is AUTOSCALING_POLICY_BINDINGS:
            self._called(f"get {name}")
            return self.bindings[name]
        self._called(f"read {name}")
        return {
            "metadata": {"namespace": "ns", "name": name, "resourceVersion": str(self.version)},
            "spec": {"replicas": self.replicas[name]} if self.replicas[name] else {},
        }

    async def create(self, _resource: object, body: Json, **_options: object) -> Json:
        """Answer a SubjectAccessReview about scaling."""
        self._called("review")
        asked = body["spec"]["resourceAttributes"]
        assert (asked["verb"], asked["resource"], asked["subresource"]) == ("update", "deployments", "scale")
        return {"status": {"allowed": (body["spec"]["user"], asked["name"]) in self.may_scale}}

    async def replace(self, _resource: object, scale: Json, *, dry_run: bool, **_options: object) -> Json:
        """Write a scale if its resource version is current."""
        name, replicas = scale["metadata"]["name"], scale["spec"]["replicas"]
        self._called(f"write {name}")
        self.meanwhile()
        if scale["metadata"]["resourceVersion"] != str(self.version):
            raise Conflict("modified")
        if dry_run:
            self.scales.append(f"({name}: {replicas})")
            return scale
        self.scales.append(f"{name}: {self.replicas[name]} -> {replicas}")
        self.replicas[name] = replicas
        self.version += 1
        return scale

    def record(self, about: Json, **event: str) -> None:
        """Record an event."""
        super().record(about, **event)
        if event["reason"] == "Scaled":
            self.notes.append(event["note"])

    def scaled_by_somebody(self, name: str, replicas: int) -> None:
        """Scale a target by hand."""
        self.replicas[name] = replicas
        self.version += 1

    def _called(self, call: str) -> None:
        if call in self.refusals:
            raise self.refusals[call]
