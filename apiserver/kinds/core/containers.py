"""Environment variables, resource requests and limits of containers, as in the Pod API.

Rules: `ValidateEnv`, `validateEnvVarValueFrom`, `ValidateEnvFrom` and `validateResourceRequirements` of
`k8s.io/kubernetes/pkg/apis/core/validation/validation.go`, as of 1.36. The last one compares quantities of
any unit for each key of a map below nested lists, so only the webhook checks it. Limits on counts are ours,
and length limits where the API server has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Annotated, Final, Literal

import re2

from apiserver.kinds.core.names import DnsLabel, DnsSubdomain, KeyName, VariableName, label_key_errors
from apiserver.kinds.meta import Quantity
from apiserver.schema import errors, quantities
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FORBIDDEN, FieldError
from apiserver.schema.json import Json
from apiserver.schema.markers import Atomic, Items, Length, MapKeys, Pattern, Properties, Range
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


_STANDARD_NAMES: Final = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES_PREFIX: Final = "hugepages-"
_NATIVE: Final = "kubernetes.io/"
_QUOTA: Final = "requests."
Amount = Annotated[
    int | str,
    Pattern(quantities.NON_NEGATIVE_PATTERN, says="a quantity of 0 or more, such as 2, 500m or 80Gi"),
    Length(maximum=quantities.LONGEST_CHARACTERS),
    Range(0),
]
"""A non-negative amount of a resource."""


def can_be_overcommitted(name: str) -> bool:
    """Tell whether the request for a resource may be lower than its limit; not so for accelerators."""
    return _is_native(name) and not name.startswith(_HUGE_PAGES_PREFIX)


def _is_native(name: str) -> bool:
    return "/" not in name or _NATIVE in name


def _name_faults(name: str) -> Sequence[str]:
    if malformed := label_key_errors(name):
        return malformed
    if "/" not in name and not name.startswith(_HUGE_PAGES_PREFIX):
        allowed = (
            f"{', '.join(_STANDARD_NAMES)} or hugepages-<size>, or fully qualified such as nvidia.com/gpu"
        )
        return (f"must be a standard resource for containers: {allowed}",)
    if not _is_native(name) and name.startswith(_QUOTA):
        return (f"must not start with '{_QUOTA}', which quotas put before names",)
    return ()


def _amount_faults(name: str, quantity: str | int) -> Iterator[str]:
    amount = quantities.amount(quantity)
    if amount is None:
        return
    if not _is_native(name) and amount != amount.to_integral_value():
        yield "must be an integer"
    if name.startswith(_HUGE_PAGES_PREFIX):
        page = quantities.amount(name.removeprefix(_HUGE_PAGES_PREFIX))
        # Fractions are exact: a decimal modulo fails beyond the precision of its context.
        if not page or Fraction(amount) % Fraction(page):
            yield f"must be a positive integer multiple of {name}"


def _entry_errors(value: Json, side: str, path: FieldPath) -> Iterator[FieldError]:
    for name, quantity in value.get(side, {}).items():
        if name not in _STANDARD_NAMES:
            for detail in _name_faults(name):
                yield errors.invalid(path.child(side).key(name), name, detail)
            for detail in _amount_faults(name, quantity):
                yield errors.invalid(path.child(side).key(name), quantity, detail)


def _pair_errors(name: str, request: str | int, limits: Json, path: FieldPath) -> Sequence[FieldError]:
    is_flexible = can_be_overcommitted(name)
    if name not in limits:
        if is_flexible:
            return ()
        detail = "must be set for a resource that cannot be overcommitted"
        return [errors.required(path.child("limits").key(name), detail)]
    requested, most = quantities.amount(request), quantities.amount(limits[name])
    if requested is None or most is None or (requested <= most if is_flexible else requested == most):
        return ()
    demand = "less than or equal to" if is_flexible else "equal to"
    here = path.child("requests").key(name)
    return [errors.invalid(here, request, f"must be {demand} {name} limit of {limits[name]}")]


def resource_errors(value: Json, path: FieldPath) -> list[FieldError]:
    """Return the errors of requests and limits, each on its own and compared with each other."""
    limits, requests = value.get("limits", {}), value.get("requests", {})
    problems = list(_entry_errors(value, "limits", path))
    if problems or requests != limits:  # equal ones have no errors either
        problems += _entry_errors(value, "requests", path)
    for name, request in requests.items():
        if request != limits.get(name):
            problems += _pair_errors(name, request, limits, path)
    names = (*limits, *requests)
    if {"cpu", "memory"}.isdisjoint(names) and any(name.startswith(_HUGE_PAGES_PREFIX) for name in names):
        problems.append(errors.forbidden(path, "huge pages require cpu or memory"))
    return problems


@declaration()
class ResourceClaim:
    """A resource claim of the pod that the container uses."""

    name: Annotated[str, Length(1, 253)]
    """The name of the claim in the pod."""

    request: Maybe[DnsLabel] = UNSET
    """The name of one request of the claim. Defaults to all requests of the claim."""


@declaration(
    WebhookOnly(
        resource_errors,
        "Resources are standard or fully qualified; requests do not exceed limits; those that cannot be"
        " overcommitted, such as `nvidia.com/gpu`, are whole and have a limit that equals the request.",
    )
)
class ResourceRequirements:
    """The compute resources of a container."""

    limits: Maybe[Annotated[dict[str, Amount], Properties(maximum=64)]] = UNSET
    """The maximum amount of each resource that the container may use. For accelerators, the number that it is
    allocated."""

    requests: Maybe[Annotated[dict[str, Amount], Properties(maximum=64)]] = UNSET
    """The minimum amount of each resource that the container needs. Defaults to the limit of the resource."""

    claims: Maybe[Annotated[tuple[ResourceClaim, ...], Items(maximum=64), MapKeys("name")]] = UNSET
    """The resource claims of the pod that the container uses."""
