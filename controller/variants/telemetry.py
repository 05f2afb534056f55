"""Prometheus metrics about the controller's decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from apiserver.cluster.errors import ClusterError
from apiserver.kinds.autoscalers import VARIANT_CURRENT, VARIANT_METRIC, VARIANT_RATIO
from apiserver.kinds.identity import Key
from apiserver.kinds.metric_labels import VARIANT_LABELS
from controller.observe.decision_following import ActingFinding
from controller.observe.gather import Gathered
from controller.observe.policies import SettingsProblem
from controller.planning.decision import Decision, Plan
from controller.sizing.attainment import ServiceLevel
from controller.variants.advisory import Advice
from controller.variants.placement_following import IN_STEP, Divergence

_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_READY_SECONDS: Final = (10, 20, 30, 45, 60, 90, 120, 180, 300, 450, 600, 900, 1200, 1800)
_VARIANT: Final = ("namespace", "variant_name", "accelerator_type")
_POOL: Final = ("namespace", "accelerator_type")
"""Labels of a histogram: with the name of a variant, ten thousand would have 170,000 series."""

_MODEL: Final = ("namespace", "model_id", "priority")

_DESIRED: Final = "stowplan_desired_replicas"
_CURRENT: Final = "stowplan_current_replicas"
_READY: Final = "stowplan_ready_replicas"
_NOT_READY: Final = "stowplan_not_ready"
_UNFOLLOWED: Final = "stowplan_decision_not_followed"
_WANTED: Final = "stowplan_unconstrained_replicas"
_SHORT: Final = "stowplan_unmet_per_mille"
_UNMET: Final = "stowplan_unmet_ratio"
_SAVED: Final = "stowplan_advisory_saved_cost"
_MODEL_COST: Final = "stowplan_desired_cost"
_CURRENT_COST: Final = "stowplan_current_cost"
_LEVEL_GAP: Final = "stowplan_plan_level_gap_ratio"
_NODES: Final = "stowplan_requested_nodes"
_COST: Final = "stowplan_plan_cost"
_GAP: Final = "stowplan_plan_gap_ratio"
_WAITING: Final = "stowplan_pending_replicas"
_SILENT: Final = "stowplan_silent_engines"
_RESPONDING: Final = "stowplan_responding_engines"
_SILENT_MODEL: Final = "stowplan_silent_model"
_RATE: Final = "stowplan_demand_requests_per_second"
_UPPER: Final = "stowplan_demand_upper_requests_per_second"
_REQUIRED: Final = "stowplan_required_requests_per_second"
_SIGNAL: Final = "stowplan_signal_state"
_AGE: Final = "stowplan_signal_age_seconds"
_ATTAINED: Final = "stowplan_attained_ratio"
_PROMISED: Final = "stowplan_promised_ratio"
_TTFT_TARGET: Final = "stowplan_ttft_target_seconds"
_TTFT_ATTAINED: Final = "stowplan_ttft_attained_ratio"
_ITL_TARGET: Final = "stowplan_itl_target_seconds"
_ITL_ATTAINED: Final = "stowplan_itl_attained_ratio"
_SERVES: Final = "stowplan_capacity_requests_per_second"
_SETTINGS: Final = "stowplan_invalid_settings_since_timestamp_seconds"

_GAUGES: Final = (
    (_DESIRED, "Replicas granted by the last plan.", _VARIANT),
    (_CURRENT, "Replicas that the scale target of a variant requests now.", _VARIANT),
    (_READY, "Ready replicas of a variant.", _VARIANT),
    (
        _NOT_READY,
        "1 for each variant whose condition Ready is false, with its reason.",
        (*_VARIANT[:2], "reason"),
    ),
    (
        _UNFOLLOWED,
        "1 for each reason why the decision on a variant is not followed; not for advice.",
        (*_VARIANT[:2], "reason"),
    ),
    (_WANTED, "Replicas that the last plan would grant on unlimited nodes.", _VARIANT),
    (_SHORT, "Thousandths of the variant's model's required capacity that are not provided.", _VARIANT),
    (_UNMET, "Share of a model's required capacity that the last plan does not provide.", _MODEL),
    (_SAVED, "Cost per hour that following the advice for a variant would save.", _VARIANT[:2]),
    (_MODEL_COST, "Cost per hour of the granted replicas of a model.", _MODEL[:2]),
    (_CURRENT_COST, "Cost per hour of the replicas that a model's scale targets request now.", _MODEL[:2]),
    (_LEVEL_GAP, "Distance of the last plan from its proven bound, by level.", ("level",)),
    (_NODES, "Nodes to add that the last plan counts on.", ("pool",)),
    (_COST, "Cost per hour of all granted replicas.", ()),
    (_GAP, "Distance of the last plan from its proven bound; 1 if the running replicas stay.", ()),
    (_WAITING, "Replicas that a plan had room for and that now fit on no node.", _VARIANT[:2]),
    (_SILENT, "Engines that did not respond.", ()),
    (_RESPONDING, "Engines that responded.", ()),
    (_SILENT_MODEL, "1 for each model none of whose ready engines responded.", _MODEL[:2]),
    (_RATE, "Current requests per second of a model.", _MODEL[:2]),
    (
        _UPPER,
        "Upper bound of the requests per second of a model until replicas that start now are ready.",
        _MODEL[:2],
    ),
    (_REQUIRED, "Requests per second that a model's replicas are to serve within their targets.", _MODEL[:2]),
    (
        _SIGNAL,
        "1 for the current signal of a model's load: Fresh, Quorum, Held or Unknown.",
        (*_MODEL[:2], "state"),
    ),
    (_AGE, "Age of the oldest report of a model's engines that is used.", _MODEL[:2]),
    (
        _ATTAINED,
        "Share of a model's requests of the last hour that were within their latency targets.",
        _MODEL,
    ),
    (_PROMISED, "Share of a model's requests that should be within their latency targets.", _MODEL),
    (_TTFT_TARGET, "Target of a model's time to first token.", _MODEL),
    (_TTFT_ATTAINED, "Share of a model's requests of the last hour within the target of TTFT.", _MODEL),
    (_ITL_TARGET, "Target of a model's inter-token latency.", _MODEL),
    (_ITL_ATTAINED, "Share of a model's requests of the last hour within the target of ITL.", _MODEL),
    (_SERVES, "Requests per second that one replica serves within its targets.", (*_VARIANT[:2], "source")),
    (
        _SETTINGS,
        "When settings became invalid or were lost, so that their last valid content or a default applies.",
        ("config_map", "key", "problem"),
    ),
)


class Telemetry:
    """Gauges of the last decision and counters of cycles, on a given registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._gauges = {name: Gauge(name, text, labels, registry=registry) for name, text, labels in _GAUGES}
        self._labelled = [self._gauges[name] for name, _, labels in _GAUGES if labels]
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
        self._courses: dict[tuple[str, str], tuple[int, int]] = {}
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
        self._count_reversals(result.plan.decisions)
        self._observe_ready_times(result, now_seconds=now_seconds)
        plan = result.plan
        for report in plan.solver.levels:
            self._gauges[_LEVEL_GAP].labels(report.level).set(report.gap)
        for request in plan.requests:
            self._gauges[_NODES].labels(request.pool).set(request.nodes)
        for wrong in result.settings:
            labels = (wrong.config_map, wrong.key, wrong.text)
            self._gauges[_SETTINGS].labels(*labels).set(wrong.since.timestamp() if wrong.since else 1)
        self._gauges[_COST].set(float(plan.cost))
        self._gauges[_GAP].set(plan.solver.gap)
        self._gauges[_SILENT].set(result.scrape_failures)
        self._gauges[_RESPONDING].set(result.responding)
        for silent in result.silent_models:
            self._gauges[_SILENT_MODEL].labels(*silent).set(1)
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

    def _count_reversals(self, decisions: Sequence[Decision]) -> None:
        """Count changes of direction, and forget variants that no longer exist."""
        courses = {}
        for decision in decisions:
            key = (decision.namespace, decision.name)
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
                self._gauges[_MODEL_COST].labels(*model).inc(float(cost * granted[seen.key]))
                self._gauges[_CURRENT_COST].labels(*model).inc(float(cost * seen.current_replicas))

    def _tell_level(self, model: tuple[str, str, str], level: ServiceLevel) -> None:
        targets = level.targets
        self._gauges[_ATTAINED].labels(*model).set(level.share)
        self._gauges[_PROMISED].labels(*model).set(targets.attainment)
        if targets.ttft_seconds is not None:
            self._gauges[_TTFT_TARGET].labels(*model).set(targets.ttft_seconds)
            self._gauges[_TTFT_ATTAINED].labels(*model).set(1 - level.ttft_missed)
        if targets.itl_seconds is not None:
            self._gauges[_ITL_TARGET].labels(*model).set(targets.itl_seconds)
            self._gauges[_ITL_ATTAINED].labels(*model).set(1 - level.itl_missed)

    def _tell_load(self, decision: Decision) -> None:
        load, model = decision.load, (decision.namespace, decision.model_id)
        self._gauges[_SIGNAL].labels(*model, str(load.signal)).set(1)
        if load.signal_age_seconds is not None:
            self._gauges[_AGE].labels(*model).set(load.signal_age_seconds)
        if load.requests_per_second is not None:
            self._gauges[_RATE].labels(*model).set(load.requests_per_second)
            self._gauges[_UPPER].labels(*model).set(load.upper_requests_per_second)
            self._gauges[_REQUIRED].labels(*model).set(decision.required_requests_per_second)
        if decision.capacity is not None:
            source = str(decision.capacity.source)
            gauge = self._gauges[_SERVES].labels(decision.namespace, decision.name, source)
            gauge.set(decision.capacity.requests_per_second)

    def _tell_unfollowed(self, result: CycleResult) -> None:
        for key, (is_followed, because, _) in result.acting.items():
            reasons = [str(item.reason) for item in result.gathered.observed[key].misread]
            for reason in (*reasons, *([] if is_followed else [str(because)])):
                self._gauges[_UNFOLLOWED].labels(*key, reason).set(1)

    def _tell_variants(self, result: CycleResult) -> None:
        for seen in result.gathered.snapshot.variants:
            if not result.gathered.observed[seen.key].claim.is_bound:
                variant = (seen.namespace, seen.name, seen.accelerator)
                self._gauges[_CURRENT].labels(*variant).set(seen.current_replicas)
                self._gauges[_READY].labels(*variant).set(seen.ready_replicas)
        for key, reason in result.not_ready.items():
            self._gauges[_NOT_READY].labels(*key, reason).set(1)
        self._tell_unfollowed(result)
        for decision in result.plan.decisions:
            variant = (decision.namespace, decision.name, decision.accelerator)
            model = (decision.namespace, decision.model_id, str(decision.priority))
            self._gauges[_DESIRED].labels(*variant).set(decision.replicas)
            self._gauges[_WANTED].labels(*variant).set(decision.unconstrained_replicas)
            self._gauges[_SHORT].labels(*variant).set(decision.unmet_per_mille)
            self._gauges[_UNMET].labels(*model).set(decision.unmet_per_mille / 1000)
            self._tell_load(decision)
            if level := result.service_levels.get(decision.key):
                self._tell_level(model, level)
        for waiting in result.divergence.waiting:
            self._gauges[_WAITING].labels(*waiting.variant).inc()
        for key, advice in result.advices.items():
            self._gauges[_SAVED].labels(*key).set(float(advice.saved_per_hour))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wait:
    """A decision whose replicas are not all ready yet."""

    replicas: int
    since_seconds: float


