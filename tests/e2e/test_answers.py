"""The shipped installation on a real kubelet: users, privileges, Services, and responses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.installed import COMPONENTS, HERE, Installed
from support.polling import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.e2e

SAMPLES = Path(__file__).resolve().parents[2] / "manifests" / "samples" / "variantautoscaling"
METRICS = "/apis/external.metrics.k8s.io/v1beta1"
SERVERS = ("webhooks", "apiserver")


@pytest.fixture(params=COMPONENTS)
def component(request: pytest.FixtureRequest) -> str:
    """Return the name of each component in turn."""
    name: str = request.param
    return name


@pytest.fixture
def legacy(installed: Installed) -> Iterator[str]:
    """Store a VariantAutoscaling in its old version, yield its name, and delete it afterwards."""
    path = str(SAMPLES / "legacy.yaml")
    installed.kubectl("apply", "--namespace=default", f"--filename={path}")
    yield "llama-8b-a100"
    installed.kubectl("delete", "--namespace=default", f"--filename={path}")


def test_the_namespace_enforces_the_restricted_standard(installed: Installed) -> None:
    """The API server rejects pods in the namespace that need more privileges."""
    root = {"containers": [{"name": "root", "image": "stowplan:0.1.0"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "root"}, "spec": root}

    refused = installed.kubectl("create", HERE, "--filename=-", text=json.dumps(pod), check=False)

    assert 'violates PodSecurity "restricted' in refused.stderr


def test_every_pod_becomes_ready_without_a_restart(installed: Installed, component: str) -> None:
    """Each component has two replicas, and no probe restarted them."""
    label = "app.kubernetes.io/component"
    pods = [pod for pod in installed.first_pods if pod["metadata"]["labels"][label] == component]
    statuses = [status for pod in pods for status in pod["status"]["containerStatuses"]]

    assert [(status["ready"], status["restartCount"]) for status in statuses] == [(True, 0)] * 2


def test_every_process_is_unprivileged(installed: Installed, component: str) -> None:
    """Processes have no root user or group, no capabilities, a seccomp filter, and cannot gain privileges."""
    status = status_of(installed, component)

    assert status["Uid"] == ["65532"] * 4
    assert status["Gid"] == ["65532"] * 4
    assert status["Groups"] == ["65532"]
    assert {status[f"Cap{kind}"][0] for kind in ("Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == (["1"], ["2"])


def test_every_process_runs_as_a_user_that_the_platform_assigns(installed: Installed, component: str) -> None:
    """As OpenShift does, the user and the group of files are set, and the process becomes ready with them."""
    pod = installed.read(f"deployment/stowplan-{component}")["spec"]["template"]
    pod["spec"]["securityContext"] |= {"fsGroup": 1_000_680_000}
    pod["spec"]["containers"][0]["securityContext"] |= {"runAsUser": 1_000_680_000}
    name = f"assigned-{component}"
    identity = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
    created = json.dumps(identity | {"spec": pod["spec"]})

    installed.kubectl("create", HERE, "--filename=-", text=created)
    installed.kubectl("wait", HERE, "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
    uid = installed.inside(name, "id", "-u").stdout
    installed.kubectl("delete", HERE, f"pod/{name}")

    assert uid == "1000680000\n"


def test_no_file_system_is_writable(installed: Installed, component: str) -> None:
    """This holds for the root file system and for everything that is mounted into it."""
    (pod, _) = installed.names(component)
    for folder in ("/", "/tmp", "/opt/stowplan", "/etc/stowplan/config"):  # noqa: S108
        refused = installed.inside(pod, "touch", f"{folder}/written", check=False)
        assert "Read-only file system" in refused.stderr, folder


@pytest.mark.parametrize("server", SERVERS)
def test_the_private_key_belongs_to_root_and_cannot_be_written(installed: Installed, server: str) -> None:
    """No manifest has the group of the process, since platforms assign it: the process reads it as others."""
    (pod, _) = installed.names(server)
    key = "/etc/stowplan/tls/tls.key"

    listed = installed.inside(pod, "stat", "--dereference", "--format=%a %U %g", key)
    refused = installed.inside(pod, "touch", key, check=False)

    assert listed.stdout.split() == ["644", "root", "0"]
    assert "Permission denied" in refused.stderr


def test_the_kernel_enforces_the_memory_limit(installed: Installed, component: str) -> None:
    """The limit of the cgroup equals that of the manifest."""
    (pod, *_) = installed.pods(component)
    limit = pod["spec"]["containers"][0]["resources"]["limits"]["memory"]

    read = installed.inside(pod["metadata"]["name"], "cat", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

    assert int(read.stdout) == int(limit.removesuffix("Mi")) << 20


def test_no_process_has_service_links_in_its_environment(installed: Installed, component: str) -> None:
    """No process reads them."""
    (pod, _) = installed.names(component)

    environment = installed.inside(pod, "env").stdout

    assert "STOWPLAN_" not in environment
    assert "KUBERNETES_SERVICE_HOST=10.96.0.1" in environment


def test_the_image_contains_no_pip(installed: Installed) -> None:
    """A missing installer cannot be misused, and is not scanned for vulnerabilities."""
    (pod, _) = installed.names("controller")

    assert "No module named pip" in installed.inside(pod, "python", "-m", "pip", check=False).stderr


def test_an_invalid_manifest_is_rejected_with_the_documented_message(installed: Installed) -> None:
    """The webhook answers at its Service's cluster IP, with the certificate that the controller issued."""
    path = SAMPLES / "refused" / "several-errors.yaml"

    refused = installed.kubectl("apply", "--namespace=default", f"--filename={path}", check=False)

    assert refused.returncode == 1
    assert refused.stderr.strip().endswith(path.with_suffix(".txt").read_text(encoding="utf-8").strip())


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
def test_an_object_can_be_read_in_both_versions(installed: Installed, legacy: str, version: str) -> None:
    """The conversion webhook answers at its Service's cluster IP."""
    name = f"variantautoscalings.{version}.llmd.ai/{legacy}"

    read = json.loads(installed.kubectl("get", "--namespace=default", "--output=json", name).stdout)

    assert read["apiVersion"] == f"llmd.ai/{version}"
    assert read["spec"]["modelID"] == "meta/llama-3.1-8b"


