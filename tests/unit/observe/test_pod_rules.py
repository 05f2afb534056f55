"""What of a pod template's rules reaches a plan, and what is named because it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from support.manifests import deployment
from support.workloads import leader_worker_set, stateful_pod

from apiserver.schema.json import Json
from controller.observe.rule_reading import HOSTNAME, Scene
from controller.observe.rules import NO_RULES, PodRules, pod_rules
from controller.observe.targets import Target, TargetKey, TargetKind, target_of
from controller.planning.snapshot import Spread

L4 = "NVIDIA-L4"
CHAT = TargetKey(TargetKind.DEPLOYMENT, "ns", "chat")
CODE = TargetKey(TargetKind.DEPLOYMENT, "ns", "code")
ZONE = "topology.kubernetes.io/zone"
SAME: Json = {"matchLabels": {"app": "chat"}}
"""Selects the pods of `chat` and nobody else."""

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
    """Return required anti-affinity."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [*terms]}}


def term(key: str, selector: Json | None = SAME, **fields: object) -> Json:
    """Return a term of it."""
    return {"topologyKey": key} | ({} if selector is None else {"labelSelector": selector}) | fields


def chat(*, anywhere: bool = False, **spec: object) -> Target:
    """Return the target; `anywhere`: its pods select no nodes."""
    manifest = deployment("chat", product=L4, accelerators=2)
    if anywhere:
        del manifest["spec"]["template"]["spec"]["nodeSelector"]
    manifest["spec"]["template"]["spec"] |= spec
    return target_of(CHAT, manifest)


def read(
    target: Target, nodes: Sequence[Json] = TWO_ZONES, pods: Sequence[Json] = (), *, others: bool = True
) -> PodRules:
    """Return the rules where there is another Deployment, `code`, in the namespace."""
    code = target_of(CODE, deployment("code", product=L4, accelerators=1))
    targets = {target.key: target} | ({CODE: code} if others else {})
    return pod_rules(target, "L4", Scene(nodes, targets, pods))


def spread(*constraints: Json, anywhere: bool = False) -> Target:
    """Return the target with constraints."""
    return chat(anywhere=anywhere, topologySpreadConstraints=[*constraints])


