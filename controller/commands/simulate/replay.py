"""`stowplan simulate --policy FILE --trace FILE`: replay policies on recorded metrics.

Every decision is assumed to take effect at once. Recorded metrics do not respond to decisions, so this shows
how a policy interprets them, not how well its decisions serve: for that, simulate it in closed loop.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from rich.console import RenderableType

from apiserver.schema.json import Json
from controller.commands.plan.configuring import ConfigurationResult
from controller.commands.plan.page import render
from controller.commands.plan.terminal import Tone, labelled_line, show, wrapping_text, write_file
from controller.commands.simulate.chart import HEIGHT, MOST_POINTS, WIDTH, Chart, ChartMark, time_scale
from controller.commands.simulate.page import decided_charts
from controller.commands.simulate.policy_file import is_policy_file, read_policy_file
from controller.commands.simulate.recordings import MetricTrace, is_metric_trace, read_metric_trace
from controller.commands.simulate.results import MOST_CHANGES, clock, moment, over_time
from controller.policies.history import History
from controller.policies.policy import Binding, lone_binding
from controller.policies.sharing import BindingObservation, TargetObservation, decide_binding
from controller.simulation.outcome import BindingCourse
from controller.simulation.policies import PolicyFile, binding_point, target_names
from controller.sizing.records import SizingSettings

_MOST_UNBOUND: Final = 1000
"""Maximum replicas, if no binding limits them."""

_UNBOUND: Final = "target"


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay(BindingCourse):
    """All decisions of one policy on one trace."""

    policy: str
    trace: str
    interval_seconds: float
    warnings: tuple[str, ...] = ()

    @property
    def replica_hours(self) -> float:
        """Total replica-hours of the decisions."""
        return sum(point.replicas for point in self.points) * self.interval_seconds / 3600

    @property
    def summary(self) -> str:
        """What was replayed and its totals, in one line."""
        return (
            f"{self.policy} on {self.trace}: {len(self.points)} decisions in"
            f" {clock(self.points[-1].seconds)}, {len(self.changes)} changes,"
            f" {self.replica_hours:.1f} replica-hours"
        )


def is_replay(options: argparse.Namespace) -> bool:
    """Return whether a trace of metrics is given: then only policies are needed in addition."""
    return not options.files and any(is_metric_trace(file) for file, _ in options.trace)


def run_replay(options: argparse.Namespace, configuring: ConfigurationResult) -> list[str]:
    """Replay, and show and write the results; return the problems, if any."""
    problems = [*map(str, configuring.problems), *_misuses(options)]
    if problems:
        return problems
    ((file, _),) = options.trace
    trace, problems = read_metric_trace(file)
    policies: dict[str, PolicyFile] = {}
    for name in dict.fromkeys(options.policy):
        policy, wrong = read_policy_file(name)
        problems += wrong
        if policy is not None:
            policies[name] = policy
    if problems:
        return problems
    replays = [
        replay_policy(
            policy, trace, policy=Path(name).name, file=Path(file).name, settings=configuring.sizing
        )
        for name, policy in policies.items()
    ]
    if options.html and (problem := write_file(options.html, _page(replays).encode())):
        return [f"{options.html}: {problem}"]
    if options.output == "json":
        sys.stdout.write(json.dumps(_document(replays), ensure_ascii=False) + "\n")
    else:
        show(_text_parts(replays))
    sys.stdout.flush()
    return []


def _misuses(options: argparse.Namespace) -> list[str]:
    others = {
        "SCENARIO": options.scenario,
        "--copies": options.copies,
        "--seed": options.seed,
        "--duration": options.duration,
        "--start": options.start,
    }
    wrong = [
        f"{name} has no effect with a trace of metrics" for name, value in others.items() if value is not None
    ]
    if len(options.trace) > 1 or options.trace[0][1]:
        wrong.append("specify one trace of metrics, without =MODEL")
    if not options.policy or not all(map(is_policy_file, options.policy)):
        wrong.append(
            "a trace of metrics is replayed with --policy FILE, an AutoscalingPolicy in YAML or JSON"
        )
    return wrong


def replay_policy(
    source: PolicyFile, trace: MetricTrace, *, policy: str, file: str, settings: SizingSettings
) -> Replay:
    """Return the decisions per interval, from the first sample to the last, starting with the minimum."""
    binding = source.binding or lone_binding(_UNBOUND, min_replicas=1, max_replicas=_MOST_UNBOUND)
    history, counts = History(), tuple(target.min_replicas for target in binding.targets)
    points = []
    for tick in range(int(trace.end_seconds / settings.interval_seconds) + 1):
        now_seconds = tick * settings.interval_seconds
        targets = tuple(TargetObservation(current_replicas=count) for count in counts)
        seen = BindingObservation(targets=targets, totals=trace.at(now_seconds))
        made = decide_binding(source.policy, binding, history, seen, now_seconds, settings=settings)
        points.append(binding_point(binding, made, counts, now_seconds))
        history, counts = made.history, made.replicas
    return Replay(
        policy=policy,
        trace=file,
        targets=target_names(binding),
        is_alike=binding.is_alike,
        interval_seconds=settings.interval_seconds,
        points=tuple(points),
        warnings=tuple(_warnings(source, binding, trace)),
    )


def _warnings(source: PolicyFile, binding: Binding, trace: MetricTrace) -> Iterator[str]:
    missing = [metric.name for metric in source.policy.metrics if metric.name not in trace.samples]
    if missing:
        yield f"the trace has no samples of {', '.join(missing)}: nothing is scaled down"
    if source.binding is None:
        yield f"no binding in the file: from 1 to {_MOST_UNBOUND} replicas of one target"
    elif not any(target.min_replicas for target in binding.targets):
        yield "all minReplicas are 0: the trace itself must show demand that no pod could report"


def _text_parts(replays: Sequence[Replay]) -> Iterator[RenderableType]:
    """Yield metrics and replicas of all replays over time, and then the changes with reasons."""
    for replay in replays:
        yield wrapping_text(replay.summary)
        for warning in replay.warnings:
            yield labelled_line("warning: ", warning, Tone.ADVICE)
        yield over_time(replay)
        if replay.changes:
            yield ""
            yield wrapping_text(f"what {replay.policy} changed:", Tone.HEADING)
            for point in replay.changes[:MOST_CHANGES]:
                yield labelled_line(f"  {clock(point.seconds)}  ", point.sentence)
        if len(replay.changes) > MOST_CHANGES:
            yield f"  and {len(replay.changes) - MOST_CHANGES} more changes: -o json lists all of them"
        yield ""


def _document(replays: Sequence[Replay]) -> Json:
    """Return all replays with all their decisions as JSON."""
    return {
        "replays": [
            {
                "policy": replay.policy,
                "trace": replay.trace,
                "targets": list(replay.targets),
                "interval_seconds": replay.interval_seconds,
                "replica_hours": replay.replica_hours,
                "changes": len(replay.changes),
                "warnings": list(replay.warnings),
                "points": msgspec.to_builtins(replay.points),
            }
            for replay in replays
        ]
    }


def _page(replays: Sequence[Replay]) -> str:
    """Return the complete page."""
    anchors = [f"policy-{position + 1}" for position in range(len(replays))]
    return render(
        "controller.commands.simulate",
        "replay.html",
        title="Stowplan: policies on recorded metrics",
        replays=list(zip(replays, anchors, strict=True)),
        remarks=list(_remarks(replays)),
        charts_of=_charts_of,
        clock=clock,
        moment=moment,
        width=WIDTH,
        height=HEIGHT,
    )


def _charts_of(replay: Replay, anchor: str) -> Iterator[Chart]:
    """Return the charts of the decisions, in which every change is marked."""
    marks = tuple(
        ChartMark(
            seconds=point.seconds,
            value=float(point.replicas),
            text=f"{clock(point.seconds)}  {point.sentence}",
            anchor=f"{anchor}-{place}",
        )
        for place, point in enumerate(replay.changes)
    )
    return decided_charts(replay, time_scale(0.0, replay.points[-1].seconds), marks)


def _remarks(replays: Sequence[Replay]) -> Iterator[str]:
    yield "Dots are changes: hover over one to see the reason."
    yield "Recorded metrics do not respond to decisions."
    longest = max(len(replay.points) for replay in replays)
    if longest > MOST_POINTS:
        yield f"Each point is the greatest value of {-(-longest // MOST_POINTS)} intervals."
