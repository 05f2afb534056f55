"""What the steps of `plan()` take while it runs: its own calls are timed, nothing is done a second time."""

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
    """A part of making a plan."""

    FORMULATE = "formulate"
    PLACE = "place"
    """From a problem to counts and nodes, ours or by a rule."""

    RELIEF = "relief"
    """What would help those who go short."""

    MOVES = "moves"
    EXPLAIN = "explain"
    CHECK = "check"


_CALLS: Final[Mapping[str, Mapping[str, Step]]] = {
    "controller.planning.plan": {
        "prepared": Step.FORMULATE,
        "_answer": Step.PLACE,
        "_reliefs": Step.RELIEF,
        "defragmentations": Step.MOVES,
        "assembled": Step.EXPLAIN,
        "check": Step.CHECK,
    },
}
"""By module, what it calls by which name."""


class Stopwatch:
    """CPU seconds by step; what a step calls that is a step itself counts for that one only."""

    def __init__(self) -> None:
        self.seconds = defaultdict[Step, float](float)
        self._within = [0.0]

    def timing(self, step: Step, work: Callable[P, T]) -> Callable[P, T]:
        """Return the same work, timed."""

        def timed(*args: P.args, **kwargs: P.kwargs) -> T:
            began = time.process_time()
            self._within.append(0.0)
            try:
                return work(*args, **kwargs)
            finally:
                spent = time.process_time() - began
                self.seconds[step] += spent - self._within.pop()
                self._within[-1] += spent

        return timed


@contextmanager
def watched() -> Iterator[Stopwatch]:
    """Time the steps of every plan that is made until the end of the block."""
    watch = Stopwatch()
    kept: list[tuple[object, str, Step, Callable[..., object]]] = [
        (module, name, step, getattr(module, name))
        for module, steps in ((importlib.import_module(name), steps) for name, steps in _CALLS.items())
        for name, step in steps.items()
    ]
    try:
        for module, name, step, work in kept:
            setattr(module, name, watch.timing(step, work))
        yield watch
    finally:
        for module, name, _, work in kept:
            setattr(module, name, work)
