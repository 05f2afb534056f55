"""Annotated autoscalers: a real HorizontalPodAutoscaler follows, and the next leader continues."""

from __future__ import annotations

import copy
import json
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest
from support.command_line import stowplan
from support.manifests import Manifest, autoscaler, deployment, listed, variant
from support.policies import refused_with
from support.polling import wait_for
from support.stub_engine import StubEngine
from support.watching import Place

from hack.controlplane import ControlPlane
from hack.controlplane.nodes import KwokNode, create_nodes
from hack.installation import Installation

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = pytest.mark.controlplane

PRODUCT = "NVIDIA-L40S"
API = "/apis/external.metrics.k8s.io/v1beta1"
SCALED_OBJECTS: Manifest = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "scaledobjects.keda.sh"},
    "spec": {
        "group": "keda.sh",
        "scope": "Namespaced",
        "names": {"kind": "ScaledObject", "plural": "scaledobjects"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}
"""The kind of KEDA, which does not run here."""


class Stage(Place):
    """A namespace with annotated autoscalers, and what is published about them."""

    def start(self, name: str, **terms: str) -> None:
        """Apply a Deployment with an annotated HPA, and wait for its first replica."""
        self.apply(deployment(name, product=PRODUCT, accelerators=1), annotated_hpa(name, **terms))
        self.wait(f"deployment/{name}", "jsonpath={.status.readyReplicas}=1")

    def records(self) -> dict[str, Manifest]:
        """Return the published statuses by the name of the autoscaler."""
        (found, *_) = [*self._config_maps(), {}]
        records = map(json.loads, (found.get("data") or {}).values())
        return {record["name"]: record["status"] for record in records}

    def _config_maps(self) -> list[Manifest]:
        items: list[Manifest] = self.get("configmap")["items"]
        return [item for item in items if item["metadata"]["name"] == "stowplan-decisions"]

    def until(self, name: str, **decision: object) -> Manifest:
        """Return the published status of an autoscaler once its decision has these members."""

        def published() -> Manifest | None:
            status = self.records().get(name, {})
            found = status.get("decision", {})
            return status if found and decision.items() <= found.items() else None

        status = wait_for(published, lambda: f"{name}: {decision} in {self.records()}")
        assert status is not None
        return status

    def metric(self, name: str) -> Manifest:
        """Return the response of the metrics API for a variant; empty for an error."""
        selector = f"labelSelector=variant_name%3D{name}"
        path = f"{API}/namespaces/{self.namespace}/wva_desired_replicas?{selector}"
        done = self.control_plane.kubectl("get", "--raw", path, check=False)
        (item, *_) = json.loads(done.stdout)["items"] if done.stdout else [{}]
        found: Manifest = item
        return found

    def wait_for_event(self, what: str, *texts: str) -> None:
        """Wait until the events of an object contain some texts."""
        wait_for(
            lambda: all(text in self.events(what) for text in texts),
            lambda: f"{texts} in {self.events(what)}",
        )

    def events(self, what: str) -> str:
        """Return the events of an object."""
        return self.kubectl("events", f"--for={what}")

    @contextmanager
    def loaded(self, requests_per_second: float) -> Iterator[None]:
        """Run an engine with a load on the address of every pod."""
        with ExitStack() as stack:
            for pod in self.living_pods():
                if address := pod["status"].get("podIP"):
                    model = pod["metadata"]["labels"]["app"]
                    engine = StubEngine(
                        address, model=model, usage=0.5, requests_per_second=requests_per_second
                    )
                    stack.enter_context(engine)
            yield


def annotated_hpa(name: str, **terms: str) -> Manifest:
    """Return an annotated HPA whose model has its name."""
    value: Manifest = autoscaler(name)
    value["metadata"]["annotations"] = {
        "llm-d.ai/managed": "true",
        "llm-d.ai/model-id": name,
    } | {f"llm-d.ai/{term.replace('_', '-')}": text for term, text in terms.items()}
    value["metadata"]["labels"] = {
        "inference.optimization/acceleratorName": PRODUCT,
        "wva.llmd.ai/controller-instance": "blue",
    }
    return value


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Yield a control plane of its own, with a node."""
    with ControlPlane() as started:
        started.apply(SCALED_OBJECTS)
        started.wait_until_established("scaledobjects.keda.sh")
        create_nodes(started, [KwokNode(name="annotated", accelerator=PRODUCT, accelerator_count=8)])
        yield started


@pytest.fixture(scope="module")
def installation(plane: ControlPlane) -> Iterator[Installation]:
    """Yield Stowplan with the component."""
    settings: dict[str, Manifest] = {
        "controller": {
            "planning": {"intervalSeconds": 1},
            "engines": {"podNetworks": [plane.pod_cidr]},
            "annotated": True,
        },
        "apiserver": {"annotated": True, "staleAfterSeconds": 10},
    }
    with Installation(plane, settings=settings, components=("annotated",)) as started:
        yield started


@pytest.fixture
def stage(plane: ControlPlane, installation: Installation, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """Yield a fresh namespace."""
    name = request.node.name.replace("_", "-")[:60].rstrip("-")
    plane.kubectl("create", "namespace", name)
    yield Stage(plane, name)
    plane.kubectl("delete", "namespace", name, "--wait=false")
    plane.check()


def test_an_annotated_autoscaler_follows_and_the_next_leader_continues(
    stage: Stage, installation: Installation
) -> None:
    """A load for more replicas than there are accelerators; the events are about the HPA."""
    stage.start("chat")

    with stage.loaded(60.0):
        status = stage.until("chat", reason="Shortage")
        stage.wait("deployment/chat", "jsonpath={.spec.replicas}=8")
        stage.wait_for_event("hpa/chat", "Shortage")
        assert status["decision"]["boundBy"] == "Accelerators"
        item = stage.metric("chat")
        assert item["value"] == "8"
        assert item["metricLabels"] == {
            "variant_name": "chat",
            "namespace": stage.namespace,
            "exported_namespace": stage.namespace,
            "accelerator_type": "L40S",
            "model_id": "chat",
            "controller_instance": "blue",
        }
        assert "performance" in stage.records()["chat"]["decision"]
        said = json.loads(stage.get("hpa/chat")["metadata"]["annotations"]["stowplan.dev/decision"])
        assert (said["replicas"], said["reason"], said["boundBy"]) == (8, "Shortage", "Accelerators")
        asked = ("-n", stage.namespace, "--kubeconfig", str(stage.control_plane.kubeconfig))
        explained = stowplan("explain", "hpa/chat", *asked)
        assert explained.code == 0
        assert "bound by    Accelerators" in explained.out

    installation.processes["controller"].stop(patience_seconds=20.0)
    before = stage.records()["chat"]
    installation.start_component("controller")
    stage.until("chat", signal="Unknown")
    after = stage.records()["chat"]
    assert after["desiredOptimizedAlloc"]["numReplicas"] == 8
    assert after["decision"]["performance"] == before["decision"]["performance"]
    assert stage.get("deployment/chat")["spec"]["replicas"] == 8


def test_a_variant_autoscaling_on_the_same_target_wins_and_the_other_is_told(stage: Stage) -> None:
    """When it is deleted, the autoscaler is planned again; its record goes with it."""
    stage.start("chat")
    stage.until("chat", reason="Holding")
    chosen = variant("chosen", modelID="chat")
    chosen["spec"]["scaleTargetRef"]["name"] = "chat"
    stage.apply(chosen)

    status = stage.until("chat", reason="Unplanned")
    assert "VariantAutoscaling 'chosen' already decides on Deployment 'chat'" in status["decision"]["message"]
    stage.wait_for_event("hpa/chat", "Unplanned", "remove the annotation llm-d.ai/managed here")
    stage.wait("va/chosen", "jsonpath={.status.desiredOptimizedAlloc.numReplicas}=1")
    wait_for(lambda: not stage.metric("chat"), "no number of the loser")

    stage.kubectl("delete", "va", "chosen")
    stage.until("chat", reason="Holding")
    wait_for(lambda: stage.metric("chat"), "a number")
    stage.kubectl("delete", "hpa", "chat")
    stage.wait_until_deleted("configmap/stowplan-decisions")
    wait_for(lambda: not stage.metric("chat"), "no number of a deleted object")


def test_what_is_wrong_is_one_event_each_and_the_rest_is_planned(stage: Stage) -> None:
    """A negative cost, no model, a target that another one has, and a ScaledObject without KEDA."""
    stage.apply(*(deployment(name, product=PRODUCT, accelerators=1) for name in ("cheap", "scaled")))
    twin = annotated_hpa("twin")
    twin["spec"]["scaleTargetRef"]["name"] = "cheap"
    scaled = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "scaled", "annotations": annotated_hpa("scaled")["metadata"]["annotations"]},
        "spec": {"scaleTargetRef": {"name": "scaled"}, "triggers": [{"type": "external"}]},
    }
    stage.apply(annotated_hpa("cheap", variant_cost="-5"))
    stage.until("cheap")
    stage.apply(twin, annotated_hpa("nameless", model_id=""), scaled)

    stage.wait_for_event("hpa/cheap", "AnnotationNotUnderstood", "llm-d.ai/variant-cost")
    stage.wait_for_event("hpa/twin", "Unplanned", "already decides on Deployment 'cheap'")
    stage.wait_for_event("hpa/nameless", "Unplanned", "llm-d.ai/model-id")
    stage.wait_for_event("scaledobjects.keda.sh/scaled", "AutoscalerNotActive", "whether KEDA is installed")
    assert {name: "desiredOptimizedAlloc" in status for name, status in stage.records().items()} == {
        "cheap": True,
        "twin": False,
        "nameless": False,
        "scaled": True,
    }


def test_a_model_that_no_engine_serves_is_named_in_an_event(stage: Stage) -> None:
    """Its replicas stay, and both names are told."""
    stage.start("chat", model_id="meta/llama")
    with stage.loaded(5.0):
        stage.wait_for_event("hpa/chat", "ModelNotServed", "serves model 'chat' and not 'meta/llama'")
    assert stage.get("deployment/chat")["spec"]["replicas"] == 1


def test_a_variant_autoscaling_migrates_under_load(stage: Stage, tmp_path: Path) -> None:
    """A user of llm-d 0.9 exports, migrates and applies, and then deletes the VariantAutoscaling."""
    chosen = variant("chat", modelID="chat", variantCost="25.0", minReplicas=1, maxReplicas=6)
    hpa = autoscaler("chat")
    stage.apply(deployment("chat", product=PRODUCT, accelerators=1), hpa, chosen)
    stage.wait("deployment/chat", "jsonpath={.status.readyReplicas}=1")
    with stage.loaded(60.0):
        stage.wait("va/chat", "jsonpath={.status.desiredOptimizedAlloc.numReplicas}=6")
        stage.wait("deployment/chat", "jsonpath={.spec.replicas}=6")
        exported, migrated = tmp_path / "exported.yaml", tmp_path / "migrated.yaml"
        exported.write_text(stage.kubectl("get", "va,hpa", "--output=yaml"))
        ended = stowplan("migrate", "-f", str(exported), "--to", "released", "--strict")
        assert ended.code == 0
        migrated.write_text(ended.out)
        stage.kubectl("apply", f"--filename={migrated}")
        stage.until("chat", reason="Unplanned")
        before = stage.get("deployment/chat")["metadata"]["generation"]
        stage.kubectl("delete", "va", "chat")
        status = stage.until("chat", boundBy="MaxReplicas")
        wait_for(lambda: stage.metric("chat").get("value") == "6", lambda: str(stage.metric("chat")))

    spec, annotations = stage.get("hpa/chat")["spec"], stage.get("hpa/chat")["metadata"]["annotations"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 6)
    assert annotations["llm-d.ai/variant-cost"] == "25.0"
    assert status["desiredOptimizedAlloc"]["numReplicas"] == 6
    assert stage.get("deployment/chat")["metadata"]["generation"] == before
    returned = stowplan("migrate", "-f", str(migrated), "--to", "stowplan")
    assert returned.code == 0
    back = tmp_path / "back.yaml"
    back.write_text(returned.out)
    assert "variantautoscaling.llmd.ai/chat" in stage.kubectl(
        "apply", "--dry-run=server", f"--filename={back}"
    )


CONTROLLER = "--as=system:serviceaccount:stowplan-system:stowplan-controller"
REFUSED: dict[str, tuple[str, Manifest, str]] = {
    "another maximum": ("managed", {"spec": {"maxReplicas": 99}}, "anything else"),
    "a label": ("managed", {"metadata": {"labels": {"a": "b"}}}, "anything else"),
    "another annotation": (
        "managed",
        {"metadata": {"annotations": {"llm-d.ai/model-id": None}}},
        "except stowplan.dev/decision",
    ),
    "one that has not opted in": (
        "other",
        {"metadata": {"annotations": {"stowplan.dev/decision": "{}"}}},
        "with the annotation llm-d.ai/managed",
    ),
}


def test_the_controller_may_change_one_annotation_of_annotated_autoscalers(stage: Stage) -> None:
    """Its permission to patch them allows no other bounds, targets or metrics."""
    stage.apply(annotated_hpa("managed"), autoscaler("other"))
    # kubectl reads before a patch, and the account may only list and watch.
    stage.kubectl("create", "role", "reads", "--verb=get", "--resource=horizontalpodautoscalers")
    account = "--serviceaccount=stowplan-system:stowplan-controller"
    stage.kubectl("create", "rolebinding", "reads", "--role=reads", account)

    def attempt(name: str, change: Manifest) -> subprocess.CompletedProcess[str]:
        patch = ("patch", f"hpa/{name}", "--type=merge", f"--patch={json.dumps(change)}", "--dry-run=server")
        where = f"--namespace={stage.namespace}"
        return stage.control_plane.kubectl(*patch, CONTROLLER, where, check=False)

    for name, change, phrase in REFUSED.values():
        refused_with(partial(attempt, name, change), phrase)
    allowed: Manifest = {"metadata": {"annotations": {"stowplan.dev/decision": "{}"}}}
    assert attempt("managed", allowed).returncode == 0


def test_wrong_annotations_are_warnings_of_kubectl(stage: Stage) -> None:
    """The webhook is sent annotated autoscalers only, and never rejects one."""
    wrong = annotated_hpa("chat", variant_cost="-5")
    wrong["spec"]["metrics"][0]["external"]["target"] = {"type": "Value", "value": "1"}
    ignored = copy.deepcopy(wrong)
    del ignored["metadata"]["annotations"]["llm-d.ai/managed"]

    def told(manifest: Manifest) -> str:
        apply = ("apply", "--dry-run=server", "--filename=-", f"--namespace={stage.namespace}")
        return stage.control_plane.kubectl(*apply, input=listed(manifest)).stderr

    wait_for(lambda: "Warning: metadata.annotations[llm-d.ai/variant-cost]" in told(wrong), "a warning")
    assert "with a target of type Value" in told(wrong)
    assert "Warning" not in told(ignored)
