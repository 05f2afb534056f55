"""A worker process whose planner fails in the way that its first argument names."""

from __future__ import annotations

import os
import resource
import sys
import threading
from typing import TYPE_CHECKING

from controller.variants.solver_worker import serve

if TYPE_CHECKING:
    from controller.planning.decision import Plan
    from controller.planning.inputs import Settings
    from controller.planning.snapshot import Snapshot


def _crash() -> None:
    os.abort()


def _raise() -> None:
    raise ZeroDivisionError("planned nothing")


def _hang() -> None:
    threading.Event().wait()


def _explode() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
    bytearray(2**31)


def _babble() -> None:
    print("not a plan", flush=True)  # noqa: T201 (to test that prints do not reach the parent)


def _chatter() -> None:
    sys.stderr.write("x" * (1 << 20))  # a line that is longer than a pipe holds and a reader of lines accepts


def _shout() -> None:
    _chatter()
    raise SystemExit("planned nothing")


def planner(snapshot: Snapshot, settings: Settings) -> Plan:
    """Fail if the snapshot has a variant named rogue; otherwise return its plan."""
    if any(variant.name == "rogue" for variant in snapshot.variants):
        globals()[f"_{sys.argv[1]}"]()
    from controller.planning.plan import plan  # noqa: PLC0415 - not needed by processes that end at once

    return plan(snapshot, settings)


if __name__ == "__main__":
    if sys.argv[1] == "stillborn":
        raise SystemExit("no solver today")
    if sys.argv[1] == "hang":  # the deadline in the test is too short for imports
        import controller.planning.plan  # noqa: F401
    serve(planner)
