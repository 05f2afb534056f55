"""The goals of admission, for the cases that were measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hack.bench.admission.cases import MODEL_CREATE, MODEL_REFUSED, MODEL_UNCHANGED, VERBS
from hack.bench.admission.report import OverTls
from hack.bench.compared import OURS, STRAIGHTFORWARD
from hack.bench.costs import Key
from hack.bench.goals import Goal, at_both_paces
from hack.bench.machine import Pace

_MOST_CPU_US: Final = {MODEL_CREATE: 235.0, MODEL_UNCHANGED: 140.0}
_MOST_SHARE_PERCENT: Final = 100 / 15
_MOST_REFUSED: Final = 2.0


def goals(tls: Mapping[Key, OverTls], pace: Pace) -> list[Goal]:
    """Return the goals whose cases were measured; those in µs at both paces."""
    return [goal for verb in VERBS for goal in (*_cpu(tls, verb, pace), *_ratios(tls, verb))]


def _cpu(tls: Mapping[Key, OverTls], verb: str, pace: Pace) -> Iterator[Goal]:
    for case, most in _MOST_CPU_US.items():
        if (cost := tls.get((case, verb, OURS))) is not None:
            name = f"{verb}_{case.lower().replace(', ', '_').replace(' ', '_')}_cpu_per_request"
            goal = Goal(name=name, value=cost.busy.cpu_us, unit="µs", most=most)
            yield from at_both_paces(goal, pace.slowness)


def _ratios(tls: Mapping[Key, OverTls], verb: str) -> Iterator[Goal]:
    ours = tls.get((MODEL_CREATE, verb, OURS))
    plain, refused = tls.get((MODEL_CREATE, verb, STRAIGHTFORWARD)), tls.get((MODEL_REFUSED, verb, OURS))
    if ours is not None and plain is not None:
        yield Goal(
            name=f"{verb}_model_create_share_of_straightforward",
            value=ours.busy.cpu_us / plain.busy.cpu_us * 100,
            unit="%",
            most=_MOST_SHARE_PERCENT,
        )
    if ours is not None and refused is not None:
        ratio = refused.busy.cpu_us / ours.busy.cpu_us
        yield Goal(name=f"{verb}_model_refused_of_accepted", value=ratio, unit="times", most=_MOST_REFUSED)
