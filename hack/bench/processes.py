"""Function calls in other processes: one at a time on a core of its own, or several in a pool."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from controller.simulation.lower_bound import UnsolvedError
from hack.calling.cores import Cores

T = TypeVar("T")
R = TypeVar("R")


class ChildError(OSError):
    """A child process failed, exited early, or exceeded its time limit."""


def in_child(cores: Cores, patience_seconds: float, work: Callable[..., R], *args: Any) -> R:
    """Call a module-level function in a new process on the servers' core, and return its result.

    So its CPU time and memory are not affected by other work. Raises ChildError if the call fails, or takes
    too long.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, work, args))
    process.start()
    theirs.close()
    try:
        cores.pin_server(process.pid or 0)
        if not ours.poll(patience_seconds):
            raise ChildError(f"did not end within {patience_seconds:.0f} s")
        failure, outcome = ours.recv()
    except EOFError:
        process.join()
        raise ChildError(f"ended with {process.exitcode}") from None
    finally:
        process.kill()
        process.join()
    if failure:
        raise ChildError(failure)
    answer: R = outcome
    return answer


def _answer(there: Connection, work: Callable[..., object], args: tuple[object, ...]) -> None:
    with suppress(KeyboardInterrupt):
        try:
            outcome = ("", work(*args))
        except Exception as error:  # noqa: BLE001 (every error is reported to the parent)
            outcome = (f"{type(error).__name__}: {error}", None)
        there.send(outcome)


def in_pool(
    function: Callable[[T], R], tasks: Sequence[T], *, processes: int, failures: list[str]
) -> Iterator[tuple[T, R]]:
    """Yield each task with its result as it ends; of tasks that fail, a message is added to the failures."""
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
