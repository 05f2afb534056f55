"""What a rule for the pods of one variant defines: a limit on each node, or one on the domains of a topology.

Only new pods have to keep a rule: bound pods that break it may stay, as in kube-scheduler.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Terms = list[tuple[int, int]]
"""The (variable, coefficient) pairs of a linear sum."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Topology:
    """A topology, such as zones, with its domains as seen by the pods of one variant; numbers ascend."""

    number: int
    selected: tuple[int, ...]
    """Domains of nodes that the pods select; as in kube-scheduler, cordoned and tainted ones contribute."""

    selected_to_come: tuple[int, ...]
    """Domains of nodes to be added that the pods select."""

    every: tuple[int, ...]
    """All domains, for rules that count pods wherever they are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Domains:
    """The domains of a rule before any new pod."""

    pods: Mapping[int, int]
    """The variant's bound pods in each of `DomainTerms.domains`."""

    reachable: tuple[int, ...]
    """Those of the domains that have nodes for new pods, ascending."""


class Rows(Protocol):
    """The part of an integer program (`cpsat.Program`) that rules use; records do not import the solver."""

    def variables(self, count: int, most: int = 1) -> Sequence[int]:
        """Add integer variables from 0 to `most`, and return their indices."""

    def row(self, terms: Terms, *, least: int = ..., most: int = ..., only_if: int | None = None) -> None:
        """Require a sum to lie between two bounds, always or only if a 0-1 variable is 1."""

    def switch(self, variable: int, on: int) -> None:
        """Require a variable to be 0 unless a 0-1 variable is 1."""


class NodeRule(ABC):
    """A rule that limits the variant's pods on each node; several can apply together."""

    __slots__ = ()

    @property
    @abstractmethod
    def clause(self) -> str:
        """The rule in messages."""

    @abstractmethod
    def most_more(self, pods: int) -> int:
        """Return how many more pods a node can get that has `pods` pods of the variant."""


def allowed_on_node(rules: Iterable[NodeRule], pods: int, room: int) -> int:
    """Return how many more pods a node can get that has `pods` pods of the variant, and room for others."""
    return min([room, *(rule.most_more(pods) for rule in rules)])


@dataclass(frozen=True, kw_only=True, slots=True)
class DomainRule(ABC):
    """A rule about the numbers of the variant's pods in the domains of a topology; one at most applies.

    Nodes without the label of the topology get no pods.
    """

    topology_key: str
    """The node label whose values are the domains."""

    @property
    @abstractmethod
    def clause(self) -> str:
        """The rule in messages."""

    @abstractmethod
    def terms(self, topology: Topology) -> DomainTerms:
        """Return the rule in integers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DomainTerms(ABC):
    """A rule about domains in the integer problem.

    There are new pods only if all bound replicas stay, so the bound pods of domains are constants in rows.
    """

    topology: int
    domains: tuple[int, ...]
    """Domains that the rule counts, ascending, whether or not they have nodes; new pods go to no other."""

    @abstractmethod
    def open_domains(self, pods: Mapping[int, int]) -> Collection[int]:
        """Return the domains that can get the next pod, given the pods in each domain, new ones included."""

    def most_new_pods(self, domains: Domains) -> int | None:
        """Return the maximum number of new pods; None for no maximum."""
        del domains
        return None

    def least_new_pods(self, domains: Domains, pods: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """Return the minimum that domains get of each number of new pods; 0 for domains that are left out.

        Only reachable domains can have one. It strengthens the lower bound, and the minimums of one number
        must be possible together.
        """
        del domains, pods
        return {}

    @abstractmethod
    def parts(self, program: Rows, units: NewUnits, domains: Domains) -> dict[int, Terms]:
        """Return the new units of reachable domains, as terms, and add the rows of the rule.

        They must allow exactly the valid distributions of at most `most_new_pods` pods over the reachable
        domains. Domains that are left out get no pods.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class NewUnits:
    """The new pods or gangs of a variant in an integer program."""

    terms: Terms
    """Their number, as a sum of variables of which at most one is 1 in programs over patterns or counts."""

    most: int
    """Upper bound on their number."""

    pods: int
    """Pods of each unit."""

    order: Sequence[int] | None = None
    """Reachable domains, those with the most room first. If it is given, there are so many variants that the
    rule should decide by this order instead of variables, as far as it can.
    """
