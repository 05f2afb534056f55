"""What the controller tells Prometheus of its decisions."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controller.reconcilers.variantautoscaling import Outcome

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_VARIANT = ("namespace", "variant_name", "accelerator_type")


class Telemetry:
    """Gauges of the last decision and counters of cycles, on a given registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._replicas = Gauge(
            "stowplan_desired_replicas", "Replicas granted by the last plan.", _VARIANT, registry=registry
        )
        self._unmet = Gauge(
            "stowplan_unmet_ratio",
            "Share of a model's required capacity that the last plan does not provide.",
            ("namespace", "model_id", "priority"),
            registry=registry,
        )
        self._cost = Gauge("stowplan_plan_cost", "Cost per hour of all granted replicas.", registry=registry)
        self._gap = Gauge(
            "stowplan_plan_gap_ratio", "Distance of the last plan from its proven bound.", registry=registry
        )
        self._cycles = Counter("stowplan_cycles", "Cycles by outcome.", ("outcome",), registry=registry)
        self._written = Counter("stowplan_status_writes", "Statuses written.", registry=registry)
        self._silent = Gauge("stowplan_silent_engines", "Engines that did not answer.", registry=registry)
        self._seconds = Histogram(
            "stowplan_cycle_duration_seconds",
            "Time from looking to having published.",
            buckets=_SECONDS,
            registry=registry,
        )

    def observe(self, outcome: Outcome, *, seconds: float) -> None:
        """Take in a cycle that went through; series of variants that are gone go too."""
        self._replicas.clear()
        self._unmet.clear()
        for decision in outcome.plan.decisions:
            self._replicas.labels(decision.namespace, decision.name, decision.accelerator).set(
                decision.replicas
            )
            share = decision.unmet_per_mille / 1000
            self._unmet.labels(decision.namespace, decision.model_id, str(decision.priority)).set(share)
        self._cost.set(float(outcome.plan.cost))
        self._gap.set(outcome.plan.solver.gap)
        self._written.inc(outcome.written)
        self._silent.set(outcome.scrape_failures)
        self._cycles.labels(str(outcome.plan.solver.status)).inc()
        self._seconds.observe(seconds)

    def failed(self, why: str) -> None:
        """Take in a cycle that did not go through."""
        self._cycles.labels(why).inc()
