"""What a container requests and may use at most, as a Pod declares it.

Rules: `validateResourceRequirements` of `k8s.io/kubernetes/pkg/apis/core/validation/validation.go`, as of
1.36. They compare amounts of any unit for each name of a map, deep below lists: the webhook alone checks
them. Bounds on counts are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from apiserver.schema.remembering import remembered
from apiserver.schema.rules import WebhookOnly

_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES: Final = "hugepages-"
_NATIVE: Final = "kubernetes.io/"
_QUOTA: Final = "requests."
Amount = Annotated[
    int | str,
    Pattern(quantities.NON_NEGATIVE_PATTERN, says="a quantity of 0 or more, such as 2, 500m or 80Gi"),
    Length(maximum=quantities.LONGEST_CHARACTERS),
    Range(0),
]
"""An amount of a resource: never negative."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Resource:
    """What the name of a resource says of its amounts."""

    faults: tuple[str, ...]
    """What is wrong with the name itself."""

    is_whole: bool
    """Whether it comes in whole units: accelerators do."""

    page: Decimal | None
    """Of huge pages their size, 0 for one that is none; None for any other resource."""

    can_be_overcommitted: bool
    """Whether a request may be lower than the limit."""


def can_be_overcommitted(name: str) -> bool:
    """Tell whether a request for a resource may be lower than its limit: accelerators can't be shared."""
    return _resource(name).can_be_overcommitted


@remembered
def _resource(name: str) -> _Resource:
    is_native = "/" not in name or _NATIVE in name
    is_page = name.startswith(_HUGE_PAGES)
    page = (quantities.amount(name.removeprefix(_HUGE_PAGES)) or Decimal(0)) if is_page else None
    return _Resource(
        faults=_wrong_with(name),
        is_whole=not is_native,
        page=page,
        can_be_overcommitted=is_native and not is_page,
    )


def _wrong_with(name: str) -> tuple[str, ...]:
    malformed = tuple(label_key_errors(name))
    if malformed:
        return malformed
    if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE_PAGES):
        allowed = f"{', '.join(_STANDARD)} or hugepages-<size>, or fully qualified such as nvidia.com/gpu"
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
    # As fractions: a decimal modulo has no answer beyond its precision.
    if resource.page is not None and (not resource.page or Fraction(found) % Fraction(resource.page)):
        yield errors.invalid(path, quantity, f"must be a positive integer multiple of {name}")


def _is_plain_count(resource: _Resource, quantity: str | int) -> bool:
    """Tell at a glance that nothing is wrong: a well-named resource, in digits, as accelerators are."""
    return not resource.faults and resource.page is None and isinstance(quantity, str) and quantity.isdigit()


def _entry_errors(name: str, quantity: str | int, path: FieldPath) -> Iterator[FieldError]:
    resource = _resource(name)
    yield from (errors.invalid(path, name, detail) for detail in resource.faults)
    yield from _amount_errors(name, resource, quantity, path)


def _pair_errors(requests: Json, limits: Json, path: FieldPath) -> Iterator[FieldError]:
    for name, request in requests.items():
        if name in limits:
            if request != limits[name]:
                yield from _beyond(name, request, limits[name], path)
        elif not can_be_overcommitted(name):
            detail = "must be set for a resource that cannot be overcommitted"
            yield errors.required(path.child("limits").key(name), detail)


def _beyond(name: str, request: str | int, limit: str | int, path: FieldPath) -> Iterator[FieldError]:
    wanted, most = quantities.amount(request), quantities.amount(limit)
    if wanted is None or most is None:
        return
    if wanted != most and not can_be_overcommitted(name):
        demand = "equal to"
    elif wanted > most:
        demand = "less than or equal to"
    else:
        return
    here = path.child("requests").key(name)
    yield errors.invalid(here, request, f"must be {demand} {name} limit of {limit}")


def resource_errors(value: Json, path: FieldPath) -> Iterator[FieldError]:
    """Yield what is wrong with requests and limits, each and with each other."""
    limits, requests = value.get("limits", {}), value.get("requests", {})
    for side, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            if name not in _STANDARD and not _is_plain_count(_resource(name), quantity):
                yield from _entry_errors(name, quantity, path.child(side).key(name))
    yield from _pair_errors(requests, limits, path)
    if "cpu" in limits or "memory" in limits or "cpu" in requests or "memory" in requests:
        return
    if any(name.startswith(_HUGE_PAGES) for name in (*limits, *requests)):
        yield errors.forbidden(path, "huge pages require cpu or memory")


@declaration()
class ResourceClaim:
    """A claim of the pod on devices that the container uses."""

    name: Annotated[str, Length(1, 253)]
    """Name of the claim in the pod."""

    request: Maybe[DnsLabel] = UNSET
    """One request of the claim. Without it: all of it."""


@declaration(
    WebhookOnly(
        resource_errors,
        "Resources are standard or fully qualified; requests do not exceed limits; those that cannot be"
        " overcommitted, such as `nvidia.com/gpu`, are whole and have a limit that equals the request.",
    )
)
class ResourceRequirements:
    """What a container requests and may use at most."""

    limits: Maybe[Annotated[dict[str, Amount], Properties(maximum=64)]] = UNSET
    """The most that it may use, by resource. For accelerators, the number that it gets."""

    requests: Maybe[Annotated[dict[str, Amount], Properties(maximum=64)]] = UNSET
    """What its node must have free, by resource. Without it: the limits."""

    claims: Maybe[Annotated[tuple[ResourceClaim, ...], Items(maximum=64), MapKeys("name")]] = UNSET
    """Claims of the pod on devices that it uses."""
