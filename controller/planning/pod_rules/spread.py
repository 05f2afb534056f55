"""Spread pods over the domains of a topology (core/v1 `topologySpreadConstraints` with `DoNotSchedule`).

A new pod can be placed in a domain only if the variant's pods there then exceed those of the domain with the
fewest by at most `max_skew`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller.planning.pod_rules.interface import (
    DomainRule,
    Domains,
    DomainTerms,
    NewUnits,
    Rows,
    Terms,
    Topology,
)
from controller.planning.ranges import out_of_range, refuse

MOST_SKEW = 10**6
"""Maximum skew of a spread constraint; a larger one would allow the same plans."""

EMPTY_DOMAIN = 10**9
"""A domain without nodes, which counts in spreading and never has any pods."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread(DomainRule):
    """A spread constraint on the variant's own pods. Raises ValueError if the skew is out of range."""

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
class SpreadTerms(DomainTerms):
    """A spread constraint in the integer problem."""

    max_skew: int

    def open_domains(self, pods: Mapping[int, int]) -> Collection[int]:
        """Return the domains that one more pod leaves within the skew."""
        most = min(pods.values(), default=0) + self.max_skew
        return {domain for domain, number in pods.items() if number < most}

    def most_new_pods(self, domains: Domains) -> int | None:
        """Return the maximum number of new pods; None if every domain can take some."""
        closed = domains.pods.keys() - set(domains.reachable)
        if not closed:
            return None
        most = min(domains.pods[domain] for domain in closed) + self.max_skew
        return sum(max(0, most - domains.pods[domain]) for domain in domains.reachable)

    def least_new_pods(self, domains: Domains, pods: Sequence[int]) -> dict[int, Sequence[int]]:
        """Return the minimum that each domain gets of each number of new pods, however they are spread.

        The other domains take as many as they can while this one has the fewest.
        """
        known: dict[tuple[int, ...], Sequence[int]] = {}
        found = {}
        for domain in domains.reachable:
            here = domains.pods[domain]
            others = tuple(sorted(domains.pods[d] - here for d in domains.reachable if d != domain))
            if others not in known:
                totals = self._totals(others, max(pods, default=0))
                known[others] = [bisect_left(totals, number) for number in pods]
            found[domain] = known[others]
        return found

    def _totals(self, others: Sequence[int], most: int) -> list[int]:
        """Return the most new pods of all domains together if this one gets 0, 1, and so on, up to `most`.

        `others` are the pods that the other domains have more than this one.
        """
        totals: list[int] = []
        while not totals or totals[-1] < most:
            here = len(totals)
            totals.append(here + sum(max(0, here + self.max_skew - other) for other in others))
        return totals

    def parts(self, program: Rows, units: NewUnits, domains: Domains) -> dict[int, Terms]:
        """Return the new units of each domain, as terms, and add the rows."""
        if self.max_skew == 1 and units.pods == 1:
            return self._even_parts(program, units, domains)
        return self._parts_within(program, units, domains)

    def _even_parts(self, program: Rows, units: NewUnits, domains: Domains) -> dict[int, Terms]:
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

    def _parts_within(self, program: Rows, units: NewUnits, domains: Domains) -> dict[int, Terms]:
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
    program: Rows, parts: dict[int, Terms], rest: Sequence[tuple[int, int, Sequence[int]]]
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
