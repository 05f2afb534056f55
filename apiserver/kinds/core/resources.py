"""Resource requests and limits of a container, as in the Pod API.

Rules: `validateResourceRequirements` of `k8s.io/kubernetes/pkg/apis/core/validation/validation.go`, as of
1.36. They compare quantities of any unit for each key of a map below nested lists, so only the webhook checks
them. Limits on counts are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Annotated, Final

from apiserver.kinds.core.names import DnsLabel, label_key_errors
from apiserver.schema import errors, quantities
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.markers import Items, Length, MapKeys, Pattern, Properties, Range
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import WebhookOnly

_STANDARD_NAMES: Final = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES: Final = "hugepages-"
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
    return _is_native(name) and not name.startswith(_HUGE_PAGES)


def _is_native(name: str) -> bool:
    return "/" not in name or _NATIVE in name


def _name_faults(name: str) -> Sequence[str]:
    if malformed := label_key_errors(name):
        return malformed
    if "/" not in name and not name.startswith(_HUGE_PAGES):
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
    if name.startswith(_HUGE_PAGES):
        page = quantities.amount(name.removeprefix(_HUGE_PAGES))
        # Fractions are exact: a decimal modulo fails beyond the precision of its context.
        if not page or Fraction(amount) % Fraction(page):
            yield f"must be a positive integer multiple of {name}"


def _entry_errors(amounts: Json, path: FieldPath) -> Iterator[FieldError]:
    for name, quantity in amounts.items():
        if name not in _STANDARD_NAMES:
            for detail in _name_faults(name):
                yield errors.invalid(path.key(name), name, detail)
            for detail in _amount_faults(name, quantity):
                yield errors.invalid(path.key(name), quantity, detail)


def _pair_errors(name: str, request: str | int, limits: Json, path: FieldPath) -> Sequence[FieldError]:
    is_flexible = can_be_overcommitted(name)
    if name not in limits:
        if is_flexible:
            return ()
        detail = "must be set for a resource that cannot be overcommitted"
        return [errors.required(path.child("limits").key(name), detail)]
    wanted, most = quantities.amount(request), quantities.amount(limits[name])
    if wanted is None or most is None or (wanted <= most if is_flexible else wanted == most):
        return ()
    demand = "less than or equal to" if is_flexible else "equal to"
    here = path.child("requests").key(name)
    return [errors.invalid(here, request, f"must be {demand} {name} limit of {limits[name]}")]


def resource_errors(value: Json, path: FieldPath) -> list[FieldError]:
    """Return the errors of requests and limits, each on its own and compared with each other."""
    limits, requests = value.get("limits", {}), value.get("requests", {})
    problems = list(_entry_errors(limits, path.child("limits")))
    if problems or requests != limits:  # equal ones have no errors either
        problems += _entry_errors(requests, path.child("requests"))
    for name, request in requests.items():
        if request != limits.get(name):
            problems += _pair_errors(name, request, limits, path)
    names = limits.keys() | requests.keys()
    if names.isdisjoint({"cpu", "memory"}) and any(name.startswith(_HUGE_PAGES) for name in names):
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
