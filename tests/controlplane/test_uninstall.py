"""`stowplan uninstall` of an installation with all parts, after which the cluster is as before."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.former_metrics import CLAIM, former_adapter
from support.manifests import autoscaler, deployment, variant
from support.models import POLICY, backend, model
from support.models_process import models_process
from support.upgrade_rig import Point, killed, stowplan
from support.whole_cluster import Objects, differing, everything, quiet, settled

from hack.controlplane import ControlPlane
from hack.controlplane.client import RefusedError
from hack.controlplane.nodes import KwokNode, create_nodes
from hack.installation import Installation
from hack.installation.manifests import ROOT, documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane.process import Process

pytestmark = pytest.mark.controlplane

PARTS = ("overlays/every-kind", "evictions", "scaling", "models", "scheduler")
WORK = "--namespace=work"
SYSTEM = "--namespace=stowplan-system"
PRODUCT = "NVIDIA-L4"
GATE = "stowplan.dev/placement"
GATED = {"name": "left-waiting", "namespace": "work"}
MARKED = {"stowplan.dev/pod-deletion-cost": "-1", "controller.kubernetes.io/pod-deletion-cost": "-1"}
RIGHT = ("rolebinding", "stowplan-controller-scaling", "--clusterrole=stowplan-controller-scaling")
STEPS = (
    "stop the active processes",
    "remove our scheduling gates",
    f"return {CLAIM} to former/former-adapter",
    "delete the webhook configurations",
    "serve variantautoscalings.llmd.ai only in v1alpha2",
    "delete the definition inferenceobjectives",
    "remove the annotation with the writer from",
    "delete the rest of the installation",
    "delete the namespace stowplan-system",
)


class Kubelet(threading.Thread):
    """Stops a process when its Deployment is deleted, as a kubelet does."""

    def __init__(self, plane: ControlPlane, processes: dict[str, Process]) -> None:
        super().__init__(name="kubelet", daemon=True)
        self._plane = plane
        self._processes = processes
        self._is_over = threading.Event()

    def run(self) -> None:
        """Poll until stopped, or until no process is left."""
        running = dict(self._processes)
        with self._plane.client() as client:
            while running and not self._is_over.wait(0.2):
                for name in [*running]:
                    try:
                        client.call(
                            "GET", f"/apis/apps/v1/namespaces/stowplan-system/deployments/stowplan-{name}"
                        )
                    except RefusedError:
                        running.pop(name).stop(patience_seconds=20.0)

    def stop(self) -> None:
        """Stop polling."""
        self._is_over.set()
        self.join()


class Stage:
    """A cluster with workloads and another external metrics adapter, on which Stowplan is then installed."""

    def __init__(self, plane: ControlPlane, stack: ExitStack) -> None:
        self.plane = plane
        create_nodes(
            plane, [KwokNode(name=f"node-{i}", accelerator=PRODUCT, accelerator_count=4) for i in range(3)]
        )
        stack.enter_context(former_adapter(plane))
        plane.kubectl("create", "namespace", "work")
        self.apply(deployment("chat", product=PRODUCT, accelerators=1, replicas=2), autoscaler("chat"))
        self.wait("deploy/chat", "jsonpath={.status.readyReplicas}=2")
        self.before = quiet(plane)
        settings = {"planning": {"intervalSeconds": 1, "evictions": {"enabled": True}}}
        installation = Installation(plane, settings={"controller": settings}, apply=self._install)
        stack.enter_context(installation)
        processes = dict(installation.processes)
        processes["models"] = stack.enter_context(models_process(plane))
        kubelet = Kubelet(plane, processes)
        kubelet.start()
        stack.callback(kubelet.stop)

    def _install(self, manifests: list[dict[str, Any]]) -> None:
        """Apply all parts but the APIService; their Deployments have no running pods here."""
        items = [item for item in manifests if item["kind"] != "APIService"]
        self.manifests = items + [
            item
            for part in PARTS
            for item in yaml.load_all(
                self.plane.kubectl("kustomize", str(ROOT / "manifests" / part)).stdout,
                Loader=yaml.CSafeLoader,
            )
            if part != PARTS[0] or item["kind"] in {"Deployment", "PodDisruptionBudget"}
        ]
        self.put_in()

    def put_in(self) -> None:
        """Apply the manifests without force."""
        apply = ("apply", "--server-side", "--field-manager=stowplan", "--filename=-")
        self.plane.kubectl(*apply, input=documents(self.manifests))
        self.plane.wait_until_established(selector="app.kubernetes.io/part-of=stowplan")

    def apply(self, *items: dict[str, Any]) -> None:
        """Apply a user's objects."""
        self.plane.kubectl("apply", WORK, "--filename=-", input=documents(items))

    def wait(self, what: str, condition: str, place: str = WORK) -> None:
        """Wait until an object meets a condition of `kubectl wait`."""
        self.plane.kubectl("wait", what, place, f"--for={condition}", "--timeout=90s")

    def get(self, *what: str) -> dict[str, Any]:
        """Return one object."""
        found: dict[str, Any] = json.loads(self.plane.kubectl("get", *what, "--output=json").stdout)
        return found

    def uninstall(self, *arguments: str) -> tuple[int, str]:
        """Run `stowplan uninstall`; return its exit code and output."""
        ended = asyncio.run(stowplan(self.plane, "uninstall", *arguments))
        return ended.returncode, ended.stdout


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Yield a separate cluster with a complete installation that has decided and expanded a Model."""
    with ControlPlane() as plane, ExitStack() as stack:
        stage = Stage(plane, stack)
        record = "jsonpath={.metadata.annotations.stowplan\\.dev/former-api-service}"
        stage.wait("lease/stowplan-controller", record, SYSTEM)
        folder = str(ROOT / "manifests/external-metrics")
        claim = ("apply", "--server-side", "--force-conflicts", "--field-manager=stowplan")
        plane.kubectl(*claim, "--kustomize", folder)
        plane.kubectl("wait", "--for=jsonpath={.spec.caBundle}", f"apiservice/{CLAIM}", "--timeout=60s")
        account = "--serviceaccount=stowplan-system:stowplan-controller"
        plane.kubectl("create", *RIGHT, account, WORK)
        plane.kubectl("create", "configmap", "stowplan-decisions", WORK, "--from-literal=uid={}")
        stage.apply(variant("chat"), model(backend(maxReplicas=4, autoscalingPolicy=POLICY)))
        stage.wait("va/chat", "jsonpath={.status.desiredOptimizedAlloc.numReplicas}")
        stage.wait("model/qwen", "condition=Active")
        yield stage


def test_a_plan_changes_nothing_and_names_workloads_that_could_not_start(stage: Stage) -> None:
    """A pod template with the scheduling gate is a problem until it is accepted."""
    before = _ours(everything(stage.plane))
    gated = deployment("gated", product=PRODUCT, accelerators=1, replicas=0)
    gated["spec"]["template"]["spec"]["schedulingGates"] = [{"name": GATE}]
    stage.apply(gated)

    code, said = stage.uninstall()
    accepted, document = stage.uninstall("--accept=templates", "--output=json")
    stage.plane.kubectl("delete", "deployment", "gated", WORK)

    assert code == 1
    assert f"Deployment work/gated: the scheduling gate {GATE}" in said
    assert "1 problem to solve first; nothing was changed" in said
    assert accepted == 0
    report = json.loads(document)
    assert report["outcome"] == "planned"
    titles = [step["title"] for step in report["steps"]]
    assert [title for title in STEPS if not any(it.startswith(title) for it in titles)] == []
    kept = [item["message"] for item in report["checks"] if item["check"] == "kept"]
    assert "variantautoscalings.llmd.ai stays, with its objects: 1" in kept
    assert (
        "models.registry.volcano.sh stays, with its objects and everything that they expanded to: 1"
    ) in kept
    assert _ours(everything(stage.plane)) == before


def test_an_uninstallation_can_be_interrupted_at_every_step_and_run_again(stage: Stage) -> None:
    """It is killed at the beginning of each step; users' objects stay, and no pod stays gated."""
    engines = stage.get("deployment", "qwen-l4", WORK)["metadata"]["uid"]
    points = [(title, "begins") for title in STEPS]

    def then(point: Point) -> None:
        if point == points[1]:
            _leave_marks(stage)

    kills, ended = asyncio.run(killed(stage.plane, "uninstall", "--apply", points=points, then=then))
    code_again, again = stage.uninstall("--apply")

    assert kills == points
    assert (ended.returncode, code_again) == (0, 0), ended.stdout + again
    assert "nothing to do" in again
    left = {(key[0].rpartition("/")[2], key[2]) for key in _ours(everything(stage.plane))}
    assert {kind for kind, _ in left} == {"customresourcedefinitions"}
    definition = stage.get("crd", "variantautoscalings.llmd.ai")["spec"]
    assert [version["name"] for version in definition["versions"]] == ["v1alpha2"]
    assert definition["conversion"] == {"strategy": "None"}
    assert stage.get("va", "chat", WORK)["spec"]["modelID"]
    assert stage.get("deployment", "qwen-l4", WORK)["metadata"]["uid"] == engines
    bindings = stage.get("autoscalingpolicybindings", WORK)["items"]
    assert bindings
    assert not [
        item for item in bindings if "stowplan.dev/written-by" in item["metadata"].get("annotations", {})
    ]
    assert stage.get("pod", GATED["name"], WORK)["spec"]["nodeName"]
    stage.plane.kubectl("delete", "pod", GATED["name"], WORK)


