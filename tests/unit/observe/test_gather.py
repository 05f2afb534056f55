"""Conversion of API objects to a snapshot: planned variants, and reasons for unplanned ones."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from support.gathering import A100, CHAT, NODE, NOW_SECONDS, gathered, key_of, placed, pod
from support.manifests import autoscaler, deployment, variant

from apiserver.schema.json import Json
from controller.observe.declarations import claims_of
from controller.observe.gather import PlanningTerms, engine_pods, models_by_target
from controller.observe.targets import TargetKey, TargetKind
from controller.planning.cluster import Budget, NodePool


def test_a_planned_variant_combines_all_objects_that_describe_it() -> None:
    """Its values come from its spec, its Deployment, autoscaler and pods, and from settings."""
    reference = {"name": "classes", "key": "premium"}
    value = placed(variant("chat", variantCost=None, accelerator="A100", sloClassRef=reference))

    seen = gathered(
        value,
        pods=(pod("chat-1", accelerators=2), pod("stranger", owner="")),
        report_age={("ns", "chat-1"): 7.5, ("ns", "stranger"): 3.0}.get,
    )
    (found,) = seen.snapshot.variants

    assert (found.accelerator, found.accelerators_per_replica) == ("A100", 2)
    assert (found.current_replicas, found.min_replicas, found.max_replicas) == (3, 1, 7)
    assert found.cost_per_replica == Decimal("80.00")
    assert found.priority == 2
    assert [(item.name, item.node, item.ready, item.report_age_seconds) for item in found.replicas] == [
        ("chat-1", "n1", True, 7.5)
    ]
    assert (found.capacity, seen.snapshot.loads) == (None, ())
    assert seen.observed[found.key].facts.max_num_seqs == 64


def test_accelerators_of_other_pods_are_counted_as_used_by_others() -> None:
    """Pods of planned variants do not count as others, and neither does a pod without a node."""
    pods = (pod("chat-1"), pod("stranger", owner="", accelerators=3), pod("pending", owner="", node=""))

    (node,) = gathered(placed(variant("chat")), pods=pods).snapshot.nodes

    assert (node.accelerator, node.accelerators_allocatable, node.accelerators_used_by_others) == (
        "A100",
        8,
        3,
    )
    assert [taint.key for taint in node.taints] == ["gpu"]
    assert node.schedulable


LEAVING = {
    "within its grace period": (59.0, "Running", 0),
    "60 s after its grace period": (60.0, "Running", 0),
    "stuck for more than 60 s": (61.0, "Running", 1),
    "stuck without processes": (61.0, "Failed", 0),
}


@pytest.mark.parametrize(("late_seconds", "phase", "held"), LEAVING.values(), ids=LEAVING.keys())
def test_a_pod_that_is_stuck_while_being_deleted_holds_accelerators(
    late_seconds: float, phase: str, held: int
) -> None:
    """The scheduler places nothing on its accelerators. Otherwise they are about to be free."""
    leaving = pod("chat-1")
    due = datetime.fromtimestamp(NOW_SECONDS - late_seconds, UTC)
    leaving["metadata"]["deletionTimestamp"] = f"{due:%Y-%m-%dT%H:%M:%SZ}"
    leaving["status"]["phase"] = phase

    found = gathered(placed(variant("chat")), pods=(leaving,)).snapshot

    assert found.variants[0].replicas == ()
    assert found.nodes[0].accelerators_used_by_others == held


def test_replicas_are_listed_in_removal_order() -> None:
    """With steering, pods of the node that becomes empty first lead; otherwise ReplicaSet order applies."""
    nodes = (NODE, NODE | {"metadata": NODE["metadata"] | {"name": "n2"}})
    pods = (pod("a"), pod("b"), pod("c", node="n2"))

    def names(terms: PlanningTerms) -> list[str]:
        found = gathered(placed(variant("chat")), pods=pods, nodes=nodes, terms=terms)
        assert [item["metadata"]["name"] for item in found.observed["ns", "chat"].pods] == [
            item.name for item in found.snapshot.variants[0].replicas
        ]
        return [item.name for item in found.snapshot.variants[0].replicas]

    assert names(PlanningTerms()) == ["c", "a", "b"]
    for terms in (PlanningTerms(steers_removal=False), PlanningTerms(unsteered=frozenset({"ns"}))):
        assert names(terms) == ["a", "b", "c"]


def test_the_snapshot_contains_which_pods_may_be_evicted() -> None:
    """Replicas of variants depend on disruption budgets, other pods on their annotation as well."""
    batch = pod("batch", owner="batch")
    batch["metadata"]["annotations"] = {"stowplan.dev/movable": "true"}
    budget: Json = {
        "metadata": {"namespace": "ns", "name": "all"},
        "spec": {"selector": {"matchLabels": {"pod-template-hash": "abc"}}},
        "status": {"disruptionsAllowed": 2},
    }

    found = gathered(placed(variant("chat")), pods=(pod("a"), batch), disruption_budgets=(budget,)).snapshot

    (chat,), (node,) = found.variants, found.nodes
    assert (chat.disruption_budget, chat.evictable_replicas) == ("all", 2)
    assert [(item.name, item.disruption_budget, item.evictable) for item in node.movable] == [
        ("batch", "all", 2)
    ]
    assert node.accelerators_used_by_others == 1


def test_a_node_with_implausibly_many_accelerators_is_omitted_and_reported() -> None:
    """A wrong value in one node does not stop planning."""
    huge = NODE | {
        "metadata": {"name": "huge", "labels": {}},
        "status": NODE["status"] | {"allocatable": {"nvidia.com/gpu": "1000000"}},
    }
    found = gathered(placed(variant("chat")), nodes=(NODE, huge))

    assert [node.name for node in found.snapshot.nodes] == ["n1"]
    assert found.problems == (
        "node huge is omitted: it reports 1000000 accelerators, and can have at most 10000; correct its"
        " status.allocatable",
    )


def test_the_older_of_two_variants_with_one_target_is_planned() -> None:
    """The younger variant is unplanned with reason TargetClaimed."""
    old = placed(variant("old", scaleTargetRef={"kind": "Deployment", "name": "chat"}))
    young = placed(variant("chat"), creationTimestamp="2026-01-02T00:00:00Z")

    found = gathered(young, old)

    assert [item.name for item in found.snapshot.variants] == ["old"]
    assert found.unplanned["ns", "chat"].reason == "TargetClaimed"


@pytest.mark.parametrize(
    ("since", "want"),
    [("2025-12-31T00:00:00Z", []), ("2026-01-01T00:00:00Z", []), ("2026-01-02T00:00:00Z", ["chat"])],
)
def test_a_variant_is_unplanned_if_a_binding_of_its_target_is_not_younger(
    since: str, want: list[str]
) -> None:
    """If both are of the same age, the binding wins, so that both controllers decide alike."""
    found = gathered(placed(variant("chat")), bound={key_of(CHAT): (since, ("ns", "b"))})

    assert [item.name for item in found.snapshot.variants] == want
    if not want:
        assert found.unplanned["ns", "chat"].reason == "TargetClaimed"
        assert "AutoscalingPolicyBinding 'b' is older" in found.unplanned["ns", "chat"].message


def test_the_oldest_variant_of_a_target_determines_its_model() -> None:
    """A wrong model in a younger duplicate does not affect the planned variant."""
    old = placed(variant("old", modelID="llama", scaleTargetRef={"kind": "Deployment", "name": "chat"}))
    young = placed(variant("chat", modelID="typo"), creationTimestamp="2026-01-02T00:00:00Z")
    other = placed(variant("set", modelID="x", scaleTargetRef={"kind": "StatefulSet", "name": "chat"}))

    assert models_by_target(claims_of((other, young, old))) == {
        TargetKey(TargetKind.DEPLOYMENT, "ns", "chat"): "llama",
        TargetKey(TargetKind.STATEFUL_SET, "ns", "chat"): "x",
    }


UNPLANNED = {
    "a missing Deployment": ({"kind": "Deployment", "name": "gone"}, "TargetNotFound"),
    "a missing StatefulSet": (
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x"},
        "TargetNotFound",
    ),
    "another kind": ({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "chat"}, "TargetNotSupported"),
    "another group": ({"apiVersion": "x.dev/v1", "kind": "Deployment", "name": "chat"}, "TargetNotSupported"),
}


@pytest.mark.parametrize(("target", "want"), UNPLANNED.values(), ids=UNPLANNED.keys())
def test_a_variant_with_an_invalid_target_is_unplanned_with_a_reason(target: Json, want: str) -> None:
    """Other variants are still planned."""
    found = gathered(placed(variant("odd", scaleTargetRef=target)), placed(variant("chat")))

    assert found.unplanned["ns", "odd"].reason == want
    assert [item.name for item in found.snapshot.variants] == ["chat"]


def test_a_cost_out_of_bounds_makes_only_its_own_variant_unplanned() -> None:
    """The message names the field and the bounds."""
    found = gathered(placed(variant("chat", variantCost="9" * 30)))

    assert found.unplanned["ns", "chat"].reason == "InvalidConfiguration"
    assert found.unplanned["ns", "chat"].message == (
        f"ns/chat: spec.variantCost: must be between 0 and 1000000000, was {'9' * 30}"
    )


MALFORMED: dict[str, Json] = {
    "no spec": {},
    "no target": {"spec": {"modelID": "m"}},
    "a target that is text": {"spec": {"modelID": "m", "scaleTargetRef": "chat"}},
    "no model": {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "chat"}}},
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_variant_does_not_affect_other_variants(body: Json) -> None:
    """Objects that bypassed admission may be malformed."""
    broken = {"metadata": {"name": "broken"}} | body

    found = gathered(placed(broken, creationTimestamp="2025-01-01T00:00:00Z"), placed(variant("chat")))

    assert [item.name for item in found.snapshot.variants] == ["chat"]
    assert found.unplanned["ns", "broken"].reason == "InvalidConfiguration"


def test_a_disabled_autoscaler_limits_its_variant_to_zero_replicas() -> None:
    """Scaling the target to zero by hand disabled it; the message contains how to enable it."""
    resting = placed(deployment("chat", product=A100, accelerators=2, replicas=0))
    condition = {"type": "ScalingActive", "status": "False", "reason": "ScalingDisabled"}
    switched_off = placed(autoscaler("chat")) | {"status": {"conditions": [condition]}}

    found = gathered(placed(variant("chat")), deployments=(resting,), autoscalers=(switched_off,))

    assert found.snapshot.variants[0].max_replicas == 0
    assert "scale it to 1" in found.observed["ns", "chat"].unheeded


def test_keda_starts_a_target_that_it_scaled_to_zero() -> None:
    """Its HorizontalPodAutoscaler is disabled at 0 replicas, and has a minimum of 1."""
    resting = placed(deployment("chat", product=A100, accelerators=2, replicas=0))
    condition = {"type": "ScalingActive", "status": "False", "reason": "ScalingDisabled"}
    made = placed(autoscaler("chat", most=7), labels={"scaledobject.keda.sh/name": "so"}) | {
        "status": {"conditions": [condition]}
    }
    spec = {"scaleTargetRef": {"name": "chat"}, "maxReplicaCount": 7}
    declared: Json = {"metadata": {"namespace": "ns", "name": "so"}, "spec": spec}

    found = gathered(
        placed(variant("chat")), deployments=(resting,), autoscalers=(made,), scaled_objects=(declared,)
    )

    (planned,) = found.snapshot.variants
    assert (planned.min_replicas, planned.max_replicas) == (0, 7)
    assert found.observed["ns", "chat"].unheeded == ""


def test_a_scaledobject_without_its_autoscaler_counts_as_well() -> None:
    """A file may contain the one without the other."""
    spec = {"scaleTargetRef": {"name": "chat"}, "minReplicaCount": 2, "maxReplicaCount": 7}
    declared: Json = {"metadata": {"namespace": "ns", "name": "so"}, "spec": spec}

    found = gathered(placed(variant("chat")), autoscalers=(), scaled_objects=(declared,))

    assert (found.snapshot.variants[0].min_replicas, found.snapshot.variants[0].max_replicas) == (2, 7)


def test_a_variant_without_an_autoscaler_is_planned_and_reported() -> None:
    """A component other than a HorizontalPodAutoscaler may read the metric."""
    found = gathered(placed(variant("chat")), autoscalers=())

    assert found.snapshot.variants[0].max_replicas is None
    assert "no HorizontalPodAutoscaler" in found.observed["ns", "chat"].unheeded


def test_annotations_and_node_affinity_are_part_of_the_planned_variant() -> None:
    """Annotations are those of the object, and node affinity is that of the pod template."""
    orders = {"stowplan.dev/paused": "true", "stowplan.dev/replicas": "2", "stowplan.dev/preemption": "Never"}
    picky = placed(deployment("chat", product=A100, accelerators=2))
    expression = {"key": "zone", "operator": "In", "values": ["a"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    picky["spec"]["template"]["spec"]["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}
    }

    value = placed(variant("chat"), annotations=orders)
    (found,) = gathered(value, deployments=(picky,)).snapshot.variants

    assert (found.is_paused, found.pinned_replicas, found.may_be_preempted) == (True, 2, False)
    assert [[item.key for item in term] for term in found.node_affinity] == [["zone"]]


def test_a_model_without_replicas_has_no_grace_rule() -> None:
    """A rule for such a model would start a replica."""
    terms = PlanningTerms(grace_seconds=600.0)
    resting = placed(deployment("chat", product=A100, accelerators=2, replicas=0))

    (rule,) = gathered(placed(variant("chat")), terms=terms).snapshot.models

    assert (rule.model_id, rule.idle_seconds, rule.grace_seconds) == ("meta/llama-3.1-8b", 40.0, 600.0)
    assert gathered(placed(variant("chat")), deployments=(resting,), terms=terms).snapshot.models == ()
    assert gathered(placed(variant("chat"))).snapshot.models == ()


def test_pods_with_a_part_of_an_accelerator_are_reported() -> None:
    """Planning knows no limit on how many of them fit."""
    parts = placed(deployment("chat", product=A100, accelerators=2, replicas=1))
    limits = parts["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    limits.clear()
    limits["nvidia.com/mig-1g.5gb"] = "1"

    (problem,) = gathered(placed(variant("chat")), deployments=(parts,)).problems

    assert problem.startswith("the pods of VariantAutoscaling ns/chat request nvidia.com/mig-1g.5gb, which")


def test_replicas_that_wait_in_vain_for_a_node_are_counted() -> None:
    """Plans then do not count on nodes to be added for them."""
    waiting = pod("chat-1", node="")
    waiting["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "lastTransitionTime": "1969-12-31T23:00:00Z"}
    ]

    terms = PlanningTerms(pools=(DECLARED,))

    (found,) = gathered(placed(variant("chat")), pods=(waiting,), terms=terms).snapshot.variants

    assert found.stalled_replicas == 1


DECLARED = NodePool(
    name="gpus", accelerator="A100", accelerators_per_node=8, price_per_node=Decimal(9), nodes_addable=1
)


def test_limits_and_node_pools_come_from_settings_and_from_the_cluster() -> None:
    """A declared node pool takes precedence over Karpenter's NodePool of the same name."""
    requirements = [
        {"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "In", "values": ["a100"]},
        {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "In", "values": ["8"]},
    ]
    spec = {"limits": {"nvidia.com/gpu": "80"}, "template": {"spec": {"requirements": requirements}}}
    pools = [{"metadata": {"name": name}, "spec": spec} for name in ("gpus", "more", "odd")]
    pools[2] = {"metadata": {"name": "odd"}, "spec": {"limits": {"nvidia.com/gpu": "8"}, "template": {}}}
    quota = {"metadata": {"namespace": "ns", "name": "q"}, "spec": {"hard": {"requests.nvidia.com/gpu": "6"}}}
    terms = PlanningTerms(pools=(DECLARED,), budgets=(Budget(name="b", cost_per_hour=Decimal(100)),))

    found = gathered(placed(variant("chat")), quotas=(quota,), node_pools=pools, terms=terms)

    assert [(pool.name, pool.nodes_addable) for pool in found.snapshot.pools] == [("gpus", 1), ("more", 10)]
    assert [(item.namespace, item.accelerators) for item in found.snapshot.quotas] == [("ns", 6)]
    assert [item.name for item in found.snapshot.budgets] == ["b"]
    assert [problem.split(":")[0] for problem in found.problems] == ["Karpenter NodePool odd"]


def test_pods_of_planned_targets_have_engines_whether_ready_or_not() -> None:
    """Other pods are not listed."""
    unready = pod("chat-2")
    unready["status"]["conditions"] = []
    pods = (pod("chat-1"), unready, pod("stranger", owner="other"))
    claims = claims_of([placed(variant("chat"))])

    assert {item["metadata"]["name"]: model for item, model in engine_pods(pods, claims)} == dict.fromkeys(
        ("chat-1", "chat-2"), "meta/llama-3.1-8b"
    )
