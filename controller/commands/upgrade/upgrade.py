"""`stowplan upgrade`: migration of a live cluster to our definitions, planned first and without downtime.

The order of the steps changes the storage version without losing a read or write: serve both versions with
conversion, prove it, change the storage version, rewrite the stored objects, and only then record that no old
version is stored. The state after each step determines the remaining ones, so no journal is needed: an
interrupted run is run again. Source: `k8s.io/apiextensions-apiserver`, CustomResourceDefinition versioning.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.kinds.conversion import wanted_annotation_bytes
from apiserver.kinds.identity import key_of
from apiserver.kinds.llmd.shapes import shape_of
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.kinds.registry import DEFINED
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from apiserver.schema.metadata import LIMIT_BYTES
from controller.commands.upgrade.calls import Pace
from controller.commands.upgrade.checks import (
    ACCEPTABLE,
    check_certificates,
    check_definition,
    check_earlier_controllers,
    check_owners,
    check_webhook,
)
from controller.commands.upgrade.definitions import (
    is_ours,
    matches,
    served_versions,
    storage_version,
    stored_versions,
    transitional_definition,
)
from controller.commands.upgrade.gather import UpgradeState, gather
from controller.commands.upgrade.report import (
    Finding,
    Run,
    Step,
    check_permissions,
    note,
    ok,
    plan_run,
    problem,
)
from controller.commands.upgrade.run import migration_parser, run
from controller.commands.upgrade.steps import MigrationSteps
from controller.planning.wording import count, first_of

_MOST_NAMED: Final = 10
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
"""


def main(arguments: Sequence[str]) -> int:
    """Plan or execute the upgrade; return the exit code."""
    options = parser().parse_args(arguments)

    async def plan(cluster: Cluster, pace: Pace) -> Run:
        snapshot = await gather(cluster, now=datetime.now(UTC))
        steps = MigrationSteps(cluster, pace, namespace=snapshot.namespace)
        return plan_upgrade(snapshot, cluster.host, steps, accept=options.accept)

    return run(options, plan)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    return migration_parser("upgrade", _DESCRIPTION, _EPILOG, acceptable=ACCEPTABLE)


def plan_upgrade(
    snapshot: UpgradeState, cluster: str, steps: MigrationSteps, *, accept: Sequence[str] = ()
) -> Run:
    """Return the plan for a snapshot."""
    parts: list[Finding | Step] = [check_permissions(snapshot.missing_permissions)]
    if not snapshot.missing_permissions:
        parts += [
            *check_definition(snapshot),
            *check_owners(snapshot),
            *check_objects(snapshot),
            *check_earlier_controllers(snapshot),
            *check_webhook(snapshot),
            *check_certificates(snapshot),
            *upgrade_steps(snapshot, steps),
        ]
    return plan_run("upgrade", cluster, parts, accept=accept, state=state_of(snapshot, DEFINED))


def state_of(snapshot: UpgradeState, kinds: Sequence[Kind], changes: Sequence[Json] = ()) -> Json:
    """Return the members of the document that describe the state of the cluster.

    Without permissions nothing is known, and no definition is described.
    """
    shapes = Counter(shape_of(item).name for item in snapshot.objects)
    return {
        "definitions": [
            _definition_state(kind.crd_name, snapshot.definitions.get(kind.crd_name))
            for kind in (() if snapshot.missing_permissions else kinds)
        ],
        "objects": {"total": len(snapshot.objects), "byShape": dict(shapes)},
        "changes": list(changes),
    }


def _definition_state(name: str, live: Json | None) -> Json:
    return {
        "name": name,
        "isInstalled": bool(served_versions(live)),
        "isOurs": live is not None and is_ours(live),
        "served": list(served_versions(live)),
        "storage": storage_version(live),
        "storedVersions": list(stored_versions(live)),
    }


def upgrade_steps(
    snapshot: UpgradeState, steps: MigrationSteps, kinds: Sequence[Kind] = DEFINED
) -> Iterator[Step]:
    """Yield the remaining steps of an upgrade; none if it is complete."""
    for kind in kinds:
        live, hub = snapshot.definitions.get(kind.crd_name), kind.storage_version.name
        if kind.has_conversion:
            yield from _conversion_steps(snapshot, steps, kind, live) if live else (steps.install(kind, hub),)
        elif live is not None and is_ours(live):  # the others are optional components, or of others
            transitional = transitional_definition(kind, live, storage=hub, ca_bundle="")
            if not matches(live, transitional):
                yield steps.install(kind, hub)


def _conversion_steps(
    snapshot: UpgradeState, steps: MigrationSteps, kind: Kind, live: Json
) -> Iterator[Step]:
    hub, old = kind.storage_version.name, storage_version(live)
    transitional = transitional_definition(
        kind, live, storage=old, ca_bundle=snapshot.ca_bundle, namespace=snapshot.namespace
    )
    if not matches(live, transitional):
        yield steps.serve(kind, old)
    if old != hub:
        yield steps.prove(kind)
        yield steps.store(kind, hub)
    if stored_versions(live) != (hub,):
        yield steps.rewrite(kind, hub)
        yield steps.prune(kind, hub)


def check_objects(snapshot: UpgradeState) -> Iterator[Finding]:
    """Yield the objects that exceed the size limit of annotations, and those without a spec.

    An object that conversion cannot keep would make every list of the new version fail.
    """
    objects, kind = snapshot.objects, VARIANT_AUTOSCALING
    large = [item for item in objects if wanted_annotation_bytes(kind, item) > LIMIT_BYTES]
    if large:
        yield problem(
            "objects",
            f"the data of {_names(large)} that {kind.group}/{kind.storage_version.name} cannot express does"
            " not fit into annotations",
            "shorten these objects, for example by removing unused candidates of a modelProfile",
        )
    else:
        yield ok("objects", f"the data of {count(len(objects), 'object')} fits")
    if bare := [item for item in objects if "spec" not in item]:
        yield note(
            "objects",
            f"{_names(bare)} {'has' if len(bare) == 1 else 'have'} no spec: upgraded, but never planned",
            "add a spec to each, or delete it",
        )


def _names(objects: Sequence[Json]) -> str:
    return first_of(["/".join(key_of(item)) for item in objects], _MOST_NAMED)
