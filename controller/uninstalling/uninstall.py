"""Entry point of `stowplan uninstall`, which prints a plan and removes an installation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.upgrading.findings import accepted
from apiserver.upgrading.options import parser
from apiserver.upgrading.progress import Progress
from apiserver.upgrading.runs import Run
from apiserver.upgrading.verb import Doer, run
from controller.uninstalling.checks import ACCEPTABLE, uninstall_checks
from controller.uninstalling.gather import gather, installation
from controller.uninstalling.removal import Removal
from controller.uninstalling.snapshot import Snapshot
from controller.uninstalling.steps import Step, uninstall_steps

_DESCRIPTION: Final = (
    "Take Stowplan out of a cluster: open scheduling gates, take marks and taints off pods and nodes, give"
    " external.metrics.k8s.io back, and delete what the manifests installed. Definitions that have objects"
    " stay, with these objects. Prints a plan; --apply does it."
)
_EPILOG: Final = """\
examples:
  stowplan uninstall                            say what is there, and what would go and stay
  stowplan uninstall --apply                    do it
  stowplan uninstall --apply --delete-objects   and delete all objects of our kinds

A run that was cut off is simply run again: it goes on with what is left.
"""


def main(arguments: Sequence[str]) -> int:
    """Print or execute the plan; return the exit code."""
    made = parser("uninstall", _DESCRIPTION, _EPILOG, acceptable=ACCEPTABLE)
    made.add_argument(
        "--delete-objects",
        action="store_true",
        help="delete definitions that have objects, too, and with them the objects and what Models became",
    )
    options = made.parse_args(arguments)

    async def plan(cluster: Cluster) -> Run[Step]:
        snapshot = await gather(cluster)
        return planned(snapshot, cluster.host, accept=options.accept, with_objects=options.delete_objects)

    async def start(cluster: Cluster, progress: Progress) -> Doer[Step]:
        return Removal(
            cluster,
            progress,
            namespace=await installation(cluster),
            per_second=options.rate,
            with_objects=options.delete_objects,
        ).do

    return run(options, plan, start)


def planned(
    snapshot: Snapshot, cluster: str, *, accept: Sequence[str] = (), with_objects: bool = False
) -> Run[Step]:
    """Return the plan for a snapshot."""
    return Run(
        verb="uninstall",
        cluster=cluster,
        checks=accepted(uninstall_checks(snapshot, with_objects=with_objects), accept),
        steps=uninstall_steps(snapshot, with_objects=with_objects),
    )
