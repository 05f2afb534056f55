"""`python -m hack.bench.admission`: CPU time of admission, ours beside a straightforward server's."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from hack.bench.admission.measuring import measure
from hack.bench.command import Command, add_count, main


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_count(parser, "--connections", default=16, text="busy at once")
    add_count(parser, "--calls", default=200, text="writes of each sort on the control plane")
    parser.add_argument(
        "--without-control-plane",
        action="store_const",
        const=0,
        dest="calls",
        help="leave out the API server's own metrics",
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help='just the cases with this text: "model, create /mutate"'
    )


_COMMAND: Final = Command(
    name="admission", description=__doc__, seconds=0.35, add_options=_add_options, measure=measure
)

if __name__ == "__main__":
    sys.exit(main(_COMMAND, sys.argv[1:]))
