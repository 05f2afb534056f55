"""CPU time of the handlers alone, bytes to bytes, both in this process by turns."""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from apiserver.kinds.registry import KINDS
from hack.bench.admission.cases import Case, check_agreement
from hack.bench.admission.costs import OURS, STRAIGHTFORWARD, Key
from hack.bench.admission.ours import answer_mutate, answer_validate
from hack.bench.admission.straightforward import Straightforward, Verb

Answerer = Callable[[bytes], bytes]

_BATCH_SECONDS: Final = 0.002
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
    gc.collect()
    gc.freeze()
    try:
        return _by_turns(cases, handlers, rounds=rounds, seconds=seconds)
    finally:
        gc.unfreeze()


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


def cpu_per_call_seconds(handle: Answerer, bodies: Iterator[bytes], *, seconds: float) -> float:
    """Call a handler with one body after the other for so many seconds of CPU time; return the mean."""
    clock = time.thread_time
    began = clock()
    handle(next(bodies))
    batch = max(int(_BATCH_SECONDS / max(clock() - began, 1e-6)), 1)
    calls, began = 0, clock()
    while True:
        for body in itertools.islice(bodies, batch):
            handle(body)
        calls += batch
        if (spent := clock() - began) >= seconds:
            return spent / calls
