"""Read the spreading and anti-affinity rules of a target's pods; unsupported rules are reported.

Preferences are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_of
from controller.observe.rule_reading import RuleReading, Scene, most_pods, read_template
from controller.observe.targets import SET_NAME, Target
from controller.planning.pod_rules import PodRules, Spread

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


def pod_rules(target: Target, accelerator: str, scene: Scene) -> TargetRules:
    """Return the rules of a target with accelerators of a type; without accelerators it has no rules."""
    spec = target.pod_spec
    if not accelerators_of(spec) or not (_asks(spec) or target.together_in or target.has_own_volumes):
        return NO_RULES
    reading = RuleReading(target=target, accelerator=accelerator, scene=scene)
    read_template(reading)
    _read_target(reading)
    return _reduce(reading)


def _asks(spec: Json) -> bool:
    return bool(spec.get("topologySpreadConstraints") or spec.get("affinity"))


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
    room = most_pods(reading.own_nodes, target.together_in, accelerators=size)
    if room >= 2 * target.pods_per_replica:
        why = f"it also keeps other groups out of a {target.together_in} that has room for several"
        reading.leave_out(where, why)


def _reduce(reading: RuleReading) -> TargetRules:
    """Return the rules that a plan supports for one variant, and report the others."""
    rules = reading.rules
    for rule in reading.domain_rules:
        if rule is not rules.on_domains:
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
    if rules.on_domains:
        reading.leave_out(where, f'the rule "{rules.on_domains.clause}" is not considered')
    largest = max((node.accelerators_allocatable for node in reading.own_nodes), default=0)
    room = largest // accelerators_of(reading.target.pod_spec)
    for rule in rules.on_nodes:
        if rule.most_more(0) < room:
            reading.leave_out(where, f'the rule "{rule.clause}" is not considered')
