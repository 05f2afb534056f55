"""`python -m hack.bench.policies`: CPU time of a cycle of 1,000 AutoscalingPolicyBindings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Final

from hack.bench.command import Command, add_count, main
from hack.bench.policies.measurement import PolicyMeasurement, PolicySettings, measure


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_count(parser, "--bindings", default=1000, text="decided on in one cycle")
    add_count(parser, "--cycles", default=5, text="medians are of so many")


def _measure(options: argparse.Namespace, progress: Callable[[str], None]) -> PolicyMeasurement:
    return measure(PolicySettings(bindings=options.bindings, cycles=options.cycles), progress=progress)


_COMMAND: Final = Command(
    name="policies", description=__doc__, seconds=None, add_options=_add_options, measure=_measure
)

if __name__ == "__main__":
    sys.exit(main(_COMMAND, sys.argv[1:]))
