"""The results of one cycle of variants, and Prometheus metrics about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from apiserver.cluster.errors import ClusterError
from apiserver.kinds.autoscalers import VARIANT_CURRENT, VARIANT_METRIC, VARIANT_RATIO
from apiserver.kinds.identity import Key
from apiserver.kinds.metric_labels import VARIANT_LABELS
from controller.observe.decision_following import ActingFinding
from controller.observe.gather import GatherResult
from controller.observe.policies import SettingsProblem
from controller.planning.decision import Plan, VariantDecision
from controller.sizing.attainment import TargetAttainment
from controller.sizing.sizing import NOTHING_TOLD, SizedVariant
from controller.variants.advisory import Advice
from controller.variants.placement_following import IN_STEP, Divergence


@dataclass(frozen=True, kw_only=True, slots=True)
class CycleResult:
    """Results of one cycle, for logs and metrics."""

    plan: Plan
    gathered: GatherResult
    written: int
    scrape_failures: int
    responding: int = 0
    """The number of engines that responded."""

    silent_models: Mapping[Key, str] = field(default_factory=dict)
    """Models (namespace, ID) none of whose ready engines responded, with the cause."""

    advices: Mapping[Key, Advice] = field(default_factory=dict)
    """For the variants whose decisions are advice only."""

    sized: Mapping[Key, SizedVariant] = field(default_factory=dict)

    evictions: Mapping[str, int] = field(default_factory=dict)
    """The number of evictions by outcome."""

    unwritten: Mapping[Key, ClusterError] = field(default_factory=dict)
    """Errors of the statuses that could not be written."""

    not_ready: Mapping[Key, str] = field(default_factory=dict)
    """The reasons of the variants whose condition `Ready` is false."""

    acting: Mapping[Key, ActingFinding] = field(default_factory=dict)
    """Whether each decision is followed that is not only advice."""

    divergence: Divergence = IN_STEP
    """The difference between the previous plan and the scheduler's placement."""

    settings: tuple[SettingsProblem, ...] = ()
    """What is wrong with prices and service classes."""


_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_READY_SECONDS: Final = (10, 20, 30, 45, 60, 90, 120, 180, 300, 450, 600, 900, 1200, 1800)
_VARIANT: Final = ("namespace", "variant_name", "accelerator_type")
_POOL: Final = ("namespace", "accelerator_type")
"""Labels of a histogram: with the name of a variant, ten thousand would have 170,000 series."""

_MODEL: Final = ("namespace", "model_id", "priority")
_EXTERNAL: Final = tuple(sorted(VARIANT_LABELS - {"exported_namespace"}))
"""Labels of the external metrics API, without the one that Prometheus adds itself. An empty label is to
Prometheus as if it were missing.
"""

