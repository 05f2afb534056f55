"""Resource requests and limits of a container, as in the Pod API.

Rules: `validateResourceRequirements` of `k8s.io/kubernetes/pkg/apis/core/validation/validation.go`, as of
1.36. They compare quantities of any unit for each key of a map below nested lists, so only the webhook checks
them. Limits on counts are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Final

from apiserver.kinds.core.labels import label_key_errors
from apiserver.kinds.core.names import DnsLabel
from apiserver.schema import errors, quantities
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.markers import Items, Length, MapKeys, Pattern, Properties, Range
from apiserver.schema.paths import FieldPath
from apiserver.schema.remembering import remember
from apiserver.schema.rules import WebhookOnly

_STANDARD_NAMES: Final = ("cpu", "memory", "ephemeral-storage")
_STANDARD: Final = frozenset(_STANDARD_NAMES)
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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Resource:
    """The properties of a resource that follow from its name."""

    faults: tuple[str, ...]
    """The errors in the name itself."""

    is_whole: bool
    """Whether the amount must be an integer, as for accelerators."""

    page: Decimal | None
    """The size of a huge page in bytes, 0 if the size is invalid; None for any other resource."""

    takes_any_count: bool
    """Whether every amount in digits is valid."""

    can_be_overcommitted: bool
    """Whether the request may be lower than the limit."""


def can_be_overcommitted(name: str) -> bool:
    """Tell whether the request for a resource may be lower than its limit; not so for accelerators."""
    return _resource(name).can_be_overcommitted


@remember
def _resource(name: str) -> _Resource:
    is_native = "/" not in name or _NATIVE in name
    is_page = name.startswith(_HUGE_PAGES)
    page = (quantities.amount(name.removeprefix(_HUGE_PAGES)) or Decimal(0)) if is_page else None
    faults = _wrong_with(name)
    return _Resource(
        faults=faults,
        is_whole=not is_native,
        page=page,
        takes_any_count=not faults and not is_page,
        can_be_overcommitted=is_native and not is_page,
    )


def _wrong_with(name: str) -> tuple[str, ...]:
    malformed = tuple(label_key_errors(name))
    if malformed:
        return malformed
    if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE_PAGES):
        allowed = (
            f"{', '.join(_STANDARD_NAMES)} or hugepages-<size>, or fully qualified such as nvidia.com/gpu"
        )
        return (f"must be a standard resource for containers: {allowed}",)
    if "/" in name and _NATIVE not in name and name.startswith(_QUOTA):
        return (f"must not start with '{_QUOTA}', which quotas put before names",)
    return ()


def _amount_errors(
    name: str, resource: _Resource, quantity: str | int, path: FieldPath
) -> Iterator[FieldError]:
    found = quantities.amount(quantity)
    if found is None:
        return
    if resource.is_whole and found != found.to_integral_value():
        yield errors.invalid(path, quantity, "must be an integer")
    # Fractions are exact: a decimal modulo fails beyond the precision of its context.
    if resource.page is not None and (not resource.page or Fraction(found) % Fraction(resource.page)):
        yield errors.invalid(path, quantity, f"must be a positive integer multiple of {name}")


def _is_count(name: str, quantity: str | int) -> bool:
    """Tell whether an amount is in digits and valid for the resource, as most are."""
    return str(quantity).isdigit() and _resource(name).takes_any_count


def _entry_errors(name: str, quantity: str | int, path: FieldPath) -> Iterator[FieldError]:
    resource = _resource(name)
    yield from (errors.invalid(path, name, detail) for detail in resource.faults)
    yield from _amount_errors(name, resource, quantity, path)


def _pair_errors(name: str, request: str | int, limits: Json, path: FieldPath) -> Sequence[FieldError]:
    is_flexible = name in _STANDARD or can_be_overcommitted(name)
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
    found: list[FieldError] = []
    compared: list[FieldError] = []
    limits, requests = value.get("limits", {}), value.get("requests", {})
    for name, quantity in limits.items():
        if name not in _STANDARD and not _is_count(name, quantity):
            found += _entry_errors(name, quantity, path.child("limits").key(name))
    for name, request in requests.items():
        is_equal = request == limits.get(name)
        if is_equal and not found:
            continue
        if name not in _STANDARD and not _is_count(name, request):
            found += _entry_errors(name, request, path.child("requests").key(name))
        if not is_equal:
            compared += _pair_errors(name, request, limits, path)
    found += compared
    if "cpu" in limits or "memory" in limits or "cpu" in requests or "memory" in requests:
        return found
    if any(name.startswith(_HUGE_PAGES) for name in (*limits, *requests)):
        found.append(errors.forbidden(path, "huge pages require cpu or memory"))
    return found


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
