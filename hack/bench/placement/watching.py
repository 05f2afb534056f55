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
    """From a problem to counts and nodes."""

    RELIEF = "relief"
    """What would help those who go short."""

    MOVES = "moves"
    EXPLAIN = "explain"
    CHECK = "check"


_MODULE: Final = "controller.planning.plan"
_CALLS: Final[Mapping[str, Step]] = {
    "prepared": Step.FORMULATE,
    "_answer": Step.PLACE,
    "_reliefs": Step.RELIEF,
    "defragmentations": Step.MOVES,
    "assembled": Step.EXPLAIN,
    "check": Step.CHECK,
}
"""What that module calls by which name."""


class Stopwatch:
    """CPU seconds by step; what a step calls that is a step itself counts for that one only.

    But what would help is found by planning again: all of that counts for it.
    """

    def __init__(self) -> None:
        self.seconds = defaultdict[Step, float](float)
        self._within = [0.0]
        self._seeks_relief = False

    def timing(self, step: Step, work: Callable[P, T]) -> Callable[P, T]:
        """Return the same work, timed."""

        def timed(*args: P.args, **kwargs: P.kwargs) -> T:
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

        return timed


@contextmanager
def watched() -> Iterator[Stopwatch]:
    """Time the steps of every plan that is made until the end of the block."""
    watch, module = Stopwatch(), importlib.import_module(_MODULE)
    kept: dict[str, Callable[..., object]] = {name: getattr(module, name) for name in _CALLS}
    try:
        for name, work in kept.items():
            setattr(module, name, watch.timing(_CALLS[name], work))
        yield watch
    finally:
        for name, work in kept.items():
            setattr(module, name, work)
