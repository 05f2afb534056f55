"""`stowplan simulate --policy FILE --trace FILE`: replay policies on recorded metrics.

The result is text, or one HTML page.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from controller.commands.plan.configuring import Configuring
from controller.commands.plan.template import render
from controller.commands.plan.terminal import show
from controller.commands.simulate.chart import HEIGHT, MOST_POINTS, WIDTH, Chart, Mark
from controller.commands.simulate.decided_charts import decided_charts
from controller.commands.simulate.metric_trace import MetricTrace, is_metric_trace, read_metric_trace
from controller.commands.simulate.policy_file import is_policy_file, read_policy_file
from controller.commands.simulate.replay import Replay, replay_policy
from controller.commands.simulate.replay_text import replay_document, replay_parts, replay_summary
from controller.commands.simulate.scale import moments
from controller.commands.simulate.wording import clock


def replay_page(replays: Sequence[Replay]) -> str:
    """Return the complete page."""
    anchors = [f"policy-{position + 1}" for position in range(len(replays))]
    return render(
        "controller.commands.simulate",
        "replay.html",
        title="Stowplan: policies on recorded metrics",
        replays=list(zip(replays, anchors, strict=True)),
        summary=replay_summary,
        remarks=list(_remarks(replays)),
        charts_of=charts_of,
        clock=clock,
        width=WIDTH,
        height=HEIGHT,
    )


def charts_of(replay: Replay, anchor: str) -> Iterator[Chart]:
    """Return the charts of the decisions, in which every change is marked."""
    marks = tuple(
        Mark(
            seconds=point.seconds,
            value=float(point.replicas),
            text=f"{clock(point.seconds)}  {point.sentence}",
            anchor=f"{anchor}-{place}",
        )
        for place, point in enumerate(replay.changes)
    )
    return decided_charts(replay, moments(0.0, replay.points[-1].seconds), marks)


def _remarks(replays: Sequence[Replay]) -> Iterator[str]:
    yield "Dots are changes: hover over one to see the reason."
    yield "Recorded metrics do not respond to decisions."
    longest = max(len(replay.points) for replay in replays)
    if longest > MOST_POINTS:
        yield f"Each point is the greatest value of {-(-longest // MOST_POINTS)} intervals."


def is_replay(options: argparse.Namespace) -> bool:
    """Return whether a trace of metrics is given: then only policies are needed in addition."""
    return not options.files and any(is_metric_trace(file) for file, _ in options.trace)


def run_replay(options: argparse.Namespace, configuring: Configuring) -> list[str]:
    """Replay, and show and write the results; return the problems, if any."""
    problems = [*map(str, configuring.problems), *_misuses(options)]
    if problems:
        return problems
    ((file, _),) = options.trace
    trace = read_metric_trace(file)
    replays, wrong = _replays(options, configuring, trace, file)
    if problems := [*trace.problems, *wrong]:
        return problems
    if options.html:
        try:
            options.html.write_bytes(replay_page(replays).encode())
        except OSError as error:
            return [f"{options.html}: cannot be written: {error.strerror or error}"]
    if options.output == "json":
        sys.stdout.write(json.dumps(replay_document(replays), ensure_ascii=False) + "\n")
    else:
        show(replay_parts(replays))
    sys.stdout.flush()
    return []


def _replays(
    options: argparse.Namespace, configuring: Configuring, trace: MetricTrace, file: str
) -> tuple[list[Replay], list[str]]:
    replays: list[Replay] = []
    problems: list[str] = []
    for name in dict.fromkeys(options.policy):
        found, wrong = read_policy_file(name)
        problems += wrong
        if found is not None and not trace.problems:
            policy, settings = Path(name).name, configuring.sizing
            replays.append(
                replay_policy(found, trace, policy=policy, file=Path(file).name, settings=settings)
            )
    return replays, problems


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
