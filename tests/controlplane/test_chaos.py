"""Killed processes, frozen leaders and API server restarts: no write is lost or done twice."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from support.campaign import rounds, share, tell
from support.forwarder import Forwarder
from support.manifests import deployment, variant
from support.polling import wait_for
from support.replicas import SERVING_PORT, Caller, Replica

from hack.controlplane import ControlPlane
from hack.controlplane.auditing import AuditedRequest, AuditLog, stale_writes
from hack.controlplane.client import Client, ConflictError, RefusedError
from hack.controlplane.nodes import KwokNode, create_nodes
from hack.installation import Installation
from hack.installation.manifests import documents

pytestmark = pytest.mark.controlplane

KILLS: Final = share(5, full=500)
PAUSES: Final = share(1, full=300)
RESTARTS: Final = share(2, full=80)
NAMESPACE: Final = "chaos"
SYSTEM: Final = "stowplan-system"
PRODUCT: Final = "NVIDIA-L4"
VARIANTS: Final = share(4, full=8)
HUB, SPOKE = (
    f"/apis/llmd.ai/{version}/namespaces/{NAMESPACE}/variantautoscalings"
    for version in ("v1alpha2", "v1alpha1")
)
METRICS: Final = "/apis/external.metrics.k8s.io/v1beta1"
LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/stowplan-controller"
PINNED: Final = "stowplan.dev/replicas"
REPLICAS: Final = {"webhooks": 2, "apiserver": 2, "controller": 3}
"""The controller has one replica more than shipped: one leads, one is frozen, and one starts."""


@dataclass(slots=True)
class Stage:
    """An installation with several replicas of each process, and the requests in its audit log."""

    control_plane: ControlPlane
    client: Client
    replicas: dict[str, list[Replica]]
    forwarders: dict[str, Forwarder]
    audit: AuditLog
    asked: list[AuditedRequest] = field(default_factory=list)
    disturbances: int = 0

    def every_replica(self) -> list[Replica]:
        """Return the replicas of all components."""
        return [replica for replicas in self.replicas.values() for replica in replicas]

    def rotate(self, component: str, *, without: Replica | None = None) -> None:
        """Send new connections to all replicas of a component, or to all but one."""
        if component in self.forwarders:
            self.forwarders[component].rotate(
                [replica.target for replica in self.replicas[component] if replica is not without]
            )

    def leader(self) -> Replica | None:
        """Return the controller that holds the Lease, or None if that process has just ended."""
        holder = str(self.client.value("GET", LEASE)["spec"].get("holderIdentity") or "nobody")
        return next((item for item in self.replicas["controller"] if holder in item.said()), None)

    def has_another_leader(self, former: Replica) -> bool:
        """Return whether another controller holds the Lease."""
        return self.leader() not in {None, former}

    def kill(self, replica: Replica) -> None:
        """Kill a replica and remove it from its endpoints."""
        self.disturbances += 1
        replica.kill()
        self.rotate(replica.component, without=replica)
        self.disturbances += 1

    def granted(self) -> set[int]:
        """Return the granted replicas of all decisions."""
        items = self.client.value("GET", HUB)["items"]
        return {item.get("status", {}).get("decision", {}).get("grantedReplicas", -1) for item in items}

    def wait_until_decided(self, replicas: int) -> None:
        """Pin the replicas of every variant, and wait until the decisions grant that number.

        Retry what is rejected in between, for example while etcd restarts.
        """
        for number in range(VARIANTS):
            order_it = partial(pinned, self.client, number, replicas)
            wait_for(partial(undisturbed, order_it), f"an order for variant {number}")
        decided = partial(undisturbed, lambda: self.granted() == {replicas})
        wait_for(decided, f"decisions for {replicas} replicas")

    def stale_writes(self) -> list[AuditedRequest]:
        """Return the writes of controllers so far that came after they had lost the Lease."""
        account = f"system:serviceaccount:{SYSTEM}:stowplan-controller"
        self.asked += [item for item in self.audit.since_of(account=account) if item.has_written]
        return stale_writes(self.asked, lease="stowplan-controller")


def undisturbed(look: Callable[[], bool]) -> bool:
    """Return the predicate's value, or False if the API server does not answer."""
    try:
        return look()
    except (RefusedError, OSError, http.client.HTTPException):
        return False


