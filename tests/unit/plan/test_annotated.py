"""Plans with annotated autoscalers, from manifests and from exports with their records."""

from __future__ import annotations

import json
from typing import Any

from support.annotated import TERMS, made_by_keda
from support.manifests import autoscaler, deployment, listed, node, variant
from support.plan_verb import Granted, Plan

from apiserver.kinds.decision_record import record_text

PRODUCT = "NVIDIA-A100-PCIE-80GB"
MODEL = TERMS["llm-d.ai/model-id"]
STATUS = {
    "desiredOptimizedAlloc": {"numReplicas": 1, "lastRunTime": "2026-01-01T12:00:00Z"},
    "decision": {
        "reason": "Steady",
        "message": "stays",
        "demand": {
            "requestsPerSecond": "20",
            "upperRequestsPerSecond": "20",
            "startSeconds": 60,
            "backlogRequests": 0,
        },
        "capacityPerReplica": "10",
        "capacitySource": "Learned",
    },
}


def annotated(name: str, **terms: str) -> dict[str, Any]:
    """Return an annotated HPA as in a file, of a model with its name."""
    value = autoscaler(name)
    value["metadata"] = {
        "name": name,
        "uid": name,
        "annotations": TERMS | {"llm-d.ai/model-id": name} | terms,
    }
    return value


def objects(*names: str) -> list[dict[str, Any]]:
    """Return a node, and a Deployment for each name."""
    room = {"apiVersion": "v1", "kind": "Node"} | node("n1", accelerators=8, product=PRODUCT)
    return [room, *(deployment(name, product=PRODUCT, accelerators=1) for name in names)]


def test_an_annotated_autoscaler_is_planned_with_its_published_demand(plan: Plan, granted: Granted) -> None:
    """The record is in the exported ConfigMap of its namespace; without one, demand can be stated."""
    value = annotated("chat")
    data = {"chat": record_text(value, {}, STATUS), "other": "{"}
    records = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "stowplan-decisions"},
        "data": data,
    }

    code, out, _ = plan("-f", "-", "-o", "json", given=listed(*objects("chat"), value, records))
    assert (code, granted(out)) == (0, {"chat": 2})

    stated = ("--demand", "chat=35", "--capacity", "chat=10")
    code, out, _ = plan("-f", "-", "-o", "json", *stated, given=listed(*objects("chat"), value))
    assert (code, granted(out)) == (0, {"chat": 4})


def test_a_scaled_object_is_planned_once(plan: Plan, granted: Granted) -> None:
    """The copy of KEDA is in exports, too."""
    scaled = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "chat", "annotations": TERMS},
        "spec": {"scaleTargetRef": {"name": "chat"}, "triggers": []},
    }
    copy = made_by_keda("chat", "chat")
    copy["metadata"] = {**copy["metadata"], "namespace": "default"}

    _, out, _ = plan("-f", "-", "-o", "json", given=listed(*objects("chat"), scaled, copy))
    assert granted(out) == {"chat": 1}


def test_the_copy_of_keda_alone_is_nothing_to_plan(plan: Plan) -> None:
    """An export without ScaledObjects has only the copies."""
    copy = made_by_keda("chat", "chat")
    copy["metadata"] = {**copy["metadata"], "namespace": "default"}

    code, _, err = plan("-f", "-", given=listed(*objects("chat"), copy))

    assert code == 2
    assert "and with KEDA also scaledobjects" in " ".join(err)


def test_what_is_wrong_is_told_with_the_kind_of_the_object(plan: Plan, granted: Granted) -> None:
    """The others are planned."""
    given = listed(
        *objects("chat", "code", "busy"),
        annotated("chat", **{"llm-d.ai/variant-cost": "-1"}),
        annotated("code", **{"llm-d.ai/model-id": ""}),
        annotated("lost"),
        variant("taken", scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "busy"}),
        annotated("busy"),
    )

    code, out, _ = plan("-f", "-", "-o", "json", given=given)
    said = json.loads(out)
    told = " ".join(said["warnings"])

    assert (code, granted(out)) == (1, {"chat": 1, "taken": 1})
    assert said["conclusion"] == "3 variants omitted: default/busy, default/code, default/lost"
    assert "HorizontalPodAutoscaler default/chat: metadata.annotations[llm-d.ai/variant-cost]" in told
    assert "HorizontalPodAutoscaler default/code is omitted: metadata.annotations[llm-d.ai/model-id]" in told
    assert "HorizontalPodAutoscaler default/lost is omitted: Deployment 'lost' does not exist" in told
    assert "HorizontalPodAutoscaler default/busy is omitted: VariantAutoscaling 'taken' already" in told
