"""CPU time of the steps of `plan()` while it runs: its calls are wrapped, and nothing is executed twice."""

from __future__ import annotations

import importlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Step(StrEnum):
    """A step of making a plan."""

    FORMULATE = "formulate"
    PLACE = "place"
    """From the problem to replicas and nodes."""

    RELIEF = "relief"
    """Changes that would help models with unmet demand."""

    MOVES = "moves"
    EXPLAIN = "explain"
    CHECK = "check"


_MODULE: Final = "controller.planning.plan"
_CALLS: Final[Mapping[str, Step]] = {
    "comparable": Step.FORMULATE,
    "_solve": Step.PLACE,
    "alone": Step.PLACE,
    "_reliefs": Step.RELIEF,
    "defragmentations": Step.MOVES,
    "decisions": Step.EXPLAIN,
    "check": Step.CHECK,
}
"""The functions of that module which are timed, by name."""


class Stopwatch:
    """CPU seconds by step, without those of other steps that a step calls.

    Relief is an exception: it plans again, and all of this counts as relief.
    """

    def __init__(self) -> None:
        self.seconds = defaultdict[Step, float](float)
        self._within = [0.0]
        self._seeks_relief = False

    def timed_call(self, step: Step, work: Callable[P, T]) -> Callable[P, T]:
        """Return a function that calls `work` and adds its CPU time to the step."""

        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            if self._seeks_relief:
                return work(*args, **kwargs)
            began = time.process_time()
            self._within.append(0.0)
            self._seeks_relief = step is Step.RELIEF
            try:
                return work(*args, **kwargs)
            finally:
                self._seeks_relief = False
                spent = time.process_time() - began
                self.seconds[step] += spent - self._within.pop()
                self._within[-1] += spent

        return call


@contextmanager
def watch_plans() -> Iterator[Stopwatch]:
    """Time the steps of every plan until the block ends."""
    watch, module = Stopwatch(), importlib.import_module(_MODULE)
    kept: dict[str, Callable[..., object]] = {name: getattr(module, name) for name in _CALLS}
    try:
        for name, work in kept.items():
            setattr(module, name, watch.timed_call(_CALLS[name], work))
        yield watch
    finally:
        for name, work in kept.items():
            setattr(module, name, work)
