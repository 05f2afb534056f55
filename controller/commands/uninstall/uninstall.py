"""Entry point of `stowplan uninstall`, which prints a plan and removes an installation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from apiserver.cluster.client import Cluster
from controller.commands.uninstall.checks import ACCEPTABLE, uninstall_checks
from controller.commands.uninstall.gather import gather, installations
from controller.commands.uninstall.removal import Removal
from controller.commands.uninstall.snapshot import Snapshot
from controller.commands.uninstall.steps import Step, uninstall_steps
from controller.commands.upgrade.findings import with_accepted
from controller.commands.upgrade.options import parser
from controller.commands.upgrade.progress import Progress
from controller.commands.upgrade.runs import Run
from controller.commands.upgrade.verb import Doer, run

_DESCRIPTION: Final = """\
Remove Stowplan from a cluster: remove scheduling gates, marks and taints from
pods and nodes, restore external.metrics.k8s.io to its former owner, and delete
what the manifests installed. Definitions that have objects stay, with these
objects. Prints the plan; --apply executes it.
"""
_EPILOG: Final = """\
examples:
  stowplan uninstall                            print what goes and what stays
  stowplan uninstall --apply                    execute it
  stowplan uninstall --apply --delete-objects   delete all objects, too

If a run is interrupted, run the command again: it continues with the
remaining work.
"""


def main(arguments: Sequence[str]) -> int:
    """Print or execute the plan; return the exit code."""
    made = parser("uninstall", _DESCRIPTION, _EPILOG, acceptable=ACCEPTABLE)
    made.add_argument(
        "--delete-objects",
        action="store_true",
        help="also delete definitions that have objects, these objects, and everything that Models"
        " expanded to",
    )
    options = made.parse_args(arguments)

    async def plan(cluster: Cluster) -> Run[Step]:
        snapshot = await gather(cluster)
        return plan_removal(
            snapshot, cluster.host, accept=options.accept, with_objects=options.delete_objects
        )

    async def start(cluster: Cluster, progress: Progress) -> Doer[Step]:
        return Removal(
            cluster,
            progress,
            namespaces=await installations(cluster),
            per_second=options.rate,
            with_objects=options.delete_objects,
        ).do

    return run(options, plan, start)


def plan_removal(
    snapshot: Snapshot, cluster: str, *, accept: Sequence[str] = (), with_objects: bool = False
) -> Run[Step]:
    """Return the plan for a snapshot."""
    return Run(
        verb="uninstall",
        cluster=cluster,
        checks=with_accepted(uninstall_checks(snapshot, with_objects=with_objects), accept),
        steps=uninstall_steps(snapshot, with_objects=with_objects),
    )
