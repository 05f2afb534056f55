"""Plays points in processes of their own, as many at a time as there are cores, and each one once."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from hack.bench.decisions.points import Played, Point, play
from hack.bench.decisions.rows import Row
from hack.bench.decisions.sweeping import RowResult, Sweep, swept


class Players:
    """A pool of processes; what was played before is not played again. Make it with `players`."""

    def __init__(self, pool: ProcessPoolExecutor, progress: Callable[[str], None]) -> None:
        self._pool, self._progress = pool, progress
        self._lock = threading.Lock()
        self._played: dict[Point, Future[Played]] = {}

    def play(self, points: Sequence[Point]) -> list[Played]:
        """Return what came of points; safe to call from several threads."""
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
    """Start processes, and end them with the block."""
    # Threads run here: a forked child could inherit a lock that one of them holds.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=processes, mp_context=context) as pool:
        try:
            yield Players(pool, progress)
        finally:
            pool.shutdown(cancel_futures=True)


def play_rows(
    rows: Sequence[Row], sweep: Sweep, *, processes: int, progress: Callable[[str], None]
) -> tuple[list[RowResult], list[str]]:
    """Return what rows came to, in their order, and why some came to nothing."""
    results, failures = [], []
    with (
        players(processes, progress) as pool,
        # One row more than there are processes, since each row waits for its own points.
        ThreadPoolExecutor(max_workers=processes + 1) as threads,
    ):
        begun = [(row, threads.submit(swept, row, sweep, pool.play)) for row in rows]
        for row, future in begun:
            try:
                results.append(future.result())
            except (ArithmeticError, BrokenProcessPool, LookupError, RuntimeError, ValueError) as error:
                failures.append(f"{row.name} came to nothing: {type(error).__name__}: {error}")
    return results, failures
