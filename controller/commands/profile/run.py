"""`stowplan profile`: the profile of running engines."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, explain
from apiserver.cluster.namespaces import current_namespace
from apiserver.program import exit_code
from controller.commands.check.documents import read_sources
from controller.commands.explain.evidence import NoSuchObjectError
from controller.commands.explain.run import subject
from controller.commands.plan.terminal import harmless
from controller.commands.profile.arguments import credentials, parser
from controller.commands.profile.profile import (
    ProfileFindings,
    document,
    learned_by_controller,
    measure_by_prometheus,
    read_pages,
    readings_of_files,
    yaml_text,
)
from controller.engines.exposition import UnreadableMetricsError
from controller.engines.fitting import EngineMeasurement, measure
from controller.observe.claim import OwnerKind
from controller.sizing.step_time import ENOUGH_SAMPLES

_KNOWN: Final = 0
_UNKNOWN: Final = 1
_UNREADABLE: Final = 2
_INTERRUPTED: Final = 130
_LAST_SECONDS: Final = 6 * 3600.0


class _UsageError(Exception):
    """Wrong usage, or nothing could be read."""


def main(arguments: Sequence[str]) -> int:
    """Print the profile; return the exit code."""
    made = parser()
    options = made.parse_args(arguments)
    if problem := _misuse(options):
        made.error(problem)
    return exit_code(lambda: _run(options), unread=_UNKNOWN)


def _run(options: argparse.Namespace) -> int:
    try:
        profile = _profile(options)
    except (_UsageError, UnreadableMetricsError, NoSuchObjectError) as error:
        sys.stderr.write(f"error: {harmless(str(error))}\n")
        return _UNREADABLE
    except ClusterError as error:
        sys.stderr.write(f"error: {harmless(explain(error, action='read this'))}\n")
        return _UNREADABLE
    except KeyboardInterrupt:
        return _INTERRUPTED
    if options.output == "json":
        sys.stdout.write(json.dumps(document(profile), indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(yaml_text(profile))
    sys.stdout.flush()
    return _KNOWN if profile.parameters else _UNKNOWN


def _misuse(options: argparse.Namespace) -> str:
    given = {
        "va/NAME": bool(options.what),
        "--prometheus": bool(options.prometheus),
        "--url": bool(options.url),
        "-f": bool(options.files),
    }
    chosen = [name for name, is_given in given.items() if is_given]
    if len(chosen) != 1:
        named = f"not {' and '.join(chosen)}" if chosen else "such as va/NAME"
        return f"specify one of {', '.join(given)}, {named}"
    kind, name = subject(options.what)
    if options.what and (not name or kind is OwnerKind.BINDING):
        return "one object is required: va/NAME, or hpa/NAME or so/NAME of an annotated autoscaler"
    if options.prometheus and not (options.pods or options.namespace):
        return "--prometheus requires -n NS or --pods REGEX, so that engines of one kind are compared"
    of_prometheus = {"--pods": options.pods, "--last": options.last}
    others = [name for name, value in of_prometheus.items() if value and not options.prometheus]
    return f"{' and '.join(others)} requires --prometheus URL" if others else ""


def _profile(options: argparse.Namespace) -> ProfileFindings:
    """Return what is known.

    Raises _UsageError, UnreadableMetricsError, NoSuchObjectError, ClusterError.
    """
    if options.what:
        return asyncio.run(_of_cluster(options))
    if options.prometheus:
        known = asyncio.run(
            measure_by_prometheus(
                options.prometheus,
                credentials=credentials(options),
                namespace=options.namespace or "",
                pods=options.pods or "",
                last_seconds=options.last or _LAST_SECONDS,
            )
        )
        return _of_measured(known, f"Prometheus {options.prometheus}", options.max_batch_size)
    if options.url:
        readings = asyncio.run(
            read_pages(
                options.url,
                interval_seconds=options.interval_seconds,
                watch_seconds=options.watch_seconds,
            )
        )
        return _of_measured(measure([readings]), options.url, options.max_batch_size)
    sources = list(read_sources(options.files))
    readings, problems = readings_of_files(sources, interval_seconds=options.interval_seconds)
    if problems:
        raise _UsageError("\nerror: ".join(problems))
    first, last = sources[0].name, sources[-1].name
    where = first if len(sources) == 1 else f"{len(sources)} pages from {first} to {last}"
    return _of_measured(measure([readings]), where, options.max_batch_size)


async def _of_cluster(options: argparse.Namespace) -> ProfileFindings:
    namespace = options.namespace or current_namespace(options.kubeconfig, options.context, os.environ)
    async with await Cluster.connect(options.kubeconfig, options.context) as cluster:
        kind, name = subject(options.what)
        return await learned_by_controller(
            cluster, kind, namespace=namespace, name=name, max_batch_size=options.max_batch_size
        )


def _of_measured(known: EngineMeasurement, where: str, max_batch_size: int | None) -> ProfileFindings:
    engines = "1 replica" if known.engines == 1 else f"{known.engines} replicas"
    trust = "" if known.samples >= ENOUGH_SAMPLES or not known.parameters else ", which are few"
    return ProfileFindings(
        origin=f"{where}: {engines} over {known.seconds:.0f} s, {known.samples:.0f} busy intervals{trust}",
        parameters=known.parameters,
        max_batch_size=max_batch_size,
        kv_tokens=known.kv_tokens,
        lengths=known.lengths,
        doubts=known.doubts,
    )
