"""The goals of admission, as far as they were measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hack.bench.admission.cases import (
    MODEL_CHANGED,
    MODEL_CREATE,
    MODEL_REFUSED,
    MODEL_UNCHANGED,
    VERBS,
)
from hack.bench.admission.costs import Key, OverTls
from hack.bench.compared import OURS, STRAIGHTFORWARD
from hack.bench.goals import Goal
from hack.bench.pace import Pace

_MOST_CPU_US: Final = 80.0
_MOST_SHARE_PERCENT: Final = 100 / 30
_MOST_REFUSED: Final = 2.0
_MOST_UNCHANGED: Final = 0.5


def goals(tls: Mapping[Key, OverTls], in_process: Mapping[Key, float], pace: Pace) -> list[Goal]:
    """Return the goals whose cases were measured.

    The goal in microseconds comes twice: as measured, and at the pace of the machine that it was set on.
    """
    return [*_over_tls(tls, pace), *_in_process(in_process)]


def _over_tls(tls: Mapping[Key, OverTls], pace: Pace) -> Iterator[Goal]:
    for verb in VERBS:
        ours = tls.get((MODEL_CREATE, verb, OURS))
        plain = tls.get((MODEL_CREATE, verb, STRAIGHTFORWARD))
        if ours is None or plain is None:
            continue
        name = f"{verb}_model_create_cpu_per_request"
        yield Goal(name=name, value=ours.cpu_us, unit="µs", most=_MOST_CPU_US)
        scaled = ours.cpu_us / pace.slowness
        yield Goal(name=f"{name}_at_reference_pace", value=scaled, unit="µs", most=_MOST_CPU_US)
        yield Goal(
            name=f"{verb}_model_create_share_of_straightforward",
            value=ours.cpu_us / plain.cpu_us * 100,
            unit="%",
            most=_MOST_SHARE_PERCENT,
        )


def _in_process(costs: Mapping[Key, float]) -> Iterator[Goal]:
    pairs = (
        ("model_refused_of_accepted", MODEL_REFUSED, MODEL_CREATE, _MOST_REFUSED),
        ("model_unchanged_of_changed", MODEL_UNCHANGED, MODEL_CHANGED, _MOST_UNCHANGED),
    )
    for verb in VERBS:
        for name, above, below, most in pairs:
            if (above, verb, OURS) in costs and (below, verb, OURS) in costs:
                ratio = costs[above, verb, OURS] / costs[below, verb, OURS]
                yield Goal(name=f"{verb}_{name}_in_process", value=ratio, unit="times", most=most)
