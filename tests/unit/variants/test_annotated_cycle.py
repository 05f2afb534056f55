"""Cycles with annotated autoscalers: records, events, and what the next leader continues from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from support.annotated import RecordServer, hpa
from support.cycle_stage import PRODUCT, REPLICAS, STEP, Stage
from support.manifests import node

from apiserver.cluster.resource import Resource
from apiserver.kinds.decision_record import read_record
from apiserver.schema.json import Json
from controller.observe.gather import World
from controller.variants.advisory import Scope


@dataclass
class AnnotatedStage(Stage):
    """The same models, scaled by annotated autoscalers instead of VariantAutoscalings."""

    server: RecordServer = field(default_factory=RecordServer)
    terms: Mapping[str, str] = field(default_factory=dict)
    """Further annotations of the loud one."""

    deleted: set[str] = field(default_factory=set)

    def world(self) -> World:
        """Return the content of the caches."""
        autoscalers = [
            hpa(
                name,
                terms={"llm-d.ai/model-id": name} | (dict(self.terms) if name == "loud" else {}),
                labels={"inference.optimization/acceleratorName": PRODUCT},
            )
            for name in REPLICAS
            if name not in self.deleted
        ]
        records = {namespace: dict(data) for namespace, data in self.server.data.items()}
        return replace(super().world(), autoscalings=(), autoscalers=autoscalers, records=records)

    async def apply(self, _resource: object, body: Json, **_options: object) -> Json:
        """Create the records of a namespace."""
        return await self.server.apply(_resource, body)

    async def patch_merge(self, _resource: object, name: str, change: Json, **options: object) -> Json:
        """Change the records of a namespace, or annotate an autoscaler."""
        resource, where = cast("Resource", _resource), str(options["namespace"])
        return await self.server.patch_merge(resource, name, change, namespace=where)

    async def delete(self, _resource: object, name: str, *, namespace: str) -> Json:
        """Delete the records of a namespace."""
        return await self.server.delete(_resource, name, namespace=namespace)

    def record(self, about: Json, *, note: str, **event: str) -> None:
        """Record an event."""
        assert about["kind"] == "HorizontalPodAutoscaler"
        super().record(about, note=note, **event)

    def status(self, name: str) -> Json:
        """Return the published status of an autoscaler; empty if there is none."""
        status: Json = read_record(self.server.data.get("ns", {}).get(name)).get("status", {})
        return status


async def test_annotated_autoscalers_are_decided_on_like_variant_autoscalings() -> None:
    """The numbers are published in records, and the events are about the autoscalers."""
    stage = AnnotatedStage()
    reconciler = stage.reconciler(Scope())
    for _ in range(7):
        result = await reconciler.cycle()
        stage.time += STEP

    decided = {name: stage.status(name)["desiredOptimizedAlloc"]["numReplicas"] for name in REPLICAS}
    assert decided == {"quiet": 1, "loud": 3}
    assert ("loud", "ScaleUp") in stage.reasons
    assert not result.unwritten
    assert stage.pulse.annotations()["stowplan.dev/unconfirmed"] == ""


async def test_the_next_leader_continues_from_what_was_published() -> None:
    """It uses the step times that were learned, and repeats no event."""
    stage = AnnotatedStage(node=node("n1", accelerators=8, product=PRODUCT))
    reconciler = stage.reconciler(Scope())
    for _ in range(7):
        await reconciler.cycle()
        stage.time += STEP
    stage.reasons.clear()

    next_leader = stage.reconciler(Scope())
    await next_leader.sample()
    stage.time += STEP
    await next_leader.cycle()

    assert stage.status("loud")["desiredOptimizedAlloc"]["numReplicas"] == 3
    assert stage.status("loud")["decision"]["capacitySource"] == "Learned"
    assert ("loud", "ScaleUp") not in stage.reasons


async def test_a_wrong_annotation_is_one_event_and_the_rest_is_planned() -> None:
    """A negative cost is ignored; the event is not repeated while nothing changes."""
    stage = AnnotatedStage(terms={"llm-d.ai/variant-cost": "-1"})
    reconciler = stage.reconciler(Scope())
    for _ in range(4):
        await reconciler.cycle()
        stage.time += STEP

    assert stage.reasons.count(("loud", "AnnotationNotUnderstood")) == 1
    assert "numReplicas" in stage.status("loud")["desiredOptimizedAlloc"]


async def test_an_autoscaler_without_a_model_gets_one_event_and_no_number() -> None:
    """The other one is planned."""
    stage = AnnotatedStage(terms={"llm-d.ai/model-id": ""})
    reconciler = stage.reconciler(Scope())
    for _ in range(3):
        await reconciler.cycle()
        stage.time += STEP

    assert stage.reasons.count(("loud", "Unplanned")) == 1
    assert "desiredOptimizedAlloc" not in stage.status("loud")
    assert "numReplicas" in stage.status("quiet")["desiredOptimizedAlloc"]


async def test_the_record_of_a_deleted_autoscaler_is_removed() -> None:
    """A record that was edited is written again."""
    stage = AnnotatedStage()
    reconciler = stage.reconciler(Scope())
    await reconciler.cycle()
    stage.deleted.add("loud")
    stage.server.data["ns"]["quiet"] = "{}"
    await reconciler.cycle()

    assert stage.server.data["ns"].keys() == {"quiet"}
    assert stage.status("quiet")["decision"]
