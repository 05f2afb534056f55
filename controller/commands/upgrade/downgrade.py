"""`stowplan downgrade`: conversion of every object to the shape of a release and its own definition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.kinds.llmd.shapes import RELEASES, SHAPES, Shape
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.kinds.registry import KINDS
from controller.commands.upgrade.accounts import Account, account
from controller.commands.upgrade.controller_checks import check_our_own
from controller.commands.upgrade.counting import count_text
from controller.commands.upgrade.definitions import is_given_back, served_versions
from controller.commands.upgrade.execution import Execution
from controller.commands.upgrade.findings import Finding, note, ok, problem, with_accepted
from controller.commands.upgrade.gather import gather
from controller.commands.upgrade.options import parser
from controller.commands.upgrade.owner_checks import check_definition, check_owners
from controller.commands.upgrade.permission_checks import check_permissions
from controller.commands.upgrade.report import Report, denied_report, found_definitions, shapes_found
from controller.commands.upgrade.snapshot import Snapshot
from controller.commands.upgrade.steps import downgrade_steps
from controller.commands.upgrade.verb import run
from controller.commands.upgrade.webhook_checks import check_certificates, check_webhook

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

If a run is interrupted, run the command again: it continues with the
remaining work.
"""
_APPLY: Final = (
    "next: apply the definition of {release} over the current one,",
    "  kubectl apply --server-side --force-conflicts -f variantautoscalings-crd.yaml",
    "then start its controller, and remove Stowplan,",
)
_UNINSTALL: Final = "  stowplan uninstall --apply"


def main(arguments: Sequence[str]) -> int:
    """Plan or execute the downgrade; return the exit code."""
    made = parser("downgrade", _DESCRIPTION, _EPILOG)
    target = made.add_mutually_exclusive_group(required=True)
    target.add_argument("--to-release", choices=list(RELEASES), metavar="RELEASE", help=", ".join(RELEASES))
    target.add_argument("--shape", choices=list(SHAPES), metavar="SHAPE", help=", ".join(SHAPES))
    made.add_argument(
        "--accept-incomplete",
        action="store_true",
        help="continue if the shape requires values that an object does not have; placeholders are written",
    )
    options = made.parse_args(arguments)
    shape = RELEASES[options.to_release] if options.to_release else SHAPES[options.shape]

    async def plan(cluster: Cluster) -> Report:
        snapshot = await gather(cluster, KINDS, VARIANT_AUTOSCALING, now=datetime.now(UTC))
        return plan_downgrade(
            snapshot, cluster.host, shape, accept=options.accept, accept_incomplete=options.accept_incomplete
        )

    return run(options, plan, Execution.starter(per_second=options.rate, shape=shape))


def plan_downgrade(
    snapshot: Snapshot,
    cluster: str,
    shape: Shape,
    *,
    accept: Sequence[str] = (),
    accept_incomplete: bool = False,
) -> Report:
    """Return the plan for a snapshot."""
    if snapshot.denied:
        return denied_report("downgrade", cluster, snapshot)
    accounts = tuple(account(item, shape) for item in snapshot.objects)
    is_clean = not any(item.is_reshaped for item in accounts)
    is_annotated = any(item.is_annotated for item in accounts)
    found = [*check_given_back(snapshot, is_clean=is_clean), *_checks(snapshot)]
    found += check_shape(accounts, shape, accept_incomplete=accept_incomplete)
    return Report(
        verb="downgrade",
        cluster=cluster,
        definitions=found_definitions(snapshot, (VARIANT_AUTOSCALING,)),
        objects=len(snapshot.objects),
        shapes=shapes_found(snapshot),
        checks=with_accepted(found, accept),
        steps=downgrade_steps(snapshot, VARIANT_AUTOSCALING, is_clean=is_clean, is_annotated=is_annotated),
        accounts=accounts,
        advice=tuple(line.format(release=shape) for line in _advice(snapshot)),
    )


def _advice(snapshot: Snapshot) -> tuple[str, ...]:
    """Return what is left to do after the run, until the release has everything and Stowplan is removed."""
    live = snapshot.definitions.get(VARIANT_AUTOSCALING.crd_name)
    if live is not None and is_given_back(VARIANT_AUTOSCALING, live):
        return (*_APPLY, _UNINSTALL)
    return ("next: remove Stowplan,", _UNINSTALL) if snapshot.webhook.is_configured else ()


def check_given_back(snapshot: Snapshot, *, is_clean: bool) -> Iterator[Finding]:
    """Yield a finding if the definition is not ours, so that no object can be downgraded under it."""
    live = snapshot.definitions.get(VARIANT_AUTOSCALING.crd_name)
    if live is None or is_given_back(VARIANT_AUTOSCALING, live):
        return
    message = f"{VARIANT_AUTOSCALING.crd_name} is not ours; there is nothing to restore"
    if is_clean:
        yield note("definition", message)
    else:
        yield problem(
            "definition",
            f"{message}; objects are not reshaped under it, because it may drop fields",
            "if that release runs, leave them unchanged; otherwise run stowplan upgrade --apply first",
        )


def check_shape(accounts: Sequence[Account], shape: Shape, *, accept_incomplete: bool) -> Iterator[Finding]:
    """Yield whether the shape can hold every object, and whether anything must be made up."""
    made_up, lossy = sum(bool(item.made_up) for item in accounts), sum(bool(item.lost) for item in accounts)
    if lossy:
        yield note(
            "shape", f"{shape} cannot express all fields of {count_text(lossy, 'object')}: see the list below"
        )
    if made_up:
        message = (
            f"{shape} requires values that are missing in {count_text(made_up, 'object')}: see the list below"
        )
        finding = note if accept_incomplete else problem
        yield finding(
            "shape", message, "complete these objects, choose another shape, or use --accept-incomplete"
        )
    if not lossy and not made_up:
        yield ok("shape", f"{shape} can express all fields of {count_text(len(accounts), 'object')}")


def _checks(snapshot: Snapshot) -> Iterator[Finding]:
    live = snapshot.definitions.get(VARIANT_AUTOSCALING.crd_name)
    yield from check_permissions(snapshot.denied)
    if live is None or is_given_back(VARIANT_AUTOSCALING, live):
        yield from check_definition(snapshot, VARIANT_AUTOSCALING)
        yield from check_owners(snapshot, VARIANT_AUTOSCALING)
    yield from check_our_own(snapshot)
    if len(served_versions(live)) > 1:
        yield from check_webhook(snapshot)
        yield from check_certificates(snapshot)