_GAUGES: Final[Mapping[tuple[str, ...], Mapping[str, str]]] = {
    _VARIANT: {
        "stowplan_desired_replicas": "Replicas granted by the last plan.",
        "stowplan_current_replicas": "Replicas that the scale target of a variant requests now.",
        "stowplan_ready_replicas": "Ready replicas of a variant.",
        "stowplan_unconstrained_replicas": "Replicas that the last plan would grant on unlimited nodes.",
        "stowplan_unmet_per_mille": (
            "Thousandths of the variant's model's required capacity that are not provided."
        ),
    },
    (*_VARIANT[:2], "reason"): {
        "stowplan_not_ready": "1 for each variant whose condition Ready is false, with its reason.",
        "stowplan_decision_not_followed": (
            "1 for each reason why the decision on a variant is not followed; not for advice."
        ),
    },
    _MODEL: {
        "stowplan_unmet_ratio": "Share of a model's required capacity that the last plan does not provide.",
        "stowplan_attained_ratio": (
            "Share of a model's requests of the last hour that were within their latency targets."
        ),
        "stowplan_promised_ratio": "Share of a model's requests that should be within their latency targets.",
        "stowplan_ttft_target_seconds": "Target of a model's time to first token.",
        "stowplan_ttft_attained_ratio": (
            "Share of a model's requests of the last hour within the target of TTFT."
        ),
        "stowplan_itl_target_seconds": "Target of a model's inter-token latency.",
        "stowplan_itl_attained_ratio": (
            "Share of a model's requests of the last hour within the target of ITL."
        ),
    },
    _VARIANT[:2]: {
        "stowplan_advisory_saved_cost": "Cost per hour that following the advice for a variant would save.",
        "stowplan_pending_replicas": "Replicas that a plan had room for and that now fit on no node.",
    },
    _MODEL[:2]: {
        "stowplan_desired_cost": "Cost per hour of the granted replicas of a model.",
        "stowplan_current_cost": "Cost per hour of the replicas that a model's scale targets request now.",
        "stowplan_silent_model": "1 for each model none of whose ready engines responded.",
        "stowplan_demand_requests_per_second": "Current requests per second of a model.",
        "stowplan_demand_upper_requests_per_second": (
            "Upper bound of the requests per second of a model until replicas that start now are ready."
        ),
        "stowplan_required_requests_per_second": (
            "Requests per second that a model's replicas are to serve within their targets."
        ),
        "stowplan_signal_age_seconds": "Age of the oldest report of a model's engines that is used.",
    },
    _EXTERNAL: {
        VARIANT_METRIC: "Replicas that a variant should have.",
        VARIANT_CURRENT: "Replicas that the scale target of a variant requests.",
        VARIANT_RATIO: "Desired over current replicas; the desired replicas if there are none.",
    },
    ("level",): {
        "stowplan_plan_level_gap_ratio": "Distance of the last plan from its proven bound, by level."
    },
    ("pool",): {"stowplan_requested_nodes": "Nodes to add that the last plan counts on."},
    (): {
        "stowplan_plan_cost": "Cost per hour of all granted replicas.",
        "stowplan_plan_gap_ratio": (
            "Distance of the last plan from its proven bound; 1 if the running replicas stay."
        ),
        "stowplan_silent_engines": "Engines that did not respond.",
        "stowplan_responding_engines": "Engines that responded.",
    },
    (*_MODEL[:2], "state"): {
        "stowplan_signal_state": (
            "1 for the current signal of a model's load: Fresh, Quorum, Held or Unknown."
        )
    },
    (*_VARIANT[:2], "source"): {
        "stowplan_capacity_requests_per_second": (
            "Requests per second that one replica serves within its targets."
        )
    },
    ("config_map", "key", "problem"): {
        "stowplan_invalid_settings_since_timestamp_seconds": (
            "When settings became invalid or were lost, so that their last valid content"
            " or a default applies."
        )
    },
}
"""Names and texts, by labels."""


