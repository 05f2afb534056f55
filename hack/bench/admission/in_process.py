"""CPU time of the handlers alone, bytes to bytes, both in this process by turns."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from apiserver.kinds.registry import KINDS
from hack.bench.admission.cases import Case, check_agreement
from hack.bench.admission.costs import Key
from hack.bench.admission.ours import answer_mutate, answer_validate
from hack.bench.admission.straightforward import Straightforward, Verb
from hack.bench.compared import OURS, STRAIGHTFORWARD
from hack.bench.in_process import Answerer, cpu_per_call_seconds, frozen_heap

_MICRO: Final = 1e6


def answerers() -> Mapping[tuple[Verb, str], Answerer]:
    """Return the handlers by verb and server."""
    plain = Straightforward(KINDS)
    return {
        ("mutate", OURS): answer_mutate,
        ("validate", OURS): answer_validate,
        ("mutate", STRAIGHTFORWARD): lambda body: plain.answer("mutate", body),
        ("validate", STRAIGHTFORWARD): lambda body: plain.answer("validate", body),
    }


def measure_in_process(cases: Sequence[Case], *, rounds: int, seconds: float) -> dict[Key, float]:
    """Return microseconds of CPU time per call: medians of rounds of so many seconds of CPU time each.

    Raises WrongAnswerError when a handler answers wrongly, or both do not fill in the same.
    """
    handlers = answerers()
    for case in cases:
        answers = [handle(case.body) for (verb, _), handle in handlers.items() if verb == case.verb]
        for answer in answers:
            case.check(answer)
        check_agreement(case, answers)
    with frozen_heap():
        return _by_turns(cases, handlers, rounds=rounds, seconds=seconds)


def _by_turns(
    cases: Sequence[Case],
    handlers: Mapping[tuple[Verb, str], Answerer],
    *,
    rounds: int,
    seconds: float,
) -> dict[Key, float]:
    taken: dict[Key, list[float]] = {}
    following = {
        (case.name, case.verb, server): itertools.cycle(case.bodies)
        for case in cases
        for server in (OURS, STRAIGHTFORWARD)
    }
    for _ in range(rounds):
        for case in cases:
            for server in (OURS, STRAIGHTFORWARD):
                key = case.name, case.verb, server
                spent = cpu_per_call_seconds(handlers[case.verb, server], following[key], seconds=seconds)
                taken.setdefault(key, []).append(spent * _MICRO)
    return {key: statistics.median(spent) for key, spent in taken.items()}
