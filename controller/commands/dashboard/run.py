"""Entry point of `stowplan dashboard`: serve the page of the fleet on loopback until it is stopped."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Coroutine, Sequence
from typing import Final

from aiohttp import web

from apiserver.cluster.client import Cluster
from apiserver.cluster.namespaces import installation_namespace, installed_namespace
from apiserver.program import command_parser
from controller.commands.dashboard.access import TokenInUrl, UserTokens
from controller.commands.dashboard.server import Dashboard
from controller.commands.profile.arguments import prometheus_url
from controller.commands.status.options import (
    add_connection,
    add_scope,
    exit_code_of,
    namespace_of,
    number_between,
)
from controller.engines.prometheus_history import PrometheusHistory
from controller.engines.requests import NO_CREDENTIALS

_STOPPED: Final = 0
_USAGE: Final = 2
_LOOPBACK: Final = "127.0.0.1"
_EPILOG: Final = """\
The page shows nodes, models, their latency against targets, what is short, and the
decisions of the last hour; and it plans what if: another node, a node drained, more
demand. It has your permissions, changes nothing, and is served on this machine only,
to whoever has the URL with its token.

examples:
  stowplan dashboard -A
  stowplan dashboard -n chat --port 8080

exit code: 0 stopped by Ctrl-C, 2 wrong usage, no connection to a cluster, or the
port is in use
"""


def main(arguments: Sequence[str]) -> int:
    """Serve the dashboard; return the exit code."""
    options = parser().parse_args(arguments)
    try:
        return exit_code_of(lambda: _run(options), unread=_STOPPED)
    except OSError as error:
        why = f"port {options.port:g} cannot be used: {error.strerror or error}; use another --port"
        sys.stderr.write(f"stowplan: {why}\n")
        return _USAGE


async def _run(options: argparse.Namespace) -> int:
    namespace = namespace_of(options)
    async with contextlib.AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(await Cluster.connect(options.kubeconfig, options.context))
        past = None
        if options.prometheus:
            source = PrometheusHistory(options.prometheus, credentials=NO_CREDENTIALS)
            past = await stack.enter_async_context(source)
        system = options.system_namespace or (
            installation_namespace("", "") if options.in_cluster else await installed_namespace(cluster)
        )
        token = TokenInUrl()
        dashboard = Dashboard(
            cluster,
            UserTokens(cluster) if options.in_cluster else token,
            namespace=namespace,
            system=system,
            interval_seconds=options.interval,
            past=past,
        )
        runner = web.AppRunner(dashboard.application(), access_log=None, handle_signals=False)
        await runner.setup()
        try:
            site = web.TCPSite(runner, _LOOPBACK, int(options.port))
            await site.start()
            port = runner.addresses[0][1]
            query = "" if options.in_cluster else f"?token={token.token}"
            sys.stdout.write(f"http://{_LOOPBACK}:{port}/{query}\n")
            sys.stdout.flush()
            await _until_terminated(dashboard.watch())
        finally:
            await runner.cleanup()
    return _STOPPED


async def _until_terminated(work: Coroutine[object, object, None]) -> None:
    """Run until SIGTERM, which the first process of a container would ignore."""
    task = asyncio.create_task(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = command_parser(
        "dashboard",
        "Serve a page about the fleet of a live cluster on this machine.",
        usage="%(prog)s [-A | -n NAMESPACE] [options]",
        epilog=_EPILOG,
    )
    add = made.add_argument
    add_scope(made)
    add(
        "--port",
        type=number_between(0, 65535),
        default=0,
        metavar="PORT",
        help="port on 127.0.0.1 (default: any free one)",
    )
    add(
        "--in-cluster",
        action="store_true",
        help="let users log in with their own tokens, instead of a token in the URL (see docs/fleet.md)",
    )
    add(
        "--prometheus",
        type=prometheus_url,
        metavar="URL",
        help="a Prometheus that scrapes the controller, to begin with the last six hours",
    )
    add(
        "--interval",
        type=number_between(5, 3600),
        default=15.0,
        metavar="SECONDS",
        help="time between two readings of the cluster (default: 15)",
    )
    add_connection(made)
    return made
