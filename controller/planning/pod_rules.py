"""Rules for where the pods of one variant can be, besides free accelerators and the nodes that they select.

A rule limits the pods on each node, or those in each domain of a topology: a maximum on one node (core/v1 pod
anti-affinity by hostname), or an even distribution (`topologySpreadConstraints` with `DoNotSchedule`). It
contains its text, the number of new pods that it allows, its rows and its choice of nodes; other parts of
planning use nothing else of it. The checker verifies it separately, in `checker/places.py`.

Only new pods have to keep a rule: bound pods that break it may stay, as in kube-scheduler. Pods of one
replica that must be in one domain are not a rule but a unit of placement (`VariantTerms.together`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.planning.ranges import out_of_range, refuse

if TYPE_CHECKING:  # records do not import the solver
    from controller.planning.cpsat import Program, Terms


@dataclass(frozen=True, kw_only=True, slots=True)
class Topology:
    """A topology, such as zones, with its domains as seen by the pods of one variant; numbers ascend."""

    number: int
    selected: tuple[int, ...]
    """Domains of nodes that the pods select; as in kube-scheduler, cordoned and tainted ones contribute."""

    selected_to_come: tuple[int, ...]
    """Domains of nodes to be added that the pods select."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleDomains:
    """The domains of a rule before any new pod."""

    pods: Mapping[int, int]
    """The variant's bound pods in each of `SpreadTerms.domains`."""

    reachable: tuple[int, ...]
    """Those of the domains that have nodes for new pods, ascending."""


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


MOST_PER_NODE = 10**4
"""Maximum limit on the pods on one node; a larger one would allow the same plans."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MostPerNode:
    """A maximum of the variant's pods on each node. Raises ValueError if it is out of range."""

    pods: int

    def __post_init__(self) -> None:
        refuse(out_of_range(pods=(self.pods, 1, MOST_PER_NODE)), "most_per_node")

    @property
    def clause(self) -> str:
        """The rule in messages."""
        return f"at most {self.pods} on each node"


def allowed_on_node(limit: MostPerNode | None, pods: int, room: int) -> int:
    """Return how many more pods a node can get that has `pods` pods of the variant, and room for others."""
    return room if limit is None else min(room, max(0, limit.pods - pods))


MOST_SKEW = 10**6
"""Maximum skew of a spread constraint; a larger one would allow the same plans."""

