"""Entry point of `stowplan doctor`: what prevents an installation from working, before and after it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec
from rich.console import RenderableType

from apiserver.cluster.client import Cluster
from apiserver.cluster.namespaces import installed_namespace
from apiserver.program import command_parser
from apiserver.schema.json import Json
from controller.commands.doctor import installation, processes, workloads
from controller.commands.doctor.evidence import Evidence, collect
from controller.commands.plan.configuring import configuration_in_cluster
from controller.commands.plan.terminal import Tone, labelled_line, present, wrapping_text
from controller.commands.status.assemble import fleet_of
from controller.commands.status.options import add_connection, add_output, exit_code_of
from controller.commands.status.run import gathering_of
from controller.commands.upgrade.report import Finding, Verdict
from controller.planning.wording import count

_WELL: Final = 0
_BLOCKED: Final = 1
_TONES: Final = {Verdict.OK: Tone.PLAIN, Verdict.NOTE: Tone.ADVICE, Verdict.PROBLEM: Tone.BAD}
_WIDTH: Final = 9
_EPILOG: Final = """\
Before an installation, it shows what would prevent one; afterwards, what does not
work and how to mend it. It changes nothing: a write is tried as a dry run.

examples:
  stowplan doctor
  stowplan doctor -o json | jq '.findings[] | select(.verdict == "problem")'

exit code: 0 nothing blocks, 1 something does, 2 wrong usage or no connection to
a cluster
"""


def main(arguments: Sequence[str]) -> int:
    """Check a cluster; return the exit code."""
    options = parser().parse_args(arguments)
    return exit_code_of(lambda: _run(options), unread=_BLOCKED)


async def _run(options: argparse.Namespace) -> int:
    async with await Cluster.connect(options.kubeconfig, options.context) as cluster:
        system = options.system_namespace or await installed_namespace(cluster)
        seen = await collect(cluster, system=system)
        host = cluster.host
    findings = diagnose(seen)
    present(options.output, lambda: _as_json(seen, findings, host), _parts(seen, findings, host))
    return _BLOCKED if any(item.verdict is Verdict.PROBLEM for item in findings) else _WELL


def diagnose(seen: Evidence) -> Sequence[Finding]:
    """Return all findings, by check."""
    gathering = gathering_of(seen.live, configuration_in_cluster(seen.live.settings), now=seen.now)
    fleet = fleet_of(seen.live, gathering, now=seen.now)
    checks = (
        installation.check_server(seen),
        installation.check_permissions(seen),
        installation.check_definitions(seen),
        installation.check_external_metrics(seen),
        installation.check_webhooks(seen),
        installation.check_certificates(seen),
        processes.check_processes(seen),
        processes.check_rivals(seen),
        processes.check_platform(seen),
        workloads.check_settings(seen, gathering),
        workloads.check_nodes(seen),
        workloads.check_autoscalers(seen, gathering),
        workloads.check_annotated(seen),
        workloads.check_keda(seen),
        workloads.check_prometheus(seen),
        workloads.check_engines(gathering),
        workloads.check_fleet(fleet),
    )
    return [*chain.from_iterable(checks)]


def _as_json(seen: Evidence, findings: Sequence[Finding], host: str) -> Json:
    return {
        "cluster": host,
        "is_installed": seen.is_installed,
        "findings": msgspec.to_builtins(findings),
    }


def _parts(seen: Evidence, findings: Sequence[Finding], host: str) -> Iterator[RenderableType]:
    state = f"Stowplan is installed in {seen.system}" if seen.is_installed else "Stowplan is not installed"
    if seen.configurations is None:
        state = "whether Stowplan is installed is not known"
    yield wrapping_text(f"{host}: {state}", Tone.HEADING)
    for item in findings:
        label = f"{item.verdict:<{_WIDTH}}"
        yield labelled_line(label, f"{item.check}: {item.message}", _TONES[item.verdict])
        if item.remedy:
            yield labelled_line(" " * _WIDTH, item.remedy, Tone.FAINT)
    counts = Counter(item.verdict for item in findings)
    blocking, notes = counts[Verdict.PROBLEM], counts[Verdict.NOTE]
    text = count(blocking, "problem") if blocking else "nothing blocks"
    yield wrapping_text(f"{text}, {count(notes, 'note')}", Tone.BAD if blocking else Tone.GOOD)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = command_parser(
        "doctor",
        "Check a cluster before and after an installation: what blocks, and what helps.",
        usage="%(prog)s [options]",
        epilog=_EPILOG,
    )
    add_connection(made)
    add_output(made)
    return made
