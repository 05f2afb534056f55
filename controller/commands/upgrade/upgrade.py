"""`stowplan upgrade`: migration of a live cluster to our definitions, planned first and without downtime.

Objects that conversion cannot keep are found before: one would make every list of the new version fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.kinds.conversion import wanted_annotation_bytes
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.kinds.registry import KINDS
from apiserver.schema.annotations import LIMIT_BYTES
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.commands.upgrade.controller_checks import check_upstream
from controller.commands.upgrade.counting import count_text
from controller.commands.upgrade.execution import Execution
from controller.commands.upgrade.findings import Finding, note, ok, problem, with_accepted
from controller.commands.upgrade.gather import gather
from controller.commands.upgrade.options import parser
from controller.commands.upgrade.owner_checks import check_definition, check_owners
from controller.commands.upgrade.permission_checks import check_permissions
from controller.commands.upgrade.report import Report, denied_report, found_definitions, shapes_found
from controller.commands.upgrade.snapshot import Snapshot
from controller.commands.upgrade.steps import upgrade_steps
from controller.commands.upgrade.verb import run
from controller.commands.upgrade.webhook_checks import check_certificates, check_webhook

_CHECK: Final = "objects"
_MOST_NAMED: Final = 10


def check_objects(snapshot: Snapshot, kind: Kind) -> Iterator[Finding]:
    """Yield the objects that exceed the size limit of annotations, and those without a spec."""
    hub = f"{kind.group}/{kind.storage_version.name}"
    large = [_place(item) for item in snapshot.objects if wanted_annotation_bytes(kind, item) > LIMIT_BYTES]
    if large:
        yield problem(
            _CHECK,
            f"the data of {_place_text(large)} that {hub} cannot express does not fit into annotations",
            "shorten these objects, for example by removing unused candidates of a modelProfile",
        )
    else:
        yield ok(_CHECK, f"the data of {count_text(len(snapshot.objects), 'object')} fits")
    if bare := [_place(item) for item in snapshot.objects if "spec" not in item]:
        yield note(
            _CHECK,
            f"{_place_text(bare)} {'has' if len(bare) == 1 else 'have'} no spec: upgraded, but never planned",
            "add a spec to each, or delete it",
        )


def _place_text(places: Sequence[str]) -> str:
    more = f" and {len(places) - _MOST_NAMED} more" if len(places) > _MOST_NAMED else ""
    return f"{', '.join(places[:_MOST_NAMED])}{more}"


def _place(item: Json) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


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
        return plan_upgrade(snapshot, cluster.host, accept=options.accept)

    return run(options, plan, Execution.starter(per_second=options.rate))


def plan_upgrade(snapshot: Snapshot, cluster: str, *, accept: Sequence[str] = ()) -> Report:
    """Return the plan for a snapshot."""
    if snapshot.denied:
        return denied_report("upgrade", cluster, snapshot)
    return Report(
        verb="upgrade",
        cluster=cluster,
        definitions=found_definitions(snapshot, KINDS),
        objects=len(snapshot.objects),
        shapes=shapes_found(snapshot),
        checks=with_accepted(_checks(snapshot), accept),
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
