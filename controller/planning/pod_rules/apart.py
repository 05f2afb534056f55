"""Limit the pods of one variant on one node (core/v1 pod anti-affinity by hostname)."""

from __future__ import annotations

from dataclasses import dataclass

from controller.planning.pod_rules.interface import NodeRule
from controller.planning.ranges import out_of_range, refuse

MOST_PER_NODE = 10**4
"""Maximum limit on the pods on one node; a larger one would allow the same plans."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MostPerNode(NodeRule):
    """A maximum of the variant's pods on each node. Raises ValueError if it is out of range."""

    pods: int

    def __post_init__(self) -> None:
        refuse(out_of_range(pods=(self.pods, 1, MOST_PER_NODE)), "most_per_node")

    @property
    def clause(self) -> str:
        """The rule in messages."""
        return f"at most {self.pods} on each node"

    def most_more(self, pods: int) -> int:
        """Return what is left of the maximum."""
        return max(0, self.pods - pods)
