"""Validation of a container's environment and resources by the rules of the API server."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.kinds.core.containers import EnvFromSource, EnvVar, ResourceRequirements, can_be_overcommitted
from apiserver.schema.json import Json
from apiserver.schema.validation import validate

CHARACTERS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character"
)


def variable(**source: Any) -> Json:
    """Return a variable whose value comes from a source."""
    return {"name": "A", "valueFrom": source}


def field(path: str) -> Json:
    """Return a variable whose value is a field of its pod."""
    return variable(fieldRef={"fieldPath": path})


def bytes_of(resource: str, divisor: str | int) -> Json:
    """Return a variable whose value is a resource in some unit."""
    return variable(resourceFieldRef={"resource": resource, "divisor": divisor})


ACCEPTED: dict[str, tuple[type, Json]] = {
    "a value": (EnvVar, {"name": "A", "value": "1"}),
    "no value": (EnvVar, {"name": "A"}),
    "an empty value beside a source": (EnvVar, field("metadata.name") | {"value": ""}),
    "a name of any printable characters": (EnvVar, {"name": "1 odd-name.with/all:that"}),
    "a label of the pod": (EnvVar, field("metadata.labels['example.com/team']")),
    "an annotation in capitals": (EnvVar, field("metadata.annotations['Example.com/Team']")),
    "a limit in MiB": (EnvVar, bytes_of("limits.memory", "1Mi")),
    "a request in thousandths": (EnvVar, bytes_of("requests.cpu", "1m")),
    "a request with a divisor of 1000m": (EnvVar, bytes_of("requests.cpu", "1000m")),
    "no unit": (EnvVar, bytes_of("limits.memory", 0)),
    "huge pages": (EnvVar, bytes_of("limits.hugepages-2Mi", 1)),
    "a key of a ConfigMap": (EnvVar, variable(configMapKeyRef={"name": "c", "key": ".hidden"})),
    "a file": (EnvVar, variable(fileKeyRef={"volumeName": "v", "path": "a/..b", "key": "K"})),
    "all of a ConfigMap": (EnvFromSource, {"prefix": "MY_", "configMapRef": {"name": "c"}}),
    "all of a Secret without a prefix": (EnvFromSource, {"prefix": "", "secretRef": {"name": "s"}}),
    "nothing": (ResourceRequirements, {}),
    "accelerators with a limit alone": (ResourceRequirements, {"limits": {"nvidia.com/gpu": 1}}),
    "accelerators with an equal limit and request": (
        ResourceRequirements,
        {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": 1}},
    ),
    "a request below its limit": (
        ResourceRequirements,
        {"limits": {"cpu": 2}, "requests": {"cpu": "1999m", "memory": "1Gi"}},
    ),
    "whole huge pages beside memory": (
        ResourceRequirements,
        {"limits": {"hugepages-2Mi": "4Mi", "memory": "1Gi"}},
    ),
    "quantities with huge exponents": (
        ResourceRequirements,
        {"limits": {"nvidia.com/gpu": "1e300", "hugepages-1Gi": "1e999", "cpu": "1e-300"}},
    ),
    "two claims": (ResourceRequirements, {"claims": [{"name": "a"}, {"name": "b", "request": "gpu"}]}),
}

REFUSED: dict[str, tuple[type, Json, list[str]]] = {
    "a variable without a name": (EnvVar, {"value": "1"}, ["name: Required value"]),
    "an equals sign in a name": (
        EnvVar,
        {"name": "A=B"},
        ["name: Invalid value: \"A=B\": must be printable ASCII characters other than '='"],
    ),
    "a value and a source": (
        EnvVar,
        field("metadata.name") | {"value": "1"},
        ["valueFrom: Forbidden: may not be set when `value` is not empty"],
    ),
    "an empty source": (
        EnvVar,
        variable(),
        [
            "valueFrom.fieldRef: Required value: exactly one of `fieldRef`, `resourceFieldRef`,"
            " `configMapKeyRef`, `secretKeyRef` and `fileKeyRef` must be set"
        ],
    ),
    "two sources": (
        EnvVar,
        variable(secretKeyRef={"name": "s", "key": "k"}, fieldRef={"fieldPath": "metadata.name"}),
        [
            "valueFrom.secretKeyRef: Forbidden: may not be set together with `fieldRef`, `resourceFieldRef`"
            " or `configMapKeyRef`"
        ],
    ),
    "a field that variables cannot refer to": (
        EnvVar,
        field("spec.restartPolicy"),
        [
            'valueFrom.fieldRef.fieldPath: Unsupported value: "spec.restartPolicy": supported values:'
            ' "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",'
            ' "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"'
        ],
    ),
    "a field of another version": (
        EnvVar,
        variable(fieldRef={"apiVersion": "v2", "fieldPath": "metadata.name"}),
        ['valueFrom.fieldRef.apiVersion: Unsupported value: "v2": supported values: "v1"'],
    ),
    "a key of a field without keys": (
        EnvVar,
        field("metadata.name['a']"),
        [
            "valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.name['a']\": only metadata.labels and"
            " metadata.annotations take a key"
        ],
    ),
    "an invalid label key": (
        EnvVar,
        field("metadata.labels['a b']"),
        [f"valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.labels['a b']\": name part {CHARACTERS}"],
    ),
    "a resource that variables cannot refer to": (
        EnvVar,
        variable(resourceFieldRef={"resource": "limits.nvidia.com/gpu"}),
        [
            'valueFrom.resourceFieldRef.resource: Unsupported value: "limits.nvidia.com/gpu": supported'
            ' values: "limits.cpu", "limits.memory", "limits.ephemeral-storage", "requests.cpu",'
            ' "requests.memory", "requests.ephemeral-storage"'
        ],
    ),
    "an unsupported divisor": (
        EnvVar,
        bytes_of("limits.cpu", "2"),
        ['valueFrom.resourceFieldRef.divisor: Unsupported value: "2": supported values: "1m", "1"'],
    ),
    "a key that begins with two dots": (
        EnvVar,
        variable(secretKeyRef={"name": "s", "key": "..k"}),
        [
            "valueFrom.secretKeyRef.key: Invalid value: \"..k\": must be letters, digits, '-', '_' and '.',"
            " not '..' in front"
        ],
    ),
    "an invalid volume name, and a path with two dots": (
        EnvVar,
        variable(fileKeyRef={"volumeName": "V", "path": "a/../b", "key": "k"}),
        [
            'valueFrom.fileKeyRef.volumeName: Invalid value: "V": must be lower-case letters, digits and'
            " dashes, such as my-name",
            "valueFrom.fileKeyRef.path: Invalid value: \"a/../b\": must not contain '..'",
        ],
    ),
    "an invalid prefix without a source": (
        EnvFromSource,
        {"prefix": "A="},
        [
            "prefix: Invalid value: \"A=\": must be printable ASCII characters other than '='",
            "configMapRef: Required value: exactly one of `configMapRef` and `secretRef` must be set",
        ],
    ),
    "a ConfigMap and a Secret": (
        EnvFromSource,
        {"configMapRef": {"name": "c"}, "secretRef": {"name": "s"}},
        ["secretRef: Forbidden: may not be set together with `configMapRef`"],
    ),
    "negative quantities": (
        ResourceRequirements,
        {"limits": {"cpu": "-1", "memory": -1}},
        [
            'limits[cpu]: Invalid value: "-1": must be a quantity of 0 or more, such as 2, 500m or 80Gi',
            "limits[memory]: Invalid value: -1: must be greater than or equal to 0",
        ],
    ),
    "a request above its limit": (
        ResourceRequirements,
        {"limits": {"memory": "1G"}, "requests": {"memory": "1Gi"}},
        ['requests[memory]: Invalid value: "1Gi": must be less than or equal to memory limit of 1G'],
    ),
    "accelerators with a request alone": (
        ResourceRequirements,
        {"requests": {"nvidia.com/gpu": 1}},
        ["limits[nvidia.com/gpu]: Required value: must be set for a resource that cannot be overcommitted"],
    ),
    "half an accelerator": (
        ResourceRequirements,
        {"limits": {"nvidia.com/gpu": "500m"}},
        ['limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer'],
    ),
    "a request for fewer accelerators than the limit": (
        ResourceRequirements,
        {"limits": {"nvidia.com/gpu": 2}, "requests": {"nvidia.com/gpu": 1}},
        ["requests[nvidia.com/gpu]: Invalid value: 1: must be equal to nvidia.com/gpu limit of 2"],
    ),
    "invalid resource names": (
        ResourceRequirements,
        {"limits": {"gpu": 1, "a b": 1, "requests.x.com/gpu": 1}},
        [
            f'limits[a b]: Invalid value: "a b": name part {CHARACTERS}',
            'limits[gpu]: Invalid value: "gpu": must be a standard resource for containers: cpu, memory,'
            " ephemeral-storage or hugepages-<size>, or fully qualified such as nvidia.com/gpu",
            'limits[requests.x.com/gpu]: Invalid value: "requests.x.com/gpu": must not start with'
            " 'requests.', which quotas put before names",
        ],
    ),
    "huge pages without memory, and one and a half of them": (
        ResourceRequirements,
        {"limits": {"hugepages-2Mi": "3Mi"}},
        [
            "<nil>: Forbidden: huge pages require cpu or memory",
            'limits[hugepages-2Mi]: Invalid value: "3Mi": must be a positive integer multiple of'
            " hugepages-2Mi",
        ],
    ),
    "one claim twice": (
        ResourceRequirements,
        {"claims": [{"name": "a"}, {"name": "a", "request": "x"}]},
        ['claims[1]: Duplicate value: {"name":"a"}'],
    ),
}


@pytest.mark.parametrize(("declared", "value"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_valid_environment_or_resource_list_is_accepted(declared: type, value: Json) -> None:
    """There are no errors."""
    assert [str(error) for error in validate(declared, value)] == []


@pytest.mark.parametrize(("declared", "value", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_each_invalid_field_gets_its_own_error(declared: type, value: Json, want: list[str]) -> None:
    """The list of errors is complete."""
    assert [str(error) for error in validate(declared, value)] == want


def test_only_native_resources_can_be_overcommitted() -> None:
    """Huge pages and extended resources cannot."""
    names = ("cpu", "kubernetes.io/x", "hugepages-2Mi", "nvidia.com/gpu")

    assert [name for name in names if can_be_overcommitted(name)] == ["cpu", "kubernetes.io/x"]