def test_kept_crds_can_be_installed_again_and_deleted_with_their_objects(stage: Stage) -> None:
    """The apply needs no force and no running pod; after the deletion the cluster is as before."""
    stage.put_in()
    definition = stage.get("crd", "variantautoscalings.llmd.ai")["spec"]
    assert [version["name"] for version in definition["versions"]] == ["v1alpha1", "v1alpha2"]

    code, said = stage.uninstall("--apply", "--delete-objects")

    assert code == 0, said
    assert "and its objects: 1" in said
    assert "the annotation with the writer" not in said
    planned = re.search(r"delete the rest of the installation: (\d+) \(", said)
    deleted = re.search(r"(\d+) objects deleted", said)
    assert planned
    assert deleted
    assert planned[1] == deleted[1]
    assert differing(stage.before, settled(stage.plane, stage.before)) == {}


def _leave_marks(stage: Stage) -> None:
    """Write what a controller leaves behind if it is killed in the middle of its work."""
    container = {"name": "main", "image": "engine"}
    spec = {"containers": [container], "schedulingGates": [{"name": GATE}]}
    stage.apply({"apiVersion": "v1", "kind": "Pod", "metadata": GATED, "spec": spec})
    stage.plane.kubectl("taint", "node", "node-1", "stowplan.dev/moving:NoSchedule")
    marks = [f"{name}={value}" for name, value in MARKED.items()]
    stage.plane.kubectl("annotate", "pod", WORK, "--selector=app=chat", *marks)


def _ours(objects: Objects) -> Objects:
    return {
        key: item
        for key, item in objects.items()
        if (item["metadata"].get("labels") or {}).get("app.kubernetes.io/part-of") == "stowplan"
        or "stowplan-system" in key
    }