EMPTY_DOMAIN = 10**9
"""A domain without nodes, which counts in spreading and never has any pods."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """A spread constraint on the variant's own pods; nodes without the label of the topology get none.

    Raises ValueError if the skew is out of range.
    """

    topology_key: str
    """The node label whose values are the domains."""

    max_skew: int = 1
    counts_from_zero: bool = False
    """Whether the global minimum is 0 whatever the plan: a counted domain has no node with the variant's
    accelerators, or there are fewer domains than `minDomains`. Then `max_skew` is the maximum in each domain.
    """

    def __post_init__(self) -> None:
        refuse(out_of_range(max_skew=(self.max_skew, 1, MOST_SKEW)), f"spread over {self.topology_key}")

    @property
    def clause(self) -> str:
        """The rule in messages."""
        if self.counts_from_zero:
            return f"at most {self.max_skew} in each {self.topology_key}"
        return f"spread over {self.topology_key} with a skew of at most {self.max_skew}"

    def terms(self, topology: Topology) -> SpreadTerms:
        """Return the rule in integers; domains of nodes to be added count only if there are no others."""
        domains = topology.selected or topology.selected_to_come
        if self.counts_from_zero:
            domains = (*domains, EMPTY_DOMAIN)
        return SpreadTerms(topology=topology.number, max_skew=self.max_skew, domains=domains)


@dataclass(frozen=True, kw_only=True, slots=True)
class SpreadTerms:
    """A spread constraint in the integer problem.

    There are new pods only if all bound replicas stay, so the bound pods of domains are constants in rows.
    """

    topology: int
    max_skew: int
    domains: tuple[int, ...]
    """Domains that the rule counts, ascending, whether or not they have nodes; new pods go to no other."""

    def open_domains(self, pods: Mapping[int, int]) -> Collection[int]:
        """Return the domains that can get the next pod, given the pods in each domain, new ones included."""
        most = min(pods.values(), default=0) + self.max_skew
        return {domain for domain, number in pods.items() if number < most}

    def most_new_pods(self, domains: RuleDomains) -> int | None:
        """Return the maximum number of new pods; None if every domain can take some."""
        closed = domains.pods.keys() - set(domains.reachable)
        if not closed:
            return None
        # The closed domains never get a pod, so the fewest of theirs limit all others.
        most = min(domains.pods[domain] for domain in closed) + self.max_skew
        return sum(max(0, most - domains.pods[domain]) for domain in domains.reachable)

    def least_new_pods(self, domains: RuleDomains, pods: Sequence[int]) -> dict[int, Sequence[int]]:
        """Return the minimum that each domain gets of each number of new pods, however they are spread.

        It strengthens the lower bound. The other domains take as many as they can while this one has the
        fewest.
        """
        known: dict[int, Sequence[int]] = {}  # domains with equal pods have equal minimums
        for domain in domains.reachable:
            here = domains.pods[domain]
            if here not in known:
                others = [domains.pods[d] - here for d in domains.reachable if d != domain]
                totals = self._totals(others, max(pods, default=0))
                known[here] = [bisect_left(totals, number) for number in pods]
        return {domain: known[domains.pods[domain]] for domain in domains.reachable}

    def _totals(self, others: Sequence[int], most: int) -> list[int]:
        """Return the most new pods of all domains together if this one gets 0, 1, and so on, up to `most`.

        `others` are the pods that the other domains have more than this one.
        """
        totals: list[int] = []
        while not totals or totals[-1] < most:
            here = len(totals)
            totals.append(here + sum(max(0, here + self.max_skew - other) for other in others))
        return totals

    def parts(self, program: Program, units: NewUnits, domains: RuleDomains) -> dict[int, Terms]:
        """Return the new units of reachable domains, as terms, and add the rows of the rule.

        They allow exactly the valid distributions of at most `most_new_pods` pods over these domains.
        """
        if self.max_skew == 1 and units.pods == 1:
            return self._even_parts(program, units, domains)
        return self._parts_within(program, units, domains)

    def _even_parts(self, program: Program, units: NewUnits, domains: RuleDomains) -> dict[int, Terms]:
        """Return the new pods of each domain for a skew of at most 1.

        All domains that get pods then end with the same number, or with one more. The least number of each
        domain follows from the total; each gets at most one of the rest: as the solver chooses, or, without
        variables, the first domains of the order.
        """
        parts: dict[int, Terms] = {domain: [] for domain in domains.reachable}
        rest: list[tuple[int, int, list[int]]] = []
        fewest = self.least_new_pods(domains, [pods for _, pods in units.terms])
        for turn, (variable, pods) in enumerate(units.terms):
            least = {domain: amounts[turn] for domain, amounts in fewest.items()}
            left = pods - sum(least.values())
            for domain, amount in least.items():
                if amount:
                    parts[domain].append((variable, amount))
            takers = _takers(domains.pods, least, units.order or domains.reachable)
            if units.order is None and left:
                rest.append((variable, left, takers))
            elif units.order is not None:
                for domain in takers[:left]:
                    parts[domain].append((variable, 1))
        if rest:
            _choose_domains(program, parts, rest)
        return parts

    def _parts_within(self, program: Program, units: NewUnits, domains: RuleDomains) -> dict[int, Terms]:
        """Return the new units of each domain for any skew.

        If the bound pods satisfy the constraint by themselves, it also holds without new pods, and needs no
        condition.
        """
        pods, most, counts = units.pods, units.most, domains.pods
        chosen = dict(zip(domains.reachable, program.variables(len(domains.reachable), most), strict=True))
        program.row([*units.terms, *((variable, -1) for variable in chosen.values())], least=0, most=0)
        fewest = program.variables(1, max(counts.values(), default=0) + pods * most)[0]
        for domain, count in counts.items():
            here: Terms = [(chosen[domain], -pods)] if domain in chosen else []
            program.row([(fewest, 1), *here], most=count)
        for domain, variable in chosen.items():
            ahead = self.max_skew - counts[domain]
            if counts[domain] - min(counts.values()) <= self.max_skew:
                program.row([(variable, pods), (fewest, -1)], most=ahead)
                continue
            gets = program.variables(1)[0]
            program.switch(variable, gets)
            program.row([(variable, pods), (fewest, -1)], most=ahead, only_if=gets)
        return {domain: [(variable, 1)] for domain, variable in chosen.items()}


def _takers(counts: Mapping[int, int], least: Mapping[int, int], domains: Iterable[int]) -> list[int]:
    """Return the domains that can get one pod more once each has the least number of new pods."""
    fewest = min((counts[domain] + pods for domain, pods in least.items()), default=0)
    return [domain for domain in domains if counts[domain] <= fewest]


def _choose_domains(
    program: Program, parts: dict[int, Terms], rest: Sequence[tuple[int, int, Sequence[int]]]
) -> None:
    """Let the solver choose the domains that get one more pod, add these to the parts, and add the rows.

    `rest` has, for each variable, the number of remaining pods if it is 1, and the domains that can get one.
    """
    chosen = dict(zip(parts, program.variables(len(parts)), strict=True))
    for domain, one_more in chosen.items():
        parts[domain].append((one_more, 1))
        open_to = [variable for variable, _, takers in rest if domain in takers]
        if len(open_to) < len(rest):
            program.row([(one_more, 1), *((variable, -1) for variable in open_to)], most=0)
    left = [(variable, pods) for variable, pods, _ in rest]
    program.row([*left, *((one_more, -1) for one_more in chosen.values())], least=0, most=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class PodRules:
    """The rules for the pods of one variant; None for no rule of that type."""

    spread: Spread | None = None
    most_per_node: MostPerNode | None = None