def pinned(client: Client, number: int, replicas: int) -> bool:
    """Pin the replicas of one variant; return False if its status was written at the same time."""
    path = f"{HUB}/v{number}"
    value = client.value("GET", path)
    value["metadata"].setdefault("annotations", {})[PINNED] = str(replicas)
    try:
        client.call("PUT", path, value)
    except ConflictError:
        return False
    return True


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Yield an installation with several replicas of each process on a control plane with an audit log."""
    with ExitStack() as stack:
        control_plane = stack.enter_context(ControlPlane(audit=True))
        settings = {
            "planning": {"intervalSeconds": 1},
            "engines": {"podNetworks": [control_plane.pod_cidr]},
        }
        installation = Installation(control_plane, settings={"controller": settings})
        stack.callback(installation.stop)
        installation.start(without=frozenset({"webhooks", "apiserver"}))
        replicas = {
            component: [_replica(control_plane, component, number) for number in range(count)]
            for component, count in REPLICAS.items()
        }
        for replica in (item for items in replicas.values() for item in items):
            stack.callback(replica.stop)
            replica.start()
        installation.processes["controller"].stop(patience_seconds=20.0)
        forwarders = {
            name: stack.enter_context(Forwarder((installation.address(name), SERVING_PORT)))
            for name in ("webhooks", "apiserver")
        }
        client = stack.enter_context(control_plane.client())
        found = Stage(control_plane, client, replicas, forwarders, control_plane.audit_log)
        for component in forwarders:
            found.rotate(component)
        _fill(control_plane)
        found.wait_until_decided(1)
        yield found


def _replica(control_plane: ControlPlane, component: str, number: int) -> Replica:
    if component != "controller":
        return Replica(control_plane, component, number)
    account = control_plane.service_account_kubeconfig(SYSTEM, "stowplan-controller")
    own = account.rename(account.with_name(f"{account.name}-{number}"))  # its token tells it apart in the log
    return Replica(control_plane, component, number, cluster={"kubeconfig": str(own)})


def _fill(control_plane: ControlPlane) -> None:
    """Create workloads and variants, and nodes with capacity for all pinned replicas."""
    create_nodes(
        control_plane,
        [KwokNode(name=f"chaos-{number}", accelerator=PRODUCT, accelerator_count=8) for number in range(3)],
    )
    control_plane.kubectl("create", "namespace", NAMESPACE)
    labels = {"inference.optimization/acceleratorName": PRODUCT}
    names = [f"v{number}" for number in range(VARIANTS)]
    manifests = [deployment(name, product=PRODUCT, accelerators=1) for name in names]
    manifests += [variant(name, labels=labels, modelID=name) for name in names]
    available = "apiservice/v1beta1.external.metrics.k8s.io"
    control_plane.kubectl("wait", "--for=condition=Available", available, "--timeout=60s")
    control_plane.kubectl("apply", f"--namespace={NAMESPACE}", "--filename=-", input=documents(manifests))


@dataclass(slots=True)
class Ledger:
    """Costs that may be stored: the last acknowledged one, and those written since without an answer."""

    possible: set[str] = field(default_factory=lambda: {"40.0"})

    def write(self, client: Client, number: int) -> None:
        """Write a cost in the version that is not stored, after checking that the last one is stored."""
        path = f"{SPOKE}/v0"
        value = client.value("GET", path)
        self.check(value["spec"]["variantCost"])
        cost = value["spec"]["variantCost"] = f"{number + 1}.5"
        self.possible.add(cost)
        try:
            client.call("PUT", path, value)
        except ConflictError:
            return  # the status was written in between
        self.possible = {cost}

    def check(self, cost: str) -> None:
        """Check that a stored cost is one of the possible ones."""
        assert cost in self.possible


def read(client: Client, number: int) -> None:
    """Read one of the objects in the version that is not stored, which requires its conversion."""
    assert client.value("GET", f"{SPOKE}/v{number % VARIANTS}")["kind"] == "VariantAutoscaling"


def measure(client: Client, number: int) -> None:
    """Read a metric as a HorizontalPodAutoscaler does."""
    selector = f"labelSelector=variant_name%3Dv{number % VARIANTS}"
    found = client.value("GET", f"{METRICS}/namespaces/{NAMESPACE}/wva_desired_replicas?{selector}")
    assert len(found["items"]) == 1


def order(client: Client, number: int) -> None:
    """Pin changing numbers, so that the leader always has something to write."""
    pinned(client, number % VARIANTS, 1 + number // VARIANTS % 2)


def solver_of(leader: Replica) -> int | None:
    """Return the process ID of the leader's child process, if it has one."""
    children = Path(f"/proc/{leader.pid}/task/{leader.pid}/children").read_text(encoding="ascii").split()
    return int(children[0]) if children else None


