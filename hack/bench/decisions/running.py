"""Simulates points in a pool of processes, each point once."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager

from hack.bench.decisions.points import Played, Point, play
from hack.bench.decisions.rows import Row
from hack.bench.decisions.sweeping import RowResult, Sweep, swept


class Players:
    """A pool of processes that simulates each point at most once. Create it with `players`."""

    def __init__(self, pool: ProcessPoolExecutor, progress: Callable[[str], None]) -> None:
        self._pool, self._progress = pool, progress
        self._lock = threading.Lock()
        self._played: dict[Point, Future[Played]] = {}

    def play(self, points: Sequence[Point]) -> list[Played]:
        """Return the results of points. Safe to call from several threads."""
        futures = [self._future(point) for point in points]
        return [future.result() for future in futures]

    def _future(self, point: Point) -> Future[Played]:
        with self._lock:
            if point not in self._played:
                future = self._played[point] = self._pool.submit(play, point)
                future.add_done_callback(lambda done: self._tell(point, done))
            return self._played[point]

    def _tell(self, point: Point, done: Future[Played]) -> None:
        if not done.cancelled() and done.exception() is None:
            item = done.result()
            self._progress(
                f"{point.row}, {point.policy}, seed {point.seed}: cost {item.cost:.0f},"
                f" {item.missed:.2%} missed ({item.seconds:.0f} s)"
            )


@contextmanager
def players(processes: int, progress: Callable[[str], None]) -> Iterator[Players]:
    """Run a pool of processes until the block ends."""
    # There are several threads here, and a forked child could inherit a lock that one of them holds.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=processes, mp_context=context) as pool:
        try:
            yield Players(pool, progress)
        finally:
            pool.shutdown(cancel_futures=True)


def play_rows(
    rows: Sequence[Row], sweep: Sweep, *, processes: int, progress: Callable[[str], None]
) -> tuple[list[RowResult], list[str]]:
    """Return the results of the rows in their order, and messages about rows that failed."""
    results, failures = [], []
    with (
        players(processes, progress) as pool,
        # One thread more than processes, because a row waits while its points are simulated.
        ThreadPoolExecutor(max_workers=processes + 1) as threads,
    ):
        begun = [(row, threads.submit(swept, row, sweep, pool.play)) for row in rows]
        for row, future in begun:
            try:
                results.append(future.result())
            except (ArithmeticError, LookupError, RuntimeError, ValueError) as error:
                failures.append(f"{row.name} failed: {type(error).__name__}: {error}")
    return results, failures
