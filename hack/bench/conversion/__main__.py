"""`python -m hack.bench.conversion`: CPU time of conversion, compared with a straightforward server."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from hack.bench.command import Command, add_count, main
from hack.bench.conversion.measuring import measure


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_count(parser, "--calls", default=200, text="reads or writes of each type")
    add_count(parser, "--stored", default=5000, text="objects stored in the old version")
    add_count(parser, "--restarts", default=2, text="restarts of the API server with each converter")
    parser.add_argument(
        "--without-control-plane",
        action="store_const",
        const=0,
        dest="calls",
        help="skip the measurements with an API server",
    )


_COMMAND: Final = Command(
    name="conversion", description=__doc__, seconds=0.3, add_options=_add_options, measure=measure
)

if __name__ == "__main__":
    sys.exit(main(_COMMAND, sys.argv[1:]))
