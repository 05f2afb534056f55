"""What a rule for the pods of one variant defines: a limit on each node, or one on the domains of a topology.

Only new pods have to keep a rule: bound pods that break it may stay, as in kube-scheduler.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Terms = list[tuple[int, int]]
"""The (variable, coefficient) pairs of a linear sum."""

Counts = Mapping[int, int]
"""The variant's bound pods in each domain that counts."""


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
    def terms(self, topology: int, domains: tuple[int, ...]) -> DomainTerms:
        """Return the rule in integers, for the number of the topology and those of the domains that count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DomainTerms(ABC):
    """A rule about domains in the integer problem.

    There are new pods only if all bound replicas stay, so `counts` are constants wherever the rule matters.
    `reachable` are the domains that count and have nodes for the variant.
    """

    topology: int
    domains: tuple[int, ...]
    """Domains of the topology that count, ascending, whether or not they have room."""

    @abstractmethod
    def open_domains(self, counts: Counts) -> Collection[int]:
        """Return the domains that can get one more pod at present."""

    def most_new_pods(self, counts: Counts, reachable: Collection[int]) -> int | None:
        """Return the maximum number of new pods; None for no maximum."""
        del counts, reachable
        return None

    def least_new_pods(
        self, counts: Counts, reachable: Collection[int], pods: Sequence[int]
    ) -> dict[int, Sequence[int]]:
        """Return the minimum that each domain gets of each number of new pods, for the lower bound."""
        del counts
        return {domain: [0] * len(pods) for domain in reachable}

    @abstractmethod
    def parts(
        self, program: Rows, units: NewUnits, counts: Counts, reachable: Collection[int]
    ) -> dict[int, Terms]:
        """Return the new units of each domain, as terms, and add the rows of the rule."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewUnits:
    """The new pods or gangs of a variant in an integer program."""

    terms: Terms
    """Their number, as a sum of variables. For single pods, at most one of the variables is 1."""

    most: int
    """Upper bound on their number."""

    pods: int
    """Pods of each unit."""

    order: Sequence[int] | None = None
    """Domains in the order in which they get pods that could be in several; None if the solver chooses."""
