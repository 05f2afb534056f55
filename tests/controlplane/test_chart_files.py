"""The files of values for common clusters: they render valid objects, which OpenShift admits, too."""

from __future__ import annotations

import copy
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.helming import VALUES, Helm, deployments, pod_of, values_of
from support.object_schemas import LOCATION, write_schemas
from support.restricted_v2 import RULES, violations

from hack.controlplane.binaries import provide_module
from hack.controlplane.progress import ProgressLine
from hack.packaging.programs import KUBECONFORM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Validate = Callable[[Iterable[Mapping[str, Any]]], str]

pytestmark = pytest.mark.controlplane

HERE = "stowplan-system"
IN_PODS = [name for name in VALUES if name != "eks-host-network"]


@pytest.fixture(scope="module")
def validate(tmp_path_factory: pytest.TempPathFactory) -> Validate:
    """Return a function that validates objects, and returns the errors."""
    folder = tmp_path_factory.mktemp("schemas")
    write_schemas(folder)
    program = provide_module(KUBECONFORM, ProgressLine())["kubeconform"]
    command = [str(program), "-strict", f"-schema-location={folder}/{LOCATION}"]

    def run(objects: Iterable[Mapping[str, Any]]) -> str:
        text = yaml.dump_all(objects, Dumper=yaml.CSafeDumper)
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    return run


@pytest.mark.parametrize("name", VALUES)
def test_the_files_for_common_clusters_render_valid_objects(
    helm: Helm, validate: Validate, name: str
) -> None:
    """No warning, no unknown field, and the labels of every chart on every object."""
    linted = helm.run("lint", "--strict", str(helm.chart), values=values_of(name))
    objects = helm.rendered(values_of(name), namespace=HERE)

    assert linted.returncode == 0, linted.stdout
    assert validate(objects.values()) == ""
    labels = {"app.kubernetes.io/instance": "release", "helm.sh/chart": "stowplan-0.1.0"}
    labels |= {"app.kubernetes.io/name": "stowplan", "app.kubernetes.io/part-of": "stowplan"}
    labels |= {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/version": "0.1.0"}
    labels |= values_of(name).get("commonLabels", {})
    pods = [spec["template"] for spec in deployments(objects.values()).values()]
    for item in (*objects.values(), *pods):
        assert item["metadata"]["labels"].items() >= labels.items()


INVALID: dict[str, tuple[tuple[str | int, ...], Any, str]] = {
    "an unknown field of a pod": (("spec", "template", "spec", "hostNetworks"), True, "hostNetworks"),
    "an unknown field of a volume": (("spec", "template", "spec", "volumes", 0, "sekret"), {}, "sekret"),
    "a text for a number": (("spec", "replicas"), "two", "got string, want integer"),
    "a quantity that is a list": (
        ("spec", "template", "spec", "containers", 0, "resources", "limits", "memory"),
        [],
        "memory",
    ),
}


@pytest.mark.parametrize(("path", "value", "message"), INVALID.values(), ids=INVALID)
def test_an_invalid_object_does_not_pass_validation(
    helm: Helm,
    validate: Validate,
    path: tuple[str | int, ...],
    value: str | bool | dict[str, Any],
    message: str,
) -> None:
    """Otherwise, the test above would prove nothing."""
    rendered = helm.rendered(values_of("minimal"), namespace=HERE)
    broken: Any = copy.deepcopy(rendered["Deployment", HERE, "stowplan-controller"])
    inside = broken
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value

    assert message in validate([broken])


@pytest.mark.parametrize("name", IN_PODS)
def test_the_pods_of_the_chart_are_admitted_by_restricted_v2_of_openshift(helm: Helm, name: str) -> None:
    """The scheduler's image has no user, so it is a value; without it, it is admitted, too."""
    values = values_of(name)
    if values.get("scheduler"):
        values["scheduler"]["podSecurityContext"] = {"runAsUser": None}
    specs = deployments(helm.rendered(values, namespace=HERE).values())

    assert [(name, rule) for name, spec in specs.items() for rule in violations(pod_of(spec))] == []


def test_the_pods_of_every_kustomization_are_admitted_by_restricted_v2_of_openshift(helm: Helm) -> None:
    """This includes the base with each part. The scheduler has a fixed user, which a patch can remove."""
    rendered = [helm.sources.base, *helm.sources.alone.values()]
    specs = [pair for objects in rendered for pair in deployments(objects.values()).items()]

    own = {"webhooks", "apiserver", "controller", "models", "dashboard", "scheduler"}
    assert {name for name, _ in specs} == own
    assert [(name, rule) for name, spec in specs for rule in violations(pod_of(spec))] == [
        ("scheduler", "no user and no group of files is fixed")
    ]


BREACHES: dict[str, tuple[str, dict[str, Any]]] = {
    "the network of the node": ("no namespace of the host is shared", {"hostNetwork": True}),
    "a directory of the node": (
        "only the allowed types of volumes are mounted",
        {"volumes": [{"name": "a", "hostPath": {"path": "/"}}]},
    ),
    "a fixed user": ("no user and no group of files is fixed", {"securityContext": {"runAsUser": 65532}}),
    "a fixed group of files": (
        "no user and no group of files is fixed",
        {"securityContext": {"fsGroup": 65532}},
    ),
    "perhaps root": ("the user is not root", {"securityContext": {}}),
    "no filter of system calls": ("system calls are filtered", {"securityContext": {}}),
    "an SELinux context": (
        "the SELinux context is that of the namespace",
        {"securityContext": {"seLinuxOptions": {}}},
    ),
}
OF_CONTAINER: dict[str, tuple[str, dict[str, Any]]] = {
    "a port of the node": (
        "no port of the host is used",
        {"ports": [{"containerPort": 9443, "hostPort": 9443}]},
    ),
    "some capabilities": (
        "all capabilities are dropped and at most NET_BIND_SERVICE is added",
        {"securityContext": {"capabilities": {"drop": ["NET_RAW"]}}},
    ),
    "a privileged container": ("no container is privileged", {"securityContext": {"privileged": True}}),
    "privileges to gain": ("privileges cannot be gained", {"securityContext": {}}),
}


def test_every_rule_of_restricted_v2_can_be_violated(helm: Helm) -> None:
    """Each change of a pod that is admitted violates its rule."""
    rendered = helm.rendered(values_of("minimal"), namespace=HERE)
    pod = pod_of(rendered["Deployment", HERE, "stowplan-controller"]["spec"])
    (container,) = pod["containers"]
    breaches = [(rule, pod | change) for rule, change in BREACHES.values()]
    breaches += [(rule, pod | {"containers": [container | it]}) for rule, it in OF_CONTAINER.values()]

    assert {rule for rule, _ in breaches} == RULES.keys()
    for rule, broken in breaches:
        assert rule in violations(broken)
