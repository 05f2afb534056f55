"""Entry point of `stowplan status`: one screen about all models, accelerators and problems of a cluster."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Unauthorized
from apiserver.cluster.namespaces import installed_namespace
from apiserver.kinds.settings_names import INSTALLATION
from apiserver.program import command_parser
from controller.commands.plan.configuring import ConfigurationResult, configuration_in_cluster
from controller.commands.plan.gathering import InputsResult, gather_objects
from controller.commands.plan.reading import contents_of
from controller.commands.plan.terminal import present, print_lines, terminal
from controller.commands.status.assemble import fleet_of
from controller.commands.status.fleet import FleetState, Severity
from controller.commands.status.options import (
    add_connection,
    add_output,
    add_scope,
    exit_code_of,
    namespace_of,
    number_between,
)
from controller.commands.status.reading import LiveObjects, read_cluster
from controller.commands.status.text import fleet_parts

_WELL: Final = 0
_PROBLEMS: Final = 1
_CLEAR: Final = "\x1b[H\x1b[2J"
_EPILOG: Final = """\
examples:
  stowplan status -A
  stowplan status -n chat --watch
  stowplan status -A -o json | jq '.models[] | select(.unmet > 0)'

It needs no right but to read: what you may not read is named, and missing.

exit code: 0 no problem, 1 something is an error or critical, 2 wrong usage or no
connection to a cluster
"""


def main(arguments: Sequence[str]) -> int:
    """Show the state of a fleet; return the exit code."""
    made = parser()
    options = made.parse_args(arguments)
    if options.watch is not None and options.output != "table":
        made.error("--watch prints a table: leave out --output")
    return exit_code_of(lambda: _run(options), unread=_PROBLEMS)


async def _run(options: argparse.Namespace) -> int:
    namespace = namespace_of(options)
    async with await Cluster.connect(options.kubeconfig, options.context) as cluster:
        system = options.system_namespace or await installed_namespace(cluster)
        while options.watch is not None:
            await _show(cluster, namespace=namespace, system=system)
            await asyncio.sleep(options.watch)
        fleet = await read_fleet(cluster, namespace=namespace, system=system)
    present(options.output, fleet.as_json, fleet_parts(fleet, columns=terminal().width))
    is_well = all(item.severity is Severity.WARNING for item in fleet.problems)
    return _WELL if is_well else _PROBLEMS


async def _show(cluster: Cluster, *, namespace: str | None, system: str) -> None:
    """Print the state once; without an answer of the API server, say so and go on."""
    try:
        fleet = await read_fleet(cluster, namespace=namespace, system=system)
        text = print_lines(fleet_parts(fleet, columns=terminal().width), terminal())
    except Unauthorized:
        raise
    except ClusterError as error:
        text = f"{error.message}\n"
    sys.stdout.write((_CLEAR if sys.stdout.isatty() else "") + text)
    sys.stdout.flush()


async def read_fleet(cluster: Cluster, *, namespace: str | None, system: str) -> FleetState:
    """Return the state of a namespace, or of all. Raises ClusterError."""
    live = await read_cluster(cluster, namespace=namespace, system=system)
    now = datetime.now(UTC)
    gathering = gathering_of(live, configuration_in_cluster(live.settings), now=now)
    return fleet_of(live, gathering, now=now, namespace=namespace or "")


def gathering_of(live: LiveObjects, configuring: ConfigurationResult, *, now: datetime) -> InputsResult:
    """Return what planning makes of objects that were read at a time, with the controller's settings."""
    settings = [item for item in live.settings if "data" in item]
    listed = [item for items in live.objects.values() for item in items]
    return gather_objects(
        contents_of([*listed, *settings]),
        configuring=configuring,
        settings_namespace=live.system or INSTALLATION,
        now_seconds=now.timestamp(),
        may_be_empty=True,
    )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = command_parser(
        "status",
        "Show models, replicas, accelerators, cost and problems of a live cluster.",
        usage="%(prog)s [-A | -n NAMESPACE] [options]",
        epilog=_EPILOG,
    )
    add = made.add_argument
    add_scope(made)
    add(
        "-w",
        "--watch",
        nargs="?",
        const=5.0,
        type=number_between(1, 3600),
        metavar="SECONDS",
        help="show it again every 5 seconds, or as often as given, until Ctrl-C",
    )
    add_connection(made)
    add_output(made)
    return made
