"""Models in a cluster: their objects are created, restored, changed without downtime, and deleted."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from support.command_line import stowplan
from support.manifests import Manifest
from support.model_engines import ModelEngines
from support.models import GPU, POLICY, backend, loading_backend, model, worker
from support.models_process import models_process
from support.polling import wait_for
from support.watching import Place, conditions_of

from hack.controlplane.foreign import Definition
from hack.controlplane.nodes import KwokNode, create_nodes
from hack.controlplane.process import Process

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

NODE = "models-1"
PATIENCE_SECONDS = 60.0
KINDS = ("deployment", "service", "modelserver", "modelroute", "aspb", "hpa")
"""Most kinds of objects that a Model expands to."""

TOO_MANY = worker(resources={"limits": {GPU: 64}})
"""A worker with more accelerators than any node has: its pods stay Pending."""


@pytest.fixture(scope="module")
def process(control_plane: ControlPlane, installation: Installation) -> Iterator[Process]:
    """Run the controller of Models with the permissions in its manifests."""
    control_plane.define(Definition.LEADER_WORKER_SETS, Definition.INFERENCE_POOLS)
    create_nodes(control_plane, [KwokNode(name=NODE, accelerator="NVIDIA-L4", accelerator_count=16)])
    with models_process(control_plane) as started:
        yield started
    control_plane.kubectl("delete", "node", NODE)


ROUTE = {
    "apiVersion": "networking.volcano.sh/v1alpha1",
    "kind": "ModelRoute",
    "metadata": {"name": "canary"},
    "spec": {
        "modelName": "chat",
        "rules": [
            {
                "targetModels": [
                    {"modelServerName": "qwen-l4", "weight": 80},
                    {"modelServerName": "next", "weight": 20},
                ]
            }
        ],
    },
}


def objective(name: str, pool_name: str) -> Manifest:
    """Return an InferenceObjective."""
    return {
        "apiVersion": "inference.networking.x-k8s.io/v1alpha2",
        "kind": "InferenceObjective",
        "metadata": {"name": name},
        "spec": {"priority": 10, "poolRef": {"name": pool_name}},
    }


def pool(name: str, labels: Manifest) -> Manifest:
    """Return an InferencePool."""
    return {
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "targetPorts": [{"number": 8000}],
            "endpointPickerRef": {"name": f"{name}-epp", "port": {"number": 9002}},
        },
    }


class Cluster(Place):
    """A namespace in which the controller reconciles Models."""

    def all_of(self, kinds: Sequence[str]) -> list[str]:
        """Return all objects of some kinds, each with its kind."""
        return [f"{kind}/{name}" for kind in kinds for name in self.names(kind)]

    def reason(self, name: str, condition: str) -> tuple[str, str, str]:
        """Return status, reason and message of a condition of a Model, or of `KIND/NAME`."""
        found = conditions_of(self.get(name if "/" in name else f"model/{name}")).get(condition, {})
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    def wait_for_reason(self, name: str, condition: str, reason: str) -> str:
        """Wait until a condition has a reason; return its message."""

        def is_so(item: Manifest) -> bool:
            return conditions_of(item).get(condition, {}).get("reason") == reason

        what = name if "/" in name else f"model/{name}"
        found = self.watched(what, is_so)
        return str(conditions_of(found)[condition]["message"])


@pytest.fixture
def cluster(control_plane: ControlPlane, namespace: str, process: Process) -> Cluster:
    """Return a namespace in which the controller reconciles Models."""
    process.check()
    return Cluster(control_plane, namespace)


def test_a_model_becomes_active_and_keeps_its_scaled_replicas(cluster: Cluster) -> None:
    """An edit of the Model keeps replicas that an autoscaler set; a deleted object is created again."""
    value = model(backend(maxReplicas=4, autoscalingPolicy=POLICY))
    cluster.apply(value)
    cluster.wait("model/qwen", "condition=Active")
    cluster.wait("model/qwen", "jsonpath={.status.backendStatuses[0].replicas}=2")
    status = cluster.get("model/qwen")["status"]
    assert status["backendStatuses"] == [{"name": "l4", "replicas": 2}]
    cluster.wait_for_reason("qwen", "Failed", "NothingFailed")
    assert cluster.reason("qwen", "Initialized")[0] == "True"

    def are_scaled() -> bool:
        """Scale until the binding decides the same: before, its autoscaler may apply an older decision."""
        cluster.kubectl("scale", "deployment/qwen-l4", "--replicas=3")
        status: Manifest = cluster.get("aspb/qwen-l4").get("status", {})
        return status.get("desiredReplicas") == 3

    wait_for(are_scaled, "a decision of three replicas")
    edited = model(backend(maxReplicas=4, autoscalingPolicy=POLICY, workers=[worker(image="engine:2")]))
    cluster.apply(edited)
    cluster.wait("deployment/qwen-l4", "jsonpath={.spec.template.spec.containers[0].image}=engine:2")
    assert cluster.get("deployment/qwen-l4")["spec"]["replicas"] == 3

    cluster.kubectl("delete", "service/qwen-l4")
    cluster.watched("service/qwen-l4")


def test_manual_changes_of_decided_fields_are_reverted(cluster: Cluster) -> None:
    """Fields that the Model does not decide keep their manual values."""
    cluster.apply(model())
    cluster.wait("model/qwen", "condition=Active")

    cluster.kubectl("set", "image", "deployment/qwen-l4", "engine=other:1")
    cluster.kubectl("annotate", "deployment/qwen-l4", "team=chat")
    cluster.wait(
        "deployment/qwen-l4",
        "jsonpath={.spec.template.spec.containers[0].image}=vllm/vllm-openai:v0.10.1",
    )
    assert cluster.get("deployment/qwen-l4")["metadata"]["annotations"]["team"] == "chat"
    cluster.kubectl("set", "selector", "service/qwen-l4", "app=other")
    cluster.wait("service/qwen-l4", "jsonpath={.spec.selector.stowplan\\.dev/backend}=l4")
    assert "app" not in cluster.get("service/qwen-l4")["spec"]["selector"]


def test_all_objects_of_a_deleted_model_are_deleted(cluster: Cluster) -> None:
    """The garbage collector deletes them by their owner references."""
    cluster.apply(model(backend(maxReplicas=4, autoscalingPolicy=POLICY)))
    cluster.wait("model/qwen", "condition=Active")

    cluster.kubectl("delete", "model/qwen")
    for kind in KINDS:
        for name in cluster.names(kind):
            cluster.wait_until_deleted(f"{kind}/{name}")


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_a_model_that_is_deleted_during_its_creation_leaves_no_objects(
    cluster: Cluster, cascade: str
) -> None:
    """Objects created in the meantime are deleted as well; another Model of the same name can start."""
    value = model(*(backend(name, maxReplicas=4, autoscalingPolicy=POLICY) for name in "abcd"))
    cluster.apply(value)
    cluster.watched("deployment/qwen-a")
    cluster.kubectl("delete", "model/qwen", f"--cascade={cascade}")

    wait_for(lambda: not cluster.all_of(KINDS), lambda: f"the end of {cluster.all_of(KINDS)}")
    cluster.apply(model())
    cluster.wait("model/qwen", "condition=Active")


def test_a_missing_volume_is_reported_with_the_schedulers_message(cluster: Cluster) -> None:
    """The condition `Failed` has the reason `PodsFail`."""
    cluster.apply(model(backend(cacheURI="pvc://none")))

    said = cluster.wait_for_reason("qwen", "Failed", "PodsFail")
    assert 'persistentvolumeclaim "none" not found' in said


def test_a_renamed_backend_is_replaced_without_downtime(cluster: Cluster) -> None:
    """The old backend keeps its route until the new one is ready."""
    cluster.apply(model(backend("old")))
    cluster.wait("model/qwen", "condition=Active")

    cluster.apply(model(backend("new", workers=[TOO_MANY])))
    said = cluster.wait_for_reason("qwen", "Updating", "ChangeWaits")
    assert "qwen-new to be ready before it gets requests" in said
    assert set(cluster.names("deployment")) == {"qwen-new", "qwen-old"}
    assert "qwen-old" in json.dumps(cluster.get("modelroute/qwen")["spec"])
    assert "Insufficient nvidia.com/gpu" in cluster.wait_for_reason("qwen", "Failed", "PodsFail")

    cluster.apply(model(backend("new")))
    cluster.wait_until_deleted("deployment/qwen-old")
    assert "qwen-old" not in json.dumps(cluster.get("modelroute/qwen")["spec"])
    cluster.wait("model/qwen", "condition=Active")
    assert cluster.names("modelserver") == ["qwen-new"]


def test_an_object_that_does_not_belong_to_the_model_is_not_taken_over(cluster: Cluster) -> None:
    """It is not changed, and the condition says what to do."""
    cluster.kubectl("create", "service", "clusterip", "qwen-l4", "--tcp=80:80")
    before = cluster.get("service/qwen-l4")["metadata"]["resourceVersion"]
    cluster.apply(model())

    said = cluster.wait_for_reason("qwen", "Failed", "ObjectExists")
    assert said == (
        "Service qwen-l4 does not belong to this Model and is not changed: delete it, or rename the backend"
    )
    assert cluster.get("service/qwen-l4")["metadata"]["resourceVersion"] == before

    cluster.kubectl("delete", "service/qwen-l4")
    cluster.wait_for_reason("qwen", "Failed", "NothingFailed")


def test_of_two_models_with_one_name_only_the_older_gets_a_route(cluster: Cluster) -> None:
    """The younger one gets a condition, and the route once the older one is deleted."""
    cluster.apply(model(name="first") | {"spec": {**model()["spec"], "name": "chat"}})
    cluster.wait("model/first", "condition=Active")
    cluster.apply(model(name="second") | {"spec": {**model()["spec"], "name": "chat"}})

    said = cluster.wait_for_reason("second", "Failed", "NameTaken")
    assert said == (
        "requests for 'chat' go to the older Model first: this one has no route; give it another spec.name"
    )
    assert cluster.names("modelroute") == ["first"]

    cluster.kubectl("delete", "model/first")
    cluster.watched("modelroute/second")


def test_conditions_of_servers_routes_and_objectives_follow_their_pods(cluster: Cluster) -> None:
    """This holds for objects of a Model and for those of users, while their backends appear and disappear."""
    cluster.apply(model(), ROUTE, objective("urgent", "llama"), objective("lost", "gone"))
    cluster.wait("model/qwen", "condition=Active")
    cluster.wait("modelserver/qwen-l4", "condition=Ready")
    cluster.wait("modelroute/qwen", "condition=Ready")
    assert cluster.get("modelroute/qwen")["status"]["targets"] == [
        {"modelServerName": "qwen-l4", "readyEndpoints": 2}
    ]
    said = cluster.wait_for_reason("modelroute/canary", "ResolvedRefs", "BackendNotFound")
    assert said.startswith("spec.rules[0].targetModels[1].modelServerName: ModelServer 'next' does not exist")
    said = cluster.wait_for_reason("modelroute/canary", "Ready", "TargetsNotReady")
    assert said == "spec.rules[0]: 20 % of requests find no endpoint: next: the ModelServer does not exist"
    cluster.wait_for_reason("infobj/lost", "ResolvedRefs", "PoolNotFound")

    labels = cluster.get("modelserver/qwen-l4")["spec"]["workloadSelector"]["matchLabels"]
    cluster.apply(pool("llama", labels))
    cluster.wait("infobj/urgent", "condition=Ready")
    assert "2 pods; they serve 'qwen'" in cluster.reason("infobj/urgent", "ResolvedRefs")[2]
    types = [item["type"] for item in cluster.get("infobj/urgent")["status"]["conditions"]]
    assert sorted(types) == ["Accepted", "Ready", "ResolvedRefs"]

    cluster.kubectl("delete", "model/qwen")
    cluster.wait_for_reason("modelroute/canary", "Ready", "NoEndpoints")
    cluster.wait_for_reason("infobj/urgent", "Ready", "NoPods")
    shown = cluster.kubectl("get", "modelroute,infobj", "--output=wide")
    assert "NoEndpoints" in shown


async def test_adapters_change_without_a_restart(cluster: Cluster, tmp_path: Path) -> None:
    """An adapter is routed once every engine has it; the condition names one that cannot be downloaded."""

    def routed() -> set[str]:
        return set(cluster.get("modelroute/qwen")["spec"].get("loraAdapters", []))

    cluster.apply(model(loading_backend("law")))
    async with ModelEngines(cluster.get, tmp_path / "pods", model="qwen") as engines:
        await engines.until(lambda: engines.have("law"))
        await engines.until(lambda: cluster.reason("qwen", "Failed")[1] == "NothingFailed")
        pods = cluster.names("pod")

        cluster.apply(model(loading_backend("law", "tax")))
        await engines.until(lambda: routed() == {"law", "tax"})
        assert engines.have("law", "tax")
        assert await engines.complete("tax") == [200, 200]

        cluster.apply(model(loading_backend("tax", "missing")))
        await engines.until(lambda: engines.have("tax"))
        assert routed() == {"tax"}
        await engines.until(lambda: cluster.reason("qwen", "Failed")[1] == "AdaptersFail")
        said = cluster.reason("qwen", "Failed")[2]
        assert said.startswith("adapter missing is not loaded in pod qwen-l4-")
        assert "404 Client Error: Repository not found" in said
        assert cluster.reason("qwen", "Active")[0] == "True"
        assert cluster.names("pod") == pods


@pytest.mark.parametrize("made", [1, 4])
def test_a_killed_controller_completes_the_objects_after_its_restart(
    cluster: Cluster, process: Process, tmp_path: Path, made: int
) -> None:
    """It finds the objects that exist, and creates the missing ones."""
    value = model(backend("a", maxReplicas=4, autoscalingPolicy=POLICY), backend("b"))
    cluster.apply(value)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(cluster.all_of(KINDS[:3])) < made:  # without a pause, so that it is killed halfway
        assert time.monotonic() < deadline
    os.kill(process.pid, signal.SIGKILL)
    process.stop()
    process.start()

    cluster.wait("model/qwen", "condition=Active")
    found = {(kind, name) for kind in KINDS for name in cluster.names(kind)}
    path = tmp_path / "model.json"
    path.write_text(json.dumps(value))
    objects = list(yaml.safe_load_all(stowplan("expand", "-f", str(path)).out))
    short = {"autoscalingpolicybinding": "aspb", "horizontalpodautoscaler": "hpa"}
    kinds = {item["kind"]: short.get(item["kind"].lower(), item["kind"].lower()) for item in objects}
    names = {(kinds[item["kind"]], item["metadata"]["name"]) for item in objects}
    assert found == {(kind, name) for kind, name in names if kind in KINDS}
