"""Objects that Kubernetes accepts, written by one tenant to stop or delay the plan of all others."""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable, Mapping
from typing import Final

import pytest
from support.gathering import A100, NODE, gathered, placed, pod
from support.manifests import autoscaler, deployment, variant
from support.workloads import leader_worker_set

from apiserver.schema.json import Json
from controller.observe.gather import GatherResult
from controller.planning.decision import VariantDecision
from controller.planning.inputs import Settings
from controller.planning.plan import plan

_MOST_CPU_SECONDS: Final = 2.0
"""CPU time of gathering and planning next to a hostile object. Without one, it is some milliseconds."""

_LONG: Final = "9" * 5000
_OWN: Final = {"labelSelector": {"matchLabels": {"app": "evil"}}, "whenUnsatisfiable": "DoNotSchedule"}


def evil(**pod_spec: object) -> Json:
    """Return the hostile tenant's Deployment, which has no replicas, with changes of its pod template."""
    made = placed(deployment("evil", product=A100, accelerators=1, replicas=0), namespace="evil")
    made["spec"]["template"]["spec"] |= pod_spec
    return made


def spread(**changes: object) -> Json:
    """Return the Deployment with one topology spread constraint."""
    return evil(topologySpreadConstraints=[{"topologyKey": "zone", "maxSkew": 1} | _OWN | changes])


def requiring(*demands: Json) -> Json:
    """Return the Deployment with required node affinity."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": [*demands]}]}
    return evil(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})


def greater_than(text: str) -> Json:
    """Return the Deployment for nodes with a rank above a number."""
    return requiring({"key": "rank", "operator": "Gt", "values": [text]})


def running(script: str) -> Json:
    """Return the Deployment with a shell script."""
    made = evil()
    made["spec"]["template"]["spec"]["containers"][0] |= {"command": ["sh", "-c"], "args": [script]}
    return made


def group_of(size: int) -> Json:
    """Return a LeaderWorkerSet without replicas."""
    made = leader_worker_set("evil", product=A100, accelerators=1, size=size, replicas=0)
    return placed(made, namespace="evil")


def holding(accelerators: str) -> Json:
    """Return a pod that its author assigned to a node, whatever the node has."""
    made = pod("evil", owner="", accelerators=1)
    made["metadata"] |= {"namespace": "evil"}
    made["spec"]["containers"] = [{"resources": {"requests": {"nvidia.com/gpu": accelerators}}}] * 50
    return made


MANY_TOLERATIONS: Final = [{"key": f"k{number}", "operator": "Exists"} for number in range(100_000)]
MANY_DEMANDS: Final = [
    {"key": "rank", "operator": "NotIn", "values": [f"x{number}"]} for number in range(10_000)
]
MANY_SPREADS: Final = [{"topologyKey": f"k{number}", "maxSkew": 1} | _OWN for number in range(10_000)]

WORKLOADS: Mapping[str, Callable[[], Json]] = {
    "maxSkew over zones is above a million": lambda: spread(maxSkew=1_000_001),
    "maxSkew over nodes is the largest integer": lambda: spread(
        topologyKey="kubernetes.io/hostname", maxSkew=2**31 - 1
    ),
    "minDomains is the largest integer": lambda: spread(minDomains=2**31 - 1),
    "a group has two billion pods": lambda: group_of(2_000_000_000),
    "a group has a million pods": lambda: group_of(1_000_000),
    "node affinity compares with a number of 5,000 digits": lambda: greater_than(_LONG),
    "node affinity compares with a digit that is no decimal": lambda: greater_than("²"),
    "node affinity compares with a negative sign only": lambda: greater_than("-"),
    "a script consists of one word of 800,000 characters": lambda: running("x" * 800_000),
    "a script has an open quote and the flag": lambda: running("--max-num-seqs '" + "x" * 800_000),
    "a hundred thousand tolerations": lambda: evil(tolerations=MANY_TOLERATIONS),
    "node affinity with ten thousand requirements": lambda: requiring(*MANY_DEMANDS),
    "node affinity with a hundred thousand values": lambda: requiring(
        {"key": "rank", "operator": "NotIn", "values": [str(number) for number in range(100_000)]}
    ),
    "ten thousand topologies to spread over": lambda: evil(topologySpreadConstraints=MANY_SPREADS),
    "ten thousand topologies to keep apart in": lambda: evil(
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": MANY_SPREADS}}
    ),
    "as many topologies as are planned": lambda: evil(topologySpreadConstraints=MANY_SPREADS[:400]),
    "the replicas are the largest integer": lambda: (
        evil() | {"spec": evil()["spec"] | {"replicas": 2**31 - 1}}
    ),
}


def victim(*, nodes: tuple[Json, ...], **world: object) -> tuple[VariantDecision, GatherResult]:
    """Return the decision about a variant, and what was gathered; measure the CPU time."""
    autoscalers = [placed(autoscaler("chat", least=1, most=7))]
    before_seconds = time.process_time()
    claims: tuple[Json, ...] = (placed(variant("chat")), *world.pop("claims", ()))  # type: ignore[misc]
    pods = (pod("chat-1"), *world.pop("pods", ()))  # type: ignore[misc]
    found = gathered(*claims, nodes=nodes, pods=pods, autoscalers=autoscalers, **world)  # type: ignore[arg-type]
    made = plan(found.snapshot, Settings())
    assert time.process_time() - before_seconds < _MOST_CPU_SECONDS
    (decision,) = [item for item in made.decisions if item.name == "chat"]
    return decision, found


@functools.cache
def ranked() -> tuple[Json, ...]:
    """Return a thousand nodes that have a rank."""
    nodes = [copy.deepcopy(NODE) for _ in range(1000)]
    for number, node in enumerate(nodes, start=1):
        node["metadata"]["name"] = f"n{number}"
        node["metadata"]["labels"] |= {"rank": "7", "kubernetes.io/hostname": f"n{number}"}
    return tuple(nodes)


@functools.cache
def undisturbed() -> VariantDecision:
    """Return the decision on these nodes without anything hostile."""
    return victim(nodes=ranked())[0]


@pytest.mark.parametrize("named", [True, False], ids=["a VariantAutoscaling names it", "nothing names it"])
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_a_hostile_workload_does_not_affect_the_plan_of_others(
    workload: Callable[[], Json], *, named: bool
) -> None:
    """It is planned, or set aside with a reason that names what is allowed."""
    other = workload()
    reference = {"apiVersion": other["apiVersion"], "kind": other["kind"], "name": "evil"}
    claim = placed(variant("evil", modelID="evil", scaleTargetRef=reference), namespace="evil")

    decision, found = victim(nodes=ranked(), claims=(claim,) if named else (), others=(other,))

    assert decision == undisturbed()
    planned = {variant.key for variant in found.snapshot.variants}
    assert (("evil", "evil") in planned | found.unplanned.keys()) is named


@pytest.mark.parametrize("accelerators", ["10001", "999999999999999999", "9E"])
def test_a_pod_that_holds_more_than_its_node_has_only_fills_that_node(accelerators: str) -> None:
    """Its author can assign a pod to any node; the kubelet refuses it, if there is one."""
    stranger = holding(accelerators)
    stranger["spec"]["nodeName"] = "n2"

    decision, _ = victim(nodes=ranked(), pods=(stranger,))

    assert decision == undisturbed()
