"""Direct scaling by the controller on a real cluster, with its own permissions and those of the author."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest
import yaml
from support.binding_bench import Bench, bound, follower, policy
from support.command_line import stowplan
from support.manifests import Manifest, deployment
from support.polling import wait_for

from hack.controlplane.nodes import KwokNode, create_nodes
from hack.installation.manifests import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

PRODUCT = "NVIDIA-GH200"
WRITTEN_BY = "stowplan.dev/written-by"
FOLDER = ROOT / "manifests" / "scaling"
CONTROLLER = "--as=system:serviceaccount:stowplan-system:stowplan-controller"
GRANT = (
    "create",
    "rolebinding",
    "stowplan-controller-scaling",
    "--clusterrole=stowplan-controller-scaling",
    "--serviceaccount=stowplan-system:stowplan-controller",
)


@pytest.fixture(scope="module")
def _direct(control_plane: ControlPlane, installation: Installation) -> Iterator[None]:
    """Enable direct scaling in the controller, and create a node of a type that no other test uses."""
    create_nodes(control_plane, [KwokNode(name="direct", accelerator=PRODUCT, accelerator_count=8)])
    control_plane.kubectl("apply", "--server-side", f"--kustomize={FOLDER}")
    path = control_plane.directory / "controller.yaml"
    before = path.read_text(encoding="utf-8")
    document = yaml.safe_load(before) | {"scaling": {"mode": "direct"}}
    _restart(installation, control_plane, yaml.safe_dump(document))
    yield
    _restart(installation, control_plane, before)
    control_plane.kubectl("delete", f"--kustomize={FOLDER}")
    control_plane.kubectl("delete", "node", "direct")


def _restart(installation: Installation, control_plane: ControlPlane, document: str) -> None:
    installation.processes["controller"].stop(patience_seconds=20.0)
    (control_plane.directory / "controller.yaml").write_text(document, encoding="utf-8")
    installation.start_component("controller")


@pytest.fixture
def bench(control_plane: ControlPlane, _direct: None, namespace: str) -> Bench:
    """Apply a Deployment of one engine and a policy; the controller has no permission to scale yet."""
    made = Bench(control_plane, namespace)
    made.apply(deployment("chat", product=PRODUCT, accelerators=1), policy("waiting"))
    made.wait("deployment/chat", "jsonpath={.status.readyReplicas}=1")
    return made


def grant(bench: Bench) -> None:
    """Grant the controller the permission to scale in the namespace, as documented."""
    bench.kubectl(*GRANT)


def writer(bench: Bench) -> str:
    """Return the user who is recorded as the author of the binding."""
    record: str = bench.binding("chat")["metadata"]["annotations"][WRITTEN_BY]
    return str(json.loads(record)["username"])


def until_replicas(bench: Bench, count: int) -> None:
    """Wait until the Deployment has this number of replicas in its spec, and ready."""
    for path in ("spec.replicas", "status.readyReplicas"):
        bench.wait("deployment/chat", f"jsonpath={{.{path}}}={count}")


def generation(bench: Bench) -> str:
    """Return the generation of the Deployment, which counts its changes."""
    return str(bench.get("deployment/chat")["metadata"]["generation"])


def test_the_controller_scales_up_and_down_without_an_hpa(bench: Bench, installation: Installation) -> None:
    """Pod metrics change `spec.replicas`; status, events, a counter and `explain` report the changes."""
    grant(bench)
    bench.apply(bound("chat"))
    bench.until("chat", ScalingActive="ScalesWritten", TargetsResolved="TargetsFound")
    with bench.engines(chat=35):
        until_replicas(bench, 4)
    with bench.engines(chat=1):
        bench.wait("deployment/chat", "jsonpath={.spec.replicas}=1")

    events = bench.kubectl("events", "--for=aspb/chat")
    assert "Deployment 'chat' scaled from 1 to 4 replicas, with the permissions of user 'admin'" in events
    assert "Deployment 'chat' scaled from 4 to 1 replica," in events
    with urlopen(installation.metrics_url("controller"), timeout=30) as answer:  # noqa: S310 (loopback)
        assert 'stowplan_policy_scale_writes_total{outcome="written"}' in answer.read().decode()
    place = ("--kubeconfig", str(bench.control_plane.kubeconfig), "-n", bench.namespace)
    explained = stowplan("explain", "aspb/chat", *place)
    assert explained.code == 0
    assert "scaled by   the controller itself" in explained.out


def test_without_permission_the_condition_contains_the_command_that_grants_it(bench: Bench) -> None:
    """The condition is set before there is load; once permitted, scaling starts without a restart."""
    bench.apply(bound("chat"))
    status = bench.until("chat", ScalingActive="ControllerMayNotScale")
    (said,) = [item["message"] for item in status["conditions"] if item["type"] == "ScalingActive"]
    create, kind, name, *options = GRANT
    assert f"kubectl {create} {kind} {name} -n {bench.namespace} {' '.join(options)}" in said

    grant(bench)
    bench.until("chat", ScalingActive="ScalesWritten")
    with bench.engines(chat=35):
        until_replicas(bench, 4)


def test_the_controller_does_not_scale_a_target_of_an_hpa(bench: Bench) -> None:
    """A condition names the HPA, which can follow the metric; without the HPA the controller scales."""
    grant(bench)
    other = follower("other")
    other["spec"]["metrics"][0]["external"]["metric"]["name"] = "their_metric"
    bench.apply(follower("chat"), other)
    named = "HorizontalPodAutoscaler 'other' scales it by external metric 'their_metric'"
    wait_for(lambda: named in _warnings(bench, bound("other", "other")), f"a warning {named}")
    bench.kubectl("delete", "hpa", "other")
    assert "Warning" not in bench.told(bound("chat"))
    status = bench.until("chat", ScalingActive="TargetScaledByOther")
    assert "HorizontalPodAutoscaler 'chat' scales Deployment 'chat'" in json.dumps(status["conditions"])
    bench.wait_for_metric("chat", '"value":"1"')

    bench.kubectl("delete", "hpa", "chat")
    bench.until("chat", ScalingActive="ScalesWritten", TargetsResolved="TargetsFound")


def test_paused_and_advisory_bindings_are_not_scaled(bench: Bench) -> None:
    """The Deployment stays unchanged under any load."""
    grant(bench)
    before = generation(bench)
    bench.apply(bound("chat", annotations={"stowplan.dev/paused": "true"}))
    with bench.engines(chat=35):
        bench.until("chat", ScalingActive="Paused", MetricsAvailable="MetricsAvailable")
        bench.wait_for_beats(3)
        bench.kubectl("annotate", "aspb", "chat", "stowplan.dev/paused-", "stowplan.dev/advisory=true")
        bench.until("chat", ScalingActive="ObjectAdvisory")
        bench.wait_for_beats(3)

    assert generation(bench) == before


def test_the_author_needs_permission_at_the_time_of_scaling_and_cannot_be_forged(bench: Bench) -> None:
    """Scaling stops when the author loses the permission; a forged author is replaced by the real user."""
    grant(bench)
    bob = f"bob-{bench.namespace}"
    rights = {
        "bindings": ("get,create,patch", "autoscalingpolicybindings.registry.volcano.sh"),
        "scales": ("update", "deployments.apps/scale"),
    }
    for name, (verbs, resource) in rights.items():
        bench.kubectl("create", "role", name, f"--verb={verbs}", f"--resource={resource}")
        bench.kubectl("create", "rolebinding", name, f"--role={name}", f"--user={bob}")
    manifest = json.dumps(bound("chat", annotations={WRITTEN_BY: '{"username":"admin"}'}))
    _retried(lambda: bench.kubectl("create", f"--as={bob}", "--filename=-", input=manifest))
    assert writer(bench) == bob
    bench.until("chat", ScalingActive="ScalesWritten")

    bench.kubectl("delete", "rolebinding", "scales")
    with bench.engines(chat=35):
        bench.until("chat", ScalingActive="WriterMayNotScale", desiredReplicas=4)
        forged = f'{WRITTEN_BY}={{"username":"admin"}}'
        bench.kubectl("annotate", "--overwrite", "aspb", "chat", forged, f"--as={bob}")
        assert writer(bench) == bob
        assert bench.get("deployment/chat")["spec"]["replicas"] == 1
        bench.kubectl("annotate", "--overwrite", "aspb", "chat", f"{WRITTEN_BY}=me")
        until_replicas(bench, 4)


def test_the_recorded_author_is_kept_when_the_binding_is_applied_again(bench: Bench) -> None:
    """Server-side apply removes fields that are no longer sent, but not this annotation."""
    manifest = json.dumps(bound("chat"))
    for _ in range(2):
        bench.kubectl("apply", "--server-side", "--filename=-", input=manifest)
        assert writer(bench) == "admin"


def test_the_permission_covers_only_the_replicas_in_one_namespace(bench: Bench) -> None:
    """An update of the scale changes nothing but the number of replicas."""
    grant(bench)
    path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/chat/scale"
    scale = json.loads(bench.kubectl("get", "--raw", path, CONTROLLER))
    scale["spec"]["replicas"] = 2
    scale["metadata"] |= {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["a/b"]}
    _retried(
        lambda: bench.kubectl("replace", "--raw", path, "--filename=-", CONTROLLER, input=json.dumps(scale))
    )
    found = bench.get("deployment/chat")
    assert found["spec"]["replicas"] == scale["spec"]["replicas"]
    assert not {"a"} & {*found["metadata"].get("labels", {}), *found["metadata"].get("annotations", {})}
    assert "finalizers" not in found["metadata"]

    whole = ("auth", "can-i", "patch", "deploy/chat", CONTROLLER, f"--namespace={bench.namespace}")
    elsewhere = ("auth", "can-i", "update", "deployments/scale", CONTROLLER, "--namespace=default")
    for asked in (whole, elsewhere):
        assert bench.control_plane.kubectl(*asked, check=False).stdout.strip() == "no"


def _warnings(bench: Bench, manifest: Manifest) -> str:
    command = ("create", "--dry-run=server", "--filename=-", f"--namespace={bench.namespace}")
    return bench.control_plane.kubectl(*command, input=json.dumps(manifest)).stderr


def _retried(act: Callable[[], Any]) -> None:
    """Repeat an action until permissions that were just granted take effect."""

    def is_done() -> bool:
        try:
            act()
        except Exception:  # noqa: BLE001 (any error of kubectl without the permission)
            return False
        return True

    wait_for(is_done, "the right to do it")
