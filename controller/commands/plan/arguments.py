"""Command-line arguments of `stowplan plan`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Final

from apiserver.program import command_parser
from controller.commands.check.matching import namespace_argument
from controller.commands.plan.changes import Rate
from controller.observe.accelerators import short_name
from controller.planning.inventory import NodeAddition

_NUMBER: Final = r"[0-9]{1,9}(?:\.[0-9]{1,6})?"
_DIGITS: Final = "at most 9 digits and 6 decimals, and no exponent"
_RATE: Final = re.compile(rf"(?P<rate>{_NUMBER})(?:@(?P<prompt>{_NUMBER})/(?P<output>{_NUMBER}))?\Z")
_ADDITION: Final = re.compile(r"(?P<type>.*[^x])x(?P<size>[0-9]{1,4})(:(?P<count>[0-9]{1,4}))?\Z")

_EPILOG: Final = """\
FILE is a file, a directory (all *.yaml, *.yml and *.json files below it) or -
for standard input. It contains manifests, exported objects of a live cluster,
or a decision written by --save. Demand comes from --demand, or from the
exported status. If it is unknown, the running replicas stay. MODEL is a model
identifier. RATE is in requests per second, such as 41 or 0.5, or 41@1155/211
for requests with a mean of 1155 prompt tokens and 211 answer tokens.

examples:
  kubectl get va,deploy,sts,hpa,nodes,pods,cm,quota,pdb -A -o yaml | stowplan plan -f -
  stowplan plan -f live.yaml --demand chat/meta/llama-3.1-8b=25
  stowplan plan -f live.yaml --drain node-7 --add-node H100x8:2
  stowplan plan -f live.yaml --budget 400 --html plan.html --save plan.json
  stowplan plan -f plan.json -o json        repeat a saved plan, print JSON

exit code: 0 the demand of every model is met, 1 a model is short, a
VariantAutoscaling or an invalid object is left out, or the solver returned no
answer in time, 2 wrong usage or unreadable input
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = command_parser(
        "plan",
        "Compute and explain a plan from manifests or exported objects. Needs no cluster.",
        usage="%(prog)s -f FILE [-f ...] [options]",
        epilog=_EPILOG,
    )
    add = made.add_argument_group("input").add_argument
    add_files(add, is_required=True)
    add(
        "--config",
        type=Path,
        metavar="FILE",
        help="controller configuration, or the ConfigMap that contains it",
    )
    add_settings_namespace(add)
    _add_changes(made)
    add = made.add_argument
    add(
        "-o",
        "--output",
        choices=("table", "json", "yaml"),
        default="table",
        help="output format (default: table)",
    )
    add("--html", type=output_file, metavar="FILE", help="also write the plan as an HTML page")
    add(
        "--save",
        type=output_file,
        metavar="FILE",
        help="write all inputs of the plan to FILE, so that it can be planned again",
    )
    return made


def add_files(add: Callable[..., argparse.Action], *, is_required: bool) -> None:
    """Add the options for files with objects."""
    add(
        "-f",
        dest="files",
        action="append",
        required=is_required,
        default=[],
        metavar="FILE",
        help="file, directory, or - for standard input; may be repeated",
    )
    add(
        "-n",
        "--namespace",
        type=namespace_argument,
        metavar="NS",
        help="namespace of objects that do not specify one (default: default)",
    )


def add_settings_namespace(add: Callable[..., argparse.Action]) -> None:
    """Add the option for the namespace of prices and service classes."""
    add(
        "--settings-namespace",
        type=namespace_argument,
        metavar="NS",
        help="namespace of the ConfigMaps with prices and service classes (default: stowplan-system)",
    )


def _add_changes(made: argparse.ArgumentParser) -> None:
    add = made.add_argument_group("what if").add_argument
    demand, capacity = "[NS/]MODEL=RATE[@PROMPT/ANSWER]", "[NS/]VARIANT=RATE"
    add(
        "--demand",
        action="append",
        type=_rate,
        default=[],
        metavar=demand,
        help="load of a model; may be repeated",
    )
    add(
        "--capacity",
        action="append",
        type=_capacity,
        default=[],
        metavar=capacity,
        help="capacity of one replica; overrides status and profile",
    )
    add(
        "--add-node",
        action="append",
        type=_addition,
        default=[],
        metavar="TYPExACCELERATORS[:COUNT]",
        help="add nodes, with the labels of the other nodes of their type, such as H100x8:2",
    )
    add("--drain", action="append", default=[], metavar="NODE", help="drain a node: no replica stays on it")
    add(
        "--budget",
        action="append",
        type=_cost,
        default=[],
        metavar="COST",
        help="limit for the cost of all replicas per hour",
    )
    add("--scale-to-zero", action="store_true", help="allow models without demand to have no replica")


def output_file(text: str) -> Path:
    """Return the path of a file to write; `-` is refused, because standard output has the result."""
    if text == "-":
        raise argparse.ArgumentTypeError("must be the name of a file: - is not supported here")
    return Path(text)


def _rate(text: str) -> Rate:
    name, equals, number = text.rpartition("=")
    match = _RATE.match(number)
    if not (equals and name and match):
        raise argparse.ArgumentTypeError(
            f"{text!r}: must be NAME=RATE in requests per second, such as meta/llama-3.1-8b=41 or"
            f" ...=41@1155/211; numbers have {_DIGITS}"
        )
    lengths = (float(match["prompt"]), float(match["output"])) if match["prompt"] else None
    return Rate(name=name, requests_per_second=float(match["rate"]), lengths=lengths)


def _capacity(text: str) -> Rate:
    rate = _rate(text)
    if rate.lengths:
        raise argparse.ArgumentTypeError(
            f"{text!r}: a capacity applies to the lengths of the model's own requests: omit @PROMPT/ANSWER"
        )
    return rate


def _addition(text: str) -> NodeAddition:
    match = _ADDITION.match(text)
    size, count = (int(match["size"]), int(match["count"] or 1)) if match else (0, 0)
    if match is None or not size or not count:
        raise argparse.ArgumentTypeError(
            f"{text!r}: must be TYPExACCELERATORS[:COUNT], such as H100x8 or L40Sx4:3; numbers are from 1 to"
            " 9999"
        )
    return NodeAddition(accelerator=short_name(match["type"]), accelerators=size, nodes=count)


def _cost(text: str) -> Decimal:
    if not re.fullmatch(_NUMBER, text):
        raise argparse.ArgumentTypeError(
            f"{text!r}: must be a cost per hour, such as 400 or 99.50, with {_DIGITS}"
        )
    return Decimal(text)
