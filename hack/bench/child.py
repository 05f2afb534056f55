"""Function calls in a separate process, so that its CPU time and memory are not affected by other work."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import ParamSpec, TypeVar

from hack.calling.cores import Cores

P = ParamSpec("P")
T = TypeVar("T")


class ChildError(OSError):
    """A child process failed, exited early, or exceeded its time limit."""


def in_child(
    cores: Cores, patience_seconds: float | None, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a module-level function in a new process on the servers' core, and return its result.

    Raises ChildError if the call fails, or takes more than `patience_seconds` (None: no limit).
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, work, args, kwargs))
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
    answer: T = outcome
    return answer


def _answer(
    there: Connection, work: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> None:
    with suppress(KeyboardInterrupt):
        try:
            outcome = ("", work(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 (every error is reported to the parent)
            outcome = (f"{type(error).__name__}: {error}", None)
        there.send(outcome)
