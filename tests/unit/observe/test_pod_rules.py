"""Scheduling rules of pod templates: those that a plan supports, and reports on those that it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from support.manifests import deployment
from support.workloads import leader_worker_set, stateful_pod

from apiserver.schema.json import Json
from controller.observe.rules import HOSTNAME, NO_RULES, Scene, TargetRules, pod_rules
from controller.observe.targets import ScaleTarget, TargetKey, TargetKind, target_of
from controller.planning.pod_rules import MostPerNode, PodRules, Spread

L4 = "NVIDIA-L4"
CHAT = TargetKey(TargetKind.DEPLOYMENT, "ns", "chat")
CODE = TargetKey(TargetKind.DEPLOYMENT, "ns", "code")
ZONE = "topology.kubernetes.io/zone"
SAME: Json = {"matchLabels": {"app": "chat"}}
"""Selects the pods of `chat` only."""

ANYBODY: Json = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}


def node(name: str, zone: str, accelerators: int = 8, product: str = L4) -> Json:
    """Return a node; one without accelerators has no product either."""
    labels = {HOSTNAME: name, ZONE: zone} | ({"nvidia.com/gpu.product": product} if accelerators else {})
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"nvidia.com/gpu": str(accelerators)}},
    }


TWO_ZONES = (node("n1", "a"), node("n2", "b"))


def constraint(key: str = ZONE, selector: Json | None = SAME, **fields: object) -> Json:
    """Return a topology spread constraint that must not be violated."""
    selected = {} if selector is None else {"labelSelector": selector}
    return {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"} | selected | fields


def repulsion(*terms: Json) -> Json:
    """Return required pod anti-affinity."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [*terms]}}


def term(key: str, selector: Json | None = SAME, **fields: object) -> Json:
    """Return a term of pod anti-affinity."""
    return {"topologyKey": key} | ({} if selector is None else {"labelSelector": selector}) | fields


def chat(*, anywhere: bool = False, **spec: object) -> ScaleTarget:
    """Return the target; with `anywhere`, its pods have no node selector."""
    manifest = deployment("chat", product=L4, accelerators=2)
    if anywhere:
        del manifest["spec"]["template"]["spec"]["nodeSelector"]
    manifest["spec"]["template"]["spec"] |= spec
    return target_of(CHAT, manifest)


def read(
    target: ScaleTarget, nodes: Sequence[Json] = TWO_ZONES, pods: Sequence[Json] = (), *, others: bool = True
) -> TargetRules:
    """Return the target's rules; with `others`, Deployment `code` is in the same namespace."""
    code = target_of(CODE, deployment("code", product=L4, accelerators=1))
    targets = {target.key: target} | ({CODE: code} if others else {})
    return pod_rules(target, "L4", Scene(nodes, targets, pods))


def spread(*constraints: Json, anywhere: bool = False) -> ScaleTarget:
    """Return the target with topology spread constraints."""
    return chat(anywhere=anywhere, topologySpreadConstraints=[*constraints])


def apart(*terms: Json) -> ScaleTarget:
    """Return the target with required pod anti-affinity."""
    return chat(affinity=repulsion(*terms))


