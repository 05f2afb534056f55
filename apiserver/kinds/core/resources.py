"""What a container requests and may use at most, as a Pod declares it.

Rules: `validateResourceRequirements` of `k8s.io/kubernetes/pkg/apis/core/validation/validation.go`, as of
1.36. They compare amounts of any unit for each name of a map, deep below lists: the webhook alone checks
them. Bounds on counts are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
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


def can_be_overcommitted(name: str) -> bool:
    """Tell whether a request for a resource may be lower than its limit: accelerators can't be shared."""
    return ("/" not in name or _NATIVE in name) and not name.startswith(_HUGE_PAGES)


@remembered
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


def _amount_errors(name: str, quantity: str | int, path: FieldPath) -> Iterator[FieldError]:
    found = quantities.amount(quantity)
    if found is None:
        return
    if "/" in name and _NATIVE not in name and found != found.to_integral_value():
        yield errors.invalid(path, quantity, "must be an integer")
    if name.startswith(_HUGE_PAGES):
        size = quantities.amount(name.removeprefix(_HUGE_PAGES))
        # As fractions: a decimal modulo has no answer beyond its precision.
        if not size or Fraction(found) % Fraction(size):
            yield errors.invalid(path, quantity, f"must be a positive integer multiple of {name}")


def _pair_errors(name: str, requests: Json, limits: Json, path: FieldPath) -> Iterator[FieldError]:
    here = path.child("requests").key(name)
    if name not in limits:
        if not can_be_overcommitted(name):
            yield errors.required(
                path.child("limits").key(name), "must be set for a resource that cannot be overcommitted"
            )
        return
    wanted, limit = quantities.amount(requests[name]), quantities.amount(limits[name])
    if wanted is None or limit is None:
        return
    yield from _beyond(name, wanted, limit, here=here, requests=requests, limits=limits)


def _beyond(
    name: str, wanted: Decimal, limit: Decimal, *, here: FieldPath, requests: Json, limits: Json
) -> Iterator[FieldError]:
    if wanted != limit and not can_be_overcommitted(name):
        yield errors.invalid(here, requests[name], f"must be equal to {name} limit of {limits[name]}")
    elif wanted > limit:
        yield errors.invalid(
            here, requests[name], f"must be less than or equal to {name} limit of {limits[name]}"
        )


def resource_errors(value: Json, path: FieldPath) -> Iterator[FieldError]:
    """Yield what is wrong with requests and limits, each and with each other."""
    limits, requests = value.get("limits", {}), value.get("requests", {})
    for side, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            here = path.child(side).key(name)
            yield from (errors.invalid(here, name, detail) for detail in _wrong_with(name))
            yield from _amount_errors(name, quantity, here)
    for name in requests:
        yield from _pair_errors(name, requests, limits, path)
    names = {*limits, *requests}
    if any(name.startswith(_HUGE_PAGES) for name in names) and not names & {"cpu", "memory"}:
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
