"""Deletion costs of pods that should be removed first, and planning without permission to set them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast

from support.decisions import plan_of
from support.logs import capture_logs
from support.manifests import deployment
from support.observations import observed
from support.workloads import stateful_pod, stateful_set

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Conflict, Forbidden, Invalid, NotFound
from apiserver.schema.json import Json
from controller.observe.gather import GatherResult
from controller.observe.removal_order import OURS, DeletionMark
from controller.observe.targets import TargetKey, TargetKind, target_of
from controller.planning.snapshot import Snapshot
from controller.variants.pod_deletion_costs import ASK_AGAIN, PodMarker, due_marks

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def mark(name: str, namespace: str = "ns") -> DeletionMark:
    """Return the changes of one pod's annotations."""
    return DeletionMark(
        namespace=namespace, name=name, resource_version="7", annotations={"a": "1", "b": None}
    )


@dataclass
class Server:
    """Accepts patches, or rejects them by the name of the pod."""

    refusals: dict[str, ClusterError] = field(default_factory=dict)
    patched: dict[str, Json] = field(default_factory=dict)
    time: datetime = NOON

    async def patch_merge(self, _resource: object, name: str, change: Json, *, namespace: str) -> Json:
        """Record a patch."""
        if name in self.refusals:
            raise self.refusals[name]
        self.patched[name] = change | {"namespace": namespace}
        return change

    def marker(self) -> PodMarker:
        """Return a marker that uses this server."""
        return PodMarker(cast("Cluster", self), now=lambda: self.time)


async def _warnings(marker: PodMarker, due: Sequence[DeletionMark]) -> list[str]:
    with capture_logs() as lines:
        await marker.write(due)
    return [line["why"] for line in lines if line["log_level"] == "warning"]


async def test_a_patch_contains_the_resource_version_of_its_decision() -> None:
    """Later changes by other clients are not overwritten."""
    server = Server()

    await server.marker().write([mark("p")])

    metadata = {"resourceVersion": "7", "annotations": {"a": "1", "b": None}}
    assert server.patched == {"p": {"metadata": metadata, "namespace": "ns"}}


async def test_a_deleted_or_changed_pod_is_no_error() -> None:
    """The next cycle decides again."""
    server = Server({"gone": NotFound("gone"), "other": Conflict("modified")})
    marker = server.marker()

    assert await _warnings(marker, [mark("gone"), mark("other"), mark("p")]) == []
    assert (list(server.patched), marker.forbidden) == (["p"], set())


async def test_a_pod_that_cannot_be_marked_affects_no_other() -> None:
    """Its annotations are as large as they may be. It is tried again later, as it may change."""
    server = Server({"full": Invalid("annotations: Too long")})
    marker = server.marker()

    assert await _warnings(marker, [mark("full"), mark("p")]) == ["annotations: Too long"]
    assert await _warnings(marker, [mark("full"), mark("q")]) == []
    assert (list(server.patched), marker.forbidden) == (["p", "q"], set())
    server.time += ASK_AGAIN
    server.refusals.clear()
    await marker.write([mark("full")])
    assert list(server.patched) == ["p", "q", "full"]


async def test_a_namespace_that_forbids_patches_affects_no_other() -> None:
    """An admission policy of a tenant does, for example."""
    server = Server({"p": Forbidden("denied by a policy")})
    marker = server.marker()

    assert await _warnings(marker, [mark("p"), mark("r", "other")]) == ["denied by a policy"]
    assert marker.forbidden == {"ns"}
    await marker.write([mark("q"), mark("s", "other")])
    assert list(server.patched) == ["r", "s"]


async def test_a_missing_permission_is_logged_once_and_retried_later() -> None:
    """Meanwhile nothing is written, and the plan assumes the order of removal of ReplicaSets."""
    server = Server({"p": Forbidden("pods are forbidden")})
    marker = server.marker()

    assert await _warnings(marker, [mark("p")]) == ["pods are forbidden"]
    assert marker.forbidden == {"ns"}
    assert await _warnings(marker, [mark("q")]) == []
    assert server.patched == {}

    server.time += ASK_AGAIN
    assert await _warnings(marker, [mark("p")]) == []
    server.time += ASK_AGAIN
    server.refusals.clear()
    await marker.write([mark("p")])
    assert (list(server.patched), marker.forbidden) == (["p"], set())
    server.time += timedelta(seconds=1)
    server.refusals["p"] = Forbidden("again")
    assert await _warnings(marker, [mark("p")]) == ["again"]


def test_only_pods_of_replica_sets_are_marked() -> None:
    """StatefulSets ignore deletion costs, and their old annotations are kept."""
    marked = stateful_pod("chat", 0)
    marked["metadata"]["annotations"] = {OURS: "-1", "controller.kubernetes.io/pod-deletion-cost": "-1"}
    found = [
        due_marks(
            GatherResult(
                snapshot=Snapshot(nodes=(), variants=()),
                observed={
                    ("ns", "chat"): observed(
                        pods=(marked,), target=target_of(TargetKey(kind, "ns", "chat"), manifest)
                    )
                },
            ),
            plan_of(),
            steered=lambda _: True,
        )
        for kind, manifest in (
            (TargetKind.DEPLOYMENT, deployment("chat", product="L4", accelerators=1)),
            (TargetKind.STATEFUL_SET, stateful_set("chat", product="L4", accelerators=1)),
        )
    ]

    assert [len(marks) for marks in found] == [1, 0]