def planned(*, spread: Spread | None = None, most_per_node: int | None = None) -> TargetRules:
    """Return rules that are planned completely."""
    apart = MostPerNode(pods=most_per_node) if most_per_node else None
    return TargetRules(planned=PodRules(spread=spread, most_per_node=apart))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A target on some nodes, and the expected rules."""

    target: ScaleTarget
    rules: TargetRules
    nodes: Sequence[Json] = TWO_ZONES


EVEN = Spread(topology_key=ZONE)
FROM_ZERO = Spread(topology_key=ZONE, counts_from_zero=True)
REVISION: Json = {"matchLabelKeys": ["pod-template-hash"]}
KNOWN: dict[str, Case] = {
    "a spread over zones": Case(target=spread(constraint()), rules=planned(spread=EVEN)),
    "a spread over zones with the allowed skew": Case(
        target=spread(constraint(maxSkew=3)), rules=planned(spread=Spread(topology_key=ZONE, max_skew=3))
    ),
    "a constraint by revision does not count other pods with the labels": Case(
        target=spread(constraint(selector=ANYBODY, **REVISION)), rules=planned(spread=EVEN)
    ),
    "a preferred spread is ignored": Case(
        target=spread(constraint(whenUnsatisfiable="ScheduleAnyway")), rules=TargetRules()
    ),
    "the stricter of two spreads over zones": Case(
        target=spread(constraint(maxSkew=3), constraint(maxSkew=2)),
        rules=planned(spread=Spread(topology_key=ZONE, max_skew=2)),
    ),
    "a zone without accelerators keeps the minimum at zero": Case(
        target=spread(constraint(), anywhere=True),
        rules=planned(spread=FROM_ZERO),
        nodes=(*TWO_ZONES, node("cpu", "c", 0)),
    ),
    "a zone without accelerators is ignored if pods select nodes with accelerators": Case(
        target=spread(constraint()), rules=planned(spread=EVEN), nodes=(*TWO_ZONES, node("cpu", "c", 0))
    ),
    "a zone without accelerators counts if nodeAffinityPolicy is Ignore": Case(
        target=spread(constraint(nodeAffinityPolicy="Ignore")),
        rules=planned(spread=FROM_ZERO),
        nodes=(*TWO_ZONES, node("cpu", "c", 0)),
    ),
    "a zone with another accelerator type keeps the minimum at zero": Case(
        target=spread(constraint(), anywhere=True),
        rules=planned(spread=FROM_ZERO),
        nodes=(*TWO_ZONES, node("h", "c", product="NVIDIA-H100")),
    ),
    "fewer zones than minDomains keep the minimum at zero": Case(
        target=spread(constraint(minDomains=3)), rules=planned(spread=FROM_ZERO)
    ),
    "as many zones as minDomains do not": Case(
        target=spread(constraint(minDomains=2)), rules=planned(spread=EVEN)
    ),
    "the skew over nodes is the maximum per node": Case(
        target=spread(constraint(HOSTNAME, maxSkew=2)), rules=planned(most_per_node=2)
    ),
    "spreads over zones and nodes together": Case(
        target=spread(constraint(), constraint(HOSTNAME, maxSkew=2)),
        rules=planned(spread=EVEN, most_per_node=2),
    ),
    "a constraint without a selector only requires the node label": Case(
        target=spread(constraint(selector=None)), rules=TargetRules(node_labels=(ZONE,))
    ),
    "anti-affinity by node allows one pod per node": Case(
        target=apart(term(HOSTNAME)), rules=planned(most_per_node=1)
    ),
    "anti-affinity by zone allows one pod per zone": Case(
        target=apart(term(ZONE)), rules=planned(spread=FROM_ZERO)
    ),
    "a term may name the target's own namespace": Case(
        target=apart(term(HOSTNAME, namespaces=["ns"])), rules=planned(most_per_node=1)
    ),
    "a term that selects no existing pods has no effect": Case(
        target=apart(term(HOSTNAME, {"matchLabels": {"app": "gone"}})), rules=TargetRules()
    ),
    "a term for pods with another value of the target's label has no effect": Case(
        target=apart(term(HOSTNAME, SAME, mismatchLabelKeys=["app"])), rules=TargetRules()
    ),
}


@pytest.mark.parametrize("case", KNOWN.values(), ids=KNOWN)
def test_a_supported_rule_is_planned(case: Case) -> None:
    """No problem is reported."""
    assert read(case.target, case.nodes) == case.rules


NAMED: dict[str, tuple[ScaleTarget, str]] = {
    "a constraint that also selects another Deployment": (
        spread(constraint(selector=ANYBODY)),
        f"topologySpreadConstraints[0] over {ZONE}: it also applies to Deployment ns/code",
    ),
    "a term that selects only pods of others": (
        apart(term(HOSTNAME, {"matchLabels": {"app": "code"}})),
        f"[0] over {HOSTNAME}: it also applies to Deployment ns/code",
    ),
    "a second topology": (
        spread(constraint(), constraint("rack")),
        "spread over rack with a skew of at most 1: a plan applies only one rule over a topology",
    ),
    "required pod affinity": (
        chat(affinity={"podAffinity": repulsion(term(ZONE))["podAntiAffinity"]}),
        "podAffinity.requiredDuringSchedulingIgnoredDuringExecution: pods that have to be near others",
    ),
    "a term for other namespaces": (
        apart(term(HOSTNAME, namespaces=["ns", "other"])),
        "pods of other namespaces are not considered",
    ),
    "a namespace selector": (
        apart(term(HOSTNAME, namespaceSelector={"matchLabels": {"team": "x"}})),
        "it is unknown whether a selector of namespaces selects its own",
    ),
    "a label that differs between pods of the target": (
        spread(constraint(matchLabelKeys=["apps.kubernetes.io/pod-index"])),
        "it distinguishes pods of the target by apps.kubernetes.io/pod-index",
    ),
    "a term for other revisions": (
        apart(term(HOSTNAME, mismatchLabelKeys=["pod-template-hash"])),
        "it distinguishes pods of the target by the revision",
    ),
}


@pytest.mark.parametrize(("target", "want"), NAMED.values(), ids=NAMED)
def test_a_rule_that_a_plan_cannot_express_is_reported(target: ScaleTarget, want: str) -> None:
    """The message starts with the target and gives the rule's place."""
    problems = read(target).problems

    assert [text for text in problems if want in text], problems
    assert all(text.startswith("Deployment ns/chat: ") for text in problems)


def test_a_pod_of_no_target_that_matches_the_selector_is_reported() -> None:
    """The scheduler counts it for the spread."""
    stray = stateful_pod("stray", 0)
    stray["metadata"]["labels"] = {"app": "chat"}

    (problem,) = read(spread(constraint()), pods=(stray,)).problems

    assert "it also applies to Pod ns/stray-0" in problem
    assert read(spread(constraint()), pods=(stray,)).planned.spread == EVEN


