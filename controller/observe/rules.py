"""The placement rules of a target's pods: what they require, and which other pods they select.

Preferences are ignored, and unsupported rules are reported. Selected pods may be those of other targets, and
unplanned ones. Topology domains are those of all nodes: kube-scheduler also counts all others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from apiserver.kinds.core.selecting import selected_keys, selects
from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_of
from controller.observe.inventory import accelerators_on, labels_of, type_of
from controller.observe.pods import is_present, target_of_pod
from controller.observe.scheduling import node_affinity
from controller.observe.targets import POD_LABELS, REVISION_LABELS, SET_NAME, ScaleTarget, TargetKey
from controller.planning.cluster import MOST_ACCELERATORS, Node, NodeRequirement
from controller.planning.inventory import meets
from controller.planning.pod_rules import MOST_PER_NODE, MOST_SKEW, MostPerNode, PodRules, Spread

HOSTNAME: Final = "kubernetes.io/hostname"
"""A label that every node has, with a different value each."""

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Scene:
    """The context of placement rules: nodes, and all other labeled workloads."""

    nodes: Sequence[Json]
    targets: Mapping[TargetKey, ScaleTarget]
    pods: Sequence[Json]

    @cached_property
    def domains(self) -> Domains:
        """Topology domains of the nodes."""
        return Domains(self.nodes)

    @cached_property
    def neighbours(self) -> Neighbours:
        """Other pods that rules may select."""
        return Neighbours([*self.targets.values()], self.pods)


@dataclass(kw_only=True, slots=True)
class RuleReading:
    """The rules of one target interpreted so far."""

    target: ScaleTarget
    accelerator: str
    scene: Scene
    spreads: dict[str, Spread] = field(default_factory=dict)
    most_per_node: int | None = None
    node_labels: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def asked_for(self) -> tuple[Node, ...]:
        """The nodes that the pods select."""
        spec = self.target.pod_spec
        return self.scene.domains.asked_for(spec, node_affinity(spec))

    @property
    def own_nodes(self) -> tuple[Node, ...]:
        """The selected nodes that have its accelerators."""
        return _with_accelerators(self.asked_for, self.accelerator)

    @property
    def rules(self) -> PodRules:
        """The rules that a plan can apply."""
        return PodRules(
            spread=next(iter(self.spreads.values()), None),
            most_per_node=MostPerNode(pods=self.most_per_node) if self.most_per_node else None,
        )

    def leave_out(self, where: str, why: str) -> None:
        """Report a rule that planning ignores."""
        self.problems.append(f"{self.target.key}: {where}: {why}")

    def at_most_per_node(self, pods: int) -> None:
        """Limit the pods on one node."""
        self.most_per_node = min(pods, self.most_per_node or pods)

    def spread_over(self, spread: Spread) -> None:
        """Add a spread rule; of two rules over the same domains, the stricter parts apply."""
        known = self.spreads.get(spread.topology_key, spread)
        self.spreads[spread.topology_key] = Spread(
            topology_key=spread.topology_key,
            max_skew=min(known.max_skew, spread.max_skew),
            counts_from_zero=known.counts_from_zero or spread.counts_from_zero,
        )


def _read_template(reading: RuleReading) -> None:
    """Interpret all required rules of the pod template."""
    spec = reading.target.pod_spec
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or []):
        if constraint.get("whenUnsatisfiable") != "ScheduleAnyway":
            _read_constraint(reading, constraint, f"topologySpreadConstraints[{index}]")
    affinity = spec.get("affinity") or {}
    for index, term in enumerate((affinity.get("podAntiAffinity") or {}).get(_REQUIRED) or []):
        _read_repulsion(reading, term, f"podAntiAffinity.{_REQUIRED}[{index}]")
    if (affinity.get("podAffinity") or {}).get(_REQUIRED):
        reading.leave_out(f"podAffinity.{_REQUIRED}", "pods that have to be near others cannot be planned")


def _read_constraint(reading: RuleReading, constraint: Json, where: str) -> None:
    """Interpret one required topology spread constraint."""
    key, max_skew = constraint["topologyKey"], int(constraint.get("maxSkew") or 1)
    where = f"{where} over {key}"
    if not _is_about_own(reading, constraint, where):
        # Nodes without the label are excluded, whichever pods it selects; every node has the hostname.
        reading.node_labels += [key] if key != HOSTNAME else []
        return
    if key == HOSTNAME:
        # In a shared cluster, some node that the pods may use has none of them: the minimum is 0, and the
        # skew is the maximum per node. Where that does not hold, the plan is stricter than the scheduler.
        reading.at_most_per_node(min(max_skew, MOST_PER_NODE))
        return
    counts_from_zero, max_skew = _counts_from_zero(reading, constraint, key), min(max_skew, MOST_SKEW)
    reading.spread_over(Spread(topology_key=key, max_skew=max_skew, counts_from_zero=counts_from_zero))


def _counts_from_zero(reading: RuleReading, constraint: Json, key: str) -> bool:
    """Return whether a domain counts that no pod can use, or `minDomains` exceeds the domains."""
    is_label = key in reading.scene.domains.keys  # of many hostile ones, few are
    if not is_label:
        return int(constraint.get("minDomains") or 0) > 0
    ignores = constraint.get("nodeAffinityPolicy") == "Ignore"
    counted = _domains_of(reading.scene.domains.nodes if ignores else reading.asked_for, key)
    is_few = len(counted) < int(constraint.get("minDomains") or 0)
    return is_few or not counted <= _domains_of(reading.own_nodes, key)


def _read_repulsion(reading: RuleReading, term: Json, where: str) -> None:
    """Interpret one term of required pod anti-affinity."""
    key, namespace = term["topologyKey"], reading.target.key.namespace
    where = f"{where} over {key}"
    namespaces, selector = term.get("namespaces") or [], term.get("namespaceSelector")
    if selector is not None or set(namespaces) - {namespace}:
        reading.leave_out(where, "pods of other namespaces are not considered")
    is_at_home = namespace in namespaces or selector == {} or (not namespaces and selector is None)
    if selector and namespace not in namespaces:
        reading.leave_out(where, "it is unknown whether a selector of namespaces selects its own")
    elif is_at_home and _is_about_own(reading, term, where):
        if key == HOSTNAME:
            reading.at_most_per_node(1)
        else:
            # At most one in each domain, however many there are in others.
            reading.spread_over(Spread(topology_key=key, max_skew=1, counts_from_zero=True))


def _is_about_own(reading: RuleReading, rule: Json, where: str) -> bool:
    """Return whether a rule selects all pods of the target; report what else it selects."""
    selector, target = rule.get("labelSelector"), reading.target
    if selector is None:
        return False
    matched = frozenset(rule.get("matchLabelKeys") or ())
    compared = selected_keys(selector).union(rule.get("mismatchLabelKeys") or ())
    told_apart = sorted((compared | matched) & POD_LABELS)
    if told_apart or REVISION_LABELS & (compared - matched):
        names = ", ".join(told_apart) or "the revision"
        reading.leave_out(where, f"it distinguishes pods of the target by {names}")
        return False
    selected = {selects(_narrow(selector, rule, labels), labels) for labels in target.labels}
    if not REVISION_LABELS & matched:
        other = reading.scene.neighbours.workload_of(_narrow(selector, rule, target.labels[0]), target.key)
        if other:
            reading.leave_out(where, f"it also applies to {other}, which is not considered")
    if len(selected) > 1:
        reading.leave_out(where, "it applies only to some of the target's pods")
    return selected == {True}


def _narrow(selector: Json, rule: Json, labels: Mapping[str, str]) -> Json:
    """Return a selector extended by the label values that pods must or must not share with others."""
    expressions = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in rule.get(name) or ()
        if key in labels
    ]
    return selector | {"matchExpressions": [*(selector.get("matchExpressions") or []), *expressions]}


_Labels = Mapping[str, str]
_Known = tuple[TargetKey | None, str, _Labels]
"""The target, its name for messages, and its labels."""


class Neighbours:
    """All labeled workloads by namespace: targets by their templates, other pods individually."""

    def __init__(self, targets: Sequence[ScaleTarget], pods: Sequence[Json]) -> None:
        self._all: dict[str, list[_Known]] = defaultdict(list)
        self._by_label: dict[tuple[str, str, str], list[_Known]] = defaultdict(list)
        known = {target.key for target in targets}
        for target in targets:
            for labels in target.labels:
                self._add(target.key.namespace, (target.key, str(target.key), labels))
        seen: set[tuple[str, frozenset[tuple[str, str]]]] = set()
        for pod in pods:
            namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}
            looks = namespace, frozenset(labels.items())
            if is_present(pod) and looks not in seen and target_of_pod(pod) not in known:
                seen.add(looks)
                self._add(namespace, (None, f"Pod {namespace}/{pod['metadata']['name']}", labels))

    def workload_of(self, selector: Json, but: TargetKey) -> str:
        """Return the name of another workload that a selector selects in the target's namespace, or ""."""
        return next(
            (
                name
                for key, name, labels in self._candidates(selector, but.namespace)
                if key != but and selects(selector, labels)
            ),
            "",
        )

    def _candidates(self, selector: Json, namespace: str) -> Sequence[_Known]:
        """Return the candidates of a selector, looked up by one of its labels if it has any."""
        lists = [
            self._by_label.get((namespace, key, value), [])
            for key, value in (selector.get("matchLabels") or {}).items()
        ]
        return min(lists, key=len, default=self._all.get(namespace, []))

    def _add(self, namespace: str, known: _Known) -> None:
        self._all[namespace].append(known)
        for key, value in known[2].items():
            self._by_label[namespace, key, value].append(known)


