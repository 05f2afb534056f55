"""Rules for where the pods of one variant can be, besides free accelerators and the nodes that they select.

interface   what a rule defines: all other parts of planning use nothing else of rules
apart       a maximum of pods per node
spread      an even distribution over the domains of a topology

A rule contains its text, the number of new pods that it allows, its rows and its choice of nodes. The
checker verifies it separately, in `checker/rules.py`. Pods of one replica that must be in one domain are not
a rule but a unit of placement (`VariantTerms.together`).
"""

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
        """The rule about the domains of a topology, if there is one; a plan applies one at most."""
        return self.spread