def test_no_write_is_lost_if_processes_are_killed_at_random_times(stage: Stage) -> None:
    """Acknowledged writes are stored, calls fail only at the time of a kill, and decisions continue."""
    chance = random.Random(18)
    ledger = Ledger()

    def disturbances() -> int:
        return stage.disturbances

    with ExitStack() as stack:
        calls = (ledger.write, read, measure)
        callers = [
            stack.enter_context(Caller(stage.control_plane, call, disturbances=disturbances))
            for call in calls
        ]
        for number in rounds(KILLS):
            callers[0].wait_for(chance.randrange(1, 20))
            if number % 8 == 0 and (leader := stage.leader()) and (solver := solver_of(leader)):
                os.kill(solver, signal.SIGKILL)
            else:
                replica = chance.choice(stage.every_replica())
                stage.kill(replica)
                replica.start()
                stage.rotate(replica.component)
            stage.wait_until_decided(1 + number % 2)
            assert [caller.failure for caller in callers] == [None, None, None]
            assert stage.stale_writes() == []

    stored = json.loads(stage.client.call("GET", f"{SPOKE}/v0"))
    ledger.check(stored["spec"]["variantCost"])
    writes, reads, metrics = callers
    tell(
        f"{KILLS} kills: {writes.calls} writes, {reads.calls} reads and {metrics.calls} metrics, of which"
        f" {writes.failures}, {reads.failures} and {metrics.failures} failed in the moment of a kill;"
        f" {len(stage.asked)} writes of controllers, none after the Lease was lost"
    )


def test_a_frozen_leader_writes_nothing_once_another_leads(stage: Stage) -> None:
    """A frozen leader that continues in the middle of its work writes nothing more and exits."""
    chance, waits = random.Random(18), list[float]()
    with Caller(stage.control_plane, order) as orders:
        for number in rounds(PAUSES):
            leader = wait_for(stage.leader, "a leader")
            assert leader
            orders.wait_for(chance.randrange(1, 60))
            leader.freeze()
            frozen = time.monotonic()
            wait_for(partial(stage.has_another_leader, leader), "another leader")
            waits.append(time.monotonic() - frozen)
            orders.wait_for(chance.randrange(1, 20))
            leader.wake()
            leader.wait_until_ended()
            assert stage.stale_writes() == []
            leader.stop()
            leader.start()
            assert orders.failure is None, number

    stage.wait_until_decided(2)
    tell(
        f"{PAUSES} pauses: another one led after {statistics.median(waits):.1f} s,"
        f" {max(waits):.1f} s at most; {len(stage.asked)} writes of controllers, none after losing the Lease"
    )


def test_decisions_continue_after_restarts_of_the_api_server_and_etcd(stage: Stage) -> None:
    """Watches are resumed; a controller that was without its Lease for too long exits and is restarted."""
    waits = list[float]()
    for number in rounds(RESTARTS):
        stage.control_plane.restart(("kube-apiserver", "etcd")[number % 2])
        began = time.monotonic()
        for replica in stage.replicas["controller"]:
            if replica.has_ended():
                replica.stop()
                replica.start()
        stage.wait_until_decided(1 + number % 2)
        waits.append(time.monotonic() - began)
        assert stage.stale_writes() == []
    tell(
        f"{RESTARTS} restarts: decisions went on after {statistics.median(waits):.1f} s,"
        f" {max(waits):.1f} s at most"
    )
