"""Runs tasks in a pool of processes, and yields their results in the order in which they end."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

from controller.simulation.lower_bound import UnsolvedError

T = TypeVar("T")
R = TypeVar("R")


def in_pool(
    function: Callable[[T], R], tasks: Sequence[T], *, processes: int, failures: list[str]
) -> Iterator[tuple[T, R]]:
    """Yield each task with its result; of tasks that fail, a message is added to the failures."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=processes, mp_context=context) as pool:
        try:
            futures = {pool.submit(function, task): task for task in tasks}
            for future in as_completed(futures):
                task = futures.pop(future)
                try:
                    yield task, future.result()
                except (ArithmeticError, LookupError, RuntimeError, UnsolvedError, ValueError) as error:
                    failures.append(f"{task} failed: {type(error).__name__}: {error}")
        finally:
            pool.shutdown(cancel_futures=True)
