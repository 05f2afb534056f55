"""Environment variables of containers, as in the Pod API.

Rules: `ValidateEnv`, `validateEnvVarValueFrom` and `ValidateEnvFrom` of
`k8s.io/kubernetes/pkg/apis/core/validation/validation.go`, as of 1.36. Length limits are ours where the API
server has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import re2

from apiserver.kinds.core.names import DnsLabel, DnsSubdomain, KeyName, VariableName, label_key_errors
from apiserver.kinds.meta import Quantity
from apiserver.schema import errors
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FORBIDDEN, FieldError
from apiserver.schema.json import Json
from apiserver.schema.markers import Atomic, Length, Pattern
from apiserver.schema.paths import FieldPath
from apiserver.schema.quantities import amount
from apiserver.schema.rules import Cel, ExactlyOneOf, WebhookOnly

_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_LONGEST_FIELD: Final = 512
_LONGEST_RESOURCE: Final = 317
_LONGEST_PATH: Final = 4096
_ENTRY: Final = re2.compile(r"^(.+?)\['(.*)'\]$")
_RESOURCES: Final = tuple(
    f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_HUGE_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")
_CPU_DIVISORS: Final = ("1m", "1")
_BYTE_DIVISORS: Final = (
    "1",
    *(f"1{unit}" for unit in ("k", "M", "G", "T", "P", "E")),
    *(f"1{unit}" for unit in ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")),
)


def _field_path_errors(value: str, path: FieldPath) -> Sequence[FieldError]:
    if not value or value in _FIELDS or len(value) > _LONGEST_FIELD:
        return ()
    entry = _ENTRY.search(value)
    if entry is None:
        return [errors.unsupported(path, value, _FIELDS)]
    member, key = entry.groups()
    if member not in {"metadata.labels", "metadata.annotations"}:
        return [errors.invalid(path, value, "only metadata.labels and metadata.annotations take a key")]
    faults = label_key_errors(key.lower() if member == "metadata.annotations" else key)
    return [errors.invalid(path, value, detail) for detail in faults]


def _resource_errors(value: str, path: FieldPath) -> Sequence[FieldError]:
    is_known = not value or value in _RESOURCES or len(value) > _LONGEST_RESOURCE
    if is_known or value.startswith(_HUGE_PAGES):
        return ()
    return [errors.unsupported(path, value, _RESOURCES)]


def _divisor_errors(value: Json, path: FieldPath) -> Sequence[FieldError]:
    divisor = amount(value.get("divisor", "0"))
    is_cpu = value.get("resource") in {"limits.cpu", "requests.cpu"}
    allowed = _CPU_DIVISORS if is_cpu else _BYTE_DIVISORS
    if not divisor or divisor in {amount(text) for text in allowed}:
        return ()
    return [errors.unsupported(path.child("divisor"), value["divisor"], allowed)]


def _backstep_errors(value: str, path: FieldPath) -> Sequence[FieldError]:
    if len(value) > _LONGEST_PATH or ".." not in value.split("/"):
        return ()
    return [errors.invalid(path, value, "must not contain '..'")]


@declaration()
class ObjectFieldSelector:
    """A field of the pod."""

    api_version: Maybe[Literal["v1"]] = UNSET
    """The API version that `fieldPath` is written in terms of. Defaults to v1."""

    field_path: Annotated[
        str,
        Length(1, _LONGEST_FIELD),
        WebhookOnly(_field_path_errors, "A field of a Pod that a variable can have."),
    ]
    """The path of the field, such as `status.podIP` or `metadata.labels['app']`."""


@declaration(
    WebhookOnly(_divisor_errors, "`divisor` is a whole unit: 1m or 1 for cpu, 1, 1k or 1Ki and so on else.")
)
class ResourceFieldSelector:
    """A resource limit or request of a container of the pod."""

    container_name: Maybe[Annotated[str, Length(maximum=63)]] = UNSET
    """The name of the container. Defaults to the container that declares the variable."""

    resource: Annotated[
        str,
        Length(1, _LONGEST_RESOURCE),
        WebhookOnly(_resource_errors, "A limit or request that a variable can have."),
    ]
    """The limit or request, such as `limits.memory`."""

    divisor: Maybe[Quantity] = UNSET
    """The unit in which the value is expressed, rounded up. Defaults to 1."""


@declaration()
class ConfigMapKeySelector:
    """A key of a ConfigMap in the same namespace."""

    name: DnsSubdomain
    """The name of the ConfigMap."""

    key: KeyName
    """The key in the data of the ConfigMap."""

    optional: Maybe[bool] = UNSET
    """Whether the ConfigMap or its key may be missing. If it is, the variable is not set."""


@declaration()
class SecretKeySelector:
    """A key of a Secret in the same namespace."""

    name: DnsSubdomain
    """The name of the Secret."""

    key: KeyName
    """The key in the data of the Secret."""

    optional: Maybe[bool] = UNSET
    """Whether the Secret or its key may be missing. If it is, the variable is not set."""


@declaration()
class FileKeySelector:
    """A variable in a file that an init container writes."""

    volume_name: DnsLabel
    """The name of the pod volume that holds the file."""

    path: Annotated[str, Length(1, _LONGEST_PATH), WebhookOnly(_backstep_errors, "A path without `..`.")]
    """The path of the file within the volume."""

    key: VariableName
    """The name of the variable in the file."""

    optional: Maybe[bool] = UNSET
    """Whether the file or the variable may be missing."""


@declaration(ExactlyOneOf(("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")))
class EnvVarSource:
    """The source of the value of a variable."""

    field_ref: Maybe[Annotated[ObjectFieldSelector, Atomic()]] = UNSET
    """A field of the pod."""

    resource_field_ref: Maybe[Annotated[ResourceFieldSelector, Atomic()]] = UNSET
    """A resource limit or request of a container of the pod."""

    config_map_key_ref: Maybe[Annotated[ConfigMapKeySelector, Atomic()]] = UNSET
    """A key of a ConfigMap."""

    secret_key_ref: Maybe[Annotated[SecretKeySelector, Atomic()]] = UNSET
    """A key of a Secret."""

    file_key_ref: Maybe[Annotated[FileKeySelector, Atomic()]] = UNSET
    """A variable in a file."""


@declaration(
    Cel(
        "!has(self.valueFrom) || !has(self.value) || size(self.value) == 0",
        lambda variable: "valueFrom" not in variable or not variable.get("value"),
        "may not be set when `value` is not empty",
        sentence="`valueFrom` may not be set when `value` is not empty.",
        field="valueFrom",
        reason=FORBIDDEN,
    )
)
class EnvVar:
    """An environment variable of a container."""

    name: VariableName
    """The name of the variable."""

    value: Maybe[Annotated[str, Length(maximum=32768)]] = UNSET
    """The value of the variable. References of the form `$(NAME)` are expanded with the variables declared
    before it. Defaults to the empty string."""

    value_from: Maybe[EnvVarSource] = UNSET
    """The source of the value. May not be set if `value` is not empty."""


@declaration()
class ConfigMapEnvSource:
    """A ConfigMap in the same namespace whose keys become variables."""

    name: DnsSubdomain
    """The name of the ConfigMap."""

    optional: Maybe[bool] = UNSET
    """Whether the ConfigMap may be missing."""


@declaration()
class SecretEnvSource:
    """A Secret in the same namespace whose keys become variables."""

    name: DnsSubdomain
    """The name of the Secret."""

    optional: Maybe[bool] = UNSET
    """Whether the Secret may be missing."""


@declaration(ExactlyOneOf(("configMapRef", "secretRef")))
class EnvFromSource:
    """A ConfigMap or a Secret whose keys become variables."""

    prefix: Maybe[
        Annotated[
            str,
            Length(maximum=1024),
            Pattern(r"^[ -<>-~]*$", says="printable ASCII characters other than '='"),
        ]
    ] = UNSET
    """The text that is prepended to each key to form the name of the variable."""

    config_map_ref: Maybe[ConfigMapEnvSource] = UNSET
    """The ConfigMap whose keys become variables."""

    secret_ref: Maybe[SecretEnvSource] = UNSET
    """The Secret whose keys become variables."""
