"""Topology domains of nodes, as far as pods refer to them: zones to spread over, racks to stay within."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from controller.planning.cluster import Node
from controller.planning.inventory import known_labels, meets, topology_keys
from controller.planning.pod_rules.interface import DomainTerms, Topology
from controller.planning.problem import NO_DOMAIN
from controller.planning.snapshot import Variant


class Topologies:
    """The topologies to which some variant refers, by the label that names their domains."""

    def __init__(self, nodes: Sequence[Node], to_come: Sequence[Node], variants: Sequence[Variant]) -> None:
        self._nodes = nodes
        self._to_come = to_come
        self._keys = sorted(frozenset[str]().union(*(topology_keys(variant) for variant in variants)))
        self._known: dict[tuple[object, ...], Topology] = {}

    @cached_property
    def _numbers(self) -> list[dict[str, int]]:
        """The number of each domain by label value, per topology."""
        labels = [self._labels(node) for node in (*self._nodes, *self._to_come)] if self._keys else []
        return [
            {value: number for number, value in enumerate(sorted({of[key] for of in labels if key in of}))}
            for key in self._keys
        ]

    def domains(self, node: Node) -> tuple[int, ...]:
        """Return the domain of a node in each topology."""
        labels = self._labels(node) if self._keys else {}
        return tuple(
            numbers.get(labels.get(key, ""), NO_DOMAIN)
            for key, numbers in zip(self._keys, self._numbers, strict=True)
        )

    def _labels(self, node: Node) -> dict[str, str]:
        """Return the labels that name a domain; one with several possible values names none."""
        known = known_labels(node, frozenset(self._keys))
        return {key: value for key, value in node.labels if key in known}

    def of_nodes(self) -> tuple[tuple[int, ...], ...]:
        """Return the domain of each node, per topology."""
        rows = [self.domains(node) for node in self._nodes] if self._keys else []
        return tuple(tuple(row[index] for row in rows) for index, _ in enumerate(self._keys))

    def together(self, variant: Variant) -> int | None:
        """Return the topology in which a replica's pods must be together; None for single pods."""
        asks = variant.together_in and variant.pods_per_replica > 1
        return self._keys.index(variant.together_in) if asks else None

    def domain_rule(self, variant: Variant) -> DomainTerms | None:
        """Return the rule of a variant's pods on domains in integers, or None."""
        rule = variant.rules.on_domains
        if rule is None:
            return None
        number = self._keys.index(rule.topology_key)
        key = (number, variant.accelerator, variant.node_selector, variant.node_affinity)
        if key not in self._known:
            self._known[key] = Topology(
                number=number,
                selected=self._selected_domains(self._nodes, number, variant),
                selected_to_come=self._selected_domains(self._to_come, number, variant),
                every=tuple(self._numbers[number].values()),
            )
        return rule.terms(self._known[key])

    def _selected_domains(self, nodes: Sequence[Node], topology: int, variant: Variant) -> tuple[int, ...]:
        """Return the domains of the nodes that a variant's pods select."""
        selected = {
            self.domains(node)[topology]
            for node in nodes
            if variant.accelerator in ("", node.accelerator)
            and variant.node_selector <= node.labels
            and meets(node, variant.node_affinity)
        }
        return tuple(sorted(selected - {NO_DOMAIN}))