def apart(*terms: Json) -> Target:
    """Return the target with anti-affinity."""
    return chat(affinity=repulsion(*terms))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A template in a place, and what of it is planned with."""

    target: Target
    rules: PodRules
    nodes: Sequence[Json] = TWO_ZONES


EVEN = Spread(topology_key=ZONE)
FROM_ZERO = Spread(topology_key=ZONE, counts_from_zero=True)
REVISION: Json = {"matchLabelKeys": ["pod-template-hash"]}
KNOWN: dict[str, Case] = {
    "zones are spread over": Case(target=spread(constraint()), rules=PodRules(spread=EVEN)),
    "with the skew that is allowed": Case(
        target=spread(constraint(maxSkew=3)), rules=PodRules(spread=Spread(topology_key=ZONE, max_skew=3))
    ),
    "a revision of its own counts alone, whoever else has the labels": Case(
        target=spread(constraint(selector=ANYBODY, **REVISION)), rules=PodRules(spread=EVEN)
    ),
    "a preference is no rule": Case(
        target=spread(constraint(whenUnsatisfiable="ScheduleAnyway")), rules=PodRules()
    ),
    "of two rules over zones the stricter one holds": Case(
        target=spread(constraint(maxSkew=3), constraint(maxSkew=2)),
        rules=PodRules(spread=Spread(topology_key=ZONE, max_skew=2)),
    ),
    "a zone without accelerators keeps the fewest at zero": Case(
        target=spread(constraint(), anywhere=True),
        rules=PodRules(spread=FROM_ZERO),
        nodes=(*TWO_ZONES, node("cpu", "c", 0)),
    ),
    "not where the pods select nodes with accelerators": Case(
        target=spread(constraint()),
        rules=PodRules(spread=EVEN),
        nodes=(*TWO_ZONES, node("cpu", "c", 0)),
    ),
    "but where nodes count whatever the pods select": Case(
        target=spread(constraint(nodeAffinityPolicy="Ignore")),
        rules=PodRules(spread=FROM_ZERO),
        nodes=(*TWO_ZONES, node("cpu", "c", 0)),
    ),
    "a zone of another type of accelerators counts, too": Case(
        target=spread(constraint(), anywhere=True),
        rules=PodRules(spread=FROM_ZERO),
        nodes=(*TWO_ZONES, node("h", "c", product="NVIDIA-H100")),
    ),
    "fewer zones than are asked for count from zero": Case(
        target=spread(constraint(minDomains=3)), rules=PodRules(spread=FROM_ZERO)
    ),
    "as many as are asked for do not": Case(
        target=spread(constraint(minDomains=2)), rules=PodRules(spread=EVEN)
    ),
    "the skew over nodes is the most on a node": Case(
        target=spread(constraint(HOSTNAME, maxSkew=2)), rules=PodRules(most_per_node=2)
    ),
    "zones and nodes together": Case(
        target=spread(constraint(), constraint(HOSTNAME, maxSkew=2)),
        rules=PodRules(spread=EVEN, most_per_node=2),
    ),
    "a constraint about nobody asks only for the label": Case(
        target=spread(constraint(selector=None)), rules=PodRules(node_labels=(ZONE,))
    ),
    "pods that keep apart are one on each node": Case(
        target=apart(term(HOSTNAME)), rules=PodRules(most_per_node=1)
    ),
    "pods that keep apart by zone are one in each": Case(
        target=apart(term(ZONE)), rules=PodRules(spread=FROM_ZERO)
    ),
    "the own namespace may be named": Case(
        target=apart(term(HOSTNAME, namespaces=["ns"])), rules=PodRules(most_per_node=1)
    ),
    "pods of another namespace that are not there are nobody": Case(
        target=apart(term(HOSTNAME, {"matchLabels": {"app": "gone"}})), rules=PodRules()
    ),
    "those that differ in what is its own are others": Case(
        target=apart(term(HOSTNAME, SAME, mismatchLabelKeys=["app"])), rules=PodRules()
    ),
}


@pytest.mark.parametrize("case", KNOWN.values(), ids=KNOWN)
def test_a_rule_reaches_the_plan(case: Case) -> None:
    """Each situation by a sentence; nothing is left to be named."""
    assert read(case.target, case.nodes) == case.rules


NAMED: dict[str, tuple[Target, str]] = {
    "another Deployment with the labels": (
        spread(constraint(selector=ANYBODY)),
        f"topologySpreadConstraints[0] over {ZONE}: it also applies to Deployment ns/code",
    ),
    "rules about others alone": (
        apart(term(HOSTNAME, {"matchLabels": {"app": "code"}})),
        f"[0] over {HOSTNAME}: it also applies to Deployment ns/code",
    ),
    "a second topology": (
        spread(constraint(), constraint("rack")),
        "spread over rack: a plan spreads pods over one topology only",
    ),
    "pods that have to be near others": (
        chat(affinity={"podAffinity": repulsion(term(ZONE))["podAntiAffinity"]}),
        "podAffinity.requiredDuringSchedulingIgnoredDuringExecution: pods that have to be near others",
    ),
    "pods of other namespaces": (
        apart(term(HOSTNAME, namespaces=["ns", "other"])),
        "pods of other namespaces are not considered",
    ),
    "namespaces by label": (
        apart(term(HOSTNAME, namespaceSelector={"matchLabels": {"team": "x"}})),
        "it is unknown whether a selector of namespaces selects its own",
    ),
    "a label in which pods differ": (
        spread(constraint(matchLabelKeys=["apps.kubernetes.io/pod-index"])),
        "it distinguishes pods of the target by apps.kubernetes.io/pod-index",
    ),
    "other revisions": (
        apart(term(HOSTNAME, mismatchLabelKeys=["pod-template-hash"])),
        "it distinguishes pods of the target by the revision",
    ),
}


@pytest.mark.parametrize(("target", "want"), NAMED.values(), ids=NAMED)
def test_what_a_plan_cannot_say_is_named(target: Target, want: str) -> None:
    """With whose it is and where it stands."""
    problems = read(target).problems

    assert [text for text in problems if want in text], problems
    assert all(text.startswith("Deployment ns/chat: ") for text in problems)


def test_a_pod_of_nobody_with_the_labels_is_named() -> None:
    """The scheduler counts it."""
    stray = stateful_pod("stray", 0)
    stray["metadata"]["labels"] = {"app": "chat"}

    (problem,) = read(spread(constraint()), pods=(stray,)).problems

    assert "it also applies to Pod ns/stray-0" in problem
    assert read(spread(constraint()), pods=(stray,)).spread == EVEN


def test_what_has_no_accelerators_has_no_rules() -> None:
    """It always finds room in a plan."""
    plain = target_of(CHAT, deployment("chat", product=L4, accelerators=0))
    plain.pod_spec["topologySpreadConstraints"] = [constraint()]

    assert read(plain) == NO_RULES


def grouped(*, nodes: Sequence[Json], size: int = 2, **spec: object) -> PodRules:
    """Return the rules of groups of pods of eight accelerators each that share a zone."""
    manifest = leader_worker_set(
        "big", product=L4, accelerators=8, size=size, exclusive_topology=ZONE, subgroup="x"
    )
    manifest["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"] |= spec
    key = TargetKey(TargetKind.LEADER_WORKER_SET, "ns", "big")
    return read(target_of(key, manifest), nodes, others=False)


FULL_ZONES = tuple(node(f"n{zone}{number}", zone) for zone in "ab" for number in (1, 2))


def test_a_group_that_has_a_zone_to_itself_is_named_only_where_another_would_fit() -> None:
    """Planning keeps a group together; that it keeps others out follows from the room there is."""
    assert grouped(nodes=FULL_ZONES).problems == ()

    (problem,) = grouped(nodes=(*FULL_ZONES, node("na3", "a"), node("na4", "a"))).problems
    assert "keeps other groups out of a topology.kubernetes.io/zone that has room for several" in problem


def test_a_group_of_one_pod_is_one_in_each_zone() -> None:
    """That a plan can say."""
    assert grouped(nodes=FULL_ZONES, size=1) == PodRules(spread=FROM_ZERO)


def test_other_sets_that_a_group_keeps_out_are_named() -> None:
    """Those of its namespace."""
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


def test_groups_that_are_kept_together_are_not_also_kept_apart() -> None:
    """It is named where it matters: on a node with room for two."""
    mine = {"matchLabels": {"leaderworkerset.sigs.k8s.io/name": "big"}}
    affinity = repulsion(term(HOSTNAME, mine))

    assert grouped(nodes=FULL_ZONES, affinity=affinity) == PodRules()
    (problem,) = grouped(nodes=(*FULL_ZONES[:3], node("nb2", "b", 16)), size=3, affinity=affinity).problems
    assert "the limit of 1 per node is not considered" in problem
    spread_too = grouped(nodes=FULL_ZONES, topologySpreadConstraints=[constraint("rack", mine)])
    assert spread_too.spread is None
    assert "their spread over rack is not considered" in spread_too.problems[0]


def test_volumes_and_parts_of_groups_are_named() -> None:
    """They decide about places, and plans don't know them."""
    fields: dict[str, Any] = {"exclusive_topology": "", "subgroup_exclusive_topology": "rack"}
    manifest = leader_worker_set("big", product=L4, accelerators=8, size=4, **fields)
    manifest["spec"]["leaderWorkerTemplate"]["volumeClaimTemplates"] = [{"metadata": {"name": "weights"}}]
    key = TargetKey(TargetKind.LEADER_WORKER_SET, "ns", "big")

    problems = read(target_of(key, manifest)).problems

    assert [text.split(": ")[1] for text in problems] == [
        "volumeClaimTemplates",
        "subgroup-exclusive-topology",
    ]
