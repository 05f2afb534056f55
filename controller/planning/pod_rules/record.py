"""The rules for the pods of one variant."""

from __future__ import annotations

from dataclasses import dataclass

from controller.planning.pod_rules.apart import MostPerNode
from controller.planning.pod_rules.interface import DomainRule, NodeRule
from controller.planning.pod_rules.spread import Spread


@dataclass(frozen=True, kw_only=True, slots=True)
class PodRules:
    """The rules for the pods of one variant; None for no rule of that type."""

    spread: Spread | None = None
    most_per_node: MostPerNode | None = None

    @property
    def on_nodes(self) -> tuple[NodeRule, ...]:
        """The rules that limit the pods on each node."""
        return tuple(rule for rule in (self.most_per_node,) if rule is not None)

    @property
    def on_domains(self) -> DomainRule | None:
        """The rule about the domains of a topology, if there is one."""
        return self.spread

    def most_more(self, pods: int, room: int) -> int:
        """Return how many more pods a node can get that has some pods and has room for others."""
        return min([room, *(rule.most_more(pods) for rule in self.on_nodes)])