_Looks = tuple[frozenset[tuple[str, str]], tuple[tuple[NodeRequirement, ...], ...]]


class Domains:
    """The nodes of a cluster, by the labels that define topology domains."""

    def __init__(self, nodes: Sequence[Json]) -> None:
        self.nodes = tuple(map(_node, nodes))
        self.keys = frozenset(key for node in self.nodes for key, _ in node.labels)
        """All labels that any node has."""

        self._asked_for: dict[_Looks, tuple[Node, ...]] = {}

    def asked_for(self, pod_spec: Json, terms: tuple[tuple[NodeRequirement, ...], ...]) -> tuple[Node, ...]:
        """Return the nodes that match the node selector and node affinity of pods."""
        selector = frozenset((pod_spec.get("nodeSelector") or {}).items())
        if (selector, terms) not in self._asked_for:
            self._asked_for[selector, terms] = tuple(
                node for node in self.nodes if selector <= node.labels and meets(node, terms)
            )
        return self._asked_for[selector, terms]


def _with_accelerators(nodes: Sequence[Node], accelerator: str) -> tuple[Node, ...]:
    """Return the nodes that have accelerators of a type."""
    return tuple(
        node for node in nodes if accelerator in ("", node.accelerator) and node.accelerators_allocatable > 0
    )


