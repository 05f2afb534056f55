"""`python -m hack.bench.admission`: CPU time of admission, compared with a straightforward server."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from hack.bench.admission.measuring import measure
from hack.bench.command import Command, add_count, main


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_count(parser, "--connections", default=16, text="concurrent connections")
    add_count(
        parser,
        "--calls",
        default=200,
        text="dry-run creations, and as many updates, of each kind on the control plane",
    )
    parser.add_argument(
        "--without-control-plane",
        action="store_const",
        const=0,
        dest="calls",
        help="skip the control plane, and so the API server's own metrics",
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="TEXT",
        help='run only cases whose name with path contains TEXT, such as "model, create /mutate"',
    )


_COMMAND: Final = Command(
    name="admission", description=__doc__, seconds=0.35, add_options=_add_options, measure=measure
)

if __name__ == "__main__":
    sys.exit(main(_COMMAND, sys.argv[1:]))
