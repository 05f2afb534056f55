"""Replay a policy on recorded metrics: its decisions, each assumed to take effect at once.

Recorded metrics do not respond to decisions, so this shows how a policy interprets them, not how well its
decisions serve: for that, simulate it in closed loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.closedloop.bound import PolicyFile
from controller.closedloop.decided import Decided, decided_point, target_names
from controller.commands.simulate.metric_trace import MetricTrace
from controller.policies.history import History
from controller.policies.policy import Binding, lone_binding
from controller.policies.sharing import BindingSeen, TargetSeen, decide_binding
from controller.sizing.records import SizingSettings

MOST_UNBOUND = 1000
"""Maximum replicas, if no binding limits them."""

_UNBOUND = "target"


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay(Decided):
    """All decisions of one policy on one trace."""

    policy: str
    trace: str
    interval_seconds: float
    warnings: tuple[str, ...] = ()

    @property
    def replica_hours(self) -> float:
        """Total replica-hours of the decisions."""
        return sum(point.replicas for point in self.points) * self.interval_seconds / 3600


def replay_policy(
    found: PolicyFile, trace: MetricTrace, *, policy: str, file: str, settings: SizingSettings
) -> Replay:
    """Return the decisions per interval, from the first sample to the last, starting with the minimum."""
    binding = found.binding or lone_binding(_UNBOUND, min_replicas=1, max_replicas=MOST_UNBOUND)
    history, counts = History(), tuple(target.min_replicas for target in binding.targets)
    points = []
    for tick in range(int(trace.end_seconds / settings.interval_seconds) + 1):
        now_seconds = tick * settings.interval_seconds
        totals = trace.at(now_seconds)
        targets = tuple(TargetSeen(current_replicas=count) for count in counts)
        seen = BindingSeen(targets=targets, totals=totals)
        made = decide_binding(found.policy, binding, history, seen, now_seconds, settings=settings)
        points.append(decided_point(binding, made, counts, now_seconds))
        history, counts = made.history, made.replicas
    return Replay(
        policy=policy,
        trace=file,
        targets=target_names(binding),
        is_alike=binding.is_alike,
        interval_seconds=settings.interval_seconds,
        points=tuple(points),
        warnings=tuple(_warnings(found, binding, trace)),
    )


def _warnings(found: PolicyFile, binding: Binding, trace: MetricTrace) -> list[str]:
    missing = [metric.name for metric in found.policy.metrics if metric.name not in trace.moments]
    warnings = (
        [f"the trace has no samples of {', '.join(missing)}: nothing is scaled down"] if missing else []
    )
    if found.binding is None:
        warnings.append(f"no binding in the file: from 1 to {MOST_UNBOUND} replicas of one target")
    elif not any(target.min_replicas for target in binding.targets):
        warnings.append("all minReplicas are 0: the trace itself must show demand that no pod could report")
    return warnings
