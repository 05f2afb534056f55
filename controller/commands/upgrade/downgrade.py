"""`stowplan downgrade`: conversion of every object to the shape of a release and its own definition."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.kinds.llmd.shapes import RELEASES, SHAPES, Shape, in_shape
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.schema.json import Json
from controller.commands.upgrade.calls import Pace
from controller.commands.upgrade.checks import (
    ACCEPTABLE,
    check_certificates,
    check_definition,
    check_our_controller,
    check_owners,
    check_webhook,
)
from controller.commands.upgrade.definitions import (
    is_given_back,
    served_versions,
    storage_version,
    stored_versions,
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
from controller.commands.upgrade.steps import MigrationSteps, is_annotated, is_reshaped
from controller.commands.upgrade.upgrade import state_of
from controller.planning.wording import count

_DESCRIPTION: Final = """\
Restore every VariantAutoscaling to the shape of an earlier release, and leave a
definition over which that release's own definition can be applied. Prints the
plan; --apply executes it.
"""
_EPILOG: Final = """\
examples:
  stowplan downgrade --to-release v0.4.2            print the plan and losses
  stowplan downgrade --to-release v0.4.2 --apply    execute it
  stowplan downgrade --shape current -o json        name a shape, print JSON
"""
_APPLY: Final = (
    "next: apply the definition of {release} over the current one,",
    "  kubectl apply --server-side --force-conflicts -f variantautoscalings-crd.yaml",
    "then start its controller, and remove Stowplan,",
)
_UNINSTALL: Final = "  stowplan uninstall --apply"


def main(arguments: Sequence[str]) -> int:
    """Plan or execute the downgrade; return the exit code."""
    options = parser().parse_args(arguments)
    shape = RELEASES[options.to_release] if options.to_release else SHAPES[options.shape]

    async def plan(cluster: Cluster, pace: Pace) -> Run:
        snapshot = await gather(cluster, now=datetime.now(UTC))
        return plan_downgrade(
            snapshot,
            cluster.host,
            MigrationSteps(cluster, pace, namespace=snapshot.namespace),
            shape,
            accept=options.accept,
            accept_incomplete=options.accept_incomplete,
        )

    return run(options, plan)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = migration_parser("downgrade", _DESCRIPTION, _EPILOG, acceptable=ACCEPTABLE)
    target = made.add_mutually_exclusive_group(required=True)
    target.add_argument("--to-release", choices=list(RELEASES), metavar="RELEASE", help=", ".join(RELEASES))
    target.add_argument("--shape", choices=list(SHAPES), metavar="SHAPE", help=", ".join(SHAPES))
    made.add_argument(
        "--accept-incomplete",
        action="store_true",
        help="continue if the shape requires values that an object does not have; placeholders are written",
    )
    return made


def plan_downgrade(
    snapshot: UpgradeState,
    cluster: str,
    steps: MigrationSteps,
    shape: Shape,
    *,
    accept: Sequence[str] = (),
    accept_incomplete: bool = False,
) -> Run:
    """Return the plan for a snapshot."""
    parts: list[Finding | Step] = [check_permissions(snapshot.missing_permissions)]
    changes = tuple[Json, ...]()
    if not snapshot.missing_permissions:
        is_clean = not any(is_reshaped(item, shape) for item in snapshot.objects)
        is_bare = not any(map(is_annotated, snapshot.objects))
        changes = tuple(_changes(snapshot, shape))
        parts += [
            *_checks(snapshot, is_clean=is_clean),
            *check_shape(changes, len(snapshot.objects), shape, accept_incomplete=accept_incomplete),
            *downgrade_steps(snapshot.live, steps, shape, is_clean=is_clean, is_bare=is_bare),
        ]
    return plan_run(
        "downgrade",
        cluster,
        parts,
        accept=accept,
        state=state_of(snapshot, (VARIANT_AUTOSCALING,), changes),
        advice=tuple(line.format(release=shape) for line in _advice(snapshot)),
    )


def _changes(snapshot: UpgradeState, shape: Shape) -> Iterator[Json]:
    """Yield the objects that lose values, or for which values are made up."""
    for item in snapshot.objects:
        shaped, metadata = in_shape(item, shape), item["metadata"]
        if shaped.lost or shaped.made_up:
            place = {"namespace": metadata["namespace"], "name": metadata["name"]}
            yield place | {"lost": shaped.lost, "madeUp": shaped.made_up}


def _advice(snapshot: UpgradeState) -> tuple[str, ...]:
    """Return what is left to do after the run, until the release has everything and Stowplan is removed."""
    if snapshot.live is not None and is_given_back(VARIANT_AUTOSCALING, snapshot.live):
        return (*_APPLY, _UNINSTALL)
    return ("next: remove Stowplan,", _UNINSTALL) if snapshot.configuration else ()


def downgrade_steps(
    live: Json | None, steps: MigrationSteps, shape: Shape, *, is_clean: bool, is_bare: bool
) -> Iterator[Step]:
    """Yield the remaining steps of a downgrade; none under a definition that is not ours.

    `is_clean`: no object needs a change other than of our annotation. `is_bare`: no object has it.
    """
    kind = VARIANT_AUTOSCALING
    if live is None or not is_given_back(kind, live):
        return
    oldest = kind.versions[0].name
    has_both = served_versions(live) != (oldest,)
    if not is_clean:
        yield steps.rehearse(kind, shape)
    if storage_version(live) != oldest:
        yield steps.store(kind, oldest)
    if not is_clean:
        yield steps.reshape(kind, shape)
    if stored_versions(live) != (oldest,):
        yield steps.rewrite(kind, oldest)
        yield steps.prune(kind, oldest)
    if has_both:
        yield steps.disown(kind, kind.storage_version.name)
        yield steps.withdraw(kind)
    if has_both or not is_bare:
        yield steps.sweep(kind, shape)


def _checks(snapshot: UpgradeState, *, is_clean: bool) -> Iterator[Finding]:
    live = snapshot.live
    if live is None or is_given_back(VARIANT_AUTOSCALING, live):
        yield from check_definition(snapshot)
        yield from check_owners(snapshot)
    else:
        yield _check_foreign(is_clean=is_clean)
    yield from check_our_controller(snapshot)
    if len(served_versions(live)) > 1:
        yield from check_webhook(snapshot)
        yield from check_certificates(snapshot)


def _check_foreign(*, is_clean: bool) -> Finding:
    """Return that the definition is not ours, so that no object can be downgraded under it."""
    message = f"{VARIANT_AUTOSCALING.crd_name} is not ours; there is nothing to restore"
    if is_clean:
        return note("definition", message)
    return problem(
        "definition",
        f"{message}; objects are not reshaped under it, because it may drop fields",
        "if that release runs, leave them unchanged; otherwise run stowplan upgrade --apply first",
    )


def check_shape(
    changes: Sequence[Json], objects: int, shape: Shape, *, accept_incomplete: bool
) -> Iterator[Finding]:
    """Yield whether the shape can hold every object, and whether anything must be made up."""
    made_up, lossy = (sum(bool(item[name]) for item in changes) for name in ("madeUp", "lost"))
    if lossy:
        yield note(
            "shape", f"{shape} cannot express all fields of {count(lossy, 'object')}: see the list below"
        )
    if made_up:
        message = (
            f"{shape} requires values that are missing in {count(made_up, 'object')}: see the list below"
        )
        finding = note if accept_incomplete else problem
        yield finding(
            "shape", message, "complete these objects, choose another shape, or use --accept-incomplete"
        )
    if not changes:
        yield ok("shape", f"{shape} can express all fields of {count(objects, 'object')}")
