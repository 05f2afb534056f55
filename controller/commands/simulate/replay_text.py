"""Replays as text for a terminal: metrics and replicas over time, then the changes with reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from rich.console import RenderableType

from apiserver.schema.json import Json
from controller.commands.plan.terminal import Tone, labelled_line, wrapping_text
from controller.commands.simulate.decided_text import over_time
from controller.commands.simulate.replay import Replay
from controller.commands.simulate.wording import clock

_MOST_CHANGES: Final = 40


def replay_summary(replay: Replay) -> str:
    """Return what was replayed and its totals, in one line."""
    seconds = replay.points[-1].seconds
    return (
        f"{replay.policy} on {replay.trace}: {len(replay.points)} decisions in {clock(seconds)},"
        f" {len(replay.changes)} changes, {replay.replica_hours:.1f} replica-hours"
    )


def replay_parts(replays: Sequence[Replay]) -> Iterator[RenderableType]:
    """Yield the text of all replays."""
    for replay in replays:
        yield wrapping_text(replay_summary(replay))
        for warning in replay.warnings:
            yield labelled_line("warning: ", warning, Tone.ADVICE)
        yield over_time(replay)
        if replay.changes:
            yield ""
            yield wrapping_text(f"what {replay.policy} changed:", Tone.HEADING)
            yield from (
                labelled_line(f"  {clock(point.seconds)}  ", point.sentence)
                for point in replay.changes[:_MOST_CHANGES]
            )
        if len(replay.changes) > _MOST_CHANGES:
            yield f"  and {len(replay.changes) - _MOST_CHANGES} more changes: -o json lists all of them"
        yield ""


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
                "points": msgspec.to_builtins(replay.points),
            }
            for replay in replays
        ]
    }