def test_the_metrics_api_is_available(installed: Installed) -> None:
    """The API answers through the aggregation layer, at its Service's cluster IP."""
    path = f"{METRICS}/namespaces/default/wva_desired_replicas"
    asked = installed.kubectl("get", "--raw", path, check=False)

    assert "no variant in namespace 'default' matches the selector" in asked.stderr


def test_one_controller_leads_and_the_other_waits(installed: Installed) -> None:
    """Both log their role; the other one waits for the Lease."""
    leader = installed.leader()
    (other,) = set(installed.names("controller")) - {leader}

    assert "leading" in events(installed, leader)
    assert "waiting for the lease" in events(installed, other)
    assert "leading" not in events(installed, other)


def test_each_log_line_is_a_json_object(installed: Installed, component: str) -> None:
    """The test reads the log with `kubectl logs`."""
    (pod, _) = installed.names(component)

    assert "serving" in events(installed, pod)


def test_conditions_are_written_for_engines_that_do_not_answer(installed: Installed, legacy: str) -> None:
    """The controller in its pod reads objects and writes the status."""
    path = ("get", "--namespace=default", "--output=json", f"variantautoscaling/{legacy}")

    def conditions() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (
            json.loads(installed.kubectl(*path).stdout).get("status", {}).get("conditions")
        )
        return found or []

    seen = wait_for(conditions, "conditions of the variant")

    assert {"TargetResolved", "MetricsAvailable"} & {condition["type"] for condition in seen}


def test_the_image_is_small_and_idle_processes_use_what_they_request(
    installed: Installed, pytestconfig: pytest.Config
) -> None:
    """Idle processes use no more memory than they request.

    The times until pods were ready are printed and not checked: other tests use the same processors.
    """
    (image,) = (image for image in installed.node.images if "stowplan" in image.name)
    working, requested = {}, {}
    for name in COMPONENTS:
        (pod, *_) = installed.pods(name)
        working[name] = working_set_bytes(installed, pod["metadata"]["name"]) / 2**20
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        requested[name] = int(requests["memory"].removesuffix("Mi"))
    layers = " + ".join(f"{size / 1e6:.0f}" for size in image.layer_bytes)
    memory = ", ".join(f"{name} {mebibytes:.0f} MiB" for name, mebibytes in working.items())
    plugins = pytestconfig.pluginmanager
    with plugins.getplugin("capturemanager").global_and_fixture_disabled():
        plugins.getplugin("terminalreporter").write_line(
            f"\nReady {installed.ready_seconds:.1f} s after `kubectl apply`, "
            f"the metrics API {installed.available_seconds:.1f} s after its claim; "
            f"image {sum(image.layer_bytes) / 1e6:.0f} MB ({layers}); at rest: {memory}"
        )

    assert sum(image.layer_bytes[1:]) < 450e6
    assert {name for name in COMPONENTS if working[name] > requested[name]} == set()


def working_set_bytes(installed: Installed, pod: str) -> int:
    """Return the memory of a container without the page cache that the kernel can reclaim at once."""
    group = "/sys/fs/cgroup/memory/memory"
    used, *stat = installed.inside(pod, "cat", f"{group}.usage_in_bytes", f"{group}.stat").stdout.splitlines()
    (inactive,) = (line.split()[1] for line in stat if line.startswith("total_inactive_file "))
    return int(used) - int(inactive)


def status_of(installed: Installed, component: str) -> dict[str, list[str]]:
    """Return the kernel's status fields of the first process of a component."""
    (pod, _) = installed.names(component)
    lines = installed.inside(pod, "cat", "/proc/1/status").stdout.splitlines()
    return {key: value.split() for key, _, value in (line.partition(":") for line in lines)}


def events(installed: Installed, pod: str) -> list[str]:
    """Return the events in the log of a pod."""
    return [json.loads(line)["event"] for line in installed.kubectl("logs", HERE, pod).stdout.splitlines()]