def _domains_of(nodes: Sequence[Node], key: str) -> frozenset[str]:
    """Return the values of a label over some nodes."""
    return frozenset(dict(node.labels)[key] for node in nodes if key in dict(node.labels))


def _most_pods(nodes: Sequence[Node], key: str, *, accelerators: int) -> int:
    """Return how many pods of a size fit in the largest domain when it is empty."""
    counts: Counter[str] = Counter()
    for node in nodes:
        counts[dict(node.labels).get(key, "")] += node.accelerators_allocatable // accelerators
    return max(counts.values(), default=0)


def _node(node: Json) -> Node:
    accelerators = accelerators_on(node)
    return Node(
        name=node["metadata"]["name"],
        accelerator=type_of(node),
        accelerators_allocatable=accelerators if accelerators <= MOST_ACCELERATORS else 0,
        labels=labels_of(node),
    )


_OF_ANY_GROUP: Final[Json] = {"matchExpressions": [{"key": SET_NAME, "operator": "Exists"}]}


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetRules:
    """The rules of a target's pods that planning supports, and a message for each other one."""

    planned: PodRules = field(default_factory=PodRules)
    node_labels: tuple[str, ...] = ()
    """Labels that nodes must have, with any value."""

    problems: tuple[str, ...] = ()


NO_RULES: Final = TargetRules()
"""No rules: the pods may use any node with room."""


