"""Availability of the conversion webhook, on which every read in another version depends."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import pytest
from support.attacked import kubeconfig_for, webhooks
from support.campaign import rounds, share, tell
from support.forwarder import Forwarder
from support.manifests import Manifest
from support.polling import wait_for
from support.replicas import PATIENCE_SECONDS, SERVING_PORT, Caller, Replica

from hack.calling import variants
from hack.calling.connection import Connection
from hack.calling.conversion_reviews import SERVER_NAME, converted_objects, http_request, review
from hack.calling.cores import memory_mebibytes
from hack.calling.load import ask
from hack.calling.reviews import create, submitted_object
from hack.calling.reviews import http_request as webhook_request
from hack.calling.server_process import ADDRESS, ServerProcess
from hack.controlplane import ControlPlane
from hack.controlplane.auditing import conversions
from hack.controlplane.client import Client
from hack.controlplane.network import free_port
from hack.installation import Installation

pytestmark = pytest.mark.controlplane

STORED = variants.mixed_objects(variants.OLD, 6)
HUB, SPOKE = "llmd.ai/v1alpha2", "llmd.ai/v1alpha1"
MANY = 10_000
MEGABYTE = 1 << 20
RETAINED_MEBIBYTES = 24
SERVING = ("webhooks", "apiserver")
API = "v1beta1.external.metrics.k8s.io"
ROLLS = share(2, full=100)
CALLS_IN_BETWEEN = share(20, full=60)

Dial = Callable[[], closing[Connection]]


@contextmanager
def served(directory: Path, kubeconfig: Path) -> Iterator[tuple[ServerProcess, Dial]]:
    """Run the webhooks process with a kubeconfig; yield it and a function that connects to it."""
    with webhooks(directory, kubeconfig) as server:
        yield server, lambda: closing(server.connect())


def asked(connection: Connection, values: Sequence[Manifest], version: str) -> list[Manifest]:
    """Return the objects that a conversion review of these objects yields."""
    answer = ask(connection, http_request(review(values, version)))
    assert answer.status == 200
    return converted_objects(answer.body)


def decided(connection: Connection, value: Manifest) -> None:
    """Send an admission review, so that the modules that only admission needs are loaded."""
    request = webhook_request("/mutate", create(value), server_name=SERVER_NAME, timeout_seconds=10)
    assert ask(connection, request).status == 200


def test_conversion_answers_while_the_api_server_cannot_be_reached(tmp_path: Path) -> None:
    """No process listens at the address of the API server, and objects are still converted."""
    with served(tmp_path, kubeconfig_for(tmp_path, free_port(ADDRESS))) as (_, dial), dial() as connection:
        (found,) = asked(connection, [variants.legacy(1)], HUB)

    assert found["spec"]["scaleTargetRef"]["name"] == "llama-8b-a100-1"


def test_conversion_answers_before_the_caches_are_synced(tmp_path: Path) -> None:
    """The API server accepts the list request but never answers, as when it waits for this conversion."""
    with socket.create_server((ADDRESS, 0)) as silent:
        silent.settimeout(PATIENCE_SECONDS)
        kubeconfig = kubeconfig_for(tmp_path, silent.getsockname()[1])
        with served(tmp_path, kubeconfig) as (_, dial), dial() as connection:
            before = asked(connection, [variants.legacy(1)], HUB)
            caller, _ = silent.accept()
            with caller:
                meanwhile = asked(connection, [variants.legacy(1)], HUB)

    assert before == meanwhile
    assert before[0]["apiVersion"] == HUB


def test_long_lists_and_large_objects_are_not_kept_in_memory(tmp_path: Path) -> None:
    """Ten thousand mixed objects, and one of a megabyte, are converted in both directions twice."""
    many = variants.mixed_objects(variants.OLD, MANY)
    large = variants.released_current(1)
    large["metadata"]["annotations"] = {"note": "ü" * (MEGABYTE // 2)}
    with served(tmp_path, kubeconfig_for(tmp_path, free_port(ADDRESS))) as (process, dial):
        with dial() as connection:
            asked(connection, many[:100], HUB)
            decided(connection, large)
        before, there = memory_mebibytes("VmRSS", process.pid), list[Manifest]()
        with dial() as connection:
            for _ in range(2):
                there = asked(connection, many, HUB)
                assert asked(connection, there, SPOKE) == many
                assert asked(connection, [large], HUB) == [large | {"apiVersion": HUB}]
        with dial() as connection:  # the buffers of the last connection are freed
            asked(connection, many[:100], HUB)
        wait_for(  # free memory is released half a second after a large response
            lambda: memory_mebibytes("VmRSS", process.pid) - before < RETAINED_MEBIBYTES,
            lambda: f"{before} MiB before, {memory_mebibytes('VmRSS', process.pid)} after",
        )

    assert [value["metadata"]["uid"] for value in there] == [value["metadata"]["uid"] for value in many]


@dataclass(frozen=True, slots=True)
class Replicas:
    """Several processes of one component behind the address of its Service."""

    forwarder: Forwarder
    running: list[Replica]

    def without(self, replica: Replica) -> None:
        """Send new connections to all replicas but one."""
        self.forwarder.rotate([other.target for other in self.running if other is not replica])

    def restore(self) -> None:
        """Send new connections to all replicas."""
        self.forwarder.rotate([each.target for each in self.running])


@pytest.fixture
def replicas() -> Iterator[tuple[ControlPlane, dict[str, Replicas]]]:
    """Yield two replicas of each server behind one address, on a control plane without other load."""
    with ExitStack() as stack:
        control_plane = stack.enter_context(
            ControlPlane(controller_manager=False, scheduler=False, kwok=False)
        )
        installation = Installation(control_plane)
        stack.callback(installation.stop)
        installation.start(without=frozenset({"webhooks", "apiserver"}))
        found = {name: [Replica(control_plane, name, number) for number in range(2)] for name in SERVING}
        for replica in chain.from_iterable(found.values()):
            stack.callback(replica.stop)
            replica.start()
        installation.processes["controller"].stop(patience_seconds=PATIENCE_SECONDS)
        behind = {
            name: Replicas(
                stack.enter_context(Forwarder((installation.address(name), SERVING_PORT))), found[name]
            )
            for name in SERVING
        }
        for each in behind.values():
            each.restore()
        control_plane.kubectl("wait", "--for=condition=Available", f"apiservice/{API}", "--timeout=60s")
        control_plane.kubectl("create", "namespace", variants.NAMESPACE)
        yield control_plane, behind


def read(client: Client, number: int) -> None:
    """Read one of the objects in the version that is not stored, which requires its conversion."""
    name = STORED[number % len(STORED)]["metadata"]["name"]
    assert client.value("GET", f"{variants.collection(SPOKE)}/{name}")["apiVersion"] == SPOKE


def write(client: Client, number: int) -> None:
    """Change an object in the version that is not stored."""
    path = f"{variants.collection(SPOKE)}/{STORED[0]['metadata']['name']}"
    value = client.value("GET", path)
    value["spec"]["variantCost"] = f"{number + 1}.50"
    assert client.value("PUT", path, value)["spec"]["variantCost"] == f"{number + 1}.50"


def complaints(control_plane: ControlPlane) -> str:
    """Return the lines in which the API server logged failed conversions."""
    log = control_plane.processes["kube-apiserver"].log.read_text(encoding="utf-8", errors="replace")
    return "\n".join(line for line in log.splitlines() if "conversion webhook for" in line)


def discover(client: Client, _number: int) -> None:
    """Read the resource list of the metrics API through the aggregation layer."""
    assert client.value("GET", "/apis/external.metrics.k8s.io/v1beta1")["kind"] == "APIResourceList"


def test_a_rolling_restart_under_load_fails_no_request(
    replicas: tuple[ControlPlane, dict[str, Replicas]],
) -> None:
    """Converted reads and writes, and calls of the metrics API, succeed while each replica is replaced."""
    control_plane, behind = replicas
    with control_plane.client() as client:
        for value in STORED:
            client.call("POST", variants.collection(SPOKE), submitted_object(value))

    # For a second after the CA was injected, the API server also converts writes with its cached CRD without
    # the CA. That fails unnoticed, but counts.
    earlier_calls, _, earlier_failures = conversions(control_plane.kubectl("get", "--raw=/metrics").stdout)

    with (
        Caller(control_plane, read) as reader,
        Caller(control_plane, write) as writer,
        Caller(control_plane, discover) as discoverer,
    ):
        callers = {"webhooks": (reader, writer), "apiserver": (discoverer, discoverer)}
        for number in rounds(len(SERVING) * ROLLS):
            name = SERVING[number % len(SERVING)]
            one, another = callers[name]
            replica = behind[name].running[number // len(SERVING) % 2]
            replica.stop_beside(partial(behind[name].without, replica))
            one.wait_for(CALLS_IN_BETWEEN)
            replica.start()
            behind[name].restore()
            another.wait_for(CALLS_IN_BETWEEN)

    calls, _, failures = conversions(control_plane.kubectl("get", "--raw=/metrics").stdout)
    tell(
        f"{len(SERVING) * ROLLS} rolls: {reader.calls} reads, {writer.calls} writes, {discoverer.calls} calls"
        f" of the metrics API, {failures - earlier_failures} failed conversions"
    )
    assert (reader.failure, writer.failure, discoverer.failure) == (None, None, None)
    assert failures == earlier_failures, complaints(control_plane)
    assert calls - earlier_calls > reader.calls + writer.calls
    name = STORED[0]["metadata"]["name"]
    stored = json.loads(control_plane.kubectl("get", f"--raw={variants.collection(HUB)}/{name}").stdout)
    assert stored["spec"]["variantCost"] == f"{writer.calls}.50"
