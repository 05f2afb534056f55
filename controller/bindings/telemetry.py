"""Prometheus metrics about the controller's decisions on bindings; KEDA can scale by them, too."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from controller.bindings.status import BindingCycleResult, BindingResult
from controller.variants.situations import why_not_followed

_BINDING: Final = ("namespace", "binding_name")
_TARGET: Final = (*_BINDING, "target_kind", "target_name")

_DESIRED: Final = "stowplan_policy_desired_replicas"
_CURRENT: Final = "stowplan_policy_current_replicas"
_UNFOLLOWED: Final = "stowplan_policy_decision_not_followed"
_WANTED: Final = "stowplan_policy_wanted_replicas"
_PANIC: Final = "stowplan_policy_panic"
_LIMITED: Final = "stowplan_policy_limited"
_SILENT: Final = "stowplan_policy_silent_pods"
_RESPONDING: Final = "stowplan_policy_responding_pods"
_SILENT_BINDING: Final = "stowplan_policy_silent_binding"

_GAUGES: Final = (
    (
        _DESIRED,
        "Replicas that a target of a binding should have; not for bindings in advisory mode.",
        _TARGET,
    ),
    (_CURRENT, "Replicas that a target of a binding requests now.", _TARGET),
    (
        _UNFOLLOWED,
        "1 for each reason why the decision on a binding is not followed; not for advice.",
        (*_BINDING, "reason"),
    ),
    (_WANTED, "Replicas that the metrics of a binding's policy ask for, without any limit.", _BINDING),
    (_PANIC, "1 while panic mode holds for a binding.", _BINDING),
    (_LIMITED, "1 for each limit that changed what the metrics ask for.", (*_BINDING, "limit")),
    (_SILENT, "Bound pods that did not respond.", ()),
    (_RESPONDING, "Bound pods that responded.", ()),
    (_SILENT_BINDING, "1 for each binding none of whose pods responded.", _BINDING),
)


class BindingTelemetry:
    """Gauges of the last decisions on bindings, on a given registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._gauges = {name: Gauge(name, text, labels, registry=registry) for name, text, labels in _GAUGES}
        self._labelled = [self._gauges[name] for name, _, labels in _GAUGES if labels]
        self._written = Counter(
            "stowplan_policy_status_writes", "Statuses of bindings written.", registry=registry
        )
        self._unwritten = Counter(
            "stowplan_policy_status_writes_failed",
            "Statuses of bindings that could not be written.",
            registry=registry,
        )
        self._scaled = Counter(
            "stowplan_policy_scale_writes",
            "Scales written by the controller itself, by outcome; tries without effect where they failed.",
            ("outcome",),
            registry=registry,
        )
        self._failed = Counter(
            "stowplan_policy_cycles_failed", "Failed cycles of bindings.", registry=registry
        )

    def observe(self, cycle: BindingCycleResult) -> None:
        """Record a successful cycle; remove the series of objects that no longer exist."""
        for gauge in self._labelled:
            gauge.clear()
        for result in cycle.results:
            self._tell(result)
        self._gauges[_SILENT].set(cycle.scrape_failures)
        self._gauges[_RESPONDING].set(cycle.responding)
        for key in cycle.silent:
            self._gauges[_SILENT_BINDING].labels(*key).set(1)
        self._written.inc(cycle.written)
        self._unwritten.inc(len(cycle.unwritten))
        for ending, count in cycle.scaled.items():
            self._scaled.labels(ending).inc(count)

    def count_failure(self) -> None:
        """Record a failed cycle."""
        self._failed.inc()

    def _tell(self, result: BindingResult) -> None:
        key = result.case.key
        for state in result.case.targets:
            target = state.bound.target
            self._gauges[_CURRENT].labels(*key, target.kind, target.name).set(state.current_replicas)
        for reason in why_not_followed(result):
            self._gauges[_UNFOLLOWED].labels(*key, reason).set(1)
        for state, replicas in zip(result.case.targets, result.replicas or (), strict=False):
            target = state.bound.target
            self._gauges[_DESIRED].labels(*key, target.kind, target.name).set(replicas)
        if result.decision is None:
            return
        whole = result.decision.whole
        if whole.wanted_replicas is not None:
            self._gauges[_WANTED].labels(*key).set(whole.wanted_replicas)
        self._gauges[_PANIC].labels(*key).set(whole.panic_since_seconds is not None)
        for limit in whole.limits:
            self._gauges[_LIMITED].labels(*key, str(limit)).set(1)
