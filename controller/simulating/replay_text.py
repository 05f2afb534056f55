"""Replays as text for a terminal: metrics and replicas over time, then the changes with reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType

from apiserver.schema.json import Json
from controller.offline.terminal import Tone, labelled, styled, table, uncut
from controller.simulating.chart import Course
from controller.simulating.replay import Replay, ReplayPoint
from controller.simulating.wording import clock

_LEVELS: Final = "▁▂▃▄▅▆▇█"
_COLUMNS: Final = 60
_MOST_CHANGES: Final = 40


def replay_summary(replay: Replay) -> str:
    """Return what was replayed and its totals, in one line."""
    seconds = replay.points[-1].seconds
    return (
        f"{replay.policy} on {replay.trace}: {len(replay.points)} decisions in {clock(seconds)},"
        f" {len(replay.changes)} changes, {replay.replica_hours:.1f} replica-hours"
    )


def courses_of(replay: Replay) -> dict[str, Course]:
    """Return the time series by name: each metric, the replicas they ask for, and the replicas."""
    metrics = replay.points[0].values
    courses: dict[str, Course] = {
        name: [(point.seconds, point.values[name]) for point in replay.points] for name in metrics
    }
    courses["requested"] = [(point.seconds, _float(point.wanted)) for point in replay.points]
    courses["replicas"] = [(point.seconds, float(point.replicas)) for point in replay.points]
    if len(replay.targets) > 1:
        for place, name in enumerate(replay.targets):
            courses[f"  {name}"] = [(point.seconds, float(point.targets[place])) for point in replay.points]
    return courses


def replay_parts(replays: Sequence[Replay]) -> Iterator[RenderableType]:
    """Yield the text of all replays."""
    for replay in replays:
        yield styled(replay_summary(replay))
        for warning in replay.warnings:
            yield labelled("warning: ", warning, Tone.ADVICE)
        made = table(("OVER TIME", "LEAST", "MOST", ""), words={"OVER TIME", ""})
        for name, course in courses_of(replay).items():
            known = [value for _, value in course if value is not None]
            if not known:
                made.add_row(styled(name), styled("not known"), styled(""), styled(""))
                continue
            least, most = min(known), max(known)
            made.add_row(
                styled(name), styled(f"{least:.6g}"), styled(f"{most:.6g}"), styled(sparkline(course, most))
            )
        yield uncut(made)
        if replay.changes:
            yield ""
            yield styled(f"what {replay.policy} changed:", Tone.HEADING)
            yield from (
                labelled(f"  {clock(point.seconds)}  ", point.sentence)
                for point in replay.changes[:_MOST_CHANGES]
            )
        if len(replay.changes) > _MOST_CHANGES:
            yield f"  and {len(replay.changes) - _MOST_CHANGES} more changes: -o json lists all of them"
        yield ""


def sparkline(course: Course, most: float) -> str:
    """Return one character for each stretch of a series, by its maximum; blank where it is unknown."""
    size = max(1, -(-len(course) // _COLUMNS))
    stretches = [course[start : start + size] for start in range(0, len(course), size)]
    return "".join(
        _level(max((v for _, v in part if v is not None), default=None), most) for part in stretches
    )


def replay_document(replays: Sequence[Replay]) -> Json:
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
                "points": [_point(point) for point in replay.points],
            }
            for replay in replays
        ]
    }


def _point(point: ReplayPoint) -> Json:
    return {
        "seconds": point.seconds,
        "values": dict(point.values),
        "wanted": point.wanted,
        "replicas": point.replicas,
        "current_replicas": point.current_replicas,
        "targets": list(point.targets),
        "in_panic": point.in_panic,
        "limits": list(point.limits),
        "sentence": point.sentence,
    }


def _level(value: float | None, most: float) -> str:
    if value is None:
        return " "
    return _LEVELS[round(value / most * (len(_LEVELS) - 1)) if most > 0 else 0]


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)
