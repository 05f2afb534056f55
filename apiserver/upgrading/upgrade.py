"""`stowplan upgrade`: migration of a live cluster to our definitions, planned first and without downtime."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.kinds.registry import KINDS
from apiserver.upgrading.controller_checks import check_upstream
from apiserver.upgrading.execution import Execution
from apiserver.upgrading.findings import Finding, accepted
from apiserver.upgrading.gather import gather
from apiserver.upgrading.object_checks import check_objects
from apiserver.upgrading.options import parser
from apiserver.upgrading.owner_checks import check_definition, check_owners
from apiserver.upgrading.permission_checks import check_permissions
from apiserver.upgrading.report import Report, denied_report, found_definitions, shapes_found
from apiserver.upgrading.snapshot import Snapshot
from apiserver.upgrading.steps import upgrade_steps
from apiserver.upgrading.verb import run
from apiserver.upgrading.webhook_checks import check_certificates, check_webhook

_DESCRIPTION: Final = """\
Upgrade a live cluster to the definitions of this release. Conversion of every
stored object is verified before the object is rewritten. Reads, writes and
watches continue. Prints the plan; --apply executes it.
"""
_EPILOG: Final = """\
examples:
  stowplan upgrade                 print definitions, problems and the plan
  stowplan upgrade --apply         execute it
  stowplan upgrade -o json         print it as JSON

If a run is interrupted, run the command again: it continues with the
remaining work.
"""


def main(arguments: Sequence[str]) -> int:
    """Plan or execute the upgrade; return the exit code."""
    options = parser("upgrade", _DESCRIPTION, _EPILOG).parse_args(arguments)

    async def plan(cluster: Cluster) -> Report:
        snapshot = await gather(cluster, KINDS, VARIANT_AUTOSCALING, now=datetime.now(UTC))
        return planned(snapshot, cluster.host, accept=options.accept)

    return run(options, plan, Execution.starter(per_second=options.rate))


def planned(snapshot: Snapshot, cluster: str, *, accept: Sequence[str] = ()) -> Report:
    """Return the plan for a snapshot."""
    if snapshot.denied:
        return denied_report("upgrade", cluster, snapshot)
    return Report(
        verb="upgrade",
        cluster=cluster,
        definitions=found_definitions(snapshot, KINDS),
        objects=len(snapshot.objects),
        shapes=shapes_found(snapshot),
        checks=accepted(_checks(snapshot), accept),
        steps=upgrade_steps(snapshot, KINDS),
    )


def _checks(snapshot: Snapshot) -> list[Finding]:
    return [
        *check_permissions(snapshot.denied),
        *check_definition(snapshot, VARIANT_AUTOSCALING),
        *check_owners(snapshot, VARIANT_AUTOSCALING),
        *check_objects(snapshot, VARIANT_AUTOSCALING),
        *check_upstream(snapshot),
        *check_webhook(snapshot),
        *check_certificates(snapshot),
    ]
