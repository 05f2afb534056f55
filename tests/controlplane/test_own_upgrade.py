"""Upgrade from an earlier release whose processes run, under load."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml
from support.forwarder import Forwarder
from support.manifests import PERF_PARMS, deployment, legacy_variant, variant
from support.replicas import Caller

from hack.controlplane import ControlPlane
from hack.controlplane.client import Client, ConflictError, RefusedError
from hack.installation import Installation
from hack.installation.manifests import ROOT, documents

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

EARLIER: Final = "10c90df9aef2619d6cc95356b5adea0a5c19ec84"
"""The last commit that installed all kinds together, with settings in ConfigMaps of fixed names."""

PORT: Final = 9443
SERVERS: Final = {
    "stowplan-webhooks": "webhooks",
    "stowplan-conversion": "webhooks",
    "stowplan-apiserver": "apiserver",
}
SETTINGS: Final = {name: {"serving": {"drainSeconds": 2}} for name in SERVERS.values()}
VARIANTS: Final = "/apis/llmd.ai/{version}/namespaces/default/variantautoscalings"
METRICS: Final = "/apis/external.metrics.k8s.io/v1beta1"
PRICES: Final = ("configmap", "accelerator-unit-costs", "--namespace=stowplan-system")
POLICY: Final = ROOT / "manifests/samples/autoscalingpolicy"
WRONG_ROUTE: Final = ROOT / "manifests/samples/modelserver/refused/unknown-choices.yaml"
ROUNDS: Final = 20


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Extract the earlier release from the history of the project."""
    tree = tmp_path_factory.mktemp("earlier")
    folders = ("apiserver", "webhooks", "controller", "manifests")
    archive = subprocess.run(
        ["git", "-C", ROOT, "archive", EARLIER, *folders], capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f"the history of this project is not here: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(tree, filter="data")
    return tree


class Cluster:
    """A control plane whose Services lead to one of the two releases."""

    def __init__(self, plane: ControlPlane, stack: ExitStack) -> None:
        self.plane = plane
        self._stack = stack
        self._addresses = {name: plane.allocate_address() for name in set(SERVERS.values())}
        self._forwarders = {
            name: stack.enter_context(Forwarder((address, PORT))) for name, address in self._addresses.items()
        }
        self.rendered: list[dict[str, Any]] = []

    def install(self, source: Path, manifests: str, *, is_first: bool) -> Installation:
        """Apply a release and start its processes until ready; the first one gets requests immediately."""

        def apply(_: object) -> None:
            """Apply the directories unchanged: a `namespace:` would move objects of the earlier release."""
            self.rendered = [
                self._service(item)
                for folder in (manifests, "external-metrics")
                for item in yaml.load_all(
                    self.plane.kubectl("kustomize", str(source / "manifests" / folder)).stdout,
                    Loader=yaml.CSafeLoader,
                )
            ]
            claims = [item for item in self.rendered if item["kind"] == "APIService"]
            others = [item for item in self.rendered if item["kind"] != "APIService"]
            self._apply(others)
            self.plane.wait_until_established(selector="app.kubernetes.io/part-of=stowplan")
            self._apply(claims, "--field-manager=stowplan")
            if is_first:
                self.rotate(installation)

        installation = Installation(
            self.plane,
            manifests=manifests,
            source=source,
            apply=apply,
            settings=SETTINGS,
            certificates="stowplan-{}-tls" if is_first else "stowplan-{}-certificate",
        )
        self._stack.callback(installation.stop)
        installation.start()
        return installation

    def rotate(self, installation: Installation) -> None:
        """Send new connections to the processes of an installation."""
        for name, forwarder in self._forwarders.items():
            forwarder.rotate([(installation.address(name), PORT)])

    def _apply(self, items: list[dict[str, Any]], *options: str) -> None:
        self.plane.kubectl("apply", "--server-side", *options, "--filename=-", input=documents(items))

    def _service(self, item: dict[str, Any]) -> dict[str, Any]:
        if item["kind"] != "Service":
            return item
        address = self._addresses[SERVERS[item["metadata"]["name"]]]
        external = {"type": "ExternalName", "externalName": address, "ports": item["spec"]["ports"]}
        return item | {"spec": external}

    def stale(self) -> set[str]:
        """Return the objects with the release's label that the last applied release does not contain."""
        applied = {f"{item['kind']} {item['metadata']['name']}" for item in self.rendered}
        kinds = self.plane.kubectl("api-resources", "--verbs=list,delete", "--output=name").stdout.split()
        asked = [kind for kind in kinds if not kind.startswith(("endpoint", "events"))]
        selector = "--selector=app.kubernetes.io/part-of=stowplan"
        found = self.plane.kubectl(
            "get", ",".join(asked), "--all-namespaces", selector, "--output=json"
        ).stdout
        return {
            name
            for item in json.loads(found)["items"]
            if (name := f"{item['kind']} {item['metadata']['name']}") not in applied
            and item["kind"] != "Secret"  # certificates, which the controller issues
        }


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Yield an API server without other components."""
    with (
        ControlPlane(controller_manager=False, scheduler=False, kwok=False) as plane,
        ExitStack() as stack,
    ):
        yield Cluster(plane, stack)


def read(client: Client, number: int) -> None:
    """Read an object in alternating versions, one of which is converted."""
    version = ("v1alpha1", "v1alpha2")[number % 2]
    path = f"{VARIANTS.format(version=version)}/legacy"
    assert client.value("GET", path)["apiVersion"] == f"llmd.ai/{version}"


def write(client: Client, number: int) -> None:
    """Change an object in the version that is not stored, through conversion and admission."""
    path = f"{VARIANTS.format(version='v1alpha1')}/current"
    cost = f"{number + 1}.50"
    while True:
        value = client.value("GET", path)
        value["spec"]["variantCost"] = cost
        with suppress(ConflictError):  # the controller wrote the status in between
            assert client.value("PUT", path, value)["spec"]["variantCost"] == cost
            return


def be_refused(client: Client, _: int) -> None:
    """Write an object that only the webhook can reject, and check the error."""
    profile = {"perfParms": PERF_PARMS | {"decodeParms": {"alpha": "many"}}, "maxBatchSize": 4}
    wrong = legacy_variant("wrong", variantProfile=profile)
    with pytest.raises(RefusedError, match=r"decodeParms\[alpha\]: Invalid value"):
        client.call("POST", VARIANTS.format(version="v1alpha1"), wrong)


def measure(client: Client, _: int) -> None:
    """Read the resource list of the metrics API."""
    assert client.value("GET", METRICS)["resources"]


def test_an_upgrade_under_load_fails_no_request_and_leaves_no_old_objects(
    cluster: Cluster, earlier: Path
) -> None:
    """The steps are those of docs/upgrading.md: apply, wait, and delete the objects that it names."""
    plane = cluster.plane
    old = cluster.install(earlier, "base", is_first=True)
    policy = next(POLICY.glob("*.yaml")).read_text(encoding="utf-8")
    plane.kubectl("apply", "--filename=-", input=policy)
    plane.kubectl("patch", *PRICES, "--patch", '{"data":{"L40S":"1.5"}}', "--field-manager=operator")
    plane.kubectl(
        "apply",
        "--filename=-",
        input=documents(
            [
                deployment("current", product="L40S", accelerators=1),
                variant("current", version="v1alpha1"),
                legacy_variant("legacy"),
            ]
        ),
    )
    before = _said(plane)

    with ExitStack() as stack:
        callers = [stack.enter_context(Caller(plane, call)) for call in (read, write, be_refused, measure)]
        Caller.wait_for_all(callers, ROUNDS)
        # Its pod ends once the pod of the new release is ready, which then leads and issues certificates.
        old.processes["controller"].stop()
        new = cluster.install(ROOT, "overlays/every-kind", is_first=False)
        cluster.rotate(new)
        old.stop()
        Caller.wait_for_all(callers, ROUNDS)
        trust = "--for=jsonpath={.webhooks[0].clientConfig.caBundle}"
        plane.kubectl("wait", trust, "validatingwebhookconfiguration/stowplan-kthena", "--timeout=60s")
        Caller.wait_for_all(callers, ROUNDS)
    refused = plane.kubectl("apply", f"--filename={WRONG_ROUTE}", check=False).stderr

    assert [caller.failure for caller in callers] == [None] * len(callers)
    assert _said(plane) == before
    assert 'spec.inferenceEngine: Unsupported value: "vllm"' in refused
    assert json.loads(plane.kubectl("get", *PRICES, "--output=json").stdout)["data"] == {"L40S": "1.5"}
    for command in _documented():
        plane.kubectl(*command)
    assert cluster.stale() == set()


def _said(plane: ControlPlane) -> dict[str, Any]:
    """Return the specs of all objects, without the cost that is written during the upgrade."""
    found = json.loads(
        plane.kubectl("get", "va,autoscalingpolicies", "--all-namespaces", "--output=json").stdout
    )
    return {
        f"{item['kind']} {item['metadata']['name']}": item["spec"] | {"variantCost": "any"}
        for item in found["items"]
    }


def _documented() -> list[list[str]]:
    """Return the documented commands that delete objects of the earlier release."""
    text = (ROOT / "docs/upgrading.md").read_text(encoding="utf-8")
    section = text.partition("## From an earlier release of Stowplan")[2].partition("\n## ")[0]
    commands = [line.split()[1:] for line in section.splitlines() if line.startswith("kubectl delete ")]
    assert commands
    return commands
