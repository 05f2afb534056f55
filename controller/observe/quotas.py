"""Convert ResourceQuotas to limits on the accelerators of the variants in a namespace.

Use by other pods is counted from the pods instead of `status.used`, because that includes our own pods, and
the two cached copies are never of the same time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.schema.json import Json
from controller.observe.accelerators import RESOURCE_NAMES, accelerators_of, whole
from controller.observe.pods import is_present, target_of_pod
from controller.observe.targets import TargetKey
from controller.planning.cluster import Quota

_REQUESTS: Final = "requests."
_COUNTED_IN_QUALITY: Final = frozenset({"cpu", "memory"})
_EXISTS: Final = "Exists"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tenant:
    """A variant as far as quotas are concerned."""

    namespace: str
    accelerator: str
    pod_spec: Json
    """Spec of one of its pods, if any, because admission may have extended the template; else the template's.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaLimits:
    """The quotas that apply to variants, and a message for each that cannot be planned with."""

    quotas: tuple[Quota, ...] = ()
    problems: tuple[str, ...] = ()


def limits(
    objects: Sequence[Json],
    tenants: Sequence[Tenant],
    pods: Sequence[Json],
    planned: frozenset[TargetKey],
    *,
    resources: Container[str] = RESOURCE_NAMES,
) -> QuotaLimits:
    """Return what ResourceQuotas leave to the variants; `planned` are the scale targets of these.

    `resources` are the names of extended resources that count as accelerators.
    """
    at_home: dict[str, list[Tenant]] = defaultdict(list)
    for tenant in tenants:
        at_home[tenant.namespace].append(tenant)
    others: dict[str, list[Json]] = defaultdict(list)
    for pod in pods:
        namespace = pod["metadata"]["namespace"]
        if namespace in at_home and is_present(pod) and target_of_pod(pod) not in planned:
            others[namespace].append(pod["spec"])
    quotas: list[Quota] = []
    problems: list[str] = []
    for item, name, hard in _entries(objects, at_home.keys(), resources):
        namespace = item["metadata"]["namespace"]
        try:
            quota = _quota(item, name, hard, at_home[namespace], others[namespace])
        except ValueError as error:
            where = f"ResourceQuota {namespace}/{item['metadata']['name']}, {name}"
            problems.append(f"{where}: {error}; it is not considered")
        else:
            quotas += [quota] if quota else []
    return QuotaLimits(quotas=tuple(quotas), problems=tuple(problems))


def _entries(
    objects: Sequence[Json], namespaces: Container[str], resources: Container[str]
) -> Iterator[tuple[Json, str, str]]:
    """Yield each quota of some namespaces with each of its limits on accelerators."""
    for item in objects:
        if item["metadata"]["namespace"] in namespaces:
            for name, hard in sorted(((item.get("spec") or {}).get("hard") or {}).items()):
                if name.removeprefix(_REQUESTS) in resources:
                    yield item, name, hard


def _quota(
    item: Json, name: str, hard: str, tenants: Sequence[Tenant], others: Sequence[Json]
) -> Quota | None:
    """Return one limit, or None if it does not apply. Raises ValueError if that cannot be determined."""
    resource = name.removeprefix(_REQUESTS)
    users = [tenant for tenant in tenants if accelerators_of(tenant.pod_spec, (resource,))]
    if not users:
        return None
    in_scope = {_is_in_scope(item["spec"], tenant.pod_spec) for tenant in users}
    if in_scope == {False}:
        return None
    if in_scope != {True}:
        raise ValueError("its scopes hold for some variants of the namespace only, or cannot be judged")
    used = sum(accelerators_of(spec, (resource,)) for spec in others if _is_in_scope(item["spec"], spec))
    return Quota(
        name=f"{item['metadata']['name']} ({name})",
        namespace=item["metadata"]["namespace"],
        accelerators=whole(hard) - used,
        used_by_others=used,
        accelerator=_type(users, tenants),
    )


def _type(users: Sequence[Tenant], tenants: Sequence[Tenant]) -> str:
    """Return the accelerator type that a vendor-specific quota covers; empty if it covers all of them."""
    rest = [tenant for tenant in tenants if tenant not in users and accelerators_of(tenant.pod_spec)]
    types = {tenant.accelerator for tenant in users}
    if not rest:
        return ""
    if len(types) > 1 or types & {"", *(tenant.accelerator for tenant in rest)}:
        raise ValueError("other variants of the namespace use accelerators that it does not count")
    return types.pop()


def _is_in_scope(spec: Json, pod_spec: Json) -> bool | None:
    """Return whether a quota counts a pod; None if that cannot be determined."""
    matches = [_holds(scope, operator, values, pod_spec) for scope, operator, values in _scopes_of(spec)]
    if False in matches:
        return False
    return None if None in matches else True


def _scopes_of(spec: Json) -> Iterator[tuple[str, str, Sequence[str]]]:
    yield from ((scope, _EXISTS, ()) for scope in spec.get("scopes") or [])
    for demand in (spec.get("scopeSelector") or {}).get("matchExpressions") or []:
        yield demand["scopeName"], demand["operator"], demand.get("values") or ()


def _holds(scope: str, operator: str, values: Sequence[str], pod_spec: Json) -> bool | None:
    """Return whether one scope matches, as `podMatchesScopeFunc` in `k8s.io/kubernetes/pkg/quota` does."""
    match scope:
        case "Terminating":
            return pod_spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return pod_spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return not _has_quality(pod_spec)
        case "NotBestEffort":
            return _has_quality(pod_spec)
        case "PriorityClass":
            return _is_among(pod_spec.get("priorityClassName") or "", operator, values)
        case _:
            return None


def _has_quality(pod_spec: Json) -> bool:
    """Return whether any container has a request or limit for CPU or memory."""
    containers = [*(pod_spec.get("containers") or []), *(pod_spec.get("initContainers") or [])]
    return any(_COUNTED_IN_QUALITY & resources.keys() for item in containers for resources in _lists(item))


def _lists(container: Json) -> tuple[Mapping[str, str], Mapping[str, str]]:
    resources = container.get("resources") or {}
    return resources.get("requests") or {}, resources.get("limits") or {}


def _is_among(name: str, operator: str, values: Sequence[str]) -> bool:
    match operator:
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)