def test_a_target_without_accelerators_has_no_rules() -> None:
    """A plan never lacks capacity for it."""
    plain = target_of(CHAT, deployment("chat", product=L4, accelerators=0))
    plain.pod_spec["topologySpreadConstraints"] = [constraint()]

    assert read(plain) == NO_RULES


def grouped(*, nodes: Sequence[Json], size: int = 2, **spec: object) -> TargetRules:
    """Return the rules of LeaderWorkerSet groups that share a zone, with eight accelerators per pod."""
    manifest = leader_worker_set(
        "big", product=L4, accelerators=8, size=size, exclusive_topology=ZONE, subgroup="x"
    )
    manifest["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"] |= spec
    key = TargetKey(TargetKind.LEADER_WORKER_SET, "ns", "big")
    return read(target_of(key, manifest), nodes, others=False)


FULL_ZONES = tuple(node(f"n{zone}{number}", zone) for zone in "ab" for number in (1, 2))


def test_exclusive_topology_is_reported_only_if_a_zone_has_room_for_another_group() -> None:
    """A plan keeps a group within a zone; with too little room, other groups are kept out anyway."""
    assert grouped(nodes=FULL_ZONES).problems == ()

    (problem,) = grouped(nodes=(*FULL_ZONES, node("na3", "a"), node("na4", "a"))).problems
    assert "keeps other groups out of a topology.kubernetes.io/zone that has room for several" in problem


def test_exclusive_topology_with_groups_of_one_pod_allows_one_per_zone() -> None:
    """A plan expresses this as a spread."""
    assert grouped(nodes=FULL_ZONES, size=1) == planned(spread=FROM_ZERO)


def test_a_leader_without_accelerators_is_reported_if_its_workers_have_to_follow_it() -> None:
    """Plans place pods with accelerators only."""
    key = TargetKey(TargetKind.LEADER_WORKER_SET, "ns", "big")
    fields: dict[str, Any] = {"product": L4, "accelerators": 8, "size": 3, "exclusive_topology": ZONE}
    target = target_of(key, leader_worker_set("big", **fields, leader_accelerators=0))

    (problem,) = pod_rules(target, "L4", Scene(FULL_ZONES, {}, ())).problems

    assert "exclusive-topology: its leader has no accelerators" in problem


def test_other_leader_worker_sets_that_exclusive_topology_affects_are_reported() -> None:
    """Only those of the same namespace are affected."""
    constraints: tuple[tuple[TargetKey, dict[str, Any]], ...] = (
        (TargetKey(TargetKind.LEADER_WORKER_SET, "ns", "big"), {"exclusive_topology": ZONE}),
        (TargetKey(TargetKind.LEADER_WORKER_SET, "ns", "small"), {}),
    )
    sets = {
        key: target_of(key, leader_worker_set(key.name, product=L4, accelerators=8, size=2, **said))
        for key, said in constraints
    }
    big, small = sets

    (problem,) = pod_rules(sets[big], "L4", Scene(FULL_ZONES, sets, ())).problems

    assert "exclusive-topology: it also applies to LeaderWorkerSet ns/small" in problem
    assert pod_rules(sets[small], "L4", Scene(FULL_ZONES, sets, ())) == NO_RULES


def test_spread_and_anti_affinity_of_exclusive_groups_are_reported_and_not_planned() -> None:
    """Anti-affinity is reported only if a node has room for two of the pods."""
    mine = {"matchLabels": {"leaderworkerset.sigs.k8s.io/name": "big"}}
    affinity = repulsion(term(HOSTNAME, mine))

    assert grouped(nodes=FULL_ZONES, affinity=affinity) == TargetRules()
    (problem,) = grouped(nodes=(*FULL_ZONES[:3], node("nb2", "b", 16)), size=3, affinity=affinity).problems
    assert 'the rule "at most 1 on each node" is not considered' in problem
    spread_too = grouped(nodes=FULL_ZONES, topologySpreadConstraints=[constraint("rack", mine)])
    assert spread_too.planned.spread is None
    assert 'the rule "spread over rack with a skew of at most 1" is not considered' in spread_too.problems[0]


def test_volume_claims_and_subgroup_topologies_are_reported() -> None:
    """They constrain placement, and plans do not model them."""
    fields: dict[str, Any] = {"exclusive_topology": "", "subgroup_exclusive_topology": "rack"}
    manifest = leader_worker_set("big", product=L4, accelerators=8, size=4, **fields)
    manifest["spec"]["leaderWorkerTemplate"]["volumeClaimTemplates"] = [{"metadata": {"name": "weights"}}]
    key = TargetKey(TargetKind.LEADER_WORKER_SET, "ns", "big")

    problems = read(target_of(key, manifest)).problems

    assert [text.split(": ")[1] for text in problems] == [
        "volumeClaimTemplates",
        "subgroup-exclusive-topology",
    ]