def pod_rules(target: ScaleTarget, accelerator: str, scene: Scene) -> TargetRules:
    """Return the rules of a target with accelerators of a type; without accelerators it has no rules."""
    spec = target.pod_spec
    has_rules = spec.get("topologySpreadConstraints") or spec.get("affinity") or target.together_in
    if not accelerators_of(spec) or not (has_rules or target.has_own_volumes):
        return NO_RULES
    reading = RuleReading(target=target, accelerator=accelerator, scene=scene)
    _read_template(reading)
    _read_target(reading)
    return _reduce(reading)


def _read_target(reading: RuleReading) -> None:
    """Report properties of the target itself that affect placement and are not supported."""
    target = reading.target
    if target.has_own_volumes:
        reading.leave_out(
            "volumeClaimTemplates", "pods must run where their volumes are, which planning does not consider"
        )
    if target.parts_are_exclusive:
        reading.leave_out("subgroup-exclusive-topology", "parts of a replica are planned like the whole")
    if target.together_in:
        _read_exclusion(reading)


def _read_exclusion(reading: RuleReading) -> None:
    """Interpret exclusive topology: what a group demands of other groups, in its set and its namespace."""
    target, where = reading.target, "exclusive-topology"
    other = reading.scene.neighbours.workload_of(_OF_ANY_GROUP, target.key)
    if other:
        reading.leave_out(where, f"it also applies to {other}, which is not considered")
    if not accelerators_of(target.engine_spec):
        reading.leave_out(where, "its leader has no accelerators, and the scheduler chooses the place by it")
    if target.pods_per_replica == 1:
        reading.spread_over(Spread(topology_key=target.together_in, counts_from_zero=True))
        return
    size = accelerators_of(target.pod_spec)
    room = _most_pods(reading.own_nodes, target.together_in, accelerators=size)
    if room >= 2 * target.pods_per_replica:
        why = f"it also keeps other groups out of a {target.together_in} that has room for several"
        reading.leave_out(where, why)


def _reduce(reading: RuleReading) -> TargetRules:
    """Return the rules that a plan supports for one variant, and report the others."""
    rules = reading.rules
    for rule in reading.spreads.values():  # a plan applies the first one only
        if rule is not rules.spread:
            reading.leave_out(rule.clause, "a plan applies only one rule over a topology")
    if reading.target.together_in and reading.target.pods_per_replica > 1:
        _report_unplanned(reading, rules)
        rules = PodRules()
    return TargetRules(
        planned=rules, node_labels=tuple(reading.node_labels), problems=tuple(reading.problems)
    )


def _report_unplanned(reading: RuleReading, rules: PodRules) -> None:
    """Report rules of pods that are kept together by replica: a plan applies no other rule to these."""
    where = f"kept together in {reading.target.together_in}"
    if rules.spread:
        reading.leave_out(where, f'the rule "{rules.spread.clause}" is not considered')
    largest = max((node.accelerators_allocatable for node in reading.own_nodes), default=0)
    room = largest // accelerators_of(reading.target.pod_spec)
    if rules.most_per_node and rules.most_per_node.pods < room:
        reading.leave_out(where, f'the rule "{rules.most_per_node.clause}" is not considered')
