"""`python -m hack.bench.policies`: CPU time of a cycle of 1,000 AutoscalingPolicyBindings; trajectories."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from hack.bench.command import Command, add_count, main
from hack.bench.policies.measuring import measure


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_count(parser, "--bindings", default=1000, text="bindings in one cycle")
    parser.add_argument(
        "--live", action="store_true", dest="plays_live", help="also run the loads on a real control plane"
    )
    add_count(parser, "--cycles", default=5, text="number of cycles whose median is reported")


_COMMAND: Final = Command(name="policies", description=__doc__, add_options=_add_options, measure=measure)

if __name__ == "__main__":
    sys.exit(main(_COMMAND, sys.argv[1:]))