class Telemetry:
    """Gauges of the last decision and counters of cycles, on a given registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._gauges = {
            name: Gauge(name, text, labels, registry=registry)
            for labels, texts in _GAUGES.items()
            for name, text in texts.items()
        }
        self._labelled = [self._gauges[name] for labels, names in _GAUGES.items() if labels for name in names]
        self._cycles = Counter("stowplan_cycles", "Cycles by outcome.", ("outcome",), registry=registry)
        self._written = Counter("stowplan_status_writes", "Statuses written.", registry=registry)
        self._unwritten = Counter(
            "stowplan_status_writes_failed", "Statuses that could not be written.", registry=registry
        )
        self._evictions = Counter(
            "stowplan_evictions", "Evictions by outcome.", ("outcome",), registry=registry
        )
        self._elsewhere = Counter(
            "stowplan_placements_diverged",
            "Replicas bound to a node where the previous plan had no place for them.",
            registry=registry,
        )
        self._reversals = Counter(
            "stowplan_reversals",
            "Times that the replicas granted to a variant changed direction, from up to down or back.",
            _VARIANT[:2],
            registry=registry,
        )
        self._courses: dict[Key, tuple[int, int]] = {}
        self._until_ready = Histogram(
            "stowplan_decision_to_ready_seconds",
            "Time from a decision that adds replicas to a variant until these replicas are ready.",
            _POOL,
            buckets=_READY_SECONDS,
            registry=registry,
        )
        self._ready_times = ReadyTimes()
        self._timed: set[tuple[str, str]] = set()
        self._seconds = Histogram(
            "stowplan_cycle_duration_seconds",
            "Time from reading the cluster state to publishing the decisions.",
            buckets=_SECONDS,
            registry=registry,
        )

    def observe(self, result: CycleResult, *, seconds: float, now_seconds: float) -> None:
        """Record a successful cycle that took `seconds`; remove the series of objects that no longer exist.

        `now_seconds` is the time of a clock that never jumps.
        """
        for gauge in self._labelled:
            gauge.clear()
        self._tell_variants(result)
        self._tell_costs(result)
        self._tell_numbers(result)
        self._count_reversals(result.plan.decisions)
        self._observe_ready_times(result, now_seconds=now_seconds)
        plan = result.plan
        for report in plan.solver.levels:
            self._set_gauge("stowplan_plan_level_gap_ratio", report.gap, report.level)
        for request in plan.requests:
            self._set_gauge("stowplan_requested_nodes", request.nodes, request.pool)
        for wrong in result.settings:
            since, labels = (
                wrong.since.timestamp() if wrong.since else 1,
                (wrong.config_map, wrong.key, wrong.text),
            )
            self._set_gauge("stowplan_invalid_settings_since_timestamp_seconds", since, *labels)
        self._set_gauge("stowplan_plan_cost", float(plan.cost))
        self._set_gauge("stowplan_plan_gap_ratio", plan.solver.gap)
        self._set_gauge("stowplan_silent_engines", result.scrape_failures)
        self._set_gauge("stowplan_responding_engines", result.responding)
        for silent in result.silent_models:
            self._set_gauge("stowplan_silent_model", 1, *silent)
        self._written.inc(result.written)
        self._unwritten.inc(len(result.unwritten))
        self._elsewhere.inc(result.divergence.elsewhere)
        for ending, count in result.evictions.items():
            self._evictions.labels(ending).inc(count)
        self._cycles.labels(str(plan.solver.status)).inc()
        self._seconds.observe(seconds)

    def count_failure(self, why: str) -> None:
        """Record a failed cycle."""
        self._cycles.labels(why).inc()

    def _gauge(self, name: str, *labels: str) -> Gauge:
        return self._gauges[name].labels(*labels) if labels else self._gauges[name]

    def _set_gauge(self, name: str, value: float, *labels: str) -> None:
        self._gauge(name, *labels).set(value)

    def _count_reversals(self, decisions: Sequence[VariantDecision]) -> None:
        """Count changes of direction, and forget variants that no longer exist."""
        courses = {}
        for decision in decisions:
            key = decision.key
            replicas, direction = self._courses.get(key, (decision.replicas, 0))
            change = (decision.replicas > replicas) - (decision.replicas < replicas)
            if change * direction < 0:
                self._reversals.labels(*key).inc()
            courses[key] = decision.replicas, change or direction
        for key in self._courses.keys() - courses.keys():
            self._reversals.remove(*key)
        self._courses = courses

    def _observe_ready_times(self, result: CycleResult, *, now_seconds: float) -> None:
        """Observe the replicas that became ready; forget accelerators without variants in a namespace."""
        ready = {item.key: item.ready_replicas for item in result.gathered.snapshot.variants}
        types = {item.key: item.accelerator for item in result.gathered.snapshot.variants}
        acted_on = [item for item in result.plan.decisions if item.key in ready.keys() - result.advices]
        granted = {item.key: item.replicas for item in acted_on}
        pools = {(key[0], types[key]) for key in granted}
        for pool in self._timed - pools:
            self._until_ready.remove(*pool)
        self._timed &= pools
        for key, waited_seconds in self._ready_times.advance(granted, ready, now_seconds=now_seconds):
            pool = (key[0], types[key])
            self._until_ready.labels(*pool).observe(waited_seconds)
            self._timed.add(pool)

    def _tell_costs(self, result: CycleResult) -> None:
        granted = {item.key: item.replicas for item in result.plan.decisions}
        for seen in result.gathered.snapshot.variants:
            if seen.key in granted:
                model, cost = (seen.namespace, seen.model_id), seen.cost_per_replica
                self._gauge("stowplan_desired_cost", *model).inc(float(cost * granted[seen.key]))
                self._gauge("stowplan_current_cost", *model).inc(float(cost * seen.current_replicas))

    def _tell_numbers(self, result: CycleResult) -> None:
        """Set the numbers of the external metrics API, by their names in llm-d; as there, advice has none.

        Queries that were written for llm-d's autoscaler read them, in adapters for external metrics and in
        triggers of KEDA.
        """
        decisions = {item.key: item for item in result.plan.decisions if item.key not in result.advices}
        current = {item.key: item.current_replicas for item in result.gathered.snapshot.variants}
        for claimant in result.gathered.claimants:
            if decision := decisions.get(claimant.key):
                known = {**claimant.labels, "accelerator_type": decision.accelerator}
                labels = [known.get(name, "") for name in _EXTERNAL]
                self._set_gauge(VARIANT_METRIC, decision.replicas, *labels)
                self._set_gauge(VARIANT_CURRENT, current[claimant.key], *labels)
                self._set_gauge(VARIANT_RATIO, decision.replicas / (current[claimant.key] or 1), *labels)

    def _tell_level(self, model: tuple[str, str, str], level: TargetAttainment) -> None:
        targets = level.targets
        self._set_gauge("stowplan_attained_ratio", level.share, *model)
        self._set_gauge("stowplan_promised_ratio", targets.attainment, *model)
        if targets.ttft_seconds is not None:
            self._set_gauge("stowplan_ttft_target_seconds", targets.ttft_seconds, *model)
            self._set_gauge("stowplan_ttft_attained_ratio", 1 - level.ttft_missed, *model)
        if targets.itl_seconds is not None:
            self._set_gauge("stowplan_itl_target_seconds", targets.itl_seconds, *model)
            self._set_gauge("stowplan_itl_attained_ratio", 1 - level.itl_missed, *model)

    def _tell_load(self, decision: VariantDecision) -> None:
        load, model = decision.load, (decision.namespace, decision.model_id)
        self._set_gauge("stowplan_signal_state", 1, *model, str(load.signal))
        if load.signal_age_seconds is not None:
            self._set_gauge("stowplan_signal_age_seconds", load.signal_age_seconds, *model)
        if load.requests_per_second is not None:
            self._set_gauge("stowplan_demand_requests_per_second", load.requests_per_second, *model)
            self._set_gauge(
                "stowplan_demand_upper_requests_per_second", load.upper_requests_per_second, *model
            )
            self._set_gauge(
                "stowplan_required_requests_per_second", decision.required_requests_per_second, *model
            )
        if decision.capacity is not None:
            rate, source = decision.capacity.requests_per_second, str(decision.capacity.source)
            self._set_gauge("stowplan_capacity_requests_per_second", rate, *decision.key, source)

    def _tell_unfollowed(self, result: CycleResult) -> None:
        for key, (is_followed, because, _) in result.acting.items():
            reasons = [str(item.reason) for item in result.gathered.observed[key].misread]
            for reason in (*reasons, *([] if is_followed else [str(because)])):
                self._set_gauge("stowplan_decision_not_followed", 1, *key, reason)

    def _tell_variants(self, result: CycleResult) -> None:
        for seen in result.gathered.snapshot.variants:
            if not result.gathered.observed[seen.key].claim.is_bound:
                variant = (seen.namespace, seen.name, seen.accelerator)
                self._set_gauge("stowplan_current_replicas", seen.current_replicas, *variant)
                self._set_gauge("stowplan_ready_replicas", seen.ready_replicas, *variant)
        for key, reason in result.not_ready.items():
            self._set_gauge("stowplan_not_ready", 1, *key, reason)
        self._tell_unfollowed(result)
        for decision in result.plan.decisions:
            variant = (decision.namespace, decision.name, decision.accelerator)
            model = (decision.namespace, decision.model_id, str(decision.priority))
            self._set_gauge("stowplan_desired_replicas", decision.replicas, *variant)
            self._set_gauge("stowplan_unconstrained_replicas", decision.unconstrained_replicas, *variant)
            self._set_gauge("stowplan_unmet_per_mille", decision.unmet_per_mille, *variant)
            self._set_gauge("stowplan_unmet_ratio", decision.unmet_per_mille / 1000, *model)
            self._tell_load(decision)
            if level := result.sized.get(decision.key, NOTHING_TOLD).service_level:
                self._tell_level(model, level)
        for waiting in result.divergence.waiting:
            self._gauge("stowplan_pending_replicas", *waiting.variant).inc()
        for key, advice in result.advices.items():
            self._set_gauge("stowplan_advisory_saved_cost", float(advice.saved_per_hour), *key)


class ReadyTimes:
    """The decisions that added replicas to each variant, until these are ready.

    Each decision that grows is timed on its own. A later one that is larger does not restart the time of an
    earlier one; one that is smaller ends the waits for replicas that it no longer grants.
    """

    def __init__(self) -> None:
        self._granted: Mapping[Key, int] = {}
        self._waits: Mapping[Key, Sequence[tuple[int, float]]] = {}
        """The replicas of decisions that are not all ready yet, with the times of these."""

    def advance(
        self, granted: Mapping[Key, int], ready: Mapping[Key, int], *, now_seconds: float
    ) -> Sequence[tuple[Key, float]]:
        """Return the variants whose decisions became ready in this cycle, each with the seconds it took.

        `granted` are the replicas that every variant should have, and `ready` those that are ready. The first
        decision on a variant that is seen is not timed: it may have been made before the controller started.
        """
        observed, waits = [], {}
        for key, replicas in granted.items():
            left = [(number, since) for number, since in self._waits.get(key, ()) if number <= replicas]
            observed += [(key, now_seconds - since) for number, since in left if number <= ready[key]]
            if replicas > max(self._granted.get(key, replicas), ready[key]):
                left.append((replicas, now_seconds))
            waits[key] = [(number, since) for number, since in left if number > ready[key]]
        self._granted, self._waits = dict(granted), waits
        return observed
