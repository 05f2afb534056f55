"""`python -m judges`: compare all judges on many objects of every kind, with a separate control plane."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Final

from apiserver.kinds.registry import KINDS
from differential.fuzz import Run, judge_all, versions
from differential.server import connected
from hack.controlplane import ControlPlane

_SAY_SECONDS: Final = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the judges, print unexplained differences and a summary; return 1 if there are any."""
    options = _parser().parse_args(arguments)
    numbers = range(options.start, options.start + options.count)
    with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as control_plane:
        run = asyncio.run(_run(control_plane, options.kind, numbers))
    for tally in run.tallies:
        if tally.unexplained:
            print(tally.report())  # noqa: T201 (prints for users, as below)
    print(run.table())  # noqa: T201 (as above)
    return 1 if run.unexplained else 0


async def _run(control_plane: ControlPlane, names: Sequence[str], numbers: range) -> Run:
    said_time = time.monotonic()

    def say(text: str) -> None:
        nonlocal said_time
        if time.monotonic() - said_time > _SAY_SECONDS:
            said_time = time.monotonic()
            print(text, file=sys.stderr, flush=True)  # noqa: T201 (as above)

    async with connected(control_plane, "default") as server:
        return await judge_all(server, versions(names), numbers, say=say)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m judges", description=main.__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="objects of each kind and version")
    parser.add_argument("--start", type=int, default=0, help="number of the first object")
    kinds = [kind.kind for kind in KINDS]
    parser.add_argument(
        "--kind", action="append", default=[], choices=kinds, help="only this kind; repeatable"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
