"""The numbers of the external metrics API as Prometheus metrics, by their names in llm-d.

Queries that were written for llm-d's autoscaler read them, in adapters for external metrics and in triggers
of KEDA. As in that API, advice has no number.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from apiserver.kinds.autoscalers import VARIANT_CURRENT, VARIANT_METRIC, VARIANT_RATIO
from apiserver.kinds.metric_labels import VARIANT_LABELS
from controller.variants.cycle_result import CycleResult

_LABELS: Final = tuple(sorted(VARIANT_LABELS - {"exported_namespace"}))
"""Without the one that Prometheus adds itself. An empty label is to Prometheus as if it were missing."""


class VariantNumbers:
    """Gauges of the last decisions, on a given registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._desired, self._current, self._ratio = (
            Gauge(name, text, _LABELS, registry=registry)
            for name, text in (
                (VARIANT_METRIC, "Replicas that a variant should have."),
                (VARIANT_CURRENT, "Replicas that the scale target of a variant requests."),
                (VARIANT_RATIO, "Desired over current replicas; the desired replicas if there are none."),
            )
        )

    def observe(self, result: CycleResult) -> None:
        """Replace the numbers by those of a successful cycle."""
        for gauge in (self._desired, self._current, self._ratio):
            gauge.clear()
        decisions = {item.key: item for item in result.plan.decisions}
        current = {item.key: item.current_replicas for item in result.gathered.snapshot.variants}
        for claimant in result.gathered.claimants:
            decision = decisions.get(claimant.key)
            if decision is None or claimant.key in result.advices:
                continue
            known = {**claimant.labels, "accelerator_type": decision.accelerator}
            labels = [known.get(name, "") for name in _LABELS]
            self._desired.labels(*labels).set(decision.replicas)
            self._current.labels(*labels).set(current[claimant.key])
            self._ratio.labels(*labels).set(decision.replicas / (current[claimant.key] or 1))