class ReadyTimes:
    """The decisions that added replicas to each variant, until these are ready.

    Each decision that grows is timed on its own. A later one that is larger does not restart the time of an
    earlier one; one that is smaller ends the waits for replicas that it no longer grants.
    """

    def __init__(self) -> None:
        self._granted: Mapping[Key, int] = {}
        self._waits: Mapping[Key, tuple[_Wait, ...]] = {}

    def advance(
        self, granted: Mapping[Key, int], ready: Mapping[Key, int], *, now_seconds: float
    ) -> Iterator[tuple[Key, float]]:
        """Return the variants whose decisions became ready in this cycle, each with the seconds it took.

        `granted` are the replicas that every variant should have, and `ready` those that are ready. The first
        decision on a variant that is seen is not timed: it may have been made before the controller started.
        """
        observed, waits = [], {}
        for key, replicas in granted.items():
            kept = [wait for wait in self._waits.get(key, ()) if wait.replicas <= replicas]
            observed += [(key, now_seconds - it.since_seconds) for it in kept if it.replicas <= ready[key]]
            if replicas > max(self._granted.get(key, replicas), ready[key]):
                kept.append(_Wait(replicas=replicas, since_seconds=now_seconds))
            waits[key] = tuple(wait for wait in kept if wait.replicas > ready[key])
        self._granted, self._waits = dict(granted), waits
        return iter(observed)


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


@dataclass(frozen=True, kw_only=True, slots=True)
class CycleResult:
    """Results of one cycle, for logs and metrics."""

    plan: Plan
    gathered: Gathered
    written: int
    scrape_failures: int
    responding: int = 0
    """The number of engines that responded."""

    silent_models: Mapping[Key, str] = field(default_factory=dict)
    """Models (namespace, ID) none of whose ready engines responded, with the cause."""

    advices: Mapping[Key, Advice] = field(default_factory=dict)
    """For the variants whose decisions are advice only."""

    service_levels: Mapping[Key, ServiceLevel] = field(default_factory=dict)
    """What the engines of each variant's model attained, if it has targets."""

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
